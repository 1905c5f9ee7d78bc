/** The real Claude Code, started by `lcm run`. */

import { testLcmRun } from "./lcm-run.ts";

testLcmRun({
  host: "claude-code",
  program: "claude",
  // It refuses to run without asking as root, except in a sandbox; this is one.
  env: { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1", IS_SANDBOX: "1" },
  words: (prompt, isNext) => [
    "-p",
    prompt,
    "--model=claude-sonnet-4-5",
    "--permission-mode=bypassPermissions",
    ...(isNext ? ["--continue"] : []),
  ],
  tool: (name) => `mcp__lossless-claw__${name}`,
});
