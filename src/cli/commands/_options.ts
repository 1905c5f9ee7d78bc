/** Options and arguments that several commands share, and how a word of the command line becomes a value. */

import { InvalidArgumentError, Option } from "commander";
import type { Command } from "commander";
import { assert } from "../../core/base/errors.ts";
import { formatCount } from "../../core/base/format.ts";
import { promptBudgetDefault } from "../../core/model/prompt-cost.ts";
import { breakLines, padEnd, widthOf } from "../../format/width.ts";

/** Text for the end of a command's help, made when it is known how wide that is. */
type HelpText = (at: { readonly command: Command }) => string;

const helpWidth = (command: Command): number => command.configureOutput().getOutHelpWidth?.() ?? 80;

export type Example = readonly [command: string, what: string];

/** What an example does stands beside it, or below where there is no room for that. */
export function examples(lines: readonly Example[]): HelpText {
  return ({ command }) => {
    // `openclaw lcm grep`, where a host has mounted it.
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

/**
 * An option: its flags, what it does (null hides it from help), how its word becomes a value or which words there are, and
 * what it is where it is left out.
 */
type OptionRow = readonly [flags: string, what: string | null, read?: Reading | readonly string[], otherwise?: unknown];
type Reading = (text: string, before?: unknown) => unknown;

/** By the names under which a command finds them; a pair is an option and the way to say no to it. */
export type OptionTable = Readonly<Record<string, OptionRow | readonly [OptionRow, OptionRow]>>;

/** What was read, one of the choices, the word itself, or whether it was said. */
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

/** One that is never missing, since it says what it is where it is left out. */
type Certain = readonly [string, unknown, unknown, unknown];

/** What a command is given of its options. */
export type OptionsOf<T extends OptionTable> = {
  readonly [K in keyof T as T[K] extends Certain ? K : never]: ValueOf<T[K]>;
} & { readonly [K in keyof T as T[K] extends Certain ? never : K]?: ValueOf<T[K]> };

/** Of each group only one may be given. */
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
}

const isPair = (row: OptionTable[string]): row is readonly [OptionRow, OptionRow] => typeof row[0] !== "string";

function toOption([flags, what, read, otherwise]: OptionRow): Option {
  const option = new Option(flags, what ?? "").hideHelp(what === null);
  if (typeof read === "function") option.argParser((text, before: unknown) => read(text, before));
  else if (read !== undefined) option.choices(read);
  return otherwise === undefined ? option : option.default(otherwise);
}

/** How commands name the model that writes summaries, besides --model. */
export const providerOptions = {
  provider: ["--provider <name>", "whose model it is, if --model does not say it"],
  baseUrl: ["--base-url <url>", "where the provider is asked, if not where it usually is"],
} as const satisfies OptionTable;

export const conversationWords = "one conversation: its number, session key or session id";

/** A reader for a whole number between two ends. */
export const wholeNumber =
  (least: number, most: number) =>
  (text: string): number => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most.toLocaleString("en-US")}.`);
  };

/** Far above any model's window. */
export const tokensMax = 1_000_000_000;

export const budgetOption = [
  "--budget <tokens>",
  `what a prompt may take (default: what the host last gave, else ${formatCount(promptBudgetDefault)})`,
  wholeNumber(1, tokensMax),
] as const;

export function seconds(text: string): number {
  const value = /^\d{1,6}(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (value > 0 && value <= 3_600) return value;
  throw new InvalidArgumentError("It must be a number of seconds, more than 0 and up to 3600.");
}
