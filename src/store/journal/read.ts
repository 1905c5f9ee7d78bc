/** Reads the journal: steps with the row images that undo needs, and as entries of the core. */

import type { JournalFilter } from "../../core/model/changes.ts";
import { isSummaryId, operations, type JournalEntry, type Touched } from "../../core/model/types.ts";
import { rowsMax } from "../conversation/reads.ts";
import { isTable, type Image, type Table, type Trace } from "./record.ts";
import { asConversation, asMessage, asSummary, time, wordOf } from "../rows.ts";
import { all, int, sql, text, type ReadScript, type Row, type Script } from "../script.ts";
import type { Json } from "../../core/base/json.ts";

export interface StoredStep {
  readonly entry: JournalEntry;
  /** Null if nothing can be restored from it: a removal, or forgotten text. */
  readonly before: Trace | null;
  readonly after: Trace | null;
}

export const journal: ReadScript<"journal"> = function* (filter) {
  return (yield* steps(filter)).map(({ entry }) => entry);
};

/** Newest first. */
export function* steps({ conversation, change, limit }: JournalFilter): Script<readonly StoredStep[]> {
  const [only, of] = [conversation ?? null, change ?? null];
  return yield* all(
    sql`SELECT * FROM journal WHERE (${only} IS NULL OR conversation_id = ${only}) AND change_id IN (
          SELECT change_id FROM journal
          WHERE (${only} IS NULL OR conversation_id = ${only}) AND (${of} IS NULL OR change_id = ${of})
          GROUP BY change_id ORDER BY max(journal_id) DESC LIMIT ${rowsMax(limit)})
        ORDER BY journal_id DESC`,
    toStep,
  );
}

const asOperation = wordOf(operations);

function toStep(row: Row): StoredStep {
  const fields = fieldsIn(text(row, "after_json"));
  const [before, after] = [traceIn(text(row, "before_json")), traceIn(text(row, "after_json"))];
  const list = (name: string): readonly Json[] => {
    const values = fields[name];
    return Array.isArray(values) ? values : [];
  };
  const entry: JournalEntry = {
    id: int(row, "journal_id"),
    change: int(row, "change_id"),
    at: time(row, "at"),
    operation: asOperation(text(row, "operation")),
    conversation: row["conversation_id"] === null ? null : asConversation(int(row, "conversation_id")),
    subject: text(row, "subject"),
    before: touchedBy(before?.rows ?? []),
    after: touchedBy(after?.rows ?? []),
    hasTotals: after?.totals !== undefined,
    undoes: typeof fields["undoes"] === "number" ? fields["undoes"] : null,
    undoneBy: row["undone_by"] === null ? null : int(row, "undone_by"),
    marked: list("summaries").filter((id) => typeof id === "string" && isSummaryId(id)),
    removed: list("conversations")
      .filter((id) => typeof id === "number")
      .map(asConversation),
  };
  return { entry, before, after };
}

function touchedBy(images: readonly Image[]): Touched {
  const of = (...tables: readonly Table[]): readonly Image[] => images.filter(({ table }) => tables.includes(table));
  return {
    summaries: of("summaries").flatMap(({ key, columns }) => {
      if (columns === null) return [];
      const { content, token_count: tokens } = columns;
      return [
        {
          id: asSummary(String(key["summary_id"])),
          text: typeof content === "string" ? content : null,
          tokens: typeof tokens === "number" ? tokens : null,
        },
      ];
    }),
    places: of("context_items").flatMap(({ columns }): Touched["places"] => {
      const { summary_id: summary, message_id: message } = columns ?? {};
      if (typeof summary === "string") return [asSummary(summary)];
      return typeof message === "number" ? [asMessage(message)] : [];
    }),
    rows: {
      summaries: of("summaries").length,
      messages: of("messages").length,
      links: of("summary_messages", "summary_parents").length,
      places: of("context_items").length,
    },
  };
}

function traceIn(json: string): Trace | null {
  const fields = fieldsIn(json);
  if (!Array.isArray(fields["rows"])) return null;
  const trace = fields as unknown as Trace;
  return trace.rows.every(({ table }) => isTable(table)) ? trace : null;
}

function fieldsIn(json: string): Readonly<Record<string, Json | undefined>> {
  const fields: Json = JSON.parse(json);
  return typeof fields === "object" && fields !== null && !Array.isArray(fields)
    ? (fields as Record<string, Json>)
    : {};
}
