/** Contract: searching inside stored files, and reporting what could not be read. Ranking is tested elsewhere. */

import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe } from "node:test";
import type { ConversationId, StoredFile } from "../../src/core/model/types.ts";
import type { NewFile, SearchHit, SearchRequest, Store } from "../../src/core/model/store.ts";
import { ask as askAnything, at, itOn, newFile, onTalk, refuses, tooLargeForATable } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";
import { sql, type Statement } from "../../src/store/script.ts";

const modes = ["regex", "full_text"] as const;

const ask = (pattern: string, more: Partial<SearchRequest> = {}): SearchRequest =>
  askAnything(pattern, { scope: "files", ...more });

const save = async (
  store: Store,
  conversation: ConversationId,
  content: string,
  name: string | null = null,
  more: Partial<NewFile> = {},
) => await store.saveFile(newFile(conversation, content, { name, exploration: "pangolin", ...more }));

/** What the port hides: where content is stored. */
const setStorage = (uri: string, { id }: StoredFile): Statement =>
  sql`UPDATE large_files SET storage_uri = ${uri} WHERE file_id = ${id}`;

const fileHits = async (store: Store, request: SearchRequest) =>
  (await store.search(request)).hits.map((hit) => (hit.kind === "file" ? hit : assert.fail(hit.kind)));
const lines = async (store: Store, request: SearchRequest): Promise<readonly number[]> =>
  (await fileHits(store, request)).map(({ line }) => line);
const names = async (store: Store, request: SearchRequest): Promise<readonly (string | null)[]> =>
  (await fileHits(store, request)).map(({ name }) => name);

