/** Lives through a transcript turn by turn, as a host would, and measures the prompts: their size, and what is cached. */

import { stat } from "node:fs/promises";
import { LcmError } from "../src/core/base/errors.ts";
import { msToTimestamp } from "../src/core/base/time.ts";
import type { HostMessage, Incoming } from "../src/core/messages/codec.ts";
import { isResultBlock } from "../src/core/messages/dialects.ts";
import { readTranscriptLine, readTranscriptValue } from "../src/core/messages/transcript-line.ts";
import { recogniseTranscript } from "../src/core/ingest/import-transcript.ts";
import type { CompactRequest } from "../src/core/compaction/compact.ts";
import type { Lcm } from "../src/core/lcm.ts";
import type { ConversationId } from "../src/core/model/types.ts";
import { openTranscript } from "../src/cli/transcript-files.ts";
import { commonPrefix } from "./measure.ts";

/** A user's message and everything up to the next. */
export type Turn = readonly Incoming[];

export interface Lived {
  readonly turns: number;
  readonly meanPromptTokens: number;
  readonly largestPromptTokens: number;
  /** Share of each prompt, as JSON, that the next one begins with. */
  readonly prefixKept: number;
  /** Prompts that do not begin with the whole of the one before. */
  readonly prefixChanges: number;
  readonly compactions: number;
  readonly folds: number;
  /** Tokens of all prompts, and how many of them a provider that saw the prompt before has cached. */
  readonly promptTokens: number;
  readonly cachedTokens: number;
}

/** Throws `invalid` if the file is not a transcript, without naming it. */
export async function readTurns(path: string): Promise<readonly Turn[]> {
  const { lines } = await openTranscript({ path, bytes: (await stat(path)).size, isFound: false });
  const recognised = await recogniseTranscript(lines);
  const turns: Incoming[][] = [];
  for await (const { position, ...line } of recognised?.lines ?? []) {
    const now = msToTimestamp(0);
    const read =
      "text" in line ? readTranscriptLine(line.text, position, now) : readTranscriptValue(line.value, position, now);
    if (read.kind !== "item") continue;
    const { item } = read;
    // What comes before the first user's message belongs to the first turn.
    const isNext = item.kind === "message" && isFromUser(item.message) && turns.at(-1)?.some(isUserMessage) !== false;
    if (isNext || turns.length === 0) turns.push([]);
    turns.at(-1)?.push(item);
  }
  if (turns.length === 0) throw new LcmError("invalid", "the transcript is empty");
  return turns;
}

const isUserMessage = (item: Incoming): boolean => item.kind === "message" && isFromUser(item.message);

/** Some hosts send tool results as a user's. */
const isFromUser = ({ role, content }: HostMessage): boolean =>
  role === "user" && !(Array.isArray(content) && content.some(isResultBlock));

export async function live(
  lcm: Lcm,
  conversation: ConversationId,
  turns: readonly Turn[],
  { budget, signal }: { readonly budget: number; readonly signal: AbortSignal },
): Promise<Lived> {
  let [promptTokens, cachedTokens, largest, kept, shown] = [0, 0, 0, 0, 0];
  let [prefixChanges, compactions, folds] = [0, 0, 0];
  let before = "";
  for (const turn of turns) {
    await lcm.ingest(conversation, turn);
    const folded = await compactDue(lcm, { conversation, budget, signal });
    const { messages, report } = await lcm.assemble(conversation, { budget });
    const now = JSON.stringify(messages);
    const same = commonPrefix(before, now);
    if (same < before.length - 1) prefixChanges += 1;
    if (folded > 0) compactions += 1;
    folds += folded;
    kept += same;
    shown += before.length;
    promptTokens += report.tokens;
    cachedTokens += (report.tokens * same) / now.length;
    largest = Math.max(largest, report.tokens);
    before = now;
  }
  return {
    turns: turns.length,
    meanPromptTokens: promptTokens / turns.length,
    largestPromptTokens: largest,
    prefixKept: kept / Math.max(1, shown),
    prefixChanges,
    compactions,
    folds,
    promptTokens,
    cachedTokens,
  };
}

/** Does what is due once, as a host does after a turn, and returns how many folds that took. */
export async function compactDue(
  lcm: Lcm,
  request: Required<Pick<CompactRequest, "conversation" | "budget" | "signal">>,
): Promise<number> {
  const { outcome, passes, message } = await lcm.compact({ ...request, mode: "due" });
  request.signal.throwIfAborted();
  if (outcome.kind === "waiting" || outcome.kind === "failed") throw new LcmError("unavailable", message);
  return passes.length;
}

/** In tokens of input at full price. */
export interface Prices {
  readonly cached: number;
  readonly cacheWrite: number;
  readonly output: number;
}

/** What 1,000 turns cost, with a provider's cache and without; summaries are never cached. */
export function costOf(
  { turns, promptTokens, cachedTokens }: Lived,
  calls: { readonly inputTokens: number; readonly outputTokens: number },
  { cached, cacheWrite, output }: Prices,
): { readonly cached: number; readonly uncached: number } {
  const summaries = calls.inputTokens + output * calls.outputTokens;
  const per1000 = (tokens: number): number => Math.round((1_000 * (tokens + summaries)) / turns);
  return {
    cached: per1000(cached * cachedTokens + cacheWrite * (promptTokens - cachedTokens)),
    uncached: per1000(promptTokens),
  };
}
