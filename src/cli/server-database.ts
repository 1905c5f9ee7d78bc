/** A database on a server, as commands see it. What only a file can do names what to use instead. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { LcmError } from "../core/base/errors.ts";
import { createLcm } from "../core/lcm.ts";
import { backupsOfServer } from "../core/model/database-file.ts";
import type { DatabasePlace } from "../core/base/database-place.ts";
import type { ResolvedSettings, Settings } from "../core/model/settings.ts";
import type { Clock, Embedder } from "../core/model/store.ts";
import { openServer } from "../store/open.ts";
import type { Database, Purpose } from "./commands/_session.ts";

interface Ground {
  readonly clock: Clock;
  readonly settings: () => Promise<ResolvedSettings>;
  readonly findEmbedder: (settings: Settings) => Promise<Embedder | null>;
  readonly stoppable: (store: Awaited<ReturnType<typeof openServer>>, until: AbortSignal | undefined) => typeof store;
  readonly env: Readonly<Record<string, string | undefined>>;
}

type ServerPlace = Extract<DatabasePlace, { readonly kind: "server" }>;

/** How long to wait for the locks of others. The terminal UI retries, so it waits less. */
const lockTimeoutMs = 60_000;
const lookTimeoutMs = 2_000;

/** They keep no house: nothing of the database changes while somebody only looks. */
const readers: ReadonlySet<Purpose> = new Set(["look", "read", "apart", "search"]);

export function createServerDatabase({ url, shown, nearby }: ServerPlace, ground: Ground): Database {
  const { clock, env } = ground;
  const watch = createWatch(url);
  return {
    path: shown,
    place: { kind: "server", url, shown, nearby },
    identity: () => shown,
    stamp: () => watch.stamp(),
    isWritable: () => true, // The server says what this role may not do.
    unseenLogBytes: () => 0,
    kind: () => "ours",
    async open(purpose, { settings: given, until, ...engine } = {}) {
      const creates = purpose === "import" || purpose === "merge";
      const settings = given ?? (await ground.settings()).values;
      const store = await openServer(url, {
        settings,
        env,
        mustExist: !creates,
        housekeeping: !creates && !readers.has(purpose),
        lockTimeoutMs: purpose === "look" ? lookTimeoutMs : lockTimeoutMs,
      });
      const embedder = await ground.findEmbedder(settings);
      return createLcm({
        clock,
        store: ground.stoppable(store, until),
        settings,
        embedder,
        breaker: "ignored",
        ...engine,
      });
    },
    adopt: refuse(
      "a database on a server has the current format",
      "convert the file first, then move it: `lcm adopt --db FILE`",
    ),
    async checkMerge(from) {
      const { archiveFiles } = await import("../store/sqlite/row-file.ts");
      archiveFiles.read(from).close();
    },
    backup: refuse("a database on a server is not backed up by lcm", backupsOfServer),
    archivePath: () => unusedIn(process.cwd(), `lcm-archive-${clock.now().slice(0, "2026-02-17".length)}`),
    backups: () => [],
    restorable: refuse("a database on a server is not restored by lcm", restoresOfServer),
    planRestore: refuse("a database on a server is not restored by lcm", restoresOfServer),
    restore: refuse("a database on a server is not restored by lcm", restoresOfServer),
    close: async () => await watch.close(),
  };
}

const restoresOfServer =
  "restore it with the tools of the database server: pg_restore, or its point-in-time recovery; `lcm import ARCHIVE` brings back what `lcm prune` archived";

const refuse = (what: string, hint: string) => async (): Promise<never> => {
  throw new LcmError("unavailable", what, { hint });
};

function unusedIn(folder: string, name: string): string {
  for (let n = 1; ; n++) {
    const path = join(folder, n === 1 ? `${name}.db` : `${name}-${n}.db`);
    if (!existsSync(path)) return path;
  }
}

/** How often the server is asked whether anything was written. */
const watchMs = 1_000;

/** Asks in the background, so that reading what it last heard costs nothing. */
function createWatch(url: string) {
  let known = "";
  let askedMs = -Infinity;
  let asking: Promise<void> | null = null;
  let watcher: Promise<{ read(): Promise<string>; close(): Promise<void> }> | null = null;
  const ask = async (): Promise<void> => {
    try {
      watcher ??= import("../store/postgres/watch.ts").then(({ createWatcher }) => createWatcher(url));
      known = await (await watcher).read();
    } catch {
      // The server does not answer; the next read reports it.
    }
  };
  return {
    stamp(): string {
      if (asking === null && performance.now() - askedMs >= watchMs) {
        askedMs = performance.now();
        asking = ask().finally(() => (asking = null));
      }
      return known;
    },
    async close(): Promise<void> {
      await asking;
      await (await watcher?.catch(() => null))?.close();
    },
  };
}
