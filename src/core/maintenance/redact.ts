/**
 * Redacts a message, or a secret in messages, JSON, transcript lines and titles.
 * The row of a forgotten message stays, so a replay of the transcript does not restore its content, and tool calls keep
 * their results.
 */

import { dialectWords, resultFields } from "../messages/dialects.ts";
import { estimateMessageTokens, isSealed, messageFromStore, stringAt, textOfParts } from "../messages/codec.ts";
import { firstLine } from "../base/excerpt.ts";
import { isObject, isTooDeep, jsonText, parseObject, type Json, type JsonObject } from "../base/json.ts";
import { forgottenMark, type Message, type MovedContent, type Part } from "../model/types.ts";

export type Redacted = Pick<Message, "parts" | "envelope" | "entry" | "tokens" | "text" | "moved">;

/** Removes the content of a message and keeps its place. */
export function forgetMessage(message: Message): Redacted {
  const envelope = keptFields(message.envelope, tieFields);
  return onlyMark(
    { role: message.role, ...envelope },
    isShortEntry(message.entry) ? message.entry : placeOfEntry(message.entry ?? ""),
  );
}

/** A line without its message and everything else that says something. */
function placeOfEntry(entry: string): string {
  const { row, field, holds } = parseObject(entry);
  if (!isObject(row)) return JSON.stringify({ ...keptFields(entry, placeFields), message: null });
  const place = keptFields(jsonText(row), placeFields);
  if (typeof field !== "string") return JSON.stringify({ row: { ...place, forgotten: forgottenMark } });
  return JSON.stringify({ row: { ...place, [field]: null }, field, holds });
}

/**
 * Redacts every occurrence of a secret, also inside nested JSON. If that is not enough, because the secret spans several
 * blocks or JSON fields, the whole message is forgotten.
 */
export function redactMessage(message: Message, secret: string): Redacted {
  const forms = escapedForms(secret);
  const left = redactForms(message, forms);
  if (!contains(left, forms)) return left;
  const place = forgetMessage({ ...message, envelope: left.envelope, entry: left.entry });
  if (!contains(place, forms)) return place;
  return onlyMark({ role: message.role }, isShortEntry(message.entry) ? message.entry : '{"message":null}');
}

function redactForms(message: Message, forms: Forms): Redacted {
  const parts = message.parts.map((part) => redactPart(part, forms));
  const entry = isShortEntry(message.entry) ? message.entry : replaceInJson(message.entry, forms);
  // A sealed message stays as it is, or is forgotten.
  const envelope = isSealed(message) ? message.envelope : replaceInJson(message.envelope, forms);
  const left = redacted(parts, envelope, entry);
  return { ...left, moved: message.moved.length === 0 ? [] : stillMoved(message, left, forms) };
}

/** The file references in the redacted message. One that no longer names its file becomes plain text. */
function stillMoved(message: Message, left: Redacted, forms: Forms): readonly MovedContent[] {
  const before = messageFromStore(message);
  const after = messageFromStore({ ...message, ...left });
  const byString = Map.groupBy(message.moved, ({ path }) => JSON.stringify(path));
  return [...byString.values()].flatMap((moved) => {
    const path = (moved[0]?.path ?? []).map((step) => (typeof step === "string" ? replaceForms(step, forms) : step));
    const old = stringAt(before, moved[0]?.path ?? []);
    let [end, redactedText] = [0, ""];
    const places = moved.flatMap(({ file, from, length }) => {
      redactedText += replaceForms(old.slice(end, from), forms);
      const reference = replaceForms(old.slice(from, from + length), forms);
      const place = { file, path, from: redactedText.length, length: reference.length };
      redactedText += reference;
      end = from + length;
      return reference.startsWith(old.slice(from, old.indexOf(file, from) + file.length)) ? [place] : [];
    });
    return redactedText + replaceForms(old.slice(end), forms) === stringAt(after, path) ? places : [];
  });
}

