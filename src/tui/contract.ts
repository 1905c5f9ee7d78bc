/**
 * What the parts of the terminal UI agree on. A layer is a screen, or a dialog over one: a state that changes by events
 * alone (`update`), is drawn from its state alone (`draw`), and asks for everything else by values (`Ask`), whose answers
 * come back as events. So a whole session can be replayed, and tested, without a terminal.
 */

import type { ConversationId, FileId, MessageId, SummaryId, Timestamp } from "../core/model.ts";
import type { Page } from "../show/page.ts";
import type { Answer, Ask } from "./asks.ts";
import type { Key } from "./keys.ts";
import type { Failure, Progress } from "./port.ts";

// ── What a layer is given ────────────────────────────────────────────────────────────────────────────────────────────

/** The room a layer is drawn in, and what everything drawn has in common. `columns` is how wide it is. */
export interface Frame extends Page {
  readonly rows: number;
  readonly now: Timestamp;
  /** Why nothing can be changed; null where it can. */
  readonly readOnly: string | null;
  /** Grows while something is under way, to turn a spinner. */
  readonly beat: number;
}

export type LayerEvent<A extends string> =
  /** A key of the layer's own table was pressed, and nothing disables it. */
  | { readonly kind: "action"; readonly action: A; readonly key: Key }
  /** Any key, while `isTyping` says so; Enter and Escape are keys like all others then. */
  | { readonly kind: "key"; readonly key: Key }
  /** Text that was pasted, while typing. */
  | { readonly kind: "pasted"; readonly text: string }
  /** In columns and rows of the layer's own room, from 0. */
  | { readonly kind: "click"; readonly column: number; readonly row: number; readonly count: number }
  /** Lines to scroll; negative is up. */
  | { readonly kind: "wheel"; readonly lines: number; readonly column: number; readonly row: number }
  | { readonly kind: "answer"; readonly answer: Answer }
  | { readonly kind: "failed"; readonly ask: Ask; readonly failure: Failure }
  | { readonly kind: "progress"; readonly ask: Ask; readonly progress: Progress }
  /** Another process has written to the database, or we have: what is shown may be old. */
  | { readonly kind: "changed" }
  | { readonly kind: "resized" }
  /** The layer above it was closed. */
  | { readonly kind: "returned" };

// ── What a layer answers ─────────────────────────────────────────────────────────────────────────────────────────────

export interface Step<S> {
  readonly state: S;
  readonly asks?: readonly Asking[];
  readonly go?: Going;
  readonly notice?: Notice;
}

/**
 * An ask in a slot ends what was asked in the same slot before: its answer no longer matters. Without one, the slot is the
 * kind of the ask. All of a layer's asks end when it is closed.
 */
export type Asking = Ask & { readonly slot?: string };

/** Leaves a layer for another; a layer knows where, and not how it is opened. */
export type Going =
  | { readonly kind: "open"; readonly place: Place }
  /** Opens in place of this layer. */
  | { readonly kind: "become"; readonly place: Place }
  /** Closes this layer. */
  | { readonly kind: "back" }
  /** Ends what was asked in a slot, without closing. */
  | { readonly kind: "stop"; readonly slot: string };

/** A sentence on the status line; it stays until a key is pressed. */
export interface Notice {
  readonly tone: "said" | "good" | "bad";
  readonly text: string;
}

export type Place =
  | { readonly kind: "conversations" }
  | { readonly kind: "messages"; readonly conversation: ConversationId; readonly at?: MessageId }
  | { readonly kind: "dag"; readonly conversation: ConversationId; readonly at?: SummaryId }
  | { readonly kind: "context"; readonly conversation: ConversationId }
  | { readonly kind: "files"; readonly conversation: ConversationId; readonly at?: FileId }
  | { readonly kind: "grep"; readonly conversation: ConversationId | null }
  | { readonly kind: "status"; readonly conversation: ConversationId | null }
  | { readonly kind: "history"; readonly conversation: ConversationId | null }
  | { readonly kind: "transcripts" }
  | { readonly kind: "dissolve"; readonly conversation: ConversationId; readonly summary: SummaryId }
  | { readonly kind: "rewrite"; readonly summary: SummaryId }
  /** A summary and all below it, or those that are in need of repair where none is named. */
  | { readonly kind: "rewrites"; readonly conversation: ConversationId; readonly summary: SummaryId | null }
  /** Into what is picked where it is not named. */
  | { readonly kind: "transplant"; readonly source: ConversationId; readonly target?: ConversationId }
  | { readonly kind: "undo"; readonly change: number }
  | { readonly kind: "text"; readonly title: string; readonly lines: readonly string[] };

// ── What a layer is ──────────────────────────────────────────────────────────────────────────────────────────────────

/** A key as data: the help bar, the help screen, `docs/keys.md` and every refusal are made of these. */
export interface Binding<S, A extends string> {
  /** As `keys.ts` names them; the first is the one that is shown. */
  readonly keys: readonly string[];
  readonly action: A;
  /** A word or two for the help bar; without, it is only on the help screen. */
  readonly short?: string;
  /** What it does, as a sentence without an end. */
  readonly says: string;
  /** Whether it changes the database: refused where that is read-only. */
  readonly changes?: true;
  /** Why it cannot be done now; null if it can. */
  readonly disabled?: (state: S, frame: Frame) => string | null;
}

export interface Module<S, A extends string> {
  /** What `docs/keys.md` calls it. */
  readonly name: string;
  /** Drawn over the layer below, in a box of at most this size; without, it takes the whole room. */
  readonly box?: (state: S, frame: Frame) => { readonly columns: number; readonly rows: number };
  readonly keys: readonly Binding<S, A>[];
  /** Whether there are keys for this now: else they are not shown, and are not this layer's. Left out, there always are. */
  readonly isOffered?: (state: S, action: A) => boolean;
  /** The title of a screen after the name of the program, or of a dialog's box. */
  readonly title: (state: S) => string;
  /** Whether keys are text now. */
  readonly isTyping?: (state: S) => boolean;
  /** Whether something is under way that a spinner shows. */
  readonly isBusy?: (state: S) => boolean;
  readonly update: (state: S, event: LayerEvent<A>, frame: Frame) => Step<S>;
  /** Lines for the room; what is missing is empty, and none may be wider than it. */
  readonly draw: (state: S, frame: Frame) => readonly string[];
}
