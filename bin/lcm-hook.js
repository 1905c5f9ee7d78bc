#!/usr/bin/env node
/**
 * The hook of Claude Code and Codex: `lcm-hook.js HOST`, and with --background what it leaves to a process of its own. It
 * always ends with status 0. Like launch.js, this file is read by an old Node, too.
 */

import { readFileSync } from "fs";
import * as nodeModule from "module";
import { join } from "path";
import { launch, programPath } from "./launch.js";

const isBackground = process.argv[2] === "--background";
/** @type {{ enableCompileCache?: (folder: string) => unknown }} */
const { enableCompileCache } = nodeModule;
// Compiling is most of what a hook would take; the host gives every plugin a private folder.
const data = process.env.CLAUDE_PLUGIN_DATA;
if (enableCompileCache && data) enableCompileCache(join(data, "compiled"));

launch(
  programPath(isBackground ? "hosts/companion/background" : "hosts/companion/hook"),
  process.argv.slice(isBackground ? 3 : 2),
  explainOnce,
).catch(() => {
  // Half an installation, or a call that is none: the host would show its user a trace after every turn.
  process.exitCode = 0;
});

/**
 * Without a Node that can run it, nothing is stored; the user is told once per session.
 *
 * @param {string} why
 */
function explainOnce(why) {
  if (isBackground) return;
  /** @type {{ readonly hook_event_name?: string, readonly source?: string }} */
  const call = JSON.parse(readFileSync(0, "utf8"));
  if (call.hook_event_name === "SessionStart" && call.source === "startup")
    process.stdout.write(JSON.stringify({ systemMessage: `${why} Until then this session is not stored.` }));
}
