/**
 * Dialects: the shapes in which hosts write tool calls, results, reasoning and media. One row per dialect.
 *
 * To support another host, add a row: storing, pairing, presenting, shortening and redacting all read this table. A
 * session may mix dialects, so a message is never assigned to one; each of its blocks is looked up by itself.
 */

import type { Part } from "../model/types.ts";
import type { Json, JsonObject } from "../base/json.ts";
import { isObject } from "../base/json.ts";

export interface Dialect {
  readonly name: string;
  /** Calls are blocks of an assistant's content: `{ type, id, name, [input]: {…} }`. */
  readonly callBlock?: { readonly type: string; readonly input: string };
  /** Calls are listed beside the content: `{ [field]: [{ id, [target]: { name, arguments } }] }`. */
  readonly callsBeside?: { readonly field: string; readonly target: string };
  /** A result is a message: `{ role, [id], [name], content, [error] }`; `asBlocks` if its content must be blocks. */
  readonly resultMessage?: {
    readonly role: string;
    readonly id: string;
    readonly name?: string;
    readonly error?: string;
    readonly asBlocks: boolean;
  };
  /** A result is a block of a user's message: `{ type, [id], content, [error] }`. */
  readonly resultBlock?: { readonly type: string; readonly id: string; readonly error: string };
  /** Reasoning is a block: `{ type, [text] }`. */
  readonly reasoning?: { readonly type: string; readonly text: string };
}

const thinking = { type: "thinking", text: "thinking" } as const;

/** Pi and OpenClaw. The store leaves out the shape of its plainest blocks, so this row must not change. */
export const pi = {
  name: "pi",
  callBlock: { type: "toolCall", input: "arguments" },
  resultMessage: { role: "toolResult", id: "toolCallId", name: "toolName", error: "isError", asBlocks: true },
  reasoning: thinking,
} as const satisfies Dialect;

export const dialects: readonly Dialect[] = [
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

// ── Calls ────────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface HostCall {
  readonly id: string;
  /** Empty where the call names no tool. */
  readonly name: string;
  readonly dialect: Dialect;
}

/** The field of a call block that has the arguments; undefined for a block that is not a call. */
export const inputFieldOf = (block: JsonObject): string | undefined => callDialectOf(block)?.callBlock?.input;

const callDialectOf = ({ type }: JsonObject): Dialect | undefined =>
  dialects.find(({ callBlock }) => callBlock !== undefined && callBlock.type === type);

export const isCallBlock = (block: Json): boolean => isObject(block) && callDialectOf(block) !== undefined;

export function callOfBlock(block: Json): HostCall | null {
  if (!isObject(block) || typeof block["id"] !== "string") return null;
  const dialect = callDialectOf(block);
  return dialect === undefined ? null : { id: block["id"], name: textOr(block["name"], ""), dialect };
}

export interface CallsBeside extends NonNullable<Dialect["callsBeside"]> {
  readonly dialect: Dialect;
}

/** The fields of a message, other than its content, that can list calls. */
export const callFields = (): readonly CallsBeside[] =>
  dialects.flatMap((dialect) => (dialect.callsBeside === undefined ? [] : [{ ...dialect.callsBeside, dialect }]));

/** The one of them that a message has. */
export const callFieldOf = (raw: JsonObject): CallsBeside | undefined =>
  callFields().find(({ field }) => raw[field] !== undefined);

export function callBeside(call: Json, { target, dialect }: CallsBeside): HostCall | null {
  if (!isObject(call) || typeof call["id"] !== "string") return null;
  const called = call[target];
  return { id: call["id"], name: isObject(called) ? textOr(called["name"], "") : "", dialect };
}

/** Calls of dialects that are not in the table count too where only their kind matters. */
export const looksLikeCall = (type: string): boolean =>
  /call|tool_use/i.test(type) || dialects.some(({ callBlock }) => callBlock?.type === type);

// ── Results ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface HostResult {
  /** The id of the call that it answers. */
  readonly id: string;
  readonly dialect: Dialect;
  /** The message or the block that has the result. */
  readonly holder: JsonObject;
}

export const isResultRole = (role: Json | undefined): boolean =>
  dialects.some(({ resultMessage }) => resultMessage !== undefined && resultMessage.role === role);

export function resultOfMessage(raw: JsonObject): HostResult | null {
  for (const dialect of dialects) {
    const shape = dialect.resultMessage;
    const id = shape?.role === raw["role"] ? raw[shape?.id ?? ""] : undefined;
    if (typeof id === "string") return { id, dialect, holder: raw };
  }
  return null;
}

export const isResultBlock = (block: Json): boolean =>
  isObject(block) &&
  dialects.some(({ resultBlock }) => resultBlock !== undefined && resultBlock.type === block["type"]);

