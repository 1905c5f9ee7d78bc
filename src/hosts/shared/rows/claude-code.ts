/**
 * Claude Code's transcripts: `projects/<folder>/<session>.jsonl`, a tree of rows. One answer is a row per block. Sub-agents
 * have files of their own, `<session>/subagents/agent-<id>.jsonl`; older versions wrote them into their session's file.
 */

import { isObject, type Json, type JsonObject } from "../../../core/base/json.ts";
import type { Timestamp } from "../../../core/base/time.ts";
import type { Incoming } from "../../../core/messages/codec.ts";
import { keyOfId, keyOfPosition, timeOf, type SessionFacts } from "../../../core/messages/transcript-line.ts";
import type { Aside } from "../../../core/model/types.ts";
import { entryOf, listIn, readerOf, stringIn, type RowFormat } from "./row-format.ts";

export const claudeCodeRows: RowFormat = {
  host: "claude-code",
  recognises,
  createReader() {
    const parents = createParents();
    return readerOf((row, position, now) => itemOf(row, position, now, parents(row)), factsIn);
  },
};

/** A row with a message has a place in the tree; others name their session, or something in it. */
function recognises(row: JsonObject): boolean {
  const { type, role, payload, message, uuid, sessionId, leafUuid, snapshot } = row;
  if (typeof type !== "string" || type === "message" || type === "session" || role !== undefined) return false;
  if (payload !== undefined) return false;
  if (message !== undefined) return typeof uuid === "string" && typeof sessionId === "string";
  return typeof sessionId === "string" || typeof leafUuid === "string" || isObject(snapshot);
}

function itemOf(row: JsonObject, position: number, now: Timestamp, parentKey: string | null | undefined): Incoming {
  const id = stringIn(row, "uuid");
  const key = id === null ? keyOfPosition(position) : keyOfId(id);
  const { message } = row;
  const isSpoken = row["type"] === "user" || row["type"] === "assistant";
  if (id === null || !isSpoken || !isObject(message) || typeof message["role"] !== "string")
    return entryOf(row, key, parentKey);
  const aside = asideOf(row, message);
  return {
    kind: "message",
    message,
    key,
    at: timeOf(row) ?? now,
    entry: row,
    ...(parentKey === undefined ? {} : { parentKey }),
    ...(aside === null ? {} : { aside }),
  };
}

/** A sub-agent in its session's own file is beside the conversation, but can be found. */
function asideOf(row: JsonObject, message: JsonObject): Aside | null {
  const isHosts =
    row["isMeta"] === true ||
    row["isCompactSummary"] === true ||
    // Such as what a sub-agent reports at its end; its own transcript has that, too.
    row["promptSource"] === "system" ||
    // What the host says in the model's name: an error, or that nothing was asked for.
    message["model"] === "<synthetic>" ||
    (row["type"] === "user" && commandRow.test(textOf(message)));
  if (isHosts) return "note";
  return row["isSidechain"] === true && stringIn(row, "agentId") === null ? "branch" : null;
}

/** A command of the host's, such as /compact, and what it printed. */
const commandRow = /^\s*<(?:command-name|command-message|local-command-\w+)>/;

function textOf({ content }: JsonObject): string {
  const [first]: readonly Json[] = Array.isArray(content) ? content : [content ?? null];
  const text = isObject(first) ? first["text"] : first;
  return typeof text === "string" ? text : "";
}

/**
 * The parent of each row, by which a rewind is known: a row that continues an older one. Results of calls that were made
 * together continue their calls, which is not going back. So within a turn each row continues the one before.
 */
function createParents(): (row: JsonObject) => string | null | undefined {
  let newest: string | null = null;
  /** The newest prompt and all rows since. */
  const turn = new Set<string>();
  return (row) => {
    const id = stringIn(row, "uuid");
    const { parentUuid: parent } = row;
    if (id === null || (parent !== null && typeof parent !== "string")) return undefined;
    const isResult = isObject(row["message"]) && listIn(row["message"], "content").some(isToolResult);
    const isPrompt = row["type"] === "user" && !isResult;
    const isContinuing = parent !== null && (isResult || turn.has(parent));
    const before = newest;
    if (isPrompt || !isContinuing) turn.clear();
    turn.add(id);
    newest = id;
    if (parent === null) return null;
    if (isContinuing) return before === null ? undefined : keyOfId(before);
    // Read from the middle of a turn, its first row continues what is stored.
    const isBegun = before === null && !isPrompt && row["type"] !== "system";
    return isBegun ? undefined : keyOfId(parent);
  };
}

const isToolResult = (block: Json): boolean => isObject(block) && block["type"] === "tool_result";

function factsIn(row: JsonObject): Partial<SessionFacts> {
  const session = stringIn(row, "sessionId");
  const agent = row["isSidechain"] === true ? stringIn(row, "agentId") : null;
  return {
    id: agent ?? session,
    folder: stringIn(row, "cwd"),
    parentSessionId: agent === null ? null : session,
    title: titleIn(row),
  };
}

function titleIn(row: JsonObject): string | null {
  if (row["type"] === "summary") return stringIn(row, "summary");
  return stringIn(row, "customTitle") ?? stringIn(row, "aiTitle");
}
