/** Lets every search go by meaning, too: embeds its words first, and goes on without where that fails. */

import { withDeadline } from "../base/deadline.ts";
import { embedAsBits } from "../model-calls/embedding.ts";
import type { Embedder } from "../model/embedder.ts";
import type { SearchLimits, SearchRequest, SearchResult, Store } from "../model/store.ts";

/** How long a search waits for the model, which may have to be loaded; at most half of the search's own time. */
const patienceMs = 5_000;

/** The same store, whose searches by relevance go by meaning, too. Closing it closes the embedder. */
export const searchingByMeaning = (store: Store, embedder: Embedder): Store => ({
  ...store,
  search: async (request, limits = {}) =>
    isMeant(request) ? await search(store, embedder, request, limits) : await store.search(request, limits),
  async close() {
    await embedder.close();
    await store.close();
  },
});

const isMeant = ({ mode, scope, sort, meaning }: SearchRequest): boolean =>
  mode === "full_text" &&
  (sort === "relevance" || sort === "hybrid") &&
  (scope === "messages" || scope === "both") &&
  meaning === undefined;

async function search(
  store: Store,
  embedder: Embedder,
  request: SearchRequest,
  limits: SearchLimits,
): Promise<SearchResult> {
  const texts = [request.pattern, ...(request.also ?? [])];
  const waitMs = Math.min(patienceMs, (limits.timeoutMs ?? Infinity) / 2);
  const embedded = await withDeadline(
    waitMs,
    limits.signal,
    async (signal) => await embedAsBits(embedder, { texts, kind: "query", signal }),
  );
  // What the model took is left to the search, which is mostly over in a fraction of its time.
  if (embedded.kind === "bits") {
    const { model, bits: vectors } = embedded;
    return await store.search({ ...request, meaning: { model, vectors } }, limits);
  }
  const result = await store.search(request, limits);
  const isLate = embedded.refusal === "cancelled";
  const reason = isLate ? `${embedder.name} did not answer within ${waitMs / 1_000} s` : embedded.message;
  return { ...result, caveats: [...result.caveats, { kind: "no_meaning", reason }] };
}
