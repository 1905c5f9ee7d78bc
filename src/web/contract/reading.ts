/** Messages, summaries, files and search hits, as they are read. */

import type { Json } from "../../core/base/json.ts";
import type { Timestamp } from "../../core/base/time.ts";
import type { SearchCaveat, SearchHit } from "../../core/model/store.ts";
import type {
  Aside,
  ConversationId,
  FileId,
  MessageId,
  Pin,
  Role,
  StoredFile,
  Summary,
  SummaryId,
} from "../../core/model/types.ts";
import type { Match } from "../../format/highlight.ts";

// ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A block of a message. Texts are exactly as stored; ids of other things in them can be made links. */
export type Block =
  /** A `reminder` is what the host put beside the user's words. */
  | { readonly kind: "text" | "reasoning" | "reminder"; readonly text: string }
  | { readonly kind: "call"; readonly id: string; readonly name: string; readonly input: Json }
  | {
      readonly kind: "result";
      /** Of the call that it answers. */
      readonly id: string;
      readonly name: string | null;
      readonly isFailed: boolean;
      readonly text: string;
    }
  /** `data:…` for a picture inside the message, or the address of one in a file. */
  | { readonly kind: "picture"; readonly address: string; readonly mimeType: string }
  /** Text that was moved to a file, as the reference that stands in its place. */
  | { readonly kind: "file"; readonly file: FileId; readonly text: string }
  | { readonly kind: "other"; readonly type: string; readonly json: Json };

export interface MessageInShort {
  readonly id: MessageId;
  readonly seq: number;
  readonly role: Role;
  readonly at: Timestamp;
  readonly tokens: number;
  readonly aside: Aside | null;
  readonly opening: string;
}

export interface SummaryInShort extends Pick<
  Summary,
  "id" | "conversation" | "depth" | "level" | "tokens" | "model" | "createdAt" | "revision"
> {
  readonly earliestAt: Timestamp;
  readonly latestAt: Timestamp;
  readonly carriedFrom: SummaryId | null;
  readonly rewriteReason: string | null;
  readonly opening: string;
}

export interface MessageReading extends MessageInShort {
  readonly conversation: ConversationId;
  readonly name: string;
  readonly key: string;
  readonly blocks: readonly Block[];
  readonly isForgotten: boolean;
  /** Whether its row no longer says what was stored. */
  readonly isDamaged: boolean;
  /** The leaf first, then the summaries above it. */
  readonly coveredBy: readonly SummaryInShort[];
  readonly files: readonly StoredFile[];
  readonly pin: Pin | null;
  /** Neighbours by number. */
  readonly before: MessageId | null;
  readonly after: MessageId | null;
  /** The number of the prompt behind it (or behind the next answer); null if none is recorded. */
  readonly prompt: number | null;
}

export interface SummaryReading extends SummaryInShort {
  readonly name: string;
  readonly text: string;
  /** How many sources it has; read them with `sources`. */
  readonly sources: { readonly messages: number; readonly summaries: number };
  /** The change that took it apart, if it is in that state. */
  readonly dissolved: { readonly change: number; readonly at: Timestamp } | null;
  /** Where the text of a carried one was written, through all segments; it is rewritten there. */
  readonly origin: { readonly id: SummaryId; readonly conversation: ConversationId } | null;
  /** Summaries made from it, and those of later segments that carry its text. */
  readonly above: readonly SummaryInShort[];
  readonly carriedBy: readonly SummaryId[];
  /** The first and last message below it. */
  readonly range: { readonly from: MessageId; readonly to: MessageId } | null;
  readonly files: readonly StoredFile[];
}

/** What a summary was made from, in order. */
export interface SourcesPage {
  readonly sources: readonly (
    | { readonly kind: "message"; readonly message: MessageInShort; readonly blocks: readonly Block[] }
    | { readonly kind: "summary"; readonly summary: SummaryInShort; readonly text: string }
  )[];
  /** Ask for the next page with this; null at the end. */
  readonly next: number | null;
}

export interface FileReading {
  readonly file: StoredFile;
  readonly message: MessageId | null;
  /** Null for bytes. */
  readonly text: { readonly text: string; readonly fromLine: number; readonly nextLine: number | null } | null;
  /** Where its picture can be loaded from, if it is one. */
  readonly picture: string | null;
}

// ── Search ───────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Hit {
  readonly hit: SearchHit;
  /** The name of its conversation. */
  readonly where: string;
  /** One line of text around the match, and what of it matches. */
  readonly snippet: string;
  readonly matches: readonly Match[];
  /** Its messages on the timeline; null for files. */
  readonly place: { readonly from: number; readonly to: number } | null;
}

export interface Found {
  readonly hits: readonly Hit[];
  /** Why the result may be incomplete, as sentences too. */
  readonly caveats: readonly SearchCaveat[];
  readonly notes: readonly string[];
}
