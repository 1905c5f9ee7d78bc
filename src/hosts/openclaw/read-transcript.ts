/**
 * Reads the host's transcript from where we last stopped and stores it. That includes what never was a turn of ours: failed
 * turns, those of another engine, slash commands and resets. Each row is stored under the host's id, in one transaction
 * with the cursor, so it does not matter who reads, how often, or where a process dies.
 */

import { assert, LcmError } from "../../core/base/errors.ts";
import { isObject } from "../../core/base/json.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Incoming } from "../../core/messages/codec.ts";
import type { Appended, AppendOptions, Store } from "../../core/model/store.ts";
import type { Conversation } from "../../core/model/types.ts";
import { alignOlder, keepAll, type RowFilter } from "./align-older.ts";
import type { ReadTranscript, TranscriptPlace } from "./host-api.ts";
import {
  beginsSegment,
  familyOf,
  findActive,
  findHolder,
  findStart,
  followCopy,
  openActive,
  openSegment,
} from "./segments.ts";
import { createReader, firstRows, itemsOf, pagesFrom, readingUpTo } from "./transcript-pages.ts";
import type { Page, ReadFrom } from "./transcript-pages.ts";

export interface Turn {
  /** The host's key of the whole turn. */
  readonly key: string;
  /** The id of its last row. */
  readonly lastKey: string;
}

export interface Drained {
  /** The segment that the host is writing to; null if nothing was ever said. */
  readonly conversation: Conversation | null;
  /** How many messages were new. */
  readonly messages: number;
  readonly turn: Appended["turn"];
  /** False if the host keeps no transcript of the session and nothing of the turn is stored. */
  readonly isKept: boolean;
}

/**
 * Stores what is new. With a turn, stores up to its end under its key: a turn that is committed again may be followed by
 * the next one, which the host still shows itself. Throws `unavailable` if the transcript lacks the end of the turn.
 */
export async function drain(lcm: Lcm, read: ReadTranscript, place: TranscriptPlace, turn?: Turn): Promise<Drained> {
  const readFrom = createReader(read, place);
  const conversation = (await findActive(lcm.store, place)) ?? (await followCopy(lcm.store, place, readFrom));
  return await new Writer({ lcm, place, readFrom, turn }, conversation).run();
}

/**
 * Stores what came up to the last reset, for a caller between turns. Rows after it may belong to a running turn, which the
 * host shows until it commits it.
 */
export async function drainToReset(lcm: Lcm, read: ReadTranscript, place: TranscriptPlace): Promise<void> {
  const active = await findActive(lcm.store, place);
  if (active === null || active.hostCursor === null) return;
  let last: number | null = null;
  for await (const { events } of pagesFrom(createReader(read, place), active.hostCursor))
    last = events.findLast(({ event }) => beginsSegment(event, keepAll))?.seq ?? last;
  if (last !== null) await drain(lcm, readingUpTo(read, last), place);
}

/** The next rows of a page that are stored together: the row that begins a segment, or rows of one segment. */
interface Step {
  readonly beginsSegment: boolean;
  readonly rows: number;
  readonly endsTurn: boolean;
  readonly isLast: boolean;
}

function nextStep({ events, hasMore }: Page, filter: RowFilter, turn: Turn | undefined): Step {
  const start = events.findIndex(({ event }) => beginsSegment(event, filter));
  // Alone, so that the cursor after it is stored with the segment that it begins.
  if (start === 0) return { beginsSegment: true, rows: 1, endsTurn: false, isLast: false };
  const before = start < 0 ? events : events.slice(0, start);
  const turnRows = turn === undefined ? 0 : rowsToEnd(turn, before);
  if (turnRows > 0) return { beginsSegment: false, rows: turnRows, endsTurn: true, isLast: true };
  return { beginsSegment: false, rows: before.length, endsTurn: false, isLast: start < 0 && !hasMore };
}

/** The rows up to the turn's end, with the host's notes after it; 0 if the turn does not end here. */
function rowsToEnd({ lastKey }: Turn, events: Page["events"]): number {
  const last = events.findIndex(({ event }) => isObject(event) && event["id"] === lastKey);
  const next = events.findIndex(({ event }, at) => at > last && isObject(event) && event["type"] === "message");
  return last < 0 ? 0 : next < 0 ? events.length : next;
}

interface Source {
  readonly lcm: Lcm;
  readonly place: TranscriptPlace;
  readonly readFrom: ReadFrom;
  readonly turn: Turn | undefined;
}

class Writer {
  readonly #source: Source;
  readonly #store: Store;
  #conversation: Conversation | null;
  #cursor: string | null;
  #filter: RowFilter = keepAll;
  #messages = 0;
  #turn: Appended["turn"] = "unnamed";

  constructor(source: Source, conversation: Conversation | null) {
    this.#source = source;
    this.#store = source.lcm.store;
    this.#conversation = conversation;
    this.#cursor = conversation?.hostCursor ?? null;
  }

