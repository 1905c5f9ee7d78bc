/**
 * Runs every operator's tool as the real program, while a host writes, and kills it at work. The change is then made or
 * not made, and running the tool again completes it.
 */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { text as textOf } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { FindingCode } from "../../src/core/maintenance/inspect.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { makeDeepConversation } from "../support/deep-conversation.ts";
import { dumpOfContent } from "../support/dump.ts";
import type { Dump } from "../support/dump.ts";
import { checkSound } from "../support/lossless.ts";
import { homeAt, wasKilled, withoutSignals } from "../support/platform.ts";
import { createRandom } from "../support/random.ts";
import { makeScratch } from "../support/scratch.ts";
import { startScriptedProvider } from "../support/scripted-provider.ts";
import type { ScriptedProvider } from "../support/scripted-provider.ts";
import { bin } from "../scenarios/program.ts";

const seed = Number(process.env["SEED"] ?? 1);
const d3 = "sum_0000000100000014";
/** The same each time, so that doing it twice equals doing it once; too short to be an echo of itself. */
const draft =
  "The crew weighed the points on the list, kept them all, and told the harbour.\nExpand for details about: all";

const scratch = makeScratch("operator");
let provider: ScriptedProvider;
before(async () => {
  provider = await startScriptedProvider();
  provider.play({ kind: "answer", text: draft });
  await makeDeepConversation(join(scratch, "template", "lcm.db"));
});
after(async () => await provider.close());

let places = 0;
function createPlace(from = join(scratch, "template")): string {
  const state = join(scratch, String(++places));
  cpSync(from, state, { recursive: true });
  return state;
}

const databaseIn = (state: string): string => join(state, "lcm.db");

// ── Running it ───────────────────────────────────────────────────────────────────────────────────────────────────────

interface Ended {
  readonly status: number | null;
  readonly signal: string | null;
  readonly said: string;
}

interface Fate {
  /** Dies after this many writing statements, or milliseconds. */
  readonly killAt?: number;
  readonly killAfterMs?: number;
  readonly countTo?: string;
}

const hook = new URL("operator-hook.ts", import.meta.url).href;

