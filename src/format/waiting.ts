/** Reports how long a model call has been running, and when it will time out. */

import type { Model } from "../core/model/store.ts";
import { cut } from "./width.ts";

export interface Watched {
  /** The same model, with its calls timed. */
  readonly model: Model;
  /** `waiting for anthropic/claude…, 37 s of 120 s`; null if no call is running, or not for long. */
  wait(nameColumns: number): string | null;
}

/** Shorter waits are not reported. */
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
      const [longest] = since; // Sets keep insertion order.
      const waitedMs = longest === undefined ? 0 : nowMs() - longest.ms;
      if (waitedMs < patienceMs) return null;
      const name = cut(`${model.provider}/${model.name}`, nameColumns);
      return `waiting for ${name}, ${Math.floor(waitedMs / 1_000)} s of ${timeoutSeconds} s`;
    },
  };
}
