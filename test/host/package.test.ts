/** Tests the published package as an operator uses it: packed, inspected, installed, used and removed. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { flattened } from "../support/lossless.ts";
import { pack } from "../support/published.ts";
import { makeScratch } from "../support/scratch.ts";
import { tools } from "../../src/agent-tools/all.ts";
import { createGateway } from "./gateway.ts";
import type { Gateway } from "./gateway.ts";
import { hostBin } from "./install.ts";
import { startModelServer } from "./model-server.ts";
import type { ModelServer } from "./model-server.ts";
import { pluginFolder } from "./plugin.ts";
import { segmentsOf, withStore } from "./stored.ts";

const id = "lossless-claw";
const session = "agent:main:package";
const consent = ["--force", "--accept-capabilities"];
/** Only ours beside what the host needs; it starts sooner. */
const plugins = { allow: [id], slots: { memory: "none" } };

describe("the package", () => {
  const scratch = makeScratch("package");
  /** Where the tarball is unpacked. */
  const root = join(scratch, "package");
  let tarball: string;
  let models: ModelServer;
  let gateway: Gateway;

  const openclaw = async (...args: readonly string[]): Promise<string> => {
    const { status, stdout, stderr } = await gateway.cli(...args);
    assert.equal(status, 0, `openclaw ${args.join(" ")}: ${stdout}${stderr}`);
    return stdout;
  };
  const pluginConfig = () => JSON.parse(readFileSync(join(gateway.state, "openclaw.json"), "utf8")).plugins;

  before(async () => {
    ({ path: tarball } = pack(pluginFolder(), scratch));
    execFileSync("tar", ["-xzf", tarball, "-C", scratch]);
    models = await startModelServer();
    gateway = await createGateway({ server: models, plugins });
  });
  after(async () => await models.close());

  it("passes the host's inspector", async () => {
    const { node } = await hostBin();
    const host = fileURLToPath(new URL("openclaw/node_modules/", import.meta.url));
    const inspector = join(host, "@openclaw/plugin-inspector/src/cli.js");
    const args = ["inspect", "--plugin-root", root, "--out", "reports", "--openclaw", join(host, "openclaw")];
    execFileSync(node, [inspector, ...args], { stdio: "pipe" });
    const report = JSON.parse(readFileSync(join(root, "reports/plugin-inspector-report.json"), "utf8"));
    assert.deepEqual([report.status, report.breakages, report.warnings, report.issues], ["pass", [], [], []]);
  });

  it("installs from its tarball with no network, and becomes the context engine", async () => {
    await openclaw("plugins", "install", `npm-pack:${tarball}`, ...consent);
    assert.equal(pluginConfig().slots.contextEngine, id);
    assert.equal(pluginConfig().entries[id].enabled, true);
  });

  it("shows the host its engine, tools, commands, program and settings", async () => {
    const {
      plugin,
      tools: offered,
      diagnostics,
    } = JSON.parse(await openclaw("plugins", "inspect", id, "--runtime", "--json"));
    assert.equal(plugin.status, "loaded");
    assert.deepEqual(plugin.contextEngineIds, [id]);
    const names = tools.map(({ name }) => name);
    assert.deepEqual(plugin.toolNames, names);
    assert.deepEqual(plugin.commands, ["lcm", "lossless"]);
    assert.deepEqual(plugin.cliCommands, ["lcm"]);
    assert.equal(plugin.configUiHints.freshTailCount.label, "Fresh tail count");
    assert.equal(plugin.activationReason, "selected context engine slot");
    assert.deepEqual(
      offered.flatMap((tool: { readonly names: readonly string[] }) => tool.names),
      names,
    );
    assert.deepEqual(diagnostics, []);
  });

  it("passes the host's doctor", async () => {
    assert.match(await openclaw("plugins", "doctor"), /checks passed/);
  });

  it("has its settings checked by the host, and those of the older program accepted", async () => {
    const key = `plugins.entries.${id}.config`;
    await openclaw("config", "set", key, '{"freshTailCount":8,"pruneHeartbeatOk":true}', "--strict-json");
    const { status, stdout, stderr } = await gateway.cli(
      "config",
      "set",
      `${key}.freshTailCount`,
      "-1",
      "--strict-json",
    );
    assert.notEqual(status, 0);
    assert.match(stdout + stderr, /freshTailCount/);
    // Nothing that the operator has not written.
    assert.deepEqual(pluginConfig().entries[id].config, { freshTailCount: 8, pruneHeartbeatOk: true });
  });

  it("serves and stores a turn", async () => {
    await gateway.start();
    assert.deepEqual(await gateway.turn(session, "heliotrope"), { status: 200, text: "You said: heliotrope" });
    models.script(({ results }) =>
      results.length === 0
        ? { kind: "answer", calls: [{ name: "lcm_grep", args: { pattern: "heliotrope" } }] }
        : results.join(),
    );
    assert.match((await gateway.turn(session, "look")).text, /msg_1-1\b[^]*heliotrope/);
    const said = gateway.transcript(session).filter(({ type }) => type === "message");
    const stored = await withStore(gateway, async (lcm) => {
      const [segment] = await segmentsOf(lcm, session);
      assert(segment);
      return await flattened(lcm.store, segment.id);
    });
    assert.deepEqual(
      stored.map(({ key }) => key),
      said.map((event) => event.id),
    );
  });

  it("guarantee 7: leaves everything stored in place when it is uninstalled", async () => {
    await gateway.stop();
    const database = join(gateway.state, "lcm.db");
    const stored = readFileSync(database);
    await openclaw("plugins", "uninstall", id, "--force");
    assert.deepEqual(readFileSync(database), stored);
    assert.equal(pluginConfig().slots.contextEngine ?? "legacy", "legacy");
  });

  it("comes back after it was uninstalled, by installing and enabling it again", async () => {
    await openclaw("plugins", "install", "-l", root, ...consent);
    assert.equal(pluginConfig().entries[id].enabled, false);
    await openclaw("plugins", "enable", id, "--accept-capabilities");
    assert.equal(pluginConfig().entries[id].enabled, true);
    assert.equal(pluginConfig().slots.contextEngine, id);
  });

  it("can be linked from its folder", async () => {
    gateway = await createGateway({ server: models, plugins });
    await openclaw("plugins", "install", "-l", root, ...consent);
    assert.deepEqual(pluginConfig().load.paths, [root]);
    assert.equal(pluginConfig().slots.contextEngine, id);
    const { plugin } = JSON.parse(await openclaw("plugins", "inspect", id, "--runtime", "--json"));
    assert.equal(plugin.status, "loaded");
  });
});
