/** The real OpenCode, started by `lcm run`, with the provider that it has itself. */

import { prepareSettings } from "./opencode-server.ts";
import { testLcmRun } from "./lcm-run.ts";

const model = "claude-sonnet-4-5";

testLcmRun({
  host: "opencode",
  program: "opencode",
  env: { OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1" },
  // It would put quotes around a prompt on its command line.
  words: (_, isNext) => ["run", "--format", "json", ...(isNext ? ["--continue"] : [])],
  readsInput: true,
  tool: (name) => `lossless-claw_${name}`,
  prepare(home) {
    const limit = { context: 60_000, output: 4_000 };
    prepareSettings(home, {
      model: `anthropic/${model}`,
      small_model: `anthropic/${model}`,
      provider: { anthropic: { models: { [model]: { name: model, tool_call: true, limit } } } },
    });
  },
});
