/** Shows recalled passages: a line that names each, then its text. */

import { messageName, type ConversationId, type MessageId, type Role, type SummaryId } from "../core/model/types.ts";
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

export function headLine(
  { paint, zone }: Page,
  id: string,
  what: string,
  { conversation, from, to = from }: Pick<Passage, "conversation" | "from" | "to">,
): string {
  const place = `conversation ${conversation}  ${spanOf(from, to, zone)}`;
  return `${paint.strong(id)}  ${what}  ${paint.soft(place)}`;
}

/** Stored text, wrapped to the width of the terminal if there is one. */
export function textLines({ bounds }: Pick<Page, "bounds">, text: string, indent = "  "): readonly string[] {
  const room = bounds === null ? null : Math.max(20, bounds - indent.length);
  // The width of a tab depends on the terminal.
  const shown = room === null ? harmless(text) : harmless(text).replaceAll("\t", "    ");
  return shown
    .split("\n")
    .flatMap((line) => (room === null || line.trim() === "" ? [line] : wrap(line, room)))
    .map((line) => `${indent}${line}`.trimEnd());
}

export function countWords(passages: readonly { readonly isWhole: boolean }[], tokens: number): string {
  const parts = passages.filter(({ isWhole }) => !isWhole).length;
  const some = parts === 0 ? "" : `, ${parts} shortened (\`lcm describe ID\` shows the whole text)`;
  return `${plural(passages.length, "passage")}, ${plural(tokens, "token")}${some}`;
}
