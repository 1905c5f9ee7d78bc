/** `lcm export`: a conversation's transcript back out, equal entry by entry to what came in. */

import { createWriteStream, existsSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { LcmError } from "../../core/base/errors.ts";
import type { Incomplete } from "../../core/ingest/export-transcript.ts";
import type { Lcm } from "../../core/lcm.ts";
import { messageName } from "../../core/model/types.ts";
import type { ConversationId } from "../../core/model/types.ts";
import { defineCommand, exitFindings, exitOk, withLcm } from "./_session.ts";
import type { Session } from "./_session.ts";
import { conversationWords } from "./_options.ts";
import { plural } from "../../core/base/format.ts";

export const exportCommand = defineCommand({
  name: "export",
  summary: "write a conversation as JSONL, as it came in",
  description: "Write a conversation as JSONL: the lines it came from, equal entry by entry.",
  arguments: [["<conversation>", conversationWords]],
  options: {
    output: ["-o, --output <file>", "write into this file, readable by you alone, instead of to stdout"],
    force: ["--force", "replace the file if there is one"],
  },
  examples: [
    ["lcm export 3 > session.jsonl", "to stdout"],
    ["lcm export 3 --output session.jsonl", "to a file that only you can read"],
    ["lcm export 3 | jq -r 'select(.message).message.role'", "through another program"],
  ],
  async run(session, { output, force }, name) {
    if (output !== undefined && force !== true && existsSync(output)) {
      throw new LcmError("conflict", `${output} exists already`, { hint: "--force replaces it" });
    }
    if (output !== undefined && !existsSync(dirname(output))) {
      throw new LcmError("not_found", `there is no folder ${dirname(output)}`, {
        hint: "make it first, or name a file in another one",
      });
    }
    return await withLcm(session, "read", async (lcm) => {
      const conversation = await lcm.find(name);
      const counter: Exported = { lines: 0, incomplete: [] };
      const lines = Readable.from(countedLines(lcm, conversation.id, counter));
      if (output === undefined) {
        await pipeline(lines, session.context.stdout.stream, { end: false });
        return told(session, counter);
      }
      await writeWhole(lines, output);
      if (session.json) session.printJson({ conversation: conversation.id, path: output, ...counter });
      else session.print(`${output}: ${plural(counter.lines, "line")} of conversation ${conversation.id}`);
      return told(session, counter);
    });
  },
});

interface Exported {
  lines: number;
  /** Messages that were written with references where their content was. */
  incomplete: readonly Incomplete[];
}

function told(session: Session, { incomplete }: Exported): number {
  for (const { message, reason } of incomplete) session.note(`${messageName(message)} is not as it came: ${reason}`);
  return incomplete.length === 0 ? exitOk : exitFindings;
}

/** Many lines at a time: a line each would make a write each. */
const charactersPerWrite = 65_536;

async function* countedLines(lcm: Lcm, conversation: ConversationId, counter: Exported): AsyncGenerator<string> {
  let text = "";
  const exported = lcm.export(conversation);
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

/** Under another name until it is complete: a file of that name is a whole transcript, or what was there before. */
async function writeWhole(lines: Readable, path: string): Promise<void> {
  const partial = `${path}.partial`;
  try {
    await pipeline(lines, createWriteStream(partial, { mode: 0o600 }));
    renameSync(partial, path);
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  }
}
