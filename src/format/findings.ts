/** Groups and shows what `inspect` found, the worst first, with the command that fixes each group. */

import type { Level } from "../core/model/types.ts";
import { levelsOf, type Finding, type Inspection } from "../core/maintenance/inspect.ts";
import type { ConversationFix, Store } from "../core/model/store.ts";
import { formatCount, plural } from "../core/base/format.ts";
import { breakLines } from "./width.ts";
import { oneLine } from "./safe-text.ts";
import type { Page } from "./page.ts";

/** A finding about the database, or about its settings. */
export type ReportedFinding = Omit<Finding, "code"> & {
  readonly code: Finding["code"] | "unknown_setting" | "misplaced_setting" | "vectors_incomplete";
};

type Checked = Inspection["checked"];

/** Findings of one kind with the same remedy; `sentence` describes all of them, where there is one. */
export interface FindingGroup {
  readonly severity: Finding["severity"];
  readonly code: ReportedFinding["code"];
  readonly findings: readonly ReportedFinding[];
  readonly sentence: string | null;
}

/** `levels`: the levels of the summaries below normal. Other findings about these keep their own messages. */
export function groupFindings(
  findings: readonly ReportedFinding[],
  levels: ReadonlyMap<string, Level>,
): readonly FindingGroup[] {
  const levelOf = ({ code, subject }: ReportedFinding): Level =>
    (code === "summary_below_normal" ? levels.get(subject) : undefined) ?? "normal";
  const kinds = Map.groupBy(findings, (each) => {
    const remedy = each.remedy?.replace(/\d+|sum_\w+/g, "…") ?? "";
    return `${each.severity} ${each.code} ${levelOf(each)} ${remedy}`;
  });
  return [...kinds.values()].flatMap((of) => {
    const [first] = of;
    if (first === undefined) return [];
    const { severity, code } = first;
    return [{ severity, code, findings: of, sentence: levelSentence(levelOf(first), of.length) }];
  });
}

export const groupsOf = async (store: Store, findings: readonly ReportedFinding[]): Promise<readonly FindingGroup[]> =>
  groupFindings(findings, await levelsOf(store, findings));

export function levelSentence(level: Level, count: number): string | null {
  const are = plural(count, "summary was", "summaries were");
  switch (level) {
    case "normal":
      return null;
    case "aggressive":
      return `${plural(count, "summary keeps", "summaries keep")} only the essential facts`;
    case "extractive":
      return `${are} extracted without a model`;
    case "truncated":
      return `${are} cut short, because the model gave no usable answer; the sources are intact, so a better text can be written later`;
  }
}

const severities = ["error", "warning", "info"] as const;
const headings = {
  error: ["error", "errors"],
  warning: ["warning", "warnings"],
  info: ["information", "information"],
} as const;
/** A broken file can have a hundred thousand of one kind. */
const shownPerGroup = 10;

export function findingsLines(
  page: Page,
  groups: readonly FindingGroup[],
  checked: Checked,
  verbose: boolean,
): readonly string[] {
  const { paint } = page;
  const paints = { error: paint.bad, warning: paint.caution, info: paint.strong } as const;
  const lines = severities.flatMap((severity) => {
    const of = groups.filter((group) => group.severity === severity);
    if (of.length === 0) return [];
    const [one, many] = headings[severity];
    const heading = severity === "info" ? one : plural(countOf(of), one, many);
    const shown = of.flatMap((group) =>
      severity === "info" ? infoLines(page, group, verbose) : groupLines(page, group),
    );
    return [paints[severity](heading), ...shown, ""];
  });
  return [...lines, ...verdictLines(page, groups, checked)];
}

const countOf = (groups: readonly FindingGroup[]): number =>
  groups.reduce((sum, { findings }) => sum + findings.length, 0);

function verdictLines(page: Page, groups: readonly FindingGroup[], checked: Checked): readonly string[] {
  const { paint } = page;
  const extent = `${plural(checked.messages, "message")}, ${plural(checked.summaries, "summary", "summaries")} checked`;
  const [errors, warnings] = [countBy(groups, "error"), countBy(groups, "warning")];
  if (errors > 0) return broken(page, `${paint.bad("problems found:")} ${extent}, ${plural(errors, "error")}`);
  if (warnings > 0)
    return broken(page, `${paint.caution(`nothing lost or broken, but ${plural(warnings, "warning")}:`)} ${extent}`);
  const verdict = groups.length === 0 ? "no findings" : "nothing to fix";
  return broken(page, `${paint.good("healthy:")} ${extent}, ${verdict}`);
}

