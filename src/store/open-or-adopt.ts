/**
 * The store of a host. It lives in a thread of its own, and so does what must come first where the older program left its
 * database: adopting rebuilds every table and takes as long as that takes, while the host goes on with everything else.
 */

import type { Store } from "../core/ports.ts";
import { openSqliteWorker } from "./sqlite-worker.ts";

/**
 * Opens the database, making it and its folder if there is none. One of the older program is adopted first, with a backup
 * beside it; `tell` then hears when that begins and what came of it. If it fails, the file is as it was.
 */
export const openOrAdopt = async (path: string, tell: (message: string) => void): Promise<Store> =>
  await openSqliteWorker({ path }, tell);
