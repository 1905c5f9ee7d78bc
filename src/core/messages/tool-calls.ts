/**
 * Which result answers which call, and how a list of messages reads so that every provider takes it: each call
 * followed directly by its result.
 *
 * Hosts write this in three dialects, sometimes in one session: pi and OpenClaw (`toolCall` blocks, messages of role
 * `toolResult`), Anthropic (`tool_use` blocks, `tool_result` blocks in a user's message) and OpenAI (`tool_calls`,
 * messages of role `tool`). Ids are not unique: some providers count them from 0 in every turn. So a result belongs to
 * the nearest earlier call of its id that has none yet (of several in one message, the first), and if there is none, to
 * the nearest later one, since rows can arrive out of order. Whatever then has no counterpart is said in words: a call
 * gets a stand-in that is marked as an error, a result becomes a user's text. Nothing is dropped.
 */

import { isObject } from "./codec.ts";
import type { HostMessage } from "./codec.ts";
import type { Json, JsonObject } from "../model/types.ts";
import { isMadeOf, presentBlocks } from "../assembly/present-message.ts";
import { disarm } from "../assembly/summary-xml.ts";

type Dialect = "pi" | "anthropic" | "openai";

interface Call {
  readonly id: string;
  readonly name: string;
  readonly dialect: Dialect;
}

interface Answer {
  readonly id: string;
  readonly dialect: Dialect;
  /** The message or the block that holds the result. */
  readonly holder: JsonObject;
}

/** What ties a message to others. */
export interface Ties {
  readonly calls: readonly { readonly id: string; readonly name: string }[];
  readonly answers: readonly string[];
}

export function tiesOf(raw: HostMessage): Ties {
  const calls = callsOf(raw);
  const answers = answersOf(raw);
  if (calls.length === 0 && answers.length === 0) return untied;
  return { calls, answers: answers.map(({ id }) => id) };
}

export const untied: Ties = { calls: [], answers: [] };
const none: readonly never[] = [];

function callsOf(raw: HostMessage): readonly Call[] {
  if (raw["role"] !== "assistant") return none;
  const { content, tool_calls: beside } = raw;
  if (!Array.isArray(content) && !Array.isArray(beside)) return none;
  const blocks = Array.isArray(content) ? content.flatMap((block: Json) => callOfBlock(block) ?? []) : [];
  return Array.isArray(beside) ? [...blocks, ...beside.flatMap((call: Json) => callBeside(call) ?? [])] : blocks;
}

function callOfBlock(block: Json): Call | null {
  if (!isObject(block) || typeof block["id"] !== "string") return null;
  const { id, type, name } = block;
  const dialect = type === "toolCall" ? "pi" : type === "tool_use" ? "anthropic" : null;
  return dialect && { id, name: typeof name === "string" ? name : "", dialect };
}

function callBeside(call: Json): Call | null {
  if (!isObject(call) || typeof call["id"] !== "string") return null;
  const name = isObject(call["function"]) ? call["function"]["name"] : undefined;
  return { id: call["id"], name: typeof name === "string" ? name : "", dialect: "openai" };
}

function answersOf(raw: HostMessage): readonly Answer[] {
  const { role, content, toolCallId, tool_call_id: besideId } = raw;
  if (role === "toolResult" && typeof toolCallId === "string") return [{ id: toolCallId, dialect: "pi", holder: raw }];
  if (role === "tool" && typeof besideId === "string") return [{ id: besideId, dialect: "openai", holder: raw }];
  if (role !== "user" || !Array.isArray(content)) return none;
  return content.flatMap((block: Json) => answerOfBlock(block) ?? none);
}

function answerOfBlock(block: Json): Answer | null {
  if (!isObject(block) || block["type"] !== "tool_result" || typeof block["tool_use_id"] !== "string") return null;
  return { id: block["tool_use_id"], dialect: "anthropic", holder: block };
}

// ── Matching ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The nth call or answer of the message at a position of the list. */
interface Place {
  readonly at: number;
  readonly nth: number;
}

interface Pair {
  readonly call: Place;
  readonly answer: Place;
}

