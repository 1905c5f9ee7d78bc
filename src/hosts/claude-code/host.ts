/** Claude Code: a file per session in a folder per project, and one per sub-agent in a folder of its session. */

import { globSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { CompanionHost } from "../shared/companion.ts";
import { changedSince } from "../shared/changed-files.ts";
import { claudeCodeRows } from "../shared/rows/claude-code.ts";

export const claudeCode: CompanionHost = {
  name: "claude-code",
  rows: claudeCodeRows,
  sessionIdOf: (transcript) => /^(?:agent-)?([\w-]+)\.jsonl$/.exec(basename(transcript))?.[1] ?? null,
  transcriptsNear(transcript, sinceMs) {
    // The transcript of a sub-agent is two folders deeper.
    const isOfAgent = basename(dirname(transcript)) === "subagents";
    const project = isOfAgent ? dirname(dirname(dirname(transcript))) : dirname(transcript);
    const names = globSync(["*.jsonl", "*/subagents/agent-*.jsonl"], { cwd: project });
    return changedSince(
      names.map((name) => join(project, name)),
      sinceMs,
    );
  },
  // They are those of one project.
  isOf: () => true,
  // Of a longer text it shows the first 2 kB and the name of a file (2.1.325).
  contextCharactersMax: 10_000,
};
