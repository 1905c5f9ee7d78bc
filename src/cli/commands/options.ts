/** Options and arguments that several commands share, and how a word of the command line becomes a value. */

import { InvalidArgumentError, Option } from "commander";
import { promptBudgetDefault } from "../../core/compact.ts";
import { formatCount } from "../../core/text.ts";
import { padEnd, widthOf } from "../render.ts";

/** Lines for the end of a command's help. */
export function examples(...lines: readonly (readonly [command: string, what: string])[]): string {
  const width = Math.max(...lines.map(([command]) => widthOf(command)));
  return ["", "Examples:", ...lines.map(([command, what]) => `  $ ${padEnd(command, width)}   ${what}`)].join("\n");
}

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
