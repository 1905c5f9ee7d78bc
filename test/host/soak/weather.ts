/**
 * The model of a soak: mostly sound, but at random it hangs, refuses, returns nothing, too much or nonsense, or breaks
 * off. It may also claim that the prompt is too long, or misbehave in one way for a while. Every request is first
 * checked against what a provider accepts, and against what was said in the session.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { estimateTokens } from "../../../src/core/base/tokens.ts";
import type { Random } from "../../support/random.ts";
import type { Gateway } from "../gateway.ts";
import type { Answer, Asked, Reply, Script } from "../model-server.ts";
import { assertLiveOnce, assertValid } from "../wire.ts";
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

/** The start of a user's turn: each is unique, and sorts after those before it. */
export const turnMark = (name: string, turn: number): string => `Turn ${name}#${turn}:`;
const marks = /Turn ([a-z]+)#(\d+):/g;
/** What a turn wants looked up before it is answered. */
export const wish = (tools: readonly string[]): string => (tools.length === 0 ? "" : ` (wants ${tools.join(", ")})`);

type Trouble = (asked: Asked, random: Random) => Reply | Promise<Reply>;

const words = "harbour ledger copper meadow signal window orchard parcel engine lantern river garden".split(" ");
export const prose = (random: Random, count: number): string =>
  Array.from({ length: count }, () => random.pick(words)).join(" ");

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

/** `transcriptOf` returns the host's own record of a session. */
export function createWeather(
  random: Random,
  ledger: Ledger,
  contextWindow: number,
  transcriptOf: Gateway["transcript"],
): Weather {
  let isCalm = false;
  let lastMs = performance.now();
  let completions = 0;
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
      return { kind: "answer", text: "I look.", calls: [call] };
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
      else requestTokens.push(checkPrompt(asked, ledger, contextWindow, transcriptOf));
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
      return { command: `echo ${random.hex16()}; head -c ${random.between(100, 40_000)} big.txt` };
    default:
      return { path: random.pick(["big.txt", "cjk.txt", "missing.txt"]) };
  }
}

/**
 * Checks that what went to the model is a valid array within the window, and shows each turn once, in order, the live
 * one last. The host may also record a retried turn again: then it appears as often as in the host's own transcript.
 */
function checkPrompt(asked: Asked, ledger: Ledger, contextWindow: number, transcriptOf: Gateway["transcript"]): number {
  const check = (what: string, assertion: () => void): void => {
    try {
      assertion();
    } catch (error) {
      ledger.broken(what, error instanceof Error ? `${asked.session} (${asked.format}): ${error.message}` : error);
    }
  };
  check("guarantee 13: a valid array", () => assertValid(asked));
  const tokens = estimateTokens(JSON.stringify(asked.body, withoutPictures));
  ledger.count(tokens > contextWindow - 4_096 ? "request near the window" : "request within the window");
  // Refusing a turn that is too long by itself is up to the host; what came before it is up to us.
  const before = estimateTokens(JSON.stringify(asked.messages.slice(0, liveFrom(asked)), withoutPictures));
  if (tokens > contextWindow && liveFrom(asked) > 0)
    ledger.broken(
      "guarantee 12: within the window",
      `${asked.session}: ${tokens} tokens, ${before} of before the turn`,
    );
  const name = asked.session.split(":").at(-1) ?? "";
  if (asked.session.includes(":subagent:")) return tokens;
  const said = asked.messages
    .filter(({ role }) => role === "user")
    .flatMap(({ text }) => [...text.replaceAll(/<summary id=[^]*?<\/summary>/g, "").matchAll(marks)])
    .filter(([, session]) => session === name)
    .map(([, , turn]) => Number(turn));
  const isInOrder = said.every((turn, at) => at === 0 || turn > (said[at - 1] ?? 0));
  if (!isInOrder) {
    const held = turnsOnPath(transcriptOf(asked.session), name);
    if (isWithin(said.slice(0, -1), held)) ledger.count("request with a turn that the host has twice");
    else
      ledger.broken(
        "guarantee 14: each turn once, in order",
        `${asked.session}: ${said.join(" ")}; the host has ${held.join(" ")}`,
      );
  }
  const live = [...asked.prompt.matchAll(marks)].at(-1);
  if (live === undefined) ledger.count("request with words of the host's own last");
  else check("guarantee 14: the live turn once and last", () => assertLiveOnce(asked, live[0]));
  return tokens;
}

/** The turns from the first to the host's current one. */
function turnsOnPath(events: ReturnType<Gateway["transcript"]>, name: string): readonly number[] {
  const byId = new Map(events.map((event) => [event.id, event]));
  const turns: number[] = [];
  for (let event = events.at(-1); event !== undefined; event = byId.get(event.parentId)) {
    if (event.message?.role !== "user") continue;
    const said = [...JSON.stringify(event.message.content).matchAll(marks)].filter(([, session]) => session === name);
    turns.unshift(...said.map(([, , turn]) => Number(turn)));
  }
  return turns;
}

/** Whether all of these are among those, in that order. */
function isWithin(turns: readonly number[], held: readonly number[]): boolean {
  let at = 0;
  for (const turn of held) if (turn === turns[at]) at++;
  return at === turns.length;
}

const liveFrom = ({ messages }: Asked): number =>
  Math.max(
    0,
    messages.findLastIndex(({ role }) => role === "user"),
  );

/** The length of its bytes does not tell what a picture costs. */
const withoutPictures = (_: string, value: unknown): unknown =>
  typeof value === "string" && value.length > 500 && /^(data:image|[\w+/]{500})/.test(value) ? "a picture" : value;
