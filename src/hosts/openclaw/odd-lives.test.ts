/**
 * Rare events in a session's life: it is adopted, rewound, deleted and restarted, shared by two agents, or served while
 * the store does not answer. Whatever happens, each row is stored once, and a prompt shows only its own session.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { messageToStore } from "../../core/messages/codec.ts";
import type { HostMessage } from "../../core/messages/codec.ts";
import type { Conversation, ConversationId, Message } from "../../core/model/types.ts";
import type { Store } from "../../core/model/store.ts";
import { builtInTemplates } from "../../core/prompts/summary.ts";
import { resolveSettings } from "../../core/model/settings.ts";
import { estimateTokens } from "../../core/base/tokens.ts";
import { openSqlite } from "../../store/sqlite/store.ts";
import { dyingStore } from "../../../test/support/dying-store.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { createOpenClaw } from "../../../test/support/scripted-openclaw.ts";
import type { ScriptedOpenClaw } from "../../../test/support/scripted-openclaw.ts";
import { createTranscript } from "../../../test/support/scripted-transcript.ts";
import type { Transcript } from "../../../test/support/scripted-transcript.ts";
import { runCommand } from "./chat-commands.ts";
import { hideDeleted } from "./hide-deleted.ts";
import { createEngine } from "./engine.ts";
import type { ContextEngine, ReadTranscript, TranscriptPlace } from "./host-api.ts";
import { runtimeOf } from "../shared/runtime.ts";
import type { Runtime } from "../shared/runtime.ts";
import type { JsonObject } from "../../core/base/json.ts";
import type { Timestamp } from "../../core/base/time.ts";

const scratch = makeScratch("odd-lives");
const key = "agent:main:main";
let files = 0;
let ms = Date.UTC(2026, 10, 15, 9);
const clock = { now: (): Timestamp => new Date((ms += 7)).toISOString() as Timestamp };

interface World {
  readonly runtime: Runtime;
  readonly host: ScriptedOpenClaw;
  /** Makes the host's calls for one turn, optionally with other transcripts. */
  engine(read?: ReadTranscript): ContextEngine;
  /** Makes the host's transcripts unreadable, or readable again. */
  hide(isHidden: boolean): void;
  store(): Promise<Store>;
}

interface WorldOptions {
  /** By default a turn waits as long as it takes, so that tests do not depend on the machine's speed. */
  readonly patienceMs?: number;
  readonly config?: Readonly<Record<string, unknown>>;
  /** Wraps the opening of the store. */
  readonly opens?: (open: () => Promise<Store>) => Promise<Store>;
}

async function inWorld(work: (world: World) => Promise<void>, options: WorldOptions = {}): Promise<void> {
  const { patienceMs = 1_000_000_000, config = {}, opens = async (open) => await open() } = options;
  const path = join(scratch, `${++files}.db`);
  let isHidden = false;
  const quiet = (): void => undefined;
  const runtime = runtimeOf({
    path,
    settings: resolveSettings({ env: {}, config }),
    clock,
    patienceMs,
    logger: { info: quiet, warn: quiet, error: quiet },
    openStore: async () => await opens(async () => await openSqlite({ path, housekeeping: false })),
    templates: async () => await Promise.resolve(builtInTemplates),
  });
  const engine = (read: ReadTranscript): ContextEngine =>
    createEngine({
      id: "lossless-claw",
      version: "0",
      runtime,
      async readTranscript(request) {
        if (isHidden) throw new Error("the transcript is being repaired");
        return await read(request);
      },
      delegateCompaction: async () => await Promise.resolve({ ok: true, compacted: false }),
    });
  const host = createOpenClaw({ engine });
  try {
    await work({
      runtime,
      host,
      engine: (read = host.read) => engine(read),
      hide: (isSo) => void (isHidden = isSo),
      store: async () => (await runtime.open()).store,
    });
  } finally {
    await runtime.close();
  }
}

