/** Storing the transcript page by page: where reading continues, where a segment begins, and rewritten transcripts. */

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { createLcm } from "../../core/lcm.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Conversation } from "../../core/model/types.ts";
import { resolveSettings } from "../../core/model/settings.ts";
import { openSqlite } from "../../store/sqlite/store.ts";
import { checkLossless } from "../../../test/support/lossless.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { createOpenClaw } from "../../../test/support/scripted-openclaw.ts";
import type { ScriptedOpenClaw } from "../../../test/support/scripted-openclaw.ts";
import { createScriptedModel } from "../../../test/support/scripted-model.ts";
import type { ReadTranscript } from "./host-api.ts";
import { drain, drainToReset } from "./read-transcript.ts";
import { findActive } from "./segments.ts";
import { isObject, jsonText } from "../../core/base/json.ts";
import type { Json, JsonObject } from "../../core/base/json.ts";
import type { Timestamp } from "../../core/base/time.ts";

const scratch = makeScratch("transcript");
after(() => rmSync(scratch, { recursive: true, force: true }));
const key = "agent:main:main";
let files = 0;

interface World {
  readonly host: ScriptedOpenClaw;
  readonly lcm: Lcm;
  drain(turn?: Parameters<typeof drain>[3], read?: ReadTranscript): ReturnType<typeof drain>;
  /** All segments, the oldest first. */
  family(): Promise<readonly Conversation[]>;
  check(): Promise<void>;
}

async function createWorld(config: Readonly<Record<string, unknown>> = {}): Promise<World> {
  const store = await openSqlite({ path: join(scratch, `${++files}.db`), housekeeping: false });
  const lcm = createLcm({
    store,
    clock: { now: () => "2026-11-15T09:00:00.000Z" as Timestamp },
    settings: resolveSettings({ env: {}, config }).values,
    model: createScriptedModel({ behaviour: () => "good" }),
  });
  const host = createOpenClaw({ engine: () => assert.fail("only what is written is read here") });
  const family = async (): Promise<readonly Conversation[]> =>
    (await store.conversations({ sessionKey: key, includeHidden: true })).toSorted((a, b) => a.id - b.id);
  return {
    host,
    lcm,
    family,
    drain: async (turn, read = host.read) => await drain(lcm, read, host.placeOf(key), turn),
    async check() {
      const segments = host.segments(key);
      const stored = await family();
      assert.equal(stored.length, segments.length);
      const lists = stored.map(({ id }, at) => ({ conversation: id, entries: segments[at] ?? [] }));
      await checkLossless(store, lists, { expected: ["summary_below_normal"] });
    },
  };
}

const say = ({ host }: World, count: number, length = 1): void => {
  for (let nth = 0; nth < count; nth++) host.slash(key, `/say ${nth} ${"word ".repeat(length)}`);
};

