/** Describes one summary, message or stored file by its id, within a token limit, and reports what was cut. */

import { checkWhole, LcmError } from "../base/errors.ts";
import { fileIdsOf } from "../ingest/large-content.ts";
import { conversationIn, isFileId, isSummaryId, messageName, parseMessageId } from "../model/types.ts";
import type {
  ConversationId,
  FileId,
  Message,
  MessageId,
  Sources,
  StoredFile,
  Summary,
  SummaryId,
} from "../model/types.ts";
import type { Manifest, ManifestRow, Store } from "../model/store.ts";
import { endWords, isWithin, lastMessage, originOf, type Reach } from "./scope.ts";
import { readableText } from "./readable-text.ts";
import { partsOf, type TextParts } from "./text-parts.ts";
import { charactersPerToken, lengthWithin } from "../base/excerpt.ts";
import { estimateTokens } from "../base/tokens.ts";
import { formatCount, plural } from "../base/format.ts";

export interface DescribeRequest {
  /** `sum_…`, `file_…`, or a message: `msg_1-42`. */
  readonly id: string;
  readonly reach: Reach;
  readonly tokenCap: number;
  /** A message or a summary of up to this many tokens is not cut. Default: `tokenCap`. */
  readonly wholeCap?: number;
  /** For a message or a summary: show the places where this occurs. */
  readonly find?: string;
  /** For a message: lines that an output repeats are left out after the first. */
  readonly isOnce?: boolean;
  /** For a file: the first and last line, from 1 and inclusive, and the most bytes to return. */
  readonly fromLine?: number;
  readonly toLine?: number;
  readonly bytesMax?: number;
}

/** Without texts, which are returned beside these and may be cut. */
type SummaryFacts = Omit<Summary, "text" | "previousContext">;
type MessageFacts = Pick<Message, "id" | "conversation" | "seq" | "key" | "role" | "tokens" | "at" | "aside">;

/** `tokens` counts the returned texts; a grant is charged for them. */
export type Described = { readonly tokens: number } & (
  | ({
      readonly kind: "summary";
      readonly summary: SummaryFacts;
      readonly sources: Sources;
      readonly derived: readonly SummaryId[];
      /** For a carried summary: the summary of an earlier segment that the sources belong to. */
      readonly origin: SummaryFacts | null;
      readonly manifest: Manifest;
    } & Shortened)
  | {
      readonly kind: "file";
      readonly file: StoredFile;
      /** Where its content is; null if that is not a file. */
      readonly path: string | null;
      /** The message it was moved out of, if known. */
      readonly message: MessageId | null;
      /** Null for binary content. */
      readonly content: FilePiece | null;
    }
  | ({
      readonly kind: "message";
      readonly message: MessageFacts;
      /** The leaf first, then the summaries above it. */
      readonly coveredBy: readonly SummaryId[];
      readonly files: readonly FileId[];
      /** Whether lines were left out that it repeats. */
      readonly isOnce: boolean;
    } & Shortened)
);

/** A text, with references in place of moved content; if it is too long, its parts. */
interface Shortened extends TextParts {
  /** The parts, with `…` between them. */
  readonly text: string;
  readonly isWhole: boolean;
}

export interface FilePiece {
  readonly text: string;
  readonly fromLine: number;
  readonly toLine: number;
  /** In the whole file. */
  readonly lines: number;
  /** Where to continue; null at the end. */
  readonly nextLine: number | null;
  /** The limit at which a single long line was cut; null for whole lines. */
  readonly lineCutBy: Bound | null;
}

export async function describe(store: Store, request: DescribeRequest): Promise<Described> {
  checkWhole("tokenCap", request.tokenCap);
  const id = request.id.trim();
  if (isSummaryId(id)) return await describeSummary(store, request, id);
  if (isFileId(id)) return await describeFile(store, request, id);
  const message = parseMessageId(id);
  if (message !== null) return await describeMessage(store, request, message);
  throw new LcmError("invalid", `${JSON.stringify(request.id)} is not an id`, {
    hint: "ids look like sum_0123456789abcdef, file_0123456789abcdef or msg_1-42; search to find them",
  });
}

export function conversationOf(described: Described): ConversationId {
  switch (described.kind) {
    case "summary":
      return described.summary.conversation;
    case "message":
      return described.message.conversation;
    case "file":
      return described.file.conversation;
  }
}

