import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { createReader, scoreTurns, weightOf } from "./rank.ts";
import { parseQuery } from "./query.ts";

interface Said {
  readonly conversation: number;
  readonly seq: number;
  readonly text: string;
  readonly name?: string;
}

/** What each turn scores; all words of the question tell equally much, and all turns are of one day. */
function scoresOf(question: string, said: readonly Said[]): readonly number[] {
  const query = parseQuery(question);
  const terms = [...query.phrases, ...query.words, ...query.pieces];
  const read = createReader(terms);
  const weights = terms.map(() => weightOf(1, 100));
  const turns = said.map((turn) => ({ name: null, at: "2026-03-01T10:00:00.000Z", ...turn, reading: read(turn.text) }));
  return scoreTurns(turns, query, { weights, meanLength: 5 });
}

/** Turns of one conversation, so far apart that they have nothing to do with each other. */
const apart = (...texts: readonly string[]): readonly Said[] =>
  texts.map((text, index) => ({ conversation: 1, seq: 1 + 100 * index, text }));
const inARow = (...texts: readonly string[]): readonly Said[] =>
  texts.map((text, index) => ({ conversation: 1, seq: 1 + index, text }));

describe("a turn and the turns around it", () => {
  it("scores higher next to another word of the question than with its own word twice", () => {
    const question = "Which otter met the beaver?";
    const [beside = 0] = scoresOf(question, inARow("an otter swam by", "the beaver waved"));
    const [twice = 0] = scoresOf(question, inARow("an otter saw an otter"));
    const [besideItself = 0] = scoresOf(question, inARow("an otter swam by", "the otter waved"));
    assert.ok(beside > twice && beside > besideItself, `${beside}, ${twice}, ${besideItself}`);
  });

  it("matches through the question before it more than through other neighbours", () => {
    const question = "Which instrument does she play?";
    const [, reply = 0] = scoresOf(question, inARow("Which instrument do you play?", "A clarinet."));
    const [, remark = 0] = scoresOf(question, inARow("Which instrument do you play.", "A clarinet."));
    const [before = 0] = scoresOf(question, inARow("A clarinet.", "Which instrument do you play?"));
    assert.ok(reply > remark && remark > 0 && before === remark, `${reply}, ${remark}, ${before}`);
  });

  it("gains nothing from turns further away or in another conversation", () => {
    assert.equal(scoresOf("Where is the beaver?", apart("the beaver waved", "an otter"))[1], 0);
    const foreign = { conversation: 2, seq: 2, text: "an otter" };
    assert.equal(scoresOf("Where is the beaver?", [...inARow("the beaver waved"), foreign])[1], 0);
  });

  it("is preferred if the question names its speaker, but not for naming someone", () => {
    const [one, other] = apart("I painted a sunrise", "I painted a sunrise");
    assert.ok(one !== undefined && other !== undefined);
    const [ann = 0, bob = 0] = scoresOf("Has Ann painted the sunrise?", [
      { ...one, name: "Ann" },
      { ...other, name: "Bob" },
    ]);
    assert.ok(ann > bob, `${ann}, ${bob}`);
    const [said = 0, addressed = 0] = scoresOf(
      "Has Ann painted the sunrise?",
      apart("Ann: I painted a sunrise", "Bob: Ann painted a sunrise"),
    );
    assert.ok(said > addressed, `${said}, ${addressed}`);
  });

  it("is preferred if it mentions a time and the question asks when", () => {
    const mentions = ["yesterday", "last week", "on 3 May", "at 17:15", "in 2024", "two days ago", "on Friday"];
    for (const time of mentions) {
      const turns = apart("the beaver waved to us", `the beaver waved ${time}`);
      const preferred = (question: string): number => {
        const [timeless = 0, timed = 0] = scoresOf(question, turns);
        // The texts differ in length by a word or two.
        return timed / timeless / lengthRatio(turns);
      };
      assert.ok(preferred("When did the beaver wave?") > 1.1, time);
      assert.ok(Math.abs(preferred("Who saw the beaver wave?") - 1) < 1e-9, time);
    }
    function lengthRatio(turns: readonly Said[]): number {
      const [timeless = 0, timed = 0] = scoresOf("beaver waved", turns);
      return timed / timeless;
    }
  });

  it("scores lower if it ends with a question", () => {
    const [said = 0, asked = 0] = scoresOf("What did the beaver build?", apart("beaver build it.", "beaver build it?"));
    assert.ok(asked < said && asked > said / 2, `${asked}, ${said}`);
  });

  it("scores the same in any order of turns, and never lower because of a neighbour", () => {
    const word = fc.constantFrom("beaver", "otter", "dam", "hay", "swam", "who?");
    const text = fc.array(word, { minLength: 1, maxLength: 6 }).map((words) => words.join(" "));
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 8 }), fc.nat(), (texts, chosen) => {
        const said = inARow(...texts);
        const question = "Which otter built the beaver a dam?";
        const scores = scoresOf(question, said);
        assert.deepEqual(scoresOf(question, said.toReversed()).toReversed(), scores);
        const left = chosen % said.length;
        const fewer = scoresOf(
          question,
          said.filter((_, at) => at !== left),
        );
        const others = scores.filter((_, at) => at !== left);
        assert.ok(fewer.every((score, at) => score <= (others[at] ?? 0) + 1e-9));
      }),
    );
  });
});
