/**
 * When summaries are written. A fold changes the beginning of the prompt, and the provider then reads all of it anew; so it
 * waits until the session has been idle for longer than the provider's cache lives, unless there is hardly any room left.
 */

import type { Due } from "../core/compaction/due.ts";
import type { Lcm } from "../core/lcm.ts";
import type { Model } from "../core/model/store.ts";
import type { ConversationId } from "../core/model/types.ts";
import type { Runtime } from "../hosts/shared/runtime.ts";

/** Anthropic's prompt cache lives five minutes after it was last read; OpenAI's five to ten. */
export const cacheMs = 5 * 60_000;

/** Of the budget; above it, a fold cannot wait, because the next turn may not fit any more. */
const shareMax = 0.9;

export function foldTime({ kind, promptTokens, budget }: Pick<Due, "kind" | "promptTokens" | "budget">) {
  if (kind === "nothing") return "never";
  // Somebody who wants one fold after each turn (`contextTarget` 0) gets it.
  return kind === "incremental" || promptTokens > shareMax * budget ? "now" : "when idle";
}

export interface Folding {
  /** The session is not idle: a request of it has come. */
  stir(conversation: ConversationId): void;
  /** After an answer: folds now, or when the session has been idle for long enough. */
  consider(lcm: Lcm, conversation: ConversationId, model: Model | null): Promise<void>;
  /** Nothing more will come: what waits is folded now. */
  flush(): void;
}

export function createFolding(runtime: Pick<Runtime, "compactSoon">, idleMs = cacheMs): Folding {
  const waiting = new Map<ConversationId, { readonly timer: NodeJS.Timeout; readonly fold: () => void }>();
  const stir = (conversation: ConversationId): void => {
    clearTimeout(waiting.get(conversation)?.timer);
    waiting.delete(conversation);
  };
  return {
    stir,
    async consider(lcm, conversation, model) {
      const when = foldTime(await lcm.due(conversation));
      stir(conversation);
      const fold = (): void => {
        stir(conversation);
        runtime.compactSoon(conversation, model);
      };
      if (when === "now") fold();
      else if (when === "when idle") waiting.set(conversation, { timer: setTimeout(fold, idleMs).unref(), fold });
    },
    flush() {
      for (const { fold } of waiting.values()) fold();
    },
  };
}
