/**
 * Tests rewriting in practice: what was reviewed is applied, interrupted work resumes, failures report what was done.
 * Every command that is printed can be copied as it is.
 */

import assert from "node:assert/strict";
import { cpSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startScriptedProvider } from "../support/scripted-provider.ts";
import type { ScriptedProvider, Step } from "../support/scripted-provider.ts";
import { createDeepPlace, draftText } from "./golden.ts";
import type { DeepPlace } from "./golden.ts";
import { lcmBeside, linesOf } from "./program.ts";
import type { Run } from "./program.ts";
import { withoutSignals } from "../support/platform.ts";

let provider: ScriptedProvider;
before(async () => (provider = await startScriptedProvider()));
after(async () => await provider.close());

const answer = (text: string): Step => ({ kind: "answer", text });
const drafts = (from = 1): readonly Step[] => Array.from({ length: 60 }, (_, n) => answer(draftText(from + n)));

/** The context of the deep conversation, and its three summaries of depth 2. */
const d3 = "sum_0000000100000014";
const d1 = "sum_0000000100000021";

const backupsIn = ({ state }: DeepPlace): readonly string[] =>
  readdirSync(state).filter((name) => /^lcm\.db\.backup-\d{8}T\d{6}Z(?:-\d+)?$/.test(name));

/** Runs it, and returns how often the model was called. */
async function counted(
  place: DeepPlace,
  ...args: readonly string[]
): Promise<Omit<Run, "json"> & { readonly calls: number }> {
  const asked = provider.asked.length;
  const { status, stdout, stderr } = await lcmBeside(place, args);
  return { status, stdout, stderr, calls: provider.asked.length - asked };
}

