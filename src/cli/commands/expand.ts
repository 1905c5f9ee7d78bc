/** `lcm expand`: reads the sources of summaries, down to the messages, within a token limit. */

import { LcmError } from "../../core/base/errors.ts";
import type { Expansion } from "../../core/recall/expand.ts";
import { isSummaryId, type SummaryId } from "../../core/model/types.ts";
import { countWords, passageLines } from "../../format/passages.ts";
import { everywhere } from "./_reach.ts";
import { tokensMax, wholeNumber } from "./_options.ts";
import { about, either, flag, list, maybe, object, oneOf, text, time, whole } from "./_json.ts";
import { role, share } from "./_shapes.ts";
import { defineCommand, withLcm, type Session } from "./_session.ts";
import { formatCount, plural } from "../../core/base/format.ts";

const itemFields = { conversation: whole, text, tokens: whole, isWhole: flag, at: maybe(time), rank: whole };

const json = object({
  items: list(
    either(
      object({ kind: oneOf("message"), id: whole, seq: whole, role, ...itemFields }),
      object({ kind: oneOf("summary"), id: text, depth: whole, latestAt: maybe(time), ...itemFields }),
    ),
  ),
  tokens: whole,
  expanded: about(list(text), "the summaries whose sources these are"),
  messagesBelow: about(whole, "messages that were not requested"),
  leftOut: share,
  isBounded: flag,
});

export const expandCommand = defineCommand({
  name: "expand",
  json,
  summary: "read the sources of summaries",
  description:
    "Read the sources of summaries: the messages of a leaf, or the summaries below a condensed one, and with --messages " +
    "their messages too.",
  arguments: [["<summary...>", "summary ids, as printed by `lcm grep` and `lcm dag`"]],
  options: {
    query: ["--query <words>", "if not everything fits, prefer what matches these words"],
    depth: ["--depth <n>", "go down this many levels of summaries", wholeNumber(1, 1_000), 1],
    messages: ["--messages", "include the messages below"],
    tokens: [
      "--tokens <n>",
      "read at most this many tokens (default: LCM_MAX_EXPAND_TOKENS, 4,000)",
      wholeNumber(1, tokensMax),
    ],
  },
  examples: [
    ["lcm expand sum_0123456789abcdef", "one level down"],
    ["lcm expand sum_0123456789abcdef --messages --query 'rate limit'", "the messages about rate limits"],
  ],
  async run(session, { query, depth, messages, tokens }, ...words) {
    const summaryIds = summaryIdsOf(words);
    return await withLcm(session, "read", async (lcm) => {
      const isOfLeaves = (await lcm.store.summaries({ ids: summaryIds })).every((summary) => summary.depth === 0);
      const expansion = await lcm.expand({
        summaryIds,
        reach: await everywhere(lcm),
        maxDepth: depth,
        includeMessages: messages ?? isOfLeaves,
        tokenCap: tokens ?? lcm.settings.maxExpandTokens,
        ...(query === undefined ? {} : { query }),
      });
      if (session.json) session.printJson(json, expansion);
      else print(session, expansion);
    });
  },
});

export function summaryIdsOf(words: readonly string[]): readonly SummaryId[] {
  const wrong = words.find((word) => !isSummaryId(word));
  if (wrong === undefined) return words.filter(isSummaryId);
  throw new LcmError("invalid", `${JSON.stringify(wrong)} is not a summary id`, {
    hint: "ids look like sum_0123456789abcdef; list them with `lcm dag`, or show messages and files with `lcm describe`",
  });
}

function print(session: Session, { items, tokens, leftOut, messagesBelow, isBounded }: Expansion): void {
  const { paint, note } = session;
  for (const item of items) {
    const to = item.kind === "summary" ? (item.latestAt ?? item.at) : item.at;
    for (const line of passageLines(session, { ...item, from: item.at, to })) session.print(line);
  }
  if (messagesBelow > 0) note(`${plural(messagesBelow, "message")} below; pass --messages to read them`);
  if (leftOut.items > 0)
    note(
      `${paint.caution("note:")} ${plural(leftOut.items, "passage")} (${formatCount(leftOut.tokens)} tokens) left out; ` +
        "raise --tokens, or pass --query to choose",
    );
  if (isBounded) note(`${paint.caution("note:")} not everything below was read; expand a summary further down`);
  note(paint.soft(`${countWords(items, tokens)}; times in ${session.context.zone}`));
}
