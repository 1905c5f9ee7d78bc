/** Lists the packages bundled into dist with version, licence and size, from esbuild's own record. */

import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { BuildOptions, Metafile, PluginBuild } from "esbuild";
import packageJson from "../package.json" with { type: "json" };
import { licences } from "./licences.ts";

/** The program with everything it depends on, in a few files that load each other on demand. */
export const bundling = {
  entryPoints: [
    "src/needed-node.ts",
    "src/index.ts",
    "src/cli/main.ts",
    "src/hosts/openclaw/plugin.ts",
    "src/hosts/opencode/plugin.ts",
    "src/hosts/pi/extension.ts",
    "src/hosts/companion/hook.ts",
    "src/hosts/companion/background.ts",
  ],
  outdir: "dist",
  chunkNames: "parts/[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node24",
  external: ["openclaw/*"],
  // Some bundled packages are CommonJS, and load Node's modules by this name.
  banner: {
    js: 'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);',
  },
  define: {
    neededNode: JSON.stringify(packageJson.engines.node.replace(">=", "")),
    threadFile: JSON.stringify("../thread/thread.js"),
  },
  plugins: [
    { name: "late-sqlite", setup: loadSqliteLate },
    { name: "no-native-driver", setup: leaveOutNativeDriver },
  ],
  legalComments: "linked",
  logLevel: "warning",
  metafile: true,
} as const satisfies BuildOptions;

/**
 * The store's thread, apart: split with the rest, it is 34 files, which take a third longer to load than what they hold in
 * one. Every host starts it, and waits for it.
 */
export const threadBundling = {
  ...bundling,
  entryPoints: { "thread/thread": "src/store/sqlite/thread.ts" },
  chunkNames: "thread/[name]-[hash]",
} as const satisfies BuildOptions;

/** An import of a module that an old Node lacks would fail before needed-node.ts could explain it. */
function loadSqliteLate(bundler: PluginBuild): void {
  const name = "node:sqlite";
  bundler.onResolve({ filter: new RegExp(`^${name}$`) }, () => ({ path: name, namespace: "late" }));
  const contents = `export const { DatabaseSync, backup } = process.getBuiltinModule("${name}") ?? {};`;
  bundler.onLoad({ filter: /./, namespace: "late" }, () => ({ contents }));
}

/** An optional part of `pg`, which only who asks for it would load. */
function leaveOutNativeDriver(bundler: PluginBuild): void {
  bundler.onResolve({ filter: /^pg-native$/ }, ({ path }) => ({ path, namespace: "left-out" }));
  bundler.onLoad({ filter: /./, namespace: "left-out" }, () => ({ contents: "module.exports = undefined;" }));
}

interface Bundled {
  readonly name: string;
  readonly version: string;
  /** The SPDX identifier. */
  readonly licence: string;
  readonly text: string;
  /** In all files of dist together; null if it is inside another package, which then includes its size. */
  readonly bytes: number | null;
}

/** Every package that contributed, the largest first, then those inside others. */
export function bundledPackages({ outputs }: Metafile): readonly Bundled[] {
  const inputs = Object.values(outputs).flatMap((output) =>
    Object.entries(output.inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0),
  );
  const folders = Map.groupBy(inputs, ([path]) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0]);
  const own = [...folders].flatMap(([folder, files]) => {
    if (folder === undefined) return [];
    const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const bytes = files.reduce((sum, [, { bytesInOutput }]) => sum + bytesInOutput, 0);
    return [{ name, version, licence: license, text: licenceText(name, folder), bytes }];
  });
  const inside = new Map(
    [...new Set(inputs.map(([path]) => path))]
      .filter((path) => path.includes("node_modules/"))
      .flatMap((path) => packagesInside(readFileSync(path, "utf8")))
      .map(({ name, version }) => [
        `${name}@${version}`,
        { name, version, licence: licences[name]?.spdx ?? "", text: licenceText(name), bytes: null },
      ]),
  );
  return [
    ...own.toSorted((one, other) => other.bytes - one.bytes || (one.name < other.name ? -1 : 1)),
    ...[...inside.values()].toSorted((one, other) => (one.name < other.name ? -1 : 1)),
  ];
}

