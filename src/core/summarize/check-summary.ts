/** Checks on a model's summary: that it is not an echo of its source, and that it ends with the list of what can be expanded. */

import type { Passage } from "./extractive.ts";
import { estimateTokens } from "../base/tokens.ts";
import { expandFooter, footerStart } from "../prompts/summary.ts";
import { extract } from "./extractive.ts";
const echoCharsMin = 120;

/**
 * Whether an answer is what it was made from, or a stretch of it: nearly all of its sentences are there, in this order,
 * with little left out between them. Sentences picked from far apart are a summary, if a plain one.
 */
export function isEcho(said: string, given: string): boolean {
  if (said.length < echoCharsMin) return false;
  const source = plainly(given);
  let [total, copied, first, at] = [0, 0, 0, 0];
  for (const line of said.split(/\n+|(?<=[.!?])\s+|(?<=[。！？])/)) {
    const sentence = plainly(line).replace(/^[-*•> ]+/, "");
    total += sentence.length;
    const found = sentence === "" ? -1 : source.indexOf(sentence, at);
    if (found === -1) continue;
    if (copied === 0) first = found;
    copied += sentence.length;
    at = found + sentence.length;
  }
  return copied >= 0.8 * total && copied >= 0.6 * (at - first);
}

/** Without line breaks and labels, which a copy may have or not. Single spaces, as most are, are passed over: quick. */
export const plainly = (text: string): string =>
  text
    .replace(/\[\d{4}-\d\d-\d\d [^\]\n]{0,80}\](?: \[[^\]\n]{0,80}\])?/g, " ")
    .replace(/\s{2,}|[^\S ]/g, " ")
    .trim();

/**
 * The summary with the line that every summary ends in, within the cap; null if it is too long. An excess of a tenth is
 * met by leaving out its last lines, more is not: whoever wrote it should decide what to leave out.
 */
export function closeWithFooter(said: string, passages: readonly Passage[], capTokens: number): string | null {
  const { body, topics } = splitFooter(said);
  // Said again below with the last line, which is not worth looking for here.
  if (estimateTokens(body) > 1.1 * capTokens) return null;
  const lines = body.split("\n");
  const footer = topics === "" ? ownFooter(passages, capTokens - estimateTokens(body)) : `${expandFooter} ${topics}`;
  const close = (): string => `${lines.join("\n").trimEnd()}\n\n${footer}`;
  if (estimateTokens(close()) > 1.1 * capTokens) return null;
  while (lines.length > 0 && estimateTokens(close()) > capTokens) lines.pop();
  return lines.join("").trim() === "" ? null : close();
}

/** A footer is a line, or a list below one. What follows it is not part of it, and not lost. */
function splitFooter(said: string): { readonly body: string; readonly topics: string } {
  const start = [...said.matchAll(footerStart)].at(-1);
  if (start === undefined) return { body: said, topics: "" };
  const [line = "", ...rest] = said
    .slice(start.index + start[0].length)
    .trimStart()
    .split(/\n[ \t]*\n/);
  const topics = line
    .split("\n")
    .map(withoutDecoration)
    .filter((topic) => topic !== "" && topic !== "…" && topic !== "...");
  return { body: [said.slice(0, start.index).trimEnd(), ...rest].join("\n\n").trimEnd(), topics: topics.join("; ") };
}

/** Without the marks of a list or of emphasis around it. */
function withoutDecoration(topic: string): string {
  let end = topic.length;
  while (end > 0 && " \t*_".includes(topic.charAt(end - 1))) end--;
  return topic.slice(0, end).replace(/^[\s*_>•-]+/, "");
}

const topicTokensMax = 40;

/** What can be looked up, as the extractive summariser tells it; in few words where there is room for few. */
function ownFooter(passages: readonly Passage[], roomTokens: number): string {
  const line =
    extract(passages, { targetTokens: 4 * topicTokensMax })
      .split("\n")
      .at(-1) ?? "";
  const isFooter = line.startsWith(expandFooter) && estimateTokens(line) <= Math.min(topicTokensMax, roomTokens);
  return isFooter ? line : `${expandFooter} the exact words`;
}
