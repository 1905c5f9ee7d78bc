/** Reading messages by id, with and without gaps, and from either end. The contract tests the rest. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import type { MessageId } from "../../core/model/types.ts";
import type { MessageSelection } from "../../core/model/store.ts";
import { compaction } from "../../../test/store-contract/ground.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { createHost, toAppendable, user } from "../../../test/support/scripted-host.ts";
import { openSqlite } from "../sqlite/store.ts";

const store = await openSqlite({ path: join(makeScratch("read"), "lcm.db"), housekeeping: false });
after(async () => await store.close());

const { id } = await store.open({ sessionId: "s" });
const host = createHost("h");
for (const text of ["a", "b", "c", "d"]) host.says(user(text));
const { messages: ids } = await store.append(id, host.entries.map(toAppendable));

const read = async (selection: MessageSelection): Promise<string> =>
  (await store.messages(selection)).map(({ text }) => text).join("");

describe("messages by id", () => {
  it("come in the requested order, without those that do not exist", async () => {
    const asked = (...places: readonly number[]) => ({
      ids: places.map((place) => ids[place] ?? ((999 + place) as MessageId)),
    });
    assert.equal(await read(asked()), "");
    assert.equal(await read(asked(1, 2)), "bc");
    assert.equal(await read(asked(3, 0, 2)), "dac");
    assert.equal(await read(asked(2, 3, 4)), "cd");
  });
});

describe("the last compactions", () => {
  it("are limited, newest first, of one conversation or of all", async () => {
    const other = await store.open({ sessionId: "other" });
    for (const [conversation, passes] of [
      [id, 1],
      [other.id, 2],
      [id, 3],
    ] as const)
      await store.recordCompaction(compaction(conversation, { passes }));
    const told = async (of: typeof id | null, limit: number): Promise<string> =>
      (await store.compactions(of, limit)).map(({ passes }) => passes).join("");
    assert.deepEqual([await told(null, 2), await told(id, 1), await told(id, 5)], ["32", "3", "31"]);
  });
});

describe("messages between two positions", () => {
  it("exclude both ends, and are the oldest or the newest", async () => {
    const between = { conversation: id, afterSeq: 1, beforeSeq: 4 };
    assert.equal(await read(between), "bc");
    assert.equal(await read({ ...between, keep: "newest" }), "bc");
    assert.equal(await read({ ...between, limit: 1 }), "b");
    assert.equal(await read({ ...between, limit: 1, keep: "newest" }), "c");
  });
});
