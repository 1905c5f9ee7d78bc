/**
 * Inspects conversations and the database file, and reports findings: each with a severity, a subject and a remedy.
 * The one invariant, every reference, every total and every search entry is checked against the rows.
 */

import { errorText } from "../base/errors.ts";
import { isSameRange, isSameSources, partialIn, planFix, deriveRows, wrongTotals } from "./plan-fix.ts";
import type { Derivation } from "./plan-fix.ts";
import { coverage, flatten, reachedFrom } from "../model/summary-graph.ts";
import { messagesPerPage, restoreMessage } from "../ingest/large-content.ts";
import { isSummaryId, messageName } from "../model/types.ts";
import type { ConversationId, Level, MessageId, Ref, Sources, SummaryId } from "../model/types.ts";
import { damageLine, transcriptToo, type Exposure, type Integrity } from "../model/database-file.ts";
import type { Skeleton, Store, SummaryFacts } from "../model/store.ts";
import { formatCount, shellPath } from "../base/format.ts";

export interface Finding {
  /** An error breaks a guarantee, a warning needs attention, info needs nothing. */
  readonly severity: "error" | "warning" | "info";
  readonly code: FindingCode;
  readonly conversation: ConversationId | null;
  /** The id of the affected row or thing. */
  readonly subject: string;
  readonly message: string;
  /** The command that fixes it, if there is one. */
  readonly remedy: string | null;
}

type Severity = Finding["severity"];

const remedies = {
  none: () => null,
  fix: (id) => (id === null ? "lcm doctor --fix --apply" : `lcm doctor ${id} --fix --apply`),
  repair: (id) => `lcm repair ${id}`,
  repairAll: () => "lcm repair --all",
  rewrite: (id, summary) => `lcm rewrite ${id} --summary ${summary}`,
  dissolve: (id, summary) => `lcm dissolve ${id} --summary ${summary}`,
  purge: (id, summary) => `lcm dissolve ${id} --summary ${summary} --purge`,
  restore: () => "lcm restore",
  chmod: (_, path) => `chmod -R go= ${shellPath(path)}`,
} as const satisfies Readonly<Record<string, (id: ConversationId | null, summary: string) => string | null>>;
type Remedy = keyof typeof remedies;

/** Every kind of finding, with its default severity and remedy. */
const kinds = {
  missing_message: ["error", "restore"],
  lost_message: ["error", "fix"],
  doubled_message: ["error", "fix"],
  out_of_order: ["error", "fix"],
  unreadable_message: ["error", "restore"],
  odd_time: ["warning", "fix"],
  dangling_reference: ["error", "fix"],
  orphaned_rows: ["error", "fix"],
  wrong_totals: ["error", "fix"],
  wrong_depth: ["error", "fix"],
  wrong_range: ["error", "fix"],
  wrong_descendants: ["error", "fix"],
  no_sources: ["error", "restore"],
  cycle: ["error", "restore"],
  empty_summary: ["error", "repair"],
  summary_below_normal: ["warning", "repair"],
  summary_outdated: ["warning", "repair"],
  summary_too_long: ["warning", "repair"],
  unused_summary: ["info", "purge"],
  search_entry_missing: ["error", "fix"],
  search_entry_orphaned: ["error", "fix"],
  search_pending: ["info", "none"],
  missing_file: ["error", "restore"],
  altered_file: ["error", "restore"],
  odd_file: ["error", "restore"],
  file_orphaned: ["info", "none"],
  damaged_file: ["error", "restore"],
  damaged_text: ["error", "restore"],
  checksums_pending: ["info", "none"],
  exposed_file: ["warning", "chmod"],
} as const satisfies Readonly<Record<string, readonly [Severity, Remedy]>>;

export type FindingCode = keyof typeof kinds;

/** Whether a new text fixes it. */
export const isFixedByText = (code: FindingCode): boolean => kinds[code][1] === "repair";

/** A finding that still needs its conversation; null for the file. */
type PendingFinding = (conversation: ConversationId | null) => Finding;

