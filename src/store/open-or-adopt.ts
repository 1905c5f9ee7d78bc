/** Stub: see the contract. */
import type { Store } from "../core/ports.ts";
import { openSqliteWorker } from "./sqlite-worker.ts";

export async function openOrAdopt(path: string, _tell: (message: string) => void): Promise<Store> {
  return await openSqliteWorker({ path });
}
