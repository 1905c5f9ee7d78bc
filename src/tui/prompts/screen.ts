/** The prompts screen: what the model saw, turn by turn, with what changed from one prompt to the next. */

import { formatCount } from "../../core/base/format.ts";
import type { ConversationId, MessageId } from "../../core/model/types.ts";
import type { PromptCost } from "../../core/seen/stats.ts";
import { budgetLine, wholeItem } from "../../format/context.ts";
import type { Page } from "../../format/page.ts";
import { comparisonLines, promptItemLines, promptLines, rebuiltLines } from "../../format/seen.ts";
import { promptTable, statsPlot } from "../../format/stats.ts";
import { goTo, type Asking, type Frame, type Module, type Step } from "../contract.ts";
import { fit, laidOutOnce, listRows, rule, textPage, windowed } from "../widgets/draw.ts";
import { createRows, scrolled, startOfList, stayed, textKeys, type List } from "../widgets/list.ts";
import type { PromptDetail, Prompts } from "../../operator/prompts.ts";

export interface PromptsScreen {
  readonly kind: "prompts";
  readonly conversation: ConversationId;
  /** The message whose prompt is looked for, until it is found. */
  readonly behind: MessageId | null;
  /** Null until they are read. */
  readonly prompts: Prompts | null;
  readonly limit: number;
  readonly list: List;
  /** The selected prompt. */
  readonly detail: PromptDetail | null;
  readonly top: number;
}

const promptsPerStep = 200;

const promptsAsk = ({ conversation, limit, behind }: PromptsScreen): Asking => ({
  kind: "prompts",
  conversation,
  limit,
  behind,
});

/** The newest first. */
const rowsOf = ({ prompts }: PromptsScreen): readonly PromptCost[] => prompts?.stats.prompts.toReversed() ?? [];

const selected = (state: PromptsScreen): PromptCost | null => rowsOf(state)[state.list.cursor] ?? null;

const none = (state: PromptsScreen): string | null => (selected(state) === null ? "no prompt is selected" : null);

const rows = createRows<PromptsScreen>({
  count: ({ prompts }) => prompts?.stats.prompts.length ?? 0,
  place: (state, frame) => ({ above: headRows, rows: promptsSeen(state, frame) }),
  open: reading,
  scroll,
});

export const promptsModule: Module<PromptsScreen> = {
  name: "Prompts",
  open: ({ kind, conversation, behind = null }) => ({
    kind,
    conversation,
    behind,
    prompts: null,
    limit: promptsPerStep,
    list: startOfList,
    detail: null,
    top: 0,
  }),
  keys: [
    {
      keys: ["enter"],
      short: "whole prompt",
      help: "show the whole prompt as it was sent",
      disabled: none,
      does: reading,
    },
    ...rows.keys,
    ...textKeys(scroll),
  ],
  title: ({ conversation }) => `prompts of ${conversation}`,
  isUnread: ({ prompts }) => prompts === null,
  reads: (state) => [promptsAsk(state)],
  answers: {
    prompts: read,
    promptDetail: (state, detail) => ({
      state: { ...state, detail, top: isOf(detail, state.detail) ? state.top : 0 },
    }),
  },
  on: { ...rows.on },
  follow,
  draw(state, frame) {
    const { columns, paint } = frame;
    if (state.prompts === null) return ["", "  reading …"];
    const { stats } = state.prompts;
    if (stats.prompts.length === 0)
      return ["", "  no prompts are recorded: the host builds its own, or none was sent yet"];
    const { list, detail } = state;
    const shown = promptsSeen(state, frame);
    const { lines, times } = promptTable({ ...frame, bounds: columns - 2 }, rowsOf(state));
    const [head = "", ...all] = lines;
    const below = frame.rows - headRows - shown - 1;
    return [
      ...statsPlot(frame, stats).map((line) => fit(line, columns)),
      fit(`  ${head}`, columns),
      ...listRows(all.slice(list.top, list.top + shown), list, columns, paint),
      rule(times, columns, paint),
      ...windowed(detail === null ? [] : detailLines(detail, frame), state.top, { ...frame, rows: Math.max(0, below) }),
    ].slice(0, frame.rows);
  },
};

