/** `lcm setup claude-code` with the real Claude Code. */

import { namedHostBin } from "./install.ts";
import { testSetup } from "./setup.ts";

testSetup({
  agent: "claude-code",
  program: "claude",
  command: [namedHostBin("claude-code", "claude")],
  config: ".claude/settings.json",
  mine: '{\n    "permissions": {"allow": ["Bash(ls)"]},\n\n    "env": {"MOOD": "dusk"} }',
  shows: [["plugin", "list"], /lossless-claw@lossless/],
});
