import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { excerptsOf, mergeSearches, recordOf } from "./excerpts.ts";
import type { Piece } from "./excerpts.ts";
import { messageName } from "./model.ts";
import type { ConversationId, MessageId, Timestamp } from "./model.ts";
import type { SearchHit } from "./ports.ts";
import { estimateTokens } from "./text.ts";

const conversation = 1 as ConversationId;
const at = "2026-02-17T15:30:00.000Z" as Timestamp;
const leaf = "sum_0123456789abcdef";

const found = (id: number): SearchHit => {
  const place = { conversation, snippet: `message ${id}`, at, score: 1 };
  return { ...place, kind: "message", id: id as MessageId, role: "user", seq: id };
};

const piece = (seq: number, rank: number, text = `message ${seq}`): Piece => {
  const shown = { conversation, text, tokens: estimateTokens(text), isWhole: true, at, rank, leaf } as const;
  return { ...shown, kind: "message", id: seq as MessageId, role: "user", seq };
};

describe("what several searches found", () => {
  it("comes by rank, and what both found before what one of them found first", () => {
    const { messages } = mergeSearches([[1, 2, 3].map(found), [4, 2, 5].map(found)]);
    assert.deepEqual([messages[0]?.id, messages.length], [2, 5]);
  });

  it("tells of leaves, and of condensed summaries only where there are none", () => {
    const summary = (id: `sum_${string}`, depth: number): SearchHit => {
      return { kind: "summary", id, depth, earliestAt: null, conversation, snippet: "s", at, score: 1 };
    };
    const condensed = summary("sum_00000000000000c1", 1);
    assert.deepEqual(
      mergeSearches([[condensed, summary(leaf, 0)]]).summaries.map(({ id }) => id),
      [leaf],
    );
    assert.deepEqual(
      mergeSearches([[condensed]]).summaries.map(({ id }) => id),
      [condensed.id],
    );
  });
});

describe("excerpts", () => {
  it("name time and leaf where a stretch begins, and every message by its id", () => {
    const pieces = [piece(7, 0), piece(8, 2), piece(30, 1)];
    const first = `[2026-02-17 15:30 UTC · user · msg_7 · in ${leaf}] message 7\n[user · msg_8] message 8`;
    const second = "[2026-02-17 15:30 UTC · user · msg_30] message 30";
    assert.equal(excerptsOf(pieces, 1_000).text, `${first}\n\n${second}`);
    assert.equal(recordOf(pieces.toReversed()), `${first}\n\n${second}`);
  });

  it("begin with the best stretch, wherever it is", () => {
    const { text } = excerptsOf([piece(7, 5), piece(30, 0)], 1_000);
    assert.ok(text.indexOf("msg_30") < text.indexOf("msg_7"));
  });

  it("are within the tokens, the best in any case, and show what they say they show", () => {
    const places = fc.uniqueArray(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 30 });
    const words = fc.integer({ min: 1, max: 40 });
    fc.assert(
      fc.property(places, words, fc.integer({ min: 20, max: 600 }), (seqs, length, maxTokens) => {
        const pieces = seqs.map((seq, rank) => piece(seq, rank, `the gate of day ${seq} `.repeat(length)));
        const { text, shown } = excerptsOf(pieces, maxTokens);
        assert.ok(shown.length === 1 || estimateTokens(text) <= maxTokens);
        assert.equal(shown[0]?.rank, 0);
        for (const { id, kind } of shown) assert.ok(kind === "message" && text.includes(` ${messageName(id)}`));
      }),
    );
  });
});
