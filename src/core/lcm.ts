/**
 * The façade every surface uses: the library, the command line, the terminal UI, the plugin. It holds a store, a clock
 * and perhaps a model, and offers what one can do with a conversation; the work itself is in the file named after each
 * verb.
 */

import { assemble } from "./assemble.ts";
import type { Assembly } from "./assemble.ts";
import { checkBudget, compact, due, mustFind, promptBudgetDefault } from "./compact.ts";
import type { CompactReport, CompactRequest, Due } from "./compact.ts";
import { expandQuery } from "./delegate.ts";
import type { Answer, AskRequest } from "./question.ts";
import { describeWith } from "./describe-file.ts";
import { describe } from "./describe.ts";
import type { Described, DescribeRequest } from "./describe.ts";
import { dissolve, planDissolve, readForDissolve } from "./dissolve.ts";
import type { Dissolution, Dissolved, DissolveRequest } from "./dissolve.ts";
import { expand } from "./expand.ts";
import type { Expansion, ExpandRequest } from "./expand.ts";
import { planCompaction } from "./foresee.ts";
import type { CompactionPlan } from "./foresee.ts";
import { history, planUndo, undo } from "./history.ts";
import type { AppliedUndo, Change, HistoryFilter, PlannedUndo } from "./history.ts";
import { exportTranscript, importTranscript, ingest } from "./ingest.ts";
import type { ImportReport, ImportTarget, SourceLine } from "./ingest.ts";
import { examine, inspect } from "./inspect.ts";
import type { InspectProgress, Inspection } from "./inspect.ts";
import { applyFixes, planFixes } from "./mend.ts";
import type { Fixed, FixPlan, FixWatch } from "./mend.ts";
import type { Conversation, ConversationId, SummaryId } from "./model.ts";
import type {
  Appendable,
  Appended,
  AppendOptions,
  Clock,
  Model,
  PartOf,
  SearchLimits,
  SearchResult,
  Store,
} from "./ports.ts";
import { builtInTemplates } from "./prompts.ts";
import type { Templates } from "./prompts.ts";
import { findConversation, grep } from "./recall.ts";
import type { GrepRequest } from "./recall.ts";
import { recent } from "./recent.ts";
import type { Recent, RecentRequest } from "./recent.ts";
import { planPrune, prune } from "./prune.ts";
import type { PruneOptions, Pruned, PrunePlan, PruneRequest } from "./prune.ts";
import { planRepair } from "./repair.ts";
import type { PlannedRepair } from "./repair.ts";
import { applyRewrite, draftRewrite, planRewrite, rewriteAll } from "./rewrite.ts";
import type {
  DraftOptions,
  PlannedRewrites,
  RewriteDraft,
  RewriteOptions,
  RewriteReport,
  RewriteRequest,
} from "./rewrite.ts";
import { resolveSettings } from "./settings.ts";
import type { Settings } from "./settings.ts";
import { meter, spendOf } from "./spend.ts";
import type { Spend } from "./spend.ts";
import { planTransplant, transplant } from "./transplant.ts";
import type { Transplantation, TransplantDone } from "./transplant.ts";

export interface LcmDeps {
  readonly store: Store;
  readonly clock: Clock;
  /** The defaults of the settings table if left out. */
  readonly settings?: Settings;
  /** Who writes summaries; without one they are extracted. Its calls are counted and bounded here. */
  readonly model?: Model | null;
  /** Whether a credential that was refused a short while ago is tried again; a person at a terminal may. */
  readonly breaker?: "heeded" | "ignored";
  readonly templates?: Templates;
  /** Has the model describe large files as they come in, each until this signal; else it is done without. */
  readonly describeFilesUntil?: () => AbortSignal;
}