describe("reading the transcript", () => {
  it("stores nothing of a session without a transcript", async () => {
    const world = await createWorld();
    const drained = await world.drain();
    assert.deepEqual(drained, { conversation: null, messages: 0, turn: "unnamed", isKept: false });
    assert.equal((await world.family()).length, 0);
  });

  it("continues where it stopped and reads no row twice", async () => {
    const world = await createWorld();
    const seqs: number[] = [];
    const read: ReadTranscript = async (request) => {
      const page = await world.host.read(request);
      if (page.kind === "page") seqs.push(...page.events.map(({ seq }) => seq));
      return page;
    };
    for (let times = 0; times < 4; times++) {
      say(world, 3);
      assert.equal((await world.drain(undefined, read)).messages, 6);
      assert.equal((await world.drain(undefined, read)).messages, 0);
    }
    assert.deepEqual(
      seqs,
      Array.from({ length: 25 }, (_, seq) => seq),
    );
    await world.check();
  });

  it("guarantee 1: a row that is nested too deeply stops nothing: it is stored whole, with everything around it", async () => {
    const world = await createWorld();
    say(world, 3);
    let deep: Json = "harpsichord";
    for (let level = 0; level < 100_000; level++) deep = { 0: deep };
    const told: Json[] = [];
    const read: ReadTranscript = async (request) => {
      const page = await world.host.read(request);
      if (page.kind !== "page") return page;
      const events = page.events.map((row) => {
        const { event } = row;
        if (row.seq === 2 && isObject(event) && isObject(event["message"]))
          return { ...row, event: { ...event, message: { ...event["message"], details: deep } } };
        return row.seq === 4 && isObject(event) ? { ...row, event: { ...event, more: deep } } : row;
      });
      told.push(...events.map(({ event }) => event));
      return { ...page, events };
    };
    assert.equal((await world.drain(undefined, read)).messages, 6);
    say(world, 1);
    assert.equal((await world.drain(undefined, read)).messages, 2);
    const [{ id } = assert.fail()] = await world.family();
    const lines = await Array.fromAsync(world.lcm.export(id));
    assert.equal(lines.filter((line) => line.includes("harpsichord")).length, 2);
    assert.ok(told.every((event) => lines.includes(jsonText(event))));
  });

  it("moves on after rows of which nothing is stored, and after a turn that is stored already", async () => {
    const world = await createWorld();
    say(world, 2);
    const seen: (string | undefined)[] = [];
    let isOdd = false;
    const read: ReadTranscript = async (request) => {
      seen.push(request.cursor);
      const page = await world.host.read(request);
      return page.kind === "page" && isOdd
        ? { ...page, events: page.events.map((row) => ({ ...row, event: 7 })) }
        : page;
    };
    const cursor = async (): Promise<string | null | undefined> => (await world.family())[0]?.hostCursor;
    await world.drain(undefined, read);
    const first = await cursor();

    // Rows that are not entries.
    say(world, 1);
    isOdd = true;
    assert.equal((await world.drain(undefined, read)).messages, 0);
    const second = await cursor();
    assert.notEqual(second, first);

    // Rows that are stored, and a turn that is known: the cursor was lost with the process.
    isOdd = false;
    say(world, 1);
    const { lcm } = world;
    const { id = assert.fail() } = (await world.family())[0] ?? {};
    const lastKey = String(world.host.segments(key)[0]?.at(-1)?.key);
    await lcm.store.append(id, [], { turnKey: "turn-1" });
    const drained = await world.drain({ key: "turn-1", lastKey }, read);
    assert.equal(drained.turn, "duplicate");
    assert.equal(drained.messages, 2);
    const third = await cursor();
    assert.notEqual(third, second);
    seen.length = 0;
    assert.equal((await world.drain(undefined, read)).messages, 0);
    assert.equal(seen[0], third);
  });

  it("reads a transcript of any length, page by page", async () => {
    const world = await createWorld();
    say(world, 600);
    assert.equal((await world.drain()).messages, 1_200);
    await world.check();
  });

  it("reads a row that is larger than a page", async () => {
    const world = await createWorld();
    say(world, 2);
    world.host.slash(key, `/paste ${"0123456789".repeat(500_000)}`);
    say(world, 2);
    assert.equal((await world.drain()).messages, 10);
    await world.check();
  });

  it("stores each page with its cursor, so that an interruption loses nothing", async () => {
    const world = await createWorld();
    say(world, 700);
    let pages = 0;
    const broken: ReadTranscript = async (request) => {
      if (++pages === 3) throw new Error("the host has gone away");
      return await world.host.read(request);
    };
    await assert.rejects(world.drain(undefined, broken), /gone away/);
    assert.equal((await world.drain()).messages, 1_400 - 999, "the header and 999 messages were stored before");
    await world.check();
  });
});

describe("guarantee 3: repeats are kept", () => {
  it("stores rows that differ only in their ids as separate rows", async () => {
    const world = await createWorld();
    const message = { role: "user", content: "ping", timestamp: 1_794_724_278_089 };
    const rows: readonly JsonObject[] = Array.from({ length: 9 }, (_, nth) => ({
      type: "message",
      id: `e${nth}`,
      parentId: nth === 0 ? null : `e${nth - 1}`,
      timestamp: "2026-11-15T06:30:00.000Z",
      message,
    }));
    const read: ReadTranscript = async ({ cursor = "0", maxEvents = 2 }) => {
      await Promise.resolve();
      const from = Number(cursor);
      const events = rows.slice(from, from + Math.min(2, maxEvents)).map((event, seq) => ({ seq: from + seq, event }));
      const next = from + events.length;
      return { kind: "page", cursor: String(next), hasMore: next < rows.length, events };
    };
    assert.equal((await world.drain(undefined, read)).messages, 9);
    const [conversation] = await world.family();
    assert.deepEqual([conversation?.totals.messages, conversation?.totals.contextItems], [9, 9]);
  });
});

