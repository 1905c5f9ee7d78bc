/**
 * The real Pi in a soak: two sessions with our extension on the soak's server. They use tools, compact, go back to earlier
 * messages, and are killed in the middle of a turn and resumed.
 */

import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../support/random.ts";
import { makeScratch } from "../../support/scratch.ts";
import { startModelServer, type Asked, type ModelServer } from "../model-server.ts";
import { assertStored, createPiHome, putHelper, startPi, transcriptsOf, type PiHome, type RunningPi } from "../pi.ts";
import { answered, eventually, type Companion } from "./companion.ts";
import type { Gate } from "./gate.ts";
import type { Ledger } from "./ledger.ts";
import { byDesign } from "./neighbour.ts";
import { checkPrompt, speakerIn, turnMark, turnsOnPath, unfolded } from "./prompts.ts";
import { asVariables, contextWindow } from "./settings.ts";
import { createWeather, prose, putFiles, shortText, wish, type Weather } from "./weather.ts";

type Json = ReturnType<typeof JSON.parse>;

interface Session {
  readonly name: string;
  readonly home: PiHome;
  readonly words: readonly string[];
  readonly random: Random;
  pi: RunningPi;
  turn: number;
}

export interface CompanionGround {
  readonly url: string;
  readonly ledger: Ledger;
  readonly randomOf: (part: number) => Random;
  /** Whether the server was away a moment ago. */
  readonly wasAway: () => boolean;
}

const names = ["slate", "cedar"];
const tools = ["lcm_grep", "lcm_grep", "lcm_describe", "lcm_recent", "lcm_expand_query", "read", "bash"];
const does = {
  say: 50,
  "look up": 30,
  weigh: 8,
  compact: 4,
  "go back": 4,
  "give up": 4,
  "die in a turn": 5,
  "end and resume": 3,
};

/** Ours may take three minutes when a person asks for it; then Pi does it by itself. */
const compactionMs = 400_000;

interface PiWorld {
  readonly ledger: Ledger;
  readonly weather: Weather;
  readonly server: ModelServer;
  readonly sessions: readonly Session[];
}

export async function startPiHost({ url, ledger, randomOf, wasAway }: CompanionGround): Promise<Companion> {
  const server = await startModelServer();
  const sessions: Session[] = [];
  const rows = (name: string): readonly Json[] => {
    const session = sessions.find((each) => each.name === name);
    return session === undefined ? [] : transcriptsOf(session.home).flat();
  };
  const turnsOf = (_: string, name: string): readonly number[] => turnsOnPath(rows(name), name);
  const rules = { ledger, contextWindow, turnsOf, isAlone: wasAway };
  const weather = createWeather(randomOf(0), ledger, (asked) => checkPrompt(asked, rules));
  server.script(async (asked) => await weather.reply(asTurn(asked)));
  const world: PiWorld = { ledger, weather, server, sessions };
  weather.setCalm(true);
  for (const [at, name] of names.entries())
    sessions.push(await startSession(world, { name, url, random: randomOf(at + 1) }));
  weather.setCalm(false);
  return {
    name: "pi",
    weather,
    turns: () => sessions.reduce((sum, { turn }) => sum + turn, 0),
    async live(gate, over) {
      await Promise.all(sessions.map(async (session) => await talk(world, session, gate, over)));
    },
    async check() {
      for (const session of sessions) await check(world, session);
    },
    figures: () => ({}),
    forget: () => server.forget(),
    async close() {
      for (const { pi } of sessions) await pi.end();
      await server.close();
    },
  };
}

/** Pi says nothing of a session in its requests. It has no tools when it compacts without us, and waits for that. */
function asTurn(asked: Asked): Asked {
  if (asked.tools.length > 0) {
    const prompt = unfolded(asked).messages.findLast(({ role }) => role === "user")?.text ?? "";
    return { ...asked, kind: "turn", session: `pi:${speakerIn(prompt)}`, prompt };
  }
  const isOurs = asked.system.startsWith("You keep the memory of a conversation");
  return isOurs ? { ...asked, kind: "completion" } : { ...asked, kind: "turn", session: "pi:", prompt: "" };
}

