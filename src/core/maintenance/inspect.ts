/**
 * What is wrong with a conversation. The one invariant, every reference, every total and every search entry is checked
 * against the rows; each finding says how bad it is, what it is about and what mends it.
 */

import { errorText } from "../base/errors.ts";
import { isSameRange, isSameSources, partialIn, planFix, whatFollows, wrongTotals } from "./plan-fix.ts";
import type { WhatFollows } from "./plan-fix.ts";
import { coverage, flatten, reachedFrom } from "../model/summary-graph.ts";
import { messagesPerPage, restoreMessage } from "../ingest/large-content.ts";
import { isSummaryId, messageName } from "../model/types.ts";
import type { ConversationId, Level, MessageId, Ref, Sources, SummaryId } from "../model/types.ts";
import type { Integrity, Skeleton, Store, SummaryFacts } from "../model/store.ts";
import { formatCount } from "../base/format.ts";

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

type Severity = Finding["severity"];

/** What mends: mechanically, with a new text, by opening a summary up first, or not at all. */
const remedies = {
  none: () => null,
  fix: (id) => (id === null ? "lcm doctor --fix --apply" : `lcm doctor ${id} --fix --apply`),
  repair: (id) => `lcm repair ${id}`,
  repairAll: () => "lcm repair --all",
  rewrite: (id, summary) => `lcm rewrite ${id} --summary ${summary}`,
  dissolve: (id, summary) => `lcm dissolve ${id} --summary ${summary}`,
  purge: (id, summary) => `lcm dissolve ${id} --summary ${summary} --purge`,
  restore: () => "lcm restore",
} as const satisfies Readonly<Record<string, (id: ConversationId | null, summary: string) => string | null>>;
type Remedy = keyof typeof remedies;

/** Every kind of finding: how bad it is and what mends it, where it does not say otherwise. */
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
  file_orphaned: ["info", "none"],
  damaged_file: ["error", "restore"],
} as const satisfies Readonly<Record<string, readonly [Severity, Remedy]>>;

export type FindingCode = keyof typeof kinds;

/** Whether a new text mends it. */
export const isMendedByText = (code: FindingCode): boolean => kinds[code][1] === "repair";

/** A finding, once it is known in which conversation; null for the file. */
type Found = (conversation: ConversationId | null) => Finding;

interface Special {
  readonly severity?: Severity;
  readonly remedy?: Remedy;
  /** What the remedy is done to, if that is not the subject. */
  readonly summary?: SummaryId;
}

const found =
  (code: FindingCode, subject: string, message: string, special: Special = {}): Found =>
  (conversation) => {
    const [usual, usually] = kinds[code];
    const { severity = usual, remedy = usually, summary = subject } = special;
    return { severity, code, subject, message, remedy: remedies[remedy](conversation, summary), conversation };
  };

const onlyBackup = "only a backup from before can have it";

/** All findings of one conversation's skeleton. Pure. */
export function inspectConversation(bones: Skeleton): readonly Finding[] {
  const right = whatFollows(bones);
  const { pending } = bones.search;
  return [
    ...bones.gone.map(({ message, summary }) => gone(messageName(message), summary)),
    ...inspectInvariant(bones, right),
    ...inspectSummaries(bones, right),
    ...wrongTotals(bones).map((name) => {
      const [is, should] = [bones.conversation.totals[name], bones.recounted[name]];
      return found("wrong_totals", name, `the running total ${name} is ${is}, the rows add up to ${should}`);
    }),
    ...bones.dangling.map(({ table, from, to }) =>
      found("dangling_reference", from, `${table} ${from} refers to ${to}, which is not in this conversation`),
    ),
    ...bones.search.missing
      .map((row) => (typeof row === "number" ? messageName(row) : row))
      .map((name) => found("search_entry_missing", name, `${name} is not in the search index`)),
    ...(pending > pendingUsual ? [waiting(pending)] : []),
    ...bones.missingFiles.map((file) =>
      found("missing_file", file, `the content of ${file} is not in the files folder; ${onlyBackup}`),
    ),
    ...bones.alteredFiles.map(({ id, stored, found: now }) => {
      const sizes = `has ${formatCount(now)} bytes where ${formatCount(stored)} were stored`;
      return found("altered_file", id, `the content of ${id} ${sizes}: it was cut or altered; ${onlyBackup}`);
    }),
    ...(bones.orphanedFiles > 0 ? [orphaned(bones.orphanedFiles)] : []),
  ].map((each) => each(bones.conversation.id));
}