interface Overrides {
  readonly severity?: Severity;
  readonly remedy?: Remedy;
  /** The summary to apply the remedy to, if it is not the subject. */
  readonly summary?: SummaryId;
}

const finding =
  (code: FindingCode, subject: string, message: string, overrides: Overrides = {}): PendingFinding =>
  (conversation) => {
    const [usualSeverity, usualRemedy] = kinds[code];
    const { severity = usualSeverity, remedy = usualRemedy, summary = subject } = overrides;
    return { severity, code, subject, message, remedy: remedies[remedy](conversation, summary), conversation };
  };

const onlyBackup = "only an older backup can restore it";

/** All findings of one conversation's skeleton. Pure. */
export function inspectConversation(skeleton: Skeleton): readonly Finding[] {
  const right = deriveRows(skeleton);
  const { pending } = skeleton.search;
  return [
    ...skeleton.gone.map(({ message, summary }) => gone(messageName(message), summary)),
    ...inspectInvariant(skeleton, right),
    ...inspectSummaries(skeleton, right),
    ...wrongTotals(skeleton).map((name) => {
      const [is, should] = [skeleton.conversation.totals[name], skeleton.recounted[name]];
      return finding("wrong_totals", name, `the running total ${name} is ${is}, but the rows add up to ${should}`);
    }),
    ...skeleton.dangling.map(({ table, from, to }) =>
      finding("dangling_reference", from, `${table} ${from} refers to ${to}, which is not in this conversation`),
    ),
    ...skeleton.search.missing
      .map((row) => (typeof row === "number" ? messageName(row) : row))
      .map((name) => finding("search_entry_missing", name, `${name} is not in the search index`)),
    ...(pending > pendingUsual ? [waiting(pending)] : []),
    ...skeleton.missingFiles.map((file) =>
      finding("missing_file", file, `the content of ${file} is missing from the files folder; ${transcriptToo}`),
    ),
    ...skeleton.alteredFiles.map(({ id, stored, found: now }) => {
      const sizes = `has ${formatCount(now)} bytes, but ${formatCount(stored)} were stored`;
      return finding("altered_file", id, `the content of ${id} was altered: it ${sizes}; ${transcriptToo}`);
    }),
    ...skeleton.oddFiles.map(({ id, what }) =>
      finding("odd_file", id, `in the files folder, ${id} is ${what}, which is never read; ${onlyBackup}`),
    ),
    ...(skeleton.orphanedFiles > 0 ? [orphaned(skeleton.orphanedFiles)] : []),
  ].map((each) => each(skeleton.conversation.id));
}

/** Rows that may wait for the index at any time; more means that it is being rebuilt. */
const pendingUsual = 2_000;

const waiting = (rows: number): PendingFinding =>
  finding(
    "search_pending",
    "search",
    `${formatCount(rows)} messages are not indexed yet; searches read them one by one`,
  );

function gone(message: string, summary: SummaryId | null): PendingFinding {
  const namedBy = summary === null ? "the context refers to it" : `${summary} was made from it`;
  const remedy = "restore an older backup, or import the host's transcript with `lcm import`";
  return finding(
    "missing_message",
    message,
    `${message} is missing: ${namedBy}, but it is no longer stored; ${remedy}`,
  );
}

function orphaned(files: number): PendingFinding {
  const left = "left by an interrupted process; forgetting removes them";
  return finding("file_orphaned", "files", `orphaned files in its folder: ${files}, ${left}`);
}

