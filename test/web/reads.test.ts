/** Every read of the explorer, on a small database whose rows are known. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { messageIdOf } from "../../src/core/model/types.ts";
import type { MessageId } from "../../src/core/model/types.ts";
import { makeDeepConversation, type DeepConversation } from "../support/deep-conversation.ts";
import { makeRecordedTalk, type RecordedTalk } from "../support/recorded-prompts.ts";
import { makeScratch } from "../support/scratch.ts";
import { withExplorer, type Explorer } from "./ground.ts";

const folder = makeScratch("web-reads");
const path = join(folder, "lcm.db");
const talkPath = join(folder, "talk.db");
let made: DeepConversation;
let talk: RecordedTalk;
before(async () => {
  made = await makeDeepConversation(path);
  talk = await makeRecordedTalk(talkPath);
});

const on = (work: (explorer: Explorer) => Promise<void>) => async () => await withExplorer(path, {}, work);
const onTalk = (work: (explorer: Explorer) => Promise<void>) => async () => await withExplorer(talkPath, {}, work);

describe("the list of conversations", () => {
  it(
    "has names, families, sizes and how full each context is; the newest activity first",
    on(async ({ read }) => {
      const { rows, count } = await read("conversations", {});
      assert.equal(count, 3);
      const listed = rows.map(({ conversation, name, segments }) => [conversation.id, name, segments]);
      assert.deepEqual(
        listed.toSorted((a, b) => Number(a[0]) - Number(b[0])),
        [
          [made.deep, "The ferry's new booking desk", 2],
          [made.older, "agent:main:cli", 1],
          [made.young, "agent:main:telegram:ferry", 2],
        ].toSorted((a, b) => Number(a[0]) - Number(b[0])),
      );
      const times = rows.map(({ conversation }) => conversation.lastMessageAt ?? "");
      assert.deepEqual(times, times.toSorted().reverse());
      const deep = rows.find(({ conversation }) => conversation.id === made.deep);
      assert.equal(deep?.conversation.totals.messages, 98);
      assert.ok((deep?.promptTokens ?? 0) > 0 && deep?.budget === 128_000 && deep.thresholdTokens < deep.budget);
      assert.equal(deep?.family, rows.find(({ conversation }) => conversation.id === made.young)?.family);
    }),
  );

  it(
    "is filtered as one types, by family, and in pages",
    on(async ({ read }) => {
      const found = async (query: object) =>
        (await read("conversations", query)).rows.map(({ conversation }) => conversation.id);
      assert.deepEqual(await found({ find: "BOOKING ferry" }), [made.deep]);
      assert.deepEqual(await found({ find: "booking nothing" }), []);
      assert.deepEqual(new Set(await found({ familyOf: made.young })), new Set([made.deep, made.young]));
      const page = await read("conversations", { from: 1, limit: 1 });
      assert.deepEqual([page.rows.length, page.count], [1, 3]);
    }),
  );

  it(
    "has an activity whose ends are the first and last message",
    on(async ({ read, refusedRead }) => {
      const [first, second] = await read("activity", { conversations: [made.deep, made.young], marks: 5 });
      assert.equal(first?.pace.length, 5);
      assert.deepEqual([first?.pace[0]?.[0], first?.pace.at(-1)?.[0]], [1, 98]);
      assert.equal(second?.conversation, made.young);
      const times = first?.pace.map(([, ms]) => ms) ?? [];
      assert.deepEqual(
        times,
        times.toSorted((a, b) => a - b),
      );
      // However few marks there are, what came since a time is counted exactly.
      const all = await read("messages", { conversation: made.deep });
      for (const seq of [1, 2, 37, 50, 97, 98]) {
        const since = all[seq - 1]?.at;
        const later = all.filter(({ at }) => since !== undefined && at >= since).length;
        assert.ok(since !== undefined);
        const [recent] = await read("activity", { conversations: [made.deep], marks: 5, since });
        assert.equal(recent?.recent, later, String(seq));
        const [next] = await read("messages", { conversation: made.deep, since, limit: 1 });
        assert.equal(next?.at, since);
      }
      const many = Array.from({ length: 101 }, (_, at) => at + 1).join();
      assert.equal((await refusedRead("activity", { conversations: many })).code, "invalid");
    }),
  );
});

describe("reading", () => {
  it(
    "a message has its blocks as they came, what represents it, and its neighbours",
    on(async ({ read }) => {
      const id = messageIdOf(made.deep, 2);
      const message = await read("message", { id });
      assert.deepEqual([message.seq, message.role, message.before, message.after], [2, "assistant", id - 1, id + 1]);
      const [call] = message.blocks.filter((block) => block.kind === "call");
      assert.ok(call !== undefined && call.name !== "" && typeof call.input === "object");
      const result = await read("message", { id: (id + 1) as MessageId });
      const [answered] = result.blocks;
      assert.ok(answered?.kind === "result" && answered.id === call.id && answered.text !== "");
      const depths = message.coveredBy.map(({ depth }) => depth);
      assert.deepEqual([depths[0], depths.length > 1], [0, true]);
      assert.equal((await read("message", { id: messageIdOf(made.deep, 1) })).before, null);
      assert.equal((await read("message", { id: messageIdOf(made.deep, 98) })).after, null);
    }),
  );

  it(
    "a summary is read beside what it was made from, down to the messages",
    on(async ({ read }) => {
      const { summaries } = await read("timeline", { conversation: made.deep });
      const top = summaries.toSorted((a, b) => b.depth - a.depth)[0];
      assert.ok(top !== undefined && top.depth === 3);
      const summary = await read("summary", { id: top.id });
      assert.equal(summary.sources.summaries, 2);
      assert.deepEqual(summary.range, { from: messageIdOf(made.deep, top.from), to: messageIdOf(made.deep, top.to) });
      let [id, depth] = [top.id, 3];
      for (;;) {
        const { sources, next } = await read("sources", { summary: id });
        assert.equal(next, null);
        const [first] = sources;
        if (first?.kind !== "summary") {
          assert.equal(first?.kind, "message");
          assert.equal(first.message.seq, top.from);
          break;
        }
        assert.deepEqual([first.summary.depth, first.text !== ""], [depth - 1, true]);
        [id, depth] = [first.summary.id, depth - 1];
      }
      assert.equal(depth, 0);
    }),
  );

  it(
    "sources come in pages",
    on(async ({ read }) => {
      const leaf = made.truncated;
      const all = (await read("sources", { summary: leaf })).sources.length;
      const first = await read("sources", { summary: leaf, limit: 3 });
      assert.deepEqual([first.sources.length, first.next], [3, 3]);
      const rest = await read("sources", { summary: leaf, from: 3, limit: 3 });
      assert.deepEqual([rest.sources.length, rest.next], [all - 3, null]);
    }),
  );

  it(
    "messages are listed in both directions",
    on(async ({ read }) => {
      const seqs = async (query: object) =>
        (await read("messages", { conversation: made.deep, ...query })).map(({ seq }) => seq);
      assert.deepEqual(await seqs({ from: 5, limit: 3 }), [5, 6, 7]);
      assert.deepEqual(await seqs({ to: 9, limit: 2 }), [8, 9]);
      assert.deepEqual(await seqs({ from: 97 }), [97, 98]);
    }),
  );

  it(
    "a file is read by lines, and leads to its message",
    on(async ({ read, refusedRead }) => {
      const { file, text, message, picture } = await read("file", { id: made.file });
      assert.equal(file.id, made.file);
      assert.ok(message !== null && picture === null && text !== null && text.text.length > 100);
      const { files, blocks } = await read("message", { id: message });
      assert.deepEqual(
        files.map(({ id }) => id),
        [made.file],
      );
      assert.ok(blocks.some((block) => block.kind === "file" && block.file === made.file));
      const later = await read("file", { id: made.file, fromLine: 2 });
      assert.equal(later.text?.text, text.text.slice(text.text.indexOf("\n") + 1));
      assert.equal((await refusedRead("file", { id: "file_0000000000000000" })).status, 404);
    }),
  );

  it(
    "every kind of id is found, and what is not there is told",
    on(async ({ read, refusedRead }) => {
      const kinds = [
        ["msg_1-42", "message"],
        [made.truncated, "summary"],
        [made.file, "file"],
        [`${made.young}`, "conversation"],
      ] as const;
      for (const [id, kind] of kinds) assert.equal((await read("find", { id })).kind, kind, id);
      for (const id of ["msg_1-4200", "sum_ffffffffffffffff", "99", "1#7", "words"])
        assert.deepEqual([(await refusedRead("find", { id })).status], [404], id);
      for (const [name, query] of [
        ["message", { id: 1 }],
        ["summary", { id: "sum_ffffffffffffffff" }],
        ["timeline", { conversation: 99 }],
        ["change", { change: 5 }],
        ["job", { id: "none" }],
      ] as const)
        assert.deepEqual([(await refusedRead(name, query)).status], [404], name);
    }),
  );

  it(
    "a wrong value is refused with its name",
    on(async ({ refusedRead }) => {
      for (const [name, query, words] of [
        ["timeline", {}, /conversation is missing/],
        ["timeline", { conversation: "x" }, /conversation must be a whole number/],
        ["timeline", { conversation: 1, cells: 2_001 }, /cells must be/],
        ["summary", { id: "sum_1" }, /id must be an id/],
        ["search", { pattern: "x", roles: "user,king" }, /roles must be system or user/],
        ["search", { pattern: "x", since: "yesterday" }, /since must be a time/],
        ["conversations", { hidden: "perhaps" }, /hidden must be true or false/],
      ] as const) {
        const { status, code, message } = await refusedRead(name, query);
        assert.deepEqual([status, code], [400, "invalid"]);
        assert.match(message, words);
      }
    }),
  );
});

describe("what the model saw", () => {
  it(
    "prompts are numbered, and each is read item by item",
    onTalk(async ({ read }) => {
      const { conversation } = talk;
      assert.deepEqual(await read("prompts", { conversation }), { first: 1, last: 20 });
      const prompt = await read("prompt", { conversation, number: 12 });
      assert.equal(prompt.isExact, true);
      assert.deepEqual([prompt.record?.number, prompt.items[0]?.origin.kind], [12, "summary"]);
      const tokens = prompt.items.reduce((sum, { origin }) => sum + origin.tokens, 0);
      assert.equal(tokens, prompt.report.tokens);
      const item = await read("promptItem", { conversation, number: 12, item: prompt.items.length - 1 });
      assert.deepEqual(item, {
        role: "user",
        blocks: [{ kind: "text", text: "How deep is pile 12, and who measured it?" }],
      });
      assert.ok((prompt.changes?.changes ?? []).some(({ kind }) => kind === "arrived"));
    }),
  );

  it(
    "the prompt behind an answer, of a turn, and the newest are found",
    onTalk(async ({ read, refusedRead }) => {
      const { conversation } = talk;
      const numberOf = async (query: Parameters<typeof read<"prompt">>[1]) =>
        (await read("prompt", query)).record?.number;
      assert.equal(await numberOf({ message: messageIdOf(conversation, 24) }), 12);
      assert.equal(await numberOf({ conversation, turn: "turn-7" }), 7);
      assert.equal(await numberOf({ conversation }), 20);
      assert.equal((await read("message", { id: messageIdOf(conversation, 24) })).prompt, 12);
      assert.equal((await refusedRead("prompt", { conversation, number: 99 })).status, 404);
      assert.equal((await refusedRead("promptItem", { conversation, number: 12, item: 999 })).status, 404);
    }),
  );

  it(
    "a prompt is compared with the one before, and it is told when something left the view",
    onTalk(async ({ read }) => {
      const { conversation, folds } = talk;
      const { changes, sharedBytes } = (await read("prompt", { conversation, number: 9 })).changes ?? assert.fail();
      assert.ok(changes.some(({ kind, of }) => kind === "folded" && of === folds[0]));
      assert.ok(sharedBytes >= 0);
      const { spans, words } = await read("inView", { id: "msg_1-3" });
      assert.deepEqual(
        spans.map(({ view }) => view),
        ["whole", "summary"],
      );
      assert.match(words, /covered by/);
    }),
  );

  it(
    "the prompt that would be sent now is read with any budget",
    onTalk(async ({ read }) => {
      const { conversation } = talk;
      const now = await read("promptNow", { conversation });
      const small = await read("promptNow", { conversation, budget: 200 });
      assert.deepEqual([now.record, now.report.budget, small.report.budget], [null, 128_000, 200]);
      assert.ok(small.items.length < now.items.length);
      assert.match(small.notes.join(), /did not fit the budget/);
    }),
  );

  it(
    "costs come with what is needed for plots",
    onTalk(async ({ read }) => {
      const { stats, pace, compactions, calls } = await read("stats", { conversation: talk.conversation });
      assert.equal(stats.prompts.length, 20);
      assert.deepEqual([pace[0]?.[0], pace.at(-1)?.[0]], [1, 40]);
      assert.deepEqual([compactions, calls], [[], []]);
    }),
  );
});

describe("search", () => {
  it(
    "finds words with their place on the timeline, filtered by role, time and conversation",
    on(async ({ read }) => {
      const { hits } = await read("search", { pattern: "desk tomorrow", scope: "messages" });
      const [first] = hits;
      assert.ok(first?.hit.kind === "message");
      assert.equal(first.where, "The ferry's new booking desk");
      assert.deepEqual(first.place, { from: first.hit.seq, to: first.hit.seq });
      assert.deepEqual(
        first.matches.map(([from, to]) => first.snippet.slice(from, to).toLowerCase()).includes("desk"),
        true,
      );
      const users = await read("search", { pattern: "desk", scope: "messages", roles: ["user"] });
      assert.ok(users.hits.every(({ hit }) => hit.kind === "message" && hit.role === "user"));
      const other = await read("search", { pattern: "desk", conversation: made.older });
      assert.ok(other.hits.every(({ hit }) => hit.conversation === made.older));
      const family = await read("search", { pattern: "ferry dogs", conversation: made.young, family: true });
      assert.deepEqual(new Set(family.hits.map(({ hit }) => hit.conversation)), new Set([made.deep, made.young]));
      const summaries = await read("search", { pattern: "Decided", scope: "summaries" });
      assert.ok(
        summaries.hits.length > 0 && summaries.hits.every(({ place }) => place !== null && place.from <= place.to),
      );
    }),
  );

  it(
    "says why a result is incomplete, and what is wrong with a pattern",
    on(async ({ read, refusedRead }) => {
      const { notes, caveats } = await read("search", { pattern: "the", limit: 1 });
      assert.ok(caveats.some(({ kind }) => kind === "limit") && notes.length === caveats.length);
      const wrong = await refusedRead("search", { pattern: "(", mode: "regex" });
      assert.deepEqual([wrong.status, wrong.code], [400, "invalid"]);
    }),
  );
});

describe("health and history", () => {
  it(
    "what is wrong is grouped, with what helps and where it is",
    on(async ({ write, ended }) => {
      const job = await ended(await write("health", { conversation: made.deep }));
      assert.ok(job.result?.kind === "health");
      const { health } = job.result;
      assert.deepEqual([health.count > 0, health.repairable], [true, [{ conversation: made.deep, count: 1 }]]);
      assert.equal(health.names[made.deep], "The ferry's new booking desk");
      const [group] = health.groups.filter(({ code }) => code === "summary_below_normal");
      const subject = group?.findings[0]?.subject ?? "";
      assert.equal(subject, made.truncated);
      assert.ok((health.places[subject]?.to ?? 0) > (health.places[subject]?.from ?? 0));
      const all = await ended(await write("health", {}));
      assert.ok(all.result?.kind === "health" && all.result.health.checked.conversations === 3);
    }),
  );

  it(
    "the status counts what is stored, and nothing was changed yet",
    on(async ({ read }) => {
      const { store } = await read("status", {});
      assert.deepEqual([store.conversations, store.messages], [3, 112]);
      assert.deepEqual(await read("history", {}), { rows: [], isMore: false });
    }),
  );
});
