/** Plans and performs what takes long or reaches beyond one change: compact, prune, forget, restore, export, back up. */

import { LcmError } from "../core/base/errors.ts";
import { formatBytes, formatCount, plural } from "../core/base/format.ts";
import { parseAge } from "../core/base/parse-time.ts";
import type { CompactRequest } from "../core/compaction/compact.ts";
import { createLcm, type Lcm } from "../core/lcm.ts";
import { planForget } from "../core/maintenance/forget.ts";
import type { PrunePlan, PruneRequest } from "../core/maintenance/prune.ts";
import type { Spend } from "../core/model-calls/metering.ts";
import { mustFind } from "../core/model/find-conversation.ts";
import type { ForgetPlan } from "../core/model/store.ts";
import type { Conversation, Message } from "../core/model/types.ts";
import { compactionPlanOf, type ShownCompaction } from "../format/compact.ts";
import { forgottenShown, forgottenWords } from "../format/forget.ts";
import { refusalHint } from "../format/model.ts";
import { prunedLines } from "../format/prune.ts";
import { restoredLines, type RestorePlan } from "../format/restore.ts";
import type { Doing, ExportTarget, OfConversation } from "./port.ts";

/** One conversation, or those inactive for an age such as `90d`. */
export type PruneSelection = OfConversation | { readonly olderThan: string };

export type WorkRequest =
  | (OfConversation & { readonly kind: "compact"; readonly isForced: boolean; readonly isLocal: boolean })
  | { readonly kind: "prune"; readonly select: PruneSelection; readonly isArchived: boolean }
  | { readonly kind: "forget"; readonly target: ForgetPlan["target"] }
  | { readonly kind: "restore"; readonly from: string }
  | (OfConversation & { readonly kind: "export"; readonly path: string })
  | { readonly kind: "backup" };

type RequestOf<K extends WorkRequest["kind"]> = Extract<WorkRequest, { readonly kind: K }>;

export type PlannedWork =
  | {
      readonly kind: "compact";
      readonly isForced: boolean;
      readonly conversation: Conversation;
      readonly plan: ShownCompaction;
      readonly spend: Spend | null;
    }
  | {
      readonly kind: "prune";
      readonly request: PruneRequest;
      readonly plan: PrunePlan;
      /** Where they are archived; null if they are deleted. */
      readonly archive: string | null;
    }
  | {
      readonly kind: "forget";
      readonly plan: ForgetPlan;
      readonly shown: readonly Message[];
      /** Backups that may still contain it. */
      readonly backups: readonly string[];
    }
  | { readonly kind: "restore"; readonly plan: RestorePlan }
  | { readonly kind: "export"; readonly conversation: Conversation; readonly target: ExportTarget }
  | { readonly kind: "backup"; readonly path: string };

type PlannedOf<K extends PlannedWork["kind"]> = Extract<PlannedWork, { readonly kind: K }>;

/** Neither needs a readable database, and the latter must work on a damaged one. */
export async function planBeside(request: RequestOf<"backup" | "restore">, { port }: Doing): Promise<PlannedWork> {
  if (request.kind === "backup") return { kind: "backup", path: port.path };
  return { kind: "restore", plan: await port.planRestore(request.from) };
}

export async function planWork(
  lcm: Lcm,
  request: RequestOf<"compact" | "prune" | "forget" | "export">,
  doing: Doing,
): Promise<PlannedWork> {
  switch (request.kind) {
    case "compact":
      return await planCompact(lcm, request, doing);
    case "prune": {
      const { select, isArchived } = request;
      const asked = requestOf(lcm, select, doing);
      const archive = isArchived ? doing.port.archivePath() : null;
      return { kind: "prune", request: asked, plan: await lcm.planPrune(asked), archive };
    }
    case "forget": {
      const plan = await planForget(lcm.store, null, request.target);
      const shown = await lcm.store.messages({ ids: plan.messages.slice(0, forgottenShown) });
      const { backups } = await doing.port.surroundings();
      return { kind: "forget", plan, shown, backups: backups.map(({ path }) => path) };
    }
    case "export": {
      const conversation = await mustFind(lcm.store, request.conversation);
      return { kind: "export", conversation, target: doing.port.exportTarget(conversation.id, request.path) };
    }
  }
}

async function planCompact(lcm: Lcm, request: RequestOf<"compact">, { port }: Doing): Promise<PlannedWork> {
  const conversation = await mustFind(lcm.store, request.conversation);
  const model = request.isLocal ? null : await port.summariser();
  const templates = model === null ? null : (await port.prompts()).templates;
  const asked = sweepOf(request);
  const plan = compactionPlanOf(await lcm.planCompaction(asked), asked, model, templates);
  return { kind: "compact", isForced: request.isForced, conversation, plan, spend: plan.cost && (await lcm.spend()) };
}

