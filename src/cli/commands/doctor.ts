/** `lcm doctor`: every promise about what is stored, checked against the rows, and what is mechanical set right. */

import type { Command } from "commander";
import { LcmError } from "../../core/errors.ts";
import type { Finding, Inspection } from "../../core/inspect.ts";
import { isSound } from "../../core/inspect.ts";
import type { Lcm } from "../../core/lcm.ts";
import { isNothing } from "../../core/mend.ts";
import type { FixPlan } from "../../core/mend.ts";
import type { Conversation, Level, SummaryId } from "../../core/model.ts";
import { isSummaryId } from "../../core/model.ts";
import type { Mending } from "../../core/ports.ts";
import { formatCount } from "../../core/text.ts";
import { breakLines, oneLine, plural } from "../../show/render.ts";
import { addApplying, addBackupOption, backUpFirst, isApplying, sayNothingChanged, sayUndo } from "./applying.ts";
import { act, exitFindings, exitOk, withLcm } from "./session.ts";
import type { CommandContext, Session } from "./session.ts";
import { conversationWords, examples, paragraph } from "./options.ts";

interface DoctorOptions {
  readonly verbose?: boolean;
  readonly fix?: boolean;
}

export function addDoctor(program: Command, context: CommandContext): void {
  const command = program
    .command("doctor")
    .summary("check that nothing is lost, doubled or broken")
    .description(
      "Check that nothing is lost, doubled or broken: every message is reached once and reads back, every reference, total " +
        "and search entry is right, and the file itself is sound. Every finding names the command that mends it. " +
        "--fix sets right what follows from other rows, and no text: order, links to nothing, totals, times, search " +
        "entries. Nothing is changed without --apply.",
    )
    .argument("[conversation]", `only ${conversationWords}`)
    .option("-v, --verbose", "name everything that is only for information, too")
    .option("--fix", "set right what needs no decision");
  addBackupOption(addApplying(command))
    .addHelpText(
      "after",
      examples(
        ["lcm doctor", "the whole database"],
        ["lcm doctor 3 --json", "one conversation, as JSON"],
        ["lcm doctor --fix", "what would be set right"],
        ["lcm doctor --fix --apply", "set it right, after a backup"],
      ),
    )
    .addHelpText(
      "after",
      paragraph(
        "Exit status 1 means that there are errors or warnings, or still are after --fix; information alone is 0.",
      ),
    )
    .action(act(context, doctor));
}

async function doctor(session: Session, command: Command, name?: string): Promise<number> {
  const { fix = false, verbose = false } = command.opts<DoctorOptions>();
  const applying = isApplying(command);
  if (applying && !fix) {
    throw new LcmError("invalid", "--apply goes with --fix", { hint: "without --fix there is nothing to apply" });
  }
  return await withLcm(session, applying ? "write" : "read", async (lcm) => {
    const only = name === undefined ? null : await lcm.find(name);
    const found = await examine(session, lcm, only);
    if (!session.json) await printFindings(session, lcm, found, verbose);
    if (fix) return await setRight(session, command, lcm, only, found);
    if (session.json) session.printJson(found);
    return found.sound ? exitOk : exitFindings;
  });
}

interface Examined {
  readonly sound: boolean;
  readonly checked: Checked;
  readonly findings: readonly Told[];
}

type Checked = Inspection["checked"];

/** What is told of a database, and of what is set for it. */
type Told = Omit<Finding, "code"> & { readonly code: Finding["code"] | "unknown_setting" };

async function examine(session: Session, lcm: Lcm, only: Conversation | null): Promise<Examined> {
  const { unknownKeys } = await session.context.settings();
  const progress = session.progress("checking");
  const { findings, checked } = await lcm
    .examine(only?.id ?? null, ({ done, of }) => progress.update({ done, of, unit: "conversations" }))
    .finally(() => progress.end());
  return {
    sound: isSound(findings),
    checked,
    findings: only === null ? [...findings, ...unknownSettings(unknownKeys)] : findings,
  };
}

