/**
 * A message of the older program, read for what it was. Its parts hold the host's blocks as JSON in their metadata, or
 * only columns that speak of them; the same text stands in up to three places; and a message may have no parts at all.
 * Here it becomes the message that the host sent, and is taken apart as any message is today.
 *
 * That is done only where it provably loses nothing: the text is what the parts say, no column says anything else, and
 * the message reads back equal. Any other keeps its rows' values as they are, beside the blocks it reads back from.
 */

import { estimateMessageTokens, messageFromStore, messageToStore, textOfParts } from "../../core/messages/codec.ts";
import type { HostMessage } from "../../core/messages/codec.ts";
import { assert } from "../../core/base/errors.ts";
import type { NewMessage, Part, PartType, Role } from "../../core/model/types.ts";
import type { Json, JsonObject } from "../../core/base/json.ts";
import { isObject } from "../../core/base/json.ts";
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
  /** JSON as a rule, of any shape. */
  readonly metadata: string | null;
  /** What else its row says of the block: columns by name, as text, none of them null. */
  readonly columns: Readonly<Record<string, string>>;
}

/** What is stored of a message; as many parts as it had. */
export type Understood = Pick<NewMessage, "parts" | "tokens" | "envelope"> & { readonly content: string };

export function understandMessage(message: OlderMessage): Understood {
  const { content } = message;
  if (message.parts.length === 0) {
    const said: Part = { type: "text", text: content, kept: null, toolCallId: null, toolName: null, metadata: null };
    return { content, parts: [], tokens: estimateMessageTokens([said]), envelope: null };
  }
  const filed = message.parts.map(readPart);
  const raw = hostMessageOf(message, filed);
  const { parts: taken, envelope } = takeApart(raw, message);
  const today = filed.map((part, index) => partOfToday(part, taken[index], raw));
  const parts = losesNothing(today, filed, raw, { ...message, envelope }) ? today : keptAsFiled(filed, content);
  return { content: textOfParts(parts), parts, tokens: estimateMessageTokens(parts), envelope };
}

// ── What the rows say ────────────────────────────────────────────────────────────────────────────────────────────────

interface FiledPart {
  readonly older: OlderPart;
  /** Its metadata, if that is an object; null if it is anything else. */
  readonly stated: JsonObject | null;
  /** The host's block. */
  readonly block: Json;
}

function readPart(older: OlderPart): FiledPart {
  const stated = parseObject(older.metadata);
  return { older, stated, block: stated?.["raw"] ?? blockFromColumns(older) };
}

function parseObject(json: string | null): JsonObject | null {
  if (json === null) return null;
  try {
    const value: Json = JSON.parse(json);
    return isObject(value) ? value : null;
  } catch {
    return null; // Not JSON: kept as the text it is.
  }
}

/** A part stored without its block: the block that its columns speak of. */
function blockFromColumns({ type, text, toolCallId, toolName, columns }: OlderPart): Json {
  const { tool_input: input, tool_output: output } = columns;
  switch (type) {
    case "text":
      return { type: "text", text: text ?? "" };
    case "reasoning":
      return { type: "thinking", thinking: text ?? "" };
    case "tool": {
      const said = text ?? (input === undefined && output !== undefined ? output : null);
      if (said !== null) return { type: "text", text: said };
      const given = input === undefined ? null : input;
      return { type: "toolCall", id: toolCallId, name: toolName, arguments: parseObject(given) ?? given ?? {} };
    }
    default: {
      const [subject] = type.split("_");
      const own = Object.entries(columns).filter(([column]) => column.startsWith(`${subject}_`));
      return { type, ...(text === null ? {} : { text }), ...Object.fromEntries(own) };
    }
  }
}

function hostMessageOf({ role, parts }: OlderMessage, filed: readonly FiledPart[]): HostMessage {
  const find = (name: string): Json | undefined =>
    filed.map(({ stated }) => stated?.[name]).find((value) => value !== undefined && value !== null);
  const isResult = role === "tool";
  const toolCallId = find("toolCallId") ?? parts.find((part) => part.toolCallId !== null)?.toolCallId;
  const toolName = find("toolName") ?? parts.find((part) => part.toolName !== null)?.toolName;
  const isError = find("isError");
  const [first] = filed;
  return {
    role: find("originalRole") ?? role,
    ...(isResult && toolCallId !== undefined ? { toolCallId } : {}),
    ...(isResult && toolName !== undefined ? { toolName } : {}),
    content: filed.length === 1 && typeof first?.block === "string" ? first.block : filed.map((part) => part.block),
    ...(isError === undefined ? {} : { isError }),
  };
}

