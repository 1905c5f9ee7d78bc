/** Connects agents whose programs are small scripts here, as their real commands behave; test/host runs the real ones. */

import assert from "node:assert/strict";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { after, describe, it } from "node:test";
import { withoutSignals as onWindows } from "../../../test/support/platform.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import type { AgentName, Machine } from "./agents.ts";
import { applyPlan, type Applied } from "./apply.ts";
import { findAgents, ownFiles } from "./find-agents.ts";
import { planSetup, type Direction } from "./plan.ts";

const scratch = makeScratch("setup");
after(() => rmSync(scratch, { recursive: true, force: true }));

let machines = 0;

/** A machine with OpenCode, and with a Pi whose commands run this code; `settings` and `args` are at hand there. */
function makeMachine(pi = writingPi): Machine & { readonly opencode: string; readonly pi: string } {
  const root = join(scratch, `machine-${++machines}`);
  const folder = join(root, "lossless-claw");
  const home = join(root, "home");
  for (const entry of ["dist/hosts/opencode/plugin.js", "dist/hosts/pi/extension.js"])
    write(join(folder, entry), "export default () => undefined;\n");
  const settings = join(home, ".pi/agent/settings.json");
  const program = join(root, "bin/pi");
  write(
    program,
    `#!${process.execPath}\nconst { readFileSync, writeFileSync } = require("node:fs");\n` +
      `const settings = ${JSON.stringify(settings)};\nconst args = process.argv.slice(2);\n${pi}`,
  );
  chmodSync(program, 0o755);
  const opencode = join(home, ".config/opencode/opencode.json");
  return { home, path: [dirname(program)], variables: {}, folder, version: "1.0.0", opencode, pi: settings };
}

/** Like Pi, it writes its settings in its own layout. */
const writingPi = `
  const value = JSON.parse(readFileSync(settings, "utf8"));
  value.packages = (value.packages ?? []).filter((each) => each !== args[1]);
  if (args[0] === "install") value.packages.push(args[1]);
  writeFileSync(settings, JSON.stringify(value, null, 2));`;

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

async function setUp(machine: Machine, agent: AgentName, direction: Direction = "add"): Promise<Applied> {
  const [plan] = planSetup(machine, ownFiles(machine), findAgents(machine, [agent]), direction);
  assert.ok(plan?.kind === "change", JSON.stringify(plan));
  return await applyPlan(machine, plan, direction);
}

const read = (path: string): string => readFileSync(path, "utf8");
const listed = (path: string): readonly string[] => readdirSync(dirname(path)).toSorted();
const problemOf = (applied: Applied): string => (applied.kind === "failed" ? applied.problem : "none");

describe("connecting an agent and disconnecting it", { skip: onWindows }, () => {
  for (const agent of ["pi", "opencode"] as const) {
    it(`gives its file back byte for byte, and leaves nothing beside it (${agent})`, async () => {
      const machine = makeMachine();
      const path = machine[agent];
      const mine = '{ "theme":"dark",\n\n\t"n" : 1.0 }';
      write(path, mine);
      chmodSync(path, 0o640);
      const added = await setUp(machine, agent);
      assert.ok(added.kind === "done" && added.backup !== null, problemOf(added));
      assert.equal(read(added.backup), mine);
      assert.match(read(path), /lossless-claw/);
      assert.equal(statSync(path).mode & 0o777, 0o640);
      const removed = await setUp(machine, agent, "remove");
      assert.deepEqual(removed, { agent, config: path, kind: "done", backup: null });
      assert.deepEqual([read(path), listed(path).length], [mine, 1]);
    });

    it(`removes only itself from a file that was changed meanwhile, and keeps the copy (${agent})`, async () => {
      const machine = makeMachine();
      const path = machine[agent];
      write(path, '{\n  "theme": "dark"\n}');
      await setUp(machine, agent);
      writeFileSync(path, read(path).replace("dark", "light"));
      assert.equal((await setUp(machine, agent, "remove")).kind, "done");
      const { theme, ...rest } = JSON.parse(read(path));
      assert.deepEqual([theme, Object.values(rest)], ["light", [[]]]);
      assert.equal(listed(path).length, 2);
      // Another round starts from the file as it is now.
      const now = read(path);
      await setUp(machine, agent);
      await setUp(machine, agent, "remove");
      assert.deepEqual([read(path), listed(path).length], [now, 2]);
    });
  }

  it("does not bring back an installation from before", async () => {
    const machine = makeMachine();
    const earlier = join(machine.home, "lossless-claw");
    write(machine.pi, JSON.stringify({ packages: [earlier, "other"] }));
    write(machine.opencode, JSON.stringify({ plugin: [`file://${earlier}/dist/hosts/opencode/plugin.js`] }));
    for (const agent of ["pi", "opencode"] as const) {
      assert.equal((await setUp(machine, agent)).kind, "done");
      assert.equal((await setUp(machine, agent, "remove")).kind, "done");
    }
    assert.deepEqual(JSON.parse(read(machine.pi)), { packages: ["other"] });
    assert.deepEqual(JSON.parse(read(machine.opencode)), { plugin: [] });
  });

  it("makes a file if there was none, and removes it again", async () => {
    const machine = makeMachine();
    write(join(machine.home, ".config/opencode/AGENTS.md"), "");
    const applied = await setUpWithProgram(machine);
    assert.ok(applied.kind === "done" && applied.backup === null, "there is no file to go back to");
    assert.equal(statSync(machine.opencode).mode & 0o777, 0o600);
    await setUp(machine, "opencode", "remove");
    assert.deepEqual(listed(machine.opencode), ["AGENTS.md"]);
  });

  it("removes what our programs kept with an agent that leaves it behind", async () => {
    const machine = makeMachine();
    const config = join(machine.home, ".codex/config.toml");
    const kept = join(machine.home, ".codex/plugins/data/lossless-claw-lossless/session.json");
    const others = join(machine.home, ".codex/plugins/data/another/session.json");
    write(config, '[plugins."lossless-claw@lossless"]\nenabled = true\n');
    for (const path of [kept, others]) write(path, "{}");
    const program = join(machine.path[0] ?? "", "codex");
    write(program, `#!/bin/sh\n: > '${config}'\n`);
    chmodSync(program, 0o755);
    assert.equal((await setUp(machine, "codex", "remove")).kind, "done");
    assert.deepEqual([existsSync(dirname(kept)), existsSync(others)], [false, true]);
  });

  it("follows a link instead of replacing it", async () => {
    const machine = makeMachine();
    const target = join(machine.home, "dotfiles/opencode.json");
    write(target, "{}");
    mkdirSync(dirname(machine.opencode), { recursive: true });
    symlinkSync(target, machine.opencode);
    await setUp(machine, "opencode");
    assert.ok(lstatSync(machine.opencode).isSymbolicLink());
    assert.match(read(target), /lossless-claw/);
    await setUp(machine, "opencode", "remove");
    assert.deepEqual([read(target), lstatSync(machine.opencode).isSymbolicLink()], ["{}", true]);
  });

  it("prefers the file with comments that OpenCode reads, too", async () => {
    const machine = makeMachine();
    write(machine.opencode, "{}");
    const other = machine.opencode.replace(".json", ".jsonc");
    write(other, "{ // mine\n}");
    assert.equal((await setUp(machine, "opencode")).config, other);
    assert.equal(read(machine.opencode), "{}");
  });
});

