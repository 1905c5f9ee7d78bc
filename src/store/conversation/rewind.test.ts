/** Where a message goes that does not simply continue the newest one. The contract holds the rest. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, describe, it } from "node:test";
import { messageToStore } from "../../core/messages/codec.ts";

import { inspect } from "../../core/maintenance/inspect.ts";
import { applyFixes, planFixes } from "../../core/maintenance/apply-fix.ts";
import { foldPlaces, shownTexts } from "../../../test/store-contract/ground.ts";
import { checkSound } from "../../../test/support/lossless.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { user } from "../../../test/support/scripted-host.ts";
import { openSqlite } from "../sqlite/store.ts";
import type { Timestamp } from "../../core/base/time.ts";

const path = join(makeScratch("branch"), "lcm.db");
const store = await openSqlite({ path, housekeeping: false });
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

  it("is no branch that was left, once it is in its place", async () => {
    const { id, hears } = await talk(["a", null], ["c", "b"]);
    assert.equal(await hears(["b", "a"]), "a b c");
    assert.deepEqual(
      (await store.messages({ conversation: id })).map(({ aside }) => aside),
      [null, null, null],
    );
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

  it("goes to the one that named it, also when it continues what was put elsewhere, whatever their keys", async () => {
    for (const [first, second] of [
      ["x", "y"],
      ["y", "x"],
    ] as const) {
      const { hears } = await talk(["j", first], ["f", second]);
      const guessed = await hears(["b", null]);
      const [named, child] = guessed === "b j f" ? [second, "f"] : [first, "j"];
      assert.match(await hears([named, "b"]), new RegExp(`${named} ${child}`));
    }
  });

  it("opens a gap of its own when its own parent is missing too, back to where all is known", async () => {
    const { id, hears } = await talk(["a", null], ["f", "e"]);
    assert.equal(await hears(["e", "d"]), "a e f");
    assert.equal(await hears(["d", "c"], ["g", "f"]), "a d e f g");
    assert.equal(await hears(["c", "a"]), "a c d e f g");
    assert.equal(await hears(["h", "d"]), "a c d h", "and it is a place to go back to");
    await checkSound(store, [id]);
    const again = await talk(["a", null], ["f", "e"]);
    assert.equal(await again.hears(["e", "d"], ["d", "c"], ["c", "a"]), "a c d e f", "in one append as well");
  });

  it("leaves such a gap open for what follows its root, and in front of a line that is no message", async () => {
    const { id, hears } = await talk(["a", null], ["f", "e"]);
    assert.equal(await hears(["b", null], ["e", "d"]), "a b e f");
    const line = { key: "d", parentKey: "c", type: "label", at, raw: "{}" };
    await store.append(id, [{ kind: "entry", entry: line }]);
    assert.equal(await hears(["c", "b"]), "a b c e f");
  });

  it("keeps what was said before the branch it is on, when that comes back before its root does", async () => {
    const { hears } = await talk(["a", null], ["f", "e"], ["g", "a"]);
    assert.equal(await hears(["e", "d"]), "a g");
    assert.equal(await hears(["h", "f"]), "a e f h");
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

describe("the newest message, whose row was lost", () => {
  const lost = async (parent: string | null) => {
    const { id, hears } = await talk(["a", null], ["b", parent]);
    const db = new DatabaseSync(path, { enableForeignKeyConstraints: false });
    const [number] = db.prepare("SELECT max(message_id) AS id FROM messages WHERE conversation_id = ?").all(id);
    for (const table of ["message_parts", "messages"])
      db.exec(`DELETE FROM ${table} WHERE message_id = ${Number(number?.["id"])}`);
    db.close();
    const told = async () => (await inspect(store, id)).map(({ code }) => code);
    assert.ok((await told()).includes("missing_message"));
    const fix = async () => await applyFixes(store, await planFixes(store, id));
    return { hears, told, fix };
  };

  for (const parent of ["a", null])
    it(`is no longer missing once it comes again, behind ${parent ?? "nothing"}`, async () => {
      const { hears, told, fix } = await lost(parent);
      assert.equal(await hears(["a", null], ["b", parent]), "a b");
      await fix();
      assert.deepEqual(await told(), []);
      assert.equal(await hears(["c", "b"]), "a b c");
    });

  it("is no longer missing also when its place was cleared in between", async () => {
    const { hears, told, fix } = await lost("a");
    await fix();
    assert.deepEqual(await told(), ["missing_message"]);
    assert.equal(await hears(["a", null], ["b", "a"]), "a b");
    await fix();
    assert.deepEqual(await told(), []);
  });

  it("leaves its number to nobody else, also where the file has lost count", async () => {
    const { hears } = await lost("a");
    const db = new DatabaseSync(path);
    db.exec("UPDATE sqlite_sequence SET seq = (SELECT max(message_id) FROM messages) WHERE name = 'messages'");
    db.close();
    assert.equal(await hears(["a", null], ["b", "a"], ["c", "b"]), "a b c");
  });

  it("is stored again also where a summary lost all that it stood for with it", async () => {
    const { id, hears } = await talk(["a", null], ["b", "a"], ["c", "b"]);
    await foldPlaces(store, id, [1, 2], "bc");
    const db = new DatabaseSync(path, { enableForeignKeyConstraints: false });
    db.exec(`DELETE FROM messages WHERE conversation_id = ${id} AND message_key <> 'a'`);
    db.close();
    assert.equal(await hears(["a", null], ["b", "a"], ["c", "b"]), "a b c");
    assert.equal((await store.conversation(id))?.totals.contextItems, 3);
  });

  it("stays missing where another comes in its place", async () => {
    const { hears, told, fix } = await lost("a");
    assert.equal(await hears(["c", "a"]), "a c");
    await fix();
    assert.deepEqual(await told(), ["missing_message"]);
  });
});
