import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import fc from "fast-check";
import { entryFromStore, messageToStore, textOfParts } from "../../core/messages/codec.ts";
import type { HostMessage, Incoming } from "../../core/messages/codec.ts";
import { createLcm } from "../../core/lcm.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Conversation, Message } from "../../core/model/types.ts";
import type { Appendable, SessionIdentity, Store } from "../../core/model/store.ts";
import { readTranscriptValue } from "../../core/messages/transcript-line.ts";
import { adopt } from "../../store/adopt/adopt.ts";
import { openSqlite } from "../../store/sqlite/store.ts";
import { checkSound, flattened } from "../../../test/support/lossless.ts";
import { copyFixture, fixtureVersions, rowsOf } from "../../../test/support/older-database.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { encode, user } from "../../../test/support/scripted-host.ts";
import type { ReadTranscript } from "./host-api.ts";
import { alignOlder, keepAll } from "./align-older.ts";
import { drain } from "./read-transcript.ts";
import type { JsonObject } from "../../core/base/json.ts";
import type { Timestamp } from "../../core/base/time.ts";

const folder = makeScratch("moving");
const beganMs = Date.UTC(2026, 1, 17, 7, 37);
const timeAt = (ms: number): Timestamp => new Date(ms).toISOString() as Timestamp;
const nowMs = beganMs + 400 * 86_400_000;

/** A transcript row; messages are minutes apart, as in a real conversation. */
interface Line {
  readonly id: string;
  readonly event: JsonObject;
  readonly atMs: number;
  readonly raw: HostMessage | null;
}

const minutes = 60_000;

function transcriptOf(said: readonly (HostMessage | string)[], fromMs = beganMs): readonly Line[] {
  let parentId: string | null = null;
  return said.map((raw, index) => {
    const atMs = fromMs + index * 3 * minutes;
    const id = `e${Math.round((atMs - beganMs) / minutes)}`;
    const link = { id, parentId, timestamp: timeAt(atMs) };
    parentId = id;
    return typeof raw === "string"
      ? { id, event: { type: raw, ...link }, atMs, raw: null }
      : { id, event: { type: "message", ...link, message: { ...raw, timestamp: atMs } }, atMs, raw };
  });
}

const itemOf = ({ event }: Line): Incoming => {
  const line = readTranscriptValue(event, 1, timeAt(nowMs));
  assert.ok(line.kind === "item");
  return line.item;
};

const said = (text: string): HostMessage => ({ role: "assistant", content: [{ type: "text", text }] });
const calling = (id: string, text = ""): HostMessage => ({
  role: "assistant",
  content: [
    { type: "thinking", thinking: `shall I call ${id}?` },
    ...(text === "" ? [] : [{ type: "text", text }]),
    { type: "toolCall", id, name: "read", arguments: { path: id } },
  ],
});
const result = (toolCallId: string, text: string): HostMessage => ({
  role: "toolResult",
  toolCallId,
  toolName: "read",
  content: [{ type: "text", text }],
});

/** What the older program stored of a message: its blocks, or only its text in the first versions. */
interface Kept {
  readonly line: Line;
  readonly how: "blocks" | "text";
  readonly storedMs: number;
}

function keptToStore({ line, how, storedMs }: Kept, number: number): Appendable {
  assert.ok(line.raw !== null);
  const at = timeAt(Math.floor(storedMs / 1_000) * 1_000);
  const whole = messageToStore(line.raw, { key: `older:${number}`, at });
  if (how === "blocks") return { kind: "message", message: whole };
  const text = textOfParts(whole.parts.filter(({ type }) => type !== "tool"));
  return {
    kind: "message",
    message: messageToStore({ role: whole.role, content: text }, { key: `older:${number}`, at }),
  };
}

const soon = (line: Line, how: Kept["how"] = "blocks", afterMs = 4_000): Kept => ({
  line,
  how,
  storedMs: line.atMs + afterMs,
});

let sessions = 0;

