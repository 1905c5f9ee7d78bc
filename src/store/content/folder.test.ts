/** Contents on the disk, where something else lies in their place. The contract holds the rest. */

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { makeScratch } from "../../../test/support/scratch.ts";
import { hasContent, holdsAny, sizeOfContent } from "./folder.ts";

const folder = makeScratch("files");
mkdirSync(join(folder, "1", "folder.txt"), { recursive: true });
writeFileSync(join(folder, "1", "file.txt"), "the heron");
mkdirSync(join(folder, "1", "deep"));
writeFileSync(join(folder, "1", "deep", "file.txt"), "deep");

describe("a content", () => {
  it("is there if it is a file inside the folder, and nothing else", async () => {
    assert.equal(await sizeOfContent(folder, { storageUri: "1/file.txt" }), 9);
    assert.equal(await sizeOfContent(folder, { storageUri: join(folder, "1", "deep", "file.txt") }), 4);
    for (const storageUri of ["1/folder.txt", "1/none.txt", "../../etc/hostname"])
      assert.equal(await hasContent(folder, { storageUri }), false, storageUri);
  });
});

describe("what lies in the folder without a row", () => {
  it("holds a word, in whichever of its forms it is written", async () => {
    const orphan = { id: "file_0123456789abcdef", storageUri: "1/file.txt", isAbandoned: true } as const;
    assert.equal(await holdsAny(folder, orphan, ["osprey", "heron"]), true);
    assert.equal(await holdsAny(folder, orphan, ["osprey"]), false);
  });
});
