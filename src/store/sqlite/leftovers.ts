/**
 * Forgets and deletes in leftovers: values of the older program that adopting kept in tables beside ours.
 * Nothing reads these tables, but they may contain a secret or parts of a deleted conversation.
 */

import { escapedForms } from "../../core/maintenance/redact.ts";
import type { ForgetPlan } from "../../core/model/store.ts";
import { quoted } from "./pragma.ts";
import { tables } from "./schema.ts";
import { all, count, sql, statement, text, type Leftovers, type Script } from "../script.ts";
import { forgottenMark, type ConversationId } from "../../core/model/types.ts";

export const leftovers: Leftovers = { count: countRows, forget: forgetIn, remove: removeRows };

function* countRows(secret: string): Script<number> {
  let rows = 0;
  for (const [table, columns] of yield* olderTables()) {
    const holds = columns.map((column) => `instr(${column}, f.value)`).join(" OR ");
    const isHolding = `EXISTS (SELECT 1 FROM json_each(?) f WHERE ${holds})`;
    rows += yield* count(statement(`SELECT count(*) FROM ${table} WHERE ${isHolding}`, [escapedForms(secret)]));
  }
  return rows;
}

function* forgetIn(target: ForgetPlan["target"]): Script<void> {
  for (const [table, columns] of yield* olderTables()) {
    if (target.kind === "secret") {
      for (const column of columns) yield* redact(table, column, target.text);
    } else if (columns.includes('"message_id"') && table.startsWith('"older_message')) {
      yield statement(`DELETE FROM ${table} WHERE message_id = ?`, [target.id]);
    }
  }
}

function* removeRows(conversations: readonly ConversationId[]): Script<void> {
  const inList = "conversation_id IN (SELECT value FROM json_each(?))";
  for (const [table, columns] of yield* olderTables()) {
    if (columns.includes('"conversation_id"')) yield statement(`DELETE FROM ${table} WHERE ${inList}`, [conversations]);
    for (const [id, owner] of [
      ["message_id", "messages"],
      ["summary_id", "summaries"],
    ] as const) {
      if (!columns.includes(`"${id}"`)) continue;
      yield statement(`DELETE FROM ${table} WHERE ${id} IN (SELECT ${id} FROM ${owner} WHERE ${inList})`, [
        conversations,
      ]);
    }
  }
}

function* redact(table: string, column: string, secret: string): Script<void> {
  for (const form of escapedForms(secret)) {
    // OR REPLACE: a row may become equal to another in a unique column.
    yield statement(
      `UPDATE OR REPLACE ${table} SET ${column} = replace(${column}, ?, ?) WHERE typeof(${column}) = 'text' AND instr(${column}, ?)`,
      [form, forgottenMark, form],
    );
  }
}

/** Tables that are not ours, with their columns, as quoted names. */
function* olderTables(): Script<ReadonlyMap<string, readonly string[]>> {
  const found = yield* all(
    sql`SELECT l.name AS table_name, c.name AS column_name FROM pragma_table_list l, pragma_table_info(l.name) c
        WHERE l.schema = 'main' AND l.type = 'table' AND l.name NOT LIKE 'sqlite%'`,
    (row) => ({ table: text(row, "table_name"), column: quoted(text(row, "column_name")) }),
  );
  const others = Map.groupBy(
    found.filter(({ table }) => !(table in tables)),
    ({ table }) => quoted(table),
  );
  return new Map([...others].map(([table, columns]) => [table, columns.map(({ column }) => column)]));
}
