/**
 * The model of a soak: mostly sound, but at random it hangs, refuses, returns nothing, too much or nonsense, or breaks
 * off. It may also claim that the prompt is too long, or misbehave in one way for a while. Every request is first
 * checked against what a provider accepts, and against what was said in the session.
 */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createRandom } from "../../support/random.ts";
import type { Random } from "../../support/random.ts";
import type { Answer, Asked, Reply, Script } from "../model-server.ts";
import type { Ledger } from "./ledger.ts";

export interface Weather {
  readonly reply: Script;
  /** While it is calm, every answer is good. */
  setCalm(isCalm: boolean): void;
  /** When it was last called, by `performance.now()`. */
  lastAskedMs(): number;
  /** Child sessions that have answered well, since the last read. */
  takeChildren(): readonly string[];
  /** Tokens of each request of a turn, by our own estimate, without pictures. */
  readonly requestTokens: readonly number[];
  /** How many completions were requested outside of turns. */
  completions(): number;
}

/** What a turn wants looked up before it is answered. */
export const wish = (tools: readonly string[]): string => (tools.length === 0 ? "" : ` (wants ${tools.join(", ")})`);

type Trouble = (asked: Asked, random: Random) => Reply | Promise<Reply>;

const words = "harbour ledger copper meadow signal window orchard parcel engine lantern river garden".split(" ");
export const prose = (random: Random, count: number): string =>
  Array.from({ length: count }, () => random.pick(words)).join(" ");

export const cjk = "東京の港では毎朝、船が荷物を下ろしている。北京的图书馆藏书很多。서울의 아침은 조용하다. ";

/** What a user says in an ordinary turn. */
export const shortText = (random: Random): string =>
  random.chance(0.1) ? cjk.repeat(random.between(1, 20)) : prose(random, random.between(3, 200));

/** What agents may read in the folder that they work in. */
export function putFiles(folder: string): void {
  const random = createRandom(7);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "big.txt"), `${prose(random, 12)}\n`.repeat(2_000));
  writeFileSync(join(folder, "cjk.txt"), `${cjk}\n`.repeat(400));
}

/** Ways to misbehave. */
const troubles = {
  hang: async ({ kind }, random) => {
    if (kind === "completion") return { kind: "hang" };
    // The host would wait for many minutes.
    await sleep(random.between(2_000, 12_000));
    return { kind: "cut" };
  },
  "429": () => ({ kind: "error", status: 429, headers: { "retry-after": "1" } }),
  "500": () => ({ kind: "error", status: 500 }),
  "401": () => ({ kind: "error", status: 401 }),
  empty: () => ({ kind: "answer", text: "" }),
  "too long": (_, random) => ({ kind: "answer", text: prose(random, 12_000) }),
  "reasoning only": (_, random) => ({ kind: "answer", thinking: prose(random, 200) }),
  "reasoning in words": (_, random) => `<think>${prose(random, 80)}</think>${prose(random, 40)}`,
  garbage: (_, random) => `\u0000\uFFFD}{"</summary>\n<summary id="sum_${random.hex16()}">${random.hex16()}\uD83D`,
  "no stream": () => ({ kind: "body", status: 200, body: "<html>Bad gateway</html>" }),
  echo: ({ prompt }) => prompt,
  cut: () => ({ kind: "cut" }),
  "slow stream": (_, random) => drip(random, false),
  "broken stream": (_, random) => drip(random, true),
  overflow: () => ({ kind: "overflow" }),
} satisfies Readonly<Record<string, Trouble>>;
type TroubleName = keyof typeof troubles;

const drip = (random: Random, breaks: boolean): Reply => ({
  kind: "drip",
  answer: { kind: "answer", thinking: prose(random, 20), text: prose(random, 120) },
  pauseMs: random.between(50, 600),
  breaks,
});

/** How often each happens to a single request, in thousandths. */
const oftenInTurns: Readonly<Record<TroubleName, number>> = {
  hang: 10,
  "429": 12,
  "500": 12,
  "401": 4,
  empty: 15,
  "too long": 8,
  "reasoning only": 12,
  "reasoning in words": 10,
  garbage: 12,
  "no stream": 8,
  echo: 15,
  cut: 10,
  "slow stream": 20,
  "broken stream": 10,
  overflow: 15,
};
const oftenInSummaries: Readonly<Record<TroubleName, number>> = {
  ...oftenInTurns,
  hang: 40,
  "401": 2,
  empty: 40,
  "too long": 40,
  "reasoning only": 30,
  garbage: 30,
  echo: 40,
};