describe("drafts", () => {
  it("are applied as reviewed, with another concurrency too, and a repeated run reports that it is done", async () => {
    const place = await createDeepPlace(provider);
    provider.play(...drafts());
    const seen = await counted(place, "rewrite", "1", "--depth", "2", "--concurrency", "2");
    assert.equal(seen.calls, 3, seen.stderr);
    assert.match(
      seen.stderr,
      /^nothing was changed; pass --apply to apply these drafts\n1 summary above was written from the old text: after applying these, run\s`lcm/,
    );
    const applied = await counted(place, "rewrite", "1", "--depth", "2", "--apply");
    assert.equal(applied.calls, 0);
    assert.match(applied.stdout, /^ +3 drafts from an earlier run will be used$/m);
    for (const n of [1, 2, 3]) assert.match(applied.stdout, new RegExp(`Draft ${n}: `));
    const again = await counted(place, "rewrite", "1", "--depth", "2", "--apply");
    assert.deepEqual([again.calls, again.status], [0, 0]);
    assert.match(again.stdout, /^ +3 summaries already have the model's text; pass --fresh to request another$/m);
    assert.doesNotMatch(again.stdout, /\d calls?\b/);
    assert.equal(again.stderr, "nothing was changed\n");
    assert.equal(backupsIn(place).length, 1, "only of what was written");
  });

  it("are requested again with --fresh, and applied without it", async () => {
    const place = await createDeepPlace(provider);
    provider.play(...drafts());
    await lcmBeside(place, ["rewrite", "1", "--summary", d1, "--apply"]);
    const fresh = await counted(place, "rewrite", "1", "--summary", d1, "--fresh");
    assert.equal(fresh.calls, 1);
    assert.match(fresh.stdout, /^ +1 call, about/m);
    assert.match(fresh.stdout, /Draft 2: /);
    assert.equal(fresh.stderr, "nothing was changed; pass --apply without --fresh to apply these drafts\n");
    const applied = await counted(place, "rewrite", "1", "--summary", d1, "--apply");
    assert.equal(applied.calls, 0);
    assert.match(applied.stdout, /OLD [^]*Draft 1: [^]*NEW [^]*Draft 2: /);
  });

  it("are requested again where unusable, and so is what depends on them, as the plan states", async () => {
    const place = await createDeepPlace(provider);
    provider.play(answer(draftText(1)), answer("…"), ...drafts(3));
    const seen = await counted(place, "rewrite", "1", "--all");
    assert.equal(seen.status, 1, seen.stderr);
    assert.match(
      seen.stderr,
      /--apply to apply these drafts; it requests the other 1 again, with the\ssummaries above it\n/,
    );
    provider.play(...drafts(50));
    const applied = await counted(place, "rewrite", "1", "--all", "--apply");
    const [, stated] = /^ +(\d+) calls, about/m.exec(applied.stdout) ?? [];
    assert.deepEqual([applied.calls, applied.status], [4, 0], "itself, and one of each depth above it");
    assert.equal(stated, "4");
    assert.match(applied.stdout, /^ +30 drafts from an earlier run will be used$/m);
  });

  it("take a second call where an answer is unusable and the old text is poor, as the plan states", async () => {
    const place = await createDeepPlace(provider);
    const args = ["rewrite", "1", "--summary", place.deep.truncated];
    const { stdout } = await lcmBeside(place, [...args, "--estimate"]);
    assert.match(stdout, /^ +1 call, about .* out \(up to 2 if answers are unusable\)$/m);
    provider.play(answer("…"), ...drafts());
    assert.equal((await counted(place, ...args)).calls, 2);
    const { stdout: normal } = await lcmBeside(place, ["rewrite", "1", "--summary", d3, "--estimate"]);
    assert.match(normal, /^ +1 call, about [^(]*$/m);
  });
});

describe("a selection by depth, or of all", () => {
  it("names the summaries that it leaves out, because the context no longer has them", async () => {
    const place = await createDeepPlace(provider, { COLUMNS: "400" });
    const all = await lcmBeside(place, ["rewrite", "1", "--all", "--estimate"]);
    assert.doesNotMatch(all.stdout, /left out/);
    await lcmBeside(place, ["dissolve", "1", "--summary", d3, "--apply"]);
    const { stdout } = await lcmBeside(place, ["rewrite", "1", "--all", "--estimate"]);
    const words = "1 summary is left out, because the context no longer has it; pass --summary ID to rewrite one:";
    assert.ok(stdout.includes(`${words}\n  ${d3}\n`), stdout);
    const planned = async (...args: readonly string[]): Promise<unknown> =>
      (await lcmBeside(place, ["rewrite", "1", ...args, "--estimate", "--json"])).json.plan.outside;
    assert.deepEqual(await planned("--depth", "3"), [d3]);
    assert.deepEqual(await planned("--depth", "1"), []);
    assert.equal(await planned("--summary", d3), undefined);
  });
});

describe("flags with a value", () => {
  it("are accepted where the flag is a yes or no", async () => {
    const place = await createDeepPlace(provider);
    const run = async (...args: readonly string[]): Promise<Run> =>
      await lcmBeside(place, ["rewrite", "1", "--summary", d1, ...args]);
    provider.play(...drafts(10));
    const documented = ["--dry-run=true", "--bottom-up=true", "--timestamps=false", "--diff=true"];
    const dry = await run(...documented);
    assert.deepEqual([dry.status, /^@@ /m.test(dry.stdout)], [0, true], dry.stderr);
    assert.match(dry.stderr, /nothing was changed; pass --apply/);
    const times = /\d\d:\d\d/;
    assert.doesNotMatch(JSON.stringify(provider.asked.at(-1)?.body), times);
    await run("--timestamps=true", "--fresh", "--apply=false", "--dry-run=false");
    assert.match(JSON.stringify(provider.asked.at(-1)?.body), times);
    assert.equal((await lcmBeside(place, ["history", "--json"])).json.length ?? 0, 0, "nothing was applied");
    const both = await run("--dry-run=true", "--apply=true");
    assert.match(both.stderr, /--dry-run and --apply exclude each other/);
    assert.match((await run("--apply=perhaps")).stderr, /unknown option '--apply=perhaps'/);
  });
});

describe("a rewrite that is interrupted", () => {
  it("leaves no backup where nothing was written, however often it is tried", async () => {
    const place = await createDeepPlace(provider);
    provider.play({ kind: "error", status: 401 });
    for (let time = 0; time < 3; time++) {
      const run = await lcmBeside(place, ["rewrite", "1", "--depth", "2", "--apply"]);
      assert.equal(run.status, 6, run.stderr);
      assert.match(run.stderr, /^nothing was changed\nerror: /);
    }
    assert.deepEqual(backupsIn(place), []);
  });

  it("reports Ctrl-C as such, and resumes where it was", { skip: withoutSignals }, async () => {
    const place = await createDeepPlace(provider);
    const args = ["rewrite", "1", "--depth", "2", "--apply"];
    provider.play(answer(draftText(1)), { kind: "hang" });
    const askedBefore = provider.asked.length;
    const run = await lcmBeside(place, args, async (program) => {
      while (provider.asked.length < askedBefore + 2) await sleep(20);
      program.kill("SIGINT");
    });
    assert.equal(run.status, 130, run.stderr);
    assert.match(run.stdout, /^rewrote 1 summary: .*\n2 summaries were not reached$/m);
    assert.match(run.stderr, /\ninterrupted: applied texts are kept; run it again to continue\n$/);
    provider.play(...drafts(2));
    const rest = await counted(place, ...args);
    assert.deepEqual([rest.calls, rest.status], [2, 0]);
    assert.match(rest.stdout, /^ +1 summary already has the model's text; pass --fresh to request another$/m);
  });

  it("reports what was applied before the database failed, and then how it failed", async () => {
    const place = await createDeepPlace(provider);
    const db = new DatabaseSync(place.path);
    db.exec(`CREATE TRIGGER failing BEFORE UPDATE OF content ON summaries WHEN OLD.summary_id = 'sum_0000000100000013'
             BEGIN SELECT RAISE(ABORT, 'the disk is gone'); END`);
    db.close();
    const other = await createDeepPlace(provider, place.env);
    cpSync(place.state, other.state, { recursive: true, force: true });
    const args = ["rewrite", "1", "--depth", "2", "--apply"];
    provider.play(...drafts());
    const run = await lcmBeside(place, args);
    assert.match(run.stdout, /^rewrote 1 summary: .*\n2 summaries were not reached$/m);
    assert.match(run.stderr, /^change 1: undo it with `lcm undo 1 --apply`\nerror: .*the disk is gone/m);
    assert.doesNotMatch(run.stderr, /harbour|model/, "the error is not blamed on the model");
    provider.play(...drafts());
    const told = await lcmBeside(other, [...args, "--json"]);
    assert.deepEqual([told.status, told.json.applied, told.json.result.change], [run.status, true, 1]);
    assert.match(told.json.error.message, /the disk is gone/);
    assert.deepEqual(told.json.result.totals.applied, 1);
    const undone = await lcmBeside(place, ["undo", "1", "--apply"]);
    assert.equal(undone.status, 0, undone.stderr);
  });
});

describe("commands that are printed", () => {
  it("go to the same database when they are copied", async () => {
    const place = await createDeepPlace(provider);
    provider.play(...drafts());
    for (const [name, quoted] of [
      ["plain.db", "plain.db"],
      ["it's mine.db", String.raw`'it'\''s mine.db'`],
    ] as const) {
      cpSync(place.path, join(place.state, name));
      const typed = (words: string): string => `\`lcm --db ${quoted} ${words}\``;
      const run = async (...args: readonly string[]): Promise<Run> =>
        await lcmBeside({ ...place, env: { ...place.env, COLUMNS: "400" } }, ["--db", name, ...args]);
      const applied = await run("rewrite", "1", "--summary", d1, "--apply", "--no-backup");
      assert.ok(applied.stderr.includes(`undo it with ${typed("undo 1 --apply")}`), applied.stderr);
      const { stdout } = await run("history", "--change", "1");
      assert.ok(stdout.includes(`undo it with ${typed("undo 1 --apply")}`), stdout);
      assert.ok((await run("undo", "9")).stderr.includes(`hint: run ${typed("history")} to list the changes`));
      assert.equal((await run("undo", "9", "--json")).json.error.hint, `run ${typed("history")} to list the changes`);
      const { stdout: nothing } = await run("transplant", "3", "1");
      assert.ok(nothing.includes(typed("compact 3")), nothing);
      const { stdout: found } = await run("doctor");
      assert.ok(found.includes(`remedy: lcm --db ${quoted} repair`), found);
    }
  });

  it("act where they claim to: with --apply", async () => {
    const place = await createDeepPlace(provider, { COLUMNS: "400" });
    provider.play(...drafts());
    await lcmBeside(place, ["rewrite", "1", "--depth", "2", "--apply"]);
    await lcmBeside(place, ["undo", "1", "--summary", "sum_0000000100000013", "--apply"]);
    const shown = async (change: string): Promise<string> =>
      (await lcmBeside(place, ["history", "--change", change])).stdout;
    assert.match(await shown("1"), /^partly undone by change 2; undo the rest with `lcm undo 1 --apply`$/m);
    await lcmBeside(place, ["undo", "1", "--apply"]);
    assert.match(await shown("1"), /^undone by change 2 and 3; redo it with `lcm undo 3 --apply`$/m);
    await lcmBeside(place, ["transplant", "1", "3", "--apply"]);
    const again = await lcmBeside(place, ["transplant", "1", "3"]);
    assert.match(again.stderr, /`lcm undo 4 --apply`\n$/);
    const dry = await lcmBeside(place, ["undo", "4"]);
    assert.match(dry.stderr, /after a backup; to copy them again, run `lcm transplant 1 3 --apply`\n$/);
    await lcmBeside(place, ["undo", "4", "--apply"]);
    assert.match(await shown("5"), /^copy them again with `lcm transplant 1 3 --apply`$/m);
    const itself = await lcmBeside(place, ["transplant", "1", "1"]);
    assert.match(itself.stderr, /into itself\nhint: .*`lcm conversations` to list them\n$/);
  });
});

