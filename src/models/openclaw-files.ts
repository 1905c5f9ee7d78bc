/**
 * Where OpenClaw keeps what a model needs outside of the host, and how its files are written: the config, which people
 * edit by hand and which may hold comments and bare keys, and the list of custom providers, which the host keeps.
 *
 * No error of this file quotes what it read: a config holds keys.
 */

import { readdir } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import { LcmError } from "../core/base/errors.ts";
import { fieldsOf, readIfThere, textAt, valueAt } from "./read-files.ts";

export type Env = Readonly<Record<string, string | undefined>>;

/** A provider that the operator described to OpenClaw; null for what was left open. */
export interface CustomProvider {
  readonly baseUrl: string | null;
  readonly api: string | null;
  /** A key, the name of a variable that holds it, or the host's way to say where it is. */
  readonly apiKey: unknown;
}

/** Where OpenClaw keeps everything. */
export const stateDirectoryIn = (env: Env): string => fromHome(env["OPENCLAW_STATE_DIR"]?.trim() || "~/.openclaw");

/** A variable's or a config's `~` has not been seen by a shell. */
export const fromHome = (path: string): string => (/^~(?=$|[/\\])/.test(path) ? join(homedir(), path.slice(1)) : path);

/** OpenClaw's config, or null if there is none. */
export async function readOpenclawConfig(stateDir: string, env: Env): Promise<unknown> {
  return readTolerantly(env["OPENCLAW_CONFIG_PATH"]?.trim() || join(stateDir, "openclaw.json"));
}

/** By their ids. What the host wrote down goes before what the config says, as it does in the host. */
export async function readCustomProviders(
  stateDir: string,
  config: unknown,
): Promise<ReadonlyMap<string, CustomProvider>> {
  const kept = fieldsOf(valueAt(await readTolerantly(join(mainAgentDir(stateDir), "models.json")), "providers"));
  const configured = fieldsOf(valueAt(config, "models", "providers"));
  return new Map(
    [...Object.keys(configured), ...Object.keys(kept)].map((id) => [
      id.toLowerCase(),
      {
        baseUrl: textAt(kept[id], "baseUrl") ?? textAt(configured[id], "baseUrl"),
        api: textAt(kept[id], "api") ?? textAt(configured[id], "api"),
        apiKey: valueAt(kept[id], "apiKey") ?? valueAt(configured[id], "apiKey"),
      },
    ]),
  );
}

export const mainAgentDir = (stateDir: string): string => agentDir(stateDir, "main");

const agentDir = (stateDir: string, agent: string): string => join(stateDir, "agents", agent, "agent");

/** Every place where auth profiles may be, those of the main agent first. */
export async function profilePaths(stateDir: string): Promise<readonly string[]> {
  // No agents, or not ours to look into: then there are no profiles of theirs for us either.
  const agents = await readdir(join(stateDir, "agents")).catch(() => []);
  const others = agents.filter((agent) => agent !== "main").toSorted();
  const folders = [mainAgentDir(stateDir), ...others.map((agent) => agentDir(stateDir, agent)), stateDir];
  return folders.map((folder) => join(folder, "auth-profiles.json"));
}

async function readTolerantly(path: string): Promise<unknown> {
  const text = await readIfThere(path);
  if (text === null) return null;
  try {
    return parseTolerantly(text);
  } catch {
    // The parser's own message quotes the text around the mistake, which may be a key.
    throw new LcmError("invalid", `${basename(path)} is not a config that can be understood`, {
      hint: `${path} must be JSON; comments, bare keys and a last comma are fine. \`openclaw doctor\` says more`,
    });
  }
}

const doubleQuoted = String.raw`"(?:\\.|[^"\\])*"`;
const looseToken = new RegExp(
  String.raw`${doubleQuoted}|'(?:\\.|[^'\\])*'|//[^\r\n]*|/\*[\s\S]*?\*/|[A-Za-z_$][\w$]*(?=\s*:)`,
  "g",
);
const stringOrLastComma = new RegExp(String.raw`${doubleQuoted}|,(?=\s*[}\]])`, "g");

/** JSON with comments, bare keys, single quotes and last commas. Throws a SyntaxError for what is not even that. */
export function parseTolerantly(text: string): unknown {
  const strict = text
    .replace(/^\uFEFF/, "")
    .replace(looseToken, (token) => {
      if (token.startsWith('"')) return token;
      if (token.startsWith("/")) return " ";
      return `"${token.startsWith("'") ? doubleQuote(token.slice(1, -1)) : token}"`;
    })
    .replace(stringOrLastComma, (token) => (token === "," ? "" : token));
  return JSON.parse(strict);
}

const doubleQuote = (inner: string): string =>
  inner.replace(/\\.|"/gs, (found) => (found === '"' ? '\\"' : found === "\\'" ? "'" : found));
