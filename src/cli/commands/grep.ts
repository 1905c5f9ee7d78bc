/** `lcm grep`: searches messages, summaries and files, and reports whatever it could not search. */

import type { Lcm } from "../../core/lcm.ts";
import { messageName, type Conversation } from "../../core/model/types.ts";
import type { SearchHit } from "../../core/model/store.ts";
import { caveatSentence, mannerOf, type GrepRequest, type GrepResult } from "../../core/recall/grep.ts";
import type { Passage } from "../../core/recall/passages/passages.ts";
import { resolveSpan } from "../../core/recall/span.ts";
import { exitUnavailable } from "../failure.ts";
import { createFinder, marked } from "../../format/highlight.ts";
import { headLine, textLines } from "../../format/passages.ts";
import { reachFor, reachOptions } from "./_reach.ts";
import { about, either, flag, list, maybe, object, oneOf, real, text, time, whole } from "./_json.ts";
import { caveats, role } from "./_shapes.ts";
import { defineCommand, exitFindings, exitOk, indexAll, withLcm, type Session } from "./_session.ts";
import { collected, seconds, tokensMax, wholeNumber } from "./_options.ts";
import { formatCount, listed, plural } from "../../core/base/format.ts";
import { oneLine } from "../../format/safe-text.ts";

const hitFields = { conversation: whole, snippet: text, at: time, score: real };
const focus = about(object({ from: whole, to: whole }), "where it matches in the stored text");

const summary = object({
  kind: oneOf("summary"),
  id: text,
  depth: whole,
  earliestAt: maybe(time),
  focus,
  ...hitFields,
});

const json = object({
  hits: list(
    either(
      object({ kind: oneOf("message"), id: whole, role, seq: whole, focus, ...hitFields }),
      summary,
      object({ kind: oneOf("file"), id: text, name: maybe(text), line: whole, ...hitFields }),
    ),
  ),
  passages: about(
    list(
      object({
        id: whole,
        conversation: whole,
        seq: whole,
        role,
        at: time,
        text,
        context: about(flag, "shown only because a match belongs to it"),
        isWhole: flag,
        alike: about(list(whole), "further hits that say the same"),
        isLines: about(flag, "only lines that match are shown"),
      }),
    ),
    "what is shown of the messages",
  ),
  "summaries?": about(list(summary), "the best few that match, with scope both"),
  caveats,
  mode: oneOf("full_text", "regex"),
  searched: object({ conversations: whole, "messages?": whole, "summaries?": whole }),
});