describe("refusals", () => {
  it("have an error for programs too, where something blocks an undo", async () => {
    const place = await createDeepPlace(provider);
    provider.play(...drafts());
    await lcmBeside(place, ["rewrite", "1", "--all", "--apply"]);
    await lcmBeside(place, ["rewrite", "1", "--all", "--apply", "--fresh"]);
    const { json, status } = await lcmBeside(place, ["undo", "1", "--json"]);
    assert.deepEqual([status, json.applied, json.error.code], [4, false, "conflict"]);
    assert.match(json.error.message, /^change 1 cannot be undone now/);
    assert.equal(json.error.hint, "first run `lcm undo 2 --apply`");
    const { stdout } = await lcmBeside(place, ["undo", "1"]);
    const [, more] =
      /^in the way:\n(?: {2}.*\n){10} {2}and at least (\d+) more; --json lists them$/m.exec(stdout) ?? [];
    assert.equal(Number(more), json.plan.obstacles.length - 10, stdout);
  });

  it("name what would be right", async () => {
    const place = await createDeepPlace(provider);
    const both = ["--summary", d1, "--summary-id", d3];
    for (const command of ["rewrite", "dissolve", "dag"]) {
      const run = await lcmBeside(place, [command, "1", ...both]);
      assert.equal(run.status, 2);
      assert.match(
        run.stderr,
        /^error: --summary and --summary-id name different summaries\nhint: pass only one of them\n$/,
      );
    }
    assert.equal((await lcmBeside(place, ["dag", "1", "--summary", d1, "--summary-id", d1])).status, 0);
    const foreign = await lcmBeside(place, ["rewrite", "2", "--summary", d1]);
    assert.equal(foreign.status, 3);
    assert.match(foreign.stderr, /^error: sum_0+10+21 is not in conversation 2\nhint: it is in conversation 1\n$/);
  });

  it("do not claim that a summary in no context was dissolved: a rewind leaves some too", async () => {
    const place = await createDeepPlace(null);
    await lcmBeside(place, ["dissolve", "1", "--summary", d3, "--apply"]);
    const run = await lcmBeside(place, ["dissolve", "1", "--summary", d3]);
    assert.equal(run.status, 4);
    assert.match(run.stderr, /is not in the context, [^]*\nhint: pass --purge to delete its stored text\n$/);
    assert.doesNotMatch(run.stderr, /dissolved/);
    const { stdout } = await lcmBeside(place, ["dissolve", "1", "--summary", d3, "--purge"]);
    assert.match(stdout, /^ +not in the context: nothing returns$/m);
  });

  it("do not mention calls where there is no model", async () => {
    const place = await createDeepPlace(null);
    const run = await lcmBeside(place, ["rewrite", "1", "--all"]);
    assert.equal(run.status, 6);
    assert.match(run.stdout, /^model +none$/m);
    assert.doesNotMatch(run.stdout, /calls/);
  });
});

