/**
 * The façade every surface uses: the library, the command line, the terminal UI, the plugin. It holds a store, a clock
 * and perhaps a model, and offers what one can do with a conversation; the work itself is in the file named after each
 * verb.
 */

import { assemble } from "./assembly/assemble.ts";
import type { Assembly } from "./assembly/assemble.ts";
import { compact } from "./compaction/compact.ts";
import type { CompactReport, CompactRequest } from "./compaction/compact.ts";
import { beforeDeadline } from "./base/deadline.ts";
import { expandQuery } from "./recall/ask.ts";
import { describeWith } from "./ingest/file-preview-model.ts";
import { describe } from "./recall/describe.ts";
import { dissolve, planDissolve, readForDissolve } from "./maintenance/dissolve.ts";
import type { Dissolution, DissolveRequest } from "./maintenance/dissolve.ts";
import { expand } from "./recall/expand.ts";
import { planCompaction } from "./compaction/plan-compaction.ts";
import { history, planUndo, undo } from "./maintenance/history.ts";
import { exportTranscript, importTranscript, ingest } from "./ingest/ingest.ts";
import { examine, inspect } from "./maintenance/inspect.ts";
import { applyFixes, planFixes } from "./maintenance/apply-fix.ts";
import type { ConversationId } from "./model/types.ts";
import type { Clock, Model, Store } from "./model/store.ts";
import { builtInTemplates } from "./prompts/summary.ts";
import type { Templates } from "./prompts/summary.ts";
import { grep } from "./recall/grep.ts";
import { recent } from "./recall/recent.ts";
import { planPrune, prune } from "./maintenance/prune.ts";
import { planRepair } from "./maintenance/repair.ts";
import { applyRewrite, draftRewrite, planRewrite, rewriteAll } from "./maintenance/rewrite.ts";
import { resolveSettings } from "./model/settings.ts";
import type { Settings } from "./model/settings.ts";
import { meter, spendOf } from "./model-calls/metering.ts";
import { planTransplant, transplant } from "./maintenance/transplant.ts";
import { findConversation, mustFind } from "./model/find-conversation.ts";
import { checkBudget, promptBudgetDefault } from "./model/prompt-cost.ts";
import { due } from "./compaction/due.ts";
import type { Due } from "./compaction/due.ts";

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

/** A verb as it is asked of the façade, which holds the store, or all that the verb works with. */
type Held<Verb> = Verb extends (held: never, ...asked: infer Asked) => infer Done ? (...asked: Asked) => Done : never;

