/** How the scripted model behind OpenCode answers, what it saw, and how our store compares with the host's database. */

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { createLcm } from "../../src/core/lcm.ts";
import { estimateTokens } from "../../src/core/base/tokens.ts";
import type { Conversation } from "../../src/core/model/types.ts";
import { openSqlite, systemNow } from "../../src/store/sqlite/store.ts";
import { isCompaction } from "../../src/hosts/opencode/splice-prompt.ts";
import { flattened } from "../support/lossless.ts";
import type { Asked, Script } from "./model-server.ts";
import { databaseRows, type Home } from "./opencode-server.ts";

type Json = ReturnType<typeof JSON.parse>;

/** A line `CALL tool {json}` in the prompt makes it call that tool; `SAY n` makes it say n words. */
export const obey: Script = ({ prompt, results, tools }) => {
  const [, name = "", args = "{}"] = /^CALL (\S+) (\{.*\})$/m.exec(prompt) ?? [];
  if (name !== "" && results.length === 0 && tools.includes(name))
    return { kind: "answer", text: `I call ${name}.`, calls: [{ name, args: JSON.parse(args) }] };
  const words = Number(/SAY (\d+)/.exec(prompt)?.[1] ?? 0);
  if (words > 0) return `${"word ".repeat(words)}and that is all about ${prompt.slice(0, 40)}`;
  return results.length > 0
    ? `The tool said: ${results.join("\n").slice(0, 2_000)}`
    : `You said: ${prompt.slice(0, 200)}`;
};

/** The requests of turns: those with tools. Titles and compactions have none. */
export const turnsOf = (asked: readonly Asked[]): readonly Asked[] => asked.filter(({ tools }) => tools.length > 0);

export const tokensOfRequest = ({ body }: Asked): { readonly ours: number; readonly bytes: number } => {
  const text = JSON.stringify({ messages: body.messages, tools: body.tools });
  return { ours: estimateTokens(text), bytes: Math.ceil(Buffer.byteLength(text) / 4) };
};

export interface Stored {
  readonly conversation: Conversation;
  /** The rows of the session as they came, whichever branch they are on. */
  readonly rows: readonly Json[];
  /** The keys of the messages that the context represents. */
  readonly shown: readonly string[];
}

/** What our database has of a session, which must be sound. */
export async function readStored({ database }: Home, session: string): Promise<Stored> {
  const store = await openSqlite({ path: database, readOnly: true });
  const lcm = createLcm({ store, clock: { now: systemNow } });
  try {
    const [conversation, ...others] = await store.conversations({ sessionKey: `opencode:${session}` });
    assert.ok(conversation, `nothing is stored of ${session}`);
    assert.deepEqual(others, []);
    const findings = await lcm.inspect(conversation.id);
    assert.deepEqual(
      findings.filter(({ severity }) => severity !== "info"),
      [],
    );
    const rows = (await Array.fromAsync(lcm.export(conversation.id))).map((line) => JSON.parse(line));
    const shown = (await flattened(store, conversation.id)).map(({ key }) => key);
    return { conversation, rows: rows.filter(({ parts }) => parts !== undefined), shown };
  } finally {
    await lcm.close();
  }
}

/**
 * Asserts that every message of the host's database is stored once and reads back equal, and that the context represents
 * what was said, in order. `reverted` are ids that the host has deleted.
 */
export async function assertStored(home: Home, session: string, reverted: readonly string[] = []): Promise<Stored> {
  const expected = databaseRows(home, session);
  await until(async () => (await readStored(home, session)).rows.length >= expected.length + reverted.length);
  const stored = await readStored(home, session);
  const byId = new Map(stored.rows.map((row) => [row.info.id, row]));
  assert.equal(byId.size, stored.rows.length, "a message is stored twice");
  for (const row of expected) assert.deepEqual(withoutAccounts(byId.get(row.info.id)), withoutAccounts(row));
  const ids = expected.map(({ info }) => info.id);
  assert.deepEqual(new Set(byId.keys()), new Set([...ids, ...reverted]));
  const said = expected.filter(({ info, parts }) => !isCompaction({ info, parts }) && !isSynthetic(parts));
  assert.deepEqual(
    stored.shown,
    said.map(({ info }) => info.id),
  );
  return stored;
}

const isSynthetic = (parts: readonly Json[]): boolean =>
  parts.length > 0 && parts.every(({ synthetic }) => synthetic === true);

/** The host adds to a user's message, after it is answered, which files the answer has changed. */
function withoutAccounts({ info, parts }: Json): Json {
  const { summary, ...rest } = info;
  return { info: summary === true ? info : rest, parts };
}

/** Waits until it is so; the host does not wait for what we do after a turn. */
export async function until(isSo: () => Promise<boolean> | boolean, limitMs = 30_000): Promise<void> {
  for (const end = Date.now() + limitMs; ;) {
    if (await Promise.resolve(isSo()).catch(() => false)) return;
    assert.ok(Date.now() < end, `not within ${limitMs} ms: ${isSo.toString()}`);
    await sleep(100);
  }
}
