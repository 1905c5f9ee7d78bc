/**
 * Transplants summaries: copies those in one context, with everything below them, to the front of another's.
 * Copies keep text, level and times, and get new keys. Only stored files and carried texts then refer across
 * conversations.
 */

import { LcmError } from "../../core/base/errors.ts";
import type { ConversationId, MessageId, SummaryId } from "../../core/model/types.ts";
import { messageIdOf, messageName } from "../../core/model/types.ts";
import type { Copying } from "../../core/model/changes.ts";
import { journalStep, stateOf, type Image } from "../journal/record.ts";
import { mustHave, reads } from "../conversation/reads.ts";
import { checkNumber } from "../registry.ts";
import { asMessage, asSummary, toSummaryId } from "../rows.ts";
import { all, count, first, int, sql, statement, text } from "../script.ts";
import type { ReadScript, Row, Script, ScriptDeps, WriteScript } from "../script.ts";
import { adjustTotals } from "../totals.ts";
import { copySummary } from "../conversation/summary-rows.ts";

export const planTransplant: ReadScript<"planTransplant"> = function* (source, target) {
  yield* checkEnds(source, target);
  const graph = yield* graphOf(source);
  const byDepth = Map.groupBy(graph.depths.values(), (depth) => depth);
  return {
    summaries: graph.shown.map(({ id }) => id),
    depths: [...byDepth].map(([depth, all]) => ({ depth, summaries: all.length })),
    messages: graph.messages.size,
    ...(yield* alreadyIn(target, graph)),
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
  const held = yield* alreadyIn(target, graph);
  if (held.existing.length + held.copied > 0) return { kind: "duplicate", ...held };

  const before = yield* stateOf(target);
  const messages = yield* copyMessages(deps, graph, target);
  const summaries = yield* copySummaries(deps, graph, messages, target);
  const lowest = yield* first(
    sql`SELECT min(ordinal) AS ordinal FROM context_items WHERE conversation_id = ${target}`,
    (row) => row["ordinal"] as number | null,
  );
  const places = shown.map(({ id }, at): Image => ({
    table: "context_items",
    key: { conversation_id: target, ordinal: (lowest ?? 1) - shown.length + at },
    columns: { item_type: "summary", message_id: null, summary_id: copyOf(summaries, id) },
  }));
  for (const { key, columns } of places) {
    yield sql`INSERT INTO context_items (conversation_id, ordinal, item_type, summary_id)
              VALUES (${target}, ${key["ordinal"] ?? null}, 'summary', ${columns?.["summary_id"] ?? null})`;
  }
  const sum = (of: Iterable<{ readonly tokens: number }>): number =>
    [...of].reduce((all, { tokens }) => all + tokens, 0);
  yield* adjustTotals(deps, target, {
    messages: messages.size,
    messageTokens: sum(graph.messages.values()),
    summaries: summaries.size,
    contextItems: shown.length,
    contextTokens: sum(shown),
  });
  // Only what shows whether a copy was changed since; its text is still in the source.
  const made: readonly Image[] = [
    ...[...messages.values()].map((id) => ({ table: "messages", key: { message_id: id }, columns: {} }) as const),
    ...[...summaries.values()].map(
      (id) => ({ table: "summaries", key: { summary_id: id }, columns: { revision: 0 } }) as const,
    ),
    ...places,
  ];
  const change = yield* journalStep(
    deps,
    { operation: "transplant", conversation: target, subject: `${source} → ${target}` },
    { rows: made.map((image) => ({ ...image, columns: null })), conversation: before },
    { rows: made, conversation: yield* stateOf(target) },
  );
  const counts = { contextItems: shown.length, summaries: summaries.size, messages: messages.size };
  return { kind: "written", change, ...counts };
};

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
        WHERE summary_id IN (SELECT value FROM json_each(${yield* reads.closure(shown.map(({ id }) => id))}))
          AND conversation_id = ${source} ORDER BY depth, created_at, search_id`,
    (row) => [toSummaryId(row), int(row, "depth")] as const,
  );
  const depthOf = new Map(depths);
  const ids = [...depthOf.keys()];
  const links = <Source>(table: string, toSource: (row: Row) => Source) =>
    all(
      statement(`SELECT * FROM ${table} WHERE summary_id IN (SELECT value FROM json_each(?))`, [ids]),
      (row): Link<Source> => ({ of: toSummaryId(row), source: toSource(row), ordinal: int(row, "ordinal") }),
    );
  const summaryLinks = yield* links("summary_parents", (row) => asSummary(text(row, "parent_summary_id")));
  const messageLinks = yield* links("summary_messages", (row) => asMessage(int(row, "message_id")));
  const messages = yield* all(
    sql`SELECT message_id, token_count, created_at, coalesce(copied_from, message_id) AS origin FROM messages
        WHERE conversation_id = ${source}
          AND message_id IN (SELECT value FROM json_each(${messageLinks.map((link) => link.source)})) ORDER BY message_id`,
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

/**
 * Finds earlier copies by text, and by origin, which also finds what was rewritten or folded since. The range of message
 * keys lets an index find the copies in a long target.
 */
function* alreadyIn(target: ConversationId, { shown, messages }: Graph): Script<Pick<Copying, "existing" | "copied">> {
  const origins = [...messages.values()].map(({ origin }) => origin);
  const copied = yield* all(
    sql`SELECT message_id FROM messages WHERE conversation_id = ${target} AND message_key >= 'copy:'
          AND message_key < 'copy;' AND copied_from IN (SELECT value FROM json_each(${origins}))
        UNION
        SELECT message_id FROM messages WHERE message_id IN (SELECT value FROM json_each(${origins}))
          AND conversation_id = ${target}`,
    (row) => int(row, "message_id"),
  );
  const texts = shown.map(({ id }) => id);
  const existing = yield* all(
    sql`SELECT summary_id FROM summaries WHERE conversation_id = ${target} AND (
          content IN (SELECT content FROM summaries WHERE summary_id IN (SELECT value FROM json_each(${texts})))
          OR summary_id IN (SELECT summary_id FROM summary_messages
                            WHERE message_id IN (SELECT value FROM json_each(${copied}))))
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

function* copySummaries(
  deps: ScriptDeps,
  { depths, summaryLinks, messageLinks }: Graph,
  messages: ReadonlyMap<MessageId, MessageId>,
  target: ConversationId,
): Script<ReadonlyMap<SummaryId, SummaryId>> {
  const copies = new Map<SummaryId, SummaryId>();
  for (const id of depths.keys()) copies.set(id, yield* copySummary(deps, id, target, "copied"));
  for (const { of, source, ordinal } of summaryLinks) {
    yield sql`INSERT INTO summary_parents (conversation_id, summary_id, parent_summary_id, ordinal)
              VALUES (${target}, ${copyOf(copies, of)}, ${copyOf(copies, source)}, ${ordinal})`;
  }
  for (const { of, source, ordinal } of messageLinks) {
    yield sql`INSERT INTO summary_messages (conversation_id, summary_id, message_id, ordinal)
              VALUES (${target}, ${copyOf(copies, of)}, ${copyOf(messages, source)}, ${ordinal})`;
  }
  return copies;
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
  yield sql`UPDATE conversations SET next_seq = ${seq}, last_message_at = nullif(max(coalesce(last_message_at, ''), ${newest}), '')
            WHERE conversation_id = ${target}`;
  return copies;
}
