/** `lcm setup codex` with the real Codex. */

import { namedHostBin } from "./install.ts";
import { testSetup } from "./setup.ts";

testSetup({
  agent: "codex",
  program: "codex",
  command: [namedHostBin("codex", "codex")],
  config: ".codex/config.toml",
  mine: '# mine\nmodel = "dusk"   # keep\n\n[mcp_servers.other]\ncommand = "other"',
  shows: [["plugin", "list"], /lossless-claw/],
});
