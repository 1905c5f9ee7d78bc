/**
 * Renewing a login that belongs to the host. A refresh token works once: whoever uses it and does not write down the
 * next one has logged the host out. So a login is renewed only where the file is exactly of the form we know and is
 * certainly the host's own copy, only under the host's lock, and the new tokens are on disk before they are used.
 * Nothing here is cut short by whoever waits for it. In every other case the host must do it: "log in again".
 */

import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { open, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { refusalByStatus } from "../core/model/types.ts";
import type { Refused } from "../core/model/store.ts";
import { mainAgentDir } from "./openclaw-files.ts";
import { fieldsOf, isFields, parseJson, textAt, valueAt } from "./read-files.ts";
import { scrub } from "./refusal.ts";

export type Renewed = { readonly kind: "found"; readonly secret: string } | Refused;

export interface RenewDeps {
  readonly stateDir: string;
  readonly fetch: typeof fetch;
  readonly tokenUrl?: string;
  readonly lockWaitMs?: number;
}

const anthropicTokenUrl = "https://console.anthropic.com/v1/oauth/token";
const lockWaitMs = 10_000;
const lockStaleMs = 30_000;
/** Well before others may think that the lock was left behind. */
const answerWaitMs = 20_000;
/** The host, too, counts a token as expired this long before it is. */
const earlyMs = 300_000;

/** What keeps a login from being renewed, seen without asking for it; null if nothing does. Never throws. */
export async function checkLogin(file: string, profile: string, stateDir: string): Promise<Refused | null> {
  if (isKeptElsewhere(file, stateDir)) return mustLogIn(profile, keptElsewhere);
  const text = await readFile(file, "utf8").catch(() => "");
  return knownLogin(parseJson(text), profile) === null ? mustLogIn(profile, formUnknown) : null;
}

/** A valid access token of the profile, renewed if nobody else has done it meanwhile. Never throws. */
export async function renewLogin(file: string, profile: string, deps: RenewDeps): Promise<Renewed> {
  try {
    if (isKeptElsewhere(file, deps.stateDir)) return mustLogIn(profile, keptElsewhere);
    const path = await realpath(file);
    const release = await takeLock(`${path}.lock`, deps.lockWaitMs ?? lockWaitMs);
    if (release === null) return mustLogIn(profile, `${basename(path)}.lock is held by another program`);
    try {
      return await renewUnderLock(path, profile, deps);
    } finally {
      await release();
    }
  } catch (error) {
    return mustLogIn(profile, scrub(error instanceof Error ? error.message : String(error), []));
  }
}

const keptElsewhere = "the host keeps it elsewhere";
const formUnknown = "its form is not known here";

/** As good as no login, unless its provider was asked and did not accept it. */
const mustLogIn = (profile: string, why: string, refusal: "no_credential" | "auth" = "no_credential"): Refused => ({
  kind: "refused",
  refusal,
  message: `the login ${profile} has expired and was not renewed (${why}): log in again with openclaw`,
});

/** Another agent's file may be a copy of the main one's; a file beside the host's database is what it used before. */
function isKeptElsewhere(file: string, stateDir: string): boolean {
  const databases = [join(dirname(file), "openclaw-agent.sqlite"), join(stateDir, "state", "openclaw.sqlite")];
  return dirname(file) !== mainAgentDir(stateDir) || databases.some((path) => existsSync(path));
}

async function renewUnderLock(path: string, profile: string, deps: RenewDeps): Promise<Renewed> {
  const text = await readFile(path, "utf8");
  const file = parseJson(text);
  const login = knownLogin(file, profile);
  if (login === null) return mustLogIn(profile, formUnknown);
  // Somebody else was quicker while we waited for the lock.
  if (login.expires > Date.now()) return { kind: "found", secret: login.access };

  const successor = await prepareSuccessor(path, text);
  try {
    const answer = await askForTokens(login, deps);
    if (answer.kind === "refused") {
      if (answer.refusal === "auth") return mustLogIn(profile, answer.message, "auth");
      return { ...answer, message: `the login ${profile} was not renewed: ${answer.message}` };
    }
    const renewed = { ...fieldsOf(valueAt(file, "profiles", profile)), ...answer.tokens };
    const profiles = { ...fieldsOf(valueAt(file, "profiles")), [profile]: renewed };
    await successor.publish(`${JSON.stringify({ ...fieldsOf(file), profiles }, null, 2)}\n`);
    return { kind: "found", secret: answer.tokens.access };
  } finally {
    await successor.discard();
  }
}

// ── The form that we know ────────────────────────────────────────────────────────────────────────────────────────────

const fileFields = ["version", "profiles", "order", "lastGood", "usageStats"];
const loginFields = ["type", "provider", "access", "refresh", "expires", "clientId", "email"];

interface Login {
  readonly access: string;
  readonly refresh: string;
  readonly expires: number;
  readonly clientId: string;
}

/**
 * Null if anything in it is not as we know it. It must say to which client it was given: one that does not was taken
 * over from another program's login, and to renew it would log that program out.
 */
function knownLogin(file: unknown, profile: string): Login | null {
  const fields = valueAt(file, "profiles", profile);
  if (!isFields(file) || file["version"] !== 1 || !hasOnly(file, fileFields)) return null;
  if (!isFields(fields) || fields["type"] !== "oauth" || !hasOnly(fields, loginFields)) return null;
  const { access, refresh, expires, clientId } = fields;
  if (typeof access !== "string" || typeof refresh !== "string" || refresh === "") return null;
  if (typeof expires !== "number" || typeof clientId !== "string" || clientId === "") return null;
  return { access, refresh, expires, clientId };
}

const hasOnly = (fields: object, known: readonly string[]): boolean =>
  Object.keys(fields).every((field) => known.includes(field));

// ── Asking for tokens ────────────────────────────────────────────────────────────────────────────────────────────────

type Tokens = Pick<Login, "access" | "refresh" | "expires">;
type Answer = { readonly kind: "tokens"; readonly tokens: Tokens } | Refused;

async function askForTokens(login: Login, deps: RenewDeps): Promise<Answer> {
  const body = { grant_type: "refresh_token", refresh_token: login.refresh, client_id: login.clientId };
  const response = await deps
    .fetch(deps.tokenUrl ?? anthropicTokenUrl, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(answerWaitMs),
    })
    .catch(() => null);
  if (response === null) return { kind: "refused", refusal: "unreachable", message: "no answer to the renewal" };
  if (!response.ok) {
    // A refresh token that is not taken is a credential that is not accepted, whichever 4xx says so.
    const refusal = refusalByStatus(response.status);
    const message = `the renewal was answered with HTTP ${response.status}`;
    return { kind: "refused", refusal: refusal === "rejected" ? "auth" : refusal, message };
  }
  const answer: unknown = await response.json().catch(() => null);
  const access = textAt(answer, "access_token");
  const seconds = valueAt(answer, "expires_in");
  if (access === null || typeof seconds !== "number") {
    return { kind: "refused", refusal: "auth", message: "the renewal was answered without a token" };
  }
  const refresh = textAt(answer, "refresh_token") ?? login.refresh;
  return { kind: "tokens", tokens: { access, refresh, expires: Date.now() + seconds * 1000 - earlyMs } };
}

