/**
 * Compares the program's output line by line with text files under golden/. `GOLDEN=write` in the environment of the
 * tests rewrites them: review the difference before you keep it.
 *
 * What differs from run to run is masked: folders, ports, file sizes, current times and new ids.
 */

import assert from "node:assert/strict";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeDeepConversation } from "../support/deep-conversation.ts";
import type { DeepConversation } from "../support/deep-conversation.ts";
import { makeScratch } from "../support/scratch.ts";
import type { ScriptedProvider } from "../support/scripted-provider.ts";
import { lcmBeside } from "./program.ts";
import type { Place, Run } from "./program.ts";

const isWriting = process.env["GOLDEN"] === "write";
const folder = fileURLToPath(new URL("golden", import.meta.url));

// ── The place ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Always the same length: where a line breaks depends on the length of the path in it. */
const root = mkdtempSync(join(existsSync("/tmp") ? "/tmp" : tmpdir(), "lcm-g-"));
process.on("exit", () => rmSync(root, { recursive: true, force: true }));
let places = 100;

let template: Promise<{ readonly path: string; readonly deep: DeepConversation }> | undefined;

async function makeTemplate(): Promise<{ readonly path: string; readonly deep: DeepConversation }> {
  const path = join(makeScratch("golden"), "lcm.db");
  return { path, deep: await makeDeepConversation(path) };
}

export interface DeepPlace extends Place {
  readonly deep: DeepConversation;
  readonly path: string;
}

/** A state directory with the deep conversation in it, and a model that follows the provider's script. */
export async function createDeepPlace(
  provider: ScriptedProvider | null,
  env: Readonly<Record<string, string>> = {},
): Promise<DeepPlace> {
  const { path: from, deep } = await (template ??= makeTemplate());
  const state = join(root, String(++places));
  cpSync(dirname(from), state, { recursive: true });
  const model =
    provider === null ? {} : { LCM_SUMMARY_MODEL: "harbour/scripted-1", LCM_SUMMARY_BASE_URL: `${provider.url}/v1` };
  return { state, env: { COLUMNS: "100", ...model, ...env }, deep, path: join(state, "lcm.db") };
}

/** Texts that are usable for every summary of the deep conversation, numbered so that they differ. */
export const draftText = (n: number): string =>
  `Draft ${n}: the crew weighed the points on the list, kept them all, and told the harbour.\n` +
  "Expand for details about: the list";

// ── The transcript ───────────────────────────────────────────────────────────────────────────────────────────────────

export interface Transcript {
  /** Runs the program and records its output. */
  run(...args: readonly string[]): Promise<Run>;
  /** Compares all output so far with the file of this name. */
  matches(name: string): void;
}

export function createTranscript(place: Place): Transcript {
  const said: string[] = [];
  const mask = createMask(place);
  return {
    async run(...args) {
      const run = await lcmBeside(place, args);
      const errors = run.stderr === "" ? "" : `[stderr]\n${run.stderr}`;
      said.push(mask(`$ lcm ${args.join(" ")}\n${run.stdout}${errors}[exit ${run.status}]\n`));
      return run;
    },
    matches(name) {
      const path = join(folder, `${name}.txt`);
      const text = said.join("\n");
      if (isWriting) writeFileSync(path, text);
      assert.ok(existsSync(path), `${path} does not exist: create it with GOLDEN=write`);
      assert.deepEqual(text.split("\n"), readFileSync(path, "utf8").split("\n"), `${name}.txt`);
    },
  };
}

/** New ids are numbered in order of appearance, which shows which ones are equal. */
function createMask({ state }: Place): (text: string) => string {
  const made = new Map<string, string>();
  const nameOf = (id: string): string => {
    const name = made.get(id) ?? `sum_${`made${made.size + 1}`.padEnd(16, ".")}`;
    made.set(id, name);
    return name;
  };
  return (text) =>
    maskNow(text)
      .replaceAll(state, "<state>")
      .replace(/(?:<state>\/)?lcm\.db\.(?:backup|set-aside)-\d{8}T\d{6}Z(?:-\d+)?/g, "<backup>")
      .replace(/127\.0\.0\.1:\d+/g, "<provider>")
      .replace(/\bsum_(?![0-9a-f]{8}0{5})[0-9a-f]{16}\b/g, nameOf)
      .replace(/\b\d[\d,.]*[ \n](?:B|KB|MB)\b/g, (size) => "<B>".padStart(size.length))
      .replace(/\b\d+(?:\.\d+)? m?s\b/g, "<duration>");
}

const dayMs = 86_400_000;

/** Times of the last days, with or without their year: nothing else shown here is that recent. */
function maskNow(text: string): string {
  const days = [-1, 0, 1].map((day) => new Date(Date.now() + day * dayMs).toISOString().slice(0, 10));
  const years = [...new Set(days.map((day) => day.slice(0, 4)))].join("|");
  const dated = days.flatMap((day) => [day, day.slice(5)]).join("|");
  return text
    .replace(new RegExp(`(?:${dated})[T ]\\d\\d:\\d\\d(?::\\d\\d\\.\\d{3}Z)?`, "g"), (time) =>
      "<now>".padEnd(time.length),
    )
    .replace(new RegExp(`times in (?:${years}), `, "g"), "times in <year>, ");
}
