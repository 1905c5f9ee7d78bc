/** `lcm mcp`: the tools for editors and agents, over MCP. Stdout carries the protocol and nothing else. */

import { LcmError } from "../../core/base/errors.ts";
import type { Reader } from "../../core/recall/scope.ts";
import type { ResolvedSettings } from "../../core/model/settings.ts";
import { createConnection } from "../connection.ts";
import { conversationWords } from "./_options.ts";
import { defineCommand } from "./_session.ts";
import type { CommandContext, Engine } from "./_session.ts";
import { oneLine } from "../../format/safe-text.ts";

export const mcpCommand = defineCommand({
  name: "mcp",
  summary: "offer recall to an editor or agent, over MCP",
  description:
    "Serve lcm_grep, lcm_describe, lcm_expand_query and lcm_recent to one MCP client, on stdin and stdout. It changes " +
    "no conversation, and it may be started before there is a database.",
  options: {
    conversation: [
      "--conversation <name>",
      `whose session is read unless the client asks for more; ${conversationWords}`,
    ],
  },
  examples: [
    ["claude mcp add lossless-claw -- node /path/to/lossless-claw/bin/lcm.js mcp", "in Claude Code"],
    ["codex mcp add lossless-claw -- node /path/to/lossless-claw/bin/lcm.js mcp", "in Codex"],
  ],
  notes:
    "Without --conversation every conversation can be read. LCM_SCOPE_POLICY=own keeps a client to the session of " +
    "--conversation, and LCM_SCOPE_POLICY=agent to those of its agent.",
  async run(session, { conversation }) {
    const { context, database } = session;
    const resolved = await context.settings();
    const policy = policyOf(resolved);
    if (policy !== "all" && conversation === undefined) {
      throw new LcmError("invalid", `LCM_SCOPE_POLICY is ${policy}, and no conversation is named that it could mean`, {
        hint: "name one with --conversation, or set LCM_SCOPE_POLICY=all",
      });
    }
    const say = (line: string): void => session.note(`lcm mcp: ${oneLine(line)}`);
    if (context.isInteractive) session.note("this speaks MCP with a program, not with people; Ctrl-D ends it");
    const connection = createConnection(database, async () =>
      database.open("search", await engineOf(context, resolved, say)),
    );
    try {
      await context.serveMcp({
        async open() {
          const lcm = await connection.get();
          const own = conversation === undefined ? null : (await lcm.find(conversation)).id;
          return { lcm, reader: { conversation: own, policy } };
        },
        onError: ({ message }) => say(message),
      });
    } finally {
      await connection.close();
    }
  },
});

/** The default is for agents that share a host. Whoever starts a server on their own machine may read all of it. */
const policyOf = ({ values, sources }: ResolvedSettings): Reader["policy"] =>
  sources.scopePolicy === "default" ? "all" : values.scopePolicy;

/** A model that cannot be used keeps nobody from searching: questions are then answered with excerpts. */
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
    say(`no model will be asked: ${error.message}`);
    return { settings };
  }
}
