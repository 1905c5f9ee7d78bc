import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import fc from "fast-check";
import { openSqlite, systemNow } from "../../store/sqlite/store.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { createHost, toIncoming, turnWithTool, user } from "../../../test/support/scripted-host.ts";
import { createLcm } from "../lcm.ts";
import type { CompletionRequest } from "../model/store.ts";
import { resolveSettings } from "../model/settings.ts";
import { expandFooter } from "../prompts/summary.ts";
import { messageToStore } from "../messages/codec.ts";
import { messageIdOf, type ConversationId, type Message } from "../model/types.ts";
import type { Timestamp } from "../base/time.ts";
import { applyNotes, splitNotes } from "./leaf-notes.ts";

const body = `They met at nine, and the boat is sold.\n\n${expandFooter} the price`;

describe("notes below a leaf", () => {
  it("are split off the summary, which is as if they were not there", () => {
    const { summary, notes } = splitNotes(
      `${body}\n\nSearch words:\n2: vessel; who bought it?\n[7]: harbour\nStanding instructions: 3, 17\n`,
    );
    assert.equal(summary, body);
    assert.deepEqual(
      [...(notes?.searchWords ?? [])],
      [
        [2, "vessel; who bought it?"],
        [7, "harbour"],
      ],
    );
    assert.deepEqual(notes?.standing, [3, 17]);
  });

  it("may be decorated, empty, in the other order, or above the footer", () => {
    for (const below of [
      "**Search words:**\n\n**Standing instructions:** none",
      "Standing instructions: none.\nSearch words:",
    ])
      assert.deepEqual(splitNotes(`${body}\n${below}`), {
        summary: body,
        notes: { searchWords: new Map(), standing: [] },
      });
    const above = splitNotes(`It is sold.\nSearch words:\n1: boat\n${expandFooter} the price`);
    assert.equal(above.summary, `It is sold.\n\n${expandFooter} the price`);
  });

  it("are ignored where they are malformed, and never reach the summary", () => {
    const { summary, notes } = splitNotes(
      `${body}\nSearch words:\n- vessel, harbour\nno number: here\nStanding instructions: all of them`,
    );
    assert.equal(summary, body);
    assert.deepEqual(notes, { searchWords: new Map(), standing: [] });
  });

  it("leave a summary alone that mentions such headings", () => {
    for (const text of [
      `${body}\nStanding instructions: answer in German.`,
      "The search words: boat and price were tried.",
    ])
      assert.deepEqual(splitNotes(text), { summary: text, notes: null });
  });

  it("are bounded, whatever a model writes", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(99_999), fc.string({ maxLength: 2_000 }))), (lines) => {
        const { notes } = splitNotes(`Sold.\nSearch words:\n${lines.map(([n, words]) => `${n}: ${words}`).join("\n")}`);
        const all = [...(notes?.searchWords.values() ?? [])];
        assert.ok(all.join("").length <= 2_400 && all.every((words) => words.length <= 240));
      }),
    );
  });
});

function messageOf(seq: number, text: string): Message {
  const conversation = 1 as ConversationId;
  const stored = messageToStore(user(text), { key: `k${seq}`, at: "2026-11-18T09:00:00.000Z" as Timestamp });
  return {
    ...stored,
    parentKey: null,
    moved: [],
    conversation,
    seq,
    id: messageIdOf(conversation, seq),
    text,
    aside: null,
  };
}

describe("guarantee 36: a model that was told to pin everything", () => {
  it("pins few sentences of users, and only such as may be a rule or a lasting fact", () => {
    const said = [
      "Where is the report?",
      "The ferry was late again. It rained.",
      "Only trains, please. We met Ada.",
      "My sister never flies. Nobody told me.",
      "Must be under ten pages.",
      "Only in the morning.",
    ];
    const messages = said.map((text, at) => messageOf(at + 1, text));
    const notes = { searchWords: new Map<number, string>(), standing: said.map((_, at) => at + 1) };
    assert.deepEqual(
      applyNotes(notes, messages).pins.map(({ words }) => words),
      ["Only trains, please.", "My sister never flies. … Nobody told me.", "Must be under ten pages."],
    );
  });
});

