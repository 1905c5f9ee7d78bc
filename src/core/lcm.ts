/** The façade that the library, CLI, TUI and plugins use: one method per verb, each in the file named after it. */

import { assemble, type AssembleRequest, type Assembly } from "./assembly/assemble.ts";
import { compact, type CompactReport, type CompactRequest } from "./compaction/compact.ts";
import { beforeDeadline } from "./base/deadline.ts";
import { expandQuery } from "./recall/ask.ts";
import { describeWith } from "./ingest/file-preview-model.ts";
import { describe } from "./recall/describe.ts";
import { describeSeveral } from "./recall/describe-several.ts";
import { readPassages } from "./recall/passages/read-passages.ts";
import { dissolve, planDissolve, readForDissolve } from "./maintenance/dissolve.ts";
import type { Dissolution, DissolveRequest } from "./maintenance/dissolve.ts";
import { expand } from "./recall/expand.ts";
import { planCompaction } from "./compaction/plan-compaction.ts";
import { history, planUndo, undo } from "./maintenance/history.ts";
import { exportTranscript } from "./ingest/export-transcript.ts";
import { importTranscript } from "./ingest/import-transcript.ts";
import { ingest } from "./ingest/ingest.ts";
import { examine, inspect } from "./maintenance/inspect.ts";
import { applyFixes, planFixes } from "./maintenance/apply-fix.ts";
import type { ConversationId } from "./model/types.ts";
import type { Clock, Embedder, Model, Store } from "./model/store.ts";
import { builtInTemplates, type Templates } from "./prompts/summary.ts";
import { grep } from "./recall/grep.ts";
import { makeVectors } from "./recall/make-vectors.ts";
import { searchingByMeaning } from "./recall/meaning.ts";
import { map, planMap, type MapDeps, type MapReport, type MapRequest } from "./recall/map/map.ts";
import { saveMap } from "./recall/map/file.ts";
import { planThorough, thorough } from "./recall/map/thorough.ts";
import { recent } from "./recall/recent.ts";
import { findPins, pin, pinFound, planPin, planUnpin } from "./maintenance/pins.ts";
import { planPrune, prune } from "./maintenance/prune.ts";
import { planRepair } from "./maintenance/repair.ts";
import { applyRewrite, draftRewrite, planRewrite, rewriteAll } from "./maintenance/rewrite.ts";
import { resolveSettings, type Settings } from "./model/settings.ts";
import { meter, meterEmbedder, spendOf } from "./model-calls/metering.ts";
import { endPrompt, recordHostsPrompt, recordPrompt } from "./seen/record.ts";
import { readPrompts } from "./seen/read-prompts.ts";
import { rebuild } from "./seen/rebuild.ts";
import { comparePrompts } from "./seen/compare.ts";
import { findInPrompts, findPrompt } from "./seen/find-seen.ts";
import { promptStats } from "./seen/stats.ts";
import { planTransplant, transplant } from "./maintenance/transplant.ts";
import { findConversation, mustFind } from "./model/find-conversation.ts";
import { checkBudget, promptBudgetDefault, targetShareOf } from "./model/prompt-cost.ts";
import { due, type Due } from "./compaction/due.ts";

export interface LcmDeps {
  readonly store: Store;
  readonly clock: Clock;
  /** Defaults to the default settings. */
  readonly settings?: Settings;
  /** Writes summaries; without it they are extracted. Its calls are metered here. */
  readonly model?: Model | null;
  /** Lets searches go by meaning, too; without it they go by words. Closed together with this. */
  readonly embedder?: Embedder | null;
  /** `ignored` retries a credential that was rejected recently, for a person at a terminal. */
  readonly breaker?: "heeded" | "ignored";
  readonly templates?: Templates;
  /** If given, the model describes large files on ingest, each until this signal; otherwise no model is used. */
  readonly describeFilesUntil?: () => AbortSignal;
}

/** A verb without its first parameter, the dependencies, which the façade supplies. */
type Bound<Verb> = Verb extends (deps: never, ...rest: infer Rest) => infer Result ? (...rest: Rest) => Result : never;

export type AssembleOptions = Partial<Pick<AssembleRequest, "budget" | "edits">>;

