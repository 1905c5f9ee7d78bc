/** Opens both databases of a move. */

import { LcmError } from "../core/base/errors.ts";
import type { Move } from "../core/model/database-file.ts";
import type { DatabasePlace } from "../core/base/database-place.ts";
import { placesOf, type SharedFiles } from "./open-server.ts";
import type { MoveServer } from "./transfer/move.ts";

export interface MoveOptions extends SharedFiles {
  readonly from: DatabasePlace;
  readonly to: DatabasePlace;
  /** Creates nothing. */
  readonly isDryRun: boolean;
}

export async function openMove({ from, to, isDryRun, ...shared }: MoveOptions): Promise<Move> {
  const [{ createMove }, { openRowFile }, { existsSync }] = await Promise.all([
    import("./transfer/move.ts"),
    import("./sqlite/row-file.ts"),
    import("node:fs"),
  ]);
  if (from.kind === to.kind)
    throw new LcmError("invalid", `${to.shown} is ${to.kind === "file" ? "a file" : "on a server"} as well`, {
      hint:
        to.kind === "file" ? "copy a file with `lcm backup FILE`" : "copy between servers with pg_dump and pg_restore",
    });
  const [file, server] = from.kind === "file" ? [from, to] : [to, from];
  if (file.kind !== "file" || server.kind !== "server") throw new TypeError("one is a file, the other a server");
  const isToServer = to.kind === "server";
  if (isToServer && !existsSync(file.path))
    throw new LcmError("not_found", `there is no database at ${file.path}`, { hint: "name another one with --from" });
  const opened = isToServer || !isDryRun ? openRowFile(file.path, isToServer) : existing(file.path);
  try {
    const remote = await openSide(server.url, { ...shared, mustExist: isDryRun || !isToServer }).catch(
      (error: unknown) => {
        if (isToServer && isDryRun && error instanceof LcmError && error.code === "not_found") return null;
        throw error;
      },
    );
    return createMove({ file: opened, server: remote, to: isToServer ? "server" : "file", shown: to.shown });
  } catch (error) {
    opened?.close();
    throw error;
  }
  function existing(path: string) {
    return existsSync(path) ? openRowFile(path, true) : null;
  }
}

async function openSide(
  url: string,
  { mustExist, ...shared }: SharedFiles & { readonly mustExist: boolean },
): Promise<MoveServer> {
  const { connectServer } = await import("./postgres/store.ts");
  const { runner, content, close } = await connectServer({ url, mustExist, ...(await placesOf(shared)) });
  return { content, read: runner.read, write: runner.write, close };
}