function inspectInvariant(skeleton: Skeleton, right: Derivation): readonly PendingFinding[] {
  const walked = flatten(skeleton.context, (summary) => skeleton.sources.get(summary));
  const { lost, doubled } = coverage(walked.messages, skeleton.messageIds, skeleton.asides);
  const isDoubled = new Set(doubled);
  const wrong = misordered(walked.messages, skeleton).filter((each) => !isDoubled.has(each));
  const opened = doubled.length + wrong.length === 0 ? () => null : whatToOpen(skeleton, right);
  const tangled = (code: FindingCode, message: number, how: string): PendingFinding => {
    const summary = opened(message);
    const subject = messageName(message as MessageId);
    const reached = `the context reaches ${subject} ${how}`;
    if (summary === null) return finding(code, subject, reached);
    if (summary === "unknown") return finding(code, subject, `${reached}; ${onlyBackup}`, { remedy: "restore" });
    const steps = `dissolve ${summary}, then run doctor --fix`;
    return finding(code, subject, `${reached}; ${steps}`, { remedy: "dissolve", summary });
  };
  return [
    ...lost
      .map((each) => messageName(each as MessageId))
      .map((name) => finding("lost_message", name, `the context does not reach ${name}`)),
    ...doubled.map((each) => tangled("doubled_message", each, "more than once")),
    ...[...right.cyclic].map((each) => finding("cycle", each, `${each} is one of its own sources; ${onlyBackup}`)),
    ...wrong.map((each) => tangled("out_of_order", each, "after a later message")),
    ...oddTimes(skeleton, right),
  ];
}

/** Ignores copies, whose order only the context knows, and missing messages, which are another finding. */
function misordered(reached: readonly number[], skeleton: Skeleton): readonly number[] {
  const seqOf = new Map(skeleton.messageIds.map((id, index) => [id, skeleton.messageSeqs[index] ?? 0]));
  const misplaced: number[] = [];
  let highest = -1;
  for (const id of reached) {
    const seq = seqOf.get(id);
    if (seq === undefined || skeleton.copies.has(id)) continue;
    if (seq < highest) misplaced.push(id);
    else highest = seq;
  }
  return misplaced;
}

/**
 * The summary to dissolve so that a fix can sort a message. Moving whole items cannot separate two summaries that overlap
 * or a message inside one. Null if a fix alone is enough; unknown if a cycle hides what a summary spans.
 */
function whatToOpen(skeleton: Skeleton, right: Derivation): (message: number) => SummaryId | "unknown" | null {
  const context: readonly Ref[] = planFix(skeleton)?.context?.items ?? skeleton.context;
  const sourcesOf = (summary: SummaryId): Sources | undefined => right.summaries.get(summary)?.sources;
  const { messages } = flatten(context, sourcesOf);
  const { doubled } = coverage(messages, skeleton.messageIds, skeleton.asides);
  const left = new Set([...doubled, ...misordered(messages, skeleton)]);
  const shown = context.filter((item) => item.kind === "summary");
  const over = new Map<number, SummaryId>();
  if (left.size > 0)
    for (const item of shown)
      for (const message of flatten([item], sourcesOf).messages) if (left.has(message)) over.set(message, item.id);
  return (message) => {
    if (!left.has(message)) return null;
    const seq = right.spanOf({ kind: "message", id: message as MessageId })?.first ?? NaN;
    const around = shown.find((item) => {
      const span = right.spanOf(item);
      return span !== null && span.first <= seq && seq <= span.last;
    });
    return over.get(message) ?? around?.id ?? "unknown";
  };
}

const oddTimes = (skeleton: Skeleton, { times }: Derivation): readonly PendingFinding[] =>
  skeleton.messageTimes.flatMap((time, index) => {
    const id = (skeleton.messageIds[index] ?? 0) as MessageId;
    const right = times.get(id);
    if (right === time) return [];
    if (right !== undefined)
      return [finding("odd_time", messageName(id), `its time is ${time}, not UTC with milliseconds`)];
    const invalid = `its time is ${JSON.stringify(time)}, which is not a time; ${onlyBackup}`;
    return [finding("odd_time", messageName(id), invalid, { remedy: "restore" })];
  });

