/**
 * What is wrong with a conversation. The one invariant, every reference, every total and every search entry is checked
 * against the rows; each finding says how bad it is, what it is about and what mends it.
 */

import { coverage, flatten } from "./graph.ts";
import { restoreMessage } from "./large-files.ts";
import type { ConversationId, Sources, Totals } from "./model.ts";
import type { Integrity, Skeleton, Store, SummaryFacts } from "./ports.ts";
import { parseTimestamp } from "./text.ts";

export interface Finding {
  /** An error breaks a promise; a warning wants attention; information needs nothing. */
  readonly severity: "error" | "warning" | "info";
  readonly code: FindingCode;
  readonly conversation: ConversationId | null;
  /** The id of what is wrong. */
  readonly subject: string;
  readonly message: string;
  /** The command that mends it, where there is one. */
  readonly remedy: string | null;
}

export type FindingCode =
  | "lost_message"
  | "doubled_message"
  | "out_of_order"
  | "unreadable_message"
  | "odd_time"
  | "dangling_reference"
  | "wrong_totals"
  | "wrong_depth"
  | "wrong_range"
  | "wrong_descendants"
  | "no_sources"
  | "cycle"
  | "empty_summary"
  | "summary_below_normal"
  | "summary_outdated"
  | "summary_too_long"
  | "search_entry_missing"
  | "search_entry_orphaned"
  | "search_pending"
  | "missing_file"
  | "file_orphaned"
  | "damaged_file";

/** All findings of one conversation's skeleton. Pure. */
export function inspectConversation(bones: Skeleton): readonly Finding[] {
  const at = (finding: Omit<Finding, "conversation">): Finding => ({ ...finding, conversation: bones.conversation.id });
  return [
    ...inspectInvariant(bones),
    ...inspectSummaries(bones),
    ...inspectTotals(bones.conversation.totals, bones.recounted),
    ...bones.dangling.map(({ table, from, to }) =>
      error("dangling_reference", from, `${table} ${from} refers to ${to}, which is not in this conversation`),
    ),
    ...bones.search.missing.map((name) =>
      error("search_entry_missing", name, `${name} is not in the search index`, fix),
    ),
    ...(bones.search.pending <= pendingUsual
      ? []
      : [
          info(
            "search_pending",
            "search",
            `${bones.search.pending} messages wait to be indexed; search reads them one by one`,
          ),
        ]),
    ...bones.missingFiles.map((id) => error("missing_file", id, `the content of ${id} is not in the files folder`)),
    ...(bones.orphanedFiles === 0 ? [] : [orphaned(bones.orphanedFiles)]),
  ].map(at);
}

/** So many rows wait for the index at any time, and every search reads them; more means that it is being rebuilt. */
const pendingUsual = 2_000;

type Bare = Omit<Finding, "conversation">;
const fix = "lcm doctor --fix --apply";
const error = (code: FindingCode, subject: string, message: string, remedy: string | null = null): Bare => ({
  severity: "error",
  code,
  subject,
  message,
  remedy,
});
const warning = (code: FindingCode, subject: string, message: string, remedy: string | null = null): Bare => ({
  ...error(code, subject, message, remedy),
  severity: "warning",
});
const info = (code: FindingCode, subject: string, message: string): Bare => ({
  ...error(code, subject, message),
  severity: "info",
});

const orphaned = (files: number): Bare =>
  info(
    "file_orphaned",
    "files",
    `no row names ${files} of the files in its folder, left by a process that was ended; forgetting removes them`,
  );

// ── The one invariant ────────────────────────────────────────────────────────────────────────────────────────────────

function inspectInvariant(bones: Skeleton): readonly Bare[] {
  const walked = flatten(bones.context, (id) => bones.sources.get(id));
  const { lost, doubled } = coverage(walked.messages, bones.messageIds, bones.asides);
  return [
    ...lost.map((id) => error("lost_message", `message ${id}`, `the context does not reach message ${id}`)),
    ...doubled.map((id) =>
      error("doubled_message", `message ${id}`, `the context reaches message ${id} more than once`),
    ),
    ...walked.cyclic.map((id) => error("cycle", id, `${id} is among its own sources`)),
    ...misordered(walked.messages, bones).map((id) =>
      error("out_of_order", `message ${id}`, `the context reaches message ${id} before one that was said earlier`),
    ),
    ...oddTimes(bones),
  ];
}

