import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, sep } from "node:path";
import { describe, it } from "node:test";
import { makeScratch } from "../../test/support/scratch.ts";
import { findCredential } from "./credentials.ts";
import type { Credential, CredentialDeps } from "./credentials.ts";

const past = Date.now() - 60_000;
const future = Date.now() + 3_600_000;

interface Scene {
  /** Auth profiles by the agent in whose folder they are; "" for the state directory itself. */
  readonly files?: Readonly<Record<string, unknown>>;
  readonly deps?: Partial<CredentialDeps>;
}

async function find(provider: string, scene: Scene): Promise<Credential> {
  const stateDir = makeScratch("credentials");
  for (const [agent, file] of Object.entries(scene.files ?? {})) {
    const folder = agent === "" ? stateDir : join(stateDir, "agents", agent, "agent");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "auth-profiles.json"), typeof file === "string" ? file : JSON.stringify(file));
  }
  return findCredential(provider, {
    stateDir,
    env: {},
    config: null,
    custom: undefined,
    needsKey: true,
    renew: () => Promise.resolve({ kind: "refused", refusal: "auth", message: "log in again" }),
    ...scene.deps,
  });
}

const secretOf = (credential: Credential): string | null =>
  credential.kind === "found" ? credential.secret : `refused: ${credential.message}`;

const apiKey = (key: string, provider = "anthropic") => ({ type: "api_key", provider, key });
const file = (profiles: object, rest: object = {}) => ({ version: 1, profiles, ...rest });

describe("a credential", () => {
  const custom = { baseUrl: null, api: null, apiKey: "from-models" };
  const env = { ANTHROPIC_API_KEY: "from-env" };

  it("comes from auth profiles, else from the environment, else from a custom provider", async () => {
    const files = { main: file({ "anthropic:a": apiKey("from-profile") }) };
    assert.equal(secretOf(await find("anthropic", { files, deps: { env, custom } })), "from-profile");
    assert.equal(secretOf(await find("anthropic", { deps: { env, custom } })), "from-env");
    assert.equal(secretOf(await find("anthropic", { deps: { custom } })), "from-models");
  });

  it("is reported missing by name, unless none is needed", async () => {
    const missed = await find("my-acme", {});
    assert.equal(missed.kind === "refused" && missed.refusal, "no_credential");
    assert.match(secretOf(missed) ?? "", /MY_ACME_API_KEY.*openclaw/);
    assert.equal(secretOf(await find("ollama", { deps: { needsKey: false } })), null);
  });

  it("is found in every variable of its provider", async () => {
    const names = {
      ANTHROPIC_OAUTH_TOKEN: "anthropic",
      OPENAI_API_KEY: "openai",
      GEMINI_API_KEY: "google",
      GOOGLE_API_KEY: "google",
      GOOGLE_GENERATIVE_AI_API_KEY: "google",
      OPENROUTER_API_KEY: "openrouter",
      MY_ACME_API_KEY: "my-acme",
    };
    for (const [name, provider] of Object.entries(names)) {
      assert.equal(secretOf(await find(provider, { deps: { env: { [name]: ` ${name} ` } } })), name);
    }
  });

  it("of a custom provider may use any of the host's notations", async () => {
    const written = async (key: unknown): Promise<string | null> =>
      secretOf(
        await find("acme", { deps: { needsKey: false, custom: { ...custom, apiKey: key }, env: { ACME_KEY: "k" } } }),
      );
    assert.equal(await written("ACME_KEY"), "k");
    assert.equal(await written("${ACME_KEY}"), "k");
    assert.equal(await written({ source: "env", provider: "default", id: "ACME_KEY" }), "k");
    assert.equal(await written("sk-literal"), "sk-literal");
    assert.equal(await written("EMPTY"), "EMPTY");
    for (const nothing of ["OTHER_KEY", "${OTHER}", "secretref-managed", { source: "file", id: "x" }, "", null, 7]) {
      assert.equal(await written(nothing), null, JSON.stringify(nothing));
    }
  });
});

