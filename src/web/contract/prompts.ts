/** What the model saw: recorded prompts item by item, what changed between them, and what they cost. */

import type { AssemblyReport, Origin } from "../../core/assembly/assemble.ts";
import type { Timestamp } from "../../core/base/time.ts";
import type { Inspection } from "../../core/maintenance/inspect.ts";
import type { PromptRecord } from "../../core/model/prompts.ts";
import type { SummaryCall } from "../../core/model/store.ts";
import type { CompactionRecord, ConversationId, MessageId, SummaryId } from "../../core/model/types.ts";
import type { Comparison } from "../../core/seen/compare.ts";
import type { ViewSpan } from "../../core/seen/find-seen.ts";
import type { PromptStats } from "../../core/seen/stats.ts";
import type { FindingGroup } from "../../format/findings.ts";
import type { Pace } from "./conversations.ts";
import type { Block } from "./reading.ts";

// ── What the model saw ───────────────────────────────────────────────────────────────────────────────────────────────

export interface PromptItem {
  readonly origin: Origin;
  /** Its name: `d1 sum_…`, `user msg_1-42`, `standing instructions`. */
  readonly name: string;
  readonly at: Timestamp | null;
  readonly opening: string;
}

/** A prompt item by item: a recorded one, or the one that would be sent now. */
export interface PromptReading {
  readonly conversation: ConversationId;
  /** Null for the one that would be sent now. */
  readonly record: PromptRecord | null;
  /** The answer that it is behind, if a message was asked for. */
  readonly answer: MessageId | null;
  /** Without origins, which are with the items. */
  readonly report: Omit<AssemblyReport, "origins">;
  readonly guidance: string | null;
  readonly items: readonly PromptItem[];
  /** Whether it was rebuilt to the byte, and why not. */
  readonly isExact: boolean;
  readonly reasons: readonly string[];
  /** What changed from the prompt before; null if there is none to compare with. */
  readonly changes: Comparison | null;
  /** What was left out, shortened or evicted, in sentences. */
  readonly notes: readonly string[];
  /** What did not fit; empty if that is no longer known. */
  readonly leftOut: readonly (MessageId | SummaryId)[];
}

export interface ItemText {
  readonly role: string;
  /** Exactly what the model got, as blocks. */
  readonly blocks: readonly Block[];
}

export interface InView {
  readonly conversation: ConversationId;
  readonly id: MessageId | SummaryId;
  readonly spans: readonly ViewSpan[];
  /** Since when it is no longer in view, or that it is. */
  readonly words: string;
}

// ── Health and cost ──────────────────────────────────────────────────────────────────────────────────────────────────

export interface InConversation {
  readonly conversation: ConversationId;
  readonly count: number;
}

export interface Health {
  /** Of the conversation when it was checked; null for the whole database. */
  readonly revision: number | null;
  readonly groups: readonly FindingGroup[];
  readonly checked: Inspection["checked"];
  /** Errors and warnings. */
  readonly count: number;
  /** How many findings can be fixed without a decision (`fix`), or by new texts (`rewrite` with `repair`), and where. */
  readonly fixable: readonly InConversation[];
  readonly repairable: readonly InConversation[];
  /** Names of conversations with findings, by id. */
  readonly names: Readonly<Record<number, string>>;
  /** Places on the timeline of subjects that have one, by subject. */
  readonly places: Readonly<Record<string, { readonly from: number; readonly to: number }>>;
}

export interface Stats {
  readonly stats: PromptStats;
  readonly compactions: readonly CompactionRecord[];
  readonly calls: readonly SummaryCall[];
  /** How the conversation grew. */
  readonly pace: Pace;
}
