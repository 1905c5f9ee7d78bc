/**
 * A conversation is independent of its neighbours. The test runs the same life twice: alone in a database, and beside
 * others with the same keys and texts. The results are equal, and no row of the others has changed.
 */

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { messageToStore } from "../../core/messages/codec.ts";
import type { ConversationId, Message, NewEntry, SummaryId } from "../../core/model/types.ts";
import type { Appendable, Store } from "../../core/model/store.ts";
import { compaction, foldPlaces, shownTexts } from "../../../test/store-contract/ground.ts";
import { dissolve, rewrite, takeBack, transplant } from "../../../test/store-contract/undo-scene.ts";
import { assertSameRows, dumpOf } from "../../../test/support/dump.ts";
import type { Dump } from "../../../test/support/dump.ts";
import { checkSound } from "../../../test/support/lossless.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { user } from "../../../test/support/scripted-host.ts";
import { openSqlite } from "../sqlite/store.ts";
import type { Timestamp } from "../../core/base/time.ts";

/** Each key has its time. */
const timeOf = (key: string, day: number): Timestamp =>
  new Date(Date.UTC(2026, 1, day, 7, 37, key.charCodeAt(0))).toISOString() as Timestamp;

const say = (key: string, parentKey: string | null, day = 17): Appendable => ({
  kind: "message",
  message: messageToStore(user(`${key} is what was said at some length`), { key, parentKey, at: timeOf(key, day) }),
});
const note = (key: string, parentKey: string | null): NewEntry => ({
  key,
  parentKey,
  at: timeOf(key, 17),
  type: "note",
  raw: JSON.stringify({ key, parentKey, text: key === "E" ? secret : "" }),
});
/** Said in every place where something can be said. */
const secret = "s is what was said at some length";

const noted = (key: string, parentKey: string | null): Appendable => ({ kind: "entry", entry: note(key, parentKey) });

/** `a b c` continue each other, from a parent on. */
const line = (parentKey: string | null, keys: string, day?: number): readonly Appendable[] =>
  keys.split(" ").map((key, place, all) => say(key, place === 0 ? parentKey : (all[place - 1] ?? null), day));

interface Life {
  readonly store: Store;
  readonly id: ConversationId;
  readonly name: string;
}

const summariesShown = async ({ store, id }: Life): Promise<readonly SummaryId[]> =>
  (await store.context(id)).flatMap((item) => (item.kind === "summary" ? item.id : []));

const hears =
  (...entries: readonly Appendable[]) =>
  async ({ store, id }: Life): Promise<unknown> => {
    const { messages, ...more } = await store.append(id, entries);
    return { ...more, messages: messages.length };
  };

const folds =
  (from: number, to: number, text: string) =>
  async ({ store, id }: Life): Promise<void> =>
    void (await foldPlaces(store, id, [from, to], text));

const first = [...line(null, "a b c d"), noted("e", "d"), ...line("e", "f g")];

