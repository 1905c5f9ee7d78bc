/** The files screen: large content moved out of a conversation's messages, and the text of the selected file. */

import type { ConversationId, FileId } from "../../core/model/types.ts";
import type { Ask } from "../asks.ts";
import { opens, type Frame, type Module, type Step } from "../contract.ts";
import { beside, ends, listTable, rule } from "../widgets/draw.ts";
import { bound, createRows, listKeys, scrollKeys, startOfList, stayed, type List } from "../widgets/list.ts";
import type { ListAction, Scroll, ScrollAction } from "../keys.ts";
import { joined, rowsFrom, scrolledBy, startOfText, type Room, type Spot } from "../widgets/pane.ts";
import type { FileLook, Files, FileRow, FileText } from "./asks.ts";
import { formatBytes, formatCount, plural } from "../../core/base/format.ts";
import { clockTime } from "../../format/times.ts";
import { oneLine } from "../../format/safe-text.ts";

export interface FilesScreen {
  readonly kind: "files";
  readonly conversation: ConversationId;
  /** The file it was opened for. */
  readonly at: FileId | null;
  /** Null until they are read. */
  readonly files: readonly FileRow[] | null;
  readonly name: string;
  readonly isGone: boolean;
  readonly list: List;
  readonly look: Look | null;
  readonly top: Spot;
  /** Whether the file takes the whole screen. */
  readonly isWide: boolean;
  /** What is being read: more lines around the loaded ones, or the end, to jump there. */
  readonly awaited: "more" | "end" | null;
}

/** What is loaded of a file. Its content joins the parts that were read. */
interface Look extends FileLook {
  readonly file: FileId;
  readonly parts: readonly FileText[];
}

const selected = ({ files, list }: FilesScreen): FileRow | null => files?.[list.cursor] ?? null;
const lookOf = (state: FilesScreen): Look | null =>
  state.look !== null && state.look.file === selected(state)?.id ? state.look : null;

const none = (state: FilesScreen): string | null => (selected(state) === null ? "no file is selected" : null);
const nowhere = (state: FilesScreen): string | null =>
  none(state) ?? ((lookOf(state)?.message ?? null) === null ? "its message is unknown" : null);

const rows = createRows<FilesScreen>({
  count: ({ files }) => files?.length ?? 0,
  place(state, frame) {
    const { listColumns, listRows } = layoutOf(state, frame);
    return { above: headRows + tableRows, rows: listRows, columns: state.isWide ? 0 : listColumns };
  },
  open: widened,
  scroll: scrolled,
});

export const filesModule: Module<FilesScreen> = {
  name: "Files",
  open: (place) => ({
    kind: "files",
    conversation: place.conversation,
    at: place.at ?? null,
    files: null,
    name: "",
    isGone: false,
    list: startOfList,
    look: null,
    top: startOfText,
    isWide: false,
    awaited: null,
  }),
  keys: [
    {
      keys: ["enter"],
      short: "full screen",
      help: "show the file full screen, or go back to the list",
      disabled: none,
      does: widened,
    },
    {
      keys: ["m"],
      short: "message",
      help: "go to the message it came from",
      disabled: nowhere,
      does: opens((state) => {
        const message = lookOf(state)?.message ?? null;
        return message && { kind: "messages", conversation: message.conversation, at: message.id };
      }),
    },
    {
      keys: ["escape", "q"],
      help: "go back",
      does: (state, frame) => (state.isWide ? widened(state, frame) : { state, go: { kind: "back" } }),
    },
    ...bound<FilesScreen, ListAction>(listKeys, (state, action, frame) =>
      state.isWide ? inText(state, action, frame) : rows.move(state, action, frame),
    ),
    ...bound<FilesScreen, ScrollAction>(
      scrollKeys.map((each) => (each.action === "textDown" ? { ...each, short: "scroll" } : each)),
      inText,
    ),
  ],
  title: () => "files",
  isUnread: ({ files }) => files === null,
  isBusy: (state) => selected(state) !== null && lookOf(state) === null,
  reads: ({ conversation, at }) => [{ kind: "files", conversation, also: at }],
  answers: { files: listed, fileLook: looked },
  on: {
    ...rows.on,
    failed: (state) => ({ state: { ...state, awaited: null } }),
  },
  /** Reads the selected file if it is a different one, or could not be read before. */
  follow(state, _, before) {
    const file = selected(state)?.id;
    const isOther = file !== selected(before)?.id || (state.files !== before.files && lookOf(state) === null);
    return file !== undefined && isOther ? shown(state, file) : { state };
  },
  draw,
};

