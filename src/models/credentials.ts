/**
 * With what a provider is asked, outside of a host: the host's auth profiles in the order in which the host would try
 * them, then the environment, then the key of a custom provider. Looked up for every call, because logins expire and
 * the host renews them. Secrets are returned and nothing else: not kept, not written, not part of any message.
 */

import { readFile } from "node:fs/promises";
import { providerName } from "./choose-model.ts";
import type { Renewed } from "./oauth.ts";
import { profilePaths } from "./openclaw-files.ts";
import type { CustomProvider, Env } from "./openclaw-files.ts";
import { fieldsOf, listOf, parseJson, textAt, valueAt } from "./read-files.ts";

/** `secret` is null where none was found and none is needed. */
export type Credential = { readonly kind: "found"; readonly secret: string | null } | Renewed;

export interface CredentialDeps {
  readonly stateDir: string;
  readonly env: Env;
  /** OpenClaw's, for the order of its profiles. */
  readonly config: unknown;
  readonly custom: CustomProvider | undefined;
  readonly needsKey: boolean;
  readonly renew: (file: string, profile: string) => Promise<Renewed>;
}

/** Never throws for what it finds or does not find: that is a refusal. */
export async function findCredential(provider: string, deps: CredentialDeps): Promise<Credential> {
  let refused: Renewed | null = null;
  for (const path of await profilePaths(deps.stateDir)) {
    // Not there, not readable, or just being written by the host: then there is nothing in it for us now.
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

// ── Profiles ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const types = ["oauth", "token", "api_key"];

/** The written order if there is one, else by type; those that the host lets rest come last. */
function profilesInOrder(file: unknown, provider: string, config: unknown): readonly (readonly [string, unknown])[] {
  const own = Object.entries(fieldsOf(valueAt(file, "profiles"))).filter(
    ([, profile]) => providerName(textAt(profile, "provider") ?? "") === provider,
  );
  const written = [valueAt(file, "order", provider), valueAt(config, "auth", "order", provider)].map(listOf);
  const order = written.find((ids) => ids.length > 0);
  const chosen = order === undefined ? own : own.filter(([id]) => order.includes(id));
  const rank = ([id, profile]: readonly [string, unknown]): number =>
    (isResting(valueAt(file, "usageStats", id)) ? own.length + types.length : 0) +
    (order?.indexOf(id) ?? types.indexOf(textAt(profile, "type") ?? ""));
  return chosen.toSorted((a, b) => rank(a) - rank(b));
}

const isResting = (stats: unknown): boolean =>
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
      // Other providers' logins open other doors than the API.
      return textAt(profile, "provider") === "anthropic" ? textAt(profile, "access") : null;
    default:
      return null;
  }
}

// ── Keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

const usualVariables: ReadonlyMap<string, readonly string[]> = new Map([
  ["anthropic", ["ANTHROPIC_API_KEY", "ANTHROPIC_OAUTH_TOKEN"]],
  ["google", ["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"]],
]);

/** The variables that a provider's key is looked for in, in this order. */
export const variablesOf = (provider: string): readonly string[] =>
  usualVariables.get(provider) ?? [`${provider.toUpperCase().replace(/[^A-Z0-9]/g, "_")}_API_KEY`];

/** A key as the host writes one: itself, `${NAME}`, the name of a variable, or `{ source: "env", id }`. */
function keyOf(written: unknown, env: Env): string | null {
  const text = textAt({ written }, "written");
  const name =
    valueAt(written, "source") === "env"
      ? textAt(written, "id")
      : (/^\$\{(\w+)\}$/.exec(text ?? "")?.[1] ?? /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$/.exec(text ?? "")?.[0]);
  if (typeof name === "string") return env[name]?.trim() || null;
  // The host's note that the key is in a place that only the host can open.
  return text?.startsWith("secretref-") ? null : text;
}
