import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { makeScratch } from "../../../test/support/scratch.ts";
import { openSqlite } from "../../store/sqlite/store.ts";
import { LcmError } from "../base/errors.ts";
import type { Timestamp } from "../base/time.ts";
import { messageToStore } from "../messages/codec.ts";
import { messageIdOf, type ConversationId } from "../model/types.ts";
import type { Reach } from "./scope.ts";
import { resolveSpan, resolveTimes, type SpanWords } from "./span.ts";

const folder = makeScratch("span");
const store = await openSqlite({ path: join(folder, "lcm.db"), housekeeping: false });
after(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

/** A Thursday. */
const clock = { now: () => "2026-02-19T12:00:00.000Z" as Timestamp };
const { id: one } = await store.open({ sessionId: "one" });
const { id: two } = await store.open({ sessionId: "two" });
for (const conversation of [one, two])
  for (let seq = 1; seq <= 60; seq++) {
    const at = new Date(Date.UTC(2026, 1, 17) + seq * 60_000).toISOString() as Timestamp;
    const message = messageToStore({ role: "user", content: `message ${seq}` }, { key: `k${seq}`, at });
    await store.append(conversation, [{ kind: "message", message }]);
  }

const everything: Reach = { kind: "all", conversations: null };
const resolve = async (words: SpanWords, reach = everything) => {
  const { reach: narrowed, ...span } = await resolveSpan({ store, clock }, words, { reach, zone: "UTC", prefix: "" });
  return { ...span, in: narrowed.conversations };
};
const refuses = async (words: SpanWords, message: RegExp, reach = everything): Promise<void> =>
  await assert.rejects(
    async () => await resolve(words, reach),
    (error) => error instanceof LcmError && message.test(error.message),
  );
const name = (seq: number, conversation = one): string => `msg_${conversation}-${seq}`;
const id = (seq: number, conversation: ConversationId = one) => messageIdOf(conversation, seq);

describe("a part of the record", () => {
  it("lies between times, days of the week, or ages", async () => {
    const day = (date: number) => `2026-02-${date}T00:00:00.000Z`;
    assert.deepEqual(await resolve({ since: "tuesday", before: "wednesday" }), {
      since: day(17),
      before: day(18),
      in: null,
    });
    assert.deepEqual(await resolve({ since: "Last Thursday" }), { since: day(12), in: null });
    assert.deepEqual(await resolve({ since: "thu" }), { since: day(19), in: null });
    assert.deepEqual(await resolve({ since: "friday", before: "monday" }), {
      since: day(13),
      before: day(16),
      in: null,
    });
    assert.deepEqual(await resolve({ since: "2 days ago" }), { since: "2026-02-17T12:00:00.000Z", in: null });
    await refuses({ since: "wednesday", before: "2026-02-17" }, /since wednesday is not earlier than before/);
    await refuses({ since: "someday" }, /since is "someday", which is not a time/);
  });

  it("lies between messages, in their conversation", async () => {
    assert.deepEqual(await resolve({ since: name(4) }), { afterId: id(3), in: [one] });
    assert.deepEqual(await resolve({ after: name(4), before: name(9) }), {
      afterId: id(4),
      beforeId: id(9),
      in: [one],
    });
    assert.deepEqual(await resolve({ around: name(40, two) }), {
      afterId: id(14, two),
      beforeId: id(66, two),
      in: [two],
    });
    const beyond = { asked: id(999), last: id(60) };
    assert.deepEqual(await resolve({ since: name(999) }), { afterId: id(59), beyond, in: [one] });
    assert.deepEqual(await resolve({ after: name(999) }), { afterId: id(60), beyond, in: [one] });
    assert.deepEqual(await resolve({ before: name(999) }), { beforeId: id(61), beyond, in: [one] });
    await refuses({ since: name(1), before: name(4, two) }, /different conversations/);
    await refuses({ around: "yesterday" }, /around is "yesterday", which is not a message id/);
    await refuses({ since: "today", after: name(1) }, /since and after exclude each other/);
  });

  it("is computed from the time of a message", async () => {
    const found = await resolve({ since: `30 minutes before ${name(40)}` });
    assert.deepEqual(found, { since: "2026-02-17T00:10:00.000Z", in: null });
    const context = { reach: everything, zone: "UTC", prefix: "" } as const;
    const { since, before } = await resolveTimes({ store, clock }, { after: name(4), before: name(9) }, context);
    assert.deepEqual([since, before], ["2026-02-17T00:05:00.000Z", "2026-02-17T00:09:00.000Z"]);
    const none = await resolveTimes({ store, clock }, { after: name(60) }, context);
    assert.equal(none.since, "2026-02-17T01:00:00.001Z", "after the last message there is nothing");
    await assert.rejects(resolveTimes({ store, clock }, { since: name(999) }, context), (error: Error) => {
      assert.match(error.message, /^there is no msg_\d+-999: conversation \d+ ends with msg_\d+-60$/);
      return true;
    });
  });

  it("is of one role or several", async () => {
    assert.deepEqual(await resolve({ role: "User, tool" }), { roles: ["user", "tool"], in: null });
    await refuses({ role: "users" }, /role is "users", but must be one or several of system, user, assistant, tool/);
  });

  it("guarantee 25: a message beyond the reach is as one that does not exist", async () => {
    const reach: Reach = { kind: "conversation", conversations: [one] };
    await refuses({ since: name(4, two) }, /^there is no msg_/, reach);
    await refuses({ since: name(999, two) }, /^there is no msg_/, reach);
    await refuses({ since: name(1, 99 as ConversationId) }, /^there is no msg_/);
  });
});
