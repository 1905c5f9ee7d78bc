/**
 * The plugin that OpenClaw loads, and its composition root. The host registers it several times per process, often only
 * to list what it offers, so registering opens nothing and modules are loaded on first use.
 */

import { join, resolve } from "node:path";
import { errorText } from "../../core/base/errors.ts";
import { durabilityOf, misplacedWords, resolveSettings } from "../../core/model/settings.ts";
import {
  databasePlaceIn,
  fromHome,
  misplacedSettingsIn,
  pluginConfigIn,
  stateDirectoryIn,
} from "../../models/openclaw-files.ts";
import { tools } from "../../agent-tools/all.ts";
import type { ContextEngine, PluginApi, ReadTranscript } from "./host-api.ts";
import { packageVersion } from "../../package.ts";
import { runtimeOf, type Runtime } from "../shared/runtime.ts";
import { createTool } from "./tools.ts";
import type { Timestamp } from "../../core/base/time.ts";

/** The plugin and its engine share one id, because the host does not distinguish them. */
const id = "lossless-claw";

export default {
  id,
  name: "Lossless Claw",
  description: "Keeps every message, shows old ones as summaries, and lets agents recall the originals.",
  register(api: PluginApi): void {
    const runtime = (): Runtime => findRuntime(api);
    api.registerContextEngine(id, async () => await createEngineFor(runtime()));
    for (const tool of tools) {
      const deps = { runtime, host: () => api.runtime, logger: api.logger };
      api.registerTool((context) => createTool(tool, context, deps), { name: tool.name });
    }
    for (const name of ["lcm", "lossless"]) {
      api.registerCommand({
        name,
        description: "Show, check and compact what is stored for this session: status, doctor, compact, help",
        acceptsArgs: true,
        requireAuth: true,
        async handler(call) {
          try {
            const [{ runCommand }, read] = await Promise.all([import("./chat-commands.ts"), loadReading()]);
            return await runCommand(runtime(), read, call);
          } catch (error) {
            return { text: `⚠️ ${errorText(error)}` }; // Invalid settings, for example.
          }
        },
      });
    }
    api.registerCli(async ({ program, config }) => (await import("./cli.ts")).mount(program, { config }), {
      descriptors: [
        { name: "lcm", description: "Browse, search and maintain stored conversations", hasSubcommands: true },
      ],
    });
    api.registerService({ id, start: () => undefined, stop: async () => await runtime().close() });
    api.on("session_end", async (event, context) => {
      if (event.reason === "deleted") await (await import("./hide-deleted.ts")).hideDeleted(runtime(), event, context);
    });
  },
};

function findRuntime(api: PluginApi): Runtime {
  const { config } = api;
  const misplaced = misplacedSettingsIn(config);
  for (const each of misplaced) api.logger.warn(`openclaw.json: ${misplacedWords(each)}`);
  // As the operator wrote it: in the config that the host passes on, defaults look as if they were set.
  const settings = resolveSettings({ env: process.env, config: pluginConfigIn(config), misplaced });
  const durability = durabilityOf(settings.values, "normal"); // The host's transcript brings every row again.
  const place = databasePlaceIn(process.env, settings);
  return runtimeOf({
    path: place.shown,
    settings,
    clock: { now: () => new Date().toISOString() as Timestamp },
    logger: api.logger,
    async openStore() {
      const { openPlace } = await import("../../store/open.ts");
      const report = (message: string): void => api.logger.info(message);
      return await openPlace(place, { settings: settings.values, env: process.env, durability, report });
    },
    async embedder() {
      if (settings.values.embedder === null) return null;
      const { chooseEmbedder } = await import("../../models/choose-embedder.ts");
      const stateDir = stateDirectoryIn(process.env);
      return await chooseEmbedder(settings.values, { stateDir, env: process.env, cwd: process.cwd() });
    },
    async templates() {
      const { loadTemplates } = await import("../../models/prompt-files.ts");
      const dir = resolve(fromHome(settings.values.promptDir ?? join(stateDirectoryIn(process.env), "lcm-prompts")));
      const { templates, problems } = await loadTemplates(dir);
      for (const problem of problems.values()) api.logger.warn(`${problem.message}; using the built-in prompt instead`);
      return templates;
    },
  });
}

async function createEngineFor(runtime: Runtime): Promise<ContextEngine> {
  const [{ createEngine }, readTranscript] = await Promise.all([import("./engine.ts"), loadReading()]);
  return createEngine({
    id,
    version: packageVersion(),
    runtime,
    readTranscript,
    async delegateCompaction(call) {
      const { delegateCompactionToRuntime } = await import("openclaw/plugin-sdk/core");
      return await delegateCompactionToRuntime(call);
    },
  });
}

const loadReading = async (): Promise<ReadTranscript> =>
  (await import("openclaw/plugin-sdk/session-transcript-runtime")).readSessionTranscriptRawDelta;
