/** Searching, in one conversation or in all: what is typed is looked for at once, and enter goes to where it was said. */

import { messageName } from "../../core/model/types.ts";
import type { ConversationId } from "../../core/model/types.ts";
import type { SearchCaveat } from "../../core/model/store.ts";
import { caveatSentence } from "../../core/recall/grep.ts";
import { marked } from "../../format/highlight.ts";
import { opens } from "../contract.ts";
import type { Frame, LayerEvent, Module, Place, Step } from "../contract.ts";
import { ends, fit, rule } from "../widgets/draw.ts";
import { drawField, field, pasted, textOf, typed } from "../widgets/field.ts";
import type { Field } from "../widgets/field.ts";
import { createRows, seen, startOfList } from "../widgets/list.ts";
import type { List } from "../widgets/list.ts";
import type { Found, Hit, Query } from "./asks.ts";
import { plural } from "../../core/base/format.ts";
import { cut, wrap } from "../../format/width.ts";
import { clockTime, spanOf } from "../../format/times.ts";

export interface GrepScreen {
  readonly kind: "grep";
  /** The one that it was opened from, if any. */
  readonly conversation: ConversationId | null;
  readonly line: Field;
  readonly isTyping: boolean;
  readonly mode: Query["mode"];
  readonly scope: Query["scope"];
  readonly where: Query["where"];
  /** The newest answer; null where nothing was looked for. */
  readonly found: Found | null;
  readonly isSearching: boolean;
  readonly list: List;
}

const hitsOf = ({ found }: GrepScreen): readonly Hit[] => (found?.kind === "found" ? found.hits : []);

/** The query, how it is looked for, and what is to be known of the answer. */
const headRows = 3;
/** What it is, and what it says. */
const hitRows = 2;

const roomOf = ({ rows }: Frame): number => Math.max(1, Math.floor((rows - headRows) / hitRows));

const rows = createRows<GrepScreen>({
  count: (state) => hitsOf(state).length,
  place: (_, frame) => ({ above: headRows, rows: roomOf(frame), drawn: roomOf(frame) * hitRows }),
  at: ({ list }, line) => list.top + Math.floor(line / hitRows),
  open: opens(placeOf),
});

const edit = (state: GrepScreen): Step<GrepScreen> => ({ state: { ...state, isTyping: true } });
const turnMode = (state: GrepScreen): Step<GrepScreen> =>
  searched({ ...state, mode: state.mode === "regex" ? "full_text" : "regex" });

export const grepModule: Module<GrepScreen> = {
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
      short: "go there",
      says: "go to where it was said",
      disabled: (state) => (hitsOf(state).length === 0 ? "there is nothing to go to" : null),
      does: opens(placeOf),
    },
    { keys: ["/", "i"], short: "edit", says: "edit what is looked for", does: edit },
    {
      keys: ["tab"],
      short: "words/regex",
      says: "look for words, or for a regular expression (while typing, too)",
      does: turnMode,
    },
    {
      keys: ["w"],
      short: "where",
      says: "look in this conversation, in all segments of its session, or everywhere",
      disabled: ({ conversation }) => (conversation === null ? "it was not opened from a conversation" : null),
      does: (state) => searched({ ...state, where: after(["conversation", "family", "all"], state.where) }),
    },
    {
      keys: ["v"],
      short: "in what",
      says: "look in messages and summaries, in one of them, or in files",
      does: (state) => searched({ ...state, scope: after(["both", "messages", "summaries", "files"], state.scope) }),
    },
    ...rows.keys,
  ],
  title: () => "search",
  isTyping: (state) => state.isTyping,
  isBusy: ({ isSearching }) => isSearching,
  answers: { grep: (state, found, frame) => ({ state: told(state, found, frame) }) },
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

// ── Looking for it ───────────────────────────────────────────────────────────────────────────────────────────────────

/** Asks anew; what is shown stays until there is an answer. */
function searched(state: GrepScreen): Step<GrepScreen> {
  const pattern = textOf(state.line);
  if (pattern.trim() === "")
    return { state: { ...state, found: null, isSearching: false }, go: { kind: "stop", slot: "grep" } };
  const { mode, scope, where, conversation } = state;
  return {
    state: { ...state, isSearching: true },
    asks: [{ kind: "grep", pattern, mode, scope, where, conversation, slot: "grep" }],
  };
}

/** An expression may take its time: it is not looked for anew with everything that is written. */
function again(state: GrepScreen): Step<GrepScreen> {
  return state.found !== null && !state.isSearching && state.mode === "full_text" ? searched(state) : { state };
}

function typing(state: GrepScreen, { key }: LayerEvent<"key">, frame: Frame): Step<GrepScreen> {
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

/** The cursor stays on what it is on, if that is still found. */
function told(state: GrepScreen, found: Found, frame: Frame): GrepScreen {
  const id = hitsOf(state)[state.list.cursor]?.hit.id;
  const hits = found.kind === "found" ? found.hits : [];
  const at = state.list.cursor === 0 ? 0 : hits.findIndex(({ hit }) => hit.id === id);
  const list = seen({ ...state.list, cursor: Math.max(0, at) }, hits.length, roomOf(frame));
  // Half of an expression is none: what was found before stays below what is wrong with it.
  return { ...state, found, isSearching: false, list };
}

function placeOf(state: GrepScreen): Place | null {
  const hit = hitsOf(state)[state.list.cursor]?.hit;
  switch (hit?.kind) {
    case "message":
      return { kind: "messages", conversation: hit.conversation, at: hit.id };
    case "summary":
      return { kind: "dag", conversation: hit.conversation, at: hit.id };
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

function draw(state: GrepScreen, frame: Frame): readonly string[] {
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
  'Type what you are looking for: words in any form, "or a phrase".',
  "tab takes it for a regular expression, in which small letters match capitals too.",
];

const howWords = ({ mode, scope, where, conversation }: GrepScreen): string => {
  const place = {
    conversation: `conversation ${conversation}`,
    family: `all segments of conversation ${conversation}`,
    all: "all conversations",
  }[where];
  return `${modeWords[mode]} in ${scopeWords[scope]} of ${place}`;
};

function countWords(state: GrepScreen): string {
  const { found } = state;
  if (found === null) return state.isSearching ? "searching …" : "";
  if (found.kind === "refused") return "";
  const isAll = !found.caveats.some(({ kind }) => kind === "limit");
  const count = isAll ? plural(found.hits.length, "hit") : `the first ${plural(found.hits.length, "hit")} of more`;
  return found.hits.length === 0 ? "" : count;
}

/** What must be known of the answer: that there is none, or that it is not all. */
function noteLine(state: GrepScreen, { columns, paint }: Frame): string {
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
      return `${plural(caveat.files, "large text")} moved out to files; v searches inside them`;
    default:
      return caveatSentence(caveat, "flags");
  }
}

function hitLines(
  { hit, where, snippet, matches }: Hit,
  isSelected: boolean,
  state: GrepScreen,
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

/** From where on a text is shown so that the first match is seen. */
function shiftOf(text: string, matches: readonly (readonly [number, number])[], columns: number): number {
  const [first] = matches;
  if (first === undefined || first[1] <= columns) return 0;
  const space = text.indexOf(" ", first[0] - Math.floor(columns / 2));
  return space === -1 || space >= first[0] ? first[0] : space + 1;
}
