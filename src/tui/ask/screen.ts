/** The answer screen: the answer to a question, and its sources, which can be opened. */

import { plural } from "../../core/base/format.ts";
import { messageName, type ConversationId } from "../../core/model/types.ts";
import { timestampToMs, type Timestamp } from "../../core/base/time.ts";
import { answerLines, caveatWords } from "../../format/answer.ts";
import { mapPlanLines } from "../../format/map.ts";
import { oneLine } from "../../format/safe-text.ts";
import { breakLines } from "../../format/width.ts";
import { opens } from "../contract.ts";
import type { Binding, Destination, Frame, Module, Step } from "../contract.ts";
import { rule, spinner, windowed } from "../widgets/draw.ts";
import { createScroll, scrolled } from "../widgets/list.ts";
import type { Answered, PlannedReading } from "./asks.ts";

export interface AskScreen {
  readonly kind: "ask";
  readonly conversation: ConversationId | null;
  readonly question: string;
  /** Null until it is answered. */
  readonly answered: Answered | null;
  readonly trouble: string | null;
  /** What reading every message would take; null until it is asked for. */
  readonly planned: PlannedReading | null;
  readonly isPlanning: boolean;
  /** What is being done, and since when. */
  readonly words: string;
  readonly since: Timestamp | null;
  readonly top: number;
}

const scroll = createScroll<AskScreen>((state, by, frame) => ({
  ...state,
  top: scrolled(state.top, by, linesOf(state, frame).length, frame.rows),
}));

const sourcesMax = 9;

/** `1` opens the first source, and so on. */
const sourceKeys: readonly Binding<AskScreen>[] = Array.from({ length: sourcesMax }, (_, at) => ({
  keys: [String(at + 1)],
  help: `open source ${at + 1}`,
  when: (state: AskScreen) => sourceAt(state, at) !== null,
  does: opens<AskScreen>((state) => sourceAt(state, at)),
}));

export const askModule: Module<AskScreen> = {
  name: "Answer",
  open: ({ kind, conversation, question }) => ({
    kind,
    conversation,
    question,
    answered: null,
    trouble: null,
    planned: null,
    isPlanning: false,
    words: "searching",
    since: null,
    top: 0,
  }),
  keys: [
    {
      keys: ["a", "/"],
      short: "ask again",
      help: "ask another question",
      does: opens(({ conversation }) => ({ kind: "line", question: { kind: "ask", conversation } })),
    },
    {
      keys: ["t"],
      short: "read all",
      help: "show what it costs to read every message for this question; press it again to read them",
      changes: true,
      asksModel: true,
      when: ({ answered, isPlanning }) => answered !== null && !isPlanning,
      does: readAll,
    },
    ...sourceKeys,
    ...scroll.keys,
  ],
  title: () => "answer",
  isBusy: ({ answered, trouble, isPlanning }) => isPlanning || (answered === null && trouble === null),
  reads: ({ conversation, question }) => [{ kind: "question", conversation, question }],
  answers: {
    question: (state, answered) => ({ state: { ...state, answered, trouble: null } }),
    planReading: (state, planned) => ({ state: { ...state, planned, isPlanning: false, top: 0 } }),
    readAll: (state, answered) => ({ state: { ...state, answered, trouble: null } }),
  },
  on: {
    ...scroll.on,
    // A question is asked once, however often the database changes.
    changed: (state) => ({ state }),
    returned: (state) => ({ state }),
    failed: (state, { failure }) => ({ state: { ...state, isPlanning: false, trouble: failure.message } }),
    progress: (state, { progress }, { now }) => ({
      state: { ...state, words: progress.words, since: state.since ?? now },
    }),
  },
  draw: (state, frame) => windowed(linesOf(state, frame), state.top, frame),
};

function readAll(state: AskScreen): Step<AskScreen> {
  const { conversation, question } = state;
  if (state.planned === null)
    return { state: { ...state, isPlanning: true }, asks: [{ kind: "planReading", conversation, question }] };
  const reading = { ...state, planned: null, answered: null, words: "reading every message", since: null };
  return { state: reading, asks: [{ kind: "readAll", conversation, question }] };
}

function linesOf(state: AskScreen, frame: Frame): readonly string[] {
  const { columns, paint } = frame;
  const page = { ...frame, columns: columns - 4, bounds: columns - 4 };
  const body = bodyLines(state, page);
  const question = breakLines(oneLine(state.question), page.columns).map(paint.strong);
  return ["", ...question, "", ...body].map((line) => `  ${line}`);
}

function bodyLines(state: AskScreen, frame: Frame): readonly string[] {
  const { columns, paint, beat } = frame;
  if (state.trouble !== null) return breakLines(oneLine(state.trouble), columns).map(paint.caution);
  if (state.answered === null)
    return [`${spinner(beat)} ${oneLine(state.words)} …${secondsWords(state, frame)}`, "", paint.soft("esc stops it")];
  const { answer, model, sources } = state.answered;
  const notes = [
    ...answer.caveats.map(caveatWords),
    ...(answer.truncated ? ["the answer was cut"] : []),
    ...(answer.partial === null || model === null ? [] : [answer.partial]),
  ];
  const listed = sources.map(
    ({ at: of }, at) =>
      `${at < sourcesMax ? paint.strong(String(at + 1)) : " "}  ${typeof of === "number" ? messageName(of) : of}`,
  );
  const read = `${plural(answer.totalSourceTokens, "token")} read`;
  const by = model === null ? (frame.noModel ?? "passages that match, without a model") : `answered by ${model}`;
  return [
    ...planLines(state, frame),
    ...answerLines(frame, answer),
    ...(listed.length === 0 ? [] : ["", rule("sources: press a number to open one", columns, paint), ...listed]),
    "",
    ...notes.flatMap((words) => breakLines(`note: ${frame.typed(oneLine(words))}`, columns).map(paint.caution)),
    ...breakLines(`${read}; ${by}`, columns).map(paint.soft),
  ];
}

function planLines({ planned, isPlanning }: AskScreen, frame: Frame): readonly string[] {
  const { paint, columns, beat } = frame;
  if (isPlanning) return [`${spinner(beat)} counting what there is to read …`, ""];
  if (planned === null) return [];
  return [
    rule("reading every message: press t to do it", columns, paint),
    ...mapPlanLines(frame, planned.plan, planned.model, planned.spend),
    rule("the answer so far", columns, paint),
  ];
}

const secondsWords = ({ since }: AskScreen, { now }: Frame): string =>
  since === null ? "" : ` ${Math.max(0, Math.floor((timestampToMs(now) - timestampToMs(since)) / 1_000))} s`;

const sourceAt = ({ answered }: AskScreen, at: number): Destination | null => answered?.sources[at] ?? null;
