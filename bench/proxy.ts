/**
 * How long the proxy holds up a request: time to the first byte, straight to a provider on loopback, through the least that
 * any proxy does, and through ours, with 100 to 100,000 messages in the request. Each request is the one before and a turn
 * more, and Claude Code's cache mark has moved.
 *
 * `npm run bench:proxy [-- messages …] [--sessions 16] [--turns 15] [--database FILE]`: a database that has other messages
 * is used as it is, and keeps what is added.
 */

import { fork } from "node:child_process";
import { once } from "node:events";
import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { makeScratch } from "../test/support/scratch.ts";
import { spread } from "./measure.ts";
import type { Settled, ToSettle } from "./proxy-server.ts";
import { table } from "./table.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    sessions: { type: "string", default: "1" },
    turns: { type: "string", default: "15" },
    database: { type: "string", default: join(makeScratch("bench-proxy"), "lcm.db") },
  },
});
const sizes = positionals.length > 0 ? positionals.map(Number) : [100, 1_000, 10_000, 100_000];
const [sessions, turns] = [Number(values.sessions), Number(values.turns)];

const answer = JSON.stringify({
  type: "message",
  role: "assistant",
  content: [{ type: "text", text: "Done." }],
  usage: { input_tokens: 1 },
});
const provider = createServer((incoming, response) => {
  incoming.resume();
  incoming.on("end", () => response.writeHead(200, { "content-type": "application/json" }).end(answer));
}).listen(0, "127.0.0.1");
await once(provider, "listening");
const direct = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
const server = fork(fileURLToPath(new URL("./proxy-server.ts", import.meta.url)), [values.database, direct]);
const [urls] = (await once(server, "message")) as [{ readonly proxy: string; readonly floor: string }];

async function settled(asked: ToSettle): Promise<Settled> {
  server.send(asked);
  const [answered] = (await once(server, "message")) as [Settled];
  return answered;
}

/** An agent's side of a session: its messages as bytes, the last of them marked. */
function createAgent(session: string, count: number) {
  const textAt = (at: number): string =>
    `Message ${at} of ${session}: ${"some words about the task at hand, and numbers such as ".repeat(4)}${at * 7_919}.`;
  const plain = (role: string, content: unknown): Buffer => Buffer.from(JSON.stringify({ role, content }));
  const list = Array.from({ length: count - (count % 2) }, (_, at) =>
    plain(at % 2 === 0 ? "user" : "assistant", textAt(at)),
  );
  let prompt = textAt(list.length);
  const marked = (): Buffer =>
    plain("user", [{ type: "text", text: prompt, cache_control: { type: "ephemeral", ttl: "5m" } }]);
  const comma = Buffer.from(",");
  const [head, tail] = ['{"model":"m","messages":[', '],"max_tokens":100,"tools":[{"name":"read"}]}'].map((text) =>
    Buffer.from(text),
  ) as [Buffer, Buffer];
  return {
    session,
    body: (): Buffer => Buffer.concat([head, ...list.flatMap((element) => [element, comma]), marked(), tail]),
    turn(): void {
      list.push(plain("user", prompt), plain("assistant", [{ type: "text", text: "Done." }]));
      prompt = textAt(list.length);
    },
  };
}

async function firstByteMs(base: string, body: Buffer, session: string): Promise<number> {
  const started = performance.now();
  const headers = {
    "content-type": "application/json",
    "content-length": body.length,
    "x-claude-code-session-id": session,
  };
  const asked = httpRequest(`${base}/v1/messages`, { method: "POST", headers }).end(body);
  const [response] = await once(asked, "response");
  const ms = performance.now() - started;
  response.resume();
  await once(response, "end");
  return ms;
}

const ms = (value: number): string => `${value.toFixed(1)} ms`;
const rows: string[][] = [];
for (const count of sizes) {
  const agents = Array.from({ length: sessions }, (_, nth) => createAgent(`s${count}-${nth}-${process.pid}`, count));
  const all = async (base: string): Promise<readonly number[]> =>
    await Promise.all(agents.map(async (agent) => await firstByteMs(base, agent.body(), agent.session)));
  let requests = 0;
  const settleAll = async (): Promise<Settled> => {
    let last: Settled | undefined;
    for (const { session } of agents) last = await settled({ session, requests });
    return last as Settled;
  };
  await settleAll();
  requests++;
  const first = spread(await all(urls.proxy)).p50;
  let after = await settleAll();
  const { blockedMs } = after;
  const took: Record<"direct" | "floor" | "proxy", number[]> = { direct: [], floor: [], proxy: [] };
  const cpu: number[] = [];
  for (let turn = 0; turn < turns; turn++) {
    for (const agent of agents) agent.turn();
    took.direct.push(...(await all(direct)));
    took.floor.push(...(await all(urls.floor)));
    requests++;
    took.proxy.push(...(await all(urls.proxy)));
    after = await settleAll();
    cpu.push(after.planCpuMs);
  }
  const p50 = { direct: spread(took.direct).p50, floor: spread(took.floor).p50, proxy: spread(took.proxy).p50 };
  const bytes = agents[0]?.body().length ?? 0;
  rows.push([
    count.toLocaleString("en"),
    `${(bytes / 1e6).toFixed(2)} MB`,
    ms(p50.direct),
    ms(p50.floor - p50.direct),
    ms(p50.proxy - p50.direct),
    ms(spread(took.proxy).p95 - p50.direct),
    ms(spread(cpu).p50),
    ms(first - p50.direct),
    ms(blockedMs),
    `${after.memoryMb.toFixed(0)} MB`,
    `${after.replaced} of ${requests} ${after.whyUnchanged}`,
  ]);
  process.stderr.write(`${rows.at(-1)?.join("  ")}\n`);
}
const head = "messages|body|direct|pass-through adds|proxy adds|· p95|· CPU|first adds|blocks others|memory|replaced";
process.stdout.write(`${table(head.split("|"), rows)}\n`);
server.send("stop");
await once(server, "exit");
provider.close();
provider.closeAllConnections();