export interface Lcm {
  /** For plain reads and writes. */
  readonly store: Store;
  readonly clock: Clock;
  readonly settings: Settings;
  /** Finds a conversation by number, session key or session id; throws `not_found`. */
  readonly find: Bound<typeof findConversation>;
  /** Imports a transcript as a stream. Idempotent; run it again to resume. */
  readonly import: Bound<typeof importTranscript>;
  /** Stores a host's messages, large content in files. Idempotent by key. */
  readonly ingest: Bound<typeof ingest>;
  /** Yields the transcript's lines exactly as imported; returns the messages with a missing file. */
  readonly export: Bound<typeof exportTranscript>;
  /** Builds the prompt within a budget, by default the host's last one, else 128,000. Calls no model. */
  assemble(conversation: ConversationId, options?: AssembleOptions): Promise<Assembly>;
  /** Records a prompt that is on its way to a model; returns its number, or null if none are kept. */
  readonly recordPrompt: Bound<typeof recordPrompt>;
  /** Records that the host sent its own messages, and why. */
  readonly recordHostsPrompt: Bound<typeof recordHostsPrompt>;
  /** Records what came of a prompt. */
  readonly endPrompt: Bound<typeof endPrompt>;
  /** Recorded prompts of a conversation, by number. */
  readonly prompts: Bound<typeof readPrompts>;
  /** Rebuilds a recorded prompt, to the byte unless something in it was forgotten. */
  readonly rebuild: Bound<typeof rebuild>;
  /** The prompt behind an answer, or of a turn or time; throws `not_found`. */
  readonly findPrompt: Bound<typeof findPrompt>;
  /** What changed between two prompts, and why. */
  readonly comparePrompts: Bound<typeof comparePrompts>;
  /** In which prompts a message or summary was in view, and from when on no longer. */
  readonly findInPrompts: Bound<typeof findInPrompts>;
  /** What prompts cost over time, and how much of each could be cached. */
  readonly promptStats: Bound<typeof promptStats>;
  /** Whether compaction is due, from the running totals. */
  due(conversation: ConversationId): Promise<Due>;
  /** Lists what a compaction would fold. Changes nothing. */
  readonly planCompaction: Bound<typeof planCompaction>;
  /** One at a time per conversation, except `until_under`, which never waits. Model and disk failures are outcomes. */
  compact(request: CompactRequest): Promise<CompactReport>;
  /** Wraps a model so that its calls are counted, and limited by the settings. */
  metered(model: Model): Model;
  /** Model calls in the current window, and providers that reject our credential. */
  readonly spend: Bound<typeof spendOf>;
  readonly grep: Bound<typeof grep>;
  /** Embeds messages for search by meaning until all are; run it again to resume. `invalid` without an embedder. */
  readonly makeVectors: Bound<typeof makeVectors>;
  /** What to show of the messages that a search found, with what belongs to them, up to a number of tokens. */
  readonly passages: Bound<typeof readPassages>;
  /** Describes a summary, file or message by id; throws `not_found` beyond the reach too. */
  readonly describe: Bound<typeof describe>;
  /** The same for several ids, ranges of messages, and messages around one. */
  readonly describeSeveral: Bound<typeof describeSeveral>;
  /** Recounts a period of time from summaries. */
  readonly recent: Bound<typeof recent>;
  /** Reads what summaries were made from, up to a number of tokens. */
  readonly expand: Bound<typeof expand>;
  /** Answers a question with citations before its deadline: by the model or a delegate, else the best excerpts. */
  readonly expandQuery: Bound<typeof expandQuery>;
  /** Lists what `map` would read, and its cost. Calls no model. */
  planMap(request: MapRequest): ReturnType<typeof planMap>;
  /** Asks the model the same about every message of a search, time, role, summary or conversation. Run again to resume. */
  map(request: MapRequest): Promise<MapReport>;
  /** Stores the results of a map as files, a line of JSON per message. */
  readonly saveMap: Bound<typeof saveMap>;
  /** The same as `planMap`, for `thorough`. */
  readonly planThorough: Bound<typeof planThorough>;
  /** Answers a question by reading every message, with exact counts and checked quotes. Run again to resume. */
  readonly thorough: Bound<typeof thorough>;
  /** Shows which words of a user's message would stay in prompts; throws if it is not the user's. */
  readonly planPin: Bound<typeof planPin>;
  readonly planUnpin: Bound<typeof planUnpin>;
  /** Pins or unpins as planned. */
  readonly pin: Bound<typeof pin>;
  /** Finds standing instructions in messages that were stored before there were pins. */
  readonly findPins: Bound<typeof findPins>;
  readonly pinFound: Bound<typeof pinFound>;
  /** Lists the conversations to delete, their size, and what depends on them. */
  readonly planPrune: Bound<typeof planPrune>;
  /** Deletes as planned, after archiving if requested. Replans if one was written to; null if none is left. */
  readonly prune: Bound<typeof prune>;
  /** Checks one conversation, or the whole database, for findings. */
  readonly inspect: Bound<typeof inspect>;
  /** The same, and what was checked. */
  readonly examine: Bound<typeof examine>;
  /** Lists the findings whose correct value can be derived. */
  readonly planFix: Bound<typeof planFixes>;
  /** Fixes them as one change. Replans a conversation that was written to meanwhile. */
  readonly fix: Bound<typeof applyFixes>;
  /** Lists the summaries to rewrite, sources first, and the cost. Calls no model. */
  readonly planRewrite: Bound<typeof planRewrite>;
  /** The same for the summaries with findings, of one conversation or of all. */
  readonly planRepair: Bound<typeof planRepair>;
  /** Drafts a new text for one summary. The draft is stored; nothing else changes. */
  readonly draftRewrite: Bound<typeof draftRewrite>;
  readonly applyRewrite: Bound<typeof applyRewrite>;
  /** Drafts, and if requested applies, a whole plan in order. What was applied stays, even if it stops early. */
  readonly rewriteAll: Bound<typeof rewriteAll>;
  /** Shows which sources would return to the context and at what cost, or why they cannot. */
  planDissolve(request: DissolveRequest): Promise<Dissolution>;
  /** Dissolves as planned; replans if the conversation has changed. */
  readonly dissolve: Bound<typeof dissolve>;
  /** Lists the summaries, with everything below them, that would be copied before another's context. */
  readonly planTransplant: Bound<typeof planTransplant>;
  /** Copies as planned; replans if needed; null if there is nothing to copy. */
  readonly transplant: Bound<typeof transplant>;
  /** Operators' changes, newest first. */
  readonly history: Bound<typeof history>;
  /** Shows what undoing a change, or its part of one summary, would revert, and what prevents it. */
  readonly planUndo: Bound<typeof planUndo>;
  /** Undoes a change unless something prevents it. An undo can be undone. */
  readonly undo: Bound<typeof undo>;
  /** Closes the store and the embedder; a second call does nothing more. */
  close(): Promise<void>;
}