/** Transcripts by session id, read as the host does: a cursor is valid in one session only. */
const readerOf =
  (sessions: ReadonlyMap<string, readonly JsonObject[]>): ReadTranscript =>
  async ({ sessionId, cursor = `${sessionId}#0`, maxEvents = 1_000 }) => {
    await Promise.resolve();
    const rows = sessions.get(sessionId);
    if (rows === undefined) return { kind: "missing" };
    const [session, place] = cursor.split("#");
    if (session !== sessionId) return { kind: "reset", cursor: `${sessionId}#0` };
    const from = Number(place);
    const events = rows.slice(from, from + maxEvents).map((event, at) => ({ seq: from + at, event }));
    const end = from + events.length;
    return { kind: "page", cursor: `${sessionId}#${end}`, hasMore: end < rows.length, events };
  };

const eventsOf = ({ rows }: Transcript): readonly JsonObject[] => rows.map(({ event }) => event);

let moments = Date.UTC(2026, 10, 15, 6);
const begin = (sessionId: string): Transcript => createTranscript(sessionId, () => (moments += 1_000));

const user = (content: string): HostMessage => ({ role: "user", content });
const assistant = (text: string): HostMessage => ({ role: "assistant", content: [{ type: "text", text }] });

/** Questions and their answers. */
function talk(transcript: Transcript, about: readonly string[]): void {
  for (const each of about) {
    transcript.say(user(`asked of ${each}`));
    transcript.say(assistant(`told of ${each}`));
  }
}

const placeIn = (sessionId: string, sessionKey = key, agentId = "main"): TranscriptPlace => ({
  agentId,
  sessionKey,
  sessionId,
});

const callOf = (place: TranscriptPlace) => ({
  sessionId: place.sessionId,
  sessionKey: place.sessionKey,
  sessionTarget: place,
});

/** Asks for a prompt as the host does, without naming the agent. */
const promptOf = ({ sessionId, sessionKey }: TranscriptPlace, messages: readonly HostMessage[] = []) => ({
  sessionId,
  sessionKey,
  messages,
  tokenBudget: 30_000,
  runtimeSettings: { limits: { maxOutputTokens: 1_000 } },
});

const wordsIn = (messages: readonly HostMessage[] | undefined): string => JSON.stringify(messages ?? []);

const lastPrompt = ({ host }: World): string => wordsIn(host.requests.at(-1)?.assembled);

interface Kept extends Conversation {
  readonly messages: readonly Message[];
}

/** What is stored under a key, the oldest conversation first. */
async function keptOf(world: World, sessionKey = key): Promise<readonly Kept[]> {
  const store = await world.store();
  const family = await store.conversations({ sessionKey, includeHidden: true });
  return await Promise.all(
    family
      .toSorted((a, b) => a.id - b.id)
      .map(async (each) => ({ ...each, messages: await store.messages({ conversation: each.id }) })),
  );
}

const textsOf = (kept: readonly Kept[]): readonly string[] =>
  kept.flatMap(({ messages }) => messages.flatMap(({ parts }) => parts.map(({ text }) => text ?? "")));

/** A prompt shows summaries as they are, and no finer texts in their place. */
const asFolded: WorldOptions = { config: { contextTarget: 0 } };

async function fold(world: World, conversation: ConversationId, count: number, text: string): Promise<void> {
  const store = await world.store();
  const folded = await store.fold(conversation, (await store.context(conversation)).slice(0, count), {
    text,
    tokens: estimateTokens(text),
    level: "normal",
    model: null,
    previousContext: null,
    fileIds: [],
  });
  assert.equal(folded.kind, "written");
}

