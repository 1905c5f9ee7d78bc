/** The host's transcripts, how much of each is stored, and storing what is not: one of them, or all. */

import { formatBytes, formatCount } from "../../core/text.ts";
import { breakLines, clockTime, oneLine, plural, table } from "../../show/render.ts";
import type { Column } from "../../show/render.ts";
import type { Frame, Module, Step } from "../contract.ts";
import { row, rule } from "../draw.ts";
import { isListAction, listKeys, moved, seen, startOfList, wheeled } from "../list.ts";
import type { List, ListAction } from "../list.ts";
import type { Progress, Transcript } from "../port.ts";
import type { Transcripts } from "./transcripts-asks.ts";

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

export const openTranscripts = (): Step<TranscriptsScreen> => ({
  state: { kind: "transcripts", there: null, isUnknown: false, list: startOfList, proposed: null, work: null },
  asks: [{ kind: "transcripts" }],
});

type Action = ListAction | "import" | "importAll" | "yes" | "no" | "stop";

const found = ({ there }: TranscriptsScreen): readonly Transcript[] => there?.found ?? [];
const selected = (state: TranscriptsScreen): Transcript | null => found(state)[state.list.cursor] ?? null;
const missing = (state: TranscriptsScreen): readonly Transcript[] => found(state).filter(({ isStored }) => !isStored);

function isOffered({ work, proposed }: TranscriptsScreen, action: Action): boolean {
  if (action === "yes" || action === "no") return proposed !== null;
  if (action === "stop") return work !== null;
  return isListAction(action) || (work === null && proposed === null);
}

const headRows = 2;
const footRows = 2;
const listRows = ({ rows }: Frame): number => Math.max(1, rows - headRows - footRows);

export const transcriptsModule: Module<TranscriptsScreen, Action> = {
  name: "Transcripts",
  keys: [
    {
      keys: ["y", "enter"],
      action: "yes",
      short: "yes",
      says: "import what was asked about",
      changes: true,
    },
    {
      keys: ["n", "escape"],
      action: "no",
      short: "no",
      says: "import nothing",
    },
    {
      keys: ["i", "enter"],
      action: "import",
      short: "import",
      says: "import this one",
      changes: true,
      disabled: (state) => (selected(state) === null ? "there is no transcript" : null),
    },
    {
      keys: ["A"],
      action: "importAll",
      short: "all",
      says: "import all that are not stored, or not all of them",
      changes: true,
      disabled: (state) => (missing(state).length === 0 ? "everything is stored" : null),
    },
    {
      keys: ["escape"],
      action: "stop",
      short: "stop",
      says: "stop importing after the present one",
    },
    ...listKeys,
  ],
  title: () => "transcripts",
  isOffered,
  isBusy: ({ there, isUnknown, work }) => (there === null && !isUnknown) || work !== null,
  update(state, event, frame) {
    const rows = listRows(frame);
    const count = found(state).length;
    switch (event.kind) {
      case "answer":
        // What was looked at before an import, or during one, is older than what it has told.
        if (event.answer.kind === "transcripts")
          return { state: state.work === null ? kept(state, event.answer.told, rows) : state };
        if (event.answer.kind !== "importTranscript") return { state };
        return imported(state, event.answer.ask.transcript, event.answer.told);
      case "failed":
        if (event.ask.kind === "transcripts") return { state: { ...state, isUnknown: true } };
        if (event.ask.kind !== "importTranscript") return { state };
        return next(state, true, `${event.ask.transcript.sessionId}: ${event.failure.message}`);
      case "progress":
        if (state.work === null) return { state };
        return { state: { ...state, work: { ...state.work, progress: event.progress } } };
      case "changed":
      case "returned":
        // While an import is under way every change is our own, and it ends with a look at all.
        return state.work === null ? { state, asks: [{ kind: "transcripts" }] } : { state };
      case "resized":
        return { state: { ...state, list: seen(state.list, count, rows) } };
      case "wheel":
        return { state: { ...state, list: wheeled(state.list, event.lines, count, rows) } };
      case "click": {
        const cursor = state.list.top + event.row - headRows;
        if (event.row < headRows || event.row >= headRows + rows || cursor >= count) return { state };
        const clicked = { ...state, list: { ...state.list, cursor } };
        const isOpening = event.count > 1 && isOffered(state, "import") && frame.readOnly === null;
        return isOpening ? act(clicked, "import") : { state: clicked };
      }
      case "action":
        if (!isListAction(event.action)) return act(state, event.action);
        return { state: { ...state, list: moved(state.list, event.action, count, rows) } };
      default:
        return { state };
    }
  },
  draw,
};

function act(state: TranscriptsScreen, action: Exclude<Action, ListAction>): Step<TranscriptsScreen> {
  switch (action) {
    case "import": {
      const one = selected(state);
      return { state: { ...state, proposed: one === null ? null : [one] } };
    }
    case "importAll":
      return { state: { ...state, proposed: missing(state) } };
    case "no":
      return { state: { ...state, proposed: null } };
    case "yes": {
      const { proposed } = state;
      if (proposed === null) return { state };
      const work: Work = { left: proposed, of: proposed.length, progress: null, failed: 0 };
      return importing({ ...state, proposed: null, work });
    }
    case "stop": {
      const { work } = state;
      if (work === null) return { state };
      const skipped = work.left.length - 1;
      return {
        state: { ...state, work: { ...work, left: work.left.slice(0, 1), of: work.of - skipped } },
        notice: { tone: "said", text: "stopping after this one; q ends it at once" },
      };
    }
  }
}

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
  const list = seen({ ...state.list, cursor: at === -1 ? state.list.cursor : at }, there.found.length, rows);
  return { ...state, there, isUnknown: false, list };
}

// ── Drawing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function draw(state: TranscriptsScreen, frame: Frame): readonly string[] {
  const { there, isUnknown, list } = state;
  const { columns, paint } = frame;
  if (there === null) return ["", isUnknown ? "  They could not be looked for." : "  looking …"];
  if (there.found.length === 0) return nothing(there.folder, frame);
  const rows = listRows(frame);
  const shown = there.found.slice(list.top, list.top + rows);
  const [heading = "", ...lines] = table(
    columnsOf(frame),
    shown.map((each) => cells(each, frame)),
    columns - 2,
    paint,
  );
  const listed = Array.from({ length: rows }, (_, at) => {
    const line = lines[at];
    return line === undefined ? "" : row(line, list.top + at === list.cursor, columns, paint);
  });
  const unstored = missing(state).length;
  const howMuch = unstored === 0 ? "all stored" : `${formatCount(unstored)} not stored, or not all of it`;
  const head = `${plural(there.found.length, "transcript")} · ${howMuch} · in ${oneLine(there.folder)}`;
  return [`  ${head}`, `  ${heading}`, ...listed, ...foot(state, frame)];
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
