/**
 * The other user of the database in a soak: runs one command after the other, with and without the gateway. It reads,
 * folds, rewrites, dissolves and undoes, backs up, imports, and now and then holds the write lock for seconds.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lcm } from "../../../src/core/lcm.ts";
import type { Random } from "../../support/random.ts";
import { startScriptedProvider } from "../../support/scripted-provider.ts";
import type { Step } from "../../support/scripted-provider.ts";
import { untilAnswered } from "../../support/until-answered.ts";
import type { Gateway } from "../gateway.ts";
import { pluginFolder } from "../plugin.ts";
import { hasStore, withStore } from "../stored.ts";
import type { Ground } from "./ground.ts";
import type { Ledger } from "./ledger.ts";
import { prose } from "./weather.ts";

type Json = ReturnType<typeof JSON.parse>;

export interface Ran {
  readonly status: number | null;
  readonly json: Json;
}

export interface Neighbour {
  /** One command; an unexpected exit status is a fault. */
  lcm(...args: readonly string[]): Promise<Ran>;
  /** Stops after the current command. */
  pause(): Promise<void>;
  resume(): void;
  /** How many messages the imported transcript has by now, as far as it was imported. */
  imported(): number;
  close(): Promise<void>;
}

export const importedSession = "agent:main:elsewhere";

/** Ok, findings or unusable answers, a conflict, and an unavailable model may occur, and nothing else. */
const mayEnd: ReadonlySet<number | null> = new Set([0, 1, 4, 6]);
const hungMs = 240_000;

