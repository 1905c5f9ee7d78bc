/**
 * Taking something back out of what never loses anything: what a message looks like once it, or a secret in it, is
 * forgotten. The row stays, so that a replay of the transcript does not bring the content back, calls keep their
 * results, and the order of the conversation is whole.
 */

import { dialectWords, resultFields } from "../messages/dialects.ts";
import { estimateMessageTokens, messageFromStore, stringAt, textOfParts } from "../messages/codec.ts";
import type { Message, MovedContent, Part } from "../model/types.ts";
import { firstLine } from "../base/excerpt.ts";
import type { Json, JsonObject } from "../base/json.ts";
import { isObject } from "../base/json.ts";
import { forgottenMark } from "../model/types.ts";

export type Redacted = Pick<Message, "parts" | "envelope" | "entry" | "tokens" | "text" | "moved">;

/** A message of which only its place is left. */
export function forgetMessage(message: Message): Redacted {
  const envelope = keptFields(message.envelope, tieFields);
  const isShort = isShortEntry(message.entry);
  const entry = isShort ? {} : keptFields(message.entry, placeFields);
  return onlyMark(
    { role: message.role, ...envelope },
    isShort ? message.entry : JSON.stringify({ ...entry, message: null }),
  );
}

/**
 * The same message with every occurrence of a secret blotted out, also inside JSON and in JSON inside JSON. Where that
 * is not enough (it runs across blocks, or over the fields of a JSON text), the message is forgotten as a whole.
 */
export function redactMessage(message: Message, secret: string): Redacted {
  const forms = formsOf(secret);
  const blotted = blotMessage(message, forms);
  if (!holds(blotted, forms)) return blotted;
  const place = forgetMessage({ ...message, envelope: blotted.envelope, entry: blotted.entry });
  if (!holds(place, forms)) return place;
  return onlyMark({ role: message.role }, isShortEntry(message.entry) ? message.entry : '{"message":null}');
}

function blotMessage(message: Message, forms: Forms): Redacted {
  const parts = message.parts.map((part) => blotPart(part, forms));
  const entry = isShortEntry(message.entry) ? message.entry : blotJson(message.entry, forms);
  const left = redacted(parts, blotJson(message.envelope, forms), entry);
  return { ...left, moved: message.moved.length === 0 ? [] : stillMoved(message, left, forms) };
}

/**
 * Where the references to files are in what is left. One that no longer names its file, or can no longer be told from
 * what is around it, is only words from now on.
 */
function stillMoved(message: Message, left: Redacted, forms: Forms): readonly MovedContent[] {
  const before = messageFromStore(message);
  const after = messageFromStore({ ...message, ...left });
  const byString = Map.groupBy(message.moved, ({ path }) => JSON.stringify(path));
  return [...byString.values()].flatMap((moved) => {
    const path = (moved[0]?.path ?? []).map((step) => (typeof step === "string" ? blotText(step, forms) : step));
    const old = stringAt(before, moved[0]?.path ?? []);
    let [end, blotted] = [0, ""];
    const places = moved.flatMap(({ file, from, length }) => {
      blotted += blotText(old.slice(end, from), forms);
      const reference = blotText(old.slice(from, from + length), forms);
      const place = { file, path, from: blotted.length, length: reference.length };
      blotted += reference;
      end = from + length;
      return reference.startsWith(old.slice(from, old.indexOf(file, from) + file.length)) ? [place] : [];
    });
    return blotted + blotText(old.slice(end), forms) === stringAt(after, path) ? places : [];
  });
}

/** Letters for fields that the row knows (see content.ts): nothing in it was said by anybody. */
const isShortEntry = (entry: string | null): boolean => entry === null || !entry.startsWith("{");

/** What is left of a message, by which it is tied to others; and of the line around it. */
const tieFields = ["role", ...resultFields(), "timestamp"];
const placeFields = "type id parentId timestamp".split(" ");

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

function holds({ text, parts, envelope, entry, moved }: Redacted, forms: Forms): boolean {
  const told = parts.flatMap((part) => [part.text, part.kept, part.toolCallId, part.toolName, part.metadata]);
  const line = isShortEntry(entry) ? null : entry;
  const steps = moved.flatMap(({ path }) => path.map(String));
  return [text, envelope, line, ...told, ...steps].some((words) => words !== null && holdsAny(words, forms));
}

function blotPart(part: Part, forms: Forms): Part {
  const toolName = part.toolName === null ? null : blotText(part.toolName, forms);
  return {
    type: part.type,
    text: part.text === null ? null : blotSaid(part, toolName, forms),
    kept: part.kept === null ? null : blotText(part.kept, forms),
    toolCallId: part.toolCallId === null ? null : blotText(part.toolCallId, forms),
    toolName,
    metadata: blotJson(part.metadata, forms),
  };
}

