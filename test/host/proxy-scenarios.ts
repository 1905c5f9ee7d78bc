/**
 * The real coding agents through `lcm proxy`, before a provider that refuses what the real ones refuse: thirty turns with
 * tools, pictures, thoughts and a sub-agent, with a rewind, a fork, a compaction by the user, a provider that dies in the
 * middle of an answer, and the proxy killed in the middle of another. The same turns with a proxy that only stores are the
 * control: there the agent compacts by itself.
 */

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, it } from "node:test";
import type { Json } from "../../src/core/base/json.ts";
import { messageFromStore } from "../../src/core/messages/codec.ts";
import { comparable, isTelling, saidIn } from "../../src/core/messages/said.ts";
import { resolveSettings } from "../../src/core/model/settings.ts";
import { storeTranscript, type CompanionHost } from "../../src/hosts/shared/companion.ts";
import type { RowFormat } from "../../src/hosts/shared/rows/row-format.ts";
import { systemNow } from "../../src/store/sqlite/store.ts";
import type { StrictRequest, WireName } from "../support/strict-provider.ts";
import { startProxyProcess, type ProxyProcess } from "./proxy-process.ts";
import { recordFrom } from "./record-bodies.ts";

/** An agent as a person uses it. Each verb ends when the agent waits for its user again. */
export interface DrivenAgent {
  prompt(text: string): Promise<void>;
  /** A prompt with a picture, or one that makes the agent open one. */
  show(text: string): Promise<void>;
  /** Takes the last prompt back and says this instead. */
  rewind(text: string): Promise<void>;
  /** The program ends, and another one goes on with the session. */
  resume(): Promise<void>;
  /** Says this in another session that begins as this one. */
  fork(text: string): Promise<void>;
  compact(): Promise<void>;
  /** What its own records say, session by session; those of sub-agents, too. */
  records(): readonly AgentRecord[];
  /** How often it has compacted the main session, whoever asked for it. */
  compactions(): number;
  close(): Promise<void>;
}

export interface AgentRecord {
  /** Null if the agent does not send it to its model. */
  readonly sessionId: string | null;
  readonly rows: readonly Json[];
  /** The session whose rows come before these; undefined if they are all there are. */
  readonly beginsAs?: string | undefined;
  /** Whether it repeats the rows of another session, of which its model may see only a summary. */
  readonly isCopy?: boolean;
  /** Its files, if a companion reads them. */
  readonly transcripts?: readonly string[];
}

export interface HostUnderTest {
  readonly name: string;
  readonly wire: WireName;
  readonly rows: RowFormat;
  readonly companion?: CompanionHost;
  /** Prompts for the scripted model that make it call a tool. */
  readonly shell: (command: string) => string;
  /** Null if the agent has none. */
  readonly subagent: ((task: string) => string) | null;
  readonly start: (base: string) => Promise<DrivenAgent>;
}

/** Below the size at which the agents are told to compact. */
const tokensMax = 60_000;

export function describeProxied(host: HostUnderTest): void {
  if (process.env["BODIES"] === "write")
    return void it(`writes down what ${host.name} sends`, async () => {
      await withProxy(null, async (proxy) => {
        const write = recordFrom(proxy.provider, host.wire);
        await thirtyTurns(host, proxy, { words: 40, lines: 40 });
        write(host.name.toLowerCase().replace(" ", "-"));
      });
    });
  describe(`${host.name} through the proxy`, () => {
    it("compacts by itself if its requests are only stored", async () => {
      const { own, figures } = await withProxy(null, async (proxy) => await thirtyTurns(host, proxy));
      print(host, "without replacement", figures);
      assert.ok(own > 0, "it never compacted");
    });

    it("never compacts, is never refused, and the store equals its transcript", async () => {
      const { own, figures, replaced, undone } = await withProxy(
        tokensMax,
        async (proxy) => await thirtyTurns(host, proxy),
      );
      print(host, "with replacement", figures);
      assert.equal(own, 0, "it compacted by itself");
      assert.ok(replaced > 0, "nothing was replaced");
      assert.match(undone, /<summary id=/, "its compaction was not undone");
    });
  });
}

