/**
 * Looking at one thing by its id: a summary with what it was made from and what reading that would take, a stored file
 * by lines, or a message. It hands out no more tokens than it may, and says what it left out.
 */

import { checkWhole, LcmError } from "../base/errors.ts";
import { fileIdsOf } from "../ingest/large-content.ts";
import { isFileId, isSummaryId } from "../model/types.ts";
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
import { isWithin, originOf } from "./scope.ts";
import type { Reach } from "./scope.ts";
import { charactersPerToken, lengthWithin } from "../base/excerpt.ts";
import { estimateTokens } from "../base/tokens.ts";
import { formatCount, plural } from "../base/format.ts";

export interface DescribeRequest {
  /** `sum_…`, `file_…`, or a message: `msg_42`, `message 42`, `42`. */
  readonly id: string;
  readonly reach: Reach;
  readonly tokenCap: number;
  /** Of a file: its first and last line, counted from 1, both included; and how many bytes of it at most. */
  readonly fromLine?: number;
  readonly toLine?: number;
  readonly bytesMax?: number;
}

/** What is handed out of a text stands beside these, and nowhere else. */
type SummaryFacts = Omit<Summary, "text" | "previousContext">;
type MessageFacts = Pick<Message, "id" | "conversation" | "seq" | "key" | "role" | "tokens" | "at" | "aside">;

/** `tokens` is what the texts handed out take: what a grant pays for. */
export type Described = { readonly tokens: number } & (
  | {
      readonly kind: "summary";
      readonly summary: SummaryFacts;
      /** What it was made from. */
      readonly sources: Sources;
      /** What was made from it. */
      readonly derived: readonly SummaryId[];
      /** The summary of an earlier segment whose sources these are, for one that was carried over. */
      readonly origin: SummaryFacts | null;
      readonly manifest: Manifest;
      readonly text: string;
      readonly isWhole: boolean;
    }
  | {
      readonly kind: "file";
      readonly file: StoredFile;
      /** What it was moved out of, if that is known. */
      readonly message: MessageId | null;
      /** Null for bytes. */
      readonly content: FilePiece | null;
    }
  | {
      readonly kind: "message";
      readonly message: MessageFacts;
      /** Its leaf first, then what was made from it. */
      readonly coveredBy: readonly SummaryId[];
      readonly files: readonly FileId[];
      /** What its parts say: for content that was moved out, the reference. */
      readonly text: string;
      readonly isWhole: boolean;
    }
);

export interface FilePiece {
  readonly text: string;
  readonly fromLine: number;
  readonly toLine: number;
  /** How many the file has. */
  readonly lines: number;
  /** Where to go on; null at the end. */
  readonly nextLine: number | null;
  /** What its one line was too long for, and was cut at; null for whole lines. */
  readonly lineCutBy: Bound | null;
}

export async function describe(store: Store, request: DescribeRequest): Promise<Described> {
  checkWhole("tokenCap", request.tokenCap);
  const id = request.id.trim();
  if (isSummaryId(id)) return await describeSummary(store, request, id);
  if (isFileId(id)) return await describeFile(store, request, id);
  const number = /^(?:msg_|message )?(\d{1,15})$/.exec(id)?.[1];
  if (number !== undefined) return await describeMessage(store, request, Number(number) as MessageId);
  throw new LcmError("invalid", `${JSON.stringify(request.id)} is no id`, {
    hint: "ids look like sum_0123456789abcdef, file_0123456789abcdef or msg_42; a search shows them",
  });
}

/** The conversation that it is of. */
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

// ── Summaries ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Summaries below one that are looked at. */
const manifestMax = 500;
/** What id, times and figures of a summary below take beside its opening. */
const rowTokens = 30;

async function describeSummary(store: Store, request: DescribeRequest, id: SummaryId): Promise<Described> {
  const [found] = await store.summaries({ ids: [id] });
  const summary = await mustReach(store, request.reach, found, `summary ${id}`);
  const origin = await originOf(store, request.reach, summary);
  const root = origin?.id ?? id;
  const [sources, derived, below] = await Promise.all([
    store.sources([root]),
    store.derived([id]),
    store.manifest(root, manifestMax),
  ]);
  const { text, isWhole } = opening(summary.text, request.tokenCap);
  const textTokens = estimateTokens(text);
  const { manifest, tokens } = shortenManifest(below, request.tokenCap - textTokens);
  return {
    kind: "summary",
    summary: factsOf(summary),
    sources: sources.get(root) ?? { messages: [], summaries: [] },
    derived: derived.get(id) ?? [],
    origin: origin === null ? null : factsOf(origin),
    manifest,
    text,
    isWhole,
    tokens: textTokens + tokens,
  };
}

const factsOf = ({ text: _text, previousContext: _previous, ...facts }: Summary): SummaryFacts => facts;

