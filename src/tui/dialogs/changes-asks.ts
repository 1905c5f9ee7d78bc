/** What the change dialogs ask: a plan, and to apply exactly that plan. An outdated plan comes back as a new one. */

import type { Dissolution, DissolveRequest } from "../../core/maintenance/dissolve.ts";
import type { PlannedUndo } from "../../core/maintenance/history.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Conversation, ConversationId } from "../../core/model/types.ts";
import type { ConversationFix } from "../../core/model/store.ts";
import type { Transplantation } from "../../core/maintenance/transplant.ts";
import { undoneWords } from "../../format/changes.ts";
import { dissolvedWords } from "../../format/dissolve.ts";
import { transplantedWords } from "../../format/transplant.ts";
import { reads, type Doing } from "../port.ts";
import {
  compactNow,
  doBeside,
  effectOfWork,
  exportNow,
  forgetNow,
  planBeside,
  planWork,
  pruneNow,
} from "./work-asks.ts";
import type { PlannedWork, WorkRequest } from "./work-asks.ts";
import { assert, LcmError } from "../../core/base/errors.ts";
import { mustFind } from "../../core/model/find-conversation.ts";

export type ChangeRequest =
  | WorkRequest
  | (Required<DissolveRequest> & { readonly kind: "dissolve" })
  | { readonly kind: "transplant"; readonly source: ConversationId; readonly target: ConversationId }
  | { readonly kind: "undo"; readonly change: number }
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
  /** Null if there is nothing to fix. */
  | { readonly kind: "fix"; readonly plan: ConversationFix | null };

type Applied =
  | { readonly kind: "applied"; readonly words: string }
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
        doing.onProgress({ done: 0, of: null, words: "making a backup (once per session); esc cancels" });
        await backUp();
      }
      const now = isUnsaved(request) ? first : await planned(lcm, request, doing);
      if (!isSameChange(now, shown)) return { kind: "planned again", planned: now };
      doing.signal.throwIfAborted();
      const words = await write(lcm, now, { request, backUp, doing });
      if (words !== null) return { kind: "applied", words };
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
  return { kind: "applied", words: await (now.kind === "export" ? exportNow(now, doing) : doBeside(now, doing)) };
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
    case "fix": {
      const [plan = null] = (await lcm.planFix(request.conversation)).conversations;
      return { kind: "fix", plan };
    }
  }
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
      return [change.plan];
    case "fix":
      return [{ ...change.plan, revision: 0 }];
    default:
      return effectOfWork(change);
  }
}

/** Applies the plan and reports it as the command line does. Null if the plan was outdated: nothing was changed. */
async function write(lcm: Lcm, change: PlannedChange, { request, backUp, doing }: Writing): Promise<string | null> {
  if (change.kind === "compact" && request.kind === "compact") {
    const words = await compactNow(lcm, change, request, doing);
    await indexNew(lcm, doing, "folded");
    return words;
  }
  if (change.kind === "prune") return await pruneNow(lcm, change, backUp, doing);
  // Past this point it cannot be cancelled: it is one transaction.
  doing.onProgress({ done: 1, of: null, words: "writing" });
  return change.kind === "forget" ? await forgetNow(lcm, change) : await writeChange(lcm, change, doing);
}

interface Writing {
  readonly request: ChangeRequest;
  readonly backUp: () => Promise<string | null>;
  readonly doing: Doing;
}

async function writeChange(lcm: Lcm, change: PlannedChange, doing: Doing): Promise<string | null> {
  switch (change.kind) {
    case "dissolve": {
      const { conversation, summary, ordinal, purge } = change.plan;
      const done = await lcm.store.dissolve({ conversation, summary, ordinal, purge });
      return done.kind === "written" ? withWayBack(dissolvedWords(change.plan), done.change) : null;
    }
    case "transplant": {
      const { source, target, summaries } = change.plan;
      const done = await lcm.store.transplant({ source, target, summaries });
      if (done.kind !== "written") return null;
      await indexNew(lcm, doing, "copied");
      // U, since the change is in the target's history and u shows the source's.
      return withWayBack(transplantedWords(done, target), done.change, "U");
    }
    case "undo": {
      const { undoing, again } = change.plan;
      const done = await lcm.store.undo(undoing.change);
      if (done.kind !== "undone") return null;
      const words = undoneWords(change.plan);
      return again === null ? withWayBack(words, done.change) : `${words} · t copies them again`;
    }
    case "fix": {
      const done = change.plan && (await lcm.store.fix(change.plan));
      if (done?.kind !== "written") return null;
      return withWayBack(`fixed conversation ${change.plan?.conversation}`, done.change);
    }
    default:
      throw new LcmError("invalid", `${change.kind} is not a change of rows`);
  }
}

const withWayBack = (words: string, change: number, key = "u"): string => `${words} · ${key} undoes change ${change}`;

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
