/**
 * The contract between the terminal UI and its layers (screens and dialogs). A layer is a state that changes only by
 * events and asks for all I/O with values (`Ask`), so a session can be replayed and tested without a terminal.
 */

import type { ConversationId, FileId, MessageId, SummaryId } from "../core/model/types.ts";
import type { AskAnswer, Ask } from "./asks.ts";
import type { RewriteSelection } from "../operator/rewrite.ts";
import type { PruneSelection } from "../operator/work.ts";
import type { Key } from "./keys.ts";
import type { Failure, OfConversation, Progress } from "../operator/port.ts";
import type { ForgetPlan } from "../core/model/store.ts";
import type { Timestamp } from "../core/base/time.ts";
import type { Page } from "../format/page.ts";

/** The room a layer is drawn in, and what all drawing shares. */
export interface Frame extends Page {
  readonly rows: number;
  readonly now: Timestamp;
  /** Why nothing can be changed; null if it can. */
  readonly readOnly: string | null;
  /** Why no model can be asked; absent or null if one can. */
  readonly noModel?: string | null;
  /** Grows while something is under way; turns the spinner. */
  readonly beat: number;
}

interface Happenings {
  /** A key of the layer's own table, and it is not disabled. */
  readonly pressed: { readonly name: string };
  /** Any key while `isTyping`, Enter and Escape included. */
  readonly key: { readonly key: Key };
  /** Only while typing. */
  readonly pasted: { readonly text: string };
  readonly click: Point & { readonly count: number };
  /** Lines to scroll; negative is up. */
  readonly wheel: Point & { readonly lines: number };
  readonly answer: { readonly answer: AskAnswer };
  readonly failed: { readonly ask: Ask; readonly failure: Failure };
  readonly progress: { readonly ask: Ask; readonly progress: Progress };
  /** The database was written to: what is shown may be outdated. */
  readonly changed: object;
  readonly resized: object;
  /** The layer above it was closed. */
  readonly returned: object;
}

/** Position of the pointer in the layer's room, from 0. */
export interface Point {
  readonly column: number;
  readonly row: number;
}

export type Happening = keyof Happenings;
export type LayerEvent<K extends Happening = Happening> = {
  readonly [P in K]: { readonly kind: P } & Happenings[P];
}[K];

export interface Step<S> {
  readonly state: S;
  readonly asks?: readonly Asking[];
  readonly go?: Going;
  readonly notice?: Notice;
}

/** An ask aborts the earlier one in its slot, by default its kind. Closing a layer aborts all of its asks. */
export type Asking = Ask & { readonly slot?: string };

export type Going =
  | { readonly kind: "open"; readonly place: Destination }
  /** Replaces this layer. */
  | { readonly kind: "become"; readonly place: Destination }
  /** Closes this layer. */
  | { readonly kind: "back" }
  /** Aborts the ask in a slot. */
  | { readonly kind: "stop"; readonly slot: string }
  /** Closes this layer, then presses a key or opens a layer as if it had not been there. */
  | { readonly kind: "choose"; readonly choice: Choice };

export type Choice =
  | { readonly kind: "press"; readonly key: string }
  | { readonly kind: "open"; readonly place: Destination };

/** Shown on the status line until a key is pressed. */
export interface Notice {
  readonly tone: "info" | "good" | "bad";
  readonly text: string;
}

interface Destinations {
  readonly conversations: object;
  readonly messages: OfConversation & { readonly at?: MessageId };
  readonly summaries: OfConversation & { readonly at?: SummaryId };
  readonly context: OfConversation;
  /** `behind`: begins with the prompt behind this message. */
  readonly prompts: OfConversation & { readonly behind?: MessageId };
  readonly files: OfConversation & { readonly at?: FileId };
  readonly search: OfAny;
  readonly status: OfAny;
  readonly history: OfAny;
  readonly transcripts: object;
  readonly dissolve: OfConversation & { readonly summary: SummaryId };
  readonly rewrite: OfConversation & { readonly select: RewriteSelection };
  /** The list that picks a transplant's target. */
  readonly targets: { readonly source: ConversationId };
  readonly transplant: { readonly source: ConversationId; readonly target: ConversationId };
  readonly undo: { readonly change: number };
  readonly fix: OfConversation;
  readonly text: { readonly title: string; readonly lines: readonly string[] };
  readonly palette: { readonly entries: readonly PaletteEntry[] };
  /** Asks for a line of text, which completes a destination. */
  readonly line: { readonly question: Question };
  readonly compact: OfConversation;
  readonly export: OfConversation & { readonly path: string };
  readonly prune: { readonly select: PruneSelection };
  readonly pin: { readonly message: MessageId };
  readonly forget: { readonly target: ForgetPlan["target"] };
  /** The list that picks a backup. */
  readonly backups: object;
  readonly restore: { readonly from: string };
  readonly backup: object;
  readonly ask: OfAny & { readonly question: string };
}

