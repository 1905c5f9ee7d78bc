import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import fc from "fast-check";
import { openSqlite, systemNow } from "../../store/sqlite/store.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { createHost, toAppendable, user } from "../../../test/support/scripted-host.ts";
import { expand } from "./expand.ts";
import type { Expansion } from "./expand.ts";
import { readGranted } from "./grants.ts";
import type { ConversationId, GrantId, SummaryId } from "../model/types.ts";
import type { NewGrant, Store } from "../model/store.ts";
import { estimateTokens } from "../base/tokens.ts";
import { msToTimestamp, timestampToMs } from "../base/time.ts";
import type { Timestamp } from "../base/time.ts";

const folder = makeScratch("grants");
let databases = 0;
after(() => rmSync(folder, { recursive: true, force: true }));

interface Ground {
  readonly store: Store;
  readonly own: ConversationId;
  readonly foreign: ConversationId;
  /** A leaf of each. */
  readonly leaf: SummaryId;
  readonly foreignLeaf: SummaryId;
  /** The store's time from now on. */
  readonly setClock: (time: string) => void;
}

async function ground(): Promise<Ground> {
  let time: string | null = null;
  const now = (): Timestamp => (time === null ? systemNow() : (time as Timestamp));
  const store = await openSqlite({ path: join(folder, `${++databases}.db`), now, housekeeping: false });
  const talk = async (sessionId: string): Promise<readonly [ConversationId, SummaryId]> => {
    const { id } = await store.open({ sessionId });
    const host = createHost(sessionId);
    for (let turn = 0; turn < 40; turn++)
      host.says(user(`Turn ${turn} of ${sessionId}: the gate opens at ${turn}:30.`));
    await store.append(id, host.entries.map(toAppendable));
    const text = { text: `${sessionId} in short`, tokens: 4, level: "normal" } as const;
    const rest = { model: null, previousContext: null, fileIds: [] };
    const folded = await store.fold(id, await store.context(id), { ...text, ...rest });
    return [id, folded.kind === "written" ? folded.summary : assert.fail("folded")];
  };
  const [own, leaf] = await talk("own");
  const [foreign, foreignLeaf] = await talk("foreign");
  return { store, own, foreign, leaf, foreignLeaf, setClock: (next) => void (time = next) };
}

const inAnHour = (): Timestamp => msToTimestamp(timestampToMs(systemNow()) + 3_600_000);
const grantOf = (conversation: ConversationId, tokenCap = 1_000): NewGrant => ({
  conversations: [conversation],
  tokenCap,
  expiresAt: inAnHour(),
  parent: null,
});

/** What a delegate would do: open a leaf, down to its messages. */
const open = async (store: Store, grant: GrantId, leaf: SummaryId, tokenCap?: number): Promise<Expansion> =>
  await readGranted(store, grant, tokenCap, async (reach, tokensMax) => {
    const value = await expand(store, { summaryIds: [leaf], reach, tokenCap: tokensMax, includeMessages: true });
    const charges = new Map<ConversationId, number>();
    for (const { conversation, tokens } of value.items)
      charges.set(conversation, (charges.get(conversation) ?? 0) + tokens);
    return { value, charges };
  });

/** Fails with this message before anything is read. */
async function readsNothing(store: Store, grant: GrantId, words: RegExp): Promise<void> {
  const read = async (): Promise<never> => assert.fail("nothing may be read");
  await assert.rejects(readGranted(store, grant, undefined, read), { code: "denied", message: words });
}