async function withProxy<T>(tokens: number | null, use: (proxy: ProxyProcess) => Promise<T>): Promise<T> {
  const proxy = await startProxyProcess(tokens);
  try {
    return await use(proxy);
  } finally {
    await proxy.close();
  }
}

interface Outcome {
  /** Compactions that nobody asked for. */
  readonly own: number;
  readonly figures: Figures;
  /** Requests with summaries in them. */
  readonly replaced: number;
  /** The first request behind the compaction that the user asked for. */
  readonly undone: string;
}

/** How long answers and the results of tools are. */
interface Sizes {
  readonly words: number;
  readonly lines: number;
}

const large: Sizes = { words: 1_800, lines: 2_200 };

async function thirtyTurns(host: HostUnderTest, proxy: ProxyProcess, sizes = large): Promise<Outcome> {
  const { provider } = proxy;
  const agent = await host.start(proxy.base);
  try {
    let [byUser, undoneAt] = [0, 0];
    for (let turn = 0; turn < 30; turn++) {
      const big = `turn ${turn}: ${turn % 4 === 0 ? "THINK " : ""}BIG ${sizes.words}`;
      if (turn === 5 || turn === 18) await agent.show(`turn ${turn}, a picture:`);
      else if (turn === 9) await agent.rewind(`turn ${turn}, said differently: BIG 300`);
      else if (turn === 11 && host.subagent !== null) await agent.prompt(host.subagent("a small task: BIG 20"));
      else if (turn === 13) await killedInside(proxy, agent.prompt(big));
      else if (turn % 3 === 1)
        await agent.prompt(
          `turn ${turn}: THINK ${host.shell(`seq ${turn} ${sizes.lines}`)}${turn % 2 === 0 ? " TWICE" : ""}`,
        );
      else await agent.prompt(big);
      if (turn === 14) provider.faults.push({ kind: "die" });
      if (turn === 16) await agent.resume();
      if (turn === 22) await agent.fork("in a fork: BIG 30");
      if (turn === 25) {
        await agent.compact();
        [byUser, undoneAt] = [byUser + 1, provider.requests.length];
      }
      if (turn % 8 === 7) await runCompanion(host, proxy, agent);
    }
    const compactions = agent.compactions();
    await proxy.stop();
    assert.deepEqual(
      provider.requests.flatMap(({ violations }) => violations),
      [],
    );
    await assertStored(host, proxy, agent);
    const isTurn = ({ body }: StrictRequest): boolean => (body.tools ?? []).length > 0;
    return {
      own: compactions - byUser,
      figures: figuresOf(host.wire, provider.requests.filter(isTurn)),
      replaced: provider.requests.filter(({ raw }) => raw.includes("<summary id=")).length,
      undone: provider.requests.slice(undoneAt).find(isTurn)?.raw ?? "",
    };
  } finally {
    await agent.close();
  }
}

/** Kills the proxy while it passes an answer on. */
async function killedInside(proxy: ProxyProcess, prompt: Promise<void>): Promise<void> {
  const { requests, faults } = proxy.provider;
  faults.push({ kind: "slow", ms: 400 });
  for (const asked = requests.length; requests.length === asked;) await sleep(10);
  await sleep(800);
  await proxy.replace();
  await prompt;
}

/** What a companion, or an import, does beside the proxy: it stores what transcripts have gained. */
async function runCompanion({ companion }: HostUnderTest, proxy: ProxyProcess, agent: DrivenAgent): Promise<void> {
  if (companion === undefined) return;
  const problems: string[] = [];
  await proxy.withLcm(async ({ store }) => {
    const onProblem = (doing: string, error: unknown): void => void problems.push(`${doing}: ${String(error)}`);
    const deps = {
      store,
      clock: { now: systemNow },
      settings: resolveSettings({ env: {}, config: {} }).values,
      onProblem,
    };
    for (const { transcripts = [] } of agent.records())
      for (const transcript of transcripts) await storeTranscript(deps, companion, transcript);
  });
  assert.deepEqual(problems, []);
}

