/**
 * Puts our prompt in the place of a request's messages: what is pinned, our summaries, then messages in the order of the
 * assembly. Where the assembly shows a message as the client sent it, the client's own bytes are sent. Pure.
 */

import { isObject, type Json } from "../core/base/json.ts";
import type { Assembly, Origin } from "../core/assembly/assemble.ts";
import type { HostMessage } from "../core/messages/codec.ts";
import { resultsOf } from "../core/messages/tool-calls.ts";
import type { MessageId } from "../core/model/types.ts";
import { recallGuidance } from "../core/prompts/guidance.ts";
import { isAnswer, piecesOf, type Path, type PathRow } from "./path.ts";
import { jsonOf, trait, type FlatPieces, type Request } from "./request.ts";
import { elementBytes, withElements } from "./scan.ts";
import { listIn, objectIn, textIn } from "./wires/wire.ts";

export interface ReplaceInput {
  readonly request: Request;
  readonly flat: FlatPieces;
  readonly path: Path;
  /** For each piece of the path the same piece of the request, or -1. */
  readonly inRequest: Int32Array;
  /** Rows of the path from here on are behind the end of the request. */
  readonly rowsEnd: number;
  readonly assembly: Assembly;
}

/** The body to send; null if everything of the request would be sent unchanged. */
export function replaceMessages(input: ReplaceInput): Buffer | null {
  const { request, flat, assembly } = input;
  const shown = planShown(input);
  const kept = new Set(shown.flatMap((item) => (item.kind === "elements" ? item.at : [])));
  const hasOwn = shown.some(({ kind }) => kind === "ours" || kind === "made");
  const isWhole = (): boolean => flat.counts.every((count, at) => count === 0 || kept.has(at));
  if ((!hasOwn && isWhole()) || assembly.report.outcome === "starved") return null;
  return withElements(request.scanned, render(input, shown, kept));
}

/**
 * Whether the assembly shows the message that the request ends with. One that goes back to an earlier place, and says the same
 * there again, may end with something that is folded by now: our summaries then tell what came later, also where the
 * assembly repeats a folded question behind them.
 */
export function isEndShown(input: Pick<ReplaceInput, "path" | "rowsEnd" | "assembly">, isFolded: boolean): boolean {
  const isRaw = ({ within }: Origin): boolean => !isFolded || within !== undefined;
  return (
    input.rowsEnd === input.path.rows.length || input.assembly.report.origins.some((o) => isEnd(input, o) && isRaw(o))
  );
}

const isEnd = ({ path, rowsEnd }: Pick<ReplaceInput, "path" | "rowsEnd">, origin: Origin): boolean =>
  origin.kind === "message" && origin.id === path.rows[rowsEnd - 1]?.id;

type Shown =
  | { readonly kind: "ours"; readonly text: string }
  | { readonly kind: "made"; readonly message: HostMessage }
  /** Elements of the request. */
  | { readonly kind: "elements"; readonly at: readonly number[] };

/** A message of the assembly, and the pieces of the request that it shows; null if it is ours. */
interface Source {
  readonly message: HostMessage;
  readonly pieces: readonly number[] | null;
}

