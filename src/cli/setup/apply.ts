/** Carries out the plan for one agent. Each file is copied first, and is as it was if something fails. */

import { rmSync } from "node:fs";
import { agents, type Machine } from "./agents.ts";
import { findKept, keep, nameKept, readText, writeText } from "./kept.ts";
import { namesUs, type AgentPlan, type ChangePlan, type Direction } from "./plan.ts";
import { checkLoads, runProgram } from "./programs.ts";

export type Applied = { readonly agent: AgentPlan["agent"]; readonly config: string } & (
  | {
      readonly kind: "done";
      /** The copy of what the configuration was; null if there was none, or it is as it was. */
      readonly backup: string | null;
    }
  | { readonly kind: "failed"; readonly problem: string }
);

export async function applyPlan(machine: Machine, plan: ChangePlan, direction: Direction): Promise<Applied> {
  const { agent, config } = plan;
  const failed = (problem: string): Applied => ({ agent, config, kind: "failed", problem });
  const unusable = direction === "add" ? await checkLoads(machine, agent) : null;
  if (unusable !== null) return failed(`nothing was changed: ${unusable}`);
  const before = readText(config);
  const copy = keep(config, before);
  const problem = (await takeSteps(plan)) ?? (direction === "add" ? findMissing(machine, plan) : null);
  if (problem !== null) {
    if (direction === "add") await takeBack(machine, plan);
    if (readText(config) !== before) writeText(config, before);
    rmSync(copy, { force: true });
    return failed(`${problem}\n${config} is as it was`);
  }
  if (direction === "remove") {
    rmSync(copy, { force: true });
    restore(plan, before);
    const data = agents[agent].data?.(machine);
    if (data !== undefined) rmSync(data, { recursive: true, force: true });
    return { agent, config, kind: "done", backup: null };
  }
  const kept = nameKept(copy, readText(config));
  return { agent, config, kind: "done", backup: before === null ? null : kept };
}

/** A command may succeed and do nothing. */
function findMissing({ folder }: Machine, { agent, config }: ChangePlan): string | null {
  const text = readText(config);
  const source = text === null ? null : agents[agent].source(text, config, folder);
  return source === folder ? null : `${config} does not name ${folder} afterwards`;
}

/** Why a step failed; null if none did. */
async function takeSteps({ steps }: ChangePlan): Promise<string | null> {
  for (const step of steps) {
    if (step.kind === "command") {
      const problem = await runProgram(step.program, step.args);
      if (problem !== null) return problem;
    } else if (readText(step.path) !== step.before) return `${step.path} has changed since the plan was made`;
    else writeText(step.path, step.after);
  }
  return null;
}

/** Undoes the commands before the one that failed. Those that find nothing to undo fail, which is fine. */
async function takeBack(machine: Machine, { steps: [step], agent }: ChangePlan): Promise<void> {
  const { way } = agents[agent];
  if (step?.kind !== "command" || way.how !== "commands") return;
  for (const args of way.remove(machine.folder)) await runProgram(step.program, args);
}

/** An agent's own command takes us out, and may leave the file in another layout than it was. */
function restore({ agent, config }: ChangePlan, current: string | null): void {
  const kept = findKept(config, current);
  if (kept === null || namesUs(agent, kept.text, config)) return;
  writeText(config, kept.text);
  rmSync(kept.path, { force: true });
}
