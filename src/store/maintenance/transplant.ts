/**
 * Transplants summaries: copies those in one context, with everything below them, to the front of another's.
 * Copies keep text, level and times, and get new keys. Only stored files and carried texts then refer across
 * conversations. A summary that a reset carried over from the source keeps its id and becomes the copy.
 */

import { LcmError } from "../../core/base/errors.ts";
import type { ConversationId, MessageId, SummaryId } from "../../core/model/types.ts";
import { messageIdOf, messageName } from "../../core/model/types.ts";
import type { Copying } from "../../core/model/changes.ts";
import { insertRow, journalStep, rowAt, stateOf, type Columns, type Image } from "../journal/record.ts";
import { mustHave, reads } from "../conversation/reads.ts";
import { copyPins } from "../conversation/pins.ts";
import { copySearchWords } from "../conversation/search-words.ts";
import { checkNumber } from "../registry.ts";
import { asMessage, asSummary, toSummaryId } from "../rows.ts";
import { all, count, int, sql, statement, text } from "../script.ts";
import type { ReadScript, Row, Script, ScriptDeps, WriteScript } from "../script.ts";
import { adjustTotals } from "../totals.ts";
import { copySummary } from "../conversation/summary-rows.ts";

export const planTransplant: ReadScript<"planTransplant"> = function* (source, target) {
  yield* checkEnds(source, target);
  const graph = yield* graphOf(source);
  const carried = yield* carriedIn(target, graph);
  const copied = [...graph.depths].filter(([id]) => !carried.has(id)).map(([, depth]) => depth);
  const here = [...carried.values()];
  return {
    summaries: graph.shown.map(({ id }) => id),
    prepended: graph.shown.map(({ id }) => id).filter((id) => !carried.has(id)),
    depths: [...Map.groupBy(copied, (depth) => depth)].map(([depth, all]) => ({ depth, summaries: all.length })),
    messages: graph.messages.size,
    carried: here.map(({ id }) => id),
    covered: here.filter(isCovered).map(({ id }) => id),
    ...(yield* alreadyIn(target, graph, carried)),
  };
};

export const transplant: WriteScript<"transplant"> = function* (deps, { source, target, summaries: planned }) {
  yield* checkEnds(source, target);
  const graph = yield* graphOf(source);
  const { shown } = graph;
  if (planned !== undefined && planned.join() !== shown.map(({ id }) => id).join()) {
    return { kind: "stale", reason: `other summaries are in the context of conversation ${source} now` };
  }
  if (shown.length === 0) return { kind: "empty" };
  const carried = yield* carriedIn(target, graph);
  const held = yield* alreadyIn(target, graph, carried);
  if (held.existing.length + held.copied > 0) return { kind: "duplicate", ...held };

  const before = yield* stateOf(target);
  const messages = yield* copyMessages(deps, graph, target);
  yield* copyPins(target, messages);
  yield* copySearchWords(target, messages);
  const summaries = yield* copySummaries(deps, graph, target, carried);
  const links = yield* linkCopies(graph, target, messages, summaries);
  const completed = yield* completeCarried(carried);
  const places = yield* placeCopies(graph, target, summaries, carried);
  const made = [...summaries].filter(([id]) => !carried.has(id)).map(([, copy]) => copy);
  const sum = (of: Iterable<{ readonly tokens: number }>): number =>
    [...of].reduce((all, { tokens }) => all + tokens, 0);
  const added = shown.filter(({ id }) => !carried.has(id));
  const covered = [...carried.values()].filter(isCovered);
  yield* adjustTotals(deps, target, {
    messages: messages.size,
    messageTokens: sum(graph.messages.values()),
    summaries: made.length,
    contextItems: added.length - covered.length,
    contextTokens: sum(added) - sum(covered),
  });
  // Only what shows whether a copy was changed since; its text is still in the source.
  const rows: readonly Step[] = [
    ...[...messages.values()].map((id) => fresh({ table: "messages", key: { message_id: id }, columns: {} })),
    ...made.map((id) => fresh({ table: "summaries", key: { summary_id: id }, columns: { revision: 0 } })),
    ...completed,
    ...links.filter(({ key }) => completed.some((image) => image.key["summary_id"] === key["summary_id"])).map(fresh),
    ...places,
  ];
  const change = yield* journalStep(
    deps,
    { operation: "transplant", conversation: target, subject: `${source} → ${target}` },
    { rows: rows.map(({ was, ...image }) => ({ ...image, columns: was })), conversation: before },
    { rows: rows.map(({ was: _, ...image }) => image), conversation: yield* stateOf(target) },
  );
  const counts = { contextItems: added.length, summaries: made.length, messages: messages.size };
  return { kind: "written", change, ...counts, carried: carried.size };
};

