/**
 * Learns how many tokens of a prompt a host fills with what we cannot see, such as tool schemas, and what its estimate or
 * ours missed. They are reserved as an allowance; until something is known, a tenth of the budget that the host names.
 */

import type { SessionMemory } from "./runtime.ts";

const shareUnknown = 0.1;
/** The allowance changes in steps, so that the cut of a prompt does not move with every turn. */
const step = 512;

export const allowanceOf = ({ allowance }: SessionMemory, named: number): number =>
  allowance ?? Math.ceil(named * shareUnknown);

/** After a restart, derives the allowance from the stored prompt budget, if that is plausible. */
export function recallAllowance(memory: SessionMemory, named: number, promptBudget: number | null): void {
  // Not within a process: the growth of one turn would be reserved from then on.
  if (memory.allowance !== null || memory.promptBudget !== null) return;
  const aside = named - (promptBudget ?? named);
  if (aside > 0 && aside <= named / 2) memory.allowance = Math.ceil(aside / step) * step;
}

/** Learns from what the provider counted beyond what we know of: grows the allowance at once, shrinks it by halves. */
export function learnFromCount(memory: SessionMemory, named: number, beyond: number): void {
  const measured = Math.ceil(Math.min(Math.max(0, beyond), named / 2) / step) * step;
  const before = memory.allowance ?? measured;
  memory.allowance = measured >= before ? measured : before - Math.floor((before - measured) / 2 / step) * step;
}

/** Grows the allowance after the provider refused a prompt as too long. */
export function learnFromOverflow(memory: SessionMemory, named: number, counted: number | undefined): void {
  const over = counted === undefined ? 0 : counted - named;
  const more = Math.max(over, named * shareUnknown);
  memory.allowance = Math.min(named / 2, Math.ceil((allowanceOf(memory, named) + more) / step) * step);
}
