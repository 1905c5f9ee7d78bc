/** Copying what one conversation knows into another: which other, what would be copied, then yes or no. */

import type { ConversationId } from "../../core/model.ts";
import { clockTime, plural, table } from "../../show/render.ts";
import { formatCount } from "../../core/text.ts";
import type { Frame, LayerEvent, Module, Place, Step } from "../contract.ts";
import { row } from "../draw.ts";
import { drawField, field, pasted, textOf, typed } from "../field.ts";
import type { Field } from "../field.ts";
import { moved, seen, startOfList, wheeled } from "../list.ts";
import type { List, ListAction } from "../list.ts";
import type { Target } from "./changes-asks.ts";
import { planKeys, planModule, startPlanning, updatePlan } from "./plan.ts";
import type { PlanAction, Planning } from "./plan.ts";

export type TransplantDialog = Picking | Copying;

interface Picking {
  readonly kind: "transplant";
  readonly source: ConversationId;
  /** What a target's number or name has to hold. */
  readonly filter: Field;
  /** Newest first; null until they have been read. */
  readonly targets: readonly Target[] | null;
  /** Those that the filter leaves. */
  readonly found: readonly Target[];
  readonly list: List;
}

interface Copying extends Planning {
  readonly kind: "transplant";
  readonly source: ConversationId;
  readonly target: ConversationId;
}

const isCopying = (state: TransplantDialog): state is Copying => "target" in state;

export function openTransplant({
  source,
  target,
}: Extract<Place, { readonly kind: "transplant" }>): Step<TransplantDialog> {
  if (target !== undefined) return copying(source, target);
  return {
    state: { kind: "transplant", source, filter: field(), targets: null, found: [], list: startOfList },
    asks: [{ kind: "transplantTargets", source }],
  };
}

function copying(source: ConversationId, target: ConversationId): Step<Copying> {
  const { state, asks } = startPlanning({ kind: "transplant", source, target });
  return { state: { ...state, kind: "transplant", source, target }, asks };
}

const columnsMax = 90;
/** What is asked, the filter and the table's heading. */
const headRows = 4;

export const transplantModule: Module<TransplantDialog, PlanAction> = {
  name: "Transplant",
  keys: planKeys.map(({ disabled, ...binding }) => ({
    ...binding,
    disabled: (state: TransplantDialog, frame: Frame) => (isCopying(state) ? (disabled?.(state, frame) ?? null) : null),
  })),
  isOffered: (state, action) => isCopying(state) && planModule.isOffered(state, action),
  box: (state, frame) =>
    isCopying(state)
      ? planModule.box(state, frame)
      : { columns: Math.min(columnsMax, frame.columns - 4), rows: headRows + Math.max(1, state.targets?.length ?? 1) },
  title: (state) => `transplant conversation ${state.source}${isCopying(state) ? ` into ${state.target}` : ""}`,
  isTyping: (state) => !isCopying(state),
  isBusy: (state) => (isCopying(state) ? planModule.isBusy(state) : state.targets === null),
  update: (state, event, frame) =>
    isCopying(state) ? updatePlan(state, event, frame) : picked(state, event, frame.rows - headRows),
  draw: (state, frame) => (isCopying(state) ? planModule.draw(state, frame) : drawTargets(state, frame)),
};

// ── Picking ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Everything that is typed filters; these are for the list. */
const listNames: Readonly<Record<string, ListAction>> = {
  up: "up",
  down: "down",
  pageUp: "pageUp",
  pageDown: "pageDown",
};

function picked(state: Picking, event: LayerEvent<PlanAction>, rows: number): Step<TransplantDialog> {
  const { source, list, found } = state;
  const pick = (at: number): Step<TransplantDialog> => {
    const target = found[at];
    return target === undefined ? { state } : copying(source, target.id);
  };
  switch (event.kind) {
    case "answer":
      return event.answer.kind === "transplantTargets"
        ? { state: filtered({ ...state, targets: event.answer.told }, rows) }
        : { state };
    case "failed":
      return { state: { ...state, targets: state.targets ?? [] } };
    case "changed":
    case "returned":
      return { state, asks: [{ kind: "transplantTargets", source }] };
    case "resized":
      return { state: { ...state, list: seen(list, found.length, rows) } };
    case "wheel":
      return { state: { ...state, list: wheeled(list, event.lines, found.length, rows) } };
    case "click": {
      const cursor = list.top + event.row - headRows;
      if (event.row < headRows || cursor >= found.length) return { state };
      return event.count > 1 ? pick(cursor) : { state: { ...state, list: { ...list, cursor } } };
    }
    case "pasted":
      return { state: filtered({ ...state, filter: pasted(state.filter, event.text) }, rows) };
    case "key": {
      const { name } = event.key;
      if (name === "escape") return { state, go: { kind: "back" } };
      if (name === "enter") return pick(list.cursor);
      const action = listNames[name];
      if (action !== undefined) return { state: { ...state, list: moved(list, action, found.length, rows) } };
      const filter = typed(state.filter, event.key);
      return { state: filter === state.filter ? state : filtered({ ...state, filter }, rows) };
    }
    default:
      return { state };
  }
}

/** The cursor stays on its conversation, if that is still one of them. */
function filtered(state: Picking, rows: number): Picking {
  const words = textOf(state.filter).toLowerCase().split(" ");
  const isMeant = ({ id, name }: Target): boolean => {
    const text = `${id} ${name}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const found = (state.targets ?? []).filter(isMeant);
  const cursor = found.findIndex(({ id }) => id === state.found[state.list.cursor]?.id);
  return { ...state, found, list: seen({ ...state.list, cursor }, found.length, rows) };
}

function drawTargets({ targets, found, filter, list }: Picking, frame: Frame): readonly string[] {
  const { columns, rows, paint, zone } = frame;
  const head = [
    `Copy its summaries into which conversation? ${paint.soft("type to filter, ↵ picks")}`,
    drawField(">", filter, columns, paint),
    "",
  ];
  if (targets === null) return [...head, "  reading …"];
  if (targets.length === 0) return [...head, "  there is no other conversation"];
  if (found.length === 0) return [...head, `  none of ${plural(targets.length, "conversation")} is called that`];
  const [heading = "", ...lines] = table(
    [
      { title: "id", align: "right" },
      { title: "conversation", flexible: true },
      { title: "messages", align: "right" },
      { title: "summaries", align: "right", spare: true },
      { title: "last message", spare: true },
    ],
    found
      .slice(list.top, list.top + rows - headRows)
      .map(({ id, name, messages, summaries, lastMessageAt }) => [
        String(id),
        name,
        formatCount(messages),
        formatCount(summaries),
        lastMessageAt === null ? "–" : clockTime(lastMessageAt, zone),
      ]),
    columns - 2,
    paint,
  );
  return [
    ...head,
    `  ${heading}`,
    ...lines.map((line, at) => row(line, list.top + at === list.cursor, columns, paint)),
  ];
}
