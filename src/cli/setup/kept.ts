/**
 * Keeps what a configuration was before us beside it, as `FILE.before-lcm-A-B`. A stands for what the copy holds, or for
 * `none` if there was no file; B for what the file became. So it is known whether somebody has changed it since.
 */

import { createHash } from "node:crypto";
import {
  chmodSync,
  globSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { LcmError } from "../../core/base/errors.ts";

/** The text of a file; null if there is none. */
export type Text = string | null;

export interface Kept {
  readonly path: string;
  readonly text: Text;
}

const digestOf = (text: Text): string =>
  text === null ? "none" : createHash("sha256").update(text).digest("hex").slice(0, 12);

/** Copies the file before it is changed. Returns the path of the copy, which has no B yet. */
export function keep(path: string, before: Text): string {
  const copy = `${path}.before-lcm-${digestOf(before)}`;
  writeText(copy, before ?? "");
  return copy;
}

/** Names the copy after what the file became. */
export function nameKept(copy: string, after: Text): string {
  const named = `${copy}-${digestOf(after)}`;
  renameSync(copy, named);
  return named;
}

/** What the file was before us, if it is still as we left it. */
export function findKept(path: string, current: Text): Kept | null {
  const folder = dirname(path);
  const pattern = new RegExp(`\\.before-lcm-(\\w+)-${digestOf(current)}$`);
  for (const name of globSync(`${basename(path)}.before-lcm-*-*`, { cwd: folder })) {
    const [, digest] = pattern.exec(name) ?? [];
    const copy = join(folder, name);
    if (digest === "none") return { path: copy, text: null };
    const text = readText(copy);
    if (digest === digestOf(text)) return { path: copy, text };
  }
  return null;
}

export function readText(path: string): Text {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "an error";
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw new LcmError("unavailable", `${path} cannot be read: ${code}`, { hint: "nothing was changed", cause: error });
  }
}

/** Replaces a file as a whole, or removes it; a link to it stays a link, and its mode stays. */
export function writeText(path: string, text: Text): void {
  if (text === null) return rmSync(path, { force: true });
  const { target, mode } = targetOf(path);
  mkdirSync(dirname(target), { recursive: true });
  const draft = `${target}.${process.pid}.tmp`;
  writeFileSync(draft, text, { mode });
  chmodSync(draft, mode);
  renameSync(draft, target);
}

function targetOf(path: string): { readonly target: string; readonly mode: number } {
  try {
    const target = realpathSync(path);
    return { target, mode: statSync(target).mode & 0o777 };
  } catch {
    return { target: path, mode: 0o600 }; // A new file: configurations may hold keys.
  }
}