/** What is nearest to the summary is kept first: a caller chooses among its sources, and describes the chosen one. */
function shortenManifest(
  manifest: Manifest,
  tokensMax: number,
): { readonly manifest: Manifest; readonly tokens: number } {
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

// ── Files ────────────────────────────────────────────────────────────────────────────────────────────────────────────

async function describeFile(store: Store, request: DescribeRequest, id: FileId): Promise<Described> {
  const { file: found, message } = await reachFile(store, request.reach, id);
  // What it is about comes first, but must leave most of the room to what it says.
  const told = opening(found.exploration ?? "", Math.ceil(request.tokenCap / 4)).text;
  const file = found.exploration === null ? found : { ...found, exploration: told };
  const aboutTokens = estimateTokens(told);
  if (file.encoding === "base64") return { kind: "file", file, message, content: null, tokens: aboutTokens };
  const piece = await pieceOf(store, id, request, request.tokenCap - aboutTokens);
  return { kind: "file", file, message, content: piece, tokens: aboutTokens + estimateTokens(piece.text) };
}

/** One that a copy brought along is read where the copy is: there its reader may, and there it pays. */
async function reachFile(
  store: Store,
  reach: Reach,
  id: FileId,
): Promise<{ readonly file: StoredFile; readonly message: MessageId | null }> {
  const found = (await store.file(id)) ?? undefined;
  const isOwn = found !== undefined && (await isWithin(store, reach, found.conversation));
  const holder = found === undefined || isOwn ? null : await store.holderOf(id, reach.conversations);
  if (found !== undefined && holder !== null)
    return { file: { ...found, conversation: holder.conversation }, message: holder.message };
  const file = await mustReach(store, reach, found, `file ${id}`);
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
    throw new LcmError("invalid", `${asked} no part of a file of ${plural(lines, "line")}`);
  }
  const piece = opening(text, tokensMax, bytesMax);
  const last = piece.isWhole ? Math.min(until, lines) : fromLine + piece.text.split("\n").length - 1;
  const nextLine = last < lines ? last + 1 : null;
  return { text: piece.text, fromLine, toLine: last, lines, nextLine, lineCutBy: piece.lineCutBy };
}

// ── Messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────

async function describeMessage(store: Store, request: DescribeRequest, id: MessageId): Promise<Described> {
  const [found] = await store.messages({ ids: [id] });
  const message = await mustReach(store, request.reach, found, `message ${id}`);
  const coveredBy = await store.coveredBy(id);
  const { text, isWhole } = opening(message.text, request.tokenCap);
  const files = fileIdsOf([message]);
  const { conversation, seq, key, role, tokens, at, aside } = message;
  const facts = { id, conversation, seq, key, role, tokens, at, aside };
  return { kind: "message", message: facts, coveredBy, files, text, isWhole, tokens: estimateTokens(text) };
}

// ── What all of them share ───────────────────────────────────────────────────────────────────────────────────────────

/** What there is and what lies beyond the reach are refused in the same words. */
async function mustReach<T extends { readonly conversation: ConversationId }>(
  store: Store,
  reach: Reach,
  found: T | undefined,
  name: string,
): Promise<T> {
  if (found !== undefined && (await isWithin(store, reach, found.conversation))) return found;
  const isNarrow = reach.kind === "family" || reach.kind === "conversation";
  throw new LcmError("not_found", `there is no ${name}`, {
    hint: isNarrow
      ? "if it is of another session, allConversations looks there too, where that is allowed"
      : "a search shows the ids of what it finds",
  });
}

type Bound = "tokens" | "bytes";

interface Opening {
  readonly text: string;
  readonly isWhole: boolean;
  readonly lineCutBy: Bound | null;
}

/** How a text begins: as many of its lines as fit, or as much as fits of the first. Looks no further than that. */
function opening(text: string, tokensMax: number, bytesMax?: number): Opening {
  const passedBy = (begun: string): Bound | null => {
    if (estimateTokens(begun) > tokensMax) return "tokens";
    return bytesMax !== undefined && bytesOf(begun) > bytesMax ? "bytes" : null;
  };
  const { fitting, tooLong } = lengthWithin(text, tokensMax, (begun) => passedBy(begun) !== null);
  if (tooLong === null) return { text, isWhole: true, lineCutBy: null };
  const lineEnd = text.lastIndexOf("\n", fitting);
  const lineCutBy = lineEnd < 0 ? (passedBy(text.slice(0, tooLong)) ?? "tokens") : null;
  // Half a character is none.
  const begun = text.slice(0, lineEnd < 0 ? fitting : lineEnd).replace(/[\uD800-\uDBFF]$/, "");
  return { text: begun, isWhole: false, lineCutBy };
}

const bytesOf = (text: string): number => new TextEncoder().encode(text).length;