interface Ground {
  readonly store: Store;
  readonly lcm: Lcm;
  readonly path: string;
}

async function onStore(work: (ground: Ground) => Promise<void>): Promise<void> {
  const path = join(folder, `${++sessions}.db`);
  const store = await openSqlite({ path });
  try {
    await work({ store, path, lcm: createLcm({ store, clock: { now: () => timeAt(nowMs) } }) });
  } finally {
    await store.close();
  }
}

const placeOf = (name: string) => ({ sessionId: name, sessionKey: `agent:main:${name}`, agentId: "main" });

/** A conversation after adoption. */
async function hold(
  store: Store,
  kept: readonly Kept[],
  place: SessionIdentity = placeOf(`s${++sessions}`),
): Promise<Conversation> {
  const { id } = await store.open(place);
  await store.append(id, kept.map(keptToStore));
  const conversation = await store.conversation(id);
  assert.ok(conversation !== null);
  return conversation;
}

async function* pagesOf(lines: readonly Line[], size = 7): AsyncGenerator<readonly Incoming[]> {
  for (let at = 0; at < lines.length; at += size) yield lines.slice(at, at + size).map(itemOf);
}

type Fate = "held" | "aside" | "new";

async function fatesOf(store: Store, conversation: Conversation, lines: readonly Line[]): Promise<readonly Fate[]> {
  const aligned = await alignOlder(store, conversation, () => pagesOf(lines));
  assert.notEqual(aligned, keepAll);
  return lines.map((line) => {
    const [item, ...more] = aligned.item(itemOf(line));
    assert.deepEqual(more, []);
    return item === undefined ? "held" : item.kind === "message" && item.aside === "branch" ? "aside" : "new";
  });
}

const fates = (letters: string): readonly Fate[] =>
  [...letters].map((letter) => (letter === "h" ? "held" : letter === "a" ? "aside" : "new"));

/** Reads the transcript in pages of this size; throws instead of returning the page that `fails` names. */
function readerOf(lines: readonly Line[], size: number, fails = Infinity): ReadTranscript {
  let read = 0;
  return async ({ cursor = "0", maxEvents = size }) => {
    if (read++ >= fails) throw new Error("the host is gone");
    const from = Number(cursor);
    const events = lines
      .slice(from, from + Math.min(size, maxEvents))
      .map(({ event }, at) => ({ seq: from + at + 1, event }));
    const to = from + events.length;
    return await Promise.resolve({ kind: "page", cursor: String(to), hasMore: to < lines.length, events });
  };
}

