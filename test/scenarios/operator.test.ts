/**
 * Tests the operator's commands, each as a dry run and applied, by the real program over summaries of depth 3. Outputs
 * are files under golden/ (golden.ts explains how they are made); also tests the shapes that the spec gives, and what
 * applies to every command that writes.
 */

import assert from "node:assert/strict";
import { cpSync, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, it } from "node:test";
import { Command } from "commander";
import { addCommands } from "../../src/cli/commands/index.ts";
import { createContext } from "../../src/cli/context.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { assertSameRows, dumpOf, dumpOfContent, tablesChanged } from "../support/dump.ts";
import { withoutPosixPaths } from "../support/platform.ts";
import { startScriptedProvider } from "../support/scripted-provider.ts";
import type { ScriptedProvider } from "../support/scripted-provider.ts";
import { createDeepPlace, createTranscript, draftText } from "./golden.ts";
import type { DeepPlace, Transcript } from "./golden.ts";
import { lcmBeside } from "./program.ts";
import type { Run } from "./program.ts";

let provider: ScriptedProvider;
before(async () => (provider = await startScriptedProvider()));
after(async () => await provider.close());

/** Answers each call with the next draft. */
const playDrafts = (from = 1): void =>
  provider.play(...Array.from({ length: 60 }, (_, n) => ({ kind: "answer", text: draftText(from + n) }) as const));

/** The context of the deep conversation. */
const d3 = "sum_0000000100000014";
const d2 = "sum_000000010000001d";
const d1 = "sum_0000000100000021";
const leaf = "sum_0000000100000023";

/** Breaks what `doctor --fix` fixes: totals, a range, a count, the order of the context, a search entry, an orphan. */
function damage({ path }: DeepPlace): void {
  const db = new DatabaseSync(path);
  db.exec(`
    UPDATE conversations SET context_tokens = context_tokens + 7, message_count = 12 WHERE conversation_id = 1;
    UPDATE summaries SET descendant_count = 5, earliest_at = '2001-01-01T00:00:00.000Z' WHERE summary_id = '${d2}';
    UPDATE messages SET created_at = '2025-11-09 10:31:00' WHERE message_id = (1 << 24) + 90;
    UPDATE context_items SET ordinal = ordinal + 1000 WHERE conversation_id = 3 AND ordinal = 2;
    DELETE FROM messages_fts WHERE rowid = (1 << 24) + 17;`);
  db.close();
}

// ── Outputs ──────────────────────────────────────────────────────────────────────────────────────────────────────────

