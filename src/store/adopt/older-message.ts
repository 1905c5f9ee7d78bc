/**
 * Converts a message of the older program: reconstructs what the host sent and encodes it as we would today.
 * The older parts store the host's blocks as JSON in their metadata, or only columns that describe them; one text may be
 * stored in three places, and a message may have no parts at all.
 *
 * A message is converted only if nothing is lost: its text equals that of its parts, no column differs, and it decodes to
 * the same message. Any other message keeps its stored values unchanged, beside the blocks it is decoded from.
 */

import { estimateMessageTokens, messageFromStore, messageToStore, textOfParts } from "../../core/messages/codec.ts";
import type { HostMessage } from "../../core/messages/codec.ts";
import { assert } from "../../core/base/errors.ts";
import type { NewMessage, Part, PartType, Role } from "../../core/model/types.ts";
import { isObject, isTooDeep, type Json, type JsonObject } from "../../core/base/json.ts";
import type { Timestamp } from "../../core/base/time.ts";

export interface OlderMessage {
  readonly role: Role;
  readonly content: string;
  readonly key: string;
  readonly at: Timestamp;
  readonly parts: readonly OlderPart[];
}

export interface OlderPart {
  readonly type: PartType;
  readonly text: string | null;
  readonly toolCallId: string | null;
  readonly toolName: string | null;
  /** Usually JSON, of any shape. */
  readonly metadata: string | null;
  /** Other columns that describe the block, by name; only those that are not null. */
  readonly columns: Readonly<Record<string, string>>;
}

/** It has as many parts as before. */
export type ConvertedMessage = Pick<NewMessage, "parts" | "tokens" | "envelope"> & { readonly content: string };

export function convertMessage(message: OlderMessage): ConvertedMessage {
  const { content } = message;
  if (message.parts.length === 0) {
    const only: Part = { type: "text", text: content, kept: null, toolCallId: null, toolName: null, metadata: null };
    return { content, parts: [], tokens: estimateMessageTokens([only]), envelope: null };
  }
  const stored = message.parts.map(readPart);
  const raw = hostMessageOf(message, stored);
  const { parts: encoded, envelope } = encode(raw, message);
  const converted = stored.map((part, index) => convertPart(part, encoded[index], raw));
  const isLossless = losesNothing(converted, stored, raw, { ...message, envelope });
  const parts = isLossless ? converted : unchangedParts(stored, content);
  return { content: textOfParts(parts), parts, tokens: estimateMessageTokens(parts), envelope };
}

interface ParsedPart {
  readonly older: OlderPart;
  /** Its metadata if that is a JSON object, else null. */
  readonly fields: JsonObject | null;
  /** The host's block. */
  readonly block: Json;
}

function readPart(older: OlderPart): ParsedPart {
  const fields = parseObject(older.metadata);
  return { older, fields, block: fields?.["raw"] ?? blockFromColumns(older) };
}

function parseObject(json: string | null): JsonObject | null {
  if (json === null) return null;
  try {
    const value: Json = JSON.parse(json);
    return isObject(value) && !isTooDeep(value) ? value : null;
  } catch {
    return null; // Not JSON: it is kept as text, like what is nested too deeply.
  }
}

/** Reconstructs the block of a part that was stored without it. */
function blockFromColumns({ type, text, toolCallId, toolName, columns }: OlderPart): Json {
  const { tool_input: input, tool_output: output } = columns;
  switch (type) {
    case "text":
      return { type: "text", text: text ?? "" };
    case "reasoning":
      return { type: "thinking", thinking: text ?? "" };
    case "tool": {
      const result = text ?? (input === undefined && output !== undefined ? output : null);
      if (result !== null) return { type: "text", text: result };
      return { type: "toolCall", id: toolCallId, name: toolName, arguments: parseObject(input ?? null) ?? input ?? {} };
    }
    default: {
      const [subject] = type.split("_");
      const own = Object.entries(columns).filter(([column]) => column.startsWith(`${subject}_`));
      return { type, ...(text === null ? {} : { text }), ...Object.fromEntries(own) };
    }
  }
}