describe("a session that was adopted or rewound", () => {
  it("continues under another session id without duplicates", async () => {
    await inWorld(async (world) => {
      const { host } = world;
      await host.turn(key, { says: "an old fact", by: "legacy" });
      const store = await world.store();
      const older = await store.open(placeIn("id-of-before"));
      const said = [user("an old fact"), assistant("legacy answer to an old fact")];
      await store.append(
        older.id,
        said.map((raw, at) => ({
          kind: "message",
          message: messageToStore(raw, { key: `older:${at}`, at: clock.now() }),
        })),
      );
      for (const says of ["one", "two", "three"]) await host.turn(key, { says });
      const kept = await keptOf(world);
      assert.ok(kept.length === 1 && kept[0]?.id === older.id);
      assert.deepEqual(textsOf(kept), [
        "an old fact",
        "legacy answer to an old fact",
        ...["one", "two", "three"].flatMap((says) => [says, `answer to ${says}`]),
      ]);
      assert.match(lastPrompt(world), /an old fact.*answer to two/);
    });
  });

  it("is stored once when its rows are copied to another id, and stays folded", async () => {
    await inWorld(async (world) => {
      const transcript = begin("s1");
      talk(transcript, ["what was before"]);
      transcript.reset("new");
      talk(transcript, ["one", "two", "three", "four"]);
      const sessions = new Map([["s1", eventsOf(transcript)]]);
      await world.engine(readerOf(sessions)).bootstrap(callOf(placeIn("s1")));
      const before = await keptOf(world);
      assert.equal(before.length, 2);
      await fold(world, before[1]?.id ?? assert.fail("the reset began it"), 4, "in short, one and two");

      const target = transcript.rows.findLast(({ event }) => wordsIn([event]).includes("told of three"))?.id ?? "";
      transcript.note({ type: "leaf", targetId: target });
      sessions.set("s2", eventsOf(transcript));
      sessions.delete("s1");
      const engine = world.engine(readerOf(sessions));
      await engine.bootstrap(callOf(placeIn("s2")));
      const { messages } = await engine.assemble(promptOf(placeIn("s2")));
      const kept = await keptOf(world);
      assert.deepEqual(textsOf(kept), textsOf(before));
      assert.deepEqual(
        kept.map(({ id, sessionId }) => [id, sessionId]),
        before.map(({ id }) => [id, "s2"]),
      );
      assert.match(wordsIn(messages), /in short, one and two.*asked of three.*told of three/);
      assert.doesNotMatch(wordsIn(messages), /asked of (?:one|two|four|what)/);
    }, asFolded);
  });

  it("shows nothing of an abandoned branch in the next prompt", async () => {
    await inWorld(async (world) => {
      const transcript = begin("s1");
      talk(transcript, ["the right thing", "the wrong thing"]);
      const sessions = new Map([["s1", eventsOf(transcript)]]);
      await world.engine(readerOf(sessions)).bootstrap(callOf(placeIn("s1")));
      transcript.note({ type: "leaf", targetId: "s1-2" });
      sessions.set("s1", eventsOf(transcript));
      const engine = world.engine(readerOf(sessions));
      await engine.bootstrap(callOf(placeIn("s1")));
      const { messages } = await engine.assemble(promptOf(placeIn("s1")));
      assert.match(wordsIn(messages), /told of the right thing/);
      assert.doesNotMatch(wordsIn(messages), /wrong/);
      assert.equal(textsOf(await keptOf(world)).length, 4);
    });
  });
});

