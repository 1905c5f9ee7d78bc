/** What people do on the pages of the demo, told once for databases in files and on servers. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Visitor } from "../support/visitor.ts";

const bin = fileURLToPath(new URL("../../bin/lcm.js", import.meta.url));
const top = "sum_000000016a99b44c";

/** What a view must show, of the demo or of the talk whose prompts were recorded. */
type ViewStory = readonly [address: string, sees: string | RegExp, of?: "talk"];

/** Each view by what it must show. */
export const views: readonly ViewStory[] = [
  ["#/", /1 conversation[^]*Three customers[^]*1,487[^]*healthy/],
  ["#/timeline/1", /All: 1,487 messages, 2026-09-07 – 2026-10-11[^]*in the prompt/],
  ["#/timeline/1?focus=msg_1-10", /msg_1-10[^]*Three orders, one charge too many/],
  ["#/messages/1?at=700", /msg_1-692[^]*msg_1-700[^]*Theo\s+Football/],
  ["#/message/msg_1-2", /assistant[^]*75 tokens[^]*Good morning. I'll look at the payment worker's log[^]*shell/],
  ["#/summary/sum_000000016a99b44c", /extracted without a model[^]*Made from 10 summaries[^]*sum_000000013c6ef362/],
  ["#/summary/sum_000000013c6ef362", /Made from 154 messages[^]*msg_1-1\b/],
  ["#/file/file_0000000161c8864f", /file_0000000161c8864f/],
  ["#/seen/1", /prompt 2 of 2[^]*7,627 tokens[^]*fresh tail\s+5,069[^]*folded into sum_000000016a99b44c[^]*34 items/],
  ["#/seen/1?prompt=now", /would be sent now[^]*budget/],
  ["#/when/msg_1-3", /peanut allergy[^]*does not show it itself[^]*may leave it out[^]*covered by sum_/, "talk"],
  ["#/search?q=passport", /15 matches[^]*It runs out 3 December 2026/],
  ["#/health", /conversations[^]*1,487[^]*Healthy/],
  ["#/health/1", /11 summaries were extracted without a model/],
  ["#/cost/1", /same bytes as before[^]*Tokens per prompt[^]*Growth/],
  ["#/cost/1", /read from cache\s+13%[^]*Read from the provider’s cache/, "talk"],
  ["#/changes", "Nothing was changed yet."],
  ["#/changes/1", /Compact[^]*Transplant/],
];

export const nameOfView = ([address, , of]: ViewStory): string => `${of ?? "the demo"} at ${address}, for everybody`;

export async function seesView(visitor: Visitor, [address, sees]: ViewStory): Promise<void> {
  await visitor.go(address);
  await visitor.sees(sees);
  await visitor.until(`document.querySelector(".loading") === null`);
  assert.deepEqual(await visitor.barriers(), []);
  await visitor.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
  assert.deepEqual(await visitor.barriers("color-contrast"), [], "in the dark");
  await visitor.page.emulateMediaFeatures([]);
  assert.deepEqual(visitor.troubles(), []);
  assert.match(await visitor.page.title(), /· lossless-claw$/);
}

// ── Changes ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export async function apply(visitor: Visitor): Promise<void> {
  const words = `document.querySelector("dialog .primary:not(:disabled)")?.textContent`;
  await visitor.until(`!["Draft", "Close", undefined].includes(${words})`);
  await visitor.click(String(await visitor.page.evaluate(words)));
}

/** The number of the change that the dialog offers to undo. */
export async function changeOf(visitor: Visitor): Promise<number> {
  await visitor.until(`/Undo change \\d+/.test(document.querySelector("dialog")?.innerText)`);
  return Number(/Undo change (\d+)/.exec(await visitor.text())?.[1]);
}

export async function undoNow(visitor: Visitor): Promise<void> {
  await visitor.click(`Undo change ${await changeOf(visitor)}`);
  await visitor.sees("Undo a change");
  await apply(visitor);
  await visitor.sees(/Undid change \d+/);
  await visitor.click("Close", "button");
  await visitor.until(`document.querySelector("dialog") === null`);
}

export async function dissolvesAndTakesBack(visitor: Visitor): Promise<void> {
  await visitor.go(`#/summary/${top}`);
  await visitor.sees("Dissolve …");
  await visitor.press("d");
  await visitor.sees(/Dissolve a summary[^]*10 summaries/);
  await apply(visitor);
  await undoNow(visitor);
  await visitor.go("#/timeline/1");
  await visitor.sees("All: 1,487 messages");
}

// ── Beside another process ───────────────────────────────────────────────────────────────────────────────────────────

export async function seesWhatAnotherWrites(visitor: Visitor, database: string, folder: string): Promise<void> {
  await visitor.go("#/");
  await visitor.sees("1,487");
  await importInto(database, folder, "heliotrope", 25);
  await visitor.sees(/heliotrope 0[^]*\b25\b/);
}

/** A process of its own imports a session in which a user says something a minute. */
export async function importInto(database: string, folder: string, session: string, count: number): Promise<void> {
  const lines = Array.from({ length: count }, (_, at) => ({
    type: "message",
    id: `${session}-${at}`,
    parentId: at === 0 ? null : `${session}-${at - 1}`,
    timestamp: new Date(Date.UTC(2026, 9, 12, 8, at)).toISOString(),
    message: { role: "user", content: `${session} ${at} ${"and so on ".repeat(20)}` },
  }));
  const file = join(folder, `${session}.jsonl`);
  writeFileSync(file, `${lines.map((line) => JSON.stringify(line)).join("\n")}\n`);
  const child = spawn(process.execPath, [bin, "import", file, "--db", database], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (chunk) => (said += String(chunk)));
  const [status] = await once(child, "exit");
  assert.equal(status, 0, said);
}