function hostMessageOf({ role, parts }: OlderMessage, stored: readonly ParsedPart[]): HostMessage {
  const find = (name: string): Json | undefined =>
    stored.map(({ fields }) => fields?.[name]).find((value) => value !== undefined && value !== null);
  const isResult = role === "tool";
  const toolCallId = find("toolCallId") ?? parts.find((part) => part.toolCallId !== null)?.toolCallId;
  const toolName = find("toolName") ?? parts.find((part) => part.toolName !== null)?.toolName;
  const isError = find("isError");
  const [first] = stored;
  return {
    role: find("originalRole") ?? role,
    ...(isResult && toolCallId !== undefined ? { toolCallId } : {}),
    ...(isResult && toolName !== undefined ? { toolName } : {}),
    content: stored.length === 1 && typeof first?.block === "string" ? first.block : stored.map((part) => part.block),
    ...(isError === undefined ? {} : { isError }),
  };
}

/** A role that differs from the row's must go into the envelope; the codec puts it there if it is not the first field. */
function encode(raw: HostMessage, message: OlderMessage): NewMessage {
  const stored = messageToStore(raw, message);
  if (stored.role === message.role) return stored;
  const { role, ...rest } = raw;
  return messageToStore({ ...rest, role }, message);
}

function convertPart({ older, fields, block }: ParsedPart, part: Part | undefined, raw: HostMessage): Part {
  assert(part !== undefined, "every block of a message is a part");
  const toolCallId = part.toolCallId ?? older.toolCallId ?? textOrNull(fields?.["toolCallId"]);
  const toolName = part.toolName ?? older.toolName ?? textOrNull(fields?.["toolName"]);
  const stored: JsonObject = {
    raw: block,
    rawType: isObject(block) ? block["type"] : undefined,
    originalRole: raw["role"],
    toolCallId: raw["toolCallId"] ?? toolCallId ?? undefined,
    toolName: raw["toolName"] ?? toolName ?? undefined,
    isError: raw["isError"],
  };
  const others = Object.entries(fields ?? {}).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(stored[name]),
  );
  const metadata =
    others.length === 0
      ? part.metadata
      : JSON.stringify({ ...parseObject(part.metadata), older: Object.fromEntries(others) });
  const type = isRebuiltByType(older.type) || isRebuiltByType(part.type) ? part.type : older.type;
  return { ...part, type, toolCallId, toolName, metadata };
}

/** These types decide how a block is decoded, so ours wins. The older program's other types are more precise than ours. */
const isRebuiltByType = (type: PartType): boolean => type === "tool" || type === "reasoning" || type === "file";

const textOrNull = (value: Json | undefined): string | null => (typeof value === "string" ? value : null);

function losesNothing(
  converted: readonly Part[],
  stored: readonly ParsedPart[],
  raw: HostMessage,
  message: Pick<OlderMessage, "role" | "content" | "at"> & Pick<NewMessage, "envelope">,
): boolean {
  const keepsColumns = stored.every(({ older, fields }, index) => {
    const part = converted[index];
    return (
      part !== undefined &&
      (older.text === null || older.text === part.text || older.text === part.kept) &&
      (older.toolCallId ?? part.toolCallId) === part.toolCallId &&
      (older.toolName ?? part.toolName) === part.toolName &&
      // JSON that we would write differently may contain what a parser drops, such as digits of a long number.
      (older.metadata === null || (fields !== null && JSON.stringify(fields) === older.metadata))
    );
  });
  // The older program did not count calls as text; we do, so that search finds them.
  const keepsText = [converted, converted.filter((part) => part.type !== "tool")].some(
    (parts) => textOfParts(parts) === message.content,
  );
  const decoded = messageFromStore({ ...message, parts: converted });
  return keepsColumns && keepsText && JSON.stringify(decoded) === JSON.stringify(raw);
}

/** Keeps the message's text: in the parts if they add up to it, else all of it in the first part. */
function unchangedParts(stored: readonly ParsedPart[], content: string): readonly Part[] {
  const texts = stored.map(({ older }) => older.text);
  const addUp = (texts.length === 1 ? (texts[0] ?? "") : texts.filter((text) => text !== null).join("\n")) === content;
  return stored.map(({ older, fields, block }, index): Part => {
    const text = addUp ? older.text : index === 0 ? content : null;
    const hasBlock = fields !== null && fields["raw"] !== undefined && fields["raw"] !== null;
    const other = fields ?? (older.metadata === null ? {} : { older: older.metadata });
    return {
      type: older.type,
      text,
      kept: older.text === text ? null : older.text,
      toolCallId:
        older.toolCallId ?? textOrNull(fields?.["toolCallId"]) ?? (isObject(block) ? textOrNull(block["id"]) : null),
      toolName: older.toolName ?? textOrNull(fields?.["toolName"]),
      metadata: hasBlock ? older.metadata : JSON.stringify({ ...other, raw: block }),
    };
  });
}