/** `msg_1-4…msg_1-9`, `msg_1-12`: consecutive messages as ranges. */
export function messageRuns(ids: readonly MessageId[], dash = "…"): readonly string[] {
  const runs: [first: MessageId, last: MessageId][] = [];
  for (const id of ids) {
    const run = runs.at(-1);
    if (run?.[1] === id - 1) run[1] = id;
    else runs.push([id, id]);
  }
  return runs.map((ends) => [...new Set(ends)].map(messageName).join(dash));
}

/** Summaries to list below one. */
const manifestMax = 500;
/** Tokens of a manifest row without its opening. */
const rowTokens = 30;

async function describeSummary(store: Store, request: DescribeRequest, id: SummaryId): Promise<Described> {
  const [stored] = await store.summaries({ ids: [id] });
  const summary = await mustReach(store, request.reach, stored, `summary ${id}`);
  const origin = await originOf(store, request.reach, summary);
  const root = origin?.id ?? id;
  const [sources, derived, below] = await Promise.all([
    store.sources([root]),
    store.derived([id]),
    store.manifest(root, manifestMax),
  ]);
  const shortened = shorten(summary.text, request);
  const textTokens = estimateTokens(shortened.text);
  const { manifest, tokens } = shortenManifest(below, request.tokenCap - textTokens);
  return {
    kind: "summary",
    summary: factsOf(summary),
    sources: sources.get(root) ?? { messages: [], summaries: [] },
    derived: derived.get(id) ?? [],
    origin: origin === null ? null : factsOf(origin),
    manifest,
    ...shortened,
    tokens: textTokens + tokens,
  };
}

const factsOf = ({ text: _text, previousContext: _previous, ...facts }: Summary): SummaryFacts => facts;

/** Keeps the rows nearest to the summary: a caller picks one of its sources and describes that next. */
function shortenManifest(manifest: Manifest, tokensMax: number) {
  const kept = new Set<ManifestRow>();
  let tokens = 0;
  for (const row of manifest.rows.toSorted((one, other) => one.level - other.level)) {
    const more = rowTokens + estimateTokens(row.opening);
    if (tokens + more > tokensMax) break;
    tokens += more;
    kept.add(row);
  }
  if (kept.size === manifest.rows.length) return { manifest, tokens };
  return { manifest: { ...manifest, rows: manifest.rows.filter((row) => kept.has(row)), isBounded: true }, tokens };
}

async function describeFile(store: Store, request: DescribeRequest, id: FileId): Promise<Described> {
  const { file: stored, message } = await reachFile(store, request.reach, id);
  // The description comes first, but must leave most of the room to the content.
  const about = opening(stored.exploration ?? "", Math.ceil(request.tokenCap / 4)).text;
  const file = stored.exploration === null ? stored : { ...stored, exploration: about };
  const aboutTokens = estimateTokens(about);
  const path = await store.filePath(id);
  const described = { kind: "file", file, path, message } as const;
  if (file.encoding === "base64") return { ...described, content: null, tokens: aboutTokens };
  const piece = await pieceOf(store, id, request, request.tokenCap - aboutTokens);
  return { ...described, content: piece, tokens: aboutTokens + estimateTokens(piece.text) };
}

/** A file shared by a copied conversation is read, and charged, through the copy. */
async function reachFile(store: Store, reach: Reach, id: FileId) {
  const stored = (await store.file(id)) ?? undefined;
  const isOwn = stored !== undefined && (await isWithin(store, reach, stored.conversation));
  const holder = stored === undefined || isOwn ? null : await store.holderOf(id, reach.conversations);
  if (stored !== undefined && holder !== null)
    return { file: { ...stored, conversation: holder.conversation }, message: holder.message };
  const file = await mustReach(store, reach, stored, `file ${id}`);
  const keys = file.messageKey === null ? [] : [file.messageKey];
  const [message] = await store.messages({ conversation: file.conversation, keys });
  return { file, message: message?.id ?? null };
}

async function pieceOf(store: Store, id: FileId, request: DescribeRequest, tokensMax: number): Promise<FilePiece> {
  const { fromLine = 1, toLine, bytesMax } = request;
  checkWhole("bytesMax", bytesMax);
  const charactersMax = Math.max(1, tokensMax) * charactersPerToken + 1;
  const range = { fromLine, charactersMax, ...(toLine === undefined ? {} : { toLine }) };
  const { text, lines } = await store.fileLines(id, range);
  const until = toLine ?? lines;
  const isWhole = Number.isSafeInteger(fromLine) && Number.isSafeInteger(until);
  if (!isWhole || fromLine < 1 || fromLine > Math.max(1, lines) || until < Math.min(fromLine, lines)) {
    const [from, to] = [fromLine, until].map(formatCount);
    const asked = toLine === undefined ? `line ${from} is` : `lines ${from} to ${to} are`;
    throw new LcmError("invalid", `${asked} not in the file (${plural(lines, "line")})`);
  }
  const piece = opening(text, tokensMax, bytesMax);
  const last = piece.isWhole ? Math.min(until, lines) : fromLine + piece.text.split("\n").length - 1;
  const nextLine = last < lines ? last + 1 : null;
  return { text: piece.text, fromLine, toLine: last, lines, nextLine, lineCutBy: piece.lineCutBy };
}

