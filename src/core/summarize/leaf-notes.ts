/**
 * Splits what a model writes below the summary of a leaf off it: words for search, and which entries hold standing
 * instructions. The form is strict and simple. Whatever is missing or malformed is ignored, and the summary is the same.
 */

import { findNamed } from "../messages/standing.ts";
import { messageName, type Message, type NewPin, type SearchWords } from "../model/types.ts";
import { footerStart, searchWordsHeading, standingHeading } from "../prompts/summary.ts";

/** Entries are named by their numbers in the prompt, from 1. */
export interface LeafNotes {
  readonly searchWords: ReadonlyMap<number, string>;
  readonly standing: readonly number[];
}

const decorated = (heading: string): string => `^[#*_> \\t-]*${heading.replace(/:$/, "")}[*_ \\t]*[:：][*_ \\t]*`;
const wordsStart = new RegExp(`${decorated(searchWordsHeading)}$`, "im");
const standingStart = new RegExp(`${decorated(standingHeading)}((?:none|nothing|\\d[\\d,;\\s]*)?)\\.?[*_ \\t]*$`, "im");
const noteLine = /^[-*•\s]*\[?(\d{1,5})\]?\s*[:：]\s*(\S.*)$/;

const charactersPerEntry = 240;
const charactersMax = 2_400;

/** Null notes: the answer has none, so an answer that was cut off lacks part of its summary. */
export function splitNotes(answer: string): { readonly summary: string; readonly notes: LeafNotes | null } {
  const at = [wordsStart, standingStart].flatMap((start) => start.exec(answer)?.index ?? []);
  if (at.length === 0) return { summary: answer, notes: null };
  const from = Math.min(...at);
  const below = answer.slice(from);
  // The footer belongs to the summary, wherever the model puts it.
  const footer = [...below.matchAll(footerStart)].at(-1);
  const closing = footer === undefined ? "" : (below.slice(footer.index).split("\n", 1)[0] ?? "");
  return { summary: `${answer.slice(0, from).trimEnd()}\n\n${closing}`.trim(), notes: readNotes(below) };
}

function readNotes(below: string): LeafNotes {
  const searchWords = new Map<number, string>();
  let left = charactersMax;
  for (const line of below.split("\n")) {
    const [, number = "", words = ""] = noteLine.exec(line) ?? [];
    const kept = words.slice(0, charactersPerEntry).toWellFormed().trim();
    if (kept === "" || kept.length > left || searchWords.has(Number(number))) continue;
    searchWords.set(Number(number), kept);
    left -= kept.length;
  }
  const [, listed = ""] = standingStart.exec(below) ?? [];
  return { searchWords, standing: (listed.match(/\d{1,5}/g) ?? []).map(Number) };
}

/** Of one leaf. More are rare, and a model that names everything has not understood, or was told to. */
const pinsMax = 3;

/** What the notes say about these messages. Numbers of others are ignored, and only a user's message is pinned. */
export function applyNotes(
  { searchWords, standing }: LeafNotes,
  messages: readonly Message[],
): { readonly searchWords: readonly SearchWords[]; readonly pins: readonly NewPin[] } {
  const named = standing.flatMap((number) => messages[number - 1] ?? []);
  return {
    searchWords: [...searchWords].flatMap(([number, words]) => {
      const message = messages[number - 1];
      return message === undefined ? [] : [{ message: message.id, words }];
    }),
    pins: [...new Map(named.map((message) => [messageName(message.id), message])).values()]
      .flatMap((message): readonly NewPin[] => {
        const words = message.role === "user" ? findNamed(message) : null;
        if (words === null) return [];
        return [{ message: message.id, words, saidAt: message.at, origin: "model", state: "pinned", reason: "" }];
      })
      .slice(0, pinsMax),
  };
}
