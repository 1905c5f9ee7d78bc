import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { openSqlite, systemNow } from "../store/sqlite.ts";
import { makeScratch } from "../testing/scratch.ts";
import { createHost, toAppendable, turnWithTool, user } from "../testing/scripted-host.ts";
import { createLcm } from "./lcm.ts";
import type { Lcm } from "./lcm.ts";
import type { ConversationId, SummaryId } from "./model.ts";
import { resolveSettings } from "./settings.ts";

const folder = makeScratch("expand");
let databases = 0;
after(() => rmSync(folder, { recursive: true, force: true }));

/** Two layers of summaries over eighty turns, with one thing said once. */
async function ground(): Promise<{ readonly lcm: Lcm; readonly id: ConversationId; readonly top: SummaryId }> {
  const store = await openSqlite({ path: join(folder, `${++databases}.db`), housekeeping: false });
  const config = {
    freshTailCount: 4,
    leafChunkTokens: 900,
    leafTargetTokens: 90,
    condensedTargetTokens: 150,
    leafMinFanout: 3,
  };
  const lcm = createLcm({ store, clock: { now: systemNow }, settings: resolveSettings({ env: {}, config }).values });
  const { id } = await store.open({ sessionId: "s" });
  const host = createHost("h");
  for (let turn = 0; turn < 80; turn++) {
    if (turn === 11) {
      host.says(user("Which ferry do we take to the island?"));
      host.says({ role: "assistant", content: [{ type: "text", text: "The one at 07:40, from pier nine." }] });
    }
    for (const raw of turnWithTool(
      `c${turn}`,
      `Anything new on day ${turn}?`,
      `the ledger of day ${turn} is balanced `.repeat(4),
    ))
      host.says(raw);
  }
  await lcm.ingest(id, host.entries.map(toAppendable));
  await lcm.compact({ conversation: id, mode: "sweep" });
  const [first] = await store.context(id, { kind: "summary", limit: 1 });
  return { lcm, id, top: first?.kind === "summary" ? first.id : assert.fail("there is a summary") };
}

describe("expanding a summary", () => {
  it("shows the summaries below it, in order, and what did not fit", async () => {
    const { lcm, top } = await ground();
    const all = await lcm.expand({ summaryIds: [top], tokenCap: 100_000 });
    assert.ok(all.items.length >= 3 && all.items.every((item) => item.kind === "summary" && item.depth === 0));
    assert.deepEqual(
      all.items.map(({ at }) => at),
      all.items.map(({ at }) => at).toSorted(),
    );
    assert.deepEqual(all.leftOut, { items: 0, tokens: 0 });
    const some = await lcm.expand({ summaryIds: [top], tokenCap: 150 });
    assert.ok(some.tokens <= 150 && some.items.length >= 1);
    assert.equal(some.items.length + some.leftOut.items, all.items.length);
  });

  it("reaches the messages when asked to, and only as deep as asked", async () => {
    const { lcm, top } = await ground();
    const shallow = await lcm.expand({ summaryIds: [top], tokenCap: 100_000, includeMessages: true, maxDepth: 0 });
    assert.equal(shallow.items.length, 0);
    const deep = await lcm.expand({ summaryIds: [top], tokenCap: 100_000, includeMessages: true });
    assert.ok(deep.items.some((item) => item.kind === "message" && item.text.includes("pier nine")));
  });

  it("finds an answer that shares no word with its question, within few tokens", async () => {
    const { lcm, top } = await ground();
    const query = "Which ferry do we take to the island?";
    const { items, tokens } = await lcm.expand({
      summaryIds: [top],
      query,
      tokenCap: 120,
      includeMessages: true,
      maxDepth: 5,
    });
    assert.ok(tokens <= 120);
    assert.ok(
      items.some(({ text }) => text.includes("pier nine")),
      items.map(({ text }) => text).join("\n"),
    );
  });

  it("shows a part of a message that is longer than what is left, around what was asked for", async () => {
    const { lcm } = await ground();
    const { id } = await lcm.store.open({ sessionId: "long" });
    const host = createHost("l");
    host.says(
      user(`${"nothing of note here. ".repeat(200)} the vault opens at dusk. ${"more of the same. ".repeat(200)}`),
    );
    await lcm.store.append(id, host.entries.map(toAppendable));
    const run = await lcm.store.context(id);
    const text = { text: "long", tokens: 1, level: "normal", model: null, previousContext: null, fileIds: [] } as const;
    const folded = await lcm.store.fold(id, run, text);
    const summary = folded.kind === "written" ? folded.summary : assert.fail("folded");
    const { items, tokens } = await lcm.expand({
      summaryIds: [summary],
      query: "vault dusk",
      tokenCap: 300,
      includeMessages: true,
    });
    assert.ok(tokens <= 300);
    const [item] = items;
    assert.ok(item?.kind === "message" && !item.isWhole && item.text.includes("vault opens at dusk"));
  });

  it("refuses a summary that does not exist", async () => {
    const { lcm } = await ground();
    await assert.rejects(lcm.expand({ summaryIds: ["sum_0000000000000000"], tokenCap: 10 }), { code: "not_found" });
  });
});
