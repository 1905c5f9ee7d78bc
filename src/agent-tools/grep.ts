/** The tool `lcm_grep`: searches everything stored. "No matches" means that everything was searched. */

import type { Lcm } from "../core/lcm.ts";
import { messageName } from "../core/model/types.ts";
import type { SearchCaveat, SearchHit } from "../core/model/store.ts";
import { caveatSentence, type GrepRequest, type GrepResult } from "../core/recall/grep.ts";
import { reachOf, type Reach } from "../core/recall/scope.ts";
import { quote } from "../core/base/excerpt.ts";
import { estimateTokens } from "../core/base/tokens.ts";
import { allConversations, before, conversationId, since, spanOf, textOf, tokenCapOf } from "./arguments.ts";
import { heading, quoteName } from "./text.ts";
import { defineTool, type ToolContext } from "./define.ts";
import type { JsonObject } from "../core/base/json.ts";
import { plural } from "../core/base/format.ts";

const tokenCapDefault = 4_000;

export const grepTool = defineTool({
  name: "lcm_grep",
  label: "Search the conversation",
  description:
    "Search all stored messages, summaries and files, including those no longer in your context. Start here when you " +
    "know a word, name, error or path. Each match has an id: pass it to lcm_describe to read the full text. For a " +
    "question whose answer spans several passages, use lcm_expand_query.",
  audience: "agent",
  example: { pattern: "database migration", limit: 10 },
  parameters: {
    type: "object",
    required: ["pattern"],
    properties: {
      pattern: textOf(
        'What to search for: words and "quoted phrases", or a regular expression (case-insensitive unless it contains capitals).',
      ),
      mode: {
        type: "string",
        enum: ["regex", "full_text"],
        description:
          "Use full_text to find words in any of their forms, ranked, or regex to match the pattern exactly. Default: " +
          "full_text, or regex if the pattern is clearly a regular expression; if that matches nothing, its words.",
      },
      scope: {
        type: "string",
        enum: ["messages", "summaries", "both", "files"],
        default: "both",
        description:
          "Where to search: messages, summaries, both of these, or files (large texts moved out of messages).",
      },
      conversationId,
      allConversations,
      since,
      before,
      limit: {
        type: "integer",
        minimum: 1,
        maximum: 200,
        default: 50,
        description: "Return at most this many matches.",
      },
      sort: {
        type: "string",
        enum: ["recency", "relevance", "hybrid"],
        description:
          "How to order matches. Default: recency for regex, hybrid (relevance, favouring newer ones) for full_text.",
      },
      tokenCap: { ...tokenCapOf("Limit the result to this many tokens."), minimum: 200, default: tokenCapDefault },
    },
  },
  async run(args, context) {
    const { lcm, signal } = context;
    const { tokenCap = tokenCapDefault, ...asked } = args;
    const reach = await reachOf(lcm.store, context.reader, args);
    const timeoutMs = lcm.settings.searchTimeoutSeconds * 1_000;
    const result = await lcm.grep(
      { ...asked, ...spanOf(args, lcm), reach },
      { timeoutMs, ...(signal === undefined ? {} : { signal }) },
    );
    const caveats = result.caveats.map((caveat) => caveatSentence(caveat, "arguments"));
    if (result.hits.length === 0) {
      const lines = [
        await nothingFound(lcm, reach, args, result.caveats),
        ...caveats,
        ...otherWays(result, reach, context),
      ];
      return { text: sentences(lines), details: detailsOf(result, 0, caveats) };
    }
    const blocks = result.hits.map((hit) => `${heading(context, headOf(hit))}\n${quote(hit.snippet)}`);
    const order = orders[args.sort ?? (result.mode === "full_text" ? "hybrid" : "recency")];
    const kind = args.mode === undefined && result.mode === "regex" ? " of this regular expression" : "";
    const framed = (shown: number): Frame => frameOf(result, shown, { kind, order, tokenCap });
    const longest = framed(1); // All blocks or none would need fewer words.
    const room = tokenCap - estimateTokens(sentences([longest.head, ...longest.caveats]));
    const shown = fitting(blocks, room);
    const { head, caveats: left } = framed(shown);
    return {
      text: [sentences([head]), ...blocks.slice(0, shown), sentences(left)].filter((part) => part !== "").join("\n"),
      details: detailsOf(result, shown, left),
    };
  },
});

interface Frame {
  readonly head: string;
  readonly caveats: readonly string[];
}

