/** Stub: see the contract. */
import type { HookContext, HookEvent } from "./host.ts";
import type { Runtime } from "./runtime.ts";

export async function hideDeleted(_runtime: Runtime, _event: HookEvent, _context: HookContext): Promise<void> {
  await Promise.resolve();
}
