/** Writes that wait for another process; the store contract covers the rest. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { makeScratch } from "../../../test/support/scratch.ts";
import { createHost, toAppendable, user } from "../../../test/support/scripted-host.ts";
import { openSqlite } from "./store.ts";

describe("a write while another process writes", () => {
  it("is completed before the store closes", async () => {
    const path = join(makeScratch("sqlite"), "lcm.db");
    const store = await openSqlite({ path, housekeeping: false });
    const { id } = await store.open({ sessionId: "s" });
    const host = createHost("h");
    host.says(user("the heron"));
    const other = new DatabaseSync(path);
    other.exec("BEGIN IMMEDIATE");
    const writing = store.append(id, host.entries.map(toAppendable));
    const closing = store.close();
    setTimeout(() => other.exec("COMMIT"), 20);
    const { messages } = await writing;
    await closing;
    assert.deepEqual(
      other
        .prepare("SELECT message_id AS id FROM messages")
        .all()
        .map(({ id }) => id),
      messages,
    );
    other.close();
  });
});
