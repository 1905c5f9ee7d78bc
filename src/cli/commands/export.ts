/** `lcm export`: writes the transcript of a conversation, identical to what was imported, in the form of its host. */

import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { chosenConversation, conversationArgument } from "./_reach.ts";
import type { Conversation, ConversationId } from "../../core/model/types.ts";
import { asOpenCodeDocument, checkTarget, countedLines, writeWhole, type Exported } from "../export-file.ts";
import { anything, either, list, object, record, text, whole } from "./_json.ts";
import { defineCommand, exitFindings, exitOk, withLcm, type Session } from "./_session.ts";
import { plural } from "../../core/base/format.ts";
import { escapedJson } from "../../format/safe-text.ts";

const incomplete = list(object({ subject: text, reason: text }));
const fileJson = object({ conversation: whole, path: text, lines: whole, incomplete });
const documentJson = object({ conversation: whole, entries: list(record(anything)), lines: whole, incomplete });

export const exportCommand = defineCommand({
  name: "export",
  json: either(documentJson, fileJson),
  summary: "write a conversation as JSONL, identical to what was imported",
  description:
    "Write a conversation as JSONL: each entry is identical to the one that was stored. With --json, stdout gets one JSON " +
    "object with a list of them instead. A session of OpenCode is written as the document that `opencode import` reads, " +
    "without the messages that a revert has deleted there; --json has them too.",
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
    if (output !== undefined) checkTarget(output, force === true);
    return await withLcm(session, "read", async (lcm) => {
      const conversation = await chosenConversation(lcm, name);
      const counter: Exported = { lines: 0, incomplete: [] };
      // With --json, everything that is stored.
      const isDocument = conversation.agentId === "opencode" && !(session.json && output === undefined);
      const lines = countedLines(lcm, conversation.id, counter, !isDocument);
      const written = watched(session, conversation, counter, lines);
      const text = isDocument ? asOpenCodeDocument(written) : written;
      if (output === undefined) {
        if (session.context.stdout.isTerminal) session.silence();
        const shown = session.json ? asDocument(text, conversation.id, counter) : text;
        await pipeline(Readable.from(shown), session.context.stdout.stream, { end: false });
        return session.json ? statusOf(counter) : noteIncomplete(session, counter);
      }
      await writeWhole(text, output, session.signal);
      if (session.json) {
        session.printJson(fileJson, { conversation: conversation.id, path: output, ...counter });
        return statusOf(counter);
      }
      session.print(`${output}: ${plural(counter.lines, "line")} of conversation ${conversation.id}`);
      return noteIncomplete(session, counter);
    });
  },
});

/** Shows how far it is. */
async function* watched(
  session: Session,
  { totals }: Conversation,
  counter: Exported,
  text: AsyncIterable<string>,
): AsyncGenerator<string> {
  const progress = session.progress("writing");
  for await (const lines of text) {
    progress.update({ done: Math.min(counter.lines, totals.messages), of: totals.messages, unit: "messages" });
    yield lines;
  }
  progress.end();
}

function noteIncomplete(session: Session, exported: Exported): number {
  for (const { subject, reason } of exported.incomplete) session.note(`${subject} is incomplete: ${reason}`);
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
