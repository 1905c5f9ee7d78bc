/** A proxy before a strict provider, over its own new database, for tests. */

import { join } from "node:path";
import type { Lcm } from "../../src/core/lcm.ts";
import type { Clock, Store } from "../../src/core/model/store.ts";
import { resolveSettings, type Settings } from "../../src/core/model/settings.ts";
import { runtimeOf, type Runtime } from "../../src/hosts/shared/runtime.ts";
import { createService, type Service, type ServiceDeps } from "../../src/proxy/service.ts";
import { startProxy, type Proxy } from "../../src/proxy/server.ts";
import { openSqlite, systemNow } from "../../src/store/sqlite/store.ts";
import { builtInTemplates } from "../../src/core/prompts/summary.ts";
import { messageFromStore } from "../../src/core/messages/codec.ts";
import { comparable, isTelling, saidIn } from "../../src/core/messages/said.ts";
import { anthropic } from "../../src/proxy/wires/anthropic.ts";
import { chat } from "../../src/proxy/wires/chat.ts";
import { responses } from "../../src/proxy/wires/responses.ts";
import { patienceMs } from "./eventually.ts";
import { makeScratch } from "./scratch.ts";
import { ScriptedAgent } from "./scripted-agent.ts";
import { startStrictProvider, type StrictProvider, type WireName } from "./strict-provider.ts";

export interface ProxyGround {
  readonly provider: StrictProvider;
  readonly path: string;
  proxy: Proxy;
  service: Service;
  runtime: Runtime;
  lcm(): Promise<Lcm>;
  /** Waits until every answer is stored and nothing is being folded. */
  settled(): Promise<void>;
  /** Kills the proxy and starts another one on the same database. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

export interface GroundOptions {
  readonly tokensMax?: number;
  readonly settings?: Partial<Settings>;
  readonly storeOnly?: boolean;
  readonly path?: string;
  readonly patienceMs?: number;
  readonly onlyOwn?: boolean;
  readonly idleMs?: number;
  /** Opens the database; with a short wait for locks by default. */
  readonly openStore?: () => Promise<Store>;
  readonly modelWith?: NonNullable<ServiceDeps["modelWith"]>;
  readonly clock?: Clock;
  /** Where requests go instead of to the strict provider. */
  readonly upstream?: string;
  readonly bodyMax?: number;
}

let grounds = 0;

export async function startProxyGround(options: GroundOptions = {}): Promise<ProxyGround> {
  const provider = await startStrictProvider();
  const path = options.path ?? join(makeScratch("proxy"), `${++grounds}.db`);
  const open = new Set<object>();
  const start = async (port: number) => {
    const runtime = runtimeOf({
      path,
      settings: resolveSettings({
        env: {},
        config: { freshTailCount: 6, leafChunkTokens: 1_000, leafTargetTokens: 150, ...options.settings },
      }),
      clock: options.clock ?? { now: systemNow },
      logger: { info: () => undefined, warn: () => undefined, error: () => undefined },
      patienceMs: options.patienceMs ?? patienceMs,
      openStore: options.openStore ?? (async () => await openSqlite({ path, housekeeping: false, busyTimeoutMs: 200 })),
      templates: async () => builtInTemplates,
    });
    const service = countAnswers(
      createService({
        runtime,
        // On a busy machine, too, a fold gets as far as it can.
        foldMs: patienceMs,
        tokensMax: options.tokensMax ?? 4_000,
        model: null,
        storeOnly: options.storeOnly ?? false,
        folder: null,
        ...(options.idleMs === undefined ? {} : { idleMs: options.idleMs }),
        ...(options.modelWith === undefined ? {} : { modelWith: options.modelWith }),
      }),
      open,
    );
    const upstreams = { model: options.upstream ?? provider.url };
    const { bodyMax, onlyOwn = false } = options;
    const proxy = await startProxy({ port, secret: "secret", upstreams, service, bodyMax, onlyOwn });
    return { runtime, service, proxy };
  };
  const ground: ProxyGround = {
    provider,
    path,
    ...(await start(0)),
    lcm: async () => await ground.runtime.open(),
    async settled() {
      // The end of an answer reaches us a moment after the client, and one that was cut off perhaps never.
      for (let waits = 0; waits === 0 || (open.size > 0 && waits < 200); waits++)
        await new Promise((resolve) => setTimeout(resolve, 5));
      open.clear();
      for (const { host, session } of ground.service.status().sessions)
        // Those that send no id share a queue.
        for (const queue of [`${host}:${session}`, `${host}:`])
          await ground.runtime.inOrder(queue, async () => undefined);
      await ground.runtime.settled();
    },
    async restart() {
      const { port } = ground.proxy;
      await ground.proxy.close();
      await ground.runtime.close();
      Object.assign(ground, await start(port));
    },
    async close() {
      await ground.proxy.close();
      await ground.runtime.close();
      await provider.close();
    },
  };
  return ground;
}

export const wires = { anthropic, chat, responses };

export const agentOn = (
  ground: ProxyGround,
  wire: WireName,
  sessionId: string | null,
  run?: string,
  headers: Record<string, string> = {},
): ScriptedAgent => new ScriptedAgent({ base: () => ground.proxy.urlOf("model", run), wire, sessionId, headers });

/** What the store has of a session, on any branch, as comparable pieces. */
export async function storedPieces(ground: ProxyGround, sessionId: string): Promise<readonly string[]> {
  const { store } = await ground.lcm();
  const conversations = await store.conversations({ sessionId });
  const messages = (await Promise.all(conversations.map(({ id }) => store.messages({ conversation: id })))).flat();
  return messages.flatMap((message) => saidIn(messageFromStore(message)).filter(isTelling).map(comparable)).toSorted();
}

export const saidBy = (agent: ScriptedAgent): readonly string[] =>
  [...agent.all]
    .flatMap((element) =>
      saidIn(wires[agent.options.wire].toMessage(element) ?? {})
        .filter(isTelling)
        .map(comparable),
    )
    .toSorted();

/** What doctor would not leave as it is. */
export const findingsIn = async (ground: ProxyGround): Promise<readonly string[]> =>
  (await (await ground.lcm()).inspect(null)).flatMap(({ severity, message }) => (severity === "info" ? [] : [message]));

/** Keeps in `open` which answers are being read. */
const countAnswers = (service: Service, open: Set<object>): Service => ({
  ...service,
  async plan(call) {
    const served = await service.plan(call);
    return {
      ...served,
      onAnswer(status, headers) {
        const reader = served.onAnswer(status, headers);
        if (reader === null) return null;
        open.add(reader);
        return {
          piece: (bytes) => reader.piece(bytes),
          end(isWhole) {
            reader.end(isWhole);
            open.delete(reader);
          },
        };
      },
    };
  },
});
