import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { cutToTokens, readCitations } from "./citations.ts";
import { messageIdOf } from "../model/types.ts";
import type { ConversationId } from "../model/types.ts";
import { estimateTokens } from "../base/tokens.ts";

const leaf = "sum_0123456789abcdef";
const handedOut = {
  summaries: new Set([leaf] as const),
  messages: new Set([4, 42].map((seq) => messageIdOf(1 as ConversationId, seq))),
  texts: ["select sum_2026 from totals"],
};
const textOf = (answer: string): string => readCitations(answer, handedOut).text;

describe("citations", () => {
  it("list what was read, each once, in order", () => {
    const { text, summaries, messages } = readCitations(
      "At nine [msg_1-42]. So says the plan [sum_0123456789abcdef, msg_1-42, msg_1-4].",
      handedOut,
    );
    assert.equal(text, "At nine [msg_1-42]. So says the plan [sum_0123456789abcdef, msg_1-42, msg_1-4].");
    assert.deepEqual([summaries, messages], [[leaf], [42, 4].map((seq) => messageIdOf(1 as ConversationId, seq))]);
  });

  it("omit made-up ids, which are removed from the text", () => {
    const { summaries, messages } = readCitations("[sum_ffffffffffffffff] [msg_1-424] [sum_abc123]", handedOut);
    assert.deepEqual([summaries, messages], [[], []]);
    assert.equal(textOf("At nine [sum_ffffffffffffffff]."), "At nine.");
    assert.equal(textOf("At nine [msg_1-7, sum_abc123]."), "At nine.");
    assert.equal(textOf("At nine [msg_1-7, msg_1-42]."), "At nine [msg_1-42].");
    assert.equal(textOf("At nine [msg_1-42; msg_1-7]."), "At nine [msg_1-42].");
    assert.equal(textOf("At nine (`msg_1-7` and **msg_1-42**)."), "At nine (**msg_1-42**).");
    assert.equal(textOf("msg_1-7 says nine"), "says nine");
  });

  it("are removed without touching the rest, which may be code", () => {
    for (const [said, read] of [
      [
        "The call `parse()` gave `[]` [msg_1-42] and `main()` too [msg_1-999].",
        "The call `parse()` gave `[]` [msg_1-42] and `main()` too.",
      ],
      ["```py\nx = []\nmain()\n```\n[msg_1-99]", "```py\nx = []\nmain()\n```"],
      ["- [ ] open task [msg_1-42]\n- [x] done (msg_1-777)", "- [ ] open task [msg_1-42]\n- [x] done"],
      ["See the command msg_1-999 for it [msg_1-42].", "See the command for it [msg_1-42]."],
      ["It is in Poland msg_1-999.", "It is in Poland."],
      ["So say msg_1-42 and msg_1-999.", "So say msg_1-42."],
      ["(see the plan, msg_1-999)", "(see the plan)"],
    ] as const)
      assert.equal(textOf(said), read);
  });

  it("do not include other words that look like an id", () => {
    assert.equal(textOf("The column sum_2026 of sum_total"), "The column sum_2026 of sum_total");
    assert.equal(textOf("sum_2027 is not in it"), "is not in it");
  });
});

describe("cutting an answer", () => {
  it("does not change an answer that fits", () => {
    assert.deepEqual(cutToTokens("Short.", 10), { text: "Short.", isCut: false });
  });

  it("ends with a sentence or line if one is near", () => {
    const sentences = "The first thing was said. The second thing was said. The third thing was said.";
    assert.deepEqual(cutToTokens(sentences, 15), {
      text: "The first thing was said. The second thing was said. …",
      isCut: true,
    });
    assert.equal(
      cutToTokens("one line of words\nanother line of words\nand more of them", 10).text,
      "one line of words\nanother line of words …",
    );
    assert.equal(cutToTokens("第一件事已经说过了。第二件事也已经说过了。第三件事还没有说。", 16).text.at(-3), "。");
  });

  it("keeps every sentence that fits, with its punctuation", () => {
    const sentences = Array.from({ length: 12 }, (_, at) => `Then ${"word ".repeat(at)}was said.`);
    const whole = sentences.join(" ");
    for (let maxTokens = 12; maxTokens < estimateTokens(whole); maxTokens++) {
      const fitting = sentences
        .map((_, at) => `${sentences.slice(0, at + 1).join(" ")} …`)
        .findLast((begun) => estimateTokens(begun) <= maxTokens);
      const { text } = cutToTokens(whole, maxTokens);
      assert.ok(text.length >= (fitting?.length ?? 0), `${maxTokens} tokens: ${text}`);
    }
  });

  it("stays within the limit, and never splits a character or an id", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 400 }),
        fc.integer({ min: 3, max: 60 }),
        (text, maxTokens) => {
          const { text: cut, isCut } = cutToTokens(text.toWellFormed(), maxTokens);
          assert.ok(cut.isWellFormed());
          assert.ok(!isCut || estimateTokens(cut) <= maxTokens);
        },
      ),
    );
    assert.equal(cutToTokens("see sum_0123456789abcdef for the rest of it", 8).text, "see …");
  });
});
