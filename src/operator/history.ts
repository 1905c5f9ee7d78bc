/** Reads the list of changes, and the steps of one. */

import type { Change } from "../core/maintenance/history.ts";
import type { ConversationId } from "../core/model/types.ts";
import type { ChangeInShort } from "../format/changes.ts";
import { reads } from "./port.ts";

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

export const historyAsks = {
  changes: reads(async (lcm, { conversation, limit }: ChangesAsked): Promise<Changes> => {
    const changes = await lcm.history({ ...(conversation === null ? {} : { conversation }), limit: limit + 1 });
    return { rows: changes.slice(0, limit).map(inShort), isMore: changes.length > limit };
  }),

  /** Null if there is no such change. */
  changeSteps: reads(async (lcm, { change: number }: { readonly change: number }): Promise<ChangeSteps | null> => {
    const [change] = await lcm.history({ change: number });
    if (change === undefined) return null;
    const steps = change.steps.slice(0, stepsWithin(change.steps));
    return { change: { ...change, steps }, stepsLeft: change.steps.length - steps.length };
  }),
};

const whatMax = 300;

const inShort = ({ steps: _, ...change }: Change): ChangeInShort => ({
  ...change,
  what: change.what.slice(0, whatMax),
});

const charactersMax = 60_000;
const stepsMax = 500;

/** How many steps to show before their texts become too long; at least one. */
function stepsWithin(steps: Change["steps"]): number {
  let characters = 0;
  for (const [at, { texts }] of steps.slice(0, stepsMax).entries()) {
    characters += (texts?.before.length ?? 0) + (texts?.after.length ?? 0);
    if (at > 0 && characters > charactersMax) return at;
  }
  return Math.min(steps.length, stepsMax);
}
