/** The built pages: one document, and files whose names have a digest of their content. */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { LcmError } from "../core/base/errors.ts";
import type { JsonObject } from "../core/base/json.ts";

export interface Assets {
  readonly document: string;
  /** By name. */
  readonly files: ReadonlyMap<string, Asset>;
}

interface Asset {
  readonly type: string;
  readonly bytes: Uint8Array;
}

const types: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  txt: "text/plain; charset=utf-8",
};

/** What the manifest of a build lists. */
export interface Manifest {
  readonly scripts: readonly string[];
  readonly styles: readonly string[];
  /** All files, these included. */
  readonly files: readonly string[];
}

export function assetsFrom(manifest: Manifest, read: (name: string) => Uint8Array): Assets {
  const files = manifest.files.map((name): readonly [string, Asset] => {
    const type = types[name.split(".").at(-1) ?? ""] ?? "application/octet-stream";
    return [name, { type, bytes: read(name) }];
  });
  return { document: documentOf(manifest), files: new Map(files) };
}

/** The pages that were built with the package. */
export function builtAssets(folder: string): Assets {
  const path = join(folder, "manifest.json");
  if (!existsSync(path))
    throw new LcmError("unavailable", `the explorer's pages are not in ${folder}`, { hint: "run `npm run build`" });
  const { scripts, styles, files } = JSON.parse(readFileSync(path, "utf8")) as JsonObject & Manifest;
  return assetsFrom({ scripts, styles, files }, (name) => readFileSync(join(folder, name)));
}

const documentOf = ({ scripts, styles }: Manifest): string => `<!doctype html>
<html lang="en-GB">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>lossless-claw</title>
${styles.map((name) => `    <link rel="stylesheet" href="/assets/${name}" />\n`).join("")}    <link rel="icon" href="data:," />
${scripts.map((name) => `    <script type="module" src="/assets/${name}"></script>\n`).join("")}  </head>
  <body>
    <noscript>The explorer needs JavaScript. The terminal UI does not: run lcm tui.</noscript>
  </body>
</html>
`;

/** Shown to a browser without the cookie. The link is followed from our own page, so it brings a cookie just set. */
export const lockedDocument = `<!doctype html>
<html lang="en-GB">
  <head>
    <meta charset="utf-8" />
    <title>lossless-claw</title>
  </head>
  <body>
    <h1>This link is not complete</h1>
    <p>Open the link that <code>lcm web</code> printed. If you just did, <a href="/">continue</a>.</p>
  </body>
</html>
`;
