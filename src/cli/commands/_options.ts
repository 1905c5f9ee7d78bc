/** Defines options as tables: types, parsing, help texts, and options that several commands share. */

import { InvalidArgumentError, Option, type Command } from "commander";
import { assert } from "../../core/base/errors.ts";
import { formatCount } from "../../core/base/format.ts";
import { promptBudgetDefault } from "../../core/model/prompt-cost.ts";
import { messageIdHint, parseMessageId, type MessageId } from "../../core/model/types.ts";
import { breakLines, padEnd, widthOf } from "../../format/width.ts";

/** Text for the end of a command's help, made once its width is known. */
type HelpText = (at: { readonly command: Command }) => string;

const helpWidth = (command: Command): number => command.configureOutput().getOutHelpWidth?.() ?? 80;

export type Example = readonly [command: string, what: string];

/** Each example with its explanation next to it, or below if there is no room. */
export function examples(lines: readonly Example[]): HelpText {
  return ({ command }) => {
    // `openclaw lcm grep` in a host.
    const host = command.parent?.parent?.name();
    const typed = lines.map(
      ([line, what]) => [host === undefined ? line : line.replace(/^lcm /, `${host} $&`), what] as const,
    );
    const width = Math.max(...typed.map(([line]) => widthOf(line)));
    const room = helpWidth(command) - width - "  $    ".length;
    const shown = typed.flatMap(([line, what]) => {
      if (room < besideMin) return [`  $ ${line}`, `      ${what}`];
      const beside = breakLines(what, room);
      return beside.map((words, at) => `${padEnd(at === 0 ? `  $ ${line}` : "", width + 4)}   ${words}`);
    });
    return ["", "Examples:", ...shown].join("\n");
  };
}

const besideMin = 24;

export const paragraph =
  (text: string): HelpText =>
  ({ command }) =>
    ["", ...breakLines(text, helpWidth(command))].join("\n");

/** An option: flags, help text (null hides it), parser or choices, and default. */
type OptionRow = readonly [flags: string, what: string | null, read?: Reading | readonly string[], otherwise?: unknown];
type Reading = (text: string, before?: unknown) => unknown;

/** Options by name; a pair is an option and its negation. */
export type OptionTable = Readonly<Record<string, OptionRow | readonly [OptionRow, OptionRow]>>;

/** The parsed value, a choice, the text itself, or whether the flag is present. */
type ValueOf<R> = R extends readonly [infer Yes extends OptionRow, OptionRow]
  ? ValueOf<Yes> | false
  : R extends readonly [string, unknown, (...given: never) => infer Value, ...unknown[]]
    ? Value
    : R extends readonly [string, unknown, readonly (infer Choice)[], ...unknown[]]
      ? Choice
      : R extends readonly [`${string}<${string}`, ...unknown[]]
        ? string
        : R extends readonly [`${string}[${string}`, ...unknown[]]
          ? string | true
          : boolean;

/** An option with a default is never undefined. */
type Certain = readonly [string, unknown, unknown, unknown];

/** The options as a command gets them. */
export type OptionsOf<T extends OptionTable> = {
  readonly [K in keyof T as T[K] extends Certain ? K : never]: ValueOf<T[K]>;
} & { readonly [K in keyof T as T[K] extends Certain ? never : K]?: ValueOf<T[K]> };

/** Of each `exclusive` group only one option may be used. */
export function addOptions(command: Command, table: OptionTable, exclusive: readonly (readonly string[])[]): void {
  for (const [name, row] of Object.entries(table)) {
    const rows = isPair(row) ? row : [row];
    const others = exclusive.filter((group) => group.includes(name)).flat();
    for (const each of rows) {
      const option = toOption(each).conflicts(others.filter((other) => other !== name));
      assert(option.attributeName() === name, `the option ${name} is found under its own name`);
      command.addOption(option);
    }
  }
  const parse = command.parseOptions.bind(command);
  command.parseOptions = (words) => {
    const given = words.flatMap((word) => withoutTruth(command, word));
    refuseNegated(command, given);
    return parse(given);
  };
}

/** `--model` after `--no-model` would win silently, and call a model that the user ruled out. */
function refuseNegated(command: Command, words: readonly string[]): void {
  const end = words.indexOf("--");
  const before = end === -1 ? words : words.slice(0, end);
  const isGiven = ({ long }: Option): boolean => before.some((word) => word === long || word.startsWith(`${long}=`));
  for (const negation of command.options.filter((option) => option.negate && isGiven(option))) {
    const other = command.options.find(
      (option) => option.attributeName() === negation.attributeName() && !option.negate,
    );
    if (other !== undefined && isGiven(other))
      command.error(`error: option '${other.flags}' cannot be used with option '${negation.flags}'`);
  }
}

/** `--flag=true` is `--flag`; `--flag=false` is `--no-flag`, or the absence of a flag that has no negation. */
function withoutTruth({ options }: Command, word: string): readonly string[] {
  const [, name = "", truth] = /^--([a-z-]+)=(true|false)$/.exec(word) ?? [];
  const has = (long: string): boolean => options.some((option) => option.long === long && option.isBoolean());
  if (!has(`--${name}`)) return [word];
  return truth === "true"
    ? [`--${name}`]
    : [`--no-${name}`].filter((long) => options.some((each) => each.long === long));
}

const isPair = (row: OptionTable[string]): row is readonly [OptionRow, OptionRow] => typeof row[0] !== "string";

function toOption([flags, what, read, otherwise]: OptionRow): Option {
  const option = new Option(flags, what ?? "").hideHelp(what === null);
  if (typeof read === "function") option.argParser((text, before: unknown) => read(text, before));
  else if (read !== undefined) option.choices(read);
  return otherwise === undefined ? option : option.default(otherwise);
}

/** How commands choose the summary model, besides --model. */
export const providerOptions = {
  provider: ["--provider <name>", "use this provider if --model does not name one"],
  baseUrl: ["--base-url <url>", "send requests here instead of the provider's usual address"],
} as const satisfies OptionTable;

export const conversationWords = "one conversation: its number, session key or session id";

export const wholeNumber =
  (least: number, most: number) =>
  (text: string): number => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new InvalidArgumentError(`Expected a whole number from ${least} to ${formatCount(most)}.`);
  };

export function messageId(text: string): MessageId {
  const id = parseMessageId(text);
  if (id !== null) return id;
  throw new InvalidArgumentError(`Expected a message id: ${messageIdHint}.`);
}

/** Far above the context window of any model. */
export const tokensMax = 1_000_000_000;

export const budgetOption = [
  "--budget <tokens>",
  `limit the prompt to this many tokens (default: as last reported by the host, else ${formatCount(promptBudgetDefault)})`,
  wholeNumber(1, tokensMax),
] as const;

export function seconds(text: string): number {
  const value = /^\d{1,6}(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (value > 0 && value <= 3_600) return value;
  throw new InvalidArgumentError("Expected a number of seconds, more than 0 and up to 3600.");
}

/** Collects the values of a repeatable option. */
export const collected = (value: string, before?: unknown): readonly string[] => [
  ...(Array.isArray(before) ? before : []),
  value,
];
