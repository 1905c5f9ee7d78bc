/** What concerns all of a database on a server: archives, which are database files, and checks. */

import { LcmError } from "../../core/base/errors.ts";
import type { WholeDatabase } from "../../core/model/database-file.ts";
import type { Merged } from "../../core/model/store.ts";
import { rowSteps } from "../operations.ts";
import { all, sql, statement, text, type Script } from "../script.ts";
import type { StoredFiles } from "../stored-files.ts";
import {
  archiveRows,
  clashOfContent,
  copyContent,
  uploadSource,
  type ArchiveFiles,
  type OpenedFile,
} from "../transfer/archives.ts";
import { mergeRows, readSource } from "../transfer/merge.ts";
import { lockStatement } from "./locks.ts";
import type { Runner } from "./runner.ts";

interface Deps extends Pick<StoredFiles, "content"> {
  readonly runner: Runner;
  readonly schema: string;
  /** Absent if this program cannot write database files. */
  readonly archives: ArchiveFiles | null;
}

export function createWholeDatabase(deps: Deps): WholeDatabase {
  const { runner, content } = deps;
  return {
    async archive(ids, to, replace = false) {
      await runner.settled();
      return await filesOf(deps).write(to, replace, async (draft) => {
        await runner.read(() => archiveRows(ids, draft));
        return { content };
      });
    },
    async merge(from) {
      const source = filesOf(deps).read(from);
      try {
        return await merge(deps, from, source);
      } finally {
        source.close();
      }
    },
    integrity: async () => ({
      problems: [],
      dangling: [],
      exposures: [],
      ...(await runner.read(() => rowSteps.integrity())),
    }),
  };
}

function filesOf({ archives }: Deps): ArchiveFiles {
  if (archives !== null) return archives;
  throw new LcmError("unavailable", "archives are not available here", { hint: "use the command line" });
}

/**
 * The rows are sent before other writers have to wait. Content comes before them: a crash in between leaves content
 * without a row, which doctor reports.
 */
async function merge(deps: Deps, from: string, source: OpenedFile): Promise<Merged> {
  const { runner, schema, content } = deps;
  const { file } = source;
  const contents = await runner.writeLocking(function* () {
    yield* uploadSource(file);
    const found = (yield* readSource(from)).contents;
    yield* refuseTaken(from, found);
    return found;
  });
  const missing = await copyContent(source.content, content, contents);
  const merged = await runner.writeLocking(function* (): Script<Omit<Merged, "files">> {
    yield* uploadSource(file);
    yield statement(lockStatement(schema, null));
    return yield* mergeRows(from, file.columnsOf);
  });
  return { ...merged, files: contents.length - missing.length };
}

/** A row of a damaged or forged database may name content of a row here, which copying would replace. */
function* refuseTaken(from: string, contents: readonly string[]): Script<void> {
  const [clash] = yield* all(
    sql`SELECT storage_uri FROM large_files WHERE storage_uri IN (SELECT value FROM texts_in(${contents})) LIMIT 1`,
    (row) => text(row, "storage_uri"),
  );
  if (clash !== undefined) throw clashOfContent(from, clash);
}