/** A role that the row does not have is kept with the message: it is, when it does not come first. */
function takeApart(raw: HostMessage, message: OlderMessage): NewMessage {
  const stored = messageToStore(raw, message);
  if (stored.role === message.role) return stored;
  const { role, ...rest } = raw;
  return messageToStore({ ...rest, role }, message);
}

// ── As it would be stored today ──────────────────────────────────────────────────────────────────────────────────────

function partOfToday({ older, stated, block }: FiledPart, part: Part | undefined, raw: HostMessage): Part {
  assert(part !== undefined, "every block of a message is a part");
  const toolCallId = part.toolCallId ?? older.toolCallId ?? textOrNull(stated?.["toolCallId"]);
  const toolName = part.toolName ?? older.toolName ?? textOrNull(stated?.["toolName"]);
  const said: JsonObject = {
    raw: block,
    rawType: isObject(block) ? block["type"] : undefined,
    originalRole: raw["role"],
    toolCallId: raw["toolCallId"] ?? toolCallId ?? undefined,
    toolName: raw["toolName"] ?? toolName ?? undefined,
    isError: raw["isError"],
  };
  const unsaid = Object.entries(stated ?? {}).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(said[name]),
  );
  const metadata =
    unsaid.length === 0
      ? part.metadata
      : JSON.stringify({ ...parseObject(part.metadata), older: Object.fromEntries(unsaid) });
  return { ...part, type: typeOfToday(older.type, part.type), toolCallId, toolName, metadata };
}

const textOrNull = (value: Json | undefined): string | null => (typeof value === "string" ? value : null);

/** The older program filed some calls under "agent"; its own kinds, such as "compaction", say more than ours. */
const typeOfToday = (older: PartType, today: PartType): PartType =>
  isRebuiltByType(older) || isRebuiltByType(today) ? today : older;

const isRebuiltByType = (type: PartType): boolean => type === "tool" || type === "reasoning" || type === "file";

function losesNothing(
  today: readonly Part[],
  filed: readonly FiledPart[],
  raw: HostMessage,
  message: Pick<OlderMessage, "role" | "content" | "at"> & Pick<NewMessage, "envelope">,
): boolean {
  const isSaid = filed.every(({ older, stated }, index) => {
    const part = today[index];
    return (
      part !== undefined &&
      (older.text === null || older.text === part.text || older.text === part.kept) &&
      (older.toolCallId ?? part.toolCallId) === part.toolCallId &&
      (older.toolName ?? part.toolName) === part.toolName &&
      // Written otherwise than we would write it, it may say more than a parser keeps: digits of a long number.
      (older.metadata === null || (stated !== null && JSON.stringify(stated) === older.metadata))
    );
  });
  // Calls stood beside the text; today they are part of it, so that search finds them.
  const isWholeText = [today, today.filter((part) => part.type !== "tool")].some(
    (parts) => textOfParts(parts) === message.content,
  );
  return (
    isSaid && isWholeText && JSON.stringify(messageFromStore({ ...message, parts: today })) === JSON.stringify(raw)
  );
}

// ── As it lay there ──────────────────────────────────────────────────────────────────────────────────────────────────

/** The text stays what it was: in the parts if they make it up, else whole in the first of them. */
function keptAsFiled(filed: readonly FiledPart[], content: string): readonly Part[] {
  const texts = filed.map(({ older }) => older.text);
  const isMadeUp =
    (texts.length === 1 ? (texts[0] ?? "") : texts.filter((text) => text !== null).join("\n")) === content;
  return filed.map(({ older, stated, block }, index): Part => {
    const text = isMadeUp ? older.text : index === 0 ? content : null;
    const isWhole = stated !== null && stated["raw"] !== undefined && stated["raw"] !== null;
    const other = stated ?? (older.metadata === null ? {} : { older: older.metadata });
    return {
      type: older.type,
      text,
      kept: older.text === text ? null : older.text,
      toolCallId:
        older.toolCallId ?? textOrNull(stated?.["toolCallId"]) ?? (isObject(block) ? textOrNull(block["id"]) : null),
      toolName: older.toolName ?? textOrNull(stated?.["toolName"]),
      metadata: isWhole ? older.metadata : JSON.stringify({ ...other, raw: block }),
    };
  });
}
