/**
 * Taking something back out of what never loses anything: what a message looks like once it, or a secret in it, is
 * forgotten. The row stays, so that a replay of the transcript does not bring the content back, calls keep their
 * results, and the order of the conversation is whole.
 */

import { estimateMessageTokens, isObject, textOfParts } from "./content.ts";
import type { Json, JsonObject, Message, Part } from "./model.ts";

export const forgottenMark = "[forgotten]";

export type Redacted = Pick<Message, "parts" | "envelope" | "entry" | "tokens" | "text">;

/** A message of which only its place is left. */
export function forgetMessage(message: Message): Redacted {
  const keep = (json: string | null, fields: readonly string[]): JsonObject => {
    const value: Json = json === null ? {} : JSON.parse(json);
    return isObject(value)
      ? Object.fromEntries(fields.filter((field) => field in value).map((field) => [field, value[field]]))
      : {};
  };
  const envelope = {
    ...keep(message.envelope, ["role", "toolCallId", "toolName", "tool_call_id", "isError", "timestamp"]),
  };
  const isShort = message.entry === null || !message.entry.startsWith("{");
  const entry = isShort ? {} : keep(message.entry, ["type", "id", "parentId", "timestamp"]);
  return redacted(
    [{ type: "text", text: forgottenMark, kept: null, toolCallId: null, toolName: null, metadata: null }],
    JSON.stringify({ role: message.role, ...envelope, content: "text" }),
    isShort ? message.entry : JSON.stringify({ ...entry, message: null }),
  );
}

/** The same message with every occurrence of a secret blotted out, also inside JSON and in JSON inside JSON. */
export function redactMessage(message: Message, secret: string): Redacted {
  const parts = message.parts.map((part) => redactPart(part, secret));
  const entry = message.entry?.startsWith("{") === true ? redactJson(message.entry, secret) : message.entry;
  return redacted(parts, redactJson(message.envelope, secret), entry);
}

const redacted = (parts: readonly Part[], envelope: string | null, entry: string | null): Redacted => ({
  parts,
  envelope,
  entry,
  tokens: estimateMessageTokens(parts),
  text: textOfParts(parts),
});

function redactPart(part: Part, secret: string): Part {
  const toolName = part.toolName === null ? null : redactText(part.toolName, secret);
  return {
    type: part.type,
    text: part.text === null ? null : redactSaid(part, toolName, secret),
    kept: part.kept === null ? null : redactText(part.kept, secret),
    toolCallId: part.toolCallId === null ? null : redactText(part.toolCallId, secret),
    toolName,
    metadata: redactJson(part.metadata, secret),
  };
}

/** The arguments of a call must stay JSON, or the call could not be rebuilt. */
function redactSaid(part: Part, toolName: string | null, secret: string): string {
  const text = part.text ?? "";
  const isCall = part.type === "tool" && part.toolName !== null && text.startsWith(`${part.toolName} {`);
  if (!isCall) return redactText(text, secret);
  const input = text.slice((part.toolName ?? "").length + 1);
  try {
    return `${toolName} ${redactJson(input, secret)}`;
  } catch {
    // A call whose arguments were never JSON is rebuilt from its metadata; here it is only text.
    return redactText(text, secret);
  }
}

export const redactText = (text: string, secret: string): string =>
  formsOf(secret).reduce((left, form) => left.replaceAll(form, forgottenMark), text);

/** Also for JSON text: it is taken apart, so that a number or a key can be forgotten and the rest stays valid. */
export function redactJson<T extends string | null>(json: T, secret: string): T | string {
  if (json === null || !formsOf(secret).some((form) => json.includes(form))) return json;
  return JSON.stringify(redactValue(JSON.parse(json), secret));
}

function redactValue(value: Json, secret: string): Json {
  if (typeof value === "string") return redactText(value, secret);
  if (typeof value === "number") return String(value).includes(secret) ? forgottenMark : value;
  if (Array.isArray(value)) return value.map((item: Json) => redactValue(item, secret));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([field, inner]) => [redactText(field, secret), redactValue(inner ?? null, secret)]),
  );
}

/** How a secret can stand in stored text: as it is, and as JSON writes it, once and twice. */
export function formsOf(secret: string): readonly string[] {
  const once = escaped(secret);
  return [...new Set([secret, once, escaped(once)])].sort((a, b) => b.length - a.length);
}

const escaped = (text: string): string => JSON.stringify(text).slice(1, -1);
