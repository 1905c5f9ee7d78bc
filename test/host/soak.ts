/**
 * Runs the real gateway with our plugin under stress: `npm run soak [-- [--postgres] [--json FILE] [minutes] [seed]]`.
 * The model misbehaves, a second process uses the same database, the gateway is stopped and killed every few minutes,
 * and several sessions talk all the time. Each request to the model is checked; every few minutes everything pauses,
 * and the store is compared with the host's own transcripts. `--postgres` puts the database on a server that fails, too;
 * the real Pi and agents behind the proxy then use it at the same time. See docs/soak.md.
 */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createRandom } from "../support/random.ts";
import type { Random } from "../support/random.ts";
import { makeScratch } from "../support/scratch.ts";
import { models, startGateway } from "./gateway.ts";
import type { Gateway } from "./gateway.ts";
import { startModelServer } from "./model-server.ts";
import type { ModelServer } from "./model-server.ts";
import { recordedPlugin } from "./plugin.ts";
import { answered, eventually, ledgerOf } from "./soak/companion.ts";
import type { Companion } from "./soak/companion.ts";
import { createGate } from "./soak/gate.ts";
import type { Gate } from "./soak/gate.ts";
import { createFileGround, startServerGround } from "./soak/ground.ts";
import type { Ground } from "./soak/ground.ts";
import { createLedger } from "./soak/ledger.ts";
import type { Ledger } from "./soak/ledger.ts";
import { byDesign, faultsIn, importedSession, startNeighbour } from "./soak/neighbour.ts";
import type { Neighbour } from "./soak/neighbour.ts";
import { startPiHost } from "./soak/pi-host.ts";
import { checkPrompt, turnMark, turnsOnPath } from "./soak/prompts.ts";
import { startProxyHost } from "./soak/proxy-host.ts";
import { readEngine, reportOf } from "./soak/report.ts";
import type { Sample } from "./soak/report.ts";
import { asVariables, contextWindow, settings } from "./soak/settings.ts";
import { say, watch } from "./soak/watch.ts";
import { cjk, createWeather, prose, putFiles, shortText, wish } from "./soak/weather.ts";
import type { Weather } from "./soak/weather.ts";
import { assertStored, withStore } from "./stored.ts";

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
const tools = ["lcm_grep", "lcm_grep", "lcm_describe", "lcm_recent", "lcm_expand_query", "read", "exec"];

interface World {
  readonly gateway: Gateway;
  readonly ledger: Ledger;
  readonly weather: Weather;
  readonly neighbour: Neighbour;
  readonly ground: Ground;
  /** Pi and agents behind the proxy, if the database is on a server. */
  readonly companions: readonly Companion[];
  readonly gate: Gate;
  /** Whether a gateway accepts messages. */
  isUp: boolean;
  /** The next turn of a speaker. */
  readonly turns: Map<string, number>;
}

export interface SoakOptions {
  readonly minutes: number;
  readonly seed: number;
  /** Whether the database is on a server, which Pi and the proxy use, too. */
  readonly isOnServer: boolean;
}

/** Whether no promise was broken. */
export async function soak({ minutes, seed, isOnServer }: SoakOptions): Promise<boolean> {
  const began = performance.now();
  const ledger = createLedger();
  const randomOf = (part: number): Random => createRandom(seed * 100 + part);
  const server = await startModelServer();
  const ground: Ground = isOnServer
    ? await startServerGround(randomOf(3), ledger, minutes)
    : createFileGround(() => gateway.database, ledger);
  const turnsOf = (key: string, name: string): readonly number[] => turnsOnPath(gateway.transcript(key), name);
  const rules = { ledger, contextWindow, turnsOf, isAlone: ground.wasAway };
  const weather = createWeather(randomOf(0), ledger, (asked) => checkPrompt(asked, rules));
  server.script(weather.reply);
  const recorded = recordedPlugin(makeScratch("soak"), settings, {}, longArguments);
  const gateway = await startSoaked(server, recorded.plugins, ground);
  furnish(gateway);
  const neighbour = await startNeighbour({ gateway, ground, random: randomOf(1), ledger, settings: asVariables });
  const companions = ground.url === null ? [] : await startCompanions(ground, ground.url, ledger, randomOf);
  const turns = new Map<string, number>();
  const gate = createGate();
  const world: World = { gateway, ledger, weather, neighbour, ground, companions, gate, isUp: true, turns };
  const until = performance.now() + minutes * 60_000;
  const over = new AbortController();
  say(`seed ${seed}: ${minutes} minutes, after ${Math.round((performance.now() - began) / 1000)} s of start-up`);

  const samples: Sample[] = [];
  const said = (): number => [...turns.values()].reduce((sum, each) => sum + each, 0);
  const hosts = [{ name: "openclaw", weather, turns: said, forget: () => server.forget() }, ...companions];
  const working = [
    watch({ gateway, ground, ledger, hosts }, samples, over.signal),
    ground.disturb(gate, over.signal),
    ...companions.map(async (companion) => await companion.live(gate, over.signal)),
    ...speakers.map(async (speaker, at) => await talk(world, speaker, randomOf(10 + at), over.signal)),
  ];
  await trouble(world, randomOf(2), until, minutes);
  over.abort();
  gate.open();
  await Promise.all(working);
  await neighbour.close();
  await gateway.stop();
  for (const companion of companions) await companion.close();
  await checkEnd(world);
  const engine = readEngine(recorded.calls(), ledger);
  const given = { seed, minutes, settings, contextWindow, ledger, weather, samples, engine, gateway, companions };
  const report = reportOf(given);
  writeFileSync(join(tmpdir(), "soak.json"), `${JSON.stringify(report.json, null, 2)}\n`);
  process.stdout.write(report.text);
  await server.close();
  await ground.close();
  return ledger.faults.length === 0;
}

