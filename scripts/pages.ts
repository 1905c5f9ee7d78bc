/** Builds the explorer's pages: into memory for a checkout, and into `dist/web` for the package, within a size limit. */

import { mkdirSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { build, type BuildOptions, type Metafile, type OutputFile } from "esbuild";
import { assetsFrom, type Assets, type Manifest } from "../src/web/assets.ts";

/** All scripts and styles together, compressed. */
const gzipMax = 150_000;

const root = resolve(import.meta.dirname, "..");

const pages = {
  absWorkingDir: root,
  entryPoints: ["src/web/pages/main.tsx"],
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  outdir: "dist/web",
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "browser",
  target: ["chrome120", "firefox121", "safari17"],
  jsx: "automatic",
  jsxImportSource: "preact",
  minify: true,
  legalComments: "linked",
  logLevel: "warning",
  metafile: true,
  write: false,
} as const satisfies BuildOptions;

interface Built {
  readonly manifest: Manifest;
  readonly outputs: readonly OutputFile[];
  readonly metafile: Metafile;
  readonly gzipBytes: number;
}

async function buildPages(): Promise<Built> {
  const { outputFiles, metafile } = await build(pages);
  const entries = Object.entries(metafile.outputs).filter(([, { entryPoint }]) => entryPoint !== undefined);
  const ending = (end: string, names: readonly string[]) =>
    names.filter((name) => name.endsWith(end)).map((name) => basename(name));
  const manifest = {
    scripts: ending(
      ".js",
      entries.map(([path]) => path),
    ),
    styles: ending(".css", Object.keys(metafile.outputs)),
    files: outputFiles.map(({ path }) => basename(path)),
  };
  const shown = outputFiles.filter(({ path }) => /\.(?:js|css)$/.test(path));
  const gzipBytes = shown.reduce((sum, { contents }) => sum + gzipSync(contents, { level: 9 }).length, 0);
  return { manifest, outputs: outputFiles, metafile, gzipBytes };
}

export async function pagesInMemory(): Promise<Assets> {
  const { manifest, outputs } = await buildPages();
  const files = new Map(outputs.map(({ path, contents }) => [basename(path), contents]));
  return assetsFrom(manifest, (name) => files.get(name) ?? new Uint8Array());
}

/** Returns what was bundled and its compressed size; throws if that is too much. */
export async function writePages(): Promise<Pick<Built, "metafile" | "gzipBytes">> {
  const { manifest, outputs, metafile, gzipBytes } = await buildPages();
  const folder = join(root, "dist", "web");
  mkdirSync(folder, { recursive: true });
  for (const { path, contents } of outputs) writeFileSync(join(folder, basename(path)), contents);
  writeFileSync(join(folder, "manifest.json"), JSON.stringify(manifest));
  if (gzipBytes > gzipMax) throw new Error(`the pages take ${gzipBytes} bytes compressed, more than ${gzipMax}`);
  return { metafile, gzipBytes };
}
