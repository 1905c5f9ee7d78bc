/**
 * What the dialogs that change something without a model ask, and the history of changes: what would be changed, to do
 * exactly that, what was changed before. Nothing else is ever applied than what was shown: a plan that no longer holds
 * comes back as another plan.
 */

import type { Dissolution, DissolveRequest } from "../../core/maintenance/dissolve.ts";
import type { Change, PlannedUndo } from "../../core/maintenance/history.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Conversation, ConversationId } from "../../core/model/types.ts";
import type { ConversationFix } from "../../core/model/store.ts";
import type { Transplantation } from "../../core/maintenance/transplant.ts";
import type { ChangeInShort } from "../../format/changes.ts";
import { undoneWords } from "../../format/changes.ts";
import { dissolvedWords } from "../../format/dissolve.ts";
import { transplantedWords } from "../../format/transplant.ts";
import { reads } from "../port.ts";
import type { Doing } from "../port.ts";
import { mustFind } from "../../core/model/find-conversation.ts";

export type ChangeRequest =
  | (Required<DissolveRequest> & { readonly kind: "dissolve" })
  | { readonly kind: "transplant"; readonly source: ConversationId; readonly target: ConversationId }
  | { readonly kind: "undo"; readonly change: number }
  | { readonly kind: "fix"; readonly conversation: ConversationId };

export type PlannedChange =
  | { readonly kind: "dissolve"; readonly plan: Dissolution }
  | {
      readonly kind: "transplant";
      readonly plan: Transplantation;
      readonly source: Conversation;
      readonly target: Conversation;
    }
  | { readonly kind: "undo"; readonly plan: PlannedUndo }
  /** Null where there is nothing to set right. */
  | { readonly kind: "fix"; readonly plan: ConversationFix | null };

type Applied =
  | { readonly kind: "applied"; readonly words: string }
  /** What was shown no longer holds, and nothing was changed. */
  | { readonly kind: "planned again"; readonly planned: PlannedChange };

interface ChangesAsked {
  readonly conversation: ConversationId | null;
  readonly limit: number;
}

export interface Changes {
  readonly rows: readonly ChangeInShort[];
  readonly isMore: boolean;
}

export interface ChangeSteps {
  readonly change: Change;
  readonly stepsLeft: number;
}

export const changesAsks = {
  planChange: reads(async (lcm, { request }: { readonly request: ChangeRequest }) => await planned(lcm, request)),

  async applyChange(
    { request, planned: shown }: { readonly request: ChangeRequest; readonly planned: PlannedChange },
    doing: Doing,
  ): Promise<Applied> {
    return await doing.port.writing(async (lcm, backUp) => {
      // Before the backup, so that none is made in vain, and after it, which may have taken a while.
      const first = await planned(lcm, request);
      if (!isSameChange(first, shown)) return { kind: "planned again", planned: first };
      doing.onProgress({ done: 0, of: null, words: "making a backup (once per session); esc cancels" });
      await backUp();
      const now = await planned(lcm, request);
      if (!isSameChange(now, shown)) return { kind: "planned again", planned: now };
      doing.signal.throwIfAborted();
      // From here on it is all done or nothing is: who would cancel is told so.
      doing.onProgress({ done: 1, of: null, words: "writing it" });
      const words = await write(lcm, now, doing);
      return words === null
        ? { kind: "planned again", planned: await planned(lcm, request) }
        : { kind: "applied", words };
    });
  },

  /** Conversations to copy into, newest first. */
  transplantTargets: reads(async ({ store }, { source }: { readonly source: ConversationId }) =>
    (await store.conversations()).filter(({ id }) => id !== source),
  ),

  changes: reads(async (lcm, { conversation, limit }: ChangesAsked): Promise<Changes> => {
    const found = await lcm.history({ ...(conversation === null ? {} : { conversation }), limit: limit + 1 });
    return { rows: found.slice(0, limit).map(inShort), isMore: found.length > limit };
  }),

  /** One step by step; as many of its texts as a person would read. Null if there is none of this number. */
  changeSteps: reads(async (lcm, { change: number }: { readonly change: number }): Promise<ChangeSteps | null> => {
    const [change] = await lcm.history({ change: number });
    if (change === undefined) return null;
    const steps = change.steps.slice(0, stepsWithin(change.steps));
    return { change: { ...change, steps }, stepsLeft: change.steps.length - steps.length };
  }),
};

// ── Planning ─────────────────────────────────────────────────────────────────────────────────────────────────────────

async function planned(lcm: Lcm, request: ChangeRequest): Promise<PlannedChange> {
  switch (request.kind) {
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
      // Its texts are not shown here, and may be long.
      const steps = undoing.steps.map((step) => ({ ...step, texts: null }));
      return { kind: "undo", plan: { ...plan, undoing: { ...undoing, steps } } };
    }
    case "fix": {
      const [plan = null] = (await lcm.planFix(request.conversation)).conversations;
      return { kind: "fix", plan };
    }
  }
}

/** Whether applying the one would do what the other has shown. A context that has grown at its end does not matter. */
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
  }
}

// ── Doing it ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What has been done, in the words of the command line, and the way back. Null if it was stale: nothing has changed. */
async function write(lcm: Lcm, change: PlannedChange, doing: Doing): Promise<string | null> {
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
      await indexCopies(lcm, doing);
      // Of the target's history; where one comes from shows the source's.
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
      return withWayBack(`conversation ${change.plan?.conversation} is set right`, done.change);
    }
  }
}

const withWayBack = (words: string, change: number, key = "u"): string =>
  `${words} · change ${change}, press ${key} to undo`;

const rowsPerStep = 1_000;

/** The copies are there whatever becomes of this: what is left of it is done with the next write. */
async function indexCopies({ store }: Lcm, { signal, onProgress }: Doing): Promise<void> {
  try {
    const { unindexed: of } = await store.status();
    for (let left = of, done = 0; left > 0 && done < of && !signal.aborted; done += rowsPerStep) {
      onProgress({ done: 1 + done, of: 1 + of, words: "copied; bringing search up to date" });
      left = await store.index(rowsPerStep);
    }
  } catch {
    // The transplant itself has succeeded, and that is what is told.
  }
}

// ── The history ──────────────────────────────────────────────────────────────────────────────────────────────────────

const whatMax = 300;

const inShort = ({ steps: _, ...change }: Change): ChangeInShort => ({
  ...change,
  what: change.what.slice(0, whatMax),
});

const charactersMax = 60_000;
const stepsMax = 500;

/** How many steps there are until their texts become too long to be read here; at least one. */
function stepsWithin(steps: Change["steps"]): number {
  let characters = 0;
  for (const [at, { texts }] of steps.slice(0, stepsMax).entries()) {
    characters += (texts?.before.length ?? 0) + (texts?.after.length ?? 0);
    if (at > 0 && characters > charactersMax) return at;
  }
  return Math.min(steps.length, stepsMax);
}