/** Older versions had other settings, and configs outlive them: told in one line, and nothing that has to be mended. */
function unknownSettings(keys: readonly string[]): readonly Told[] {
  if (keys.length === 0) return [];
  const message = `the plugin's config sets what is not known here, and it is passed over: ${keys.join(", ")}`;
  return [
    { severity: "info", code: "unknown_setting", conversation: null, subject: "plugin config", message, remedy: null },
  ];
}

// ── Setting right ────────────────────────────────────────────────────────────────────────────────────────────────────

async function setRight(
  session: Session,
  command: Command,
  lcm: Lcm,
  only: Conversation | null,
  found: Examined,
): Promise<number> {
  const applying = isApplying(command);
  const plan = await lcm.planFix(only?.id ?? null);
  const shown = { conversations: plan.conversations.map(shownMending), orphans: plan.orphans };
  if (!session.json) for (const line of planLines(session, plan)) session.print(line);
  if (!applying || isNothing(plan)) {
    if (session.json) session.printJson({ dryRun: !applying, applied: false, plan: shown });
    else if (!isNothing(plan)) sayNothingChanged(session);
    return found.sound ? exitOk : exitFindings;
  }
  const backup = await backUpFirst(session, command);
  const progress = session.progress("setting right");
  const fixed = await lcm
    .fix(plan, {
      onProgress: ({ done, of }) => progress.update({ done, of, unit: "conversations" }),
      onReplan: (conversation, next) => {
        if (session.json) return;
        session.note(`conversation ${conversation} changed meanwhile: planned again`);
        for (const line of next === null ? [] : mendingLines(session, next)) session.note(line);
      },
    })
    .finally(() => progress.end());
  const left = await examine(session, lcm, only);
  if (session.json)
    session.printJson({
      dryRun: false,
      applied: fixed.change !== null,
      plan: shown,
      result: { ...fixed, ...left },
      backup,
    });
  else {
    session.print();
    session.print(session.paint.strong(left.sound ? "set right, and checked again" : "set right; this is left"));
    await printFindings(session, lcm, left, false);
    if (fixed.change !== null) sayUndo(session, fixed.change);
  }
  return left.sound ? exitOk : exitFindings;
}

/** The whole context would be as long as the conversation. */
const shownMending = ({ context, revision: _, ...mending }: Mending): object => ({
  ...mending,
  context: context === null ? null : { added: context.added, dropped: context.dropped, reordered: context.reordered },
});

const conversationsShown = 20;

function planLines(session: Session, plan: FixPlan): readonly string[] {
  const { paint } = session;
  if (isNothing(plan)) return ["", "there is nothing that --fix sets right"];
  const { conversations, orphans } = plan;
  const more = conversations.length - conversationsShown;
  return [
    "",
    paint.strong("--fix sets right"),
    ...conversations.slice(0, conversationsShown).flatMap((mending) => mendingLines(session, mending)),
    ...(more > 0 ? [`  ${paint.soft(`and ${plural(more, "conversation")} more; --json lists all`)}`] : []),
    ...(orphans.rows + orphans.searchEntries === 0 ? [] : ["  the file"]),
    ...(orphans.rows === 0
      ? []
      : [`    ${plural(orphans.rows, "row that belongs", "rows that belong")} to nothing, removed for good`]),
    ...(orphans.searchEntries === 0
      ? []
      : [`    ${plural(orphans.searchEntries, "search entry", "search entries")} without a row, removed`]),
  ];
}

function mendingLines(session: Session, mending: Mending): readonly string[] {
  const { conversation, times, sources, context, summaries, recount, unindexed } = mending;
  const inContext = [
    ...(context === null || context.added === 0 ? [] : [`${plural(context.added, "item")} put back`]),
    ...(context === null || context.dropped === 0 ? [] : [`${plural(context.dropped, "item")} left out`]),
    ...(context?.reordered === true ? ["put in order"] : []),
  ];
  const said = [
    ...(times.length === 0 ? [] : [`${plural(times.length, "time")} written in UTC with milliseconds`]),
    ...(sources.length === 0
      ? []
      : [`sources of ${plural(sources.length, "summary", "summaries")}: without links to nothing, and in order`]),
    ...(inContext.length === 0 ? [] : [`context: ${inContext.join(", ")}`]),
    ...(summaries.length === 0
      ? []
      : [`depth, range or count of ${plural(summaries.length, "summary", "summaries")} worked out again`]),
    ...(recount ? ["running totals counted again"] : []),
    ...(unindexed.length === 0 ? [] : [`${plural(unindexed.length, "row")} brought into the search index`]),
  ];
  return [`  conversation ${conversation}`, ...said.flatMap((line) => broken(session, line, "    "))];
}

