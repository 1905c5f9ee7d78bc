/** On the one data set that is part of the project, search finds at least what plain BM25 finds, and more by wordings. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readDataSets } from "../bench/recall/data.ts";
import { measure } from "../bench/recall/measure.ts";
import { storeDataSet } from "../bench/recall/store.ts";
import { ours, oursWithAlso, plain } from "../bench/recall/ways.ts";

describe("guarantee 39: search is no worse than plain BM25", () => {
  it("at any rank, on the demo's questions; with other wordings it is better, and the tool shows what it found", async () => {
    const nowhere = "/nonexistent";
    const [demo] = readDataSets({ data: nowhere, also: nowhere }, () => undefined);
    assert.ok(demo !== undefined);
    const stored = await storeDataSet(demo, null);
    const { figures } = await measure(stored, [plain, ours, oursWithAlso]);
    await stored.close();
    const [base, alone, also] = [plain, ours, oursWithAlso].map(({ name }) => figures.get("all")?.get(name));
    assert.ok(base !== undefined && alone !== undefined && also !== undefined);
    for (const [at, recall] of base.recall.entries()) {
      assert.ok((alone.recall[at] ?? 0) >= recall, `${alone.recall[at]} < ${recall}`);
      assert.ok((also.recall[at] ?? 0) > (alone.recall[at] ?? 0), `${also.recall[at]} with also`);
    }
    assert.ok(alone.mrr >= base.mrr && also.mrr > alone.mrr);
    assert.ok((also.evidence ?? 0) >= (also.recall[1] ?? 0));
  });
});