async function setUpWithProgram(machine: Machine): ReturnType<typeof setUp> {
  const program = join(machine.path[0] ?? "", "opencode");
  write(program, "#!/bin/sh\n");
  chmodSync(program, 0o755);
  const applied = await setUp(machine, "opencode");
  assert.equal(applied.kind, "done");
  return applied;
}

describe("a failure", { skip: onWindows }, () => {
  it("of what the agent would load changes nothing", async () => {
    const machine = makeMachine();
    for (const agent of ["pi", "opencode"] as const) write(machine[agent], "{}");
    write(join(machine.folder, "dist/hosts/pi/extension.js"), "export default await import('./nowhere.js');\n");
    write(join(machine.folder, "dist/hosts/opencode/plugin.js"), "this is no module\n");
    for (const agent of ["pi", "opencode"] as const) {
      assert.match(problemOf(await setUp(machine, agent)), /nothing was changed: .* cannot be loaded: .*Error/);
      assert.deepEqual([read(machine[agent]), listed(machine[agent]).length], ["{}", 1]);
    }
  });

  it("of a command restores the file, and shows what the command said", async () => {
    const machine = makeMachine(
      `require("node:fs").appendFileSync(settings + ".log", args[0] + " ");\n` +
        `writeFileSync(settings, "half");\nconsole.error("no room\\non this device");\nprocess.exit(args[0] === "install" ? 3 : 0);`,
    );
    write(machine.pi, "{}");
    const problem = problemOf(await setUp(machine, "pi"));
    assert.match(problem, /pi install .*` failed with status 3\nno room\non this device\n.* is as it was$/);
    assert.deepEqual([read(machine.pi), read(`${machine.pi}.log`)], ["{}", "install remove "]);
    assert.deepEqual(listed(machine.pi), ["settings.json", "settings.json.log"]);
  });

  it("of a command that does nothing is noticed", async () => {
    const machine = makeMachine("");
    write(machine.pi, "{}");
    assert.match(problemOf(await setUp(machine, "pi")), /does not name .*lossless-claw/);
    assert.deepEqual([read(machine.pi), listed(machine.pi).length], ["{}", 1]);
  });

  it("is a file that changed after the plan was shown", async () => {
    const machine = makeMachine();
    write(machine.opencode, "{}");
    const [plan] = planSetup(machine, ownFiles(machine), findAgents(machine, ["opencode"]), "add");
    assert.ok(plan?.kind === "change");
    writeFileSync(machine.opencode, '{ "a": 1 }');
    assert.match(problemOf(await applyPlan(machine, plan, "add")), /has changed since the plan was made/);
    assert.deepEqual([read(machine.opencode), listed(machine.opencode).length], ['{ "a": 1 }', 1]);
  });
});
