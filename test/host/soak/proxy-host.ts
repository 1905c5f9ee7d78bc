/**
 * `lcm proxy` in a soak, on the soak's server: three agents, one in each wire format, talk through it while it is killed.
 * Each keeps its own transcript; whatever happens on our side, it must get what the model said.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { estimateTokens } from "../../../src/core/base/tokens.ts";
import type { Random } from "../../support/random.ts";
import { makeScratch } from "../../support/scratch.ts";
import type { AgentAnswer } from "../../support/scripted-agent.ts";
import { signatureOf } from "../../support/strict-provider.ts";
import { startModelServer, type Answer, type Asked, type ModelServer, type Reply } from "../model-server.ts";
import { runProxy, type RunningProxy } from "../proxy-process.ts";
import { Client, type Sent } from "./agent.ts";
import { answered, eventually, type Companion } from "./companion.ts";
import type { Gate } from "./gate.ts";
import { spreadOf, type Ledger } from "./ledger.ts";
import type { CompanionGround } from "./pi-host.ts";
import { checkPrompt, outlineOf, speakerIn, unfolded } from "./prompts.ts";
import { asVariables, contextWindow } from "./settings.ts";
import { cjk, createWeather, prose, wish, type Weather } from "./weather.ts";

const proxyTokens = 24_000;
const tools = ["read", "read", "look", "search"];
const wires = { claude: "anthropic", opencode: "chat", codex: "responses" } as const;
const does = { say: 45, "look up": 30, weigh: 8, rewind: 5, trim: 3, compact: 2, "give up": 5 };

interface ProxyWorld {
  readonly ledger: Ledger;
  readonly weather: Weather;
  readonly url: string;
  readonly proxy: RunningProxy;
  readonly clients: readonly Client[];
  readonly random: Random;
  /** Milliseconds from sending a request until the model has it. */
  readonly delays: number[];
  /** How often the proxy was killed; between two numbers, it is being replaced. */
  kills: number;
}

export async function startProxyHost(given: CompanionGround): Promise<Companion> {
  const { url, ledger, randomOf, wasAway } = given;
  const server = await startModelServer();
  const rules = { ledger, contextWindow, turnsOf: () => [], isAlone: wasAway };
  const weather = createWeather(randomOf(0), ledger, (asked) => checkPrompt(asked, rules));
  const proxy = await runProxy(server.url, [], {
    ...asVariables,
    HOME: makeScratch("soak-proxy"),
    LCM_DATABASE_URL: url,
    LCM_PROXY_TOKENS: `${proxyTokens}`,
    LCM_SUMMARY_MODEL: "soak/scripted",
    LCM_SUMMARY_BASE_URL: `${server.url}/v1`,
  });
  const clients = Object.entries(wires).map(([name, wire], at) => new Client(name, wire, proxy.base, randomOf(at + 1)));
  const world: ProxyWorld = { ledger, weather, url, proxy, clients, random: randomOf(9), delays: [], kills: 0 };
  serveModel(world, server);
  return {
    name: "proxy",
    weather,
    turns: () => clients.reduce((sum, { turn }) => sum + turn, 0),
    async live(gate, over) {
      await Promise.all([
        killNowAndThen(world, gate, over),
        ...clients.map(async (client) => await talk(world, client, gate, over)),
      ]);
    },
    async check() {
      for (const client of clients) await check(world, client);
    },
    figures: () => ({
      "ms until the model has a request": spreadOf(world.delays),
      "pieces that an agent took back before they were stored": clients.reduce((sum, each) => sum + each.takenBack, 0),
    }),
    forget: () => server.forget(),
    async close() {
      await proxy.stop();
      await server.close();
    },
  };
}

// ── The model behind the proxy ───────────────────────────────────────────────────────────────────────────────────────

function serveModel({ ledger, weather, clients, delays }: ProxyWorld, server: ModelServer): void {
  server.script(async (asked) => {
    const turn = asTurn(asked);
    const client = clients.find(({ name }) => turn.session === `proxy:${name}`);
    if (client !== undefined) delays.push(client.reached(asked.atMs));
    else if (turn.kind === "turn" && !isOwnCompaction(turn.prompt))
      ledger.broken("guarantee 14: an agent's own words are last", outlineOf(asked));
    const reply = await weather.reply(turn);
    // As a real provider does, whether it was our mistake or not.
    const isTooLong = estimateTokens(JSON.stringify(asked.body)) > contextWindow;
    const given: Reply = isTooLong ? { kind: "overflow" } : signed(reply);
    client?.replies.push(given);
    return given;
  });
}

/** What asks for a summary of the agent's own is a turn of nobody; ours has no tools. */
function asTurn(asked: Asked): Asked {
  const { messages } = unfolded(asked);
  const at = messages.findLastIndex(({ role }) => role === "user");
  const prompt = messages[at]?.text ?? "";
  const results = messages.slice(at + 1).flatMap(({ role, text }) => (role === "tool" ? [text] : []));
  if (asked.tools.length === 0 && !isOwnCompaction(prompt)) return { ...asked, kind: "completion" };
  const session = `proxy:${isOwnCompaction(prompt) ? "" : speakerIn(prompt)}`;
  return { ...asked, kind: "turn", session, prompt, results };
}

const isOwnCompaction = (prompt: string): boolean => prompt.includes("CRITICAL: Respond with TEXT ONLY");

