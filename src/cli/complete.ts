/**
 * Completes a command line from the commands' own records, so that a new command or option is completed without more.
 * The shells only pass on the words typed so far.
 */

import type { Argument, Command, Option } from "commander";

/** What the word under the cursor can be. */
export type Completion =
  | { readonly kind: "words"; readonly words: readonly Candidate[] }
  | { readonly kind: "files" }
  /** Those of the database with this path, if one was given; `fit` turns their numbers into words that fit. */
  | { readonly kind: "conversations"; readonly db: string | undefined; readonly fit: Fit };

type Fit = (candidates: readonly Candidate[]) => readonly Candidate[];

export interface Candidate {
  readonly word: string;
  readonly what: string;
}

/** `typed` is everything after the program's name, up to the cursor; the last word may be empty or incomplete. */
export function complete(program: Command, typed: readonly string[]): Completion {
  // Bash splits words at `=`.
  const words = typed.filter((word, at) => word !== "=" || at === 0 || at === typed.length - 1);
  const current = words.at(-1) === "=" ? "" : (words.at(-1) ?? "");
  const line = read(program, words.slice(0, -1));
  const { command, valueOf, isOptionsEnd } = line;
  if (valueOf !== null) return valuesOf(valueOf, line, current, "");
  if (current.startsWith("-") && !isOptionsEnd) {
    const [flag = "", given] = current.split("=", 2);
    const option = given === undefined ? undefined : optionNamed(line, flag);
    return option === undefined ? optionsOf(line, current) : valuesOf(option, line, given ?? "", `${flag}=`);
  }
  if (command === null || command.name() === "help") return commandsOf(program, current);
  const argument = argumentAt(command, line.operands);
  return argument === undefined ? nothing : valuesOf(argument, line, current, "");
}

const nothing: Completion = { kind: "words", words: [] };

interface Line {
  readonly program: Command;
  readonly command: Command | null;
  /** How many arguments the command has before the cursor. */
  readonly operands: number;
  /** The option whose value comes next. */
  readonly valueOf: Option | null;
  readonly used: ReadonlySet<Option>;
  readonly db: string | undefined;
  /** Whether there was a `--`. */
  readonly isOptionsEnd: boolean;
}

function read(program: Command, words: readonly string[]): Line {
  let line: Line = {
    program,
    command: null,
    operands: 0,
    valueOf: null,
    used: new Set(),
    db: undefined,
    isOptionsEnd: false,
  };
  for (const word of words) line = readWord(line, word);
  return line;
}

function readWord(line: Line, word: string): Line {
  const { program, command, valueOf, used, operands } = line;
  if (valueOf !== null) return { ...line, valueOf: null, ...(valueOf.long === "--db" ? { db: word } : {}) };
  if (line.isOptionsEnd || !/^-./.test(word)) {
    if (command !== null) return { ...line, operands: operands + 1 };
    return { ...line, command: commandNamed(program, word) ?? null };
  }
  if (word === "--") return { ...line, isOptionsEnd: true };
  const [flag = "", given] = word.split("=", 2);
  const option = optionNamed(line, flag);
  if (option === undefined) return line;
  const isWaiting = option.required && given === undefined;
  const db = option.long === "--db" && given !== undefined ? { db: given } : {};
  return { ...line, ...db, used: new Set([...used, option]), valueOf: isWaiting ? option : null };
}

const visibleCommands = (program: Command): readonly Command[] => program.createHelp().visibleCommands(program);

const commandNamed = (program: Command, name: string): Command | undefined =>
  visibleCommands(program).find((command) => command.name() === name);

/** Of the command and of the program. */
function allOptions({ program, command }: Line): readonly Option[] {
  const help = program.createHelp();
  return [program, ...(command === null ? [] : [command])].flatMap((each) => [
    ...each.options,
    ...help.visibleOptions(each),
  ]);
}

const optionNamed = (line: Line, flag: string): Option | undefined =>
  allOptions(line).find(({ long, short }) => long === flag || short === flag);

/** A variadic argument takes all that follow. */
function argumentAt(command: Command, at: number): Argument | undefined {
  const { registeredArguments: all } = command;
  const last = all.at(-1);
  return all[at] ?? (last?.variadic === true ? last : undefined);
}

const wordsThat = (start: string, candidates: readonly Candidate[]): Completion => ({
  kind: "words",
  words: candidates.filter(({ word }) => word.startsWith(start)),
});

const commandsOf = (program: Command, start: string): Completion =>
  wordsThat(
    start,
    visibleCommands(program).map((command) => ({
      word: command.name(),
      what: command.summary() || command.description(),
    })),
  );

function optionsOf(line: Line, start: string): Completion {
  const offered = allOptions(line).filter(
    (option) => !option.hidden && (!line.used.has(option) || isRepeatable(option)),
  );
  const candidates = offered.flatMap(({ long, description }) =>
    long === undefined || (line.command !== null && long === "--version") ? [] : [{ word: long, what: description }],
  );
  return wordsThat(start, [...new Map(candidates.map((each) => [each.word, each])).values()]);
}

const isRepeatable = ({ description }: Option): boolean => description.includes("repeatable");

/** Values with these names are completed as files, or as conversations. */
const fileNames = /^(?:path|file|folder|from|db)$/;
const conversationNames = /^(?:conversation|family|source|target)$/;

function valuesOf(of: Option | Argument, { db }: Line, start: string, before: string): Completion {
  const fit: Fit = (candidates) =>
    candidates.filter(({ word }) => word.startsWith(start)).map(({ word, what }) => ({ word: before + word, what }));
  if (of.argChoices !== undefined)
    return { kind: "words", words: fit(of.argChoices.map((word) => ({ word, what: "" }))) };
  const names = "flags" in of ? [of.attributeName(), /[<[]([^.>\]]+)/.exec(of.flags)?.[1] ?? ""] : [of.name()];
  if (names.some((name) => conversationNames.test(name))) return { kind: "conversations", db, fit };
  return names.some((name) => fileNames.test(name)) ? { kind: "files" } : nothing;
}
