/** Embeds texts with a local ONNX model in a thread of its own, which is started on first use. */

import { Worker } from "node:worker_threads";
import { errorText, LcmError } from "../core/base/errors.ts";
import type { Embedder, EmbedRequest, Embedding } from "../core/model/embedder.ts";
import type { Refused } from "../core/model/language-model.ts";
import { embedderThreadUrl, type EmbedCall, type EmbedderStart, type EmbedReply } from "./embedder-thread.ts";
import { findModel, findRuntimes } from "./model-folder.ts";

/** Few, so that a question does not wait long behind them. */
const batch = 8;

/** `named` is a path or a package; packages and runtimes are looked for from these folders upwards. */
export function createLocalEmbedder(named: string, places: readonly string[]): Embedder {
  let thread: Promise<Thread> | null = null;
  const start = async (): Promise<Thread> => {
    const mine = (thread ??= startThread(named, places));
    return await mine;
  };
  const forget = async (): Promise<void> => {
    const old = thread;
    thread = null;
    await (await old?.catch(() => null))?.end(); // One that failed to start needs no ending.
  };
  return {
    name: `local:${named}`,
    batch,
    async embed(request) {
      try {
        const answer = await (await start()).call(request);
        // What is missing may be installed before the next call.
        if (answer.kind === "refused" && answer.refusal !== "cancelled") await forget();
        return answer;
      } catch (error) {
        await forget();
        const hint = error instanceof LcmError && error.hint !== undefined ? ` (${error.hint})` : "";
        return refused("unknown_model", `${errorText(error)}${hint}`);
      }
    },
    close: forget,
  };
}

const refused = (refusal: Refused["refusal"], message: string): Refused => ({ kind: "refused", refusal, message });

interface Thread {
  call(request: EmbedRequest): Promise<Embedding>;
  end(): Promise<void>;
}

async function startThread(named: string, places: readonly string[]): Promise<Thread> {
  const files = await findModel(named, places);
  const runtimes = findRuntimes([files.weights, ...places]);
  const worker = new Worker(embedderThreadUrl, {
    workerData: { lcmEmbedder: true, files, runtimes } satisfies EmbedderStart,
  });
  const waiting = new Map<number, (answer: Embedding) => void>();
  let lastId = 0;
  let fate: Refused | null = null;
  const settle = (id: number, answer: Embedding): void => {
    waiting.get(id)?.(answer);
    waiting.delete(id);
    if (waiting.size === 0) worker.unref();
  };
  const failAll = (message: string): void => {
    fate ??= refused("overloaded", `the thread of the local model ended: ${message}`);
    for (const id of waiting.keys()) settle(id, fate);
  };
  worker.on("message", (reply: EmbedReply) =>
    settle(reply.id, reply.kind === "vectors" ? reply : refused("rejected", reply.message)),
  );
  worker.on("error", (error) => failAll(errorText(error)));
  worker.on("exit", (status) => failAll(`status ${status}`));
  worker.unref();
  return {
    async call({ texts, kind, signal }) {
      if (fate !== null) return fate;
      const id = ++lastId;
      const answer = Promise.withResolvers<Embedding>();
      waiting.set(id, answer.resolve);
      const cancel = (): void => settle(id, refused("cancelled", "the local model did not answer in time"));
      signal?.addEventListener("abort", cancel, { once: true });
      worker.ref(); // Keeps the process alive until the reply.
      worker.postMessage({ id, kind, texts } satisfies EmbedCall);
      if (signal?.aborted === true) cancel();
      try {
        return await answer.promise;
      } finally {
        signal?.removeEventListener("abort", cancel);
      }
    },
    end: async () => void (await worker.terminate()),
  };
}
