/** A conversation whose prompts were recorded: twenty turns about a pier, an allergy in the second, folded on the way. */

import { createLcm, type Lcm } from "../../src/core/lcm.ts";
import type { HostMessage } from "../../src/core/messages/codec.ts";
import { msToTimestamp, timestampToMs, type Timestamp } from "../../src/core/base/time.ts";
import { resolveSettings } from "../../src/core/model/settings.ts";
import type { ConversationId, SummaryId } from "../../src/core/model/types.ts";
import { summary } from "../store-contract/ground.ts";
import { openNew } from "./new-database.ts";

export interface RecordedTalk {
  readonly conversation: ConversationId;
  /** After turns 8 and 14 the oldest messages were folded into these. */
  readonly folds: readonly SummaryId[];
}

/** Summaries are shown as they are, and standing instructions have room. */
export const talkSettings = resolveSettings({ env: {}, config: { contextTarget: 0, pinsShare: 0.2 } }).values;

const start = timestampToMs("2026-03-01T08:00:00.000Z" as Timestamp);

/** Turn n is message 2n − 1 of the user, prompt n, and message 2n, its answer. */
export async function recordTalk(lcm: Lcm, minutes: { now: number }): Promise<RecordedTalk> {
  const { id } = await lcm.store.open({ sessionId: "pier", sessionKey: "agent:main:pier", agentId: "main" });
  const folds: SummaryId[] = [];
  const says = async (key: string, message: HostMessage): Promise<void> => {
    await lcm.ingest(id, [{ kind: "message", key, at: lcm.clock.now(), message }]);
  };
  for (let turn = 1; turn <= 20; turn++) {
    minutes.now = turn;
    const words =
      turn === 2 ? "I have a peanut allergy, by the way." : `How deep is pile ${turn}, and who measured it?`;
    await says(`u${turn}`, { role: "user", content: words });
    const assembly = await lcm.assemble(id, { budget: 2_000 });
    const number = await lcm.recordPrompt(assembly, { model: "scripted/one" });
    if (number !== null)
      await lcm.endPrompt(
        { conversation: id, number },
        { outcome: "answered", counted: assembly.report.tokens + 100, cached: 50, turn: `turn-${turn}` },
      );
    await says(`a${turn}`, {
      role: "assistant",
      content: [{ type: "text", text: `Pile ${turn}: ${turn + 4} metres.` }],
    });
    if (turn !== 8 && turn !== 14) continue;
    const raw = (await lcm.store.context(id)).filter((item) => item.kind === "message");
    const folded = await lcm.store.fold(id, raw.slice(0, 8), summary(`Piles before turn ${turn}.`, { tokens: 8 }));
    if (folded.kind === "written") folds.push(folded.summary);
  }
  return { conversation: id, folds };
}

/** The same in a database of its own, with the same ids and times whenever it is made. */
export async function makeRecordedTalk(where: string): Promise<RecordedTalk> {
  const minutes = { now: 0 };
  let ids = 0;
  const hex16 = (): string => (++ids).toString(16).padStart(16, "0");
  const store = await openNew(where, { hex16 });
  const lcm = createLcm({
    store,
    clock: { now: () => msToTimestamp(start + minutes.now * 60_000) },
    settings: talkSettings,
  });
  try {
    return await recordTalk(lcm, minutes);
  } finally {
    await lcm.close();
  }
}