function inspectSummaries(skeleton: Skeleton, right: Derivation): readonly PendingFinding[] {
  const byId = new Map(skeleton.summaries.map((summary) => [summary.id, summary]));
  const tokensOf = new Map(skeleton.messageIds.map((message, index) => [message, skeleton.messageTokens[index] ?? 0]));
  const isUnused = unusedIn(skeleton);
  const isPartial = partialIn(skeleton);
  const reached = new Set(reachedFrom(skeleton.context, (summary) => skeleton.sources.get(summary)));
  return skeleton.summaries.flatMap((summary) => {
    const sources = skeleton.sources.get(summary.id) ?? { messages: [], summaries: [] };
    return [
      ...inspectText(summary),
      ...inspectLength(summary, [
        ...(isPartial(summary.id) ? [Infinity] : []),
        ...sources.messages.map((message) => tokensOf.get(message) ?? Infinity),
        ...sources.summaries.map((source) => byId.get(source)?.tokens ?? Infinity),
      ]),
      ...(isPartial(summary.id) && isNone(sources) ? [] : inspectFacts(summary, sources, right)),
      ...(reached.has(summary.id) ? [] : inspectOrder(summary.id, sources, right)),
      ...(isUnused(summary) && !isPartial(summary.id) ? [unused(summary.id)] : []),
    ];
  });
}

const isNone = ({ messages, summaries }: Sources): boolean => messages.length + summaries.length === 0;

function inspectText(summary: SummaryFacts): readonly PendingFinding[] {
  const { id, rewriteReason } = summary;
  if (summary.empty) return [finding("empty_summary", id, `${id} has no text`)];
  if (rewriteReason !== null) {
    // A carried summary is rewritten together with its origin.
    const remedy = summary.carriedFrom === null ? "repair" : "repairAll";
    return [finding("summary_outdated", id, `${id} should be rewritten: ${rewriteReason}`, { remedy })];
  }
  const below = (problem: string, overrides?: Overrides): readonly PendingFinding[] => [
    finding("summary_below_normal", id, `${id} ${problem}`, overrides),
  ];
  switch (summary.level) {
    case "normal":
      if (summary.garbled) return below("is garbled: it contains binary data or lost part of a number");
      return summary.marked ? below("has the older program's truncation mark") : [];
    case "aggressive": {
      return below("keeps only the essential facts; a rewrite may keep more", { severity: "info", remedy: "rewrite" });
    }
    case "extractive":
      return below("was extracted without a model; a rewrite would read better", { severity: "info" });
    case "truncated":
      return below("was cut short, because the model gave no usable answer");
  }
}

/** Summaries that need a rewrite anyway, or have lost a source, are other findings. */
function inspectLength(summary: SummaryFacts, sources: readonly number[]): readonly PendingFinding[] {
  const tokens = sources.reduce((sum, each) => sum + each, 0);
  if (sources.length === 0 || summary.rewriteReason !== null || summary.tokens < tokens) return [];
  const message = `${summary.id} takes ${summary.tokens} tokens, but its sources take ${tokens}`;
  return [finding("summary_too_long", summary.id, message)];
}

function inspectFacts(summary: SummaryFacts, sources: Sources, right: Derivation): readonly PendingFinding[] {
  const { id, kind, depth, descendants } = summary;
  if (summary.carriedFrom !== null) return [];
  if (isNone(sources)) return [finding("no_sources", id, `${id} has no sources; ${onlyBackup}`)];
  const { facts, sources: own } = right.summaries.get(id) ?? { facts: null, sources };
  if (facts === null) return [];
  const shape = `${id} is ${kind} at depth ${depth}`;
  const isMixed = own.messages.length > 0 && own.summaries.length > 0;
  const isShaped = kind === facts.kind && depth === facts.depth;
  const mixed = `${shape}, but its sources are both messages and summaries`;
  const misshapen = `${shape}, but its sources make it ${facts.kind} at depth ${facts.depth}`;
  const range = `${id} claims ${rangeText(summary)}, but its sources span ${rangeText(facts)}`;
  const count = `${id} claims ${descendants} summaries below it, but has ${facts.descendants}`;
  return [
    ...(isMixed ? [finding("wrong_depth", id, mixed, { remedy: "restore" })] : []),
    ...(isMixed || isShaped ? [] : [finding("wrong_depth", id, misshapen)]),
    ...(isSameRange(summary, facts) ? [] : [finding("wrong_range", id, range)]),
    ...(descendants === facts.descendants ? [] : [finding("wrong_descendants", id, count)]),
  ];
}

