/** How long a model has been waited for, so that whoever sits there knows that it is not stuck, and when it gives up. */

import type { Model } from "../core/model/store.ts";
import { cut } from "./width.ts";

export interface Watched {
  /** The same model, watched. */
  readonly model: Model;
  /** `waiting for anthropic/claude…, 37 s of 120 s`; null while nobody waits, or not for long. */
  wait(nameColumns: number): string | null;
}

/** An answer that comes sooner needs no words. */
const patienceMs = 2_000;

export function watchModel(
  model: Model,
  timeoutSeconds: number,
  nowMs: () => number = () => performance.now(),
): Watched {
  const since = new Set<{ readonly ms: number }>();
  return {
    model: {
      ...model,
      async complete(request) {
        const start = { ms: nowMs() };
        since.add(start);
        try {
          return await model.complete(request);
        } finally {
          since.delete(start);
        }
      },
    },
    wait(nameColumns) {
      const [longest] = since; // In the order in which they began.
      const waitedMs = longest === undefined ? 0 : nowMs() - longest.ms;
      if (waitedMs < patienceMs) return null;
      const name = cut(`${model.provider}/${model.name}`, nameColumns);
      return `waiting for ${name}, ${Math.floor(waitedMs / 1_000)} s of ${timeoutSeconds} s`;
    },
  };
}
