/** Plans a change, and applies exactly what was planned, after a backup. An outdated plan comes back as a new one. */

import type { Dissolution, DissolveRequest } from "../core/maintenance/dissolve.ts";
import type { PlannedUndo } from "../core/maintenance/history.ts";
import type { Lcm } from "../core/lcm.ts";
import { conversationIn, messageName } from "../core/model/types.ts";
import type { Conversation, ConversationId, MessageId } from "../core/model/types.ts";
import type { PinChange } from "../core/maintenance/pins.ts";
import type { ConversationFix } from "../core/model/store.ts";
import type { Transplantation } from "../core/maintenance/transplant.ts";
import { undoneWords } from "../format/changes.ts";
import { dissolvedWords } from "../format/dissolve.ts";
import { transplantedWords } from "../format/transplant.ts";
import { reads, type Doing } from "./port.ts";
import { compactNow, doBeside, effectOfWork, exportNow, forgetNow, planBeside, planWork, pruneNow } from "./work.ts";
import type { PlannedWork, WorkRequest } from "./work.ts";
import { assert, LcmError } from "../core/base/errors.ts";
import { mustFind } from "../core/model/find-conversation.ts";

export type ChangeRequest =
  | WorkRequest
  | (Required<DissolveRequest> & { readonly kind: "dissolve" })
  | { readonly kind: "transplant"; readonly source: ConversationId; readonly target: ConversationId }
  | { readonly kind: "undo"; readonly change: number }
  | { readonly kind: "pin"; readonly message: MessageId }
  | { readonly kind: "fix"; readonly conversation: ConversationId };

export type PlannedChange =
  | PlannedWork
  | { readonly kind: "dissolve"; readonly plan: Dissolution }
  | {
      readonly kind: "transplant";
      readonly plan: Transplantation;
      readonly source: Conversation;
      readonly target: Conversation;
    }
  | { readonly kind: "undo"; readonly plan: PlannedUndo }
  | { readonly kind: "pin"; readonly plan: PinChange }
  /** Null if there is nothing to fix. */
  | { readonly kind: "fix"; readonly plan: ConversationFix | null };

export type Applied =
  /** `change`: its number, to undo it; null if it has none, or if it is for good. */
  | { readonly kind: "applied"; readonly words: string; readonly change: number | null }
  /** The plan is outdated; nothing was changed. */
  | { readonly kind: "planned again"; readonly planned: PlannedChange };

export const changesAsks = {
  planChange: async ({ request }: { readonly request: ChangeRequest }, doing: Doing): Promise<PlannedChange> =>
    request.kind === "restore" || request.kind === "backup"
      ? await planBeside(request, doing)
      : await planned(await doing.port.reading(), request, doing),

  async applyChange(
    { request, planned: shown }: { readonly request: ChangeRequest; readonly planned: PlannedChange },
    doing: Doing,
  ): Promise<Applied> {
    if (request.kind === "restore" || request.kind === "backup" || request.kind === "export")
      return await applyBeside(request, shown, doing);
    return await doing.port.writing(async (lcm, backUp) => {
      // Checked before the backup, to make none in vain, and after it, since it may take a while.
      const first = await planned(lcm, request, doing);
      if (!isSameChange(first, shown)) return { kind: "planned again", planned: first };
      if (!isUnsaved(request)) {
        doing.onProgress({ done: 0, of: null, words: "making a backup (once per session)" });
        await backUp();
      }
      const now = isUnsaved(request) ? first : await planned(lcm, request, doing);
      if (!isSameChange(now, shown)) return { kind: "planned again", planned: now };
      doing.signal.throwIfAborted();
      const done = await write(lcm, now, { request, backUp, doing });
      if (done !== null) return { kind: "applied", ...done };
      return { kind: "planned again", planned: await planned(lcm, request, doing) };
    });
  },

  /** Conversations to copy into, newest first. */
  transplantTargets: reads(async ({ store }, { source }: { readonly source: ConversationId }) =>
    (await store.conversations()).filter(({ id }) => id !== source),
  ),
};

/** A backup would keep what is forgotten, and a prune makes its own after the archive. */
const isUnsaved = ({ kind }: ChangeRequest): boolean => kind === "forget" || kind === "prune";

/** Works with the file as a whole, or writes only beside it. */
async function applyBeside(request: ChangeRequest, shown: PlannedChange, doing: Doing): Promise<Applied> {
  const now = await changesAsks.planChange({ request }, doing);
  if (!isSameChange(now, shown)) return { kind: "planned again", planned: now };
  assert(now.kind === "restore" || now.kind === "backup" || now.kind === "export", "a plan has its request's kind");
  const words = await (now.kind === "export" ? exportNow(now, doing) : doBeside(now, doing));
  return { kind: "applied", words, change: null };
}

type Planable = Exclude<ChangeRequest, { readonly kind: "restore" | "backup" }>;

