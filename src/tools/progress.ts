/** What a question is at, for whoever waits for its answer. */

import type { AskProgress } from "../core/question.ts";
import { count } from "./show.ts";

export function progressWords(progress: AskProgress): string {
  switch (progress.kind) {
    case "searching":
      return `searching for ${JSON.stringify(progress.query)}`;
    case "found":
      return `found ${count(progress.summaries, "summary", "summaries")} and ${count(progress.messages, "message")}`;
    case "reading":
      return `reading ${inShort(progress.ids)} (${count(progress.tokens, "token")})`;
    case "asking":
      return `asking ${progress.model}, step ${progress.step}`;
  }
}

const idsShown = 4;

const inShort = (ids: readonly string[]): string => {
  const more = ids.length > idsShown ? ` and ${ids.length - idsShown} more` : "";
  return `${ids.slice(0, idsShown).join(", ")}${more}`;
};
