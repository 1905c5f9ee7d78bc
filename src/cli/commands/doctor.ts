/** `lcm doctor`: every promise about what is stored, checked against the rows. */

import type { Command } from "commander";
import type { Finding } from "../../core/inspect.ts";
import { isSound } from "../../core/inspect.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Conversation, Level, SummaryId } from "../../core/model.ts";
import { isSummaryId } from "../../core/model.ts";
import { formatCount } from "../../core/text.ts";
import { breakLines, plural } from "../render.ts";
import { act, exitFindings, exitOk, withLcm } from "./session.ts";
import type { CommandContext, Session } from "./session.ts";
import { conversationWords, examples, paragraph } from "./options.ts";

export function addDoctor(program: Command, context: CommandContext): void {
  program
    .command("doctor")
    .summary("check that nothing is lost, doubled or broken")
    .description(
      "Check that nothing is lost, doubled or broken: every message is reached once and reads back, every reference, total " +
        "and search entry is right, and the file itself is sound. Changes nothing.",
    )
    .argument("[conversation]", `only ${conversationWords}`)
    .option("-v, --verbose", "name everything that is only for information, too")
    .addHelpText(
      "after",
      examples(["lcm doctor", "the whole database"], ["lcm doctor 3 --json", "one conversation, as JSON"]),
    )
    .addHelpText("after", paragraph("Exit status 1 means that there are errors or warnings; information alone is 0."))
    .action(act(context, examine));
}

interface Checked {
  readonly conversations: number;
  readonly messages: number;
  readonly summaries: number;
}

/** What is told of a database, and of what is set for it. */
type Told = Omit<Finding, "code"> & { readonly code: Finding["code"] | "unknown_setting" };

async function examine(session: Session, command: Command, name?: string): Promise<number> {
  const { unknownKeys } = await session.context.settings();
  return await withLcm(session, "read", async (lcm) => {
    const only = name === undefined ? null : await lcm.find(name);
    const progress = session.progress("checking");
    const findings = await lcm
      .inspect(only?.id ?? null, ({ done, of }) => progress.update({ done, of, unit: "conversations" }))
      .finally(() => progress.end());
    const checked = await checkedIn(lcm, only);
    const sound = isSound(findings);
    const offered = findings.map((finding) => ({ ...finding, remedy: offeredRemedy(command.parent, finding.remedy) }));
    const told: readonly Told[] = only === null ? [...offered, ...unknownSettings(unknownKeys)] : offered;
    if (session.json) session.printJson({ sound, checked, findings: told });
    else {
      const groups = await groupsOf(lcm, told);
      const verbose = command.opts<{ readonly verbose?: boolean }>().verbose === true;
      for (const line of toLines(session, groups, checked, verbose)) session.print(line);
    }
    return sound ? exitOk : exitFindings;
  });
}

async function checkedIn(lcm: Lcm, only: Conversation | null): Promise<Checked> {
  if (only !== null) return { conversations: 1, messages: only.totals.messages, summaries: only.totals.summaries };
  const { conversations, messages, summaries } = await lcm.store.status();
  return { conversations, messages, summaries };
}

/** Older versions had other settings, and configs outlive them: told in one line, and nothing that has to be mended. */
function unknownSettings(keys: readonly string[]): readonly Told[] {
  if (keys.length === 0) return [];
  const message = `the plugin's config sets what is not known here, and it is passed over: ${keys.join(", ")}`;
  return [
    { severity: "info", code: "unknown_setting", conversation: null, subject: "plugin config", message, remedy: null },
  ];
}

/** A remedy is shown only if this program can do it: its command is there, and knows its options. */
export function offeredRemedy(program: Command | null, remedy: string | null): string | null {
  const [, name, ...rest] = remedy?.split(" ") ?? [];
  const command = program?.commands.find((each) => each.name() === name);
  if (command === undefined) return null;
  const known = new Set(command.options.map(({ long }) => long));
  return rest.every((word) => !word.startsWith("-") || known.has(word)) ? remedy : null;
}

// ── What belongs together ────────────────────────────────────────────────────────────────────────────────────────────

/** Findings of one kind, with one sentence for all of them where there is one. */
interface Group {
  readonly severity: Finding["severity"];
  readonly code: Told["code"];
  readonly findings: readonly Told[];
  readonly sentence: string | null;
}

export async function groupsOf(lcm: Lcm, findings: readonly Told[]): Promise<readonly Group[]> {
  const below = findings.filter(({ code }) => code === "summary_below_normal").map(({ subject }) => subject);
  const levels = await levelsOf(lcm, below.filter(isSummaryId));
  const levelOf = ({ subject }: Told): Level => (isSummaryId(subject) ? levels.get(subject) : undefined) ?? "normal";
  const kinds = Map.groupBy(findings, (each) => `${each.severity} ${each.code} ${levelOf(each)}`);
  return [...kinds.values()].flatMap((of) => {
    const [first] = of;
    if (first === undefined) return [];
    const { severity, code } = first;
    return [{ severity, code, findings: of, sentence: levelSentence(levelOf(first), of.length) }];
  });
}

const levelsPerPage = 500;

