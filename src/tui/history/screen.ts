/** The history screen: changes, newest first, the steps of the selected one, and undo. */

import type { Change } from "../../core/maintenance/history.ts";
import type { ConversationId } from "../../core/model/types.ts";
import { changeLines, changeTable, type ChangeInShort } from "../../format/changes.ts";
import { goTo, opens, type Asking, type Frame, type Module, type Destination, type Step } from "../contract.ts";
import { fit, laidOutOnce, listRows, rule, textPage, windowed } from "../widgets/draw.ts";
import { createRows, scrolled, startOfList, stayed, textKeys, type List } from "../widgets/list.ts";
import type { Changes, ChangeSteps } from "../../operator/history.ts";
import { listed, plural } from "../../core/base/format.ts";

export interface HistoryScreen {
  readonly kind: "history";
  /** Null: all conversations. */
  readonly conversation: ConversationId | null;
  /** Null until they are read. */
  readonly rows: readonly ChangeInShort[] | null;
  /** Whether there are older ones. */
  readonly isMore: boolean;
  readonly limit: number;
  readonly list: List;
  /** The steps of the selected change. */
  readonly detail: ChangeSteps | null;
  readonly top: number;
}

const changesPerStep = 100;

const changesAsk = ({ conversation, limit }: HistoryScreen): Asking => ({ kind: "changes", conversation, limit });

const selected = ({ rows, list }: HistoryScreen): ChangeInShort | null => rows?.[list.cursor] ?? null;

const none = (state: HistoryScreen): string | null => (selected(state) === null ? "no change is selected" : null);

const changes = createRows<HistoryScreen>({
  count: ({ rows }) => rows?.length ?? 0,
  place: (state, frame) => ({ above: headRows, rows: changesSeen(state, frame) }),
  open: reading,
  scroll,
});

export const historyModule: Module<HistoryScreen> = {
  name: "History",
  open: (place) => ({
    ...place,
    rows: null,
    isMore: false,
    limit: changesPerStep,
    list: startOfList,
    detail: null,
    top: 0,
  }),
  keys: [
    {
      keys: ["u"],
      short: "undo",
      help: "undo the change, or redo an undone one; shows the plan first",
      changes: true,
      disabled: (state) => none(state) ?? (wayBackOf(state) === null ? "it cannot be undone" : null),
      does: opens(wayBackOf),
    },
    { keys: ["enter"], short: "details", help: "show everything the change did", disabled: none, does: reading },
    ...changes.keys,
    ...textKeys(scroll),
  ],
  title: ({ conversation }) => (conversation === null ? "history" : `history of conversation ${conversation}`),
  isUnread: ({ rows }) => rows === null,
  reads: (state) => [changesAsk(state)],
  answers: {
    changes: read,
    changeSteps: (state, detail) => ({
      state: { ...state, detail, top: detail?.change.change === state.detail?.change.change ? state.top : 0 },
    }),
  },
  on: {
    ...changes.on,
    failed: (state) => ({ state: { ...state, rows: state.rows ?? [] } }),
  },
  follow,
  draw(state, frame) {
    const { columns, paint } = frame;
    if (state.rows === null) return ["", "  reading …"];
    if (state.rows.length === 0) return ["", "  no changes yet"];
    const { list, detail } = state;
    const shown = changesSeen(state, frame);
    const page = { ...frame, columns: columns - 2, bounds: columns - 2 };
    const { lines, times } = changeTable(page, state.rows, { spare: true });
    const [head = "", ...all] = lines;
    const drawn = listRows(all.slice(list.top, list.top + shown), list, columns, paint);
    const below = frame.rows - headRows - shown - 1;
    if (below <= 0) return [fit(`  ${head}`, columns), ...drawn];
    return [
      fit(`  ${head}`, columns),
      ...drawn,
      rule(times, columns, paint),
      ...windowed(detail === null ? [] : detailLines(detail, frame), state.top, { ...frame, rows: below }),
    ];
  },
};

