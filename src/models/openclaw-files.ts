/**
 * Reads OpenClaw's config and custom providers, and finds its auth profiles. People edit the config by hand, so comments
 * and bare keys are accepted. Errors never quote the files, which contain keys.
 */

import { readdir } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, join, resolve } from "node:path";
import { LcmError } from "../core/base/errors.ts";
import { isPostgresUrl, readAddress, type DatabasePlace } from "../core/base/database-place.ts";
import {
  configuredDatabase,
  isSettingKey,
  pluginConfigPlace,
  type MisplacedSettings,
  type ResolvedSettings,
} from "../core/model/settings.ts";
import { fieldsOf, readIfThere, textAt, valueAt } from "./read-files.ts";

export type Env = Readonly<Record<string, string | undefined>>;

/** A provider from OpenClaw's config; null for missing fields. */
export interface CustomProvider {
  readonly baseUrl: string | null;
  readonly api: string | null;
  /** In the host's notation; see credentials.ts. */
  readonly apiKey: unknown;
}

export const stateDirectoryIn = (env: Env): string => fromHome(env["OPENCLAW_STATE_DIR"]?.trim() || "~/.openclaw");

/** No shell has expanded the `~` of a variable or a config. */
export const fromHome = (path: string): string => (/^~(?=$|[/\\])/.test(path) ? join(homedir(), path.slice(1)) : path);

/** `given`, a path or a URL, then the settings, then `lcm.db` in the state directory. */
export function databasePlaceIn(env: Env, settings: ResolvedSettings, given?: string): DatabasePlace {
  return placeOf(given ?? configuredDatabase(settings) ?? join(stateDirectoryIn(env), "lcm.db"), env);
}

/** A path as a person types it, or a URL. */
export function placeOf(given: string, env: Env): DatabasePlace {
  if (!isPostgresUrl(given)) {
    const path = resolve(fromHome(given));
    return { kind: "file", path, shown: path, nearby: path };
  }
  const { shown } = readAddress(given);
  const name = shown.replace(/^\w+:\/\//, "").replaceAll(/[^\w.]+/g, "-");
  return { kind: "server", url: given, shown, nearby: resolve(stateDirectoryIn(env), name) };
}

/** OpenClaw's config, or null if there is none. */
export async function readOpenclawConfig(stateDir: string, env: Env): Promise<unknown> {
  return readTolerantly(openclawConfigPath(stateDir, env));
}

export const openclawConfigPath = (stateDir: string, env: Env): string =>
  fromHome(env["OPENCLAW_CONFIG_PATH"]?.trim() || join(stateDir, "openclaw.json"));

/** The plugin's own part of OpenClaw's config. */
export const pluginConfigIn = (config: unknown): Readonly<Record<string, unknown>> =>
  fieldsOf(valueAt(config, ...pluginConfigPlace.split(".")));

/** The names under which the older program was documented, too. */
const ownName = /(?:^|\/)(?:lossless[-_]?claw|(?:open-)?lcm)$/i;
const depthMax = 8;

/** Settings under the plugin's name, but where OpenClaw does not pass them to it. */
export function misplacedSettingsIn(config: unknown): readonly MisplacedSettings[] {
  const found: MisplacedSettings[] = [];
  const look = (value: unknown, path: readonly string[], isOurs: boolean): void => {
    const place = path.join(".");
    if (place === pluginConfigPlace || path.length > depthMax) return;
    const fields = fieldsOf(value);
    // OpenClaw itself reads `enabled` of an entry.
    const isEntry = `${place}.config` === pluginConfigPlace;
    const keys = Object.keys(fields).filter((key) => isSettingKey(key) && !(isEntry && key === "enabled"));
    if (isOurs && keys.length > 0) found.push({ place, keys });
    for (const [key, inner] of Object.entries(fields)) look(inner, [...path, key], isOurs || ownName.test(key));
  };
  look(config, [], false);
  return found;
}

/** By id. As in the host, models.json takes precedence over the config. */
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

/** All possible files of auth profiles, that of the main agent first. */
export async function profilePaths(stateDir: string): Promise<readonly string[]> {
  // The folder may be missing or unreadable.
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
    // The parser's message quotes the text around the mistake, which may be a key.
    throw new LcmError("invalid", `${basename(path)} is not valid JSON`, {
      hint: `fix ${path} (comments, bare keys and trailing commas are allowed); \`openclaw doctor\` shows details`,
    });
  }
}

const doubleQuoted = String.raw`"(?:\\.|[^"\\])*"`;
const looseToken = new RegExp(
  String.raw`${doubleQuoted}|'(?:\\.|[^'\\])*'|//[^\r\n]*|/\*[\s\S]*?\*/|[A-Za-z_$][\w$]*(?=\s*:)`,
  "g",
);
const stringOrTrailingComma = new RegExp(String.raw`${doubleQuoted}|,(?=\s*[}\]])`, "g");

/** Parses JSON with comments, bare keys, single quotes and trailing commas. Throws a SyntaxError. */
export function parseTolerantly(text: string): unknown {
  const strict = text
    .replace(/^\uFEFF/, "")
    .replace(looseToken, (token) => {
      if (token.startsWith('"')) return token;
      if (token.startsWith("/")) return " ";
      return `"${token.startsWith("'") ? doubleQuote(token.slice(1, -1)) : token}"`;
    })
    .replace(stringOrTrailingComma, (token) => (token === "," ? "" : token));
  return JSON.parse(strict);
}

const doubleQuote = (inner: string): string =>
  inner.replace(/\\.|"/gs, (found) => (found === '"' ? '\\"' : found === "\\'" ? "'" : found));