describe("guarantee 25: reading under a grant", () => {
  it("is limited to its conversations and its remaining tokens, and is charged", async () => {
    const { store, own, leaf } = await ground();
    const { id } = await store.issueGrant(grantOf(own, 200));
    const first = await open(store, id, leaf, 150);
    assert.ok(first.items.length > 0 && first.tokens <= 150);
    assert.equal((await store.grant(id))?.tokensUsed, first.tokens);
    const second = await open(store, id, leaf, 150);
    assert.ok(second.tokens <= 200 - first.tokens);
    for (const tokenCap of [0, -5, 0.5, Number.NaN])
      await assert.rejects(open(store, id, leaf, tokenCap), { code: "invalid" });
  });

  it("is denied if the grant is forged, expired, revoked or used up", async () => {
    const { store, own } = await ground();
    await readsNothing(store, "grant_0123456789abcdef", /does not exist/);
    const expired = await store.issueGrant({ ...grantOf(own), expiresAt: "2026-01-01T00:00:00.000Z" as Timestamp });
    await readsNothing(store, expired.id, /has expired/);
    const revoked = await store.issueGrant(grantOf(own));
    await store.revokeGrant(revoked.id);
    await readsNothing(store, revoked.id, /was revoked/);
    const spent = await store.issueGrant(grantOf(own, 10));
    await store.spendGrant(spent.id, own, 10);
    await readsNothing(store, spent.id, /is used up/);
    const empty = await store.issueGrant({ ...grantOf(own), conversations: [] });
    await readsNothing(store, empty.id, /does not exist/);
  });

  it("is denied from the very moment at which the grant expires, also for its children, and is swept then", async () => {
    const { store, own, setClock } = await ground();
    setClock("2026-02-17T08:00:00.000Z");
    const expiresAt = "2026-02-17T09:00:00.000Z" as Timestamp;
    const parent = await store.issueGrant({ ...grantOf(own), expiresAt });
    const child = await store.issueGrant({ ...grantOf(own), expiresAt: inAnHour(), parent: parent.id });
    assert.equal(child.expiresAt, expiresAt);
    setClock("2026-02-17T08:59:59.999Z");
    for (const { id } of [parent, child]) assert.equal((await store.spendGrant(id, own, 0)).kind, "granted");
    assert.equal(await store.sweepGrants(), 0);
    setClock(expiresAt);
    for (const { id } of [parent, child]) await readsNothing(store, id, /has expired/);
    await assert.rejects(store.issueGrant({ ...grantOf(own), parent: parent.id }), { code: "denied" });
    assert.equal(await store.sweepGrants(), 2);
  });

  it("is denied under a grant that a clock ahead of time issued, once the clock is right", async () => {
    const { store, own, setClock } = await ground();
    setClock("2027-02-17T08:00:00.000Z");
    const ahead = await store.issueGrant({ ...grantOf(own), expiresAt: "2027-02-17T08:05:00.000Z" as Timestamp });
    setClock("2027-02-17T07:59:59.500Z");
    assert.equal((await store.spendGrant(ahead.id, own, 0)).kind, "granted", "a clock may be set by a little");
    setClock("2026-02-17T08:00:00.000Z");
    await readsNothing(store, ahead.id, /has expired/);
    assert.equal(await store.sweepGrants(), 1);
  });

  it("is denied for another conversation, whatever the reader claims", async () => {
    const { store, own, foreign, foreignLeaf } = await ground();
    const { id } = await store.issueGrant(grantOf(own));
    await assert.rejects(open(store, id, foreignLeaf), { code: "not_found", message: /^there is no summary/ });
    const careless = async () => ({ value: "a secret", charges: new Map([[foreign, 1]]) });
    await assert.rejects(readGranted(store, id, undefined, careless), { code: "denied", message: /does not cover/ });
  });

  it("is denied if a parent grant is over or used up, and never wider than the parent", async () => {
    const { store, own, foreign, leaf } = await ground();
    const parent = await store.issueGrant(grantOf(own, 100));
    await assert.rejects(store.issueGrant({ ...grantOf(foreign), parent: parent.id }), { code: "denied" });
    const child = await store.issueGrant({ ...grantOf(own, 5_000), parent: parent.id });
    const sibling = await store.issueGrant({ ...grantOf(own, 5_000), parent: parent.id });
    const { tokens } = await open(store, child.id, leaf);
    assert.ok(tokens <= 100);
    await store.spendGrant(parent.id, own, 100 - tokens);
    await readsNothing(store, child.id, /is used up/);
    await readsNothing(store, sibling.id, /is used up/);
    await store.revokeGrant(parent.id);
    await readsNothing(store, sibling.id, /was revoked/);
  });

  it("returns nothing if the grant is revoked during the read, even if nothing was read", async () => {
    const { store, own, leaf } = await ground();
    for (const tokens of [5, 0]) {
      const { id } = await store.issueGrant(grantOf(own));
      const read = readGranted(store, id, undefined, async (reach) => {
        const value = await expand(store, { summaryIds: [leaf], reach, tokenCap: 100, includeMessages: true });
        await store.revokeGrant(id);
        return { value, charges: tokens === 0 ? new Map() : new Map([[own, tokens]]) };
      });
      await assert.rejects(read, { code: "denied", message: /was revoked/ });
    }
  });

  it("never exceeds the cap in total, in any order and concurrently", async () => {
    const { store, own, leaf } = await ground();
    const reads = fc.array(fc.record({ cap: fc.integer({ min: 1, max: 300 }), together: fc.boolean() }), {
      maxLength: 8,
    });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 600 }), reads, async (tokenCap, plan) => {
        const { id } = await store.issueGrant(grantOf(own, tokenCap));
        let handedOut = 0;
        const readOnce = async (cap: number): Promise<void> => {
          try {
            const { items } = await open(store, id, leaf, cap);
            handedOut += items.reduce((sum, { text }) => sum + estimateTokens(text), 0);
          } catch (error) {
            assert.match(String(error), /is used up/);
          }
        };
        for (const { cap, together } of plan)
          await Promise.all(Array.from({ length: together ? 3 : 1 }, async () => await readOnce(cap)));
        assert.ok(handedOut <= tokenCap, `${handedOut} of ${tokenCap}`);
        assert.equal((await store.grant(id))?.tokensUsed, handedOut);
      }),
      { numRuns: 40 },
    );
  });
});
