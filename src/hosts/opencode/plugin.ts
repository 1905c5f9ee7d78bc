/**
 * The plugin that OpenCode loads, a composition root. It runs in OpenCode's own runtime (Bun), which cannot open our
 * database: the engine is in a side process. An error in a hook would fail the turn, so every hook reports it and goes on.
 */

import { join } from "node:path";
import { errorText } from "../../core/base/errors.ts";
import { isObject, type JsonObject } from "../../core/base/json.ts";
import { packageFolder, packageVersion } from "../../package.ts";
import { offeredTools } from "../shared/offered-tools.ts";
import { createRemoteEngine, type RemoteEngine } from "../shared/remote-engine.ts";
import type { HostConfig, HostEvent, HostTool, Hooks, PluginInput } from "./host-api.ts";
import { Sessions } from "./sessions.ts";

export async function losslessClaw({ client }: PluginInput): Promise<Hooks> {
  const say = (message: string): void => {
    const body = { service: "lossless-claw", level: "warn" as const, message };
    void client.app.log({ body }).catch(() => undefined); // Nobody else could be told.
  };
  const note = (doing: string, error: unknown): void => say(`while ${doing}: ${errorText(error)}`);
  const engine = createRemoteEngine({
    command: [process.env["LCM_NODE"] ?? "node", launcher, "serve"],
    env: process.env,
    host: "opencode",
    version: packageVersion(),
    words: { name: "OpenCode", shell: "lcm", ownCompaction: "`/compact` uses OpenCode's own compaction" },
    note: say,
  });
  engine.warmUp();
  return await Promise.resolve(createHooks({ engine, note, sessions: new Sessions({ client, engine, note }) }));
}

interface HookDeps {
  readonly engine: RemoteEngine;
  readonly sessions: Sessions;
  readonly note: (doing: string, error: unknown) => void;
}

function createHooks({ engine, sessions, note }: HookDeps): Hooks {
  const compaction = new Compaction();
  const attempt = async (doing: string, work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      note(doing, error);
    }
  };
  return {
    config: async (config) => await attempt("changing the configuration", async () => compaction.begin(config)),
    async event({ event }) {
      // The host is not kept waiting, and a compaction may take minutes.
      void attempt(`handling ${event.type}`, async () => await handle(event, sessions));
      await Promise.resolve();
    },
    tool: Object.fromEntries(offeredTools.map((tool) => [tool.name, hostTool(tool, sessions, engine)])),
    async "tool.definition"({ toolID }, definition) {
      const tool = offeredTools.find(({ name }) => name === toolID);
      if (tool !== undefined) definition.jsonSchema = tool.parameters as object as JsonObject;
      await Promise.resolve();
    },
    "experimental.chat.messages.transform": async (_about, { messages }) =>
      await attempt("building a prompt", async () => {
        const id = messages[0]?.info.sessionID ?? "";
        let isOurs = false;
        try {
          isOurs = await sessions.prompt(messages);
        } finally {
          sessions.setCompacting(id, false);
          compaction.isOurs(isOurs);
        }
      }),
    async "experimental.chat.system.transform"({ sessionID }, { system }) {
      const guidance = sessionID === undefined ? null : sessions.guidanceOf(sessionID);
      if (guidance !== null) system.push(guidance);
      await Promise.resolve();
    },
    async "experimental.session.compacting"({ sessionID }) {
      sessions.setCompacting(sessionID, true);
      await Promise.resolve();
    },
    "command.execute.before": async ({ command, sessionID, arguments: words }, { parts }) =>
      await attempt("answering /lcm", async () => {
        if (command !== "lcm") return;
        await sessions.copy(sessionID);
        const answer = await engine.command(sessions.session(sessionID), words);
        parts.splice(0, parts.length, { type: "text", text: `${relay}\n\n${answer}` });
      }),
    dispose: async () =>
      await attempt("ending", async () => {
        await sessions.settled();
        await engine.close();
      }),
  };
}

/** The command line of this package; it finds a Node that is new enough, or says what is missing. */
const launcher = join(packageFolder(), "bin", "lcm.js");

/** A command of this host always asks the model. */
const relay = "Repeat the following report of lossless-claw to me as it is, and do nothing else.";

/**
 * The host's own compaction by threshold is off while the prompts are ours: it would count what it does not send. The
 * host reads this setting before every decision, so it is given back as soon as a prompt is not ours.
 */
class Compaction {
  #config: HostConfig | null = null;
  #chosen: boolean | undefined;

  begin(config: HostConfig): void {
    this.#config = config;
    this.#chosen = config.compaction?.auto;
    config.command = {
      ...config.command,
      lcm: { template: "$ARGUMENTS", description: "Show, check and compact what lossless-claw has stored" },
    };
    this.isOurs(true);
  }

  isOurs(isOurs: boolean): void {
    if (this.#config === null) return;
    this.#config.compaction ??= {};
    this.#config.compaction.auto = isOurs ? false : this.#chosen;
  }
}

async function handle({ type, properties }: HostEvent, sessions: Sessions): Promise<void> {
  const { info, sessionID } = properties;
  if (type === "session.idle" && typeof sessionID === "string") await sessions.idle(sessionID);
  if (!isObject(info)) return;
  // The next prompt deletes what is reverted.
  if (type === "session.updated" && isObject(info["revert"]) && typeof info["id"] === "string")
    await sessions.copy(info["id"]);
  const time = isObject(info["time"]) ? info["time"] : {};
  if (type === "message.updated" && info["role"] === "assistant" && time["completed"] !== undefined)
    await sessions.answered(info);
}

function hostTool(tool: (typeof offeredTools)[number], sessions: Sessions, engine: RemoteEngine): HostTool {
  const { name, description, parameters } = tool;
  return {
    description,
    args: (parameters as object as { readonly properties: JsonObject }).properties,
    async execute(args, { sessionID, abort, metadata }) {
      const onProgress = (title: string): void => metadata({ title });
      const { text } = await engine.tool(sessions.session(sessionID), { name, args, onProgress }, abort);
      return text;
    },
  };
}
