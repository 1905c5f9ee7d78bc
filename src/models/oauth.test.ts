/** Logins of the host: renewed once, written down before they are used, or left alone. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { Completion, CompletionRequest } from "../core/model/store.ts";
import { makeScratch } from "../../test/support/scratch.ts";
import { startScriptedProvider } from "../../test/support/scripted-provider.ts";
import type { ScriptedProvider, Step } from "../../test/support/scripted-provider.ts";
import { answerBytesMax } from "./guarded-fetch.ts";
import { createModel } from "./provider-model.ts";
import { checkLogin, renewLogin } from "./oauth.ts";
import type { RenewDeps, Renewed } from "./oauth.ts";
import { assertPrivate, withoutLinks } from "../../test/support/platform.ts";

const request: CompletionRequest = {
  purpose: "leaf",
  conversation: null,
  system: "You write up conversations.",
  prompt: "Write up this one.",
  temperature: 0.2,
  maxOutputTokens: 100,
};

const expired = {
  type: "oauth",
  provider: "anthropic",
  access: "sk-ant-oat01-old",
  refresh: "sk-ant-ort01-old",
  expires: Date.now() - 60_000,
  clientId: "client-of-the-host",
  email: "somebody@example.com",
};
const others = {
  "openai:default": { type: "api_key", provider: "openai", key: "sk-proj-other" },
  "anthropic:second": { type: "token", provider: "anthropic", token: "sk-ant-oat01-second", expires: 1 },
};
const kept = {
  version: 1,
  profiles: { "anthropic:default": expired, ...others },
  order: { anthropic: ["anthropic:default"] },
  lastGood: { anthropic: "anthropic:default" },
  usageStats: { "anthropic:default": { lastUsed: 5, errorCount: 0 } },
};

const newTokens: Step = {
  kind: "body",
  status: 200,
  body: JSON.stringify({ access_token: "sk-ant-oat01-new", refresh_token: "sk-ant-ort01-new", expires_in: 28_800 }),
};
const good: Step = { kind: "answer", text: "Written up." };

describe("an expired login", () => {
  it("is renewed, and saved with everything else unchanged before it is used", async () => {
    const { server, path, stateDir, tokenUrl } = await setScene();
    server.play(newTokens, good);
    let seenInUse: unknown = null;
    const model = await createModel(choiceAt(server), {
      stateDir,
      env: {},
      timeoutMs: 5_000,
      tokenUrl,
      fetch: (input, init) => {
        if (new Request(input).url !== tokenUrl) seenInUse = profileOf(path);
        return fetch(input, init);
      },
    });
    assert.equal((await model.complete(request)).kind, "text");

    const [asked, used] = server.asked;
    const { refresh: refresh_token, clientId: client_id } = expired;
    assert.deepEqual(asked?.body, { grant_type: "refresh_token", refresh_token, client_id });
    assert.equal(used?.headers.authorization, "Bearer sk-ant-oat01-new");

    const text = readFileSync(path, "utf8");
    const file = JSON.parse(text);
    assert.equal(text, `${JSON.stringify(file, null, 2)}\n`);
    const login = file.profiles["anthropic:default"];
    assert.deepEqual(seenInUse, login);
    const rotated = { ...expired, access: "sk-ant-oat01-new", refresh: "sk-ant-ort01-new", expires: login.expires };
    assert.deepEqual(file, { ...kept, profiles: { "anthropic:default": rotated, ...others } });
    assert.ok(login.expires > Date.now() + 7 * 3_600_000 && login.expires < Date.now() + 8 * 3_600_000);
    assertPrivate(path, 0o640);
    assert.deepEqual(readdirSync(dirname(path)), ["auth-profiles.json"]);
  });

  it("is renewed once, however many requests need it", async () => {
    const { server, stateDir, tokenUrl } = await setScene();
    server.play(newTokens, good);
    const ask = async (): Promise<Completion> => {
      const model = await createModel(choiceAt(server), { stateDir, env: {}, timeoutMs: 10_000, tokenUrl });
      return model.complete(request);
    };
    const completions = await Promise.all([ask(), ask(), ask(), ask()]);
    assert.deepEqual(
      completions.map(({ kind }) => kind),
      ["text", "text", "text", "text"],
    );
    assert.equal(renewalsAt(server), 1);
    assert.ok(server.asked.slice(1).every(({ headers }) => headers.authorization === "Bearer sk-ant-oat01-new"));
  });

  it("is renewed once by several processes", async () => {
    const { server, path, stateDir, tokenUrl } = await setScene();
    server.play(newTokens);
    const program = `
      import { renewLogin } from ${JSON.stringify(new URL("./oauth.ts", import.meta.url).href)};
      const deps = { stateDir: ${JSON.stringify(stateDir)}, fetch, tokenUrl: ${JSON.stringify(tokenUrl)} };
      console.log(JSON.stringify(await renewLogin(${JSON.stringify(path)}, "anthropic:default", deps)));
    `;
    const run = promisify(execFile);
    const processes = [1, 2, 3].map(() => run(process.execPath, ["--input-type=module", "-e", program]));
    for (const { stdout } of await Promise.all(processes)) {
      assert.deepEqual(JSON.parse(stdout), { kind: "found", secret: "sk-ant-oat01-new" });
    }
    assert.equal(renewalsAt(server), 1);
  });

  it("is saved even if the request was aborted meanwhile", async () => {
    const { server, path, stateDir, tokenUrl } = await setScene();
    server.play(newTokens);
    const withdrawal = new AbortController();
    const renewal = Promise.withResolvers<void>();
    const model = await createModel(choiceAt(server), {
      stateDir,
      env: {},
      timeoutMs: 5_000,
      tokenUrl,
      fetch: async (input, init) => {
        const response = await fetch(input, init);
        withdrawal.abort();
        setTimeout(renewal.resolve, 20);
        await renewal.promise;
        return response;
      },
    });
    const completion = await model.complete({ ...request, signal: withdrawal.signal });
    assert.equal(completion.kind === "refused" && completion.refusal, "cancelled");
    assert.equal(profileOf(path).refresh, "sk-ant-ort01-old");
    for (let looks = 0; looks < 500 && readdirSync(dirname(path)).length > 1; looks++) await sleep(5);
    assert.equal(profileOf(path).refresh, "sk-ant-ort01-new");
    assert.equal(server.asked.length, 1);
  });

  it("is requested once, and nothing is sent without it, if its renewal fails", async () => {
    const { server, stateDir, tokenUrl } = await setScene();
    server.play({ kind: "error", status: 503, headers: { "retry-after-ms": "1" } });
    const asked: string[] = [];
    const model = await createModel(
      { ...choiceAt(server), baseUrl: null },
      {
        stateDir,
        env: {},
        timeoutMs: 5_000,
        tokenUrl,
        fetch: (input, init) => {
          asked.push(new Request(input).url);
          return fetch(tokenUrl, init);
        },
      },
    );
    const completion = await model.complete(request);
    assert.equal(completion.kind === "refused" && completion.refusal, "overloaded");
    assert.deepEqual(asked, [tokenUrl]);
  });

  it("is renewed behind a symbolic link, which stays", { skip: withoutLinks }, async () => {
    const { server, path, stateDir, tokenUrl } = await setScene();
    const linked = makeScratch("linked");
    const folder = join(linked, "agents", "main", "agent");
    mkdirSync(folder, { recursive: true });
    symlinkSync(path, join(folder, "auth-profiles.json"));
    server.play(newTokens);
    const renewed = await renewLogin(join(folder, "auth-profiles.json"), "anthropic:default", {
      stateDir: linked,
      fetch,
      tokenUrl,
    });
    assert.equal(renewed.kind, "found");
    assert.equal(profileOf(path).refresh, "sk-ant-ort01-new");
    assert.ok(stateDir !== linked);
  });
});

describe("guarantee 21: a login that must not be renewed counts as missing, and is left unchanged", () => {
  const refusals: Readonly<Record<string, (scene: Scene) => Scene | void>> = {
    "is of a newer version": ({ path }) => writeFileSync(path, JSON.stringify({ ...kept, version: 2 })),
    "has something beside the profiles that we do not know": ({ path }) =>
      writeFileSync(path, JSON.stringify({ ...kept, vault: {} })),
    "has a field that we do not know": ({ path }) => writeLogin(path, { ...expired, issuer: "x" }),
    "does not say to whom it was given": ({ path }) => writeLogin(path, { ...expired, clientId: undefined }),
    "has no refresh token": ({ path }) => writeLogin(path, { ...expired, refresh: "" }),
    "is gone": ({ path }) => writeLogin(path, undefined),
    "is what the host used before it had a database": ({ path }) =>
      writeFileSync(join(dirname(path), "openclaw-agent.sqlite"), ""),
    "belongs to another agent than the main one": (scene) => {
      const folder = join(scene.stateDir, "agents", "other", "agent");
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, "auth-profiles.json"), JSON.stringify(kept));
      return { ...scene, path: join(folder, "auth-profiles.json") };
    },
    "is being written by somebody else": ({ path }) => writeFileSync(`${path}.lock`, "{}"),
    "was locked long ago by somebody who still runs": ({ path }) =>
      leaveLock(path, JSON.stringify({ pid: process.pid })),
    "was locked by nobody known when the clock was ahead": ({ path }) =>
      leaveLock(path, "{}", Date.now() / 1000 + 86_400),
    "has a lock that somebody is already taking over": ({ path }) => {
      leaveLock(path, "{}");
      writeFileSync(`${path}.lock.takeover`, "");
    },
  };
  for (const [reason, prepare] of Object.entries(refusals)) {
    it(`one that ${reason}`, async () => {
      const before = await setScene();
      const scene = prepare(before) ?? before;
      const text = readFileSync(scene.path, "utf8");
      const files = readdirSync(dirname(scene.path));
      const renewed = await renew(scene, { lockWaitMs: 60 });
      assert.equal(renewed.kind === "refused" && renewed.refusal, "no_credential");
      // A lock may be gone by the time the login is needed.
      const isLocked = files.some((name) => name.endsWith(".lock"));
      const seen = await checkLogin(scene.path, "anthropic:default", scene.stateDir);
      assert.deepEqual(seen, isLocked ? null : renewed);
      assert.match(renewed.kind === "refused" ? renewed.message : "", /anthropic:default.*log in again with openclaw$/);
      assert.equal(scene.server.asked.length, 0);
      assert.equal(readFileSync(scene.path, "utf8"), text);
      assert.deepEqual(readdirSync(dirname(scene.path)), files);
    });
  }

  const answers = [
    [400, "auth"],
    [401, "auth"],
    [429, "rate_limit"],
    [503, "overloaded"],
  ] as const;
  for (const [status, refusal] of answers) {
    it(`one whose renewal gets ${status} is \`${refusal}\``, async () => {
      const scene = await setScene();
      const text = readFileSync(scene.path, "utf8");
      scene.server.play({ kind: "error", status, error: { message: "sk-ant-ort01-old" } });
      const renewed = await renew(scene);
      assert.equal(renewed.kind === "refused" && renewed.refusal, refusal);
      assert.doesNotMatch(JSON.stringify(renewed), /sk-ant/);
      assert.equal(readFileSync(scene.path, "utf8"), text);
      assert.deepEqual(readdirSync(dirname(scene.path)), ["auth-profiles.json"]);
    });
  }

  it("one whose renewal gets no answer is `unreachable`", async () => {
    const scene = await setScene();
    await scene.server.close();
    const renewed = await renew(scene);
    assert.equal(renewed.kind === "refused" && renewed.refusal, "unreachable");
    assert.equal(profileOf(scene.path).refresh, expired.refresh);
  });
});

describe("guarantee 32: the renewal of a login", () => {
  for (const status of [302, 307]) {
    it(`sends the refresh token to no other address: HTTP ${status}`, async () => {
      const scene = await setScene();
      const elsewhere = await setScene();
      elsewhere.server.play(newTokens);
      scene.server.play({ kind: "error", status, headers: { location: elsewhere.tokenUrl } });
      const renewed = await renew(scene);
      assert.ok(renewed.kind === "refused" && renewed.refusal === "unreachable");
      assert.match(renewed.message, new RegExp(`redirects to ${elsewhere.server.url} \\(HTTP ${status}\\)`));
      assert.deepEqual([scene.server.asked.length, elsewhere.server.asked.length], [1, 0]);
      assert.equal(profileOf(scene.path).refresh, expired.refresh);
    });
  }

  for (const [status, refusal] of [
    [200, "auth"],
    [503, "overloaded"],
  ] as const) {
    it(`reads an answer without an end up to a cap: HTTP ${status}`, async () => {
      const scene = await setScene();
      scene.server.play({ kind: "endless", status });
      const renewed = await renew(scene);
      assert.equal(renewed.kind === "refused" && renewed.refusal, refusal);
      assert.ok(scene.server.endlessBytes() < 4 * answerBytesMax, `${scene.server.endlessBytes()} bytes were sent`);
      assert.equal(profileOf(scene.path).refresh, expired.refresh);
    });
  }
});

describe("an abandoned lock", () => {
  const locks: Readonly<Record<string, (path: string) => void>> = {
    "by a process that is gone": (path) => leaveLock(path, JSON.stringify({ pid: 2 ** 30 })),
    "by a process that is gone, when the clock was ahead": (path) => {
      leaveLock(path, JSON.stringify({ pid: 2 ** 30 }), Date.now() / 1000 + 86_400);
    },
    "without a word": (path) => leaveLock(path, ""),
    "as a folder": (path) => {
      mkdirSync(`${path}.lock`);
      utimesSync(`${path}.lock`, 1, 1);
    },
  };
  for (const [how, leave] of Object.entries(locks)) {
    it(`${how} is taken over once`, async () => {
      const scene = await setScene();
      leave(scene.path);
      scene.server.play(newTokens);
      const renewed = await Promise.all([renew(scene), renew(scene), renew(scene)]);
      assert.deepEqual(
        renewed.map(({ kind }) => kind),
        ["found", "found", "found"],
      );
      assert.equal(scene.server.asked.length, 1);
      assert.deepEqual(readdirSync(dirname(scene.path)), ["auth-profiles.json"]);
    });
  }
});

// ── Setting the scene ────────────────────────────────────────────────────────────────────────────────────────────────

interface Scene {
  readonly server: ScriptedProvider;
  readonly stateDir: string;
  readonly path: string;
  readonly tokenUrl: string;
}

const servers: ScriptedProvider[] = [];
after(() => Promise.all(servers.map((server) => server.close().catch(() => undefined))));

async function setScene(): Promise<Scene> {
  const server = await startScriptedProvider();
  servers.push(server);
  const stateDir = makeScratch("oauth");
  const folder = join(stateDir, "agents", "main", "agent");
  mkdirSync(folder, { recursive: true });
  const path = join(folder, "auth-profiles.json");
  writeFileSync(path, JSON.stringify(kept), { mode: 0o640 });
  return { server, stateDir, path, tokenUrl: `${server.url}/oauth/token` };
}

const choiceAt = (server: ScriptedProvider) => ({
  provider: "anthropic",
  model: "claude-haiku-4-5",
  baseUrl: server.url,
});

const renew = ({ path, stateDir, tokenUrl }: Scene, deps: Partial<RenewDeps> = {}): Promise<Renewed> =>
  renewLogin(path, "anthropic:default", { stateDir, fetch, tokenUrl, ...deps });

const renewalsAt = (server: ScriptedProvider): number =>
  server.asked.filter(({ path }) => path === "/oauth/token").length;

const profileOf = (path: string): typeof expired =>
  JSON.parse(readFileSync(path, "utf8")).profiles["anthropic:default"];

const writeLogin = (path: string, login: object | undefined): void =>
  writeFileSync(path, JSON.stringify({ ...kept, profiles: { ...others, "anthropic:default": login } }));

function leaveLock(path: string, content: string, seconds = Date.now() / 1000 - 60): void {
  writeFileSync(`${path}.lock`, content);
  utimesSync(`${path}.lock`, seconds, seconds);
}