export interface Lcm {
  /** For reads and writes that need no deciding. */
  readonly store: Store;
  readonly clock: Clock;
  readonly settings: Settings;
  /** By number, session key or session id; `not_found` when there is none. */
  find(name: string): Promise<Conversation>;
  /** Streams a transcript in. Idempotent, and resumable by running it again. */
  import(
    source: AsyncIterable<SourceLine>,
    target: ImportTarget,
    onProgress?: (position: number) => void,
  ): Promise<ImportReport>;
  /** Stores what a host has said, its large content in files. Idempotent by key. */
  ingest(conversation: ConversationId, items: readonly Appendable[], options?: AppendOptions): Promise<Appended>;
  /** The transcript's lines, equal to what came in; at the end, the messages of which a file is lost. */
  export(conversation: ConversationId): ReturnType<typeof exportTranscript>;
  /** What the model is to see, within a budget: the given one, else the host's last, else a usual one. Asks no model. */
  assemble(conversation: ConversationId, options?: { readonly budget?: number }): Promise<Assembly>;
  /** Whether compaction is due, from running totals. */
  due(conversation: ConversationId): Promise<Due>;
  /** What a compaction would fold. Changes nothing. */
  planCompaction(request: CompactRequest): Promise<CompactionPlan>;
  /** One at a time in a conversation; the way out of an overflow does not wait. Never throws for a model or a disk. */
  compact(request: CompactRequest): Promise<CompactReport>;
  /** The model with every call counted, and bounded by the settings, as those of the façade's own are. */
  metered(model: Model): Model;
  /** Model calls of the present window, and providers that refuse our credential. */
  spend(): Promise<Spend>;
  grep(request: GrepRequest, limits?: SearchLimits): Promise<SearchResult>;
  /** A summary, a stored file or a message, by its id; `not_found` beyond the reach too. */
  describe(request: DescribeRequest): Promise<Described>;
  /** What happened between two times, from summaries. */
  recent(request: RecentRequest): Promise<Recent>;
  /** What summaries were made from, within a number of tokens. */
  expand(request: ExpandRequest): Promise<Expansion>;
  /** A cited answer to a question, before its deadline: of the model, or of a delegate, else the best excerpts. */
  expandQuery(request: AskRequest): Promise<Answer>;
  /** Which conversations would go, what they take, and who would feel it. */
  planPrune(request: PruneRequest): Promise<PrunePlan>;
  /** Deletes what was planned, archived before if that is wanted; planned again if one was written to. Null: none is left. */
  prune(request: PruneRequest, plan: PrunePlan, options?: PruneOptions): Promise<Pruned | null>;
  /** Findings of one conversation, or of the whole database. */
  inspect(
    conversation: ConversationId | null,
    onProgress?: (progress: InspectProgress) => void,
  ): Promise<Inspection["findings"]>;
  /** The same, and what was looked at. */
  examine(conversation: ConversationId | null, onProgress?: (progress: InspectProgress) => void): Promise<Inspection>;
  /** What of that can be set right without deciding anything. */
  planFix(conversation: ConversationId | null, onProgress?: (progress: InspectProgress) => void): Promise<FixPlan>;
  /** Sets it right, as one change. A conversation that was written to meanwhile is planned again. */
  fix(plan: FixPlan, watch?: FixWatch): Promise<Fixed>;
  /** Which summaries would be written anew, sources first, and what that takes. Asks no model. */
  planRewrite(request: RewriteRequest): Promise<PlannedRewrites>;
  /** The same for the summaries that `inspect` finds fault with, of one conversation or of all. */
  planRepair(
    conversation: ConversationId | null,
    onProgress?: (progress: { readonly done: number; readonly of: number }) => void,
  ): Promise<PlannedRepair>;
  /** What the model puts in the place of one summary's text. It is kept, and changes nothing yet. */
  draftRewrite(summary: SummaryId, options?: DraftOptions): Promise<RewriteDraft>;
  applyRewrite(
    draft: Extract<RewriteDraft, { readonly kind: "drafted" }>,
    partOf?: PartOf,
  ): ReturnType<typeof applyRewrite>;
  /** All of a plan, drafted or drafted and applied, one after the other. What is applied stays, whatever ends it. */
  rewriteAll(plan: PlannedRewrites, options: RewriteOptions): Promise<RewriteReport>;
  /** What of a summary's sources would return to the context, and at what cost; it says why if they cannot. */
  planDissolve(request: DissolveRequest): Promise<Dissolution>;
  /** As planned, or as planned again if the conversation has changed since. */
  dissolve(plan: Dissolution, onReplan?: (plan: Dissolution) => void): Promise<Dissolved>;
  /** What of one conversation's summaries, and all below them, would be copied in front of another's context. */
  planTransplant(source: ConversationId, target: ConversationId): Promise<Transplantation>;
  /** As planned, or as planned again; null if there is nothing to copy. */
  transplant(plan: Transplantation, onReplan?: (plan: Transplantation) => void): Promise<TransplantDone | null>;
  /** What operators have changed, newest first. */
  history(filter?: HistoryFilter): Promise<readonly Change[]>;
  /** What taking back a change, or its part of one summary, would revert, and what stands in the way. */
  planUndo(change: number, summary?: SummaryId): Promise<PlannedUndo>;
  /** Takes it back, unless something stands in the way. This too can be taken back. */
  undo(change: number, summary?: SummaryId): Promise<AppliedUndo>;
  close(): Promise<void>;
}

