import assert from "node:assert/strict";
import { it } from "node:test";
import { databaseFileOf } from "./database-file.ts";

it("a store without a database file is refused with a hint where one is needed", () => {
  assert.throws(() => databaseFileOf({}), { code: "unavailable", hint: /pg_dump/ });
});
