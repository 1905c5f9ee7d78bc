/**
 * Serves a HostEngine to one client over JSON-RPC, a message per line (`lcm serve`). The client greets first and says who
 * it is; the service ends with its input. The other end is remote-engine.ts.
 */

import type { Readable, Writable } from "node:stream";
import { errorText, LcmError } from "../../core/base/errors.ts";
import { isObject, type Json, type JsonObject } from "../../core/base/json.ts";
import type { Completion, Model } from "../../core/model/store.ts";
import type { HostWords } from "./chat-commands.ts";
import type { CompactRequest, HostEngine, PromptRequest } from "./engine.ts";
import { Peer, type Methods } from "./json-rpc.ts";
import type { ProviderAnswer } from "./live-session.ts";
import { hostNames, type HostName } from "./rows/row-format.ts";
import type { HostSession } from "./sessions.ts";
import { protocol } from "./side-process.ts";

/** What a client says about itself. */
export interface Greeting {
  readonly host: HostName;
  readonly words: HostWords;
  /** The client's own model; null if it offers none. */
  readonly model: Model | null;
}

export interface ServeOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly version: string;
  /** Ends the service, as the end of the input does. */
  readonly signal?: AbortSignal;
  createEngine(greeting: Greeting): Promise<HostEngine>;
}

export async function serveEngine(options: ServeOptions): Promise<void> {
  const { input, output, version, signal } = options;
  let engine: Promise<HostEngine> | null = null;
  const greeted = async (): Promise<HostEngine> => {
    if (engine === null) throw new LcmError("invalid", "the first call must be hello");
    return await engine;
  };
  const methods: Methods = {
    async hello(params) {
      if (params["protocol"] === protocol) engine ??= options.createEngine(greetingIn(params, peer));
      await engine;
      return { protocol, version };
    },
    ...methodsOf(greeted),
  };
  const peer: Peer = new Peer({ input, output, methods, isPatient: true });
  signal?.addEventListener("abort", peer.end, { once: true });
  if (signal?.aborted === true) peer.end();
  await peer.ended;
  signal?.removeEventListener("abort", peer.end);
  // Not waited for if it never came to be.
  await (engine as Promise<HostEngine> | null)?.then(async (opened) => await opened.close()).catch(() => undefined);
}

function methodsOf(engine: () => Promise<HostEngine>): Methods {
  return {
    store: async (params) =>
      await (await engine()).store(sessionIn(params), listIn(params, "rows"), numberIn(params, "from")),
    prompt: async (params) =>
      toJson(await (await engine()).prompt(sessionIn(params), objectIn(params, "request") as object as PromptRequest)),
    async learn(params) {
      await (await engine()).learn(sessionIn(params), objectIn(params, "answer") as object as ProviderAnswer);
      return null;
    },
    async foldSoon(params) {
      await (await engine()).foldSoon(sessionIn(params));
      return null;
    },
    compact: async (params, { signal }) =>
      toJson(
        await (
          await engine()
        ).compact(sessionIn(params), objectIn(params, "request") as object as CompactRequest, signal),
      ),
    async tool(params, { signal, progress }) {
      const call = { name: stringIn(params, "name"), args: params["args"] ?? null, onProgress: progress };
      return toJson(await (await engine()).tool(sessionIn(params), call, signal));
    },
    command: async (params) => await (await engine()).command(sessionIn(params), stringIn(params, "words")),
  };
}

function greetingIn(params: JsonObject, peer: Peer): Greeting {
  const { name, shell, ownCompaction } = objectIn(params, "words");
  const text = (value: Json | undefined, otherwise: string): string => (typeof value === "string" ? value : otherwise);
  const host = hostIn(params);
  return {
    host,
    words: {
      name: text(name, host),
      shell: text(shell, "lcm"),
      ownCompaction: text(ownCompaction, "the host compacts it"),
    },
    model: params["hasModel"] === true ? createAskedModel(peer, host) : null,
  };
}

/** The client's model, asked over the connection. It gets text only. */
function createAskedModel(peer: Peer, host: HostName): Model {
  return {
    provider: host,
    name: "the host's model",
    async complete({ signal, system, prompt, temperature, maxOutputTokens, purpose }) {
      try {
        const params = { system, prompt, temperature, maxOutputTokens, purpose };
        const answer = await peer.request("complete", params, { signal });
        if (isObject(answer) && typeof answer["kind"] === "string") return answer as object as Completion;
        return { kind: "refused", refusal: "rejected", message: "the host's model gave no answer" };
      } catch (error) {
        const refusal = signal?.aborted === true ? "timeout" : "unreachable";
        return { kind: "refused", refusal, message: errorText(error) };
      }
    },
  };
}

// ── What comes over the wire ─────────────────────────────────────────────────────────────────────────────────────────

/** Answers are JSON already, but for fields that are undefined. */
const toJson = (value: object | null): Json => value as Json;

function sessionIn(params: JsonObject): HostSession {
  const session = objectIn(params, "session");
  const { folder, parentSessionId } = session;
  return {
    host: hostIn(session),
    sessionId: stringIn(session, "sessionId"),
    folder: typeof folder === "string" ? folder : null,
    parentSessionId: typeof parentSessionId === "string" ? parentSessionId : null,
  };
}

function hostIn({ host }: JsonObject): HostName {
  const known = hostNames.find((name) => name === host);
  if (known === undefined) throw new LcmError("invalid", `host must be one of ${hostNames.join(", ")}`);
  return known;
}

function objectIn(params: JsonObject, name: string): JsonObject {
  const value = params[name];
  if (!isObject(value)) throw new LcmError("invalid", `${name} must be an object`);
  return value;
}

function stringIn(params: JsonObject, name: string): string {
  const value = params[name];
  if (typeof value !== "string") throw new LcmError("invalid", `${name} must be a text`);
  return value;
}

function numberIn(params: JsonObject, name: string): number {
  const value = params[name];
  if (typeof value !== "number") throw new LcmError("invalid", `${name} must be a number`);
  return value;
}

function listIn(params: JsonObject, name: string): readonly Json[] {
  const value = params[name];
  if (!Array.isArray(value)) throw new LcmError("invalid", `${name} must be a list`);
  return value;
}
