/** What our store holds, held against what the host has written down: the oracle of every host test. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createLcm } from "../../src/core/lcm.ts";
import type { Lcm } from "../../src/core/lcm.ts";
import type { Conversation, Timestamp } from "../../src/core/model.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import { flattened } from "../../src/testing/lossless.ts";
import type { Gateway } from "./gateway.ts";

type Json = ReturnType<typeof JSON.parse>;

/** Our database beside the running gateway, to read. */
export async function withStore<T>(gateway: Gateway, use: (lcm: Lcm) => Promise<T>): Promise<T> {
  const store = await openSqlite({ path: join(gateway.state, "lcm.db"), readOnly: true });
  const lcm = createLcm({ store, clock: { now: () => new Date().toISOString() as Timestamp } });
  try {
    return await use(lcm);
  } finally {
    await lcm.close();
  }
}

export const hasStore = (gateway: Gateway): boolean => existsSync(join(gateway.state, "lcm.db"));

/** The segments of a session, oldest first. */
export async function segmentsOf(lcm: Lcm, sessionKey: string): Promise<readonly Conversation[]> {
  const segments = await lcm.store.conversations({ sessionKey, includeHidden: true });
  return segments.toSorted((a, b) => a.id - b.id);
}

/** By a person, who wants nothing of before; not one that the host makes by itself because a session is old. */
const isAskedFor = ({ type, reason, firstKeptEntryId }: Json): boolean =>
  type === "reset" && (reason === "new" || reason === "reset") && firstKeptEntryId === undefined;

/**
 * Every row of the host's transcript is stored once and reads back equal, each in the segment between the resets that
 * it stands between; each context stands for exactly the messages of its segment, in order; and nothing is unsound.
 * What the host notes down after a turn's last message is read with the next turn.
 */
export async function assertStored(gateway: Gateway, sessionKey: string): Promise<readonly Conversation[]> {
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
    assert.deepEqual(lines, read, `${sessionKey}: the store and the transcript differ`);
    for (const [at, { id }] of segments.entries()) {
      const shown = (await flattened(lcm.store, id)).map(({ key }) => key);
      const said = expected[at]?.filter(isSaid).map((event) => event.id);
      assert.deepEqual(shown, said, `${sessionKey}: the context of segment ${at + 1} stands for other messages`);
      const findings = await lcm.inspect(id);
      assert.deepEqual(
        findings.filter(({ severity }) => severity !== "info"),
        [],
      );
    }
    return segments;
  });
}

/** What the host says itself in the assistant's name is kept beside the context. */
const isSaid = ({ type, message }: Json): boolean =>
  type === "message" && !(message.provider === "openclaw" && message.role === "assistant");
