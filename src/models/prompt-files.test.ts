import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { builtInTemplates } from "../core/prompts/summary.ts";
import { makeScratch } from "../../test/support/scratch.ts";
import { loadTemplates } from "./prompt-files.ts";

describe("a user's prompt templates", () => {
  it("replace the built-in ones of the same name", async () => {
    const dir = makeScratch("templates");
    const path = join(dir, "condensed-d2.txt");
    writeFileSync(path, "In {targetTokens} tokens, please: {conversationSegment}");
    const { templates, sources } = await loadTemplates(dir);
    assert.equal(templates["condensed-d2"], "In {targetTokens} tokens, please: {conversationSegment}");
    assert.deepEqual({ ...templates, "condensed-d2": builtInTemplates["condensed-d2"] }, builtInTemplates);
    const builtIn = "built-in";
    assert.deepEqual(sources, {
      leaf: builtIn,
      "condensed-d1": builtIn,
      "condensed-d2": path,
      "condensed-d3": builtIn,
    });
  });

  it("may be missing, with their folder", async () => {
    assert.deepEqual((await loadTemplates(join(makeScratch("templates"), "none"))).templates, builtInTemplates);
  });

  it("that use unknown placeholders, or are not files, are reported, and the others are used", async () => {
    const dir = makeScratch("templates");
    writeFileSync(join(dir, "leaf.txt"), "{conversationSegment} {mood}");
    mkdirSync(join(dir, "condensed-d1.txt"));
    writeFileSync(join(dir, "condensed-d2.txt"), "Mine: {conversationSegment}");
    const { templates, sources, problems } = await loadTemplates(dir);
    assert.deepEqual([...problems.keys()], ["leaf", "condensed-d1"]);
    assert.match(problems.get("leaf")?.message ?? "", /leaf\.txt.*\{mood\}/);
    assert.match(problems.get("condensed-d1")?.message ?? "", /condensed-d1\.txt is a folder, not a file$/);
    assert.equal(sources.leaf, join(dir, "leaf.txt"));
    assert.equal(templates["condensed-d2"], "Mine: {conversationSegment}");
  });
});
