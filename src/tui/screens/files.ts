/** The files of a conversation, what was moved out of its messages, with what the selected one is about and says. */

import type { ConversationId, FileId } from "../../core/model.ts";
import { formatBytes, formatCount } from "../../core/text.ts";
import { clockTime, plural, table } from "../../show/render.ts";
import type { Frame, LayerEvent, Module, Place, Step } from "../contract.ts";
import { beside, ends, row, rule } from "../draw.ts";
import { isListAction, listKeys, moved, scrollKeys, seen, startOfList, wheeled } from "../list.ts";
import type { List, ListAction, ScrollAction } from "../list.ts";
import { rowsFrom, scrolledBy, scrolledFor, startOfText } from "../pane.ts";
import type { Spot } from "../pane.ts";
import type { FileLook, FileRow, FileText } from "./search-asks.ts";

export interface FilesScreen {
  readonly kind: "files";
  readonly conversation: ConversationId;
  /** The one that it was opened for. */
  readonly at: FileId | null;
  /** Null until they have been read. */
  readonly files: readonly FileRow[] | null;
  readonly name: string;
  readonly isGone: boolean;
  readonly list: List;
  /** What has been read of a file, and which that is. */
  readonly look: (FileLook & { readonly file: FileId }) | null;
  readonly top: Spot;
  /** Whether the file has the whole room. */
  readonly isWide: boolean;
  /** Whether more of it is being read. */
  readonly isAwaited: boolean;
}

export const openFiles = ({ conversation, at }: Extract<Place, { readonly kind: "files" }>): Step<FilesScreen> => ({
  state: {
    kind: "files",
    conversation,
    at: at ?? null,
    files: null,
    name: "",
    isGone: false,
    list: startOfList,
    look: null,
    top: startOfText,
    isWide: false,
    isAwaited: false,
  },
  asks: [{ kind: "files", conversation, also: at ?? null }],
});

const selected = ({ files, list }: FilesScreen): FileRow | null => files?.[list.cursor] ?? null;
const lookOf = (state: FilesScreen): FileLook | null =>
  state.look !== null && state.look.file === selected(state)?.id ? state.look : null;

const none = (state: FilesScreen): string | null => (selected(state) === null ? "there is no file" : null);
const nowhere = (state: FilesScreen): string | null =>
  none(state) ?? ((lookOf(state)?.message ?? null) === null ? "which message it came from is not known" : null);

type Action = ListAction | ScrollAction | "wide" | "message" | "leave";

export const filesModule: Module<FilesScreen, Action> = {
  name: "Files",
  keys: [
    {
      keys: ["enter"],
      action: "wide",
      short: "whole",
      says: "give the file the whole room, and go back",
      disabled: none,
    },
    {
      keys: ["m"],
      action: "message",
      short: "message",
      says: "go to the message it was moved out of",
      disabled: nowhere,
    },
    { keys: ["escape", "q"], action: "leave", says: "go back" },
    ...listKeys,
    ...scrollKeys.map((each) => ({ ...each, ...(each.action === "textDown" ? { short: "scroll" } : {}) })),
  ],
  title: () => "files",
  isBusy: (state) => state.files === null || (selected(state) !== null && lookOf(state) === null),
  update(state, event, frame) {
    switch (event.kind) {
      case "answer":
        return answered(state, event.answer, frame);
      case "failed":
        return { state: { ...state, isAwaited: false } };
      case "changed":
      case "returned":
        return { state, asks: [{ kind: "files", conversation: state.conversation, also: state.at }] };
      case "resized":
        return {
          state: { ...state, list: seen(state.list, state.files?.length ?? 0, layoutOf(state, frame).listRows) },
        };
      case "wheel":
        return turned(state, event, frame);
      case "click":
        return clicked(state, event, frame);
      case "action":
        return act(state, event.action, frame);
      default:
        return { state };
    }
  },
  draw,
};

// ── Moving ───────────────────────────────────────────────────────────────────────────────────────────────────────────

