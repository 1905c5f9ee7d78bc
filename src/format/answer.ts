/** Formats the answer to a question, its sources, and what was not searched. */

import type { Answer } from "../core/recall/ask-types.ts";
import { messageName } from "../core/model/types.ts";
import type { SearchCaveat } from "../core/model/store.ts";
import { caveatSentence } from "../core/recall/grep.ts";
import { plural } from "../core/base/format.ts";
import type { Page } from "./page.ts";
import { textLines } from "./passages.ts";

/** Passages are quoted for models; for people they are indented like all stored text. */
export const answerLines = (page: Pick<Page, "bounds">, { answer, by }: Answer): readonly string[] =>
  answer
    .split("\n")
    .flatMap((line) =>
      by === "excerpts" && line.startsWith(">") ? textLines(page, line.replace(/^> ?/, "")) : textLines(page, line, ""),
    );

/** Ids to look up; passages show their own. */
export const sourcesOf = (answer: Answer): readonly string[] =>
  answer.by === "excerpts" ? [] : [...answer.citedIds, ...answer.citedMessages.map(messageName)];

/** A question is not searched for in files; `lcm grep` does that. */
export const caveatWords = (caveat: SearchCaveat): string =>
  caveat.kind === "files"
    ? `${plural(caveat.files, "large text")} in files not searched; \`lcm grep --scope files\` searches ${caveat.files === 1 ? "it" : "them"}`
    : caveatSentence(caveat, "flags");
