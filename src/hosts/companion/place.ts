/** Where the companion works: the same settings and database as the command line, the folder, and its files beside it. */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { DatabasePlace } from "../../core/base/database-place.ts";
import { resolveSettings, type ResolvedSettings } from "../../core/model/settings.ts";
import type { Clock } from "../../core/model/store.ts";
import type { Timestamp } from "../../core/base/time.ts";
import {
  databasePlaceIn,
  pluginConfigIn,
  readOpenclawConfig,
  stateDirectoryIn,
  type Env,
} from "../../models/openclaw-files.ts";
import { claudeCode } from "../claude-code/host.ts";
import { codex } from "../codex/host.ts";
import { errorText } from "../../core/base/errors.ts";
import { logProblem, problemLogOf } from "../shared/problem-log.ts";

export const hosts = { "claude-code": claudeCode, codex } as const;
export type HostName = keyof typeof hosts;
export const isHostName = (name: string | undefined): name is HostName => name !== undefined && name in hosts;

export const clock: Clock = { now: () => new Date().toISOString() as Timestamp };

export interface Place {
  readonly settings: ResolvedSettings;
  readonly stateDir: string;
  readonly openclawConfig: unknown;
  readonly database: DatabasePlace;
  /** Beside it lie our own files: the database itself, or a name in the state directory. */
  readonly nearby: string;
}

export async function findPlace(env: Env): Promise<Place> {
  const stateDir = stateDirectoryIn(env);
  // A config that cannot be read must not keep anything from being stored; `lcm settings` reports it.
  const openclawConfig = await readOpenclawConfig(stateDir, env).catch(() => null);
  const settings = resolveSettings({ env, config: pluginConfigIn(openclawConfig) });
  const database = databasePlaceIn(env, settings);
  return { settings, stateDir, openclawConfig, database, nearby: database.nearby };
}

/** `doing` is to be read after "while". */
export type Report = (doing: string, error: unknown) => void;

/** Only into the log: the host shows its user what a hook prints. */
export const reporterOf =
  (path: string, host: HostName): Report =>
  (doing, error) =>
    logProblem(problemLogOf(path), { at: clock.now(), host, doing, message: errorText(error) });

/** When the companion first ran. Older sessions are imported only if somebody asks for it. */
export function firstRunMs(path: string): number {
  const file = join(dirname(path), "lcm-companion.since");
  // Of a full disk, an empty file may be left.
  const noted = existsSync(file) ? Date.parse(readFileSync(file, "utf8")) : NaN;
  if (!Number.isNaN(noted)) return noted;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const now = clock.now();
  writeFileSync(file, now);
  return Date.parse(now);
}