/** What happens to it, in this order. */
const steps: readonly ((life: Life) => Promise<unknown>)[] = [
  async ({ store, name }) => {
    await store.open({ sessionId: `${name}-again`, sessionKey: `agent:main:${name}` });
  },
  async ({ store, id }) => (await store.append(id, first, { turnKey: "first", hostCursor: "7" })).turn,
  async ({ store, id }) => (await store.append(id, first, { turnKey: "first" })).turn,
  hears(...first),
  // Back; to the branch that was left; to a line that is no message; and over it.
  hears(...line("b", "h i")),
  hears(...line("g", "j")),
  hears(...line("e", "k")),
  hears(...line("j", "l")),
  // A message before its parent, then that.
  hears(...line("n", "o")),
  hears(...line("l", "n")),
  // The root last.
  hears(...line("q", "r")),
  hears(...line(null, "x")),
  hears(...line("x", "y")),
  hears(...line("y", "q")),
  // A line before its parent.
  hears(noted("E", "D"), ...line("E", "F")),
  hears(...line("r", "D")),
  // Another beginning, left and returned to; and a parent that never comes.
  hears(...line(null, "G H")),
  hears(...line("r", "I")),
  hears(...line("H", "J")),
  hears(...line("never", "w")),
  folds(0, 1, "leaf one"),
  folds(1, 2, "leaf two"),
  folds(2, 3, "leaf three"),
  folds(0, 1, "condensed"),
  // A late message belongs below a summary; then the host rewinds to a message that is folded.
  hears(...line("b-", "z")),
  hears(...line("b", "b-")),
  hears(...line("c", "s t u v")),
  folds(1, 2, "leaf four"),
  folds(2, 3, `leaf five: ${secret}`),
  async (life) => {
    const [leaf = assert.fail("a leaf is shown")] = await summariesShown(life);
    const rewritten = await rewrite(life.store, leaf, `leaf anew: ${secret}`);
    const dissolved = await dissolve(life.store, life.id, leaf);
    await takeBack(life.store, dissolved);
    await takeBack(life.store, rewritten);
  },
  async ({ store, id }) => {
    const file = { conversation: id, name: "notes", mimeType: "text/plain", content: "u in a file" } as const;
    await store.saveFile({ ...file, encoding: "utf8", exploration: null });
    await store.recordCompaction(compaction(id, { message: secret }));
    await store.setTitle(id, secret);
  },
  async ({ store, id, name }) => {
    for (const place of ["copy", "other"]) {
      const target = await store.open({ sessionId: `${name}-${place}`, sessionKey: `agent:${place}:${name}` });
      await store.append(target.id, line(null, "a b", 18));
      const change = await transplant(store, id, target.id);
      if (place === "other") await takeBack(store, change);
    }
  },
  async (life) => {
    const newest = (await summariesShown(life)).at(-1) ?? assert.fail("a leaf is shown");
    await dissolve(life.store, life.id, newest, true);
  },
  async ({ store, id }) => {
    const plan = await store.planForget(id, { kind: "secret", text: secret });
    assert.equal((await store.forget(id, plan)).kind, "written");
    return [plan.messages.length, plan.summaries.length, plan.entries];
  },
  async ({ store, name }) => {
    const session = { sessionId: `${name}-2`, sessionKey: `agent:main:${name}` };
    const begins = note("begin", null);
    const segment = await store.openSegment(session, { carryDepth: 0, hostCursor: "0", begins });
    assert.equal((await store.openSegment(session, { begins })).id, segment.id);
    await store.append(segment.id, line("begin", "a b"));
  },
  async ({ store, name }) => {
    await store.open({ sessionId: `${name}-nameless` });
    await store.open({ sessionId: `${name}-nameless`, sessionKey: `agent:named:${name}` });
  },
  async ({ store, id, name }) => {
    await store.setTitle(id, "a title");
    await store.setHidden(id, true);
    await store.setSession(id, `${name}-3`);
    await store.setPromptBudget(id, 5_000);
  },
];

// ── What is reported ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** Everything the store reports about the conversation and its segments, without numbers that span the database. */
async function report(store: Store, name: string): Promise<unknown> {
  const named = (await store.conversations({ includeHidden: true })).filter(({ sessionId }) =>
    sessionId.startsWith(name),
  );
  return await Promise.all(
    named
      .toSorted((a, b) => a.id - b.id)
      .map(async ({ id, forgets: _forgets, ...facts }) => ({
        facts,
        context: await shownTexts(store, id),
        messages: (await store.messages({ conversation: id })).map(idless),
        newest: (await store.messages({ conversation: id, limit: 3, keep: "newest" })).map(idless),
        byKey: (await store.messages({ conversation: id, keys: ["c", "a", "D"] })).map(idless),
        summaries: (await store.summaries({ conversation: id })).map(({ text, depth, tokens }) => [
          depth,
          text,
          tokens,
        ]),
        unused: (await store.summaries({ ids: await store.unused(id, 100) })).map(({ text }) => text),
        entries: await store.entries(id, 0, Number.MAX_SAFE_INTEGER),
        files: (await store.files(id)).length,
        compactions: (await store.compactions(id, 100)).length,
      })),
  );
}

const idless = ({ key, parentKey, text, seq, aside }: Message): unknown =>
  // The key of a copy names the original.
  ({ key: key.replace(/^copy:.*/, "copy"), parentKey, text, seq, aside });