/** Other bundlers leave a marker above what they have inlined. */
function packagesInside(text: string): readonly { readonly name: string; readonly version: string }[] {
  return [
    ...text.matchAll(
      /^\/\/(?:#region)? .*node_modules\/\.pnpm\/[^/\n]*?@(\d[^/_\n]*)[^/\n]*\/node_modules\/((?:@[^/\n]+\/)?[^/\n]+)\//gm,
    ),
  ].map(([, version = "", name = ""]) => ({ name, version }));
}

function licenceText(name: string, folder?: string): string {
  const known = licences[name]?.text;
  if (known !== undefined) return known;
  const [file] = folder === undefined ? [] : globSync("{LICENSE,LICENCE,license,COPYING}{,.md,.txt}", { cwd: folder });
  if (folder === undefined || file === undefined)
    throw new Error(`unknown licence of the bundled package ${name}: add it to scripts/licences.ts`);
  const notice = join(folder, "NOTICE");
  const texts = [join(folder, file), notice].filter((path) => existsSync(path));
  return texts.map((path) => readFileSync(path, "utf8").replaceAll("\r\n", "\n").trim()).join("\n\n");
}

/** The licences of everything in the package, each text once. */
export function licencesText(packages: readonly Bundled[]): string {
  const sections = [...Map.groupBy(packages, ({ text }) => text)].map(
    ([text, those]) =>
      `${those.map(({ name, version, licence }) => `${name} ${version} (${licence})`).join("\n")}\n\n${text}\n`,
  );
  const line = "─".repeat(80);
  return [`The files in this folder contain parts of the following packages.\n`, ...sections].join(`\n${line}\n\n`);
}

/** Limits for what is published, the explorer's pages and pictures of them included; checked by test/package.test.ts. */
export const packedMbMax = 2.8;
export const unpackedMbMax = 11;

/** The page docs/dependencies.md. Its sizes are those of packages alone, so that it does not change with every edit. */
export function dependenciesMarkdown(packages: readonly Bundled[]): string {
  const counted = packages.filter(({ bytes }) => bytes !== null);
  const inside = packages.filter(({ bytes }) => bytes === null);
  const rows = counted.map(
    ({ name, version, licence, bytes }) => `| ${name} | ${version} | ${licence} | ${kilobytes(bytes ?? 0)} |`,
  );
  const kinds = [...Map.groupBy(packages, ({ licence }) => licence)]
    .map(([licence, those]) => `${those.length} × ${licence}`)
    .toSorted()
    .join(", ");
  return `<!-- Generated by scripts/dependencies.ts. Do not edit; run \`npm run build\`. -->

# Dependencies

Installing lossless-claw installs nothing else: it has ${count(packageJson, "dependencies")} runtime dependencies, no peer dependencies, no native code and no
install script. The packages it uses are bundled into \`dist/\` ([why](decisions/0020-what-is-published-depends-on-nothing.md)),
with their licences in \`dist/LICENSES.txt\`. The package takes less than ${packedMbMax} MB packed and less than ${unpackedMbMax} MB unpacked.

${counted.length} packages are bundled. The table shows how much of each is in \`dist/\`. Parts load on demand: providers when a model is
called, the terminal UI when it is opened, the MCP server for \`lcm mcp\`.

| package | version | licence | kB in \`dist/\` |
|---|---|---|---:|
${rows.join("\n")}

The MCP server contains these, already bundled in its own files:

| package | version | licence |
|---|---|---|
${inside.map(({ name, version, licence }) => `| ${name} | ${version} | ${licence} |`).join("\n")}

Licences: ${kinds}. The repository itself has ${count(packageJson, "devDependencies")} development dependencies, including the bundled ones; \`package-lock.json\`
lists them all with checksums. None needs its install script: \`npm ci --ignore-scripts\` works too.
`;
}

const count = (manifest: object, kind: string): number =>
  Object.keys(new Map(Object.entries(manifest)).get(kind) ?? {}).length;

const kilobytes = (bytes: number): string => (bytes < 1_000 ? "< 1" : Math.ceil(bytes / 1_000).toLocaleString("en"));
