/** `lcm setup`: connects the agents of this machine to lossless-claw, or takes that back. */

import { basename } from "node:path";
import { LcmError } from "../../core/base/errors.ts";
import { withTilde, plural, shellPath } from "../../core/base/format.ts";
import { diffColumns, diffLines, unifiedDiff } from "../../format/diff.ts";
import { oneLine } from "../../format/safe-text.ts";
import { breakLines } from "../../format/width.ts";
import { agentNames, agents } from "../setup/agents.ts";
import { applyPlan, type Applied } from "../setup/apply.ts";
import { findAgents, ownFiles } from "../setup/find-agents.ts";
import { planSetup, type AgentPlan, type ChangePlan, type Direction, type Step } from "../setup/plan.ts";
import { about, either, flag, list, maybe, object, oneOf, text } from "./_json.ts";
import { attend, defineCommand, exitFindings, exitOk, type Session } from "./_session.ts";

const agentFields = { agent: oneOf(...agentNames), config: about(text, "the file that it changes") };
const step = either(
  object({ kind: oneOf("command"), program: text, args: list(text) }),
  object({ kind: oneOf("edit"), path: text, diff: text }),
);
const warning = { "warning?": about(text, "what will not work although the agent is connected") };
const json = object({
  dryRun: flag,
  applied: flag,
  plan: list(
    either(
      object({ ...agentFields, kind: oneOf("absent") }),
      object({ ...agentFields, kind: oneOf("unchanged"), ...warning }),
      object({ ...agentFields, kind: oneOf("blocked"), problem: text, hint: text }),
      object({ ...agentFields, kind: oneOf("change"), steps: list(step), ...warning }),
    ),
  ),
  "result?": list(
    either(
      object({
        ...agentFields,
        kind: oneOf("done"),
        backup: about(maybe(text), "the copy of what the file was before; null if there was none"),
      }),
      object({ ...agentFields, kind: oneOf("failed"), problem: text }),
    ),
  ),
});

export const setupCommand = defineCommand({
  name: "setup",
  json,
  summary: "connect Claude Code, Codex, OpenCode, Pi or OpenClaw",
  description:
    "Find the agents of this machine, show what would change in which file, and after a yes connect them to lossless-claw. " +
    "Each file is copied first; --remove takes it back.",
  arguments: [["[agents...]", `only these: ${agentNames.join(", ")}`, agentNames]],
  options: {
    remove: ["--remove", "disconnect them; what is stored stays"],
    yes: ["--yes", "do it without asking"],
  },
  examples: [
    ["lcm setup", "show what would change, and ask"],
    ["lcm setup claude-code codex --yes", "connect two agents without asking"],
    ["lcm setup --remove", "disconnect all"],
  ],
  async run(session, { remove, yes }, ...names) {
    const direction: Direction = remove === true ? "remove" : "add";
    const machine = session.context.machine();
    const chosen = agentNames.filter((name) => names.length === 0 || names.includes(name));
    const plan = planSetup(machine, ownFiles(machine), findAgents(machine, chosen), direction);
    if (names.length > 0) mustBeThere(plan);
    if (!session.json) showPlans(session, plan, direction);
    const changes = plan.filter((each) => each.kind === "change");
    const isBlocked = plan.some(({ kind }) => kind === "blocked");
    if (changes.length === 0 || (yes !== true && !(await isConfirmed(session, changes, direction)))) {
      if (session.json) session.printJson(json, { dryRun: true, applied: false, plan: plan.map(toJson) });
      return isBlocked ? exitFindings : exitOk;
    }
    const result: Applied[] = [];
    for (const change of changes) {
      const applied = await attendApplying(session, change, async () => await applyPlan(machine, change, direction));
      result.push(applied);
      if (!session.json) showApplied(session, applied, direction);
    }
    const hasSessions = result.some(({ kind, agent }) => kind === "done" && agent !== "openclaw");
    if (!session.json && direction === "add" && hasSessions) for (const sentence of afterwards) session.note(sentence);
    if (session.json) session.printJson(json, { dryRun: false, applied: true, plan: plan.map(toJson), result });
    return isBlocked || result.some(({ kind }) => kind === "failed") ? exitFindings : exitOk;
  },
});

const afterwards = [
  "Then your agent's next answer is stored: `lcm status` shows it.",
  "To bring in the sessions that you already have, run `lcm import --discover`.",
];

