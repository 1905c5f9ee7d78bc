/**
 * Provides the scene of the undo tests: two conversations with summaries, and one call per change that returns its
 * number.
 */

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { dissolve as dissolveAsPlanned, planDissolve, readForDissolve } from "../../src/core/maintenance/dissolve.ts";
import { planUndo } from "../../src/core/maintenance/history.ts";
import type { FindingCode } from "../../src/core/maintenance/inspect.ts";
import type { Conversation, ConversationId, MessageId, SummaryId } from "../../src/core/model/types.ts";
import type { ForgetPlan, Obstacle, PartOf, Store } from "../../src/core/model/store.ts";
import { assertSameRows } from "../support/dump.ts";
import { dumpOfContent } from "./dump.ts";
import { checkSound } from "../support/lossless.ts";
import { makeScratch } from "../support/scratch.ts";
import { createHost } from "../support/scripted-host.ts";
import type { ScriptedHost } from "../support/scripted-host.ts";
import { findAll, ask, foldPlaces, itemOf, numbered, say, summary } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";

export interface Scene {
  readonly subject: StoreUnderTest;
  readonly store: Store;
  readonly path: string;
  /** m0 to m15; m0 to m11 under leaves of two, and two condensed ones over the first four of them. */
  readonly talk: Conversation;
  readonly host: ScriptedHost;
  readonly leaves: readonly SummaryId[];
  readonly condensed: readonly SummaryId[];
  /** Three messages of their own. */
  readonly other: Conversation;
  readonly guest: ScriptedHost;
}

const wordOf = (n: number): string => `m${n}`;

export const onScene =
  (subject: StoreUnderTest, test: (scene: Scene) => Promise<void>, expected: readonly FindingCode[] = []) =>
  async (): Promise<void> => {
    const folder = makeScratch("undo");
    const path = join(folder, "lcm.db");
    const store = await subject.open(path);
    try {
      const talk = await store.open({ sessionId: "talk" });
      const host = createHost("h");
      await say(store, talk, host, ...numbered(16, (n) => `${wordOf(n)} is what was said at some length`));
      const leaves: SummaryId[] = [];
      for (let n = 0; n < 6; n++) leaves.push(await foldPlaces(store, talk.id, [n, n + 1], `leaf number ${n}`));
      const condensed = [
        await foldPlaces(store, talk.id, [0, 1], "condensed first"),
        await foldPlaces(store, talk.id, [1, 2], "condensed second"),
      ];
      const other = await store.open({ sessionId: "other" });
      const guest = createHost("g");
      await say(store, other, guest, "g0", "g1", "g2");
      while ((await store.index(100)) > 0);
      await test({ subject, store, path, talk, host, leaves, condensed, other, guest });
      await sound(store, expected);
    } finally {
      await store.close();
      await rm(folder, { recursive: true, force: true });
    }
  };

/** New texts may have any length here: whether one is longer than its source does not concern undo. */
export const sound = async (store: Store, expected: readonly FindingCode[] = []): Promise<void> =>
  await checkSound(store, [null], ["summary_too_long", ...expected]);

export const of = <T>(items: readonly T[], place: number): T => items[place] ?? assert.fail(`nothing at ${place}`);

/** Rewrites a summary; returns the change. */
export async function rewrite(store: Store, id: SummaryId, text: string, partOf?: PartOf): Promise<number> {
  const [{ revision } = assert.fail(`no ${id}`)] = await store.summaries({ ids: [id] });
  const outcome = await store.rewrite(
    { summary: id, revision },
    summary(text, { tokens: 2, model: "scripted/two", fileIds: ["file_0123456789abcdef"] }),
    partOf,
  );
  return outcome.kind === "written" ? outcome.change : assert.fail(outcome.reason);
}

export async function dissolve(
  store: Store,
  conversation: ConversationId,
  id: SummaryId,
  purge = false,
): Promise<number> {
  const { ordinal } = await itemOf(store, conversation, id);
  const outcome = await store.dissolve({ conversation, summary: id, ordinal, purge });
  return outcome.kind === "written" ? outcome.change : assert.fail(outcome.reason);
}

export async function transplant(store: Store, source: ConversationId, target: ConversationId): Promise<number> {
  const outcome = await store.transplant({ source, target });
  return outcome.kind === "written" ? outcome.change : assert.fail(outcome.kind);
}

