/**
 * Packs what would be published, built from the current sources: a folder with nothing else in it, and its tarball. The
 * host copies a plugin's whole folder, and this repository contains an entire host.
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeShared } from "./shared.ts";

const repository = fileURLToPath(new URL("../../", import.meta.url));

/** Built once for all tests of a run. */
export const publishedFolder = async (): Promise<string> => await makeShared("published", build);

function build(folder: string): void {
  const { files } = JSON.parse(readFileSync(join(repository, "package.json"), "utf8"));
  const ofBuild = ["src", "scripts", "tsconfig.json", "tsconfig.build.json"];
  const published = files.filter((path: string) => path !== "dist");
  for (const path of ["package.json", "README.md", "LICENSE", ...published, ...ofBuild])
    cpSync(join(repository, path), join(folder, path), { recursive: true });
  symlinkSync(join(repository, "node_modules"), join(folder, "node_modules"), "junction");
  execFileSync(process.execPath, ["scripts/build.ts"], { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  for (const path of [...ofBuild, "node_modules"]) rmSync(join(folder, path), { recursive: true });
}

export interface Packed {
  /** Path of the tarball. */
  readonly path: string;
  /** Unpacked size in bytes. */
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string; readonly size: number }[];
}

export function pack(folder: string, into: string): Packed {
  // Some versions of npm print a list here, others an object by name.
  const said = JSON.parse(npm(["pack", "--json", "--ignore-scripts", "--pack-destination", into], folder));
  const [packed] = Object.values<Packed & { readonly filename: string }>(said);
  assert(packed);
  return { ...packed, path: join(into, packed.filename) };
}

/** The output of npm. On Windows npm is a script, which only a shell can start. */
export function npm(words: readonly string[], cwd: string): string {
  const isWindows = process.platform === "win32";
  const said = isWindows ? words.map((word) => `"${word}"`) : words;
  return execFileSync("npm", said, { cwd, encoding: "utf8", shell: isWindows, stdio: ["ignore", "pipe", "pipe"] });
}
