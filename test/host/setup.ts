/** Connects a real agent with `lcm setup` of the published package, and disconnects it again, in a home of its own. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { it } from "node:test";
import type { AgentName } from "../../src/cli/setup/agents.ts";
import { makeScratch } from "../support/scratch.ts";
import { hostNode, hostPath } from "./install.ts";
import { pluginFolder } from "./plugin.ts";

interface Connecting {
  readonly agent: AgentName;
  /** The name of its program, and what runs it. */
  readonly program: string;
  readonly command: readonly string[];
  /** Its configuration, relative to the home, as a person has written it. */
  readonly config: string;
  readonly mine: string;
  /** Arguments of its program, and what they print if it has loaded us. */
  readonly shows: readonly [args: readonly string[], says: RegExp];
}

export function testSetup({ agent, program, command, config, mine, shows: [args, says] }: Connecting): void {
  const scratch = makeScratch(`setup-${agent}`);
  const home = join(scratch, "home");
  const path = join(home, config);
  const env = {
    HOME: home,
    PATH: [join(scratch, "bin"), hostPath].join(delimiter),
    TMPDIR: process.env["TMPDIR"],
    LANG: "C.UTF-8",
    PI_OFFLINE: "1",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_AUTOUPDATER: "1",
    OPENCODE_DISABLE_AUTOUPDATE: "1",
    OPENCODE_DISABLE_MODELS_FETCH: "1",
  };
  const run = (file: string, words: readonly string[]): string => {
    const { status, stdout, stderr } = spawnSync(file, words, { cwd: home, env, encoding: "utf8", timeout: 120_000 });
    assert.equal(status, 0, `${words.join(" ")}\n${stdout}\n${stderr}`);
    return stdout;
  };
  const setup = (...words: readonly string[]) => run(hostNode, [join(pluginFolder(), "bin/lcm.js"), "setup", ...words]);
  const copies = () => globSync(`${config}.before-lcm*`, { cwd: home });

  it(`connects ${agent}, which then loads us, and gives its file back byte for byte`, () => {
    for (const folder of [dirname(path), join(scratch, "bin")]) mkdirSync(folder, { recursive: true });
    writeFileSync(path, mine);
    const launcher = join(scratch, "bin", program);
    writeFileSync(launcher, `#!/bin/sh\nexec ${command.map((word) => `'${word}'`).join(" ")} "$@"\n`);
    chmodSync(launcher, 0o755);

    setup(agent);
    assert.deepEqual([readFileSync(path, "utf8"), copies()], [mine, []], "without a yes, nothing is changed");
    assert.match(setup(agent, "--yes"), /: connected; /);
    assert.match(run(launcher, args), says);
    assert.match(setup(agent), /: connected already/);
    assert.match(setup(agent, "--remove", "--yes"), /: disconnected; /);
    assert.deepEqual([readFileSync(path, "utf8"), copies()], [mine, []]);
    assert.doesNotMatch(run(launcher, args), says);

    setup(agent, "--yes");
    writeFileSync(path, readFileSync(path, "utf8").replace("dusk", "dawn"));
    setup(agent, "--remove", "--yes");
    assert.match(readFileSync(path, "utf8"), /dawn/);
    assert.doesNotMatch(run(launcher, args), says);
  });
}
