/** Tests the scripts of `lcm completion` in the real shells: a person types a few letters and the Tab key. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { homeAt, withoutPseudoTerminal, withoutShell } from "../support/platform.ts";
import { startTerminal } from "../support/terminal.ts";
import { bare, bin, createFolder, lcm, ok } from "./program.ts";

const state = createFolder();
const place = { state };
const env = { ...bare, ...homeAt(state), OPENCLAW_STATE_DIR: state, PATH: `${state}:${bare.PATH}`, LC_ALL: "C.UTF-8" };

before(() => {
  writeFileSync(join(state, "lcm"), `#!/bin/sh\nexec '${process.execPath}' '${bin}' "$@"\n`);
  chmodSync(join(state, "lcm"), 0o755);
  for (const name of ["first", "second"]) {
    writeFileSync(join(state, `${name}.jsonl`), `{"role":"user","content":"the ${name}: a colon\\tand a tab"}\n`);
    ok(place, "import", join(state, `${name}.jsonl`));
  }
  mkdirSync(join(state, "a folder"));
});

const missing = (shell: string): string | false =>
  spawnSync(shell, ["--version"]).status === 0 ? false : `${shell} is not installed`;

/** Pairs of what is typed, and what the line becomes. Those with conversations read the database. */
const lines: readonly (readonly [typed: string, completed: string])[] = [
  ["lcm gre", "lcm grep "],
  ["lcm grep --sco", "lcm grep --scope "],
  ["lcm grep --scope fil", "lcm grep --scope files "],
  ["lcm grep --scope=fil", "lcm grep --scope=files "],
  ["lcm import fir", "lcm import first.jsonl "],
  ["lcm transplant 1", "lcm transplant 1 "],
];

describe("lcm completion", () => {
  it("prints a script for each shell, and names them", () => {
    for (const shell of ["bash", "zsh", "fish"]) {
      const script = ok(place, "completion", shell);
      assert.equal(script.stdout, ok(place, "completion", shell, "--json").json.script);
      assert.match(script.stdout, /lcm complete -- /);
    }
    assert.equal(lcm(place, "completion", "ksh").status, 2);
    assert.match(lcm(place, "completion").stderr, /missing required argument/);
    assert.doesNotMatch(ok(place, "--help").stdout, /^ +complete\b/m);
  });

  it("offers conversations with their titles on one line, and none if the database cannot be read", () => {
    assert.equal(
      ok(place, "complete", "--", "dag", "").stdout,
      "2\tthe second: a colon and a tab\n1\tthe first: a colon and a tab\n",
    );
    assert.equal(ok(place, "complete", "--", "--db", "none.db", "dag", "").stdout, "");
    assert.equal(ok(place, "complete", "--", "--db", "lcm", "dag", "").stdout, "");
    assert.deepEqual(ok(place, "complete", "--json", "--", "import", "").json, { files: true, words: [] });
  });

  const shells = [
    ["bash", "bash --norc --noprofile -i", "PS1='> '; eval \"$(lcm completion bash)\""],
    ["zsh", "zsh -f -i", "PS1='> '; autoload -U compinit && compinit -u -D; eval \"$(lcm completion zsh)\""],
    ["fish", "fish --no-config -i", "function fish_prompt; printf '> '; end; lcm completion fish | source"],
  ] as const;
  for (const [shell, command, setUp] of shells)
    it(`completes in ${shell}`, { skip: withoutPseudoTerminal || withoutShell || missing(shell) }, async () => {
      const script = join(state, `lcm.${shell}`);
      writeFileSync(script, ok(place, "completion", shell).stdout);
      const syntax = spawnSync(shell, ["-n", script], { encoding: "utf8" });
      assert.deepEqual([syntax.status, syntax.stderr], [0, ""]);
      const terminal = startTerminal(command, { env, cwd: state, columns: 120 });
      terminal.press(`${setUp}; echo re''ady`, "enter");
      await terminal.sees("ready");
      for (const [typed, completed] of lines) {
        terminal.press(typed, "tab");
        await terminal.sees(`> ${completed}`.trimEnd());
        // What is typed next shows where the word ended.
        terminal.press("x");
        await terminal.sees(`> ${completed}x`);
        terminal.press("ctrl+u");
      }
      terminal.press("ctrl+u", "exit", "enter");
      await terminal.ended();
    });
});
