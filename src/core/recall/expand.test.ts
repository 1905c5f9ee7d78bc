import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, describe, it } from "node:test";
import { openSqlite, systemNow } from "../../store/sqlite/store.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { createHost, toAppendable, toIncoming, turnWithTool, user } from "../../../test/support/scripted-host.ts";
import { createLcm } from "../lcm.ts";
import type { Lcm } from "../lcm.ts";
import type { ConversationId, SummaryId } from "../model/types.ts";
import { resolveSettings } from "../model/settings.ts";

const folder = makeScratch("expand");
let databases = 0;
after(() => rmSync(folder, { recursive: true, force: true }));

const reach = { kind: "all", conversations: null } as const;

/** Two layers of summaries over eighty turns, with one thing said once. */
async function ground(
  sessionKey: string | null = null,
): Promise<{ readonly lcm: Lcm; readonly id: ConversationId; readonly top: SummaryId; readonly path: string }> {
  const path = join(folder, `${++databases}.db`);
  const store = await openSqlite({ path, housekeeping: false });
  const config = {
    freshTailCount: 4,
    leafChunkTokens: 900,
    leafTargetTokens: 90,
    condensedTargetTokens: 150,
    leafMinFanout: 3,
  };
  const lcm = createLcm({ store, clock: { now: systemNow }, settings: resolveSettings({ env: {}, config }).values });
  const { id } = await store.open({ sessionId: "s", sessionKey });
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
  await lcm.ingest(id, host.entries.map(toIncoming));
  await lcm.compact({ conversation: id, mode: "sweep" });
  const [first] = await store.context(id, { kind: "summary", limit: 1 });
  return { lcm, id, top: first?.kind === "summary" ? first.id : assert.fail("there is a summary"), path };
}

