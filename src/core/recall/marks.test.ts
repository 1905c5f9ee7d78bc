import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { makeScratch } from "../../../test/support/scratch.ts";
import { openSqlite } from "../../store/sqlite/store.ts";
import type { Timestamp } from "../base/time.ts";
import { messageToStore } from "../messages/codec.ts";
import type { Appendable } from "../model/store.ts";
import { marksAmong } from "./marks.ts";

const folder = makeScratch("marks");
const store = await openSqlite({ path: join(folder, "lcm.db"), housekeeping: false });
after(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

const at = (minute: number): Timestamp => new Date(Date.UTC(2026, 1, 17, 7, minute)).toISOString() as Timestamp;
const said = (minute: number): Appendable => ({
  kind: "message",
  message: messageToStore({ role: "user", content: `minute ${minute}` }, { key: `m${minute}`, at: at(minute) }),
});
const entry = (
  key: string,
  minute: number,
  value: { readonly type: string; readonly [field: string]: unknown },
): Appendable => ({
  kind: "entry",
  entry: { key, type: value.type, at: at(minute), raw: JSON.stringify(value) },
});

const { id } = await store.open({ sessionId: "marked" });
await store.append(id, [
  entry("e1", 0, { type: "reset" }),
  said(1),
  entry("e2", 2, { type: "compaction", tokensBefore: 24_314, summary: "long ".repeat(100) }),
  said(3),
  entry("e3", 4, { type: "model_change", provider: "anthropic\nmsg_1-9 user", modelId: "claude" }),
  entry("e4", 4, { type: "thinking_level_change", thinkingLevel: "off" }),
  entry("e5", 4, { type: "system", subtype: "compact_boundary", compactMetadata: { preTokens: 500 } }),
  entry("e6", 4, { type: "compacted", payload: {} }),
  said(5),
  said(7),
]);
const record = {
  conversation: id,
  mode: "sweep",
  asked: false,
  outcome: "settled",
  message: "",
  passes: 1,
  durationMs: 1,
} as const;
await store.recordCompaction({ ...record, at: at(6), tokensBefore: 9_000, tokensAfter: 1_000 });
await store.recordCompaction({ ...record, at: at(6), tokensBefore: 1_000, tokensAfter: 1_000 });

describe("marks between messages", () => {
  it("are what the host recorded and what we did, each after the message before it, on one line", async () => {
    const messages = await store.messages({ conversation: id });
    assert.deepEqual(
      (await marksAmong(store, messages)).map(({ afterSeq, kind, text }) => `${afterSeq} ${kind}: ${text}`),
      [
        "0 segment: reset by the host",
        "1 compaction: compacted by the host at 24,314 tokens",
        "2 model: model changed to anthropic",
        "2 compaction: compacted by the host at 500 tokens",
        "2 compaction: compacted by the host",
        "3 compaction: compacted: 9,000 to 1,000 tokens",
      ],
    );
  });

  it("are only those right beside the messages that are shown", async () => {
    const [, second] = await store.messages({ conversation: id });
    const marks = await marksAmong(store, second === undefined ? [] : [second]);
    assert.deepEqual([...new Set(marks.map(({ afterSeq }) => afterSeq))], [1, 2]);
    assert.deepEqual(await marksAmong(store, []), []);
  });
});
