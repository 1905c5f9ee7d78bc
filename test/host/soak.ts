/**
 * Runs the real gateway with our plugin under stress for an hour: `npm run soak [-- [--json FILE] [minutes] [seed]]`.
 * The model misbehaves, a second process uses the same database, the gateway is stopped and killed every few minutes,
 * and several sessions talk all the time. Each request to the model is checked; every few minutes everything pauses,
 * and the store is compared with the host's own transcripts. See docs/soak.md.
 */

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { createRandom } from "../support/random.ts";
import type { Random } from "../support/random.ts";
import { makeScratch } from "../support/scratch.ts";
import { models, startGateway } from "./gateway.ts";
import type { Gateway } from "./gateway.ts";
import { startModelServer } from "./model-server.ts";
import { recordedPlugin } from "./plugin.ts";
import { createLedger } from "./soak/ledger.ts";
import type { Ledger } from "./soak/ledger.ts";
import { byDesign, faultsIn, importedSession, startNeighbour } from "./soak/neighbour.ts";
import type { Neighbour } from "./soak/neighbour.ts";
import { readEngine, reportOf } from "./soak/report.ts";
import type { Sample } from "./soak/report.ts";
import { createWeather, prose, turnMark, wish } from "./soak/weather.ts";
import type { Weather } from "./soak/weather.ts";
import { assertStored, hasStore, withStore } from "./stored.ts";

const contextWindow = 64_000;
/** Small, so that an hour folds as much as months would; the ceiling is reached now and then. */
const settings = {
  freshTailCount: 6,
  leafChunkTokens: 1_500,
  leafTargetTokens: 200,
  condensedTargetTokens: 300,
  leafMinFanout: 4,
  condensedMinFanout: 3,
  incrementalMaxDepth: 1,
  contextThreshold: 0.6,
  largeFileTokenThreshold: 6_000,
  newSessionRetainDepth: 1,
  summaryTimeoutSeconds: 5,
  spendCeilingCalls: 40,
  spendWindowMinutes: 5,
};
const asVariables = Object.fromEntries(
  Object.entries(settings).map(([key, value]) => [
    `LCM_${key.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`,
    String(value),
  ]),
);

/** Left out of the record of engine calls. */
const longArguments =
  "config messages prompt runtimeContext systemPromptAddition sessionTarget availableTools admission terminal".split(
    " ",
  );

/** A session that talks, by its style. */
interface Speaker {
  readonly key: string;
  readonly name: string;
  readonly does: Readonly<Record<Act, number>>;
}

const acts = ["say", "look up", "weigh", "show", "command", "begin anew", "spawn", "give up"] as const;
type Act = (typeof acts)[number];

const usual = { say: 50, "look up": 30, weigh: 4, show: 2, command: 6, "begin anew": 1, spawn: 1, "give up": 3 };
const speakers: readonly Speaker[] = [
  { key: "agent:main:talk", name: "talk", does: usual },
  { key: "agent:second:notes", name: "notes", does: usual },
  { key: "agent:main:heavy", name: "heavy", does: { ...usual, weigh: 40, show: 25, spawn: 0 } },
  { key: "agent:main:parent", name: "parent", does: { ...usual, spawn: 25 } },
];

/** A red dot; the picture does not matter here. */
const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAAAABJRU5ErkJggg==";
const cjk = "東京の港では毎朝、船が荷物を下ろしている。北京的图书馆藏书很多。서울의 아침은 조용하다. ";
const tools = ["lcm_grep", "lcm_grep", "lcm_describe", "lcm_recent", "lcm_expand_query", "read", "exec"];

/** Lets many through while open; closing waits for those inside. */
function createGate() {
  let closed: PromiseWithResolvers<void> | null = null;
  const inside = new Set<Promise<void>>();
  return {
    async pass(work: () => Promise<void>): Promise<void> {
      const mine = closed === null ? work() : closed.promise.then(work);
      inside.add(mine);
      await mine.finally(() => inside.delete(mine));
    },
    async close(): Promise<void> {
      closed ??= Promise.withResolvers<void>();
      await Promise.allSettled(inside);
    },
    open(): void {
      closed?.resolve();
      closed = null;
    },
  };
}

interface World {
  readonly gateway: Gateway;
  readonly ledger: Ledger;
  readonly weather: Weather;
  readonly neighbour: Neighbour;
  readonly gate: ReturnType<typeof createGate>;
  /** Whether a gateway accepts messages. */
  isUp: boolean;
  /** The next turn of a speaker. */
  readonly turns: Map<string, number>;
}