/** A row as the transplant leaves it, and as it was; null if there was none. */
type Step = Image & { readonly was: Columns | null };

const fresh = (image: Image): Step => ({ ...image, was: null });

function* checkEnds(source: ConversationId, target: ConversationId): Script<void> {
  if (source === target) throw new LcmError("invalid", "a conversation cannot be transplanted into itself");
  yield* mustHave(source);
  yield* mustHave(target);
}

interface Graph {
  /** The summaries of the context, in order. */
  readonly shown: readonly { readonly id: SummaryId; readonly tokens: number }[];
  /** The depth of these and of every summary below them; sources come before the summaries made from them. */
  readonly depths: ReadonlyMap<SummaryId, number>;
  readonly summaryLinks: readonly Link<SummaryId>[];
  readonly messageLinks: readonly Link<MessageId>[];
  /** By seq; each once, even if several summaries cover it. */
  readonly messages: ReadonlyMap<MessageId, { readonly tokens: number; readonly at: string; readonly origin: number }>;
}

interface Link<Source> {
  readonly of: SummaryId;
  readonly source: Source;
  readonly ordinal: number;
}

/** Throws `corrupt` for a missing source, a foreign one or a cycle: a partial copy would look complete. */
function* graphOf(source: ConversationId): Script<Graph> {
  const shown = yield* all(
    sql`SELECT c.summary_id, s.token_count FROM context_items c
          LEFT JOIN summaries s ON s.summary_id = c.summary_id AND s.conversation_id = c.conversation_id
        WHERE c.conversation_id = ${source} AND c.item_type = 'summary' ORDER BY c.ordinal`,
    (row) => ({ id: toSummaryId(row), tokens: row["token_count"] as number | null }),
  );
  const depths = yield* all(
    sql`SELECT summary_id, depth FROM summaries
        WHERE summary_id IN (SELECT value FROM texts_in(${yield* reads.closure(shown.map(({ id }) => id))}))
          AND conversation_id = ${source} ORDER BY depth, created_at, search_id`,
    (row) => [toSummaryId(row), int(row, "depth")] as const,
  );
  const depthOf = new Map(depths);
  const ids = [...depthOf.keys()];
  const links = <Source>(table: string, toSource: (row: Row) => Source) =>
    all(
      statement(`SELECT * FROM ${table} WHERE summary_id IN (SELECT value FROM texts_in(?))`, [ids]),
      (row): Link<Source> => ({ of: toSummaryId(row), source: toSource(row), ordinal: int(row, "ordinal") }),
    );
  const summaryLinks = yield* links("summary_parents", (row) => asSummary(text(row, "parent_summary_id")));
  const messageLinks = yield* links("summary_messages", (row) => asMessage(int(row, "message_id")));
  const messages = yield* all(
    sql`SELECT message_id, token_count, created_at, coalesce(copied_from, message_id) AS origin FROM messages
        WHERE +conversation_id = ${source}
          AND message_id IN (SELECT value FROM numbers_in(${messageLinks.map((link) => link.source)})) ORDER BY message_id`,
    (row) =>
      [
        asMessage(int(row, "message_id")),
        { tokens: int(row, "token_count"), at: text(row, "created_at"), origin: int(row, "origin") },
      ] as const,
  );
  const known = new Map(messages);
  for (const { id } of shown) if (!depthOf.has(id)) throw damaged(source, `its context names ${id}`);
  for (const { of, source: below } of summaryLinks) {
    if ((depthOf.get(below) ?? Infinity) >= (depthOf.get(of) ?? 0)) throw damaged(source, `${of} names ${below}`);
  }
  for (const { of, source: below } of messageLinks) {
    if (!known.has(below)) throw damaged(source, `${of} names ${messageName(below)}`);
  }
  return {
    shown: shown.map(({ id, tokens }) => ({ id, tokens: tokens ?? 0 })),
    depths: depthOf,
    summaryLinks,
    messageLinks,
    messages: known,
  };
}

