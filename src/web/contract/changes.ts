/** Changes: a plan, a draft beside the old text, what was applied, and work that takes a while. */

import type { ConversationId, MessageId, SummaryId } from "../../core/model/types.ts";
import type { ChangeInShort } from "../../format/changes.ts";
import type { Failure } from "./failure.ts";
import type { Health } from "./prompts.ts";

export type ChangeRequest =
  | {
      readonly kind: "compact";
      readonly conversation: ConversationId;
      /** Short runs, too. */
      readonly isForced: boolean;
      /** Without a model. */
      readonly isLocal: boolean;
    }
  | {
      readonly kind: "dissolve";
      readonly conversation: ConversationId;
      readonly summary: SummaryId;
      /** Deletes its row, too. */
      readonly purge: boolean;
    }
  | { readonly kind: "transplant"; readonly source: ConversationId; readonly target: ConversationId }
  | { readonly kind: "undo"; readonly change: number }
  /** Pins what the message says for good, or unpins what is pinned. */
  | { readonly kind: "pin"; readonly message: MessageId }
  /** `lcm doctor --fix` for a conversation. */
  | { readonly kind: "fix"; readonly conversation: ConversationId };

/** What would change. Applying takes the plan's id, and does exactly this or answers with a new plan. */
export interface Plan {
  readonly id: string;
  readonly kind: ChangeRequest["kind"];
  readonly request: ChangeRequest;
  /** The plan as the command line prints it. */
  readonly lines: readonly string[];
  /** Why it cannot be applied; null if it can. */
  readonly refusal: Failure | null;
  /** Whether it differs from the plan that was to be applied. */
  readonly isAgain: boolean;
}

export type RewriteSelection =
  | { readonly summary: SummaryId }
  | { readonly subtree: SummaryId }
  | { readonly repair: true };

export interface RewritePlan {
  readonly id: string;
  readonly conversation: ConversationId;
  /** In the order in which to draft them, sources first. */
  readonly targets: readonly {
    readonly summary: SummaryId;
    readonly depth: number;
    readonly tokens: number;
    readonly targetTokens: number;
    readonly sourceTokens: number;
    /** Whether an earlier draft is kept, or its text already is what the model wrote. */
    readonly state: "to draft" | "drafted" | "current";
  }[];
  readonly lines: readonly string[];
  /** Why none can be drafted; null if they can. */
  readonly refusal: Failure | null;
  /** For a single summary: the beginning of what the model would read. */
  readonly source: string | null;
  /** For a single summary: how many were written from the current text. */
  readonly above: number | null;
}

/** A line of a comparison: in the old text only, in the new one only, or in both. */
export interface DiffLine {
  readonly kind: "same" | "old" | "new";
  readonly text: string;
}

export type Drafted =
  | {
      readonly kind: "drafted";
      /** Pass it to `rewriteApply`. */
      readonly draft: string;
      readonly summary: SummaryId;
      readonly old: { readonly text: string; readonly tokens: number };
      readonly new: { readonly text: string; readonly tokens: number; readonly model: string | null };
      readonly diff: readonly DiffLine[];
      /** Whether it was kept from an earlier run: no model was called. */
      readonly isKept: boolean;
    }
  /** Its text already is what the model wrote, its answer was not usable, or it has no sources. */
  | { readonly kind: "none"; readonly summary: SummaryId; readonly why: string };

export interface Applied {
  /** As the command line reports it. */
  readonly words: string;
  /** The number of the change, to undo it; null if there is none. */
  readonly change: number | null;
}

/** Work that may take a while. It goes on if the page is closed; `jobStop` stops it, and what was done is kept. */
export interface Job {
  readonly id: string;
  readonly kind: "apply" | "draft" | "rewriteApply" | "health";
  readonly progress: {
    readonly done: number;
    readonly of: number | null;
    readonly words: string;
    /** Whether it can be stopped here. */
    readonly stops: boolean;
  };
  readonly result: JobResult | null;
  readonly failure: Failure | null;
}

export type JobResult =
  | ({ readonly kind: "applied" } & Applied)
  /** The plan was outdated, and nothing was changed. */
  | { readonly kind: "planned again"; readonly plan: Plan }
  | { readonly kind: "draft"; readonly drafted: Drafted }
  /** The summary was written to since the draft was made. */
  | { readonly kind: "stale"; readonly reason: string }
  | { readonly kind: "health"; readonly health: Health };

export interface History {
  /** Newest first. */
  readonly rows: readonly ChangeInShort[];
  readonly isMore: boolean;
}
