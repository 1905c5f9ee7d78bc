/** Contract: appending stores what the host sends once, whole and in order, however often it is sent. */

import assert from "node:assert/strict";
import { describe } from "node:test";
import { messageToStore } from "../../src/core/messages/codec.ts";
import { importTranscript } from "../../src/core/ingest/import-transcript.ts";
import type { SourceLine } from "../../src/core/ingest/import-transcript.ts";
import { tokensMax, type Role } from "../../src/core/model/types.ts";
import type { Appendable } from "../../src/core/model/store.ts";
import type { Timestamp } from "../../src/core/base/time.ts";
import { checkLossless } from "../support/lossless.ts";
import { createRandom } from "../support/random.ts";
import { createHost, toAppendable, turnWithTool, user } from "../support/scripted-host.ts";
import type { ScriptedHost } from "../support/scripted-host.ts";
import {
  at,
  compaction,
  deliver,
  each,
  foldPlaces,
  itOn,
  leafCall,
  numbered,
  onTalk,
  refuses,
  say,
  shownTexts,
  summary,
  unbounded,
} from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";

function livedHost(turns: number): ScriptedHost {
  const host = createHost("h");
  for (let turn = 0; turn < turns; turn++) {
    for (const raw of turnWithTool(`call-${turn}`, `question ${turn}?`, `answer ${turn}`)) host.says(raw);
    if (turn % 3 === 1) host.notes("model_change", { modelId: `m${turn}` });
  }
  return host;
}

