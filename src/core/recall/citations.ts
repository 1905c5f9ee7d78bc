/**
 * Extracts the citations of an answer, removes made-up ids, and cuts an answer to its token limit.
 * An id that was never returned to the delegate cannot be a source, so it counts as made up.
 */

import { isSummaryId, messageName, type MessageId, type SummaryId } from "../model/types.ts";
import { lengthWithin } from "../base/excerpt.ts";
import { estimateTokens } from "../base/tokens.ts";

/** What may be cited: the ids that were returned, and their texts. */
export interface Citable {
  readonly summaries: ReadonlySet<SummaryId>;
  readonly messages: ReadonlySet<MessageId>;
  readonly texts: readonly string[];
}

const idLike = /\b(?:sum_\w*\d\w*|sum_[0-9a-f]{8,}|file_[0-9a-f]{16}|msg_\d+(?:-\d+)?)\b/gi;

/** The answer without made-up ids, and its citations in order. */
export function readCitations(answer: string, { summaries, messages, texts }: Citable) {
  const names = new Map<string, MessageId>([...messages].map((id) => [messageName(id), id]));
  const cited = { summaries: new Set<SummaryId>(), messages: new Set<MessageId>() };
  const isKept = (written: string): boolean => {
    const id = written.toLowerCase();
    const message = names.get(id);
    if (message !== undefined) cited.messages.add(message);
    if (isSummaryId(id) && summaries.has(id)) cited.summaries.add(id);
    const isCited = message !== undefined || (isSummaryId(id) && summaries.has(id));
    // A column may be called sum_2026: a word from a text that was read stays if it cannot be one of our ids.
    return isCited || (!isSummaryId(id) && !id.startsWith("msg_") && texts.some((text) => text.includes(written)));
  };
  const text = answer.replace(idLike, (id) => (isKept(id) ? id : madeUp));
  return { text: withoutMadeUp(text), summaries: [...cited.summaries], messages: [...cited.messages] };
}

/** Placeholder for a removed id. Answers contain no control characters, so it cannot clash. */
const madeUp = "\0";

const separator = /[ \t]*(?:[,;·/&]|\band\b)[ \t]*/;
const separatorBefore = new RegExp(`(?:${separator.source})?[ \\t]*\\0`, "g");

/** Removes only the placeholder, its markup and its separators: the rest may be code. */
function withoutMadeUp(text: string): string {
  if (!text.includes(madeUp)) return text;
  return text
    .replace(/([`*_]{1,3})\0\1/g, madeUp)
    .replace(
      /([ \t]*[[(])([^[\]()\n]*\0[^[\]()\n]*)([\])])/g,
      (whole: string, open: string, list: string, end: string) => {
        const parts = list.split(separator).map((part) => part.trim());
        const real = parts.filter((part) => part !== madeUp && part !== "");
        const isList = real.every((part) => part.replace(/[`*]/g, "").replace(idLike, "") === "");
        return real.length === 0 ? "" : isList ? `${open}${real.join(", ")}${end}` : whole;
      },
    )
    .replace(separatorBefore, "")
    .trim();
}

const sentenceEnd = /(?<=[.!?…][)\]"'”’*_]{0,3})\s|(?<=[。！？])|\n/gu;

/** Cuts at the end of a sentence or line if one is near, and marks the cut with an ellipsis. */
export function cutToTokens(text: string, maxTokens: number): { readonly text: string; readonly isCut: boolean } {
  if (estimateTokens(text) <= maxTokens) return { text, isCut: false };
  const { fitting: fits } = lengthWithin(text, maxTokens, (begun) => estimateTokens(begun + mark) > maxTokens);
  const room = text.slice(0, fits).toWellFormed();
  const end = [...text.slice(0, fits + 1).matchAll(sentenceEnd)].findLast(({ index }) => index >= fits / 2)?.index;
  // Drop a word that was cut in half: half an id would be wrong.
  const whole = /^\w/.test(text.slice(fits)) ? room.replace(/\w{1,40}$/, "") : room.replace(/\ufffd$/, "");
  const kept = end === undefined ? whole : room.slice(0, end);
  return { text: `${kept.trimEnd()}${mark}`, isCut: true };
}

const mark = " …";
