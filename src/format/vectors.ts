/** What is wrong with the vectors that search by meaning needs: none, too few, or those of another model. */

import { formatCount, plural } from "../core/base/format.ts";
import type { StoreStatus } from "../core/model/store.ts";
import { oneLine } from "./safe-text.ts";

type Stored = Pick<StoreStatus, "vectors" | "embedders" | "messages">;

/** Null if there is nothing to say. `embedder`: as configured; null if search goes by words alone. */
export function vectorProblem(embedder: string | null, { vectors, embedders, messages }: Stored): string | null {
  const models = vectors.map(({ model }) => oneLine(model)).join(", ");
  if (embedder === null) return vectors.length === 0 ? null : `search by meaning is off, but has vectors of ${models}`;
  if (messages === 0) return null;
  if (vectors.length === 0) return "no message has a vector yet";
  if (!embedders.some(({ name, embedded }) => name === embedder && embedded > 0))
    return `the vectors are of another model (${models}), not of ${oneLine(embedder)}`;
  const pending = Math.min(...vectors.map((each) => each.pending));
  if (pending > 0) return `${formatCount(pending)} of ${plural(messages, "message")} have no vector yet`;
  return vectors.length === 1 ? null : `vectors of several models are stored (${models})`;
}

/** The command that puts it right. */
export const vectorRemedy = (embedder: string | null): string =>
  embedder === null ? "lcm index --drop-vectors" : "lcm index";