async function assertStored(host: HostUnderTest, proxy: ProxyProcess, agent: DrivenAgent): Promise<void> {
  await proxy.withLcm(async (lcm) => {
    const records = agent.records();
    for (const { sessionId, rows, beginsAs, isCopy = false } of records) {
      const conversations = await lcm.store.conversations(sessionId === null ? {} : { sessionId });
      const lists = await Promise.all(conversations.map(({ id }) => lcm.store.messages({ conversation: id })));
      const stored = lists
        .flat()
        .filter(({ aside }) => aside !== "note")
        .flatMap((message) => saidIn(messageFromStore(message)).filter(isTelling).map(comparable));
      const told = piecesIn(host.rows, rows);
      const before = records.filter((record) => record.sessionId === beginsAs).flatMap((record) => record.rows);
      const cut = (piece: string): string => piece.slice(0, 200);
      const own = isCopy ? told.filter((piece) => piece.includes("in a fork")) : told;
      assert.deepEqual(missing(stored, own).map(cut), [], `not stored of ${sessionId}`);
      // Of what a copy repeats, its model may be shown a summary. That is then all there is of its past.
      const past = isCopy ? stored.filter((piece) => shownForPast.test(piece)).slice(0, 2) : [];
      assert.deepEqual(
        missing([...told, ...past, ...piecesIn(host.rows, before)], stored).map(cut),
        [],
        `stored of ${sessionId}, but not said`,
      );
    }
    const findings = await lcm.inspect(null);
    assert.deepEqual(
      findings.filter(({ severity }) => severity !== "info"),
      [],
    );
  });
}

/** What OpenCode shows its model in the place of what it has compacted, with a summary by the scripted provider. */
const shownForPast = /^(?:user\nWhat did we do so far\?|assistant\nSummary \d+ of )/;

/** What a record says to the model, as comparable pieces; notes and rows of the host's own are left out. */
function piecesIn(format: RowFormat, rows: readonly Json[]): readonly string[] {
  const reader = format.createReader();
  return rows.flatMap((row, at) => {
    const read = reader.read(row, at + 1, systemNow());
    if (read.kind !== "item" || read.item.kind !== "message" || read.item.aside !== undefined) return [];
    return saidIn(read.item.message).filter(isTelling).map(comparable);
  });
}

/** What one list has and the other lacks. */
export function missing(from: readonly string[], of: readonly string[]): readonly string[] {
  const left = [...from];
  return of.filter((piece) => {
    const at = left.indexOf(piece);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

// ── Figures ──────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Figures {
  readonly requests: number;
  readonly tokens: number;
  readonly tokensMost: number;
  /** Of the messages, the share that the request before of the same session began with. */
  readonly prefixKept: number;
  /** Of everything, the share that the provider's cache would have read. */
  readonly cacheRead: number;
}

function figuresOf(wire: WireName, requests: readonly StrictRequest[]): Figures {
  const before = new Map<string, string>();
  let [kept, all] = [0, 0];
  for (const { body, headers } of requests) {
    const session = ["x-claude-code-session-id", "x-claude-code-agent-id", "thread-id", "x-session-id"]
      .map((name) => headers[name] ?? "")
      .join();
    const text = JSON.stringify(wire === "responses" ? body.input : body.messages, (field, value) =>
      field === "cache_control" ? undefined : value,
    );
    const last = before.get(session);
    before.set(session, text);
    if (last === undefined) continue;
    all += text.length;
    let same = 0;
    while (same < text.length && text[same] === last[same]) same++;
    kept += same;
  }
  const sum = (of: (request: StrictRequest) => number): number => requests.reduce((total, each) => total + of(each), 0);
  return {
    requests: requests.length,
    tokens: sum(({ tokens }) => tokens),
    tokensMost: Math.max(...requests.map(({ tokens }) => tokens)),
    prefixKept: kept / all,
    cacheRead: sum(({ cached }) => cached) / sum(({ total }) => total),
  };
}

function print({ name }: HostUnderTest, how: string, figures: Figures): void {
  const { requests, tokens, tokensMost, prefixKept, cacheRead } = figures;
  const share = (of: number): string => `${(100 * of).toFixed(1)}%`;
  process.stdout.write(
    `${name} ${how}: ${requests} requests, ${tokens} tokens, at most ${tokensMost}; prefix kept ${share(prefixKept)}, cache read ${share(cacheRead)}\n`,
  );
}
