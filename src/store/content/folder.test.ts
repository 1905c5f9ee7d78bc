/** What the folder does with files that are not content; the store contract covers the rest. */

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { makeScratch } from "../../../test/support/scratch.ts";
import { openFolder } from "./folder.ts";

const folder = makeScratch("files");
mkdirSync(join(folder, "1", "folder.txt"), { recursive: true });
writeFileSync(join(folder, "1", "file.txt"), "the heron");
mkdirSync(join(folder, "1", "deep"));
writeFileSync(join(folder, "1", "deep", "file.txt"), "deep");
const content = openFolder(folder);

describe("content in a folder", () => {
  it("exists if it is a file inside the folder, and nothing else", async () => {
    assert.equal((await content.facts("1/file.txt"))?.bytes, 9);
    assert.equal((await content.facts(join(folder, "1", "deep", "file.txt")))?.bytes, 4);
    for (const storageUri of ["1/folder.txt", "1/none.txt", "../../etc/hostname"])
      assert.equal(await content.facts(storageUri), null, storageUri);
  });

  it("is searched for any of several texts", async () => {
    assert.equal(await content.contains("1/file.txt", ["osprey", "heron"]), true);
    assert.equal(await content.contains("1/file.txt", ["osprey"]), false);
  });
});
