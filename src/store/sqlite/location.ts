/** Where the stored content of a database file is kept. */

import { basename, dirname, join, resolve } from "node:path";

/** A database file, and the folder with its stored content. */
export interface DatabaseLocation {
  readonly path: string;
  readonly filesDir: string;
}

/** `lcm-files` beside `lcm.db`, and `NAME-files` beside any other, so that two databases never share a folder. */
export const defaultFilesDir = (path: string): string => {
  const name = basename(path);
  return join(dirname(path), name === "lcm.db" ? "lcm-files" : `${name}-files`);
};

export const locationOf = (path: string): DatabaseLocation => ({
  path: resolve(path),
  filesDir: defaultFilesDir(resolve(path)),
});

/** The folder of a backup's stored files. */
export const filesBeside = (path: string): string => `${path}.files`;
