/** `lcm run`: runs an agent through the proxy. */

import { LcmError } from "../../core/base/errors.ts";
import { defineCommand } from "./_session.ts";
import { collected } from "./_options.ts";

export const runCommand = defineCommand({
  name: "run",
  json: null,
  summary: "run an agent through the proxy",
  description:
    "Run an agent whose requests to its model go through a proxy of its own. Every message is stored; when the conversation " +
    "outgrows its budget (proxyTokens), the old part of each request is replaced by summaries.",
  arguments: [["<command...>", "the agent's command line, after --"]],
  options: {
    storeOnly: ["--store-only", "store everything and change no request"],
    mcp: ["--no-mcp", "do not offer our recall tools to the agent"],
    upstream: [
      "--upstream <name=url>",
      "where requests go; repeat for several (default: as the agent's variables say)",
      collected,
    ],
  },
  examples: [
    ["lcm run -- claude", "Claude Code"],
    ["lcm run -- codex", "Codex, with an API key"],
    ["lcm run --store-only -- opencode", "store what OpenCode says, and change nothing"],
    [
      "lcm run --upstream openai=http://127.0.0.1:11434/v1 -- python agent.py",
      "a program of your own, with a local model",
    ],
  ],
  notes:
    "The program sees ANTHROPIC_BASE_URL and OPENAI_BASE_URL; Codex and OpenCode also get the option that they need. Its exit " +
    "status, signals and terminal are passed through. Requests of a subscription are stored and never changed.",
  async run({ context, database }, { storeOnly = false, mcp = true, upstream = [] }, ...command) {
    if (command.length === 0) throw new LcmError("invalid", "no program given", { hint: "lcm run -- claude" });
    return await context.runAgent({ database, storeOnly, withMcp: mcp, upstreams: upstream, command });
  },
});
