/** The real Codex, started by `lcm run`, with its built-in provider: at first with the model that it has by default. */

import { testLcmRun } from "./lcm-run.ts";

testLcmRun({
  host: "codex",
  program: "codex",
  // It asks its makers about plugins, and without a network it would wait for their address.
  env: { HTTPS_PROXY: "http://127.0.0.1:9", NO_PROXY: "127.0.0.1" },
  words: (prompt, isNext) => [
    "exec",
    "--json",
    "--skip-git-repo-check",
    "--dangerously-bypass-approvals-and-sandbox",
    // Models that it knows call tools from code, which the scripted one does not write.
    ...(isNext ? ["--model=scripted", "resume", "--last"] : []),
    prompt,
  ],
  tool: (name) => `mcp__lossless_claw::${name}`,
});