/** Copies stand where the context puts them, and what is not here is another finding; all others in the order said. */
function misordered(reached: readonly number[], bones: Skeleton): readonly number[] {
  const seqOf = new Map(bones.messageIds.map((id, index) => [id, bones.messageSeqs[index] ?? 0]));
  const found: number[] = [];
  let highest = -1;
  for (const id of reached) {
    const seq = seqOf.get(id);
    if (seq === undefined || bones.copies.has(id)) continue;
    if (seq < highest) found.push(id);
    else highest = seq;
  }
  return found;
}

function oddTimes(bones: Skeleton): readonly Bare[] {
  return bones.messageTimes.flatMap((time, index) =>
    parseTimestamp(time) === time
      ? []
      : [warning("odd_time", `message ${bones.messageIds[index]}`, `its time is ${time}, not UTC with milliseconds`)],
  );
}

// ── Summaries ────────────────────────────────────────────────────────────────────────────────────────────────────────

function inspectSummaries(bones: Skeleton): readonly Bare[] {
  const byId = new Map(bones.summaries.map((summary) => [summary.id, summary]));
  const timeOf = new Map(bones.messageIds.map((id, index) => [id, bones.messageTimes[index] ?? ""]));
  const tokensOf = new Map(bones.messageIds.map((id, index) => [id, bones.messageTokens[index] ?? 0]));
  return bones.summaries.flatMap((summary) => {
    const sources = bones.sources.get(summary.id) ?? { messages: [], summaries: [] };
    const below = sources.summaries.map((id) => byId.get(id)).filter((source) => source !== undefined);
    return [
      ...inspectText(summary),
      ...inspectLength(summary, [
        ...sources.messages.map((id) => tokensOf.get(id) ?? Infinity),
        ...sources.summaries.map((id) => byId.get(id)?.tokens ?? Infinity),
      ]),
      ...inspectShape(summary, sources, below),
      ...inspectFacts(summary, sources, below, timeOf),
    ];
  });
}

const repair = "lcm repair --apply";

function inspectText(summary: SummaryFacts): readonly Bare[] {
  if (summary.empty) return [error("empty_summary", summary.id, `${summary.id} has no text`, repair)];
  if (summary.rewriteReason !== null) {
    return [
      warning("summary_outdated", summary.id, `${summary.id} should be rewritten: ${summary.rewriteReason}`, repair),
    ];
  }
  switch (summary.level) {
    case "normal":
      return [];
    case "aggressive":
      return [
        info("summary_below_normal", summary.id, `${summary.id} keeps the barest facts; a rewrite may keep more`),
      ];
    case "extractive":
      return [
        info("summary_below_normal", summary.id, `${summary.id} was made without a model; a rewrite would read better`),
      ];
    case "truncated":
      return [
        warning(
          "summary_below_normal",
          summary.id,
          `${summary.id} is an emergency's work, because no answer of a model would do`,
          repair,
        ),
      ];
  }
}

/** What is to be rewritten anyway, and what has lost a source, is another finding. */
function inspectLength(summary: SummaryFacts, sources: readonly number[]): readonly Bare[] {
  const tokens = sources.reduce((sum, each) => sum + each, 0);
  if (sources.length === 0 || summary.rewriteReason !== null || summary.tokens < tokens) return [];
  const message = `${summary.id} takes ${summary.tokens} tokens, what it stands for takes ${tokens}`;
  return [warning("summary_too_long", summary.id, message, repair)];
}

function inspectShape(summary: SummaryFacts, sources: Sources, below: readonly SummaryFacts[]): readonly Bare[] {
  if (summary.carriedFrom !== null) return [];
  if (sources.messages.length + sources.summaries.length === 0) {
    return [error("no_sources", summary.id, `${summary.id} stands for nothing: it has no sources`)];
  }
  const isLeaf = summary.kind === "leaf";
  const fits = isLeaf
    ? summary.depth === 0 && sources.summaries.length === 0
    : sources.messages.length === 0 && summary.depth === 1 + Math.max(...below.map((source) => source.depth));
  return fits
    ? []
    : [
        error(
          "wrong_depth",
          summary.id,
          `${summary.id} is ${summary.kind} of depth ${summary.depth}, which its sources do not make`,
        ),
      ];
}

