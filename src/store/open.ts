/** Opens a database wherever it is. A server and its driver are loaded only when a URL names one. */

import type { ContentStore } from "../core/model/content-store.ts";
import { isPostgresUrl, type DatabasePlace } from "../core/base/database-place.ts";
import type { Durability, Settings } from "../core/model/settings.ts";
import type { Store } from "../core/model/store.ts";

/** Where content above 1 MiB goes, and the environment with the credentials for it. */
export interface SharedFiles {
  readonly settings: Pick<Settings, "sharedFiles" | "sharedFilesEndpoint">;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface ServerOptions extends SharedFiles {
  readonly connectionsMax?: number;
  readonly lockTimeoutMs?: number;
  /** Indexing between calls; on by default. */
  readonly housekeeping?: boolean;
  /** Throws `not_found` if there is no schema, instead of creating it. */
  readonly mustExist?: boolean;
}

export async function openServer(url: string, { settings, env, ...options }: ServerOptions): Promise<Store> {
  const [{ openPostgres }, { archiveFiles }] = await Promise.all([
    import("./postgres/store.ts"),
    import("./sqlite/row-file.ts"),
  ]);
  return await openPostgres({ ...options, ...(await placesOf({ settings, env })), url, archives: archiveFiles });
}

export interface PlaceOptions extends SharedFiles {
  readonly durability: Durability;
  /** Adopts a file of the older program first, and reports it. */
  readonly report?: (message: string) => void;
}

/** For a program that runs on: a file is used in a thread of its own. Creates what is not there. */
export async function openPlace(place: DatabasePlace, { durability, report, ...shared }: PlaceOptions): Promise<Store> {
  if (place.kind === "server") return await openServer(place.url, shared);
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
  const place: DatabasePlace = isPostgresUrl(where)
    ? { kind: "server", url: where, shown: where, nearby: "" }
    : { kind: "file", path: where, shown: where, nearby: where };
  return await openPlace(place, { durability, env, settings: { sharedFiles, sharedFilesEndpoint } });
}

/** Content above 1 MiB in a folder, in a bucket, or in the database like all the other. */
export async function placesOf({ settings, env }: SharedFiles): Promise<{ readonly larger?: ContentStore }> {
  const { sharedFiles, sharedFilesEndpoint: endpoint } = settings;
  if (sharedFiles === null) return {};
  if (sharedFiles.startsWith("s3://")) {
    const { openBucket } = await import("./content/bucket.ts");
    return { larger: openBucket({ url: sharedFiles, endpoint, env }) };
  }
  const { openFolder } = await import("./content/folder.ts");
  return { larger: openFolder(sharedFiles) };
}
