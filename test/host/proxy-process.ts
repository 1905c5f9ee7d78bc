/** `lcm proxy` as it is published, in a process of its own before the strict provider: it can be killed and started again. */

import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { createLcm, type Lcm } from "../../src/core/lcm.ts";
import { openSqlite, systemNow } from "../../src/store/sqlite/store.ts";
import { freePort } from "../support/free-port.ts";
import { makeScratch } from "../support/scratch.ts";
import { startStrictProvider, type StrictProvider } from "../support/strict-provider.ts";
import { hostNode, hostPath } from "./install.ts";
import { pluginFolder } from "./plugin.ts";

export interface RunningProxy {
  /** The model's base URL at the proxy; it stays the same. */
  readonly base: string;
  /** Kills it without warning, and starts another one. */
  replace(): Promise<void>;
  /** Ends it as a person does, and waits until it has. */
  stop(): Promise<void>;
  readonly kill: () => Promise<void>;
}

export interface ProxyProcess extends Omit<RunningProxy, "kill"> {
  readonly provider: StrictProvider;
  /** Reads and writes the database beside the proxy, as other processes of ours do. */
  withLcm<T>(use: (lcm: Lcm) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** `tokens`: what a request may have; null to store only. */
export async function startProxyProcess(tokens: number | null): Promise<ProxyProcess> {
  const provider = await startStrictProvider();
  const database = join(makeScratch("proxy-process"), "lcm.db");
  const words = ["--db", database, ...(tokens === null ? ["--store-only"] : [])];
  const { kill, ...proxy } = await runProxy(provider.url, words, { LCM_PROXY_TOKENS: `${tokens ?? 90_000}` });
  return {
    provider,
    ...proxy,
    async withLcm(use) {
      const lcm = createLcm({ store: await openSqlite({ path: database }), clock: { now: systemNow } });
      try {
        return await use(lcm);
      } finally {
        await lcm.close();
      }
    },
    async close() {
      await kill();
      await provider.close();
    },
  };
}

/** `lcm proxy` with these words and variables, before this provider. */
export async function runProxy(
  upstream: string,
  words: readonly string[],
  variables: Readonly<Record<string, string>>,
): Promise<RunningProxy> {
  const port = await freePort();
  const all = ["proxy", ...words, "--port", `${port}`, "--upstream", `model=${upstream}`];
  const env = { PATH: hostPath, TZ: process.env["TZ"], ...variables };
  let [child, base] = await start();

  async function start(): Promise<[ChildProcess, string]> {
    const command = [join(pluginFolder(), "bin", "lcm.js"), ...all];
    const started = spawn(hostNode, command, { env, stdio: ["ignore", "pipe", "inherit"] });
    for await (const line of createInterface({ input: started.stdout })) {
      const [, url] = /^(http:\S+\/model)\s/.exec(line) ?? [];
      if (url !== undefined) return [started, url];
    }
    throw new Error("the proxy has not started");
  }
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  };
  process.once("exit", () => child.kill("SIGKILL"));
  return {
    base,
    async replace() {
      await end("SIGKILL");
      const before = base;
      [child, base] = await start();
      assert.equal(base, before, "agents must find it again");
    },
    stop: async () => await end("SIGTERM"),
    kill: async () => await end("SIGKILL"),
  };
}