// ── Reading a file ───────────────────────────────────────────────────────────────────────────────────────────────────

function widened(state: FilesScreen, frame: Frame): Step<FilesScreen> {
  return scrolled({ ...state, isWide: !state.isWide }, 0, frame);
}

const linesAtOnce = 1_000;

const shown = (state: FilesScreen, file: FileId): Step<FilesScreen> => ({
  state: { ...state, top: startOfText, awaited: null },
  asks: [{ kind: "fileLook", file, from: 1, to: linesAtOnce }],
});

/** Scrolls; the start or the end of the file may have to be read first. */
function inText(state: FilesScreen, by: Scroll, frame: Frame): Step<FilesScreen> {
  const content = lookOf(state)?.content;
  const file = selected(state)?.id;
  if (content?.kind !== "text" || file === undefined) return scrolled(state, by, frame);
  if (by === "first" && content.from > 1) return shown(state, file);
  if (by !== "last" || content.to >= content.count) return scrolled(state, by, frame);
  const from = Math.max(content.to + 1, content.count - linesAtOnce + 1);
  return { state: { ...state, awaited: "end" }, asks: [{ kind: "fileLook", file, from, to: content.count }] };
}

/** More is read when this close to the end of the loaded lines. */
const aheadLines = 200;

function scrolled(state: FilesScreen, by: Scroll, frame: Frame): Step<FilesScreen> {
  const look = lookOf(state);
  const file = selected(state)?.id;
  if (look === null || file === undefined) return { state };
  const lines = textLines(look);
  const top = scrolledBy(lines, state.top, by, layoutOf(state, frame).pane);
  const next = { ...state, top };
  const { content } = look;
  if (content.kind !== "text" || state.awaited !== null) return { state: next };
  const ask = (from: number, to: number): Step<FilesScreen> => ({
    state: { ...next, awaited: "more" },
    asks: [{ kind: "fileLook", file, from, to }],
  });
  if (content.to < content.count && top.line > lines.length - aheadLines)
    return ask(content.to + 1, content.to + linesAtOnce);
  if (content.from > 1 && top.line < aheadLines) return ask(Math.max(1, content.from - linesAtOnce), content.from - 1);
  return { state: next };
}

// ── Answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function listed(state: FilesScreen, result: Files | null, frame: Frame): Step<FilesScreen> {
  if (result === null) return { state: { ...state, isGone: true, files: [] } };
  const { files, name } = result;
  const id = state.files === null ? state.at : selected(state)?.id;
  const at = files.findIndex((file) => file.id === id);
  const next = { ...state, files, name, isGone: false };
  return { state: { ...next, list: stayed(state.list, at, files.length, layoutOf(next, frame).listRows) } };
}

/** Parts that are kept; those at the other end are dropped and read again when needed. */
const partsMax = 20;

function looked(
  state: FilesScreen,
  result: FileLook | null,
  frame: Frame,
  { file, from, to }: Ask<"fileLook">,
): Step<FilesScreen> {
  const next: FilesScreen = { ...state, awaited: null };
  if (file !== selected(state)?.id) return { state: next };
  if (result === null) return { state: { ...next, look: gone(file) } };
  const loaded = lookOf(state);
  const { content } = result;
  if (content.kind !== "text") return { state: { ...next, look: { ...result, file, parts: [] } } };
  const alone = { ...next, look: { ...result, file, parts: [content] } };
  if (loaded?.content.kind !== "text") return { state: alone };
  const isOlder = to === loaded.content.from - 1;
  const isNewer = from === loaded.content.to + 1;
  const isToEnd = state.awaited === "end";
  // Fewer lines than asked for, because they are long: read on until they reach the loaded ones, or the end.
  if (content.to < to && (isOlder || isToEnd))
    return { state, asks: [{ kind: "fileLook", file, from: content.to + 1, to }] };
  // Not next to the loaded lines: the start or the end of the file.
  if (!isOlder && !isNewer) {
    const there = { ...alone, top: startOfText };
    return isToEnd ? scrolled(there, "last", frame) : { state: there };
  }
  const parts = joined(loaded.parts, [content], isOlder ? "older" : "newer", partsMax);
  const [first = content, last = content] = [parts[0], parts.at(-1)];
  const lines = parts.flatMap((each) => each.lines);
  const look = { ...result, file, parts, content: { ...content, from: first.from, to: last.to, lines } };
  // Keep the visible lines in place, whatever was added or dropped before them.
  const same = isOlder ? loaded.parts[0] : loaded.parts.at(-1);
  const line = state.top.line + linesBefore(look, same) - linesBefore(loaded, same);
  const there = { ...next, look, top: { ...state.top, line } };
  if (isToEnd) return scrolled(there, "last", frame);
  return { state: { ...there, top: scrolledBy(textLines(look), there.top, 0, layoutOf(state, frame).pane) } };
}

