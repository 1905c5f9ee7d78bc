/** Comparing meanings: closeness is measured against all messages in scope, and a deadline leaves a part out. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { createHost, toAppendable, user } from "../../../../test/support/scripted-host.ts";
import { vectorOf } from "../../../../test/support/scripted-embedder.ts";
import { makeScratch } from "../../../../test/support/scratch.ts";
import { toBits } from "../../../core/model-calls/embedding.ts";
import type { Store } from "../../../core/model/store.ts";
import { connect } from "../../sqlite/connect.ts";
import { createRunner } from "../../sqlite/runner.ts";
import { openSqlite } from "../../sqlite/store.ts";
import { compareMeaning, type Meaning } from "./compare.ts";
import type { Filter } from "../sources.ts";

const model = "m";
const bits = (text: string): Uint8Array => toBits(vectorOf(text));
const everywhere = { only: null, hidden: "[]" } as Filter;

async function embedded(texts: readonly string[], conversations = 1): Promise<{ store: Store; path: string }> {
  const path = join(makeScratch("semantic"), "lcm.db");
  const store = await openSqlite({ path, housekeeping: false });
  for (let n = 0; n < conversations; n++) {
    const host = createHost(`h${n}`);
    for (const text of texts) host.says(user(text));
    await store.append((await store.open({ sessionId: `s${n}` })).id, host.entries.map(toAppendable));
  }
  for (let pending = await store.pendingVectors(model, 1_024); pending !== null;) {
    const { texts: read, ...place } = pending;
    await store.saveVectors({ ...place, model, vectors: read.map(bits) });
    pending = await store.pendingVectors(model, 1_024);
  }
  return { store, path };
}

function compare(path: string, questions: readonly string[], isLate = false): Meaning {
  const db = connect(path, true);
  try {
    const deadline = { deadlineMs: isLate ? -1 : 1, nowMs: () => 0 };
    return createRunner(db).run(compareMeaning({ model, vectors: questions.map(bits) }, everywhere, deadline));
  } finally {
    db.close();
  }
}

const texts = ["otter", "badger", "heron", "tree", "river", "stone"];

describe("closeness", () => {
  it("has the mean 0 and the deviation 1 over all messages, and is highest for the same words", async () => {
    const { store, path } = await embedded(texts);
    const { closeness, closest, rows, missing } = compare(path, ["heron"]);
    const all = texts.map((_, at) => closeness(1, at + 1) ?? assert.fail());
    const mean = all.reduce((sum, each) => sum + each, 0) / all.length;
    const variance = all.reduce((sum, each) => sum + (each - mean) ** 2, 0) / all.length;
    assert.ok(Math.abs(mean) < 0.01 && Math.abs(variance - 1) < 0.01, `${mean}, ${variance}`);
    assert.deepEqual([closest(2)[0], closest(2).length], [2 ** 24 + 3, 2]);
    assert.deepEqual([rows, missing, closeness(1, 7), closeness(2, 1)], [6, 0, null, null]);
    await store.close();
  });

  it("to several wordings is the mean of each", async () => {
    const { store, path } = await embedded(texts);
    const [one, other, both] = [["heron"], ["tree"], ["heron", "tree"]].map((asked) => compare(path, asked));
    for (const seq of [1, 3, 4]) {
      const expected = ((one?.closeness(1, seq) ?? 0) + (other?.closeness(1, seq) ?? 0)) / 2;
      assert.ok(Math.abs(expected - (both?.closeness(1, seq) ?? 9)) < 0.002);
    }
    assert.deepEqual(new Set(both?.closest(2)), new Set([2 ** 24 + 3, 2 ** 24 + 4]));
    await store.close();
  });

  it("after the deadline, what was not compared counts as missing", async () => {
    const many = Array.from({ length: 20_000 }, (_, n) => texts[n % texts.length] ?? "");
    const { store, path } = await embedded(many, 2);
    assert.equal(compare(path, ["heron"]).missing, 0);
    const { rows, missing, closest } = compare(path, ["heron"], true);
    assert.deepEqual([rows, missing > 0 && missing < rows], [40_000, true]);
    assert.equal(closest(5).length, 5);
    await store.close();
  });

  it("of no messages at all is nothing", async () => {
    const { store, path } = await embedded([]);
    assert.deepEqual(compare(path, ["heron"]).closest(5), []);
    await store.close();
  });
});
