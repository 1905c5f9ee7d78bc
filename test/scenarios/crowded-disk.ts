/**
 * Stores and compacts until its disk is full, then reports the error and whether a prompt can still be assembled. The
 * limit is a maximum file size, set by the test that starts this process.
 */

import { createLcm } from "../../src/core/lcm.ts";
import { LcmError } from "../../src/core/base/errors.ts";
import { resolveSettings } from "../../src/core/model/settings.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { createHost, toIncoming, turnWithTool } from "../support/scripted-host.ts";
import { checkValid } from "../support/valid-prompt.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

export interface Told {
  readonly stored: number;
  readonly code: string;
  readonly message: string;
  readonly compaction: string;
  readonly compacted: boolean;
  readonly promptTokens: number;
  readonly promptMessages: number;
}

const [path = ""] = process.argv.slice(2);
const store = await openSqlite({ path, housekeeping: false });
const clock = { now: (): Timestamp => new Date().toISOString() as Timestamp };
const settings = resolveSettings({ env: {}, config: { leafChunkTokens: 2_000, leafTargetTokens: 200 } }).values;
const lcm = createLcm({ store, clock, settings });
const { id } = await store.open({ sessionId: "crowded" });
const host = createHost("crowded");
let stored = 0;
let refusal: unknown = null;
for (let turn = 0; refusal === null && turn < 10_000; turn++) {
  const from = host.entries.length;
  for (const raw of turnWithTool(`c${turn}`, `question ${turn}?`, `answer ${turn} `.repeat(200))) host.says(raw);
  try {
    await lcm.ingest(id, host.entries.slice(from).map(toIncoming));
    stored = host.entries.length;
  } catch (error) {
    refusal = error;
  }
}
const compaction = await lcm.compact({ conversation: id, mode: "sweep" });
const { messages, report } = await lcm.assemble(id, { budget: 20_000 });
checkValid(messages);
const told: Told = {
  stored,
  code: refusal instanceof LcmError ? refusal.code : String(refusal),
  message: refusal instanceof Error ? refusal.message : "",
  compaction: compaction.message,
  compacted: compaction.compacted,
  promptTokens: report.tokens,
  promptMessages: messages.length,
};
process.stdout.write(JSON.stringify(told));
