/** `lcm recent`: shows what happened between two times, as summaries, or messages not summarised yet. */

import { lastSaidAt } from "../../core/recall/grep.ts";
import { marksAfter, type Recent } from "../../core/recall/recent.ts";
import { markWords } from "../../format/marks.ts";
import { resolveTimes } from "../../core/recall/span.ts";
import { countWords, passageLines } from "../../format/passages.ts";
import { tokensMax, wholeNumber } from "./_options.ts";
import { reachFor, reachOptions } from "./_reach.ts";
import { about, either, flag, list, maybe, object, oneOf, text, time, whole } from "./_json.ts";
import { marks, role, share } from "./_shapes.ts";
import { defineCommand, withLcm, type Session } from "./_session.ts";
import { formatRange, formatTimestamp, type Timestamp } from "../../core/base/time.ts";
import { formatCount, plural } from "../../core/base/format.ts";
import { clockTime } from "../../format/times.ts";

const itemFields = {
  conversation: whole,
  earliestAt: maybe(time),
  latestAt: maybe(time),
  text,
  tokens: whole,
  isWhole: flag,
};

const json = object({
  since: maybe(time),
  before: maybe(time),
  items: list(
    either(
      object({ kind: oneOf("message"), id: whole, role, ...itemFields }),
      object({ kind: oneOf("summary"), id: text, depth: whole, ...itemFields }),
    ),
  ),
  tokens: whole,
  leftOut: share,
  isBounded: flag,
  marks: about(marks, "compactions, resets and models between messages"),
});

export const recentCommand = defineCommand({
  name: "recent",
  json,
  summary: "show what happened recently, or between two times",
  description:
    "Show what happened between two times, oldest first, by default in the last 24 hours: as messages, or as summaries " +
    "where messages do not fit; the newest in most detail.",
  options: {
    since: [
      "--since <when>",
      "show from this time or message on: 2026-02-17, '2026-02-17 15:30', tuesday, 2h, msg_1-42",
    ],
    before: ["--before <when>", "show until this time or message"],
    role: ["--role <role>", "show only messages of this role: user, assistant, tool, system; several with commas"],
    conversation: reachOptions.conversation,
    tokens: [
      "--tokens <n>",
      "show at most this many tokens (default: LCM_MAX_EXPAND_TOKENS, 4,000)",
      wholeNumber(1, tokensMax),
    ],
  },
  examples: [
    ["lcm recent", "the last 24 hours"],
    ["lcm recent --since yesterday --before today", "yesterday"],
    ["lcm recent --since 7d --tokens 20000", "the last week, in detail"],
    ["lcm recent --since tuesday --role user", "what users said since Tuesday"],
  ],
  async run(session, options) {
    const { tokens } = options;
    const { zone } = session.context;
    return await withLcm(session, "read", async (lcm) => {
      const reach = await reachFor(lcm, options);
      const recent = await lcm.recent({
        ...(await resolveTimes(lcm, options, { reach, zone, prefix: "--" })),
        tokenCap: tokens ?? lcm.settings.maxExpandTokens,
      });
      if (session.json) session.printJson(json, recent);
      else print(session, recent, await lastSaidAt(lcm.store, reach));
    });
  },
});

function print(session: Session, recent: Recent, last: Timestamp | null): void {
  const { paint, note, context } = session;
  const { since, before, items, tokens, leftOut, isBounded } = recent;
  const span =
    before === null ? `since ${formatTimestamp(since, context.zone)}` : formatRange(since, before, context.zone);
  for (const [at, item] of items.entries()) {
    const { earliestAt: from, latestAt: to } = item;
    for (const line of passageLines(session, { ...item, from, to })) session.print(line);
    for (const mark of marksAfter(recent, at)) session.print(`${paint.soft(markWords(mark, context.zone))}\n`);
  }
  if (leftOut.items > 0)
    note(
      `${paint.caution("note:")} ${plural(leftOut.items, "passage")} (${formatCount(leftOut.tokens)} tokens) left out; ` +
        "raise --tokens, or choose a shorter time",
    );
  if (isBounded) note(`${paint.caution("note:")} not everything in that time was read; choose a shorter time`);
  if (items.length > 0) return note(paint.soft(`${countWords(items, tokens)}; ${span}`));
  note(`no messages ${span}`);
  if (last === null) return note("no messages are stored yet");
  const day = clockTime(last, context.zone).slice(0, "2026-02-17".length);
  note(`the newest message is from ${formatTimestamp(last, context.zone)}; run \`lcm recent --since ${day}\``);
}
