/**
 * Every operation of the port as a script, in one place: `reads` change nothing, `writes` run alone. The types below
 * hold this list and the port together: an operation missing here, or with another signature, does not compile.
 */

import type { SummaryId } from "../core/model.ts";
import type { PartOf, SegmentOptions, Store } from "../core/ports.ts";
import { dissolve } from "./dissolve.ts";
import { draft, saveDraft } from "./drafts.ts";
import { forget, planForget } from "./forget.ts";
import { holderOf } from "./held.ts";
import { journal } from "./journal.ts";
import * as ledger from "./ledger.ts";
import { manifest } from "./manifest.ts";
import { mend, sweepOrphans } from "./mend.ts";
import * as read from "./read.ts";
import { rewrite } from "./rewrite.ts";
import { extents, remove } from "./remove.ts";
import type { Script } from "./script.ts";
import { indexBatch } from "./indexing.ts";
import type { ScriptDeps } from "./totals.ts";
import { planTransplant, transplant } from "./transplant.ts";
import { planUndo, undo } from "./undo.ts";
import { integrity, skeleton, status } from "./verify.ts";
import * as write from "./write.ts";

/** What a store does with more than rows: with its files folder, its clock or its own file. */
type BeyondRows =
  | "search"
  | "fileContent"
  | "fileLines"
  | "saveFile"
  | "status"
  | "skeleton"
  | "planForget"
  | "forget"
  | "remove"
  | "backup"
  | "archive"
  | "merge"
  | "close";

type ScriptOf<Method> = Method extends (...args: infer Args) => Promise<infer Result>
  ? (...args: Args) => Script<Result>
  : never;
type PortScripts = { readonly [Name in Exclude<keyof Store, BeyondRows>]: ScriptOf<Store[Name]> };

const reads = {
  conversation: read.conversation,
  conversations: read.conversations,
  context: read.context,
  messages: read.messages,
  entries: read.entries,
  summaries: read.summaries,
  sources: read.sources,
  derived: read.derived,
  coveredBy: read.coveredBy,
  carriedBy: read.carriedBy,
  closure: read.closure,
  unused: read.unused,
  manifest,
  file: read.file,
  files: read.files,
  holderOf,
  grant: read.grant,
  usageSince: read.usageSince,
  openBreakers: read.openBreakers,
  compactions: read.compactions,
  journal,
  planUndo,
  planTransplant,
  draft,
  extents,
  integrity,
} as const;

const writesWith = (deps: ScriptDeps) =>
  ({
    open: (session) => write.open(deps, session),
    openSession: (session) => write.openSession(deps, session),
    openSegment: (session, options?: SegmentOptions) => write.openSegment(deps, session, options),
    setTitle: (id, title) => write.setTitle(deps, id, title),
    setHidden: (id, hidden) => write.setHidden(deps, id, hidden),
    setSession: (id, sessionId) => write.setSession(deps, id, sessionId),
    setPromptBudget: write.setPromptBudget,
    append: (id, entries, options) => write.append(deps, id, entries, options),
    fold: (id, run, summary, forgets?: number) => write.fold(deps, id, run, summary, forgets),
    dissolve: (plan, partOf?: PartOf) => dissolve(deps, plan, partOf),
    rewrite: (plan, text, partOf?: PartOf) => rewrite(deps, plan, text, partOf),
    transplant: (plan) => transplant(deps, plan),
    mend: (plan, partOf?: PartOf) => mend(deps, plan, partOf),
    sweepOrphans: (partOf?: PartOf) => sweepOrphans(deps, partOf),
    undo: (change, summary?: SummaryId) => undo(deps, change, summary),
    saveDraft: (summary, basis, made, forgets?: number) => saveDraft(deps, summary, basis, made, forgets),
    issueGrant: (grant) => ledger.issueGrant(deps, grant),
    spendGrant: (id, conversation, tokens) => ledger.spendGrant(deps, id, conversation, tokens),
    revokeGrant: (id) => ledger.revokeGrant(deps, id),
    sweepGrants: () => ledger.sweepGrants(deps),
    beginCall: (call, bounds) => ledger.beginCall(deps, call, bounds),
    endCall: ledger.endCall,
    recordCompaction: ledger.recordCompaction,
    index: indexBatch,
  }) satisfies Omit<PortScripts, keyof typeof reads>;

/** The rows' part of what also touches files or the clock. */
export const beyond = { status, skeleton, planForget, forget, remove, recordFile: ledger.recordFile } as const;

export const createScripts = (deps: ScriptDeps) => ({
  reads: reads satisfies Partial<PortScripts>,
  writes: writesWith(deps),
});