const countBy = (groups: readonly FindingGroup[], severity: Finding["severity"]): number =>
  countOf(groups.filter((group) => group.severity === severity));

/** Wrapped to the width of the terminal, every line with the same indent. */
export function broken({ bounds }: Page, line: string, indent = ""): readonly string[] {
  const room = (bounds ?? Infinity) - indent.length;
  return breakLines(line, room).map((each) => indent + each);
}

/** One line, because nothing has to be done; `verbose` lists them all. */
function infoLines(page: Page, { findings, sentence }: FindingGroup, verbose: boolean): readonly string[] {
  const [first] = findings;
  const rest = findings.length === 1 ? "" : ` (and ${formatCount(findings.length - 1)} more)`;
  const named = verbose ? findings.flatMap((finding) => findingLines(page, finding)) : [];
  const remedies = remediesOf(findings);
  return [
    ...broken(page, sentence ?? `${oneLine(first?.message ?? "")}${rest}`, "  "),
    ...named,
    ...(verbose || remedies.length === 1 ? remedyLines(page, remedies) : []),
  ];
}

function groupLines(page: Page, { code, findings, sentence }: FindingGroup): readonly string[] {
  const { paint } = page;
  const more = findings.length - shownPerGroup;
  const count = findings.length === 1 ? "" : paint.soft(` × ${formatCount(findings.length)}`);
  const shown = findings.slice(0, shownPerGroup);
  return [
    `  ${paint.strong(code)}${count}`,
    ...(sentence === null ? [] : broken(page, sentence, "    ")),
    ...shown.flatMap((finding) => findingLines(page, finding, sentence === null)),
    ...(more > 0 ? [`    ${paint.soft(`and ${plural(more, "more", "more")}; --json lists all`)}`] : []),
    ...remedyLines(page, remediesOf(findings)),
  ];
}

/** One command for all conversations, where there is one. */
function remediesOf(findings: readonly ReportedFinding[]): readonly string[] {
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

const remedyLines = ({ paint, typed }: Page, remedies: readonly string[]): readonly string[] =>
  remedies.slice(0, shownPerGroup).map((remedy) => `    ${paint.soft("remedy:")} ${typed(remedy)}`);

/** Adds the subject to a message that does not name it. Under a common sentence, the subject is enough. */
function findingLines(page: Page, finding: ReportedFinding, isWhole = false): readonly string[] {
  const { conversation, subject, message } = finding;
  const place = conversation === null ? [] : [`conversation ${conversation}`];
  if (!isWhole) return [`    ${page.paint.soft([...place, subject].join(", "))}`];
  const words = [...place, ...(message.includes(subject) ? [] : [subject])].join(", ");
  return broken(page, `${page.paint.soft(words === "" ? "" : `${words}: `)}${oneLine(message)}`, "    ");
}

export function fixLines(page: Page, fix: ConversationFix): readonly string[] {
  const { conversation, times, sources, context, summaries, recount, unindexed } = fix;
  const { added = 0, dropped = 0, reordered = false } = context ?? {};
  const inContext = [
    added > 0 && `${plural(added, "item")} restored`,
    dropped > 0 && `${plural(dropped, "item")} removed`,
    reordered && "reordered",
  ].filter((words) => words !== false);
  const fixes = [
    times.length > 0 && `${plural(times.length, "timestamp")} rewritten in UTC with milliseconds`,
    sources.length > 0 &&
      `sources of ${plural(sources.length, "summary", "summaries")}: dangling links removed, order restored`,
    inContext.length > 0 && `context: ${inContext.join(", ")}`,
    summaries.length > 0 && `depth, range or count of ${plural(summaries.length, "summary", "summaries")} recalculated`,
    recount && "running totals recounted",
    unindexed.length > 0 && `${plural(unindexed.length, "row")} added to the search index`,
  ].filter((words) => words !== false);
  return [`  conversation ${conversation}`, ...fixes.flatMap((line) => broken(page, line, "    "))];
}