const damaged = (source: ConversationId, what: string): LcmError =>
  new LcmError("corrupt", `conversation ${source} is damaged: ${what}, which is missing or not below it`, {
    hint: `nothing was changed; run \`lcm doctor ${source}\` for details`,
  });

/** A summary of the target that a reset carried over from the source. It becomes the copy of its original. */
interface Carried {
  readonly id: SummaryId;
  readonly original: SummaryId;
  readonly tokens: number;
  /** Its place in the target's context; null if it was folded since. */
  readonly ordinal: number | null;
  /** Whether the original is in the source's context, and not below another summary. */
  readonly isShown: boolean;
}

/** It leaves the context: a copy that is made from it takes its place. */
const isCovered = ({ ordinal, isShown }: Carried): boolean => ordinal !== null && !isShown;

/** By original. One that nothing uses any more is left alone. */
function* carriedIn(target: ConversationId, { shown, depths }: Graph): Script<ReadonlyMap<SummaryId, Carried>> {
  const ofContext = new Set(shown.map(({ id }) => id));
  const found = yield* all(
    sql`SELECT * FROM (SELECT t.summary_id, t.search_id, s.summary_id AS original, t.token_count,
               (SELECT min(ordinal) FROM context_items c
                WHERE c.conversation_id = ${target} AND c.summary_id = t.summary_id) AS place,
               EXISTS (SELECT 1 FROM summary_parents p WHERE p.parent_summary_id = t.summary_id) AS is_folded
        FROM texts_in(${[...depths.keys()]}) g JOIN summaries s ON s.summary_id = g.value
          JOIN summaries t ON t.carried_from = coalesce(s.carried_from, s.summary_id)
        WHERE t.conversation_id = ${target}) AS found
        WHERE place IS NOT NULL OR is_folded ORDER BY search_id DESC`,
    (row): Carried => ({
      id: toSummaryId(row),
      original: asSummary(text(row, "original")),
      tokens: int(row, "token_count"),
      ordinal: row["place"] === null ? null : int(row, "place"),
      isShown: ofContext.has(asSummary(text(row, "original"))),
    }),
  );
  return new Map(found.map((carried) => [carried.original, carried]));
}

/**
 * Finds earlier copies by text, and by origin, which also finds what was rewritten or folded since. The range of message
 * keys lets an index find the copies in a long target. What was carried over is no copy, unless it has nothing to gain,
 * or was folded while its original was folded elsewhere.
 */
