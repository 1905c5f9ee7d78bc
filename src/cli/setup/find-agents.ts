/** Finds the agents of this machine: their programs on PATH, and their configuration. */

import { accessSync, constants, existsSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { agents, type AgentName, type Machine } from "./agents.ts";
import { findKept, readText } from "./kept.ts";
import type { Found, OwnFiles } from "./plan.ts";

export const findAgents = (machine: Machine, names: readonly AgentName[]): readonly Found[] =>
  names.map((name) => {
    const { program, configs, copy } = agents[name];
    const paths = configs(machine);
    const path = paths.find((each) => existsSync(each)) ?? paths.at(-1) ?? "";
    const text = readText(path);
    return {
      agent: name,
      program: findProgram(program, machine.path),
      config: { path, text, kept: findKept(path, text) },
      hasCopy: copy === undefined || existsSync(copy(machine)),
    };
  });

export const ownFiles = ({ folder }: Machine): OwnFiles => ({ has: (path) => existsSync(join(folder, path)) });

export const splitPath = (path: string | undefined): readonly string[] =>
  (path ?? "").split(delimiter).filter((folder) => folder !== "");

function findProgram(name: string, folders: readonly string[]): string | null {
  const names = process.platform === "win32" ? [`${name}.exe`, `${name}.cmd`] : [name];
  return folders.flatMap((folder) => names.map((each) => join(folder, each))).find(isProgram) ?? null;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false; // Not there, or not ours to run.
  }
}
