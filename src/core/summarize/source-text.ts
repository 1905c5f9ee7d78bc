/**
 * Writes messages and summaries as labelled text to summarise: who spoke, when, and what. Results name the call that they
 * answer. Reasoning, encoded bytes and results that say nothing are left out; what people and models wrote is not cut.
 */

import type { Passage } from "./extractive.ts";
import type { Message, Part, Summary } from "../model/types.ts";
import { firstLine } from "../base/excerpt.ts";
import { isObject, parseObject, type Json, type JsonObject } from "../base/json.ts";
import { answeredCallOf, inputFieldOf, isFailedResult, resultIdIn, resultToolIn } from "../messages/dialects.ts";
import { formatRange, formatTimestamp } from "../base/time.ts";
import { estimateTokens } from "../base/tokens.ts";
import { matchTies } from "../messages/tool-calls.ts";
import { callText, effectOf } from "./call-text.ts";
import { commandByUser } from "./user-command.ts";
import { outputText, reportsErrors, wordsText } from "./output-text.ts";

/**
 * A passage for each message, one for each result if it has several, none if there is nothing to read in it. Times are in
 * this zone; null leaves them out. If nothing can be read in any message, one passage says so. Numbers count messages.
 */
export function messagePassages(
  messages: readonly Message[],
  zone: string | null,
  isNumbered = false,
): readonly Passage[] {
  const passages = passagesByMessage(messages, zone).flatMap((own, index) =>
    isNumbered ? own.map((passage) => ({ ...passage, number: index + 1 })) : own,
  );
  const [message] = messages;
  if (passages.length > 0 || message === undefined) return passages;
  const nothing = toPassage({ message, who: [message.role], kind: message.role, text: "[no text]" }, zone);
  return [isNumbered ? { ...nothing, number: 1 } : nothing];
}

/** The same for each message apart; empty if there is nothing to read in it. */
export function passagesByMessage(messages: readonly Message[], zone: string | null): readonly (readonly Passage[])[] {
  const read = messages.map(readMessage);
  const links = linkCalls(read);
  return read.map((each) => readingsOf(each, links).map((reading) => toPassage(reading, zone)));
}

