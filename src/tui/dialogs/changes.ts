/** The dialogs that show a plan and ask: dissolve, transplant, undo, fix, compact, prune, forget, restore, export, backup. */

import { messageName } from "../../core/model/types.ts";
import { opens } from "../contract.ts";
import { createPlan, planAgain, type Planning } from "./plan.ts";

const isOpen = ({ phase }: Pick<Planning, "phase">): boolean => phase.kind !== "applying";

export const dissolveModule = createPlan<"dissolve">({
  name: "Dissolve",
  title: ({ request: { conversation, summary } }) => `dissolve ${summary} of conversation ${conversation}`,
  request: (place) => ({ ...place, purge: false }),
  keys: [
    {
      keys: ["x"],
      short: "purge",
      help: "also delete the summary, or keep it",
      when: isOpen,
      does: (state) => planAgain(state, { ...state.request, purge: !state.request.purge }),
    },
  ],
});

export const transplantModule = createPlan<"transplant">({
  name: "Transplant",
  title: ({ request: { source, target } }) => `transplant conversation ${source} into ${target}`,
  request: (place) => place,
});

export const undoModule = createPlan<"undo">({
  name: "Undo",
  title: ({ request: { change } }) => `undo change ${change}`,
  request: (place) => place,
  keys: [
    {
      keys: ["u"],
      short: "undo that first",
      help: "show the change that must be undone first",
      when: (state) => firstObstacle(state) !== null,
      does: opens((state) => {
        const change = firstObstacle(state);
        return change === null ? null : { kind: "undo", change };
      }),
    },
  ],
});

/** Fixes findings whose correct value can be derived, as `lcm doctor --fix` does. */
export const fixModule = createPlan<"fix">({
  name: "Fix",
  title: ({ request: { conversation } }) => `fix conversation ${conversation}`,
  request: (place) => place,
});

export const compactModule = createPlan<"compact">({
  name: "Compact",
  title: ({ request: { conversation } }) => `compact conversation ${conversation}`,
  help: "fold them, after a backup",
  request: (place) => ({ ...place, isForced: false, isLocal: false }),
  keys: [
    {
      keys: ["f"],
      short: "short runs",
      help: "also fold short runs, and fewer summaries at a time than usual",
      when: isOpen,
      does: (state) => planAgain(state, { ...state.request, isForced: !state.request.isForced }),
    },
    {
      keys: ["m"],
      short: "model",
      help: "fold without a model, or with it",
      when: isOpen,
      disabled: (state, { noModel = null }) => (state.request.isLocal ? null : noModel),
      does: (state) => planAgain(state, { ...state.request, isLocal: !state.request.isLocal }),
    },
  ],
});

export const pruneModule = createPlan<"prune">({
  name: "Prune",
  title: ({ request: { select } }) =>
    "conversation" in select
      ? `delete or archive conversation ${select.conversation}`
      : `delete or archive conversations inactive for ${select.olderThan}`,
  help: "archive or delete them, after a backup",
  isFinal: true,
  request: (place) => ({ ...place, isArchived: true }),
  keys: [
    {
      keys: ["x"],
      short: "archive or delete",
      help: "delete permanently instead of archiving, or archive",
      when: isOpen,
      does: (state) => planAgain(state, { ...state.request, isArchived: !state.request.isArchived }),
    },
  ],
});

export const pinModule = createPlan<"pin">({
  name: "Pin",
  title: ({ request: { message } }) => `pin or unpin ${messageName(message)}`,
  help: "pin or unpin it",
  request: (place) => place,
});

export const forgetModule = createPlan<"forget">({
  name: "Forget",
  title: ({ request: { target } }) => `forget ${target.kind === "message" ? messageName(target.id) : "a secret"}`,
  help: "remove it permanently, without a backup",
  isFinal: true,
  request: (place) => place,
});

export const restoreModule = createPlan<"restore">({
  name: "Restore",
  title: () => "restore a backup",
  help: "replace the database, after setting it aside",
  isFinal: true,
  request: (place) => place,
});

export const exportModule = createPlan<"export">({
  name: "Export",
  title: ({ request: { conversation } }) => `export conversation ${conversation}`,
  help: "write the file",
  isReading: true,
  request: (place) => place,
});

export const backupModule = createPlan<"backup">({
  name: "Backup",
  title: () => "back up",
  help: "make the copy",
  request: (place) => place,
});

/** The change that must be undone before this one. */
function firstObstacle({ phase, request }: Planning<"undo">): number | null {
  if (phase.kind !== "asking" || phase.planned.kind !== "undo") return null;
  const [first] = phase.planned.plan.obstacles;
  return first === undefined || first.change === request.change ? null : first.change;
}