export function createLcm(given: LcmDeps): Lcm {
  const { clock, templates = builtInTemplates, breaker = "heeded" } = given;
  const settings = given.settings ?? resolveSettings({ env: {}, config: {} }).values;
  const spending = { store: given.store, clock, settings };
  const embedder = given.embedder ? meterEmbedder(spending, given.embedder, { breaker }) : null;
  const store = embedder === null ? given.store : searchingByMeaning(given.store, embedder);
  const metered = (model: Model): Model => meter(spending, model, { breaker });
  const model = given.model === undefined || given.model === null ? null : metered(given.model);
  const describing = describingWith(model, given.describeFilesUntil);
  const deps = { store, clock, settings, model, templates, leftAlone: new Set<string>(), ...describing };
  const takeTurn = createQueues();
  return {
    store,
    clock,
    settings,
    find: findConversation.bind(null, store),
    import: importTranscript.bind(null, deps),
    ingest: ingest.bind(null, deps),
    export: exportTranscript.bind(null, store),
    assemble: assembleWithin.bind(null, deps),
    recordPrompt: recordPrompt.bind(null, deps),
    recordHostsPrompt: recordHostsPrompt.bind(null, deps),
    endPrompt: endPrompt.bind(null, deps),
    prompts: readPrompts.bind(null, store),
    rebuild: rebuild.bind(null, store),
    findPrompt: findPrompt.bind(null, store),
    comparePrompts: comparePrompts.bind(null, store),
    findInPrompts: findInPrompts.bind(null, store),
    promptStats: promptStats.bind(null, store),
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
    ...recallVerbs({ ...deps, embedder }),
    planPin: planPin.bind(null, store),
    planUnpin: planUnpin.bind(null, store),
    pin: pin.bind(null, store),
    findPins: findPins.bind(null, store),
    pinFound: pinFound.bind(null, store),
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
    close: once(async () => await store.close()),
  };
}

/** Two parts of a program may both clean up. */
function once(end: () => Promise<void>): () => Promise<void> {
  let ended: Promise<void> | null = null;
  return async () => await (ended ??= end());
}

type RecallVerb =
  | "grep"
  | "makeVectors"
  | "passages"
  | "describe"
  | "describeSeveral"
  | "recent"
  | "expand"
  | "expandQuery"
  | "planMap"
  | "map"
  | "saveMap"
  | "planThorough"
  | "thorough";

type RecallDeps = MapDeps & Pick<LcmDeps, "clock"> & { readonly embedder: Embedder | null };

const recallVerbs = (deps: RecallDeps): Pick<Lcm, RecallVerb> => ({
  grep: grep.bind(null, deps.store),
  makeVectors: makeVectors.bind(null, deps),
  passages: readPassages.bind(null, deps.store),
  describe: describe.bind(null, deps.store),
  describeSeveral: describeSeveral.bind(null, deps.store),
  recent: recent.bind(null, deps),
  expand: expand.bind(null, deps.store),
  expandQuery: expandQuery.bind(null, deps),
  planMap: async (request) => await planMap(deps, request),
  map: async (request) => await map(deps, request),
  saveMap: saveMap.bind(null, deps.store),
  planThorough: planThorough.bind(null, deps),
  thorough: thorough.bind(null, deps),
});

const describingWith = (model: Model | null, until: LcmDeps["describeFilesUntil"]) =>
  until === undefined || model === null ? {} : { explore: describeWith(model, until) };

async function assembleWithin(
  { store, settings }: { readonly store: Store; readonly settings: Settings },
  conversation: ConversationId,
  { budget, edits }: AssembleOptions = {},
): Promise<Assembly> {
  const { promptBudget } = budget === undefined ? await mustFind(store, conversation) : { promptBudget: budget };
  const { freshTailCount, pinsShare } = settings;
  const tokens = promptBudget ?? promptBudgetDefault;
  checkBudget(tokens);
  const shares = { targetShare: targetShareOf(settings), pinsShare };
  return await assemble(store, { conversation, budget: tokens, freshTailCount, ...shares, ...(edits && { edits }) });
}

/** A queue per conversation. When the signal aborts, waiting ends at once, and the caller sees its expired deadline. */
function createQueues(): (conversation: ConversationId, signal?: AbortSignal) => Promise<() => void> {
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