/** The arguments of a call must stay JSON, or the call could not be rebuilt. */
function blotSaid(part: Part, toolName: string | null, forms: Forms): string {
  const text = part.text ?? "";
  const isCall = part.type === "tool" && part.toolName !== null && text.startsWith(`${part.toolName} {`);
  if (!isCall) return blotText(text, forms);
  const input = text.slice((part.toolName ?? "").length + 1);
  try {
    return `${toolName} ${blotJson(input, forms)}`;
  } catch {
    // A call whose arguments were never JSON is rebuilt from its metadata; here it is only text.
    return blotText(text, forms);
  }
}

// ── Text and JSON ────────────────────────────────────────────────────────────────────────────────────────────────────

/** Holds no form of the secret afterwards: where blotting makes a new one out of what is around it, nothing stays. */
export const redactText = (text: string, secret: string): string => blotText(text, formsOf(secret));

function blotText(text: string, forms: Forms): string {
  const left = forms.reduce((words, form) => words.replaceAll(form, forgottenMark), text);
  return holdsAny(left, forms) ? forgottenMark : left;
}

/**
 * Also for JSON text: it is taken apart, so that a number or a key can be forgotten and the rest stays valid. A secret
 * that is itself a piece of JSON may still stand in it afterwards; whoever keeps the text must look (`holdsSecret`).
 */
export const redactJson = <T extends string | null>(json: T, secret: string): T | string =>
  blotJson(json, formsOf(secret));

function blotJson<T extends string | null>(json: T, forms: Forms): T | string {
  if (json === null || !holdsAny(json, forms)) return json;
  return JSON.stringify(blotValue(JSON.parse(json), forms));
}

function blotValue(value: Json, forms: Forms): Json {
  if (typeof value === "string") return blotText(value, forms);
  if (typeof value === "number") return holdsAny(String(value), forms) ? forgottenMark : value;
  if (Array.isArray(value)) return value.map((item: Json) => blotValue(item, forms));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([field, inner]) => [blotText(field, forms), blotValue(inner ?? null, forms)]),
  );
}

/** A line of the transcript without the secret; only its place where blotting is not enough. */
export function redactLine(raw: string, secret: string): string {
  const forms = formsOf(secret);
  const left = blotJson(raw, forms);
  if (!holdsAny(left, forms)) return left;
  const place = JSON.stringify({ ...keptFields(left, placeFields), forgotten: forgottenMark });
  return holdsAny(place, forms) ? JSON.stringify({ forgotten: forgottenMark }) : place;
}

// ── Titles ───────────────────────────────────────────────────────────────────────────────────────────────────────────

const titleLengthMax = 80;

/** Whether a title repeats what a message says: the beginning that an import has taken for it, or any piece. */
export function isTitleFrom(title: string, message: Pick<Message, "text">): boolean {
  if (title.trim() === "" || message.text === forgottenMark) return false;
  const stem = onOneLine(title.replace(/…$/u, ""));
  return title === firstLine(message.text, titleLengthMax) || (stem !== "" && onOneLine(message.text).includes(stem));
}

/** A title is one line, and cut: it may hold a secret with other blanks, or only the beginning of one. */
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

// ── Secrets ──────────────────────────────────────────────────────────────────────────────────────────────────────────

type Forms = readonly string[];

/** A shorter one would blot out parts of unrelated words. */
export const secretLengthMin = 4;

/** With these stored messages are written down; without them a message could not be put together again. */
const ownWords: readonly string[] = [
  ..."timestamp blocks calls type parentId rest field true false".split(" "),
  ...dialectWords(),
]
  .concat(["user", "assistant", "system", "tool"].map((role) => JSON.stringify({ role, content: "text" })))
  .concat('{"message":null}', forgottenMark);

/** No secret: every stored message would hold it, before and after. */
export const isOwnWord = (secret: string): boolean => ownWords.some((word) => word.includes(secret));

export const holdsSecret = (text: string, secret: string): boolean => holdsAny(text, formsOf(secret));

const holdsAny = (text: string, forms: Forms): boolean => forms.some((form) => text.includes(form));

const escapingsMax = 3;

/**
 * How a secret can stand in stored text: as it is, and as JSON writes it, up to three times over, by programs that
 * write other letters than ASCII as they are or as \uXXXX and a slash with or without a backslash. An ordinary word has
 * one form; a bad one some eighty. Longest first.
 */
export function formsOf(secret: string): Forms {
  const forms = new Set([secret]);
  let latest: Forms = [secret];
  for (let level = 0; level < escapingsMax; level++) {
    latest = [...new Set(latest.flatMap(escapedForms))];
    for (const form of latest) forms.add(form);
  }
  return [...forms].sort((a, b) => b.length - a.length);
}

function escapedForms(text: string): Forms {
  const escaped = JSON.stringify(text).slice(1, -1);
  const lower = escaped.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${hexOf(unit)}`);
  const upper = escaped.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${hexOf(unit).toUpperCase()}`);
  return [escaped, lower, upper].flatMap((form) => [form, form.replaceAll("/", String.raw`\/`)]);
}

const hexOf = (unit: string): string => unit.charCodeAt(0).toString(16).padStart(4, "0");