export function resultOfBlock(block: Json): HostResult | null {
  if (!isObject(block)) return null;
  for (const dialect of dialects) {
    const shape = dialect.resultBlock;
    const id = shape?.type === block["type"] ? block[shape?.id ?? ""] : undefined;
    if (typeof id === "string") return { id, dialect, holder: block };
  }
  return null;
}

/** The id of the call that a result's message names, whatever its dialect. */
export const resultIdIn = (fields: JsonObject): string | null =>
  firstText(dialects.flatMap(({ resultMessage }) => (resultMessage === undefined ? [] : fields[resultMessage.id])));

/** The name of its tool. */
export const resultToolIn = (fields: JsonObject): string | null =>
  firstText(
    dialects.flatMap(({ resultMessage }) => (resultMessage?.name === undefined ? [] : fields[resultMessage.name])),
  );

/** The fields of a result's message that can name its tool. */
export const toolNameFields = (): readonly string[] => [
  ...dialects.flatMap(({ resultMessage }) => resultMessage?.name ?? []),
  "name",
];

/** What a result says and whether it failed, written in the dialect of its call. */
export function resultTo({ id, name, dialect }: HostCall, holder: JsonObject): JsonObject {
  const { resultBlock: block, resultMessage: message } = dialect;
  const content = holder["content"] ?? "";
  if (block !== undefined) return { type: block.type, [block.id]: id, content, [block.error]: hasFailed(holder) };
  const shape = message ?? pi.resultMessage;
  return {
    role: shape.role,
    [shape.id]: id,
    ...(shape.name === undefined ? {} : { [shape.name]: name }),
    content: shape.asBlocks ? blocksOf(content) : content,
    ...(shape.error === undefined ? {} : { [shape.error]: hasFailed(holder) }),
  };
}

const hasFailed = (holder: JsonObject): boolean =>
  dialects.some(({ resultMessage, resultBlock }) =>
    [resultMessage?.error, resultBlock?.error].some((field) => field !== undefined && holder[field] === true),
  );

/** The stored role of what a tool returned, and of whatever else the host says in a role of its own. */
export const isToolRole = (role: string): boolean => isResultRole(role) || role === functionRole;

/** OpenAI's older results name no call, so they can be stored as a tool's, but not paired with one. */
const functionRole = "function";

// ── Text, reasoning and media ────────────────────────────────────────────────────────────────────────────────────────

/** The blocks of a content, which may be bare text. */
export const blocksOf = (content: Json | undefined): readonly Json[] => {
  if (Array.isArray(content)) return content;
  return typeof content === "string" && /\S/.test(content) ? [{ type: "text", text: content }] : [];
};

/** The field of a reasoning block that has the text; undefined for any other block. */
export const reasoningFieldOf = (block: JsonObject): string | undefined =>
  dialects.find(({ reasoning }) => reasoning !== undefined && reasoning.type === block["type"])?.reasoning?.text;

export const isReasoning = (type: Json | undefined): boolean =>
  typeof type === "string" &&
  (/thinking|reasoning/i.test(type) || dialects.some(({ reasoning }) => reasoning?.type === type));

/** A picture or the like, which a model sees. */
export const isMedia = (block: Json): boolean =>
  isObject(block) &&
  typeof block["text"] !== "string" &&
  typeof block["type"] === "string" &&
  mediaType.test(block["type"]);

const mediaType = /image|file|audio|document/;
const namesMediaType = new RegExp(`"type":"[^"]*(?:${mediaType.source})`);

/** A quick test that needs no parsing: false only if the part has no media. */
export const mayHoldMedia = ({ metadata }: Part): boolean => metadata !== null && namesMediaType.test(metadata);

// ── Labels ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Fields by which a block is known and tied to others; they are never shortened. */
export const isBlockLabel = (field: string): boolean =>
  field === "type" ||
  field === "id" ||
  field === "name" ||
  dialects.some(({ resultBlock }) => resultBlock?.id === field);

/** The same for a message that is a result. */
export const resultFields = (): readonly string[] =>
  dialects.flatMap(({ resultMessage: shape }) =>
    [shape?.id, shape?.name, shape?.error].filter((field) => field !== undefined),
  );

/** Words without which a stored message could not be put together again. */
export const dialectWords = (): readonly string[] =>
  dialects
    .flatMap(({ callBlock, callsBeside, resultMessage, resultBlock, reasoning }) => [
      ...Object.values({ ...callBlock, field: callsBeside?.field, result: resultBlock?.type }),
      ...Object.values({ ...resultMessage }),
      ...Object.values({ ...reasoning }),
    ])
    .filter((word) => typeof word === "string");

const textOr = <T>(value: Json | undefined, otherwise: T): string | T =>
  typeof value === "string" ? value : otherwise;

const firstText = (values: readonly (Json | undefined)[]): string | null =>
  values.find((value) => typeof value === "string") ?? null;
