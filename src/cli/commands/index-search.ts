/** `lcm index`: brings the search index up to date, and makes the vectors for search by meaning. */

import type { Lcm } from "../../core/lcm.ts";
import type { MadeVectors } from "../../core/recall/make-vectors.ts";
import { formatCount, plural } from "../../core/base/format.ts";
import { exitInterrupted, exitUnavailable } from "../failure.ts";
import { flag, maybe, object, oneOf, text, whole } from "./_json.ts";
import { defineCommand, exitOk, indexAll, withLcm, type Session } from "./_session.ts";
import { stoppedBy } from "./_stopping.ts";
import { oneLine } from "../../format/safe-text.ts";

const json = object({
  indexed: whole,
  dropped: whole,
  vectors: maybe(
    object({
      outcome: oneOf("complete", "stopped", "failed"),
      model: maybe(text),
      embedded: whole,
      skipped: whole,
      pending: whole,
      problem: maybe(text),
      isResumable: flag,
    }),
  ),
});

export const indexCommand = defineCommand({
  name: "index",
  json,
  summary: "update the search index, and embed messages for search by meaning",
  description:
    "Update the search index. If an embedding model is configured (LCM_EMBEDDER), also embed every message that has no " +
    "vector of this model yet; vectors of other models are removed once all are done. A host does both by itself, in the " +
    "background.",
  options: {
    words: ["--words", "update only the index of words"],
    dropVectors: ["--drop-vectors", "remove all vectors, after turning search by meaning off"],
  },
  exclusive: [["words", "dropVectors"]],
  examples: [
    ["lcm index", "index and embed what is new"],
    ["LCM_EMBEDDER=ollama:nomic-embed-text lcm index", "embed with a model that Ollama serves"],
    ["lcm index --drop-vectors", "remove all vectors"],
  ],
  notes: "Exit status 6: the embedding model could not be used; run the command again to continue.",
  async run(session, options) {
    const { values } = await session.context.settings();
    const isMeant = values.embedder !== null && options.words !== true && options.dropVectors !== true;
    return await withLcm(session, "change", async (lcm) => {
      const indexed = await indexAll(session, lcm);
      const dropped = options.dropVectors === true ? await lcm.store.dropVectors(null) : 0;
      const made = isMeant ? await embedAll(session, lcm) : null;
      const { vectors, messages } = await lcm.store.status();
      // A model that never answered has no vectors at all.
      const none = made === null || made.outcome === "complete" ? 0 : messages;
      const pending = vectors.find(({ model }) => model === made?.model)?.pending ?? none;
      if (session.json) {
        session.printJson(json, { indexed, ...madeJson(dropped, made, pending) });
      } else {
        session.print(`search index: ${indexed === 0 ? "up to date" : `${plural(indexed, "row")} added`}`);
        if (options.dropVectors === true) session.print(`vectors: removed those of ${plural(dropped, "model")}`);
        if (made !== null) for (const line of madeLines(session, made, pending)) session.print(line);
        if (values.embedder === null && options.dropVectors !== true)
          session.note(session.paint.soft("no embedding model is configured, so search goes by words alone"));
      }
      if (made?.outcome === "failed") return exitUnavailable;
      return session.signal.aborted && stoppedBy(session.signal) === "interrupt" ? exitInterrupted : exitOk;
    });
  },
});

function madeJson(byHand: number, made: MadeVectors | null, pending: number) {
  if (made === null) return { dropped: byHand, vectors: null };
  const { dropped, ...vectors } = made;
  return {
    dropped: byHand + dropped,
    vectors: { ...vectors, pending, isResumable: made.outcome !== "complete" },
  };
}

async function embedAll(session: Session, lcm: Lcm): Promise<MadeVectors> {
  const { vectors, messages } = await lcm.store.status();
  const progress = session.progress("embedding messages");
  let of = messages;
  try {
    return await lcm.makeVectors({
      signal: session.signal,
      onProgress({ embedded, skipped, model }) {
        of = vectors.find((each) => each.model === model)?.pending ?? messages;
        const done = embedded + skipped;
        progress.update({ done, of: Math.max(of, done), unit: "messages" });
      },
    });
  } finally {
    progress.end();
  }
}

function madeLines({ paint }: Session, made: MadeVectors, pending: number): readonly string[] {
  const { embedded, skipped, model, dropped, outcome, problem } = made;
  const without = skipped === 0 ? "" : `, ${formatCount(skipped)} without text skipped`;
  const lines = [`vectors: ${plural(embedded, "message")} embedded${without}; model ${oneLine(model ?? "unknown")}`];
  if (dropped > 0) lines.push(`removed the vectors of ${plural(dropped, "other model")}`);
  if (outcome === "stopped")
    lines.push(paint.caution(`stopped: ${formatCount(pending)} to do; run it again to continue`));
  if (outcome === "failed") lines.push(paint.bad(`stopped: ${oneLine(problem ?? "")}`));
  return lines;
}
