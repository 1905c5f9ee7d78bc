/**
 * What is wrong with a conversation. The one invariant, every reference, every total and every search entry is checked
 * against the rows; each finding says how bad it is, what it is about and what mends it.
 */

import { wordsOf } from "./errors.ts";
import { isSameRange, isSameSources, partialIn, planFix, whatFollows, wrongTotals } from "./fix.ts";
import type { WhatFollows } from "./fix.ts";
import { closure, coverage, flatten } from "./graph.ts";
import { messagesPerPage, restoreMessage } from "./large-files.ts";
import { isSummaryId, messageName } from "./model.ts";
import type { ConversationId, Level, MessageId, Ref, Sources, SummaryId } from "./model.ts";
import type { Integrity, Skeleton, Store, SummaryFacts } from "./ports.ts";
import { formatCount } from "./text.ts";

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
  | "missing_message"
  | "lost_message"
  | "doubled_message"
  | "out_of_order"
  | "unreadable_message"
  | "odd_time"
  | "dangling_reference"
  | "orphaned_rows"
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
  | "unused_summary"
  | "search_entry_missing"
  | "search_entry_orphaned"
  | "search_pending"
  | "missing_file"
  | "altered_file"
  | "file_orphaned"
  | "damaged_file";

/** All findings of one conversation's skeleton. Pure. */
export function inspectConversation(bones: Skeleton): readonly Finding[] {
  const { id } = bones.conversation;
  const right = whatFollows(bones);
  return [
    ...bones.gone.map(({ message, summary }) => gone(messageName(message), summary)),
    ...inspectInvariant(bones, right),
    ...inspectSummaries(bones, right),
    ...inspectTotals(bones),
    ...bones.dangling.map(({ table, from, to }) =>
      error("dangling_reference", from, `${table} ${from} refers to ${to}, which is not in this conversation`, fix(id)),
    ),
    ...bones.search.missing
      .map((row) => (typeof row === "number" ? messageName(row) : row))
      .map((name) => error("search_entry_missing", name, `${name} is not in the search index`, fix(id))),
    ...(bones.search.pending <= pendingUsual
      ? []
      : [
          info(
            "search_pending",
            "search",
            `${formatCount(bones.search.pending)} messages wait to be indexed; search reads them one by one`,
          ),
        ]),
    ...bones.missingFiles.map((file) =>
      error("missing_file", file, `the content of ${file} is not in the files folder; ${onlyBackup}`, restore),
    ),
    ...bones.alteredFiles.map(({ id: file, stored, found }) => {
      const sizes = `has ${formatCount(found)} bytes where ${formatCount(stored)} were stored`;
      return error(
        "altered_file",
        file,
        `the content of ${file} ${sizes}: it was cut or altered; ${onlyBackup}`,
        restore,
      );
    }),
    ...(bones.orphanedFiles === 0 ? [] : [orphaned(bones.orphanedFiles)]),
  ].map((finding) => ({ ...finding, conversation: id }));
}

/** So many rows wait for the index at any time, and every search reads them; more means that it is being rebuilt. */
const pendingUsual = 2_000;

type Bare = Omit<Finding, "conversation">;
const finding =
  (severity: Finding["severity"]) =>
  (code: FindingCode, subject: string, message: string, remedy: string | null = null): Bare => ({
    severity,
    code,
    subject,
    message,
    remedy,
  });
const [error, warning, info] = [finding("error"), finding("warning"), finding("info")];

// What mends: mechanically, with a new text, by opening a summary up first, or not at all.
const fix = (id: ConversationId): string => `lcm doctor ${id} --fix --apply`;
const fixFile = "lcm doctor --fix --apply";
const repair = (id: ConversationId): string => `lcm repair ${id}`;
const dissolve = (id: ConversationId, summary: SummaryId): string => `lcm dissolve ${id} --summary ${summary}`;
const restore = "lcm restore";
const onlyBackup = "only a backup from before can have it";

const gone = (message: string, summary: SummaryId | null): Bare => {
  const namedBy = summary === null ? "it was in the context" : `${summary} was made from it`;
  const has = "a backup from before has it, and the host's transcript may, which `lcm import` reads";
  return error(
    "missing_message",
    message,
    `${message} is gone: ${namedBy}, and it is not stored any more; ${has}`,
    restore,
  );
};

const orphaned = (files: number): Bare =>
  info(
    "file_orphaned",
    "files",
    `no row names ${files} of the files in its folder, left by a process that was ended; forgetting removes them`,
  );

// ── The one invariant ────────────────────────────────────────────────────────────────────────────────────────────────

