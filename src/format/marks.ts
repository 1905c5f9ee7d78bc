/** Formats the marks between messages: compactions, resets and changes of the model. */

import type { Described } from "../core/recall/describe.ts";
import type { Mark } from "../core/recall/marks.ts";
import { clockTime } from "./times.ts";
import { oneLine } from "./safe-text.ts";

export interface MarksBeside {
  readonly before: readonly Mark[];
  readonly after: readonly Mark[];
}

export const markWords = ({ text, at }: Pick<Mark, "text" | "at">, zone: string): string =>
  `── ${oneLine(text)}${at === null ? "" : `, ${clockTime(at, zone)}`} ──`;

/** The marks of one of several items: those after it, and those before it if the message before it is not shown. */
export function marksAt(marks: readonly Mark[], items: readonly Described[], at: number): MarksBeside {
  const item = items[at];
  if (item?.kind !== "message") return { before: [], after: [] };
  const { conversation, seq } = item.message;
  const after = (place: number): readonly Mark[] =>
    marks.filter((mark) => mark.conversation === conversation && mark.afterSeq === place);
  const isNext = items.some(
    (other) => other.kind === "message" && other.message.conversation === conversation && other.message.seq === seq - 1,
  );
  return { before: isNext ? [] : after(seq - 1), after: after(seq) };
}
