/** `lcm setup opencode` with the real OpenCode. */

import { namedHostBin } from "./install.ts";
import { testSetup } from "./setup.ts";

testSetup({
  agent: "opencode",
  program: "opencode",
  command: [namedHostBin("opencode", "opencode")],
  config: ".config/opencode/opencode.jsonc",
  // OpenCode itself adds a schema to a file that has none.
  mine: '{\n  "$schema": "https://opencode.ai/config.json",\n  // mine\n  "autoupdate": false, "username": "dusk" // keep\n}\n',
  shows: [["debug", "config"], /dist\/hosts\/opencode\/plugin\.js/],
});