describe("auth profiles", () => {
  const key = apiKey("key");
  const token = { type: "token", provider: "anthropic", token: "token" };
  const login = { type: "oauth", provider: "anthropic", access: "login", refresh: "r", expires: future };

  it("are tried in the configured order, and only those it names", async () => {
    const profiles = { "anthropic:login": login, "anthropic:token": token, "anthropic:key": key };
    const order = { anthropic: ["anthropic:key", "anthropic:token"] };
    assert.equal(secretOf(await find("anthropic", { files: { main: file(profiles, { order }) } })), "key");
    const config = { auth: { order: { anthropic: ["anthropic:token"] } } };
    assert.equal(secretOf(await find("anthropic", { files: { main: file(profiles) }, deps: { config } })), "token");
  });

  it("without an order are logins, then tokens, then keys, with those in cooldown last", async () => {
    const profiles = { "anthropic:key": key, "anthropic:token": token, "anthropic:login": login };
    assert.equal(secretOf(await find("anthropic", { files: { main: file(profiles) } })), "login");
    const usageStats = { "anthropic:login": { cooldownUntil: future }, "anthropic:token": { disabledUntil: future } };
    assert.equal(secretOf(await find("anthropic", { files: { main: file(profiles, { usageStats }) } })), "key");
    const over = { "anthropic:login": { cooldownUntil: past } };
    assert.equal(secretOf(await find("anthropic", { files: { main: file(profiles, { usageStats: over }) } })), "login");
  });

  it("of the main agent come before those of others, and those next to the config come last", async () => {
    const of = (secret: string) => file({ "anthropic:a": apiKey(secret) });
    const files = { "": of("state"), main: of("main"), aaa: of("aaa") };
    assert.equal(secretOf(await find("anthropic", { files })), "main");
    assert.equal(secretOf(await find("anthropic", { files: { "": files[""], aaa: files.aaa } })), "aaa");
    assert.equal(secretOf(await find("anthropic", { files: { "": files[""] } })), "state");
  });

  it("are skipped if expired, empty, of another provider, or unreadable", async () => {
    const env = { ANTHROPIC_API_KEY: "env" };
    const useless: readonly object[] = [
      { ...token, expires: past },
      apiKey(""),
      apiKey("other", "openai"),
      { type: "api_key", provider: "anthropic", keyRef: { source: "file", id: "x" } },
      { type: "unknown", provider: "anthropic", key: "x" },
    ];
    for (const profile of useless) {
      const files = { main: file({ "anthropic:a": profile }) };
      assert.equal(secretOf(await find("anthropic", { files, deps: { env } })), "env", JSON.stringify(profile));
    }
    for (const broken of ['{"version":1,"profi', "", [], { profiles: [] }]) {
      assert.equal(secretOf(await find("anthropic", { files: { main: broken }, deps: { env } })), "env");
    }
  });

  it("that are logins of another provider are not used as keys", async () => {
    const files = { main: file({ "openai:a": { ...login, provider: "openai" } }) };
    assert.equal(secretOf(await find("openai", { files, deps: { env: { OPENAI_API_KEY: "env" } } })), "env");
  });

  it("that have expired are renewed; if that is refused, the next is tried, and the reason is reported at the end", async () => {
    const files = { main: file({ "anthropic:old": { ...login, expires: past } }) };
    const renew: CredentialDeps["renew"] = (path, id) =>
      Promise.resolve({ kind: "found", secret: `renewed ${id} of ${path.split(sep).at(-3)}` });
    assert.equal(secretOf(await find("anthropic", { files, deps: { renew } })), "renewed anthropic:old of main");
    assert.equal(secretOf(await find("anthropic", { files, deps: { env: { ANTHROPIC_API_KEY: "env" } } })), "env");
    assert.equal(secretOf(await find("anthropic", { files })), "refused: log in again");
  });
});