/** The agents' own commands take many seconds. */
async function attendApplying(session: Session, { agent }: ChangePlan, work: () => Promise<Applied>): Promise<Applied> {
  const { label, way } = agents[agent];
  const progress = session.progress(label);
  const doing = way.how === "commands" ? "running its commands" : "trying what it will load";
  return await attend(progress, () => progress.say(`${doing} …`), work);
}

function mustBeThere(plan: readonly AgentPlan[]): void {
  const absent = plan.find(({ kind }) => kind === "absent");
  if (absent === undefined) return;
  const { label, program } = agents[absent.agent];
  throw new LcmError("not_found", `${label} is not on this machine: no program ${program}, no ${absent.config}`, {
    hint: "run `lcm setup` without names to see which agents are",
  });
}

function showPlans(session: Session, plan: readonly AgentPlan[], direction: Direction): void {
  const { paint, print } = session;
  const here = plan.filter(({ kind }) => kind !== "absent");
  for (const each of here) {
    const title = paint.strong(agents[each.agent].label);
    if (each.kind === "unchanged") print(`${title}: ${direction === "add" ? "connected already" : "not connected"}`);
    else if (each.kind === "blocked") {
      print(`${title}: ${paint.caution(oneLine(each.problem))}`);
      printIndented(session, `hint: ${oneLine(each.hint)}`);
    } else if (each.kind === "change") {
      print(
        `${title}: ${direction === "add" ? "connect" : "disconnect"}, which changes ${placeOf(session, each.config)}`,
      );
      for (const step of each.steps) showStep(session, step);
    }
    if ("warning" in each && each.warning !== undefined) printIndented(session, each.warning, paint.caution);
  }
  const absent = plan.filter(({ kind }) => kind === "absent").map(({ agent }) => agents[agent].label);
  if (absent.length > 0) print(paint.soft(`not found: ${absent.join(", ")}`));
}

/** A path for people. */
const placeOf = ({ context }: Session, path: string): string => oneLine(withTilde(path, context.machine().home));

function showStep(session: Session, step: Step): void {
  if (step.kind === "command") {
    const words = [basename(step.program), ...step.args].map((word) => shellPath(placeOf(session, word)));
    return printIndented(session, `$ ${words.join(" ")}`);
  }
  const columns = diffColumns(session.context.stdout);
  const lines = diffLines(session.paint, diffOf(step), columns === null ? null : columns - indent.length);
  for (const line of lines.slice(2)) session.print(`${indent}${line}`);
}

const indent = "  ";

/** What does not fit on the line goes on below, further in. */
function printIndented({ bounds, print }: Session, text: string, paint = (line: string): string => line): void {
  const room = (bounds ?? Infinity) - 2 * indent.length;
  const [first = "", ...more] = breakLines(text, room);
  print(`${indent}${paint(first)}`);
  for (const line of more) print(`${indent}${indent}${paint(line)}`);
}

const diffOf = ({ before, after }: Extract<Step, { readonly kind: "edit" }>): string =>
  unifiedDiff(before?.trimEnd() ?? "", after?.trimEnd() ?? "");

/** Without the whole file, which may hold keys. */
const toJson = (plan: AgentPlan) =>
  plan.kind === "change"
    ? {
        ...plan,
        steps: plan.steps.map((each) =>
          each.kind === "edit" ? { kind: each.kind, path: each.path, diff: diffOf(each) } : each,
        ),
      }
    : plan;

async function isConfirmed(
  { context, json: isJson, note }: Session,
  changes: readonly ChangePlan[],
  direction: Direction,
): Promise<boolean> {
  const isAsked = context.isInteractive && !isJson;
  const question = `Change ${plural(changes.length, "agent")} as shown? ${direction === "add" ? "Each file is copied first." : "What is stored stays."}`;
  if (isAsked && (await context.confirm(question))) return true;
  note(isAsked ? "nothing was changed" : "nothing was changed; pass --yes to do it");
  return false;
}

function showApplied(session: Session, applied: Applied, direction: Direction): void {
  const { paint, print } = session;
  const { label, next, first } = agents[applied.agent];
  const title = paint.strong(label);
  if (applied.kind === "failed") {
    const [problem = "", ...output] = applied.problem.split("\n");
    print(`${title}: ${paint.bad(oneLine(problem))}`);
    for (const line of output) printIndented(session, oneLine(line), paint.soft);
    return;
  }
  print(`${title}: ${paint.good(direction === "add" ? "connected" : "disconnected")}; ${next}`);
  if (direction === "add" && first !== undefined) printIndented(session, first, paint.caution);
  if (applied.backup !== null)
    printIndented(session, `the file as it was: ${placeOf(session, applied.backup)}`, paint.soft);
}
