/** What an engine remembers of a session while its process runs: what was read, shown and learned. */

import type { Json } from "../../core/base/json.ts";
import type { Timestamp } from "../../core/base/time.ts";
import type { Incoming } from "../../core/messages/codec.ts";
import type { RowReader, SessionFacts } from "../../core/messages/transcript-line.ts";
import { allowanceOf, learnFromCount, learnFromOverflow, recallAllowance } from "./allowance.ts";
import { formatOf } from "./rows/formats.ts";
import { notRecorded, type Recording } from "./prompt-records.ts";
import type { SessionMemory } from "./runtime.ts";
import type { HostSession } from "./sessions.ts";

/** The room for a prompt, in tokens. */
export interface Room {
  /** The model's context window. */
  readonly window: number;
  /** What the host keeps free in it, at least for the answer. */
  readonly reserve: number;
  /** The estimate of what the host adds itself: its system prompt and the schemas of tools. */
  readonly overhead: number;
}

/** What came of a prompt. */
export type ProviderAnswer =
  /** The prompt tokens that the provider counted, cached ones included. */
  | { readonly kind: "counted"; readonly inputTokens: number; readonly cachedTokens?: number }
  /** The provider refused the prompt as too long. */
  | { readonly kind: "overflow"; readonly countedTokens?: number }
  /** The host sent its own messages after all. */
  | { readonly kind: "unused" };

/** After a refusal a prompt is at most this share of the refused one. */
const shareAfterRefusal = 0.75;
/** If the refused prompt had less than this share of the room, something else was too long. */
const shareToBlame = 0.1;

export class LiveSession {
  readonly session: HostSession;
  readonly memory: SessionMemory;
  /** Whether rows of the host are missing from the store. */
  isBehind = false;
  /** The prompt that was shown last; null if it was the host's own. */
  shown: (Room & { readonly tokens: number }) | null = null;
  /** The record of the last prompt. */
  recording: Recording = notRecorded;
  /** A prompt may not be larger, because larger ones were refused. `isOnce`: until the provider answers. */
  #ceiling: { readonly tokens: number; readonly isOnce: boolean } | null = null;
  readonly #reader: RowReader;

  constructor(session: HostSession, memory: SessionMemory) {
    this.session = session;
    this.memory = memory;
    this.#reader = formatOf(session.host).createReader();
  }

  /** Rows that cannot be read are left out. */
  read(rows: readonly Json[], from: number, now: Timestamp): readonly Incoming[] {
    return rows.flatMap((row, at) => {
      const line = this.#reader.read(row, from + at + 1, now);
      return line.kind === "item" ? [line.item] : [];
    });
  }

  /** What the rows said about the session. */
  facts(): Pick<SessionFacts, "folder" | "parentSessionId"> {
    const { folder, parentSessionId } = this.#reader.session();
    return { folder, parentSessionId };
  }

  /** What the host calls the session. */
  title(): string | null {
    return this.#reader.session().title;
  }

  /** The tokens that our messages may have; `added` are for what we add besides them. */
  budgetFor(room: Room, storedBudget: number | null, added: number): number {
    const named = namedIn(room);
    recallAllowance(this.memory, named, storedBudget);
    const budget = Math.floor(named - allowanceOf(this.memory, named) - added);
    const ceiling = this.#ceiling?.tokens ?? Infinity;
    if (this.#ceiling?.isOnce !== true) this.memory.promptBudget = Math.min(budget, ceiling);
    return Math.max(0, Math.min(budget, ceiling));
  }

  learn(answer: ProviderAnswer): void {
    if (this.shown === null) return;
    const { overhead, tokens } = this.shown;
    const named = namedIn(this.shown);
    if (answer.kind === "counted") {
      if (answer.inputTokens > 0) learnFromCount(this.memory, named, answer.inputTokens - overhead - tokens);
      if (this.#ceiling?.isOnce === true) this.#ceiling = null;
      return;
    }
    if (answer.kind === "unused") return void (this.shown = null);
    learnFromOverflow(this.memory, named, answer.countedTokens);
    this.#ceiling = { tokens: Math.floor(shareAfterRefusal * tokens), isOnce: tokens < shareToBlame * named };
  }
}

const namedIn = ({ window, reserve, overhead }: Room): number => Math.max(0, window - reserve - overhead);
