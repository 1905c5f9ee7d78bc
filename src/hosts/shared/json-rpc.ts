/**
 * One end of a JSON-RPC 2.0 connection with a message per line, the same for both ends. Requests can be cancelled and can
 * report progress. The end inside a host runs in whatever the host has (Bun, a Node older than ours), so this file uses
 * nothing that is younger than Node 20.
 */

import type { Readable, Writable } from "node:stream";
import { errorCodes, errorText, LcmError } from "../../core/base/errors.ts";
import { isObject, jsonText, type Json, type JsonObject } from "../../core/base/json.ts";

export interface CallContext {
  /** Aborts when the caller cancels or is gone. */
  readonly signal: AbortSignal;
  readonly progress: (message: string) => void;
}

export type Methods = Readonly<Record<string, (params: JsonObject, context: CallContext) => Promise<Json>>>;

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  /** The limit that an error names, if part of the time had already passed; otherwise `timeoutMs`. */
  readonly limitMs?: number | undefined;
  readonly onProgress?: ((message: string) => void) | undefined;
}

interface PeerOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly methods: Methods;
  /** Reads no further while the other end does not read. Only one end may do so. */
  readonly isPatient?: boolean;
}

/** A longer line is skipped; the longest that hosts write have images in them. */
const lineMax = 128 * 1024 * 1024;
/** Unsent text above which requests are refused: the other end does not read. */
const unsentMax = 64 * 1024 * 1024;
const runningMax = 1_000;

const codes = { parse: -32_700, request: -32_600, method: -32_601, failed: -32_000 } as const;

interface Waiting {
  readonly resolve: (value: Json) => void;
  readonly reject: (error: Error) => void;
  readonly onProgress: RequestOptions["onProgress"];
}

export class Peer {
  /** Resolves when the connection has ended, whoever ended it. */
  readonly ended: Promise<void>;
  readonly #options: PeerOptions;
  readonly #waiting = new Map<number, Waiting>();
  readonly #late = new Set<number>();
  readonly #running = new Map<Json, AbortController>();
  #count = 0;
  #hasEnded = false;
  #markEnded = (): void => undefined;

