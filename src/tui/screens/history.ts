/** What operators have changed, newest first, and below it what the selected change did: the way to undo. */

import type { Change } from "../../core/history.ts";
import type { ConversationId } from "../../core/model.ts";
import { changeLines, changeTable } from "../../show/changes.ts";
import type { ChangeInShort } from "../../show/changes.ts";
import type { Page } from "../../show/page.ts";
import { listed, plural } from "../../show/render.ts";
import type { Asking, Frame, Module, Place, Step } from "../contract.ts";
import { fit, row, rule, windowed } from "../draw.ts";
import { isListAction, listKeys, moved, scrolled, scrollKeys, seen, startOfList, wheeled } from "../list.ts";
import type { List, ListAction, ScrollAction } from "../list.ts";

export interface HistoryScreen {
  readonly kind: "history";
  /** Null: of all conversations. */
  readonly conversation: ConversationId | null;
  /** Null until they have been read. */
  readonly rows: readonly ChangeInShort[] | null;
  /** Whether there are older ones, and how many were asked for. */
  readonly isMore: boolean;
  readonly limit: number;
  readonly list: List;
  readonly detail: Detail | null;
}

/** What the selected change did, in lines as wide as the screen: breaking long texts takes too long for every key. */
interface Detail {
  readonly change: Change;
  readonly stepsLeft: number;
  readonly columns: number;
  readonly lines: readonly string[];
  readonly top: number;
}

const changesPerStep = 100;

export function openHistory({ conversation }: Extract<Place, { readonly kind: "history" }>): Step<HistoryScreen> {
  const state: HistoryScreen = {
    kind: "history",
    conversation,
    rows: null,
    isMore: false,
    limit: changesPerStep,
    list: startOfList,
    detail: null,
  };
  return { state, asks: [changesAsk(state)] };
}

const changesAsk = ({ conversation, limit }: HistoryScreen): Asking => ({ kind: "changes", conversation, limit });

const selected = ({ rows, list }: HistoryScreen): ChangeInShort | null => rows?.[list.cursor] ?? null;

const none = (state: HistoryScreen): string | null => (selected(state) === null ? "there is no change" : null);

type Action = ListAction | ScrollAction | "read" | "undo";

export const historyModule: Module<HistoryScreen, Action> = {
  name: "History",
  keys: [
    {
      keys: ["u"],
      action: "undo",
      short: "undo",
      says: "take the change back, or do it again where it is undone: shows what that would do",
      changes: true,
      disabled: (state) => none(state) ?? (wayBackOf(state) === null ? "this cannot be undone" : null),
    },
    { keys: ["enter"], action: "read", short: "read", says: "show all that the change did", disabled: none },
    ...listKeys,
    ...scrollKeys,
  ],
  title: ({ conversation }) => (conversation === null ? "history" : `history of conversation ${conversation}`),
  isBusy: ({ rows }) => rows === null,
  update(state, event, frame) {
    const count = state.rows?.length ?? 0;
    const rows = listRows(state, frame);
    switch (event.kind) {
      case "answer":
        if (event.answer.kind === "changes") return read(state, event.answer.told, frame);
        if (event.answer.kind !== "changeSteps") return { state };
        return { state: { ...state, detail: detailOf(state, event.answer.told, frame) } };
      case "failed":
        return { state: { ...state, rows: state.rows ?? [] } };
      case "changed":
      case "returned":
        return { state, asks: [changesAsk(state)] };
      case "resized":
        return {
          state: {
            ...state,
            list: seen(state.list, count, rows),
            detail: detailOf(state, state.detail, frame),
          },
        };
      case "wheel":
        if (event.row > rows) return scroll(state, event.lines, frame);
        return at(state, wheeled(state.list, event.lines, count, rows));
      case "click": {
        const cursor = state.list.top + event.row - headRows;
        if (event.row < headRows || event.row > rows || cursor >= count) return { state };
        const clicked = at(state, { ...state.list, cursor });
        return event.count > 1 ? reading(clicked.state, frame) : clicked;
      }
      case "action":
        if (event.action === "undo") return undoing(state);
        if (event.action === "read") return reading(state, frame);
        if (event.action === "textDown") return scroll(state, 1, frame);
        if (event.action === "textUp") return scroll(state, -1, frame);
        return isListAction(event.action) ? at(state, moved(state.list, event.action, count, rows)) : { state };
      default:
        return { state };
    }
  },
  draw(state, frame) {
    const { columns, paint } = frame;
    if (state.rows === null) return ["", "  reading …"];
    if (state.rows.length === 0) return ["", "  nothing was changed by an operator yet"];
    const { list, detail } = state;
    const shown = listRows(state, frame);
    const page = { ...frame, columns: columns - 2, bounds: columns - 2 };
    const { lines, times } = changeTable(page, state.rows, { spare: true });
    const [head = "", ...changes] = lines;
    const drawn = changes
      .slice(list.top, list.top + shown)
      .map((line, index) => row(line, list.top + index === list.cursor, columns, paint));
    const below = frame.rows - headRows - shown - 1;
    if (below <= 0) return [fit(`  ${head}`, columns), ...drawn];
    const text = detail === null ? [] : detail.lines;
    return [
      fit(`  ${head}`, columns),
      ...drawn,
      rule(times, columns, paint),
      ...windowed(text, detail?.top ?? 0, { ...frame, rows: below }),
    ];
  },
};

