/** The transcripts screen: the host's transcripts, how much of each is stored, and their import. */

import type { Frame, Module, Step } from "../contract.ts";
import { fitAll, listTable, rule } from "../widgets/draw.ts";
import { createRows, startOfList, stayed, type List } from "../widgets/list.ts";
import type { Progress, Transcript } from "../../operator/port.ts";
import type { Transcripts } from "./asks.ts";
import { formatBytes, formatCount, plural } from "../../core/base/format.ts";
import { breakLines } from "../../format/width.ts";
import type { Column } from "../../format/table.ts";
import { clockTime } from "../../format/times.ts";
import { oneLine } from "../../format/safe-text.ts";

export interface TranscriptsScreen {
  readonly kind: "transcripts";
  /** Null until they are read. */
  readonly there: Transcripts | null;
  /** Whether reading them failed. */
  readonly isUnknown: boolean;
  readonly list: List;
  /** What is imported after a yes. */
  readonly proposed: readonly Transcript[] | null;
  readonly work: Work | null;
}

interface Work {
  /** The first is being imported. */
  readonly left: readonly Transcript[];
  readonly of: number;
  readonly progress: Progress | null;
  /** How many could not be imported. */
  readonly failed: number;
}

const found = ({ there }: TranscriptsScreen): readonly Transcript[] => there?.found ?? [];
const selected = (state: TranscriptsScreen): Transcript | null => found(state)[state.list.cursor] ?? null;
const missing = (state: TranscriptsScreen): readonly Transcript[] => found(state).filter(({ isStored }) => !isStored);

const isIdle = ({ work, proposed }: TranscriptsScreen): boolean => work === null && proposed === null;
const isAsked = ({ proposed }: TranscriptsScreen): boolean => proposed !== null;

const headRows = 2;
const footRows = 2;
const seenRows = ({ rows }: Frame): number => Math.max(1, rows - headRows - footRows);

const rows = createRows<TranscriptsScreen>({
  count: (state) => found(state).length,
  place: (_, frame) => ({ above: headRows, rows: seenRows(frame) }),
  open: (state, { readOnly }) => (isIdle(state) && readOnly === null ? proposing(state, selected(state)) : { state }),
});

export const transcriptsModule: Module<TranscriptsScreen> = {
  name: "Transcripts",
  open: (place) => ({ ...place, there: null, isUnknown: false, list: startOfList, proposed: null, work: null }),
  keys: [
    {
      keys: ["y", "enter"],
      short: "yes",
      help: "start the import",
      changes: true,
      when: isAsked,
      does({ proposed, ...state }) {
        const left = proposed ?? [];
        return importing({ ...state, proposed: null, work: { left, of: left.length, progress: null, failed: 0 } });
      },
    },
    {
      keys: ["n", "escape"],
      short: "no",
      help: "do not import",
      when: isAsked,
      does: (state) => ({ state: { ...state, proposed: null } }),
    },
    {
      keys: ["i", "enter"],
      short: "import",
      help: "import the selected transcript",
      changes: true,
      when: isIdle,
      disabled: (state) => (selected(state) === null ? "no transcript is selected" : null),
      does: (state) => proposing(state, selected(state)),
    },
    {
      keys: ["A"],
      short: "all",
      help: "import all that are not fully stored",
      changes: true,
      when: isIdle,
      disabled: (state) => (missing(state).length === 0 ? "all are fully stored" : null),
      does: (state) => ({ state: { ...state, proposed: missing(state) } }),
    },
    {
      keys: ["escape"],
      short: "stop",
      help: "stop after the current transcript",
      when: ({ work }) => work !== null,
      does({ work, ...state }) {
        const left = work?.left.slice(0, 1) ?? [];
        const of = (work?.of ?? 0) - ((work?.left.length ?? 0) - left.length);
        return {
          state: { ...state, work: work && { ...work, left, of } },
          notice: { tone: "info", text: "stopping after this one; press q to stop now" },
        };
      },
    },
    ...rows.keys,
  ],
  title: () => "transcripts",
  isUnread: ({ there, isUnknown }) => there === null && !isUnknown,
  isBusy: ({ work }) => work !== null,
  // During an import every change is our own; it reads the list when it ends.
  reads: ({ work }) => (work === null ? [{ kind: "transcripts" }] : []),
  answers: {
    // A list read before or during an import is outdated.
    transcripts: (state, result, frame) => ({
      state: state.work === null ? kept(state, result, seenRows(frame)) : state,
    }),
    importTranscript: (state, result, _, { transcript }) => imported(state, transcript, result),
  },
  on: {
    ...rows.on,
    failed(state, { ask, failure }) {
      if (ask.kind !== "importTranscript") return { state: { ...state, isUnknown: true } };
      return next(state, true, `${ask.transcript.sessionId}: ${failure.message}`);
    },
    progress: (state, { progress }) => ({ state: { ...state, work: state.work && { ...state.work, progress } } }),
  },
  draw,
};

