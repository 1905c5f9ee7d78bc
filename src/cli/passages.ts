/** What was recalled, as a person reads it: a line on what it is and where it stood, and its text below. */

import type { ConversationId, MessageId, Role, SummaryId, Timestamp } from "../core/model.ts";
import { messageName } from "../core/model.ts";
import { clockTime, harmless, plural, wrap } from "./render.ts";
import type { Paint } from "./render.ts";

interface Page {
  readonly paint: Paint;
  readonly context: { readonly zone: string; readonly stdout: { readonly columns: number | null } };
}

type Passage = {
  readonly conversation: ConversationId;
  readonly from: Timestamp;
  readonly to?: Timestamp;
  readonly text: string;
} & (
  | { readonly kind: "summary"; readonly id: SummaryId; readonly depth: number }
  | { readonly kind: "message"; readonly id: MessageId; readonly role: Role }
);

export function passageLines(page: Page, passage: Passage): readonly string[] {
  const { paint, context } = page;
  const { from, to = from, conversation } = passage;
  const [id, what] =
    passage.kind === "message"
      ? [messageName(passage.id), paint.role(passage.role, passage.role)]
      : [passage.id, paint.depth(passage.depth, `summary, depth ${passage.depth}`)];
  const place = `conversation ${conversation}  ${spanOf(clockTime(from, context.zone), clockTime(to, context.zone))}`;
  return [`${paint.strong(id)}  ${what}  ${paint.soft(place)}`, ...textLines(page, passage.text), ""];
}

/** To the minute within a day, and to the day beyond. */
function spanOf(from: string, to: string): string {
  const [firstDay = "", lastDay = ""] = [from, to].map((time) => time.slice(0, "2026-02-17".length));
  if (from === to) return from;
  return firstDay === lastDay ? `${from}…${to.slice(firstDay.length + 1)}` : `${firstDay}…${lastDay}`;
}

/** Somebody's text, line by line; on a terminal no wider than that is. */
export function textLines({ context }: Page, text: string, indent = "  "): readonly string[] {
  const { columns } = context.stdout;
  const room = columns === null ? null : Math.max(20, columns - indent.length);
  return harmless(text)
    .split("\n")
    .flatMap((line) => (room === null || line.trim() === "" ? [line] : wrap(line, room)))
    .map((line) => `${indent}${line}`.trimEnd());
}

/** What the passages above are, and how to see the rest of one. */
export function countWords(passages: readonly { readonly isWhole: boolean }[], tokens: number): string {
  const parts = passages.filter(({ isWhole }) => !isWhole).length;
  const some = parts === 0 ? "" : `, ${parts} in part (\`lcm describe\` shows all of one)`;
  return `${plural(passages.length, "passage")}, ${plural(tokens, "token")}${some}`;
}