async function describeMessage(store: Store, request: DescribeRequest, id: MessageId): Promise<Described> {
  const [stored] = await store.messages({ ids: [id] });
  if (stored === undefined) await refuseBeyondEnd(store, request.reach, id);
  const message = await mustReach(store, request.reach, stored, messageName(id));
  const coveredBy = await store.coveredBy(id);
  const whole = readableText(message, { kind: "whole" }).text;
  const text = request.isOnce === true ? readableText(message, { kind: "once" }).text.trim() : whole;
  const isOnce = text.length < whole.trim().length;
  const shortened = shorten(text, request);
  const files = fileIdsOf([message]);
  const { conversation, seq, key, role, tokens, at, aside } = message;
  const facts = { id, conversation, seq, key, role, tokens, at, aside };
  return {
    kind: "message",
    message: facts,
    coveredBy,
    files,
    isOnce,
    ...shortened,
    tokens: estimateTokens(shortened.text),
  };
}

function shorten(text: string, { tokenCap, wholeCap, find }: DescribeRequest): Shortened {
  const wanted = { ...(find !== undefined && { find }), ...(wholeCap !== undefined && { wholeMax: wholeCap }) };
  const shortened = partsOf(text, { tokensMax: tokenCap, ...wanted });
  const { parts, leftOut } = shortened;
  const isWhole = leftOut === 0 && parts.every((part) => part.leftOut === 0);
  return { ...shortened, text: isWhole ? text : parts.map((part) => part.text).join("\n…\n"), isWhole };
}

/** Of a conversation that may be read, the end may be told. */
async function refuseBeyondEnd(store: Store, reach: Reach, id: MessageId): Promise<void> {
  const last = await lastMessage(store, conversationIn(id));
  if (last === undefined || last.id > id || !(await isWithin(store, reach, last.conversation))) return;
  throw new LcmError("not_found", `there is no ${messageName(id)}: ${endWords(last.id)}`, {
    hint: "pass an id up to that one",
  });
}

/** The same error for what does not exist and for what is beyond the reach. */
export async function mustReach<T extends { readonly conversation: ConversationId }>(
  store: Store,
  reach: Reach,
  stored: T | undefined,
  name: string,
): Promise<T> {
  if (stored !== undefined && (await isWithin(store, reach, stored.conversation))) return stored;
  const isNarrow = ["family", "project", "conversation"].includes(reach.kind);
  throw new LcmError("not_found", `there is no ${name}`, {
    hint: isNarrow
      ? "to read another session, set allConversations to true, if you are allowed to"
      : "search to find ids",
  });
}

type Bound = "tokens" | "bytes";

interface Opening {
  readonly text: string;
  readonly isWhole: boolean;
  readonly lineCutBy: Bound | null;
}

/** The start of a text: as many lines as fit, or part of the first. Does not read beyond that. */
function opening(text: string, tokensMax: number, bytesMax?: number): Opening {
  const passedBy = (begun: string): Bound | null => {
    if (estimateTokens(begun) > tokensMax) return "tokens";
    return bytesMax !== undefined && bytesOf(begun) > bytesMax ? "bytes" : null;
  };
  const { fitting, tooLong } = lengthWithin(text, tokensMax, (begun) => passedBy(begun) !== null);
  if (tooLong === null) return { text, isWhole: true, lineCutBy: null };
  const lineEnd = text.lastIndexOf("\n", fitting);
  const lineCutBy = lineEnd < 0 ? (passedBy(text.slice(0, tooLong)) ?? "tokens") : null;
  // Do not end in half a surrogate pair.
  const begun = text.slice(0, lineEnd < 0 ? fitting : lineEnd).replace(/[\uD800-\uDBFF]$/, "");
  return { text: begun, isWhole: false, lineCutBy };
}

const bytesOf = (text: string): number => new TextEncoder().encode(text).length;
