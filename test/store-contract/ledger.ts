/** Contract: what is stored beside conversations: files, grants, the journal, the status. */

import assert from "node:assert/strict";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe } from "node:test";
import { isFileId } from "../../src/core/model/types.ts";
import type { ConversationId, FileId, GrantId } from "../../src/core/model/types.ts";
import { createHost } from "../support/scripted-host.ts";
import {
  at,
  dissolveAt,
  filesBelow,
  foldPlaces,
  itOn,
  newFile,
  nowhere,
  onFile,
  onTalk,
  refuses,
  say,
  summary,
  tooLargeForATable,
} from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";
import { assertPrivate } from "../support/platform.ts";

const text = (conversation: ConversationId, content: string, name: string | null = "notes.txt") =>
  newFile(conversation, content, { name, mimeType: "text/plain", exploration: "three lines" });

const later = at("2999-01-01T00:00:00.000Z");

export function testLedger(subject: StoreUnderTest): void {
  const it = itOn(subject, onTalk);

  describe("stored files", () => {
    it("read back unchanged, with their metadata", async ({ store, id }) => {
      const content = "línea\nzwei\n三";
      const file = await store.saveFile(text(id, content));
      assert.ok(isFileId(file.id));
      assert.deepEqual(
        [file.name, file.mimeType, file.bytes, file.lines, file.exploration],
        ["notes.txt", "text/plain", Buffer.byteLength(content), 3, "three lines"],
      );
      assert.equal(await store.fileContent(file.id), content);
      assert.deepEqual(await store.file(file.id), file);
      const empty = await store.saveFile(text(id, "", null));
      assert.equal(await store.fileContent(empty.id), "");
      assert.deepEqual(new Set(await store.files(id)), new Set([file, empty]));
      assert.equal((await store.status()).files, 2);
    });

    it("return the requested lines, and no others", async ({ store, id: conversation }) => {
      const { id } = await store.saveFile(text(conversation, "one\r\ntwo\n\nfour\n"));
      const read = async (fromLine: number, toLine?: number, charactersMax = 100) =>
        await store.fileLines(id, { fromLine, charactersMax, ...(toLine === undefined ? {} : { toLine }) });
      assert.deepEqual(await read(1), { text: "one\r\ntwo\n\nfour\n", lines: 5 });
      assert.deepEqual(await read(2, 3), { text: "two\n", lines: 5 });
      assert.deepEqual(await read(1, 1), { text: "one\r", lines: 5 });
      assert.deepEqual(await read(4, 9), { text: "four\n", lines: 5 });
      assert.deepEqual(await read(2, 4, 5), { text: "two\n\n", lines: 5 });
      for (const line of [5, 6]) assert.deepEqual(await read(line), { text: "", lines: 5 });
      const empty = await store.saveFile(text(conversation, "", null));
      assert.deepEqual(await store.fileLines(empty.id, { fromLine: 1, charactersMax: 9 }), { text: "", lines: 0 });
      await refuses("not_found", () => store.fileLines("file_0000000000000000", { fromLine: 1, charactersMax: 9 }));
    });

    it("have the time of the first message that references them and name it; otherwise the time of saving", async (scene) => {
      const { store, id } = scene;
      const [long, then] = [at("2019-05-06T07:08:09.010Z"), at("2024-01-01T00:00:00.000Z")];
      const file = await store.saveFile({ ...text(id, "a log"), message: { key: "k1", at: long } });
      assert.deepEqual([file.createdAt, file.messageKey], [long, "k1"]);
      assert.deepEqual(await store.saveFile({ ...text(id, "a log"), message: { key: "k2", at: then } }), file);
      assert.deepEqual(await store.file(file.id), file);
      const alone = await store.saveFile(text(id, "from nowhere"));
      assert.equal(alone.messageKey, null);
      assert.ok(alone.createdAt > then);
      const beside = ["b", "a", "d", "c"].map((content) => ({
        ...text(id, content),
        message: { key: "k0", at: at("2018-01-01T00:00:00.000Z") },
      }));
      const saved = [];
      for (const each of beside) saved.push(await store.saveFile(each));
      assert.deepEqual(await store.files(id), [...saved, file, alone], "by time, then in order of arrival");
    });

    it("bytes read back unchanged, and only canonical base64 is accepted", async (scene) => {
      const { store, folder, id } = scene;
      const bytes = Buffer.from(Array.from({ length: 1_000 }, (_, index) => (index * 31) % 256));
      const picture = {
        ...text(id, bytes.toString("base64"), null),
        mimeType: "image/png",
        encoding: "base64",
      } as const;
      const file = await store.saveFile(picture);
      assert.deepEqual([file.encoding, file.bytes, file.lines], ["base64", 1_000, null]);
      assert.match(file.storageUri, /\.png$/);
      assert.equal(await store.fileContent(file.id), picture.content);
      const [path] = filesBelow(folder).filter((each) => each.includes(file.id));
      assert.deepEqual(await readFile(path ?? ""), bytes);
      for (const content of ["a", "ab==", "abc", "YWJj\n", " YWJj", "YW-_", "YQ", "YR==", "not base64!"]) {
        await refuses("invalid", () => store.saveFile({ ...picture, content }));
      }
      await refuses("invalid", () => store.saveFile(text(id, "half a \ud83d character")));
      assert.equal((await store.files(id)).length, 1);
    });

    it("the same content in the same conversation is one file, however often and however concurrently it is stored", async (scene) => {
      const { store, folder, path } = scene;
      const { id } = await store.open({ sessionId: "a" });
      const other = await store.open({ sessionId: "b" });
      const file = await store.saveFile(text(id, "aGVsbG8="));
      assert.deepEqual(await store.saveFile({ ...text(id, "aGVsbG8=", "other.md"), exploration: "else" }), file);
      assert.notEqual((await store.saveFile({ ...text(id, "aGVsbG8="), encoding: "base64" })).id, file.id);
      assert.notEqual((await store.saveFile(text(other.id, "aGVsbG8="))).id, file.id);
      await onFile(subject, path, async (second) => {
        const racing = [store, second, store, second].map((each) => each.saveFile(text(id, "at once")));
        assert.equal(new Set((await Promise.all(racing)).map((each) => each.id)).size, 1);
      });
      assert.equal((await store.files(id)).length, 3);
      const stored = filesBelow(folder).filter((each) => /file_[0-9a-f]{16}/.test(each));
      assert.equal(stored.length, 4, stored.join());
    });

    it(
      "a file whose content was lost is whole again once the same content is stored",
      async ({ store, folder, id }) => {
        const file = await store.saveFile(text(id, "lost and found"));
        const [path] = filesBelow(folder).filter((each) => each.includes(file.id));
        await rm(path ?? "");
        await refuses("unavailable", () => store.fileContent(file.id));
        assert.deepEqual(await store.saveFile(text(id, "lost and found")), file);
        assert.equal(await store.fileContent(file.id), "lost and found");
      },
      ["missing_file"],
    );

    it("are named after what they are", async ({ store, id }) => {
      const endingOf = async (name: string | null, mimeType: string | null, encoding: "utf8" | "base64" = "utf8") => {
        const content = encoding === "utf8" ? `${name} ${mimeType}` : Buffer.from(`${mimeType}`).toString("base64");
        const { storageUri } = await store.saveFile({ ...text(id, content, name), mimeType, encoding });
        return storageUri.split(".").at(-1);
      };
      assert.equal(await endingOf("Report.FINAL.CSV", "text/plain"), "csv");
      assert.equal(await endingOf(null, "application/json; charset=utf-8"), "json");
      assert.equal(await endingOf("no ending", "text/markdown"), "md");
      assert.equal(await endingOf(null, "image/jpeg", "base64"), "jpg");
      assert.equal(await endingOf(null, "application/x-unheard-of"), "txt");
      assert.equal(await endingOf(null, null, "base64"), "bin");
    });

    it("a disk error is reported as unavailable, and leaves neither a row nor half a file", async (scene) => {
      const { store, folder, id } = scene;
      await writeFile(join(folder, "lcm-files"), "in the way");
      await refuses("unavailable", () => store.saveFile(text(id, tooLargeForATable)));
      assert.deepEqual(await store.files(id), []);
      assert.ok(!filesBelow(folder).some((each) => each.endsWith(".new")));
    });

    it("an unknown file is not found, and a file without a conversation is not stored", async (scene) => {
      const { store, folder } = scene;
      assert.equal(await store.file("file_0000000000000000"), null);
      await refuses("not_found", () => store.fileContent("file_0000000000000000"));
      await refuses("not_found", () => store.saveFile(text(nowhere, "astray")));
      assert.deepEqual(
        filesBelow(folder).filter((path) => /file_[0-9a-f]{16}/.test(path)),
        [],
      );
    });
  });

  describe("guarantee 26: files stay inside their folder", () => {
    it("private to the user, whatever the name is", async ({ store, folder, id }) => {
      for (const name of [
        "../../escape.txt",
        "/etc/passwd",
        "a/b/c.md",
        "nul\0.txt",
        ".",
        "..",
        "x".repeat(5_000),
        "C:\\boot.ini",
      ]) {
        const file = await store.saveFile(text(id, `named ${name}`, name));
        assert.equal(await store.fileContent(file.id), `named ${name}`);
      }
      const outside = (await readdir(dirname(folder))).filter((name) => /escape|passwd|boot/.test(name));
      assert.deepEqual(outside, []);
      const stored = filesBelow(folder).filter((path) => /file_[0-9a-f]{16}/.test(path));
      assert.equal(stored.length, 8);
      for (const path of stored) {
        assertPrivate(path);
        assertPrivate(dirname(path), 0o700);
        assertPrivate(dirname(dirname(path)), 0o700);
      }
    });

    it("an id is never a path", async ({ store, folder }) => {
      await writeFile(join(folder, "private.txt"), "not for reading");
      for (const id of [
        "../private.txt",
        "file_../../private",
        join(folder, "private.txt"),
        "file_0/../../private.txt",
        "",
      ]) {
        await refuses("not_found", () => store.fileContent(id as FileId));
        assert.equal(await store.file(id as FileId), null);
      }
    });
  });

  describe("guarantee 25, store part: a grant reads what it names, so much, until then", () => {
    it("spending counts down, and never beyond the cap", async ({ store, id }) => {
      const grant = await store.issueGrant({ conversations: [id], tokenCap: 100, expiresAt: later, parent: null });
      assert.match(grant.id, /^grant_[0-9a-f]{16}$/);
      assert.deepEqual(await store.spendGrant(grant.id, id, 60), { kind: "granted", remaining: 40 });
      assert.deepEqual(await store.spendGrant(grant.id, id, 41), { kind: "refused", reason: "exhausted" });
      assert.deepEqual(await store.spendGrant(grant.id, id, 40), { kind: "granted", remaining: 0 });
      assert.deepEqual(await store.spendGrant(grant.id, id, 0), { kind: "refused", reason: "exhausted" });
      assert.deepEqual(await store.grant(grant.id), { ...grant, tokensUsed: 100 });
      for (const tokens of [-50, Number.NaN, 0.5, Number.POSITIVE_INFINITY])
        await refuses("invalid", () => store.spendGrant(grant.id, id, tokens));
      assert.equal((await store.grant(grant.id))?.tokensUsed, 100);
    });

    it("an unknown, expired or revoked grant, or one of other conversations, reads nothing", async ({ store }) => {
      const mine = await store.open({ sessionId: "mine" });
      const other = await store.open({ sessionId: "other" });
      const refused = async (id: GrantId, conversation = mine.id) => {
        const spent = await store.spendGrant(id, conversation, 1);
        return spent.kind === "refused" ? spent.reason : "granted";
      };
      assert.equal(await refused("grant_0000000000000000"), "unknown");
      assert.equal(await store.grant("grant_0000000000000000"), null);
      const wanted = { conversations: [mine.id], tokenCap: 10, expiresAt: later, parent: null };
      const over = await store.issueGrant({ ...wanted, expiresAt: at("2001-01-01T00:00:00.000Z") });
      assert.equal(await refused(over.id), "expired");
      const good = await store.issueGrant(wanted);
      assert.equal(await refused(good.id, other.id), "foreign");
      assert.equal(await refused(good.id), "granted");
      await store.revokeGrant(good.id);
      assert.equal(await refused(good.id), "revoked");
      const { revokedAt } = (await store.grant(good.id)) ?? {};
      await store.revokeGrant(good.id);
      assert.equal((await store.grant(good.id))?.revokedAt, revokedAt);
      assert.equal(await store.sweepGrants(), 1);
      assert.equal(await refused(over.id), "revoked");
      assert.equal(await store.sweepGrants(), 0);
    });

    it("a child is never wider than its parent, in conversations, tokens or time, and ends with it", async (scene) => {
      const { store } = scene;
      const [mine, other] = [await store.open({ sessionId: "a" }), await store.open({ sessionId: "b" })];
      const parent = await store.issueGrant({
        conversations: [mine.id],
        tokenCap: 100,
        expiresAt: at("2998-01-01T00:00:00.000Z"),
        parent: null,
      });
      const wanted = { conversations: [mine.id], tokenCap: 500, expiresAt: later, parent: parent.id };
      await refuses("denied", () => store.issueGrant({ ...wanted, conversations: [mine.id, other.id] }));
      await refuses("denied", () => store.issueGrant({ ...wanted, parent: "grant_0000000000000000" }));
      await store.spendGrant(parent.id, mine.id, 30);
      const child = await store.issueGrant(wanted);
      assert.deepEqual([child.tokenCap, child.expiresAt, child.parent], [70, parent.expiresAt, parent.id]);
      const grandchild = await store.issueGrant({ ...wanted, tokenCap: 60, parent: child.id });
      assert.deepEqual(await store.spendGrant(grandchild.id, mine.id, 50), { kind: "granted", remaining: 10 });
      assert.equal((await store.grant(parent.id))?.tokensUsed, 80);
      await store.spendGrant(parent.id, mine.id, 15);
      assert.deepEqual(await store.spendGrant(grandchild.id, mine.id, 6), { kind: "refused", reason: "exhausted" });
      await store.revokeGrant(parent.id);
      assert.deepEqual(await store.spendGrant(grandchild.id, mine.id, 1), { kind: "refused", reason: "revoked" });
      assert.notEqual((await store.grant(grandchild.id))?.revokedAt, null);
      await refuses("denied", () => store.issueGrant(wanted));
    });
  });

  describe("journal and status", () => {
    it("the journal lists operators' changes, newest first, of one conversation or of all", async ({ store }) => {
      const talks = [await store.open({ sessionId: "a" }), await store.open({ sessionId: "b" })];
      for (const [index, talk] of talks.entries()) {
        await say(store, talk, createHost(`h${index}`), "one", "two", "three");
        const leaf = await foldPlaces(store, talk.id, [0, 1], `leaf ${index}`);
        await store.rewrite({ summary: leaf, revision: 0 }, summary(`better ${index}`));
        await dissolveAt(store, talk.id, leaf);
      }
      const operations = async (id: ConversationId | null, limit = 10) =>
        (await store.journal({ ...(id === null ? {} : { conversation: id }), limit })).map(
          ({ operation }) => operation,
        );
      assert.deepEqual(await operations(talks[0]?.id ?? null), ["dissolve", "rewrite"]);
      assert.deepEqual(await operations(null), ["dissolve", "rewrite", "dissolve", "rewrite"]);
      assert.deepEqual(await operations(null, 1), ["dissolve"]);
    });

    it("the status counts what exists, and what waits to be indexed", async ({ store, path, talk, host }) => {
      await say(store, talk, host, "one", "two", "three");
      await foldPlaces(store, talk.id, [0, 1], "leaf");
      const status = await store.status();
      assert.deepEqual(
        { ...status, bytes: status.bytes > 0, schemaVersion: status.schemaVersion > 0 },
        {
          path: subject.shownPath(path),
          schemaVersion: true,
          bytes: true,
          conversations: 1,
          messages: 3,
          summaries: 1,
          belowNormal: { aggressive: 0, extractive: 0, truncated: 0 },
          files: 0,
          unindexed: 4,
          vectors: [],
          embedders: [],
        },
      );
      const [last = assert.fail()] = await store.context(talk.id, { kind: "message" });
      const text = { ...summary("extracted"), tokens: 1, level: "extractive" } as const;
      assert.equal((await store.fold(talk.id, [last], text)).kind, "written");
      assert.equal((await store.status()).belowNormal.extractive, 1);
      assert.equal(await store.index(2), 3);
      assert.equal((await store.status()).unindexed, 3);
      assert.equal(await store.index(100), 0);
      assert.equal(await store.index(100), 0);
      assert.equal((await store.status()).unindexed, 0);
      const integrity = await store.integrity();
      const intact = {
        problems: [],
        dangling: [],
        orphanedRows: {},
        orphanedSearchEntries: 0,
        unchecked: 0,
        exposures: [],
      };
      if (integrity !== undefined) assert.deepEqual(integrity, intact);
    });
  });
}