function act(state: FilesScreen, action: Action, frame: Frame): Step<FilesScreen> {
  switch (action) {
    case "leave":
      return state.isWide ? widened(state, frame) : { state, go: { kind: "back" } };
    case "wide":
      return widened(state, frame);
    case "message": {
      const message = lookOf(state)?.message ?? null;
      if (message === null) return { state };
      const place: Place = { kind: "messages", conversation: message.conversation, at: message.id };
      return { state, go: { kind: "open", place } };
    }
    default:
      if (isListAction(action) && !state.isWide)
        return movedTo(state, moved(state.list, action, ...bounds(state, frame)));
      if (action === "first" || action === "last") return toEnd(state, action, frame);
      return scrolled(state, (lines, top, room) => scrolledFor(lines, top, action, room), frame);
  }
}

const bounds = (state: FilesScreen, frame: Frame): readonly [count: number, rows: number] => [
  state.files?.length ?? 0,
  layoutOf(state, frame).listRows,
];

const widened = (state: FilesScreen, frame: Frame): Step<FilesScreen> =>
  scrolled({ ...state, isWide: !state.isWide }, (lines, top, room) => scrolledBy(lines, top, 0, room), frame);

function movedTo(state: FilesScreen, list: List): Step<FilesScreen> {
  const next = { ...state, list };
  return selected(next)?.id === selected(state)?.id ? { state: next } : shown(next);
}

/** What is read of a file at a time. */
const linesAtOnce = 1_000;

/** Begins with the selected file. */
function shown(state: FilesScreen): Step<FilesScreen> {
  const file = selected(state)?.id;
  if (file === undefined) return { state };
  return {
    state: { ...state, top: startOfText, isAwaited: false },
    asks: [{ kind: "fileLook", file, from: 1, to: linesAtOnce }],
  };
}

function toEnd(state: FilesScreen, end: "first" | "last", frame: Frame): Step<FilesScreen> {
  const look = lookOf(state);
  const file = selected(state)?.id;
  if (look === null || file === undefined) return { state };
  const { content } = look;
  const isHeld = content.kind !== "text" || (end === "first" ? content.from === 1 : content.to >= content.count);
  if (isHeld) return scrolled(state, (lines, top, room) => scrolledFor(lines, top, end, room), frame);
  if (end === "first") return shown(state);
  const from = Math.max(1, content.count - linesAtOnce + 1);
  return { state: { ...state, isAwaited: true }, asks: [{ kind: "fileLook", file, from, to: content.count }] };
}

/** So many lines before the end of what is held, what follows is asked for. */
const aheadLines = 200;

function scrolled(
  state: FilesScreen,
  move: (lines: readonly string[], top: Spot, room: Room) => Spot,
  frame: Frame,
): Step<FilesScreen> {
  const look = lookOf(state);
  const file = selected(state)?.id;
  if (look === null || file === undefined) return { state };
  const lines = textLines(look);
  const top = move(lines, state.top, layoutOf(state, frame).pane);
  const next = { ...state, top };
  const { content } = look;
  if (content.kind !== "text" || state.isAwaited) return { state: next };
  const ask = (from: number, to: number): Step<FilesScreen> => ({
    state: { ...next, isAwaited: true },
    asks: [{ kind: "fileLook", file, from, to }],
  });
  if (content.to < content.count && top.line > lines.length - aheadLines)
    return ask(content.to + 1, content.to + linesAtOnce);
  if (content.from > 1 && top.line < aheadLines) return ask(Math.max(1, content.from - linesAtOnce), content.from - 1);
  return { state: next };
}

// ── Answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

type Told = Extract<LayerEvent<never>, { readonly kind: "answer" }>["answer"];

function answered(state: FilesScreen, answer: Told, frame: Frame): Step<FilesScreen> {
  if (answer.kind === "fileLook") return looked(state, answer.ask, answer.told, frame);
  if (answer.kind !== "files") return { state };
  if (answer.told === null) return { state: { ...state, isGone: true, files: [] } };
  const { files, name } = answer.told;
  const id = state.files === null ? state.at : selected(state)?.id;
  const at = files.findIndex((file) => file.id === id);
  const next = { ...state, files, name, isGone: false };
  const list = { ...state.list, cursor: at === -1 ? state.list.cursor : at };
  const kept = { ...next, list: seen(list, files.length, layoutOf(next, frame).listRows) };
  return lookOf(kept) === null ? shown(kept) : { state: kept };
}

