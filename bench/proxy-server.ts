/**
 * The process that bench/proxy.ts measures: the proxy, and beside it the least that any proxy does, which is to read the
 * whole body and to send it on. Answers "settle" once nothing of a session is left to do.
 */

import { once } from "node:events";
import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { resolveSettings } from "../src/core/model/settings.ts";
import { builtInTemplates } from "../src/core/prompts/summary.ts";
import { runtimeOf } from "../src/hosts/shared/runtime.ts";
import { startProxy } from "../src/proxy/server.ts";
import { createService, type Service } from "../src/proxy/service.ts";
import { systemNow } from "../src/store/sqlite/store.ts";
import { openSqliteWorker } from "../src/store/sqlite/worker.ts";
import { cpuMs } from "./measure.ts";

/** A session, and how many of its requests must have been dealt with. */
export interface ToSettle {
  readonly session: string;
  readonly requests: number;
}

export interface Settled {
  /** CPU of the last request: from its last byte to the first that is sent on, in all threads. */
  readonly planCpuMs: number;
  /** How long other requests had to wait at most since the answer before. */
  readonly blockedMs: number;
  readonly memoryMb: number;
  readonly replaced: number;
  readonly whyUnchanged: string;
}

const [path = "", provider = ""] = process.argv.slice(2);
const note = (message: string): void => void process.stderr.write(`${message}\n`);
const runtime = runtimeOf({
  path,
  settings: resolveSettings({ env: {}, config: {} }),
  clock: { now: systemNow },
  logger: { info: () => undefined, warn: note, error: note },
  patienceMs: 1_000,
  openStore: async () => await openSqliteWorker({ path, durability: "normal" }),
  templates: async () => builtInTemplates,
});
const service = createService({ runtime, tokensMax: 90_000, model: null, storeOnly: false, folder: null });
let planCpuMs = 0;
const measured: Service = {
  ...service,
  async plan(call) {
    const before = process.cpuUsage();
    const served = await service.plan(call);
    planCpuMs = cpuMs(before);
    return served;
  },
};
const proxy = await startProxy({ port: 0, secret: "s", upstreams: { model: provider }, service: measured });
await runtime.open();

const floor = createServer((incoming, response) => {
  const pieces: Buffer[] = [];
  incoming.on("data", (piece: Buffer) => pieces.push(piece));
  incoming.on("end", () => {
    const body = Buffer.concat(pieces);
    const headers = { "content-type": "application/json", "content-length": body.length };
    const asked = httpRequest(provider + incoming.url, { method: "POST", headers }).end(body);
    asked.on("response", (answer) => answer.pipe(response.writeHead(answer.statusCode ?? 500, answer.headers)));
  });
}).listen(0, "127.0.0.1");
await once(floor, "listening");

const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();

process.on("message", (asked: ToSettle | "stop") => void (asked === "stop" ? stop() : settle(asked)));
process.send?.({
  proxy: proxy.urlOf("model"),
  floor: `http://127.0.0.1:${(floor.address() as AddressInfo).port}`,
});

async function settle({ session, requests }: ToSettle): Promise<void> {
  const status = () => service.status().sessions.find((each) => each.session === session);
  while ((status()?.requests ?? 0) < requests) await sleep(5);
  await sleep(10);
  await runtime.inOrder(`claude-code:${session}`, async () => undefined);
  await runtime.settled();
  // What a long request brought is indexed for search in the background.
  if (requests === 1) while ((await (await runtime.open()).store.index(256)) > 0);
  const { replaced = 0, whyUnchanged = "" } = status() ?? {};
  const memoryMb = process.memoryUsage.rss() / 1e6;
  const settled: Settled = { planCpuMs, blockedMs: delay.max / 1e6, memoryMb, replaced, whyUnchanged };
  delay.reset();
  process.send?.(settled);
}

async function stop(): Promise<void> {
  floor.close();
  floor.closeAllConnections();
  await proxy.close();
  await runtime.close();
  process.disconnect?.();
}
