/** Embeddings over HTTP: what is asked, what is made of the answers, and that nothing goes elsewhere. */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { makeScratch } from "../../test/support/scratch.ts";
import { startScriptedProvider, type ScriptedProvider } from "../../test/support/scripted-provider.ts";
import type { Embedder } from "../core/model/embedder.ts";
import { chooseEmbedder } from "./choose-embedder.ts";
import { createHttpEmbedder } from "./http-embedder.ts";

let provider: ScriptedProvider;
before(async () => (provider = await startScriptedProvider()));
after(async () => await provider.close());

async function choose(embedder: string, more: { readonly url?: string; readonly seconds?: number } = {}) {
  const settings = {
    embedder,
    embedderBaseUrl: more.url ?? `${provider.url}/v1`,
    summaryTimeoutSeconds: more.seconds ?? 5,
  };
  const env = { OPENAI_API_KEY: "sk-shibboleth" };
  const chosen = await chooseEmbedder(settings, { stateDir: makeScratch("embedder"), env, cwd: "/" });
  return chosen ?? assert.fail("none");
}

const answer = (body: unknown, status = 200): void =>
  provider.play({ kind: "body", status, body: JSON.stringify(body) });
const embed = async (embedder: Embedder, ...texts: readonly string[]) => await embedder.embed({ texts, kind: "query" });

describe("an OpenAI-compatible endpoint", () => {
  it("gets the texts and the key, and its vectors are put in the order of the texts", async () => {
    answer({
      data: [
        { index: 1, embedding: [3, 4] },
        { index: 0, embedding: [1, 2] },
      ],
    });
    const found = await embed(await choose("openai:small"), "one", "two");
    assert.deepEqual(found, {
      kind: "vectors",
      model: "openai/small",
      vectors: [Float32Array.of(1, 2), Float32Array.of(3, 4)],
    });
    const { path, headers, body } = provider.asked.at(-1) ?? assert.fail();
    assert.deepEqual(
      [path, headers.authorization, body],
      ["/v1/embeddings", "Bearer sk-shibboleth", { model: "small", input: ["one", "two"], encoding_format: "float" }],
    );
  });

  it("gets the beginning of a long text, and never an empty one", async () => {
    answer({ data: [{ embedding: [1] }, { embedding: [1] }] });
    await embed(await choose("openai:small"), "x".repeat(5_000), "");
    assert.deepEqual(provider.asked.at(-1)?.body["input"], ["x".repeat(1_000), " "]);
  });
});

describe("Ollama's own endpoint", () => {
  it("is asked without a key and without a version in its path", async () => {
    answer({ embeddings: [[1, 2]] });
    const found = await embed(await choose("ollama:nomic-embed-text"), "one");
    assert.deepEqual(found, { kind: "vectors", model: "ollama/nomic-embed-text", vectors: [Float32Array.of(1, 2)] });
    const { path, headers } = provider.asked.at(-1) ?? assert.fail();
    assert.deepEqual([path, headers.authorization], ["/api/embed", undefined]);
  });
});

describe("guarantee 20: who pays", () => {
  it("only a server on another machine is metered", () => {
    const on = (baseUrl: string) =>
      createHttpEmbedder({
        kind: "openai",
        provider: "openai",
        model: "m",
        baseUrl,
        timeoutMs: 1,
        credential: async () => await Promise.resolve({ kind: "refused", refusal: "no_credential", message: "none" }),
      }).remote;
    assert.deepEqual(on("https://api.openai.com/v1"), { provider: "openai", model: "m" });
    assert.deepEqual(on("http://localhost.example.com/v1"), { provider: "openai", model: "m" });
    for (const url of ["http://127.0.0.1:11434", "http://localhost:1234/v1", "http://[::1]:1"])
      assert.equal(on(url), undefined, url);
  });
});

