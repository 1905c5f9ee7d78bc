/**
 * Reads 10,000 messages with a scripted model that reads honestly, and compares what it counts and lists with the truth:
 * `npm run bench:thorough [-- 10000]`. The reading process is killed twice with SIGKILL, and continues. Prints what was read, how
 * often, and what was spent against the plan. Exits with 1 if anything is not as promised.
 */

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { Json } from "../src/core/base/json.ts";
import { formatCount } from "../src/core/base/format.ts";
import type { Timestamp } from "../src/core/base/time.ts";
import { createLcm, type Lcm } from "../src/core/lcm.ts";
import type { HostMessage } from "../src/core/messages/codec.ts";
import { resolveSettings } from "../src/core/model/settings.ts";
import type { Model } from "../src/core/model/store.ts";
import type { ConversationId } from "../src/core/model/types.ts";
import { openSqlite, systemNow } from "../src/store/sqlite/store.ts";
import { createHonestReader, itemsIn } from "../test/support/honest-reader.ts";
import { corpusEntry, createRandom } from "./corpus.ts";
import { table } from "./table.ts";

const { values: args, positionals } = parseArgs({ options: { read: { type: "string" } }, allowPositionals: true });
const size = Number(positionals[0] ?? 10_000);
const question = {
  prompt: "How often did each ferry leave, and from which quay?",
  reach: { kind: "all", conversations: null },
} as const;
const ferries = ["Alma", "Brisk", "Corvo", "Dagny", "Elias", "Freya", "Gudrun"];
const logged = (path: string): string => `${path}.log`;
/** How long a call takes, so that a kill falls among calls. */
const callMs = 15;

/** About every 41st message reports that a ferry left; a few report two. */
function departuresIn(n: number): readonly string[] {
  const random = createRandom(n * 7 + 3);
  if (random.int(41) !== 0) return [];
  return Array.from({ length: random.int(9) === 0 ? 2 : 1 }, () => {
    return `the ferry ${ferries[random.int(ferries.length)]} left from quay ${1 + random.int(4)}`;
  });
}

function messageOf(n: number): HostMessage {
  const { message } = corpusEntry(n) as unknown as { message: HostMessage };
  const news = departuresIn(n)
    .map((words) => ` By the way, ${words}.`)
    .join("");
  const { content } = message;
  if (typeof content === "string") return { ...message, content: content + news };
  const [first, ...rest] = content as readonly { readonly text?: string }[];
  return { ...message, content: [{ ...first, text: `${first?.text ?? ""}${news}` }, ...rest] };
}

const factsOf = (text: string): Json => ({
  facts: [...text.matchAll(/the ferry (\w+) left from quay (\d)/g)].map(([quote, ferry, quay]) => ({
    subject: `ferry ${ferry}`,
    statement: `The ferry ${ferry} left from quay ${quay}.`,
    quote,
  })),
});

async function open(path: string, model: Model | null): Promise<Lcm> {
  const settings = resolveSettings({ env: {}, config: { spendCeilingCalls: 1_000_000 } }).values;
  return createLcm({ store: await openSqlite({ path }), clock: { now: systemNow }, settings, model });
}

/** Answers as the honest reader does, and logs each message when it answers for it. */
function loggingReader(path: string): Model {
  const honest = createHonestReader(factsOf);
  return {
    ...honest,
    async complete(request) {
      await sleep(callMs);
      const lines = itemsIn(request.prompt).map(({ text }) => createHash("sha1").update(text).digest("hex"));
      if (lines.length > 0) appendFileSync(logged(path), `${lines.join(" ")}\n`);
      return await honest.complete(request);
    },
  };
}

const callsLogged = (path: string): number =>
  existsSync(logged(path)) ? readFileSync(logged(path), "utf8").split("\n").length - 1 : 0;