describe("golden outputs", { skip: withoutPosixPaths }, () => {
  const golden = (
    name: string,
    what: string,
    script: (run: Transcript["run"], place: DeepPlace) => Promise<void>,
  ): void => {
    it(`${name}: ${what}`, async () => {
      const place = await createDeepPlace(provider);
      const transcript = createTranscript(place);
      playDrafts();
      await script(async (...args) => await transcript.run(...args), place);
      transcript.matches(name);
    });
  };

  golden("rewrite", "old and new, as a diff, applied, and in history", async (run) => {
    await run("rewrite", "1", "--summary", d1);
    await run("rewrite", "1", "--summary", d1, "--diff");
    await run("rewrite", "1", "--summary", d1, "--apply");
    await run("history", "--change", "1");
  });

  golden("rewrite-depth", "several at once are one change", async (run) => {
    await run("rewrite", "1", "--depth", "2", "--estimate");
    await run("rewrite", "1", "--depth", "2", "--diff");
    await run("rewrite", "1", "--depth", "2", "--apply");
    await run("history");
  });

  golden("rewrite-refused", "what is of no use is not applied and listed", async (run) => {
    provider.play(
      { kind: "answer", text: draftText(1) },
      { kind: "answer", text: "…" },
      { kind: "error", status: 500 },
    );
    await run("rewrite", "1", "--depth", "2", "--apply");
    provider.play({ kind: "error", status: 401 });
    await run("rewrite", "1", "--summary", d3, "--apply");
    await run("rewrite", "1", "--summary", "sum_00000000000000ff");
    await run("rewrite", "1");
  });

  golden("repair", "what doctor names, before and after", async (run) => {
    await run("doctor");
    await run("repair", "--estimate");
    await run("repair", "1");
    await run("repair", "1", "--diff");
    await run("repair", "1", "--apply");
    await run("repair", "--all", "--apply");
    await run("doctor");
    await run("history");
    await run("repair");
  });

  golden("dissolve", "what returns, and what the context takes then", async (run, { deep }) => {
    await run("dissolve", "1", "--summary", d3);
    await run("dissolve", "1", "--summary", d3, "--apply");
    await run("dissolve", "1", "--summary", leaf, "--purge");
    await run("dissolve", "1", "--summary", leaf, "--purge", "--apply");
    await run("dissolve", "1", "--summary", deep.truncated);
    await run("history");
  });

  golden("transplant", "the spec's report, and its edge cases", async (run) => {
    await run("transplant", "1", "3");
    await run("transplant", "1", "3", "--apply");
    await run("transplant", "1", "3", "--apply");
    await run("transplant", "1", "1");
    await run("doctor");
    await run("undo", "1", "--apply");
    await run("transplant", "3", "1");
    await run("history");
  });

  golden("doctor", "findings with their remedies, and what is mended", async (run, place) => {
    await run("doctor", "3");
    damage(place);
    await run("doctor", "--fix");
    await run("doctor", "--fix", "--apply");
    await run("doctor", "-v");
    await run("history", "--change", "1");
    await run("undo", "1");
  });

  golden("history", "nothing yet, a list, one conversation, one change", async (run, { deep }) => {
    await run("history");
    await run("rewrite", "1", "--summary", deep.truncated, "--apply");
    await run("repair", "2", "--apply");
    await run("dissolve", "1", "--summary", leaf, "--apply");
    await run("undo", "3", "--apply");
    await run("history");
    await run("history", "2");
    await run("history", "--change", "2");
    await run("history", "--change", "3");
    await run("history", "--limit", "1");
    await run("history", "--change", "9");
    await run("history", "--change", "1", "--json");
  });

  golden("undo", "there and back, and what stands in the way", async (run, { deep }) => {
    await run("rewrite", "1", "--summary", deep.truncated, "--apply");
    await run("undo", "1");
    await run("undo", "1", "--apply");
    await run("undo", "1");
    await run("undo", "2", "--apply");
    await run("rewrite", "1", "--summary", d1, "--apply");
    await run("undo", "1", "--apply");
    await run("undo", "1", "--json");
    await run("undo", "9");
    await run("undo", "one");
    await run("undo", "4", "--summary", d2);
    await run("history");
  });

  golden("prune", "what would go, into an archive and back", async (run, { state }) => {
    await run("prune", "--older-than", "2025-12-01");
    const archive = join(state, "old.db");
    await run("prune", "2", "--archive", archive);
    await run("prune", "2", "--archive", archive, "--apply");
    await run("conversations");
    await run("import", archive);
    await run("conversations");
    await run("prune", "2", "--delete", "--apply");
    await run("history");
  });
});

// ── Shapes of the spec ───────────────────────────────────────────────────────────────────────────────────────────────

