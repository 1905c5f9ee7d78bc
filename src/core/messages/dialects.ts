/**
 * Dialects: the shapes in which hosts write tool calls, results, reasoning and media. One row per dialect.
 *
 * To support another host, add a row: storing, pairing, presenting, shortening and redacting all read this table. A
 * session may mix dialects, so a message is never assigned to one; each of its blocks is looked up by itself.
 */

import type { Part } from "../model/types.ts";
import { isObject, type Json, type JsonObject } from "../base/json.ts";

export interface Dialect {
  readonly name: string;
  /** Calls are blocks of an assistant's content: `{ type, id, name, [input]: {…} }`. */
  readonly callBlock?: { readonly type: string; readonly input: string };
  /** Calls are listed beside the content: `{ [field]: [{ id, [target]: { name, arguments } }] }`. */
  readonly callsBeside?: { readonly field: string; readonly target: string };
  /** A result is a message: `{ role, [id], [name], content, [error] }`; `asBlocks` if its content must be blocks. */
  readonly resultMessage?: ResultMessage;
  /** A result is a block of a user's message: `{ type, [id], content, [error] }`. */
  readonly resultBlock?: { readonly type: string; readonly id: string; readonly error: string };
  /** Reasoning is a block: `{ type, [text] }`. */
  readonly reasoning?: { readonly type: string; readonly text: string };
}

interface ResultMessage {
  readonly role: string;
  readonly id: string;
  readonly name?: string;
  readonly error?: string;
  readonly asBlocks: boolean;
}

const thinking = { type: "thinking", text: "thinking" } as const;

/** Pi and OpenClaw. The store leaves out the shape of its plainest blocks, so this row must not change. */
export const pi = {
  name: "pi",
  callBlock: { type: "toolCall", input: "arguments" },
  resultMessage: { role: "toolResult", id: "toolCallId", name: "toolName", error: "isError", asBlocks: true },
  reasoning: thinking,
} as const satisfies Dialect;

const builtIn: readonly Dialect[] = [
  pi,
  {
    name: "anthropic",
    callBlock: { type: "tool_use", input: "input" },
    resultBlock: { type: "tool_result", id: "tool_use_id", error: "is_error" },
    reasoning: thinking,
  },
  {
    name: "openai",
    callsBeside: { field: "tool_calls", target: "function" },
    resultMessage: { role: "tool", id: "tool_call_id", asBlocks: false },
  },
];

export const dialects: Dialect[] = [];
const byCallType = new Map<string, Dialect>();
const byResultType = new Map<string, Dialect>();
const byResultRole = new Map<string, Dialect[]>();
const reasoningByType = new Map<string, NonNullable<Dialect["reasoning"]>>();
/** The fields of a message, other than its content, that can list calls. */
export const callFields: CallsBeside[] = [];

export function addDialect(dialect: Dialect): void {
  const { callBlock, callsBeside, resultMessage, resultBlock, reasoning } = dialect;
  dialects.push(dialect);
  if (callBlock !== undefined) byCallType.set(callBlock.type, dialect);
  if (callsBeside !== undefined) callFields.push({ ...callsBeside, dialect });
  if (resultMessage !== undefined)
    byResultRole.set(resultMessage.role, [...(byResultRole.get(resultMessage.role) ?? []), dialect]);
  if (resultBlock !== undefined) byResultType.set(resultBlock.type, dialect);
  if (reasoning !== undefined) reasoningByType.set(reasoning.type, reasoning);
}
for (const dialect of builtIn) addDialect(dialect);

const found = <T>(map: ReadonlyMap<string, T>, word: Json | undefined): T | undefined =>
  typeof word === "string" ? map.get(word) : undefined;

export interface HostCall {
  readonly id: string;
  /** Empty where the call names no tool. */
  readonly name: string;
  readonly dialect: Dialect;
}

/** The field of a call block that has the arguments; undefined for a block that is not a call. */
export const inputFieldOf = (block: JsonObject): string | undefined =>
  found(byCallType, block["type"])?.callBlock?.input;

export const isCallBlock = (block: Json): boolean => isObject(block) && found(byCallType, block["type"]) !== undefined;

export function callOfBlock(block: Json): HostCall | null {
  if (!isObject(block) || typeof block["id"] !== "string") return null;
  const dialect = found(byCallType, block["type"]);
  return dialect === undefined ? null : { id: block["id"], name: textIn(block["name"]), dialect };
}

export interface CallsBeside extends NonNullable<Dialect["callsBeside"]> {
  readonly dialect: Dialect;
}

/** The field with calls that a message has. */
export const callFieldOf = (raw: JsonObject): CallsBeside | undefined =>
  callFields.find(({ field }) => raw[field] !== undefined);

export function callBeside(call: Json, { target, dialect }: CallsBeside): HostCall | null {
  if (!isObject(call) || typeof call["id"] !== "string") return null;
  const called = call[target];
  return { id: call["id"], name: isObject(called) ? textIn(called["name"]) : "", dialect };
}

const textIn = (value: Json | undefined): string => (typeof value === "string" ? value : "");

/** Includes calls of dialects that are not in the table. */
export const looksLikeCall = (type: string): boolean => /call|tool_use/i.test(type) || byCallType.has(type);