export async function startNeighbour(given: {
  readonly gateway: Gateway;
  readonly ground: Ground;
  readonly random: Random;
  readonly ledger: Ledger;
  /** By their names in the environment. */
  readonly settings: Readonly<Record<string, string>>;
}): Promise<Neighbour> {
  const { gateway, ground, random, ledger } = given;
  const { database } = gateway;
  const provider = await startScriptedProvider();
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: gateway.home,
    TMPDIR: join(gateway.home, "tmp"),
    OPENCLAW_STATE_DIR: gateway.state,
    TZ: "America/St_Johns",
    LCM_SUMMARY_MODEL: "soak/scripted",
    LCM_SUMMARY_BASE_URL: `${provider.url}/v1`,
    ...given.settings,
  };
  let lines = 0;
  let imported = 0;
  const over = new AbortController();
  let paused: PromiseWithResolvers<void> | null = null;
  let current: Promise<void> = Promise.resolve();

  const lcm = async (...args: readonly string[]): Promise<Ran> => {
    const bin = join(pluginFolder(), "bin", "lcm.js");
    const child = spawn(process.execPath, [bin, "--db", database, "--json", ...args], {
      cwd: gateway.home,
      env,
      stdio: ["ignore", "pipe", "pipe"],
      timeout: hungMs,
      killSignal: "SIGKILL",
    });
    const closed = once(child, "close");
    const [stdout, stderr] = await Promise.all([textOf(child.stdout), textOf(child.stderr)]);
    await closed;
    const status = child.exitCode;
    ledger.event(`lcm ${args[0]}: ${status}`, args.slice(1).join(" "));
    if (!mayEnd.has(status))
      ledger.broken(
        `the command line ends well`,
        `lcm ${args.join(" ")}: ${status}\n${stderr}\n${stdout.slice(0, 1_500)}`,
      );
    return { status, json: stdout.trim().startsWith("{") ? JSON.parse(stdout) : null };
  };

  const isOnServer = ground.url !== null;
  /** A server may be away just then. */
  const read = async <T>(use: (lcm: Lcm) => Promise<T>): Promise<T> =>
    isOnServer ? await untilAnswered(async () => await withStore(gateway, use)) : await withStore(gateway, use);

  /** A conversation, and a summary that its context shows, if there is one. */
  const pick = async (): Promise<{ readonly id: string; readonly summary: string | null } | null> =>
    await read(async ({ store }) => {
      const conversations = await store.conversations({ includeHidden: true });
      if (conversations.length === 0) return null;
      const { id } = random.pick(conversations);
      // A text carried over from an earlier segment has its sources there, and is refused.
      const summaries = await store.summaries({ conversation: id });
      const own = new Set(summaries.filter(({ carriedFrom }) => carriedFrom === null).map((summary) => summary.id));
      const shown = (await store.context(id)).flatMap((item) =>
        item.kind === "summary" && own.has(item.id) ? [item.id] : [],
      );
      return { id: String(id), summary: shown.length === 0 ? null : random.pick(shown) };
    });

  const steps = (): readonly Step[] => {
    const text = `They settled it all: ${prose(random, 60)}.`;
    return random.pick<readonly Step[]>([
      [{ kind: "answer", text }],
      [{ kind: "answer", text }],
      [
        { kind: "answer", text: "" },
        { kind: "answer", text },
      ],
      [{ kind: "answer", text: prose(random, 9_000) }],
      [{ kind: "error", status: 500 }],
      [{ kind: "cut" }, { kind: "answer", text }],
      [{ kind: "answer", text: "", reasoning: prose(random, 50) }],
    ]);
  };

  const works: Readonly<Record<string, () => Promise<void>>> = {
    async look() {
      const asked = random.pick([
        ["doctor", "--fix"],
        ["status"],
        ["history"],
        ["conversations"],
        ["recent"],
        isOnServer ? ["doctor"] : ["backup"],
        ["grep", random.pick(["harbour ledger", "東京", "Turn", "copper"])],
        ["grep", "-e", "Turn \\w+#1\\d?:"],
      ]);
      const { json } = await lcm(...asked);
      if (asked[0] === "doctor")
        for (const finding of faultsIn(json)) ledger.broken("doctor finds nothing, meanwhile", finding);
    },
    async fold() {
      const picked = await pick();
      if (picked === null) return;
      provider.play(...steps());
      await lcm(
        "compact",
        picked.id,
        "--apply",
        ...random.pick([["--no-model"], ["--force"], ["--no-model", "--force"], []]),
      );
    },
    async rewrite() {
      const picked = await pick();
      if (picked === null || picked.summary === null) return;
      provider.play(...steps());
      await lcm("rewrite", picked.id, "--summary", picked.summary, "--apply");
    },
    async dissolve() {
      const picked = await pick();
      if (picked === null || picked.summary === null) return;
      const { json } = await lcm("dissolve", picked.id, "--summary", picked.summary, "--apply");
      const change: number | undefined = json?.result?.change;
      if (change === undefined) return;
      await sleep(random.below(3_000));
      await lcm("undo", String(change), "--apply");
    },
    async import() {
      const path = join(gateway.home, "elsewhere.jsonl");
      for (const last = lines + random.between(5, 30); lines < last; lines++) {
        const role = lines % 2 === 0 ? "user" : "assistant";
        const message = { id: `line-${lines}`, role, content: `${lines}: ${prose(random, 60)}` };
        appendFileSync(path, `${JSON.stringify(message)}\n`);
      }
      const upTo = lines;
      const { status } = await lcm(
        "import",
        path,
        "--session",
        "elsewhere",
        "--session-key",
        importedSession,
        "--agent",
        "main",
      );
      if (status === 0) imported = upTo;
    },
    async hold() {
      await ground.hold(random.pick([1, 1, 2, 3, 5, 8, 12]));
    },
  };

  const live = async (): Promise<void> => {
    while (!over.signal.aborted) {
      await paused?.promise;
      if (over.signal.aborted) return;
      const work = works[random.weighted({ look: 35, fold: 18, rewrite: 12, dissolve: 14, import: 10, hold: 11 })];
      const isThere = isOnServer || hasStore(gateway);
      current = (isThere ? (work?.() ?? Promise.resolve()) : Promise.resolve()).catch((error: unknown) => {
        ledger.broken("the second process works", error);
      });
      await current;
      await sleep(random.between(200, 1_500));
    }
  };
  const lived = live();

  return {
    lcm,
    imported: () => imported,
    async pause() {
      paused ??= Promise.withResolvers<void>();
      await current;
    },
    resume() {
      paused?.resolve();
      paused = null;
    },
    async close() {
      over.abort();
      paused?.resolve();
      await lived;
      await provider.close();
    },
  };
}

/** Summaries that `lcm repair` would improve: made while no model was usable, or from a text rewritten since. */
export const byDesign = ["summary_below_normal", "summary_outdated"] as const;

/** Findings of doctor that have no known cause. */
export const faultsIn = (json: Json): readonly string[] =>
  (json?.findings ?? [])
    .filter(({ severity, code }: Json) => severity !== "info" && !byDesign.includes(code))
    .map((finding: Json) => JSON.stringify(finding));