describe("untrusted text", () => {
  const tricks = "\u202egnp.exe\u2066\u009b31m\u0085";
  const isHarmless = (text: string): boolean => !/[\u007f-\u009f\u2028-\u202e\u2066-\u2069\u001b]/.test(text);

  it("neither moves the cursor nor reverses the line, in texts, errors and JSON", async () => {
    const place = await createDeepPlace(provider);
    const args = ["rewrite", "1", "--summary", d1];
    provider.play(answer(draftText(1).replace("the crew", `the ${tricks} crew`)));
    for (const more of [[], ["--diff"]]) {
      const run = await lcmBeside(place, [...args, ...more]);
      assert.match(run.stdout, /Draft 1: the �gnp\.exe/);
      assert.ok(isHarmless(run.stdout + run.stderr));
    }
    const told = await lcmBeside(place, [...args, "--json"]);
    assert.ok(isHarmless(told.stdout));
    assert.ok(told.json.result.drafts[0].newText.includes("\u202egnp.exe"), "JSON output lists what was written");

    provider.play({ kind: "error", status: 401, error: { message: `no ${tricks} key` } });
    const failed = await lcmBeside(place, [...args, "--fresh"]);
    assert.equal(failed.status, 6);
    assert.match(failed.stderr, /gnp\.exe/);
    assert.ok(isHarmless(failed.stdout + failed.stderr));
    const failure = await lcmBeside(place, [...args, "--fresh", "--json"]);
    assert.ok(isHarmless(failure.stdout) && failure.json.result.stopped.refusal === "auth");

    const usage = await lcmBeside(place, ["undo", `1${tricks}`, "--json"]);
    assert.ok(isHarmless(usage.stdout) && usage.json.error.message.includes("gnp.exe"));
    assert.ok(isHarmless((await lcmBeside(place, ["undo", `1${tricks}`])).stderr));
  });
});

it("a plan fits a narrow terminal: optional parts are left out", async () => {
  const place = await createDeepPlace(provider, { COLUMNS: "40" });
  const headings = new Map([
    [["rewrite", "1", "--all", "--estimate"], /^plan +depth +summaries +old +target$/m],
    [["compact", "1", "--force"], /^plan +depth +summaries +from +target$/m],
  ]);
  for (const [args, heading] of headings) {
    const { stdout } = await lcmBeside(place, args);
    const plan = linesOf(stdout.slice(stdout.search(/^plan/m)));
    for (const line of plan) assert.ok(line.length <= 40, stdout);
    assert.match(stdout, heading);
  }
});
