/**
 * `npm run build`: what is published. Compiles src into an empty dist, without tests, and then holds the result against
 * what package.json promises to those who install it.
 */

import { spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import packageJson from "../package.json" with { type: "json" };

rmSync("dist", { recursive: true, force: true });
const { status } = spawnSync("tsc -p tsconfig.build.json", { shell: true, stdio: "inherit" });
if (status !== 0) process.exit(status ?? 1);

const modules = globSync("dist/**/*.js");
for (const path of modules) writeFileSync(path, withBuiltUrls(readFileSync(path, "utf8")));

const wrong = [
  ...promisedFiles(packageJson)
    .filter((path) => !existsSync(path))
    .map((path) => `package.json names ${path}, which is not there`),
  ...modules
    .filter((path) => /["'`]\.{1,2}\/[^"'`\s]+\.ts["'`]/.test(readFileSync(path, "utf8")))
    .map((path) => `${path} names a source file, which is not there`),
  ...globSync(["dist/**/*.test.*", "dist/testing"]).map((path) => `${path} is for tests only`),
];
for (const line of wrong) console.error(line);
console.log(`dist: ${modules.length} modules`);
process.exitCode = wrong.length > 0 ? 1 : 0;

/** The compiler rewrites the extension in imports, but not where a worker thread is named by its URL. */
function withBuiltUrls(source: string): string {
  return source.replaceAll(/\b(new URL|import\.meta\.resolve)\((["'`])(\.[^"'`]+)\.ts\2/g, "$1($2$3.js$2");
}

/** What is under bin, exports and the host's entries, however it is listed there, and the command line's main. */
function promisedFiles(manifest: typeof packageJson): readonly string[] {
  const leaves = (value: unknown): readonly string[] =>
    typeof value === "object" && value !== null ? Object.values(value).flatMap(leaves) : [String(value)];
  const { bin, exports, openclaw } = manifest;
  return ["dist/cli/main.js", ...[bin, exports, openclaw.extensions].flatMap(leaves)];
}
