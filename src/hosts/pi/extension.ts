/**
 * The extension that Pi loads, and its composition root. Loading it opens nothing. The engine runs inside Pi, or in a side
 * process where Pi's own runtime cannot open our database: an older Node, or Bun.
 */

import { join } from "node:path";
import { resolveSettings } from "../../core/model/settings.ts";
import { packageFolder, packageVersion } from "../../package.ts";
import type { HostWords } from "../shared/chat-commands.ts";
import type { HostEngine } from "../shared/engine.ts";
import type { Logger } from "../shared/runtime.ts";
import { adaptPi, warn } from "./adapter.ts";
import type { PiApi, PiContext } from "./pi-api.ts";
import { createPiModel } from "./pi-model.ts";

/** What package.json asks for: the build puts it here. */
declare const neededNode: string;

const words: HostWords = { name: "Pi", shell: "lcm", ownCompaction: "`/compact` uses Pi's own compaction" };

export default function extend(pi: PiApi): void {
  /** The newest, because one of an earlier event may no longer be valid. */
  let latest: PiContext | null = null;
  let opened: Promise<HostEngine> | null = null;
  adaptPi(pi, async (context) => {
    latest = context;
    opened ??= canOpenHere() ? openHere(() => latest) : openAside(() => latest);
    return await opened.catch((error: unknown) => {
      opened = null; // Settings can be corrected while Pi runs.
      throw error;
    });
  });
}

function canOpenHere(): boolean {
  if (process.versions["bun"] !== undefined) return false;
  const [wanted, own] = [neededNode, process.versions.node].map((version) => version.split(".").map(Number));
  const [[major = 0, minor = 0], [ownMajor = 0, ownMinor = 0]] = [wanted ?? [], own ?? []];
  return ownMajor > major || (ownMajor === major && ownMinor >= minor);
}

type Latest = () => PiContext | null;

async function openHere(latest: Latest): Promise<HostEngine> {
  const [{ createHostEngine }, { openRuntime }] = await Promise.all([
    import("../shared/engine.ts"),
    import("../shared/open-runtime.ts"),
  ]);
  const runtime = await openRuntime(process.env, loggerFor(latest));
  const modelOf = () => createPiModel(latest(), runtime.settings.values);
  return createHostEngine({ runtime, words, modelOf });
}

async function openAside(latest: Latest): Promise<HostEngine> {
  const { createRemoteEngine } = await import("../shared/remote-engine.ts");
  const logger = loggerFor(latest);
  const { values } = resolveSettings({ env: process.env, config: {} });
  return createRemoteEngine({
    command: [process.env["LCM_NODE"] ?? "node", join(packageFolder(), "bin", "lcm.js"), "serve"],
    env: process.env,
    host: "pi",
    version: packageVersion(),
    words,
    model: {
      provider: "pi",
      name: "the session's model",
      complete: async (request) =>
        (await createPiModel(latest(), values)?.complete(request)) ?? {
          kind: "refused",
          refusal: "unknown_model",
          message: "no model is selected in Pi",
        },
    },
    note: (line) => logger.warn(line),
  });
}

/** Pi has no log for extensions: a warning is shown once, the rest is in `/lcm`. */
function loggerFor(latest: Latest): Logger {
  const shown = new Set<string>();
  const warnOnce = (message: string): void => {
    const context = latest();
    if (context !== null && !shown.has(message)) warn(context, message);
    shown.add(message);
  };
  return { info: () => undefined, warn: warnOnce, error: warnOnce };
}