/** A person decides what to do after a refusal. */
const sweepOf = ({ conversation, isForced }: RequestOf<"compact">): CompactRequest => ({
  conversation,
  mode: "sweep",
  onRefusal: "wait",
  ...(isForced && { force: true }),
});

function requestOf({ clock }: Lcm, select: PruneSelection, { port }: Doing): PruneRequest {
  if ("conversation" in select) return { conversations: [select.conversation] };
  return { olderThan: parseAge("the age", select.olderThan, port.zone, clock.now()) };
}

/** What must not change between the plan that was shown and the one that is applied. */
export function effectOfWork(work: PlannedWork): readonly unknown[] {
  switch (work.kind) {
    case "compact":
      return [work.plan.passes, work.plan.model];
    case "prune":
      return [work.plan.conversations, work.archive];
    case "forget":
      return [work.plan];
    case "restore":
      return [work.plan.from, work.plan.to];
    case "export":
      return [work.conversation.id, work.target];
    case "backup":
      return [];
  }
}

// ── Doing it ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export async function doBeside(work: PlannedOf<"backup" | "restore">, { port, onProgress }: Doing): Promise<string> {
  if (work.kind === "backup") {
    onProgress({ done: 1, of: null, words: "copying the database" });
    const { path, bytes } = await port.backUp();
    return `backed up to ${path} (${formatBytes(bytes)})`;
  }
  onProgress({ done: 1, of: null, words: "checking and copying the backup" });
  return restoredLines(work.plan, await port.restore(work.plan)).join("; ");
}

export async function exportNow({ conversation, target }: PlannedOf<"export">, doing: Doing): Promise<string> {
  const { messages: of } = conversation.totals;
  const onLines = (done: number): void =>
    doing.onProgress({ done: Math.min(done, of), of, words: "writing", stops: true });
  onLines(0);
  const { lines, incomplete } = await doing.port.exportTranscript(conversation.id, target.path, onLines, doing.signal);
  const missing = incomplete === 0 ? "" : `; ${plural(incomplete, "message is", "messages are")} incomplete`;
  return `${target.path}: ${plural(lines, "line")} of conversation ${conversation.id}${missing}`;
}

/** Stops when the signal aborts; the summaries made until then are kept. */
export async function compactNow(
  lcm: Lcm,
  { plan }: PlannedOf<"compact">,
  request: RequestOf<"compact">,
  { port, signal, onProgress }: Doing,
): Promise<string> {
  const { store, clock, settings } = lcm;
  const engine = request.isLocal ? createLcm({ store, clock, settings, model: null }) : lcm;
  let [done, saved] = [0, 0];
  const show = (): void => {
    const words = `folding, ${formatCount(saved)} tokens saved`;
    onProgress({ done, of: Math.max(done, plan.passes.length, 1), words, stops: true });
  };
  show();
  const report = await engine.compact({
    ...sweepOf(request),
    signal,
    onPass({ sourceTokens, tokens }) {
      done += 1;
      saved += sourceTokens - tokens;
      show();
    },
  });
  const { outcome, message } = report;
  if (outcome.kind === "failed") throw new LcmError("unavailable", message, { hint: "summaries made so far are kept" });
  if (outcome.kind !== "waiting") return message;
  const hint = refusalHint(outcome.refusal, await port.summariser(), "folded", settings.summaryConcurrency);
  throw new LcmError("unavailable", message, { hint: `${hint}; or fold without a model` });
}

/** Null if the plan was outdated: nothing was changed. */
export async function pruneNow(
  lcm: Lcm,
  { request, plan, archive }: PlannedOf<"prune">,
  backUp: () => Promise<string | null>,
  { onProgress }: Doing,
): Promise<string | null> {
  onProgress({ done: 0, of: null, words: archive === null ? "making a backup" : "writing the archive" });
  let backup: string | null = null;
  const beforeDeleting = async (): Promise<void> => {
    onProgress({ done: 0, of: null, words: "making a backup (once per session)" });
    backup = await backUp();
    onProgress({ done: 1, of: null, words: "deleting, and shrinking the file" });
  };
  const result = await lcm.prune(request, plan, { ...(archive !== null && { archive }), beforeDeleting });
  if (result === null) return null;
  return `${prunedLines(result).join("; ")} · \`lcm import ${archive ?? backup}\` restores it`;
}

export async function forgetNow({ store }: Lcm, { plan }: PlannedOf<"forget">): Promise<string | null> {
  const result = await store.forget(null, plan);
  return result.kind === "stale" ? null : forgottenWords(result.removed);
}

export const workAsks = {
  /** Where `lcm export` would write it, for the field that asks. */
  exportPath: async ({ conversation }: OfConversation, { port }: Doing): Promise<string> =>
    port.exportTarget(conversation, null).path,
  /** Newest first. */
  restorable: async (_ask: object, { port }: Doing) => (await port.restorable()).toReversed(),
};
