/** `lcm stats`: shows what prompts cost over time, and how much of each the provider could have cached. */

import { parseWhen } from "../../core/base/parse-time.ts";
import { headline } from "../../format/conversations.ts";
import { statsLines, statsPlot, statsTable } from "../../format/stats.ts";
import { about, flag, list, maybe, object, oneOf, text, time, whole } from "./_json.ts";
import { wholeNumber } from "./_options.ts";
import { chosenConversation, conversationArgument } from "./_reach.ts";
import { defineCommand, withLcm } from "./_session.ts";

const json = object({
  conversation: whole,
  prompts: list(
    object({
      number: whole,
      at: time,
      tokens: whole,
      bytes: whole,
      shared: about(maybe(whole), "bytes that it begins with and that the one before has, too"),
      isChanged: about(flag, "not only its end differs from the one before"),
      summaries: whole,
      model: maybe(text),
      turn: maybe(text),
      hosts: about(maybe(text), "why the host's own messages were sent"),
      outcome: maybe(oneOf("answered", "overflow")),
      counted: maybe(whole),
      cached: maybe(whole),
    }),
  ),
  bytes: about(whole, "of prompts that follow one of ours"),
  shared: whole,
  changes: whole,
  lost: about(whole, "bytes of the prompts before that changed ones did not begin with"),
  counted: about(whole, "prompt tokens that the provider counted"),
  cached: whole,
  calls: about(whole, "model calls for summaries"),
  inputTokens: whole,
  outputTokens: whole,
});

export const statsCommand = defineCommand({
  name: "stats",
  json,
  summary: "show what prompts cost over time, and how much of them is cached",
  description:
    "Show how large the recorded prompts of a conversation were, how much each shared with the one before, which is what a " +
    "provider can cache, what folds cost in cache, and the calls for summaries.",
  arguments: [conversationArgument],
  options: {
    since: ["--since <when>", "only prompts from this time on: 2026-02-17, yesterday, 7d"],
    limit: ["--limit <n>", "only the newest prompts", wholeNumber(1, 1_000_000), 1_000],
  },
  examples: [
    ["lcm stats 3", "the newest 1,000 prompts of conversation 3"],
    ["lcm stats 3 --since 7d --json", "those of the last week, one by one"],
  ],
  async run(session, { since, limit }, name?: string) {
    return await withLcm(session, "read", async (lcm) => {
      const conversation = await chosenConversation(lcm, name);
      const from =
        since === undefined ? {} : { since: parseWhen("--since", since, session.context.zone, lcm.clock.now()) };
      const stats = await lcm.promptStats({ conversation: conversation.id, limit, ...from });
      if (session.json) return session.printJson(json, { conversation: conversation.id, ...stats });
      session.print(headline(session, conversation));
      if (stats.prompts.length === 0)
        return session.note("no prompts are recorded: the host builds its own, or none was sent yet");
      for (const line of statsLines(stats)) session.print(line);
      session.print();
      const isOurs = stats.prompts.some(({ hosts }) => hosts === null);
      const plot = isOurs ? [...statsPlot(session, stats), ""] : [];
      for (const line of [...plot, ...statsTable(session, stats)]) session.print(line);
    });
  },
});