/** Only for summaries that the context does not reach; the invariant checks the others. */
function inspectOrder(id: SummaryId, sources: Sources, right: Derivation): readonly PendingFinding[] {
  const own = right.summaries.get(id)?.sources;
  // A link to a missing source is another finding.
  const isWhole = own?.messages.length === sources.messages.length && own.summaries.length === sources.summaries.length;
  if (!isWhole || isSameSources(sources, own)) return [];
  return [finding("out_of_order", id, `the sources of ${id} are not in the order of the conversation`)];
}

const rangeText = ({ earliestAt, latestAt }: Pick<SummaryFacts, "earliestAt" | "latestAt">): string =>
  earliestAt === null && latestAt === null ? "no time" : `${earliestAt ?? "?"} – ${latestAt ?? "?"}`;

/** A summary that covers a lost message is still needed. */
function unusedIn(skeleton: Skeleton): (summary: SummaryFacts) => boolean {
  const used = new Set<unknown>(skeleton.context.map(({ id }) => id));
  for (const { summaries } of skeleton.sources.values()) for (const id of summaries) used.add(id);
  const candidates = skeleton.summaries.filter(({ id, released }) => !released && !used.has(id));
  if (candidates.length === 0) return () => false;
  const sourcesOf = (id: SummaryId): Sources | undefined => skeleton.sources.get(id);
  const reached = new Set(flatten(skeleton.context, sourcesOf).messages);
  return ({ id, released }) =>
    !released &&
    !used.has(id) &&
    flatten([{ kind: "summary", id }], sourcesOf).messages.every(
      (each) => reached.has(each) || skeleton.asides.has(each),
    );
}

const unused = (id: SummaryId): PendingFinding =>
  finding("unused_summary", id, `${id} is unused: it is not in the context, and no summary was made from it`);

export function inspectFile(integrity: Integrity): readonly Finding[] {
  const { problems, dangling, orphanedRows, orphanedSearchEntries: entries, unchecked, exposures } = integrity;
  return [
    ...problems.map((problem) =>
      finding("damaged_file", "database", `the database is damaged: ${damageLine(problem)}`),
    ),
    ...dangling.map(({ table, from, to }) => {
      const message = `row ${from} of ${table} refers to a missing row of ${to}; ${onlyBackup}`;
      return finding("dangling_reference", table, message, { remedy: "restore" });
    }),
    ...Object.entries(orphanedRows).map(([table, rows]) =>
      finding("orphaned_rows", table, `orphaned rows in ${table}: ${formatCount(rows)}`),
    ),
    ...(entries === 0
      ? []
      : [finding("search_entry_orphaned", "search", `search entries without a row: ${formatCount(entries)}`)]),
    ...(unchecked === 0 ? [] : [pendingChecksums(unchecked)]),
    ...exposures.map(exposed),
  ].map((each) => each(null));
}

/** A group may share a database on purpose. */
const exposed = ({ path, isToEveryone }: Exposure): PendingFinding =>
  isToEveryone
    ? finding("exposed_file", path, `every user of this machine has access to ${path}`)
    : finding("exposed_file", path, `other users in its group have access to ${path}`, { severity: "info" });

const pendingChecksums = (rows: number): PendingFinding =>
  finding(
    "checksums_pending",
    "checksums",
    `${formatCount(rows)} rows have no checksum yet; they get one while a host runs`,
  );

/** In conversations, or in messages where these are read. */
export interface InspectProgress {
  readonly conversation: ConversationId;
  readonly done: number;
  readonly of: number;
}

export interface Inspection {
  readonly findings: readonly Finding[];
  /** Counted from rows, because the running totals may be wrong. */
  readonly checked: { readonly conversations: number; readonly messages: number; readonly summaries: number };
}

/**
 * Inspects one conversation, or all of them and the file, and rebuilds every message with its moved content. Progress
 * counts messages.
 */