describe("expanding a summary", () => {
  it("returns the summaries below it, in order, and counts what did not fit", async () => {
    const { lcm, top } = await ground();
    const all = await lcm.expand({ reach, summaryIds: [top], tokenCap: 100_000 });
    assert.ok(all.items.length >= 3 && all.items.every((item) => item.kind === "summary" && item.depth === 0));
    assert.deepEqual(
      all.items.map(({ at }) => at),
      all.items.map(({ at }) => at).toSorted(),
    );
    assert.deepEqual(all.leftOut, { items: 0, tokens: 0 });
    const some = await lcm.expand({ reach, summaryIds: [top], tokenCap: 150 });
    assert.ok(some.tokens <= 150 && some.items.length >= 1);
    assert.equal(some.items.length + some.leftOut.items, all.items.length);
    const ids = ({ items }: typeof all) => items.map(({ id }) => id);
    for (let tokenCap = 200; tokenCap < 4_000; tokenCap += 100) {
      const part = await lcm.expand({ reach, summaryIds: [top], tokenCap, includeMessages: true });
      const whole = await lcm.expand({ reach, summaryIds: [top], tokenCap: 100_000, includeMessages: true });
      assert.deepEqual(ids(part), ids(whole).slice(0, part.items.length));
    }
  });

  it("includes messages on request, only as deep as requested", async () => {
    const { lcm, top } = await ground();
    const shallow = await lcm.expand({
      reach,
      summaryIds: [top],
      tokenCap: 100_000,
      includeMessages: true,
      maxDepth: 0,
    });
    assert.equal(shallow.items.length, 0);
    const deep = await lcm.expand({ reach, summaryIds: [top], tokenCap: 100_000, includeMessages: true });
    assert.ok(deep.items.some((item) => item.kind === "message" && item.text.includes("pier nine")));
  });

  it("finds an answer that shares no word with its question, within few tokens", async () => {
    const { lcm, top } = await ground();
    const query = "Which ferry do we take to the island?";
    const { items, tokens } = await lcm.expand({
      reach,
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

  it("cuts a message that does not fit to the passage about the query", async () => {
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
      reach,
      summaryIds: [summary],
      query: "vault dusk",
      tokenCap: 300,
      includeMessages: true,
    });
    assert.ok(tokens <= 300);
    const [item] = items;
    assert.ok(item?.kind === "message" && !item.isWhole && item.text.includes("vault opens at dusk"));
  });

  it("leaves out irrelevant items, and counts them", async () => {
    const { lcm, top } = await ground();
    const request = { reach, summaryIds: [top], tokenCap: 100_000, includeMessages: true, maxDepth: 5 };
    const all = await lcm.expand(request);
    const some = await lcm.expand({ ...request, query: "ferry island" });
    assert.ok(some.items.some(({ text }) => text.includes("pier nine")));
    assert.ok(some.items.length < all.items.length / 4, `${some.items.length} of ${all.items.length}`);
    assert.equal(some.items.length + some.leftOut.items, all.items.length);
    const nothing = await lcm.expand({ ...request, query: "zeppelin" });
    assert.deepEqual(nothing.items, all.items);
  });

  it("prefers part of a relevant item over small irrelevant ones", async () => {
    const { lcm } = await ground();
    const { id } = await lcm.store.open({ sessionId: "small" });
    const host = createHost("v");
    for (const said of [
      "continue",
      `${"nothing of note. ".repeat(90)}the vault opens at dusk.`,
      "/",
      "go on",
      "the vault",
    ])
      host.says(user(said));
    await lcm.store.append(id, host.entries.map(toAppendable));
    const text = { text: "long", tokens: 1, level: "normal", model: null, previousContext: null, fileIds: [] } as const;
    const folded = await lcm.store.fold(id, await lcm.store.context(id), text);
    const summary = folded.kind === "written" ? folded.summary : assert.fail("folded");
    for (const tokenCap of [100, 5_000]) {
      const asked = { reach, summaryIds: [summary], query: "vault dusk", tokenCap, includeMessages: true };
      const { items } = await lcm.expand(asked);
      assert.ok(items.every(({ text: shown }) => shown.includes("vault")) && items.length > 0, JSON.stringify(items));
      assert.ok(items.some(({ text: shown }) => shown.includes("opens at dusk")));
    }
  });

  it("returns part of a summary if not even the first fits", async () => {
    const { lcm, top } = await ground();
    const { items, tokens } = await lcm.expand({ reach, summaryIds: [top], tokenCap: 20 });
    assert.ok(items.length === 1 && tokens <= 20 && items[0]?.isWhole === false);
  });

  it("prefers summaries relevant to the query", async () => {
    const { lcm, top } = await ground();
    const all = await lcm.expand({ reach, summaryIds: [top], tokenCap: 100_000 });
    const last = all.items.at(-1) ?? assert.fail("there are several");
    const days = [...last.text.matchAll(/\bday (\d+)/g)].map(([, day = ""]) => day);
    const isNowhereElse = (day: string): boolean =>
      all.items.every((item) => item === last || !new RegExp(`\\b${day}\\b`).test(item.text));
    const day = days.find(isNowhereElse) ?? assert.fail("a day that only the last one tells of");
    const some = await lcm.expand({ reach, summaryIds: [top], query: `what was on day ${day}`, tokenCap: 150 });
    assert.equal(some.items.find(({ rank }) => rank === 0)?.id, last.id);
  });

  it("finds an answer below it even if the same words are common elsewhere, indexed or not", async () => {
    const { lcm, id, top } = await ground();
    const host = createHost("later");
    for (let turn = 0; turn < 300; turn++) host.says(user(`Which ferry goes to the island on day ${turn}?`));
    await lcm.ingest(id, host.entries.map(toIncoming));
    const asked = { summaryIds: [top], reach, query: "ferry to the island", maxDepth: 3, includeMessages: true };
    const first = await lcm.expand({ ...asked, tokenCap: 200 });
    assert.ok(first.items.some(({ text }) => text.startsWith("Which ferry do we take")));
    assert.ok(first.items.every(({ text }) => !text.includes("Which ferry goes")));
    while ((await lcm.store.index(1_000)) > 0);
    assert.deepEqual(
      (await lcm.expand({ ...asked, tokenCap: 200 })).items.map(({ id: each }) => each),
      first.items.map(({ id: each }) => each),
    );
  });

  it("reports which summaries it expanded, and how many messages below were not requested", async () => {
    const { lcm, id, top } = await ground();
    const { items, expanded, messagesBelow } = await lcm.expand({ reach, summaryIds: [top], tokenCap: 100_000 });
    assert.deepEqual(new Set(expanded), new Set([top, ...items.map((item) => item.id)]));
    const deep = await lcm.expand({ reach, summaryIds: [top], tokenCap: 100_000, includeMessages: true });
    const messages = deep.items.flatMap((item) => (item.kind === "message" ? [item] : []));
    assert.equal(deep.messagesBelow, 0);
    assert.equal(messages.length, messagesBelow);
    assert.ok(messages.every(({ conversation, seq }, at) => conversation === id && seq === at + 1));
  });

  it("follows a carried summary to its origin, within the family and the grant", async () => {
    const { lcm, id, top, path } = await ground("key");
    const segment = await lcm.store.openSegment({ sessionId: "s", sessionKey: "key" });
    const host = createHost("c");
    host.says(user("Where were we?"));
    await lcm.store.append(segment.id, host.entries.map(toAppendable));
    const text = {
      text: "carried",
      tokens: 2,
      level: "normal",
      model: null,
      previousContext: null,
      fileIds: [],
    } as const;
    const folded = await lcm.store.fold(segment.id, await lcm.store.context(segment.id), text);
    const summary = folded.kind === "written" ? folded.summary : assert.fail("folded");
    const database = new DatabaseSync(path);
    database.prepare("UPDATE summaries SET carried_from = ? WHERE summary_id = ?").run(top, summary);
    database.close();
    const request = { summaryIds: [summary], tokenCap: 100_000 };
    const own = { kind: "conversation", conversations: [segment.id] } as const;
    const { items } = await lcm.expand({ ...request, reach: own });
    assert.ok(items.length >= 3 && items.every(({ conversation }) => conversation === id));
    const granted = await lcm.expand({ ...request, reach: { kind: "grant", conversations: [segment.id] } });
    assert.deepEqual(granted.items, []);
  });

  it("guarantee 25: reports a foreign summary as not existing", async () => {
    const { lcm, id, top } = await ground();
    const other = await lcm.store.open({ sessionId: "other" });
    const elsewhere = { kind: "family", conversations: [other.id] } as const;
    const error = { code: "not_found", message: `there is no summary ${top}` };
    await assert.rejects(lcm.expand({ reach: elsewhere, summaryIds: [top], tokenCap: 1_000 }), error);
    await lcm.store.setHidden(id, true);
    await assert.rejects(lcm.expand({ reach, summaryIds: [top], tokenCap: 1_000 }), error);
  });

  it("rejects an invalid token cap or depth", async () => {
    const { lcm, top } = await ground();
    for (const tokenCap of [0, -1, 1.5, Number.NaN])
      await assert.rejects(lcm.expand({ reach, summaryIds: [top], tokenCap }), { code: "invalid" });
    await assert.rejects(lcm.expand({ reach, summaryIds: [top], tokenCap: 1, maxDepth: -1 }), { code: "invalid" });
  });

  it("rejects a summary that does not exist", async () => {
    const { lcm } = await ground();
    await assert.rejects(lcm.expand({ reach, summaryIds: ["sum_0000000000000000"], tokenCap: 10 }), {
      code: "not_found",
    });
  });
});