/** So many rows wait for the index at any time, and every search reads them; more means that it is being rebuilt. */
const pendingUsual = 2_000;

const waiting = (rows: number): Found =>
  found("search_pending", "search", `${formatCount(rows)} messages wait to be indexed; search reads them one by one`);

function gone(message: string, summary: SummaryId | null): Found {
  const namedBy = summary === null ? "it was in the context" : `${summary} was made from it`;
  const has = "a backup from before has it, and the host's transcript may, which `lcm import` reads";
  return found("missing_message", message, `${message} is gone: ${namedBy}, and it is not stored any more; ${has}`);
}

function orphaned(files: number): Found {
  const left = "left by a process that was ended; forgetting removes them";
  return found("file_orphaned", "files", `no row names ${files} of the files in its folder, ${left}`);
}

// ── The one invariant ────────────────────────────────────────────────────────────────────────────────────────────────

function inspectInvariant(bones: Skeleton, right: WhatFollows): readonly Found[] {
  const walked = flatten(bones.context, (summary) => bones.sources.get(summary));
  const { lost, doubled } = coverage(walked.messages, bones.messageIds, bones.asides);
  const isDoubled = new Set(doubled);
  const wrong = misordered(walked.messages, bones).filter((each) => !isDoubled.has(each));
  const opened = doubled.length + wrong.length === 0 ? () => null : whatToOpen(bones, right);
  const tangled = (code: FindingCode, message: number, words: string): Found => {
    const summary = opened(message);
    const subject = messageName(message as MessageId);
    const reached = `the context reaches ${subject} ${words}`;
    if (summary === null) return found(code, subject, reached);
    if (summary === "unknown") return found(code, subject, `${reached}; ${onlyBackup} right`, { remedy: "restore" });
    const then = `once ${summary} is dissolved, doctor --fix sets it right`;
    return found(code, subject, `${reached}; ${then}`, { remedy: "dissolve", summary });
  };
  return [
    ...lost
      .map((each) => messageName(each as MessageId))
      .map((name) => found("lost_message", name, `the context does not reach ${name}`)),
    ...doubled.map((each) => tangled("doubled_message", each, "more than once")),
    ...[...right.cyclic].map((each) => found("cycle", each, `${each} is among its own sources; ${onlyBackup} right`)),
    ...wrong.map((each) => tangled("out_of_order", each, "after one that was said later")),
    ...oddTimes(bones, right),
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

/**
 * What moving and leaving out whole items does not mend is two summaries that reach into each other, or a message that
 * belongs inside one: when the summary is opened up, its sources can be moved and left out one by one. Null for a message
 * that needs no such thing; unknown where a summary is among its own sources, so that what it spans cannot be told.
 */
function whatToOpen(bones: Skeleton, right: WhatFollows): (message: number) => SummaryId | "unknown" | null {
  const context: readonly Ref[] = planFix(bones)?.context?.items ?? bones.context;
  const sourcesOf = (summary: SummaryId): Sources | undefined => right.summaries.get(summary)?.sources;
  const { messages } = flatten(context, sourcesOf);
  const { doubled } = coverage(messages, bones.messageIds, bones.asides);
  const left = new Set([...doubled, ...misordered(messages, bones)]);
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

const oddTimes = (bones: Skeleton, { times }: WhatFollows): readonly Found[] =>
  bones.messageTimes.flatMap((time, index) => {
    const id = (bones.messageIds[index] ?? 0) as MessageId;
    const right = times.get(id);
    if (right === time) return [];
    if (right !== undefined)
      return [found("odd_time", messageName(id), `its time is ${time}, not UTC with milliseconds`)];
    const words = `its time is “${time}”, which is none; ${onlyBackup}`;
    return [found("odd_time", messageName(id), words, { remedy: "restore" })];
  });

// ── Summaries ────────────────────────────────────────────────────────────────────────────────────────────────────────

function inspectSummaries(bones: Skeleton, right: WhatFollows): readonly Found[] {
  const byId = new Map(bones.summaries.map((summary) => [summary.id, summary]));
  const tokensOf = new Map(bones.messageIds.map((message, index) => [message, bones.messageTokens[index] ?? 0]));
  const isUnused = unusedIn(bones);
  const isPartial = partialIn(bones);
  const reached = new Set(reachedFrom(bones.context, (summary) => bones.sources.get(summary)));
  return bones.summaries.flatMap((summary) => {
    const sources = bones.sources.get(summary.id) ?? { messages: [], summaries: [] };
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

function inspectText(summary: SummaryFacts): readonly Found[] {
  const { id, rewriteReason } = summary;
  if (summary.empty) return [found("empty_summary", id, `${id} has no text`)];
  if (rewriteReason !== null) {
    // What was carried over is rewritten with what it was carried from.
    const remedy = summary.carriedFrom === null ? "repair" : "repairAll";
    return [found("summary_outdated", id, `${id} should be rewritten: ${rewriteReason}`, { remedy })];
  }
  const below = (words: string, special?: Special): readonly Found[] => [
    found("summary_below_normal", id, `${id} ${words}`, special),
  ];
  switch (summary.level) {
    case "normal":
      if (summary.garbled) return below("is garbled: it holds what is no text, or lost part of a number");
      return summary.marked ? below("has the older program's mark of a text that was cut short") : [];
    case "aggressive": {
      const special = { severity: "info", remedy: "rewrite" } as const;
      return below("keeps the barest facts; a rewrite may keep more", special);
    }
    case "extractive":
      return below("was made without a model; a rewrite would read better", { severity: "info" });
    case "truncated":
      return below("was cut short, because no answer of the model was of use");
  }
}

/** What is to be rewritten anyway, and what has lost a source, is another finding. */
function inspectLength(summary: SummaryFacts, sources: readonly number[]): readonly Found[] {
  const tokens = sources.reduce((sum, each) => sum + each, 0);
  if (sources.length === 0 || summary.rewriteReason !== null || summary.tokens < tokens) return [];
  const message = `${summary.id} takes ${summary.tokens} tokens, what it stands for takes ${tokens}`;
  return [found("summary_too_long", summary.id, message)];
}

function inspectFacts(summary: SummaryFacts, sources: Sources, right: WhatFollows): readonly Found[] {
  const { id, kind, depth, descendants } = summary;
  if (summary.carriedFrom !== null) return [];
  if (isNone(sources))
    return [found("no_sources", id, `${id} stands for nothing: it has no sources; ${onlyBackup} whole`)];
  const { facts, sources: own } = right.summaries.get(id) ?? { facts: null, sources };
  if (facts === null) return [];
  const shape = `${id} is ${kind} of depth ${depth}`;
  const isMixed = own.messages.length > 0 && own.summaries.length > 0;
  const isShaped = kind === facts.kind && depth === facts.depth;
  const mixed = `${shape}, and was made of both messages and summaries`;
  const misshapen = `${shape}, its sources make it ${facts.kind} of depth ${facts.depth}`;
  const range = `${id} claims ${rangeWords(summary)}, its sources span ${rangeWords(facts)}`;
  const count = `${id} claims ${descendants} summaries below it, and has ${facts.descendants}`;
  return [
    ...(isMixed ? [found("wrong_depth", id, mixed, { remedy: "restore" })] : []),
    ...(isMixed || isShaped ? [] : [found("wrong_depth", id, misshapen)]),
    ...(isSameRange(summary, facts) ? [] : [found("wrong_range", id, range)]),
    ...(descendants === facts.descendants ? [] : [found("wrong_descendants", id, count)]),
  ];
}

/** Of a summary that the context does not reach; the one invariant tells the order of all that it does reach. */
function inspectOrder(id: SummaryId, sources: Sources, right: WhatFollows): readonly Found[] {
  const own = right.summaries.get(id)?.sources;
  // A link to what is not there is another finding.
  const isWhole = own?.messages.length === sources.messages.length && own.summaries.length === sources.summaries.length;
  if (!isWhole || isSameSources(sources, own)) return [];
  return [found("out_of_order", id, `${id} names what it was made from in another order than it was said`)];
}

const rangeWords = ({ earliestAt, latestAt }: Pick<SummaryFacts, "earliestAt" | "latestAt">): string =>
  earliestAt === null && latestAt === null ? "no time" : `${earliestAt ?? "?"} – ${latestAt ?? "?"}`;

/** What stands for a message that is lost is wanted again. */
function unusedIn(bones: Skeleton): (summary: SummaryFacts) => boolean {
  const used = new Set<unknown>(bones.context.map(({ id }) => id));
  for (const { summaries } of bones.sources.values()) for (const id of summaries) used.add(id);
  const candidates = bones.summaries.filter(({ id, released }) => !released && !used.has(id));
  if (candidates.length === 0) return () => false;
  const sourcesOf = (id: SummaryId): Sources | undefined => bones.sources.get(id);
  const reached = new Set(flatten(bones.context, sourcesOf).messages);
  return ({ id, released }) =>
    !released &&
    !used.has(id) &&
    flatten([{ kind: "summary", id }], sourcesOf).messages.every((each) => reached.has(each) || bones.asides.has(each));
}

const unused = (id: SummaryId): Found =>
  found("unused_summary", id, `nothing uses ${id}: it is not in the context, and nothing was made from it`);

// ── The file ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export function inspectFile(integrity: Integrity): readonly Finding[] {
  const { problems, dangling, orphanedRows, orphanedSearchEntries: entries } = integrity;
  return [
    ...problems.map((problem) => found("damaged_file", "database", problem)),
    ...dangling.map(({ table, from, to }) => {
      const words = `row ${from} of ${table} refers to a missing row of ${to}; ${onlyBackup}`;
      return found("dangling_reference", table, words, { remedy: "restore" });
    }),
    ...Object.entries(orphanedRows).map(([table, rows]) =>
      found("orphaned_rows", table, `rows of ${table} that belong to nothing: ${formatCount(rows)}`),
    ),
    ...(entries === 0
      ? []
      : [found("search_entry_orphaned", "search", `search entries without a row: ${formatCount(entries)}`)]),
  ].map((each) => each(null));
}

// ── The walk over a database ─────────────────────────────────────────────────────────────────────────────────────────

export interface InspectProgress {
  readonly conversation: ConversationId;
  readonly done: number;
  readonly of: number;
}

export interface Inspection {
  readonly findings: readonly Finding[];
  /** What was looked at, counted by its rows: the running totals may be what is wrong. */
  readonly checked: { readonly conversations: number; readonly messages: number; readonly summaries: number };
}

/** Inspects one conversation, or all of them and the file, and reads every message back, with what lies in files. */
export async function examine(
  store: Store,
  only: ConversationId | null,
  onProgress: (progress: InspectProgress) => void = () => undefined,
): Promise<Inspection> {
  const integrity = only === null ? await store.databaseFile?.integrity() : undefined;
  const findings: Finding[][] = integrity === undefined ? [] : [[...inspectFile(integrity)]];
  const checked = { conversations: 0, messages: 0, summaries: 0 };
  for await (const id of eachConversation(store, only, onProgress)) {
    const bones = await store.skeleton(id);
    findings.push([...inspectConversation(bones), ...(await unreadable(store, id))]);
    checked.conversations += 1;
    checked.messages += bones.recounted.messages;
    checked.summaries += bones.recounted.summaries;
  }
  return { findings: findings.flat(), checked };
}

export const inspect = async (...asked: Parameters<typeof examine>): Promise<Inspection["findings"]> =>
  (await examine(...asked)).findings;

/** One conversation, or all of them, also the hidden ones, oldest first. */
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

async function unreadable(store: Store, id: ConversationId): Promise<readonly Finding[]> {
  const all: Finding[] = [];
  for (let afterSeq = 0; ;) {
    const page = await store.messages({ conversation: id, afterSeq, limit: messagesPerPage });
    for (const message of page) {
      afterSeq = message.seq;
      try {
        await restoreMessage(store, message);
      } catch (cause) {
        const subject = messageName(message.id);
        const words = `${subject} cannot be rebuilt: ${errorText(cause)}; ${onlyBackup} whole`;
        all.push(found("unreadable_message", subject, words)(id));
      }
    }
    if (page.length < messagesPerPage) return all;
  }
}

/** Whether anything was found that an operator should look at. */
export const isSound = (findings: readonly Finding[]): boolean =>
  findings.every((finding) => finding.severity === "info");

const levelsPerPage = 500;

/** What findings do not say: how the texts were made of summaries below normal. */
export async function levelsOf(
  store: Store,
  findings: readonly { readonly code: string; readonly subject: string }[],
): Promise<ReadonlyMap<string, Level>> {
  const ids = findings.flatMap(({ code, subject }) =>
    code === "summary_below_normal" && isSummaryId(subject) ? [subject] : [],
  );
  const levels = new Map<string, Level>();
  for (let at = 0; at < ids.length; at += levelsPerPage)
    for (const { id, level } of await store.summaries({ ids: ids.slice(at, at + levelsPerPage) }))
      levels.set(id, level);
  return levels;
}
