/**
 * Words for search from relative times: who asks what was planned for 17 November finds the message of the 18th that says
 * "yesterday". Indexed with their message when it is folded, as the words that a model writes for search are.
 */

import { findRelativeTimes, formatDays, writeDays } from "../base/relative-time.ts";
import type { Message, SearchWords } from "../model/types.ts";

/** Dates that one message is found by. */
const datesMax = 3;

export function dateWords(messages: readonly Message[], zone: string): readonly SearchWords[] {
  return messages.flatMap((message) => {
    // Output of tools has relative times of other days, as a log does.
    if (message.role !== "user" && message.role !== "assistant") return [];
    const times = findRelativeTimes(message.text, message.at, zone);
    const dates = times.map((time) => `${writeDays(time)} (${formatDays(time)})`);
    const words = [...new Set(dates)].slice(0, datesMax).join(", ");
    return words === "" ? [] : [{ message: message.id, words }];
  });
}

/** Both, message by message. */
export function joinWords(one: readonly SearchWords[], other: readonly SearchWords[]): readonly SearchWords[] {
  const joined = new Map(one.map((each) => [each.message, each.words]));
  for (const { message, words } of other) {
    const before = joined.get(message);
    joined.set(message, before === undefined ? words : `${before}, ${words}`);
  }
  return [...joined].map(([message, words]) => ({ message, words }));
}
