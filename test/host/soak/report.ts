/** Reports a soak as text and as JSON: the engine's calls, memory and disk, and every event counted. */

import type { Gateway } from "../gateway.ts";
import type { EngineCall } from "../plugin.ts";
import type { Companion } from "./companion.ts";
import type { Sizes } from "./ground.ts";
import { round, slopeOf, spreadOf } from "./ledger.ts";
import type { Ledger, Spread } from "./ledger.ts";
import type { Weather } from "./weather.ts";

export interface Sample extends Sizes {
  readonly second: number;
  readonly pid: number | null;
  readonly rssMb: number | null;
}

type Engine = Readonly<Record<string, Spread & { readonly errors: number }>>;

/** Commits may fail, and the host repeats them; any other exception breaks a promise. */
export function readEngine(calls: readonly EngineCall[], ledger: Ledger): Engine {
  const engine: Record<string, Spread & { errors: number }> = {};
  for (const name of new Set(calls.map(({ call }) => call))) {
    const own = calls.filter(({ call }) => call === name);
    const failed = own.filter(({ error }) => error !== null);
    engine[name] = { ...spreadOf(own.map(({ ms }) => ms)), errors: failed.length };
    if (name !== "commitTurn") for (const { error } of failed) ledger.broken(`${name} does not throw`, error);
    for (const { error } of failed) ledger.event(`${name} failed`, error ?? "");
  }
  checkBudgets(calls, ledger);
  return engine;
}

/** Each assembly is within the first budget of its turn. */
function checkBudgets(calls: readonly EngineCall[], ledger: Ledger): void {
  const budgets = new Map<string, number>();
  for (const { call, session, args, result } of calls) {
    if (call !== "assemble" || result === null) continue;
    if (typeof args.runtimeSettings?.limits?.maxOutputTokens === "number") budgets.set(session, args.tokenBudget);
    const budget = Math.min(budgets.get(session) ?? Infinity, args.tokenBudget ?? Infinity);
    ledger.count(result.estimatedTokens > 0.9 * budget ? "assembly that fills its budget" : "assembly with room left");
    if (result.estimatedTokens > Math.max(0, budget))
      ledger.broken(
        "guarantee 12: an assembly within its budget",
        `${session}: ${result.estimatedTokens} of ${budget}`,
      );
  }
}

/** The gateway's output, by kind. */
const logged: Readonly<Record<string, RegExp>> = {
  "turn served by the host's own engine": /degraded to "legacy"/g,
  "commit queued by the host": /advancement remains queued/g,
  "turn that stopped waiting for the store": /still running after \d+ ms/g,
  "engine disabled by the host": /quarantin/g,
  "background compaction logged": /conversation \d+: [\d,]+ → [\d,]+ tokens/g,
  "trouble logged by the plugin": /while [^\n]*: /g,
  "uncaught error": /uncaught|unhandled rejection/gi,
};

