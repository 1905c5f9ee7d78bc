/** Tokens of BERT-like models: the same as the models' own tokenizers give. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createTokenizer } from "./wordpiece.ts";

const vocabulary = "[PAD] [UNK] [CLS] [SEP] the mig ##ration fail ##ed , cafe 東 京 ! ##s".split(" ");
const inVocab = createTokenizer(vocabulary.join("\n"), "vocab.txt");
const inJson = (more: object = {}): string =>
  JSON.stringify({
    normalizer: { type: "BertNormalizer", lowercase: true },
    model: { type: "WordPiece", vocab: Object.fromEntries(vocabulary.map((token, id) => [token, id])), ...more },
  });

const words = (ids: readonly number[]): string => ids.map((id) => vocabulary[id]).join(" ");

describe("tokens of a text", () => {
  for (const [file, tokenize] of [
    ["vocab.txt", inVocab],
    ["tokenizer.json", createTokenizer(inJson(), "tokenizer.json")],
  ] as const) {
    it(`are the longest pieces that ${file} knows, between the opening and the closing one`, () => {
      assert.equal(words(tokenize("The migrations failed", 20)), "[CLS] the mig ##ration ##s fail ##ed [SEP]");
      assert.equal(words(tokenize("fail,failed!", 20)), "[CLS] fail , fail ##ed ! [SEP]");
      assert.equal(words(tokenize("Café\u0000  東京", 20)), "[CLS] cafe 東 京 [SEP]");
    });
  }

  it("are unknown if a word has a piece that is not known, or is too long to be a word", () => {
    assert.equal(words(inVocab("migrate the", 20)), "[CLS] [UNK] the [SEP]");
    assert.equal(words(inVocab("mig".padEnd(101, "s"), 20)), "[CLS] [UNK] [SEP]");
  });

  it("are cut to the number that is asked for, and an empty text has two", () => {
    assert.equal(words(inVocab("the ".repeat(10_000), 5)), "[CLS] the the the [SEP]");
    assert.equal(words(inVocab("", 5)), "[CLS] [SEP]");
  });
});

describe("a tokenizer of another kind", () => {
  it("is refused with what to do", () => {
    assert.throws(() => createTokenizer(inJson({ type: "Unigram" }), "tokenizer.json"), {
      code: "invalid",
      message: "tokenizer.json is of Unigram, but only WordPiece is supported",
    });
    assert.throws(() => createTokenizer("no json", "tokenizer.json"), { code: "invalid" });
    assert.throws(() => createTokenizer("a\nb", "vocab.txt"), { message: /lacks the token \[UNK\]/ });
  });
});