/** The rows that say of themselves whose they are. That something was forgotten somewhere concerns all. */
const rowsOf = (path: string, ids: readonly ConversationId[]): Dump =>
  Object.fromEntries(
    Object.entries(dumpOf(path)).map(([table, rows]) => [
      table,
      rows
        .filter((row) => ids.some((id) => row.includes(`"conversation_id":${id},`)))
        .map((row) => row.replace(/"forgets":\d+/, "")),
    ]),
  );

/** By key, which messages count as late: it is seen in the rows only. */
const lateIn = (path: string, id: ConversationId): readonly unknown[] =>
  (rowsOf(path, [id])["messages"] ?? [])
    .flatMap((row) => (/"late":1\b/.test(row) ? (/"message_key":"[^"]*"/.exec(row)?.[0] ?? []) : []))
    .toSorted();

// ── The test ─────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Ground {
  readonly store: Store;
  readonly path: string;
  /** Sets the clock of the store. */
  readonly setClock: (hour: number, second: number) => void;
}

async function onStore(test: (ground: Ground) => Promise<void>): Promise<void> {
  const folder = makeScratch("neighbours");
  const path = join(folder, "lcm.db");
  let now = timeOf("a", 18);
  const setClock = (hour: number, second: number): void => {
    now = new Date(Date.UTC(2026, 1, 19, hour, 0, second)).toISOString() as Timestamp;
  };
  const store = await openSqlite({ path, housekeeping: false, now: () => now });
  try {
    await test({ store, path, setClock });
    await checkSound(store, [null], ["summary_too_long"]);
  } finally {
    await store.close();
    await rm(folder, { recursive: true, force: true });
  }
}

const begin = async (store: Store, name: string): Promise<Life> => {
  const { id } = await store.open({ sessionId: name, sessionKey: `agent:main:${name}` });
  return { store, id, name };
};

/** Others that hold the same keys in another order, as lines that are no messages, or wait for them; for longer, and later. */
async function settleStrangers(store: Store): Promise<void> {
  const keys = "v u t s w J I H G F E D q y x r n o l k j i h g f e d c b a";
  const reversed = await begin(store, "reversed");
  await store.append(reversed.id, [
    ...line(null, keys, 20),
    ...line("a", Array.from({ length: 40 }, (_, at) => `~${at}`).join(" "), 20),
  ]);
  await foldPlaces(store, reversed.id, [20, 23], "leaf of a stranger");
  const lines = await begin(store, "lines");
  await store.append(lines.id, [
    ...line(null, "~0 ~1 ~2", 20),
    ...keys.split(" ").map((key) => noted(key, "~0")),
    ...line("~2", "~3", 20),
  ]);
  const waiting = await begin(store, "waiting");
  for (const key of ["s", "J", "I"]) await store.append(waiting.id, line(key, `~${key}`, 20));
  await store.append(waiting.id, line(null, "c", 20));
}

/** What each step returns, and what the store reports after it. */
async function live({ store, path, setClock }: Ground): Promise<readonly unknown[]> {
  setClock(0, 0);
  const life = await begin(store, "talk");
  const reported: unknown[] = [];
  for (const [place, step] of steps.entries()) {
    setClock(1, place);
    reported.push({ place, answer: await step(life), reported: await report(store, "talk") });
  }
  return [...reported, lateIn(path, life.id)];
}

describe("a conversation among others", () => {
  it("ends up as it would alone, and changes none of their rows", async () => {
    const alone: unknown[] = [];
    await onStore(async (ground) => void alone.push(...(await live(ground))));
    await onStore(async (ground) => {
      const { store, path } = ground;
      await settleStrangers(store);
      // The shorter lives last: what goes on for longer must not have touched them.
      for (const stage of [...steps.keys()].reverse()) {
        const neighbour = await begin(store, `neighbour-${stage}-`);
        for (const step of steps.slice(0, stage + 1)) await step(neighbour);
      }
      const others = (await store.conversations({ includeHidden: true })).map(({ id }) => id);
      const before = rowsOf(path, others);
      const beside = await live(ground);
      for (const [place, reported] of beside.entries()) assert.deepEqual(reported, alone[place]);
      assertSameRows(rowsOf(path, others), before);
    });
  });
});