/** What is held at most of a file; what lies beyond, on the other side, is read again when it is needed. */
const heldMax = 20_000;

function looked(
  state: FilesScreen,
  { file, from, to }: { readonly file: FileId; readonly from: number; readonly to: number },
  told: FileLook | null,
  frame: Frame,
): Step<FilesScreen> {
  const next: FilesScreen = { ...state, isAwaited: false };
  if (file !== selected(state)?.id) return { state: next };
  if (told === null) return { state: { ...next, look: gone(file) } };
  const held = lookOf(state)?.content;
  if (held?.kind !== "text" || told.content.kind !== "text") return { state: { ...next, look: { ...told, file } } };
  const { content } = told;
  if (from === held.to + 1 && held.lines.length < heldMax) {
    const joined = { ...content, from: held.from, lines: [...held.lines, ...content.lines] };
    return { state: { ...next, look: { ...told, file, content: joined } } };
  }
  if (to === held.from - 1 && held.lines.length < heldMax) {
    const joined = { ...content, to: held.to, lines: [...content.lines, ...held.lines] };
    const look = { ...told, file, content: joined };
    const added = textLines(look).length - held.lines.length;
    return { state: { ...next, look, top: { ...state.top, line: state.top.line + added } } };
  }
  // Another stretch of it: its beginning, its end, or what follows where enough is held.
  const look = { ...told, file };
  const isEnd = content.to >= content.count && from > held.to + 1;
  const there = { ...next, look, top: startOfText };
  return isEnd ? scrolled(there, (lines, top, room) => scrolledFor(lines, top, "last", room), frame) : { state: there };
}

const gone = (file: FileId): FilesScreen["look"] => ({
  file,
  exploration: [],
  message: null,
  content: { kind: "lost", why: `${file} is not there any more` },
});

// ── The mouse ────────────────────────────────────────────────────────────────────────────────────────────────────────

function turned(
  state: FilesScreen,
  { lines, column, row: at }: Extract<LayerEvent<never>, { readonly kind: "wheel" }>,
  frame: Frame,
): Step<FilesScreen> {
  const layout = layoutOf(state, frame);
  const isList = !state.isWide && (layout.isBeside ? column < layout.listColumns : at <= layout.listRows + headRows);
  if (isList) return movedTo(state, wheeled(state.list, lines, ...bounds(state, frame)));
  return scrolled(state, (all, top, room) => scrolledBy(all, top, lines, room), frame);
}

function clicked(
  state: FilesScreen,
  { column, row: at, count }: Extract<LayerEvent<never>, { readonly kind: "click" }>,
  frame: Frame,
): Step<FilesScreen> {
  const { isBeside, listColumns, listRows } = layoutOf(state, frame);
  const cursor = state.list.top + at - headRows - tableRows;
  const isRow =
    at >= headRows + tableRows && at < headRows + tableRows + listRows && cursor < (state.files?.length ?? 0);
  if (state.isWide || !isRow || (isBeside && column >= listColumns)) return { state };
  const step = movedTo(state, { ...state.list, cursor });
  return count > 1 ? { ...widened(step.state, frame), ...(step.asks === undefined ? {} : { asks: step.asks }) } : step;
}

// ── Drawing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Room {
  readonly columns: number;
  readonly rows: number;
}

interface Layout {
  /** Whether the file is beside the list, or below it. */
  readonly isBeside: boolean;
  readonly listColumns: number;
  readonly listRows: number;
  readonly pane: Room;
}

/** The conversation's name, the heading of the table, and what is said of the file above its text. */
const headRows = 1;
const tableRows = 1;
const aboutRows = 1;
const besideMin = 110;

function layoutOf({ isWide, files }: Pick<FilesScreen, "isWide" | "files">, { columns, rows }: Frame): Layout {
  const isBeside = columns >= besideMin;
  const wanted = Math.min(files?.length ?? 0, Math.max(1, Math.floor((rows - headRows) / 3)));
  const listRows = Math.max(1, isBeside ? rows - headRows - tableRows : wanted);
  const listColumns = isBeside ? Math.floor(columns * 0.45) : columns;
  const below = isBeside ? headRows : headRows + tableRows + listRows;
  const pane = isWide
    ? { columns: columns - 2, rows: rows - aboutRows }
    : { columns: (isBeside ? columns - listColumns - 1 : columns) - 2, rows: rows - below - aboutRows };
  return { isBeside, listColumns, listRows, pane: { ...pane, rows: Math.max(1, pane.rows) } };
}

