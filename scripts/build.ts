/**
 * Builds what is published (`npm run build`): the bundled program, its types, the licences, and the page that lists
 * them. Users install nothing else, and a host that copies a plugin with its dependencies for every process has little
 * to copy. The result is then checked against what package.json promises.
 */

import { spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join, relative } from "node:path";
import { build } from "esbuild";
import packageJson from "../package.json" with { type: "json" };
import { writePages } from "./pages.ts";
import { bundledPackages, bundling, dependenciesMarkdown, licencesText, threadBundling } from "./dependencies.ts";

rmSync("dist", { recursive: true, force: true });
const { status } = spawnSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"], {
  stdio: "inherit",
});
if (status !== 0) process.exit(status ?? 1);
const types = typesOf("dist/index.d.ts");
// The compiler writes the types of everything it has read; only these are importable.
for (const path of globSync("dist/**/*.d.ts")) if (!types.has(relative(".", path))) rmSync(path);

const outputsOf = async (options: typeof bundling | typeof threadBundling) => (await build(options)).metafile.outputs;
const built = { ...(await outputsOf(bundling)), ...(await outputsOf(threadBundling)) };
// Bundling does not keep the order of imports, and this one must be first.
for (const [path, folder] of [
  ["dist/index.js", "."],
  ["dist/hosts/openclaw/plugin.js", "../.."],
] as const)
  writeFileSync(path, `import "${folder}/needed-node.js";\n${readFileSync(path, "utf8")}`);
const pages = await writePages();
const packages = bundledPackages({ ...pages.metafile, outputs: { ...built, ...pages.metafile.outputs } });
writeFileSync("dist/LICENSES.txt", licencesText(packages));
writeFileSync("docs/dependencies.md", dependenciesMarkdown(packages));

const outputs = Object.entries(built);
const isThere = (name: string): boolean => name.startsWith("openclaw/") || isBuiltin(name);
const wrong = [
  ...promisedFiles(packageJson)
    .filter((path) => !existsSync(path))
    .map((path) => `package.json names ${path}, which is not there`),
  ...outputs.flatMap(([path, { imports }]) =>
    imports
      .filter((each) => each.external === true && !isThere(each.path))
      .map((each) => `${path} wants ${each.path}, which nobody installs`),
  ),
  ...[...types].flatMap(([path, names]) =>
    names.filter((name) => !isBuiltin(name)).map((name) => `${path} wants the types of ${name}, which nobody installs`),
  ),
  ...[...types.keys()].filter((path) => !existsSync(path)).map((path) => `${path} is imported, but is not there`),
];
for (const line of wrong) console.error(line);
const bytes = outputs.reduce((sum, [, output]) => sum + output.bytes, 0);
const pagesKb = (pages.gzipBytes / 1e3).toFixed(0);
console.log(
  `dist: ${outputs.length} files, ${(bytes / 1e6).toFixed(1)} MB; types in ${types.size}; pages ${pagesKb} kB compressed`,
);
process.exitCode = wrong.length > 0 ? 1 : 0;

/** The paths under bin, exports and the host's entries, in whatever form, and the command line's main. */
function promisedFiles(manifest: typeof packageJson): readonly string[] {
  const leaves = (value: unknown): readonly string[] =>
    typeof value === "object" && value !== null ? Object.values(value).flatMap(leaves) : [String(value)];
  const { bin, exports, openclaw, pi } = manifest;
  return ["dist/cli/main.js", ...[bin, exports, openclaw.extensions, pi.extensions].flatMap(leaves)];
}

/** All types that one file leads to, each with the names of packages that it imports. */
function typesOf(entry: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  const waiting = [join(entry)];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (found.has(path)) continue;
    const text = existsSync(path) ? readFileSync(path, "utf8") : "";
    const names = [...text.matchAll(/(?:from|import|import\()\s*"([^"]+)"/g)].map(([, name = ""]) => name);
    found.set(
      path,
      names.filter((name) => !name.startsWith(".")),
    );
    const folder = join(path, "..");
    waiting.push(
      ...names.filter((name) => name.startsWith(".")).map((name) => join(folder, name.replace(/\.[jt]s$/, ".d.ts"))),
    );
  }
  return found;
}
