/** Provides our own plugin as the host gets it: what is published, built from the current sources. */

import assert from "node:assert/strict";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { publishedFolder } from "../support/published.ts";
import { enginePlugin } from "./gateway.ts";

const pluginVariable = "LCM_HOST_PLUGIN";

/** Puts it into this folder, for all test files of a run; `seenAs` is the folder's name inside the namespace. */
export async function stagePlugin(folder: string, seenAs: string): Promise<void> {
  cpSync(await publishedFolder(), folder, { recursive: true });
  process.env[pluginVariable] = seenAs;
}

/** Path of its folder. */
export function pluginFolder(): string {
  const folder = process.env[pluginVariable];
  assert(folder, "run host tests with `npm run test:host`");
  return folder;
}

/** `plugins` of openclaw.json with ours as the context engine. */
export const ourPlugin = (config: object = {}, entry: object = {}): object =>
  enginePlugin("lossless-claw", pluginFolder(), config, entry);

/** One call of the engine by the host. */
export interface EngineCall {
  readonly call: string;
  readonly session: string;
  readonly engine: number;
  readonly ms: number;
  readonly args: ReturnType<typeof JSON.parse>;
  readonly result: ReturnType<typeof JSON.parse>;
  readonly error: string | null;
}

/**
 * The same plugin behind a wrapper that records every call of its engine in a file, without the fields in `omitted`,
 * and for each method obeys another file: `throw` or `hang`. `calls()` reads the record.
 */
export function recordedPlugin(
  scratch: string,
  config: object = {},
  entry: object = {},
  omitted: readonly string[] = ["config"],
) {
  const folder = join(scratch, "recorded");
  const log = join(scratch, "calls.jsonl");
  const faults = join(scratch, "faults.json");
  cpSync(pluginFolder(), folder, { recursive: true });
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  manifest.openclaw.extensions = ["./recorder.js"];
  delete manifest.openclaw.runtimeExtensions;
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  writeFileSync(join(folder, "recorder.js"), recorder(log, faults, omitted));
  const fault = (next: Readonly<Record<string, "throw" | "hang">>): void => writeFileSync(faults, JSON.stringify(next));
  fault({});
  writeFileSync(log, "");
  return {
    plugins: enginePlugin("lossless-claw", folder, config, entry),
    fault,
    calls: (): readonly EngineCall[] =>
      readFileSync(log, "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line)),
  };
}

const recorder = (log: string, faults: string, omitted: readonly string[]): string => `
import { appendFileSync, readFileSync } from "node:fs";
import plugin from "./dist/hosts/openclaw/plugin.js";
const seen = new WeakMap();
let engines = 0;
const number = (engine) => seen.get(engine) ?? seen.set(engine, ++engines).get(engine);
const omitted = new Set(${JSON.stringify(omitted)});
const plain = (key, value) => (typeof value === "function" || value instanceof AbortSignal || omitted.has(key) ? undefined : value);
export default {
  ...plugin,
  register(api) {
    const registerContextEngine = (id, factory) =>
      api.registerContextEngine(id, async (context) => {
        const engine = await factory(context);
        return new Proxy(engine, {
          get(target, name) {
            const method = target[name];
            if (typeof method !== "function") return method;
            return async (args = {}) => {
              const started = performance.now();
              let result = null, error = null;
              try {
                const fault = JSON.parse(readFileSync(${JSON.stringify(faults)}, "utf8"))[name];
                if (fault === "throw") throw new Error("a fault of the test");
                if (fault === "hang") await new Promise(() => setTimeout(() => {}, 2 ** 30));
                return (result = await method.call(target, args));
              } catch (thrown) {
                error = String(thrown);
                throw thrown;
              } finally {
                const ms = performance.now() - started;
                const line = { call: name, session: args.sessionKey ?? "", engine: number(target), ms, args, result, error };
                appendFileSync(${JSON.stringify(log)}, JSON.stringify(line, plain) + "\\n");
              }
            };
          },
        });
      });
    plugin.register(new Proxy(api, { get: (target, name) => (name === "registerContextEngine" ? registerContextEngine : target[name]) }));
  },
};`;