/** What is said around the first matches: how many there are, and what was left out. */
function frameOf(
  { hits, caveats }: GrepResult,
  shown: number,
  { kind, order, tokenCap }: { readonly kind: string; readonly order: string; readonly tokenCap: number },
): Frame {
  const isLimited = caveats.some((caveat) => caveat.kind === "limit");
  const matches = plural(hits.length, `match${kind}`, `matches${kind}`);
  const found = isLimited ? `more than ${matches}` : matches;
  const sentencesOf = (told: readonly SearchCaveat[]) => told.map((caveat) => caveatSentence(caveat, "arguments"));
  if (shown === hits.length) {
    return { head: `${isLimited ? "the first " : ""}${matches}, ${order}`, caveats: sentencesOf(caveats) };
  }
  // A higher limit would not show more.
  const others = sentencesOf(caveats.filter((caveat) => caveat.kind !== "limit"));
  const cut = `tokenCap ${tokenCap} has no room for ${shown === 0 ? "any of them" : "the others"}: raise tokenCap or narrow the search`;
  return { head: `${shown === 0 ? "none" : shown} of ${found}, ${order}`, caveats: [cut, ...others] };
}

const orders = { recency: "newest first", relevance: "most relevant first", hybrid: "best first" } as const;

function fitting(blocks: readonly string[], tokens: number): number {
  let left = tokens;
  const cut = blocks.findIndex((block) => (left -= estimateTokens(block) + 1) < 0);
  return cut < 0 ? blocks.length : cut;
}

const sentences = (lines: readonly string[]): string =>
  lines.map((line) => `${line.charAt(0).toUpperCase()}${line.slice(1)}${/[.:?]$/.test(line) ? "" : "."}`).join("\n");

function headOf(hit: SearchHit) {
  const { conversation, at: from } = hit;
  switch (hit.kind) {
    case "message":
      return { id: messageName(hit.id), what: [hit.role], from, conversation };
    case "summary":
      return {
        id: hit.id,
        what: [`summary, depth ${hit.depth}`],
        from: hit.earliestAt ?? from,
        to: from,
        conversation,
      };
    case "file":
      return {
        id: `${hit.id} line ${hit.line}`,
        what: hit.name === null ? [] : [quoteName(hit.name)],
        from,
        conversation,
      };
  }
}

type Searched = Pick<GrepRequest, "scope" | "since" | "before">;

/** Whether part of the data was not searched, so an empty result proves nothing. */
export const isUnfinished = ({ kind }: SearchCaveat): boolean =>
  kind === "time" || kind === "unindexed" || kind === "unreadable";

async function nothingFound(
  { store }: Lcm,
  { conversations }: Reach,
  { scope = "both", since, before }: Searched,
  caveats: readonly SearchCaveat[],
): Promise<string> {
  if (caveats.some((caveat) => isUnfinished(caveat) || caveat.kind === "newest_ranked"))
    return "No match found, but not everything was searched";
  const searched = await store.conversations({ includeHidden: conversations !== null });
  const within = conversations === null ? searched : searched.filter(({ id }) => conversations.includes(id));
  const sum = (of: "messages" | "summaries"): number => within.reduce((total, { totals }) => total + totals[of], 0);
  const kinds = {
    messages: plural(sum("messages"), "message"),
    summaries: plural(sum("summaries"), "summary", "summaries"),
    both: `${plural(sum("messages"), "message")} and ${plural(sum("summaries"), "summary", "summaries")}`,
    files: "the stored files",
  } as const;
  const time = since === undefined && before === undefined ? "" : ", limited to the given time range";
  return `No matches in ${kinds[scope]} of ${plural(conversations?.length ?? within.length, "conversation")}${time}`;
}

function otherWays({ mode }: GrepResult, { kind }: Reach, { reader }: ToolContext): readonly string[] {
  return [
    ...(mode === "regex"
      ? ["The pattern was matched exactly; set mode to full_text to search for its words in any order"]
      : []),
    ...(kind === "family" && reader.policy !== "own"
      ? ["Only this session was searched; set allConversations to true to search other sessions"]
      : []),
  ];
}

function detailsOf({ hits, caveats, mode }: GrepResult, shown: number, sentences: readonly string[]): JsonObject {
  const isCut = caveats.some((caveat) => caveat.kind === "limit" || isUnfinished(caveat));
  return {
    matches: hits.slice(0, shown).map(matchOf),
    total: hits.length,
    mode,
    caveats: sentences,
    truncated: isCut || shown < hits.length,
  };
}

function matchOf(hit: SearchHit): JsonObject {
  const { kind: type, snippet, conversation: conversationId, at: createdAt } = hit;
  const common = { type, snippet, conversationId, createdAt };
  switch (hit.kind) {
    case "message":
      return { id: messageName(hit.id), ...common, role: hit.role, seq: hit.seq };
    case "summary":
      return {
        id: hit.id,
        ...common,
        earliestAt: hit.earliestAt,
        summaryId: hit.id,
        depth: hit.depth,
        kind: hit.depth === 0 ? "leaf" : "condensed",
      };
    case "file":
      return { id: hit.id, ...common, fileName: hit.name, line: hit.line };
  }
}
