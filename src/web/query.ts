/** Decodes what a request asks: values of a query, and fields of a body. Throws `invalid` with the name of what is wrong. */

import { LcmError } from "../core/base/errors.ts";
import { isObject, type Json, type JsonObject } from "../core/base/json.ts";
import { parseTimestamp, type Timestamp } from "../core/base/time.ts";
import { isFileId, isSummaryId } from "../core/model/types.ts";
import type { ConversationId, FileId, MessageId, SummaryId } from "../core/model/types.ts";

const textMax = 10_000;

const wrong = (name: string, what: string): LcmError => new LcmError("invalid", `${name} must be ${what}`);

/** What was given, or undefined if it was left out. */
export interface Query {
  text(name: string): string | undefined;
  flag(name: string): boolean;
  whole(name: string, most?: number): number | undefined;
  oneOf<T extends string>(name: string, words: readonly T[]): T | undefined;
  someOf<T extends string>(name: string, words: readonly T[]): readonly T[] | undefined;
  time(name: string): Timestamp | undefined;
  conversation(name?: string): ConversationId | undefined;
  conversations(name: string, most: number): readonly ConversationId[];
  message(name: string): MessageId | undefined;
  summary(name: string): SummaryId | undefined;
  file(name: string): FileId | undefined;
}

export function createQuery(words: URLSearchParams): Query {
  const text = (name: string): string | undefined => {
    const value = words.get(name);
    if (value !== null && value.length > textMax) throw new LcmError("invalid", `${name} is too long`);
    return value ?? undefined;
  };
  const whole = (name: string, most = Number.MAX_SAFE_INTEGER): number | undefined => {
    const value = text(name);
    if (value === undefined) return undefined;
    const number = /^\d{1,16}$/.test(value) ? Number(value) : NaN;
    if (!(number <= most)) throw wrong(name, `a whole number up to ${most}`);
    return number;
  };
  const oneOf = <T extends string>(name: string, among: readonly T[]): T | undefined => {
    const value = text(name);
    return value === undefined ? undefined : wordAmong(name, value, among);
  };
  return {
    text,
    flag: (name) => oneOf(name, ["true", "false"]) === "true",
    whole,
    oneOf,
    someOf: (name, among) =>
      text(name)
        ?.split(",")
        .filter((word) => word !== "")
        .map((word) => wordAmong(name, word, among)),
    time(name) {
      const value = text(name);
      if (value === undefined) return undefined;
      const time = parseTimestamp(value);
      if (time === null) throw wrong(name, "a time such as 2026-02-17T07:37:00.000Z");
      return time;
    },
    conversation: (name = "conversation") => whole(name) as ConversationId | undefined,
    conversations(name, most) {
      const ids = (text(name) ?? "").split(",").filter((id) => id !== "");
      if (ids.length > most || !ids.every((id) => /^\d{1,9}$/.test(id)))
        throw wrong(name, `up to ${most} numbers of conversations`);
      return ids.map((id) => Number(id) as ConversationId);
    },
    message: (name) => whole(name) as MessageId | undefined,
    summary: (name) => idAs(name, text(name), isSummaryId),
    file: (name) => idAs(name, text(name), isFileId),
  };
}

function wordAmong<T extends string>(name: string, value: string, among: readonly T[]): T {
  const found = among.find((word) => word === value);
  if (found === undefined) throw wrong(name, among.join(" or "));
  return found;
}

function idAs<T extends string>(name: string, id: string | undefined, isId: (id: string) => id is T & string) {
  if (id !== undefined && !isId(id)) throw wrong(name, "an id");
  return id;
}

/** What a request cannot do without. */
export function must<T>(name: string, value: T | undefined): T {
  if (value === undefined) throw new LcmError("invalid", `${name} is missing`);
  return value;
}

// ── Bodies ───────────────────────────────────────────────────────────────────────────────────────────────────────────

export function bodyObject(body: Json | undefined, name = "the body"): JsonObject {
  if (body === undefined || !isObject(body)) throw wrong(name, "a JSON object");
  return body;
}

export function textIn(body: JsonObject, name: string): string {
  const value = body[name];
  if (typeof value !== "string" || value.length > textMax) throw wrong(name, "a text");
  return value;
}

/** False if it is left out. */
export function flagIn(body: JsonObject, name: string): boolean {
  const value = body[name] ?? false;
  if (typeof value !== "boolean") throw wrong(name, "true or false");
  return value;
}

export function wholeIn(body: JsonObject, name: string): number {
  const value = body[name];
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) throw wrong(name, "a whole number");
  return value;
}

export const conversationIn = (body: JsonObject, name = "conversation"): ConversationId =>
  wholeIn(body, name) as ConversationId;

export function summaryIn(body: JsonObject, name = "summary"): SummaryId {
  const id = textIn(body, name);
  if (!isSummaryId(id)) throw wrong(name, "the id of a summary");
  return id;
}