/** A short entry encodes fields as letters (see codec.ts), so it contains no content. */
const isShortEntry = (entry: string | null): boolean => entry === null || !entry.startsWith("{");

/** Fields that stay: those that link a message to others, and those of its transcript line. */
const tieFields = ["role", ...resultFields(), "timestamp"];
const placeFields =
  "type id parentId timestamp uuid parentUuid logicalParentUuid sessionId agentId isSidechain ordinal".split(" ");

function keptFields(json: string | null, fields: readonly string[]): JsonObject {
  const value: Json = json === null ? {} : JSON.parse(json);
  if (!isObject(value)) return {};
  return Object.fromEntries(fields.filter((field) => field in value).map((field) => [field, value[field]]));
}

const onlyMark = (envelope: JsonObject, entry: string | null): Redacted =>
  redacted(
    [{ type: "text", text: forgottenMark, kept: null, toolCallId: null, toolName: null, metadata: null }],
    JSON.stringify({ ...envelope, content: "text" }),
    entry,
  );

const redacted = (parts: readonly Part[], envelope: string | null, entry: string | null): Redacted => ({
  parts,
  envelope,
  entry,
  tokens: estimateMessageTokens(parts),
  text: textOfParts(parts),
  moved: [],
});

function contains({ text, parts, envelope, entry, moved }: Redacted, forms: Forms): boolean {
  const fields = parts.flatMap((part) => [part.text, part.kept, part.toolCallId, part.toolName, part.metadata]);
  const line = isShortEntry(entry) ? null : entry;
  const steps = moved.flatMap(({ path }) => path.map(String));
  return [text, envelope, line, ...fields, ...steps].some((each) => each !== null && containsAny(each, forms));
}

function redactPart(part: Part, forms: Forms): Part {
  const toolName = part.toolName === null ? null : replaceForms(part.toolName, forms);
  return {
    type: part.type,
    text: part.text === null ? null : redactPartText(part, toolName, forms),
    kept: part.kept === null ? null : replaceForms(part.kept, forms),
    toolCallId: part.toolCallId === null ? null : replaceForms(part.toolCallId, forms),
    toolName,
    metadata: replaceInJson(part.metadata, forms),
  };
}

/** The arguments of a call must stay valid JSON, or the call could not be rebuilt. */
function redactPartText(part: Part, toolName: string | null, forms: Forms): string {
  const text = part.text ?? "";
  const isCall = part.type === "tool" && part.toolName !== null && text.startsWith(`${part.toolName} {`);
  if (!isCall) return replaceForms(text, forms);
  const input = text.slice((part.toolName ?? "").length + 1);
  try {
    return `${toolName} ${replaceInJson(input, forms)}`;
  } catch {
    // A call whose arguments were never JSON is rebuilt from its metadata.
    return replaceForms(text, forms);
  }
}

/** The result never contains the secret: if replacing creates a new occurrence, the whole text is replaced. */
export const redactText = (text: string, secret: string): string => replaceForms(text, escapedForms(secret));

function replaceForms(text: string, forms: Forms): string {
  const left = forms.reduce((words, form) => words.replaceAll(form, forgottenMark), text);
  return containsAny(left, forms) ? forgottenMark : left;
}

/**
 * Redacts the values and keys of a JSON text, which stays valid. A secret that is itself a piece of JSON may remain, or
 * one in a value that is nested too deeply, so callers must check with `containsSecret`.
 */
export const redactJson = <T extends string | null>(json: T, secret: string): T | string =>
  replaceInJson(json, escapedForms(secret));

function replaceInJson<T extends string | null>(json: T, forms: Forms): T | string {
  if (json === null || !containsAny(json, forms)) return json;
  const value: Json = JSON.parse(json);
  return isTooDeep(value) ? json : JSON.stringify(replaceInValue(value, forms));
}

function replaceInValue(value: Json, forms: Forms): Json {
  if (typeof value === "string") return replaceForms(value, forms);
  if (typeof value === "number") return containsAny(String(value), forms) ? forgottenMark : value;
  if (Array.isArray(value)) return value.map((item: Json) => replaceInValue(item, forms));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([field, inner]) => [replaceForms(field, forms), replaceInValue(inner ?? null, forms)]),
  );
}

