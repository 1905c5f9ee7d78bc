/** `lcm doctor`: every promise about what is stored, checked against the rows. */

import type { Command } from "commander";
import type { Finding } from "../../core/inspect.ts";
import { isSound } from "../../core/inspect.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Conversation } from "../../core/model.ts";
import { formatCount } from "../../core/text.ts";
import type { Paint } from "../render.ts";
import { plural } from "../render.ts";
import { act, exitFindings, exitOk, withLcm } from "./session.ts";
import type { CommandContext, Session } from "./session.ts";
import { conversationWords, examples } from "./options.ts";

export function addDoctor(program: Command, context: CommandContext): void {
  program
    .command("doctor")
    .summary("check that nothing is lost, doubled or broken")
    .description(
      "Check that nothing is lost, doubled or broken: every message is reached once and reads back, every reference, total " +
        "and search entry is right, and the file itself is sound. Changes nothing.",
    )
    .argument("[conversation]", `only ${conversationWords}`)
    .addHelpText(
      "after",
      `${examples(["lcm doctor", "the whole database"], ["lcm doctor 3 --json", "one conversation, as JSON"])}

Exit status 1 means that there are errors or warnings; information alone is 0.`,
    )
    .action(act(context, examine));
}

interface Checked {
  readonly conversations: number;
  readonly messages: number;
  readonly summaries: number;
}

async function examine(session: Session, command: Command, name?: string): Promise<number> {
  return await withLcm(session, "read", async (lcm) => {
    const only = name === undefined ? null : await lcm.find(name);
    const progress = session.progress("checking");
    const findings = await lcm
      .inspect(only?.id ?? null, ({ done, of }) => progress.update({ done, of, unit: "conversations" }))
      .finally(() => progress.end());
    const checked = await checkedIn(lcm, only);
    const sound = isSound(findings);
    const offered = findings.map((finding) => ({ ...finding, remedy: offeredRemedy(command.parent, finding.remedy) }));
    if (session.json) session.printJson({ sound, checked, findings: offered });
    else for (const line of toLines(session.paint, offered, checked)) session.print(line);
    return sound ? exitOk : exitFindings;
  });
}

async function checkedIn(lcm: Lcm, only: Conversation | null): Promise<Checked> {
  if (only !== null) return { conversations: 1, messages: only.totals.messages, summaries: only.totals.summaries };
  const { conversations, messages, summaries } = await lcm.store.status();
  return { conversations, messages, summaries };
}

/** A remedy is shown only if this program can do it: its command is there, and knows its options. */
export function offeredRemedy(program: Command | null, remedy: string | null): string | null {
  const [, name, ...rest] = remedy?.split(" ") ?? [];
  const command = program?.commands.find((each) => each.name() === name);
  if (command === undefined) return null;
  const known = new Set(command.options.map(({ long }) => long));
  return rest.every((word) => !word.startsWith("-") || known.has(word)) ? remedy : null;
}

// ── Showing it ───────────────────────────────────────────────────────────────────────────────────────────────────────

const severities = ["error", "warning", "info"] as const;
const headings = {
  error: ["error", "errors"],
  warning: ["warning", "warnings"],
  info: ["for information", "for information"],
} as const;
/** Of one kind; a broken file can have a hundred thousand, and the first few tell it. What needs nothing needs fewer. */
const shownPerCode = { error: 10, warning: 10, info: 3 } as const;

function toLines(paint: Paint, findings: readonly Finding[], checked: Checked): readonly string[] {
  const extent = `${plural(checked.messages, "message")}, ${plural(checked.summaries, "summary", "summaries")} checked`;
  if (findings.length === 0) return [`${paint.good("sound:")} ${extent}, nothing found`];
  const lines = severities.flatMap((severity) => {
    const of = findings.filter((finding) => finding.severity === severity);
    if (of.length === 0) return [];
    const [one, many] = headings[severity];
    return [paintOf(paint, severity)(plural(of.length, one, many)), ...groupLines(paint, of), ""];
  });
  const isFine = isSound(findings);
  const verdict = isFine ? paint.good("sound:") : paint.bad("not sound:");
  return [...lines, `${verdict} ${extent}${isFine ? ", nothing to mend" : ""}`];
}

const paintOf = (paint: Paint, severity: Finding["severity"]): ((text: string) => string) =>
  severity === "error" ? paint.bad : severity === "warning" ? paint.caution : paint.strong;

function groupLines(paint: Paint, findings: readonly Finding[]): readonly string[] {
  return [...Map.groupBy(findings, ({ code }) => code)].flatMap(([code, of]) => {
    const shown = shownPerCode[of[0]?.severity ?? "error"];
    const more = of.length - shown;
    const remedies = [...new Set(of.map(({ remedy }) => remedy).filter((remedy) => remedy !== null))];
    return [
      `  ${paint.strong(code)}${of.length === 1 ? "" : paint.soft(` × ${formatCount(of.length)}`)}`,
      ...of.slice(0, shown).map((finding) => `    ${paint.soft(placeOf(finding))}${finding.message}`),
      ...(more > 0 ? [`    ${paint.soft(`and ${plural(more, "more", "more")}; --json lists all`)}`] : []),
      ...remedies.map((remedy) => `    ${paint.soft("remedy:")} ${remedy}`),
    ];
  });
}

/** Most messages name their subject; the rest get it in front. */
function placeOf({ conversation, subject, message }: Finding): string {
  const place = conversation === null ? [] : [`conversation ${conversation}`];
  const what = message.includes(subject) ? [] : [subject];
  const words = [...place, ...what].join(", ");
  return words === "" ? "" : `${words}: `;
}