async function planned(lcm: Lcm, request: Planable, doing: Doing): Promise<PlannedChange> {
  switch (request.kind) {
    case "compact":
    case "prune":
    case "forget":
    case "export":
      return await planWork(lcm, request, doing);
    case "dissolve":
      return { kind: "dissolve", plan: await lcm.planDissolve(request) };
    case "transplant":
      return {
        kind: "transplant",
        plan: await lcm.planTransplant(request.source, request.target),
        source: await mustFind(lcm.store, request.source),
        target: await mustFind(lcm.store, request.target),
      };
    case "undo": {
      const { undoing, ...plan } = await lcm.planUndo(request.change);
      // Not shown here, and may be long.
      const steps = undoing.steps.map((step) => ({ ...step, texts: null }));
      return { kind: "undo", plan: { ...plan, undoing: { ...undoing, steps } } };
    }
    case "pin":
      return { kind: "pin", plan: await planTurn(lcm, request.message) };
    case "fix": {
      const [plan = null] = (await lcm.planFix(request.conversation)).conversations;
      return { kind: "fix", plan };
    }
  }
}

/** Unpins what is pinned, and pins what is not. */
async function planTurn(lcm: Lcm, message: MessageId): Promise<PinChange> {
  const known = (await lcm.store.pins(conversationIn(message))).find((each) => each.message === message);
  return await (known?.state === "pinned" ? lcm.planUnpin : lcm.planPin)({ message, by: "person" });
}

/** Whether two plans have the same effect. New items at the end of the context do not matter. */
export const isSameChange = (one: PlannedChange, other: PlannedChange): boolean =>
  JSON.stringify(effectOf(one)) === JSON.stringify(effectOf(other));

function effectOf(change: PlannedChange): readonly unknown[] {
  switch (change.kind) {
    case "dissolve": {
      const { summary, ordinal, purge, dissolved, run, derived, carriedBy } = change.plan;
      return [summary, ordinal, purge, dissolved, run, derived, carriedBy];
    }
    case "transplant": {
      const { source, target, shown, depths, messages } = change.plan;
      return [source, target, shown, depths, messages];
    }
    case "undo":
    case "pin":
      return [change.plan];
    case "fix":
      return [{ ...change.plan, revision: 0 }];
    default:
      return effectOfWork(change);
  }
}

type Done = Omit<Extract<Applied, { readonly kind: "applied" }>, "kind">;

/** Applies the plan and reports it as the command line does. Null if the plan was outdated: nothing was changed. */
async function write(lcm: Lcm, change: PlannedChange, { request, backUp, doing }: Writing): Promise<Done | null> {
  if (change.kind === "compact" && request.kind === "compact") {
    const words = await compactNow(lcm, change, request, doing);
    await indexNew(lcm, doing, "folded");
    return { words, change: null };
  }
  if (change.kind === "prune") return forGood(await pruneNow(lcm, change, backUp, doing));
  // Past this point it cannot be cancelled: it is one transaction.
  doing.onProgress({ done: 1, of: null, words: "writing" });
  return change.kind === "forget" ? forGood(await forgetNow(lcm, change)) : await writeChange(lcm, change, doing);
}

const forGood = (words: string | null): Done | null => (words === null ? null : { words, change: null });

interface Writing {
  readonly request: ChangeRequest;
  readonly backUp: () => Promise<string | null>;
  readonly doing: Doing;
}

async function writeChange(lcm: Lcm, change: PlannedChange, doing: Doing): Promise<Done | null> {
  switch (change.kind) {
    case "dissolve": {
      const { conversation, summary, ordinal, purge } = change.plan;
      const done = await lcm.store.dissolve({ conversation, summary, ordinal, purge });
      return done.kind === "written" ? { words: dissolvedWords(change.plan), change: done.change } : null;
    }
    case "transplant": {
      const { source, target, summaries } = change.plan;
      const done = await lcm.store.transplant({ source, target, summaries });
      if (done.kind !== "written") return null;
      await indexNew(lcm, doing, "copied");
      return { words: transplantedWords(done, target), change: done.change };
    }
    case "undo": {
      const { undoing, again } = change.plan;
      const done = await lcm.store.undo(undoing.change);
      if (done.kind !== "undone") return null;
      return { words: undoneWords(change.plan), change: again === null ? done.change : null };
    }
    case "pin": {
      const { pin } = change.plan;
      const done = await lcm.store.pin(change.plan);
      return done.kind === "written"
        ? { words: `${messageName(pin.message)} ${pin.state}`, change: done.change }
        : null;
    }
    case "fix": {
      const done = change.plan && (await lcm.store.fix(change.plan));
      if (done?.kind !== "written") return null;
      return { words: `fixed conversation ${change.plan?.conversation}`, change: done.change };
    }
    default:
      throw new LcmError("invalid", `${change.kind} is not a change of rows`);
  }
}

const rowsPerStep = 1_000;

/** Brings the search index up to date. Rows that are left are indexed by the next write. */
async function indexNew({ store }: Lcm, { signal, onProgress }: Doing, did: string): Promise<void> {
  try {
    const { unindexed: of } = await store.status();
    for (let left = of, done = 0; left > 0 && done < of && !signal.aborted; done += rowsPerStep) {
      onProgress({ done: 1 + done, of: 1 + of, words: `${did}; updating the search index` });
      left = await store.index(rowsPerStep);
    }
  } catch {
    // The change itself has succeeded; the index catches up later.
  }
}
