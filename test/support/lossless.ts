/**
 * Checks the one invariant, losslessness, against the host's own list of messages. A store that loses, doubles or
 * alters a message still agrees with itself; only the host's record of what it sent reveals it.
 */

import assert from "node:assert/strict";
import { flatten } from "../../src/core/model/summary-graph.ts";
import { inspect } from "../../src/core/maintenance/inspect.ts";
import type { FindingCode } from "../../src/core/maintenance/inspect.ts";
import { restoreMessage } from "../../src/core/ingest/large-content.ts";
import type { ConversationId, Message } from "../../src/core/model/types.ts";
import type { Store } from "../../src/core/model/store.ts";
import { activeBranch } from "./scripted-host.ts";
import type { HostEntry, SentMessage } from "./scripted-host.ts";
import type { JsonObject } from "../../src/core/base/json.ts";

export interface HostList {
  readonly conversation: ConversationId;
  /** Everything the host has sent, in order, on all branches. */
  readonly entries: readonly HostEntry[];
  /** Messages copied in from another conversation: they come first in the context, under their own keys. */
  readonly inherited?: readonly JsonObject[];
}

export interface LosslessOptions {
  /** Inspects the whole database, not only the listed conversations. */
  readonly wholeFile?: boolean;
  /** Findings to expect, because the test caused them. */
  readonly expected?: readonly FindingCode[];
}

/**
 * Asserts that flattening the context yields every message of the active branch once, in order, deep-equal to what the
 * host sent; that all branches are stored once; and that `inspect` has no findings.
 */
export async function checkLossless(
  store: Store,
  lists: readonly HostList[],
  { wholeFile = true, expected = [] }: LosslessOptions = {},
): Promise<void> {
  for (const list of lists) {
    await checkContext(store, list, await flattened(store, list.conversation));
    await checkStored(store, list, await store.messages({ conversation: list.conversation }));
    await checkOtherLines(store, list);
  }
  await checkSound(store, wholeFile ? [null] : lists.map(({ conversation }) => conversation), expected);
}

/** The messages that the context represents, oldest first. */
export async function flattened(store: Store, conversation: ConversationId): Promise<readonly Message[]> {
  const context = await store.context(conversation);
  const roots = context.flatMap((item) => (item.kind === "summary" ? [item.id] : []));
  const sources = await store.sources(await store.closure(roots));
  const { messages, cyclic } = flatten(context, (id) => sources.get(id));
  assert.deepEqual(cyclic, [], `conversation ${conversation}: a summary is among its own sources`);
  const read = await store.messages({ ids: messages });
  assert.equal(
    read.length,
    messages.length,
    `conversation ${conversation}: the context reaches messages that do not exist`,
  );
  return read;
}

async function checkContext(
  store: Store,
  { conversation, entries, inherited = [] }: HostList,
  reached: readonly Message[],
): Promise<void> {
  const where = `conversation ${conversation}`;
  // What a host itself writes in the assistant's name is stored as a note.
  const active = activeBranch(entries).filter(({ raw }) => raw["provider"] !== "openclaw");
  const own = reached.slice(inherited.length);
  const ids = new Set(reached.map(({ id }) => id));
  assert.equal(ids.size, reached.length, `${where}: the context reaches a message twice`);
  assert.deepEqual(
    own.map(({ key }) => key),
    active.map(({ key }) => key),
    `${where}: the context does not represent the messages the host sent, in order`,
  );
  for (const [place, message] of reached.slice(0, inherited.length).entries()) {
    assert.deepEqual(
      await restoreMessage(store, message),
      inherited[place],
      `${where}: the copy at position ${place} differs from its original`,
    );
  }
}

async function checkStored(
  store: Store,
  { conversation, entries, inherited = [] }: HostList,
  stored: readonly Message[],
): Promise<void> {
  const sent = entries.filter((entry) => entry.kind === "message");
  const byKey = new Map<string, SentMessage>(sent.map((entry) => [entry.key, entry]));
  const own = stored.filter(({ key }) => !key.startsWith("copy:"));
  assert.deepEqual(
    own.map(({ key }) => key),
    sent.map(({ key }) => key),
    `conversation ${conversation}: the stored messages are not those the host sent, each once`,
  );
  assert.ok(stored.length - own.length >= inherited.length, `conversation ${conversation}: copies are missing`);
  for (const message of own) {
    const original = byKey.get(message.key);
    assert.deepEqual(
      await restoreMessage(store, message),
      original?.raw,
      `conversation ${conversation}: message ${message.key} does not read back`,
    );
    assert.equal(message.at, original?.at, `conversation ${conversation}: the time of ${message.key} differs`);
  }
}

async function checkOtherLines(store: Store, { conversation, entries }: HostList): Promise<void> {
  const stored = await store.entries(conversation, 0, Number.MAX_SAFE_INTEGER);
  assert.deepEqual(
    stored.map(({ key, type, raw }) => ({ key, type, raw: JSON.parse(raw) as unknown })),
    entries.filter((entry) => entry.kind === "entry").map(({ key, type, raw }) => ({ key, type, raw })),
    `conversation ${conversation}: the stored lines are not those of the transcript, each once`,
  );
}

/** Asserts that only informational findings exist, or those that the test caused. */
export async function checkSound(
  store: Store,
  conversations: readonly (ConversationId | null)[] = [null],
  expected: readonly FindingCode[] = [],
): Promise<void> {
  for (const conversation of conversations) {
    const found = await inspect(store, conversation);
    const bad = found.filter(({ severity, code }) => severity !== "info" && !expected.includes(code));
    assert.deepEqual(
      bad.map(({ code, message }) => `${code}: ${message}`),
      [],
      "inspect has no findings",
    );
  }
}
