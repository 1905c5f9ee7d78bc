/** All that is known of what is selected in the tree of summaries. */

import { messageName } from "../../core/model.ts";
import { formatCount, formatRange, formatTimestamp } from "../../core/text.ts";
import type { Page } from "../../show/page.ts";
import { facts, harmless, oneLine, plural, wrap } from "../../show/render.ts";
import { levelWords, messageRuns } from "../../show/summaries.ts";
import { rule } from "../draw.ts";
import type { DagDetail } from "./dag-asks.ts";
import type { Row } from "./dag-tree.ts";

export const kindOf = (depth: number): "leaf" | "condensed" => (depth === 0 ? "leaf" : "condensed");

export function detailLines(detail: DagDetail, page: Page, columns: number): readonly string[] {
  const { paint } = page;
  const [name, what, pairs, text] = detail.kind === "summary" ? ofSummary(detail, page) : ofMessage(detail, page);
  return [
    `${paint.strong(name)}  ${what}`,
    ...facts(pairs, paint, columns),
    rule("", columns, paint),
    ...textLines(text, columns),
  ];
}

type Told = readonly [
  name: string,
  what: string,
  pairs: readonly (readonly [string, ...(readonly string[])])[],
  text: string,
];

function ofSummary(detail: Extract<DagDetail, { readonly kind: "summary" }>, { paint, zone }: Page): Told {
  const { summary, sources, derived, carriedBy, origin } = detail;
  const { id, depth, level, model, tokens, earliestAt, latestAt, createdAt, revision, descendants } = summary;
  const { rewriteReason, carriedFrom, fileIds } = summary;
  const madeFrom =
    sources.messages.length > 0
      ? `${plural(sources.messages.length, "message")}: ${messageRuns(sources.messages)}`
      : sources.summaries.length > 0
        ? `${plural(sources.summaries.length, "summary", "summaries")}: ${someOf(sources.summaries)}`
        : "nothing that is here";
  const carried = `over from ${carriedFrom}${origin === null ? ", which is not here any more" : `, of conversation ${origin}`}`;
  const rewritten = revision === 0 ? "" : `, written anew ${revision === 1 ? "once" : `${revision} times`}`;
  return [
    id,
    paint.depth(depth, `d${depth} ${kindOf(depth)}`),
    [
      ...(earliestAt && latestAt ? [["when", formatRange(earliestAt, latestAt, zone)] as const] : []),
      ["tokens", formatCount(tokens)],
      ["level", level === "normal" ? level : paint.caution(`${level}: ${levelWords[level]}`)],
      ["model", model === null ? (level === "normal" ? "not recorded" : "none") : oneLine(model)],
      ["created", `${formatTimestamp(createdAt, zone)}${rewritten}`],
      ...(rewriteReason === null ? [] : [["stale", paint.caution(oneLine(rewriteReason))] as const]),
      ...(carriedFrom === null ? [] : [["carried", carried] as const]),
      ["made from", madeFrom],
      ...(descendants > sources.summaries.length
        ? [["below it", `${plural(descendants, "summary", "summaries")} in all`] as const]
        : []),
      ...(derived.length === 0 ? [] : [["made into", someOf(derived)] as const]),
      ...(carriedBy.length === 0 ? [] : [["carried by", someOf(carriedBy)] as const]),
      ...(fileIds.length === 0 ? [] : [["files", someOf(fileIds)] as const]),
    ],
    summary.text,
  ];
}

function ofMessage({ message, text }: Extract<DagDetail, { readonly kind: "message" }>, { paint, zone }: Page): Told {
  const { id, role, at, tokens, seq } = message;
  return [
    messageName(id),
    paint.role(role, role),
    [
      ["when", formatTimestamp(at, zone)],
      ["place", formatCount(seq)],
      ["tokens", formatCount(tokens)],
    ],
    text,
  ];
}

const namedMax = 3;

const someOf = (ids: readonly string[]): string =>
  ids.slice(0, namedMax).join(", ") + (ids.length > namedMax ? ` and ${formatCount(ids.length - namedMax)} more` : "");

export const textLines = (text: string, columns: number): readonly string[] =>
  harmless(text)
    .replaceAll("\t", "    ")
    .split("\n")
    .flatMap((line) => (line.trim() === "" ? [""] : wrap(line, columns)));

/** What is there to say of a row that is neither a summary nor a message. */
export function rowWords(row: Row, columns: number): readonly string[] {
  if (row.kind === "run") return [plural(row.count, "message"), "", ...wrap(runWords[row.place], columns)];
  if (row.kind === "outside") return ["not in the context", "", ...wrap(outsideWords, columns)];
  return [];
}

const runWords = {
  tail: "The fresh tail: the newest messages, which are never folded. enter shows them.",
  older: "Messages that no summary stands for yet. enter shows them.",
  anywhere: "Messages that no summary stands for. They lie anywhere among the oldest items. enter shows the first.",
} as const;

const outsideWords =
  "Summaries that the context does not reach and nothing was made from: they were dissolved, belong to a branch that " +
  "was left, or another conversation carries their text. Nothing is lost with them: what they stood for is in the " +
  "context, or in other summaries.";
