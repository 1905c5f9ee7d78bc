import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { sql } from "../script.ts";
import { toQueries } from "./translate.ts";

describe("lists for PostgreSQL", () => {
  const role: string[] | null = null;

  it("are arrays, each of whose members an index finds", () => {
    const [query] = toQueries(sql`SELECT 1 FROM messages WHERE message_id IN (SELECT value FROM numbers_in(${[1, 2]}))
      AND message_key NOT IN (SELECT value FROM texts_in(${["a b", "c\0"]}))
      AND (${role} IS NULL OR role IN (SELECT value FROM texts_in(${role})))`);
    assert.equal(
      query?.text.replaceAll(/\s+/g, " "),
      "SELECT 1 FROM messages WHERE message_id = ANY ($1::bigint[]) AND message_key <> ALL ($2::text[]) " +
        "AND (NULL IS NULL OR role = ANY (NULL::text[]))",
    );
    assert.deepEqual(query.values, [
      [1, 2],
      ["a b", "c\uffff0"],
    ]);
  });

  it("stay rows where a statement reads them", () => {
    const [query] = toQueries(sql`SELECT value FROM texts_in(${["a"]}) AS asked`);
    assert.deepEqual([query?.text, query?.values], ["SELECT value FROM texts_in($1::lcm_text) AS asked", ['["a"]']]);
  });
});
