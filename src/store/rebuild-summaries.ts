/** The older program's summaries as ours: depths, ranges and counts follow from the links, whatever the columns said. */

import type { DatabaseSync } from "node:sqlite";
import { assert } from "../core/errors.ts";
import { columnsOf } from "./migrate.ts";
import { asText, asTextOrNull, epoch, insertFrom } from "./older-rows.ts";
import type { Row } from "./older-rows.ts";

export function copySummaries(db: DatabaseSync, older: string | null): number {
  assert(older !== null, "every file of the older program has summaries");
  const has = columnsOf(db, older);
  const createdAt = `coalesce(lcm_time(o.created_at), ?, '${epoch}')`;
  const values = {
    summary_id: "o.summary_id",
    conversation_id: "o.conversation_id",
    kind: "o.kind",
    depth: "?",
    content: "CAST(o.content AS TEXT)",
    token_count: "lcm_tokens(o.content)",
    earliest_at: "?",
    latest_at: "?",
    descendant_count: "?",
    created_at: createdAt,
    updated_at: createdAt,
    file_ids: has.has("file_ids") ? "CASE WHEN json_valid(o.file_ids) THEN o.file_ids ELSE '[]' END" : "'[]'",
    model: has.has("model") ? "nullif(o.model, 'unknown')" : "NULL",
    level: "lcm_level(o.content)",
    search_id: "?",
  };
  const insert = db.prepare(`${insertFrom("summaries", older, values)} WHERE o.summary_id = ?`);
  const facts = describeSummaries(db, older);
  let searchId = 0;
  for (const [id, { depth, earliestAt, latestAt, descendants }] of facts) {
    insert.run(depth, earliestAt, latestAt, descendants, latestAt, latestAt, ++searchId, id);
  }
  return facts.size;
}

interface SummaryFacts {
  readonly depth: number;
  readonly earliestAt: string | null;
  readonly latestAt: string | null;
  readonly descendants: number;
}

/** Depths, ranges and counts from the links, in the order in which the summaries were made. */
function describeSummaries(db: DatabaseSync, older: string): ReadonlyMap<string, SummaryFacts> {
  const has = columnsOf(db, older);
  const column = (name: string): string => (has.has(name) ? name : "NULL");
  const rows = db
    .prepare(
      `SELECT summary_id, kind, ${column("depth")} AS depth, lcm_time(${column("earliest_at")}) AS earliest,
         lcm_time(${column("latest_at")}) AS latest
       FROM ${older} ORDER BY coalesce(lcm_time(created_at), ''), rowid`,
    )
    .all();
  const spans = db
    .prepare(
      `SELECT l.summary_id, min(m.created_at) AS earliest, max(m.created_at) AS latest
       FROM summary_messages l JOIN messages m USING (message_id) GROUP BY l.summary_id`,
    )
    .all();
  const links = db.prepare("SELECT summary_id, parent_summary_id FROM summary_parents").all();
  const statedOf = new Map(rows.map((row) => [asText(row["summary_id"]), row]));
  const spanOf = new Map(spans.map((row) => [asText(row["summary_id"]), toSpan(row)]));
  const linksOf = Map.groupBy(links, (row) => asText(row["summary_id"]));
  const described = new Map<string, SummaryFacts>();

  const describe = (id: string): SummaryFacts | null => {
    const known = described.get(id);
    const row = statedOf.get(id);
    if (known !== undefined || row === undefined) return known ?? null;
    const isLeaf = row["kind"] === "leaf";
    const stated = { depth: isLeaf ? 0 : Math.max(1, Number(row["depth"] ?? 1)), ...toSpan(row), descendants: 0 };
    // One that is among its own sources meets this there, and goes no further.
    described.set(id, stated);
    const sources = (linksOf.get(id) ?? []).map((link) => describe(asText(link["parent_summary_id"])));
    const below = sources.filter((source) => source !== null);
    const own = spanOf.get(id);
    const covered = own === undefined ? below : [...below, own];
    const facts: SummaryFacts = {
      depth: isLeaf || below.length === 0 ? stated.depth : 1 + Math.max(...below.map((source) => source.depth)),
      // Where nothing is left of its sources, what it said of itself is all there is.
      ...(covered.length === 0 ? toSpan(row) : joinSpans(covered)),
      descendants: below.reduce((sum, source) => sum + source.descendants + 1, 0),
    };
    described.set(id, facts);
    return facts;
  };
  const inOrder = [...statedOf.keys()].map((id) => [id, describe(id)] as const);
  return new Map(inOrder.flatMap(([id, facts]) => (facts === null ? [] : [[id, facts]])));
}

type Span = Pick<SummaryFacts, "earliestAt" | "latestAt">;

const toSpan = (row: Row): Span => ({
  earliestAt: asTextOrNull(row["earliest"]),
  latestAt: asTextOrNull(row["latest"]),
});

const joinSpans = (spans: readonly Span[]): Span => ({
  earliestAt:
    spans
      .map((span) => span.earliestAt)
      .filter((time) => time !== null)
      .sort()[0] ?? null,
  latestAt:
    spans
      .map((span) => span.latestAt)
      .filter((time) => time !== null)
      .sort()
      .at(-1) ?? null,
});
