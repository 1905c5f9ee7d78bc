/**
 * Runs every check (`npm test`), the quick ones first. A stage that passes prints one line; the first that fails shows
 * its output, and ends the run.
 */

import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { makeScratch } from "../test/support/scratch.ts";

interface Stage {
  readonly name: string;
  /** One line on success, or null after showing the failure. */
  readonly check: () => string | null | Promise<string | null>;
}

const stages: readonly Stage[] = [
  { name: "types", check: () => command("tsc -p .") },
  { name: "lint", check: () => command("oxlint") },
  { name: "format", check: () => command("oxfmt --check .") },
  { name: "unused", check: () => command("knip") },
  { name: "generated", check: () => command("node scripts/generate.ts --check") },
  { name: "tests", check: runTests },
  { name: "host", check: () => command("node test/host/run.ts") },
];

/** A test file that takes longer hangs. */
const fileTimeoutMs = 15 * 60_000;

// Off the full hour and with summer time, unless a zone is given: time zone mistakes show here first.
process.env["TZ"] ??= "America/St_Johns";

// A hundred processes and some thousand threads read the same sources: they are compiled once.
process.env["NODE_COMPILE_CACHE"] ??= resolve(import.meta.dirname, "..", "node_modules", ".cache", "compiled");

// Expensive fixtures are made once, and shared here by all tests.
process.env["LCM_TEST_SHARED"] ??= makeScratch("shared");

for (const { name, check } of stages) {
  const started = performance.now();
  const good = await check();
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  if (good === null) {
    console.error(`✗ ${name} failed after ${seconds} s`);
    process.exit(1);
  }
  console.log(`✓ ${[name.padEnd(10), `${seconds} s`.padStart(8), good].join(" ").trimEnd()}`);
}

/** The one line of a command that succeeds. */
function command(line: string): string | null {
  const { status, stdout, stderr } = spawnSync(line, { shell: true, encoding: "utf8", maxBuffer: 1e9 });
  if (status === 0) return stdout.split("\n").findLast((said) => /OpenClaw\b/.test(said)) ?? "";
  process.stderr.write(`$ ${line}\n${stdout}${stderr}`);
  return null;
}

/** Shows failures as they happen, and skipped tests with the reason; passes are only counted. */
async function runTests(): Promise<string | null> {
  // Host tests need the host, and come last.
  const files = globSync(["src/**/*.test.ts", "test/**/*.test.ts"], { exclude: ["test/host/**"] }).toSorted();
  const events = run({ files, concurrency: availableParallelism(), timeout: fileTimeoutMs });
  let summary = "";
  let isGood = false;
  events.on("test:pass", ({ name, skip }) => {
    if (skip !== undefined) console.log(`  skipped: ${name}${typeof skip === "string" ? ` (${skip})` : ""}`);
  });
  events.on("test:summary", ({ counts, file, success }) => {
    // Each file has its own summary; the last one, without a file, covers them all.
    if (file !== undefined) return;
    isGood = success;
    summary = `${counts.tests} tests in ${files.length} files, ${counts.skipped} skipped`;
  });
  const failures = events.filter(({ type }) => type === "test:fail" || type === "test:stderr").compose(new spec());
  for await (const text of failures) process.stderr.write(text);
  return isGood ? summary : null;
}
