/** `lcm expand`: what summaries were made from, within a number of tokens, down to the messages. */

import { LcmError } from "../../core/base/errors.ts";
import type { Expansion } from "../../core/recall/expand.ts";
import { isSummaryId } from "../../core/model/types.ts";
import type { SummaryId } from "../../core/model/types.ts";
import { countWords, passageLines } from "../../format/passages.ts";
import { everywhere } from "./_reach.ts";
import { tokensMax, wholeNumber } from "./_options.ts";
import { defineCommand, withLcm } from "./_session.ts";
import type { Session } from "./_session.ts";
import { formatCount, plural } from "../../core/base/format.ts";

export const expandCommand = defineCommand({
  name: "expand",
  summary: "read what summaries were made from",
  description:
    "Read what summaries were made from: the messages of a leaf; else the summaries below it, and with --messages " +
    "their messages too.",
  arguments: [["<summary...>", "ids of summaries, as `lcm grep` and `lcm dag` show them"]],
  options: {
    query: ["--query <words>", "take what speaks of this first, when not all of it fits"],
    depth: ["--depth <n>", "how many levels of summaries to go down", wholeNumber(1, 1_000), 1],
    messages: ["--messages", "the messages too, below the summaries that are reached"],
    tokens: ["--tokens <n>", "how much to read (default: LCM_MAX_EXPAND_TOKENS, 4,000)", wholeNumber(1, tokensMax)],
  },
  examples: [
    ["lcm expand sum_0123456789abcdef", "one level down"],
    ["lcm expand sum_0123456789abcdef --messages --query 'rate limit'", "the messages that speak of it"],
  ],
  async run(session, { query, depth, messages, tokens }, ...words) {
    const summaryIds = summaryIdsOf(words);
    return await withLcm(session, "search", async (lcm) => {
      const isOfLeaves = (await lcm.store.summaries({ ids: summaryIds })).every((summary) => summary.depth === 0);
      const expansion = await lcm.expand({
        summaryIds,
        reach: await everywhere(lcm),
        maxDepth: depth,
        includeMessages: messages ?? isOfLeaves,
        tokenCap: tokens ?? lcm.settings.maxExpandTokens,
        ...(query === undefined ? {} : { query }),
      });
      if (session.json) session.printJson(expansion);
      else print(session, expansion);
    });
  },
});

/** Throws `invalid` for what is no id of a summary. */
export function summaryIdsOf(words: readonly string[]): readonly SummaryId[] {
  const wrong = words.find((word) => !isSummaryId(word));
  if (wrong === undefined) return words.filter(isSummaryId);
  throw new LcmError("invalid", `${JSON.stringify(wrong)} is no id of a summary`, {
    hint: "they look like sum_0123456789abcdef; `lcm dag` lists them, and `lcm describe` shows messages and files",
  });
}

function print(session: Session, { items, tokens, leftOut, messagesBelow, isBounded }: Expansion): void {
  const { paint, note } = session;
  for (const item of items) {
    const to = item.kind === "summary" ? (item.latestAt ?? item.at) : item.at;
    for (const line of passageLines(session, { ...item, from: item.at, to })) session.print(line);
  }
  if (messagesBelow > 0) note(`${plural(messagesBelow, "message")} below: --messages reads them`);
  if (leftOut.items > 0)
    note(
      `${paint.caution("note:")} ${plural(leftOut.items, "passage")} of ${formatCount(leftOut.tokens)} tokens left out; ` +
        "--tokens shows more, --query what speaks of it",
    );
  if (isBounded)
    note(`${paint.caution("note:")} there is more below than one walk reads; expand a summary further down`);
  note(paint.soft(`${countWords(items, tokens)}; times in ${session.context.zone}`));
}
