/** Finds the folder and the version of this package, from the sources as well as from the build. */

import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The nearest folder above this file that has a package.json. */
export function packageFolder(from: string = import.meta.dirname): string {
  return existsSync(join(from, "package.json")) ? from : packageFolder(dirname(from));
}

export function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(join(packageFolder(), "package.json"), "utf8"));
  return typeof manifest === "object" && manifest !== null && "version" in manifest
    ? String(manifest.version)
    : "unknown";
}