describe("the spec's shapes", () => {
  it("rewrite: a header of id, depth, children and range, OLD, NEW and the difference in tokens", async () => {
    const place = await createDeepPlace(provider, { TZ: "UTC" });
    playDrafts();
    const { stdout } = await lcmBeside(place, ["rewrite", "1", "--summary", d1]);
    assert.match(stdout, /^━━━ sum_[0-9a-f]{16} \(d1, 3 children, 2025-11-08 05:00–18:06 UTC\) ━━━$/m);
    assert.match(stdout, /^OLD \(34 tokens\):\n {2}This day:\n/m);
    assert.match(stdout, /^NEW \(\d+ tokens\):\n {2}Draft 1: /m);
    assert.match(stdout, /^ *Δ tokens: -4 \(34 → 30\)$/m);
    const { stdout: diff } = await lcmBeside(place, ["rewrite", "1", "--summary", d1, "--diff"]);
    assert.match(diff, /^--- .*\n\+\+\+ .*\n@@ -\d+(,\d+)? \+\d+(,\d+)? @@\n/m);
    assert.match(diff, /^-This day:$/m);
    assert.match(diff, /^\+Draft 1: /m);
  });

  it("rewrite --all: sources first, each depth reading the new texts below it, and one total at the end", async () => {
    const place = await createDeepPlace(provider);
    playDrafts();
    const askedBefore = provider.asked.length;
    const { stdout, status } = await lcmBeside(place, ["rewrite", "1", "--all", "--concurrency", "1", "--apply"]);
    assert.equal(status, 0, stdout);
    const depths = [...stdout.matchAll(/^━━━ sum_\w+ \(d(\d), /gm)].map(([, depth]) => Number(depth));
    assert.deepEqual(depths, [...Array<number>(23).fill(0), ...Array<number>(7).fill(1), 2, 2, 2, 3]);
    assert.match(stdout, /34 summaries\b.* [\d,]+ → [\d,]+ tokens \([-+][\d,]+\)$/im);
    const asked = provider.asked.slice(askedBefore).map(({ body }) => JSON.stringify(body));
    assert.equal(asked.length, 34);
    // The first d1 is written after the leaves, from the new texts of the first three.
    for (const n of [1, 2, 3]) assert.ok(asked[23]?.includes(`Draft ${n}: `), `draft ${n} is a source of the first d1`);
    assert.ok(asked[33]?.includes("Draft 31: ") && asked[33]?.includes("Draft 32: "), "and of the d3, both d2");
  });

  it("transplant: the report of the spec, line for line", async () => {
    const place = await createDeepPlace(null);
    const { stdout } = await lcmBeside(place, ["transplant", "1", "3"]);
    const shape = [
      /^Transplant: conversation 1 → conversation 3$/m,
      /^Source context summaries \(5\):$/m,
      /^ {2}sum_[0-9a-f]{16} {2}condensed {2}d3 +69t {2}"Settled so far: seat maps/m,
      /^ {2}sum_[0-9a-f]{16} {2}leaf {7}d0 +54t {2}"Asked: When/m,
      /^Full DAG to copy: 34 summaries \(5 context \+ 29 ancestors\)$/m,
      /^ {2}d0: 23 leaves$/m,
      /^ {2}d1: +7 condensed$/m,
      /^ {2}d2: +3 condensed$/m,
      /^Target current context \(4 items\):$/m,
      /^ {2}0 summaries \+ 4 messages$/m,
      /^After transplant:$/m,
      /^ {2}5 new context items prepended$/m,
      /^ {2}34 summaries copied \(new IDs, owned by conversation 3\)$/m,
      /^ {2}Estimated token overhead in the prompt: ~[\d,]+ tokens/m,
    ];
    let from = 0;
    for (const line of shape) {
      const at = stdout.slice(from).search(line);
      assert.ok(at >= 0, `${line} in its place of\n${stdout}`);
      from += at;
    }
  });
});

// ── What applies to all of them ──────────────────────────────────────────────────────────────────────────────────────

interface Writing {
  readonly args: readonly string[];
  readonly prepare?: (place: DeepPlace) => void | Promise<void>;
  /** Output that is not the plan but its outcome. */
  readonly without?: RegExp;
  /** A first run calls a model, and keeps its drafts; that may be written without --apply. */
  readonly isDrafting?: true;
  readonly isUndoable?: true;
  /** Why there is none. */
  readonly noBackup?: string;
}

const dissolving = ["dissolve", "1", "--summary", d3, "--apply", "--no-backup"];

/** Every command with --apply. */
const writings: Readonly<Record<string, Writing>> = {
  rewrite: { args: ["rewrite", "1", "--depth", "2"], isDrafting: true, isUndoable: true, without: /^drafted [^]*/m },
  repair: { args: ["repair"], isDrafting: true, isUndoable: true, without: /^drafted [^]*/m },
  dissolve: { args: ["dissolve", "1", "--summary", d3, "--purge"], isUndoable: true },
  transplant: { args: ["transplant", "1", "3"], isUndoable: true },
  doctor: { args: ["doctor", "--fix"], isUndoable: true, prepare: damage },
  undo: { args: ["undo", "1"], isUndoable: true, prepare: async (place) => void (await lcmBeside(place, dissolving)) },
  pins: { args: ["pins", "--add", "msg_1-1"], isUndoable: true },
  prune: { args: ["prune", "2", "--delete"] },
  compact: { args: ["compact", "1", "--no-model", "--force", "--passes", "1"], without: /^prompt [^]*/m },
  forget: { args: ["forget", "--message", "msg_1-1"], noBackup: "it would keep what is to be forgotten" },
  restore: {
    args: ["restore", "old.copy"],
    prepare: async (place) => {
      await lcmBeside(place, ["backup", join(place.state, "old.copy")]);
      await lcmBeside(place, dissolving);
    },
  },
};

/** Backups beside the database; a replaced database counts as one. */
const backupsIn = ({ state }: DeepPlace): readonly string[] =>
  readdirSync(state).filter((name) => /^lcm\.db\.[\w-]+-\d{8}T\d{6}Z(?:-\d+)?$/.test(name));

const said = ({ stdout, stderr }: Run): string => `${stdout}\n${stderr}`;

/** They change nothing, but spend: reading.test.ts tries them. */
const spending = ["ask", "map"];
/** Its target is another database, and its source stays as it is: move.test.ts tries it. */
const moving = ["move"];

describe("guarantee 28: writes are dry runs by default, print the same plan, and back up first", () => {
  it("every command that offers --apply is among those tried here", () => {
    const program = new Command("lcm");
    addCommands(program, createContext({ finish: () => undefined }), false);
    const offers = (option: string): readonly string[] =>
      program.commands.filter(({ options }) => options.some(({ long }) => long === option)).map((each) => each.name());
    assert.deepEqual(offers("--apply").toSorted(), [...Object.keys(writings), ...spending, ...moving].toSorted());
    assert.deepEqual(offers("--dry-run"), offers("--apply"));
  });

  for (const [name, { args, prepare, without, isDrafting, isUndoable, noBackup }] of Object.entries(writings)) {
    it(name, async () => {
      const place = await createDeepPlace(provider, { LCM_FRESH_TAIL_COUNT: "2" });
      playDrafts();
      await prepare?.(place);
      const rows = dumpOf(place.path);

      if (isDrafting) await lcmBeside(place, args);
      const dry = await lcmBeside(place, args);
      // What no fix can repair is still found.
      const fine = name === "doctor" ? 1 : 0;
      assert.equal(dry.status, fine, said(dry));
      assert.match(dry.stderr, /nothing was changed/);
      const both = await lcmBeside(place, [...args, "--dry-run", "--apply"]);
      assert.equal(both.status, 2, said(both));
      assert.match(both.stderr, /exclude each other/);
      const told = await lcmBeside(place, [...args, "--dry-run", "--json"]);
      assert.deepEqual(
        [told.json.dryRun, told.json.applied, typeof told.json.plan],
        [true, false, "object"],
        said(told),
      );
      const mayChange = isDrafting ? ["drafts", "model_usage"] : [];
      const changed = tablesChanged(rows, dumpOf(place.path));
      assert.deepEqual(
        changed.filter((table) => !mayChange.includes(table)),
        [],
        "without --apply no row changes",
      );
      assert.deepEqual(backupsIn(place), [], "and nothing is backed up");

      const other = await createDeepPlace(provider, place.env);
      cpSync(place.state, other.state, { recursive: true, force: true });
      const kept = dumpOfContent(place.path);
      const applied = await lcmBeside(place, [...args, "--apply"]);
      assert.equal(applied.status, fine, said(applied));
      const plan = without === undefined ? dry.stdout : dry.stdout.replace(without, "");
      assert.ok(plan.trim() !== "" && applied.stdout.startsWith(plan), `${plan}\n———\n${applied.stdout}`);
      assert.notDeepEqual(tablesChanged(kept, dumpOfContent(place.path)), [], "with it something does");
      const [, change] = /undo it with `lcm undo (\d+) --apply`$/m.exec(applied.stderr) ?? [];
      if (change !== undefined) {
        assert.equal((await lcmBeside(place, ["undo", change, "--apply", "--no-backup"])).status, 0);
        assertSameRows(dumpOfContent(place.path), kept, "and taking it back restores every table");
      }
      assert.equal(change === undefined, !isUndoable, "the option is offered where it applies");
      const { json } = await lcmBeside(other, [...args, "--apply", "--json"]);
      const planned = JSON.parse(JSON.stringify(told.json.plan).replaceAll(place.state, other.state)) as unknown;
      assert.deepEqual([json.dryRun, json.applied, json.plan], [false, true, planned]);
      assert.ok(json.result !== undefined, "and the outcome is reported");

      const [made, ...more] = backupsIn(place);
      if (noBackup !== undefined) return assert.equal(made, undefined, noBackup);
      assert.ok(made !== undefined && more.length === 0, `one backup, not ${backupsIn(place).join()}`);
      const copy = await openSqlite({ path: join(place.state, made), readOnly: true });
      assert.equal((await copy.status()).conversations, 3);
      await copy.close();
      assertSameRows(dumpOfContent(join(place.state, made)), kept, "the backup is what was there before");
      if (name !== "restore") assert.ok(existsSync(json.backup ?? json.result.backup), "JSON output names it");
      return undefined;
    });
  }

  it("--no-backup makes none", async () => {
    const place = await createDeepPlace(provider);
    await lcmBeside(place, dissolving);
    assert.deepEqual(backupsIn(place), []);
  });
});