describe("trouble with an endpoint is a refusal", () => {
  const refusalOf = async (embedder: Embedder): Promise<readonly string[]> => {
    const found = await embed(embedder, "one");
    assert.ok(found.kind === "refused");
    return [found.refusal, found.message];
  };

  it("classified by status, without the key", async () => {
    answer({ error: { message: "no, sk-shibboleth" } }, 401);
    const [refusal, message = ""] = await refusalOf(await choose("openai:small"));
    assert.equal(refusal, "auth");
    assert.ok(!message.includes("shibboleth"), message);
    answer({ error: "no such model" }, 404);
    assert.equal((await refusalOf(await choose("ollama:m")))[0], "unknown_model");
  });

  it("also if it answers nonsense, is not there, or does not answer", async () => {
    for (const body of [{}, [], "text", { data: [] }, { embeddings: "?" }]) {
      answer(body);
      assert.deepEqual(await refusalOf(await choose("openai:small")), [
        "rejected",
        "openai:small: the answer contains no embeddings",
      ]);
    }
    const gone = await refusalOf(await choose("ollama:m", { url: "http://127.0.0.1:1" }));
    assert.equal(gone[0], "unreachable");
    provider.play({ kind: "hang" });
    assert.equal((await refusalOf(await choose("ollama:m", { seconds: 0.05 })))[0], "timeout");
    const cancelled = await (
      await choose("ollama:m")
    ).embed({ texts: ["one"], kind: "query", signal: AbortSignal.timeout(20) });
    assert.equal(cancelled.kind === "refused" && cancelled.refusal, "cancelled");
  });

  it("also if there is no key", async () => {
    const settings = { embedder: "openai:small", embedderBaseUrl: null, summaryTimeoutSeconds: 1 };
    const found = await chooseEmbedder(settings, { stateDir: makeScratch("embedder"), env: {}, cwd: "/" });
    assert.equal((await refusalOf(found ?? assert.fail()))[0], "no_credential");
  });
});

describe("guarantee 32, for embeddings: texts go only to the configured host", () => {
  it("a redirect is not followed", async () => {
    const elsewhere = await startScriptedProvider();
    const redirecting: typeof fetch = async () =>
      await Promise.resolve(
        new Response(null, { status: 307, headers: { location: `${elsewhere.url}/v1/embeddings` } }),
      );
    const settings = { embedder: "openai:small", embedderBaseUrl: `${provider.url}/v1`, summaryTimeoutSeconds: 5 };
    const deps = { stateDir: makeScratch("embedder"), env: { OPENAI_API_KEY: "k" }, cwd: "/", fetch: redirecting };
    const found = await embed((await chooseEmbedder(settings, deps)) ?? assert.fail(), "a secret");
    assert.ok(found.kind === "refused" && found.refusal === "rejected");
    assert.match(found.message, /redirects to .* not followed/);
    assert.equal(elsewhere.asked.length, 0);
    await elsewhere.close();
  });

  it("an answer without an end is read up to the cap", async () => {
    provider.play({ kind: "endless", status: 200 });
    const found = await embed(await choose("openai:small"), "one");
    assert.ok(found.kind === "refused" && /longer than/.test(found.message), JSON.stringify(found));
  });
});

describe("the setting", () => {
  it("is off by default and by name; one that names no model refuses, and says what to write", async () => {
    const deps = { stateDir: makeScratch("embedder"), env: {}, cwd: "/" };
    const of = async (embedder: string | null) =>
      await chooseEmbedder({ embedder, embedderBaseUrl: null, summaryTimeoutSeconds: 1 }, deps);
    assert.equal(await of(null), null);
    assert.equal(await of(" OFF "), null);
    for (const wrong of ["gte-small", "local:", "nobody:model"]) {
      const found = await embed((await of(wrong)) ?? assert.fail(wrong), "x");
      assert.ok(found.kind === "refused");
      assert.match(found.message, /names no model \(use off, local:FOLDER|unknown provider "nobody"/);
    }
  });
});
