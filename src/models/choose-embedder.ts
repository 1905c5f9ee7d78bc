/** Chooses the embedding model that the settings name: a local one, or one served by OpenAI, Ollama or another host. */

import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { errorText, LcmError } from "../core/base/errors.ts";
import type { Embedder } from "../core/model/embedder.ts";
import type { Settings } from "../core/model/settings.ts";
import { endpointOf } from "./choose-model.ts";
import { findCredential, type Credential } from "./credentials.ts";
import { createHttpEmbedder } from "./http-embedder.ts";
import { createLocalEmbedder } from "./local-embedder.ts";
import type { Renewed } from "./oauth.ts";
import { readCustomProviders, readOpenclawConfig, type Env } from "./openclaw-files.ts";

export interface EmbedderDeps {
  /** OpenClaw's state directory; packages installed there are found. */
  readonly stateDir: string;
  readonly env: Env;
  readonly cwd: string;
  readonly fetch?: typeof fetch;
}

type EmbedderSettings = Pick<Settings, "embedder" | "embedderBaseUrl" | "summaryTimeoutSeconds">;

/**
 * Null if none is configured. Loads nothing yet, and never throws: a setting that cannot be used must not keep anyone
 * from searching by words, so it gives an embedder that refuses and says why.
 */
export async function chooseEmbedder(settings: EmbedderSettings, deps: EmbedderDeps): Promise<Embedder | null> {
  const { embedder } = settings;
  if (embedder === null || embedder.trim().toLowerCase() === "off") return null;
  try {
    return await createEmbedder(embedder, settings, deps);
  } catch (error) {
    const hint = error instanceof LcmError && error.hint !== undefined ? ` (${error.hint})` : "";
    const message = `${errorText(error)}${hint}`;
    return {
      name: embedder.trim(),
      batch: 1,
      embed: async () => await Promise.resolve({ kind: "refused", refusal: "rejected", message }),
      close: async () => await Promise.resolve(),
    };
  }
}

async function createEmbedder(embedder: string, settings: EmbedderSettings, deps: EmbedderDeps): Promise<Embedder> {
  const [, provider = "", model = ""] = /^([\w-]+):\s*(\S.*?)\s*$/.exec(embedder.trim()) ?? [];
  if (model === "") {
    throw new LcmError("invalid", `embedder is "${embedder}", which names no model`, {
      hint: "use off, local:FOLDER, local:PACKAGE, openai:text-embedding-3-small or ollama:nomic-embed-text",
    });
  }
  if (provider === "local") return createLocalEmbedder(model, placesOf(deps));
  const config = await readOpenclawConfig(deps.stateDir, deps.env);
  const custom = await readCustomProviders(deps.stateDir, config);
  const { baseUrl, needsKey } = endpointOf({ provider, model, baseUrl: settings.embedderBaseUrl }, custom);
  const isOllama = provider === "ollama";
  const { stateDir, env, fetch: post = fetch } = deps;
  // Only Anthropic's logins need it, and Anthropic offers no embeddings.
  const renew = async (): Promise<Renewed> =>
    await Promise.resolve({ kind: "refused", refusal: "no_credential", message: `${provider} offers no embeddings` });
  const credential = async (): Promise<Credential> =>
    await findCredential(provider, { stateDir, env, config, custom: custom.get(provider), needsKey, renew });
  return createHttpEmbedder({
    kind: isOllama ? "ollama" : "openai",
    provider,
    model,
    // Ollama's own endpoint has no version in its path.
    baseUrl: isOllama ? baseUrl.replace(/\/v\d+$/, "") : baseUrl,
    timeoutMs: settings.summaryTimeoutSeconds * 1_000,
    credential,
    fetch: post,
  });
}

/** Where packages are looked for: the state directory, the current folder, and where this program is installed. */
const placesOf = ({ stateDir, cwd }: EmbedderDeps): readonly string[] => [
  stateDir,
  cwd,
  dirname(fileURLToPath(import.meta.url)),
];
