import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { leadsOf } from "./leads.ts";
import type { ConversationId, MessageId } from "../model/types.ts";
import type { SearchHit, SummaryHit } from "../model/store.ts";
import type { Timestamp } from "../base/time.ts";

const conversation = 1 as ConversationId;
const at = "2026-02-17T15:30:00.000Z" as Timestamp;
const leaf = "sum_0123456789abcdef";
const focus = { from: 0, to: 0 };

const hit = (id: number): SearchHit => {
  const place = { conversation, snippet: `message ${id}`, focus, at, score: 1 };
  return { ...place, kind: "message", id: id as MessageId, role: "user", seq: id };
};

describe("leads of a search", () => {
  it("leave out messages that mean little by themselves, unless there are no others", () => {
    const saying = (id: number, snippet: string): SearchHit => ({ ...hit(id), snippet });
    const little = ["/", "", "(no output)", "continue"].map((text, at) => saying(at + 1, text));
    const some = [saying(5, "42"), saying(6, "川霧"), saying(7, "we take the ferry")];
    const ids = (hits: readonly SearchHit[]) => leadsOf({ hits }).messages.map(({ id }) => Number(id));
    assert.deepEqual(ids([...little, ...some]), [5, 6, 7]);
    assert.deepEqual(ids(little), [1, 2, 3, 4]);
  });

  it("prefer leaves over condensed summaries", () => {
    const summary = (id: `sum_${string}`, depth: number): SummaryHit => {
      return { kind: "summary", id, depth, earliestAt: null, conversation, snippet: "s", focus, at, score: 1 };
    };
    const condensed = summary("sum_00000000000000c1", 1);
    assert.deepEqual(
      leadsOf({ hits: [], summaries: [condensed, summary(leaf, 0)] }).summaries.map(({ id }) => id),
      [leaf],
    );
    assert.deepEqual(
      leadsOf({ hits: [], summaries: [condensed] }).summaries.map(({ id }) => id),
      [condensed.id],
    );
  });
});