/** `check` is made of each request of a turn, and returns its tokens. */
export function createWeather(random: Random, ledger: Ledger, check: (asked: Asked) => number): Weather {
  let isCalm = false;
  let lastMs = performance.now();
  let completions = 0;
  let looks = 0;
  let outage: { readonly of: Asked["kind"]; readonly trouble: TroubleName; readonly until: number } | null = null;
  let nextOutage = lastMs + random.between(20_000, 60_000);
  let children: string[] = [];
  const requestTokens: number[] = [];

  const turnOutage = (now: number): void => {
    if (outage !== null && now > outage.until) outage = null;
    if (now < nextOutage) return;
    const trouble = random.pick<TroubleName>(["hang", "429", "500", "401", "empty", "cut", "garbage", "no stream"]);
    const until = now + random.between(5_000, 30_000);
    // A key that is refused for a summary is not tried again for ten minutes.
    outage = { of: trouble === "401" || random.chance(0.35) ? "turn" : "completion", trouble, until };
    nextOutage = until + random.between(20_000, 120_000);
    ledger.event(`outage of ${outage.of}s: ${trouble}`, `for ${Math.round((until - now) / 1000)} s`);
  };
  const troubleOf = ({ kind, atMs }: Asked): TroubleName | null => {
    if (isCalm) return null;
    turnOutage(atMs);
    if (outage?.of === kind && random.chance(0.9)) return outage.trouble;
    const often = kind === "turn" ? oftenInTurns : oftenInSummaries;
    const all = Object.values(often).reduce((sum, each) => sum + each, 0);
    const met = random.weighted({ none: 1_000 - all, ...often });
    return met === "none" ? null : met;
  };
  const answer = (asked: Asked): Reply => {
    if (asked.kind === "completion")
      return `They spoke of the ${random.pick(words)} and ${prose(random, random.between(20, 160))}. All of it is settled.`;
    const call = nextCall(asked, random);
    if (call !== null) {
      ledger.count(`tool ${call.name}`);
      return { kind: "answer", text: `I look for the ${++looks}th time.`, calls: [call] };
    }
    if (asked.session.includes(":subagent:")) children.push(asked.session);
    return { kind: "answer", text: `Noted. ${prose(random, random.between(5, 120))}` };
  };

  return {
    requestTokens,
    completions: () => completions,
    setCalm(next) {
      isCalm = next;
    },
    lastAskedMs: () => lastMs,
    takeChildren() {
      const taken = [...new Set(children)];
      children = [];
      return taken;
    },
    async reply(asked) {
      lastMs = asked.atMs;
      if (asked.kind === "completion") completions += 1;
      else requestTokens.push(check(asked));
      ledger.count(asked.kind === "turn" ? "request of a turn" : "request of a summary");
      const trouble = troubleOf(asked);
      if (trouble === null) return answer(asked);
      ledger.event(`${asked.kind} answered by: ${trouble}`, asked.session);
      const misbehave: Trouble = troubles[trouble];
      return await misbehave(asked, random);
    },
  };
}

/** The next tool that the user's words ask for; null when all of them have answered. */
function nextCall(
  { prompt, results, tools, session }: Asked,
  random: Random,
): NonNullable<Answer["calls"]>[number] | null {
  const wanted = /\(wants ([^)]*)\)/.exec(prompt)?.[1]?.split(", ") ?? [];
  const name = wanted[results.length];
  if (name === undefined || !tools.includes(name) || session.includes(":subagent:")) return null;
  return { name, args: argsOf(name, random) };
}

function argsOf(name: string, random: Random): object {
  switch (name) {
    case "lcm_grep":
      return random.chance(0.5)
        ? { pattern: `${random.pick(words)} ${random.pick(words)}`, mode: "full_text" }
        : { pattern: `Turn \\w+#${random.below(50)}:`, limit: random.between(1, 30) };
    case "lcm_describe":
      return { id: `msg_${random.between(1, 200)}` };
    case "lcm_expand_query":
      return { query: random.pick(words), prompt: `What was said of the ${random.pick(words)}?` };
    case "lcm_recent":
      return { period: "1h" };
    case "sessions_spawn":
      return { task: "Count the ants.", context: random.pick(["isolated", "fork"]) };
    case "exec":
    case "bash":
      return { command: `echo ${random.hex16()}; head -c ${random.between(100, 40_000)} big.txt` };
    default:
      return { path: random.pick(["big.txt", "cjk.txt", "missing.txt"]) };
  }
}
