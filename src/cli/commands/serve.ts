/** `lcm serve`: the engine for a plugin whose host cannot open the database itself. Stdout carries only the protocol. */

import { oneLine } from "../../format/safe-text.ts";
import { defineCommand } from "./_session.ts";

export const serveCommand = defineCommand({
  name: "serve",
  json: null,
  summary: "serve the plugin of an agent (OpenCode; Pi on an older Node)",
  description:
    "Store messages, build prompts and run tools for one plugin, over JSON-RPC with a message per line on stdin and stdout. " +
    "A plugin starts it by itself and it ends with the plugin.",
  options: {},
  examples: [["lcm serve", "what the plugin for OpenCode runs"]],
  notes: "Several may run at once, with other programs, on one database.",
  async run(session) {
    const { context, database } = session;
    const note = (line: string): void => session.note(oneLine(line));
    if (context.isInteractive) note("this command is for plugins, not for a terminal; press Ctrl-D to end it");
    await context.serveHost({ database, note });
  },
});
