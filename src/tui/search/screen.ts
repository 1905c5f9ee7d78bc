/** The search screen: searches one conversation or all of them while you type. */

import { messageName, type ConversationId } from "../../core/model/types.ts";
import type { SearchCaveat } from "../../core/model/store.ts";
import { caveatSentence } from "../../core/recall/grep.ts";
import { marked } from "../../format/highlight.ts";
import { opens, type Frame, type LayerEvent, type Module, type Destination, type Step } from "../contract.ts";
import { ends, fit, rule } from "../widgets/draw.ts";
import { drawField, field, pasted, textOf, typed, type Field } from "../widgets/field.ts";
import { createRows, seen, startOfList, type List } from "../widgets/list.ts";
import type { Found, Hit, Query } from "../../operator/search.ts";
import { plural } from "../../core/base/format.ts";
import { cut, wrap } from "../../format/width.ts";
import { clockTime, spanOf } from "../../format/times.ts";

export interface SearchScreen {
  readonly kind: "search";
  /** The one it was opened from. */
  readonly conversation: ConversationId | null;
  readonly line: Field;
  readonly isTyping: boolean;
  readonly mode: Query["mode"];
  readonly scope: Query["scope"];
  readonly where: Query["where"];
  /** The latest result; null without a query. */
  readonly found: Found | null;
  readonly isSearching: boolean;
  readonly list: List;
}

const hitsOf = ({ found }: SearchScreen): readonly Hit[] => (found?.kind === "found" ? found.hits : []);

/** The query, the options, and a note on the result. */
const headRows = 3;
const hitRows = 2;

const roomOf = ({ rows }: Frame): number => Math.max(1, Math.floor((rows - headRows) / hitRows));

const rows = createRows<SearchScreen>({
  count: (state) => hitsOf(state).length,
  place: (_, frame) => ({ above: headRows, rows: roomOf(frame), drawn: roomOf(frame) * hitRows }),
  at: ({ list }, line) => list.top + Math.floor(line / hitRows),
  open: opens(placeOf),
});

const edit = (state: SearchScreen): Step<SearchScreen> => ({ state: { ...state, isTyping: true } });
const turnMode = (state: SearchScreen): Step<SearchScreen> =>
  searched({ ...state, mode: state.mode === "regex" ? "full_text" : "regex" });

export const searchModule: Module<SearchScreen> = {
  name: "Search",
  open: (place) => ({
    ...place,
    line: field(),
    isTyping: true,
    mode: "full_text",
    scope: "both",
    where: place.conversation === null ? "all" : "conversation",
    found: null,
    isSearching: false,
    list: startOfList,
  }),
  keys: [
    {
      keys: ["enter"],
      short: "open",
      help: "open the message, summary or file",
      disabled: (state) => (hitsOf(state).length === 0 ? "there are no matches" : null),
      does: opens(placeOf),
    },
    { keys: ["/", "i"], short: "edit", help: "edit the query", does: edit },
    {
      keys: ["tab"],
      short: "words/regex",
      help: "switch between words and a regular expression, also while typing",
      does: turnMode,
    },
    {
      keys: ["w"],
      short: "where",
      help: "search this conversation, all segments of its session, or everything",
      disabled: ({ conversation }) =>
        conversation === null ? "all conversations are searched: the search was not opened from one" : null,
      does: (state) => searched({ ...state, where: after(["conversation", "family", "all"], state.where) }),
    },
    {
      keys: ["v"],
      short: "what",
      help: "search messages and summaries, only one of them, or files",
      does: (state) => searched({ ...state, scope: after(["both", "messages", "summaries", "files"], state.scope) }),
    },
    ...rows.keys,
  ],
  title: () => "search",
  isTyping: (state) => state.isTyping,
  isBusy: ({ isSearching }) => isSearching,
  answers: { search: (state, found, frame) => ({ state: withResult(state, found, frame) }) },
  on: {
    ...rows.on,
    key: typing,
    pasted: (state, { text }) => searched({ ...state, line: pasted(state.line, text) }),
    failed: (state) => ({ state: { ...state, isSearching: false } }),
    changed: again,
    returned: again,
    click(state, event, frame) {
      if (event.row === 0) return edit(state);
      const step = rows.on.click(state, event, frame);
      return step.state === state ? step : { ...step, state: { ...step.state, isTyping: false } };
    },
  },
  draw,
};

