/** A store for tests of large content. */

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { makeScratch } from "./scratch.ts";
import { messageFromStore } from "../../src/core/messages/codec.ts";
import type { HostMessage } from "../../src/core/messages/codec.ts";
import { ingest } from "../../src/core/ingest/ingest.ts";
import { findLarge, moveOut, restoreMessage } from "../../src/core/ingest/large-content.ts";
import type { MoveOptions } from "../../src/core/ingest/large-content.ts";
import type { Conversation, Message, NewMessage } from "../../src/core/model/types.ts";
import type { Appended, Store } from "../../src/core/model/store.ts";
import type { Json } from "../../src/core/base/json.ts";
import { isObject } from "../../src/core/base/json.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

export const thresholdTokens = 80;
export const words = (count: number, word = "lorem"): string => Array.from({ length: count }, () => word).join(" ");
/** Well over the threshold, and different for every name. */
export const large = (name: string): string => `${name}: ${words(60)}\n${words(60, "ipsum")}`;
export const picture = (seed: number, bytes = 3_072): string =>
  Buffer.alloc(bytes, `picture ${seed}`).toString("base64");

export const toItem = (message: HostMessage, index: number) =>
  ({ kind: "message", message, key: `k${index}`, at: new Date(index * 1_000).toISOString() as Timestamp }) as const;

/** Moves and encodes, and stores nothing but files. */
export async function moved(options: MoveOptions, raw: HostMessage, index = 0): Promise<NewMessage> {
  const left = await moveOut(toItem(raw, index), findLarge(raw, thresholdTokens), options);
  return left.kind === "message" ? left.message : assert.fail();
}

export interface Ground {
  readonly store: Store;
  readonly filesDir: string;
  readonly talk: Conversation;
  /** Stores the messages, and reads them back. */
  readonly send: (...raws: readonly HostMessage[]) => Promise<readonly Message[]>;
  readonly sendTo: (talk: Conversation, ...raws: readonly HostMessage[]) => Promise<Appended>;
}

export async function onStore(
  test: (ground: Ground) => Promise<void>,
  largeFileTokenThreshold = thresholdTokens,
): Promise<void> {
  const folder = makeScratch("large-files");
  const store = await openSqlite({ path: join(folder, "lcm.db") });
  try {
    const talk = await store.open({ sessionId: "talk" });
    const deps = { store, settings: { largeFileTokenThreshold } };
    const sendTo: Ground["sendTo"] = async ({ id }, ...raws) => await ingest(deps, id, raws.map(toItem));
    await test({
      store,
      filesDir: join(folder, "lcm-files"),
      talk,
      sendTo,
      async send(...raws) {
        await sendTo(talk, ...raws);
        return await store.messages({ conversation: talk.id });
      },
    });
  } finally {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Stores one message, and shows it as it stands there. It is checked that it reads back as it came. */
export async function stored(ground: Ground, raw: HostMessage): Promise<{ message: Message; shown: HostMessage }> {
  const [message] = await ground.send(raw);
  assert.ok(message !== undefined);
  assert.deepEqual(await restoreMessage(ground.store, message), raw);
  return { message, shown: messageFromStore(message) };
}

/** The value at a path of a message. */
export function at(raw: Json, ...path: readonly (string | number)[]): Json | undefined {
  return path.reduce<Json | undefined>(
    (value, step) => (Array.isArray(value) ? value[Number(step)] : isObject(value) ? value[step] : undefined),
    raw,
  );
}

export function textAt(raw: Json, ...path: readonly (string | number)[]): string {
  const text = at(raw, ...path);
  return typeof text === "string" ? text : assert.fail(`there is no text at ${path.join(".")}`);
}

export const reference = /^\[File file_[0-9a-f]{16} · [^\n]*\. Moved out of this message; lcm_describe shows it\.\]/;