const headRows = 1;
const detailRowsMin = 6;

/** Changes take up to half of the room, if the rest is enough for the details of one. */
function changesSeen({ rows }: HistoryScreen, frame: Frame): number {
  const room = frame.rows - headRows;
  if (room < 2 * detailRowsMin) return Math.max(1, room);
  return Math.max(1, Math.min(rows?.length ?? 0, Math.floor(room / 2)));
}

/** Keeps the cursor on its change. */
function read(state: HistoryScreen, { rows, isMore }: Changes, frame: Frame): Step<HistoryScreen> {
  const before = selected(state)?.change;
  const at = rows.findIndex(({ change }) => change === before);
  const known = { ...state, rows, isMore };
  return { state: { ...known, list: stayed(state.list, at, rows.length, changesSeen(known, frame)) } };
}

/** Older ones are read this long before they are reached. */
const ahead = 20;

function follow(state: HistoryScreen, _: Frame, before: HistoryScreen): Step<HistoryScreen> {
  const change = selected(state)?.change;
  const isOther = state.rows !== before.rows || change !== selected(before)?.change;
  const asks: readonly Asking[] = change !== undefined && isOther ? [{ kind: "changeSteps", change }] : [];
  const count = state.rows?.length ?? 0;
  if (!state.isMore || state.limit > count || state.list.cursor < count - ahead) return { state, asks };
  const next = { ...state, limit: state.limit + changesPerStep };
  return { state: next, asks: [...asks, changesAsk(next)] };
}

/** The dialog for the command that undoes the selected change. */
function wayBackOf(state: HistoryScreen): Destination | null {
  const command = selected(state)?.wayBack ?? "";
  const [, change, source, target] = /^lcm (?:undo (\d+)|transplant (\d+) (\d+))$/.exec(command) ?? [];
  if (change !== undefined) return { kind: "undo", change: Number(change) };
  if (source === undefined || target === undefined) return null;
  return { kind: "transplant", source: conversationId(source), target: conversationId(target) };
}

const conversationId = (digits: string): ConversationId => Number(digits) as ConversationId;

const detailLines = laidOutOnce(({ change, stepsLeft }: ChangeSteps, page): readonly string[] => {
  const { paint, typed } = page;
  const inner = { ...page, columns: page.columns - 2 };
  const rest = `${plural(stepsLeft, "more step", "more steps")}: \`lcm history --change ${change.change}\` shows all`;
  return [
    ...changeLines(inner, change, inner.columns),
    ...(stepsLeft === 0 ? [] : [paint.caution(typed(rest))]),
    paint.soft(standing(change)),
  ].map((line) => ` ${line}`);
});

function standing({ state, undoneBy, wayBack }: Change): string {
  const by = `by change ${listed(undoneBy.map(String))}`;
  switch (state) {
    case "holds":
      return "press u to undo it";
    case "partly undone":
      return `partly undone ${by}; press u to undo the rest`;
    case "undone":
      return `undone ${by}; press u to redo it`;
    case "for good":
      return wayBack === null ? "this cannot be undone" : "press u to copy them again";
  }
}

function scroll(state: HistoryScreen, lines: number, frame: Frame): Step<HistoryScreen> {
  const { detail } = state;
  if (detail === null) return { state };
  const rows = Math.max(1, frame.rows - headRows - changesSeen(state, frame) - 1);
  return { state: { ...state, top: scrolled(state.top, lines, detailLines(detail, frame).length, rows) } };
}

function reading(state: HistoryScreen, frame: Frame): Step<HistoryScreen> {
  const { detail } = state;
  if (detail === null || detail.change.change !== selected(state)?.change) return { state };
  const lines = detailLines(detail, textPage(frame));
  return { state, ...goTo({ kind: "text", title: `change ${detail.change.change}`, lines }) };
}