/** Whether no promise was broken. */
export async function soak(minutes: number, seed: number): Promise<boolean> {
  const began = performance.now();
  const ledger = createLedger();
  const server = await startModelServer();
  const weather = createWeather(createRandom(seed * 100), ledger, contextWindow, (key) => gateway.transcript(key));
  server.script(weather.reply);
  const recorded = recordedPlugin(makeScratch("soak"), settings, {}, longArguments);
  const { openai, anthropic } = models;
  const gateway = await startGateway({
    server,
    plugins: recorded.plugins,
    contextWindow,
    config: {
      agents: {
        defaults: {
          model: { primary: openai },
          models: { [openai]: {}, [anthropic]: {} },
          compaction: { timeoutSeconds: 30 },
        },
        entries: { main: { default: true }, second: {} },
      },
      tools: { toolSearch: false },
    },
  });
  furnish(gateway);
  const neighbour = await startNeighbour({
    gateway,
    random: createRandom(seed * 100 + 1),
    ledger,
    settings: asVariables,
  });
  const world: World = { gateway, ledger, weather, neighbour, gate: createGate(), isUp: true, turns: new Map() };
  const until = performance.now() + minutes * 60_000;
  const over = new AbortController();
  say(`seed ${seed}: ${minutes} minutes, after ${Math.round((performance.now() - began) / 1000)} s of start-up`);

  const samples: Sample[] = [];
  const watching = watch(world, samples, over.signal, () => server.forget());
  const talking = speakers.map(
    async (speaker, at) => await talk(world, speaker, createRandom(seed * 100 + 10 + at), over.signal),
  );
  await trouble(world, createRandom(seed * 100 + 2), until, minutes);
  over.abort();
  world.gate.open();
  await Promise.all([...talking, watching]);
  await neighbour.close();
  await gateway.stop();
  await checkFile(world);
  const engine = readEngine(recorded.calls(), ledger);
  const report = reportOf({ seed, minutes, settings, contextWindow, ledger, weather, samples, engine, gateway });
  writeFileSync(join(tmpdir(), "soak.json"), `${JSON.stringify(report.json, null, 2)}\n`);
  process.stdout.write(report.text);
  await server.close();
  return ledger.faults.length === 0;
}

const say = (line: string): void => void process.stdout.write(`soak: ${line}\n`);

/** Files to read in the agents' workspaces. */
function furnish({ state }: Gateway): void {
  const random = createRandom(7);
  for (const agent of ["main", "second"]) {
    const folder = join(state, `workspace-${agent}`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "big.txt"), `${prose(random, 12)}\n`.repeat(2_000));
    writeFileSync(join(folder, "cjk.txt"), `${cjk}\n`.repeat(400));
  }
}

// ── Speakers ─────────────────────────────────────────────────────────────────────────────────────────────────────────

async function talk(world: World, speaker: Speaker, random: Random, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    await sleep(random.between(100, 1_500));
    if (!world.isUp) continue;
    await world.gate.pass(async () => {
      if (!over.aborted && world.isUp) await act(world, speaker, random);
    });
  }
}

async function act(world: World, { key, name, does }: Speaker, random: Random): Promise<void> {
  const { gateway, ledger } = world;
  const turn = async (text: string, options: Parameters<Gateway["turn"]>[2] = {}): Promise<void> => {
    const model = random.chance(0.2) ? { model: models.anthropic } : {};
    const { status, text: answer } = await gateway.turn(key, `${nextMark(world, name)} ${text}`, {
      timeoutMs: 90_000,
      ...model,
      ...options,
    });
    if (status === 200) ledger.count("turn answered");
    else ledger.event(`turn ended by ${status}`, answer);
  };
  const command = async (text: string): Promise<void> => {
    ledger.event(`command ${text}`, key);
    await gateway.chat(key, text, 90_000);
  };
  const wanted = (): readonly string[] => Array.from({ length: random.between(1, 4) }, () => random.pick(tools));
  const what = random.weighted(does);
  ledger.count(`act: ${what}`);
  try {
    switch (what) {
      case "say":
        return await turn(
          random.chance(0.1) ? cjk.repeat(random.between(1, 20)) : prose(random, random.between(3, 200)),
        );
      case "look up":
        return await turn(`${prose(random, 20)}${wish(wanted())}`);
      case "weigh": {
        const text = random.pick([prose(random, random.between(500, 6_000)), cjk.repeat(random.between(50, 300))]);
        return await turn(`${text}${wish(random.chance(0.5) ? wanted() : [])}`);
      }
      case "show":
        return await turn(prose(random, 10), { picture: `data:image/png;base64,${pixel}` });
      case "command":
        return await command(random.pick(["/lcm", "/lcm compact", "/lcm doctor", "/lcm status", "/compact"]));
      case "begin anew":
        return await command(random.pick(["/new", "/reset"]));
      case "spawn":
        return await turn(`${prose(random, 10)}${wish(["sessions_spawn"])}`);
      case "give up":
        return await turn(`${prose(random, 30)}${wish(wanted())}`, { timeoutMs: random.between(50, 2_000) });
    }
  } catch (error) {
    // No answer in time, or the gateway ended meanwhile: what is stored of it is checked at the next quiet point.
    ledger.event(
      what === "give up" ? "turn given up" : "turn or command broken off",
      `${key}: ${String(error).slice(0, 120)}`,
    );
  }
}