/** What a line of text completes: an export needs a path, a prune an age, forgetting a secret, asking a question. */
export type Question =
  | ({ readonly kind: "export" } & OfConversation)
  | { readonly kind: "prune" }
  | { readonly kind: "forget" }
  | ({ readonly kind: "ask" } & OfAny);

/** Something the palette lists. */
export interface PaletteEntry {
  /** Where it has a key. */
  readonly key: string | null;
  readonly help: string;
  /** More words that find it, such as the name of the command. */
  readonly also: string;
  /** Why it is unavailable. */
  readonly because: string | null;
  readonly choice: Choice;
}

/** What commands act on. */
export interface Subject {
  readonly conversation: ConversationId | null;
  readonly message: MessageId | null;
}

interface OfAny {
  readonly conversation: ConversationId | null;
}

type DestinationKind = keyof Destinations;
export type Destination<K extends DestinationKind = DestinationKind> = {
  readonly [P in K]: { readonly kind: P } & Destinations[P];
}[K];

export const goTo = (place: Destination) => ({ go: { kind: "open", place } }) as const;

export const opens =
  <S>(placeOf: (state: S) => Destination | null) =>
  (state: S): Step<S> => {
    const place = placeOf(state);
    return { state, ...(place && goTo(place)) };
  };

/** The screens of one conversation. */
export type Its = "messages" | "summaries" | "context" | "prompts" | "files" | "search" | "status" | "history";

/** A key as data: the key bar, the help page, `docs/keys.md` and refusals are generated from it. */
export interface Binding<S> {
  /** Names as in `keys.ts`; the key bar shows the first. */
  readonly keys: readonly string[];
  /** A word or two for the key bar; without it, the key is only on the help page. */
  readonly short?: string;
  /** In the imperative, without a full stop. */
  readonly help: string;
  /** Refused if the database is read-only. */
  readonly changes?: true;
  /** Refused without a model. */
  readonly asksModel?: true;
  /** Whether it moves the cursor or the view: it waits for data that is being read. */
  readonly moves?: true;
  /** Whether the key exists in this state; always by default. */
  readonly when?: (state: S) => boolean;
  /** Why it is unavailable; null if it is available. */
  readonly disabled?: (state: S, frame: Frame) => string | null;
  readonly does: (state: S, frame: Frame) => Step<S>;
}

export interface Module<S extends { readonly kind: DestinationKind }> {
  /** Its heading in `docs/keys.md` and on the help page. */
  readonly name: string;
  /** The initial state; its `reads` are asked for next. */
  readonly open: (place: Destination<S["kind"]>) => S;
  /** Size of a dialog's box, drawn over the layer below; a screen has none. */
  readonly box?: (state: S, frame: Frame) => { readonly columns: number; readonly rows: number };
  readonly keys: readonly Binding<S>[];
  readonly title: (state: S) => string;
  /** What commands act on here; by default the layer's conversation. */
  readonly subject?: (state: S) => Partial<Subject>;
  /** Whether keys are typed text. */
  readonly isTyping?: (state: S) => boolean;
  /** Whether its data has not been read yet: a spinner turns, and keys that need the data wait. */
  readonly isUnread?: (state: S) => boolean;
  /** Whether something else is under way: the spinner turns. */
  readonly isBusy?: (state: S) => boolean;
  /** Its data: asked for when it opens, after a change, and when the layer above closes. */
  readonly reads?: (state: S) => readonly Asking[];
  readonly answers?: Answers<S>;
  readonly on?: Handlers<S>;
  /** Runs after every event but a failure, for instance to ask for what became visible. */
  readonly follow?: (state: S, frame: Frame, before: S) => Step<S>;
  /** At most as many lines as the room has rows, none wider than the room. */
  readonly draw: (state: S, frame: Frame) => readonly string[];
}

export type Answers<S> = {
  readonly [K in Ask["kind"]]?: (state: S, result: AskAnswer<K>["result"], frame: Frame, ask: Ask<K>) => Step<S>;
};

export type Handlers<S> = {
  readonly [K in Happening]?: (state: S, event: LayerEvent<K>, frame: Frame) => Step<S>;
};
