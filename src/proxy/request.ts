/** A request as the proxy reads it: what each of its elements says, as far as the proxy compares it, and the rest of its body. */

import { isObject, type Json, type JsonObject } from "../core/base/json.ts";
import { isHostsSummary, isTelling, saidIn, type Said } from "../core/messages/said.ts";
import { pieceOf } from "./path.ts";
import { elementBytes, scanBody, sliceBytes, type ScannedBody } from "./scan.ts";
import { parsedObject, type Wire } from "./wires/wire.ts";

/** An element of a request. Its JSON is read again when it is needed, because there may be very many. */
interface Unit {
  /** What tells it from others. */
  readonly pieces: readonly string[];
  readonly traits: number;
}

/** What can be true of an element. */
export const trait = {
  pinned: 1,
  /** The format does not know it. */
  unknown: 2,
  /** The host's own summary of what came before. */
  summary: 4,
  /** A tool was loaded by it; that must stay. */
  loadsTool: 8,
} as const;

/** All elements, in arrays: as objects, a hundred thousand of them would keep the garbage collector busy. */
export interface Units {
  /** The pieces of all elements in a row. */
  readonly pieces: readonly string[];
  /** The first piece of each element; and where the last one's end. */
  readonly starts: Int32Array;
  readonly traits: Uint8Array;
}

export interface Request {
  readonly wire: Wire;
  readonly scanned: ScannedBody;
  readonly units: Units;
  /** The body without its messages. */
  readonly rest: JsonObject;
}

/**
 * Null if the body is not what the format asks for; it is then passed on unread. Only what differs from the request
 * before is read. Yields after each slice of a long one.
 */
export function* readRequest(wire: Wire, bytes: Buffer, last: Request | null): Generator<void, Request | null> {
  try {
    const scanned = yield* scanBody(bytes, wire.field, last?.scanned ?? null);
    if (scanned === null) return null;
    const rest = last?.scanned.rest === scanned.rest ? last.rest : parsedObject(scanned.rest);
    return rest === null ? null : { wire, scanned, units: yield* readUnits(wire, scanned, last?.units ?? null), rest };
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return null; // Not JSON, or nested too deeply.
    throw error;
  }
}

function* readUnits(wire: Wire, scanned: ScannedBody, last: Units | null): Generator<void, Units> {
  const { count, keptElements: kept } = scanned;
  const starts = new Int32Array(count + 1);
  const traits = new Uint8Array(count);
  if (last !== null) {
    starts.set(last.starts.subarray(0, kept + 1));
    traits.set(last.traits.subarray(0, kept));
  }
  const pieces = last?.pieces.slice(0, starts[kept]) ?? [];
  for (let at = kept, unread = 0; at < count; at++) {
    const bytes = elementBytes(scanned, at);
    const element = JSON.parse(bytes.toString("utf8")) as Json;
    const unit = isObject(element) ? unitOf(wire, element) : { pieces: [], traits: trait.unknown };
    for (const piece of unit.pieces) pieces.push(piece);
    traits[at] = unit.traits;
    starts[at + 1] = pieces.length;
    unread += bytes.length;
    if (unread < sliceBytes) continue;
    unread = 0;
    yield;
  }
  return { pieces, starts, traits };
}

export const jsonOf = ({ scanned }: Request, at: number): JsonObject =>
  (at >= 0 && at < scanned.count ? parsedObject(elementBytes(scanned, at).toString("utf8")) : null) ?? {};

export function unitOf(wire: Wire, json: JsonObject): Unit {
  if (wire.isPinned(json)) return { pieces: [], traits: trait.pinned };
  const message = wire.toMessage(json);
  if (message === null) return { pieces: [], traits: trait.unknown };
  const said = saidIn(message);
  return {
    pieces: said.filter(isTelling).map(pieceOf),
    traits: (said.some(isHostsSummary) ? trait.summary : 0) | (said.some(isLoadingTool) ? trait.loadsTool : 0),
  };
}

const isLoadingTool = (said: Said): boolean =>
  said.kind === "result" &&
  Array.isArray(said.content) &&
  said.content.some((block: Json) => isObject(block) && block["type"] === "tool_reference");

/** The pieces that are part of the conversation in a row, and to which element each belongs. */
export interface FlatPieces {
  readonly pieces: readonly string[];
  readonly owners: Int32Array;
  /** How many pieces each element has here. */
  readonly counts: Int32Array;
  /** The first piece of each element. */
  readonly starts: Int32Array;
  /** 1 for the host's own summaries. */
  readonly hosts: Uint8Array;
}

/**
 * Leaves out what is not part of the conversation: the last `asked` pieces, by which the host asks for something of its
 * own, such as a summary, and what it was answered (`hostsPieces`).
 */
export function flatten(
  { pieces: all, starts: from, traits }: Units,
  asked: number,
  hostsPieces: ReadonlySet<string>,
): FlatPieces {
  const counts = new Int32Array(traits.length);
  const starts = new Int32Array(traits.length);
  const hosts = new Uint8Array(traits.length);
  const owners = new Int32Array(all.length);
  const end = all.length - asked;
  let length = 0;
  for (let at = 0; at < traits.length; at++) {
    const [first, behind] = [from[at] ?? 0, from[at + 1] ?? 0];
    const isOnlyHosts = hostsPieces.size > 0 && behind > first && areAllIn(hostsPieces, all, first, behind);
    starts[at] = length;
    if (isOnlyHosts || ((traits[at] ?? 0) & trait.summary) !== 0) hosts[at] = 1;
    const count = isOnlyHosts ? 0 : Math.max(0, Math.min(behind, end) - first);
    counts[at] = count;
    for (const to = length + count; length < to; length++) owners[length] = at;
  }
  const pieces = length === all.length ? all : keptPieces(all, from, counts);
  return { pieces, owners: owners.subarray(0, length), counts, starts, hosts };
}

function areAllIn(set: ReadonlySet<string>, all: readonly string[], from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (!set.has(all[at] ?? "")) return false;
  return true;
}

function keptPieces(all: readonly string[], from: Int32Array, counts: Int32Array): readonly string[] {
  const pieces: string[] = [];
  counts.forEach((count, at) => {
    const first = from[at] ?? 0;
    for (let nth = 0; nth < count; nth++) pieces.push(all[first + nth] ?? "");
  });
  return pieces;
}
