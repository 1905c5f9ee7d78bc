/** Finds which files have changed since a time, the newest first. */

import { statSync } from "node:fs";

const filesMax = 500;

export function changedSince(paths: readonly string[], sinceMs: number): readonly string[] {
  const dated = paths.map((path) => ({ path, changedMs: statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 }));
  return dated
    .filter(({ changedMs }) => changedMs >= sinceMs)
    .toSorted((one, other) => other.changedMs - one.changedMs)
    .slice(0, filesMax)
    .map(({ path }) => path);
}