describe("guarantee 14: the live turn appears exactly once, when it resumes a turn that a kill cut short", () => {
  const place = placeIn("s1");
  const said = "asked of the cranes";
  const isShown = ({ messages }: { readonly messages: readonly HostMessage[] }): boolean =>
    wordsIn(messages).includes(said);
  const killed = (): Transcript => {
    const transcript = begin("s1");
    talk(transcript, ["the ships"]);
    transcript.say(user(said));
    return transcript;
  };
  const before = [user("asked of the ships"), assistant("told of the ships")];

  it("leaves the text to the prompt that the host moved it into, in every request of the turn", async () => {
    await inWorld(async (world) => {
      const engine = world.engine(readerOf(new Map([["s1", eventsOf(killed())]])));
      await engine.bootstrap(callOf(place));
      const prompt = `[Queued user message]\n${said}\n\nStill there?`;
      const first = await engine.assemble({ ...promptOf(place, before), prompt });
      assert.match(wordsIn(first.messages), /told of the ships/);
      assert.equal(isShown(first), false);
      const loop = { ...promptOf(place, first.messages), runtimeSettings: { limits: { maxOutputTokens: null } } };
      assert.equal(isShown(await engine.assemble(loop)), false);
      const shorter = await engine.assemble({ ...loop, tokenBudget: 12_000 });
      assert.equal(isShown(shorter), false);
      assert.deepEqual(shorter.messages, first.messages);
    });
  });

  it("shows once what the host joined with it, across an empty answer, when the turn is retried", async () => {
    await inWorld(async (world) => {
      const transcript = killed();
      transcript.say({ role: "assistant", content: [{ type: "text", text: "" }], stopReason: "stop" });
      const engine = world.engine(readerOf(new Map([["s1", eventsOf(transcript)]])));
      await engine.bootstrap(callOf(place));
      const first = await engine.assemble({ ...promptOf(place, [...before, user(said)]), prompt: "Still there?" });
      assert.equal(wordsIn(first.messages).split(said).length, 2);
      const joined = [...before, user(`${said}\n\nStill there?`)];
      const again = await engine.assemble({ ...promptOf(place, joined), prompt: "Please go on." });
      assert.equal(wordsIn(again.messages).split(said).length, 2);
      assert.match(wordsIn(again.messages), /told of the ships.*asked of the cranes.*Still there/);
    });
  });

  it("shows the text if the host does, or if the prompt is about something else", async () => {
    await inWorld(async (world) => {
      const read = readerOf(new Map([["s1", eventsOf(killed())]]));
      for (const call of [
        { ...promptOf(place, [...before, user(said)]), prompt: said },
        { ...promptOf(place, before), prompt: "Still there?" },
      ]) {
        const engine = world.engine(read);
        await engine.bootstrap(callOf(place));
        assert.equal(isShown(await engine.assemble(call)), true);
      }
    });
  });
});

describe("a session that must not be stored", () => {
  for (const name of ["dashboard", "subagent", "internal-session-effects"]) {
    it(`stores nothing if it is incognito (${name})`, async () => {
      await inWorld(async (world) => {
        const incognito = `agent:main:${name}:incognito-7f3a`;
        await world.host.turn(incognito, { says: "between us" });
        await world.host.turn(incognito, { says: "this too" });
        await world.host.standalone(incognito, { says: "and this" });
        await world.host.compact(incognito);
        assert.deepEqual(await keptOf(world, incognito), []);
      });
    });
  }
});

describe("a run without a transcript", () => {
  it("does not drop equal messages of the session", async () => {
    await inWorld(async (world) => {
      const { host } = world;
      for (const says of ["ping", "an important fact", "ping"]) await host.turn(key, { says, by: "legacy" });
      await host.standalone(key, { says: "ping" });
      await host.turn(key, { says: "what was the fact?" });
      const messages = (await keptOf(world)).flatMap((each) => each.messages);
      const rows = messages.filter((message) => message.key.startsWith("s1-"));
      assert.deepEqual(
        rows.map((message) => [message.key, message.aside]),
        [1, 2, 3, 4, 5, 6, 7, 8].map((number) => [`s1-${number}`, null]),
      );
      assert.match(lastPrompt(world), /an important fact/);
    });
  });

  it("does not wait for a store that hangs, and is stored once it answers", async () => {
    const opened = Promise.withResolvers<undefined>();
    const opens = async (open: () => Promise<Store>): Promise<Store> => {
      await opened.promise;
      return await open();
    };
    await inWorld(
      async (world) => {
        const tooLong = setTimeout(() => opened.reject(new Error("the run waits for the store")), 30_000);
        await world.host.standalone(key, { says: "ping" });
        clearTimeout(tooLong);
        opened.resolve(undefined);
        await world.runtime.inOrder(key, async () => await Promise.resolve());
        assert.deepEqual(textsOf(await keptOf(world)), ["ping", "answer to ping"]);
      },
      { opens, patienceMs: 5 },
    );
  });

  it("continues when the store fails, and the problem is recorded", async () => {
    await inWorld(
      async (world) => {
        await world.host.standalone(key, { says: "ping" });
        const noted = world.runtime.troubles.filter(({ doing }) => doing === `storing a run of ${key}`);
        assert.ok(noted.length > 0 && noted.every(({ message }) => message.includes("the process is gone")));
      },
      { opens: async (open) => dyingStore(await open(), 1, "before") },
    );
  });
});

