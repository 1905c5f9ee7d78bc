/** Calls to an object that lives in a thread: both ends. */

import type { MessagePort, Worker } from "node:worker_threads";
import { LcmError, type ErrorCode } from "../../core/base/errors.ts";

interface Call {
  readonly id: number;
  readonly method: string;
  readonly args: readonly unknown[];
}

export type Reply =
  | { readonly id: number; readonly kind: "value"; readonly value: unknown }
  | { readonly id: number; readonly kind: "error"; readonly error: Failure }
  /** These answer no call: progress, and that calls are answered from now on. */
  | { readonly kind: "report"; readonly message: string }
  | { readonly kind: "ready" };

interface Failure {
  readonly code: ErrorCode | null;
  readonly message: string;
  readonly hint: string | undefined;
  readonly stack: string | undefined;
}

/** Answers calls in the thread; the first call gets the error if the object cannot be made. */
export function answerCalls<Methods extends object>(port: MessagePort, opened: Promise<Methods>): void {
  // Unhandled, a failure would end the thread without a reply.
  opened.then(() => port.postMessage({ kind: "ready" } satisfies Reply)).catch(() => undefined);
  port.on("message", ({ id, method, args }: Call) => {
    void reply(port, id, async () => {
      const methods = (await opened) as Readonly<Record<string, (...given: readonly unknown[]) => unknown>>;
      return await methods[method]?.(...args);
    });
  });
}

/** Answers one call with what the work returns or throws. */
export async function reply(port: MessagePort, id: number, work: () => Promise<unknown>): Promise<void> {
  try {
    port.postMessage({ id, kind: "value", value: await work() } satisfies Reply);
  } catch (error) {
    port.postMessage({ id, kind: "error", error: failureOf(error) } satisfies Reply);
  }
}

const failureOf = (error: unknown): Failure => ({
  code: error instanceof LcmError ? error.code : null,
  message: error instanceof Error ? error.message : String(error),
  hint: error instanceof LcmError ? error.hint : undefined,
  stack: error instanceof Error ? error.stack : undefined,
});

export interface Thread<Method extends string = string> {
  call(method: Method, args: readonly unknown[]): Promise<unknown>;
  /** Whether it has started, so that a call need not wait for that. */
  isReady(): boolean;
  /** False once the thread has failed or ended; then every call fails. */
  isAlive(): boolean;
  /** Stops the thread at once; pending calls fail as `unavailable`. */
  end(): Promise<void>;
}

/** The end that calls. The thread keeps the process alive only while a call waits for its reply. */
export function callThread<Method extends string>(worker: Worker, report?: (message: string) => void): Thread<Method> {
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  let lastId = 0;
  let fate: LcmError | null = null;
  let isReady = false;
  let isEnding = false;

  const failAll = (error: LcmError): void => {
    fate ??= error;
    for (const { reject } of waiting.values()) reject(fate);
    waiting.clear();
    worker.unref();
  };
  worker.on("message", (reply: Reply) => {
    if (reply.kind === "report") return report?.(reply.message);
    if (reply.kind === "ready") return void (isReady = true);
    const call = waiting.get(reply.id);
    waiting.delete(reply.id);
    if (waiting.size === 0) worker.unref();
    if (reply.kind === "value") call?.resolve(reply.value);
    else call?.reject(errorOf(reply.error));
  });
  worker.on("error", (cause) => failAll(new LcmError("unavailable", "the store's thread failed", { cause })));
  worker.on("exit", () =>
    failAll(isEnding ? closed() : new LcmError("unavailable", "the store's thread ended unexpectedly")),
  );
  worker.unref();

  return {
    call(method, args) {
      if (fate !== null) return Promise.reject(fate);
      const call = Promise.withResolvers<unknown>();
      const id = ++lastId;
      waiting.set(id, call);
      worker.ref(); // Keeps the process alive until the reply.
      try {
        worker.postMessage({ id, method, args } satisfies Call);
      } catch (cause) {
        waiting.delete(id);
        if (waiting.size === 0) worker.unref();
        call.reject(new LcmError("invalid", `an argument of ${method} cannot be passed to a thread`, { cause }));
      }
      return call.promise;
    },
    isReady: () => isReady,
    isAlive: () => fate === null,
    async end() {
      isEnding = true;
      await worker.terminate();
    },
  };
}

export function errorOf({ code, message, hint, stack }: Failure): Error {
  if (code !== null) return new LcmError(code, message, hint === undefined ? {} : { hint });
  const error = new Error(message);
  if (stack !== undefined) error.stack = stack;
  return error;
}

export const closed = (): LcmError => new LcmError("unavailable", "the store is closed");
