/** Codex: a file per session, and per sub-agent, in a folder per day; the first line names the folder it works in. */

import { globSync } from "node:fs";
import { dirname, join } from "node:path";
import { isObject, type Json } from "../../core/base/json.ts";
import type { CompanionHost } from "../shared/companion.ts";
import { changedSince } from "../shared/changed-files.ts";
import { readOn } from "../shared/read-on.ts";
import { codexRows } from "../shared/rows/codex.ts";
import { sessionOfPath } from "../shared/session-places.ts";

/** A session that is resumed later goes on in the folder of the day it began. */
const daysMax = 60;
/** The first line has the host's instructions, too. */
const headBytes = 32_000;

export const codex: CompanionHost = {
  name: "codex",
  rows: codexRows,
  // A rewound thread goes on in a file that also names its revision.
  sessionIdOf: (transcript) => sessionOfPath(transcript)?.sessionId ?? null,
  transcriptsNear(transcript, sinceMs) {
    const sessions = dirname(dirname(dirname(dirname(transcript))));
    const days = globSync("[0-9]*/[0-9]*/[0-9]*", { cwd: sessions }).toSorted().slice(-daysMax);
    const paths = days.flatMap((day) =>
      globSync("rollout-*.jsonl", { cwd: join(sessions, day) }).map((name) => join(sessions, day, name)),
    );
    return changedSince(paths, sinceMs);
  },
  isOf: (folder, transcript) => folderOf(transcript) === folder,
  contextCharactersMax: 100_000,
};

function folderOf(path: string): string | null {
  const first = readOn(path, null, headBytes)?.lines[0]?.text;
  try {
    const row = JSON.parse(first ?? "null") as Json;
    const payload = isObject(row) ? row["payload"] : null;
    const cwd = isObject(payload) ? payload["cwd"] : null;
    return typeof cwd === "string" ? cwd : null;
  } catch {
    return null; // Not a rollout.
  }
}