/** The plot, and the heading of the table. */
const headRows = 4;

/** Prompts take up to half of the room. */
function promptsSeen({ prompts }: PromptsScreen, frame: Frame): number {
  const room = frame.rows - headRows - 1;
  return Math.max(1, Math.min(prompts?.stats.prompts.length ?? 0, Math.floor(room / 2)));
}

const isOf = (one: PromptDetail, other: PromptDetail | null): boolean =>
  one.seen.record.number === other?.seen.record.number;

/** Keeps the cursor on its prompt, or goes to the one that is looked for. */
function read(state: PromptsScreen, prompts: Prompts, frame: Frame): Step<PromptsScreen> {
  const known = { ...state, prompts };
  const number = selected(state)?.number ?? prompts.behind;
  const at = rowsOf(known).findIndex((prompt) => prompt.number === number);
  const isBeyond = prompts.behind !== null && at < 0 && prompts.isMore;
  if (isBeyond) {
    const next = { ...known, limit: state.limit * 4 };
    return { state: { ...next, prompts: null }, asks: [promptsAsk(next)] };
  }
  const list = stayed(state.list, at, prompts.stats.prompts.length, promptsSeen(known, frame));
  const missing = state.behind !== null && prompts.behind === null;
  return {
    state: { ...known, list, behind: null },
    ...(missing && { notice: { tone: "bad", text: "no prompt behind this message is recorded" } as const }),
  };
}

/** Older ones are read this long before they are reached. */
const ahead = 20;

function follow(state: PromptsScreen, _: Frame, before: PromptsScreen): Step<PromptsScreen> {
  const { conversation } = state;
  const number = selected(state)?.number;
  const isOther = state.prompts !== before.prompts || number !== selected(before)?.number;
  const asks: readonly Asking[] =
    number !== undefined && isOther ? [{ kind: "promptDetail", conversation, number }] : [];
  const count = state.prompts?.stats.prompts.length ?? 0;
  const isDone = state.prompts?.isMore !== true || state.limit > count || state.list.cursor < count - ahead;
  if (isDone) return { state, asks };
  const next = { ...state, limit: state.limit + promptsPerStep };
  return { state: next, asks: [...asks, promptsAsk(next)] };
}

const detailLines = laidOutOnce(({ seen, rebuilt, items, changes }: PromptDetail, page): readonly string[] => {
  const inner = { ...page, columns: page.columns - 2, bounds: page.columns - 2 };
  return [
    ...promptLines(inner, seen),
    ...(changes === null ? [] : comparisonLines(inner, changes)),
    "",
    ...(seen.record.head.hosts === undefined
      ? [budgetLine(inner, rebuilt.assembly.report, `prompt ${formatCount(seen.record.number)}`)]
      : []),
    ...promptItemLines(inner, items),
    "",
    ...rebuiltLines(inner, rebuilt),
  ].map((line) => fit(` ${line}`, page.columns));
});

function scroll(state: PromptsScreen, lines: number, frame: Frame): Step<PromptsScreen> {
  const { detail } = state;
  if (detail === null) return { state };
  const seen = Math.max(1, frame.rows - headRows - promptsSeen(state, frame) - 1);
  return { state: { ...state, top: scrolled(state.top, lines, detailLines(detail, frame).length, seen) } };
}

function reading(state: PromptsScreen, frame: Frame): Step<PromptsScreen> {
  const { detail } = state;
  if (detail === null || detail.seen.record.number !== selected(state)?.number) return { state };
  return {
    state,
    ...goTo({ kind: "text", title: `prompt ${detail.seen.record.number}`, lines: wholeLines(detail, textPage(frame)) }),
  };
}

const wholeLines = ({ rebuilt, items }: PromptDetail, page: Page): readonly string[] => [
  ...rebuiltLines(page, rebuilt),
  ...items.flatMap((item) => {
    const { head, text } = wholeItem(page, item);
    return ["", head, ...text.split("\n")];
  }),
];