describe("a conversation of the older program", () => {
  it("is one with messages under its own keys; other conversations are not compared", async () => {
    await onStore(async ({ store }) => {
      const place = placeOf("ours");
      const { id } = await store.open(place);
      const lines = transcriptOf([user("hello"), said("hello to you")]);
      await store.append(
        id,
        lines.map((line) => encode(itemOf(line))),
      );
      const conversation = await store.conversation(id);
      assert.ok(conversation !== null);
      assert.equal(await alignOlder(store, conversation, assert.fail), keepAll);
    });
  });

  it("keeps its messages; later rows are new, and earlier missed ones are kept outside the context", async () => {
    await onStore(async ({ store }) => {
      const lines = transcriptOf([user("one"), said("two"), "model_change", user("three"), said("four"), user("five")]);
      const conversation = await hold(
        store,
        [0, 3, 4].map((at) => soon(lines[at] ?? assert.fail())),
      );
      assert.deepEqual(await fatesOf(store, conversation, lines), fates("hanhhn"));
    });
  });

  it("recognises a message by its text, whatever happened to white space, calls, thinking and pictures", async () => {
    await onStore(async ({ store }) => {
      const picture = { type: "image", data: "AAAA", mimeType: "image/png" };
      const lines = transcriptOf([
        {
          role: "user",
          content: [{ type: "text", text: "look\n\nat this " }, picture, { type: "text", text: "please" }],
        },
        calling("call_1", "  I look. "),
        result("call_1", "a harbour\r\n"),
        { role: "assistant", content: [{ type: "text", text: "A harbour." }], stopReason: "stop" },
      ]);
      const spelled = [
        user("look at this please"),
        said("I look."),
        { role: "tool", content: "a harbour" },
        said(" A harbour."),
      ];
      const kept = spelled.map((raw, at) =>
        soon({ ...(lines[at] ?? assert.fail()), raw }, at % 2 === 0 ? "text" : "blocks"),
      );
      assert.deepEqual(await fatesOf(store, await hold(store, kept), lines), fates("hhhh"));
    });
  });

  it("recognises a call and its result by their ids, though texts were cut and ids written differently", async () => {
    await onStore(async ({ store }) => {
      const lines = transcriptOf([
        user("go"),
        calling("toolu_1"),
        result("toolu_1", "x".repeat(500)),
        said("done"),
        user("and now?"),
      ]);
      const changed = [user("go"), calling("toolu1"), result("toolu1", "xxxx… [cut]"), said("done")];
      const kept = changed.map((raw, at) => soon({ ...(lines[at] ?? assert.fail()), raw }));
      assert.deepEqual(await fatesOf(store, await hold(store, kept), lines), fates("hhhhn"));
    });
  });

  it("does not confuse results whose ids occur again", async () => {
    await onStore(async ({ store }) => {
      const lines = transcriptOf([
        calling("call"),
        result("call", "seven"),
        calling("call"),
        result("call", "eight"),
        user("so?"),
      ]);
      const kept = [2, 3].map((at) => soon(lines[at] ?? assert.fail()));
      assert.deepEqual(await fatesOf(store, await hold(store, kept), lines), fates("aahhn"));
    });
  });

  it("counts equal messages one by one", async () => {
    await onStore(async ({ store }) => {
      const lines = transcriptOf(Array.from({ length: 9 }, () => user("ping")));
      const kept = lines.slice(0, 6).map((line) => soon(line));
      assert.deepEqual(await fatesOf(store, await hold(store, kept), lines), fates("hhhhhhnnn"));
      // Also if all of them were stored at once.
      const atOnce = lines
        .slice(0, 6)
        .map((line): Kept => ({ line, how: "text", storedMs: (lines[5]?.atMs ?? 0) + 1_000 }));
      assert.deepEqual(await fatesOf(store, await hold(store, atOnce), lines), fates("hhhhhhnnn"));
    });
  });

  it("is matched despite messages that were changed, dropped or never in the transcript", async () => {
    await onStore(async ({ store }) => {
      const texts = Array.from({ length: 200 }, (_, n) => (n % 5 === 0 ? user("go on") : said(`step ${n}`)));
      const lines = transcriptOf([...texts, user("new"), said("go on"), user("go on")]);
      const kept = lines.slice(0, 200).flatMap((line, at): readonly Kept[] => {
        if (at % 17 === 3) return [];
        if (at % 23 === 5) return [soon({ ...line, raw: said(`[cut] ${at}`) })];
        return at % 41 === 7
          ? [soon(line), soon({ ...line, raw: user("only the older program knows") })]
          : [soon(line)];
      });
      const expected = lines.map((_, at): Fate =>
        at >= 200 ? "new" : at % 17 === 3 || at % 23 === 5 ? "aside" : "held",
      );
      assert.deepEqual(await fatesOf(store, await hold(store, kept), lines), expected);
    });
  });

  it("is matched though everything was stored at once and texts occur again", async () => {
    await onStore(async ({ store }) => {
      const at = (line: Line | undefined): Kept => ({
        line: line ?? assert.fail(),
        how: "blocks",
        storedMs: beganMs + 30 * minutes,
      });
      const only = (text: string): Kept => at({ id: "", event: {}, atMs: 0, raw: user(text) });
      for (const [texts, kept, expected] of [
        // A message that only the older program has repeats an earlier text.
        ["a ok b ok c", "a ok b ok +ok c", "hhhhh"],
        ["a b c a b c a b c", "a b c a b c a b c +a", "hhhhhhhhh"],
        // The missed message is between equal texts.
        ["p q p v u q", "q p", "ahhnnn"],
        ["ok a ok b c", "a b +ok c", "ahahh"],
        // The changed message follows a repeated text.
        ["x a b c x a b c", "x a b c +y a b c", "hhhhahhh"],
      ] as const) {
        const lines = transcriptOf(texts.split(" ").map(user));
        let from = 0;
        const held = kept.split(" ").map((text) => {
          if (text.startsWith("+")) return only(text.slice(1));
          const found = texts.split(" ").indexOf(text, from);
          from = found + 1;
          return at(lines[found]);
        });
        assert.deepEqual(await fatesOf(store, await hold(store, held), lines), fates(expected), `${texts}: ${kept}`);
      }
    });
  });

  it("does not match what was stored from the transcript before", async () => {
    await onStore(async ({ store }) => {
      const [first, second] = transcriptOf([user("ping"), user("ping")]);
      assert.ok(first !== undefined && second !== undefined);
      const { id } = await hold(store, [soon(first, "text", 3 * minutes)]);
      await store.append(id, [encode(itemOf(second))]);
      const conversation = await store.conversation(id);
      assert.ok(conversation !== null);
      assert.deepEqual(await fatesOf(store, conversation, [first, second]), fates("hn"));
    });
  });

  it("of another session under the same key does not affect this one", async () => {
    await onStore(async ({ store }) => {
      const lines = transcriptOf([user("hi"), said("hello"), user("thanks"), said("you are welcome")]);
      const kept = lines.map((line) => soon({ ...line, atMs: line.atMs - 600 * minutes }));
      assert.deepEqual(await fatesOf(store, await hold(store, kept), lines), fates("nnnn"));
    });
  });

  it("may have several segments, all of which are matched", async () => {
    await onStore(async ({ store }) => {
      const lines = transcriptOf([user("one"), said("two"), "reset", user("three"), said("four"), user("five")]);
      const place = placeOf("segments");
      await hold(
        store,
        [0, 1].map((at) => soon(lines[at] ?? assert.fail())),
        place,
      );
      await store.openSegment(place);
      const conversation = await hold(
        store,
        [3, 4].map((at) => soon(lines[at] ?? assert.fail())),
        place,
      );
      assert.deepEqual(await fatesOf(store, conversation, lines), fates("hhnhhn"));
    });
  });

  for (const version of fixtureVersions) {
    it(`is found completely in the transcript that ${version} made it from`, async () => {
      const path = copyFixture(version, makeScratch("moving"));
      await adopt(path, "2026-11-15T07:30:00.000Z");
      const store = await openSqlite({ path });
      try {
        const [conversation] = await store.conversations();
        assert.ok(conversation !== undefined);
        const held = (await store.messages({ conversation: conversation.id })).filter(({ aside }) => aside === null);
        const lines = fixtureTranscript(held);
        const more = transcriptOf(
          [user("and then?"), said("Then we moved.")],
          Date.parse(lines.at(-1)?.event["timestamp"] as string) + 90_000,
        );
        const found = await fatesOf(store, conversation, [...lines, ...more]);
        assert.deepEqual(found, [...lines.map(() => "held"), "new", "new"]);
      } finally {
        await store.close();
      }
    });
  }
});

