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
  /** Calls are blocks of an assistant's content: `{ type, [id], name, [input]: {…} or text }`. */
  readonly callBlock?: CallBlock;
  /** Calls are listed beside the content: `{ [field]: [{ id, [target]: { name, arguments } }] }`. */
  readonly callsBeside?: { readonly field: string; readonly target: string };
  /** A result is a message: `{ role, [id], [name], content, [error] }`; `asBlocks` if its content must be blocks. */
  readonly resultMessage?: ResultMessage;
  /** A result is a block: `{ type, [id], [content], [error] }`. */
  readonly resultBlock?: ResultBlock;
  /** A call and its result are one block: `{ type, [id], [name], state: { status, input, output or error } }`. */
  readonly answeredCall?: { readonly type: string; readonly id: string; readonly name: string };
  /** Reasoning is a block: `{ type, [text] }`. */
  readonly reasoning?: { readonly type: string; readonly text: string };
  /** Types of blocks in which a host keeps its accounts: nothing that anybody said. */
  readonly silent?: readonly string[];
}

interface CallBlock {
  readonly type: string;
  readonly input: string;
  /** `id` if left out. */
  readonly id?: string;
  /** The name of the tool, where a call does not say it. */
  readonly tool?: string;
}

interface ResultBlock {
  readonly type: string;
  readonly id: string;
  readonly error?: string;
  /** The field with the result; `content` if left out. Any other field takes bare text. */
  readonly content?: string;
  /** Each result is a message of its own with this role. If left out, those of a step share a user's message. */
  readonly role?: string;
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
  // The items of OpenAI's responses, each in a message of its own: its only block is the item.
  {
    name: "responses",
    callBlock: { type: "function_call", id: "call_id", input: "arguments" },
    resultBlock: { type: "function_call_output", id: "call_id", content: "output", role: "tool" },
  },
  {
    name: "responses, tools that take text",
    callBlock: { type: "custom_tool_call", id: "call_id", input: "input" },
    resultBlock: { type: "custom_tool_call_output", id: "call_id", content: "output", role: "tool" },
  },
  {
    name: "responses, the provider's shell",
    callBlock: { type: "local_shell_call", id: "call_id", input: "action", tool: "shell" },
    resultBlock: { type: "function_call_output", id: "call_id", content: "output", role: "tool" },
  },
  {
    name: "opencode",
    answeredCall: { type: "tool", id: "callID", name: "tool" },
    reasoning: { type: "reasoning", text: "text" },
    silent: ["step-start", "step-finish", "snapshot", "patch", "compaction", "retry"],
  },
];

export const dialects: Dialect[] = [];
const byCallType = new Map<string, Dialect>();
const byResultType = new Map<string, Dialect>();
const answeredByType = new Map<string, NonNullable<Dialect["answeredCall"]>>();
const silentTypes = new Set<string>();
const byResultRole = new Map<string, Dialect[]>();
const reasoningByType = new Map<string, NonNullable<Dialect["reasoning"]>>();
/** The fields of a message, other than its content, that can list calls. */
export const callFields: CallsBeside[] = [];

export function addDialect(dialect: Dialect): void {
  const { callBlock, callsBeside, resultMessage, resultBlock, answeredCall, reasoning } = dialect;
  dialects.push(dialect);
  if (callBlock !== undefined) byCallType.set(callBlock.type, dialect);
  if (callsBeside !== undefined) callFields.push({ ...callsBeside, dialect });
  if (resultMessage !== undefined)
    byResultRole.set(resultMessage.role, [...(byResultRole.get(resultMessage.role) ?? []), dialect]);
  // Two dialects may share their results; then they belong to the first.
  if (resultBlock !== undefined && !byResultType.has(resultBlock.type)) byResultType.set(resultBlock.type, dialect);
  if (answeredCall !== undefined) answeredByType.set(answeredCall.type, answeredCall);
  for (const type of dialect.silent ?? []) silentTypes.add(type);
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
  const dialect = isObject(block) ? found(byCallType, block["type"]) : undefined;
  if (dialect?.callBlock === undefined || !isObject(block)) return null;
  const { id: field = "id", tool } = dialect.callBlock;
  const id = block[field];
  return typeof id === "string" ? { id, name: tool ?? textIn(block["name"]), dialect } : null;
}

/** A call with its result in one block. It needs no pairing. */
export interface AnsweredCall {
  readonly id: string;
  readonly name: string;
  readonly input: Json;
  readonly output: string;
  readonly isFailed: boolean;
}

