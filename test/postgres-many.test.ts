/** A server with so many conversations that a search no longer asks all of them how rare a word is. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { SearchRequest, Store } from "../src/core/model/store.ts";
import type { ConversationId } from "../src/core/model/types.ts";
import { openPostgres } from "../src/store/postgres/store.ts";
import { usePostgres } from "./support/shared-postgres.ts";
import { makeScratch } from "./support/scratch.ts";
import { createHost, toAppendable, user } from "./support/scripted-host.ts";

const { url } = await usePostgres();
const many = 1_050;
const ids: ConversationId[] = [];
let store: Store;

/** All talk about the weather; the first and the last of a lighthouse, too, and only the first of a foghorn, which begins like fog. */
before(async () => {
  store = await openPostgres({ url, filesDir: join(makeScratch("many"), "files"), housekeeping: false });
  for (let at = 0; at < many; at++) {
    const host = createHost(`h${at}`);
    const { id } = await store.open({ sessionId: `s${at}`, agentId: "a" });
    const isOfLighthouse = at === 0 || at === many - 1;
    const words = [isOfLighthouse ? "the lighthouse keeper called" : "it is foggy", "it will rain"];
    if (at === 0) words.push("about the foghorn");
    await store.append(
      id,
      words.map((text) => toAppendable(host.says(user(text)))),
    );
    ids.push(id);
  }
  while ((await store.index(8_000)) > 0);
});
after(async () => await store.close());

const found = async (pattern: string, more: Partial<SearchRequest> = {}): Promise<readonly number[]> => {
  const request = { pattern, mode: "full_text", scope: "messages", sort: "relevance", limit: 20, ...more } as const;
  return (await store.search(request)).hits.map(({ conversation }) => conversation);
};
const [first, last] = [() => ids[0] as ConversationId, () => ids[many - 1] as ConversationId];

describe("guarantee 22: a search covers all rows, however many conversations there are", () => {
  it("finds a word that only an old conversation has, there and among all", async () => {
    assert.deepEqual(await found("foghorn", { conversations: [first()] }), [first()]);
    assert.deepEqual(await found("foghorn"), [first()]);
    assert.deepEqual(await found("who was the lighthouse keeper", { conversations: [first()] }), [first()]);
    assert.deepEqual(
      (await found("lighthouse")).toSorted((one, other) => one - other),
      [first(), last()],
    );
  });

  it("finds a frequent word and a phrase in the conversations that are named", async () => {
    const some = ids.slice(3, 6);
    assert.deepEqual(
      (await found("rain", { conversations: some })).toSorted((one, other) => one - other),
      some,
    );
    assert.deepEqual(await found('"lighthouse keeper"', { conversations: ids.slice(0, 400) }), [first()]);
  });

  it("does not find what is hidden, from the moment on at which it is", async () => {
    assert.equal((await found("lighthouse")).length, 2);
    await store.setHidden(last(), true);
    assert.deepEqual(await found("lighthouse"), [first()]);
    await store.setHidden(last(), false);
    assert.equal((await found("lighthouse")).length, 2);
  });
});
