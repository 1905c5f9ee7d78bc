/** Conversations to compact, for tests. */

import { join } from "node:path";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { checkLossless } from "./lossless.ts";
import { makeScratch } from "./scratch.ts";
import { createHost, toIncoming, turnWithTool } from "./scripted-host.ts";
import type { ScriptedHost } from "./scripted-host.ts";
import { createScriptedModel } from "./scripted-model.ts";
import type { Behaviour } from "./scripted-model.ts";
import { createLcm } from "../../src/core/lcm.ts";
import type { Lcm, LcmDeps } from "../../src/core/lcm.ts";
import type { ConversationId } from "../../src/core/model/types.ts";
import { resolveSettings } from "../../src/core/model/settings.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

export const folder = makeScratch("compact");

let databases = 0;
export const newPath = (): string => join(folder, `${++databases}.db`);
let clockMs = Date.UTC(2026, 10, 15);
export const clock = { now: (): Timestamp => new Date((clockMs += 5)).toISOString() as Timestamp };

/** Small limits, so that a few hundred messages are a long conversation. */
export const small = {
  freshTailCount: 8,
  leafChunkTokens: 600,
  leafTargetTokens: 80,
  condensedTargetTokens: 120,
  leafMinFanout: 4,
  condensedMinFanout: 3,
  summaryConcurrency: 3,
};

interface Ground {
  readonly lcm: Lcm;
  readonly host: ScriptedHost;
  readonly id: ConversationId;
  /** Plays and stores this many turns. */
  readonly live: (turns: number) => Promise<void>;
  readonly check: () => Promise<void>;
}

export async function ground(
  given: Partial<LcmDeps> & { readonly config?: Readonly<Record<string, unknown>> } = {},
): Promise<Ground> {
  const store = await openSqlite({
    path: newPath(),
    now: () => clock.now(),
    housekeeping: false,
  });
  const { config = {}, ...deps } = given;
  const settings = resolveSettings({ env: {}, config: { ...small, ...config } }).values;
  const lcm = createLcm({ store, clock, settings, ...deps });
  const { id } = await store.open({ sessionId: "s", sessionKey: "agent:main:s" });
  const host = createHost("h");
  let delivered = 0;
  let turn = 0;
  return {
    lcm,
    host,
    id,
    async live(turns) {
      for (let spoken = 0; spoken < turns; spoken++) {
        turn += 1;
        const answer = `entry ${turn} says that the ${words[turn % words.length]} of day ${turn} costs ${turn * 7} and is kept by Noor. `;
        for (const raw of turnWithTool(`call_${turn}`, `What about day ${turn}?`, answer.repeat(2))) host.says(raw);
      }
      await lcm.ingest(id, host.entries.slice(delivered).map(toIncoming));
      delivered = host.entries.length;
    },
    async check() {
      await checkLossless(store, [{ conversation: id, entries: host.entries }], { expected: ["summary_below_normal"] });
    },
  };
}

export const words = ["harbour", "lantern", "ledger", "orchard", "quarry", "saddle", "turbine"];
export const model = (behaviour: Behaviour | (() => Behaviour), delayMs = 0): ReturnType<typeof createScriptedModel> =>
  createScriptedModel({ behaviour: typeof behaviour === "string" ? () => behaviour : behaviour, delayMs });
