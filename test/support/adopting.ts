/** Databases of the older program, for tests of adopting them. */

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { Finding } from "../../src/core/maintenance/inspect.ts";
import { messageIdOf } from "../../src/core/model/types.ts";
import type { ConversationId, Message } from "../../src/core/model/types.ts";
import type { Store } from "../../src/core/model/store.ts";
import { copyFixture, tamper } from "./older-database.ts";
import type { FixtureVersion } from "./older-database.ts";
import { makeScratch } from "./scratch.ts";
import { adopt } from "../../src/store/adopt/adopt.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";

export const now = "2026-11-15T08:00:00.000Z";
const scratch = makeScratch("adopt");

let folders = 0;
/** Copies a fixture into a new folder and modifies it. */
export function older(version: FixtureVersion, change: (db: DatabaseSync) => void = () => undefined): string {
  const folder = join(scratch, String(++folders));
  mkdirSync(folder);
  return tamper(copyFixture(version, folder), change);
}

/** Adopts a file and examines the result. */
export async function adopted<T>(path: string, look: (store: Store) => Promise<T>): Promise<T> {
  assert.equal((await adopt(path, now)).kind, "adopted");
  const store = await openSqlite({ path, housekeeping: false });
  try {
    return await look(store);
  } finally {
    await store.close();
  }
}

export const first = 1 as ConversationId;
export const messageOf = async (store: Store, id: number): Promise<Message> =>
  (await store.messages({ ids: [messageIdOf(first, id)] }))[0]!;
export const problems = (findings: readonly Finding[]): readonly string[] =>
  findings.filter(({ severity }) => severity !== "info").map(({ code, subject }) => `${code} ${subject}`);
