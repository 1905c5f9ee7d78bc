/** `lcm mcp`: serves the recall tools to editors and agents over MCP. Stdout carries only the protocol. */

import { LcmError } from "../../core/base/errors.ts";
import type { Reader } from "../../core/recall/scope.ts";
import type { ResolvedSettings } from "../../core/model/settings.ts";
import { createConnection } from "../connection.ts";
import { isStartedInSession, readerFor } from "../mcp-reader.ts";
import { defineCommand, type CommandContext, type Engine } from "./_session.ts";
import { oneLine } from "../../format/safe-text.ts";

export const mcpCommand = defineCommand({
  name: "mcp",
  json: null,
  summary: "serve recall to an editor or agent over MCP",
  description:
    "Serve lcm_grep, lcm_describe, lcm_expand_query, lcm_recent and lcm_map to one MCP client on stdin and stdout. It " +
    "changes no conversation, and it can be started before the database exists.",
  options: {
    conversation: [
      "--conversation <name>",
      "read the session of this conversation (number, session key or session id) unless the client asks for more",
    ],
    folder: ["--folder <path>", "read the sessions of this project unless the client asks for more"],
  },
  examples: [
    ["claude mcp add lossless-claw -- node /path/to/lossless-claw/bin/lcm.js mcp", "add it to Claude Code"],
    ["codex mcp add lossless-claw -- node /path/to/lossless-claw/bin/lcm.js mcp", "add it to Codex"],
  ],
  notes:
    "By default clients read the sessions of the folder that the server is started in and of folders inside it, and every " +
    "conversation only on request (allConversations). If no stored session belongs to the folder, or it is the home folder, " +
    "they read every conversation. LCM_SCOPE_POLICY=own limits them to the session of --conversation, " +
    "LCM_SCOPE_POLICY=agent to the sessions of its agent.",
  async run(session, { conversation, folder }) {
    const { context, database } = session;
    const resolved = await context.settings();
    const policy = policyOf(resolved);
    const surroundings = context.surroundings();
    if (policy !== "all" && conversation === undefined && !isStartedInSession(surroundings)) {
      throw new LcmError("invalid", `LCM_SCOPE_POLICY=${policy} needs a conversation`, {
        hint: "pass --conversation NAME, or set LCM_SCOPE_POLICY=all",
      });
    }
    const say = (line: string): void => session.note(`lcm mcp: ${oneLine(line)}`);
    if (context.isInteractive)
      session.note("this command is for MCP clients, not for a terminal; press Ctrl-D to end it");
    const connection = createConnection(database, async () =>
      database.open("apart", await engineOf(context, resolved, say)),
    );
    try {
      await context.serveMcp({
        async open(meta) {
          const lcm = await connection.get();
          return { lcm, ...(await readerFor(lcm, { conversation, folder, policy }, surroundings, meta)) };
        },
        onError: ({ message }) => say(message),
      });
    } finally {
      await connection.close();
    }
  },
});

/** The default policy is for agents that share a host; the owner of the machine may read everything. */
const policyOf = ({ values, sources }: ResolvedSettings): Reader["policy"] =>
  sources.scopePolicy === "default" ? "all" : values.scopePolicy;

/** If the model cannot be used, questions are answered with excerpts. */
async function engineOf(
  context: CommandContext,
  { values: settings }: ResolvedSettings,
  say: (line: string) => void,
): Promise<Engine> {
  try {
    const summariser = await context.summariser();
    return { settings, breaker: "heeded", model: summariser === null ? null : await summariser.create(settings) };
  } catch (error) {
    if (!(error instanceof LcmError)) throw error;
    say(`no model is used: ${error.message}`);
    return { settings };
  }
}
