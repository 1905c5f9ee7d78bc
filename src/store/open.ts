/** Opens a database wherever it is. A server and its driver are loaded only when a URL names one. */

import { isPostgresUrl, type DatabasePlace } from "../core/base/database-place.ts";
import { LcmError } from "../core/base/errors.ts";
import type { Durability, Settings } from "../core/model/settings.ts";
import type { Store } from "../core/model/store.ts";
import type { ServerOptions, SharedFiles } from "./open-server.ts";

interface OpenServerOptions extends ServerOptions {
  /** Which searches run in a thread of their own; those by regular expression always do. */
  readonly apart?: "regex" | "all";
}

/** A search by regular expression may not end by itself, and any search takes the processor from a program that runs on. */
export async function openServer(url: string, { apart = "regex", ...options }: OpenServerOptions): Promise<Store> {
  const [{ openServerHere }, { createSearcher }, { startSearchThread }] = await Promise.all([
    import("./open-server.ts"),
    import("./threads/searcher.ts"),
    import("./search-thread.ts"),
  ]);
  const store = await openServerHere(url, options);
  const searcher = createSearcher(() => startSearchThread(url, options));
  return {
    ...store,
    search: async (request, limits) =>
      await (apart === "all" || request.mode === "regex" ? searcher : store).search(request, limits),
    async close() {
      searcher.stop();
      await store.close();
    },
  };
}

export interface PlaceOptions extends SharedFiles {
  readonly durability: Durability;
  /** Adopts a file of the older program first, and reports it. */
  readonly report?: (message: string) => void;
}

/** For a program that runs on: a file is used in a thread of its own. Creates what is not there. */
export async function openPlace(place: DatabasePlace, { durability, report, ...shared }: PlaceOptions): Promise<Store> {
  if (place.kind === "server") return await openServer(place.url, { ...shared, apart: "all" });
  const { openSqliteWorker } = await import("./sqlite/worker.ts");
  return await openSqliteWorker({ path: place.path, durability }, report);
}

export interface OpenStoreOptions extends Partial<Pick<Settings, "sharedFiles" | "sharedFilesEndpoint">> {
  readonly durability?: Durability;
  readonly env?: SharedFiles["env"];
}

/** Opens a database by its path or its `postgres://` URL, and creates it if there is none. */
export async function openStore(where: string, options: OpenStoreOptions = {}): Promise<Store> {
  const { durability = "full", env = {}, sharedFiles = null, sharedFilesEndpoint = null } = options;
  checkGiven(where);
  const place: DatabasePlace = isPostgresUrl(where)
    ? { kind: "server", url: where, shown: where, nearby: "" }
    : { kind: "file", path: where, shown: where, nearby: where };
  return await openPlace(place, { durability, env, settings: { sharedFiles, sharedFilesEndpoint } });
}

/** A program without types may pass a variable that is not set. */
function checkGiven(where: unknown): void {
  if (typeof where === "string") return;
  throw new LcmError("invalid", `the place of the database is ${JSON.stringify(where)}, but must be a text`, {
    hint: "pass a path, such as lcm.db, or a postgres:// URL",
  });
}