describe("draining the transcript of a session of the older program", () => {
  const said6 = [user("one"), said("two"), "reset", user("three"), said("four"), user("five")];
  const textsIn = async (store: Store, { id }: Conversation): Promise<readonly string[]> =>
    (await flattened(store, id)).map(({ text }) => text);
  const familyOf = async (store: Store, sessionKey: string): Promise<readonly Conversation[]> =>
    (await store.conversations({ sessionKey })).toSorted((a, b) => a.id - b.id);

  it("continues a conversation stored under the session id alone, and stores nothing twice", async () => {
    await onStore(async ({ store, lcm }) => {
      const place = placeOf("nameless");
      const lines = transcriptOf([user("one"), said("two"), user("three")]);
      const { id } = await hold(
        store,
        lines.slice(0, 2).map((line) => soon(line, "text")),
        { sessionId: place.sessionId },
      );
      const { conversation, messages } = await drain(lcm, readerOf(lines, 2), place);
      assert.deepEqual([conversation?.id, conversation?.sessionKey, messages], [id, place.sessionKey, 1]);
      assert.deepEqual(await textsIn(store, conversation ?? assert.fail()), ["one", "two", "three"]);
    });
  });

  it("begins no segment where the older program began one or continued", async () => {
    await onStore(async ({ store, lcm }) => {
      const lines = transcriptOf([...said6, "reset", user("six")]);
      const keep = async (name: string, places: readonly number[]): Promise<Conversation> =>
        await hold(
          store,
          places.map((at) => soon(lines[at] ?? assert.fail())),
          placeOf(name),
        );
      await keep("own", [0, 1]);
      await store.openSegment(placeOf("own"));
      await keep("own", [3, 4]);
      await keep("on", [0, 1, 3, 4]);
      await keep("missed", [3, 4]);
      await keep("nothing", [4]);
      for (const [name, expected, asides] of [
        ["own", ["one two", "three four five", "six"], ""],
        ["on", ["one two three four five", "six"], ""],
        ["missed", ["three four five", "six"], "one two"],
        ["nothing", ["four five", "six"], "one two three"],
      ] as const) {
        const { sessionKey } = placeOf(name);
        for (let times = 0; times < 2; times++) await drain(lcm, readerOf(lines, 4), placeOf(name));
        const family = await familyOf(store, sessionKey);
        const texts = await Promise.all(family.map(async (each) => (await textsIn(store, each)).join(" ")));
        assert.deepEqual(texts, expected, name);
        const all = (await Promise.all(family.map(({ id }) => store.messages({ conversation: id })))).flat();
        const aside = all.filter(({ aside: why }) => why !== null).map(({ text }) => text);
        assert.equal(aside.join(" "), asides, name);
        assert.equal(all.length, lines.filter(({ raw }) => raw !== null).length, name);
      }
      await checkSound(store);
    });
  });

  it("stores nothing twice when the host rewrites the transcript, even after another segment has begun", async () => {
    await onStore(async ({ store, lcm }) => {
      const place = placeOf("anew");
      const lines = transcriptOf([...said6, "reset", user("six"), said("seven")]);
      const held = [0, 3, 4].map((at) => soon(lines[at] ?? assert.fail()));
      await hold(store, held.slice(0, 1), place);
      await store.openSegment(place);
      await hold(store, held.slice(1), place);
      const texts = async (): Promise<readonly string[]> =>
        await Promise.all(
          (await familyOf(store, place.sessionKey)).map(async (each) => (await textsIn(store, each)).join(" ")),
        );
      for (const [upto, expected] of [
        [6, ["one", "three four five"]],
        [9, ["one", "three four five", "six seven"]],
      ] as const) {
        const read = readerOf(lines.slice(0, upto), 3);
        await drain(lcm, read, place);
        assert.deepEqual(await texts(), expected);
        const { messages } = await store.status();
        const anew: ReadTranscript = async (request) =>
          request.cursor?.startsWith("anew") === true || request.cursor === undefined
            ? await read({ ...request, cursor: request.cursor?.slice(4) ?? "0" }).then((page) =>
                page.kind === "page" ? { ...page, cursor: `anew${page.cursor}` } : page,
              )
            : { kind: "reset", cursor: "anew0" };
        assert.equal((await drain(lcm, anew, place)).messages, 0);
        assert.deepEqual(await texts(), expected);
        assert.equal((await store.status()).messages, messages);
        // Back to plain cursors, as if it had not happened.
        await drain(
          lcm,
          async (request) =>
            request.cursor?.startsWith("anew") === true ? { kind: "reset", cursor: "0" } : await read(request),
          place,
        );
      }
      await checkSound(store);
    });
  });
});