const after = <T>(all: readonly [T, ...(readonly T[])], one: T): T => all[all.indexOf(one) + 1] ?? all[0];

// ── Searching ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Starts a search; the old hits stay until it answers. */
function searched(state: SearchScreen): Step<SearchScreen> {
  const pattern = textOf(state.line);
  if (pattern.trim() === "")
    return { state: { ...state, found: null, isSearching: false }, go: { kind: "stop", slot: "search" } };
  const { mode, scope, where, conversation } = state;
  return {
    state: { ...state, isSearching: true },
    asks: [{ kind: "search", pattern, mode, scope, where, conversation, slot: "search" }],
  };
}

/** A regular expression may be slow, so it is not repeated after every write. */
function again(state: SearchScreen): Step<SearchScreen> {
  return state.found !== null && !state.isSearching && state.mode === "full_text" ? searched(state) : { state };
}

function typing(state: SearchScreen, { key }: LayerEvent<"key">, frame: Frame): Step<SearchScreen> {
  const { line } = state;
  switch (key.name) {
    case "tab":
      return turnMode(state);
    case "enter":
      return { state: { ...state, isTyping: textOf(line).trim() === "" } };
    case "escape":
      if (hitsOf(state).length === 0) return { state, go: { kind: "back" } };
      return { state: { ...state, isTyping: false } };
    default: {
      const moved = rows.arrow(state, key, frame);
      if (moved !== null) return moved;
      const next = { ...state, line: typed(line, key) };
      return textOf(next.line) === textOf(line) ? { state: next } : searched({ ...next, list: startOfList });
    }
  }
}

/** Keeps the cursor on its hit if that is still found. */
function withResult(state: SearchScreen, found: Found, frame: Frame): SearchScreen {
  const id = hitsOf(state)[state.list.cursor]?.hit.id;
  const hits = found.kind === "found" ? found.hits : [];
  const at = state.list.cursor === 0 ? 0 : hits.findIndex(({ hit }) => hit.id === id);
  const list = seen({ ...state.list, cursor: Math.max(0, at) }, hits.length, roomOf(frame));
  return { ...state, found, isSearching: false, list };
}

function placeOf(state: SearchScreen): Destination | null {
  const hit = hitsOf(state)[state.list.cursor]?.hit;
  switch (hit?.kind) {
    case "message":
      return { kind: "messages", conversation: hit.conversation, at: hit.id };
    case "summary":
      return { kind: "summaries", conversation: hit.conversation, at: hit.id };
    case "file":
      return { kind: "files", conversation: hit.conversation, at: hit.id };
    default:
      return null;
  }
}

// ── Drawing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const modeWords = { full_text: "words", regex: "regular expression" } as const;
const scopeWords = {
  both: "messages and summaries",
  messages: "messages",
  summaries: "summaries",
  files: "files",
} as const;

function draw(state: SearchScreen, frame: Frame): readonly string[] {
  const { columns, paint } = frame;
  const { line, isTyping, list } = state;
  const query = isTyping ? drawField(" find", line, columns, paint) : ` ${paint.strong("find")} ${textOf(line)}`;
  const hits = hitsOf(state).slice(list.top, list.top + roomOf(frame));
  const isIdle = state.found === null && !state.isSearching;
  const lines = [
    query,
    ends(` ${paint.soft(howWords(state))}`, `${countWords(state)} `, columns),
    noteLine(state, frame),
    ...(isIdle ? hints.flatMap((hint) => ["", ...wrap(hint, columns - 4)]).map((hint) => paint.soft(`  ${hint}`)) : []),
    ...hits.flatMap((hit, at) => hitLines(hit, list.top + at === list.cursor, state, frame)),
  ];
  return lines.slice(0, frame.rows);
}

