/**
 * Bundles the store's thread into one file, as the build does: that file starts in half the processor time of the sources,
 * which counts where hundreds of threads start. Import this before the store.
 */

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { buildSync } from "esbuild";
import { threadBundling } from "../../scripts/dependencies.ts";
import { makeScratch } from "./scratch.ts";

const folder = makeScratch("thread");
// Its plugins are for older versions of Node, and for packages that this thread does not load.
buildSync({ ...threadBundling, plugins: [], outdir: folder });

export const bundledThread = pathToFileURL(join(folder, "thread", "thread.js")).href;

// The build defines this name, too; see src/store/sqlite/thread.ts.
Object.assign(globalThis, { threadFile: bundledThread });
