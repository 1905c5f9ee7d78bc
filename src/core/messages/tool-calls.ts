/**
 * Matches tool results with their calls, and finds where a list of messages can be cut without separating them.
 * Ids are not unique: some providers count from 0 in every turn. So a result belongs to the nearest earlier call with
 * its id that has no result yet, otherwise to the nearest later one, since rows can arrive out of order.
 */

import type { HostMessage } from "./codec.ts";
import type { Json } from "../base/json.ts";
import { callBeside, callFields, callOfBlock, isResultRole, resultOfBlock, resultOfMessage } from "./dialects.ts";
import type { HostCall, HostResult } from "./dialects.ts";

/** The calls of a message, and the ids of the calls that it answers. */
export interface Ties {
  readonly calls: readonly { readonly id: string; readonly name: string }[];
  readonly answers: readonly string[];
}

export function tiesOf(raw: HostMessage): Ties {
  const calls = callsOf(raw);
  const answers = resultsOf(raw);
  if (calls.length === 0 && answers.length === 0) return untied;
  return { calls, answers: answers.map(({ id }) => id) };
}

export const untied: Ties = { calls: [], answers: [] };
const none: readonly never[] = [];

export function callsOf(raw: HostMessage): readonly HostCall[] {
  if (raw["role"] !== "assistant") return none;
  const calls = listOf(raw["content"]).map(callOfBlock);
  for (const place of callFields) for (const call of listOf(raw[place.field])) calls.push(callBeside(call, place));
  return calls.filter((call) => call !== null);
}

const listOf = (value: Json | undefined): readonly Json[] => (Array.isArray(value) ? value : none);

export function resultsOf(raw: HostMessage): readonly HostResult[] {
  const result = resultOfMessage(raw);
  if (result !== null) return [result];
  if (raw["role"] !== "user" && !isResultRole(raw["role"])) return none;
  return listOf(raw["content"])
    .map(resultOfBlock)
    .filter((found) => found !== null);
}

/** The nth call, or result, of the message at a position of the list. */
export interface TiePlace {
  readonly at: number;
  readonly nth: number;
}

interface Pair {
  readonly call: TiePlace;
  readonly answer: TiePlace;
}

export function matchTies(ties: readonly Ties[]): readonly Pair[] {
  const pairs: Pair[] = [];
  /** Calls without a result yet, by id: for each message, the nearest last, which of its calls they are. */
  const open = new Map<string, { readonly at: number; readonly nths: number[] }[]>();
  const early: { readonly id: string; readonly answer: TiePlace }[] = [];
  /** False if no open call has its id. */
  const answerNearest = (id: string, answer: TiePlace): boolean => {
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
  // Calls that are still open come after all of these results: an earlier one would have been taken.
  for (const { id, answer } of early) answerNearest(id, answer);
  return pairs;
}

/** Positions 0…n, including both, where the list can be cut without separating a call from its result. */
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
