/** Facts that a model found in messages: checks their quotes, counts them, and writes them as lines. Pure. */

import { formatCount, plural } from "../../base/format.ts";
import { isObject, type Json, type JsonObject } from "../../base/json.ts";
import { formatTimestamp } from "../../base/time.ts";
import { messageName } from "../../model/types.ts";
import type { MapItem } from "./items.ts";
import type { Mapped, MapReport } from "./map.ts";

export interface Fact extends Pick<MapItem, "id" | "role" | "at"> {
  readonly subject: string;
  readonly statement: string;
  readonly quote: string;
}

/** Computed, not guessed by a model. */
export interface FactCounts {
  readonly facts: number;
  /** Messages with at least one fact. */
  readonly matching: number;
  /** Most frequent first. */
  readonly subjects: readonly { readonly subject: string; readonly facts: number; readonly messages: number }[];
}

/** A result without the facts whose quote is not in the message, and how many those were. */
export function verifyFacts(item: Pick<MapItem, "text">, result: Json): Json {
  const given = rawFacts(result);
  const said = plain(item.text);
  const facts = given.filter(({ quote }) => typeof quote === "string" && isSaid(quote, said));
  return { facts, dropped: given.length - facts.length };
}

const rawFacts = (result: Json): readonly JsonObject[] => {
  const { facts } = isObject(result) ? result : {};
  return Array.isArray(facts) ? facts.filter(isObject) : [];
};

/** A quote of a few characters proves nothing, unless there is no more. */
function isSaid(quote: string, said: string): boolean {
  const words = plain(quote).replace(/^[\s"'“”„«»‘’.…]+|[\s"'“”„«»‘’.…]+$/gu, "");
  return /[\p{L}\p{N}].*[\p{L}\p{N}]|\p{Lo}/u.test(words) && said.includes(words);
}

/** Prompts escape some brackets, and models reflow lines. */
const plain = (text: string): string => text.replaceAll("&lt;", "<").replace(/\s+/g, " ");

export function factsIn(results: readonly Mapped[]): { readonly facts: readonly Fact[]; readonly dropped: number } {
  let dropped = 0;
  const facts = results.flatMap(({ id, role, at, result }) => {
    if (isObject(result) && typeof result["dropped"] === "number") dropped += result["dropped"];
    return rawFacts(result).map(({ subject, statement, quote }): Fact => {
      const words = { subject: oneLine(subject).toLowerCase(), statement: oneLine(statement), quote: oneLine(quote) };
      return { id, role, at, ...words };
    });
  });
  return { facts, dropped };
}

/** On one line, no text can pass for another fact. */
const oneLine = (text: Json | undefined): string => (typeof text === "string" ? text.replace(/\s+/g, " ").trim() : "");

export function countFacts(facts: readonly Fact[]): FactCounts {
  const subjects = [...Map.groupBy(facts, ({ subject }) => subject)].map(([subject, own]) => ({
    subject,
    facts: own.length,
    messages: new Set(own.map(({ id }) => id)).size,
  }));
  return {
    facts: facts.length,
    matching: new Set(facts.map(({ id }) => id)).size,
    subjects: subjects.toSorted((one, other) => other.facts - one.facts),
  };
}

const subjectsShown = 200;

/** The counts as lines for a model or a person. */
export function countLines({ facts, matching, subjects }: FactCounts, { results, unread }: MapReport): string {
  const more = subjects.length - subjectsShown;
  return [
    `Counted: ${plural(results.length, "message")} read${unread.length === 0 ? "" : `, ${formatCount(unread.length)} not read`}; ` +
      `${plural(facts, "fact")} in ${plural(matching, "message")}; ${plural(subjects.length, "distinct subject")}.`,
    ...subjects
      .slice(0, subjectsShown)
      .map((each) => `- ${each.subject}: ${plural(each.facts, "fact")} in ${plural(each.messages, "message")}`),
    ...(more > 0 ? [`- and ${plural(more, "more subject")}`] : []),
  ].join("\n");
}

export const factLine = ({ id, at, role, subject, statement, quote }: Fact): string =>
  `[${messageName(id)}] ${formatTimestamp(at)} ${role}, ${subject}: ${statement} (“${quote}”)`;