/** Redacts a transcript line; keeps only its place fields if that is not enough. */
export function redactLine(raw: string, secret: string): string {
  const forms = escapedForms(secret);
  const left = replaceInJson(raw, forms);
  if (!containsAny(left, forms)) return left;
  const place = JSON.stringify({ ...keptFields(left, placeFields), forgotten: forgottenMark });
  return containsAny(place, forms) ? JSON.stringify({ forgotten: forgottenMark }) : place;
}

const titleLengthMax = 80;

/** Whether a title repeats text of a message. */
export function isTitleFrom(title: string, message: Pick<Message, "text">): boolean {
  if (title.trim() === "" || message.text === forgottenMark) return false;
  const stem = onOneLine(title.replace(/…$/u, ""));
  return title === firstLine(message.text, titleLengthMax) || (stem !== "" && onOneLine(message.text).includes(stem));
}

/** A title is one line and may be cut, so it can contain a secret with other whitespace, or only its beginning. */
export function redactTitle(title: string, secret: string): string {
  const line = onOneLine(secret);
  const whole = redactText(title, secret);
  const left = line.length < secretLengthMin ? whole : redactText(whole, line);
  const isCut = left.endsWith("…");
  const stem = isCut ? left.slice(0, -1) : left;
  const beginning = firstLineOf(secret);
  const shortest = isCut ? secretLengthMin : Math.max(beginning.length, secretLengthMin);
  for (let length = Math.min(beginning.length, stem.length); length >= shortest; length--) {
    if (stem.endsWith(beginning.slice(0, length))) return `${stem.slice(0, -length)}${forgottenMark}`;
  }
  return left;
}

const firstLineOf = (secret: string): string => onOneLine(/[^\s\p{Cc}].*/u.exec(secret)?.[0] ?? "");
const onOneLine = (text: string): string => text.replace(/[\s\p{Cc}]+/gu, " ").trim();

type Forms = readonly string[];

/** A shorter secret would match parts of unrelated words. */
export const secretLengthMin = 4;

/** Words of our own storage format: without them a message could not be rebuilt. */
const ownWords: readonly string[] = [
  ..."timestamp blocks calls type parentId rest field true false".split(" "),
  ...dialectWords(),
]
  .concat(["user", "assistant", "system", "tool"].map((role) => JSON.stringify({ role, content: "text" })))
  .concat('{"message":null}', forgottenMark);

/** Not a possible secret: every stored message contains it. */
export const isOwnWord = (secret: string): boolean => ownWords.some((word) => word.includes(secret));

export const containsSecret = (text: string, secret: string): boolean => containsAny(text, escapedForms(secret));

const containsAny = (text: string, forms: Forms): boolean => forms.some((form) => text.includes(form));

const escapingsMax = 3;

/**
 * The forms in which a secret can be stored: as it is, and escaped as JSON up to three times, by programs that do or do
 * not escape slashes and non-ASCII letters. An ordinary word has one form, a difficult one about eighty. Longest first.
 */
export function escapedForms(secret: string): Forms {
  const forms = new Set([secret]);
  let latest: Forms = [secret];
  for (let level = 0; level < escapingsMax; level++) {
    latest = [...new Set(latest.flatMap(escapeOnce))];
    for (const form of latest) forms.add(form);
  }
  return [...forms].sort((a, b) => b.length - a.length);
}

function escapeOnce(text: string): Forms {
  const escaped = JSON.stringify(text).slice(1, -1);
  const lower = escaped.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${hexOf(unit)}`);
  const upper = escaped.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${hexOf(unit).toUpperCase()}`);
  return [escaped, lower, upper].flatMap((form) => [form, form.replaceAll("/", String.raw`\/`)]);
}

const hexOf = (unit: string): string => unit.charCodeAt(0).toString(16).padStart(4, "0");
