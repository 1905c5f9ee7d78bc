/** The older program's rows: the columns we adopt from each table, and how their values are converted. */

import type { DatabaseSync, SQLOutputValue } from "node:sqlite";
import { summaryChecksum } from "../checksums.ts";
import { agentOf } from "../rows.ts";
import type { tables } from "../sqlite/schema.ts";
import { parseTimestamp, type Timestamp } from "../../core/base/time.ts";
import { renderedTokens } from "../../core/base/escape.ts";
import { isTruncated } from "../maintenance/inspect-facts.ts";

const columns = (names: string): readonly string[] => names.split(" ");

/** The adopted columns by table; columns that identify a row come first. */
export const adopted = {
  conversations: columns("conversation_id session_id session_key active title created_at updated_at"),
  messages: columns("message_id conversation_id seq role content token_count created_at"),
  message_parts: columns("message_id ordinal part_type text_content tool_call_id tool_name metadata"),
  summaries: columns(
    "summary_id conversation_id kind depth content token_count earliest_at latest_at descendant_count created_at file_ids model",
  ),
  summary_messages: columns("summary_id message_id ordinal"),
  summary_parents: columns("summary_id parent_summary_id ordinal"),
  context_items: columns("conversation_id ordinal item_type message_id summary_id"),
  large_files: columns(
    "file_id conversation_id file_name mime_type byte_size line_count storage_uri exploration_summary created_at",
  ),
} as const satisfies Partial<Record<keyof typeof tables, readonly string[]>>;

export type AdoptedTable = keyof typeof adopted;
export const adoptedTables = Object.keys(adopted) as readonly AdoptedTable[];

export type Row = Readonly<Record<string, SQLOutputValue>>;

export function defineFunctions(db: DatabaseSync): void {
  const pure = { deterministic: true } as const;
  db.function("lcm_time", pure, (value) => (value === null ? null : parseTimestamp(asText(value))));
  db.function("lcm_tokens", pure, (value) => renderedTokens(asText(value)));
  db.function("lcm_agent", pure, (key) => agentOf(asText(key)));
  db.function("lcm_checksum", pure, (text, files) => summaryChecksum(asText(text), null, asText(files)));
  db.function("lcm_level", pure, (value) => (isTruncated(asText(value)) ? "truncated" : "normal"));
}

export const asText = (value: SQLOutputValue | undefined): string =>
  typeof value === "string"
    ? value
    : value instanceof Uint8Array
      ? new TextDecoder().decode(value)
      : String(value ?? "");
export const asTextOrNull = (value: SQLOutputValue | undefined): string | null =>
  value === null || value === undefined ? null : asText(value);

export const epoch = "1970-01-01T00:00:00.000Z" as Timestamp;

/** Builds an INSERT … SELECT from the older table, aliased `o`; `ours` maps our columns to SQL expressions. */
export const insertFrom = (name: AdoptedTable, older: string, ours: Readonly<Record<string, string>>): string =>
  `INSERT INTO ${name} (${Object.keys(ours).join(", ")}) SELECT ${Object.values(ours).join(", ")} FROM ${older} AS o`;

export const int = (row: Row, column: string): number => Number(row[column]);
