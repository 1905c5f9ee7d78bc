/**
 * Embeds texts over HTTP: at an endpoint that is compatible with OpenAI's, or at Ollama's own. Requests go to the
 * configured host only, and answers are read up to a cap. Failures of the server are refusals, never exceptions.
 */

import { errorText, LcmError } from "../core/base/errors.ts";
import type { Embedder, Embedding, EmbedRequest } from "../core/model/embedder.ts";
import type { Refused } from "../core/model/language-model.ts";
import type { Refusal } from "../core/model/types.ts";
import type { Credential } from "./credentials.ts";
import { guardedFetch } from "./guarded-fetch.ts";
import { listOf, parseJson, valueAt } from "./read-files.ts";
import { scrub, troubleOf } from "./refusal.ts";

export interface HttpEmbedderDeps {
  readonly kind: "openai" | "ollama";
  readonly provider: string;
  readonly model: string;
  /** Without a slash at its end: `https://api.openai.com/v1`, `http://127.0.0.1:11434`. */
  readonly baseUrl: string;
  readonly timeoutMs: number;
  /** Read for every call; never kept. */
  readonly credential: () => Promise<Credential>;
  readonly fetch?: typeof fetch;
}

/** The answer to more of them could exceed the cap. */
const batch = 32;
/** About 128 tokens, as local models read; what comes after them is not what a message is about. */
const charactersMax = 1_000;

export function createHttpEmbedder(deps: HttpEmbedderDeps): Embedder {
  const name = `${deps.provider}:${deps.model}`;
  return {
    name,
    batch,
    ...(isOnThisMachine(deps.baseUrl) ? {} : { remote: { provider: deps.provider, model: deps.model } }),
    async embed(request) {
      const timeout = AbortSignal.timeout(deps.timeoutMs);
      const signal = request.signal === undefined ? timeout : AbortSignal.any([request.signal, timeout]);
      const credential = await deps.credential();
      if (credential.kind === "refused") return credential;
      try {
        return await post(deps, request, credential.secret, signal);
      } catch (error) {
        if (request.signal?.aborted === true) return refused(name, "cancelled", "no answer in time");
        if (timeout.aborted) return refused(name, "timeout", `no answer in ${deps.timeoutMs / 1_000} s`);
        const refusal = error instanceof LcmError ? "rejected" : "unreachable";
        return refused(name, refusal, scrub(causeText(error), [credential.secret]));
      }
    },
    close: async () => await Promise.resolve(),
  };
}

const isOnThisMachine = (url: string): boolean =>
  /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(URL.parse(url)?.hostname ?? "");

const refused = (name: string, refusal: Refusal, detail: string): Refused => ({
  kind: "refused",
  refusal,
  message: `${name}: ${detail}`,
});

/** A failed fetch hides its reason in its cause. */
const causeText = (error: unknown): string =>
  error instanceof Error && error.cause instanceof Error
    ? `${errorText(error)}: ${errorText(error.cause)}`
    : errorText(error);

async function post(
  deps: HttpEmbedderDeps,
  { texts }: EmbedRequest,
  secret: string | null,
  signal: AbortSignal,
): Promise<Embedding> {
  const { kind, model, provider } = deps;
  const input = texts.map((text) => text.slice(0, charactersMax).toWellFormed() || " ");
  const fields = kind === "openai" ? { model, input, encoding_format: "float" } : { model, input, truncate: true };
  const response = await guardedFetch(deps.fetch ?? fetch)(
    `${deps.baseUrl}${kind === "openai" ? "/embeddings" : "/api/embed"}`,
    {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(secret === null ? {} : { authorization: `Bearer ${secret}` }),
      },
      body: JSON.stringify(fields),
      signal,
    },
  );
  const body = await response.text();
  const name = `${provider}:${model}`;
  if (!response.ok) {
    const headers = Object.fromEntries(response.headers);
    const failure = { status: response.status, headers, body, networkCode: null, message: body };
    const { refusal, detail } = troubleOf(failure, Date.now());
    return refused(name, refusal, scrub(detail, [secret]));
  }
  const vectors = readVectors(kind, parseJson(body));
  if (vectors === null) return refused(name, "rejected", "the answer contains no embeddings");
  return { kind: "vectors", model: `${provider}/${model}`, vectors };
}

/** In the order of the texts: OpenAI's answers carry an index. */
function readVectors(kind: HttpEmbedderDeps["kind"], body: unknown): readonly Float32Array[] | null {
  const data = listOf(valueAt(body, "data")).map((row, at) => ({
    index: Number(valueAt(row, "index") ?? at),
    vector: listOf(valueAt(row, "embedding")),
  }));
  const rows =
    kind === "ollama"
      ? listOf(valueAt(body, "embeddings")).map(listOf)
      : data.toSorted((one, other) => one.index - other.index).map(({ vector }) => vector);
  return rows.length === 0 ? null : rows.map((row) => Float32Array.from(row, Number));
}
