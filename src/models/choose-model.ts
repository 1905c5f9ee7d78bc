/**
 * Chooses the model that writes summaries outside a host, and its address and API. Names are `provider/model`; the model
 * may contain slashes itself.
 */

import { LcmError } from "../core/base/errors.ts";
import type { Settings } from "../core/model/settings.ts";
import type { CustomProvider } from "./openclaw-files.ts";
import { textAt } from "./read-files.ts";

export interface ModelChoice {
  readonly provider: string;
  readonly model: string;
  /** The configured address; null for the usual one of the provider. */
  readonly baseUrl: string | null;
}

/** APIs, by OpenClaw's names. */
const apis = ["anthropic-messages", "openai-responses", "openai-completions", "google-generative-ai"] as const;
type Api = (typeof apis)[number];

export interface Endpoint {
  readonly api: Api;
  readonly baseUrl: string;
  /** False for local servers. */
  readonly needsKey: boolean;
}

const knownProviders: Readonly<Record<string, Endpoint>> = {
  anthropic: { api: "anthropic-messages", baseUrl: "https://api.anthropic.com/v1", needsKey: true },
  openai: { api: "openai-responses", baseUrl: "https://api.openai.com/v1", needsKey: true },
  google: {
    api: "google-generative-ai",
    baseUrl: "https://generativelanguage.googleapis.com/v1beta",
    needsKey: true,
  },
  openrouter: { api: "openai-completions", baseUrl: "https://openrouter.ai/api/v1", needsKey: true },
  ollama: { api: "openai-completions", baseUrl: "http://127.0.0.1:11434/v1", needsKey: false },
  lmstudio: { api: "openai-completions", baseUrl: "http://127.0.0.1:1234/v1", needsKey: false },
};

/** Normalises the name of a provider. */
export function providerName(written: string): string {
  const name = written.trim().toLowerCase();
  return name === "gemini" ? "google" : name;
}

export interface ModelFlags {
  readonly model?: string | undefined;
  readonly provider?: string | undefined;
  readonly baseUrl?: string | undefined;
}

/** The flags, then the settings, then OpenClaw's config; null if none of them names a model. */
export function chooseModel(given: {
  readonly flags?: ModelFlags;
  readonly settings: Pick<Settings, "summaryModel" | "summaryProvider" | "summaryBaseUrl">;
  readonly openclawConfig: unknown;
}): ModelChoice | null {
  const { summaryModel, summaryProvider, summaryBaseUrl } = given.settings;
  const host = hostModel(given.openclawConfig);
  const provider = summaryProvider === null ? null : providerName(summaryProvider);

  let set: Name | null = null;
  if (summaryModel !== null) set = nameOf(summaryModel, provider, host);
  else if (provider !== null) {
    if (host?.provider !== provider) {
      throw new LcmError("invalid", `the summary provider is ${provider}, but no model is set`, {
        hint: "pass --model NAME, or set LCM_SUMMARY_MODEL",
      });
    }
    set = host;
  }
  const settled = set ?? host;
  const asked = flagged(given.flags ?? {}, provider, settled);
  if (asked === null) return null;
  // The configured address belongs to one provider; the key of another must not be sent there.
  const isThere = settled === null || settled.provider === asked.provider;
  return { ...asked, baseUrl: given.flags?.baseUrl ?? (isThere ? summaryBaseUrl : null) };
}

function flagged({ model, provider: named }: ModelFlags, provider: string | null, settled: Name | null): Name | null {
  const only = named === undefined ? null : providerName(named);
  if (model !== undefined) {
    const isWhole = only === null && model.includes("/");
    return isWhole ? nameOf(model, null, null) : nameOf(model, only ?? provider, settled);
  }
  if (only !== null && only !== settled?.provider) {
    throw new LcmError("invalid", `no model is set for the provider "${only}"`, { hint: "pass --model NAME" });
  }
  return settled;
}

type Name = Omit<ModelChoice, "baseUrl">;