function nextMark({ turns }: World, name: string): string {
  const turn = (turns.get(name) ?? 0) + 1;
  turns.set(name, turn);
  return turnMark(name, turn);
}

// ── Disturbances ─────────────────────────────────────────────────────────────────────────────────────────────────────

async function trouble(world: World, random: Random, until: number, minutes: number): Promise<void> {
  const { gateway, ledger } = world;
  const [least, most] = minutes < 10 ? [20, 40] : [60, 300];
  while (performance.now() < until) {
    const ms = random.between(least, most) * 1_000;
    await sleep(Math.max(0, Math.min(ms, until - performance.now())));
    const what = random.weighted({ killed: 5, stopped: 3, "left running": 3 });
    ledger.event(`gateway ${what}`);
    if (what !== "left running") {
      world.isUp = false;
      await (what === "killed" ? gateway.kill9() : gateway.stop());
      await sleep(random.below(4_000));
      world.weather.takeChildren();
      await gateway.start({}, "ready");
      world.isUp = true;
      // Sometimes there is much to do at once, and sometimes it is checked just as it was left.
      if (random.chance(0.6)) await sleep(random.between(1_000, 20_000));
    }
    await quiet(world);
  }
}

/** Everything pauses; all messages are stored once, in order and unchanged. */
async function quiet(world: World): Promise<void> {
  const { gateway, ledger, weather, neighbour, gate } = world;
  const began = performance.now();
  weather.setCalm(true);
  await gate.close();
  await neighbour.pause();
  for (const { key, name } of speakers) await answered(world, key, name);
  while (performance.now() - weather.lastAskedMs() < 2_000) await sleep(200);
  const children = weather.takeChildren().filter((key) => gateway.transcript(key).length > 0);
  for (const key of [...speakers.map((speaker) => speaker.key), ...children]) {
    if (gateway.transcript(key).length === 0) continue;
    try {
      const name = speakers.find((speaker) => speaker.key === key)?.name;
      await eventually(async () => await assertStored(gateway, key, byDesign)).catch(async (error: unknown) => {
        // What the host has written by itself since, outside of any turn, comes with the next one.
        if (name === undefined) throw error;
        ledger.event(
          "transcript that needed another turn",
          `${key}: ${gateway.transcript(key).slice(-4).map(kindOf).join(", ")}`,
        );
        await answered(world, key, name);
        await eventually(async () => await assertStored(gateway, key, byDesign));
      });
      ledger.count(children.includes(key) ? "child's transcript compared" : "transcript compared");
    } catch (error) {
      ledger.broken("guarantees 1 to 7: the store has the transcript", error);
    }
  }
  for (const finding of faultsIn((await neighbour.lcm("doctor")).json)) ledger.broken("doctor finds nothing", finding);
  await checkImported(world);
  ledger.event("quiet point", `in ${Math.round((performance.now() - began) / 1000)} s`);
  weather.setCalm(false);
  neighbour.resume();
  gate.open();
}

const kindOf = ({ type, customType, message }: ReturnType<Gateway["transcript"]>[number]): string =>
  [type, customType, message?.role, message?.provider, message?.stopReason].filter(Boolean).join(" ");

/** With a sound model a turn is answered, whatever happened before it. */
async function answered(world: World, key: string, name: string): Promise<void> {
  const { gateway, ledger } = world;
  const attempts = 6;
  let last = "";
  for (let attempt = 0; attempt < attempts; attempt++) {
    try {
      const { status, text } = await gateway.turn(key, `${nextMark(world, name)} still there?`);
      if (status === 200) return;
      last = `${status} ${text}`;
    } catch (error) {
      last = String(error);
    }
    ledger.event("turn of a quiet point not answered", `${key}: ${last.slice(0, 200)}`);
    await sleep(5_000);
  }
  ledger.broken("a sound model gets through", `${key}: ${last}`);
}