  constructor(options: PeerOptions) {
    this.#options = options;
    this.ended = new Promise<void>((resolve) => (this.#markEnded = resolve));
    options.output.on("error", this.end);
    options.output.on("close", this.end);
    void this.#read();
  }

  /** How many requests ran out of time and are still unanswered. */
  get late(): number {
    return this.#late.size;
  }

  /** Rejects with an `LcmError`: what the other end threw, or `unavailable` when it is late, cancelled or gone. */
  async request(method: string, params: JsonObject, options: RequestOptions = {}): Promise<Json> {
    const { signal, timeoutMs, limitMs = timeoutMs, onProgress } = options;
    if (this.#hasEnded) throw gone();
    if (this.#options.output.writableLength > unsentMax)
      throw new LcmError("unavailable", "the other end of the connection does not read");
    const id = ++this.#count;
    const giveUp = (why: string): void => {
      const call = this.#waiting.get(id);
      this.#waiting.delete(id);
      this.#send({ method: "cancel", params: { id } });
      call?.reject(new LcmError("unavailable", why));
    };
    const onAbort = (): void => giveUp(`${method} was cancelled`);
    const onTime = (): void => {
      this.#late.add(id);
      giveUp(`no answer to ${method} within ${limitMs} ms`);
    };
    const timer = timeoutMs === undefined ? undefined : setTimeout(onTime, timeoutMs);
    try {
      return await new Promise<Json>((resolve, reject) => {
        this.#waiting.set(id, { resolve, reject, onProgress });
        this.#send({ id, method, params });
        signal?.addEventListener("abort", onAbort, { once: true });
        if (signal?.aborted === true) onAbort();
      });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  readonly end = (): void => {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    for (const call of this.#running.values()) call.abort(gone());
    for (const call of this.#waiting.values()) call.reject(gone());
    this.#waiting.clear();
    this.#late.clear();
    this.#markEnded();
    this.#options.input.destroy();
    this.#options.output.end();
  };

  async #read(): Promise<void> {
    const { input, output, isPatient = false } = this.#options;
    try {
      for await (const line of linesOf(input)) {
        if (line === null) this.#fail(null, codes.parse, "this line is too long");
        else if (line.trim() !== "") this.#receive(line);
        if (isPatient && output.writableNeedDrain) await drained(output, this.ended);
      }
    } catch {
      // A broken stream is the end of the connection, like one that ends.
    }
    this.end();
  }

  #receive(line: string): void {
    const message = parse(line);
    if (message === undefined) return this.#fail(null, codes.parse, "this line is not JSON");
    if (!isObject(message)) return this.#fail(null, codes.request, "this line is not a JSON object");
    const { id, method } = message;
    const params = isObject(message["params"]) ? message["params"] : {};
    if (typeof method === "string") {
      if (id === undefined || id === null) this.#hear(method, params);
      else void this.#serve(id, method, params);
    } else if (typeof id === "number") this.#settle(id, message);
    // The answer to a line that was not JSON has no id; answering it in turn would never end.
    else if (message["error"] === undefined)
      this.#fail(null, codes.request, "this line is neither a request nor an answer");
  }

  async #serve(id: Json, name: string, params: JsonObject): Promise<void> {
    const { methods } = this.#options;
    const method = Object.hasOwn(methods, name) ? methods[name] : undefined;
    if (method === undefined) return this.#fail(id, codes.method, `there is no method ${name}`);
    if (this.#running.size >= runningMax) return this.#fail(id, codes.failed, "too many calls at once");
    const stop = new AbortController();
    this.#running.set(id, stop);
    try {
      const progress = (message: string): void => this.#send({ method: "progress", params: { id, message } });
      this.#send({ id, result: await method(params, { signal: stop.signal, progress }) });
    } catch (error) {
      const { code = "unavailable", hint } = error instanceof LcmError ? error : {};
      this.#fail(id, codes.failed, errorText(error), { code, ...(hint === undefined ? {} : { hint }) });
    } finally {
      this.#running.delete(id);
    }
  }

  #settle(id: number, { error, result }: JsonObject): void {
    const call = this.#waiting.get(id);
    this.#waiting.delete(id);
    this.#late.delete(id);
    if (isObject(error)) call?.reject(errorOf(error));
    else call?.resolve(result ?? null);
  }

  #hear(method: string, { id, message }: JsonObject): void {
    if (method === "cancel") this.#running.get(id ?? null)?.abort(new LcmError("unavailable", "cancelled"));
    if (method === "progress" && typeof id === "number" && typeof message === "string")
      this.#waiting.get(id)?.onProgress?.(message);
  }

  #send(message: JsonObject): void {
    if (!this.#hasEnded) this.#options.output.write(`${jsonText({ jsonrpc: "2.0", ...message })}\n`);
  }

  #fail(id: Json, code: number, message: string, data: JsonObject = { code: "unavailable" }): void {
    this.#send({ id, error: { code, message, data } });
  }
}

const gone = (): LcmError => new LcmError("unavailable", "the connection has ended");

function parse(line: string): Json | undefined {
  try {
    return JSON.parse(line) as Json;
  } catch {
    return undefined; // Whatever is wrong with the line, it is skipped.
  }
}

function errorOf({ message, data }: JsonObject): LcmError {
  const { code, hint } = isObject(data) ? data : {};
  const known = errorCodes.find((each) => each === code) ?? "unavailable";
  return new LcmError(known, errorText(message), typeof hint === "string" ? { hint } : {});
}

/** Null for a line that is too long. */
async function* linesOf(input: Readable): AsyncGenerator<string | null> {
  input.setEncoding("utf8");
  let rest: string[] = [];
  let length = 0;
  for await (const chunk of input as AsyncIterable<string>) {
    const [first = "", ...more] = chunk.split("\n");
    for (const piece of [first, ...more].entries()) {
      const [at, text] = piece;
      if (at > 0) {
        yield length > lineMax ? null : rest.join("");
        [rest, length] = [[], 0];
      }
      length += text.length;
      if (length <= lineMax) rest.push(text);
      else rest = [];
    }
  }
  if (length > 0 && length <= lineMax) yield rest.join("");
}

async function drained(output: Writable, ended: Promise<void>): Promise<void> {
  let go = (): void => undefined;
  const writable = new Promise<void>((resolve) => (go = resolve));
  output.once("drain", go);
  await Promise.race([writable, ended]);
  output.off("drain", go);
}
