/**
 * Renews an expired login of the host. A refresh token works only once: using it without saving the next one would log
 * the host out. So a login is renewed only under the host's lock, in a file of exactly the known format, and the new
 * tokens are saved before they are used. In every other case the user must log in again.
 */

import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { open, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { errorText, LcmError } from "../core/base/errors.ts";
import { refusalByStatus } from "../core/model/types.ts";
import type { Refused } from "../core/model/store.ts";
import { guardedFetch } from "./guarded-fetch.ts";
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
/** Well below `lockStaleMs`, after which others may take the lock over. */
const answerWaitMs = 20_000;
/** Like the host, treat a token as expired this long before it is. */
const earlyMs = 300_000;

/** Why a login cannot be renewed, found without a request; null if it can. Never throws. */
export async function checkLogin(file: string, profile: string, stateDir: string): Promise<Refused | null> {
  if (isKeptElsewhere(file, stateDir)) return mustLogIn(profile, keptElsewhere);
  const text = await readFile(file, "utf8").catch(() => "");
  return knownLogin(parseJson(text), profile) === null ? mustLogIn(profile, formUnknown) : null;
}

/** A valid access token of the profile, renewed unless another program has just done so. Never throws. */
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
    return mustLogIn(profile, scrub(errorText(error), []));
  }
}

const keptElsewhere = "the host stores it elsewhere";
const formUnknown = "its format is unknown";

/** `auth` if the provider rejected the login; otherwise it counts as missing. */
const mustLogIn = (profile: string, why: string, refusal: "no_credential" | "auth" = "no_credential"): Refused => ({
  kind: "refused",
  refusal,
  message: `the login ${profile} has expired and was not renewed (${why}): log in again with openclaw`,
});

/** The file of another agent may be a copy; a file next to the host's database is no longer used. */
function isKeptElsewhere(file: string, stateDir: string): boolean {
  const databases = [join(dirname(file), "openclaw-agent.sqlite"), join(stateDir, "state", "openclaw.sqlite")];
  return dirname(file) !== mainAgentDir(stateDir) || databases.some((path) => existsSync(path));
}

async function renewUnderLock(path: string, profile: string, deps: RenewDeps): Promise<Renewed> {
  const text = await readFile(path, "utf8");
  const file = parseJson(text);
  const login = knownLogin(file, profile);
  if (login === null) return mustLogIn(profile, formUnknown);
  // Another program renewed it while we waited for the lock.
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

const fileFields = ["version", "profiles", "order", "lastGood", "usageStats"];
const loginFields = ["type", "provider", "access", "refresh", "expires", "clientId", "email"];

interface Login {
  readonly access: string;
  readonly refresh: string;
  readonly expires: number;
  readonly clientId: string;
}

/** Null for an unknown format. A login without a client id was copied from another program, which renewing would log out. */
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

type Tokens = Pick<Login, "access" | "refresh" | "expires">;
type TokenAnswer = { readonly kind: "tokens"; readonly tokens: Tokens } | Refused;

async function askForTokens(login: Login, deps: RenewDeps): Promise<TokenAnswer> {
  const body = { grant_type: "refresh_token", refresh_token: login.refresh, client_id: login.clientId };
  const response = await guardedFetch(deps.fetch)(deps.tokenUrl ?? anthropicTokenUrl, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(answerWaitMs),
  }).catch((error: unknown) => (error instanceof LcmError ? error.message : "the token server did not answer"));
  if (typeof response === "string") return { kind: "refused", refusal: "unreachable", message: response };
  if (!response.ok) {
    await response.body?.cancel();
    // Any 4xx status means that the refresh token is not accepted.
    const refusal = refusalByStatus(response.status);
    const message = `the token server answered with HTTP ${response.status}`;
    return { kind: "refused", refusal: refusal === "rejected" ? "auth" : refusal, message };
  }
  const answer: unknown = await response.json().catch(() => null);
  const access = textAt(answer, "access_token");
  const seconds = valueAt(answer, "expires_in");
  if (access === null || typeof seconds !== "number") {
    return { kind: "refused", refusal: "auth", message: "the token server sent no token" };
  }
  const refresh = textAt(answer, "refresh_token") ?? login.refresh;
  return { kind: "tokens", tokens: { access, refresh, expires: Date.now() + seconds * 1000 - earlyMs } };
}

const spareBytes = 8_192;

/** Prepares the new file first, so that a full disk or missing permission shows before the token is used. */
async function prepareSuccessor(path: string, text: string) {
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

/** Returns a function that releases the lock; null if another program held it the whole time. */
async function takeLock(path: string, waitMs: number): Promise<(() => Promise<void>) | null> {
  const mark = JSON.stringify({ pid: process.pid, createdAt: new Date().toISOString(), id: randomUUID() });
  const until = performance.now() + waitMs;
  while (!(await createFile(path, mark))) {
    if (performance.now() > until) return null;
    if (await isAbandoned(path)) await removeAbandoned(path);
    await sleep(20);
  }
  return async () => {
    if ((await readFile(path, "utf8").catch(() => null)) === mark) await rm(path, { force: true });
  };
}

/** False if it already exists. */
async function createFile(path: string, content: string): Promise<boolean> {
  try {
    await writeFile(path, content, { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
}

/** Old, and the process it names, if any, is gone. */
async function isAbandoned(path: string): Promise<boolean> {
  const facts = await stat(path).catch(() => null);
  if (facts === null) return false;
  const ageMs = Date.now() - facts.mtimeMs;
  if (ageMs >= 0 && ageMs < lockStaleMs) return false;
  // Some versions of the host lock with a folder, which names no process.
  const pid = valueAt(parseJson(await readFile(path, "utf8").catch(() => "")), "pid");
  // The clock was ahead when a lock from the future was taken: how old it is cannot be known.
  return typeof pid === "number" ? !isRunning(pid) : ageMs >= lockStaleMs;
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM"; // It runs as another user.
  }
}

/** Under a lock of its own, so that two programs do not remove each other's new lock. */
async function removeAbandoned(path: string): Promise<void> {
  const guard = `${path}.takeover`;
  if (!(await createFile(guard, ""))) return;
  try {
    if (await isAbandoned(path)) await rm(path, { recursive: true, force: true });
  } finally {
    await rm(guard, { force: true });
  }
}