  async run(): Promise<Drained> {
    const { readFrom, turn } = this.#source;
    const known = this.#conversation === null ? null : await this.#nameTurn([this.#conversation]);
    if (known !== null) return this.#result(known);
    if (this.#cursor === null) await this.#align();
    for (let isSought = false; ;) {
      const page = await readFrom(this.#cursor);
      if (page.kind === "missing") {
        const stored = await this.#nameTurn();
        return { ...this.#result(stored ?? this.#turn), isKept: stored !== null };
      }
      if (page.kind === "reset") {
        await this.#restart(page.cursor);
        continue;
      }
      if (page.events.length === 0) break;
      const conversation = await this.#openConversation();
      const step = nextStep(page, this.#filter, turn);
      if (turn !== undefined && !step.endsTurn && !isSought) {
        // A turn before a reset may have been stored together with it; then these rows are not part of it.
        const stored = await this.#nameTurn();
        if (stored !== null) return this.#result(stored);
        isSought = true;
      }
      await this.#write(conversation, step, await firstRows(readFrom, this.#cursor, page, step.rows));
      if (step.isLast) break;
    }
    return this.#result(turn === undefined || this.#turn !== "unnamed" ? this.#turn : await this.#nameStored(turn));
  }

  #result(turn: Appended["turn"]): Drained {
    return { conversation: this.#conversation, messages: this.#messages, turn, isKept: true };
  }

  /** A conversation that was adopted has part of the transcript stored under keys of its own. */
  async #align(): Promise<void> {
    const { lcm, readFrom } = this.#source;
    const pages = async function* (): AsyncGenerator<readonly Incoming[]> {
      for await (const page of pagesFrom(readFrom, null)) yield itemsOf(lcm.clock, page);
    };
    this.#filter = this.#conversation === null ? keepAll : await alignOlder(this.#store, this.#conversation, pages);
  }

  /** The host has rewritten its transcript. It is read again from the start; what is stored stays. */
  async #restart(cursor: string): Promise<void> {
    assert(cursor !== this.#cursor, "the host returns the start of a transcript as a valid cursor");
    this.#cursor = cursor;
    await this.#align();
    const { place, readFrom } = this.#source;
    this.#conversation = await findStart(this.#store, place, pagesFrom(readFrom, cursor), this.#filter);
  }

  /** A conversation that no host has written to yet is taken over, even from another session of the same key. */
  async #openConversation(): Promise<Conversation> {
    const { place } = this.#source;
    const known = this.#conversation;
    if (known !== null && (known.hostCursor !== null || known.sessionId === place.sessionId)) return known;
    const opened = (this.#conversation = await openActive(this.#store, place));
    // The older program may have stored it under the session's id alone.
    await this.#align();
    return opened;
  }

  async #write(conversation: Conversation, step: Step, page: Page): Promise<void> {
    const { lcm, place, turn } = this.#source;
    this.#cursor = page.cursor;
    if (step.beginsSegment) {
      this.#conversation = await openSegment(lcm, place, page);
      this.#filter = keepAll;
      return;
    }
    const appended = await append(lcm, conversation, itemsOf(lcm.clock, page).flatMap(this.#filter.item), {
      ...(this.#filter.isCertain || step.isLast ? { hostCursor: page.cursor } : {}),
      ...(turn === undefined ? { isCatchingUp: true } : step.endsTurn ? { turnKey: turn.key } : {}),
    });
    this.#messages += appended.messages.length;
    if (appended.turn !== "unnamed") this.#turn = appended.turn;
  }

  /** Records the turn's key where its last row is stored, by default in any segment; null if it is not stored. */
  async #nameTurn(among?: readonly Conversation[]): Promise<Appended["turn"] | null> {
    const { turn, place } = this.#source;
    if (turn === undefined) return null;
    const holder = await findHolder(this.#store, among ?? (await familyOf(this.#store, place)), turn.lastKey);
    return holder === null ? null : (await this.#store.append(holder.id, [], { turnKey: turn.key })).turn;
  }

  /** The rows were stored before the commit: by a bootstrap, or by a commit that was interrupted. */
  async #nameStored({ key }: Turn): Promise<Appended["turn"]> {
    const stored = await this.#nameTurn();
    if (stored !== null) return stored;
    const { sessionKey } = this.#source.place;
    throw new LcmError("unavailable", `the transcript of ${sessionKey} does not contain the end of turn ${key}`, {
      hint: "the host commits it again before the next turn",
    });
  }
}

/** A turn that is already recorded may come with rows that are not stored; they are stored without its key. */
async function append(
  lcm: Lcm,
  { id }: Conversation,
  items: readonly Incoming[],
  options: AppendOptions,
): Promise<Appended> {
  const appended = await lcm.ingest(id, items, options);
  if (appended.turn !== "duplicate") return appended;
  const { turnKey: _, ...unnamed } = options;
  return { ...(await lcm.ingest(id, items, unnamed)), turn: "duplicate" };
}
