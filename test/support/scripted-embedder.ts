/** An embedder for tests: a text's vector is the sum of its words', and words that mean the same have the same. */

import type { Embedder, Embedding, EmbedRequest } from "../../src/core/model/embedder.ts";

export interface ScriptedEmbedder extends Embedder {
  /** Every request so far. */
  readonly asked: readonly EmbedRequest[];
  isClosed(): boolean;
  /** What it answers from now on; undefined for the usual vectors. */
  play(answer: ((request: EmbedRequest) => Embedding | Promise<Embedding>) | undefined): void;
}

const dims = 256;

/** `same` lists words that mean the same. */
export function createScriptedEmbedder(
  same: readonly (readonly string[])[] = [],
  { name = "scripted", batch = 8 }: { readonly name?: string; readonly batch?: number } = {},
): ScriptedEmbedder {
  const asked: EmbedRequest[] = [];
  const concepts = new Map(same.flatMap(([first = "", ...others]) => others.map((word) => [word, first] as const)));
  let played: ((request: EmbedRequest) => Embedding | Promise<Embedding>) | undefined;
  let isClosed = false;
  return {
    name,
    batch,
    asked,
    isClosed: () => isClosed,
    play: (answer) => void (played = answer),
    async embed(request) {
      asked.push(request);
      if (played !== undefined) return await played(request);
      return {
        kind: "vectors",
        model: `test/${name}`,
        vectors: request.texts.map((text) => vectorOf(text, concepts)),
      };
    },
    close: async () => await Promise.resolve(void (isClosed = true)),
  };
}

/** Some numbers that depend only on the words. */
export function vectorOf(text: string, concepts: ReadonlyMap<string, string> = new Map()): Float32Array {
  const vector = new Float32Array(dims).fill(0.001);
  for (const [word] of text.toLowerCase().matchAll(/[\p{L}\p{N}]+/gu)) {
    let state = 1;
    for (const letter of concepts.get(word) ?? word)
      state = (state * 31 + (letter.codePointAt(0) ?? 0)) % 2_147_483_647;
    for (let at = 0; at < dims; at++) {
      state = (state * 48_271) % 2_147_483_647;
      vector[at] = (vector[at] ?? 0) + (state % 2 === 0 ? 1 : -1);
    }
  }
  return vector;
}

export const refusing = (message: string): Embedding => ({ kind: "refused", refusal: "unreachable", message });
