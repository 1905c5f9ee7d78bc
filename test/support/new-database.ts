/** Opens a new database in a file or on a server, with the ids and times that a test chooses. */

import { isPostgresUrl } from "../../src/core/base/database-place.ts";
import type { Timestamp } from "../../src/core/base/time.ts";
import type { Store } from "../../src/core/model/store.ts";
import { openPostgres } from "../../src/store/postgres/store.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";

interface Choices {
  readonly hex16?: () => string;
  readonly now?: () => Timestamp;
}

/** `where` is a path or a URL. Nothing is indexed between calls. */
export async function openNew(where: string, choices: Choices = {}): Promise<Store> {
  const options = { ...choices, housekeeping: false };
  return await (isPostgresUrl(where)
    ? openPostgres({ ...options, url: where })
    : openSqlite({ ...options, path: where }));
}