export function createLcm(given: LcmDeps): Lcm {
  const { store, clock, templates = builtInTemplates } = given;
  const settings = given.settings ?? resolveSettings({ env: {}, config: {} }).values;
  const metered = (model: Model): Model =>
    meter({ store, clock, settings }, model, { breaker: given.breaker ?? "heeded" });
  const model = given.model === undefined || given.model === null ? null : metered(given.model);
  const { describeFilesUntil } = given;
  const isDescribing = describeFilesUntil !== undefined && model !== null;
  const describing = isDescribing ? { explore: describeWith(model, describeFilesUntil) } : {};
  const deps = { store, clock, settings, model, templates, leftAlone: new Set<string>(), ...describing };
  const takeTurn = createTurns();
  return {
    store,
    clock,
    settings,
    find: async (name) => await findConversation(store, name),
    import: async (source, target, onProgress) => await importTranscript(deps, source, target, onProgress),
    ingest: async (conversation, items, options) => await ingest(deps, conversation, items, options),
    export: (conversation) => exportTranscript(store, conversation),
    async assemble(conversation, { budget } = {}) {
      const { promptBudget } = budget === undefined ? await mustFind(store, conversation) : { promptBudget: budget };
      const { freshTailCount } = settings;
      checkBudget(promptBudget ?? promptBudgetDefault);
      return await assemble(store, { conversation, budget: promptBudget ?? promptBudgetDefault, freshTailCount });
    },
    due: async (conversation) => await due(deps, await mustFind(store, conversation)),
    planCompaction: async (request) => await planCompaction(deps, request),
    async compact(request) {
      if (request.mode === "until_under") return await compact(deps, request);
      const endTurn = await takeTurn(request.conversation, request.signal);
      try {
        return await compact(deps, request);
      } finally {
        endTurn();
      }
    },
    metered,
    spend: async () => await spendOf({ store, clock, settings }),
    grep: async (request, limits) => await grep(store, request, limits),
    describe: async (request) => await describe(store, request),
    recent: async (request) => await recent(deps, request),
    expand: async (request) => await expand(store, request),
    expandQuery: async (request) => await expandQuery(deps, request),
    planPrune: async (request) => await planPrune(store, request),
    prune: async (request, plan, options) => await prune(store, request, plan, options),
    inspect: async (conversation, onProgress) => await inspect(store, conversation, onProgress),
    examine: async (conversation, onProgress) => await examine(store, conversation, onProgress),
    planFix: async (conversation, onProgress) => await planFixes(store, conversation, onProgress),
    fix: async (plan, watch) => await applyFixes(store, plan, watch),
    planRewrite: async (request) => await planRewrite(deps, request),
    planRepair: async (conversation, onProgress) => await planRepair(deps, conversation, onProgress),
    draftRewrite: async (summary, options) => await draftRewrite(deps, summary, options),
    applyRewrite: async (draft, partOf) => await applyRewrite(deps, draft, partOf),
    rewriteAll: async (plan, options) => await rewriteAll(deps, plan, options),
    planDissolve: async (request) => planDissolve(request, await readForDissolve(store, request)),
    dissolve: async (plan, onReplan) => await dissolve(store, plan, onReplan),
    planTransplant: async (source, target) => await planTransplant(store, source, target),
    transplant: async (plan, onReplan) => await transplant(store, plan, onReplan),
    history: async (filter) => await history(store, filter),
    planUndo: async (change, summary) => await planUndo(store, change, summary),
    undo: async (change, summary) => await undo(store, change, summary),
    close: async () => await store.close(),
  };
}

/**
 * One compaction at a time in a conversation; different ones do not wait for each other. Whoever's deadline passes while
 * waiting goes on at once, and finds that it has passed.
 */
function createTurns(): (conversation: ConversationId, signal?: AbortSignal) => Promise<() => void> {
  const last = new Map<ConversationId, Promise<void>>();
  return async (conversation, signal) => {
    const before = last.get(conversation) ?? Promise.resolve();
    const mine = Promise.withResolvers<void>();
    const end = before.then(async () => await mine.promise);
    last.set(conversation, end);
    void end.then(() => last.get(conversation) === end && last.delete(conversation));
    await endOf(before, signal);
    return mine.resolve;
  };
}

async function endOf(turn: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined || signal.aborted) return signal === undefined ? await turn : undefined;
  const deadline = Promise.withResolvers<void>();
  const pass = (): void => deadline.resolve();
  signal.addEventListener("abort", pass, { once: true });
  await Promise.race([turn, deadline.promise]);
  signal.removeEventListener("abort", pass);
}
