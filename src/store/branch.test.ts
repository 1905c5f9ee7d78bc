/** Where a message goes that does not simply continue the newest one. The contract holds the rest. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { messageToStore } from "../core/content.ts";
import type { Timestamp } from "../core/model.ts";
import { foldPlaces, shownTexts } from "../testing/contract/ground.ts";
import { checkSound } from "../testing/lossless.ts";
import { makeScratch } from "../testing/scratch.ts";
import { user } from "../testing/scripted-host.ts";
import { openSqlite } from "./sqlite.ts";

const store = await openSqlite({ path: join(makeScratch("branch"), "lcm.db"), housekeeping: false });
after(async () => await store.close());

const at = "2026-02-17T07:37:00.000Z" as Timestamp;
let conversations = 0;

/** In a conversation of its own: `["b", "a"]` says b, which continues a. */
async function talk(...said: readonly (readonly [key: string, parentKey: string | null])[]) {
  const { id } = await store.open({ sessionId: `s${++conversations}` });
  const hears = async (...more: typeof said): Promise<string> => {
    await store.append(
      id,
      more.map(([key, parentKey]) => ({
        kind: "message",
        message: messageToStore(user(key), { key, parentKey, at }),
      })),
    );
    return (await shownTexts(store, id)).join(" ");
  };
  await hears(...said);
  return { id, hears };
}

describe("what comes late", () => {
  it("is put where it was missing, from its root on", async () => {
    const { hears } = await talk(["a", null], ["b", "a"], ["f", "e"]);
    assert.equal(await hears(["c", null]), "a b c f");
    assert.equal(await hears(["d", "c"]), "a b c d f");
    assert.equal(await hears(["e", "d"]), "a b c d e f");
    assert.equal(await hears(["g", null]), "a b c d e f g", "nothing is missing any more");
  });

  it("does not hold up what goes on meanwhile", async () => {
    const { hears } = await talk(["a", null], ["f", "e"]);
    assert.equal(await hears(["c", null], ["g", "f"]), "a c f g");
    assert.equal(await hears(["e", "c"], ["h", "g"]), "a c e f g h");
  });

  it("goes to the one that named it, also when it names no parent itself", async () => {
    const { hears } = await talk(["a", null], ["c", "b"], ["e", "d"]);
    assert.equal(await hears(["d", null]), "a c d e");
    assert.equal(await hears(["b", null]), "a b c d e");
  });

  it("stays on the branch it belongs to, if that was left, and comes back with it", async () => {
    const { id, hears } = await talk(["a", null], ["d", "c"], ["b", "a"]);
    assert.equal(await hears(["c", "a"]), "a b");
    const stored = await store.messages({ conversation: id });
    assert.deepEqual(
      stored.map(({ text, aside }) => [text, aside]),
      [
        ["a", null],
        ["d", "branch"],
        ["b", null],
        ["c", "branch"],
      ],
    );
    await checkSound(store, [id]);
    assert.equal(await hears(["e", "d"]), "a c d e");
  });
});

describe("going back", () => {
  const folded = async () => {
    const { id, hears } = await talk(["a", null], ["b", "a"], ["c", "b"], ["d", "c"], ["e", "d"]);
    await foldPlaces(store, id, [0, 1], "ab");
    await foldPlaces(store, id, [1, 2], "cd");
    await foldPlaces(store, id, [0, 1], "abcd");
    return hears;
  };

  it("to the last message under a summary leaves the summary as it is, however deep", async () => {
    const hears = await folded();
    assert.equal(await hears(["f", "d"]), "abcd f");
  });

  it("to one inside it opens up what reaches across, and no more", async () => {
    const hears = await folded();
    assert.equal(await hears(["f", "c"]), "ab c f");
    assert.equal(await hears(["g", "b"]), "ab g");
  });
});
