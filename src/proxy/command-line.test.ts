import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { commandFor } from "./command-line.ts";

const to = {
  urlOf: (name: string) => `http://127.0.0.1:1/s/${name}`,
  mcp: ["node", "lcm.js", "mcp"],
  env: {},
} as const;

describe("pointing a program at the proxy", () => {
  it("sets what SDKs read, and leaves an unknown program's words alone", () => {
    const { words, env } = commandFor(["python", "agent.py", "--x"], to);
    assert.deepEqual(words, ["python", "agent.py", "--x"]);
    assert.deepEqual(env, {
      ANTHROPIC_BASE_URL: "http://127.0.0.1:1/s/anthropic",
      OPENAI_BASE_URL: "http://127.0.0.1:1/s/openai",
      OPENAI_API_BASE: "http://127.0.0.1:1/s/openai",
      NO_PROXY: "127.0.0.1,localhost",
      no_proxy: "127.0.0.1,localhost",
    });
  });

  it("gives Codex its options in front, because its subcommands come after", () => {
    const { words } = commandFor(["/usr/bin/codex", "exec", "hello"], to);
    assert.deepEqual(words.slice(0, 3), ["/usr/bin/codex", "-c", 'openai_base_url="http://127.0.0.1:1/s/openai"']);
    assert.ok(words.includes('mcp_servers.lossless-claw.args=["lcm.js","mcp"]'));
    assert.deepEqual(words.slice(-2), ["exec", "hello"]);
  });

  it("gives Claude Code our tools at the end, but not its subcommands", () => {
    assert.deepEqual(commandFor(["claude", "-p", "hello"], to).words.slice(0, 4), [
      "claude",
      "-p",
      "hello",
      "--mcp-config",
    ]);
    assert.deepEqual(commandFor(["claude", "mcp", "list"], to).words, ["claude", "mcp", "list"]);
    assert.deepEqual(commandFor(["claude"], { ...to, mcp: null }).words, ["claude"]);
  });

  it("never pretends to be the provider itself", () => {
    for (const name of ["claude", "codex", "opencode"]) {
      const { env } = commandFor([name], to);
      assert.ok(!Object.keys(env).some((variable) => variable.includes("FIRST_PARTY")));
    }
  });

  it("passes OpenCode a config, unless somebody else does", () => {
    const { env } = commandFor(["opencode"], to);
    const config = JSON.parse(env["OPENCODE_CONFIG_CONTENT"] ?? "{}");
    assert.equal(config.provider.anthropic.options.baseURL, "http://127.0.0.1:1/s/anthropic/v1");
    assert.equal(
      commandFor(["opencode"], { ...to, env: { OPENCODE_CONFIG_CONTENT: "{}" } }).env["OPENCODE_CONFIG_CONTENT"],
      undefined,
    );
  });
});
