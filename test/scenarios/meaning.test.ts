/** Search by meaning at the command line, with a scripted ONNX runtime installed in the state directory. */

import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { createFolder, lcm, ok, type Place } from "./program.ts";

const words = ["car", "vehicle", "boat", "tree", "rain", "soup", "bread", "needs", "oil", "the", "my"];
const vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", ...words].join("\n");

/** Car and vehicle mean the same; every other token has numbers of its own. */
const runtime = `
  export const env = {};
  export class Tensor { constructor(type, data, dims) { Object.assign(this, { type, data, dims }); } }
  const numbers = (id) => {
    let state = (id === 5 ? 4 : id) + 1;
    return id < 4 ? Array(64).fill(0.01) : Array.from({ length: 64 }, () => ((state = (state * 48271) % 2147483647) % 2 ? 1 : -1));
  };
  export const InferenceSession = { create: async () => ({
    inputNames: ["input_ids"],
    run: async ({ input_ids: { data, dims } }) =>
      ({ last: { dims: [...dims, 64], data: Float32Array.from([...data].flatMap((id) => numbers(Number(id)))) } }),
  }) };`;

function createPlace(): Place {
  const state = createFolder();
  const write = (name: string, content: string): void => {
    mkdirSync(dirname(join(state, name)), { recursive: true });
    writeFileSync(join(state, name), content);
  };
  write("node_modules/onnxruntime-web/package.json", '{ "type": "module", "exports": "./index.js" }');
  write("node_modules/onnxruntime-web/index.js", runtime);
  write("node_modules/tiny-model/model.onnx", "weights");
  write("node_modules/tiny-model/vocab.txt", vocabulary);
  const texts = ["the boat", "tree", "rain", "my vehicle needs oil", "soup", "the bread", "tree rain"];
  const lines = texts.map((content, n) => ({ type: "message", id: `m${n}`, message: { role: "user", content } }));
  write("talk.jsonl", lines.map((line) => JSON.stringify(line)).join("\n"));
  const place = { state, env: { LCM_EMBEDDER: "local:tiny-model" } };
  ok(place, "import", join(state, "talk.jsonl"));
  return place;
}

const json = (place: Place, ...args: readonly string[]) => JSON.parse(lcm(place, ...args, "--json").stdout);

describe("search by meaning at the command line", () => {
  it("lcm index embeds everything, status shows it, and grep finds what words do not", () => {
    const place = createPlace();
    assert.match(
      lcm(place, "status").stdout,
      /meaning +local:tiny-model\n +no vectors yet; make them with `lcm index`/,
    );
    const finding = () =>
      json(place, "doctor").findings.find(({ code }: { code: string }) => code === "vectors_incomplete");
    assert.deepEqual([finding().severity, finding().message], ["info", "no message has a vector yet"]);
    const { vectors } = json(place, "index");
    const { model, ...facts } = vectors;
    const done = { outcome: "complete", embedded: 7, skipped: 0, pending: 0, problem: null, isResumable: false };
    assert.deepEqual(facts, done);
    assert.match(model, /^local\/tiny-model@[0-9a-f]{8}\/64\/1$/);
    assert.match(lcm(place, "status").stdout, /local\/tiny-model@.*: 7 messages, complete/);
    assert.equal(finding(), undefined);
    const other: Place = { ...place, env: { ...place.env, LCM_EMBEDDER: "local:other-model" } };
    assert.match(lcm(other, "status").stdout, /the vectors are of another model \(local\/tiny-model@/);
    const { hits, caveats } = json(place, "grep", "car");
    assert.equal(hits[0]?.snippet, "my vehicle needs oil");
    assert.deepEqual(caveats, [{ kind: "partial_match", missing: ["car"] }]);
    assert.equal(json(place, "index").vectors.embedded, 0);
    assert.match(ok(place, "index").stdout, /^search index: up to date\nvectors: 0 messages embedded; model local/);
  });

  it("before that, and where the model is gone, grep goes by words and says why", () => {
    const place = createPlace();
    const early = json(place, "grep", "vehicle");
    assert.deepEqual([early.hits.length, early.caveats], [1, [{ kind: "unembedded", messages: 7, of: 7 }]]);
    rmSync(join(place.state, "node_modules/onnxruntime-web"), { recursive: true });
    const late = json(place, "grep", "vehicle");
    assert.deepEqual([late.hits.length, late.caveats.length, late.caveats[0]?.kind], [1, 1, "no_meaning"]);
    assert.match(late.caveats[0]?.reason, /no ONNX runtime is installed/);
    const failed = lcm(place, "index");
    assert.equal(failed.status, 6);
    assert.match(failed.stdout, /stopped: no ONNX runtime is installed/);
    assert.match(lcm(place, "status").stdout, /failed at .*: no ONNX runtime is installed/);
  });

  it("turned off, its vectors can be removed", () => {
    const place = createPlace();
    ok(place, "index");
    const off: Place = { state: place.state };
    assert.match(lcm(off, "status").stdout, /meaning +off; remove its vectors with `lcm index --drop-vectors`/);
    assert.deepEqual(json(off, "grep", "car").hits, []);
    assert.match(ok(off, "index", "--drop-vectors").stdout, /vectors: removed those of 1 model/);
    assert.ok(!/meaning/.test(lcm(off, "status").stdout));
  });
});
