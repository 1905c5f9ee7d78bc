/** Compares our store with the host's own record: the oracle of every host test. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { createLcm } from "../../src/core/lcm.ts";
import type { FindingCode } from "../../src/core/maintenance/inspect.ts";
import type { Lcm } from "../../src/core/lcm.ts";
import type { Conversation } from "../../src/core/model/types.ts";
import { openPostgres } from "../../src/store/postgres/store.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { flattened } from "../support/lossless.ts";
import type { Gateway } from "./gateway.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

type Json = ReturnType<typeof JSON.parse>;

/** Our database beside the running host, to read. */
export async function withStore<T>({ database }: Pick<Gateway, "database">, use: (lcm: Lcm) => Promise<T>): Promise<T> {
  const store = isOnServer(database)
    ? await openPostgres({ url: database, housekeeping: false, mustExist: true })
    : await openSqlite({ path: database, readOnly: true });
  const lcm = createLcm({ store, clock: { now: () => new Date().toISOString() as Timestamp } });
  try {
    return await use(lcm);
  } finally {
    await lcm.close();
  }
}

const isOnServer = (database: string): boolean => database.startsWith("postgres:");

export const hasStore = (gateway: Gateway): boolean => existsSync(gateway.database);

/** The segments of a session, oldest first. */
export async function segmentsOf(lcm: Lcm, sessionKey: string): Promise<readonly Conversation[]> {
  const segments = await lcm.store.conversations({ sessionKey, includeHidden: true });
  return segments.toSorted((a, b) => a.id - b.id);
}

/** A reset by a person, who wants nothing carried; not one that the host makes because a session is old. */
const isAskedFor = ({ type, reason, firstKeptEntryId }: Json): boolean =>
  type === "reset" && (reason === "new" || reason === "reset") && firstKeptEntryId === undefined;

/**
 * Asserts that every row of the host's transcript is stored once and reads back equal, in the segment between its
 * resets; that each context represents exactly the messages of its segment, in order; and that the database is sound.
 * What the host records after a turn's last message is read with the next turn. `brought` lists findings that the test
 * causes.
 */
export async function assertStored(
  gateway: Gateway,
  sessionKey: string,
  brought: readonly FindingCode[] = [],
): Promise<readonly Conversation[]> {
  const expected: Json[][] = [];
  for (const event of gateway.transcript(sessionKey)) {
    if (expected.length === 0 || event.type === "session" || isAskedFor(event)) expected.push([]);
    expected.at(-1)?.push(event);
  }
  return await withStore(gateway, async (lcm) => {
    const segments = await segmentsOf(lcm, sessionKey);
    const lines = await Promise.all(
      segments.map(async ({ id }) => (await Array.fromAsync(lcm.export(id))).map((line) => JSON.parse(line))),
    );
    const read = expected.map((rows, at) => {
      const isTranscriptsEnd = at + 1 === expected.length || expected[at + 1]?.[0].type === "session";
      const said = rows.findLastIndex(({ type }) => type === "message") + 1;
      return isTranscriptsEnd ? rows.slice(0, Math.max(said, lines[at]?.length ?? 0)) : rows;
    });
    assertSame(lines, read, `${sessionKey}: the store and the transcript differ`);
    const active = activeOf(expected.flat());
    for (const [at, { id }] of segments.entries()) {
      const shown = (await flattened(lcm.store, id)).map(({ key }) => key);
      const said = expected[at]?.filter((event) => isSaid(event) && active.has(event)).map((event) => event.id);
      assert.deepEqual(shown, said, `${sessionKey}: the context of segment ${at + 1} represents other messages`);
      const findings = await lcm.inspect(id);
      assert.deepEqual(
        findings.filter(({ severity, code }) => severity !== "info" && !brought.includes(code)),
        [],
      );
    }
    return segments;
  });
}

/** The rows that the newest one continues; what the host has rewound is stored outside the context. */
function activeOf(events: readonly Json[]): ReadonlySet<Json> {
  const active = new Set<Json>();
  for (let at = events.length - 1; at >= 0;) {
    active.add(events[at]);
    const parent = events.findLastIndex(({ id }, place) => place < at && id === events[at].parentId);
    at = parent >= 0 ? parent : at - 1;
  }
  return active;
}

/** Shows only the first row that differs: long sessions are too much to print. */
function assertSame(lines: readonly Json[][], expected: readonly Json[][], why: string): void {
  for (const [at, rows] of expected.entries()) {
    const row = rows.findIndex((each, place) => !isDeepStrictEqual(lines[at]?.[place], each));
    const where = `${why}, in segment ${at + 1} at row ${row + 1} of ${rows.length}`;
    if (row >= 0) assert.deepEqual(lines[at]?.[row], rows[row], where);
  }
  const lengths = (all: readonly Json[][]): readonly number[] => all.map(({ length }) => length);
  assert.deepEqual(lengths(lines), lengths(expected), why);
}

/** What the host itself writes in the assistant's name is stored outside the context. */
const isSaid = ({ type, message }: Json): boolean =>
  type === "message" && !(message.provider === "openclaw" && message.role === "assistant");
