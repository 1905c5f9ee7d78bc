/**
 * Reports of proxies in private files beside the database, one for each, so that other programs see them while a proxy
 * runs and after it has ended. Writing one never fails.
 */

import { chmodSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { parseObject } from "../core/base/json.ts";
import type { ProxyReport } from "../core/model/proxy-report.ts";

type Kept = Omit<ProxyReport, "isRunning">;

/** Only its user can read it: the secret of `lcm proxy` is in it, too. */
export function proxyFolder(database: string): string {
  const folder = join(dirname(database), "lcm-proxies");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chmodSync(folder, 0o700);
  return folder;
}

/** The file is complete or not there, and its user's alone. */
export function writePrivate(file: string, value: object): void {
  const half = `${file}.${process.pid}.half`;
  rmSync(half, { force: true });
  writeFileSync(half, JSON.stringify(value), { mode: 0o600, flag: "wx" });
  renameSync(half, file);
}

/** Not while a request is being answered, and not for each one. */
const afterMs = 500;
const endedKept = 5;

export interface ReportWriter {
  /** Something has changed: it is written a little later. */
  changed(): void;
  /** Writes the last report. */
  end(): void;
}

export function createReportWriter(database: string, read: () => Kept): ReportWriter {
  let timer: NodeJS.Timeout | null = null;
  const write = (): void => {
    clearTimeout(timer ?? undefined);
    timer = null;
    try {
      const report = read();
      writePrivate(join(proxyFolder(database), nameOf(database, report)), report);
    } catch {
      // The disk is full or the folder not writable: the agent must not notice, and the next report is tried again.
    }
  };
  removeOld(database);
  write();
  return {
    changed: () => void (timer ??= setTimeout(write, afterMs).unref()),
    end: write,
  };
}

/** The oldest first. */
export function readReports(database: string): readonly ProxyReport[] {
  const reports = filesOf(database).flatMap((file) => {
    try {
      const kept = parseObject(readFileSync(file, "utf8")) as unknown as Kept;
      return [{ ...kept, isRunning: kept.endedAt === null && isAlive(kept.pid) }];
    } catch {
      return []; // Removed meanwhile, or not ours.
    }
  });
  return reports.toSorted((a, b) => (a.startedAt < b.startedAt ? -1 : 1));
}

const nameOf = (database: string, { pid, startedAt }: Kept): string =>
  `${basename(database)} ${startedAt.replaceAll(/\W/g, "")} ${pid}.json`;

function filesOf(database: string): readonly string[] {
  const folder = join(dirname(database), "lcm-proxies");
  try {
    const isReport = (name: string): boolean => name.startsWith(`${basename(database)} `) && name.endsWith(".json");
    return readdirSync(folder)
      .filter(isReport)
      .toSorted()
      .map((name) => join(folder, name));
  } catch {
    return []; // No proxy has run yet.
  }
}

function removeOld(database: string): void {
  const ended = readReports(database).filter(({ isRunning }) => !isRunning);
  const folder = join(dirname(database), "lcm-proxies");
  for (const report of ended.slice(0, -endedKept)) rmSync(join(folder, nameOf(database, report)), { force: true });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
