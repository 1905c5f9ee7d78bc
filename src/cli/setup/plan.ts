/** Plans what `lcm setup` would change for each agent. Pure: what is on the machine is passed in. */

import { join } from "node:path";
import { LcmError } from "../../core/base/errors.ts";
import type { Text } from "./kept.ts";
import { agentNames, agents, type AgentName, type Machine } from "./agents.ts";

/** What was found of an agent. */
export interface Found {
  readonly agent: AgentName;
  /** The path of its program. */
  readonly program: string | null;
  /** Its configuration, and what that was before us if nobody has changed it since. */
  readonly config: { readonly path: string; readonly text: Text; readonly kept: { readonly text: Text } | null };
  /** Whether its copy of this version is there, if it makes one. */
  readonly hasCopy: boolean;
}

/** What was found of this package: the file that an agent loads, and sources, which only a checkout has. */
export interface OwnFiles {
  readonly has: (path: string) => boolean;
}

export type Step =
  | { readonly kind: "command"; readonly program: string; readonly args: readonly string[] }
  | { readonly kind: "edit"; readonly path: string; readonly before: Text; readonly after: Text };

interface Warned {
  /** What will not work although we are connected. */
  readonly warning?: string;
}

export type AgentPlan = { readonly agent: AgentName; readonly config: string } & (
  | { readonly kind: "absent" }
  | ({ readonly kind: "unchanged" } & Warned)
  | { readonly kind: "blocked"; readonly problem: string; readonly hint: string }
  | ({ readonly kind: "change"; readonly steps: readonly Step[] } & Warned)
);

export type ChangePlan = Extract<AgentPlan, { readonly kind: "change" }>;

export type Direction = "add" | "remove";

export const planSetup = (
  machine: Machine,
  own: OwnFiles,
  found: readonly Found[],
  direction: Direction,
): readonly AgentPlan[] =>
  agentNames.flatMap((name) => {
    const it = found.find(({ agent }) => agent === name);
    if (it === undefined) return [];
    const planned = planAgent(machine, own, it, direction);
    return [{ agent: name, config: it.config.path, ...(direction === "add" ? warned(planned, it) : planned) }];
  });

function warned(planned: Outcome, { agent, config: { text } }: Found): Outcome {
  if (planned.kind !== "change" && planned.kind !== "unchanged") return planned;
  const warning = text === null ? null : (agents[agent].obstacle?.(text) ?? null);
  return warning === null ? planned : { ...planned, warning };
}

type Outcome = AgentPlan extends infer P ? (P extends AgentPlan ? Omit<P, "agent" | "config"> : never) : never;

function planAgent(machine: Machine, own: OwnFiles, found: Found, direction: Direction): Outcome {
  const { program, config } = found;
  if (program === null && config.text === null) return { kind: "absent" };
  try {
    const source = config.text === null ? null : agents[found.agent].source(config.text, config.path, machine.folder);
    if (direction === "remove") return source === null ? { kind: "unchanged" } : removal(found, source);
    const isCurrent = source === machine.folder && found.hasCopy;
    if (isCurrent) return { kind: "unchanged" };
    return blockedBy(machine, own, found) ?? addition(machine, found, source);
  } catch (error) {
    if (!(error instanceof LcmError)) throw error;
    return {
      kind: "blocked",
      problem: `${config.path}: ${error.message}`,
      hint: "correct the file, then run it again; nothing was changed",
    };
  }
}

/** Why an agent cannot load this package from where it is. */
function blockedBy({ folder }: Machine, own: OwnFiles, { agent }: Found): Outcome | null {
  const { entry, copies } = agents[agent];
  const install = "install the package: `npm install -g lossless-claw`, or the file that `npm pack` makes";
  if (/[/\\]_npx[/\\]/.test(folder)) {
    return { kind: "blocked", problem: `${folder} is a cache of npx, which npm empties`, hint: install };
  }
  if (!own.has(entry)) {
    return {
      kind: "blocked",
      problem: `${join(folder, entry)} is not there`,
      hint: own.has("src") ? "build it with `npm run build`" : install,
    };
  }
  if (copies && own.has("src")) {
    return { kind: "blocked", problem: "it copies the whole folder, and this is a checkout", hint: install };
  }
  return null;
}

function addition(machine: Machine, found: Found, source: string | null): Outcome {
  const { way, replaces } = agents[found.agent];
  if (way.how === "edit") {
    const { path, text } = found.config;
    const cleared = text === null ? null : way.remove(text);
    return { kind: "change", steps: [{ kind: "edit", path, before: text, after: way.add(cleared, machine.folder) }] };
  }
  const earlier = source === null || replaces ? [] : way.remove(source);
  return commands(found, [...earlier, ...way.add(machine.folder)]);
}

function removal(found: Found, source: string): Outcome {
  const { way } = agents[found.agent];
  if (way.how === "commands") return commands(found, way.remove(source));
  const { path, text, kept } = found.config;
  const after = kept === null || namesUs(found.agent, kept.text, path) ? way.remove(text ?? "") : kept.text;
  return { kind: "change", steps: [{ kind: "edit", path, before: text, after }] };
}

/** A copy may already name us, from an installation before. */
export const namesUs = (agent: AgentName, config: Text, path: string): boolean =>
  config !== null && agents[agent].source(config, path, "") !== null;

function commands({ agent, program }: Found, lines: readonly (readonly string[])[]): Outcome {
  if (program !== null) return { kind: "change", steps: lines.map((args) => ({ kind: "command", program, args })) };
  const { label, program: name } = agents[agent];
  return {
    kind: "blocked",
    problem: `it has a configuration, but its program \`${name}\` is not on PATH`,
    hint: `add its folder to PATH, or leave ${label} out by naming the others`,
  };
}
