import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { builtInTemplates } from "../core/prompts.ts";
import { makeScratch } from "../testing/scratch.ts";
import { loadTemplates } from "./templates.ts";

describe("prompt templates of an operator", () => {
  it("replace the built-in ones that they are named after", async () => {
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

  it("need not be there, nor need their folder", async () => {
    assert.deepEqual((await loadTemplates(join(makeScratch("templates"), "none"))).templates, builtInTemplates);
  });

  it("are refused by name when they ask for what does not exist, or cannot be read", async () => {
    const dir = makeScratch("templates");
    writeFileSync(join(dir, "leaf.txt"), "{conversationSegment} {mood}");
    await assert.rejects(loadTemplates(dir), { code: "invalid", message: /leaf\.txt.*\{mood\}/ });
    const other = makeScratch("templates");
    mkdirSync(join(other, "leaf.txt"));
    await assert.rejects(loadTemplates(other), { code: "denied", message: /leaf\.txt/ });
  });
});