export const grepCommand = defineCommand({
  name: "grep",
  json,
  summary: "search messages and summaries by words or regular expression",
  description:
    'Search messages and summaries. The pattern is words and "quoted phrases", ranked as in a search engine. With -e, or ' +
    "if it is clearly one, it is a JavaScript regular expression, case-insensitive unless it contains capital letters.",
  arguments: [
    [
      "[pattern...]",
      "what to search for; quotes are optional, and a word that begins with - goes after --; without it, messages are listed by role, time or place",
    ],
  ],
  options: {
    also: ["--also <words>", "search for this wording too and rank both together; repeatable, up to 5", collected],
    regex: ["-e, --regex", "treat the pattern as a regular expression"],
    fullText: ["--full-text", "treat the pattern as words, whatever it looks like"],
    ...reachOptions,
    scope: [
      "--scope <where>",
      "search here; files are large texts that were moved out of messages",
      ["messages", "summaries", "both", "files"],
      "both",
    ],
    sort: [
      "--sort <order>",
      "order matches this way (default: recency for regular expressions, hybrid for words)",
      ["recency", "oldest", "relevance", "hybrid"],
    ],
    role: ["--role <role>", "search messages of this role: user, assistant, tool, system; several with commas"],
    since: [
      "--since <when>",
      "search from this time or message on: 2026-02-17, '2026-02-17 15:30', tuesday, 2h, msg_1-42",
    ],
    after: ["--after <when>", "search after this message"],
    before: ["--before <when>", "search before this time or message"],
    around: ["--around <id>", "search the 25 messages on either side of this one"],
    tokens: [
      "--tokens <n>",
      "show at most this many tokens of messages (default: 100 for each match)",
      wholeNumber(1, tokensMax),
    ],
    limit: ["--limit <n>", "show at most this many matches, up to 200", wholeNumber(1, 200), 20],
    timeout: ["--timeout <seconds>", "stop after this long (default: LCM_SEARCH_TIMEOUT_SECONDS, 10)", seconds],
  },
  exclusive: [
    ["regex", "fullText"],
    ["conversation", "family"],
  ],
  examples: [
    ["lcm grep database migration", "both words, best match first"],
    [`lcm grep '"rate limit"' --since 7d`, "a phrase, in the last week"],
    ["lcm grep why is login slow --also 'oauth timeout'", "also in other words"],
    [String.raw`lcm grep -e 'ECONN\w+' --conversation 3`, "a regular expression in one conversation"],
    ["lcm grep --role user --since tuesday", "what users said since Tuesday"],
    ["lcm grep deploy --sort oldest --limit 1", "the first time it was mentioned"],
    ["lcm grep 東京 --json", "as JSON"],
  ],
  notes: "Exit status 1: no matches; 6: the time limit was reached before a match.",
  async run(session, options, ...words) {
    const pattern = words.join(" ");
    const mode = options.regex === true ? "regex" : options.fullText === true ? "full_text" : undefined;
    const { zone } = session.context;
    const { values: settings } = await session.context.settings();
    const timeoutMs = (options.timeout ?? settings.searchTimeoutSeconds) * 1_000;
    return await withLcm(session, "search", async (lcm) => {
      const request: GrepRequest = {
        pattern,
        ...(options.also === undefined ? {} : { also: options.also }),
        ...(mode === undefined ? {} : { mode }),
        scope: options.scope,
        limit: options.limit,
        ...(options.sort === undefined ? {} : { sort: options.sort }),
        ...(await resolveSpan(lcm, options, { reach: await reachFor(lcm, options), zone, prefix: "--" })),
      };
      const search = async () => await lcm.grep(request, { timeoutMs });
      let result = await search();
      // An upgrade leaves all rows to be indexed, more than a search reads one by one.
      if (result.caveats.some(({ kind }) => kind === "unindexed") && session.database.isWritable()) {
        await indexAll(session, lcm);
        result = await search();
      }
      const searched = await extentOf(lcm, request);
      const tokens = options.tokens ?? tokensPerMatch * options.limit;
      const manner = mannerOf(request, result.mode);
      const isNewestFirst = request.sort === "recency" && pattern.trim() !== "";
      const groups = await lcm.passages(result.hits, { tokens, headingTokens, manner, isNewestFirst });
      if (session.json) session.printJson(json, { ...result, passages: groups.flat(), searched });
      else print(session, request, { ...result, groups }, searched);
      // A search that timed out without a hit has not answered the question.
      if (result.hits.length + (result.summaries?.length ?? 0) > 0) return exitOk;
      return result.caveats.some(({ kind }) => kind === "time") ? exitUnavailable : exitFindings;
    });
  },
});

/** Enough for the part that matches and what belongs to it. */
const tokensPerMatch = 100;
const headingTokens = 20;

interface Extent {
  readonly conversations: number;
  readonly messages?: number;
  readonly summaries?: number;
}

async function extentOf({ store }: Lcm, { reach, scope }: GrepRequest): Promise<Extent> {
  const named = reach.conversations?.map(async (id) => await store.conversation(id));
  const searched = named === undefined ? await store.conversations() : (await Promise.all(named)).filter(isThere);
  const sum = (of: (conversation: Conversation) => number): number =>
    searched.reduce((total, each) => total + of(each), 0);
  return {
    conversations: searched.length,
    ...(scope === "messages" || scope === "both" ? { messages: sum(({ totals }) => totals.messages) } : {}),
    ...(scope === "summaries" || scope === "both" ? { summaries: sum(({ totals }) => totals.summaries) } : {}),
  };
}