// ── What belongs together ────────────────────────────────────────────────────────────────────────────────────────────

/** Findings of one kind that the same mends, with one sentence for all of them where there is one. */
interface Group {
  readonly severity: Finding["severity"];
  readonly code: Told["code"];
  readonly findings: readonly Told[];
  readonly sentence: string | null;
}

export async function groupsOf(lcm: Lcm, findings: readonly Told[]): Promise<readonly Group[]> {
  const below = findings.filter(({ code }) => code === "summary_below_normal").map(({ subject }) => subject);
  const levels = await levelsOf(lcm, below.filter(isSummaryId));
  const levelOf = ({ code, subject }: Told): Level =>
    (code === "summary_below_normal" && isSummaryId(subject) ? levels.get(subject) : undefined) ?? "normal";
  const kinds = Map.groupBy(findings, (each) => {
    const mending = each.remedy?.replace(/\d+|sum_\w+/g, "…") ?? "";
    return `${each.severity} ${each.code} ${levelOf(each)} ${mending}`;
  });
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

async function printFindings(session: Session, lcm: Lcm, found: Examined, verbose: boolean): Promise<void> {
  const groups = await groupsOf(lcm, found.findings);
  for (const line of toLines(session, groups, found.checked, verbose)) session.print(line);
}

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
  const remedies = remediesOf(findings);
  return [
    ...broken(session, sentence ?? `${oneLine(first?.message ?? "")}${rest}`, "  "),
    ...named,
    ...(verbose || remedies.length === 1 ? remedyLines(session, remedies) : []),
  ];
}

function groupLines(session: Session, { code, findings, sentence }: Group): readonly string[] {
  const { paint } = session;
  const more = findings.length - shownPerGroup;
  const count = findings.length === 1 ? "" : paint.soft(` × ${formatCount(findings.length)}`);
  const shown = findings.slice(0, shownPerGroup);
  return [
    `  ${paint.strong(code)}${count}`,
    ...(sentence === null ? [] : broken(session, sentence, "    ")),
    ...shown.flatMap((finding) => findingLines(session, finding, sentence === null)),
    ...(more > 0 ? [`    ${paint.soft(`and ${plural(more, "more", "more")}; --json lists all`)}`] : []),
    ...remedyLines(session, remediesOf(findings)),
  ];
}

/** Where it is the same for several conversations, the command for all of them. */
function remediesOf(findings: readonly Told[]): readonly string[] {
  const each = new Set(findings.map(({ remedy }) => remedy).filter((remedy) => remedy !== null));
  if (each.size < 2) return [...each];
  return [
    ...new Set(
      [...each].map((remedy) =>
        remedy.replace(/^lcm repair \d+$/, "lcm repair --all").replace(/^(lcm doctor) \d+/, "$1"),
      ),
    ),
  ];
}

const remedyLines = ({ paint, typed }: Session, remedies: readonly string[]): readonly string[] =>
  remedies.slice(0, shownPerGroup).map((remedy) => `    ${paint.soft("remedy:")} ${typed(remedy)}`);

/** Most messages name their subject; the rest get it in front. Where all is said already, the subject is enough. */
function findingLines(session: Session, finding: Told, isWhole = false): readonly string[] {
  const { conversation, subject, message } = finding;
  const place = conversation === null ? [] : [`conversation ${conversation}`];
  if (!isWhole) return [`    ${session.paint.soft([...place, subject].join(", "))}`];
  const words = [...place, ...(message.includes(subject) ? [] : [subject])].join(", ");
  return broken(session, `${session.paint.soft(words === "" ? "" : `${words}: `)}${oneLine(message)}`, "    ");
}
