/** The runtime of an engine with the settings and the database of the command line; opens nothing yet. */

import { join, resolve } from "node:path";
import type { DatabasePlace } from "../../core/base/database-place.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { durabilityOf, resolveSettings } from "../../core/model/settings.ts";
import {
  databasePlaceIn,
  fromHome,
  pluginConfigIn,
  readOpenclawConfig,
  stateDirectoryIn,
  type Env,
} from "../../models/openclaw-files.ts";
import { runtimeOf, type Logger, type Runtime, type RuntimeDeps } from "./runtime.ts";

/** `given` is another database than the configured one. Throws for invalid settings. */
export async function openRuntime(
  env: Env,
  logger: Logger,
  given?: DatabasePlace,
  patience: Pick<RuntimeDeps, "patienceMs"> = {},
): Promise<Runtime> {
  const stateDir = stateDirectoryIn(env);
  // A config that cannot be read must not keep anything from being stored; `lcm settings` reports it.
  const config = await readOpenclawConfig(stateDir, env).catch(() => null);
  const settings = resolveSettings({ env, config: pluginConfigIn(config) });
  const place = given ?? databasePlaceIn(env, settings);
  const durability = durabilityOf(settings.values, "normal"); // The host's transcript brings every row again.
  return runtimeOf({
    ...patience,
    path: place.shown,
    settings,
    clock: { now: () => new Date().toISOString() as Timestamp },
    logger,
    async openStore() {
      const { openPlace } = await import("../../store/open.ts");
      // A database of the older program is not converted: that program may still be using it.
      return await openPlace(place, { settings: settings.values, env, durability });
    },
    async embedder() {
      if (settings.values.embedder === null) return null;
      const { chooseEmbedder } = await import("../../models/choose-embedder.ts");
      return await chooseEmbedder(settings.values, { stateDir, env, cwd: process.cwd() });
    },
    async templates() {
      const { loadTemplates } = await import("../../models/prompt-files.ts");
      const folder = resolve(fromHome(settings.values.promptDir ?? join(stateDir, "lcm-prompts")));
      const { templates, problems } = await loadTemplates(folder);
      for (const { message } of problems.values()) logger.warn(`${message}; using the built-in prompt instead`);
      return templates;
    },
  });
}
