/** The dialog that picks the target of a transplant; typing filters the list. */

import type { Conversation, ConversationId } from "../../core/model/types.ts";
import { nameOf } from "../../format/conversations.ts";
import type { Frame, Module, Step } from "../contract.ts";
import { listTable } from "../widgets/draw.ts";
import { drawField, field, pasted, textOf, typed, type Field } from "../widgets/field.ts";
import { createRows, seen, startOfList, type List } from "../widgets/list.ts";
import { formatCount, plural } from "../../core/base/format.ts";
import { clockTime } from "../../format/times.ts";

export interface TargetsDialog {
  readonly kind: "targets";
  readonly source: ConversationId;
  readonly filter: Field;
  /** Newest first; null until they are read. */
  readonly targets: readonly Conversation[] | null;
  /** Those that match the filter. */
  readonly found: readonly Conversation[];
  readonly list: List;
}

const columnsMax = 90;
/** The question, the filter, a blank line and the table's heading. */
const headRows = 4;

const rows = createRows<TargetsDialog>({
  count: ({ found }) => found.length,
  place: (_, frame) => ({ above: headRows, rows: frame.rows - headRows }),
  open: pick,
});

export const targetsModule: Module<TargetsDialog> = {
  name: "Transplant target",
  open: (place) => ({ ...place, filter: field(), targets: null, found: [], list: startOfList }),
  keys: [],
  box: ({ targets }, { columns }) => ({
    columns: Math.min(columnsMax, columns - 4),
    rows: headRows + Math.max(1, targets?.length ?? 1),
  }),
  title: ({ source }) => `transplant conversation ${source}`,
  isTyping: () => true,
  isBusy: ({ targets }) => targets === null,
  reads: ({ source }) => [{ kind: "transplantTargets", source }],
  answers: { transplantTargets: (state, targets, frame) => filtered({ ...state, targets }, frame) },
  on: {
    ...rows.on,
    failed: (state) => ({ state: { ...state, targets: state.targets ?? [] } }),
    pasted: (state, { text }, frame) => filtered({ ...state, filter: pasted(state.filter, text) }, frame),
    key(state, { key }, frame) {
      switch (key.name) {
        case "escape":
          return { state, go: { kind: "back" } };
        case "enter":
          return pick(state);
        default:
          return rows.arrow(state, key, frame) ?? filtered({ ...state, filter: typed(state.filter, key) }, frame);
      }
    },
  },
  draw,
};

function pick(state: TargetsDialog): Step<TargetsDialog> {
  const { source, found, list } = state;
  const target = found[list.cursor]?.id;
  if (target === undefined) return { state };
  return { state, go: { kind: "become", place: { kind: "transplant", source, target } } };
}

/** Keeps the cursor on its conversation if that still matches. */
function filtered(state: TargetsDialog, frame: Frame): Step<TargetsDialog> {
  const words = textOf(state.filter).toLowerCase().split(" ");
  const isMatch = (conversation: Conversation): boolean => {
    const text = `${conversation.id} ${nameOf(conversation)}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const found = (state.targets ?? []).filter(isMatch);
  const cursor = found.findIndex(({ id }) => id === state.found[state.list.cursor]?.id);
  return { state: { ...state, found, list: seen({ ...state.list, cursor }, found.length, frame.rows - headRows) } };
}

function draw({ targets, found, filter, list }: TargetsDialog, frame: Frame): readonly string[] {
  const { columns, paint, zone } = frame;
  const head = [
    `Copy its summaries into which conversation? ${paint.soft("type to filter, ↵ to pick")}`,
    drawField(">", filter, columns, paint),
    "",
  ];
  if (targets === null) return [...head, "  reading …"];
  if (targets.length === 0) return [...head, "  there are no other conversations"];
  if (found.length === 0) return [...head, `  none of ${plural(targets.length, "conversation")} matches`];
  return [
    ...head,
    ...listTable(
      { ...list, items: found },
      [
        { title: "id", align: "right" },
        { title: "conversation", flexible: true },
        { title: "messages", align: "right" },
        { title: "summaries", align: "right", spare: true },
        { title: "last message", spare: true },
      ],
      (each) => [
        String(each.id),
        nameOf(each),
        formatCount(each.totals.messages),
        formatCount(each.totals.summaries),
        each.lastMessageAt === null ? "–" : clockTime(each.lastMessageAt, zone),
      ],
      { ...frame, rows: frame.rows - headRows },
    ),
  ];
}
