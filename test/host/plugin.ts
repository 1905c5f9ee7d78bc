/**
 * Our own plugin as the host gets it: built from the sources as they are, in a folder that holds what is published and
 * nothing else. The host copies all of a plugin's folder, and this repository has a whole host in it.
 */

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { enginePlugin } from "./gateway.ts";

const repository = fileURLToPath(new URL("../../", import.meta.url));
const pluginVariable = "LCM_HOST_PLUGIN";

/** Builds it into this folder, for all test files of a run; `seenAs` is the folder's name in there. */
export function stagePlugin(folder: string, seenAs: string): void {
  mkdirSync(folder);
  const { files } = JSON.parse(readFileSync(join(repository, "package.json"), "utf8"));
  const ofBuild = ["src", "tools", "tsconfig.json", "tsconfig.build.json"];
  const published = files.filter((path: string) => path !== "dist");
  for (const path of ["package.json", "openclaw.plugin.json", ...published, ...ofBuild])
    cpSync(join(repository, path), join(folder, path), { recursive: true });
  symlinkSync(join(repository, "node_modules"), join(folder, "node_modules"));
  const { status, stdout, stderr } = spawnSync("npm", ["run", "build"], { cwd: folder, encoding: "utf8" });
  assert.equal(status, 0, `the build failed: ${stdout}${stderr}`);
  for (const path of [...ofBuild, "node_modules"]) rmSync(join(folder, path), { recursive: true });
  process.env[pluginVariable] = seenAs;
}

/** Where it lies. */
export function pluginFolder(): string {
  const folder = process.env[pluginVariable];
  assert(folder, "host tests are run by `npm run test:host`");
  return folder;
}

/** Packs a folder that has been built, and tells the tarball. */
export function pack(folder: string, into: string): string {
  const args = ["pack", "--json", "--ignore-scripts", "--pack-destination", into, folder];
  const [{ filename }] = JSON.parse(execFileSync("npm", args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }));
  return join(into, filename);
}

/** `plugins` of openclaw.json with ours for the context engine. */
export const ourPlugin = (config: object = {}, entry: object = {}): object =>
  enginePlugin("lossless-claw", pluginFolder(), config, entry);

/** One call of the engine, as the host made it. */
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
 * The same plugin behind one that writes down every call of its engine into a file, and does in its place what another
 * file says, by method: `throw` or `hang`. `calls()` reads what was written.
 */
export function recordedPlugin(scratch: string, config: object = {}, entry: object = {}) {
  const folder = join(scratch, "recorded");
  const log = join(scratch, "calls.jsonl");
  const faults = join(scratch, "faults.json");
  cpSync(pluginFolder(), folder, { recursive: true });
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  manifest.openclaw.extensions = ["./recorder.js"];
  delete manifest.openclaw.runtimeExtensions;
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  writeFileSync(join(folder, "recorder.js"), recorder(log, faults));
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

const recorder = (log: string, faults: string): string => `
import { appendFileSync, readFileSync } from "node:fs";
import plugin from "./dist/openclaw/plugin.js";
const seen = new Map();
const number = (engine) => seen.get(engine) ?? seen.set(engine, seen.size + 1).get(engine);
const plain = (key, value) => (typeof value === "function" || value instanceof AbortSignal || key === "config" ? undefined : value);
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
