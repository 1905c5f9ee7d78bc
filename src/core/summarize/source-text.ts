/** Writes messages and summaries as labelled text to summarise: who spoke, when, and what; reasoning is left out. */

import type { Passage } from "./extractive.ts";
import type { Message, Part, Summary } from "../model/types.ts";
import { firstLine } from "../base/excerpt.ts";
import { isObject, type Json, type JsonObject } from "../base/json.ts";
import { resultIdIn, resultToolIn } from "../messages/dialects.ts";
import { formatRange, formatTimestamp } from "../base/time.ts";

/** Times are in this zone; null leaves them out. */
export function messagePassages(messages: readonly Message[], zone: string | null): readonly Passage[] {
  const toolOfCall = new Map(
    messages.flatMap(({ parts }) => parts.filter(isCall).map((part) => [part.toolCallId, part.toolName] as const)),
  );
  return messages.map((message) => {
    // Some hosts pass tool results in a user message.
    const kind = message.parts.length > 0 && message.parts.every(isResult) ? "tool" : message.role;
    const envelope: Json = JSON.parse(message.envelope ?? "{}");
    const fields = isObject(envelope) ? envelope : {};
    const speaker = speakerOf(fields) ?? (kind === "tool" ? toolAnswering(fields, message.parts, toolOfCall) : null);
    const who = `[${speaker === null ? kind : `${kind} · ${speaker}`}]`;
    const label = zone === null ? who : `[${formatTimestamp(message.at, zone)}] ${who}`;
    return { label, text: textOf(message), kind };
  });
}

export function summaryPassages(summaries: readonly Summary[], zone: string | null): readonly Passage[] {
  return summaries.map(({ earliestAt, latestAt, createdAt, text }) => {
    const from = earliestAt ?? createdAt;
    const label = zone === null ? "summary" : formatRange(from, latestAt ?? from, zone);
    return { label: `[${label}]`, text, kind: "summary" };
  });
}

/** `label text`, separated by blank lines; a line that looks like a label is escaped. */
export function sourceText(passages: readonly Passage[]): string {
  return passages.map(({ label, text }) => `${label} ${text.replace(forgedLabel, "$&\\")}`).join("\n\n");
}

/** The start of a line that looks like a label. */
const forgedLabel = /^[^\S\n]*(?=\[(?:\d{4}-\d\d-\d\d \d\d:\d\d|system|user|assistant|tool|summary)\b)/gm;

const isCall = (part: Part): boolean => part.type === "tool" && part.toolCallId !== null;
const isResult = (part: Part): boolean => part.type === "text" && part.toolCallId !== null;

function speakerOf(fields: JsonObject): string | null {
  const host = fields["__openclaw"];
  const names = [
    fields["name"],
    fields["senderName"],
    isObject(host) ? host["senderName"] : null,
    resultToolIn(fields),
  ];
  return names.map(asName).find((name) => name !== null) ?? null;
}

function toolAnswering(
  fields: JsonObject,
  parts: readonly Part[],
  toolOfCall: ReadonlyMap<string | null, string | null>,
): string | null {
  const id = resultIdIn(fields);
  const ids = id !== null ? [id] : parts.map((part) => part.toolCallId);
  return asName(ids.map((each) => toolOfCall.get(each)).find((name) => name !== undefined) ?? null);
}

const nameCharsMax = 40;

/** People choose their names, so a name must not close its bracket or start a line. */
function asName(value: Json | undefined): string | null {
  if (typeof value !== "string") return null;
  const name = firstLine(value.replace(/[[\]\s]+/g, " "), nameCharsMax).trim();
  return name === "" ? null : name;
}

/** The text of a message, with a placeholder for media, so that no message disappears. */
function textOf(message: Message): string {
  const texts = message.parts.flatMap((part, place) => {
    if (part.type === "reasoning") return [];
    if (part.text !== null) return [part.text];
    return part.type === "file" ? [traceOf(part, message, place)] : [];
  });
  const text = (message.parts.length === 0 ? message.text : texts.join("\n")).trim();
  return text === "" ? "[no text]" : text;
}

/** `[image]`, or `[image file_…]` if its bytes were moved to a file. */
function traceOf(part: Part, message: Message, place: number): string {
  const word = /"(?:type|mimeType|mime_type|media_type)":"[^"]*?(image|audio|video)/.exec(part.metadata ?? "")?.[1];
  const moved = message.moved.find(({ path }) => path[0] === "content" && path[1] === place);
  return `[${[word ?? "file", ...(moved === undefined ? [] : [moved.file])].join(" ")}]`;
}
