/**
 * The explorer's API, between its server and its pages: types only. A read is `GET /api/<name>?…`, a write is
 * `POST /api/<name>` with a JSON body; either answers JSON, or `{ error: Failure }` with an HTTP status.
 *
 * Messages are placed by their number in the conversation (`seq`), from 1. Ranges of numbers include both ends.
 */

import type { Timestamp } from "../core/base/time.ts";
import type { Change } from "../core/maintenance/history.ts";
import type { ConversationId, FileId, MessageId, Role, StoredFile, SummaryId } from "../core/model/types.ts";
import type { DatabaseStatus } from "../core/status.ts";
import type { ChangeRequest, History, Job, Plan, RewritePlan, RewriteSelection } from "./contract/changes.ts";
import type { Activity, Conversations, Session } from "./contract/conversations.ts";
import type { InView, ItemText, PromptReading, Stats } from "./contract/prompts.ts";
import type {
  FileReading,
  Found,
  MessageInShort,
  MessageReading,
  SourcesPage,
  SummaryReading,
} from "./contract/reading.ts";
import type { Timeline } from "./contract/timeline.ts";

export type * from "./contract/failure.ts";
export type * from "./contract/conversations.ts";
export type * from "./contract/timeline.ts";
export type * from "./contract/reading.ts";
export type * from "./contract/prompts.ts";
export type * from "./contract/changes.ts";

type Nothing = Readonly<Record<string, never>>;

/** Queries have plain values; lists are joined by commas. */
export interface Reads {
  session: { query: Nothing; answer: Session };
  /** `find`: every word is in the name, agent, key, id or folder. Default `limit`: 200. */
  conversations: {
    query: { find?: string; hidden?: boolean; familyOf?: ConversationId; from?: number; limit?: number };
    answer: Conversations;
  };
  /** Up to 100 conversations. `since`: to count what came from then on. */
  activity: {
    query: { conversations: readonly ConversationId[]; marks?: number; since?: Timestamp };
    answer: readonly Activity[];
  };
  /** `cells`: up to 2,000; default 400. Without `from` and `to`: all of it. `prompt`: states in this recorded prompt. */
  timeline: {
    query: { conversation: ConversationId; from?: number; to?: number; cells?: number; prompt?: number };
    answer: Timeline;
  };
  /** From the number `from` or the time `since` on (or up to `to`); up to 200. */
  messages: {
    query: { conversation: ConversationId; from?: number; to?: number; since?: Timestamp; limit?: number };
    answer: readonly MessageInShort[];
  };
  message: { query: { id: MessageId }; answer: MessageReading };
  summary: { query: { id: SummaryId }; answer: SummaryReading };
  sources: { query: { summary: SummaryId; from?: number; limit?: number }; answer: SourcesPage };
  /** Where a text id such as `msg_1-42`, `sum_…`, `file_…`, `1#12` or `3` leads; `not_found` if nowhere. */
  find: {
    query: { id: string };
    answer: { kind: "message" | "summary" | "file" | "prompt" | "conversation"; conversation: ConversationId };
  };
  /** What was moved out of messages, pictures among it. */
  files: { query: { conversation: ConversationId }; answer: readonly StoredFile[] };
  file: { query: { id: FileId; fromLine?: number }; answer: FileReading };
  /** The prompt that would be sent now, by default with the conversation's own budget. */
  promptNow: { query: { conversation: ConversationId; budget?: number }; answer: PromptReading };
  /** The numbers of the first and the last recorded prompt; null if there are none. */
  prompts: {
    query: { conversation: ConversationId };
    answer: { readonly first: number | null; readonly last: number | null };
  };
  /** By number, turn or time of a conversation, or behind a message; without any, the newest. */
  prompt: {
    query: { conversation: ConversationId; number?: number; turn?: string; at?: Timestamp } | { message: MessageId };
    answer: PromptReading;
  };
  /** The item at a place of a prompt; without `number`, of the one that would be sent now. */
  promptItem: {
    query: { conversation: ConversationId; number?: number; budget?: number; item: number };
    answer: ItemText;
  };
  /** Of a message or a summary. */
  inView: { query: { id: string }; answer: InView };
  search: {
    query: {
      pattern: string;
      mode?: "full_text" | "regex";
      scope?: "messages" | "summaries" | "both" | "files";
      /** Default: all that are not hidden. */
      conversation?: ConversationId;
      /** The whole family of the conversation. */
      family?: boolean;
      roles?: readonly Role[];
      since?: Timestamp;
      before?: Timestamp;
      sort?: "recency" | "oldest" | "relevance" | "hybrid";
      limit?: number;
    };
    answer: Found;
  };
  /** Prompts, compactions and model calls for plots. */
  stats: { query: { conversation: ConversationId; since?: Timestamp; limit?: number }; answer: Stats };
  status: { query: Nothing; answer: DatabaseStatus };
  history: { query: { conversation?: ConversationId; limit?: number }; answer: History };
  /** `items`: what each step put in place of a summary, or took from its place. */
  change: {
    query: { change: number };
    answer: {
      readonly change: Change;
      readonly stepsLeft: number;
      readonly items: readonly (readonly (MessageId | SummaryId)[])[];
    };
  };
  job: { query: { id: string }; answer: Job };
}

/** Those that only plan or check are allowed on a read-only server; the others answer 403 with `denied`. */
export interface Writes {
  /** Checks one conversation, or all; takes longer the more it has. Changes nothing. */
  health: { body: { conversation?: ConversationId }; answer: Job };
  /** Changes nothing. */
  plan: { body: ChangeRequest; answer: Plan };
  /** Changes nothing. */
  rewritePlan: { body: { conversation: ConversationId; select: RewriteSelection }; answer: RewritePlan };
  jobStop: { body: { id: string }; answer: Job };
  apply: { body: { plan: string }; answer: Job };
  /** `isFresh`: asks the model even if a draft is kept. */
  draft: { body: { plan: string; summary: SummaryId; isFresh: boolean }; answer: Job };
  /** `change`: adds to this change, so that all of them are undone together. */
  rewriteApply: { body: { draft: string; change?: number }; answer: Job };
}

/** `GET /api/events?conversation=3`, server-sent events, each with JSON as its data. */
export interface Events {
  /** The database has changed, by whatever process. `revision` is that of the asked conversation. */
  changed: { readonly stamp: string; readonly revision: number | null };
  /** The database was deleted, or another was put in its place. */
  replaced: Nothing;
  job: Job;
  /** The server is ending. */
  end: Nothing;
}