/** The host's own rows for a fixture: blocks where the older program stored text, calls where it stored none. */
function fixtureTranscript(held: readonly Message[]): readonly Line[] {
  return held.map((message, index): Line => {
    const atMs = Date.parse(message.at) - (held.length - index) * 10;
    const isBare = message.parts.every(({ metadata }) => metadata === null) && message.envelope === null;
    const host = entryFromStore(message);
    const raw: HostMessage =
      isBare && message.role === "assistant"
        ? {
            role: "assistant",
            content: [
              { type: "text", text: message.text },
              { type: "toolCall", id: `call_${index}`, name: "read", arguments: {} },
            ],
          }
        : isBare && message.role === "tool"
          ? {
              role: "toolResult",
              toolCallId: `call_${index - 1}`,
              toolName: "read",
              content: [{ type: "text", text: message.text }],
            }
          : host;
    const event = {
      type: "message",
      id: `e${index}`,
      parentId: index === 0 ? null : `e${index - 1}`,
      timestamp: timeAt(atMs),
      message: { ...raw, timestamp: atMs },
    };
    return { id: `e${index}`, event, atMs, raw };
  });
}

// ── Any life ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const words = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom("ping", "ok", "go on", "") },
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 1_000_000 }).map((n) => `text ${n}`) },
);
const callIds = fc.oneof(
  fc.constantFrom("call", "call_1"),
  fc.integer({ min: 0, max: 1_000_000 }).map((n) => `call_${n}`),
);
const utterances = fc.oneof(
  words.map(user),
  words.map(said),
  fc.tuple(callIds, words).map(([id, text]) => calling(id, text)),
  fc.tuple(callIds, words).map(([id, text]) => result(id, text)),
);
interface Past {
  readonly raw: HostMessage | string;
  readonly isKept: boolean;
  readonly how: Kept["how"];
  readonly delayMs: number;
}
const pasts = fc.array(
  fc.oneof<fc.MaybeWeightedArbitrary<Past>[]>(
    { weight: 1, arbitrary: fc.constant({ raw: "model_change", isKept: false, how: "text", delayMs: 0 }) },
    {
      weight: 6,
      arbitrary: fc.record({
        raw: utterances,
        isKept: fc.boolean(),
        how: fc.constantFrom("blocks", "text"),
        delayMs: fc.integer({ min: 0, max: 50_000 }),
      }),
    },
  ),
  { minLength: 1, maxLength: 40 },
);
const tails = fc.array(
  fc.oneof({ weight: 1, arbitrary: fc.constant("custom") }, { weight: 5, arbitrary: utterances }),
  { maxLength: 12 },
);
const runs = { numRuns: Number(process.env["LCM_RUNS"] ?? 60), seed: Number(process.env["LCM_SEED"] ?? 7) };