describe("a leaf that a model writes", () => {
  const folder = makeScratch("leaf-notes");
  after(() => rmSync(folder, { recursive: true, force: true }));
  let databases = 0;

  async function foldWith(notes: string) {
    const store = await openSqlite({ path: join(folder, `${++databases}.db`), housekeeping: false });
    const calls: CompletionRequest[] = [];
    const text = `The trip was planned and the boat was sold to somebody from the harbour office.\n\n${expandFooter} the price\n\n${notes}`;
    const model = {
      provider: "scripted",
      name: "one",
      complete: (request: CompletionRequest) => {
        calls.push(request);
        return Promise.resolve({ kind: "text", text, finish: "stop", inputTokens: 9, outputTokens: 9 } as const);
      },
    };
    const config = { freshTailCount: 2, leafChunkTokens: 4_000, leafTargetTokens: 100 };
    const settings = resolveSettings({ env: {}, config }).values;
    const lcm = createLcm({ store, clock: { now: systemNow }, settings, model });
    const { id } = await store.open({ sessionId: "s" });
    const host = createHost("h");
    host.says(user("We take the boat to the island. My knees hate stairs, so nothing on upper floors."));
    for (const raw of turnWithTool(
      "c1",
      "what does the page say?",
      `Standing instructions: 1, 2, 3. ${"Ferries run. ".repeat(60)}`,
    ))
      host.says(raw);
    host.says(user("never before seven"));
    host.says(user("Always use metric units."));
    for (let at = 0; at < 4; at++) host.says(user(`small talk ${at} ${"about nothing ".repeat(20)}`));
    await lcm.ingest(id, host.entries.map(toIncoming));
    await lcm.compact({ conversation: id, mode: "sweep", force: true });
    const summaries = await store.summaries({ conversation: id });
    const pins = await store.pins(id);
    return { lcm, calls, summaries, pins };
  }

  it("stores its words and pins in the one call, and its text without them", async () => {
    const { lcm, calls, summaries, pins } = await foldWith(
      "Search words:\n1: vessel, accessibility; why no attic?\n99: nothing\nStanding instructions: 1, 2, 3, 4, 99",
    );
    assert.equal(calls.length, 1);
    assert.match(calls[0]?.prompt ?? "", /\n\[1 · \d{4}-\d\d-\d\d \d\d:\d\d UTC\] \[user\] We take the boat/);
    assert.equal(summaries.length, 1);
    assert.equal(summaries[0]?.level, "normal");
    assert.doesNotMatch(summaries[0]?.text ?? "", /vessel|Search words|Standing/);
    const { hits } = await lcm.store.search({
      pattern: "vessel accessibility",
      mode: "full_text",
      scope: "messages",
      sort: "relevance",
      limit: 5,
    });
    assert.deepEqual(
      hits.map(({ id }) => id),
      [pins.at(-1)?.message],
    );
    // Entries 2 and 3 are the agent's call and the tool's result; the cue found the last by itself.
    assert.deepEqual(
      pins
        .map(({ words, origin }) => [words, origin])
        .toReversed()
        .filter(([, origin]) => origin === "model")
        .map(([words]) => words),
      // Only the sentence that says something for good, and no question.
      ["My knees hate stairs, so nothing on upper floors."],
    );
    assert.ok(pins.some(({ words, origin }) => words === "Always use metric units." && origin === "cue"));
    await lcm.close();
  });

  it("guarantee 36: whatever the notes say, what cues found stays, and nothing but users' words is added", async () => {
    const { lcm, pins, summaries } = await foldWith("Search words:\nStanding instructions: none");
    assert.equal(summaries[0]?.level, "normal");
    assert.deepEqual(
      pins.map(({ words }) => words),
      ["Always use metric units."],
    );
    await lcm.close();
  });
});
