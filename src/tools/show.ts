/**
 * How a tool's answer reads. Our own lines begin at the margin; stored text was written by anybody, so every line of it
 * is quoted, and none can pass for a line of ours or for another hit.
 */

import type { ConversationId, Timestamp } from "../core/model.ts";
import { firstLine, formatCount, formatRange } from "../core/text.ts";
import type { ToolContext } from "./tool.ts";

const nameCharsMax = 80;

/** A name that somebody chose, in quotes and on one line. */
export const quoteName = (name: string): string => JSON.stringify(firstLine(name, nameCharsMax));

/** `id · what · when`, and the conversation where it is not the reader's own. */
export function heading(
  { reader, zone }: ToolContext,
  item: {
    readonly id: string;
    readonly what: readonly string[];
    readonly from: Timestamp | null;
    readonly to?: Timestamp | null;
    readonly conversation: ConversationId;
  },
): string {
  const { id, what, from, to, conversation } = item;
  const when = from === null ? [] : [formatRange(from, to ?? from, zone)];
  const where = conversation === reader.conversation ? [] : [`conversation ${conversation}`];
  return [id, ...what, ...when, ...where].join(" · ");
}

export const count = (amount: number, one: string, many = `${one}s`): string =>
  `${formatCount(amount)} ${amount === 1 ? one : many}`;