export function reportOf(given: {
  readonly seed: number;
  readonly minutes: number;
  readonly settings: object;
  readonly contextWindow: number;
  readonly ledger: Ledger;
  readonly weather: Weather;
  readonly samples: readonly Sample[];
  readonly engine: Engine;
  readonly gateway: Gateway;
  readonly companions: readonly Companion[];
}): { readonly json: object; readonly text: string } {
  const { seed, minutes, settings, contextWindow, ledger, weather, samples, engine, gateway, companions } = given;
  const log = gateway.log();
  const fromLog = Object.fromEntries(
    Object.entries(logged).map(([kind, words]) => [kind, log.match(words)?.length ?? 0]),
  );
  for (const kind of ["engine disabled by the host", "uncaught error"])
    if ((fromLog[kind] ?? 0) > 0) ledger.broken(`no ${kind}`, excerpt(log, logged[kind]));
  const troubles = tally([...log.matchAll(/while ([^\n]*)/g)].map(([, words = ""]) => kindOf(words)));
  const counts = Object.fromEntries([...ledger.counts].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  const disk = {
    databaseMb: { last: round(samples.at(-1)?.databaseMb ?? 0), max: most(samples.map((each) => each.databaseMb)) },
    walMb: { last: round(samples.at(-1)?.walMb ?? 0), max: most(samples.map((each) => each.walMb)) },
    connections: most(samples.map((each) => each.connections)),
  };
  const others = companions.map(figuresOf);
  const requests = spreadOf(weather.requestTokens);
  const lives = livesOf(samples);
  const json = {
    seed,
    minutes,
    seconds: ledger.second(),
    contextWindow,
    settings,
    engineMs: engine,
    requestTokens: requests,
    completions: weather.completions(),
    companions: others,
    gatewayLives: lives,
    ...disk,
    log: fromLog,
    troubles,
    counts,
    faults: ledger.faults,
    newest: ledger.newest(),
  };
  const lines = [
    "",
    `Soak of ${minutes} minutes, seed ${seed}: ${ledger.faults.length === 0 ? "no promise broken" : `${ledger.faults.length} BROKEN`}`,
    "",
    "Engine calls, ms          count      p50      p99      max   errors",
    ...Object.entries(engine).map(([name, { count, p50, p99, max, errors }]) =>
      [name.padEnd(20), ...[count, p50, p99, max, errors].map((each) => String(each).padStart(8))].join(" "),
    ),
    "",
    `Prompts: ${requests.count}; tokens p50 ${requests.p50}, p99 ${requests.p99}, max ${requests.max} of ${contextWindow}`,
    `Database: ${disk.databaseMb.last} MB at the end; write-ahead log at most ${disk.walMb.max} MB`,
    ...others.flatMap(({ name, turns, requestTokens, completions, ...more }) => [
      `${name}: ${turns} turns; ${requestTokens.count} prompts, tokens p50 ${requestTokens.p50}, p99 ${requestTokens.p99}, ` +
        `max ${requestTokens.max}; ${completions} summaries asked for`,
      ...Object.entries(more).map(([what, figure]) => `  ${what}: ${JSON.stringify(figure)}`),
    ]),
    ...(disk.connections === 0 ? [] : [`Connections to the server: at most ${disk.connections}`]),
    "Gateway's memory per lifetime: seconds; MB at the start, at the end, at most; growth in MB per minute after the first two",
    ...lives.map(
      (life) =>
        `  ${[life.seconds, life.firstMb, life.lastMb, life.maxMb, life.mbPerMinute ?? "-"].map((each) => String(each).padStart(7)).join(" ")}`,
    ),
    "",
    "From the gateway's log:",
    ...Object.entries(fromLog).map(([kind, count]) => `  ${String(count).padStart(7)} ${kind}`),
    ...Object.entries(troubles).map(([kind, count]) => `  ${String(count).padStart(7)} while ${kind}`),
    "",
    "What happened:",
    ...Object.entries(counts).map(([kind, count]) => `  ${String(count).padStart(7)} ${kind}`),
    ...ledger.faults.flatMap(({ second, what, detail, before }) => [
      "",
      `BROKEN at ${second} s: ${what}`,
      detail,
      ...before.map((each) => `    ${each}`),
    ]),
    ...(ledger.faults.length === 0 ? [] : ["", `Seed ${seed}; the newest events:`, ...ledger.newest()]),
  ];
  return { json, text: `${lines.join("\n")}\n` };
}

const figuresOf = ({ name, weather, turns, figures }: Companion) => ({
  name,
  turns: turns(),
  requestTokens: spreadOf(weather.requestTokens),
  completions: weather.completions(),
  ...figures(),
});

const most = (values: readonly number[]): number => round(values.reduce((max, each) => Math.max(max, each), 0));

/** Each run of the gateway from its start to its end. */
function livesOf(samples: readonly Sample[]) {
  const lives = new Map<number, { readonly second: number; readonly rssMb: number }[]>();
  for (const { pid, second, rssMb } of samples) {
    if (pid === null || rssMb === null) continue;
    const life = lives.get(pid) ?? [];
    lives.set(pid, life);
    life.push({ second, rssMb });
  }
  return [...lives.values()].map((life) => {
    const from = life[0]?.second ?? 0;
    const slope = slopeOf(
      life.filter(({ second }) => second >= from + 120).map(({ second, rssMb }) => [second / 60, rssMb]),
    );
    return {
      seconds: (life.at(-1)?.second ?? from) - from,
      firstMb: round(life[0]?.rssMb ?? 0),
      lastMb: round(life.at(-1)?.rssMb ?? 0),
      maxMb: most(life.map(({ rssMb }) => rssMb)),
      mbPerMinute: slope === null ? null : round(slope),
    };
  });
}

const kindOf = (words: string): string =>
  words
    .replaceAll(/agent:[\w:-]+/g, "a session")
    .replaceAll(/[\d,]{2,}|\b\d+\b/g, "N")
    .slice(0, 140);

function tally(kinds: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const kind of kinds) counts[kind] = (counts[kind] ?? 0) + 1;
  return Object.fromEntries(
    Object.entries(counts)
      .toSorted(([, a], [, b]) => b - a)
      .slice(0, 40),
  );
}

function excerpt(log: string, words: RegExp | undefined): string {
  const at = words === undefined ? -1 : log.search(words);
  return log.slice(Math.max(0, at - 500), at + 1_500);
}