function toPassage({ message: { at }, who, kind, text }: Reading, zone: string | null): Passage {
  const speaker = `[${who.filter((word) => word !== "").join(" · ")}]`;
  return { label: zone === null ? speaker : `[${formatTimestamp(at, zone)}] ${speaker}`, text, kind };
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

/** `label text`, separated by blank lines; a line that looks like a label is escaped. A number begins its label. */
export function sourceText(passages: readonly Passage[]): string {
  return passages
    .map(({ label, text, number }) => {
      const numbered = number === undefined ? label : label.replace("[", `[${number} · `);
      return `${numbered} ${text.replace(forgedLabel, "$&\\")}`;
    })
    .join("\n\n");
}

/** The start of a line that looks like a label. */
const forgedLabel = /^[^\S\n]*(?=\[(?:\d+ · )?(?:\d{4}-\d\d-\d\d \d\d:\d\d|system|user|assistant|tool|summary)\b)/gm;

interface ReadMessage {
  readonly message: Message;
  /** The fields of the host's message, without its content. */
  readonly fields: JsonObject;
  readonly calls: readonly Call[];
  readonly results: readonly Result[];
}

interface Call {
  readonly id: string;
  readonly name: string;
  readonly input: Json;
  readonly part: Part;
}

interface Result {
  /** The id of its call. */
  readonly id: string;
  readonly text: string;
  readonly isFailed: boolean;
}

function readMessage(message: Message): ReadMessage {
  const envelope: Json = JSON.parse(message.envelope ?? "{}");
  const fields = isObject(envelope) ? envelope : {};
  const { role, parts } = message;
  const calls = parts.filter(({ type }) => type === "tool").map(readCall);
  const textOf = (some: readonly Part[]): string => textsOf(message, some).join("\n").trim();
  const results = parts.flatMap((part): readonly Result[] => {
    if (isResult(part))
      return [{ id: part.toolCallId ?? noCall, text: textOf([part]), isFailed: isFailedResult(rawBlock(part)) }];
    const answered = part.type === "tool" ? answeredCallOf(rawBlock(part)) : null;
    return answered === null ? [] : [{ id: answered.id, text: answered.output.trim(), isFailed: answered.isFailed }];
  });
  if (role !== "tool" || results.length > 0) return { message, fields, calls, results };
  const text = parts.length === 0 ? message.text.trim() : textOf(parts);
  return {
    message,
    fields,
    calls,
    results: [{ id: resultIdIn(fields) ?? noCall, text, isFailed: isFailedResult(fields) }],
  };
}

/** Placeholders for missing ids: a result without an id must not match a call without an id. */
const noCall = "\0result";
const noId = "\0call";

/** Some hosts pass tool results in a user message. */
const isResult = (part: Part): boolean => part.type === "text" && part.toolCallId !== null;

/** The name and arguments of a call, which the store keeps as `name {arguments}`, or as the host's block. */
function readCall(part: Part): Call {
  const [id, tool] = [part.toolCallId ?? noId, part.toolName ?? ""];
  const answered = answeredCallOf(rawBlock(part));
  if (answered !== null) return { ...answered, part };
  if (part.text !== null) return { id, name: tool, input: readInput(part.text.slice(tool.length).trim()), part };
  const { name, ...block } = rawBlock(part);
  return { id, name: typeof name === "string" ? name : tool, input: block[inputFieldOf(block) ?? ""] ?? null, part };
}

/** A part as the host wrote it, if the store has kept that. */
function rawBlock({ metadata }: Part): JsonObject {
  const { raw } = parseObject(metadata ?? "{}");
  return isObject(raw) ? raw : {};
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
  readonly callOf: ReadonlyMap<Result, Call>;
  /** The numbers of calls that were open together. */
  readonly numbers: ReadonlyMap<Call | undefined, number>;
  /** Added to a call that has no result, or an empty one, which is not shown by itself. */
  readonly noteOn: (call: Call) => string;
}

function linkCalls(read: readonly ReadMessage[]): Links {
  const ties = read.map(({ calls, results }) => ({ calls, answers: results.map(({ id }) => id) }));
  const callOf = new Map<Result, Call>();
  for (const { call, answer } of matchTies(ties)) {
    const [made, result] = [read[call.at]?.calls[call.nth], read[answer.at]?.results[answer.nth]];
    if (made !== undefined && result !== undefined) callOf.set(result, made);
  }
  /** Calls as they are made, and again as they are answered. */
  const events = read.flatMap(({ calls, results }) => [...results.map((result) => callOf.get(result)), ...calls]);
  const answered = new Set(callOf.values());
  const open = new Set<Call>();
  const numbers = new Map<Call, number>();
  for (const [at, call] of events.entries()) {
    if (call === undefined || !answered.has(call) || open.delete(call)) continue;
    if (open.size > 0 || events[at + 1] !== call) numbers.set(call, numbers.size + 1);
    open.add(call);
  }
  const silent = new Set([...callOf].flatMap(([result, call]) => (isSilent(result) ? [call] : [])));
  const noteOn = (call: Call): string => (silent.has(call) ? " (no output)" : answered.has(call) ? "" : " (no result)");
  return { callOf, numbers, noteOn };
}

interface Reading {
  readonly message: Message;
  /** Words of the label; empty ones are left out. */
  readonly who: readonly string[];
  readonly kind: Message["role"];
  readonly text: string;
}

function readingsOf(read: ReadMessage, links: Links): readonly Reading[] {
  const { message, fields, results } = read;
  const { role } = message;
  const speaker = speakerOf(fields);
  const run = results.length > 0 ? null : commandByUser(message, fields);
  if (run !== null) {
    const ran: Reading = { message, who: ["user", "ran a command"], kind: "tool", text: run.text };
    const said: Reading = { message, who: ["user", speaker ?? ""], kind: "user", text: wordsText(run.words) };
    return [ran, said].filter(({ text }) => text !== "");
  }
  const readings = results.map((result): Reading => {
    const call = links.callOf.get(result);
    const number = links.numbers.get(call);
    const tool = (role === "tool" ? speaker : null) ?? asName(call?.name) ?? "";
    const numbered = number === undefined ? tool : `${tool} #${number}`.trim();
    const who = ["tool", numbered, result.isFailed ? "failed" : ""];
    return { message, who, kind: "tool", text: resultText(result, call) };
  });
  const said: Reading = {
    message,
    who: [role, speaker ?? "", isInterrupted(fields) ? "interrupted" : ""],
    kind: role,
    text: role === "tool" ? "" : spokenText(read, links),
  };
  // A call with its own result is said before that.
  const inOrder = role === "assistant" ? [said, ...readings] : [...readings, said];
  return inOrder.filter(({ text }) => text !== "");
}

const isSilent = ({ text, isFailed }: Result): boolean => !isFailed && /^(?:\(?no output\)?)?$/i.test(text);

/** Empty for a result that says nothing, or only that a file was changed, which the call says. */
function resultText(result: Result, call: Call | undefined): string {
  const { text, isFailed } = result;
  const effect = call === undefined || isFailed ? "other" : effectOf(call.input);
  if (isSilent(result) || (effect === "changes a file" && isDone(text))) return "";
  return outputText(text, effect === "reads a file" ? "file" : effect === "checks" ? "check" : "output");
}

/** Whether a result says no more than that a file was changed. One that was refused says so without any mark of failure. */
function isDone(text: string): boolean {
  const [first = ""] = text.split("\n", 1);
  return done.test(first) && !undone.test(first) && !reportsErrors(text);
}

const done =
  /^\W{0,3}(?:(?:the )?file\b.{0,300}?\b)?(?:success|done|ok\b|edited|updated|wrote|written|created|saved|applied|replaced|inserted|overwrit|overwrote)/i;
const undone = /\b(?:not?|nothing|none|0|fail\w*|reject\w*|declin\w*|skip\w*|den(?:y|ied)|wait\w*|would)\b/i;

/** What somebody wrote, with the calls and media in it. */
function spokenText({ message, calls }: ReadMessage, { numbers, noteOn }: Links): string {
  if (message.parts.length === 0) return wordsText(message.text).trim();
  const callOfPart = new Map(calls.map((call) => [call.part, call]));
  const texts = message.parts.flatMap((part) => {
    const call = callOfPart.get(part);
    if (call === undefined) return isResult(part) ? [] : textsOf(message, [part]).map(wordsText);
    const text = callText(asName(call.name) ?? "call", call.input, numbers.get(call) ?? null);
    return [text.replace(/$/m, noteOn(call))];
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
  const sender = isObject(host) ? host["senderName"] : null;
  const names = [fields["name"], fields["senderName"], sender, resultToolIn(fields)];
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