function* alreadyIn(
  target: ConversationId,
  { shown, messages, depths }: Graph,
  carried: ReadonlyMap<SummaryId, Carried>,
): Script<Pick<Copying, "existing" | "copied">> {
  const here = [...carried.values()];
  const isIdle = messages.size === 0 && here.length === depths.size;
  const clashing = here.filter(({ ordinal, isShown }) => isIdle || (ordinal === null && !isShown)).map(({ id }) => id);
  const completed = here.map(({ id }) => id).filter((id) => !clashing.includes(id));
  const origins = [...messages.values()].map(({ origin }) => origin);
  const copied = yield* all(
    sql`SELECT message_id FROM messages WHERE conversation_id = ${target} AND message_key >= 'copy:'
          AND message_key < 'copy;' AND copied_from IN (SELECT value FROM numbers_in(${origins}))
        UNION
        SELECT message_id FROM messages WHERE message_id IN (SELECT value FROM numbers_in(${origins}))
          AND +conversation_id = ${target}`,
    (row) => int(row, "message_id"),
  );
  const texts = shown.map(({ id }) => id);
  const existing = yield* all(
    sql`SELECT summary_id FROM summaries WHERE conversation_id = ${target} AND (
          content IN (SELECT content FROM summaries WHERE summary_id IN (SELECT value FROM texts_in(${texts})))
          OR summary_id IN (SELECT value FROM texts_in(${clashing}))
          OR summary_id IN (SELECT summary_id FROM summary_messages
                            WHERE message_id IN (SELECT value FROM numbers_in(${copied}))))
          AND summary_id NOT IN (SELECT value FROM texts_in(${completed}))
        ORDER BY depth DESC, search_id`,
    toSummaryId,
  );
  return { existing, copied: copied.length };
}

function copyOf<Id>(copies: ReadonlyMap<Id, Id>, id: Id): Id {
  const copy = copies.get(id);
  if (copy === undefined) throw new LcmError("corrupt", `${String(id)} is a source of a summary but was not copied`);
  return copy;
}

/** The copy of each summary, or what was carried over of it. */
function* copySummaries(
  deps: ScriptDeps,
  { depths }: Graph,
  target: ConversationId,
  carried: ReadonlyMap<SummaryId, Carried>,
): Script<ReadonlyMap<SummaryId, SummaryId>> {
  const copies = new Map<SummaryId, SummaryId>();
  for (const id of depths.keys())
    copies.set(id, carried.get(id)?.id ?? (yield* copySummary(deps, id, target, "copied")));
  return copies;
}

function* linkCopies(
  { summaryLinks, messageLinks }: Graph,
  target: ConversationId,
  messages: ReadonlyMap<MessageId, MessageId>,
  summaries: ReadonlyMap<SummaryId, SummaryId>,
): Script<readonly Image[]> {
  const images: readonly Image[] = [
    ...summaryLinks.map(({ of, source, ordinal }) => ({
      table: "summary_parents" as const,
      key: { summary_id: copyOf(summaries, of), parent_summary_id: copyOf(summaries, source) },
      columns: { ordinal, conversation_id: target },
    })),
    ...messageLinks.map(({ of, source, ordinal }) => ({
      table: "summary_messages" as const,
      key: { summary_id: copyOf(summaries, of), message_id: copyOf(messages, source) },
      columns: { ordinal, conversation_id: target },
    })),
  ];
  for (const { table, key, columns } of images) yield* insertRow(table, key, columns ?? {});
  return images;
}

const facts = ["kind", "depth", "earliest_at", "latest_at", "descendant_count", "carried_from"] as const;

/** What was carried over has the facts of its original, and is itself the copy now. */
function* completeCarried(carried: ReadonlyMap<SummaryId, Carried>): Script<readonly Step[]> {
  const steps: Step[] = [];
  for (const { id, original } of carried.values()) {
    const key = { summary_id: id };
    const was = yield* rowAt("summaries", key, facts);
    const columns = yield* rowAt("summaries", { summary_id: original }, facts);
    yield statement(`UPDATE summaries SET ${facts.map((name) => `${name} = ?`).join(", ")} WHERE summary_id = ?`, [
      ...facts.map((name) => columns?.[name] ?? null),
      id,
    ]);
    steps.push({ table: "summaries", key, columns, was });
  }
  return steps;
}

/**
 * In front of the target's own items, in the order of the source. What was carried over, or the summary that it was
 * folded into, moves there with the copies.
 */