describe("a session that was deleted", () => {
  it("is not continued by its successor, even without a transcript", async () => {
    await inWorld(async (world) => {
      const { host, runtime } = world;
      await host.standalone(key, { says: "an old secret" });
      const sessionId = (await keptOf(world))[0]?.sessionId ?? assert.fail("the run is stored");
      await hideDeleted(runtime, { sessionKey: key, sessionId, reason: "deleted" }, { agentId: "main" });
      for (const says of ["one", "two"]) await host.turn(key, { says });
      const [old, next, ...more] = await keptOf(world);
      assert.ok(old !== undefined && next !== undefined && more.length === 0);
      assert.deepEqual(textsOf([old]), ["an old secret", "answer to an old secret"]);
      assert.deepEqual(textsOf([next]), ["one", "answer to one", "two", "answer to two"]);
      assert.deepEqual([old.hidden, next.hidden], [true, false]);
      assert.doesNotMatch(lastPrompt(world), /secret/);
    });
  });

  it("keeps a queued turn, which its successor does not get", async () => {
    await inWorld(async (world) => {
      const { host } = world;
      await host.turn(key, { says: "old one" });
      world.hide(true);
      assert.equal((await host.turn(key, { says: "old two" })).commit, "queued");
      world.hide(false);
      host.delete(key);
      await host.turn(key, { says: "new one" });
      assert.equal(await host.commitAgain(1), "committed");
      await host.turn(key, { says: "new two" });
      const [old, next, ...more] = await keptOf(world);
      assert.ok(old !== undefined && next !== undefined && more.length === 0);
      assert.deepEqual(textsOf([old]), ["old one", "answer to old one", "old two", "answer to old two"]);
      assert.deepEqual(textsOf([next]), ["new one", "answer to new one", "new two", "answer to new two"]);
      assert.doesNotMatch(lastPrompt(world), /old/);
    });
  });
});