export function answeredCallOf(block: JsonObject): AnsweredCall | null {
  const shape = found(answeredByType, block["type"]);
  const { state } = block;
  if (shape === undefined || !isObject(state)) return null;
  const isFailed = state["status"] === "error";
  const output = textIn(state[isFailed ? "error" : "output"]);
  return {
    id: textIn(block[shape.id]),
    name: textIn(block[shape.name]),
    input: state["input"] ?? {},
    output,
    isFailed,
  };
}

/** Whether a text of a user's message is a reminder of the host, as a whole: Claude Code sends them beside the user's words. */
export const isHostsReminder = (text: string): boolean =>
  /^\s*<system-reminder>/.test(text) && /<\/system-reminder>\s*$/.test(text);

export const isSilentBlock = ({ type }: JsonObject): boolean => typeof type === "string" && silentTypes.has(type);

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

/** What a result says, in whichever field its dialect has it. */
export const resultContentOf = (holder: JsonObject): Json =>
  holder[found(byResultType, holder["type"])?.resultBlock?.content ?? "content"] ?? "";

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
  const content = resultContentOf(holder);
  const isError = isFailedResult(holder);
  const { resultBlock: block, resultMessage: shape = defaultResult } = dialect;
  if (block !== undefined) {
    const said = block.content === undefined ? content : bareText(content);
    const failed = block.error === undefined ? {} : { [block.error]: isError };
    return { type: block.type, [block.id]: id, [block.content ?? "content"]: said, ...failed };
  }
  return {
    role: shape.role,
    [shape.id]: id,
    ...(shape.name === undefined ? {} : { [shape.name]: name }),
    content: shape.asBlocks ? blocksOf(content) : content,
    ...(shape.error === undefined ? {} : { [shape.error]: isError }),
  };
}

/** Blocks of text as one text; others stay as they are. */
function bareText(content: Json): Json {
  if (!Array.isArray(content)) return content;
  const texts = content.map((block: Json) => (isObject(block) ? block["text"] : block));
  return texts.every((text) => typeof text === "string") ? texts.join("\n") : content;
}

/** The blocks of a content, which may be bare text. */
export const blocksOf = (content: Json | undefined): readonly Json[] => {
  if (Array.isArray(content)) return content;
  return typeof content === "string" && /\S/.test(content) ? [{ type: "text", text: content }] : [];
};

/** Whether somebody wrote the text of this block. OpenCode marks what it adds to a user's words itself. */
export const isWrittenText = ({ type, synthetic }: JsonObject): boolean =>
  (type === "text" || type === "input_text" || type === "output_text") && synthetic !== true;

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

/** The data or the address of a picture or the like, whichever way a dialect writes it; null for any other block. */
export function mediaDataOf(block: Json): string | null {
  if (!isObject(block) || !isMedia(block)) return null;
  const { source, image_url: linked, data, url } = block;
  const inside = [source, linked].filter(isObject).flatMap((inner) => [inner["data"], inner["url"]]);
  const found = [...inside, linked, data, url].find((value) => typeof value === "string");
  return found?.replace(/^data:[^,]*;base64,/, "") ?? null;
}

/** A quick test that needs no parsing: false only if the part has no media. */
export const mayHoldMedia = ({ metadata }: Part): boolean =>
  metadata !== null && /"type":"[^"]*(?:image|file|audio|document)/.test(metadata);

/** Fields by which a block is known and tied to others; they are never shortened. */
export const isBlockLabel = (field: string): boolean =>
  /^(?:type|id|name)$/.test(field) ||
  dialects.some(({ callBlock, resultBlock, answeredCall }) =>
    [callBlock?.id, resultBlock?.id, answeredCall?.id, answeredCall?.name].includes(field),
  );

/** The same for a message that is a result. */
export const resultFields = (): readonly string[] =>
  resultMessages().flatMap(({ id, name, error }) => [id, name ?? [], error ?? []].flat());

/** Words without which a stored message could not be decoded. */
export const dialectWords = (): readonly string[] =>
  dialects
    .flatMap(({ callBlock, callsBeside, resultMessage, resultBlock, answeredCall, reasoning }) => [
      ...Object.values({ ...callBlock, field: callsBeside?.field, result: resultBlock?.type }),
      ...Object.values({ ...answeredCall }),
      ...Object.values({ ...resultMessage }),
      ...Object.values({ ...reasoning }),
    ])
    .filter((word) => typeof word === "string");
