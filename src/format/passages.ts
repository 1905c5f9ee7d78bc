/** What was recalled, as a person reads it: a line on what it is and where it stood, and its text below. */

import type { ConversationId, MessageId, Role, SummaryId } from "../core/model/types.ts";
import { messageName } from "../core/model/types.ts";
import type { Timestamp } from "../core/base/time.ts";
import { plural } from "../core/base/format.ts";
import { wrap } from "./width.ts";
import { spanOf } from "./times.ts";
import { harmless } from "./safe-text.ts";
import type { Page } from "./page.ts";

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
  const { paint } = page;
  const [id, what] =
    passage.kind === "message"
      ? [messageName(passage.id), paint.role(passage.role, passage.role)]
      : [passage.id, paint.depth(passage.depth, `summary, depth ${passage.depth}`)];
  return [headLine(page, id, what, passage), ...textLines(page, passage.text), ""];
}

/** What it is, where it stands and of when it is. */
export function headLine(
  { paint, zone }: Page,
  id: string,
  what: string,
  { conversation, from, to = from }: Pick<Passage, "conversation" | "from" | "to">,
): string {
  const place = `conversation ${conversation}  ${spanOf(from, to, zone)}`;
  return `${paint.strong(id)}  ${what}  ${paint.soft(place)}`;
}

/** Somebody's text, line by line; on a terminal no wider than that is. */
export function textLines({ bounds }: Pick<Page, "bounds">, text: string, indent = "  "): readonly string[] {
  const room = bounds === null ? null : Math.max(20, bounds - indent.length);
  // A terminal's tabs are as wide as they like.
  const shown = room === null ? harmless(text) : harmless(text).replaceAll("\t", "    ");
  return shown
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
