/**
 * Runs every command of every guide, in the order of the page, and compares the output with what the page shows. The
 * database is like the reader's; guides/walk.ts stands in for commands that are not ours.
 */

import assert from "node:assert/strict";
import { cpSync, globSync, mkdirSync } from "node:fs";
import { basename, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { makeDemoDatabase } from "./support/demo-database.ts";
import { copyFixture } from "./support/older-database.ts";
import { withoutPosixPaths } from "./support/platform.ts";
import { makeScratch } from "./support/scratch.ts";
import { startScriptedProvider } from "./support/scripted-provider.ts";
import type { ScriptedProvider } from "./support/scripted-provider.ts";
import { isSaid, withNames } from "./guides/page.ts";
import type { Names } from "./guides/page.ts";
import { holdsOf, openShell, proofs, root, walk } from "./guides/walk.ts";
import type { Shell } from "./guides/walk.ts";

const pages = ["README.md", "CONTRIBUTING.md", ...globSync("docs/guides/*.md", { cwd: root }).toSorted()];
/** Pages whose reader has a database of the older program. */
const olderPages = ["coming-from-the-older-plugin.md", "going-back.md"];

/** The model's answer for the demo's first summary. */
const draft = `2026-09-07, 06:12–06:23. Three customers were charged twice: the worker timed out after 10 s, then sent the capture
again without an idempotency key, and the gateway took it for a new payment. Refunded €184.70 in all.

Expand for details about: the worker's log, the three orders, the letter`;

describe("output that a page shows", () => {
  const said = "made sum_00000000000000aa in 12 ms\n  backup ~/lcm.db.backup-20261116T090001Z\nall is well\n";
  const isShown = (shown: string): boolean => isSaid(shown, said, new Map());

  it("must match word by word, however lines are broken", () => {
    assert.ok(isShown("made sum_11111111111111bb in 3.5 s\nbackup\n~/lcm.db.backup-20270101T000000Z-2\nall is well"));
    assert.ok(!isShown("made sum_11111111111111bb in 3.5 s\nall is well"));
    assert.ok(!isShown("made sum_11111111111111bb in 3.5 s\n…\nall is good"));
    assert.ok(!isShown("made two in 12 ms\n…"));
  });

  it("may leave lines out where it marks that", () => {
    for (const shown of [
      "…",
      "…\nall is well",
      "made sum_11111111111111bb in 1 ms\n…",
      "…\nbackup ~/lcm.db.backup-20270101T000000Z\n…",
    ])
      assert.ok(isShown(shown), shown);
    assert.ok(!isShown("…\nis well"), "a line is left out whole");
  });

  it("defines names that later commands use for what was just created", () => {
    const names: Names = new Map();
    assert.ok(isSaid("made sum_11111111111111bb in 12 ms\n…", said, names));
    assert.equal(withNames("lcm describe sum_11111111111111bb", names), "lcm describe sum_00000000000000aa");
    assert.ok(!isSaid("made sum_11111111111111bb", "made sum_00000000000000cc", names));
  });
});

describe("the guides", () => {
  const scratch = makeScratch("g");
  const demo = join(scratch, "demo");
  let shell: Shell;
  let provider: ScriptedProvider;
  let ran = 0;

  before(async () => {
    mkdirSync(demo);
    await makeDemoDatabase(join(demo, "lcm.db"));
    provider = await startScriptedProvider();
    provider.play({ kind: "answer", text: draft });
    shell = openShell();
  });
  after(async () => {
    await shell.close();
    await provider.close();
  });

  for (const [index, page] of pages.entries()) {
    it(`${page} shows what happens`, { skip: withoutPosixPaths }, async () => {
      // Short, like a reader's own path: lines with paths break where the reader's do.
      const home = join(scratch, String(index));
      const state = join(home, ".openclaw");
      if (olderPages.includes(basename(page))) {
        mkdirSync(state, { recursive: true });
        copyFixture("0.15.3", state);
      } else cpSync(demo, state, { recursive: true });
      ran += await walk(shell, page, { home, exported: { LCM_SUMMARY_BASE_URL: `${provider.url}/v1` } });
    });
  }

  it("have commands in them that were run", { skip: withoutPosixPaths }, () => assert.ok(ran >= 40, String(ran)));

  it("name other programs' commands only where a test proves them", () => {
    assert.deepEqual(proofs.flatMap(holdsOf), []);
  });
});
