/**
 * A HostEngine in another process, for hosts whose runtime cannot open the store: starts `lcm serve` and passes every call
 * on to it. Like the engine itself it never throws, and never waits long: whatever fails, the host's own messages go on.
 */

import { errorText } from "../../core/base/errors.ts";
import { isObject, type Json, type JsonObject } from "../../core/base/json.ts";
import type { Model } from "../../core/model/store.ts";
import type { HostWords } from "./chat-commands.ts";
import type { HostCompaction, HostEngine, HostPrompt, ToolAnswer } from "./engine.ts";
import type { Methods } from "./json-rpc.ts";
import type { HostName } from "./rows/row-format.ts";
import { createSideProcess } from "./side-process.ts";

export interface RemoteEngineOptions {
  /** Starts `lcm serve`. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly host: HostName;
  readonly version: string;
  readonly words: HostWords;
  /** The host's model, for summaries and questions. */
  readonly model?: Model;
  /** What an operator should know; each line comes once. */
  readonly note: (line: string) => void;
  /** How long a turn waits for an answer. */
  readonly patienceMs?: number;
}

/** Room for the seconds that the engine itself waits for a locked database. */
const patienceMsDefault = 7_000;
const compactMs = 5 * 60_000;
const toolMs = 30 * 60_000;

export interface RemoteEngine extends HostEngine {
  /** Starts the process, so that the first turn does not wait for it. */
  warmUp(): void;
  readonly pid: number | undefined;
}

export function createRemoteEngine(options: RemoteEngineOptions): RemoteEngine {
  const { host, version, words, model, note, patienceMs = patienceMsDefault } = options;
  const side = createSideProcess({
    ...options,
    greeting: { host, version, words: { ...words }, hasModel: model !== undefined },
    methods: model === undefined ? {} : { complete: completeWith(model) },
  });
  const noted = new Set<string>();
  /** Null if the process did not answer. */
  const ask = async (
    method: string,
    params: object,
    options: {
      readonly timeoutMs?: number;
      readonly signal?: AbortSignal | undefined;
      readonly onProgress?: (words: string) => void;
    } = {},
  ): Promise<{ readonly value: Json } | { readonly failure: string }> => {
    try {
      return { value: await side.call(method, params as JsonObject, { timeoutMs: patienceMs, ...options }) };
    } catch (error) {
      const failure = errorText(error);
      if (!noted.has(failure)) note(`while calling ${method}: ${failure}`);
      noted.add(failure);
      return { failure };
    }
  };
  return {
    warmUp: () => void ask("hello", {}),
    get pid() {
      return side.pid;
    },
    async store(session, rows, from) {
      const stored = await ask("store", { session, rows, from });
      // What did not get through comes again with the next call.
      return "value" in stored
        ? ((["stored", "left"] as const).find((each) => each === stored.value) ?? "later")
        : "later";
    },
    async prompt(session, request) {
      const built = await ask("prompt", { session, request });
      return "value" in built && isObject(built.value) ? (built.value as object as HostPrompt) : null;
    },
    async learn(session, answer) {
      await ask("learn", { session, answer });
    },
    async foldSoon(session) {
      await ask("foldSoon", { session });
    },
    async compact(session, request, signal) {
      const done = await ask("compact", { session, request }, { timeoutMs: compactMs, signal });
      if ("value" in done && isObject(done.value)) return done.value as object as HostCompaction;
      return { ok: false, compacted: false, message: failureOf(done), ours: null };
    },
    async tool(session, { name, args, onProgress }, signal) {
      const progress = onProgress === undefined ? {} : { onProgress };
      const ran = await ask("tool", { session, name, args }, { timeoutMs: toolMs, signal, ...progress });
      if ("value" in ran && isObject(ran.value)) return ran.value as object as ToolAnswer;
      return { text: `${name}: ${failureOf(ran)}.`, details: {}, isError: true };
    },
    async command(session, typed) {
      const answer = await ask("command", { session, words: typed }, { timeoutMs: compactMs });
      return "value" in answer && typeof answer.value === "string" ? answer.value : `⚠️ ${failureOf(answer)}`;
    },
    close: async () => await side.close(),
  };
}

const failureOf = (answer: object): string =>
  "failure" in answer && typeof answer.failure === "string" ? answer.failure : "lossless-claw gave no answer";

function completeWith(model: Model): Methods[string] {
  return async ({ system, prompt, temperature, maxOutputTokens, purpose }, { signal }) => {
    const request = { system, prompt, temperature, maxOutputTokens, purpose, conversation: null, signal };
    const { ...answer } = await model.complete(request as object as Parameters<Model["complete"]>[0]);
    return answer as object as Json;
  };
}