function inspectInvariant(bones: Skeleton, right: WhatFollows): readonly Bare[] {
  const { id } = bones.conversation;
  const walked = flatten(bones.context, (summary) => bones.sources.get(summary));
  const { lost, doubled } = coverage(walked.messages, bones.messageIds, bones.asides);
  const isDoubled = new Set(doubled);
  const wrong = misordered(walked.messages, bones).filter((each) => !isDoubled.has(each));
  const opened = doubled.length + wrong.length === 0 ? () => null : whatToOpen(bones, right);
  const tangled = (code: FindingCode, message: number, words: string): Bare => {
    const summary = opened(message);
    const subject = messageName(message as MessageId);
    if (summary === null) return error(code, subject, `the context reaches ${subject} ${words}`, fix(id));
    if (summary === "unknown")
      return error(code, subject, `the context reaches ${subject} ${words}; ${onlyBackup} right`, restore);
    const then = `once ${summary} is dissolved, doctor --fix sets it right`;
    return error(code, subject, `the context reaches ${subject} ${words}; ${then}`, dissolve(id, summary));
  };
  return [
    ...lost
      .map((each) => messageName(each as MessageId))
      .map((name) => error("lost_message", name, `the context does not reach ${name}`, fix(id))),
    ...doubled.map((each) => tangled("doubled_message", each, "more than once")),
    ...[...right.cyclic].map((each) =>
      error("cycle", each, `${each} is among its own sources; ${onlyBackup} right`, restore),
    ),
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

function oddTimes(bones: Skeleton, { times }: WhatFollows): readonly Bare[] {
  return bones.messageTimes.flatMap((time, index) => {
    const id = (bones.messageIds[index] ?? 0) as MessageId;
    const right = times.get(id);
    if (right === time) return [];
    return right === undefined
      ? [warning("odd_time", messageName(id), `its time is “${time}”, which is none; ${onlyBackup}`, restore)]
      : [
          warning(
            "odd_time",
            messageName(id),
            `its time is ${time}, not UTC with milliseconds`,
            fix(bones.conversation.id),
          ),
        ];
  });
}

// ── Summaries ────────────────────────────────────────────────────────────────────────────────────────────────────────

function inspectSummaries(bones: Skeleton, right: WhatFollows): readonly Bare[] {
  const { id } = bones.conversation;
  const byId = new Map(bones.summaries.map((summary) => [summary.id, summary]));
  const tokensOf = new Map(bones.messageIds.map((message, index) => [message, bones.messageTokens[index] ?? 0]));
  const isUnused = unusedIn(bones);
  const isPartial = partialIn(bones);
  const shown = bones.context.flatMap((item) => (item.kind === "summary" ? [item.id] : []));
  const reached = new Set(closure(shown, (summary) => bones.sources.get(summary)));
  return bones.summaries.flatMap((summary) => {
    const sources = bones.sources.get(summary.id) ?? { messages: [], summaries: [] };
    return [
      ...inspectText(id, summary),
      ...inspectLength(id, summary, [
        ...(isPartial(summary.id) ? [Infinity] : []),
        ...sources.messages.map((message) => tokensOf.get(message) ?? Infinity),
        ...sources.summaries.map((source) => byId.get(source)?.tokens ?? Infinity),
      ]),
      ...(isPartial(summary.id) && isNone(sources) ? [] : inspectFacts(id, summary, sources, right)),
      ...(reached.has(summary.id) ? [] : inspectOrder(id, summary.id, sources, right)),
      ...(isUnused(summary) && !isPartial(summary.id) ? [unused(id, summary)] : []),
    ];
  });
}

const isNone = ({ messages, summaries }: Sources): boolean => messages.length + summaries.length === 0;

function inspectText(id: ConversationId, summary: SummaryFacts): readonly Bare[] {
  const { id: subject } = summary;
  if (summary.empty) return [error("empty_summary", subject, `${subject} has no text`, repair(id))];
  if (summary.rewriteReason !== null) {
    const message = `${subject} should be rewritten: ${summary.rewriteReason}`;
    // What was carried over is rewritten with what it was carried from.
    return [
      warning("summary_outdated", subject, message, summary.carriedFrom === null ? repair(id) : "lcm repair --all"),
    ];
  }
  const found = (make: typeof warning, words: string, remedy = repair(id)): readonly Bare[] => [
    make("summary_below_normal", subject, `${subject} ${words}`, remedy),
  ];
  switch (summary.level) {
    case "normal":
      return summary.marked ? found(warning, "has the older program's mark of a text that was cut short") : [];
    case "aggressive": {
      const rewrite = `lcm rewrite ${id} --summary ${subject}`;
      return found(info, "keeps the barest facts; a rewrite may keep more", rewrite);
    }
    case "extractive":
      return found(info, "was made without a model; a rewrite would read better");
    case "truncated":
      return found(warning, "was cut short, because no answer of the model was of use");
  }
}

/** What is to be rewritten anyway, and what has lost a source, is another finding. */
function inspectLength(id: ConversationId, summary: SummaryFacts, sources: readonly number[]): readonly Bare[] {
  const tokens = sources.reduce((sum, each) => sum + each, 0);
  if (sources.length === 0 || summary.rewriteReason !== null || summary.tokens < tokens) return [];
  const message = `${summary.id} takes ${summary.tokens} tokens, what it stands for takes ${tokens}`;
  return [warning("summary_too_long", summary.id, message, repair(id))];
}

function inspectFacts(
  id: ConversationId,
  summary: SummaryFacts,
  sources: Sources,
  right: WhatFollows,
): readonly Bare[] {
  const { id: subject, kind, depth, descendants } = summary;
  if (summary.carriedFrom !== null) return [];
  if (isNone(sources)) {
    return [
      error("no_sources", subject, `${subject} stands for nothing: it has no sources; ${onlyBackup} whole`, restore),
    ];
  }
  const { facts, sources: own } = right.summaries.get(subject) ?? { facts: null, sources };
  if (facts === null) return [];
  const found: Bare[] = [];
  const shape = `${subject} is ${kind} of depth ${depth}`;
  if (own.messages.length > 0 && own.summaries.length > 0)
    found.push(error("wrong_depth", subject, `${shape}, and was made of both messages and summaries`, restore));
  else if (kind !== facts.kind || depth !== facts.depth)
    found.push(
      error("wrong_depth", subject, `${shape}, its sources make it ${facts.kind} of depth ${facts.depth}`, fix(id)),
    );
  if (!isSameRange(summary, facts)) {
    const message = `${subject} claims ${rangeWords(summary)}, its sources span ${rangeWords(facts)}`;
    found.push(error("wrong_range", subject, message, fix(id)));
  }
  if (descendants !== facts.descendants) {
    const message = `${subject} claims ${descendants} summaries below it, and has ${facts.descendants}`;
    found.push(error("wrong_descendants", subject, message, fix(id)));
  }
  return found;
}

/** Of a summary that the context does not reach; the one invariant tells the order of all that it does reach. */
function inspectOrder(id: ConversationId, subject: SummaryId, sources: Sources, right: WhatFollows): readonly Bare[] {
  const own = right.summaries.get(subject)?.sources;
  // A link to what is not there is another finding.
  const isWhole = own?.messages.length === sources.messages.length && own.summaries.length === sources.summaries.length;
  if (!isWhole || isSameSources(sources, own)) return [];
  const message = `${subject} names what it was made from in another order than it was said`;
  return [error("out_of_order", subject, message, fix(id))];
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

const unused = (id: ConversationId, { id: subject }: SummaryFacts): Bare =>
  info(
    "unused_summary",
    subject,
    `nothing uses ${subject}: it is not in the context, and nothing was made from it`,
    `${dissolve(id, subject)} --purge`,
  );

// ── Totals and the file ──────────────────────────────────────────────────────────────────────────────────────────────

function inspectTotals(bones: Skeleton): readonly Bare[] {
  const { conversation, recounted } = bones;
  return wrongTotals(bones).map((name) => {
    const message = `the running total ${name} is ${conversation.totals[name]}, the rows add up to ${recounted[name]}`;
    return error("wrong_totals", name, message, fix(conversation.id));
  });
}

export function inspectFile(integrity: Integrity): readonly Finding[] {
  const found = [
    ...integrity.problems.map((problem) => error("damaged_file", "database", problem, restore)),
    ...integrity.dangling.map(({ table, from, to }) =>
      error(
        "dangling_reference",
        table,
        `row ${from} of ${table} refers to a missing row of ${to}; ${onlyBackup}`,
        restore,
      ),
    ),
    ...Object.entries(integrity.orphanedRows).map(([table, rows]) =>
      error("orphaned_rows", table, `rows of ${table} that belong to nothing: ${formatCount(rows)}`, fixFile),
    ),
    ...(integrity.orphanedSearchEntries === 0
      ? []
      : [
          error(
            "search_entry_orphaned",
            "search",
            `search entries without a row: ${formatCount(integrity.orphanedSearchEntries)}`,
            fixFile,
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
  const findings: Finding[][] = only === null ? [[...inspectFile(await store.integrity())]] : [];
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
  const found: Finding[] = [];
  for (let afterSeq = 0; ;) {
    const page = await store.messages({ conversation: id, afterSeq, limit: messagesPerPage });
    for (const message of page) {
      afterSeq = message.seq;
      try {
        await restoreMessage(store, message);
      } catch (cause) {
        const subject = messageName(message.id);
        const words = `${subject} cannot be rebuilt: ${wordsOf(cause)}; ${onlyBackup} whole`;
        found.push({ ...error("unreadable_message", subject, words, restore), conversation: id });
      }
    }
    if (page.length < messagesPerPage) return found;
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