// ── Writing them down ────────────────────────────────────────────────────────────────────────────────────────────────

const spareBytes = 8_192;

/** A file ready to take the other's place: what could keep it from that comes up before a token is spent. */
async function prepareSuccessor(
  path: string,
  text: string,
): Promise<{ publish(text: string): Promise<void>; discard(): Promise<void> }> {
  const { mode, uid, gid } = await stat(path);
  const beside = `${path}.${randomUUID()}.tmp`;
  const handle = await open(beside, "wx", 0o600);
  const discard = async (): Promise<void> => {
    await handle.close();
    await rm(beside, { force: true });
  };
  try {
    await handle.chown(uid, gid);
    await handle.chmod(mode & 0o777);
    await handle.writeFile(text + " ".repeat(spareBytes));
    await handle.sync();
  } catch (error) {
    await discard();
    throw error;
  }
  const publish = async (next: string): Promise<void> => {
    const bytes = Buffer.from(next);
    await handle.write(bytes, 0, bytes.length, 0);
    await handle.truncate(bytes.length);
    await handle.sync();
    await handle.close();
    await rename(beside, path);
  };
  return { publish, discard };
}

// ── The lock ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Gives it back when called; null if somebody else kept it all the while. */
async function takeLock(path: string, waitMs: number): Promise<(() => Promise<void>) | null> {
  const mark = JSON.stringify({ pid: process.pid, createdAt: new Date().toISOString(), id: randomUUID() });
  const until = performance.now() + waitMs;
  while (!(await createFile(path, mark))) {
    if (performance.now() > until) return null;
    if (await isLeftBehind(path)) await removeLeftBehind(path);
    await sleep(20);
  }
  return async () => {
    if ((await readFile(path, "utf8").catch(() => null)) === mark) await rm(path, { force: true });
  };
}

/** False if it is there already. */
async function createFile(path: string, content: string): Promise<boolean> {
  try {
    await writeFile(path, content, { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
}

/** Old, and its holder is gone if it says who that is. */
async function isLeftBehind(path: string): Promise<boolean> {
  const facts = await stat(path).catch(() => null);
  if (facts === null || Date.now() - facts.mtimeMs < lockStaleMs) return false;
  // Some versions of the host lock with a folder, which names nobody.
  const pid = valueAt(parseJson(await readFile(path, "utf8").catch(() => "")), "pid");
  return typeof pid !== "number" || !isRunning(pid);
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM"; // Somebody else's, but running.
  }
}

/** Under a lock of its own: two that saw the same old lock must not remove each other's new one. */
async function removeLeftBehind(path: string): Promise<void> {
  const guard = `${path}.takeover`;
  if (!(await createFile(guard, ""))) return;
  try {
    if (await isLeftBehind(path)) await rm(path, { recursive: true, force: true });
  } finally {
    await rm(guard, { force: true });
  }
}
