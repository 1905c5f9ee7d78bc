/**
 * `npm run demo`: what this is for, in a few seconds and without a server, a key or an account. Everything happens in a
 * temporary folder that is gone afterwards.
 */

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { messageToStore } from "../core/content.ts";
import type { SourceLine } from "../core/ingest.ts";
import { isSound } from "../core/inspect.ts";
import type { Lcm } from "../core/lcm.ts";
import type { Json, JsonObject } from "../core/model.ts";
import { formatBytes, formatCount } from "../core/text.ts";
import { createDemoChat, demoSession } from "./demo-chat.ts";
import type { DemoEntry } from "./demo-chat.ts";
import { openLcm, systemClock } from "./open.ts";
import { createPaint, cut, oneLine, padEnd, plural } from "./render.ts";

const turns = 620;
const columns = Math.min(process.stdout.isTTY ? process.stdout.columns : 100, 110);
const paint = createPaint(process.stdout.isTTY && process.stdout.hasColors());

async function demonstrate(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "lcm-demo-"));
  const path = join(folder, "lcm.db");
  try {
    say(
      paint.strong("lossless-claw"),
      paint.soft("· a year of conversation, in a temporary folder that is gone afterwards"),
    );
    const chat = createDemoChat(turns);
    const lcm = await openLcm(path);
    await storeIt(lcm, chat);
    await readItBack(lcm, chat);
    await replayIt(lcm, chat);
    await findIt(lcm);
    const { bytes } = await lcm.store.status();
    await lcm.close();
    await crashIt(path);
    weighIt(chat, bytes);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

// ── What it shows ────────────────────────────────────────────────────────────────────────────────────────────────────

async function storeIt(lcm: Lcm, chat: readonly DemoEntry[]): Promise<void> {
  headline("Everything is stored");
  const started = performance.now();
  const { messages } = await lcm.import(linesOf(chat), { fallbackSessionId: demoSession });
  while ((await lcm.store.index(1_000)) > 0);
  say(
    `${plural(messages, "message")} with tool calls, reasoning, 日本語 and emoji, indexed for search: ${took(started)}`,
  );
}

async function readItBack(lcm: Lcm, chat: readonly DemoEntry[]): Promise<void> {
  headline("Every message reads back exactly as it came");
  const { id } = await lcm.find(demoSession);
  const back: Json[] = [];
  for await (const line of lcm.export(id)) back.push(JSON.parse(line));
  const at = chat.findIndex((entry) => JSON.stringify(entry).includes("thinkingSignature"));
  say(`${paint.soft("in ")}  ${shown(chat[at])}`);
  say(`${paint.soft("out")}  ${shown(back[at])}`);
  const equal = chat.filter((entry, index) => isDeepStrictEqual(entry, back[index])).length;
  verdict(
    equal === chat.length && back.length === chat.length,
    `${formatCount(equal)} of ${formatCount(chat.length)} are equal, block by block`,
  );
}

async function replayIt(lcm: Lcm, chat: readonly DemoEntry[]): Promise<void> {
  headline("A replay stores nothing twice");
  const started = performance.now();
  const again = await lcm.import(linesOf(chat), { fallbackSessionId: demoSession });
  const known = `${formatCount(again.duplicates)} recognised by their keys`;
  verdict(
    again.messages === 0,
    `the whole year once more: ${plural(again.messages, "new message")}, ${known}: ${took(started)}`,
  );
}

async function findIt(lcm: Lcm): Promise<void> {
  headline("Anything can be found again");
  const searches = [
    { pattern: "how often does the payment worker retry?", mode: "full_text" },
    { pattern: "旅館", mode: "full_text" },
    { pattern: "ERR_\\w+_TIMEOUT", mode: "regex" },
  ] as const;
  await lcm.grep({ pattern: "warm", mode: "full_text", within: { kind: "all" } });
  const width = Math.max(...searches.map(({ pattern }) => pattern.length)) + 2;
  for (const search of searches) {
    const started = performance.now();
    const { hits } = await lcm.grep({ ...search, within: { kind: "all" }, limit: 5 });
    const hit = hits[0];
    say(
      `${padEnd(paint.strong(search.pattern), width)}${paint.soft(`${took(started)}, among all ${formatCount((await lcm.store.status()).messages)} messages`)}`,
    );
    say(
      hit === undefined ? paint.bad("nothing found") : `  ${paint.soft("→")} ${cut(oneLine(hit.snippet), columns - 8)}`,
    );
  }
}

const acknowledgedBeforeKill = 150;

async function crashIt(path: string): Promise<void> {
  headline("A crash loses nothing");
  const acknowledged = await killWriter(path);
  const started = performance.now();
  const lcm = await openLcm(path);
  const opened = took(started);
  try {
    const { id } = await lcm.find(crashSession);
    const stored = new Set((await lcm.store.messages({ conversation: id })).map(({ key }) => key));
    const lost = acknowledged.filter((key) => !stored.has(key)).length;
    say(
      `another process was writing, and was killed (SIGKILL) after ${plural(acknowledged.length, "acknowledged message")}`,
    );
    verdict(lost === 0, `opened again in ${opened}: ${lost === 0 ? "all of them are there" : `${lost} are lost`}`);
    const findings = await lcm.inspect(null);
    const { messages } = await lcm.store.status();
    verdict(
      isSound(findings),
      `\`lcm doctor\`: ${formatCount(messages)} messages checked, ${isSound(findings) ? "nothing lost, doubled or broken" : "not sound"}`,
    );
  } finally {
    await lcm.close();
  }
}

function weighIt(chat: readonly DemoEntry[], bytes: number): void {
  headline("It is one file");
  const text = chat.reduce((sum, entry) => sum + Buffer.byteLength(JSON.stringify(entry)), 0);
  say(`${formatBytes(bytes)} with its search index, for ${formatBytes(text)} of transcript`);
  process.stdout.write(
    `\nNow yours: ${paint.strong("npx lcm import FILE.jsonl")}, then ${paint.strong("npx lcm grep WORDS")}.\n`,
  );
}

// ── The writer that is killed ────────────────────────────────────────────────────────────────────────────────────────

const crashSession = "demo-crash";

/** Appends a message at a time for as long as it lives, and says each one's key once it is stored. */
async function writeUntilKilled(path: string): Promise<void> {
  const { store } = await openLcm(path);
  const { id } = await store.open({ sessionId: crashSession });
  const messagesMax = 100_000;
  for (let count = 1; count <= messagesMax; count++) {
    const key = `crash-${count}`;
    const message = messageToStore(
      { role: "user", content: `message ${count} before the crash` },
      { key, at: systemClock.now() },
    );
    await store.append(id, [{ kind: "message", message }]);
    process.stdout.write(`${key}\n`);
  }
}

/** The keys that it had acknowledged when it was killed. */
async function killWriter(path: string): Promise<readonly string[]> {
  const writer = spawn(process.execPath, [fileURLToPath(import.meta.url), "--write", path], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const keys: string[] = [];
  for await (const key of createInterface({ input: writer.stdout })) {
    keys.push(key);
    if (keys.length === acknowledgedBeforeKill) writer.kill("SIGKILL");
  }
  return keys;
}

// ── Saying it ────────────────────────────────────────────────────────────────────────────────────────────────────────

async function* linesOf(chat: readonly DemoEntry[]): AsyncGenerator<SourceLine> {
  for (const [index, value] of chat.entries()) yield { position: index + 1, value };
}

let headlines = 0;
const headline = (text: string): void => void process.stdout.write(`\n${paint.strong(`${++headlines}  ${text}`)}\n`);
const say = (...texts: readonly string[]): void =>
  void process.stdout.write(`${headlines === 0 ? "" : "   "}${texts.join(" ")}\n`);

function verdict(isGood: boolean, text: string): void {
  say(`${isGood ? paint.good("✓") : paint.bad("✗")} ${text}`);
  if (!isGood) process.exitCode = 1;
}

function took(startedMs: number): string {
  const ms = performance.now() - startedMs;
  return ms < 1_000 ? `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

/** The message of an entry, in one line. */
function shown(entry: Json | JsonObject | undefined): string {
  const message = typeof entry === "object" && entry !== null && "message" in entry ? entry["message"] : entry;
  return cut(JSON.stringify(message), columns - 9);
}

const [, , task, writerPath] = process.argv;
if (task === "--write" && writerPath !== undefined) await writeUntilKilled(writerPath);
else await demonstrate();