async function startSoaked(server: ModelServer, plugins: object, ground: Ground): Promise<Gateway> {
  const { openai, anthropic } = models;
  return await startGateway({
    server,
    plugins,
    contextWindow,
    ...(ground.url === null ? {} : { database: ground.url }),
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
}

async function startCompanions(
  ground: Ground,
  url: string,
  ledger: Ledger,
  randomOf: (part: number) => Random,
): Promise<readonly Companion[]> {
  const given = { url, wasAway: ground.wasAway };
  return [
    await startPiHost({ ...given, ledger: ledgerOf(ledger, "pi"), randomOf: (part) => randomOf(30 + part) }),
    await startProxyHost({ ...given, ledger: ledgerOf(ledger, "proxy"), randomOf: (part) => randomOf(50 + part) }),
  ];
}

/** Files to read in the agents' workspaces. */
function furnish({ state }: Gateway): void {
  for (const agent of ["main", "second"]) putFiles(join(state, `workspace-${agent}`));
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
        return await turn(shortText(random));
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
      const second = ledger.second();
      await gateway.start({}, "ready");
      ledger.event("gateway ready", `after ${ledger.second() - second} s`);
      world.isUp = true;
      // Sometimes there is much to do at once, and sometimes it is checked just as it was left.
      if (random.chance(0.6)) await sleep(random.between(1_000, 20_000));
    }
    await quiet(world);
  }
}

/** Everything pauses; all messages are stored once, in order and unchanged. */
async function quiet(world: World): Promise<void> {
  const { ledger, weather, neighbour, gate, companions } = world;
  const began = performance.now();
  for (const each of [weather, ...companions.map((companion) => companion.weather)]) each.setCalm(true);
  await gate.close();
  await neighbour.pause();
  await checkGateway(world);
  for (const companion of companions)
    await companion.check().catch((error: unknown) => ledger.broken(`${companion.name} can be checked`, error));
  await checkDoctor(world, "doctor finds nothing");
  await checkImported(world);
  ledger.event("quiet point", `in ${Math.round((performance.now() - began) / 1000)} s`);
  for (const each of [weather, ...companions.map((companion) => companion.weather)]) each.setCalm(false);
  neighbour.resume();
  gate.open();
}

async function checkGateway(world: World): Promise<void> {
  const { gateway, ledger, weather } = world;
  const ask = async (key: string, name: string): Promise<void> =>
    await answered(ledger, key, async () => {
      const { status, text } = await gateway.turn(key, `${nextMark(world, name)} still there?`);
      return status === 200 ? null : `${status} ${text}`;
    });
  for (const { key, name } of speakers) await ask(key, name);
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
        await ask(key, name);
        await eventually(async () => await assertStored(gateway, key, byDesign));
      });
      ledger.count(children.includes(key) ? "child's transcript compared" : "transcript compared");
    } catch (error) {
      ledger.broken("guarantees 1 to 7: the store has the transcript", error);
    }
  }
}

const kindOf = ({ type, customType, message }: ReturnType<Gateway["transcript"]>[number]): string =>
  [type, customType, message?.role, message?.provider, message?.stopReason].filter(Boolean).join(" ");

async function checkDoctor({ ledger, neighbour }: World, what: string): Promise<void> {
  const { json, status } = await neighbour.lcm("doctor");
  if (json === null) ledger.broken(what, `it ended with ${status}`);
  for (const finding of faultsIn(json)) ledger.broken(what, finding);
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

async function checkEnd(world: World): Promise<void> {
  const { ledger, ground } = world;
  await checkDoctor(world, "doctor finds nothing, at the end");
  const calls = await ground.callTimes();
  const most = mostWithin(calls, settings.spendWindowMinutes * 60_000);
  for (let call = 0; call < calls.length; call++) ledger.count("model call written down");
  ledger.event(`at most ${most} model calls in a window of ${settings.spendWindowMinutes} minutes`);
  if (most > settings.spendCeilingCalls) ledger.broken("guarantee 20: spend is bounded", `${most} calls in a window`);
}

function mostWithin(times: readonly number[], windowMs: number): number {
  let most = 0;
  for (let first = 0, last = 0; last < times.length; last++) {
    while ((times[last] ?? 0) - (times[first] ?? 0) >= windowMs) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

/** From the command line, within the isolation of run.ts. */
export async function runSoak(words: readonly string[]): Promise<boolean> {
  const [minutes = 60, seed = 1] = words.filter((word) => word !== "--postgres").map(Number);
  assert(minutes > 0 && Number.isInteger(seed), "npm run soak [-- [--postgres] [--json FILE] [minutes] [seed]]");
  return await soak({ minutes, seed, isOnServer: words.includes("--postgres") });
}