/** What a finding does not say: how the text of a summary was made. */
async function levelsOf({ store }: Lcm, ids: readonly SummaryId[]): Promise<ReadonlyMap<SummaryId, Level>> {
  const levels = new Map<SummaryId, Level>();
  for (let at = 0; at < ids.length; at += levelsPerPage) {
    const page = await store.summaries({ ids: ids.slice(at, at + levelsPerPage) });
    for (const { id, level } of page) levels.set(id, level);
  }
  return levels;
}

export function levelSentence(level: Level, count: number): string | null {
  const are = plural(count, "summary was", "summaries were");
  switch (level) {
    case "normal":
      return null;
    case "aggressive":
      return `${plural(count, "summary keeps", "summaries keep")} only the barest facts`;
    case "extractive":
      return `${are} extracted without a model`;
    case "truncated":
      return `${are} cut short: no answer of the model was of use. Nothing is lost, the sources are there, and a better text can be written later`;
  }
}

// ── Showing it ───────────────────────────────────────────────────────────────────────────────────────────────────────

const severities = ["error", "warning", "info"] as const;
const headings = {
  error: ["error", "errors"],
  warning: ["warning", "warnings"],
  info: ["for information", "for information"],
} as const;
/** Of one kind; a broken file can have a hundred thousand, and the first few tell it. */
const shownPerGroup = 10;

function toLines(session: Session, groups: readonly Group[], checked: Checked, verbose: boolean): readonly string[] {
  const { paint } = session;
  const paints = { error: paint.bad, warning: paint.caution, info: paint.strong } as const;
  const lines = severities.flatMap((severity) => {
    const of = groups.filter((group) => group.severity === severity);
    if (of.length === 0) return [];
    const [one, many] = headings[severity];
    const heading = severity === "info" ? one : plural(countOf(of), one, many);
    const shown = of.flatMap((group) =>
      severity === "info" ? infoLines(session, group, verbose) : groupLines(session, group),
    );
    return [paints[severity](heading), ...shown, ""];
  });
  return [...lines, ...verdict(session, groups, checked)];
}

const countOf = (groups: readonly Group[]): number => groups.reduce((sum, { findings }) => sum + findings.length, 0);

function verdict(session: Session, groups: readonly Group[], checked: Checked): readonly string[] {
  const { paint } = session;
  const extent = `${plural(checked.messages, "message")}, ${plural(checked.summaries, "summary", "summaries")} checked`;
  const [errors, warnings] = [countBy(groups, "error"), countBy(groups, "warning")];
  if (errors > 0) return broken(session, `${paint.bad("not sound:")} ${extent}, ${plural(errors, "error")}`);
  if (warnings > 0)
    return broken(session, `${paint.caution(`nothing lost or broken, ${plural(warnings, "warning")}:`)} ${extent}`);
  const found = groups.length === 0 ? "nothing found" : "nothing to mend";
  return broken(session, `${paint.good("sound:")} ${extent}, ${found}`);
}

const countBy = (groups: readonly Group[], severity: Finding["severity"]): number =>
  countOf(groups.filter((group) => group.severity === severity));

/** Within the width of the terminal, what follows indented as the first line is. */
function broken({ context }: Session, line: string, indent = ""): readonly string[] {
  const room = (context.stdout.columns ?? Infinity) - indent.length;
  return breakLines(line, room).map((each) => indent + each);
}

/** One line, because nothing has to be done; which they are, for whoever asks. */
function infoLines(session: Session, { findings, sentence }: Group, verbose: boolean): readonly string[] {
  const [first] = findings;
  const rest = findings.length === 1 ? "" : ` (and ${formatCount(findings.length - 1)} more like it)`;
  const named = verbose ? findings.flatMap((finding) => findingLines(session, finding)) : [];
  return [...broken(session, sentence ?? `${first?.message}${rest}`, "  "), ...named];
}

function groupLines(session: Session, { code, findings, sentence }: Group): readonly string[] {
  const { paint } = session;
  const more = findings.length - shownPerGroup;
  const remedies = [...new Set(findings.map(({ remedy }) => remedy).filter((remedy) => remedy !== null))];
  const count = findings.length === 1 ? "" : paint.soft(` × ${formatCount(findings.length)}`);
  const shown = findings.slice(0, shownPerGroup);
  return [
    `  ${paint.strong(code)}${count}`,
    ...(sentence === null ? [] : broken(session, sentence, "    ")),
    ...shown.flatMap((finding) => findingLines(session, finding, sentence === null)),
    ...(more > 0 ? [`    ${paint.soft(`and ${plural(more, "more", "more")}; --json lists all`)}`] : []),
    ...remedies.map((remedy) => `    ${paint.soft("remedy:")} ${remedy}`),
  ];
}

/** Most messages name their subject; the rest get it in front. Where all is said already, the subject is enough. */
function findingLines(session: Session, finding: Told, isWhole = false): readonly string[] {
  const { conversation, subject, message } = finding;
  const place = conversation === null ? [] : [`conversation ${conversation}`];
  if (!isWhole) return [`    ${session.paint.soft([...place, subject].join(", "))}`];
  const words = [...place, ...(message.includes(subject) ? [] : [subject])].join(", ");
  return broken(session, `${session.paint.soft(words === "" ? "" : `${words}: `)}${message}`, "    ");
}