interface Life {
  readonly lines: readonly Line[];
  readonly kept: readonly Kept[];
  readonly expected: readonly Fate[];
}

/** What was said, what the older program stored of it, and the expected result of every row. */
function lifeOf(past: readonly Past[], tail: readonly (HostMessage | string)[]): Life {
  const lines = transcriptOf([...past.map(({ raw }) => raw), ...tail]);
  const kept = past.flatMap(({ isKept, how, delayMs }, at) =>
    isKept ? [soon(lines[at] ?? assert.fail(), how, delayMs)] : [],
  );
  const last = past.findLastIndex(({ isKept }) => isKept);
  const expected = lines.map(({ raw }, at): Fate =>
    past[at]?.isKept === true ? "held" : at < last && raw !== null ? "aside" : "new",
  );
  return { lines, kept, expected };
}

describe("guarantee 1, moving over: whatever the older program kept of whatever was said", () => {
  it("what it stored is not stored again, what it missed is stored, and exactly the later rows are new", async () => {
    await onStore(async ({ store }) => {
      await fc.assert(
        fc.asyncProperty(pasts, tails, async (past, tail) => {
          const { lines, kept, expected } = lifeOf(past, tail);
          fc.pre(kept.length > 0);
          assert.deepEqual(await fatesOf(store, await hold(store, kept), lines), expected);
        }),
        runs,
      );
    });
  });

  it("if all was stored at once, each message is matched once, and in its place if all texts differ", async () => {
    await onStore(async ({ store }) => {
      const atOnce = ({ kept }: Life): readonly Kept[] => kept.map((each) => ({ ...each, storedMs: nowMs }));
      const distinct = (raw: HostMessage | string, n: number): HostMessage | string =>
        typeof raw === "string" ? raw : user(`message ${n}`);
      await fc.assert(
        fc.asyncProperty(pasts, tails, async (past, tail) => {
          const any = lifeOf(past, tail);
          fc.pre(any.kept.length > 0);
          const found = await fatesOf(store, await hold(store, atOnce(any)), any.lines);
          assert.equal(found.filter((fate) => fate === "held").length, any.kept.length);

          const apart = lifeOf(
            past.map((each, n) => ({ ...each, raw: distinct(each.raw, n) })),
            tail.map((raw, n) => distinct(raw, 100 + n)),
          );
          assert.deepEqual(await fatesOf(store, await hold(store, atOnce(apart)), apart.lines), apart.expected);
        }),
        runs,
      );
    });
  });

  it("the context continues from what was there, at whichever page a crash comes, and a replay changes nothing", async () => {
    await onStore(async (ground) => {
      await fc.assert(
        fc.asyncProperty(
          pasts,
          tails,
          fc.integer({ min: 1, max: 9 }),
          fc.array(fc.nat(12), { maxLength: 3 }),
          async (past, tail, size, crashes) => {
            const life = lifeOf(past, tail);
            fc.pre(life.kept.length > 0);
            await checkMovedOver(ground, life, size, crashes);
          },
        ),
        runs,
      );
      await checkSound(ground.store);
      assert.deepEqual(rowsOf(ground.path, "SELECT * FROM missing_parents"), []);
    });
  });
});

