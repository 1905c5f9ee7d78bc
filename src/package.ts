/** This package: the folder it lies in and its version, the same from the sources and from what is built. */

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
