/** Contract: a message whose content moved to files keeps them, and they go with it. */

import assert from "node:assert/strict";
import { mkdir, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe } from "node:test";
import { messageToStore } from "../../src/core/messages/codec.ts";
import { inspect } from "../../src/core/maintenance/inspect.ts";
import { restoreMessage } from "../../src/core/ingest/large-content.ts";
import type { Conversation, ConversationId, MovedContent, NewMessage, StoredFile } from "../../src/core/model/types.ts";
import type { NewFile, Store } from "../../src/core/model/store.ts";
import { at, foldPlaces, forgetRowsAlone, isKept, itOn, newFile, onTalk, refuses } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";
import type { Json } from "../../src/core/base/json.ts";
import { forgottenMark, messageName } from "../../src/core/model/types.ts";

const secret = "Zq7xKv93LmQw81";
const picture = Buffer.from(Array.from({ length: 600 }, (_, index) => (index * 7) % 256)).toString("base64");

const save = async (store: Store, { id }: Conversation, content: string, more: Partial<NewFile> = {}) =>
  await store.saveFile(newFile(id, content, more));

const referenceTo = (file: StoredFile): string => `[File ${file.id} · ${file.exploration ?? "unexplored"}]`;

/** A user message with these words and a reference to each file. */
const saying = (key: string, words: readonly (string | StoredFile)[]): NewMessage => {
  const moved: MovedContent[] = [];
  let text = "";
  for (const word of words) {
    const said = typeof word === "string" ? word : referenceTo(word);
    if (typeof word !== "string")
      moved.push({ file: word.id, path: ["content", 0, "text"], from: text.length, length: said.length });
    text += said;
  }
  const content: Json = [{ type: "text", text }];
  return { ...messageToStore({ role: "user", content }, { key, at: at("2026-02-17T07:37:00.000Z") }), moved };
};

const append = async (store: Store, { id }: Conversation, ...messages: readonly NewMessage[]) =>
  await store.append(
    id,
    messages.map((message) => ({ kind: "message", message })),
  );

const restored = async (store: Store, conversation: ConversationId): Promise<readonly unknown[]> =>
  await Promise.all((await store.messages({ conversation })).map((message) => restoreMessage(store, message)));

const said = (text: string): unknown => ({ role: "user", content: [{ type: "text", text }] });

