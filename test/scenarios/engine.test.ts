/** Tests hard days: a smaller window in mid-session, a full disk, a huge session met for the first time. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { createLcm } from "../../src/core/lcm.ts";
import type { SourceLine } from "../../src/core/ingest/import-transcript.ts";
import { resolveSettings } from "../../src/core/model/settings.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { checkLossless, checkSound } from "../support/lossless.ts";
import { homeAt, withoutShell } from "../support/platform.ts";
import { makeScratch } from "../support/scratch.ts";
import { createHost, toIncoming, turnWithTool } from "../support/scripted-host.ts";
import { createScriptedModel } from "../support/scripted-model.ts";
import { checkValid } from "../support/valid-prompt.ts";
import type { Told } from "./crowded-disk.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

const bin = fileURLToPath(new URL("../../bin/lcm.js", import.meta.url));
const scratch = makeScratch("engine");
after(() => rmSync(scratch, { recursive: true, force: true }));
const clock = { now: (): Timestamp => new Date().toISOString() as Timestamp };
const expected = ["summary_below_normal"] as const;

const statusOf = (path: string): string => {
  const run = spawnSync(process.execPath, [bin, "status", "--db", path], {
    encoding: "utf8",
    env: { PATH: process.env["PATH"], ...homeAt(scratch), OPENCLAW_STATE_DIR: scratch },
  });
  assert.equal(run.status, 0, run.stderr);
  return run.stdout;
};

const good = (): ReturnType<typeof createScriptedModel> => createScriptedModel({ behaviour: () => "good" });

describe("a model switched to a smaller window in mid-session", () => {
  it("gets a valid prompt within the new budget at once, and a compacted one after the next sweep", async () => {
    const path = join(scratch, "smaller.db");
    const store = await openSqlite({ path, housekeeping: false });
    const lcm = createLcm({ store, clock, model: good() });
    const { id } = await store.open({ sessionId: "smaller" });
    const host = createHost("h");
    for (let turn = 0; turn < 250; turn++)
      for (const raw of turnWithTool(`c${turn}`, `question ${turn}?`, `answer ${turn} of many words `.repeat(20)))
        host.says(raw);
    await lcm.ingest(id, host.entries.map(toIncoming));
    await store.setPromptBudget(id, 200_000);
    assert.equal((await lcm.due(id)).kind, "nothing");
    const wide = await lcm.assemble(id);
    assert.equal(wide.report.evicted.items, 0);

    await store.setPromptBudget(id, 16_000);
    const narrow = await lcm.assemble(id);
    checkValid(narrow.messages);
    assert.ok(narrow.report.tokens <= 16_000 && narrow.report.evicted.items > 0);
    assert.equal((await lcm.due(id)).kind, "sweep");
    assert.match(statusOf(path), /due +a sweep/);

    const report = await lcm.compact({ conversation: id, mode: "due" });
    assert.ok(report.compacted && report.tokensAfter < 12_000, report.message);
    assert.equal((await lcm.due(id)).kind, "nothing");
    const after = await lcm.assemble(id);
    checkValid(after.messages);
    assert.ok(after.report.tokens <= 16_000);
    assert.deepEqual([after.report.evicted.items, after.report.summaries.items > 0], [0, true]);
    await checkLossless(store, [{ conversation: id, entries: host.entries }], { expected });
    await store.close();
    assert.match(statusOf(path), /74,\d{3} → \d,\d{3} tokens in \d+ passes/);
  });
});

describe("a full disk", { skip: withoutShell }, () => {
  it("is reported, loses nothing acknowledged, and leaves a valid prompt", async () => {
    const path = join(scratch, "crowded.db");
    const script = fileURLToPath(new URL("./crowded-disk.ts", import.meta.url));
    // Half a megabyte per file. The signal that would end the process is ignored, as a full disk sends none.
    const limited = `trap '' XFSZ; ulimit -f 6000; exec "$0" "$@"`;
    const run = spawnSync("sh", ["-c", limited, process.execPath, script, path], { encoding: "utf8" });
    assert.equal(run.status, 0, run.stderr);
    const told = JSON.parse(run.stdout) as Told;
    assert.equal(told.code, "unavailable");
    assert.match(told.message, /the disk refused/);
    assert.ok(told.stored > 100);
    assert.equal(told.compacted, false);
    assert.match(told.compaction, /nothing was folded; stopped: the disk refused/);
    assert.ok(told.promptTokens <= 20_000 && told.promptMessages > 8);

    const store = await openSqlite({ path, housekeeping: false });
    const [conversation] = await store.conversations();
    assert.equal(conversation?.totals.messages, told.stored);
    await checkSound(store, [null], expected);
    const lcm = createLcm({ store, clock });
    const report = await lcm.compact({ conversation: conversation.id, mode: "sweep" });
    assert.ok(report.compacted, "with space again, compaction continues");
    await store.close();
    assert.match(statusOf(path), /crowded\.db/);
  });
});

describe("a session of 100,000 messages met for the first time", () => {
  it("is stored whole, gives a valid prompt before anything is summarised, and is folded from its newest part on", async () => {
    const path = join(scratch, "huge.db");
    const store = await openSqlite({ path, housekeeping: false });
    const settings = resolveSettings({ env: {}, config: { spendCeilingCalls: 12 } }).values;
    const lcm = createLcm({ store, clock, settings, model: good() });
    const messages = 100_000;
    const { conversation } = await lcm.import(transcript(messages), { fallbackSessionId: "huge" });
    const id = conversation?.id ?? assert.fail("something was stored");
    assert.equal(conversation?.totals.messages, messages);
    await store.setPromptBudget(id, 60_000);

    const first = await lcm.assemble(id);
    checkValid(first.messages);
    assert.ok(first.report.tokens <= 60_000 && first.report.evicted.items > 90_000);

    const report = await lcm.compact({ conversation: id, mode: "due" });
    assert.equal(report.outcome.kind === "waiting" && report.outcome.refusal, "ceiling", report.message);
    assert.equal(report.passes.length, 12);
    const second = await lcm.assemble(id);
    checkValid(second.messages);
    assert.ok(second.report.tokens <= 60_000);
    assert.ok(second.report.summaries.items > 0, "what was folded is in the prompt");
    assert.ok(second.report.evicted.items < first.report.evicted.items - 500, "and the prompt reaches further back");
    await checkSound(store, [id], expected);
    await store.close();
    assert.match(statusOf(path), /ceiling/);
  });

  async function* transcript(count: number): AsyncGenerator<SourceLine> {
    for (let position = 1; position <= count; position++) {
      const role = position % 2 === 1 ? "user" : "assistant";
      const text = `line ${position}: ${["the harbour", "a ledger", "lanterns", "the orchard"][position % 4]} again, as said before`;
      const timestamp = new Date(Date.UTC(2026, 0, 1) + position * 1_000).toISOString();
      yield { position, value: { type: "message", id: `e${position}`, timestamp, message: { role, content: text } } };
    }
  }
});