describe("a prompt", () => {
  it("contains the live question and its result when a turn is retried with a shorter history", async () => {
    await inWorld(async (world) => {
      const numbers = ["0", "1", "2", "3", "4", "5"];
      for (const number of numbers) await world.host.turn(key, { says: `q${number}` });
      const place = world.host.placeOf(key);
      const engine = world.engine();
      await engine.bootstrap(callOf(place));
      const view = numbers.flatMap((number) => [user(`q${number}`), assistant(`answer to q${number}`)]);
      await engine.assemble(promptOf(place, view));
      const overflow = { compactionTarget: "budget" as const, force: true, tokenBudget: 30_000 };
      await engine.compact({ ...callOf(place), ...overflow, currentTokenCount: 30_001 });
      await engine.bootstrap(callOf(place));
      const live = [
        user("the live question"),
        { role: "assistant", content: [{ type: "toolCall", id: "c1", name: "read", arguments: {} }] },
        { role: "toolResult", toolCallId: "c1", content: [{ type: "text", text: "the live result" }] },
      ];
      // The host limits its history to this many questions, so the live one displaces others.
      const { messages } = await engine.assemble(promptOf(place, [...view.slice(6), ...live]));
      assert.deepEqual(messages.slice(-3), live);
      const said = wordsIn(messages);
      for (const number of numbers) assert.equal(said.split(`"answer to q${number}"`).length, 2);
    });
  });

  it("that was rejected with finer texts gets smaller although nothing is folded, and stays so", async () => {
    await inWorld(async (world) => {
      const transcript = begin("s1");
      talk(
        transcript,
        ["one", "two", "three", "four"].map((word) => `${word} ${"of many words ".repeat(40)}`),
      );
      const reader = readerOf(new Map([["s1", eventsOf(transcript)]]));
      const engine = world.engine(reader);
      await engine.bootstrap(callOf(placeIn("s1")));
      const [kept] = await keptOf(world);
      await fold(world, kept?.id ?? assert.fail("it was stored"), 6, "in short, one to three");
      const prompt = async () => wordsIn((await world.engine(reader).assemble(promptOf(placeIn("s1")))).messages);
      assert.match(await prompt(), /asked of one[^]*told of four/);
      const overflow = { compactionTarget: "budget" as const, force: true, tokenBudget: 30_000 };
      const answer = await engine.compact({ ...callOf(placeIn("s1")), ...overflow, currentTokenCount: 30_001 });
      const { tokensBefore = 0, tokensAfter = 0 } = answer.result ?? {};
      assert.deepEqual([answer.ok, answer.compacted, tokensAfter < tokensBefore], [true, true, true]);
      assert.equal((await (await world.store()).summaries({ conversation: kept?.id ?? assert.fail() })).length, 1);
      assert.match(await prompt(), /in short, one to three[^]*told of four/);
      assert.doesNotMatch(await prompt(), /asked of one/);
    });
  });

  it("belongs to the agent that the turn began for, if the key does not name it", async () => {
    await inWorld(async (world) => {
      const sessions = new Map<string, readonly JsonObject[]>();
      const places = ["main", "work"].map((agentId) => placeIn(`s-${agentId}`, "global", agentId));
      for (const { sessionId, agentId } of places) {
        const transcript = begin(sessionId);
        talk(transcript, [`the first matter of ${agentId}`, `the second matter of ${agentId}`]);
        sessions.set(sessionId, eventsOf(transcript));
      }
      for (const place of places) await world.engine(readerOf(sessions)).bootstrap(callOf(place));
      for (const { id, agentId } of await keptOf(world, "global")) await fold(world, id, 2, `summary of ${agentId}`);
      for (const place of places) {
        const engine = world.engine(readerOf(sessions));
        await engine.bootstrap(callOf(place));
        const { messages } = await engine.assemble(promptOf(place, [user("the host's own view")]));
        const { agentId } = place;
        assert.match(wordsIn(messages), new RegExp(`summary of ${agentId}.*told of the second matter of ${agentId}`));
        assert.doesNotMatch(wordsIn(messages), agentId === "main" ? /of work/ : /of main/);
      }
    }, asFolded);
  });

  it("is cut from a long history of the host with about as much work as counting it", async () => {
    await inWorld(async (world) => {
      world.hide(true);
      const place = world.host.placeOf(key);
      const messages = Array.from({ length: 40_000 }, (_, at) =>
        at % 2 === 0 ? user(`question ${at}`) : assistant(`answer ${at}`),
      );
      const spentWithin = async (tokenBudget: number): Promise<number> => {
        const engine = world.engine();
        await engine.bootstrap(callOf(place));
        const before = process.threadCpuUsage();
        const shown = await engine.assemble({ ...promptOf(place, messages), tokenBudget });
        const { user: spent } = process.threadCpuUsage(before);
        assert.equal(shown.messages.length < messages.length, tokenBudget < 1_000_000_000);
        return spent;
      };
      const spent: { readonly whole: number; readonly cut: number }[] = [];
      for (let time = 0; time < 5; time++)
        spent.push({ whole: await spentWithin(1_000_000_000), cut: await spentWithin(30_000) });
      const whole = Math.min(...spent.map((each) => each.whole));
      const cut = Math.min(...spent.map((each) => each.cut));
      assert.ok(cut < 4 * whole, `cutting takes ${(cut / whole).toFixed(1)} times the work of counting`);
    });
  });
});

