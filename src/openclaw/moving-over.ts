/** Stub until it is written: see the contract. */
import type { Conversation } from "../core/model.ts";
import type { Appendable, Store } from "../core/ports.ts";

export async function alignOlder(
  _store: Store,
  _conversation: Conversation,
  _pages: () => AsyncIterable<readonly Appendable[]>,
): Promise<((item: Appendable) => readonly Appendable[]) | null> {
  return await Promise.resolve(null);
}