/** One reading process; killed once this many calls were answered. */
async function read(path: string, killAt: number | null): Promise<string> {
  const child = spawn(process.execPath, [import.meta.filename, "--read", path], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
  const closed = once(child, "close");
  if (killAt !== null) {
    while (callsLogged(path) < killAt && child.exitCode === null) await sleep(5);
    child.kill("SIGKILL");
  }
  await closed;
  return said;
}

async function store(path: string): Promise<ConversationId> {
  const lcm = await open(path, null);
  const { id } = await lcm.store.open({ sessionId: "bench" });
  const entries = Array.from({ length: size }, (_, n) => {
    const at = new Date(Date.UTC(2026, 0, 1) + n * 20_000).toISOString() as Timestamp;
    return { kind: "message", message: messageOf(n), key: `m${n}`, at } as const;
  });
  for (let from = 0; from < size; from += 1_000) await lcm.ingest(id, entries.slice(from, from + 1_000));
  await lcm.close();
  return id;
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "lcm-thorough-"));
  const path = join(folder, "lcm.db");
  try {
    const id = await store(path);
    const lcm = await open(path, loggingReader(path));
    const plan = await lcm.planThorough(question);
    await read(path, Math.floor(plan.calls / 3));
    await read(path, Math.floor((plan.calls * 2) / 3));
    const { answer, reading } = JSON.parse(await read(path, null));
    const usage = await lcm.store.usageSince("" as Timestamp);
    const lines = (await lcm.store.fileContent(reading.files[0]))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    await lcm.close();
    report({ id, plan, answer, reading, usage, lines, shown: countShown(path) });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function countShown(path: string): ReadonlyMap<string, number> {
  const shown = new Map<string, number>();
  for (const each of readFileSync(logged(path), "utf8")
    .split(/\s+/)
    .filter((word) => word !== ""))
    shown.set(each, (shown.get(each) ?? 0) + 1);
  return shown;
}

// What the child printed is our own JSON; a wrong shape fails where it is read.
type Found = { readonly [field: string]: ReturnType<typeof JSON.parse> };

function report({ id, plan, answer, reading, usage, lines, shown }: Found): void {
  const truth = Array.from({ length: size }, (_, n) => ({ n, departures: departuresIn(n) })).filter(
    ({ departures }) => departures.length > 0,
  );
  const departures = truth.flatMap((each) => each.departures);
  const perFerry = ferries.map((ferry) => departures.filter((words) => words.includes(ferry)).length);
  const counted = ferries.map(
    (ferry) => reading.subjects.find((each: Found) => each["subject"] === `ferry ${ferry.toLowerCase()}`)?.facts ?? 0,
  );
  const listed = lines.map((line: Found) => line["id"]).join();
  const expected = truth.map(({ n }) => `msg_${id}-${n + 1}`).join();
  const times = [...shown.values()] as readonly number[];
  const again = times.filter((count) => count > 1).length;
  const spent = usage.inputTokens + usage.outputTokens;
  const planned = plan.inputTokens + plan.outputTokens;
  const last = reading.spent;
  const checks: readonly (readonly [what: string, expected: string, found: string, isRight: boolean])[] = [
    ["messages read", formatCount(size), formatCount(reading.read), reading.read === size],
    ["messages not read", "0", formatCount(reading.unread.length), reading.unread.length === 0],
    [
      "departures counted",
      formatCount(departures.length),
      formatCount(reading.facts),
      reading.facts === departures.length,
    ],
    ["counted for each ferry", perFerry.join(" "), counted.join(" "), perFerry.join() === counted.join()],
    ["messages listed", formatCount(truth.length), formatCount(lines.length), listed === expected],
    ["shown to the model", formatCount(size), formatCount(times.length), times.length === size],
    ["shown again after a kill (two kills, calls under way)", "≤ 400", formatCount(again), again <= 400],
    ["calls, all three runs", formatCount(plan.calls), formatCount(usage.calls), usage.calls <= 1.2 * plan.calls],
    ["calls of the last run", "", formatCount(last.calls), last.calls < plan.calls / 2],
    ["tokens, all three runs", formatCount(planned), formatCount(spent), Math.abs(spent / planned - 1) <= 0.2],
  ];
  console.log(
    table(
      ["10,000 messages, killed twice".replace("10,000", formatCount(size)), "expected", "found", ""],
      [
        ...checks.map(([what, wanted, found, isRight]) => [what, wanted, found, isRight ? "✓" : "✗"]),
        ["spent against the plan", "80–120%", `${((100 * spent) / planned).toFixed(1)}%`, ""],
      ],
    ),
  );
  console.log(`\n${answer}`);
  if (checks.some(([, , , isRight]) => !isRight)) process.exitCode = 1;
}

if (args.read === undefined) await main();
else {
  const lcm = await open(args.read, loggingReader(args.read));
  const { answer, reading } = await lcm.thorough(question);
  console.log(JSON.stringify({ answer, reading }));
  await lcm.close();
}
