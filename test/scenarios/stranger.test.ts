/** Walks the program as a user who knows only `lcm --help`: each command line is read off the previous output. */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { assertSameRows, dumpOfContent } from "../support/dump.ts";
import { startScriptedProvider } from "../support/scripted-provider.ts";
import type { ScriptedProvider } from "../support/scripted-provider.ts";
import { createDeepPlace, draftText } from "./golden.ts";
import { lcmBeside } from "./program.ts";
import type { Run } from "./program.ts";

let provider: ScriptedProvider;
before(async () => (provider = await startScriptedProvider()));
after(async () => await provider.close());

/** What a person reads: both outputs, as a terminal shows them. */
const read = ({ stdout, stderr }: Run): string => `${stdout}\n${stderr}`;

/** The words after `lcm` on a line like this, wherever the program prints it. */
function commandIn(run: Run, like: RegExp): readonly string[] {
  const found = like.exec(read(run))?.[1];
  assert.ok(found !== undefined, `the output has no line like ${like}:\n${read(run)}`);
  return found.trim().split(/\s+/);
}

describe("a newcomer with only `lcm --help`", () => {
  it("finds a truncated summary, reviews its repair, applies it, and undoes it", async () => {
    const place = await createDeepPlace(provider);
    provider.play(...[1, 2, 3].map((n) => ({ kind: "answer", text: draftText(n) }) as const));
    const rows = dumpOfContent(place.path);
    const run = async (args: readonly string[]): Promise<Run> => await lcmBeside(place, args);

    const help = await run(["--help"]);
    const check = await run(commandIn(help, /^ {2}(\w+)\b.*\bcheck that nothing is lost/m));
    assert.equal(check.status, 1);
    assert.match(read(check), /summar\w+ (?:was|were) cut short/);

    // The remedy is a command that can be typed as printed, and by itself changes nothing.
    const remedy = commandIn(check, /remedy: lcm (.*)/);
    assert.ok(!remedy.includes("--apply"), remedy.join(" "));
    const usage = await run([...remedy.slice(0, 1), "--help"]);
    const [diff] = commandIn(usage, /^ +(--diff)\b.*\bdiff/m);
    const look = await run([...remedy, diff ?? ""]);
    assert.equal(look.status, 0, read(look));
    assert.match(look.stdout, /^-\[Truncated for context management\]$/m);
    assert.match(look.stdout, /^\+Draft 1: /m);
    assertSameRows(dumpOfContent(place.path), rows, "looking changes nothing");

    const [apply] = commandIn(look, /nothing was changed; pass (--\w+) /);
    const repaired = await run([...remedy, apply ?? ""]);
    assert.equal(repaired.status, 0, read(repaired));
    const sound = await run(commandIn(help, /^ {2}(\w+)\b.*\bcheck that nothing is lost/m));
    assert.equal(sound.status, 0, read(sound));
    assert.ok(!sound.stdout.includes("cut short"));

    const back = commandIn(repaired, /undo it with `lcm (undo \d+) --apply`/);
    const plan = await run(back);
    assert.equal(plan.status, 0, read(plan));
    const [confirm] = commandIn(plan, /nothing was changed; pass (--\w+) /);
    const undone = await run([...back, confirm ?? ""]);
    assert.equal(undone.status, 0, read(undone));
    assertSameRows(dumpOfContent(place.path), rows, "everything is as it was");

    // And if that was a mistake too, the last line shows how to revert it.
    const redo = commandIn(undone, /undo it with `lcm (undo \d+) --apply`\n?$/);
    assert.equal((await run([...redo, confirm ?? ""])).status, 0);
    assert.equal((await run(commandIn(help, /^ {2}(\w+)\b.*\bcheck that nothing is lost/m))).status, 0);
  });
});