describe("a reset", () => {
  for (const reason of ["new", "reset"] as const) {
    it(`by /${reason} begins a segment, wherever in a page it is`, async () => {
      const world = await createWorld();
      world.host.reset(key, reason);
      say(world, 2);
      world.host.reset(key, reason);
      world.host.reset(key, reason);
      say(world, 1);
      await world.drain();
      world.host.reset(key, reason);
      await world.drain();
      await world.check();
      const family = await world.family();
      assert.deepEqual(
        family.map(({ active, totals }) => [active, totals.messages]),
        [
          [false, 0],
          [false, 4],
          [false, 0],
          [false, 2],
          [true, 0],
        ],
      );
    });
  }

  it("because a session was old continues its segment", async () => {
    const world = await createWorld();
    say(world, 2);
    world.host.reset(key, "idle");
    say(world, 2);
    await world.drain();
    assert.equal((await world.family()).length, 1);
    await world.check();
  });

  it("by /new carries deep summaries over, by /reset none", async () => {
    const depths = { newSessionRetainDepth: 0, freshTailCount: 2, leafChunkTokens: 600, leafTargetTokens: 50 };
    for (const [reason, carried] of [
      ["new", true],
      ["reset", false],
    ] as const) {
      const world = await createWorld(depths);
      say(world, 12, 60);
      const { conversation } = await world.drain();
      const id = conversation?.id ?? assert.fail("it is stored");
      assert.ok((await world.lcm.compact({ conversation: id, mode: "sweep" })).compacted);
      world.host.reset(key, reason);
      say(world, 1);
      const drained = await world.drain();
      assert.equal((drained.conversation?.totals.summaries ?? 0) > 0, carried, reason);
      await world.check();
    }
  });

  it("begins no second segment after a process died right after it", async () => {
    const world = await createWorld();
    say(world, 1);
    world.host.reset(key, "new");
    say(world, 1);
    let reads = 0;
    const dies: ReadTranscript = async (request) => {
      // Up to the reset and the reset itself, but no further.
      if (++reads > 4) throw new Error("the host has gone away");
      return await world.host.read(request);
    };
    await assert.rejects(world.drain(undefined, dies), /gone away/);
    assert.equal((await world.family()).length, 2);
    await world.drain();
    await world.check();
  });
});

describe("a rewritten transcript", () => {
  it("is read again from the start, into its own segments", async () => {
    const world = await createWorld();
    say(world, 2);
    world.host.reset(key, "new");
    say(world, 2);
    world.host.reset(key, "reset");
    await world.drain();
    world.host.rewrite(key);
    say(world, 2);
    assert.equal((await world.drain()).messages, 4);
    assert.equal((await world.drain()).messages, 0);
    await world.check();
  });

  it("is read completely after an interruption, and after a second rewrite", async () => {
    const world = await createWorld();
    say(world, 300);
    world.host.reset(key, "new");
    say(world, 300);
    await world.drain();
    for (let stops = 1; stops <= 6; stops++) {
      world.host.rewrite(key);
      say(world, 1);
      let reads = 0;
      const dies: ReadTranscript = async (request) => {
        if (++reads > stops) throw new Error("the host has gone away");
        return await world.host.read(request);
      };
      await assert.rejects(world.drain(undefined, dies), /gone away/);
    }
    await world.drain();
    await world.check();
  });

  it("without its oldest rows continues in the segment of its rows", async () => {
    for (const [kept, isRead] of [0, 1, 2, 3, 4, 5, 6, 9].flatMap((rows) => [
      [rows, true] as const,
      [rows, false] as const,
    ])) {
      const world = await createWorld();
      say(world, 2);
      world.host.reset(key, "new");
      say(world, 1);
      world.host.reset(key, "new");
      say(world, 1);
      await world.drain();
      world.host.trim(key, kept);
      if (isRead) assert.equal((await world.drain()).messages, 0, `${kept} rows are kept`);
      say(world, 2);
      const drained = await world.drain();
      assert.deepEqual([drained.messages, drained.conversation?.active], [4, true], `${kept} rows are kept`);
      const stored = await Promise.all(
        (await world.family()).map(async ({ id }) => await world.lcm.store.messages({ conversation: id })),
      );
      const written = world.host.segments(key).map((entries) => entries.filter(({ kind }) => kind === "message"));
      assert.deepEqual(
        stored.map((messages) => messages.map((message) => message.key)),
        written.map((messages) => messages.map((message) => message.key)),
        `${kept} rows are kept`,
      );
    }
  });

  it("of a deleted session belongs to another session under the same key", async () => {
    const world = await createWorld();
    say(world, 2);
    await world.drain();
    const before = world.host.placeOf(key);
    world.host.delete(key);
    assert.equal(await findActive(world.lcm.store, world.host.placeOf(key)), null, "nothing of it is shown");
    say(world, 2);
    await world.drain();
    await world.check();
    // A machine that still has the first one continues it.
    assert.equal((await findActive(world.lcm.store, before))?.sessionId, before.sessionId);
    assert.equal((await world.drain()).messages, 0);
  });
});