export interface Lcm {
  /** For reads and writes that need no deciding. */
  readonly store: Store;
  readonly clock: Clock;
  readonly settings: Settings;
  /** By number, session key or session id; `not_found` when there is none. */
  readonly find: Held<typeof findConversation>;
  /** Streams a transcript in. Idempotent, and resumable by running it again. */
  readonly import: Held<typeof importTranscript>;
  /** Stores what a host has said, its large content in files. Idempotent by key. */
  readonly ingest: Held<typeof ingest>;
  /** The transcript's lines, equal to what came in; at the end, the messages of which a file is lost. */
  readonly export: Held<typeof exportTranscript>;
  /** What the model is to see, within a budget: the given one, else the host's last, else a usual one. Asks no model. */
  assemble(conversation: ConversationId, options?: { readonly budget?: number }): Promise<Assembly>;
  /** Whether compaction is due, from running totals. */
  due(conversation: ConversationId): Promise<Due>;
  /** What a compaction would fold. Changes nothing. */
  readonly planCompaction: Held<typeof planCompaction>;
  /** One at a time in a conversation; the way out of an overflow does not wait. Never throws for a model or a disk. */
  compact(request: CompactRequest): Promise<CompactReport>;
  /** The model with every call counted, and bounded by the settings, as those of the façade's own are. */
  metered(model: Model): Model;
  /** Model calls of the present window, and providers that refuse our credential. */
  readonly spend: Held<typeof spendOf>;
  readonly grep: Held<typeof grep>;
  /** A summary, a stored file or a message, by its id; `not_found` beyond the reach too. */
  readonly describe: Held<typeof describe>;
  /** What happened between two times, from summaries. */
  readonly recent: Held<typeof recent>;
  /** What summaries were made from, within a number of tokens. */
  readonly expand: Held<typeof expand>;
  /** A cited answer to a question, before its deadline: of the model, or of a delegate, else the best excerpts. */
  readonly expandQuery: Held<typeof expandQuery>;
  /** Which conversations would go, what they take, and who would feel it. */
  readonly planPrune: Held<typeof planPrune>;
  /** Deletes what was planned, archived before if that is wanted; planned again if one was written to. Null: none is left. */
  readonly prune: Held<typeof prune>;
  /** Findings of one conversation, or of the whole database. */
  readonly inspect: Held<typeof inspect>;
  /** The same, and what was looked at. */
  readonly examine: Held<typeof examine>;
  /** What of that can be set right without deciding anything. */
  readonly planFix: Held<typeof planFixes>;
  /** Sets it right, as one change. A conversation that was written to meanwhile is planned again. */
  readonly fix: Held<typeof applyFixes>;
  /** Which summaries would be written anew, sources first, and what that takes. Asks no model. */
  readonly planRewrite: Held<typeof planRewrite>;
  /** The same for the summaries that `inspect` finds fault with, of one conversation or of all. */
  readonly planRepair: Held<typeof planRepair>;
  /** What the model puts in the place of one summary's text. It is kept, and changes nothing yet. */
  readonly draftRewrite: Held<typeof draftRewrite>;
  readonly applyRewrite: Held<typeof applyRewrite>;
  /** All of a plan, drafted or drafted and applied, one after the other. What is applied stays, whatever ends it. */
  readonly rewriteAll: Held<typeof rewriteAll>;
  /** What of a summary's sources would return to the context, and at what cost; it says why if they cannot. */
  planDissolve(request: DissolveRequest): Promise<Dissolution>;
  /** As planned, or as planned again if the conversation has changed since. */
  readonly dissolve: Held<typeof dissolve>;
  /** What of one conversation's summaries, and all below them, would be copied in front of another's context. */
  readonly planTransplant: Held<typeof planTransplant>;
  /** As planned, or as planned again; null if there is nothing to copy. */
  readonly transplant: Held<typeof transplant>;
  /** What operators have changed, newest first. */
  readonly history: Held<typeof history>;
  /** What taking back a change, or its part of one summary, would revert, and what stands in the way. */
  readonly planUndo: Held<typeof planUndo>;
  /** Takes it back, unless something stands in the way. This too can be taken back. */
  readonly undo: Held<typeof undo>;
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
    find: findConversation.bind(null, store),
    import: importTranscript.bind(null, deps),
    ingest: ingest.bind(null, deps),
    export: exportTranscript.bind(null, store),
    async assemble(conversation, { budget } = {}) {
      const { promptBudget } = budget === undefined ? await mustFind(store, conversation) : { promptBudget: budget };
      const { freshTailCount } = settings;
      checkBudget(promptBudget ?? promptBudgetDefault);
      return await assemble(store, { conversation, budget: promptBudget ?? promptBudgetDefault, freshTailCount });
    },
    due: async (conversation) => await due(deps, await mustFind(store, conversation)),
    planCompaction: planCompaction.bind(null, deps),
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
    spend: spendOf.bind(null, deps),
    grep: grep.bind(null, store),
    describe: describe.bind(null, store),
    recent: recent.bind(null, deps),
    expand: expand.bind(null, store),
    expandQuery: expandQuery.bind(null, deps),
    planPrune: planPrune.bind(null, store),
    prune: prune.bind(null, store),
    inspect: inspect.bind(null, store),
    examine: examine.bind(null, store),
    planFix: planFixes.bind(null, store),
    fix: applyFixes.bind(null, store),
    planRewrite: planRewrite.bind(null, deps),
    planRepair: planRepair.bind(null, deps),
    draftRewrite: draftRewrite.bind(null, deps),
    applyRewrite: applyRewrite.bind(null, deps),
    rewriteAll: rewriteAll.bind(null, deps),
    planDissolve: async (request) => planDissolve(request, await readForDissolve(store, request)),
    dissolve: dissolve.bind(null, store),
    planTransplant: planTransplant.bind(null, store),
    transplant: transplant.bind(null, store),
    history: history.bind(null, store),
    planUndo: planUndo.bind(null, store),
    undo: undo.bind(null, store),
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
    await beforeDeadline(signal, before, undefined);
    return mine.resolve;
  };
}