function inspectFacts(
  summary: SummaryFacts,
  sources: Sources,
  below: readonly SummaryFacts[],
  timeOf: ReadonlyMap<number, string>,
): readonly Bare[] {
  if (summary.carriedFrom !== null) return [];
  const earliest = lowest([
    ...sources.messages.map((id) => timeOf.get(id)),
    ...below.map((source) => source.earliestAt),
  ]);
  const latest = highest([...sources.messages.map((id) => timeOf.get(id)), ...below.map((source) => source.latestAt)]);
  const descendants = below.reduce((sum, source) => sum + source.descendants + 1, 0);
  const found: Bare[] = [];
  if (summary.earliestAt !== earliest || summary.latestAt !== latest) {
    found.push(
      error(
        "wrong_range",
        summary.id,
        `${summary.id} claims ${summary.earliestAt} – ${summary.latestAt}, its sources span ${earliest} – ${latest}`,
        fix,
      ),
    );
  }
  if (summary.descendants !== descendants) {
    found.push(
      error(
        "wrong_descendants",
        summary.id,
        `${summary.id} claims ${summary.descendants} summaries below it, and has ${descendants}`,
        fix,
      ),
    );
  }
  return found;
}

const lowest = (times: readonly (string | null | undefined)[]): string | null =>
  times.reduce<string | null>(
    (low, time) => (typeof time === "string" && (low === null || time < low) ? time : low),
    null,
  );
const highest = (times: readonly (string | null | undefined)[]): string | null =>
  times.reduce<string | null>(
    (high, time) => (typeof time === "string" && (high === null || time > high) ? time : high),
    null,
  );

// ── Totals and the file ──────────────────────────────────────────────────────────────────────────────────────────────

function inspectTotals(kept: Totals, counted: Totals): readonly Bare[] {
  return (Object.keys(counted) as readonly (keyof Totals)[])
    .filter((name) => kept[name] !== counted[name])
    .map((name) =>
      error(
        "wrong_totals",
        name,
        `the running total ${name} is ${kept[name]}, the rows add up to ${counted[name]}`,
        fix,
      ),
    );
}

export function inspectFile(integrity: Integrity): readonly Finding[] {
  const found = [
    ...integrity.problems.map((problem) => error("damaged_file", "database", problem, "lcm restore")),
    ...integrity.dangling.map(({ table, from, to }) =>
      error("dangling_reference", from, `${table} row ${from} refers to a missing row of ${to}`),
    ),
    ...(integrity.orphanedSearchEntries === 0
      ? []
      : [
          error(
            "search_entry_orphaned",
            "search",
            `${integrity.orphanedSearchEntries} search entries have no row`,
            fix,
          ),
        ]),
  ];
  return found.map((finding) => ({ ...finding, conversation: null }));
}

// ── The walk over a database ─────────────────────────────────────────────────────────────────────────────────────────

export interface InspectProgress {
  readonly conversation: ConversationId;
  readonly done: number;
  readonly of: number;
}

/** Inspects one conversation, or all of them and the file, and reads every message back, with what lies in files. */
export async function inspect(
  store: Store,
  only: ConversationId | null,
  onProgress: (progress: InspectProgress) => void = () => undefined,
): Promise<readonly Finding[]> {
  const findings: Finding[] = only === null ? [...inspectFile(await store.integrity())] : [];
  const all =
    only === null
      ? (await store.conversations({ includeHidden: true })).map(({ id }) => id).toSorted((a, b) => a - b)
      : [only];
  for (const [index, id] of all.entries()) {
    onProgress({ conversation: id, done: index, of: all.length });
    findings.push(...inspectConversation(await store.skeleton(id)), ...(await unreadable(store, id)));
  }
  return findings;
}

/** Messages can hold pictures: a page is small enough for a hundred large ones. */
const messagesPerPage = 100;

async function unreadable(store: Store, id: ConversationId): Promise<readonly Finding[]> {
  const found: Finding[] = [];
  for (let afterSeq = 0; ;) {
    const page = await store.messages({ conversation: id, afterSeq, limit: messagesPerPage });
    for (const message of page) {
      afterSeq = message.seq;
      try {
        await restoreMessage(store, message);
      } catch (cause) {
        const subject = `message ${message.id}`;
        const reason = cause instanceof Error ? cause.message : String(cause);
        found.push({
          ...error("unreadable_message", subject, `${subject} cannot be rebuilt: ${reason}`),
          conversation: id,
        });
      }
    }
    if (page.length < messagesPerPage) return found;
  }
}

/** Whether anything was found that an operator should look at. */
export const isSound = (findings: readonly Finding[]): boolean =>
  findings.every((finding) => finding.severity === "info");
