/**
 * The plugin, and its composition root: what the host loads. Registering opens nothing and loads little, since the host
 * does it several times in a process, also where it only wants to know what there is. What stands behind a name is
 * loaded when it is first used.
 */

import { join, resolve } from "node:path";
import { errorText } from "../../core/base/errors.ts";
import { resolveSettings } from "../../core/model/settings.ts";
import { fromHome, stateDirectoryIn } from "../../models/openclaw-files.ts";
import { tools } from "../../agent-tools/all.ts";
import type { ContextEngine, HostConfig, PluginApi, ReadTranscript } from "./host-api.ts";
import { packageVersion } from "../../package.ts";
import { runtimeOf } from "./runtime.ts";
import type { Runtime } from "./runtime.ts";
import { createTool } from "./tools.ts";
import type { Timestamp } from "../../core/base/time.ts";

/** Of the plugin and of its engine: the host takes one for the other. */
const id = "lossless-claw";

export default {
  id,
  name: "Lossless Claw",
  description: "Keeps every message, shows old ones as summaries, and leads from each summary back to what was said.",
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
        description: "What is stored of this session, and what becomes of it: status, doctor, compact, help",
        acceptsArgs: true,
        requireAuth: true,
        async handler(call) {
          try {
            const [{ runCommand }, read] = await Promise.all([import("./chat-commands.ts"), loadReading()]);
            return await runCommand(runtime(), read, call);
          } catch (error) {
            return { text: `⚠️ ${errorText(error)}` }; // A wrong setting: there is nothing to ask yet.
          }
        },
      });
    }
    api.registerCli(
      async ({ program, config }) => (await import("./cli.ts")).mount(program, { config: configIn(config) }),
      {
        descriptors: [
          { name: "lcm", description: "Browse, search and look after stored conversations", hasSubcommands: true },
        ],
      },
    );
    api.registerService({ id, start: () => undefined, stop: async () => await runtime().close() });
    api.on("session_end", async (event, context) => {
      if (event.reason === "deleted") await (await import("./hide-deleted.ts")).hideDeleted(runtime(), event, context);
    });
  },
};

function findRuntime(api: PluginApi): Runtime {
  const settings = resolveSettings({ env: process.env, config: configIn(api.config) });
  const path = resolve(fromHome(settings.values.databasePath ?? join(stateDirectoryIn(process.env), "lcm.db")));
  return runtimeOf({
    path,
    settings,
    clock: { now: () => new Date().toISOString() as Timestamp },
    logger: api.logger,
    async openStore() {
      const { openSqliteWorker } = await import("../../store/sqlite/worker.ts");
      return await openSqliteWorker({ path }, (message) => api.logger.info(message));
    },
    async templates() {
      const { loadTemplates } = await import("../../models/prompt-files.ts");
      const dir = resolve(fromHome(settings.values.promptDir ?? join(stateDirectoryIn(process.env), "lcm-prompts")));
      const { templates, problems } = await loadTemplates(dir);
      for (const problem of problems.values()) api.logger.warn(`${problem.message}; the built-in text is used instead`);
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

/** As the operator wrote it: in what the host hands over, defaults look as if they had been written. */
const configIn = ({ plugins }: HostConfig): Readonly<Record<string, unknown>> => plugins?.entries?.[id]?.config ?? {};