const hints = [
  'Type words in any form, or "a phrase" in quotes.',
  "Press tab to search with a regular expression, case-insensitive unless it has capitals.",
];

const howWords = ({ mode, scope, where, conversation }: SearchScreen): string => {
  const place = {
    conversation: `conversation ${conversation}`,
    family: `all segments of conversation ${conversation}`,
    all: "all conversations",
  }[where];
  return `${modeWords[mode]} in ${scopeWords[scope]} of ${place}`;
};

function countWords(state: SearchScreen): string {
  const { found } = state;
  if (found === null) return state.isSearching ? "searching …" : "";
  if (found.kind === "refused") return "";
  const isAll = !found.caveats.some(({ kind }) => kind === "limit");
  const count = `${isAll ? "" : "first "}${plural(found.hits.length, "match", "matches")}`;
  return found.hits.length === 0 ? "" : count;
}

/** Whether there are no hits, or the result is incomplete. */
function noteLine(state: SearchScreen, { columns, paint }: Frame): string {
  const { found } = state;
  if (found === null) return rule("", columns, paint);
  if (found.kind === "refused") return paint.bad(fit(` ${found.why}`, columns));
  const notes = found.caveats.filter(({ kind }) => kind !== "limit").map(caveatWords);
  const isStopped = found.caveats.some(({ kind }) => kind === "time");
  const nothing = found.hits.length === 0 && !isStopped ? ["no matches"] : [];
  const words = [...nothing, ...notes].join(" · ");
  return words === "" ? rule("", columns, paint) : paint.caution(fit(` ${words}`, columns));
}

function caveatWords(caveat: SearchCaveat): string {
  switch (caveat.kind) {
    case "time": {
      const [words = ""] = caveatSentence(caveat, "arguments").split(";");
      return words;
    }
    case "files":
      return `${plural(caveat.files, "large text")} moved out to files; press v to search files`;
    default:
      return caveatSentence(caveat, "flags");
  }
}

function hitLines(
  { hit, where, snippet, matches }: Hit,
  isSelected: boolean,
  state: SearchScreen,
  { columns, paint, zone }: Frame,
): readonly string[] {
  const { name, what, when } = headOf(hit, zone);
  const painted =
    hit.kind === "message" ? paint.role(hit.role, what) : hit.kind === "summary" ? paint.depth(hit.depth, what) : what;
  const place = state.where === "conversation" ? "" : cut(`${hit.conversation} ${where}`, Math.floor(columns / 3));
  const left = `${isSelected ? "▸" : " "} ${painted}  ${paint.soft(when)}${place === "" ? "" : `  ${place}`}`;
  const head = ends(left, columns < 60 ? "" : paint.soft(`${name} `), columns);
  const from = shiftOf(snippet, matches, columns - 6);
  const shifted = matches.map(([start, end]) => [start - from, end - from] as const).filter(([start]) => start >= 0);
  const text = marked(snippet.slice(from), shifted, paint);
  return [isSelected ? paint.selected(head) : head, fit(`    ${from > 0 ? "…" : ""}${text}`, columns)];
}

function headOf(
  hit: Hit["hit"],
  zone: string,
): { readonly name: string; readonly what: string; readonly when: string } {
  switch (hit.kind) {
    case "message":
      return { name: messageName(hit.id), what: hit.role, when: clockTime(hit.at, zone) };
    case "summary": {
      const what = hit.depth === 0 ? "leaf" : `d${hit.depth} summary`;
      return { name: hit.id, what, when: spanOf(hit.earliestAt ?? hit.at, hit.at, zone) };
    }
    case "file":
      return { name: hit.id, what: `line ${hit.line} of ${hit.name ?? "a file"}`, when: clockTime(hit.at, zone) };
  }
}

/** Where to start a text to show its first match. */
function shiftOf(text: string, matches: readonly (readonly [number, number])[], columns: number): number {
  const [first] = matches;
  if (first === undefined || first[1] <= columns) return 0;
  const space = text.indexOf(" ", first[0] - Math.floor(columns / 2));
  return space === -1 || space >= first[0] ? first[0] : space + 1;
}
