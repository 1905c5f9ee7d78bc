/** Writes the transcript of a conversation to a file or a stream, and counts its lines. */

import { createWriteStream, existsSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { LcmError } from "../core/base/errors.ts";
import { isObject, jsonText, parseObject } from "../core/base/json.ts";
import type { Incomplete } from "../core/ingest/export-transcript.ts";
import type { Lcm } from "../core/lcm.ts";
import type { ConversationId } from "../core/model/types.ts";

export interface Exported {
  lines: number;
  /** Messages whose content is missing, so that a reference was written instead. */
  incomplete: readonly Incomplete[];
}

/** Throws if the file exists and may not be overwritten, or if there is no folder for it. */
export function checkTarget(path: string, isOverwriting: boolean): void {
  const there = statSync(path, { throwIfNoEntry: false });
  if (there !== undefined && !there.isFile())
    throw new LcmError("invalid", `${path} is not a plain file, and is not replaced`, { hint: "choose another path" });
  if (there !== undefined && !isOverwriting)
    throw new LcmError("conflict", `${path} already exists`, { hint: "pass --force to overwrite it" });
  if (!existsSync(dirname(path))) {
    throw new LcmError("not_found", `there is no folder ${dirname(path)}`, {
      hint: "create it first, or choose another path",
    });
  }
}

/** Writing each line by itself would be slow. */
const charactersPerWrite = 65_536;

export async function* countedLines(
  lcm: Lcm,
  conversation: ConversationId,
  counter: Exported,
  isWithBranches = true,
): AsyncGenerator<string> {
  let text = "";
  const exported = lcm.export(conversation, isWithBranches);
  let step = await exported.next();
  for (; step.done !== true; step = await exported.next()) {
    counter.lines += 1;
    text += `${step.value}\n`;
    if (text.length < charactersPerWrite) continue;
    yield text;
    text = "";
  }
  counter.incomplete = step.value;
  if (text !== "") yield text;
}

/**
 * OpenCode keeps no lines: `opencode export` writes, and `opencode import` reads, one document per session. The session's
 * own row may be anywhere among the lines: a plugin stores messages before an import brings it.
 */
export async function* asOpenCodeDocument(text: AsyncIterable<string>): AsyncGenerator<string> {
  let separator = `{"messages":[\n`;
  let info = "";
  for await (const lines of text) {
    for (const line of lines.trimEnd().split("\n")) {
      const row = parseObject(line);
      if (isObject(row["info"]) && row["parts"] === undefined) info = `,\n"info":${jsonText(row["info"])}`;
      else {
        yield separator + line;
        separator = ",\n";
      }
    }
  }
  yield `${separator.startsWith("{") ? separator : "\n"}]${info}}\n`;
}

/**
 * Writes under another name first, so that the file is either complete or unchanged, also after a power cut. Aborting it
 * removes that.
 */
export async function writeWhole(lines: AsyncIterable<string>, path: string, signal?: AbortSignal): Promise<void> {
  const partial = `${path}.${process.pid}.partial`;
  rmSync(partial, { force: true }); // Of a process that died, or a link.
  try {
    const file = createWriteStream(partial, { mode: 0o600, flags: "wx", flush: true });
    await pipeline(Readable.from(lines), file, { ...(signal && { signal }) });
    renameSync(partial, path);
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  }
}