function matchTies(ties: readonly Ties[]): readonly Pair[] {
  const pairs: Pair[] = [];
  const open = new Map<string, OpenCalls[]>();
  const early: { readonly id: string; readonly answer: Place }[] = [];
  /** Whether there is a call that it can belong to. */
  const answerNearest = (id: string, answer: Place): boolean => {
    const unanswered = open.get(id);
    const nearest = unanswered?.at(-1);
    const nth = nearest?.nths.shift();
    if (nearest === undefined || nth === undefined) return false;
    pairs.push({ call: { at: nearest.at, nth }, answer });
    if (nearest.nths.length === 0) unanswered?.pop();
    return true;
  };
  ties.forEach(({ calls, answers }, at) => {
    answers.forEach((id, nth) => {
      if (!answerNearest(id, { at, nth })) early.push({ id, answer: { at, nth } });
    });
    calls.forEach(({ id }, nth) => {
      const unanswered = open.get(id) ?? [];
      const nearest = unanswered.at(-1);
      if (nearest?.at === at) nearest.nths.push(nth);
      else unanswered.push({ at, nths: [nth] });
      if (unanswered.length === 1) open.set(id, unanswered);
    });
  });
  for (const unanswered of open.values()) unanswered.reverse();
  // What has no answer yet lies behind all of these: what lay before one of them would be taken.
  for (const { id, answer } of early) answerNearest(id, answer);
  return pairs;
}

/** Calls of one id in one message, as far as they have no answer yet. */
interface OpenCalls {
  readonly at: number;
  readonly nths: number[];
}

/** Positions 0…n at which the list may be cut without separating a call from its result. 0 and n are among them. */
export function safeCuts(ties: readonly Ties[]): readonly number[] {
  const change = new Int32Array(ties.length + 2);
  for (const { call, answer } of matchTies(ties)) {
    const from = Math.min(call.at, answer.at) + 1;
    const to = Math.max(call.at, answer.at) + 1;
    change[from] = (change[from] ?? 0) + 1;
    change[to] = (change[to] ?? 0) - 1;
  }
  const cuts: number[] = [];
  let across = 0;
  for (let at = 0; at <= ties.length; at++) {
    across += change[at] ?? 0;
    if (across === 0) cuts.push(at);
  }
  return cuts;
}

// ── Putting in order ─────────────────────────────────────────────────────────────────────────────────────────────────

/** A message of the list that a provider takes. */
export interface Placed {
  /** The very object that was given, where nothing had to be changed. */
  readonly message: HostMessage;
  /** Position, in the list that was given, of what it shows; null for a stand-in. */
  readonly from: number | null;
}

export interface UnansweredCall {
  /** Position of the message that calls. */
  readonly at: number;
  readonly id: string;
}

export interface Paired {
  readonly messages: readonly Placed[];
  readonly unanswered: readonly UnansweredCall[];
  /** How many results are shown as text. */
  readonly loose: number;
}

/** Every result right behind its call. `isElsewhere` tells of a call without one whether its result is kept unshown. */
export function pair(
  messages: readonly HostMessage[],
  isElsewhere: (call: UnansweredCall) => boolean = () => false,
): Paired {
  const { answerTo, isTaken } = matchMessages(messages);
  const placed: Placed[] = [];
  const unanswered: UnansweredCall[] = [];
  let loose = 0;
  /** Names of the tools called so far, by the ids of the calls. */
  const called = new Map<string, string>();
  /** A user's message of result blocks that is placed next, as soon as no more can belong into it. */
  let carrier: { readonly blocks: Json[]; from: number | null; readonly time: HostMessage } | null = null;

  const placeCarrier = (): void => {
    if (carrier === null) return;
    const { blocks, from, time } = carrier;
    const given = from === null ? undefined : messages[from];
    const base = given?.["role"] === "user" ? given : { role: "user", ...time };
    placed.push({ message: isMadeOf(base["content"], blocks) ? base : { ...base, content: blocks }, from });
    carrier = null;
  };
  const place = (message: HostMessage, from: number | null): void => {
    placeCarrier();
    placed.push({ message, from });
  };
  const carry = (blocks: readonly Json[], from: number | null, time: HostMessage): void => {
    carrier ??= { blocks: [], from, time };
    carrier.from ??= from;
    for (const block of blocks) carrier.blocks.push(block);
  };
  const looseResult = (raw: HostMessage, id: string | null, holder: JsonObject): readonly Json[] => {
    loose += 1;
    const before = id === null ? undefined : called.get(id);
    const name = before ?? raw["toolName"] ?? raw["name"];
    const tool = typeof name === "string" && name !== "" ? `tool ${name}` : "a tool";
    const label =
      before === undefined ? `[result of ${tool}, whose call is not shown here]` : `[another result of ${tool}]`;
    return [{ type: "text", text: label }, ...presentBlocks(saidBy(holder), "user")].map(disarmBlock);
  };
  /** What a message says in its own place: everything but results that are with their calls. */
  const placeRest = (raw: HostMessage, at: number): void => {
    const [row] = answersOf(raw);
    if (raw["role"] === "toolResult" || raw["role"] === "tool") {
      if (isTaken({ at, nth: 0 })) return;
      place({ role: "user", content: looseResult(raw, row?.id ?? null, raw), ...timeOf(raw) }, at);
    } else if (row === undefined) {
      place(raw, at);
    } else {
      let nth = 0;
      const rest = blocksOf(raw["content"]).flatMap((block) => {
        const answer = answerOfBlock(block);
        if (answer === null) return [block];
        return isTaken({ at, nth: nth++ }) ? [] : looseResult(raw, answer.id, answer.holder);
      });
      if (rest.length === 0) return;
      if (carrier?.from === at) carry(rest, at, {});
      else place({ ...raw, content: rest }, at);
    }
  };
  const placeResult = (call: Call, raw: HostMessage, { at, nth }: Place): void => {
    const answer = answerTo({ at, nth });
    called.set(call.id, call.name);
    if (answer === undefined) unanswered.push({ at, id: call.id });
    const holder = answer?.holder ?? standIn(isElsewhere({ at, id: call.id }));
    const time = timeOf(raw);
    const from = answer?.from ?? null;
    const isKept = answer?.dialect === call.dialect;
    if (call.dialect === "anthropic") carry([isKept ? holder : resultBlock(call, holder)], from, time);
    else place(isKept ? holder : resultMessage(call, holder, time), from);
  };
  messages.forEach((raw, at) => {
    placeRest(raw, at);
    callsOf(raw).forEach((call, nth) => placeResult(call, raw, { at, nth }));
  });
  placeCarrier();
  return { messages: placed, unanswered, loose };
}

