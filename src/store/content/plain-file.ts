/**
 * Reads only plain files inside a folder. Links in it are never followed, wherever they lead: an archive from elsewhere
 * may contain any. The folder itself may be a link, which its owner made.
 */

import { lstatSync } from "node:fs";
import { constants, lstat, open } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { LcmError } from "../../core/base/errors.ts";

/** What is at a path: a plain file, nothing, or something that is neither read nor written, in words. */
export type Spot =
  | { readonly kind: "plain"; readonly bytes: number; readonly writtenAtMs: number }
  | { readonly kind: "absent" }
  | { readonly kind: "odd"; readonly what: string };

/** Never throws. `path` must be inside the folder by its name. */
export async function lookAt(folder: string, path: string): Promise<Spot> {
  const steps = relative(folder, path).split(sep);
  let place = folder;
  try {
    for (const [at, step] of steps.entries()) {
      place = join(place, step);
      const facts = await lstat(place);
      const isLast = at === steps.length - 1;
      if (isLast && facts.isFile()) return { kind: "plain", bytes: facts.size, writtenAtMs: facts.mtimeMs };
      if (facts.isSymbolicLink()) return { kind: "odd", what: isLast ? "a symbolic link" : "behind a symbolic link" };
      if (isLast) return { kind: "odd", what: facts.isDirectory() ? "a folder" : "not a plain file" };
    }
  } catch {
    return { kind: "absent" }; // Or it cannot be looked at, and then not read either.
  }
  return { kind: "absent" };
}

/** Throws `denied` for what is not a plain file, and the system's error for what is absent. */
export async function readPlain(folder: string, path: string): Promise<Buffer> {
  const spot = await lookAt(folder, path);
  if (spot.kind === "odd") throw notPlain(path, spot.what);
  // The flags count if the file is replaced by a link or a pipe just now. Where Windows has no such flag, it adds nothing.
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  await using file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!(await file.stat()).isFile()) throw notPlain(path, "not a plain file");
  return await file.readFile();
}

/** Throws `denied` if a folder for content is, or is behind, a link. One that does not exist yet is fine. */
export async function checkFolder(folder: string, path: string): Promise<void> {
  if (relative(folder, path) === "") return;
  const spot = await lookAt(folder, path);
  if (spot.kind === "plain" || (spot.kind === "odd" && spot.what !== "a folder"))
    throw notPlain(path, spot.kind === "plain" ? "not a folder" : spot.what);
}

/** Whether the folder itself is a link, which is not followed where the folder comes from elsewhere. */
export const isLink = (folder: string): boolean =>
  lstatSync(folder, { throwIfNoEntry: false })?.isSymbolicLink() === true;

export const notPlain = (path: string, what: string): LcmError =>
  new LcmError("denied", `${path} is ${what}, and links are never followed`, {
    hint: "replace it by the file that belongs there, or remove it",
  });
