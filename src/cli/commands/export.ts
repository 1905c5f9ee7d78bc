/** `lcm export`: writes the transcript of a conversation, identical to what was imported. */

import { createWriteStream, existsSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { LcmError } from "../../core/base/errors.ts";
import type { Incomplete } from "../../core/ingest/export-transcript.ts";
import type { Lcm } from "../../core/lcm.ts";
import { chosenConversation, conversationArgument } from "./_reach.ts";
import { messageName, type ConversationId } from "../../core/model/types.ts";
import { defineCommand, exitFindings, exitOk, withLcm, type Session } from "./_session.ts";
import { plural } from "../../core/base/format.ts";
import { escapedJson } from "../../format/safe-text.ts";

export const exportCommand = defineCommand({
  name: "export",
  summary: "write a conversation as JSONL, identical to what was imported",
  description:
    "Write a conversation as JSONL: each entry is identical to the one that was stored. With --json, stdout gets one JSON " +
    "object with a list of them instead.",
  arguments: [conversationArgument],
  options: {
    output: ["-o, --output <file>", "write to this file, readable only by you, instead of stdout"],
    force: ["--force", "overwrite an existing file"],
  },
  examples: [
    ["lcm export 3 > session.jsonl", "write to stdout"],
    ["lcm export 3 --output session.jsonl", "write a file that only you can read"],
    ["lcm export 3 --json | jq '.entries | length'", "as one JSON object"],
    ["lcm export 3 | jq -r 'select(.message).message.role'", "pipe into another program"],
  ],
  async run(session, { output, force }, name?: string) {
    if (output !== undefined && force !== true && existsSync(output)) {
      throw new LcmError("conflict", `${output} already exists`, { hint: "pass --force to overwrite it" });
    }
    if (output !== undefined && !existsSync(dirname(output))) {
      throw new LcmError("not_found", `there is no folder ${dirname(output)}`, {
        hint: "create it first, or choose another path",
      });
    }
    return await withLcm(session, "read", async (lcm) => {
      const conversation = await chosenConversation(lcm, name);
      const counter: Exported = { lines: 0, incomplete: [] };
      const text = countedLines(lcm, conversation.id, counter);
      if (output === undefined) {
        const written = session.json ? asDocument(text, conversation.id, counter) : text;
        await pipeline(Readable.from(written), session.context.stdout.stream, { end: false });
        return session.json ? statusOf(counter) : noteIncomplete(session, counter);
      }
      const lines = Readable.from(text);
      await writeWhole(lines, output);
      if (session.json) {
        session.printJson({ conversation: conversation.id, path: output, ...counter });
        return statusOf(counter);
      }
      session.print(`${output}: ${plural(counter.lines, "line")} of conversation ${conversation.id}`);
      return noteIncomplete(session, counter);
    });
  },
});

interface Exported {
  lines: number;
  /** Messages whose content is missing, so that a reference was written instead. */
  incomplete: readonly Incomplete[];
}

function noteIncomplete(session: Session, exported: Exported): number {
  for (const { message, reason } of exported.incomplete)
    session.note(`${messageName(message)} is incomplete: ${reason}`);
  return statusOf(exported);
}

const statusOf = ({ incomplete }: Exported): number => (incomplete.length === 0 ? exitOk : exitFindings);

/** One JSON object in constant memory; every line is an entry of it already. */
async function* asDocument(
  text: AsyncIterable<string>,
  conversation: ConversationId,
  counter: Exported,
): AsyncGenerator<string> {
  yield `{\n"conversation": ${conversation},\n"entries": [`;
  let separator = "\n";
  for await (const lines of text) {
    yield separator + escapedJson(lines.trimEnd().replaceAll("\n", ",\n"));
    separator = ",\n";
  }
  yield `\n],\n"lines": ${counter.lines},\n"incomplete": ${JSON.stringify(counter.incomplete)}\n}\n`;
}

/** Writing each line by itself would be slow. */
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

/** Writes under another name first, so that the file is either complete or unchanged. */
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
