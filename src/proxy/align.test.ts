import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { align } from "./align.ts";
import { findSession } from "./find-session.ts";
import { addRow, emptyPath } from "./path.ts";

/** `u1 a1 u2`: what a person said begins with u, what the model or a tool said with a. */
const words = (text: string): readonly string[] => (text === "" ? [] : text.split(" "));

const aligned = (
  path: string,
  pieces: string,
  afterSummary: number | null = null,
  summarisedAt: number | null = null,
  isNamed = true,
): string => {
  const { kind, from, parent } = align(words(path), { pieces: words(pieces), afterSummary, summarisedAt, isNamed });
  return `${kind}: ${words(pieces).slice(from).join(" ")} behind ${parent}`;
};

describe("aligning a request with what is stored", () => {
  for (const [what, path, request, expected] of [
    ["a first request", "", "u1", "extension: u1 behind 0"],
    ["a turn more", "u1 a1", "u1 a1 u2", "extension: u2 behind 2"],
    ["the same once more", "u1 a1 u2", "u1 a1 u2", "extension:  behind 3"],
    ["a retry of an earlier request", "u1 a1 u2 a2", "u1 a1 u2", "retry:  behind 3"],
    ["an edited prompt", "u1 a1 u2 a2", "u1 a1 u9", "branch: u9 behind 2"],
    ["words that were said later, too", "u1 a1 u2 a2 go a3", "u1 a1 go", "branch: go behind 2"],
    ["a result that was cleared", "u1 a1 aR a2 u2 a3", "u1 a1 aX a2 u2 a3 u3", "folded by the host: u3 behind 6"],
    [
      "the same words again behind a cleared result",
      "u1 a1 aR a2 ugo a3",
      "u1 a1 aX a2 ugo a3 ugo",
      "folded by the host: ugo behind 6",
    ],
    [
      "an edited prompt behind a cleared result",
      "u1 a1 aR a2 u2 a3 u3 a4",
      "u1 a1 aX a2 u9",
      "folded by the host: u9 behind 4",
    ],
    ["messages that were left out", "u1 a1 u2 a2 u3 a3", "u3 a3 u4", "folded by the host: u4 behind 6"],
    ["another conversation", "u1 a1 u2", "u8 a8 u9", "new start: u8 a8 u9 behind 0"],
  ] as const) {
    it(what, () => assert.equal(aligned(path, request), expected));
  }

  it("a summary of the host's that kept nothing", () => {
    assert.equal(aligned("u1 a1 u2 a2", "u3", 0), "folded by the host: u3 behind 4");
  });

  it("what follows such a summary, once more, and edited", () => {
    assert.equal(aligned("u1 a1 u2 a2", "u2", 0, 4), "folded by the host: u2 behind 4");
    assert.equal(aligned("u1 a1 u2 a2 u3 a3", "u3", 0, 4), "retry:  behind 5");
    assert.equal(aligned("u1 a1 u2 a2 u3 a3", "u9", 0, 4), "folded by the host: u9 behind 4");
    // Nobody knows any more where the summary was asked for.
    assert.equal(aligned("u1 a1 u2 a2 u3 a3", "u3", 0), "retry:  behind 5");
    assert.equal(aligned("u1 a1 u2 a2 u3 a3", "u2", 0), "folded by the host: u2 behind 6");
  });

  it("guarantee 2: prompts that nobody had answered, kept behind such a summary", () => {
    assert.equal(aligned("u1 a1 u2 u3", "u2 u3 u4", 0, 4), "folded by the host: u4 behind 4");
    assert.equal(aligned("u1 a1 u2 u3", "u3 u4", 0, 4), "folded by the host: u4 behind 4");
    assert.equal(aligned("u1 a1 u2 u3", "u4", 0, 4), "folded by the host: u4 behind 4");
    // The proxy was restarted meanwhile.
    assert.equal(aligned("u1 a1 u2 u3", "u3 u4", 0), "folded by the host: u4 behind 4");
  });

  it("the first words again behind such a summary", () => {
    assert.equal(aligned("ugo a1 u2 a2", "ugo", 0, 4), "folded by the host: ugo behind 4");
    assert.equal(aligned("ugo a1 u2 a2", "ugo", 0), "folded by the host: ugo behind 4");
  });

  it("a rewind behind a compaction of the host", () => {
    assert.equal(aligned("u1 a1 u2 a2 u3 a3", "u1 a1 u2 a2 u9", 0, 4), "folded by the host: u9 behind 4");
    assert.equal(aligned("u1 a1 u2 a2 u3 a3 u4 a4", "u2 a2 u3 a3 u9", 0), "folded by the host: u9 behind 6");
  });
});

describe("finding a session by what it says", () => {
  const session = (sessionId: string, said: string) => {
    const path = emptyPath();
    for (const piece of words(said)) addRow(path, { key: piece, id: 1 as never, isMoved: false }, [piece]);
    return { sessionId, path };
  };
  const [one, other] = [session("one", "u1 a1 u2 a2"), session("other", "u1 a9 u2 a8")];
  const found = (said: string): string | undefined => findSession([one, other], words(said))?.sessionId;

  it("takes the one that got the same answers", () => {
    assert.equal(found("u1 a1 u2 a2 u3"), "one");
    assert.equal(found("u1 a9 u5"), "other");
  });

  it("proves nothing by what people say alone, or by one answer", () => {
    assert.equal(found("u1"), undefined);
    assert.equal(found("u7 a2 u8"), undefined);
    assert.equal(findSession([session("asked", "u1")], ["u1"])?.sessionId, "asked");
  });

  it("takes answers that were kept by a compaction as a proof", () => {
    assert.equal(found("uX a9 u2 a8 u3"), "other");
  });
});