/** Waits for something that only needs time. */
async function eventually<T>(check: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + 60_000;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
    await sleep(1_000);
  }
}

async function checkImported({ gateway, ledger, neighbour }: World): Promise<void> {
  const wanted = neighbour.imported();
  if (wanted === 0) return;
  const [held] = await withStore(
    gateway,
    async ({ store }) => await store.conversations({ sessionKey: importedSession, includeHidden: true }),
  );
  if ((held?.totals.messages ?? 0) < wanted)
    ledger.broken("imported messages are stored", `${held?.totals.messages} of ${wanted} messages`);
}

async function checkFile({ gateway, ledger, neighbour }: World): Promise<void> {
  for (const finding of faultsIn((await neighbour.lcm("doctor")).json))
    ledger.broken("doctor finds nothing, at the end", finding);
  const db = new DatabaseSync(join(gateway.state, "lcm.db"), { readOnly: true });
  try {
    const found = db.prepare("PRAGMA integrity_check").all();
    if (found[0]?.["integrity_check"] !== "ok") ledger.broken("the file is sound", JSON.stringify(found.slice(0, 5)));
    const calls = db
      .prepare("SELECT at FROM model_usage ORDER BY at")
      .all()
      .map(({ at }) => Date.parse(String(at)));
    const most = mostWithin(calls, settings.spendWindowMinutes * 60_000);
    for (let call = 0; call < calls.length; call++) ledger.count("model call written down");
    ledger.event(`at most ${most} model calls in a window of ${settings.spendWindowMinutes} minutes`);
    if (most > settings.spendCeilingCalls) ledger.broken("guarantee 20: spend is bounded", `${most} calls in a window`);
  } finally {
    db.close();
  }
}

function mostWithin(times: readonly number[], windowMs: number): number {
  let most = 0;
  for (let first = 0, last = 0; last < times.length; last++) {
    while ((times[last] ?? 0) - (times[first] ?? 0) >= windowMs) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

// ── Watching ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const sampleMs = 5_000;

async function watch(
  { gateway, ledger, turns, weather }: World,
  samples: Sample[],
  over: AbortSignal,
  forget: () => void,
): Promise<void> {
  let nextLine = 60;
  while (!over.aborted) {
    await sleep(sampleMs);
    forget();
    const pid = gateway.pid();
    const database = join(gateway.state, "lcm.db");
    samples.push({
      second: ledger.second(),
      pid,
      rssMb: pid === null ? null : rssMbOf(pid),
      databaseMb: hasStore(gateway) ? statSync(database).size / 2 ** 20 : 0,
      walMb: existsSync(`${database}-wal`) ? statSync(`${database}-wal`).size / 2 ** 20 : 0,
    });
    if (ledger.second() < nextLine) continue;
    nextLine += 60;
    const last = samples.at(-1);
    const said = [...turns.values()].reduce((sum, each) => sum + each, 0);
    say(
      `${Math.round(ledger.second() / 60)} min: ${said} turns, ${weather.requestTokens.length} prompts, ` +
        `${weather.completions()} summaries asked for, ${ledger.counts.get("quiet point") ?? 0} quiet points, ` +
        `gateway ${Math.round(last?.rssMb ?? 0)} MB, database ${last?.databaseMb.toFixed(1)} MB, wal ${last?.walMb.toFixed(1)} MB, ` +
        `${ledger.faults.length} broken`,
    );
  }
}

/**
 * Memory of the largest process in the gateway's group: it is started by a smaller one. Null if all have just ended.
 */
function rssMbOf(group: number): number | null {
  const sizes = readdirSync("/proc").map((pid) => {
    try {
      const [, , , , ofGroup] = readFileSync(`/proc/${pid}/stat`, "utf8").split(" ");
      if (Number(ofGroup) !== group) return 0;
      return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
    } catch {
      return 0; // No process, or one that has just ended.
    }
  });
  return Math.max(...sizes) || null;
}

/** From the command line, within the isolation of run.ts. */
export async function runSoak(words: readonly string[]): Promise<boolean> {
  const [minutes = 60, seed = 1] = words.map(Number);
  assert(minutes > 0 && Number.isInteger(seed), "npm run soak [-- [--json FILE] [minutes] [seed]]");
  return await soak(minutes, seed);
}
