/** `lcm setup` with the real OpenClaw and the real Pi. */

import { hostBin, hostNode, piProgram } from "./install.ts";
import { testSetup } from "./setup.ts";

const { node, openclaw } = await hostBin();

testSetup({
  agent: "openclaw",
  program: "openclaw",
  command: [node, openclaw],
  config: ".openclaw/openclaw.json",
  mine: '{\n  // mine\n  "agents": { "defaults": { "workspace": "~/dusk" } },\n}\n',
  shows: [["plugins", "list", "--json"], /"id": "lossless-claw"/],
});

testSetup({
  agent: "pi",
  program: "pi",
  command: [hostNode, piProgram],
  config: ".pi/agent/settings.json",
  mine: '{ "theme":"dusk",\n\n  "packages": [] }',
  shows: [["list"], /\/plugin$/m],
});
