/**
 * The thread behind local-embedder.ts: loads an ONNX model once and embeds texts, so that no other thread is blocked.
 * Questions, for which someone waits, come before the texts that are embedded in the background.
 */

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { parentPort, workerData, type MessagePort } from "node:worker_threads";
import { errorText } from "../core/base/errors.ts";
import type { EmbedRequest } from "../core/model/embedder.ts";
import type { ModelFiles, Runtime } from "./model-folder.ts";
import { createTokenizer, type Tokenizer } from "./wordpiece.ts";

export const embedderThreadUrl = new URL(import.meta.url);

export interface EmbedderStart {
  readonly lcmEmbedder: true;
  readonly files: ModelFiles;
  readonly runtimes: readonly Runtime[];
}

export interface EmbedCall extends Pick<EmbedRequest, "kind" | "texts"> {
  readonly id: number;
}

export type EmbedReply =
  | { readonly id: number; readonly kind: "vectors"; readonly model: string; readonly vectors: readonly Float32Array[] }
  | { readonly id: number; readonly kind: "failed"; readonly message: string };

/** What of a text is embedded. With twice as many, gte-small takes longer and finds no more (decision 0042). */
const tokensMax = 128;

const isStart = (data: unknown): data is EmbedderStart =>
  typeof data === "object" && data !== null && "lcmEmbedder" in data;

if (parentPort !== null && isStart(workerData)) serve(parentPort, workerData);

function serve(port: MessagePort, start: EmbedderStart): void {
  const loaded = load(start);
  loaded.catch(() => undefined); // Each call gets the error; unhandled, it would end the thread without a reply.
  const waiting: EmbedCall[] = [];
  let isBusy = false;
  const work = async (): Promise<void> => {
    if (isBusy) return;
    isBusy = true;
    while (waiting.length > 0) {
      const urgent = waiting.findIndex(({ kind }) => kind === "query");
      const [call] = waiting.splice(Math.max(0, urgent), 1);
      if (call !== undefined) port.postMessage(await answer(loaded, call));
    }
    isBusy = false;
  };
  port.on("message", (call: EmbedCall) => {
    waiting.push(call);
    void work();
  });
}

async function answer(loaded: Promise<Loaded>, { id, kind, texts }: EmbedCall): Promise<EmbedReply> {
  try {
    const model = await loaded;
    return { id, kind: "vectors", model: model.id, vectors: await embed(model, kind, texts) };
  } catch (error) {
    return { id, kind: "failed", message: errorText(error) };
  }
}

/** The part of ONNX Runtime's API that is used; native and WASM have the same. */
interface Ort {
  readonly env: { readonly wasm?: { numThreads?: number } };
  readonly InferenceSession: {
    create(model: Uint8Array, options: Readonly<Record<string, unknown>>): Promise<OrtSession>;
  };
  readonly Tensor: new (type: "int64", data: BigInt64Array, dims: readonly number[]) => unknown;
}

interface OrtSession {
  readonly inputNames: readonly string[];
  run(feeds: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, OrtTensor>>>;
}

interface OrtTensor {
  readonly data: unknown;
  readonly dims: readonly number[];
}

interface Loaded {
  readonly id: string;
  readonly ort: Ort;
  readonly session: OrtSession;
  readonly tokenize: Tokenizer;
  readonly files: ModelFiles;
}

async function load({ files, runtimes }: EmbedderStart): Promise<Loaded> {
  const weights = readFileSync(files.weights);
  const digest = createHash("sha256").update(weights).digest("hex").slice(0, 8);
  const isJson = basename(files.vocabulary) === "tokenizer.json";
  const tokenize = createTokenizer(readFileSync(files.vocabulary, "utf8"), isJson ? "tokenizer.json" : "vocab.txt");
  const failures: string[] = [];
  for (const runtime of runtimes) {
    try {
      const ort = await importRuntime(runtime);
      if (ort.env.wasm !== undefined) ort.env.wasm.numThreads = 1;
      // Half of the machine at most: this is background work.
      const intraOpNumThreads = Math.max(1, availableParallelism() >> 1);
      const session = await ort.InferenceSession.create(weights, { intraOpNumThreads, interOpNumThreads: 1 });
      return { id: `local/${files.name}@${digest}`, ort, session, tokenize, files };
    } catch (error) {
      failures.push(`${runtime.name}: ${errorText(error)}`);
    }
  }
  throw new Error(`${files.weights} cannot be loaded: ${failures.join("; ")}`);
}

async function importRuntime({ path }: Runtime): Promise<Ort> {
  const found = (await import(pathToFileURL(path).href)) as Ort & { readonly default?: Ort };
  return found.default ?? found;
}

async function embed(
  { ort, session, tokenize, files }: Loaded,
  kind: EmbedCall["kind"],
  texts: EmbedCall["texts"],
): Promise<readonly Float32Array[]> {
  const rows = texts.map((text) => tokenize(files.prefixes[kind] + text, tokensMax));
  const width = Math.max(...rows.map((row) => row.length));
  const flat = (value: (row: readonly number[], at: number) => number): BigInt64Array =>
    BigInt64Array.from({ length: rows.length * width }, (_, at) =>
      BigInt(value(rows[Math.floor(at / width)] ?? [], at % width)),
    );
  const inputs: Readonly<Record<string, BigInt64Array>> = {
    input_ids: flat((row, at) => row[at] ?? 0),
    attention_mask: flat((row, at) => (at < row.length ? 1 : 0)),
    token_type_ids: flat(() => 0),
  };
  const feeds = Object.entries(inputs)
    .filter(([name]) => session.inputNames.includes(name))
    .map(([name, data]) => [name, new ort.Tensor("int64", data, [rows.length, width])] as const);
  const output = Object.values(await session.run(Object.fromEntries(feeds)))[0];
  if (output === undefined || !(output.data instanceof Float32Array)) throw new Error("the model returns no numbers");
  const { data, dims } = output;
  const size = dims.at(-1) ?? 0;
  // Some models pool by themselves.
  if (dims.length === 2) return rows.map((_, at) => data.slice(at * size, (at + 1) * size));
  return rows.map((row, at) => {
    const used = files.pooling === "first" ? 1 : row.length;
    const sum = new Float32Array(size);
    for (let token = 0; token < used; token++)
      for (let place = 0; place < size; place++)
        sum[place] = (sum[place] ?? 0) + (data[(at * width + token) * size + place] ?? 0) / used;
    return sum;
  });
}
