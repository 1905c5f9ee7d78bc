/** What the plugin does for a session: copies its messages, builds its prompts, and reports what the provider counted. */

import { errorText } from "../../core/base/errors.ts";
import { isObject, type Json, type JsonObject } from "../../core/base/json.ts";
import type { HostMessage } from "../../core/messages/codec.ts";
import type { HostEngine, PromptRequest } from "../shared/engine.ts";
import type { HostSession } from "../shared/sessions.ts";
import { readNew, type Copied } from "./copy-messages.ts";
import type { HostClient, HostMessageRow, ModelLimit } from "./host-api.ts";
import { splicePrompt } from "./splice-prompt.ts";

export interface SessionsDeps {
  readonly client: HostClient;
  readonly engine: HostEngine;
  readonly note: (doing: string, error: unknown) => void;
}

interface Known {
  copied: Copied | null;
  /** Ends when everything asked for so far is done. */
  queue: Promise<unknown>;
  /** For the system prompt of the next request; null if the last prompt was not ours. */
  guidance: string | null;
  isCompacting: boolean;
  /** The user's message whose answer was too long for the model, and was asked for once more. */
  retried: string | null;
  overflowed: string | null;
}

/** What the host assumes for a model that names no limit to its answers, and the most it asks for. */
const outputMax = 32_000;
const windowDefault = 128_000;
/** How long a turn waits for the host's own server to list its messages. */
const copyMs = 5_000;
const endMs = 2_000;

