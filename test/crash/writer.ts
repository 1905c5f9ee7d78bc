/**
 * Writes turns as a process that may be killed at any moment. It acknowledges a turn on its output only once it is
 * stored: what it acknowledged must survive.
 */

import { writeSync } from "node:fs";
import type { HostMessage } from "../../src/core/messages/codec.ts";
import type { Store } from "../../src/core/model/store.ts";
import { createLcm } from "../../src/core/lcm.ts";
import { resolveSettings } from "../../src/core/model/settings.ts";
import { isPostgresUrl } from "../../src/core/base/database-place.ts";
import { openPostgres } from "../../src/store/postgres/store.ts";
import { openSqliteWorker } from "../../src/store/sqlite/worker.ts";
import { openSqlite, systemNow } from "../../src/store/sqlite/store.ts";
import { untilAnswered } from "../support/until-answered.ts";
import { turnWithTool } from "../support/scripted-host.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

export interface Orders {
  /** Of a file, or the URL of a database. */
  readonly path: string;
  /** Where a server's large content is. */
  readonly filesDir?: string;
  readonly sessionId: string;
  /** Keys begin with it. */
  readonly name: string;
  readonly turns: number;
  readonly inThread: boolean;
}

export const messagesPerTurn = 4;
export const turnOf = (name: string, turn: number): readonly HostMessage[] =>
  turnWithTool(`call-${turn}`, `${name} asks ${turn}`, `the answer to ${turn}, ${"at length ".repeat(turn % 40)}`);
export const keyOf = (name: string, turn: number, place: number): string => `${name}/${turn}/${place}`;
export const acknowledgement = (turn: number): string => `stored ${turn}`;

/** Small limits: every kind of pass, and files moved out, within a few turns. */
const config = {
  freshTailCount: 8,
  leafChunkTokens: 600,
  leafTargetTokens: 80,
  condensedTargetTokens: 120,
  leafMinFanout: 3,
  condensedMinFanout: 2,
  incrementalMaxDepth: -1,
  largeFileTokenThreshold: 60,
};

const [, self, given] = process.argv;
if (given !== undefined && self !== undefined && import.meta.filename === self)
  await write(JSON.parse(given) as Orders);

async function openFor({ path, inThread, filesDir = "" }: Orders): Promise<Store> {
  if (isPostgresUrl(path)) return await openPostgres({ url: path, filesDir, connectionsMax: inThread ? 2 : 1 });
  return inThread ? await openSqliteWorker({ path }) : await openSqlite({ path });
}

async function write(orders: Orders): Promise<void> {
  const { sessionId, name, turns } = orders;
  const store = await openFor(orders);
  const settings = resolveSettings({ env: {}, config }).values;
  const lcm = createLcm({ store, clock: { now: systemNow }, settings });
  const { id } = await untilAnswered(async () => await store.open({ sessionId }));
  for (let turn = 0; turn < turns; turn++) {
    const at = "2026-02-17T07:37:00.000Z" as Timestamp;
    const items = turnOf(name, turn).map(
      (message, place) => ({ kind: "message", message, key: keyOf(name, turn, place), at }) as const,
    );
    await untilAnswered(async () => await lcm.ingest(id, items, { hostCursor: `${name} ${turn}` }));
    writeSync(1, `${acknowledgement(turn)}\n`);
    const mode = turn % 9 === 8 ? "sweep" : "due";
    if (turn % 3 === 2) await untilAnswered(async () => await lcm.compact({ conversation: id, mode, budget: 4_000 }));
    if (turn % 5 === 4) await untilAnswered(async () => await store.index(64));
  }
  await store.close();
}