async function checkMovedOver(
  { store, lcm }: Ground,
  { lines, kept, expected }: Life,
  size: number,
  crashes: readonly number[],
): Promise<void> {
  const place = placeOf(`s${++sessions}`);
  const { id } = await hold(store, kept, place);
  for (const fails of crashes) await drain(lcm, readerOf(lines, size, fails), place).catch(() => undefined);
  await drain(lcm, readerOf(lines, size), place);
  const olderKeys = kept.map((_, number) => `older:${number}`);
  const keysOf = (fate: Fate, isMessage: boolean): readonly string[] =>
    lines.filter(({ raw }, at) => expected[at] === fate && (raw !== null) === isMessage).map(({ id }) => id);
  assert.deepEqual(
    (await flattened(store, id)).map(({ key }) => key),
    [...olderKeys, ...keysOf("new", true)],
  );
  const messages = await store.messages({ conversation: id });
  assert.deepEqual(
    messages.filter(({ aside }) => aside === "branch").map(({ key }) => key),
    keysOf("aside", true),
  );
  const entries = await store.entries(id, 0, Number.MAX_SAFE_INTEGER);
  assert.deepEqual(
    entries.map(({ key }) => key),
    keysOf("new", false),
  );
  for (const message of messages) {
    const line = lines.find((each) => each.id === message.key);
    if (line !== undefined) assert.deepEqual(entryFromStore(message), line.event);
  }
  assert.equal(new Set(messages.map(({ key }) => key)).size, messages.length);

  const before = await store.conversation(id);
  assert.equal((await drain(lcm, readerOf(lines, size), place)).messages, 0);
  assert.deepEqual((await store.conversation(id))?.totals, before?.totals);
}