/** Everything that is told of a file, as one text. */
function textLines({ exploration, content }: FileLook): readonly string[] {
  const words = contentLines(content);
  const isStart = content.kind !== "text" || content.from === 1;
  const title = content.kind === "text" ? ["What it says:"] : [];
  return isStart && exploration.length > 0 ? ["What it is about:", ...exploration, "", ...title, ...words] : words;
}

function contentLines(content: FileLook["content"]): readonly string[] {
  switch (content.kind) {
    case "bytes":
      return ["Its content is bytes, not text."];
    case "lost":
      return [`Its content is lost: ${content.why}.`, "The files folder was moved or emptied; a backup may have it."];
    case "text":
      return content.lines;
  }
}

function draw(state: FilesScreen, frame: Frame): readonly string[] {
  const { files, isGone, conversation, name, isWide } = state;
  const { columns, rows, paint, zone } = frame;
  if (files === null) return ["", "  reading …"];
  if (isGone) return ["", `  conversation ${conversation} is not there any more`];
  const head = ends(
    ` ${paint.strong(name)}`,
    paint.soft(`${plural(files.length, "file")} · times in ${zone} `),
    columns,
  );
  if (files.length === 0) return [head, "", "  no file was moved out of its messages"];
  const layout = layoutOf(state, frame);
  const pane = paneRows(state, layout, frame);
  if (isWide) return pane;
  const list = listLines(state, files, layout, frame);
  if (!layout.isBeside) return [head, ...list, ...pane];
  return [head, ...beside(list, pane, [layout.listColumns, columns - layout.listColumns - 1], rows - headRows, paint)];
}

function listLines(
  { list }: FilesScreen,
  files: readonly FileRow[],
  { listColumns, listRows }: Layout,
  { paint, zone }: Frame,
): readonly string[] {
  const [head = "", ...lines] = table(
    [
      { title: "file", flexible: true },
      { title: "type", spare: true },
      { title: "size", align: "right" },
      { title: "lines", align: "right", spare: true },
      { title: "when", paint: paint.soft },
    ],
    files
      .slice(list.top, list.top + listRows)
      .map(({ id, name, mimeType, bytes, lines: count, createdAt }) => [
        name ?? id,
        mimeType ?? "–",
        formatBytes(bytes),
        count === null ? "–" : formatCount(count),
        clockTime(createdAt, zone),
      ]),
    listColumns - 2,
    paint,
  );
  return [`  ${head}`, ...lines.map((line, at) => row(line, list.top + at === list.cursor, listColumns, paint))];
}

function paneRows(state: FilesScreen, { pane }: Layout, { paint }: Frame): readonly string[] {
  const file = selected(state);
  if (file === null) return [];
  const look = lookOf(state);
  const about = [file.id, file.mimeType ?? file.name].filter((word) => word !== null && word !== undefined).join(" · ");
  const place = look === null ? "" : placeWords(look, state.top, pane);
  const head = rule(`${about}${place === "" ? "" : ` · ${place}`}`, pane.columns + 2, paint);
  if (look === null) return [head, "  reading …"];
  return [head, ...rowsFrom(textLines(look), state.top, pane).map((line) => ` ${line}`)];
}

/** About where in the file one is: a line may be several here. */
function placeWords(look: FileLook, top: Spot, { rows }: Room): string {
  const { content } = look;
  if (content.kind !== "text" || content.count === 0) return "";
  const before = textLines(look).length - content.lines.length;
  const line = lineAt(content, Math.max(0, top.line - before));
  const isAll = content.from === 1 && content.to >= content.count && before + content.lines.length <= rows;
  return isAll ? plural(content.count, "line") : `line ${formatCount(line)} of ${formatCount(content.count)}`;
}

const lineAt = ({ from, to, lines }: FileText, at: number): number =>
  Math.min(to, from + Math.floor((at * (to - from + 1)) / Math.max(1, lines.length)));