/** What the assembly shows, up to the end of the request. */
function planShown(input: ReplaceInput): readonly Shown[] {
  const { path, inRequest, flat, rowsEnd } = input;
  const { messages, report } = input.assembly;
  const rows = rowsOf(path, report.origins);
  const newestPrompt = path.rows.findLastIndex(({ start, end: to }) => to > start && !isAnswer(path.pieces[to - 1]));
  const isBack = rowsEnd < path.rows.length;
  const end = isBack ? report.origins.findLastIndex((origin) => isEnd(input, origin)) + 1 : report.origins.length;
  const origins = report.origins.slice(0, end);
  const sources = origins.flatMap((origin, at): readonly Source[] => {
    const message = messages[at] ?? {};
    // A stand-in for a result is a note, too, but has its place behind its call.
    if (origin.kind !== "message") return [{ message, pieces: resultsOf(message).length > 0 ? [-1] : null }];
    const row = rows.get(origin.id) ?? -1;
    const isAsSent = row >= newestPrompt && report.shortened === 0;
    const found = row < 0 ? null : piecesSent(path, path.rows[row], message, isAsSent);
    return found?.length === 0 ? [] : [{ message, pieces: found?.map((piece) => inRequest[piece] ?? -1) ?? [-1] }];
  });
  // An element is sent unchanged if all of it is shown, and nothing that is shown only in part belongs to it.
  const isMade = sources.map(({ pieces }) => pieces?.includes(-1) ?? false);
  for (let isSettled = false; !isSettled;) {
    isSettled = true;
    const counts = new Map<number, number>();
    sources.forEach(({ pieces }, at) => {
      if (isMade[at] === true) return;
      for (const piece of pieces ?? []) {
        const owner = flat.owners[piece] ?? -1;
        counts.set(owner, (counts.get(owner) ?? 0) + 1);
      }
    });
    sources.forEach(({ pieces }, at) => {
      const isPart = (pieces ?? []).some((piece) => {
        const owner = flat.owners[piece] ?? -1;
        return counts.get(owner) !== flat.counts[owner];
      });
      if (isMade[at] === true || !isPart) return;
      isMade[at] = true;
      isSettled = false;
    });
  }
  const sent = new Set<number>();
  return sources.map(({ message, pieces }, at): Shown => {
    if (pieces === null) return { kind: "ours", text: textOf(message) };
    if (isMade[at] === true) return { kind: "made", message };
    const owners = [...new Set(pieces.map((piece) => flat.owners[piece] ?? -1))].filter((owner) => !sent.has(owner));
    for (const owner of owners) sent.add(owner);
    return { kind: "elements", at: owners };
  });
}

/** Where the messages that are shown are in the path: mostly at its end. */
function rowsOf({ rows }: Path, origins: readonly Origin[]): ReadonlyMap<MessageId, number> {
  const wanted = new Set(origins.flatMap((origin) => (origin.kind === "message" ? [origin.id] : [])));
  const found = new Map<MessageId, number>();
  for (let at = rows.length - 1; at >= 0 && wanted.size > 0; at--) {
    const row = rows[at];
    if (row !== undefined && wanted.delete(row.id)) found.set(row.id, at);
  }
  return found;
}

/** The pieces of the path that a message of the assembly shows unchanged; null if it shows something else. */
function piecesSent(
  path: Path,
  row: PathRow | undefined,
  message: HostMessage,
  isAsSent: boolean,
): readonly number[] | null {
  if (row === undefined) return null;
  // Large content is in the request as it was said, and stays so until its turn is over.
  if (row.isMoved && isAsSent) return Array.from({ length: row.end - row.start }, (_, nth) => row.start + nth);
  const pieces = piecesOf(message);
  const isSame = pieces.every((piece, nth) => path.pieces[row.start + nth] === piece);
  return isSame && pieces.length >= row.end - row.start ? pieces.map((_, nth) => row.start + nth) : null;
}

function render(input: ReplaceInput, shown: readonly Shown[], kept: ReadonlySet<number>): readonly Buffer[] {
  const { request, flat } = input;
  const { scanned, units, wire } = request;
  let first = scanned.count;
  for (const at of kept) first = Math.min(first, at);
  const bytes = (at: number): Buffer => elementBytes(scanned, at);
  const isSilent = (at: number): boolean => flat.counts[at] === 0 && flat.hosts[at] === 0;
  const tail: Buffer[] = [];
  const sent = new Set<number>();
  const send = (at: number): void => {
    sent.add(at);
    tail.push(bytes(at));
  };
  let texts: string[] = [];
  let isHead = true;
  let made: HostMessage[] = [];
  const head: string[] = [];
  const flush = (): void => {
    if (made.length > 0) tail.push(...elementsOf(request, made));
    made = [];
    if (isHead) head.push(...texts);
    else if (texts.length > 0) tail.push(jsonBytes(wire.ours(texts, [], false)));
    [texts, isHead] = [[], false];
  };
  for (const item of shown) {
    if (item.kind === "ours") {
      if (made.length > 0) flush();
      texts.push(item.text);
      continue;
    }
    if (texts.length > 0 || isHead) flush();
    if (item.kind === "made") {
      made.push(item.message);
      continue;
    }
    flush();
    for (const at of item.at) {
      // What tells nothing by itself, such as a thought, belongs to what follows it.
      let from = at;
      while (from > first && isSilent(from - 1)) from--;
      for (let each = from; each <= at; each++) send(each);
    }
  }
  flush();
  // Behind everything that tells something: what the host asks for in its own name.
  const lastTelling = flat.counts.findLastIndex((count) => count > 0);
  for (let at = Math.max(lastTelling + 1, first); at < scanned.count; at++) if (isSilent(at)) send(at);
  const pinned = placesOf(units.traits, trait.pinned).flatMap((at) => (sent.has(at) ? [] : [bytes(at)]));
  const loaded = loadedTools(input, shown, kept).map(bytes);
  const opening = openingOf(input, head, kept, loaded.length > 0);
  const isMarked = marksIn(request, [...tail, ...loaded, ...pinned]) < marksMax;
  return [
    ...pinned,
    ...(opening === null ? [] : [jsonBytes(wire.ours(opening.texts, opening.blocks, isMarked))]),
    ...loaded,
    ...tail,
  ];
}