// ── The list ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The table's heading. */
const headRows = 1;
const detailRowsMin = 6;

/** How many changes are seen: up to half of the room, if there is enough of it for what one of them did. */
function listRows({ rows }: HistoryScreen, frame: Frame): number {
  const room = frame.rows - headRows;
  if (room < 2 * detailRowsMin) return Math.max(1, room);
  return Math.max(1, Math.min(rows?.length ?? 0, Math.floor(room / 2)));
}

/** The cursor stays on its change, wherever that is now. */
function read(
  state: HistoryScreen,
  { rows, isMore }: { readonly rows: readonly ChangeInShort[]; readonly isMore: boolean },
  frame: Frame,
): Step<HistoryScreen> {
  const before = selected(state)?.change;
  const found = rows.findIndex(({ change }) => change === before);
  const cursor = found === -1 ? state.list.cursor : found;
  const known = { ...state, rows, isMore };
  return at(known, seen({ ...state.list, cursor }, rows.length, listRows(known, frame)), true);
}

/** Older ones are asked for before they are reached. */
const ahead = 20;

function at(state: HistoryScreen, list: List, isNew = false): Step<HistoryScreen> {
  const moving = { ...state, list };
  const change = selected(moving)?.change;
  const wantsSteps = change !== undefined && (isNew || change !== selected(state)?.change);
  const asks: readonly Asking[] = wantsSteps ? [{ kind: "changeSteps", change }] : [];
  const count = state.rows?.length ?? 0;
  if (!state.isMore || state.limit > count || list.cursor < count - ahead) return { state: moving, asks };
  const next = { ...moving, limit: state.limit + changesPerStep };
  return { state: next, asks: [...asks, changesAsk(next)] };
}

function undoing(state: HistoryScreen): Step<HistoryScreen> {
  const place = wayBackOf(state);
  return place === null ? { state } : { state, go: { kind: "open", place } };
}

/** The way back of the selected change is told as a command; here it is a dialog. */
function wayBackOf(state: HistoryScreen): Place | null {
  const command = selected(state)?.wayBack ?? "";
  const [, change, source, target] = /^lcm (?:undo (\d+)|transplant (\d+) (\d+))$/.exec(command) ?? [];
  if (change !== undefined) return { kind: "undo", change: Number(change) };
  if (source === undefined || target === undefined) return null;
  return { kind: "transplant", source: conversationId(source), target: conversationId(target) };
}

const conversationId = (digits: string): ConversationId => Number(digits) as ConversationId;

// ── What the selected change did ─────────────────────────────────────────────────────────────────────────────────────

function detailOf(
  state: HistoryScreen,
  told: Pick<Detail, "change" | "stepsLeft"> | null,
  frame: Frame,
): Detail | null {
  if (told === null) return null;
  const { change, stepsLeft } = told;
  const isSame = state.detail?.change.change === change.change && state.detail.columns === frame.columns;
  const lines = detailLines(frame, change, stepsLeft);
  return { change, stepsLeft, columns: frame.columns, lines, top: isSame ? (state.detail?.top ?? 0) : 0 };
}

function detailLines(page: Page, change: Change, stepsLeft: number): readonly string[] {
  const { paint, typed } = page;
  const inner = { ...page, columns: page.columns - 2 };
  const rest = `${plural(stepsLeft, "more step", "more steps")}: \`lcm history --change ${change.change}\` shows all`;
  return [
    ...changeLines(inner, change, inner.columns),
    ...(stepsLeft === 0 ? [] : [paint.caution(typed(rest))]),
    paint.soft(standing(change)),
  ].map((line) => ` ${line}`);
}

function standing({ state, undoneBy, wayBack }: Change): string {
  const by = `by change ${listed(undoneBy.map(String))}`;
  switch (state) {
    case "holds":
      return "u takes it back";
    case "partly undone":
      return `undone in part, ${by}; u takes back the rest`;
    case "undone":
      return `undone ${by}; u does it again`;
    case "for good":
      return wayBack === null ? "this cannot be undone" : "u copies them again";
  }
}

function scroll(state: HistoryScreen, lines: number, frame: Frame): Step<HistoryScreen> {
  const { detail } = state;
  if (detail === null) return { state };
  const rows = Math.max(1, frame.rows - headRows - listRows(state, frame) - 1);
  return { state: { ...state, detail: { ...detail, top: scrolled(detail.top, lines, detail.lines.length, rows) } } };
}

/** In a box of its own. */
function reading(state: HistoryScreen, frame: Frame): Step<HistoryScreen> {
  const { detail } = state;
  if (detail === null || detail.change.change !== selected(state)?.change) return { state };
  const columns = Math.min(100, frame.columns - 8);
  const lines = detailLines({ ...frame, columns, bounds: columns }, detail.change, detail.stepsLeft);
  return { state, go: { kind: "open", place: { kind: "text", title: `change ${detail.change.change}`, lines } } };
}