const proposing = (state: TranscriptsScreen, one: Transcript | null): Step<TranscriptsScreen> => ({
  state: { ...state, proposed: one && [one] },
});

const importing = (state: TranscriptsScreen): Step<TranscriptsScreen> => {
  const current = state.work?.left[0];
  return current === undefined ? { state } : { state, asks: [{ kind: "importTranscript", transcript: current }] };
};

function imported(state: TranscriptsScreen, { path, sessionId }: Transcript, words: string): Step<TranscriptsScreen> {
  const { there } = state;
  const marked = found(state).map((each) => (each.path === path ? { ...each, isStored: true } : each));
  return next({ ...state, there: there && { ...there, found: marked } }, false, `${sessionId}: ${words}`);
}

/** Goes on to the next transcript, or ends with a report. */
function next(state: TranscriptsScreen, hasFailed: boolean, words: string): Step<TranscriptsScreen> {
  const { work } = state;
  if (work === null) return { state };
  const failed = work.failed + (hasFailed ? 1 : 0);
  const left = work.left.slice(1);
  if (left.length > 0) return importing({ ...state, work: { ...work, left, failed, progress: null } });
  const text = work.of === 1 ? words : `${plural(work.of - failed, "transcript")} imported, the last ${words}`;
  const result = work.of > 1 && failed > 0 ? `${failed} could not be imported; ${words}` : text;
  return {
    state: { ...state, work: null },
    asks: [{ kind: "transcripts" }],
    notice: { tone: failed > 0 ? "bad" : "good", text: oneLine(result) },
  };
}

/** Keeps the cursor on its file. */
function kept(state: TranscriptsScreen, there: Transcripts, rows: number): TranscriptsScreen {
  const before = selected(state)?.path;
  const at = there.found.findIndex(({ path }) => path === before);
  return { ...state, there, isUnknown: false, list: stayed(state.list, at, there.found.length, rows) };
}

function draw(state: TranscriptsScreen, frame: Frame): readonly string[] {
  const { there, isUnknown, list } = state;
  const { columns } = frame;
  if (there === null) return ["", isUnknown ? "  the transcripts cannot be read" : "  reading …"];
  if (there.found.length === 0) return nothing(there.folder, frame);
  const rows = seenRows(frame);
  const lines = listTable({ ...list, items: there.found }, columnsOf(frame), (each) => cells(each, frame), {
    ...frame,
    rows,
  });
  const unstored = missing(state).length;
  const howMuch = unstored === 0 ? "all stored" : `${formatCount(unstored)} not fully stored`;
  const head = `${plural(there.found.length, "transcript")} · ${howMuch} · in ${oneLine(there.folder)}`;
  return [`  ${head}`, ...fitAll(lines, columns, rows + 1), ...foot(state, frame)];
}

const columnsOf = ({ paint }: Frame): readonly Column[] => [
  {
    title: "stored",
    paint: (cell) => (cell === "yes" ? paint.good(cell) : cell === "no" ? cell : paint.caution(cell)),
  },
  { title: "session", flexible: true },
  { title: "agent", spare: true },
  { title: "size", align: "right" },
  { title: "changed" },
  { title: "conversation", align: "right", spare: true },
];

const cells = (transcript: Transcript, { zone }: Frame): readonly string[] => [
  transcript.isStored ? "yes" : transcript.conversation === null ? "no" : "partly",
  oneLine(transcript.sessionId),
  oneLine(transcript.agentId ?? ""),
  formatBytes(transcript.bytes),
  clockTime(transcript.modifiedAt, zone),
  transcript.conversation === null ? "" : String(transcript.conversation),
];

function foot(state: TranscriptsScreen, { columns, paint }: Frame): readonly string[] {
  const { proposed, work } = state;
  if (proposed !== null) {
    const bytes = proposed.reduce((sum, each) => sum + each.bytes, 0);
    const [only] = proposed;
    const what =
      proposed.length === 1 && only !== undefined ? oneLine(only.sessionId) : plural(proposed.length, "transcript");
    return [rule("", columns, paint), `  ${paint.strong(`Import ${what}, ${formatBytes(bytes)}?`)} y yes, n no`];
  }
  if (work === null) return [];
  const { progress, of, left } = work;
  const far =
    progress === null || progress.of === null ? "" : `, ${formatBytes(progress.done)} of ${formatBytes(progress.of)}`;
  const now = `importing ${of - left.length + 1} of ${of}: ${oneLine(left[0]?.sessionId ?? "")}${far}`;
  return [rule("", columns, paint), `  ${now}`];
}

const nothing = (folder: string, { columns, paint }: Frame): readonly string[] => [
  "",
  `  ${paint.strong("No transcripts")}`,
  "",
  ...breakLines(
    `${oneLine(folder)} has no session files (.jsonl). Pass another folder with \`lcm tui --sessions FOLDER\`, or import any ` +
      "transcript with `lcm import FILE`. A host that keeps its sessions in a database needs no import.",
    Math.min(76, columns - 4),
  ).map((line) => `  ${line}`),
];
