/** What is in the place of an exported file, and of its draft. */

import assert from "node:assert/strict";
import fs, { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { assertPrivate, withoutLinks } from "../../test/support/platform.ts";
import { makeScratch } from "../../test/support/scratch.ts";
import { asOpenCodeDocument, checkTarget, writeWhole } from "./export-file.ts";

async function* lines(): AsyncGenerator<string> {
  yield await Promise.resolve("one line\n");
}

describe("an exported file", () => {
  it("is private and not written through a link in the place of its draft", { skip: withoutLinks }, async () => {
    const folder = makeScratch("export");
    const [path, elsewhere] = [join(folder, "a.jsonl"), join(folder, "elsewhere")];
    writeFileSync(elsewhere, "mine", { mode: 0o644 });
    for (const draft of [`${path}.partial`, `${path}.${process.pid}.partial`]) symlinkSync(elsewhere, draft);
    await writeWhole(lines(), path);
    assert.deepEqual([readFileSync(path, "utf8"), readFileSync(elsewhere, "utf8")], ["one line\n", "mine"]);
    assertPrivate(path, 0o600);
    assert.ok(!existsSync(`${path}.${process.pid}.partial`));
  });

  it("is synced before it replaces another, so that a power cut leaves one of them whole", async (test) => {
    const path = join(makeScratch("export"), "a.jsonl");
    writeFileSync(path, "the earlier export");
    let found = "";
    test.mock.method(fs, "fsync", (file: number, done: fs.NoParamCallback) => {
      found = readFileSync(path, "utf8");
      fs.fdatasync(file, done);
    });
    await writeWhole(lines(), path);
    assert.deepEqual([found, readFileSync(path, "utf8")], ["the earlier export", "one line\n"]);
  });

  it("replaces only a plain file, also with --force", () => {
    const folder = makeScratch("export");
    assert.throws(() => checkTarget(folder, true), { code: "invalid", message: /not a plain file/ });
    assert.deepEqual(readdirSync(folder), []);
  });
});

describe("a session of OpenCode as a document", () => {
  const message = (id: string) => ({ info: { id }, parts: [] });
  const header = { info: { id: "ses_1", directory: "/x" } };
  const written = async (...chunks: readonly (readonly object[])[]) => {
    async function* text(): AsyncGenerator<string> {
      for (const rows of chunks) yield rows.map((row) => `${JSON.stringify(row)}\n`).join("");
    }
    return JSON.parse((await Array.fromAsync(asOpenCodeDocument(text()))).join("")) as unknown;
  };

  it("has the session's own row, wherever it was stored", async () => {
    const whole = { info: header.info, messages: [message("a"), message("b")] };
    assert.deepEqual(await written([header, message("a"), message("b")]), whole);
    assert.deepEqual(await written([message("a")], [header, message("b")]), whole);
    assert.deepEqual(await written([header]), { info: header.info, messages: [] });
    assert.deepEqual(await written([message("a")]), { messages: [message("a")] });
  });
});
