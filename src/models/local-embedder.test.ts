/** Local models: how they are found, and that whatever is wrong with them is a refusal. The runtime is scripted. */

import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, describe, it } from "node:test";
import { makeScratch } from "../../test/support/scratch.ts";
import type { Embedder } from "../core/model/embedder.ts";
import { createLocalEmbedder } from "./local-embedder.ts";
import { findModel } from "./model-folder.ts";

const scratch = makeScratch("local-embedder");
after(() => rmSync(scratch, { recursive: true, force: true }));
let folders = 0;

/** A folder with these files. */
function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = join(scratch, String(++folders));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  return folder;
}

const vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\none\ntwo";
const model = { "models/tiny/onnx/model.onnx": "weights", "models/tiny/vocab.txt": vocabulary };

/** For each token a vector of its id and 1; the weights `hang` never answer. */
const runtime = `
  export const env = {};
  export class Tensor { constructor(type, data, dims) { Object.assign(this, { type, data, dims }); } }
  export const InferenceSession = { create: async (weights) => {
    const text = new TextDecoder().decode(weights);
    if (text === "broken") throw new Error("the weights are broken");
    return { inputNames: ["input_ids", "attention_mask"], async run({ input_ids: { data, dims } }) {
      if (text === "hang") await new Promise(() => {});
      if (text === "dies") process.exit(3);
      return { last: { dims: [...dims, 2], data: Float32Array.from([...data].flatMap((id) => [Number(id), 1])) } };
    } };
  } };`;
const installed = (name: string, code = runtime): Readonly<Record<string, string>> => ({
  [`node_modules/${name}/package.json`]: JSON.stringify({ name, type: "module", exports: "./index.js" }),
  [`node_modules/${name}/index.js`]: code,
});

const embed = async (embedder: Embedder, ...texts: readonly string[]) => {
  const found = await embedder.embed({ texts, kind: "passage" });
  await embedder.close();
  return found;
};

describe("a local model", () => {
  it("runs on the installed runtime, and its vectors are the means of the tokens'", async () => {
    const folder = folderWith({ ...model, ...installed("onnxruntime-web") });
    const found = await embed(createLocalEmbedder(join(folder, "models/tiny"), [folder]), "one two", "one");
    assert.ok(found.kind === "vectors", JSON.stringify(found));
    assert.match(found.model, /^local\/tiny@[0-9a-f]{8}$/);
    assert.deepEqual(found.vectors, [Float32Array.of((2 + 4 + 5 + 3) / 4, 1), Float32Array.of(3, 1)]);
  });

  it("is another model when its weights change", async () => {
    const ids = [];
    for (const weights of ["one", "other"]) {
      const folder = folderWith({ ...model, ...installed("onnxruntime-web"), "models/tiny/onnx/model.onnx": weights });
      const found = await embed(createLocalEmbedder(join(folder, "models/tiny"), [folder]), "one");
      ids.push(found.kind === "vectors" ? found.model : null);
    }
    assert.notEqual(ids[0], ids[1]);
  });

  it("falls back to the second runtime if the first cannot be loaded", async () => {
    const native = installed("onnxruntime-node", "throw new Error('no binary for this system')");
    const folder = folderWith({ ...model, ...native, ...installed("onnxruntime-web") });
    assert.equal((await embed(createLocalEmbedder(join(folder, "models/tiny"), [folder]), "one")).kind, "vectors");
  });

  it("may be in an installed package, or be one file", async () => {
    const folder = folderWith({
      ...installed("onnxruntime-web"),
      "node_modules/@some/models/gte/model.onnx": "weights",
      "node_modules/@some/models/gte/model_quantized.onnx": "smaller",
      "node_modules/@some/models/gte/vocab.txt": vocabulary,
    });
    assert.equal((await embed(createLocalEmbedder("@some/models/gte", [folder]), "one")).kind, "vectors");
    const { weights } = await findModel("@some/models", [folder]);
    assert.match(weights, /model_quantized\.onnx$/);
    const file = join(folder, "node_modules/@some/models/gte/model.onnx");
    assert.equal((await findModel(file, [folder])).weights, file);
  });

  it("is refused, with what to do, if the model, its vocabulary or a runtime is missing, or there are several", async () => {
    const refusalOf = async (named: string, folder: string): Promise<string> => {
      const found = await embed(createLocalEmbedder(named, [folder]), "one");
      return found.kind === "refused" ? found.message : assert.fail("it answered");
    };
    const empty = folderWith({ "read.me": "" });
    assert.match(await refusalOf("@some/models", empty), /the package @some\/models is not installed in/);
    assert.match(await refusalOf(empty, empty), /there is no model\.onnx in .*\(name a folder with/);
    const bare = folderWith({ "model.onnx": "weights" });
    assert.match(await refusalOf(bare, bare), /neither tokenizer\.json nor vocab\.txt/);
    const still = folderWith(model);
    assert.match(await refusalOf(join(still, "models/tiny"), still), /no ONNX runtime is installed .*npm install/);
    const two = folderWith({ ...model, "models/other/model.onnx": "", "models/other/vocab.txt": "" });
    assert.match(await refusalOf(two, two), /contains several models: .*models\/tiny/);
  });

  it("is refused if it is broken, or ends its thread, or does not answer in time; then it is loaded again", async () => {
    const withWeights = (weights: string): readonly [Embedder, string] => {
      const folder = folderWith({ ...model, ...installed("onnxruntime-web"), "models/tiny/onnx/model.onnx": weights });
      const path = join(folder, "models/tiny/onnx/model.onnx");
      return [createLocalEmbedder(join(folder, "models/tiny"), [folder]), path];
    };
    const [broken, path] = withWeights("broken");
    const first = await broken.embed({ texts: ["one"], kind: "query" });
    assert.ok(
      first.kind === "refused" && /cannot be loaded: onnxruntime-web: the weights are broken/.test(first.message),
    );
    writeFileSync(path, "mended");
    assert.equal((await embed(broken, "one")).kind, "vectors");
    const dead = await embed(withWeights("dies")[0], "one");
    assert.ok(dead.kind === "refused" && /thread of the local model ended/.test(dead.message), JSON.stringify(dead));
    const [hanging] = withWeights("hang");
    const late = await hanging.embed({ texts: ["one"], kind: "query", signal: AbortSignal.timeout(20) });
    assert.ok(late.kind === "refused" && late.refusal === "cancelled");
    await hanging.close();
  });
});
