/**
 * Writes messages and summaries as labelled text to summarise: who spoke, when, and what. Results name the call that they
 * answer. Reasoning, encoded bytes and results that say nothing are left out; what people and models wrote is not cut.
 */

import type { Passage } from "./extractive.ts";
import type { Message, Part, Summary } from "../model/types.ts";
import { firstLine } from "../base/excerpt.ts";
import { isObject, parseObject, type Json, type JsonObject } from "../base/json.ts";
import { inputFieldOf, isFailedResult, resultIdIn, resultToolIn } from "../messages/dialects.ts";
import { formatRange, formatTimestamp } from "../base/time.ts";
import { estimateTokens } from "../base/tokens.ts";
import { matchTies } from "../messages/tool-calls.ts";
import { callText, effectOf } from "./call-text.ts";
import { commandByUser } from "./user-command.ts";
import { outputText, reportsErrors, wordsText } from "./output-text.ts";

/**
 * A passage for each message, one for each result if it has several, none if there is nothing to read in it. Times are in
 * this zone; null leaves them out. If nothing can be read in any message, one passage says so.
 */
export function messagePassages(messages: readonly Message[], zone: string | null): readonly Passage[] {
  const read = messages.map(readMessage);
  const links = linkCalls(read);
  const passages = read.flatMap((each, at) => passagesOf(each, at, links));
  const [first] = read;
  if (passages.length === 0 && first !== undefined)
    passages.push({ message: first.message, who: [first.message.role], kind: first.message.role, text: "[no text]" });
  return passages.map(({ message: { at }, who, kind, text }) => {
    const speaker = `[${who.join(" · ")}]`;
    return { label: zone === null ? speaker : `[${formatTimestamp(at, zone)}] ${speaker}`, text, kind };
  });
}

/**
 * About how many tokens a summariser reads of these messages. Costs some 30 µs a message. One at a time adds up to a tenth
 * more, since a result alone does not know its call.
 */
export const readTokensOf = (messages: readonly Message[]): number =>
  estimateTokens(sourceText(messagePassages(messages, "UTC")));

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

interface ReadMessage {
  readonly message: Message;
  /** The fields of the host's message, without its content. */
  readonly fields: JsonObject;
  readonly calls: readonly Call[];
  /** The results in it, with the ids of their calls. */
  readonly results: readonly { readonly id: string; readonly parts: readonly Part[]; readonly isFailed: boolean }[];
}

interface Call {
  readonly id: string;
  readonly name: string;
  readonly input: Json;
  readonly part: Part;
}

function readMessage(message: Message): ReadMessage {
  const envelope: Json = JSON.parse(message.envelope ?? "{}");
  const fields = isObject(envelope) ? envelope : {};
  const { role, parts } = message;
  const calls = parts.filter(({ type }) => type === "tool").map(readCall);
  const whole = { id: resultIdIn(fields) ?? "", parts, isFailed: isFailedResult(fields) };
  const results = parts.filter(isResult).map((part) => {
    const { raw } = parseObject(part.metadata ?? "{}");
    return { id: part.toolCallId ?? "", parts: [part], isFailed: isObject(raw) && isFailedResult(raw) };
  });
  return { message, fields, calls, results: role === "tool" ? [whole] : results };
}

/** Some hosts pass tool results in a user message. */
const isResult = (part: Part): boolean => part.type === "text" && part.toolCallId !== null;

/** The name and arguments of a call, which the store keeps as `name {arguments}`, or as the host's block. */
function readCall(part: Part): Call {
  const [id, tool] = [part.toolCallId ?? "", part.toolName ?? ""];
  if (part.text !== null) return { id, name: tool, input: readInput(part.text.slice(tool.length).trim()), part };
  const { raw } = parseObject(part.metadata ?? "{}");
  const { name = null, ...block } = isObject(raw) ? raw : {};
  return { id, name: typeof name === "string" ? name : tool, input: block[inputFieldOf(block) ?? ""] ?? null, part };
}