export function testMoved(subject: StoreUnderTest): void {
  const it = itOn(subject, onTalk);

  describe("messages with moved content", () => {
    it("report what moved and where, and are reassembled; other messages have nothing there", async ({
      store,
      talk,
    }) => {
      const [log, csv] = [await save(store, talk, "a log"), await save(store, talk, "a,b")];
      const message = saying("k1", ["see ", log, " and ", csv, " and again ", log]);
      await append(store, talk, message, saying("k2", ["nothing large"]));
      const [first, second] = await store.messages({ conversation: talk.id });
      assert.deepEqual(first?.moved, message.moved);
      assert.deepEqual(second?.moved, []);
      assert.deepEqual(await restored(store, talk.id), [
        said("see a log and a,b and again a log"),
        said("nothing large"),
      ]);
    });

    it("keep it when they are transplanted", async ({ store }) => {
      const [source, target] = [await store.open({ sessionId: "a" }), await store.open({ sessionId: "b" })];
      const file = await save(store, source, "a long text");
      await append(store, source, saying("k1", ["look: ", file]), saying("k2", ["and so on"]));
      await foldPlaces(store, source.id, [0, 1], "leaf");
      assert.equal((await store.transplant({ source: source.id, target: target.id })).kind, "written");
      assert.deepEqual(await restored(store, target.id), [said("look: a long text"), said("and so on")]);
    });

    it(
      "are a finding when they name a missing file",
      async ({ store, talk }) => {
        const file = { ...(await save(store, talk, "x")), id: "file_0000000000000000" } as const;
        const { messages } = await append(store, talk, saying("k1", [file]));
        const found = (await inspect(store, null)).filter(({ code }) => code === "unreadable_message");
        assert.deepEqual(
          found.map(({ severity, subject: about, message }) => [severity, about, message.includes(file.id)]),
          [["error", messages.map(messageName)[0], true]],
        );
      },
      ["unreadable_message"],
    );
  });

  describe("forgetting moved content", () => {
    it("a forgotten message takes its files along, except those that others reference too", async (scene) => {
      const { store, folder, talk } = scene;
      const exploration = "the quokka's diary";
      const message = { key: "k1", at: at("2026-02-17T07:37:00.000Z") };
      const own = await save(store, talk, "my dear quokka", { name: "diary.txt", exploration, message });
      const image = await save(store, talk, picture, { encoding: "base64", mimeType: "image/png", message });
      const shared = await save(store, talk, "known to all", { message });
      const { messages } = await append(
        store,
        talk,
        saying("k1", ["read ", own, image, shared]),
        saying("k2", [shared]),
      );
      const target = { kind: "message", id: messages[0] ?? assert.fail() } as const;
      const plan = await store.planForget(talk.id, target);
      assert.deepEqual(plan.files, [own.id, image.id].toSorted());
      assert.deepEqual(await store.forget(talk.id, plan), { kind: "written", removed: 3 });

      assert.deepEqual(await restored(store, talk.id), [
        { role: "user", content: forgottenMark },
        said("known to all"),
      ]);
      assert.deepEqual((await store.messages({ ids: [target.id] }))[0]?.moved, []);
      const origins = [own, image, shared].map(async ({ id }) => (await store.file(id))?.messageKey);
      assert.deepEqual(await Promise.all(origins), [null, null, "k2"], "no file reveals what was said there");
      for (const id of [own.id, image.id]) {
        const left = await store.file(id);
        assert.equal(await store.fileContent(id), forgottenMark);
        assert.deepEqual([left?.encoding, left?.bytes, left?.lines], ["utf8", forgottenMark.length, 1]);
      }
      for (const word of ["quokka", "diary.txt", Buffer.from(picture, "base64")])
        assert.ok(!(await isKept(subject, folder, word)));
      assert.notEqual(
        (await save(store, talk, "my dear quokka")).id,
        own.id,
        "the same content sent again is another file",
      );
    });

    it("an interruption before the files were reached is completed by the next plan", async (scene) => {
      const { store, folder, path, talk } = scene;
      const file = await save(store, talk, "my dear quokka");
      const { messages } = await append(store, talk, saying("k1", [file]));
      const target = { kind: "message", id: messages[0] ?? assert.fail() } as const;
      const plan = await store.planForget(null, target);
      await forgetRowsAlone(subject, path, plan);
      assert.ok(await isKept(subject, folder, "quokka"));
      await store.planForget(null, { kind: "secret", text: "anything" });
      assert.ok(!(await isKept(subject, folder, "quokka")));
      assert.equal(await store.fileContent(file.id), forgottenMark);
    });

    it("a secret is removed from files, references and the text around them, and the rest is reassembled", async (scene) => {
      const { store, folder, talk } = scene;
      const exploration = `begins with ${secret}`;
      const log = await save(store, talk, `${secret} and more`, { exploration });
      const csv = await save(store, talk, "a,b");
      await append(store, talk, saying("k1", [`by ${secret}: `, log, ` of ${secret}, then `, csv, "!"]));
      const target = { kind: "secret", text: secret } as const;
      await store.forget(null, await store.planForget(null, target));
      const mark = forgottenMark;
      assert.deepEqual(await restored(store, talk.id), [said(`by ${mark}: ${mark} and more of ${mark}, then a,b!`)]);
      assert.equal((await store.messages({ conversation: talk.id }))[0]?.moved.length, 2);
      assert.ok(!(await isKept(subject, folder, secret)));
      assert.deepEqual((await store.planForget(null, target)).files, []);
    });

    it("bytes are not text: a secret is only looked for in their name and preview", async ({ store, talk }) => {
      const content = Buffer.from(`...${secret}...`).toString("base64");
      const plain = await save(store, talk, content, { encoding: "base64" });
      const named = await save(store, talk, picture, { encoding: "base64", name: `${secret}.png` });
      const plan = await store.planForget(null, { kind: "secret", text: secret });
      assert.deepEqual(plan.files, [named.id]);
      await store.forget(null, plan);
      assert.equal(await store.fileContent(plain.id), content);
      assert.equal(await store.fileContent(named.id), picture);
      assert.equal((await store.file(named.id))?.name, `${forgottenMark}.png`);
    });

    it("a secret is also removed from what a killed process left in the folder, and old leftovers go with it", async (scene) => {
      const { store, folder } = scene;
      const [talk, other] = [await store.open({ sessionId: "s" }), await store.open({ sessionId: "t" })];
      const kept = await save(store, talk, "an innocent log");
      const leave = async ({ id }: Conversation, name: string, content: string, hoursAgo: number): Promise<void> => {
        const path = join(folder, "lcm-files", String(id), name);
        await mkdir(dirname(path), { recursive: true });
        await writeFile(path, content);
        await utimes(path, new Date(), new Date(Date.now() - hoursAgo * 3_600_000));
      };
      await leave(talk, "file_00000000deadbeef.txt", `it was ${secret}`, 0);
      await leave(talk, `${kept.id}.txt.4711.new`, `half of ${secret}`, 0);
      await leave(talk, "file_00000000deadbee0.bin", "quokka of yore", 2);
      await leave(talk, "file_00000000deadbee1.txt", "wombat of today", 0);
      await leave(talk, "notes.txt", `mine: the numbat`, 2);
      await leave(other, "file_00000000deadbee2.png", "the other quoll", 2);
      const orphans = (await inspect(store, null)).filter(({ code }) => code === "file_orphaned");
      assert.deepEqual(
        orphans.map(({ conversation, severity, message }) => [conversation, severity, /\d+/.exec(message)?.[0]]),
        [
          [talk.id, "info", "4"],
          [other.id, "info", "1"],
        ],
      );
      const target = { kind: "secret", text: secret } as const;
      assert.deepEqual((await store.planForget(other.id, target)).files, []);
      const plan = await store.planForget(talk.id, target);
      assert.deepEqual(plan.files, ["file_00000000deadbeef", kept.id].toSorted());
      assert.deepEqual(await store.forget(talk.id, plan), { kind: "written", removed: 2 });
      for (const word of [secret, "quokka"]) assert.ok(!(await isKept(subject, folder, word)), word);
      for (const word of ["wombat", "numbat", "quoll"]) assert.ok(await isKept(subject, folder, word), word);
      assert.equal(await store.fileContent(kept.id), "an innocent log");
      assert.deepEqual((await store.planForget(null, target)).files, []);
      await store.forget(null, await store.planForget(null, target));
      assert.ok(!(await isKept(subject, folder, "quoll")), "all folders are searched when no conversation is given");
    });

    it("a plan that names other files than would go is stale", async ({ store, talk }) => {
      const file = await save(store, talk, "shared soon");
      const { messages } = await append(store, talk, saying("k1", [file]));
      const plan = await store.planForget(talk.id, { kind: "message", id: messages[0] ?? assert.fail() });
      await append(store, talk, saying("k2", [file]));
      assert.equal((await store.forget(talk.id, plan)).kind, "stale");
      await refuses("not_found", () => store.planForget(null, { kind: "message", id: 987_654 as never }));
      assert.deepEqual(await restored(store, talk.id), [said("shared soon"), said("shared soon")]);
    });
  });
}