/** Providers whose models have names of their own. */
const ownNames: readonly (readonly [provider: string, RegExp])[] = [
  ["anthropic", /^claude-/],
  ["openai", /^(?:gpt-(?!oss)|chatgpt-|o[1-9](?:-|$))/],
  ["google", /^gemini-/],
];

/** The provider that a bare name tells, else the host's. A custom provider may serve any model. */
function providerOf(model: string, host: Name | null): string | undefined {
  const isCustom = host !== null && !Object.hasOwn(knownProviders, host.provider);
  const told = isCustom ? undefined : ownNames.find(([, names]) => names.test(model))?.[0];
  return told ?? host?.provider;
}

/** `provider` is the configured one. */
function nameOf(written: string, provider: string | null, host: Name | null): Name {
  const [first = "", ...rest] = written.trim().split("/");
  if (provider !== null) {
    const isRepeated = rest.length > 0 && providerName(first) === provider;
    return { provider, model: isRepeated ? rest.join("/") : written.trim() };
  }
  const model = rest.join("/");
  if (model !== "" && first !== "") return { provider: providerName(first), model };
  const told = rest.length === 0 && first !== "" ? providerOf(first, host) : undefined;
  if (told !== undefined) return { provider: told, model: first };
  throw new LcmError("invalid", `"${written}" is not a model name`, {
    hint: "use provider/model, for example anthropic/claude-sonnet-4-5 or ollama/qwen3",
  });
}

/** The model of the host's agents, in current and older forms of the config. */
function hostModel(config: unknown): Name | null {
  const paths = [
    ["agents", "defaults", "model", "primary"],
    ["agents", "defaults", "model"],
    ["agent", "model"],
  ];
  const written = paths.map((path) => textAt(config, ...path)).find((name) => name !== null);
  // Without a provider it is an alias that only the host can resolve.
  return written?.includes("/") ? nameOf(written, null, null) : null;
}

/** Throws `invalid` if the address or the API of the provider is unknown. */
export function endpointOf(choice: ModelChoice, custom: ReadonlyMap<string, CustomProvider>): Endpoint {
  const known = Object.hasOwn(knownProviders, choice.provider) ? knownProviders[choice.provider] : undefined;
  const described = custom.get(choice.provider);
  const address = (choice.baseUrl ?? described?.baseUrl ?? known?.baseUrl)?.replace(/\/+$/, "");
  if (address === undefined) throw unknownProvider(choice.provider, [...custom.keys()]);
  if (!URL.canParse(address) || !/^https?:/i.test(address)) {
    throw new LcmError("invalid", `the base URL of the provider "${choice.provider}" is not an HTTP address`, {
      hint: "use a URL like https://example.com/v1",
    });
  }
  // Servers that imitate OpenAI implement the older of its two APIs.
  const isStandIn = choice.provider === "openai" && address !== known?.baseUrl;
  const asked = described?.api ?? (isStandIn ? undefined : known?.api) ?? "openai-completions";
  const api = apis.find((each) => each === (asked === "ollama" ? "openai-completions" : asked));
  if (api === undefined) {
    throw new LcmError("invalid", `the provider "${choice.provider}" uses the API "${asked}", which is not supported`, {
      hint: `supported APIs: ${apis.join(", ")}; choose another model with --model or LCM_SUMMARY_MODEL`,
    });
  }
  // OpenClaw leaves the version out for these; the AI SDK needs it.
  const wantsVersion = api === "anthropic-messages" || asked === "ollama" || choice.provider === "ollama";
  const baseUrl = wantsVersion && !/\/v\d+$/.test(address) ? `${address}/v1` : address;
  return { api, baseUrl, needsKey: !isLoopback(baseUrl) && (known?.needsKey ?? true) };
}

const isLoopback = (url: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(url).hostname);

function unknownProvider(provider: string, custom: readonly string[]): LcmError {
  const names = new Set([...Object.keys(knownProviders), ...custom]);
  const hint = `known providers: ${[...names].join(", ")}; for another, set LCM_SUMMARY_BASE_URL or add it to models.providers in OpenClaw's config`;
  return new LcmError("invalid", `unknown provider "${provider}", and no base URL is set`, { hint });
}