describe("a turn", () => {
  const turnOf = (world: World, turnKey: string): { readonly key: string; readonly lastKey: string } => ({
    key: turnKey,
    lastKey: world.host.segments(key).at(-1)?.at(-1)?.key ?? "",
  });

  it("is new once, and a duplicate from then on", async () => {
    const world = await createWorld();
    say(world, 1);
    const turn = turnOf(world, "t1");
    const first = await world.drain(turn);
    assert.deepEqual([first.turn, first.messages], ["new", 2]);
    assert.equal((await world.drain(turn)).turn, "duplicate");
    world.host.reset(key, "new");
    await world.drain();
    assert.equal((await world.drain(turn)).turn, "duplicate", "in an earlier segment too");
    await world.check();
  });

  it("is new even if its rows were stored before", async () => {
    const world = await createWorld();
    say(world, 1);
    await world.drain();
    world.host.reset(key, "new");
    await world.drain();
    const lastKey = world.host.segments(key)[0]?.at(-1)?.key ?? "";
    assert.equal((await world.drain({ key: "t1", lastKey })).turn, "new");
    assert.equal((await world.drain({ key: "t1", lastKey })).turn, "duplicate");
    await world.check();
  });

  it("is stored up to its end: what follows is another turn, perhaps the live one", async () => {
    const world = await createWorld();
    say(world, 2);
    const turn = turnOf(world, "t1");
    say(world, 1);
    assert.equal((await world.drain(turn)).messages, 4);
    assert.equal((await world.drain(turn)).messages, 0);
    assert.equal((await world.drain()).messages, 2);
    await world.check();
  });

  it("includes nothing of the next turn if a reset between them was read before", async () => {
    const world = await createWorld();
    say(world, 1);
    const turn = turnOf(world, "t1");
    world.host.reset(key, "reset");
    await drainToReset(world.lcm, world.host.read, world.host.placeOf(key));
    assert.equal((await world.family()).length, 0, "of a session that was never read");
    await world.drain();
    world.host.slash(key, "/more");
    const next = turnOf(world, "t2");
    world.host.reset(key, "reset");
    await drainToReset(world.lcm, world.host.read, world.host.placeOf(key));
    world.host.slash(key, "/live");
    for (const told of ["new", "duplicate"])
      for (const each of [turn, next]) {
        const drained = await world.drain(each);
        assert.deepEqual([drained.turn, drained.messages], [told, 0]);
      }
    assert.equal((await world.drain()).messages, 2);
    await world.check();
  });

  it("is not stored twice if its session was deleted meanwhile", async () => {
    const world = await createWorld();
    say(world, 1);
    await world.drain();
    const turn = turnOf(world, "t1");
    const place = world.host.placeOf(key);
    world.host.delete(key);
    const drained = await drain(world.lcm, world.host.read, place, turn);
    assert.deepEqual([drained.turn, drained.isKept, drained.messages], ["new", true, 0]);
    say(world, 1);
    await world.drain();
    assert.equal((await drain(world.lcm, world.host.read, place, turn)).turn, "duplicate");
    await world.check();
  });

  it("that is missing from the transcript is an error, so that the host commits it again", async () => {
    const world = await createWorld();
    say(world, 1);
    await assert.rejects(world.drain({ key: "t1", lastKey: "nowhere" }), { name: "LcmError", code: "unavailable" });
    await world.drain();
    await world.check();
  });
});