export function testFileSearch(subject: StoreUnderTest): void {
  const it = itOn(subject, onTalk);

  describe("searching inside files", () => {
    it("a hit names the file, the line and its text", async ({ store, id }) => {
      const log = await save(store, id, "starting\nlistening on port 8080\nready", "server.log");
      await save(store, id, "nothing of the kind");
      for (const mode of modes) {
        const { hits, caveats } = await store.search(ask("listening", { mode }));
        assert.deepEqual(hits, [
          {
            kind: "file",
            id: log.id,
            name: "server.log",
            line: 2,
            conversation: id,
            snippet: "listening on port 8080",
            at: log.createdAt,
            score: 0,
          } satisfies SearchHit,
        ]);
        assert.deepEqual(caveats, []);
        assert.deepEqual(await store.search(ask("aardvark", { mode })), { hits: [], caveats: [] });
      }
      const [best] = (await store.search(ask("which port is it listening on?", { sort: "hybrid" }))).hits;
      assert.ok(best?.kind === "file" && best.id === log.id && best.score > 0);
    });

    it("finds two-character CJK words, emoji, identifiers, word forms, and either case as the pattern requires", async (scene) => {
      const { store, id } = scene;
      await save(store, id, "first\n我们用数据库\nshipped 🎉\ngetUserName()\nDatabases MIGRATED twice\nÜberraschung");
      const at = async (pattern: string, mode: SearchRequest["mode"] = "full_text") =>
        await lines(store, ask(pattern, { mode }));
      for (const [pattern, line] of [
        ["数据", 2],
        ["🎉", 3],
        ["user", 4],
        ["migrating", 5],
        ["uberraschung", 6],
      ] as const)
        assert.deepEqual(await at(pattern), [line], pattern);
      assert.deepEqual(await at("数据", "regex"), [2]);
      assert.deepEqual(await at("migrated", "regex"), [5]);
      assert.deepEqual(await at("Migrated", "regex"), []);
      assert.deepEqual(await at("^first$|überr", "regex"), [1, 6]);
    });

    it("searches the given conversations, or all that are not hidden, and never binary files", async ({ store }) => {
      const [north, south] = [await store.open({ sessionId: "n" }), await store.open({ sessionId: "s" })];
      await save(store, north.id, "a quokka", "north");
      await save(store, south.id, "a quokka", "south");
      const bytes = { content: Buffer.from("a quokka").toString("base64"), encoding: "base64" } as const;
      await store.saveFile({ conversation: north.id, name: "bytes", mimeType: null, exploration: null, ...bytes });
      for (const mode of modes) {
        const found = async (conversations?: readonly ConversationId[]) =>
          await names(store, ask("quokka", { mode, ...(conversations && { conversations }) }));
        assert.deepEqual(new Set(await found()), new Set(["north", "south"]));
        assert.deepEqual(await found([north.id]), ["north"]);
        assert.deepEqual(await found([]), []);
        assert.deepEqual((await store.search(ask(bytes.content.slice(0, -1), { mode }))).hits, []);
        await store.setHidden(north.id, true);
        assert.deepEqual(await found(), ["south"]);
        assert.deepEqual(await found([north.id]), ["north"]);
        await store.setHidden(north.id, false);
      }
    });

    it("newest file first, since inclusive, before exclusive", async ({ store, id }) => {
      for (const day of ["02", "03", "01"]) {
        const message = { key: day, at: at(`2026-02-${day}T12:00:00.000Z`) };
        await save(store, id, `a quokka on ${day}`, day, { message });
      }
      for (const mode of modes) {
        assert.deepEqual(await names(store, ask("quokka", { mode })), ["03", "02", "01"]);
        const [since, before] = [at("2026-02-02T12:00:00.000Z"), at("2026-02-03T12:00:00.000Z")];
        assert.deepEqual(await names(store, ask("quokka", { mode, since })), ["03", "02"]);
        assert.deepEqual(await names(store, ask("quokka", { mode, before })), ["02", "01"]);
        assert.deepEqual(await names(store, ask("quokka", { mode, since, before })), ["02"]);
      }
    });
  });

  describe('guarantee 22, files: no false "no matches"', () => {
    it(
      "counts an unreadable file, and searches the others",
      async ({ store, folder, id }) => {
        const gone = await save(store, id, `the first quokka${tooLargeForATable}`, "gone");
        await save(store, id, "the other quokka", "there");
        await rm(join(folder, "lcm-files", gone.storageUri));
        for (const mode of modes) {
          assert.deepEqual(await names(store, ask("quokka", { mode })), ["there"]);
          for (const pattern of ["quokka", "wombat"])
            assert.deepEqual((await store.search(ask(pattern, { mode }))).caveats, [{ kind: "unreadable", files: 1 }]);
        }
      },
      ["missing_file"],
    );

    it("reports that there are more hits than requested", async ({ store, id }) => {
      await save(
        store,
        id,
        Array.from({ length: 9 }, (_, index) => `quokka ${index}\n${"x".repeat(1_500)}\n`).join(""),
      );
      for (const mode of modes) {
        const { hits, caveats } = await store.search(ask("quokka", { mode, limit: 8 }));
        assert.deepEqual([hits.length, caveats], [8, [{ kind: "limit", limit: 8 }]], mode);
        assert.deepEqual((await store.search(ask("quokka", { mode, limit: 9 }))).caveats, []);
      }
    });

    it("gives the reason for an invalid pattern and a limit out of bounds, even without a file", async (scene) => {
      const { store } = scene;
      await refuses("invalid", () => store.search(ask("(unclosed", { mode: "regex" })));
      await refuses("invalid", () => store.search(ask("...")));
      for (const limit of [0, 201, 1.5]) await refuses("invalid", () => store.search(ask("quokka", { limit })));
      await refuses("unavailable", () => store.search(ask("quokka"), { signal: AbortSignal.abort() }));
    });

    it("reports that a slow expression was stopped; the next search works", async (scene) => {
      const { store, id } = scene;
      for (const name of ["one", "two", "three"]) await save(store, id, `${name} ${"a".repeat(60)}!`, name);
      const { hits, caveats } = await store.search(ask("(a+)+$", { mode: "regex" }), { timeoutMs: 150 });
      assert.deepEqual([hits, caveats.map(({ kind }) => kind)], [[], ["time"]]);
      assert.deepEqual(await names(store, ask("two", { mode: "regex" })), ["two"]);
    });
  });

  describe("guarantee 26, searching: files stay inside their folder", () => {
    it("a row that points outside reads nothing, and counts as unreadable", async ({ store, folder, path, id }) => {
      const file = await save(store, id, "an innocent text");
      const outside = join(folder, "private.txt");
      await writeFile(outside, "the secret quokka");
      for (const uri of [
        "../private.txt",
        "1/../../private.txt",
        outside,
        `file://${outside}`,
        "/etc/passwd",
        "C:\\..\\..",
      ]) {
        await subject.raw(path, function* () {
          yield setStorage(uri, file);
        });
        for (const [mode, pattern] of [
          ["regex", "."],
          ["full_text", "quokka root"],
        ] as const)
          assert.deepEqual(
            await store.search(ask(pattern, { mode })),
            { hits: [], caveats: [{ kind: "unreadable", files: 1 }] },
            uri,
          );
      }
    });
  });
}
