/** Stub: grants of child sessions. See the contract. */
import type { SpawnCall } from "./host.ts";
import type { Runtime } from "./runtime.ts";

export async function grantFork(
  _runtime: Runtime,
  _call: SpawnCall,
): Promise<{ rollback(): Promise<void> } | undefined> {
  return await Promise.resolve(undefined);
}
export async function endChild(_runtime: Runtime, _childSessionKey: string): Promise<void> {
  await Promise.resolve();
}
