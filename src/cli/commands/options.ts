/** Options and arguments that several commands share, and how a word of the command line becomes a value. */

import { InvalidArgumentError, Option } from "commander";
import type { Command } from "commander";
import { promptBudgetDefault } from "../../core/compact.ts";
import { formatCount } from "../../core/text.ts";
import { breakLines, padEnd, widthOf } from "../../show/render.ts";

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

/** An option of several commands, and how its word becomes a value where that is not the word itself. */
export type SharedOption = readonly [flags: string, what: string, parse?: (text: string) => unknown];

/** How commands name the model that writes summaries, besides --model. */
export const providerOptions: readonly SharedOption[] = [
  ["--provider <name>", "whose model it is, if --model does not say it"],
  ["--base-url <url>", "where the provider is asked, if not where it usually is"],
];

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

export const budgetOption = (): Option =>
  new Option(
    "--budget <tokens>",
    `what a prompt may take (default: what the host last gave, else ${formatCount(promptBudgetDefault)})`,
  ).argParser(wholeNumber(1, tokensMax));

export function seconds(text: string): number {
  const value = /^\d{1,6}(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (value > 0 && value <= 3_600) return value;
  throw new InvalidArgumentError("It must be a number of seconds, more than 0 and up to 3600.");
}
