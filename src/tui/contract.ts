/**
 * What the parts of the terminal UI agree on. A layer is a screen, or a dialog over one: a state that changes by events
 * alone (`update`), is drawn from its state alone (`draw`), and asks for everything else by values (`Ask`), whose answers
 * come back as events. So a whole session can be replayed, and tested, without a terminal.
 */

import type { ConversationId, FileId, MessageId, SummaryId } from "../core/model/types.ts";
import type { Answer, Ask } from "./asks.ts";
import type { RewriteSelection } from "./dialogs/rewrite/asks.ts";
import type { Key } from "./keys.ts";
import type { Failure, OfConversation, Progress } from "./port.ts";
import type { Timestamp } from "../core/base/time.ts";
import type { Page } from "../format/page.ts";

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

interface Happenings {
  /** A key of the layer's own table was pressed, and nothing disables it. */
  readonly pressed: { readonly name: string };
  /** Any key, while `isTyping` says so; Enter and Escape are keys like all others then. */
  readonly key: { readonly key: Key };
  /** Text that was pasted, while typing. */
  readonly pasted: { readonly text: string };
  readonly click: Point & { readonly count: number };
  /** Lines to scroll; negative is up. */
  readonly wheel: Point & { readonly lines: number };
  readonly answer: { readonly answer: Answer };
  readonly failed: { readonly ask: Ask; readonly failure: Failure };
  readonly progress: { readonly ask: Ask; readonly progress: Progress };
  /** Another process has written to the database, or we have: what is shown may be old. */
  readonly changed: object;
  readonly resized: object;
  /** The layer above it was closed. */
  readonly returned: object;
}

/** Of the pointer, in columns and rows of the layer's own room, from 0. */
export interface Point {
  readonly column: number;
  readonly row: number;
}

export type Happening = keyof Happenings;
export type LayerEvent<K extends Happening = Happening> = {
  readonly [P in K]: { readonly kind: P } & Happenings[P];
}[K];

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

interface Places {
  readonly conversations: object;
  readonly messages: OfConversation & { readonly at?: MessageId };
  readonly dag: OfConversation & { readonly at?: SummaryId };
  readonly context: OfConversation;
  readonly files: OfConversation & { readonly at?: FileId };
  readonly grep: OfAny;
  readonly status: OfAny;
  readonly history: OfAny;
  readonly transcripts: object;
  readonly dissolve: OfConversation & { readonly summary: SummaryId };
  readonly rewrite: OfConversation & { readonly select: RewriteSelection };
  /** Where the conversation to copy into is picked. */
  readonly targets: { readonly source: ConversationId };
  readonly transplant: { readonly source: ConversationId; readonly target: ConversationId };
  readonly undo: { readonly change: number };
  readonly fix: OfConversation;
  readonly text: { readonly title: string; readonly lines: readonly string[] };
}

interface OfAny {
  readonly conversation: ConversationId | null;
}

type PlaceKind = keyof Places;
export type Place<K extends PlaceKind = PlaceKind> = {
  readonly [P in K]: { readonly kind: P } & Places[P];
}[K];

export const goTo = (place: Place) => ({ go: { kind: "open", place } }) as const;

/** Opens a place, where there is one to go to. */
export const opens =
  <S>(placeOf: (state: S) => Place | null) =>
  (state: S): Step<S> => {
    const place = placeOf(state);
    return { state, ...(place && goTo(place)) };
  };

/** What there is of one conversation. */
export type Its = "messages" | "dag" | "context" | "files" | "grep" | "status" | "history";

/** Opens that of the same conversation. */
export const opensIts = <S extends OfConversation>(kind: Its) =>
  opens<S>(({ conversation }) => ({ kind, conversation }));

// ── What a layer is ──────────────────────────────────────────────────────────────────────────────────────────────────

/** A key as data: the help bar, the help screen, `docs/keys.md` and every refusal are made of these. */
export interface Binding<S> {
  /** As `keys.ts` names them; the first is the one that is shown. */
  readonly keys: readonly string[];
  /** A word or two for the help bar; without, it is only on the help screen. */
  readonly short?: string;
  /** What it does, as a sentence without an end. */
  readonly says: string;
  /** Whether it changes the database: refused where that is read-only. */
  readonly changes?: true;
  /** Whether it moves in what is shown: then it waits until that has been read. */
  readonly moves?: true;
  /** Whether there is such a key now: else it is not shown, and is not this layer's. Left out, there always is. */
  readonly when?: (state: S) => boolean;
  /** Why it cannot be done now; null if it can. */
  readonly disabled?: (state: S, frame: Frame) => string | null;
  readonly does: (state: S, frame: Frame) => Step<S>;
}

export interface Module<S extends { readonly kind: PlaceKind }> {
  /** What `docs/keys.md` calls it. */
  readonly name: string;
  /** How it begins; what is read first are its `reads`. */
  readonly open: (place: Place<S["kind"]>) => S;
  /** Drawn over the layer below, in a box of at most this size; without, it takes the whole room. */
  readonly box?: (state: S, frame: Frame) => { readonly columns: number; readonly rows: number };
  readonly keys: readonly Binding<S>[];
  /** The title of a screen after the name of the program, or of a dialog's box. */
  readonly title: (state: S) => string;
  /** Whether keys are text now. */
  readonly isTyping?: (state: S) => boolean;
  /** Whether what it shows has not been read yet. A spinner shows that, and keys that have to do with it wait. */
  readonly isUnread?: (state: S) => boolean;
  /** Whether something else is under way that a spinner shows. */
  readonly isBusy?: (state: S) => boolean;
  /** What it shows: asked for at first, and again when that may be old, after a change or when one comes back to it. */
  readonly reads?: (state: S) => readonly Asking[];
  /** What becomes of an answer; of others, nothing does. */
  readonly answers?: Answers<S>;
  /** What else happens to it; of what is not here, nothing follows. */
  readonly on?: Handlers<S>;
  /** What follows from where an event has led; not from a failure, for then it waits for what is to be read again. */
  readonly follow?: (state: S, frame: Frame, before: S) => Step<S>;
  /** Lines for the room; what is missing is empty, and none may be wider than it. */
  readonly draw: (state: S, frame: Frame) => readonly string[];
}

export type Answers<S> = {
  readonly [K in Ask["kind"]]?: (state: S, told: Answer<K>["told"], frame: Frame, ask: Ask<K>) => Step<S>;
};

export type Handlers<S> = {
  readonly [K in Happening]?: (state: S, event: LayerEvent<K>, frame: Frame) => Step<S>;
};