/** How many lines precede a loaded part. */
function linesBefore(look: Look, part: FileText | undefined): number {
  const from = look.parts.findIndex((each) => each === part);
  return textLines(look).length - look.parts.slice(from).reduce((sum, { lines }) => sum + lines.length, 0);
}

const gone = (file: FileId): Look => ({
  file,
  exploration: [],
  message: null,
  content: { kind: "lost", why: `${file} no longer exists` },
  parts: [],
});

// ── Drawing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Layout {
  /** Whether the file is beside the list rather than below it. */
  readonly isBeside: boolean;
  readonly listColumns: number;
  readonly listRows: number;
  readonly pane: Room;
}

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

/** The description of a file and its content, as one text. */
function textLines({ exploration, content }: FileLook): readonly string[] {
  const words = contentLines(content);
  const isStart = content.kind !== "text" || content.from === 1;
  const title = content.kind === "text" ? ["Content:"] : [];
  return isStart && exploration.length > 0 ? ["Description:", ...exploration, "", ...title, ...words] : words;
}

function contentLines(content: FileLook["content"]): readonly string[] {
  switch (content.kind) {
    case "bytes":
      return ["This is binary content, not text."];
    case "lost":
      return [
        `The content is lost: ${content.why}.`,
        "The files folder was moved or emptied; look for it in a backup.",
      ];
    case "text":
      return content.lines;
  }
}

function draw(state: FilesScreen, frame: Frame): readonly string[] {
  const { files, isGone, conversation, name, isWide } = state;
  const { columns, rows, paint, zone } = frame;
  if (files === null) return ["", "  reading …"];
  if (isGone) return ["", `  conversation ${conversation} no longer exists`];
  const head = ends(
    ` ${paint.strong(name)}`,
    paint.soft(`${plural(files.length, "file")} · times in ${zone} `),
    columns,
  );
  if (files.length === 0) return [head, "", "  no content was moved out of its messages"];
  const layout = layoutOf(state, frame);
  const pane = paneRows(state, layout, frame);
  if (isWide) return pane;
  const list = listLines(state, files, layout, frame);
  if (!layout.isBeside) return [head, ...list, ...pane];
  const { listColumns } = layout;
  const right = { lines: pane, columns: columns - listColumns - 1 };
  return [head, ...beside({ lines: list, columns: listColumns }, right, rows - headRows, paint)];
}

function listLines(
  { list }: FilesScreen,
  files: readonly FileRow[],
  { listColumns, listRows }: Layout,
  { paint, zone }: Frame,
): readonly string[] {
  return listTable(
    { ...list, items: files },
    [
      { title: "file", flexible: true },
      { title: "type", spare: true },
      { title: "size", align: "right" },
      { title: "lines", align: "right", spare: true },
      { title: "when", paint: paint.soft },
    ],
    ({ id, name, mimeType, bytes, lines, createdAt }) => [
      oneLine(name ?? id),
      oneLine(mimeType ?? "–"),
      formatBytes(bytes),
      lines === null ? "–" : formatCount(lines),
      clockTime(createdAt, zone),
    ],
    { columns: listColumns, rows: listRows, paint },
  );
}

function paneRows(state: FilesScreen, { pane }: Layout, { paint }: Frame): readonly string[] {
  const file = selected(state);
  if (file === null) return [];
  const look = lookOf(state);
  const about = [file.id, oneLine(file.mimeType ?? file.name ?? "")].filter((word) => word !== "").join(" · ");
  const place = look === null ? "" : placeWords(look, state.top, pane);
  const head = rule(`${about}${place === "" ? "" : ` · ${place}`}`, pane.columns + 2, paint);
  if (look === null) return [head, "  reading …"];
  return [head, ...rowsFrom(textLines(look), state.top, pane).map((line) => ` ${line}`)];
}

/** The approximate line: a long line may be split into several. */
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