async function startSession(
  { server }: PiWorld,
  { name, url, random }: { readonly name: string; readonly url: string; readonly random: Random },
): Promise<Session> {
  const env = { ...asVariables, LCM_DATABASE_URL: url };
  const home = createPiHome(makeScratch("soak-pi"), server, { window: contextWindow, env });
  putFiles(home.work);
  const words = ["-c", ...putHelper(home)];
  const session: Session = { name, home, words, random, pi: await startPi(home, words), turn: 0 };
  // Pi writes its file with the first answer: without one there is nothing to resume.
  await session.pi.say(`${nextMark(session)} hello`);
  return session;
}

const nextMark = (session: Session): string => turnMark(session.name, ++session.turn);

async function talk(world: PiWorld, session: Session, gate: Gate, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    await sleep(session.random.between(100, 1_500));
    await gate.pass(async () => {
      if (!over.aborted) await act(world, session);
    });
  }
}

async function act({ ledger }: PiWorld, session: Session): Promise<void> {
  const { random, name } = session;
  const what = random.weighted(does);
  ledger.count(`act: ${what}`);
  const wanted = wish(Array.from({ length: random.between(1, 4) }, () => random.pick(tools)));
  const turn = async (text: string): Promise<void> => {
    const why = await take(session, text);
    if (why === null) ledger.count("turn answered");
    else ledger.event("turn not answered", `${name}: ${why.slice(0, 120)}`);
  };
  try {
    switch (what) {
      case "say":
        return await turn(shortText(random));
      case "look up":
        return await turn(`${prose(random, 20)}${wanted}`);
      case "weigh":
        return await turn(`${prose(random, random.between(500, 6_000))}${wanted}`);
      case "compact": {
        const { success } = await session.pi.ask({ type: "compact" }, compactionMs);
        return ledger.count(success === true ? "compacted" : "not compacted");
      }
      case "go back":
        return await goBack(session);
      case "give up":
        return await giveUp(session, wanted);
      case "die in a turn":
        await begin(session, wanted);
        ledger.event("killed", name);
        await session.pi.kill();
        return await resume(session);
      case "end and resume":
        ledger.event("ended", name);
        await session.pi.end();
        return await resume(session);
    }
  } catch (error) {
    ledger.broken("Pi goes on", `${name}, ${what}: ${error instanceof Error ? error.stack : String(error)}`);
    await session.pi.kill();
    await resume(session);
  }
}

const resume = async (session: Session): Promise<void> =>
  void (session.pi = await startPi(session.home, session.words));

/** Returns why the turn was not answered; null if it was. */
async function take(session: Session, text: string): Promise<string | null> {
  const { pi } = session;
  const from = pi.events.length;
  await pi.say(`${nextMark(session)} ${text}`);
  const last = pi.events
    .slice(from)
    .findLast(({ type, message }) => type === "message_end" && message.role === "assistant");
  if (last === undefined) return "Pi has not asked its model";
  const { stopReason, errorMessage } = last.message;
  return stopReason === "stop" ? null : `${stopReason} ${errorMessage ?? ""}`;
}

async function giveUp(session: Session, wanted: string): Promise<void> {
  const { pi } = session;
  const from = pi.events.length;
  await begin(session, wanted);
  await pi.ask({ type: "abort" });
  await pi.event("agent_settled", from);
}

/** A turn that is under way. */
async function begin(session: Session, wanted: string): Promise<void> {
  const { random, pi } = session;
  await pi.ask({ type: "prompt", message: `${nextMark(session)} ${prose(random, 30)}${wanted}` });
  await sleep(random.between(10, 2_500));
}

/** As with /tree, to the end of an earlier turn. */
async function goBack({ home, pi, random }: Session): Promise<void> {
  const ends = transcriptsOf(home)
    .flat()
    .slice(-60)
    .filter(({ type, message }) => type === "message" && message.role === "assistant" && message.stopReason === "stop");
  if (ends.length > 0) await pi.ask({ type: "prompt", message: `/go ${random.pick(ends).id}` });
}

async function check({ ledger, weather }: PiWorld, session: Session): Promise<void> {
  const ask = async (): Promise<void> =>
    await answered(ledger, session.name, async () => await take(session, "still there?"));
  await ask();
  while (performance.now() - weather.lastAskedMs() < 2_000) await sleep(200);
  try {
    await eventually(async () => void (await assertStored(session.home, byDesign)));
    ledger.count("transcript compared");
  } catch (error) {
    ledger.broken(`guarantees 1 to 7: the store has the transcript`, error);
  }
}
