/**
 * Measures what the plugin adds to the start of the gateway and to the first turn, against the host's own engine, and
 * its installed size.
 *
 * Both gateways are warm: a first round, which is not counted, creates their homes and the host's caches. Then they
 * start alternately, so that a noisy minute hits both. The processor time of all processes of the gateway is shown
 * beside the elapsed time, because it is more reliable on a busy machine.
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { pack } from "../support/published.ts";
import { makeScratch } from "../support/scratch.ts";
import { createGateway, enginePlugin } from "./gateway.ts";
import type { Gateway } from "./gateway.ts";
import { startModelServer } from "./model-server.ts";
import type { ModelServer } from "./model-server.ts";
import { pluginFolder } from "./plugin.ts";

/** One start: until the gateway is ready, and then until its first answer. */
interface Start {
  readonly readyMs: number;
  readonly readyCpuMs: number;
  readonly turnMs: number;
  readonly turnCpuMs: number;
  readonly memoryMb: number;
  /** The host runs a plugin from copies, which it removes when it ends. */
  readonly copied: string;
}

const id = "lossless-claw";
const rounds = 3;

describe("the start of the gateway", () => {
  const scratch = makeScratch("start");
  const installed = join(scratch, "package");
  let models: ModelServer;

  before(async () => {
    models = await startModelServer();
  });
  after(async () => await models.close());

  it("installed", (t) => {
    const { path, size } = pack(pluginFolder(), scratch);
    execFileSync("tar", ["-xzf", path, "-C", scratch]);
    t.diagnostic(`the tarball: ${(size / 1e6).toFixed(1)} MB; it depends on nothing`);
    t.diagnostic(`unpacked: ${weigh(installed)}`);
  });

  it("started", async (t) => {
    const legacy = await createGateway({ server: models, plugins: { allow: [id], slots: { memory: "none" } } });
    const ours = await createGateway({ server: models, plugins: enginePlugin(id, installed) });
    const starts: (readonly [Start, Start])[] = [];
    for (let round = 0; round <= rounds; round++) {
      const both = [await measure(legacy), await measure(ours)] as const;
      if (round > 0) starts.push(both);
    }
    for (const [what, unit, figure] of figures) {
      const [before, now, added] = [
        ([start]: readonly [Start, Start]) => figure(start),
        ([, start]: readonly [Start, Start]) => figure(start),
        ([one, other]: readonly [Start, Start]) => figure(other) - figure(one),
      ].map((value) => median(starts.map(value)).toFixed(unit === "s" ? 1 : 0));
      t.diagnostic(`${what}: ${before} ${unit} with legacy, ${now} ${unit} with ours, ${added} ${unit} more in a pair`);
    }
    t.diagnostic(`copied by the host for its plugins in a start and a turn: ${starts.at(-1)?.[1].copied}`);
  });
});

const figures: readonly (readonly [what: string, unit: string, figure: (start: Start) => number])[] = [
  ["until ready", "s", (start) => start.readyMs / 1000],
  ["until ready, processor time", "s", (start) => start.readyCpuMs / 1000],
  ["first turn", "s", (start) => start.turnMs / 1000],
  ["first turn, processor time", "s", (start) => start.turnCpuMs / 1000],
  ["memory after it", "MB", (start) => start.memoryMb],
];

async function measure(gateway: Gateway): Promise<Start> {
  const began = performance.now();
  await gateway.start();
  const [ready, usedReady] = [performance.now(), usage()];
  const { status, text } = await gateway.turn("agent:main:start", "hello", { timeoutMs: 180_000 });
  const [answered, usedAnswered] = [performance.now(), usage()];
  assert.equal(status, 200, text);
  const copied = weigh(join(gateway.state, "tmp", "plugin-captures"));
  await gateway.stop();
  return {
    readyMs: ready - began,
    readyCpuMs: usedReady.cpuMs,
    turnMs: answered - ready,
    turnCpuMs: usedAnswered.cpuMs - usedReady.cpuMs,
    memoryMb: usedAnswered.memoryMb,
    copied,
  };
}

/** Of this process's descendants, running or not; the memory is that of the largest one. */
function usage(): { readonly cpuMs: number; readonly memoryMb: number } {
  const tree = (pid: string): readonly string[] => [pid, ...childrenOf(pid).flatMap(tree)];
  const stats = childrenOf(String(process.pid))
    .flatMap(tree)
    .map((pid) =>
      readFileSync(`/proc/${pid}/stat`, "utf8")
        .replace(/^.*\) /, "")
        .split(" ")
        .map(Number),
    );
  // Ticks of 10 ms: user, system, and both of the children that have ended. Then, pages of 4 KiB.
  const cpuMs = stats.flatMap((fields) => fields.slice(11, 15).map((ticks) => ticks * 10));
  const memoryMb = stats.map((fields) => ((fields[21] ?? 0) * 4096) / 1e6);
  return { cpuMs: cpuMs.reduce((sum, ms) => sum + ms, 0), memoryMb: Math.max(...memoryMb) };
}

const childrenOf = (pid: string): readonly string[] =>
  readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8")
      .split(" ")
      .filter((child) => child !== ""),
  );

function weigh(folder: string): string {
  const sizes = existsSync(folder) ? sizesIn(folder) : [];
  return `${(sizes.reduce((sum, size) => sum + size, 0) / 1e6).toFixed(1)} MB in ${sizes.length} files`;
}

/** Each file once: `readdir` by itself would follow the links between packages. */
const sizesIn = (folder: string): readonly number[] =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? sizesIn(path) : entry.isFile() ? [statSync(path).size] : [];
  });

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
