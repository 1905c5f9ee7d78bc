/** Puts our prompt in the place of the host's messages, in the host's own form. Pure. */

import { isObject, jsonText, type Json, type JsonObject } from "../../core/base/json.ts";
import type { HostMessage } from "../../core/messages/codec.ts";
import type { HostMessageRow, HostPart, MessageInfo } from "./host-api.ts";

/** A message of our prompt. */
export interface OwnMessage {
  /** The host's id of the message that it shows; null for a summary or a note. */
  readonly key: string | null;
  readonly message: HostMessage;
}

/**
 * Null if our prompt does not have the live turn: then the store is behind, and the host's own messages go on.
 *
 * A message that the host shows too is taken from the host, with the reminders that it adds for one request, unless we
 * shortened it. What comes after the last of them is the host's own, such as its request to go on.
 */
export function splicePrompt(
  given: readonly HostMessageRow[],
  prompt: readonly OwnMessage[],
  isForCompaction = false,
): readonly HostMessageRow[] | null {
  const byId = new Map(given.map((row) => [row.info.id, row]));
  const shown = new Set(prompt.map(({ key }) => key));
  const lastShown = given.findLastIndex(({ info }) => shown.has(info.id));
  const live = given.findLast(({ info, parts }) => info.role === "user" && parts.some(isSaid));
  const user = given.findLast(({ info }) => info.role === "user");
  if (user === undefined || lastShown < 0) return null;
  if (live !== undefined && !shown.has(live.info.id) && given.indexOf(live) < lastShown) return null;
  const own = prompt.map(({ key, message }, at) => {
    const theirs = key === null ? undefined : byId.get(key);
    return theirs === undefined ? rowOf(user.info, key ?? `msg_lcm_${at}`, message) : merge(theirs, message);
  });
  // The host's list ends before what it will keep: ours has everything.
  if (isForCompaction) return own;
  return [...own, ...given.slice(lastShown + 1).filter((row) => !isCompaction(row))];
}

/** What a person wrote, as opposed to what the host wrote in their name. */
const isSaid = (part: HostPart): boolean => part.type === "text" && part["synthetic"] !== true;

export const isCompaction = ({ info, parts }: HostMessageRow): boolean =>
  info["summary"] === true || info["mode"] === "compaction" || parts.some(({ type }) => type === "compaction");

function merge(theirs: HostMessageRow, message: HostMessage): HostMessageRow {
  const own = new Map(partsOf(message).map((part) => [part["id"], part]));
  const parts = theirs.parts.flatMap((part) => {
    const ours = own.get(part["id"]);
    // What the host adds for one request is text; anything else we left out, because there is no room for it.
    if (ours === undefined) return part.type === "text" ? [part] : [];
    return [isWhole(ours, part) ? part : ours];
  });
  return { info: theirs.info, parts };
}

/** Whether nothing of the host's part was shortened: neither its text nor, of a call, its arguments. */
const isWhole = (ours: HostPart, theirs: HostPart): boolean =>
  textOf(theirs).includes(textOf(ours)) && inputOf(theirs) === inputOf(ours);

const inputOf = ({ state }: HostPart): string => jsonText(isObject(state) ? (state["input"] ?? null) : null);

/** A message that the host does not have in its list: from before its own compaction, or one of ours. */
function rowOf(user: MessageInfo, id: string, message: HostMessage): HostMessageRow {
  const { sessionID, agent, model } = user;
  const { role } = message;
  const common = { id, sessionID, time: user["time"] };
  const { providerID, modelID } = isObject(model) ? model : {};
  const info: MessageInfo =
    role === "assistant"
      ? { ...common, role, parentID: user.id, providerID, modelID, mode: agent, agent, cost: 0, tokens: noTokens }
      : { ...common, role: "user", agent, model };
  const parts = partsOf(message).map((part, at) => ({ id: `prt_${id}_${at}`, sessionID, messageID: id, ...part }));
  return { info, parts };
}

const noTokens: JsonObject = { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } };

const partsOf = ({ content }: HostMessage): readonly HostPart[] =>
  typeof content === "string"
    ? [{ type: "text", text: content, synthetic: true }]
    : (Array.isArray(content) ? content : []).filter(isPart);

const isPart = (part: Json): part is HostPart => isObject(part) && typeof part["type"] === "string";

/** The part of it that we may have shortened. */
function textOf({ text, state }: HostPart): string {
  if (typeof text === "string") return text;
  const output = isObject(state) ? (state["output"] ?? state["error"]) : undefined;
  return typeof output === "string" ? output : "";
}
