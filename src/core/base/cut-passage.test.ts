import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { cutPassage, showParts } from "./cut-passage.ts";
import { estimateTokens } from "./tokens.ts";

const story =
  "The ferry left at nine. Nobody had told the keeper. He ran down to the pier with his lamp. " +
  "The rope was already off the bollard. A gull took his hat. He waved until the light was gone. It was the last ferry of the year.";

const shown = (text: string, match: string, tokens: number): string | null => {
  const from = text.indexOf(match);
  const range = cutPassage(text, { from, to: from + match.length }, tokens);
  return range && showParts(text, [range]);
};

describe("a passage", () => {
  it("is the whole text if that fits", () => {
    assert.equal(shown(`\n ${story}\n\n`, "lamp", 200), story);
  });

  it("does not end with the number of an item", () => {
    const text = `It takes these steps:\n1. Fold the letter twice\n2. ${"Close the envelope and ".repeat(9)}`;
    for (let tokens = 14; tokens < 40; tokens++) {
      const range = cutPassage(text, { from: 0, to: 2 }, tokens);
      assert.doesNotMatch(text.slice(range?.from, range?.to), /\d\.$/);
    }
  });

  it("begins and ends with a sentence or a line", () => {
    assert.equal(shown(story, "gull", 22), "…A gull took his hat. He waved until the light was gone.…");
    const log = ["compile", "link", "open /tmp/a: no such file or directory", "clean", "exit"].join("\n").repeat(20);
    assert.match(
      shown(log, "no such file", 20) ?? "",
      /^…?(?:[\w ]+\n)*open \/tmp\/a: no such file or directory(?:\n\w+)*…$/,
    );
  });

  it("begins with the text if the match is near its beginning", () => {
    assert.match(shown(story, "keeper", 30) ?? "", /^The ferry left at nine\. Nobody had told the keeper\./);
  });

  it("shows the beginning of a match that is too long", () => {
    const long = "x".repeat(4_000);
    assert.match(shown(`before ${long} after`, long, 20) ?? "", /^…x+…$/);
  });

  it("never takes more tokens than allowed, contains the start of the match, and is cut from the text", () => {
    const words = fc.array(fc.constantFrom("ferry", "pier.", "gull\n", "ランプ", "👩‍🚀", "x".repeat(50), "a?"), {
      maxLength: 200,
    });
    fc.assert(
      fc.property(words, fc.nat(), fc.nat(60), fc.integer({ min: 1, max: 120 }), (all, start, length, tokens) => {
        const text = all.join(" ");
        const from = start % (text.length + 1);
        const range = cutPassage(text, { from, to: Math.min(text.length, from + length) }, tokens);
        if (range === null) return;
        const part = showParts(text, [range]);
        assert.ok(estimateTokens(part) <= tokens);
        assert.ok(part.isWellFormed());
        const bare = (piece: string): string => piece.replace(/\s+/g, " ").trim();
        assert.ok(bare(text).includes(bare(part.replace(/^…|…$/g, ""))));
      }),
    );
  });
});
