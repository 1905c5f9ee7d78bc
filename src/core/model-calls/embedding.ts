/** Calls an embedding model, distrusts its answer, and turns vectors into one bit per dimension. */

import { beforeDeadline } from "../base/deadline.ts";
import { errorText } from "../base/errors.ts";
import type { Embedder, EmbedRequest } from "../model/embedder.ts";
import type { Refused } from "../model/language-model.ts";

/** Changes with what of a message is embedded and how its vector is kept; vectors made otherwise are made again. */
const recipe = 1;

export type Embedded =
  | Refused
  /** One per text. `model` also says how they were made, so that unequal ones never meet. */
  | { readonly kind: "bits"; readonly model: string; readonly bits: readonly Uint8Array[] };

/** Never throws, and ends with its signal even if the model does not. An answer with too few vectors, or with vectors of different lengths or without numbers, is a refusal. */
export async function embedAsBits(embedder: Embedder, request: EmbedRequest): Promise<Embedded> {
  try {
    const answer = await beforeDeadline(request.signal, embedder.embed(request), cancelled);
    if (answer.kind === "refused") return answer;
    const { model, vectors } = answer;
    const dims = vectors[0]?.length ?? 0;
    const problem = problemOf(vectors, request.texts.length, dims);
    if (problem !== null) return refused(`${embedder.name} ${problem}`);
    return { kind: "bits", model: `${model}/${dims}/${recipe}`, bits: vectors.map(toBits) };
  } catch (error) {
    return refused(`${embedder.name} failed: ${errorText(error)}`);
  }
}

const cancelled: Refused = { kind: "refused", refusal: "cancelled", message: "embedding was stopped" };

const refused = (message: string): Refused => ({ kind: "refused", refusal: "rejected", message });

const dimsMax = 16_384;

function problemOf(vectors: readonly Float32Array[], texts: number, dims: number): string | null {
  if (vectors.length !== texts) return `returned ${vectors.length} vectors for ${texts} texts`;
  if (dims === 0 || dims > dimsMax) return `returned vectors of ${dims} numbers`;
  if (vectors.some(({ length }) => length !== dims)) return "returned vectors of different lengths";
  const isEmpty = vectors.some((vector) => !vector.every(Number.isFinite) || vector.every((each) => each === 0));
  return isEmpty ? "returned a vector without numbers" : null;
}

/** The signs of a vector, padded to whole words. Never all zeros: zeros mean that there is no vector. */
export function toBits(vector: Float32Array): Uint8Array {
  const bits = new Uint8Array(4 * Math.ceil(vector.length / 32));
  for (const [at, value] of vector.entries()) if (value > 0) bits[at >> 3] = (bits[at >> 3] ?? 0) | (1 << (at & 7));
  if (bits.every((each) => each === 0)) bits[0] = 1;
  return bits;
}