export function testAppend(subject: StoreUnderTest): void {
  const it = itOn(subject, onTalk);

  describe("numbers and times that make no sense", () => {
    const senseless = [-5, 0.5, Number.NaN, Infinity, 2 ** 60, 2 ** 53];
    const said = (key: string, more: { tokens?: number; at?: Timestamp } = {}): Appendable => ({
      kind: "message",
      message: { ...messageToStore(user(key), { key, at: at("2026-03-01T00:00:00.000Z") }), ...more },
    });

    it("are refused with the message, and nothing of the call is stored", async ({ store, id }) => {
      for (const tokens of [...senseless, tokensMax + 1]) {
        await assert.rejects(store.append(id, [said("1"), said("2", { tokens })]), {
          code: "invalid",
          message: `the number of tokens of message 2 is ${tokens}, but must be a whole number from 0 to ${tokensMax}`,
        });
      }
      await refuses("invalid", () => store.append(id, [said("1", { at: "yesterday" as Timestamp })]));
      assert.equal((await store.conversation(id))?.totals.messages, 0);
      await store.append(id, [said("1", { tokens: 0 }), said("2", { tokens: tokensMax })]);
      assert.equal((await store.conversations())[0]?.totals.contextTokens, tokensMax);
    });

    it("are refused as limits of what is read; none and Infinity mean all", async ({ store, id }) => {
      await store.append(id, [said("1"), said("2")]);
      for (const limit of senseless.filter((number) => number !== Infinity)) {
        await refuses("invalid", () => store.messages({ conversation: id, limit }));
        await refuses("invalid", () => store.context(id, { limit }));
        await refuses("invalid", () => store.conversations({ limit }));
        await refuses("invalid", () => store.summaries({ conversation: id, limit }));
        await refuses("invalid", () => store.unused(id, limit));
        await refuses("invalid", () => store.compactions(id, limit));
        await refuses("invalid", () => store.journal({ limit }));
      }
      assert.equal((await store.messages({ conversation: id, limit: Infinity })).length, 2);
      assert.equal((await store.context(id, { limit: 1 })).length, 1);
    });

    it("are refused in summaries, drafts, grants, model calls and compactions", async ({ store, id }) => {
      await store.append(id, [said("1", { tokens: tokensMax }), said("2", { tokens: tokensMax })]);
      const run = await store.context(id);
      const leaf = await foldPlaces(store, id, [0, 0], "a leaf");
      const begun = await store.beginCall(leafCall(id), unbounded);
      const call = begun.kind === "granted" ? begun.id : assert.fail();
      const ended = { inputTokens: 1, outputTokens: 1, result: "ok", durationMs: 1 } as const;
      const grant = { conversations: [id], tokenCap: 1, expiresAt: at("2999-01-01T00:00:00.000Z"), parent: null };
      for (const amount of senseless) {
        const draft = summary("a text", { tokens: amount });
        await refuses("invalid", () => store.fold(id, run.slice(1), draft));
        await refuses("invalid", () => store.rewrite({ summary: leaf, revision: 0 }, draft));
        await refuses("invalid", () => store.saveDraft(leaf, "basis", draft));
        await refuses("invalid", () => store.issueGrant({ ...grant, tokenCap: amount }));
        await refuses("invalid", () => store.setPromptBudget(id, amount));
        for (const field of ["inputTokens", "outputTokens", "durationMs"])
          await refuses("invalid", () => store.endCall(call, { ...ended, [field]: amount }));
        for (const field of ["passes", "tokensBefore", "tokensAfter", "durationMs"])
          await refuses("invalid", () => store.recordCompaction(compaction(id, { [field]: amount })));
      }
      await store.endCall(call, ended);
    });
  });

  describe("guarantee 1: every message the host sent is stored once", () => {
    it("each new message is a row, is in the context, and counts in the totals", async ({ store, talk }) => {
      const host = livedHost(3);
      const appended = await deliver(store, talk, host);
      assert.equal(appended.messages.length, 12);
      assert.deepEqual([appended.entries, appended.duplicates, appended.differing], [1, 0, []]);
      const { totals, lastMessageAt } = (await store.conversation(talk.id)) ?? talk;
      assert.equal(totals.messages, 12);
      assert.equal(totals.contextItems, 12);
      assert.equal(totals.contextTokens, totals.messageTokens);
      assert.equal(lastMessageAt, host.entries.at(-1)?.at);
      await checkLossless(store, [{ conversation: talk.id, entries: host.entries }]);
    });

    it("the newest time stays the newest, even when something older arrives later", async ({ store, id }) => {
      for (const [key, time] of [
        ["1", "2026-03-01T00:00:00.000Z"],
        ["2", "2026-01-01T00:00:00.000Z"],
      ] as const) {
        await store.append(id, [{ kind: "message", message: messageToStore(user(key), { key, at: at(time) }) }]);
      }
      assert.equal((await store.conversation(id))?.lastMessageAt, "2026-03-01T00:00:00.000Z");
    });

    it("the next bootstrap brings what a crash prevented us from storing", async ({ store, talk }) => {
      const host = livedHost(4);
      const entries = host.entries.map(toAppendable);
      await store.append(talk.id, entries.slice(0, 6), { hostCursor: "6" });
      // The turn was committed in the host; we died before we received it.
      const cursor = Number((await store.conversation(talk.id))?.hostCursor);
      await store.append(talk.id, entries.slice(cursor), { hostCursor: String(entries.length) });
      await checkLossless(store, [{ conversation: talk.id, entries: host.entries }]);
    });

    it("counts user messages outside our turns once, and nothing else", async ({ store, talk }) => {
      const caughtUp = async (): Promise<number | undefined> => (await store.conversation(talk.id))?.caughtUp;
      const host = livedHost(4);
      const entries = host.entries.map(toAppendable);
      await store.append(talk.id, entries.slice(0, 4), { turnKey: "t1" });
      assert.equal(await caughtUp(), 0);
      for (let times = 0; times < 2; times++) {
        await store.append(talk.id, entries.slice(0, 13), { isCatchingUp: true, hostCursor: "13" });
        assert.equal(await caughtUp(), 2);
      }
      await store.append(talk.id, entries.slice(13));
      assert.equal(await caughtUp(), 2);
    });

    it("an append that fails anywhere leaves nothing behind, including cursor and turn", async ({ store, talk }) => {
      const host = livedHost(1);
      const good = host.entries.map(toAppendable);
      const last = good.at(-1);
      assert.ok(last?.kind === "message");
      const broken = { kind: "message", message: { ...last.message, role: "alien" as Role } } as const;
      await assert.rejects(store.append(talk.id, [...good.slice(0, -1), broken], { hostCursor: "9", turnKey: "t" }));
      assert.deepEqual(await store.messages({ conversation: talk.id }), []);
      assert.deepEqual((await store.conversation(talk.id))?.totals, talk.totals);
      assert.equal((await store.conversation(talk.id))?.hostCursor, null);
      assert.equal((await store.append(talk.id, good, { turnKey: "t" })).turn, "new");
      await checkLossless(store, [{ conversation: talk.id, entries: host.entries }]);
    });

    it("concurrent appends are stored one after the other, each whole", async ({ store, talk }) => {
      const host = livedHost(6);
      const turns = Array.from({ length: 7 }, (_, turn) => host.entries.slice(turn * 4, turn * 4 + 4));
      await Promise.all(turns.map((turn) => store.append(talk.id, turn.map(toAppendable))));
      await checkLossless(store, [{ conversation: talk.id, entries: host.entries }]);
    });
  });

  describe("guarantee 2: replays are harmless", () => {
    it("any prefix, suffix, interleaving or repetition gives the same rows", async ({ store, talk }) => {
      const random = createRandom(2);
      const host = livedHost(5);
      const all = host.entries.map(toAppendable);
      await deliver(store, talk, host);
      const rows = await store.messages({ conversation: talk.id });
      const replays = [
        all.slice(0, 7),
        all.slice(9),
        [...all, ...all],
        random.shuffled(all),
        all.flatMap((item, index) => [item, all[all.length - 1 - index] ?? item]),
        [],
      ];
      for (const replay of replays) {
        const appended = await store.append(talk.id, replay);
        assert.deepEqual(appended, {
          messages: [],
          entries: 0,
          duplicates: replay.length,
          differing: [],
          turn: "unnamed",
        });
      }
      assert.deepEqual(await store.messages({ conversation: talk.id }), rows);
      await checkLossless(store, [{ conversation: talk.id, entries: host.entries }]);
    });

    it("a key that comes twice in one append is stored once", async ({ store, talk }) => {
      const host = livedHost(2);
      const all = host.entries.map(toAppendable);
      const appended = await store.append(
        talk.id,
        all.flatMap((item) => [item, item]),
      );
      assert.equal(appended.duplicates, all.length);
      await checkLossless(store, [{ conversation: talk.id, entries: host.entries }]);
    });

    it("a named turn is stored once, and an append that names it again writes nothing", async (scene) => {
      const { store, talk } = scene;
      const host = livedHost(1);
      const turn = host.entries.map(toAppendable);
      assert.equal((await store.append(talk.id, turn, { turnKey: "turn-1", hostCursor: "4" })).turn, "new");
      const late = createHost("late");
      late.says(user("must not come in under a turn that is stored"));
      const again = await store.append(talk.id, late.entries.map(toAppendable), {
        turnKey: "turn-1",
        hostCursor: "5",
      });
      assert.deepEqual(again, { messages: [], entries: 0, duplicates: 1, differing: [], turn: "duplicate" });
      assert.equal((await store.conversation(talk.id))?.hostCursor, "4");
      await checkLossless(store, [{ conversation: talk.id, entries: host.entries }]);
    });

    it("a key that arrives again with different content is reported, and the stored content stays", async (scene) => {
      const { store, talk, host } = scene;
      host.says(user("as it was"));
      host.notes("custom", { value: 1 });
      await deliver(store, talk, host);
      const bent = createHost("h");
      bent.says(user("as it never was"));
      bent.notes("custom", { value: 2 });
      const appended = await deliver(store, talk, bent);
      assert.deepEqual([appended.duplicates, appended.differing], [2, ["h-1", "h-2"]]);
      await checkLossless(store, [{ conversation: talk.id, entries: host.entries }]);
    });

    it("the same keys in another conversation are other messages", async ({ store }) => {
      const host = livedHost(1);
      const here = await store.open({ sessionId: "a" });
      const there = await store.open({ sessionId: "b" });
      await deliver(store, here, host);
      assert.equal((await deliver(store, there, host)).messages.length, 4);
      await checkLossless(
        store,
        [here, there].map(({ id }) => ({ conversation: id, entries: host.entries })),
      );
    });
  });

  describe("guarantee 3: repeats are kept", () => {
    it("N byte-equal messages with N keys are N rows, tool-call ids reused and all", async ({ store, talk, host }) => {
      for (let time = 0; time < 25; time++) {
        host.says(user("ping"));
        host.says({
          role: "assistant",
          content: [{ type: "toolCall", id: "call_0", name: "status", arguments: {} }],
        });
        host.says({
          role: "toolResult",
          toolCallId: "call_0",
          toolName: "status",
          content: '{"status":"ok"}',
          isError: false,
        });
      }
      assert.equal((await deliver(store, talk, host)).messages.length, 75);
      assert.equal((await store.messages({ conversation: talk.id, role: "user" })).length, 25);
      await checkLossless(store, [{ conversation: talk.id, entries: host.entries }]);
    });
  });

  describe("guarantee 6: the first bootstrap imports everything", () => {
    const lines = Array.from({ length: 700 }, (_, index) => ({
      id: `line-${index}`,
      role: index % 2 === 0 ? "user" : "assistant",
      content: `said in line ${index}`,
      timestamp: "2026-02-17T07:37:00.000Z",
    }));
    const read = async function* (upto: number): AsyncGenerator<SourceLine> {
      for (const [index, value] of lines.slice(0, upto).entries()) yield { position: index + 1, value };
    };
    const clock = { now: () => at("2026-02-17T07:37:00.000Z") };
    const target = { fallbackSessionId: "imported" };

    it("all of it, not only a recent part, and an interrupted import resumes", async ({ store }) => {
      const broken = async function* (): AsyncGenerator<SourceLine> {
        yield* read(600);
        throw new Error("the disk went away");
      };
      await assert.rejects(importTranscript({ store, clock }, broken(), target), /the disk went away/);
      const report = await importTranscript({ store, clock }, read(700), target);
      assert.equal(report.messages + report.duplicates, 700);
      assert.ok(report.duplicates > 0, "what was stored before the interruption stayed");
      const again = await importTranscript({ store, clock }, read(700), target);
      assert.deepEqual([again.messages, again.duplicates, again.differing], [0, 700, []]);
      const conversation = again.conversation;
      assert.ok(conversation !== null);
      assert.deepEqual(
        (await store.messages({ conversation: conversation.id })).map(({ key, text }) => ({ key, text })),
        lines.map(({ id, content }) => ({ key: id, text: content })),
      );
    });
  });

  describe("appending", () => {
    it("the cursor is stored with the entries it belongs to, and stays when none is given", async ({ store, talk }) => {
      const host = livedHost(1);
      const [first = assert.fail(), ...rest] = host.entries.map(toAppendable);
      await store.append(talk.id, [first], { hostCursor: "one" });
      assert.equal((await store.conversation(talk.id))?.hostCursor, "one");
      await store.append(talk.id, rest);
      assert.equal((await store.conversation(talk.id))?.hostCursor, "one");
      await store.append(talk.id, [], { hostCursor: "five" });
      assert.equal((await store.conversation(talk.id))?.hostCursor, "five");
    });

    it("a file's cursor is stored with its entries, never takes the place of a host's, and gives way to it", async ({
      store,
      talk,
    }) => {
      const [first = assert.fail(), ...rest] = livedHost(1).entries.map(toAppendable);
      const cursors = async () => {
        const stored = await store.conversation(talk.id);
        return [stored?.hostCursor, stored?.fileCursor];
      };
      await store.append(talk.id, [first], { fileCursor: "one" });
      assert.deepEqual(await cursors(), [null, "one"]);
      await store.append(talk.id, rest);
      assert.deepEqual(await cursors(), [null, "one"]);
      await store.append(talk.id, [], { fileCursor: "five" });
      assert.deepEqual(await cursors(), [null, "five"]);
      await store.append(talk.id, [], { hostCursor: "host" });
      assert.deepEqual(await cursors(), ["host", null]);
      await store.append(talk.id, [], { fileCursor: "six" });
      assert.deepEqual(await cursors(), ["host", null]);
    });

    it("lines that are not messages stay outside the context, each after the message it followed", async (scene) => {
      const { store, talk, host } = scene;
      host.notes("session", { cwd: "/" });
      host.says(user("one"));
      host.notes("model_change", { modelId: "m" });
      host.notes("thinking_level_change", { level: "high" });
      await say(store, talk, host, "two");
      assert.deepEqual(await shownTexts(store, talk.id), ["one", "two"]);
      const entries = await store.entries(talk.id, 0, Number.MAX_SAFE_INTEGER);
      assert.deepEqual(
        entries.map(({ key, afterSeq }) => [key, afterSeq]),
        [
          ["h-1", 0],
          ["h-3", 1],
          ["h-4", 1],
        ],
      );
      assert.deepEqual(each(await store.entries(talk.id, 1, 2), "type"), ["model_change", "thinking_level_change"]);
      await checkLossless(store, [{ conversation: talk.id, entries: host.entries }]);
    });

    it("a note is stored and counted, and is not in the context", async ({ store, talk }) => {
      const host = livedHost(1);
      const [first, ...rest] = host.entries.map(toAppendable);
      assert.ok(first?.kind === "message");
      await store.append(talk.id, [{ kind: "message", message: { ...first.message, aside: "note" } }, ...rest]);
      assert.equal((await store.context(talk.id)).length, 3);
      const [note] = await store.messages({ conversation: talk.id });
      assert.equal(note?.aside, "note");
      assert.equal((await store.conversation(talk.id))?.totals.messages, 4);
    });

    it("a window of the context is selected by position, and by count from either end", async ({
      store,
      talk,
      host,
    }) => {
      await say(store, talk, host, ...numbered(6, (index) => `m${index}`));
      const all = await store.context(talk.id);
      assert.deepEqual(await store.context(talk.id, { limit: 2 }), all.slice(0, 2));
      assert.deepEqual(await store.context(talk.id, { limit: 2, keep: "newest" }), all.slice(-2));
      const [, second, , , fifth] = all;
      assert.ok(second !== undefined && fifth !== undefined);
      const inner = { after: second.ordinal, before: fifth.ordinal };
      assert.deepEqual(await store.context(talk.id, inner), all.slice(2, 4));
      assert.deepEqual(await store.context(talk.id, { ...inner, limit: 1, keep: "newest" }), all.slice(3, 4));
    });

    it("a window of messages, or of summaries, works the same way", async ({ store, id, host }) => {
      for (let index = 0; index < 12; index++) host.says(user(`m${index}`));
      await store.append(id, host.entries.map(toAppendable));
      for (const place of [8, 4, 0]) await foldPlaces(store, id, [place, place + 1], `leaf ${place}`);
      const all = await store.context(id);
      for (const kind of ["message", "summary"] as const) {
        const some = all.filter((item) => item.kind === kind);
        assert.ok(some.length >= 3);
        assert.deepEqual(await store.context(id, { kind }), some);
        assert.deepEqual(await store.context(id, { kind, keep: "newest" }), some);
        assert.deepEqual(await store.context(id, { kind, limit: 2 }), some.slice(0, 2));
        assert.deepEqual(await store.context(id, { kind, limit: 2, keep: "newest" }), some.slice(-2));
        const inner = { kind, after: some[0]?.ordinal ?? 0, before: some.at(-1)?.ordinal ?? 0 } as const;
        assert.deepEqual(await store.context(id, inner), some.slice(1, -1));
        assert.deepEqual(await store.context(id, { ...inner, limit: 1, keep: "newest" }), some.slice(-2, -1));
      }
    });

    it("messages are selected by position, time, role and count, or by id or key in the order given", async (scene) => {
      const { store, talk } = scene;
      const host = livedHost(3);
      await deliver(store, talk, host);
      const all = await store.messages({ conversation: talk.id });
      const { id } = talk;
      assert.deepEqual(
        each(all, "seq"),
        all.map((_, index) => index + 1),
      );
      assert.deepEqual(await store.messages({ conversation: id, afterSeq: 3, beforeSeq: 6 }), all.slice(3, 5));
      assert.deepEqual(await store.messages({ conversation: id, limit: 3, keep: "newest" }), all.slice(-3));
      assert.deepEqual(
        await store.messages({ conversation: id, role: "tool" }),
        all.filter(({ role }) => role === "tool"),
      );
      const [, second, third, fourth] = all;
      assert.ok(second !== undefined && third !== undefined && fourth !== undefined);
      assert.deepEqual(await store.messages({ conversation: id, since: second.at, before: fourth.at }), [
        second,
        third,
      ]);
      const asked = [fourth.id, 999_999 as typeof fourth.id, second.id];
      assert.deepEqual(await store.messages({ ids: asked }), [fourth, second]);
      const keys = [fourth.key, "nobody's", second.key];
      assert.deepEqual(await store.messages({ conversation: id, keys }), [fourth, second]);
      const other = await store.open({ sessionId: "other" });
      assert.deepEqual(await store.messages({ conversation: other.id, keys }), []);
    });
  });
}
