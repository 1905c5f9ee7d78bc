/** What `inspect` found, as a person reads it: findings of one kind together, the worst first, with what mends them. */

import type { Finding, Inspection } from "../core/maintenance/inspect.ts";
import type { Level } from "../core/model/types.ts";
import { levelsOf } from "../core/maintenance/inspect.ts";
import type { ConversationFix, Store } from "../core/model/store.ts";
import { formatCount, plural } from "../core/base/format.ts";
import { breakLines } from "./width.ts";
import { oneLine } from "./safe-text.ts";
import type { Page } from "./page.ts";

/** What is told of a database, and of what is set for it. */
export type ToldFinding = Omit<Finding, "code"> & { readonly code: Finding["code"] | "unknown_setting" };

type Checked = Inspection["checked"];

// ── What belongs together ────────────────────────────────────────────────────────────────────────────────────────────

/** Findings of one kind that the same mends, with one sentence for all of them where there is one. */
export interface FindingGroup {
  readonly severity: Finding["severity"];
  readonly code: ToldFinding["code"];
  readonly findings: readonly ToldFinding[];
  readonly sentence: string | null;
}

/** `levels`: how the texts were made of summaries below normal. Whatever else is wrong with one of them is told in its own words. */
export function groupFindings(
  findings: readonly ToldFinding[],
  levels: ReadonlyMap<string, Level>,
): readonly FindingGroup[] {
  const levelOf = ({ code, subject }: ToldFinding): Level =>
    (code === "summary_below_normal" ? levels.get(subject) : undefined) ?? "normal";
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

export const groupsOf = async (store: Store, findings: readonly ToldFinding[]): Promise<readonly FindingGroup[]> =>
  groupFindings(findings, await levelsOf(store, findings));

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

/** What was found, the worst first, and what that comes to. */
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
  return [...lines, ...verdict(page, groups, checked)];
}

const countOf = (groups: readonly FindingGroup[]): number =>
  groups.reduce((sum, { findings }) => sum + findings.length, 0);

function verdict(page: Page, groups: readonly FindingGroup[], checked: Checked): readonly string[] {
  const { paint } = page;
  const extent = `${plural(checked.messages, "message")}, ${plural(checked.summaries, "summary", "summaries")} checked`;
  const [errors, warnings] = [countBy(groups, "error"), countBy(groups, "warning")];
  if (errors > 0) return broken(page, `${paint.bad("not sound:")} ${extent}, ${plural(errors, "error")}`);
  if (warnings > 0)
    return broken(page, `${paint.caution(`nothing lost or broken, ${plural(warnings, "warning")}:`)} ${extent}`);
  const found = groups.length === 0 ? "nothing found" : "nothing to mend";
  return broken(page, `${paint.good("sound:")} ${extent}, ${found}`);
}

const countBy = (groups: readonly FindingGroup[], severity: Finding["severity"]): number =>
  countOf(groups.filter((group) => group.severity === severity));

/** Within the width of the terminal, what follows indented as the first line is. */
export function broken({ bounds }: Page, line: string, indent = ""): readonly string[] {
  const room = (bounds ?? Infinity) - indent.length;
  return breakLines(line, room).map((each) => indent + each);
}

/** One line, because nothing has to be done; which they are, for whoever asks. */
function infoLines(page: Page, { findings, sentence }: FindingGroup, verbose: boolean): readonly string[] {
  const [first] = findings;
  const rest = findings.length === 1 ? "" : ` (and ${formatCount(findings.length - 1)} more like it)`;
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

/** Where it is the same for several conversations, the command for all of them. */
function remediesOf(findings: readonly ToldFinding[]): readonly string[] {
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

/** Most messages name their subject; the rest get it in front. Where all is said already, the subject is enough. */
function findingLines(page: Page, finding: ToldFinding, isWhole = false): readonly string[] {
  const { conversation, subject, message } = finding;
  const place = conversation === null ? [] : [`conversation ${conversation}`];
  if (!isWhole) return [`    ${page.paint.soft([...place, subject].join(", "))}`];
  const words = [...place, ...(message.includes(subject) ? [] : [subject])].join(", ");
  return broken(page, `${page.paint.soft(words === "" ? "" : `${words}: `)}${oneLine(message)}`, "    ");
}

// ── Setting right ────────────────────────────────────────────────────────────────────────────────────────────────────

/** What would be set right in a conversation. */
export function mendingLines(page: Page, mending: ConversationFix): readonly string[] {
  const { conversation, times, sources, context, summaries, recount, unindexed } = mending;
  const { added = 0, dropped = 0, reordered = false } = context ?? {};
  const inContext = [
    added > 0 && `${plural(added, "item")} put back`,
    dropped > 0 && `${plural(dropped, "item")} left out`,
    reordered && "put in order",
  ].filter((words) => words !== false);
  const said = [
    times.length > 0 && `${plural(times.length, "time")} written in UTC with milliseconds`,
    sources.length > 0 &&
      `sources of ${plural(sources.length, "summary", "summaries")}: without links to nothing, and in order`,
    inContext.length > 0 && `context: ${inContext.join(", ")}`,
    summaries.length > 0 &&
      `depth, range or count of ${plural(summaries.length, "summary", "summaries")} worked out again`,
    recount && "running totals counted again",
    unindexed.length > 0 && `${plural(unindexed.length, "row")} brought into the search index`,
  ].filter((words) => words !== false);
  return [`  conversation ${conversation}`, ...said.flatMap((line) => broken(page, line, "    "))];
}
