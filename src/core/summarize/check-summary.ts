/** Checks a model's summary for copied source text, and makes it end with the footer of what can be expanded. */

import { estimateTokens } from "../base/tokens.ts";
import { expandFooter, footerStart } from "../prompts/summary.ts";
import { extract, type Passage } from "./extractive.ts";

const echoCharsMin = 120;

/**
 * Whether an answer copies its source or one passage of it: nearly all of its sentences are there, in the same order,
 * with few gaps. Sentences picked from far apart count as a summary.
 */
export function isEcho(answer: string, given: string): boolean {
  if (answer.length < echoCharsMin) return false;
  const source = normalise(given);
  let [total, copied, first, at] = [0, 0, 0, 0];
  for (const line of answer.split(/\n+|(?<=[.!?])\s+|(?<=[。！？])/)) {
    const sentence = normalise(line).replace(/^[-*•> ]+/, "");
    total += sentence.length;
    const start = sentence === "" ? -1 : source.indexOf(sentence, at);
    if (start === -1) continue;
    if (copied === 0) first = start;
    copied += sentence.length;
    at = start + sentence.length;
  }
  return copied >= 0.8 * total && copied >= 0.6 * (at - first);
}

/** Drops line breaks and labels, which a copy may lack. The pattern skips single spaces for speed. */
const normalise = (text: string): string =>
  text
    .replace(/\[(?:\d+ · )?\d{4}-\d\d-\d\d [^\]\n]{0,80}\](?: \[[^\]\n]{0,80}\])?/g, " ")
    .replace(/\s{2,}|[^\S ]/g, " ")
    .trim();

/**
 * The summary with the footer that every summary ends in, within the cap; null if it is too long. Up to a tenth over the
 * cap, its last lines are dropped; beyond that, the model should decide what to leave out.
 */
export function closeWithFooter(answer: string, passages: readonly Passage[], capTokens: number): string | null {
  const { body, topics } = splitFooter(answer);
  // Checked again below with the footer; here only to skip the cost of making one.
  if (estimateTokens(body) > 1.1 * capTokens) return null;
  const lines = body.split("\n");
  const footer = topics === "" ? ownFooter(passages, capTokens - estimateTokens(body)) : `${expandFooter} ${topics}`;
  const close = (): string => `${lines.join("\n").trimEnd()}\n\n${footer}`;
  if (estimateTokens(close()) > 1.1 * capTokens) return null;
  while (lines.length > 0 && estimateTokens(close()) > capTokens) lines.pop();
  return lines.join("").trim() === "" ? null : close();
}

/** A footer is a line or a list below one. Text after it goes back to the body. */
function splitFooter(answer: string): { readonly body: string; readonly topics: string } {
  const start = [...answer.matchAll(footerStart)].at(-1);
  if (start === undefined) return { body: answer, topics: "" };
  const [line = "", ...rest] = answer
    .slice(start.index + start[0].length)
    .trimStart()
    .split(/\n[ \t]*\n/);
  const topics = line
    .split("\n")
    .map(withoutDecoration)
    .filter((topic) => topic !== "" && topic !== "…" && topic !== "...");
  return { body: [answer.slice(0, start.index).trimEnd(), ...rest].join("\n\n").trimEnd(), topics: topics.join("; ") };
}

/** Strips list and emphasis marks. */
function withoutDecoration(topic: string): string {
  let end = topic.length;
  while (end > 0 && " \t*_".includes(topic.charAt(end - 1))) end--;
  return topic.slice(0, end).replace(/^[\s*_>•-]+/, "");
}

const topicTokensMax = 40;

/** The footer of the extractive summariser, or a generic one if that does not fit. */
function ownFooter(passages: readonly Passage[], roomTokens: number): string {
  const line =
    extract(passages, { targetTokens: 4 * topicTokensMax })
      .split("\n")
      .at(-1) ?? "";
  const isFooter = line.startsWith(expandFooter) && estimateTokens(line) <= Math.min(topicTokensMax, roomTokens);
  return isFooter ? line : `${expandFooter} the exact words`;
}