export class Sessions {
  readonly #deps: SessionsDeps;
  readonly #known = new Map<string, Known>();
  readonly #limits = new Map<string, ModelLimit>();

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
  }

  /** Puts our prompt in the place of the host's messages; false if those stand. */
  async prompt(messages: HostMessageRow[]): Promise<boolean> {
    const id = messages[0]?.info.sessionID;
    const last = messages.findLast(({ info }) => info.role === "user");
    if (id === undefined || last === undefined) return false;
    const known = this.#of(id);
    known.guidance = null;
    const isStored = await within(copyMs, this.copy(id));
    if (isStored !== true) return false;
    const prompt = await this.#deps.engine.prompt(this.session(id), { ...(await this.#roomOf(last)), overhead: 0 });
    if (prompt === null) return false;
    const own = prompt.messages.map((message) => ({ key: keyOf(message), message }));
    const spliced = splicePrompt(messages, own, known.isCompacting);
    if (spliced === null) {
      await this.#deps.engine.learn(this.session(id), { kind: "unused" });
      return false;
    }
    messages.splice(0, messages.length, ...spliced);
    known.guidance = known.isCompacting ? null : prompt.guidance;
    // While the model answers: a turn may take hours.
    if (!known.isCompacting) void this.#deps.engine.foldSoon(this.session(id));
    return true;
  }

  guidanceOf(id: string): string | null {
    return this.#of(id).guidance;
  }

  /** Stores what is new, after what was asked for before. Whether everything is stored. */
  async copy(id: string): Promise<boolean> {
    const known = this.#of(id);
    const work = known.queue.then(async () => await this.#copyNow(id, known));
    known.queue = work.catch(() => undefined);
    return await work.catch((error: unknown) => {
      this.#deps.note(`copying the messages of ${id}`, error);
      return false;
    });
  }

  async #copyNow(id: string, known: Known): Promise<boolean> {
    const { client, engine } = this.#deps;
    const { session, messages } = await readNew(client, id, known.copied);
    const newest = messages.at(-1)?.info.id ?? null;
    known.copied ??= { session, newest: null };
    if (newest === null || newest === known.copied.newest) return true;
    const rows = known.copied.newest === null ? [{ info: session }, ...messages] : messages;
    if ((await engine.store(this.session(id), rows.map(toJson), 0)) === "later") return false;
    known.copied = { session, newest };
    return true;
  }

  /** Resolves when everything that was asked for is stored, or soon: the host waits for it before it ends. */
  async settled(): Promise<void> {
    await within(endMs, Promise.all([...this.#known.values()].map(async ({ queue }) => await queue)));
  }

  session(id: string): HostSession {
    const { directory = null, parentID = null } = this.#of(id).copied?.session ?? {};
    return { host: "opencode", sessionId: id, folder: directory, parentSessionId: parentID };
  }

  /** The next prompt is for the host's own compaction. */
  setCompacting(id: string, isCompacting: boolean): void {
    this.#of(id).isCompacting = isCompacting;
  }

  /** An answer has ended. */
  async answered(info: JsonObject): Promise<void> {
    const { sessionID, parentID, error, tokens, mode } = info;
    if (typeof sessionID !== "string" || mode === "compaction") return;
    const name = isObject(error) ? error["name"] : undefined;
    if (name === "ContextOverflowError") {
      this.#of(sessionID).overflowed = typeof parentID === "string" ? parentID : null;
      await this.#deps.engine.learn(this.session(sessionID), { kind: "overflow" });
    } else if (isObject(tokens)) {
      const cache = isObject(tokens["cache"]) ? tokens["cache"] : {};
      const inputTokens = [tokens["input"], cache["read"], cache["write"]].reduce<number>(
        (sum, part) => sum + (typeof part === "number" ? part : 0),
        0,
      );
      const cachedTokens = typeof cache["read"] === "number" ? cache["read"] : 0;
      const answer = { kind: "counted", inputTokens, cachedTokens } as const;
      if (inputTokens > 0) await this.#deps.engine.learn(this.session(sessionID), answer);
    }
  }

  /** A turn has ended: store it, fold what is due, and ask once more if the prompt was too long for the model. */
  async idle(id: string): Promise<void> {
    const { engine, client } = this.#deps;
    const known = this.#of(id);
    await this.copy(id);
    const { overflowed } = known;
    known.overflowed = null;
    if (overflowed === null || overflowed === known.retried) return await engine.foldSoon(this.session(id));
    known.retried = overflowed;
    const { ok } = await engine.compact(this.session(id), { why: "overflow" });
    if (!ok) return;
    const text = "The request was too long for the model. It has been shortened: continue.";
    await client.session.promptAsync({ path: { id }, body: { parts: [{ type: "text", synthetic: true, text }] } });
  }

  async #roomOf({ info }: HostMessageRow): Promise<Omit<PromptRequest, "overhead">> {
    const { providerID, modelID } = isObject(info["model"]) ? info["model"] : {};
    const name = [providerID, modelID].filter((word) => typeof word === "string").join("/");
    if (!this.#limits.has(name)) await this.#readLimits();
    const limit = this.#limits.get(name);
    const output = Math.min(limit?.output || outputMax, outputMax);
    const model = name === "" ? {} : { model: name };
    if (limit === undefined || limit.context === 0) return { window: windowDefault, reserve: output, ...model };
    return { window: Math.min(limit.context, (limit.input ?? Infinity) + output), reserve: output, ...model };
  }

  async #readLimits(): Promise<void> {
    try {
      const { data } = await this.#deps.client.config.providers();
      for (const { id, models } of data?.providers ?? [])
        for (const [name, { limit }] of Object.entries(models))
          if (limit !== undefined) this.#limits.set(`${id}/${name}`, limit);
    } catch (error) {
      this.#deps.note("reading the limits of models", errorText(error));
    }
  }

  #of(id: string): Known {
    const known = this.#known.get(id) ?? {
      copied: null,
      queue: Promise.resolve(),
      guidance: null,
      isCompacting: false,
      retried: null,
      overflowed: null,
    };
    this.#known.set(id, known);
    return known;
  }
}

/** The parts of the host's messages name their message. */
function keyOf({ content }: HostMessage): string | null {
  const parts = Array.isArray(content) ? content : [];
  const ids = parts.map((part: Json) => (isObject(part) ? part["messageID"] : undefined));
  return ids.find((id) => typeof id === "string") ?? null;
}

const toJson = (row: object): Json => row as Json;

/** Null if the time is up. */
async function within<T>(ms: number, work: Promise<T>): Promise<T | null> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, ms, null);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