function matchMessages(messages: readonly HostMessage[]): {
  readonly answerTo: (call: Place) => (Answer & { readonly from: number }) | undefined;
  readonly isTaken: (answer: Place) => boolean;
} {
  const answers = messages.map(answersOf);
  const pairs = matchTies(
    messages.map((raw, at) => ({ calls: callsOf(raw), answers: (answers[at] ?? []).map(({ id }) => id) })),
  );
  const keyOf = ({ at, nth }: Place): string => `${at}.${nth}`;
  const places = new Map(pairs.map(({ call, answer }) => [keyOf(call), answer]));
  const taken = new Set(pairs.map(({ answer }) => keyOf(answer)));
  return {
    answerTo: (call) => {
      const place = places.get(keyOf(call));
      const answer = place && answers[place.at]?.[place.nth];
      return answer && { ...answer, from: place.at };
    },
    isTaken: (answer) => taken.has(keyOf(answer)),
  };
}

/** What a result says; what results inside it say. */
const saidBy = (holder: JsonObject): readonly Json[] =>
  blocksOf(holder["content"]).flatMap((block) => {
    const isResult = isObject(block) && block["type"] === "tool_result";
    return isResult ? saidBy(block) : [block];
  });

/** A tool's words in a user's message must not pass for a summary. */
const disarmBlock = (block: Json): Json =>
  isObject(block) && typeof block["text"] === "string" ? { ...block, text: disarm(block["text"]) } : block;

const timeOf = ({ timestamp }: HostMessage): HostMessage => (typeof timestamp === "number" ? { timestamp } : {});

const blocksOf = (content: Json | undefined): readonly Json[] => {
  if (Array.isArray(content)) return content;
  return typeof content === "string" && /\S/.test(content) ? [{ type: "text", text: content }] : [];
};

// ── Results in the dialect of their call ─────────────────────────────────────────────────────────────────────────────

const standIn = (isElsewhere: boolean): JsonObject => ({
  content: isElsewhere
    ? "[the result of this call is not shown here: it is part of what is summarised or left out above]"
    : "[no result of this call was found]",
  isError: true,
});

function resultMessage({ id, name, dialect }: Call, holder: JsonObject, time: HostMessage): HostMessage {
  const { content, isError, is_error } = holder;
  if (dialect === "openai") return { role: "tool", tool_call_id: id, content: content ?? "", ...time };
  const failed = isError === true || is_error === true;
  return { role: "toolResult", toolCallId: id, toolName: name, content: blocksOf(content), isError: failed, ...time };
}

const resultBlock = ({ id }: Call, { content, isError }: JsonObject): Json => ({
  type: "tool_result",
  tool_use_id: id,
  content: content ?? "",
  is_error: isError === true,
});