export interface HostResult {
  /** The id of the call that it answers. */
  readonly id: string;
  readonly dialect: Dialect;
  /** The message or the block that has the result. */
  readonly holder: JsonObject;
}

export const isResultRole = (role: Json | undefined): boolean => found(byResultRole, role) !== undefined;

/** OpenAI's older role `function` names no call: such a result is stored as a tool's, but never paired. */
export const isToolRole = (role: string): boolean => isResultRole(role) || role === "function";

export const isResultBlock = (block: Json): boolean =>
  isObject(block) && found(byResultType, block["type"]) !== undefined;

export function resultOfMessage(raw: JsonObject): HostResult | null {
  for (const dialect of found(byResultRole, raw["role"]) ?? []) {
    const id = raw[dialect.resultMessage?.id ?? ""];
    if (typeof id === "string") return { id, dialect, holder: raw };
  }
  return null;
}

export function resultOfBlock(block: Json): HostResult | null {
  const dialect = isObject(block) ? found(byResultType, block["type"]) : undefined;
  if (dialect === undefined || !isObject(block)) return null;
  const id = block[dialect.resultBlock?.id ?? ""];
  return typeof id === "string" ? { id, dialect, holder: block } : null;
}

const resultMessages = (): readonly ResultMessage[] => dialects.flatMap(({ resultMessage }) => resultMessage ?? []);

/** The fields of a result's message that can name its tool. */
export const toolNameFields = (): readonly string[] => [...resultMessages().flatMap(({ name }) => name ?? []), "name"];

/** The fields of a result's message that can have the id of its call. */
export const callIdFields = (): readonly string[] => resultMessages().map(({ id }) => id);

/** The id of the call, and the name of the tool, in a result's message of any dialect. */
export const resultIdIn = (raw: JsonObject): string | null => firstTextIn(callIdFields().map((field) => raw[field]));
export const resultToolIn = (raw: JsonObject): string | null =>
  firstTextIn(resultMessages().map(({ name }) => (name === undefined ? undefined : raw[name])));

const firstTextIn = (values: readonly (Json | undefined)[]): string | null =>
  values.find((value) => typeof value === "string") ?? null;

/** Whether a message or a block marks its result as an error, in any dialect. */
export const isFailedResult = (holder: JsonObject): boolean =>
  dialects.some(({ resultMessage, resultBlock }) =>
    [resultMessage?.error, resultBlock?.error].some((field) => field !== undefined && holder[field] === true),
  );

const defaultResult: ResultMessage = pi.resultMessage;

/** A result in the dialect of its call. */
export function resultTo({ id, name, dialect }: HostCall, holder: JsonObject): JsonObject {
  const content = holder["content"] ?? "";
  const isError = isFailedResult(holder);
  const { resultBlock: block, resultMessage: shape = defaultResult } = dialect;
  if (block !== undefined) return { type: block.type, [block.id]: id, content, [block.error]: isError };
  return {
    role: shape.role,
    [shape.id]: id,
    ...(shape.name === undefined ? {} : { [shape.name]: name }),
    content: shape.asBlocks ? blocksOf(content) : content,
    ...(shape.error === undefined ? {} : { [shape.error]: isError }),
  };
}

/** The blocks of a content, which may be bare text. */
export const blocksOf = (content: Json | undefined): readonly Json[] => {
  if (Array.isArray(content)) return content;
  return typeof content === "string" && /\S/.test(content) ? [{ type: "text", text: content }] : [];
};

/** The field of a reasoning block that has the text; undefined for any other block. */
export const reasoningFieldOf = ({ type }: JsonObject): string | undefined => found(reasoningByType, type)?.text;

/** Includes reasoning of dialects that are not in the table. */
export const isReasoning = (type: Json | undefined): boolean =>
  typeof type === "string" && (/thinking|reasoning/i.test(type) || reasoningByType.has(type));

/** A picture or the like, which a model sees. */
export const isMedia = (block: Json): boolean =>
  isObject(block) &&
  typeof block["text"] !== "string" &&
  typeof block["type"] === "string" &&
  /image|file|audio|document/.test(block["type"]);

/** A quick test that needs no parsing: false only if the part has no media. */
export const mayHoldMedia = ({ metadata }: Part): boolean =>
  metadata !== null && /"type":"[^"]*(?:image|file|audio|document)/.test(metadata);

/** Fields by which a block is known and tied to others; they are never shortened. */
export const isBlockLabel = (field: string): boolean =>
  /^(?:type|id|name)$/.test(field) || dialects.some(({ resultBlock }) => resultBlock?.id === field);

/** The same for a message that is a result. */
export const resultFields = (): readonly string[] =>
  resultMessages().flatMap(({ id, name, error }) => [id, name ?? [], error ?? []].flat());

/** Words without which a stored message could not be decoded. */
export const dialectWords = (): readonly string[] =>
  dialects
    .flatMap(({ callBlock, callsBeside, resultMessage, resultBlock, reasoning }) => [
      ...Object.values({ ...callBlock, field: callsBeside?.field, result: resultBlock?.type }),
      ...Object.values({ ...resultMessage }),
      ...Object.values({ ...reasoning }),
    ])
    .filter((word) => typeof word === "string");
