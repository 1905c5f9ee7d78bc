import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { createReader, scoreTurns, weightOf } from "./rank.ts";
import { parseQuery } from "./query.ts";
import type { Role } from "../../core/model/types.ts";

interface Said {
  readonly conversation: number;
  readonly seq: number;
  readonly text: string;
  readonly name?: string;
  readonly role?: Role;
}

/** What each turn scores; all words of the question tell equally much, and all turns are of one day. */
function scoresOf(question: string, said: readonly Said[]): readonly number[] {
  const query = parseQuery(question);
  const terms = [...query.phrases, ...query.words, ...query.pieces];
  const read = createReader(terms);
  const weights = terms.map(() => weightOf(1, 100));
  const turns = said.map((turn) => ({
    name: null,
    role: "user" as const,
    at: "2026-03-01T10:00:00.000Z",
    ...turn,
    reading: read(turn.text),
  }));
  return scoreTurns(turns, query, { weights, places: [...terms.keys()], meanLength: 5 });
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

  it("of a user counts more if the question is about what its asker said, or about a rule", () => {
    const said = apart("the otter is brown", "the otter is brown");
    const roles = said.map((turn, at) => ({ ...turn, role: at === 0 ? ("user" as const) : ("assistant" as const) }));
    const isFavoured = (question: string): boolean => {
      const [user = 0, assistant = 0] = scoresOf(question, roles);
      return user > assistant;
    };
    for (const question of ["What did I say of the otter?", "Must the otter be brown?", "was sagte ich zum otter"])
      assert.ok(isFavoured(question), question);
    for (const question of ["How brown is the otter?", "the otter of src/my/otter.ts", "otter I/O"])
      assert.ok(!isFavoured(question), question);
  });

  it("matches through the question before it more than through other neighbours", () => {
    const question = "Which instrument does she play?";
    const answer = "A clarinet, and I have done so for many years.";
    const [asked, said] = inARow("Which instrument do you play?", answer);
    assert.ok(asked !== undefined && said !== undefined);
    const [, reply = 0] = scoresOf(question, [asked, said]);
    const [, remark = 0] = scoresOf(question, inARow("Which instrument do you play.", answer));
    const [before = 0] = scoresOf(question, inARow(answer, "Which instrument do you play?"));
    assert.ok(reply > remark && remark > 0 && before === remark, `${reply}, ${remark}, ${before}`);
    const assistant = { ...asked, role: "assistant" } as const;
    assert.equal(scoresOf(question, [assistant, said])[1], remark, "only a user's question has a reply");
  });

  it("is no hit through its neighbours if it says little, or is the result of a tool", () => {
    const question = "Which instrument does she play?";
    const scores = (text: string, role: Role): readonly number[] => {
      const [first, second] = inARow("She plays an instrument, said Ann.", text);
      assert.ok(first !== undefined && second !== undefined);
      return scoresOf(question, [first, { ...second, role }]);
    };
    assert.equal(scores("ok", "user")[1], 0);
    assert.equal(scores("(no output)", "tool")[1], 0);
    assert.equal(scores("It ran for ten minutes and then it wrote nothing at all.", "tool")[1], 0);
    assert.ok((scores("I know that one, it is a fine old clarinet.", "user")[1] ?? 0) > 0);
  });

  it("counts words that stand together as in the query more than words apart", () => {
    const [together = 0, apartWords = 0, turned = 0] = scoresOf(
      "20 work packages",
      apart("there are 20 work packages in it", "20 packages of it need some work", "packages work 20 in it are there"),
    );
    assert.ok(together > apartWords && apartWords === turned, `${together}, ${apartWords}, ${turned}`);
  });

  it("counts less in a long text, even one with the words as often as a short one of its kind", () => {
    const filler = (words: number): string => Array.from({ length: words }, (_, at) => `hay${at}`).join(" ");
    const [short = 0, long = 0] = scoresOf("beaver dam", apart("beaver dam", `beaver dam ${filler(600)} beaver dam`));
    assert.ok(short > 2 * long, `${short}, ${long}`);
  });

  it("counts less as a bare call of a tool than as words about it", () => {
    const call = { conversation: 1, seq: 1, role: "assistant", text: 'grep {"pattern":"beaver dam"}' } as const;
    const [called = 0] = scoresOf("beaver dam", [call]);
    const [said = 0] = scoresOf("beaver dam", [{ ...call, text: 'so grep {"pattern":"beaver dam"}' }]);
    assert.ok(called < 0.7 * said, `${called}, ${said}`);
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
