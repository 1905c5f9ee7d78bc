/** Embeds messages that have no vector yet, in small steps that can be stopped and continued at any time. */

import { LcmError } from "../base/errors.ts";
import { embedAsBits, type Embedded } from "../model-calls/embedding.ts";
import type { Embedder } from "../model/embedder.ts";
import type { PendingVectors, Store } from "../model/store.ts";

export interface MakeVectorsOptions {
  readonly signal?: AbortSignal;
  /** Called after each step, with the totals so far. */
  readonly onProgress?: (made: MadeVectors) => void;
  /** Called between steps; a host rests here, so that its machine is free for other work. */
  readonly rest?: () => Promise<void>;
}

export interface MadeVectors {
  /** Messages that were embedded, and those that needed no vector. */
  readonly embedded: number;
  readonly skipped: number;
  /** What identifies the model, once it has answered. */
  readonly model: string | null;
  /** Models whose vectors were removed, because those of this one are complete. */
  readonly dropped: number;
  readonly outcome: "complete" | "stopped" | "failed";
  /** Why it failed. */
  readonly problem: string | null;
}

interface MakeDeps {
  readonly store: Store;
  readonly embedder: Embedder | null;
}

/** Texts of about the same length are embedded together, because the longest decides how long a call takes. */
const messagesPerStep = 64;

/** A model that refuses is an outcome, which the store's status shows as well. Throws what the store throws. */
export async function makeVectors(
  { store, embedder }: MakeDeps,
  options: MakeVectorsOptions = {},
): Promise<MadeVectors> {
  if (embedder === null) {
    throw new LcmError("invalid", "no embedding model is configured", {
      hint: "set LCM_EMBEDDER, for example to ollama:nomic-embed-text or local:FOLDER",
    });
  }
  const made = await embedPending(store, embedder, options);
  const failure = made.outcome === "failed" ? made.problem : null;
  await store.recordEmbedder({ name: embedder.name, embedded: made.embedded, failure });
  return made.outcome === "complete" ? { ...made, dropped: await store.dropVectors(made.model) } : made;
}

async function embedPending(store: Store, embedder: Embedder, options: MakeVectorsOptions): Promise<MadeVectors> {
  const { signal, onProgress, rest } = options;
  const identified = await embedStep(embedder, { texts: [""] }, signal);
  const model = identified.kind === "bits" ? identified.model : null;
  let made: MadeVectors = { embedded: 0, skipped: 0, model, dropped: 0, outcome: "stopped", problem: null };
  const ended = (problem: string): MadeVectors =>
    signal?.aborted === true ? made : { ...made, outcome: "failed", problem };
  if (identified.kind === "refused") return ended(identified.message);
  const isStopped = (): boolean => signal?.aborted === true;
  while (!isStopped()) {
    const pending = await store.pendingVectors(identified.model, messagesPerStep);
    if (pending === null) return { ...made, outcome: "complete" };
    const step = await embedStep(embedder, pending, signal);
    if (step.kind === "refused") return ended(step.message);
    // The next run makes those of the new one.
    if (step.model !== identified.model) return ended("the model was replaced by another one meanwhile");
    const { conversation, firstSeq, forgets } = pending;
    const saved = await store.saveVectors({ conversation, firstSeq, forgets, model: step.model, vectors: step.bits });
    // If stale, nothing of it was stored, and it is read again.
    if (saved.kind === "written") {
      const embedded = pending.texts.filter((text) => text !== "").length;
      const skipped = pending.texts.length - embedded;
      made = { ...made, embedded: made.embedded + embedded, skipped: made.skipped + skipped };
      onProgress?.(made);
    }
    await rest?.();
  }
  return made;
}

/** The bits of all texts, in order. */
async function embedStep(
  embedder: Embedder,
  { texts }: Pick<PendingVectors, "texts">,
  signal: AbortSignal | undefined,
): Promise<Embedded> {
  const filled = [...texts.keys()]
    .filter((at) => texts[at] !== "")
    .toSorted((one, other) => (texts[one]?.length ?? 0) - (texts[other]?.length ?? 0));
  const found = new Map<number, Uint8Array>();
  let model = "";
  for (let from = 0; from < Math.max(1, filled.length); from += embedder.batch) {
    const part = filled.slice(from, from + embedder.batch);
    // Without any text the model's name and size are still needed.
    const asked = part.length === 0 ? ["hello"] : part.map((at) => texts[at] ?? "");
    const answer = await embedAsBits(embedder, { texts: asked, kind: "passage", ...(signal && { signal }) });
    if (answer.kind === "refused" || signal?.aborted === true) return answer;
    if (model !== "" && model !== answer.model) return answer;
    model = answer.model;
    for (const [place, bits] of answer.bits.entries()) found.set(part[place] ?? -1, bits);
  }
  const [some = new Uint8Array(4)] = found.values();
  return { kind: "bits", model, bits: texts.map((_, at) => found.get(at) ?? new Uint8Array(some.length)) };
}
