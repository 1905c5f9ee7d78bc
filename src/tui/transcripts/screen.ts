/** The host's transcripts, how much of each is stored, and storing what is not: one of them, or all. */

import type { Frame, Module, Step } from "../contract.ts";
import { fitAll, listTable, rule } from "../widgets/draw.ts";
import { createRows, startOfList, stayed } from "../widgets/list.ts";
import type { List } from "../widgets/list.ts";
import type { Progress, Transcript } from "../port.ts";
import type { Transcripts } from "./asks.ts";
import { formatBytes, formatCount, plural } from "../../core/base/format.ts";
import { breakLines } from "../../format/width.ts";
import type { Column } from "../../format/table.ts";
import { clockTime } from "../../format/times.ts";
import { oneLine } from "../../format/safe-text.ts";

export interface TranscriptsScreen {
  readonly kind: "transcripts";
  /** Null until they have been looked for. */
  readonly there: Transcripts | null;
  /** Whether looking for them has failed. */
  readonly isUnknown: boolean;
  readonly list: List;
  /** What is to be imported, as soon as somebody says yes. */
  readonly proposed: readonly Transcript[] | null;
  readonly work: Work | null;
}

/** An import under way. */
interface Work {
  /** The first is the present one. */
  readonly left: readonly Transcript[];
  readonly of: number;
  readonly progress: Progress | null;
  /** Those that were not stored, each with the reason. */
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
      says: "import what was asked about",
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
      says: "import nothing",
      when: isAsked,
      does: (state) => ({ state: { ...state, proposed: null } }),
    },
    {
      keys: ["i", "enter"],
      short: "import",
      says: "import this one",
      changes: true,
      when: isIdle,
      disabled: (state) => (selected(state) === null ? "there is no transcript" : null),
      does: (state) => proposing(state, selected(state)),
    },
    {
      keys: ["A"],
      short: "all",
      says: "import all that are not stored, or not all of them",
      changes: true,
      when: isIdle,
      disabled: (state) => (missing(state).length === 0 ? "everything is stored" : null),
      does: (state) => ({ state: { ...state, proposed: missing(state) } }),
    },
    {
      keys: ["escape"],
      short: "stop",
      says: "stop importing after the present one",
      when: ({ work }) => work !== null,
      does({ work, ...state }) {
        const left = work?.left.slice(0, 1) ?? [];
        const of = (work?.of ?? 0) - ((work?.left.length ?? 0) - left.length);
        return {
          state: { ...state, work: work && { ...work, left, of } },
          notice: { tone: "said", text: "stopping after this one; q ends it at once" },
        };
      },
    },
    ...rows.keys,
  ],
  title: () => "transcripts",
  isUnread: ({ there, isUnknown }) => there === null && !isUnknown,
  isBusy: ({ work }) => work !== null,
  // While an import is under way every change is our own, and it ends with a look at all.
  reads: ({ work }) => (work === null ? [{ kind: "transcripts" }] : []),
  answers: {
    // What was looked at before an import, or during one, is older than what it has told.
    transcripts: (state, told, frame) => ({ state: state.work === null ? kept(state, told, seenRows(frame)) : state }),
    importTranscript: (state, told, _, { transcript }) => imported(state, transcript, told),
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
  const present = state.work?.left[0];
  return present === undefined ? { state } : { state, asks: [{ kind: "importTranscript", transcript: present }] };
};

function imported(state: TranscriptsScreen, { path, sessionId }: Transcript, words: string): Step<TranscriptsScreen> {
  const { there } = state;
  const marked = found(state).map((each) => (each.path === path ? { ...each, isStored: true } : each));
  return next({ ...state, there: there && { ...there, found: marked } }, false, `${sessionId}: ${words}`);
}

/** After one of them: on to the next, or an end in one sentence. */
function next(state: TranscriptsScreen, hasFailed: boolean, words: string): Step<TranscriptsScreen> {
  const { work } = state;
  if (work === null) return { state };
  const failed = work.failed + (hasFailed ? 1 : 0);
  const left = work.left.slice(1);
  if (left.length > 0) return importing({ ...state, work: { ...work, left, failed, progress: null } });
  const text = work.of === 1 ? words : `${plural(work.of - failed, "transcript")} imported, the last ${words}`;
  const told = work.of > 1 && failed > 0 ? `${failed} could not be imported; ${words}` : text;
  return {
    state: { ...state, work: null },
    asks: [{ kind: "transcripts" }],
    notice: { tone: failed > 0 ? "bad" : "good", text: oneLine(told) },
  };
}

/** What was found now, with the cursor on the file that it was on. */
function kept(state: TranscriptsScreen, there: Transcripts, rows: number): TranscriptsScreen {
  const before = selected(state)?.path;
  const at = there.found.findIndex(({ path }) => path === before);
  return { ...state, there, isUnknown: false, list: stayed(state.list, at, there.found.length, rows) };
}

// ── Drawing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function draw(state: TranscriptsScreen, frame: Frame): readonly string[] {
  const { there, isUnknown, list } = state;
  const { columns } = frame;
  if (there === null) return ["", isUnknown ? "  They could not be looked for." : "  looking …"];
  if (there.found.length === 0) return nothing(there.folder, frame);
  const rows = seenRows(frame);
  const lines = listTable({ ...list, items: there.found }, columnsOf(frame), (each) => cells(each, frame), {
    ...frame,
    rows,
  });
  const unstored = missing(state).length;
  const howMuch = unstored === 0 ? "all stored" : `${formatCount(unstored)} not stored, or not all of it`;
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
  `  ${paint.strong("There are no transcripts")}`,
  "",
  ...breakLines(
    `No session file (.jsonl) was found in ${oneLine(folder)}. \`lcm tui --sessions FOLDER\` looks elsewhere, and \`lcm import FILE\` ` +
      "reads in any other transcript. A host that keeps its sessions in a database of its own hands them over by itself.",
    Math.min(76, columns - 4),
  ).map((line) => `  ${line}`),
];
