/**
 * Finds the credential for a provider: the host's auth profiles in the host's order, then the environment, then the key
 * of a custom provider. It is read for every call, because logins expire and the host renews them. Secrets are only
 * returned: never kept, written or put into a message.
 */

import { readFile } from "node:fs/promises";
import { providerName } from "./choose-model.ts";
import type { Renewed } from "./oauth.ts";
import { profilePaths, type CustomProvider, type Env } from "./openclaw-files.ts";
import { fieldsOf, listOf, parseJson, textAt, valueAt } from "./read-files.ts";

/** `secret` is null if none was found and none is needed. */
export type Credential = { readonly kind: "found"; readonly secret: string | null } | Renewed;

export interface CredentialDeps {
  readonly stateDir: string;
  readonly env: Env;
  /** OpenClaw's config, for the order of its profiles. */
  readonly config: unknown;
  readonly custom: CustomProvider | undefined;
  readonly needsKey: boolean;
  readonly renew: (file: string, profile: string) => Promise<Renewed>;
}

/** Never throws; a missing credential is a refusal. */
export async function findCredential(provider: string, deps: CredentialDeps): Promise<Credential> {
  let refused: Renewed | null = null;
  for (const path of await profilePaths(deps.stateDir)) {
    // A file that is missing, unreadable or just being written counts as empty.
    const file = parseJson(await readFile(path, "utf8").catch(() => ""));
    for (const [id, profile] of profilesInOrder(file, provider, deps.config)) {
      const isLogin = textAt(profile, "type") === "oauth" && isExpired(profile);
      const found =
        isLogin && provider === "anthropic" ? await deps.renew(path, id) : secretOfProfile(profile, deps.env);
      if (found?.kind === "found") return found;
      refused ??= found;
    }
  }
  const secret =
    variablesOf(provider)
      .map((name) => deps.env[name]?.trim())
      .find(Boolean) ?? keyOf(deps.custom?.apiKey, deps.env);
  if (secret !== null || !deps.needsKey) return { kind: "found", secret };
  if (refused !== null) return refused;
  const message = `there is no credential for ${provider}: set ${variablesOf(provider)[0]}, or log in with openclaw`;
  return { kind: "refused", refusal: "no_credential", message };
}

const types = ["oauth", "token", "api_key"];

/** In the configured order, else by type; profiles in cooldown come last. */
function profilesInOrder(file: unknown, provider: string, config: unknown): readonly (readonly [string, unknown])[] {
  const own = Object.entries(fieldsOf(valueAt(file, "profiles"))).filter(
    ([, profile]) => providerName(textAt(profile, "provider") ?? "") === provider,
  );
  const written = [valueAt(file, "order", provider), valueAt(config, "auth", "order", provider)].map(listOf);
  const order = written.find((ids) => ids.length > 0);
  const chosen = order === undefined ? own : own.filter(([id]) => order.includes(id));
  const rank = ([id, profile]: readonly [string, unknown]): number =>
    (isCoolingDown(valueAt(file, "usageStats", id)) ? own.length + types.length : 0) +
    (order?.indexOf(id) ?? types.indexOf(textAt(profile, "type") ?? ""));
  return chosen.toSorted((a, b) => rank(a) - rank(b));
}

const isCoolingDown = (stats: unknown): boolean =>
  ["cooldownUntil", "disabledUntil"].some((field) => Number(valueAt(stats, field) ?? 0) > Date.now());

const isExpired = (profile: unknown): boolean => {
  const expires = valueAt(profile, "expires");
  return typeof expires === "number" && expires > 0 && expires <= Date.now();
};

function secretOfProfile(profile: unknown, env: Env): Renewed | null {
  const secret = isExpired(profile) ? null : secretByType(profile, env);
  return secret === null ? null : { kind: "found", secret };
}

function secretByType(profile: unknown, env: Env): string | null {
  switch (textAt(profile, "type")) {
    case "api_key":
      return keyOf(valueAt(profile, "key"), env);
    case "token":
      return keyOf(valueAt(profile, "token"), env);
    case "oauth":
      // Logins of other providers do not grant access to the API.
      return textAt(profile, "provider") === "anthropic" ? textAt(profile, "access") : null;
    default:
      return null;
  }
}

const usualVariables: ReadonlyMap<string, readonly string[]> = new Map([
  ["anthropic", ["ANTHROPIC_API_KEY", "ANTHROPIC_OAUTH_TOKEN"]],
  ["google", ["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"]],
]);

/** The environment variables that may hold the key of a provider, in order. */
export const variablesOf = (provider: string): readonly string[] =>
  usualVariables.get(provider) ?? [`${provider.toUpperCase().replace(/[^A-Z0-9]/g, "_")}_API_KEY`];

/** Resolves a key in the host's notation: the key itself, `${NAME}`, a variable name, or `{ source: "env", id }`. */
function keyOf(written: unknown, env: Env): string | null {
  const text = textAt({ written }, "written");
  const name =
    valueAt(written, "source") === "env"
      ? textAt(written, "id")
      : (/^\$\{(\w+)\}$/.exec(text ?? "")?.[1] ?? /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$/.exec(text ?? "")?.[0]);
  if (typeof name === "string") return env[name]?.trim() || null;
  // A reference that only the host can resolve.
  return text?.startsWith("secretref-") ? null : text;
}
