/** The package's folder is also the plugin of Claude Code and Codex: what its manifests say must be so. */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { planHook } from "../src/hosts/shared/companion.ts";
import { hosts } from "../src/hosts/companion/place.ts";
import packageJson from "../package.json" with { type: "json" };

const repository = fileURLToPath(new URL("../", import.meta.url));
const read = (path: string) => JSON.parse(readFileSync(join(repository, path), "utf8"));
const folders = { "claude-code": ".claude-plugin", codex: ".codex-plugin" } as const;

for (const name of Object.keys(hosts) as (keyof typeof folders)[]) {
  describe(`the plugin of ${name}`, () => {
    const manifest = read(`${folders[name]}/plugin.json`);

    it("has the name and version of the package", () => {
      assert.equal(manifest.name, packageJson.name);
      assert.equal(manifest.version, packageJson.version);
    });

    it("runs our hook at the events that we serve, and no other", () => {
      const { hooks } = read(manifest.hooks);
      for (const [event, [entry]] of Object.entries<ReturnType<typeof JSON.parse>>(hooks)) {
        const [{ command, timeout }] = entry.hooks;
        assert.equal(command, `node "\${CLAUDE_PLUGIN_ROOT}/bin/lcm-hook.js" ${name}`);
        // Codex gives the end of a session 3 seconds, and warns in every run about a plugin that asks for more.
        if (name === "codex" && event === "SessionEnd") assert.equal(timeout, 3);
        else assert.ok(timeout >= 10, "longer than the hook's own time limit");
        const call = { event, source: null, sessionId: "s", transcript: "t", folder: "f", agentTranscript: "a" };
        assert.ok(planHook(call).transcript !== null, event);
      }
      assert.deepEqual(Object.keys(hooks).toSorted(), [
        "PreCompact",
        "SessionEnd",
        "SessionStart",
        "Stop",
        "SubagentStop",
      ]);
    });

    it("starts the MCP server of the package, which is never required: a host would not start without it", () => {
      const { mcpServers } = read(manifest.mcpServers);
      const [path, command] = mcpServers.lcm.args;
      assert.match(path, /^(?:\$\{CLAUDE_PLUGIN_ROOT\}|\.)\/bin\/lcm\.js$/);
      assert.equal(command, "mcp");
      assert.equal(mcpServers.lcm.required, undefined);
    });
  });
}

it("each marketplace offers the package's own folder", () => {
  const [claude] = read(".claude-plugin/marketplace.json").plugins;
  const [codex] = read(".agents/plugins/marketplace.json").plugins;
  assert.deepEqual([claude.name, codex.name], [packageJson.name, packageJson.name]);
  assert.deepEqual([claude.source, codex.source.path], ["./", "./"]);
  for (const path of ["bin/lcm-hook.js", "bin/lcm.js"]) assert.ok(existsSync(join(repository, path)));
  for (const folder of [".agents", ".claude-plugin", ".codex-plugin", "bin", "plugin"])
    assert.ok(packageJson.files.includes(folder), folder);
});