export async function examine(
  store: Store,
  only: ConversationId | null,
  onProgress: (progress: InspectProgress) => void = () => undefined,
): Promise<Inspection> {
  const integrity = only === null ? await store.integrity() : undefined;
  const findings: Finding[][] = integrity === undefined ? [] : [[...inspectFile(integrity)]];
  const checked = { conversations: 0, messages: 0, summaries: 0 };
  const all = await store.conversations({ includeHidden: true });
  const of = all.reduce((sum, { id, totals }) => sum + (only === null || id === only ? totals.messages : 0), 0);
  for await (const id of eachConversation(store, only, () => undefined)) {
    const onRead = (read: number): void => onProgress({ conversation: id, done: checked.messages + read, of });
    onRead(0);
    const skeleton = await store.skeleton(id);
    const texts = [...(await unreadable(store, id, onRead)), ...(await damagedSummaries(store, skeleton))];
    findings.push([...inspectConversation(skeleton), ...texts]);
    checked.conversations += 1;
    checked.messages += skeleton.recounted.messages;
    checked.summaries += skeleton.recounted.summaries;
  }
  return { findings: findings.flat(), checked };
}

export const inspect = async (...asked: Parameters<typeof examine>): Promise<Inspection["findings"]> =>
  (await examine(...asked)).findings;

/** One conversation, or all including hidden ones, by id. */
export async function* eachConversation(
  store: Store,
  only: ConversationId | null,
  onProgress: (progress: InspectProgress) => void,
): AsyncGenerator<ConversationId> {
  const all = only === null ? (await store.conversations({ includeHidden: true })).map(({ id }) => id) : [only];
  for (const [done, conversation] of all.toSorted((a, b) => a - b).entries()) {
    onProgress({ conversation, done, of: all.length });
    yield conversation;
  }
}

async function unreadable(
  store: Store,
  id: ConversationId,
  onRead: (messages: number) => void,
): Promise<readonly Finding[]> {
  const all: Finding[] = [];
  for (let afterSeq = 0, read = 0; ;) {
    const page = await store.messages({ conversation: id, afterSeq, limit: messagesPerPage });
    const isLast = page.length < messagesPerPage;
    const upto = isLast ? Number.MAX_SAFE_INTEGER : (page.at(-1)?.seq ?? afterSeq);
    const entries = (await store.entries(id, afterSeq, upto)).filter(({ isDamaged }) => isDamaged === true);
    all.push(...entries.map(({ key }) => damagedText(`entry ${key}`)(id)));
    for (const message of page) {
      afterSeq = message.seq;
      const subject = messageName(message.id);
      if (message.isDamaged === true) {
        all.push(damagedText(subject)(id));
        continue;
      }
      try {
        await restoreMessage(store, message);
      } catch (cause) {
        const problem = `${subject} cannot be rebuilt: ${errorText(cause)}; ${transcriptToo}`;
        all.push(finding("unreadable_message", subject, problem)(id));
      }
    }
    onRead((read += page.length));
    if (isLast) return all;
  }
}

const summariesPerPage = 500;

async function damagedSummaries(store: Store, { conversation, summaries }: Skeleton): Promise<readonly Finding[]> {
  const all: Finding[] = [];
  for (let at = 0; at < summaries.length; at += summariesPerPage) {
    const ids = summaries.slice(at, at + summariesPerPage).map(({ id }) => id);
    const damaged = (await store.summaries({ ids })).filter(({ isDamaged }) => isDamaged === true);
    all.push(...damaged.map(({ id }) => damagedText(id)(conversation.id)));
  }
  return all;
}

const damagedText = (subject: string): PendingFinding =>
  finding("damaged_text", subject, `the stored text of ${subject} does not match its checksum; ${onlyBackup}`);

/** Whether there is nothing for an operator to look at. */
export const isSound = (findings: readonly Finding[]): boolean =>
  findings.every((finding) => finding.severity === "info");

/** The levels of the summaries below normal. */
export async function levelsOf(
  store: Store,
  findings: readonly { readonly code: string; readonly subject: string }[],
): Promise<ReadonlyMap<string, Level>> {
  const ids = findings.flatMap(({ code, subject }) =>
    code === "summary_below_normal" && isSummaryId(subject) ? [subject] : [],
  );
  const levels = new Map<string, Level>();
  for (let at = 0; at < ids.length; at += summariesPerPage)
    for (const { id, level } of await store.summaries({ ids: ids.slice(at, at + summariesPerPage) }))
      levels.set(id, level);
  return levels;
}