describe("the plugin", () => {
  it("reports a row that is larger than the host returns", async () => {
    await inWorld(async (world) => {
      await world.host.turn(key, { says: "one" });
      const place = world.host.placeOf(key);
      const engine = world.engine(async ({ cursor = "" }) => {
        await Promise.resolve();
        return { kind: "page", cursor, hasMore: true, events: [], requiredBytes: 70_000_000 };
      });
      const { bootstrapped, reason } = await engine.bootstrap(callOf(place));
      assert.equal(bootstrapped, false);
      assert.match(reason ?? "", /70000000 bytes/);
      assert.equal(world.runtime.troubles.at(-1)?.message, reason);
    });
  });

  it("keeps the budgets of two agents with the same session key apart", async () => {
    await inWorld(async (world) => {
      const sessions = new Map<string, readonly JsonObject[]>();
      const [main, work] = [placeIn("s-main", "global", "main"), placeIn("s-work", "global", "work")];
      for (const { sessionId } of [main, work]) {
        const transcript = begin(sessionId);
        talk(transcript, ["something"]);
        sessions.set(sessionId, eventsOf(transcript));
      }
      for (const place of [main, work]) await world.engine(readerOf(sessions)).bootstrap(callOf(place));
      const engine = world.engine(readerOf(sessions));
      await engine.bootstrap(callOf(main));
      await engine.assemble(promptOf(main));
      const runtimeContext = { allowDeferredCompactionExecution: true };
      for (const place of [main, work]) await engine.maintain({ ...callOf(place), runtimeContext });
      const budgets = new Map((await keptOf(world, "global")).map((each) => [each.agentId, each.promptBudget]));
      assert.equal(typeof budgets.get("main"), "number");
      assert.equal(budgets.get("work"), null);
    });
  });

  it("finds the session of a command without a session id", async () => {
    await inWorld(async (world) => {
      await world.host.turn(key, { says: "one" });
      const asked = { agentId: "main", sessionKey: key, args: "status" };
      const { text } = await runCommand(world.runtime, world.host.read, asked);
      const { sessionId } = world.host.placeOf(key);
      assert.equal(text, (await runCommand(world.runtime, world.host.read, { ...asked, sessionId })).text);
      assert.doesNotMatch(text, /nothing is stored/i);
    });
  });

  it("shows the current state of a session that was just reset, and does not store a running turn", async () => {
    await inWorld(async (world) => {
      for (const says of ["one", "two"]) await world.host.turn(key, { says });
      const tell = async (args: string): Promise<string> => {
        const call = { ...world.host.placeOf(key), args };
        return (await runCommand(world.runtime, world.host.read, call)).text;
      };
      assert.match(await tell("status"), /\n- 4 messages stored\n/);
      world.host.slash(key, "/before");
      for (const reason of ["new", "reset"] as const) world.host.reset(key, reason);
      world.host.slash(key, "/after");
      const now = await tell("status");
      assert.match(now, /\n- 0 messages stored, and 6 in 2 earlier segments\n/);
      assert.match(now, /Prompt: about 0 of /);
      assert.match(await tell("compact"), /^Nothing/);
      assert.equal(await tell("status"), now);
      await world.host.turn(key, { says: "three" });
      assert.match(await tell("status"), /\n- 4 messages stored, and 6 in 2 earlier segments\n/);
    });
  });

  it("can be closed while opening fails", async () => {
    const opens = async (): Promise<Store> => await Promise.reject(new Error("the database is locked away"));
    const work = async ({ runtime }: World): Promise<void> => {
      const opening = assert.rejects(runtime.open(), /locked away/);
      await runtime.close();
      await opening;
    };
    await inWorld(work, { opens });
  });
});