function* placeCopies(
  { shown }: Graph,
  target: ConversationId,
  summaries: ReadonlyMap<SummaryId, SummaryId>,
  carried: ReadonlyMap<SummaryId, Carried>,
): Script<readonly Step[]> {
  const hasNew = shown.some(({ id }) => !carried.has(id));
  const moving = [...carried.values()].filter((each) => hasNew || isCovered(each));
  const items = yield* itemsOver(
    target,
    moving.map(({ id }) => id),
  );
  const front = new Set(
    hasNew ? shown.map(({ id }) => items.get(copyOf(summaries, id))?.id ?? copyOf(summaries, id)) : [],
  );
  const lowest = yield* count(
    sql`SELECT coalesce(min(ordinal), 1) FROM context_items WHERE conversation_id = ${target}`,
  );
  const placeAt = (ordinal: number) => ({ table: "context_items", key: { conversation_id: target, ordinal } }) as const;
  const itemOf = (id: SummaryId): Columns => ({ item_type: "summary", message_id: null, summary_id: id });
  const ordinals = new Map([...items.values()].map(({ id, ordinal }) => [id, ordinal]));
  const left = [...ordinals].map(([id, ordinal]): Step => ({ ...placeAt(ordinal), columns: null, was: itemOf(id) }));
  const taken = [...front].map((id, at) => fresh({ ...placeAt(lowest - front.size + at), columns: itemOf(id) }));
  for (const { key } of left)
    yield sql`DELETE FROM context_items WHERE conversation_id = ${target} AND ordinal = ${key["ordinal"] ?? null}`;
  for (const { table, key, columns } of taken) yield* insertRow(table, key, columns ?? {});
  return [...left, ...taken];
}

/** The item of the context that is, or was made from, each of these summaries. */
function* itemsOver(
  conversation: ConversationId,
  ids: readonly SummaryId[],
): Script<ReadonlyMap<SummaryId, { readonly id: SummaryId; readonly ordinal: number }>> {
  const found = yield* all(
    sql`WITH RECURSIVE above(start, summary_id) AS (
          SELECT value, value FROM texts_in(${ids})
          UNION SELECT a.start, p.summary_id FROM above a JOIN summary_parents p ON p.parent_summary_id = a.summary_id
        )
        SELECT start, c.summary_id, c.ordinal FROM above JOIN context_items c USING (summary_id)
        WHERE c.conversation_id = ${conversation}`,
    (row) => [asSummary(text(row, "start")), { id: toSummaryId(row), ordinal: int(row, "ordinal") }] as const,
  );
  return new Map(found);
}

/** A copy of a copy names the first original, so that forgetting finds it even if the copy in between is gone. */
function* copyMessages(
  deps: ScriptDeps,
  { messages }: Graph,
  target: ConversationId,
): Script<ReadonlyMap<MessageId, MessageId>> {
  let seq = yield* count(sql`SELECT next_seq FROM conversations WHERE conversation_id = ${target}`);
  let newest = "";
  const copies = new Map<MessageId, MessageId>();
  const batch = deps.hex16();
  for (const [id, { at, origin }] of messages) {
    const messageId = messageIdOf(target, checkNumber(target, seq++));
    copies.set(id, messageId);
    if (at > newest) newest = at;
    yield sql`INSERT INTO messages (message_id, conversation_id, role, content, token_count, created_at, stored_at,
                message_key, envelope, entry, aside, moved, copied_from, checksum)
              SELECT ${messageId}, ${target}, role, content, token_count, created_at, ${Date.parse(deps.now())},
                ${`copy:${batch}:${id}`}, envelope, entry, NULL, moved, ${origin}, checksum
              FROM messages WHERE message_id = ${id}`;
    yield sql`INSERT INTO message_parts (conversation_id, message_id, ordinal, part_type, text_length, text_content,
                tool_call_id, tool_name, metadata)
              SELECT ${target}, ${messageId}, ordinal, part_type, text_length, text_content, tool_call_id, tool_name, metadata
              FROM message_parts WHERE message_id = ${id}`;
  }
  yield sql`UPDATE conversations SET next_seq = ${seq}, unindexed = 1, last_message_at = nullif(greatest(coalesce(last_message_at, ''), ${newest}), '')
            WHERE conversation_id = ${target}`;
  return copies;
}