async function lcm(state: string, args: readonly string[], fate: Fate = {}): Promise<Ended> {
  const { killAt, killAfterMs, countTo } = fate;
  const isHooked = killAt !== undefined || countTo !== undefined;
  const env = {
    PATH: process.env["PATH"],
    ...homeAt(state),
    OPENCLAW_STATE_DIR: state,
    NODE_COMPILE_CACHE: join(scratch, "compiled"),
    LCM_SUMMARY_MODEL: "harbour/scripted-1",
    LCM_SUMMARY_BASE_URL: `${provider.url}/v1`,
    ...(killAt === undefined ? {} : { KILL_AT: String(killAt) }),
    ...(countTo === undefined ? {} : { COUNT_TO: countTo }),
  };
  const child = spawn(process.execPath, [...(isHooked ? ["--import", hook] : []), bin, ...args], {
    cwd: state,
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const closed = once(child, "close");
  if (killAfterMs !== undefined) void sleep(killAfterMs).then(() => child.kill("SIGKILL"));
  const [stdout, stderr] = await Promise.all([textOf(child.stdout), textOf(child.stderr)]);
  await closed;
  return { status: child.exitCode, signal: child.signalCode, said: `lcm ${args.join(" ")}\n${stdout}\n${stderr}` };
}

// ── The tools ────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Tool {
  readonly args: readonly string[];
  readonly prepare?: (state: string) => Promise<void> | void;
  /** Several transactions: killed in between, some rows are old and others new. */
  readonly isGradual?: true;
  /** The exit status of running it again after it is done. */
  readonly doneStatus: number;
  /** What doctor finds afterwards. */
  readonly leaves?: readonly FindingCode[];
  /** It may refuse because others write all the time; then nothing has changed. */
  readonly mayConflict?: true;
}

const below: readonly FindingCode[] = ["summary_below_normal"];

const tools: Readonly<Record<string, Tool>> = {
  "rewrite --all": { args: ["rewrite", "1", "--all", "--apply"], isGradual: true, doneStatus: 0, leaves: below },
  repair: { args: ["repair", "--apply"], isGradual: true, doneStatus: 0 },
  dissolve: { args: ["dissolve", "1", "--summary", d3, "--purge", "--apply"], doneStatus: 3, leaves: below },
  transplant: { args: ["transplant", "1", "3", "--apply"], doneStatus: 4, leaves: below },
  "doctor --fix": {
    args: ["doctor", "--fix", "--apply"],
    prepare: (state) => damage(databaseIn(state)),
    isGradual: true,
    doneStatus: 1,
    leaves: below,
    mayConflict: true,
  },
  undo: {
    args: ["undo", "1", "--apply"],
    prepare: async (state) => void (await lcm(state, ["transplant", "1", "3", "--apply", "--no-backup"])),
    doneStatus: 4,
    leaves: below,
  },
  prune: { args: ["prune", "2", "--delete", "--apply"], doneStatus: 3, leaves: below, mayConflict: true },
};

/** What `doctor --fix` fixes, in two conversations. */
function damage(path: string): void {
  const db = new DatabaseSync(path, { timeout: 5_000 });
  db.exec(`
    UPDATE conversations SET context_tokens = context_tokens + 7, summary_count = 1 WHERE conversation_id IN (1, 2);
    UPDATE summaries SET earliest_at = '2001-01-01T00:00:00.000Z' WHERE summary_id = '${d3}';`);
  db.close();
}

const sound = async (state: string, expected: readonly FindingCode[]): Promise<void> => {
  const store = await openSqlite({ path: databaseIn(state), housekeeping: false });
  try {
    await checkSound(store, [null], expected);
  } finally {
    await store.close();
  }
};

// ── Rows that can be compared between runs ───────────────────────────────────────────────────────────────────────────

/** Without what differs each time: current times, new ids, how often a text was written. */
function comparable(dump: Dump): Dump {
  const now = new Date().toISOString().slice(0, 4);
  const plain = (row: string): string =>
    row
      .replaceAll(new RegExp(`"(?:updated_at|created_at)":"${now}-[^"]*"`, "g"), '"at":"now"')
      .replace(/"stored_at":\d+/, '"stored_at":"now"')
      .replace(/"(revision|search_id)":\d+/g, '"$1":"some"')
      .replace(/(sum_|copy:)(?!0{8})[0-9a-f]{16}/g, "$1made");
  return Object.fromEntries(Object.entries(dump).map(([table, rows]) => [table, rows.map(plain).toSorted()]));
}

const isSame = (a: Dump, b: Dump): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Rows that are in neither dump. Totals between two steps are ignored here; `inspect` checks those. */
function strangers(now: Dump, before: Dump, done: Dump): readonly string[] {
  return Object.entries(now).flatMap(([table, rows]) => {
    const known = new Set([...(before[table] ?? []), ...(done[table] ?? [])]);
    return table === "conversations" ? [] : rows.filter((row) => !known.has(row)).map((row) => `${table} ${row}`);
  });
}

// ── Tests ────────────────────────────────────────────────────────────────────────────────────────────────────────────

describe("guarantee 28: kill -9 in the middle of a tool leaves it done or not done", () => {
  const random = createRandom(seed);

  for (const [name, tool] of Object.entries(tools)) {
    const { args, prepare, isGradual = false, doneStatus, leaves = [] } = tool;

    it(name, async (t) => {
      const prepared = createPlace();
      await prepare?.(prepared);
      const before = comparable(dumpOfContent(databaseIn(prepared)));
      const reference = createPlace(prepared);
      const countTo = join(reference, "count");
      const startedMs = performance.now();
      const whole = await lcm(reference, args, { countTo });
      const tookMs = performance.now() - startedMs;
      assert.ok(whole.status === 0 || whole.status === doneStatus, whole.said);
      const done = comparable(dumpOfContent(databaseIn(reference)));
      assert.ok(!isSame(before, done), "there is something to do");
      const writes = Number(readFileSync(countTo, "utf8"));

      const points = [...new Set([1, Math.ceil(writes / 2), writes])].map((killAt) => ({ killAt }));
      // With several transactions, also at arbitrary moments.
      const late = isGradual ? [{ killAfterMs: tookMs * (0.3 + random.below(60) / 100) }] : [];
      const ends = { "not done": 0, partly: 0, done: 0 };
      for (const fate of [...points, ...late]) {
        const state = createPlace(prepared);
        const killed = await lcm(state, args, fate);
        if ("killAt" in fate) assert.ok(wasKilled(killed), killed.said);
        const now = comparable(dumpOfContent(databaseIn(state)));
        const end = isSame(now, before) ? "not done" : isSame(now, done) ? "done" : "partly";
        ends[end] += 1;
        if (end === "partly") {
          assert.ok(isGradual, `${name} is one transaction, and was killed ${JSON.stringify(fate)}`);
          assert.deepEqual(strangers(now, before, done), []);
        }
        // Its sources may be rewritten already, and shorter.
        if (name !== "doctor --fix") await sound(state, [...below, "summary_too_long"]);

        const again = await lcm(state, args);
        assert.ok(again.status === 0 || again.status === doneStatus, again.said);
        assert.ok(
          isSame(comparable(dumpOfContent(databaseIn(state))), done),
          `running it again completes it\n${again.said}`,
        );
        await sound(state, leaves);
      }
      t.diagnostic(`${writes} statements that write; ${JSON.stringify(ends)}`);
    });
  }
});

describe("guarantee 28: tools work while the host is running", { skip: withoutSignals }, () => {
  const talker = fileURLToPath(new URL("operator-host.ts", import.meta.url));

  for (const [name, { args, prepare, doneStatus, leaves = [], mayConflict }] of Object.entries(tools)) {
    it(name, async (t) => {
      const state = createPlace();
      await prepare?.(state);
      const path = databaseIn(state);
      const host = spawn(process.execPath, [talker, path, "1", "2", "3"], { stdio: ["ignore", "pipe", "pipe"] });
      const [told, complaint, closed] = [textOf(host.stdout), textOf(host.stderr), once(host, "close")];
      await once(host.stdout, "readable");
      const ended = await lcm(state, args);
      host.kill("SIGTERM");
      await closed;
      assert.equal(host.exitCode, 0, await complaint);
      const isDone = ended.status === 0 || ended.status === doneStatus;
      assert.ok(isDone || (mayConflict === true && ended.status === 4), ended.said);

      const db = new DatabaseSync(path, { readOnly: true });
      const stored = db.prepare("SELECT conversation_id || ' ' || message_key AS name FROM messages").all();
      const gone = name === "prune" && isDone ? "2 " : "none";
      db.close();
      const names = stored.map((row) => String(row["name"])).filter((each) => each.includes("busy-"));
      const acknowledged = (await told).split("\n").filter((line) => line !== "" && !line.startsWith(gone));
      assert.ok(acknowledged.length > 0, "the host has written something");
      assert.deepEqual(names.toSorted(), acknowledged.toSorted(), "everything it wrote is stored once");
      if (isDone) await sound(state, [...leaves, ...below]);
      t.diagnostic(`${acknowledged.length} messages came in between; exit status ${ended.status}`);
    });
  }
});
