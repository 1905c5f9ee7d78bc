import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { makeScratch } from "../../test/support/scratch.ts";
import { parseTimestamp } from "../core/base/time.ts";
import { createLcm } from "../core/lcm.ts";
import { resolveSettings } from "../core/model/settings.ts";
import { openSqlite, systemNow } from "../store/sqlite/store.ts";
import { describeTool } from "./describe.ts";
import { grepTool } from "./grep.ts";

const folder = makeScratch("relative-times");
after(() => rmSync(folder, { recursive: true, force: true }));

const said: readonly (readonly [role: string, content: string])[] = [
  ["user", "The landlord signed the contract yesterday, at last."],
  ["assistant", "Congratulations to the new shop."],
  ["toolResult", "abc123 3 days ago  fix the contract"],
  ...Array.from({ length: 30 }, (_, at): [string, string] => [
    "user",
    `The shelf ${"abcdefghijklmnopqrstuvwxyzäöüß".charAt(at)} is made of oak and pine, and stands at the wall of its room.`,
  ]),
];

describe("a relative time in a message", () => {
  it("is resolved in results, and found by its date once the message is folded", async () => {
    const store = await openSqlite({ path: join(folder, "lcm.db"), housekeeping: false });
    const { values } = resolveSettings({ env: {}, config: { freshTailCount: 2 } });
    const lcm = createLcm({ store, clock: { now: systemNow }, settings: values });
    const { id } = await store.open({ sessionId: "s" });
    const at = parseTimestamp("2026-11-18T09:00:00Z") ?? assert.fail();
    await lcm.ingest(
      id,
      said.map(([role, content], key) => ({ kind: "message", key: `k${key}`, at, message: { role, content } })),
    );
    const context = { lcm, reader: { conversation: id, policy: "own" } } as const;
    const signed = /msg_1-1 user 2026-11-18 09:00 \(yesterday = 2026-11-17\)\n> The landlord/;
    assert.match((await grepTool.run({ pattern: "landlord" }, context)).text, signed);
    assert.match((await describeTool.run({ id: "msg_1-1..msg_1-3" }, context)).text, signed);
    assert.match((await describeTool.run({ id: "msg_1-1" }, context)).text, /\(yesterday = 2026-11-17\)/);
    assert.doesNotMatch((await describeTool.run({ id: "msg_1-3" }, context)).text, /days ago =/);
    const byDate = async () => (await grepTool.run({ pattern: "17 November 2026", scope: "messages" }, context)).text;
    assert.match(await byDate(), /^No matches/);
    await lcm.compact({ conversation: id, mode: "sweep", force: true });
    assert.match(await byDate(), signed);
    assert.doesNotMatch(await byDate(), /November/, "what was not said is not shown");
    await lcm.close();
  });
});