const isThere = (conversation: Conversation | null): conversation is Conversation => conversation !== null;

interface Shown extends GrepResult {
  readonly groups: readonly (readonly Passage[])[];
}

function print(session: Session, request: GrepRequest, result: Shown, searched: Extent): void {
  const { groups, caveats, mode } = result;
  const hits = [...result.hits, ...(result.summaries ?? [])];
  const highlight = createHighlighter(session, request.pattern, mode);
  for (const group of groups) for (const line of groupLines(session, group, highlight)) session.print(line);
  for (const hit of hits)
    if (hit.kind !== "message") for (const line of hitLines(session, hit, highlight)) session.print(line);
  for (const caveat of caveats) session.note(`${session.paint.caution("note:")} ${caveatSentence(caveat, "flags")}`);
  const isTimed = [request.since, request.before, request.afterId, request.beforeId].some(
    (bound) => bound !== undefined,
  );
  const range = isTimed ? " in that time" : "";
  const asRegex =
    request.mode === undefined && mode === "regex" && request.pattern.trim() !== ""
      ? " of this regular expression"
      : "";
  const isLimited = caveats.some(({ kind }) => kind === "limit");
  const count = isLimited
    ? `${formatCount(hits.length)} shown; searched`
    : `${plural(hits.length, "match", "matches")}${asRegex} in`;
  if (hits.length > 0)
    session.note(session.paint.soft(`${count} ${extentWords(searched)}; times in ${session.context.zone}`));
  else if (!caveats.some(({ kind }) => kind === "time")) session.note(`no matches in ${extentWords(searched)}${range}`);
}

const extentWords = ({ messages, summaries, conversations }: Extent): string => {
  const rows = [
    ...(messages === undefined ? [] : [plural(messages, "message")]),
    ...(summaries === undefined || (summaries === 0 && messages !== undefined)
      ? []
      : [plural(summaries, "summary", "summaries")]),
  ];
  return `${rows.length === 0 ? "the files" : listed(rows)} of ${plural(conversations, "conversation")}`;
};

/** Messages that belong together: what is there only as context is dimmed. */
function groupLines(
  session: Session,
  group: readonly Passage[],
  highlight: (line: string) => string,
): readonly string[] {
  const { paint } = session;
  const lines = group.flatMap(({ id, role: said, conversation, at, text: words, context, alike }) => {
    const also = alike.length === 0 ? "" : ` (also ${alike.map(messageName).join(", ")})`;
    const beside = `${context ? " (context)" : ""}${also}`;
    const what = `${paint.role(said, said)}${beside === "" ? "" : paint.soft(beside)}`;
    return [
      headLine(session, messageName(id), what, { conversation, from: at }),
      ...textLines(session, words).map(context ? paint.soft : highlight),
    ];
  });
  return [...lines, ""];
}

function hitLines(session: Session, hit: SearchHit, highlight: (line: string) => string): readonly string[] {
  const { id, what } = headOf(session, hit);
  const { conversation, at } = hit;
  const from = hit.kind === "summary" ? (hit.earliestAt ?? at) : at;
  return [
    headLine(session, id, what, { conversation, from, to: at }),
    ...textLines(session, hit.snippet).map(highlight),
    "",
  ];
}

function headOf({ paint }: Session, hit: SearchHit): { readonly id: string; readonly what: string } {
  switch (hit.kind) {
    case "message":
      return { id: messageName(hit.id), what: paint.role(hit.role, hit.role) };
    case "summary":
      return { id: hit.id, what: paint.strong(`summary, depth ${hit.depth}`) };
    case "file":
      return { id: `${hit.id} line ${hit.line}`, what: oneLine(hit.name ?? "file") };
  }
}

function createHighlighter(session: Session, pattern: string, mode: GrepResult["mode"]): (line: string) => string {
  if (!session.context.stdout.colour || pattern.trim() === "") return (line) => line;
  const find = createFinder(pattern, mode === "regex");
  return (line) => marked(line, find([line])[0] ?? [], session.paint);
}