/** Undoes a change; returns the new change. */
export async function takeBack(store: Store, change: number, only?: SummaryId): Promise<number> {
  const planned = await store.planUndo(change, only);
  assert.deepEqual(planned.obstacles, []);
  const outcome = await store.undo(change, only);
  assert.ok(outcome.kind === "undone", JSON.stringify(outcome));
  assert.equal(outcome.entries, planned.entries.length);
  return outcome.change;
}

/** Asserts what blocks the undo: plan and undo report the same, and nothing changes. */
export async function blockedBy(
  { subject, store, path }: Scene,
  change: number,
  only?: SummaryId,
): Promise<readonly Obstacle[]> {
  const before = await dumpOfContent(subject, path);
  const { obstacles } = await store.planUndo(change, only);
  assert.ok(obstacles.length > 0, "something blocks the undo");
  assert.deepEqual(await store.undo(change, only), { kind: "blocked", obstacles });
  assertSameRows(await dumpOfContent(subject, path), before);
  return obstacles;
}

type Asked = Parameters<typeof blockedBy>;

/** What that is about, and which change to undo first. */
export const blockers = async (...asked: Asked) =>
  (await blockedBy(...asked)).map(({ subject, change }) => [subject, change]);

export async function onlyBlocker(...asked: Asked): Promise<Obstacle> {
  const [obstacle = assert.fail(), ...others] = await blockedBy(...asked);
  assert.deepEqual(others, []);
  return obstacle;
}

/** For one that is no longer in the context. */
export async function purge(store: Store, conversation: ConversationId, summary: SummaryId): Promise<number> {
  const outcome = await store.dissolve({ conversation, summary, ordinal: null, purge: true });
  return outcome.kind === "written" ? outcome.change : assert.fail(outcome.reason);
}

export async function forget(
  store: Store,
  target: ForgetPlan["target"],
  within: ConversationId | null = null,
): Promise<void> {
  const outcome = await store.forget(within, await store.planForget(within, target));
  assert.equal(outcome.kind, "written");
}

/** The first message that a leaf was made from. */
export async function messageUnder(store: Store, leaf: SummaryId): Promise<MessageId> {
  const { messages } = (await store.sources([leaf])).get(leaf) ?? assert.fail(`no ${leaf}`);
  return of(messages, 0);
}

/** Runs a remedy, which is a command. */
async function follow(store: Store, remedy: string): Promise<void> {
  const [, undone, only] = /^lcm undo (\d+)(?: --summary (sum_\w+))?$/.exec(remedy) ?? [];
  if (undone !== undefined) {
    await takeBack(store, Number(undone), only as SummaryId | undefined);
    return;
  }
  const [, id, summaryId, purging] = /^lcm dissolve (\d+) --summary (sum_\w+)( --purge)?$/.exec(remedy) ?? [];
  assert.ok(summaryId !== undefined, `a command: ${remedy}`);
  const request = {
    conversation: Number(id) as ConversationId,
    summary: summaryId as SummaryId,
    purge: purging !== undefined,
  };
  await dissolveAsPlanned(store, planDissolve(request, await readForDissolve(store, request)));
}

/** Runs every reported remedy until the way is free, and undoes the change. Returns the remedies in order. */
export async function followed(store: Store, change: number): Promise<readonly string[]> {
  const remedies: string[] = [];
  for (;;) {
    assert.ok(remedies.length < 10, `the remedies lead nowhere: ${remedies.join(", ")}`);
    const [obstacle] = (await planUndo(store, change)).obstacles;
    if (obstacle === undefined) break;
    const { remedy, message } = obstacle;
    assert.ok(remedy !== null, `there is a remedy: ${message}`);
    await follow(store, remedy);
    remedies.push(remedy);
  }
  await takeBack(store, change);
  return remedies;
}

/** Which summaries and which messages a word finds. */
export async function found(store: Store, pattern: string): Promise<readonly string[]> {
  return (await findAll(store, ask(pattern, { limit: 200 }))).map(({ id }) => String(id)).toSorted();
}

/** Times are in milliseconds: this makes what follows later than what came before. */
export const tick = async (): Promise<void> => await new Promise((resolve) => setTimeout(resolve, 2));
