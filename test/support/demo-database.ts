/** Builds the database of `lcm demo`, byte-identical each time, for pages and screens that show it. */

import { demoModel, demoSession, largeBudget, readDemoTranscript, smallBudget } from "../../src/cli/demo/five-weeks.ts";
import { createLcm } from "../../src/core/lcm.ts";
import { resolveSettings } from "../../src/core/model/settings.ts";
import { msToTimestamp, timestampToMs } from "../../src/core/base/time.ts";
import type { Timestamp } from "../../src/core/base/time.ts";
import { openNew } from "./new-database.ts";

/** Builds it as `lcm demo` does, at a path or URL where nothing exists yet. Returns the time just after its last message. */
export async function makeDemoDatabase(where: string): Promise<Timestamp> {
  let [ids, seconds] = [0, 0];
  const transcript = readDemoTranscript();
  const last = timestampToMs(String(transcript.at(-1)?.["timestamp"]) as Timestamp);
  const now = (): Timestamp => msToTimestamp(last + 1_000 * ++seconds);
  const hex16 = (): string => Math.imul(++ids, 0x9e3779b1).toString(16).replace("-", "").padStart(16, "5b1c07e94d");
  // One pass at a time: several would take their ids in the order in which they happen to end.
  const { values: settings } = resolveSettings({ env: {}, config: { summaryConcurrency: 1 } });
  const store = await openNew(where, { now, hex16 });
  const lcm = createLcm({ store, clock: { now }, settings });
  try {
    const lines = async function* () {
      for (const [index, value] of transcript.entries()) yield { position: index + 1, value };
    };
    await lcm.import(lines(), { fallbackSessionId: demoSession });
    const { id } = await lcm.find(demoSession);
    await lcm.recordPrompt(await lcm.assemble(id, { budget: largeBudget }), demoModel);
    await lcm.compact({ conversation: id, mode: "sweep" });
    await lcm.recordPrompt(await lcm.assemble(id, { budget: smallBudget }), demoModel);
    while ((await lcm.store.index(1_000)) > 0);
    return msToTimestamp(last + 4 * 60_000);
  } finally {
    await lcm.close();
  }
}