function signed(reply: Reply): Reply {
  if (typeof reply === "string") return { kind: "answer", text: reply };
  const sign = (answer: Answer): Answer =>
    answer.thinking === undefined ? answer : { ...answer, signature: signatureOf(answer.thinking) };
  if (reply.kind === "answer") return sign(reply);
  return reply.kind === "drip" ? { ...reply, answer: sign(reply.answer) } : reply;
}

// ── Agents ───────────────────────────────────────────────────────────────────────────────────────────────────────────

async function killNowAndThen(world: ProxyWorld, gate: Gate, over: AbortSignal): Promise<void> {
  const { ledger, random, proxy } = world;
  while (!over.aborted) {
    await sleep(random.between(10_000, 60_000), null, { signal: over }).catch(() => undefined); // It is over.
    await gate.pass(async () => {
      if (over.aborted) return;
      ledger.event("killed");
      world.kills += 1;
      await proxy.replace().catch((error: unknown) => ledger.broken("the proxy starts", error));
      world.kills += 1;
    });
  }
}

async function talk(world: ProxyWorld, client: Client, gate: Gate, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    await sleep(client.random.between(100, 1_500));
    await gate.pass(async () => {
      if (!over.aborted) await act(world, client);
    });
  }
}

async function act(world: ProxyWorld, client: Client): Promise<void> {
  const { ledger } = world;
  const { random } = client;
  const what = random.weighted(does);
  ledger.count(`act: ${what}`);
  const wanted = wish(Array.from({ length: random.between(1, 3) }, () => random.pick(tools)));
  const turn = async (text: string, patienceMs?: number): Promise<void> => {
    const why = await take(world, client, text, patienceMs);
    if (why === null) ledger.count("turn answered");
    else ledger.event("turn not answered", `${client.name}: ${why.slice(0, 120)}`);
  };
  switch (what) {
    case "say":
      return await turn(random.chance(0.1) ? cjk.repeat(random.between(1, 20)) : prose(random, random.between(3, 200)));
    case "look up":
      return await turn(`${prose(random, 20)}${wanted}`);
    case "weigh":
      return await turn(`${prose(random, random.between(500, 6_000))}${wanted}`);
    case "rewind":
      client.rewind();
      return await turn(prose(random, 20));
    case "trim":
      if (await client.isStored(world.url)) client.agent.trim();
      return await turn(prose(random, 20));
    case "compact":
      if (await client.isStored(world.url))
        await client
          .compact()
          .catch((error: unknown) => ledger.event("own compaction failed", String(error).slice(0, 120)));
      return await turn(prose(random, 20));
    case "give up":
      return await turn(`${prose(random, 30)}${wanted}`, random.between(50, 2_000));
  }
}

const stepsMax = 6;
/** No answer takes longer, with what the model and the proxy may need. */
const usualPatienceMs = 90_000;

/** A prompt, and the results of tools, until the model has said all. Returns why it was not answered, or null. */
async function take(
  world: ProxyWorld,
  client: Client,
  text: string,
  patienceMs = usualPatienceMs,
): Promise<string | null> {
  client.prompt(text);
  for (let step = 0; step < stepsMax; step++) {
    const sent = await send(world, client, patienceMs);
    if (sent.why !== null) {
      await client.leave(sent, world.url);
      return sent.why;
    }
    if (!client.take(sent.answer)) return null;
  }
  return null;
}

async function send(world: ProxyWorld, client: Client, patienceMs: number): Promise<Sent> {
  const { ledger } = world;
  const killsBefore = world.kills;
  const sent = await client.send(patienceMs);
  const isKilled = killsBefore % 2 === 1 || world.kills !== killsBefore;
  const fault = isKilled || (sent.hasGivenUp && patienceMs < usualPatienceMs) ? null : faultIn(sent);
  if (fault !== null)
    ledger.broken("guarantee 38: the agent gets what the model said", `${client.name}: ${fault}\n${client.outline()}`);
  if (isKilled && sent.why !== null) ledger.event("turn in which the proxy was killed", client.name);
  return sent;
}

/** How what the agent got differs from the model's last reply: the proxy may have asked again after a refusal. */
function faultIn({ why, answer, replies, hasGivenUp }: Sent): string | null {
  const reply = replies.at(-1);
  if (reply === undefined) return `the model was not asked: ${why}`;
  if (hasGivenUp) return "no answer in time";
  if (typeof reply === "string") return "a reply must have a kind";
  switch (reply.kind) {
    case "answer":
      return wordsDiffer(answer, reply.text ?? "") ?? why;
    case "drip":
      if (!reply.breaks) return wordsDiffer(answer, reply.answer.text ?? "") ?? why;
      return why === null ? "a half answer came as a whole one" : null;
    case "overflow":
    case "error": {
      const status = reply.kind === "error" ? reply.status : 400;
      return answer?.status === status ? null : `${why} instead of status ${status}`;
    }
    default:
      return why === null ? `an answer instead of: ${reply.kind}` : null;
  }
}

const wordsDiffer = (answer: AgentAnswer | null, text: string): string | null =>
  answer === null || answer.status !== 200 || answer.text === text
    ? null
    : `${JSON.stringify(answer.text.slice(0, 200))} instead of ${JSON.stringify(text.slice(0, 200))}`;

async function check(world: ProxyWorld, client: Client): Promise<void> {
  const { ledger, url } = world;
  await answered(ledger, client.name, async () => await take(world, client, "still there?"));
  try {
    await eventually(async () => await client.assertStored(url));
    ledger.count("transcript compared");
  } catch (error) {
    ledger.broken("guarantees 1 to 7: the store has the transcript", error);
  }
}