function readInput(text: string): Json {
  if (!/^[{[]/.test(text)) return text;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text; // Some models write broken JSON, which is shown as it is.
  }
}

interface Links {
  /** The call that the nth result of the message at a position answers. */
  readonly callOf: (at: number, nth: number) => Call | undefined;
  /** The numbers of calls that were open together. */
  readonly numbers: ReadonlyMap<Part, number>;
  /** Said of a call whose result is not shown by itself: it has none, or an empty one. */
  readonly noteOn: (call: Call) => string;
}

function linkCalls(read: readonly ReadMessage[]): Links {
  const ties = read.map(({ calls, results }) => ({ calls, answers: results.map(({ id }) => id) }));
  const answered = new Map(
    matchTies(ties).map(({ call, answer }) => [`${answer.at} ${answer.nth}`, read[call.at]?.calls[call.nth]]),
  );
  const callOf = (at: number, nth: number): Call | undefined => answered.get(`${at} ${nth}`);
  /** Calls as they are made, and again as they are answered. */
  const events = read.flatMap(({ calls, results }, at) => [...results.map((_, nth) => callOf(at, nth)), ...calls]);
  const answerable = new Set(answered.values());
  const open = new Set<Call>();
  const numbers = new Map<Part, number>();
  for (const [at, call] of events.entries()) {
    if (call === undefined || !answerable.has(call) || open.delete(call)) continue;
    if (open.size > 0 || events[at + 1] !== call) numbers.set(call.part, numbers.size + 1);
    open.add(call);
  }
  const silent = new Set(
    read.flatMap(({ message, results }, at) => results.map((each, nth) => isSilent(message, each) && callOf(at, nth))),
  );
  const noteOn = (call: Call): string =>
    silent.has(call) ? " (no output)" : answerable.has(call) ? "" : " (no result)";
  return { callOf, numbers, noteOn };
}

interface Reading {
  readonly message: Message;
  readonly who: readonly string[];
  readonly kind: Message["role"];
  readonly text: string;
}

function passagesOf(read: ReadMessage, at: number, links: Links): Reading[] {
  const { message, fields, results } = read;
  const command = commandByUser(message, fields);
  if (command !== null) return [{ message, who: ["user", "ran a command"], kind: "tool", text: command }];
  const readings = results.map((result, nth): Reading => {
    const call = links.callOf(at, nth);
    const number = call === undefined ? undefined : links.numbers.get(call.part);
    const named = message.role === "tool" ? speakerOf(fields) : null;
    const tool = [named ?? asName(call?.name) ?? "", number === undefined ? "" : `#${number}`];
    const who = ["tool", tool.filter((word) => word !== "").join(" "), result.isFailed ? "failed" : ""];
    return { message, who: who.filter((word) => word !== ""), kind: "tool", text: resultText(message, result, call) };
  });
  if (message.role !== "tool") {
    const who = [message.role, speakerOf(fields) ?? "", isInterrupted(fields) ? "interrupted" : ""];
    const text = spokenText(read, links);
    readings.push({ message, who: who.filter((word) => word !== ""), kind: message.role, text });
  }
  return readings.filter(({ text }) => text !== "");
}

type Result = ReadMessage["results"][number];

const rawText = (message: Message, { parts }: Result): string =>
  (parts.length === 0 ? message.text : textsOf(message, parts).join("\n")).trim();

const isSilent = (message: Message, result: Result): boolean =>
  !result.isFailed && /^(?:\(?no output\)?)?$/i.test(rawText(message, result));

/** Empty for a result that says nothing, or only that a file was changed, which the call says. */
function resultText(message: Message, result: Result, call?: Call): string {
  const text = rawText(message, result);
  const effect = call === undefined ? "other" : effectOf(call.input);
  if (result.isFailed) return outputText(text, "output");
  if (isSilent(message, result) || (effect === "changes a file" && !reportsErrors(text))) return "";
  return outputText(text, effect === "reads a file" ? "file" : "output");
}

/** What somebody wrote, with the calls and media in it. */
function spokenText({ message, calls }: ReadMessage, { numbers, noteOn }: Links): string {
  if (message.parts.length === 0) return wordsText(message.text).trim();
  const callOfPart = new Map(calls.map((call) => [call.part, call]));
  const texts = message.parts.flatMap((part) => {
    const call = callOfPart.get(part);
    if (call !== undefined) {
      const text = callText(asName(call.name) ?? "call", call.input, numbers.get(part) ?? null);
      return [text.replace(/$/m, noteOn(call))];
    }
    return isResult(part) ? [] : textsOf(message, [part]).map(wordsText);
  });
  return texts.join("\n").trim();
}

/** The texts of parts, with a placeholder for media. */
const textsOf = (message: Message, parts: readonly Part[]): readonly string[] =>
  parts.flatMap((part) => {
    if (part.type === "reasoning") return [];
    if (part.text !== null) return [part.text];
    return part.type === "file" ? [traceOf(part, message)] : [];
  });

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

/** Whether the model was stopped before it had finished. */
const isInterrupted = ({ stopReason }: JsonObject): boolean => stopReason === "aborted" || stopReason === "error";

const nameCharsMax = 40;

/** People choose their names, so a name must not close its bracket or start a line. */
function asName(value: Json | undefined): string | null {
  if (typeof value !== "string") return null;
  const name = firstLine(value.replace(/[[\]\s]+/g, " "), nameCharsMax).trim();
  return name === "" ? null : name;
}

/** `[image]`, or `[image file_…]` if its bytes were moved to a file. */
function traceOf(part: Part, message: Message): string {
  const word = /"(?:type|mimeType|mime_type|media_type)":"[^"]*?(image|audio|video)/.exec(part.metadata ?? "")?.[1];
  const moved = message.moved.find(({ path }) => path[0] === "content" && path[1] === message.parts.indexOf(part));
  return `[${[word ?? "file", ...(moved === undefined ? [] : [moved.file])].join(" ")}]`;
}
