/** Messages that do not continue the newest one. The contract tests the rest. */

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

/** In a conversation of its own: `["b", "a"]` appends b, which continues a. */
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

describe("a late message", () => {
  it("is placed where it was missing, from its root on", async () => {
    const { hears } = await talk(["a", null], ["b", "a"], ["f", "e"]);
    assert.equal(await hears(["c", null]), "a b c f");
    assert.equal(await hears(["d", "c"]), "a b c d f");
    assert.equal(await hears(["e", "d"]), "a b c d e f");
    assert.equal(await hears(["g", null]), "a b c d e f g", "nothing is missing any more");
  });

  it("is not an abandoned branch once it is in place", async () => {
    const { id, hears } = await talk(["a", null], ["c", "b"]);
    assert.equal(await hears(["b", "a"]), "a b c");
    assert.deepEqual(
      (await store.messages({ conversation: id })).map(({ aside }) => aside),
      [null, null, null],
    );
  });

  it("does not stop the conversation from continuing", async () => {
    const { hears } = await talk(["a", null], ["f", "e"]);
    assert.equal(await hears(["c", null], ["g", "f"]), "a c f g");
    assert.equal(await hears(["e", "c"], ["h", "g"]), "a c e f g h");
  });

  it("goes before the child that names it, even if it has no parent itself", async () => {
    const { hears } = await talk(["a", null], ["c", "b"], ["e", "d"]);
    assert.equal(await hears(["d", null]), "a c d e");
    assert.equal(await hears(["b", null]), "a b c d e");
  });

  it("goes before the child that names it, even if it continues a message placed elsewhere, whatever the keys", async () => {
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

  it("opens another gap if its own parent is missing too", async () => {
    const { id, hears } = await talk(["a", null], ["f", "e"]);
    assert.equal(await hears(["e", "d"]), "a e f");
    assert.equal(await hears(["d", "c"], ["g", "f"]), "a d e f g");
    assert.equal(await hears(["c", "a"]), "a c d e f g");
    assert.equal(await hears(["h", "d"]), "a c d h", "and it is a place to go back to");
    await checkSound(store, [id]);
    const again = await talk(["a", null], ["f", "e"]);
    assert.equal(await again.hears(["e", "d"], ["d", "c"], ["c", "a"]), "a c d e f", "in one append as well");
  });

  it("leaves that gap open for what follows its root, also before a line that is not a message", async () => {
    const { id, hears } = await talk(["a", null], ["f", "e"]);
    assert.equal(await hears(["b", null], ["e", "d"]), "a b e f");
    const line = { key: "d", parentKey: "c", type: "label", at, raw: "{}" };
    await store.append(id, [{ kind: "entry", entry: line }]);
    assert.equal(await hears(["c", "b"]), "a b c e f");
  });

  it("keeps what comes before its branch, if the branch returns before its root", async () => {
    const { hears } = await talk(["a", null], ["f", "e"], ["g", "a"]);
    assert.equal(await hears(["e", "d"]), "a g");
    assert.equal(await hears(["h", "f"]), "a e f h");
  });

  it("stays on its abandoned branch, and returns with it", async () => {
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

describe("rewinding", () => {
  const folded = async () => {
    const { id, hears } = await talk(["a", null], ["b", "a"], ["c", "b"], ["d", "c"], ["e", "d"]);
    await foldPlaces(store, id, [0, 1], "ab");
    await foldPlaces(store, id, [1, 2], "cd");
    await foldPlaces(store, id, [0, 1], "abcd");
    return hears;
  };

  it("to the last message below a summary keeps the summary, at any depth", async () => {
    const hears = await folded();
    assert.equal(await hears(["f", "d"]), "abcd f");
  });

  it("to a message inside it dissolves only what reaches across the cut", async () => {
    const hears = await folded();
    assert.equal(await hears(["f", "c"]), "ab c f");
    assert.equal(await hears(["g", "b"]), "ab g");
  });
});

describe("the newest message after its row was lost", () => {
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
    it(`is no longer missing when it is sent again, after ${parent ?? "nothing"}`, async () => {
      const { hears, told, fix } = await lost(parent);
      assert.equal(await hears(["a", null], ["b", parent]), "a b");
      await fix();
      assert.deepEqual(await told(), []);
      assert.equal(await hears(["c", "b"]), "a b c");
    });

  it("is no longer missing even if a fix removed its place in between", async () => {
    const { hears, told, fix } = await lost("a");
    await fix();
    assert.deepEqual(await told(), ["missing_message"]);
    assert.equal(await hears(["a", null], ["b", "a"]), "a b");
    await fix();
    assert.deepEqual(await told(), []);
  });

  it("gets its own id again, even if the counter has lost count", async () => {
    const { hears } = await lost("a");
    const db = new DatabaseSync(path);
    db.exec("UPDATE conversations SET next_seq = next_seq - 1");
    db.close();
    assert.equal(await hears(["a", null], ["b", "a"], ["c", "b"]), "a b c");
  });

  it("is stored again even if a summary lost all its sources with it", async () => {
    const { id, hears } = await talk(["a", null], ["b", "a"], ["c", "b"]);
    await foldPlaces(store, id, [1, 2], "bc");
    const db = new DatabaseSync(path, { enableForeignKeyConstraints: false });
    db.exec(`DELETE FROM messages WHERE conversation_id = ${id} AND message_key <> 'a'`);
    db.close();
    assert.equal(await hears(["a", null], ["b", "a"], ["c", "b"]), "a b c");
    assert.equal((await store.conversation(id))?.totals.contextItems, 3);
  });

  it("stays missing if another message takes its place", async () => {
    const { hears, told, fix } = await lost("a");
    assert.equal(await hears(["c", "a"]), "a c");
    await fix();
    assert.deepEqual(await told(), ["missing_message"]);
  });
});
