/**
 * `npm run build`: what is published. The program with everything it depends on, in a few files that load each other when
 * they are needed, and its types. So whoever installs it installs nothing else, and a host that copies a plugin and all
 * its dependencies for every process has little to copy. The result is then held against what package.json promises.
 */

import { spawnSync } from "node:child_process";
import { existsSync, globSync, rmSync } from "node:fs";
import { isBuiltin } from "node:module";
import { build } from "esbuild";
import packageJson from "../package.json" with { type: "json" };

rmSync("dist", { recursive: true, force: true });
const { status } = spawnSync("tsc -p tsconfig.build.json", { shell: true, stdio: "inherit" });
if (status !== 0) process.exit(status ?? 1);

const { metafile } = await build({
  entryPoints: ["src/index.ts", "src/cli/main.ts", "src/openclaw/plugin.ts"],
  outdir: "dist",
  // Two folders deep, like the entries: from there they find package.json.
  chunkNames: "parts/[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node24",
  external: ["openclaw/*"],
  // Some of what is bundled was written for another kind of module, and looks for Node's own by this name.
  banner: {
    js: 'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);',
  },
  legalComments: "linked",
  logLevel: "warning",
  metafile: true,
});

const outputs = Object.entries(metafile.outputs);
const wrong = [
  ...promisedFiles(packageJson)
    .filter((path) => !existsSync(path))
    .map((path) => `package.json names ${path}, which is not there`),
  ...outputs.flatMap(([path, { imports }]) =>
    imports
      .filter((each) => each.external === true && !/^(node:|openclaw\/)/.test(each.path) && !isBuiltin(each.path))
      .map((each) => `${path} wants ${each.path}, which nobody installs`),
  ),
  ...globSync(["dist/**/*.test.*", "dist/testing"]).map((path) => `${path} is for tests only`),
];
for (const line of wrong) console.error(line);
const bytes = outputs.reduce((sum, [, output]) => sum + output.bytes, 0);
console.log(`dist: ${outputs.length} files, ${(bytes / 1e6).toFixed(1)} MB`);
process.exitCode = wrong.length > 0 ? 1 : 0;

/** What is under bin, exports and the host's entries, however it is listed there, and the command line's main. */
function promisedFiles(manifest: typeof packageJson): readonly string[] {
  const leaves = (value: unknown): readonly string[] =>
    typeof value === "object" && value !== null ? Object.values(value).flatMap(leaves) : [String(value)];
  const { bin, exports, openclaw } = manifest;
  return ["dist/cli/main.js", ...[bin, exports, openclaw.extensions].flatMap(leaves)];
}