function placesOf(traits: Uint8Array, wanted: number): readonly number[] {
  const places: number[] = [];
  for (let at = 0; at < traits.length; at++) if (((traits[at] ?? 0) & wanted) !== 0) places.push(at);
  return places;
}

/** Neighbours of one role are one element: a call and the thought before it may be rows of their own. */
function elementsOf({ wire }: Request, messages: readonly HostMessage[]): readonly Buffer[] {
  const merged: HostMessage[] = [];
  for (const message of messages) {
    const last = merged.at(-1);
    const isJoined =
      wire.name === "anthropic" &&
      last?.["role"] === "assistant" &&
      message["role"] === "assistant" &&
      [last, message].every(({ content }) => Array.isArray(content));
    if (isJoined)
      merged.push({ ...merged.pop(), content: [...listIn(last["content"]), ...listIn(message["content"])] });
    else merged.push(message);
  }
  return merged.flatMap((message) => wire.fromMessage(message)).map(jsonBytes);
}

/**
 * Our first element: surroundings that the host wrote into its first message, what this is, and the summaries. It is needed
 * where a call comes next: a user must speak first.
 */
function openingOf({ request }: ReplaceInput, head: readonly string[], kept: ReadonlySet<number>, isNeeded: boolean) {
  const firstUnit = request.units.traits.findIndex((traits) => (traits & trait.pinned) === 0);
  const blocks = firstUnit < 0 || kept.has(firstUnit) ? [] : remindersIn(jsonOf(request, firstUnit)["content"]);
  if (head.length === 0 && blocks.length === 0 && !isNeeded) return null;
  const canRecall = listIn(request.rest["tools"]).some((tool) => /lcm_grep/.test(nameOf(tool)));
  const about = canRecall ? recallGuidance({ isFolded: true, isRestarted: false }) : withoutTools;
  return { texts: head.length === 0 && !isNeeded ? [] : [about, ...head], blocks };
}

const withoutTools =
  "The beginning of this conversation is shown here as summaries; the newest messages follow as they were.";

const nameOf = (tool: Json): string =>
  textIn(objectIn(tool)["name"]) || textIn(objectIn(objectIn(tool)["function"])["name"]);

const remindersIn = (content: Json | undefined): readonly Json[] =>
  listIn(content).filter((block) => isObject(block) && /^\s*<system-reminder>/.test(textIn(block["text"])));

const loadedMax = 20;

/** The calls that loaded a tool, and their results: without them the agent loses the tool. */
function loadedTools(
  { request, flat }: ReplaceInput,
  shown: readonly Shown[],
  kept: ReadonlySet<number>,
): readonly number[] {
  // What comes from the store has no place among the elements, and may show such a call itself.
  if (shown.some(({ kind }) => kind === "made")) return [];
  return placesOf(request.units.traits, trait.loadsTool)
    .flatMap((at) => {
      let call = at - 1;
      while (call >= 0 && flat.counts[call] === 0) call--;
      return call >= 0 && !kept.has(at) && !kept.has(call) ? [[call, at]] : [];
    })
    .slice(-loadedMax)
    .flat();
}

/** Anthropic takes no more. */
const marksMax = 4;

function marksIn({ scanned, wire }: Request, sent: readonly Buffer[]): number {
  if (wire.name !== "anthropic") return marksMax;
  const inRest = scanned.rest.split(mark).length - 1;
  return sent.reduce((sum, bytes) => sum + occurrences(bytes), inRest);
}

const mark = '"cache_control"';

function occurrences(bytes: Buffer): number {
  let found = 0;
  for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + 1)) found++;
  return found;
}

function textOf({ content }: HostMessage): string {
  if (typeof content === "string") return content;
  return listIn(content)
    .map((block) => textIn(objectIn(block)["text"]))
    .join("\n");
}

const jsonBytes = (value: Json): Buffer => Buffer.from(JSON.stringify(value));
