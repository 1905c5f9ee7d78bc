/** Opens a database on a server, with the places of its content; the driver is loaded only here. */

import type { ContentStore } from "../core/model/content-store.ts";
import type { Settings } from "../core/model/settings.ts";
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

/** In this thread, searches included. */
export async function openServerHere(url: string, { settings, env, ...options }: ServerOptions): Promise<Store> {
  const [{ openPostgres }, { archiveFiles }] = await Promise.all([
    import("./postgres/store.ts"),
    import("./sqlite/row-file.ts"),
  ]);
  return await openPostgres({ ...options, ...(await placesOf({ settings, env })), url, archives: archiveFiles });
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
