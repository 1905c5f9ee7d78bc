/**
 * Lists the summaries below a summary, so that a reader can choose what to expand. Walks the sources level by level, one
 * statement each, up to a bound. Never leaves the conversation, even if a damaged graph does.
 */

import { LcmError } from "../../core/base/errors.ts";
import type { ConversationId, SummaryId } from "../../core/model/types.ts";
import type { Manifest, ManifestRow } from "../../core/model/store.ts";
import { belowHeadings, excerpt } from "../../core/base/excerpt.ts";
import { asConversation, asSummary, timeOrNull, toSummaryId } from "../rows.ts";
import { all, first, int, sql, text, type ReadScript, type Row, type Script } from "../script.ts";

type Amount = NonNullable<Manifest["messages"]>;

export const manifest: ReadScript<"manifest"> = function* (root, summariesMax) {
  const top = yield* first(sql`SELECT conversation_id, depth FROM summaries WHERE summary_id = ${root}`, (row) => ({
    conversation: asConversation(int(row, "conversation_id")),
    depth: int(row, "depth"),
  }));
  if (top === null) throw new LcmError("not_found", `there is no summary ${root}`);
  const { conversation, depth } = top;

  const below = new Map<SummaryId, Node[]>([[root, []]]);
  const own = new Map<SummaryId, Amount>();
  /** Summaries whose sources were not all read. */
  const unfinished = new Set<SummaryId>();
  let left = Math.max(0, summariesMax);
  let level: readonly Pick<Node, "id" | "depth">[] = [{ id: root, depth }];
  while (level.length > 0) {
    const ids = level.map(({ id }) => id);
    for (const [id, amount] of yield* messagesOf(ids, conversation)) own.set(id, amount);
    const condensed = level.filter((node) => node.depth > 0).map(({ id }) => id);
    if (unfinished.size > 0) {
      for (const id of condensed) unfinished.add(id);
      break;
    }
    const found = yield* sourcesOf(condensed, conversation, left + 1);
    const cut = found[left];
    // Sources come in the order of the level: from the first that is cut off on, none are complete.
    if (cut !== undefined) for (const id of condensed.slice(condensed.indexOf(cut.above))) unfinished.add(id);
    // Each once: a damaged graph may reach a summary twice, or in a circle.
    const news = found.slice(0, left).filter(({ id }) => !below.has(id) && below.set(id, []));
    for (const node of news) below.get(node.above)?.push(node);
    left -= news.length;
    level = news;
  }

  const rows: ManifestRow[] = [];
  const visit = (id: SummaryId, depthBelow: number): Amount | null => {
    const amounts: (Amount | null)[] = [unfinished.has(id) ? null : (own.get(id) ?? nothing)];
    for (const { above: _, ...node } of below.get(id) ?? []) {
      const place = rows.push({ ...node, level: depthBelow, messages: null }) - 1;
      const messages = visit(node.id, depthBelow + 1);
      rows[place] = { ...node, level: depthBelow, messages };
      amounts.push(messages);
    }
    return amounts.reduce(sum);
  };
  const messages = visit(root, 1);
  return { rows, messages, isBounded: unfinished.size > 0 };
};

const nothing: Amount = { count: 0, tokens: 0 };
const sum = (one: Amount | null, other: Amount | null): Amount | null =>
  one === null || other === null ? null : { count: one.count + other.count, tokens: one.tokens + other.tokens };

type Node = Omit<ManifestRow, "level" | "messages"> & { readonly above: SummaryId };

/** The summaries that these were made from, in order. */
const sourcesOf = (ids: readonly SummaryId[], conversation: ConversationId, most: number): Script<readonly Node[]> =>
  all(
    sql`SELECT above, s.summary_id, s.depth, s.token_count, s.earliest_at, s.latest_at,
               substr(s.content, 1, ${openingRead}) AS opening
        FROM (SELECT asked.key AS place, p.ordinal AS ordinal, p.summary_id AS above, near.summary_id AS source
              FROM texts_in(${ids}) asked CROSS JOIN summary_parents p ON p.summary_id = asked.value
              CROSS JOIN summaries near ON near.summary_id = p.parent_summary_id
              WHERE near.conversation_id = ${conversation} ORDER BY place, p.ordinal LIMIT ${most})
        JOIN summaries s ON s.summary_id = source ORDER BY place, ordinal`,
    toNode,
  );

const openingWidth = 100;
/** More than an excerpt of that width reads. */
const openingRead = 4 * openingWidth;

const toNode = (row: Row): Node => ({
  above: asSummary(text(row, "above")),
  id: toSummaryId(row),
  depth: int(row, "depth"),
  tokens: int(row, "token_count"),
  earliestAt: timeOrNull(row, "earliest_at"),
  latestAt: timeOrNull(row, "latest_at"),
  opening: excerpt(belowHeadings(text(row, "opening")), { from: 0, to: 0 }, openingWidth),
});

/** How many messages each was made from directly; summaries without any are left out. */
const messagesOf = (
  ids: readonly SummaryId[],
  conversation: ConversationId,
): Script<readonly (readonly [SummaryId, Amount])[]> =>
  all(
    sql`SELECT sm.summary_id, count(*) AS messages, sum(m.token_count) AS tokens
        FROM texts_in(${ids}) asked CROSS JOIN summary_messages sm ON sm.summary_id = asked.value
        CROSS JOIN messages m ON m.message_id = sm.message_id
        WHERE m.conversation_id = ${conversation} GROUP BY sm.summary_id`,
    (row) => [toSummaryId(row), { count: int(row, "messages"), tokens: int(row, "tokens") }],
  );
