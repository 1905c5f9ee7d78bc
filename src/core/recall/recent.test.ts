import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, describe, it } from "node:test";
import { openSqlite } from "../../store/sqlite/store.ts";
import { foldPlaces, refuses } from "../../../test/store-contract/ground.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { messageToStore } from "../messages/codec.ts";
import type { Conversation, ConversationId, MessageId, SummaryId } from "../model/types.ts";
import type { Clock, Store } from "../model/store.ts";
import { recent } from "./recent.ts";
import type { Recent, RecentRequest } from "./recent.ts";
import type { Reach } from "./scope.ts";
import { estimateTokens } from "../base/tokens.ts";
import { msToTimestamp } from "../base/time.ts";

const folder = makeScratch("recent");
let databases = 0;
const opened: Store[] = [];
after(async () => {
  for (const store of opened) await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const noon = Date.UTC(2026, 1, 17, 12);
const hour = 3_600_000;
const at = (hoursFromNoon: number) => msToTimestamp(noon + hoursFromNoon * hour);
const clock: Clock = { now: () => at(0) };
const everywhere: Reach = { kind: "all", conversations: null };

interface Ground {
  readonly store: Store;
  readonly path: string;
  readonly tell: (request?: Partial<RecentRequest>) => Promise<Recent>;
}

async function ground(): Promise<Ground> {
  const path = join(folder, `${++databases}.db`);
  const store = await openSqlite({ path, housekeeping: false });
  opened.push(store);
  const tell = async (request: Partial<RecentRequest> = {}): Promise<Recent> => {
    const told = await recent({ store, clock }, { reach: everywhere, tokenCap: 2_000, ...request });
    assert.ok(told.tokens <= (request.tokenCap ?? 2_000));
    assert.equal(told.tokens, estimatedTokens(told));
    return told;
  };
  return { store, path, tell };
}

const estimatedTokens = ({ items }: Recent): number => items.reduce((sum, { text }) => sum + estimateTokens(text), 0);
const texts = ({ items }: Recent): readonly string[] => items.map(({ text }) => text);

/** One message at each of these hours from noon, saying which. */
async function say(store: Store, id: ConversationId, hours: readonly number[], name = "heard"): Promise<void> {
  const messages = hours.map((hours) => {
    const raw = { role: "user", content: `${name} at ${hours}` };
    return { kind: "message", message: messageToStore(raw, { key: `${name}${hours}`, at: at(hours) }) } as const;
  });
  await store.append(id, messages);
}

const stampOf = (hoursFromNoon: number): string => at(hoursFromNoon).slice(0, 16).replace("T", " ");
const range = (from: number, to: number): readonly number[] => Array.from({ length: to - from }, (_, n) => from + n);

/** A day by the hour, in six leaves of four hours under two summaries of twelve; then three raw messages. */
async function aDay(store: Store): Promise<Conversation> {
  const conversation = await store.open({ sessionId: `day${databases}` });
  await say(store, conversation.id, range(-27, 0));
  for (let leaf = 0; leaf < 6; leaf++) {
    const from = -27 + leaf * 4;
    await foldPlaces(store, conversation.id, [leaf, leaf + 3], `leaf of ${from} to ${from + 3}`);
  }
  await foldPlaces(store, conversation.id, [0, 2], "the first half day");
  await foldPlaces(store, conversation.id, [1, 3], "the second half day");
  return conversation;
}

const leaves = range(0, 6).map((leaf) => `leaf of ${-27 + leaf * 4} to ${-24 + leaf * 4}`);
const heard = (from: number, to: number): readonly string[] => range(from, to).map((hours) => `heard at ${hours}`);
const raw = heard(-3, 0);

describe("recent activity", () => {
  it("uses messages if they fit, otherwise the finest summaries that do", async () => {
    const { store, tell } = await ground();
    await aDay(store);
    assert.deepEqual(texts(await tell({ since: at(-27) })), heard(-27, 0));
    const told = await tell({ since: at(-27), tokenCap: estimateTokens([...leaves, ...raw].join("\n")) });
    assert.deepEqual(texts(told), [...leaves, ...raw]);
    assert.deepEqual([told.leftOut, told.isBounded], [{ items: 0, tokens: 0 }, false]);
    assert.deepEqual(
      [told.items[0]?.earliestAt, told.items[0]?.latestAt, told.items.at(-1)?.kind],
      [at(-27), at(-24), "message"],
    );
  });

  it("uses coarser summaries if the finer ones do not fit, and refines the newest first", async () => {
    const { store, tell } = await ground();
    await aDay(store);
    const halves = ["the first half day", "the second half day"];
    const coarse = estimateTokens([...halves, ...raw].join("\n"));
    assert.deepEqual(texts(await tell({ since: at(-27), tokenCap: coarse })), [...halves, ...raw]);
    const mixed = coarse + estimateTokens(leaves.slice(3).join("\n"));
    assert.deepEqual(texts(await tell({ since: at(-27), tokenCap: mixed })), [
      "the first half day",
      ...leaves.slice(3, 5),
      ...heard(-7, 0),
    ]);
  });

  it("lists only the messages of a role, the newest that fit", async () => {
    const { store, tell } = await ground();
    const { id } = await aDay(store);
    const raw = { role: "assistant", content: "noted" };
    await store.append(id, [{ kind: "message", message: messageToStore(raw, { key: "noted", at: at(-0.5) }) }]);
    assert.deepEqual(texts(await tell({ roles: ["user"] })), heard(-24, 0));
    assert.deepEqual(texts(await tell({ roles: ["assistant", "tool"] })), ["noted"]);
    const told = await tell({ roles: ["assistant", "user"], tokenCap: estimateTokens("heard at -1") + 2 });
    assert.deepEqual([texts(told), told.leftOut.items], [["heard at -1", "noted"], 23]);
  });

  it("keeps the newest messages without gaps if not all fit, and counts the rest", async () => {
    const { store, tell } = await ground();
    const { id } = await store.open({ sessionId: "raw" });
    await say(store, id, range(-3, 0));
    const two = estimateTokens("heard at -2") + estimateTokens("heard at -1");
    const told = await tell({ tokenCap: two });
    assert.deepEqual(texts(told), raw.slice(1));
    assert.deepEqual(told.leftOut, { items: 1, tokens: estimateTokens("heard at -3") });
    const other = await store.open({ sessionId: "other" });
    await say(store, other.id, [-1.5], `something long ${"and longer ".repeat(20)}`);
    assert.deepEqual(texts(await tell({ tokenCap: two })), raw.slice(2));
  });

  it("with little room, prefers summaries over the latest messages", async () => {
    const { store, tell } = await ground();
    await aDay(store);
    const least = estimateTokens("the second half day");
    assert.deepEqual(texts(await tell({ since: at(-27), tokenCap: least })), ["the second half day"]);
    const one = await tell({ since: at(-27), tokenCap: least + estimateTokens(raw.at(-1) ?? "") });
    assert.deepEqual(texts(one), ["the second half day", ...raw.slice(2)]);
    assert.equal(one.leftOut.items, 3);
  });

  it("shows part of every section if it must cut a long summary", async () => {
    const { store, tell } = await ground();
    const { id } = await store.open({ sessionId: "long" });
    await say(store, id, range(-9, 0));
    const line = (hours: number): string => `[${stampOf(hours)}] [user] of hour ${hours}`;
    const text = range(-9, 0).map((hours) => `${line(hours)}\n more of it, ${"and more, ".repeat(20)}`);
    await foldPlaces(store, id, [0, 8], text.join("\n"));
    const told = await tell({ tokenCap: 300 });
    const [shown = ""] = texts(told);
    for (const hours of range(-9, 0)) assert.ok(shown.includes(line(hours)), shown);
    assert.ok(shown.includes(`${line(-2)} …`), "and says where it left something out");
    assert.deepEqual([told.items.length, told.items[0]?.isWhole], [1, false]);
  });

  it("cuts a summary with times to the requested span", async () => {
    const { store, tell } = await ground();
    const { id } = await store.open({ sessionId: "stamped" });
    await say(store, id, [-14, -13.5, -13, -12, -11, -10.5, -10], "words ".repeat(30));
    const summary = `[2026-02-16 22:00 UTC] [user] two before\n more of two\n[23:00] one before\n[2026-02-17 00:00] [tool] midnight\n[01:00] one after\n more of one\n[02:00] two after`;
    await foldPlaces(store, id, [0, 6], summary);
    const told = await tell({ since: at(-12), before: at(-10), tokenCap: 60 });
    assert.deepEqual(texts(told), ["[2026-02-17 00:00] [tool] midnight\n[01:00] one after\n more of one"]);
    assert.equal(told.items[0]?.isWhole, false);
    const early = await tell({ since: at(-13.5), before: at(-12.5), tokenCap: 60 });
    assert.deepEqual(texts(early), ["[2026-02-16 22:00 UTC] [user] two before\n more of two\n[23:00] one before"]);
  });

  it("ignores times in a summary that are outside its range, as in another zone", async () => {
    for (const hours of [1, 3]) {
      const { store, tell } = await ground();
      const { id } = await store.open({ sessionId: `zone ${hours}` });
      await say(store, id, [-10, -9.5, -9]);
      await foldPlaces(
        store,
        id,
        [0, 2],
        `[2026-02-17 0${hours}:00] early on\n[0${hours}:30] later ${"on ".repeat(20)}`,
      );
      assert.deepEqual(texts(await tell({ since: at(-9.5), before: at(-9) })), ["heard at -9.5"]);
    }
  });

  it("replaces a summary without times by its sources, or only names it if they do not fit", async () => {
    const { store, tell } = await ground();
    const { id } = await store.open({ sessionId: "vague" });
    await say(store, id, range(-12, 0), `${"a long way ".repeat(8)}on`);
    const summary = "12:30 is when the ferry leaves, on 2026-03-01. ".repeat(5).trim();
    await foldPlaces(store, id, [0, 11], summary);
    const tokenCap = estimateTokens(summary);
    const half = { since: at(-6), before: at(0) };
    const whole = await tell(half);
    assert.deepEqual([whole.items.length, whole.items.every(({ kind }) => kind === "message")], [6, true]);
    const coarse = await tell({ ...half, tokenCap });
    assert.deepEqual([coarse.items.length, coarse.items[0]?.kind, coarse.items[0]?.isWhole], [1, "summary", true]);
    const other = await store.open({ sessionId: "other" });
    await say(store, other.id, range(-5, 0), "much has been said in the other place ".repeat(4));
    const named = (await tell({ ...half, tokenCap })).items.find(({ kind }) => kind === "summary");
    assert.deepEqual([named?.text, named?.isWhole, named?.earliestAt], ["…", false, at(-12)]);
  });

  it("descends to summaries within the span, even if they take more room, and cuts them", async () => {
    const { store, tell } = await ground();
    const { id } = await store.open({ sessionId: "coarse" });
    await say(store, id, range(-24, 0));
    for (const leaf of range(0, 6))
      await foldPlaces(store, id, [leaf, leaf + 3], `leaf ${leaf}, ${"etc. ".repeat(80)}`);
    await foldPlaces(store, id, [0, 5], `all: ${"and so on, ".repeat(30)}`);
    const told = await tell({ since: at(-16), before: at(-8), tokenCap: 200 });
    assert.deepEqual(
      told.items.map(({ text, isWhole }) => [text.slice(0, 6), isWhole]),
      [
        ["leaf 2", false],
        ["leaf 3", false],
      ],
    );
  });

  it("leaves out empty texts", async () => {
    const { store, tell } = await ground();
    const { id } = await store.open({ sessionId: "silent" });
    await say(store, id, [-3]);
    const silent = messageToStore({ role: "user", content: " \n " }, { key: "silent", at: at(-2) });
    await store.append(id, [{ kind: "message", message: silent }]);
    assert.deepEqual(texts(await tell()), ["heard at -3"]);
  });

  it("keeps the order of messages with the same time, and the last ones if not all fit", async () => {
    const { store, tell } = await ground();
    const { id } = await store.open({ sessionId: "instant" });
    const messages = ["first", "second", "third"].map((content) => {
      const message = messageToStore({ role: "user", content }, { key: content, at: at(-1) });
      return { kind: "message", message } as const;
    });
    await store.append(id, messages);
    assert.deepEqual(texts(await tell()), ["first", "second", "third"]);
    assert.deepEqual(texts(await tell({ tokenCap: estimateTokens("third") })), ["third"]);
  });

  it("covers the span and nothing else, apart from what it reports as left out, and grows with the token cap", async () => {
    const { store, tell } = await ground();
    const { id } = await store.open({ sessionId: "long" });
    const hours = range(-96, 0);
    await say(store, id, hours);
    const spoken = new Map((await store.messages({ conversation: id })).map((message) => [message.id, message.at]));
    const stamped = (from: number): string => `[${stampOf(from)}] from here on\n${"and so on, ".repeat(12)}`;
    for (let leaf = 0; leaf < 20; leaf++) {
      const from = -96 + leaf * 4;
      const text = [from, from + 2].map((hour) =>
        leaf % 2 === 0 ? stamped(hour) : `vaguely ${hour}, ${"etc. ".repeat(20)}`,
      );
      await foldPlaces(store, id, [leaf, leaf + 3], text.join("\n"));
    }
    for (const place of [0, 1, 2, 3]) await foldPlaces(store, id, [place, place + 3], `four of ${place} `.repeat(30));
    await foldPlaces(store, id, [0, 1], "eight, ".repeat(90));
    for (const [since, before] of [
      [-97, 1],
      [-50, -20],
      [-95, -93],
      [-33, -1],
      [-18, 0],
      [-60, -59],
    ] as const) {
      const span = { since: at(since), before: at(before) };
      const wanted = [...spoken]
        .filter(([, when]) => when >= span.since && when < span.before)
        .map(([message]) => message);
      let last = { tokens: 0, covered: 0 };
      for (const tokenCap of [1, 10, 40, 90, 150, 300, 600, 1_200, 2_400, 5_000]) {
        const told = await tell({ ...span, tokenCap });
        const covered = new Set<number>();
        for (const item of told.items) {
          assert.ok(item.latestAt >= span.since && item.earliestAt < span.before, JSON.stringify(item));
          for (const message of await below(store, item)) covered.add(message);
        }
        const missing = wanted.filter((message) => !covered.has(message));
        assert.equal(missing.length > 0, told.leftOut.items > 0, `${since} to ${before} in ${tokenCap}`);
        const now = { tokens: told.tokens, covered: wanted.length - missing.length };
        assert.ok(now.covered >= last.covered, JSON.stringify([since, before, tokenCap, last, now]));
        last = now;
      }
      assert.equal(last.covered, wanted.length);
    }
  });

  it("covers the last 24 hours by default, and nothing outside the span", async () => {
    const { store, tell } = await ground();
    await aDay(store);
    const told = await tell();
    assert.deepEqual([told.since, told.before], [at(-24), null]);
    assert.deepEqual(texts(told), heard(-24, 0));
    const between = await tell({ since: at(-15), before: at(-11) });
    assert.deepEqual(texts(between), heard(-15, -11));
    const early = await tell({ before: at(-19) });
    assert.deepEqual([early.since, texts(early)], [at(-43), heard(-27, -19)]);
    assert.deepEqual(texts(await tell({ since: at(-2), before: at(-1) })), ["heard at -2"]);
    assert.deepEqual(texts(await tell({ since: at(0) })), []);
    assert.deepEqual(texts(await tell({ since: at(-99), before: at(-40) })), []);
  });

  it("finds a short span inside a long summary that would not fit", async () => {
    const { store, tell } = await ground();
    const { id } = await store.open({ sessionId: "long" });
    await say(store, id, range(-100, 0));
    for (let leaf = 0; leaf < 20; leaf++) await foldPlaces(store, id, [leaf, leaf + 4], `leaf ${leaf}`);
    await foldPlaces(store, id, [0, 19], `all of it: ${"many words ".repeat(50)}`);
    assert.deepEqual(texts(await tell({ since: at(-8), tokenCap: 10 })), ["leaf 18", "leaf 19"]);
  });

  it("interleaves conversations by time, and stays within its reach", async () => {
    const { store, tell } = await ground();
    const one = await store.open({ sessionId: "one" });
    const two = await store.open({ sessionId: "two" });
    const hidden = await store.open({ sessionId: "three" });
    await say(store, one.id, [-6, -4, -2], "one");
    await say(store, two.id, [-5, -3, -1], "two");
    await say(store, hidden.id, [-3.5], "hidden");
    await store.setHidden(hidden.id, true);
    const told = await tell();
    assert.deepEqual(texts(told), ["one at -6", "two at -5", "one at -4", "two at -3", "one at -2", "two at -1"]);
    assert.deepEqual(told.items.map(({ conversation }) => conversation).slice(0, 2), [one.id, two.id]);
    const newest = await tell({ tokenCap: 3 * estimateTokens("one at -2") });
    assert.deepEqual(texts(newest), ["two at -3", "one at -2", "two at -1"]);
    const own = await tell({ reach: { kind: "family", conversations: [two.id] } });
    assert.deepEqual(texts(own), ["two at -5", "two at -3", "two at -1"]);
    assert.deepEqual(texts(await tell({ reach: { kind: "grant", conversations: [] } })), []);
  });

  it("shows a carried summary once, at its origin", async () => {
    const { store, path, tell } = await ground();
    const session = { sessionKey: "main", agentId: "one" };
    const first = await store.openSegment({ sessionId: "s1", ...session });
    await say(store, first.id, [-9, -8, -7, -6]);
    await foldPlaces(store, first.id, [0, 1], "the first two");
    await foldPlaces(store, first.id, [1, 2], "the last two");
    const top = await foldPlaces(store, first.id, [0, 1], "all four");
    const second = await store.openSegment({ sessionId: "s2", ...session });
    await say(store, second.id, [-9.5, -2], "again");
    carriedRow(path, await foldPlaces(store, second.id, [0, 0], "all four"), top);
    assert.deepEqual(texts(await tell({ tokenCap: 12 })), ["the first two", "the last two", "again at -2"]);
    assert.deepEqual(texts(await tell()), [...heard(-9, -5), "again at -2"]);
    const alone = await tell({ reach: { kind: "conversation", conversations: [second.id] } });
    assert.deepEqual(texts(alone), ["all four", "again at -2"]);
  });

  it("shows long messages as excerpts, and at least part of the newest", async () => {
    const { store, tell } = await ground();
    const { id } = await store.open({ sessionId: "long" });
    const content = `it began ${"and went on and on ".repeat(200)}`;
    const message = messageToStore({ role: "assistant", content }, { key: "k", at: at(-1) });
    await store.append(id, [{ kind: "message", message }]);
    const [item] = (await tell()).items;
    assert.ok(item !== undefined && !item.isWhole && item.text.startsWith("it began") && item.tokens < 150);
    for (const tokenCap of [1, 3, 20]) {
      const told = await tell({ tokenCap });
      assert.equal(told.items.length, 1);
    }
  });

  it("rejects invalid times and reversed spans", async () => {
    const { tell } = await ground();
    await refuses("invalid", async () => await tell({ since: "some day" }));
    await refuses("invalid", async () => await tell({ before: "later" }));
    await refuses("invalid", async () => await tell({ since: at(-1), before: at(-2) }));
    await refuses("invalid", async () => await tell({ tokenCap: 0 }));
  });

  it("guarantee 25: follows no link into another conversation, even in a damaged database", async () => {
    const { store, path, tell } = await ground();
    const { id } = await aDay(store);
    const foreign = await store.open({ sessionId: "foreign" });
    await say(store, foreign.id, [-20, -19], "diamond");
    const leaf = await foldPlaces(store, foreign.id, [0, 1], "the diamond is in the safe");
    const db = new DatabaseSync(path, { enableForeignKeyConstraints: false });
    db.prepare("UPDATE OR IGNORE summary_parents SET parent_summary_id = ? WHERE ordinal = 1").run(leaf);
    db.close();
    for (const tokenCap of [60, 300, 4_000]) {
      const told = await tell({ reach: { kind: "conversation", conversations: [id] }, since: at(-27), tokenCap });
      assert.ok(told.items.length > 0);
      assert.doesNotMatch(texts(told).join(" "), /diamond/);
    }
  });

  it("guarantee 22: finds messages despite wrong clocks", async () => {
    for (const [times, since, before, expected] of [
      [[-10, -11, -9], -10, -9.5, [-10]],
      [[-12, -11, -10, -9, 8, -7, -6, -5], -7, -4, [-7, -6, -5]],
      [[-12, -11, -10, -9, -176, -7, -6, -5], -11, -8.5, [-11, -10, -9]],
      // No order at all: nothing can be found by halving.
      [Array.from({ length: 400 }, (_, n) => ((n * 173) % 400) - 400), -300, -297, [-300, -299, -298]],
    ] as const) {
      const { store, tell } = await ground();
      const { id } = await store.open({ sessionId: "skewed" });
      await say(store, id, times);
      const told = await tell({ since: at(since), before: at(before), tokenCap: 4_000 });
      const heard = texts(told).toSorted();
      assert.ok(heard.length > 0, `${since} to ${before}`);
      if (times.length < 100) assert.deepEqual(heard, expected.map((hours) => `heard at ${hours}`).toSorted());
    }
  });

  it("guarantee 22: one conversation does not crowd out another, and reaching a bound is reported", async () => {
    const { store, tell } = await ground();
    const skewed = await store.open({ sessionId: "skewed" });
    await say(
      store,
      skewed.id,
      Array.from({ length: 1_200 }, (_, n) => -n - 0.5),
    );
    const other = await store.open({ sessionId: "other" });
    await say(store, other.id, [-100.4]);
    const told = await tell({ since: at(-100.7), before: at(-100.2), tokenCap: 4_000 });
    assert.deepEqual(texts(told).toSorted(), ["heard at -100.4", "heard at -100.5"]);
    for (const [since, before] of [
      [-350, -100],
      [-1_100, -800],
      [-600, -350],
      [-1_190, -10],
    ] as const) {
      const many = await tell({ since: at(since), before: at(before), tokenCap: 50_000 });
      const told = texts(many).length + many.leftOut.items;
      assert.ok(told >= before - since || many.isBounded, `${since} to ${before}: ${told}`);
    }
  });

  it("reads little more than it shows, however long the conversation is", async () => {
    const read = { rows: 0, calls: 0 };
    const costs: { readonly rows: number; readonly calls: number }[] = [];
    for (const length of [200, 6_400]) {
      const { store } = await ground();
      const { id } = await store.open({ sessionId: "long" });
      await say(store, id, range(-length, 0));
      Object.assign(read, { rows: 0, calls: 0 });
      const told = await recent(
        { store: counting(store, read), clock },
        { reach: everywhere, since: at(-20), before: at(-10), tokenCap: 200 },
      );
      assert.deepEqual(
        texts(told),
        range(-20, -10).map((hours) => `heard at ${hours}`),
      );
      costs.push({ ...read });
    }
    const [short, long] = costs;
    assert.ok(short !== undefined && long !== undefined);
    // Thirty-two times as long: five more halvings at each end, each of which asks three places and reads them.
    assert.ok(long.rows - short.rows <= 60, JSON.stringify(costs));
    assert.ok(long.calls - short.calls <= 30, JSON.stringify(costs));
  });

  it("reports that it reached its counting limit", async () => {
    const { store, tell } = await ground();
    const { id } = await store.open({ sessionId: "long" });
    await say(store, id, range(-2_500, 0));
    const told = await tell({ since: at(-2_600), tokenCap: 100 });
    assert.ok(told.isBounded && texts(told).at(-1) === "heard at -1");
    assert.equal(told.leftOut.items + told.items.length, 2_000);
  });
});

/** The messages that an item covers. */
async function below(store: Store, { kind, id }: Recent["items"][number]): Promise<readonly MessageId[]> {
  if (kind === "message") return [id];
  const found: MessageId[] = [];
  for (let level: readonly SummaryId[] = [id]; level.length > 0;) {
    const sources = [...(await store.sources(level)).values()];
    found.push(...sources.flatMap(({ messages }) => messages));
    level = sources.flatMap(({ summaries }) => summaries);
  }
  return found;
}

/** Makes of a summary such a row as carrying makes: the text of another, with its times, and no sources. */
function carriedRow(path: string, id: SummaryId, from: SummaryId): void {
  const db = new DatabaseSync(path);
  db.prepare("DELETE FROM summary_messages WHERE summary_id = ?").run(id);
  db.prepare(
    `UPDATE summaries SET carried_from = o.summary_id, depth = o.depth, earliest_at = o.earliest_at,
       latest_at = o.latest_at FROM summaries AS o WHERE o.summary_id = ? AND summaries.summary_id = ?`,
  ).run(from, id);
  db.close();
}

/** Counts what is read of contexts, messages and summaries. */
function counting(store: Store, read: { rows: number; calls: number }): Store {
  return new Proxy(store, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== "function") return method;
      return async (...args: readonly unknown[]): Promise<unknown> => {
        const result: unknown = await Reflect.apply(method, target, args);
        read.calls++;
        if (Array.isArray(result)) read.rows += result.length;
        return result;
      };
    },
  });
}
