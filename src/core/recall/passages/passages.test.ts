import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { quote } from "../../base/excerpt.ts";
import type { Timestamp } from "../../base/time.ts";
import { estimateTokens } from "../../base/tokens.ts";
import { messageIdOf, type ConversationId, type Role } from "../../model/types.ts";
import { planPassages, type Passage } from "./passages.ts";
import type { PassageHit, Turn } from "./views.ts";

const at = "2026-02-17T15:30:00.000Z" as Timestamp;

const turn = (seq: number, role: Role, text: string, more: Partial<Turn> = {}): Turn => {
  const conversation = (more.conversation ?? 1) as ConversationId;
  const ties = { calls: [], answers: [], isFailed: false };
  return { id: messageIdOf(conversation, seq), conversation, seq, role, at, text, ...ties, ...more };
};
const calling = (seq: number, said: string, call: string): Turn => {
  const range = { from: said.length + 1, to: said.length + 1 + call.length };
  return turn(seq, "assistant", `${said}\n${call}`, { calls: [{ id: `call-${seq}`, range, isEdit: false }] });
};
const result = (seq: number, of: Turn, text: string, isFailed = false): Turn =>
  turn(seq, "tool", text, { answers: of.calls.map(({ id }) => id), isFailed });
const on = (found: Turn, word = ""): PassageHit => {
  const from = Math.max(0, found.text.indexOf(word));
  return { turn: found, focus: { from, to: from + word.length } };
};

const headingTokens = 10;
const plan = (hits: readonly PassageHit[], around: readonly Turn[], tokens: number) =>
  planPassages(hits, around, { tokens, headingTokens });
const lines = (groups: readonly (readonly Passage[])[]): readonly string[] =>
  groups.flat().map(({ seq, text, context }) => `${seq}${context ? " context" : ""}: ${text}`);

const hay = "One more straw lies on the heap, and nobody looks at it. ";

describe("the passages of a search", () => {
  it("show the call beside its result, and the result beside its call", () => {
    const call = calling(4, "Let me look.", 'bash {"command":"ls /srv"}');
    const output = result(6, call, "backup.tar\nferry.db");
    assert.deepEqual(lines(plan([on(output, "ferry")], [call, output], 200)), [
      '4 context: …bash {"command":"ls /srv"}',
      "6: backup.tar\nferry.db",
    ]);
    assert.deepEqual(lines(plan([on(call, "/srv")], [call, output], 200)), [
      '4: Let me look.\nbash {"command":"ls /srv"}',
      "6 context: backup.tar\nferry.db",
    ]);
  });

  it("show the question before an answer, and how the answer to a question begins", () => {
    const question = turn(1, "user", "Which port does the ferry use?");
    const [call, answer] = [calling(2, "", 'grep {"pattern":"port"}'), turn(4, "assistant", "It listens on 8080.")];
    const around = [question, call, result(3, call, "port = 8080"), answer];
    assert.deepEqual(lines(plan([on(answer, "8080")], around, 52)), [
      "1 context: Which port does the ferry use?",
      "4: It listens on 8080.",
    ]);
    assert.deepEqual(lines(plan([on(question, "port")], around, 52)), [
      "1: Which port does the ferry use?",
      "4 context: It listens on 8080.",
    ]);
  });

  it("show the line that names the error, however long the output is", () => {
    const call = calling(1, "", 'bash {"command":"make"}');
    const log = `${hay.repeat(20)}\nsrc/a.ts(5,1): error TS2305: no such member\n${hay.repeat(20)}\n\nCommand exited with code 2`;
    const failed = result(2, call, log, true);
    const [beside, hit] = lines(plan([on(failed, "straw")], [call, failed], 140));
    assert.equal(beside, '1 context: bash {"command":"make"}');
    assert.match(hit ?? "", /^2: One more straw .*\n…\nsrc\/a\.ts\(5,1\): error TS2305: no such member…$/s);
    assert.match(
      lines(plan([on(call, "make")], [call, failed], 80)).join("\n"),
      /2 context: …src\/a\.ts\(5,1\): error/,
    );
    const bare = result(2, call, "gone\n\nCommand exited with code 1", true);
    assert.equal(lines(plan([on(bare)], [], 60))[0], "2: gone\n\nCommand exited with code 1".replace("\n\n", "\n"));
  });

  it("leave out padding that matches only through its neighbours, unless there is nothing else", () => {
    const padding = [turn(10, "assistant", "(no output)"), turn(20, "user", "ok")].map((each) => on(each));
    const answer = on(turn(30, "user", "The needle is here."), "needle");
    assert.deepEqual(lines(plan([...padding, answer], [], 200)), ["30: The needle is here."]);
    assert.deepEqual(lines(plan(padding, [], 200)), ["10: (no output)", "20: ok"]);
    assert.deepEqual(lines(plan([on(turn(20, "user", "ok"), "ok"), answer], [], 200)), [
      "20: ok",
      "30: The needle is here.",
    ]);
  });

  it("are long if there are few, and short if there are many", () => {
    const long = (seq: number): Turn => turn(seq * 10, "user", `${hay.repeat(30)}The needle ${seq}. ${hay.repeat(30)}`);
    const lengths = (count: number): readonly number[] => {
      const hits = Array.from({ length: count }, (_, index) => on(long(index + 1), "needle"));
      return plan(hits, [], 600)
        .flat()
        .map(({ text }) => text.length);
    };
    assert.equal(lengths(1).length, 1);
    assert.ok((lengths(1)[0] ?? 0) > 2_000, "one hit fills the budget");
    assert.equal(lengths(20).length, 15, "many hits are shown in short");
  });

  it("are only those that score well, unless there is much room or nothing else", () => {
    const hits = [1, 0.9, 0.6, 0.3, 0.4, 0.2].map((share, at) => ({
      ...on(turn(10 * (at + 1), "user", `The needle ${at}.`), "needle"),
      share,
    }));
    const shown = (given: readonly PassageHit[], tokens: number): readonly number[] =>
      plan(given, [], tokens)
        .flat()
        .map(({ seq }) => seq);
    assert.deepEqual(shown(hits, 900), [10, 20, 30, 50]);
    assert.deepEqual(shown(hits, 1_000), [10, 20, 30, 40, 50, 60]);
    const many = [1, 0.9, 0.8, 0.7, 0.6, 0.4, 0.5].map((share, at) => ({
      ...on(turn(10 * (at + 1), "user", `The needle ${at}.`), "needle"),
      share,
    }));
    assert.deepEqual(shown(many, 900), [10, 20, 30, 40, 50, 70], "after the fifth, half of the best");
    assert.deepEqual(
      shown(
        [hits[0], hits[3], hits[5]].flatMap((hit) => hit ?? []),
        900,
      ),
      [10, 40, 60],
      "the first three",
    );
  });

  it("have the result of a call beside them if that is short, or its error as far as it names something", () => {
    const needles = (count: number, from: number): readonly PassageHit[] =>
      Array.from({ length: count }, (_, at) => on(turn(from + 10 * at, "user", `Find the needle ${at}.`), "needle"));
    const beside = (output: string, isFailed = false, before = 5): readonly string[] => {
      const call = calling(90, "", 'bash {"command":"grep needle"}');
      const hits = [...needles(before, 10), on(call, "needle"), ...needles(40, 100)];
      const shown = lines(plan(hits, [call, { ...result(91, call, output), isFailed }], 300));
      return shown.filter((line) => line.startsWith("91"));
    };
    assert.deepEqual(beside("77"), ["91 context: 77"]);
    assert.deepEqual(beside(hay.repeat(8)), []);
    assert.deepEqual(
      beside(hay.repeat(8), false, 4),
      [`91 context: ${hay.trim()}…`],
      "of the first hits, before others",
    );
    const error = `src/${"a".repeat(60)}/test-colours.ts(23,35): error TS2345: 'toolText' is not a colour of the theme`;
    assert.match(
      beside(`${hay}\n${error}\n${hay.repeat(8)}`, true)[0] ?? "",
      /'toolText' is not a colour of the theme/,
    );
  });

  it("merge messages that touch in the order of the conversation, the group of the best hit first", () => {
    const said = [1, 2, 3, 40].map((seq) => turn(seq, "user", `The needle number ${seq} is here.`));
    const hits = [said[3], said[1], said[2], said[0]].flatMap((each) =>
      each === undefined ? [] : [on(each, "needle")],
    );
    const groups = plan(hits, [], 400);
    assert.deepEqual(
      groups.map((group) => group.map(({ seq }) => seq)),
      [[40], [1, 2, 3]],
    );
  });

  it("never exceed the budget, show parts of the stored text in order, and no message twice", () => {
    const texts = fc.array(
      fc.constantFrom(hay, "needle", "ok", "\n\n", "error: no such file\n", "針の山。", "x".repeat(90)),
      { maxLength: 40 },
    );
    const world = fc.record({
      texts: fc.array(
        texts.map((parts) => parts.join(" ")),
        { minLength: 1, maxLength: 25 },
      ),
      picks: fc.array(fc.nat(), { minLength: 1, maxLength: 20 }),
      tokens: fc.integer({ min: 0, max: 800 }),
    });
    fc.assert(
      fc.property(world, ({ texts: said, picks, tokens }) => {
        const turns: Turn[] = [];
        for (const [index, text] of said.entries()) {
          const before = turns.at(-1);
          if (before !== undefined && before.calls.length > 0)
            turns.push(result(index + 1, before, text, index % 2 === 0));
          else if (index % 3 === 1) turns.push(calling(index + 1, text, 'bash {"command":"needle"}'));
          else turns.push(turn(index + 1, index % 2 === 0 ? "user" : "assistant", text));
        }
        const found = [...new Set(picks.map((pick) => turns[pick % turns.length]))].flatMap((each) => each ?? []);
        const groups = plan(
          found.map((each) => on(each, "needle")),
          turns,
          tokens,
        );
        const all = groups.flat();
        const cost = all.reduce((sum, { text }) => sum + headingTokens + 1 + estimateTokens(quote(text)), 0);
        assert.ok(cost <= tokens, `${cost} of ${tokens}`);
        assert.equal(new Set(all.map(({ id }) => id)).size, all.length);
        const bare = (text: string): string => text.replace(/\s+/g, " ").trim();
        for (const { seq, text } of all) {
          let rest = bare(turns[seq - 1]?.text ?? "");
          for (const piece of text.split("…").map(bare)) {
            assert.ok(rest.includes(piece), text);
            rest = rest.slice(rest.indexOf(piece) + piece.length);
          }
        }
        for (const group of groups)
          assert.deepEqual(
            group.map(({ seq }) => seq),
            group.map(({ seq }) => seq).toSorted((one, other) => one - other),
          );
      }),
    );
  });
});

describe("what is worth showing of a search", () => {
  const editing = (seq: number): Turn => {
    const edit = calling(seq, "", "edit src/a.ts\n- one\n+ two");
    return { ...edit, calls: edit.calls.map((call) => ({ ...call, isEdit: true })) };
  };

  it("is an edit, not the confirmation that it was made; but an edit that failed shows why", () => {
    const edit = editing(1);
    const done = result(2, edit, "Successfully replaced text in src/a.ts.");
    assert.deepEqual(lines(plan([on(done, "src")], [edit, done], 200)), ["1: edit src/a.ts\n- one\n+ two"]);
    assert.deepEqual(lines(plan([on(edit, "two")], [edit, done], 200)), ["1: edit src/a.ts\n- one\n+ two"]);
    const failed = result(2, edit, "Error: text not found", true);
    assert.deepEqual(lines(plan([on(failed, "text")], [edit, failed], 200)).at(-1), "2: Error: text not found");
  });

  it("is the same text once, with the ids of the others", () => {
    const [one, two, other] = [
      turn(10, "user", "The needle is blue."),
      turn(20, "user", "The  needle is BLUE."),
      turn(30, "user", "The needle is red."),
    ];
    const groups = plan([on(one, "needle"), on(two, "needle"), on(other, "needle")], [], 300);
    assert.deepEqual(
      groups.flat().map(({ seq, alike }) => [seq, alike]),
      [
        [10, [two.id]],
        [30, []],
      ],
    );
  });

  it("is what the user said to an answer at once, and the short result of a call", () => {
    const answer = turn(2, "assistant", "The accent colour is now teal.");
    const reply = turn(3, "user", "no, f0c674");
    assert.deepEqual(lines(plan([on(answer, "accent")], [answer, reply], 200)), [
      "2: The accent colour is now teal.",
      "3 context: no, f0c674",
    ]);
    const call = calling(5, "", `bash {"command":"${"grep -c colour ".repeat(30)}"}`);
    assert.equal(lines(plan([on(call, "colour")], [call, result(6, call, "77")], 300)).at(-1), "6 context: 77");
  });

  it("is the best hits whole, a list to its end, and how a user's long message begins", () => {
    const middling = turn(1, "assistant", `${hay.repeat(5)}The needle. ${hay.repeat(2)}`);
    const many = Array.from({ length: 12 }, (_, at) =>
      on(turn(10 * (at + 2), "user", `${hay}Needle ${at}.`), "Needle"),
    );
    const [best] = plan([on(middling, "needle"), ...many], [], 500).flat();
    assert.equal(best?.isWhole, true);
    const answer = on(turn(2, "user", `The needle.\n${hay.repeat(9)}`), "needle");
    const isWholeWith = (share: number): boolean | undefined =>
      plan([answer, ...many.map((each) => ({ ...each, share }))], [], 400)[0]?.[0]?.isWhole;
    assert.deepEqual([0.7, 0.9].map(isWholeWith), [true, false], "more of what is clearly the best");
    const listed = turn(1, "assistant", `${hay.repeat(20)}\nNeedles:\n- red\n- green\n- blue\n\n${hay.repeat(20)}`);
    for (const tokens of [24, 28, 32, 40, 52])
      assert.match(lines(plan([on(listed, "red")], [], tokens + 11)).join(), /- red\n- green\n- blue/);
    const long = turn(1, "user", `Please find it. ${hay.repeat(40)}The needle. ${hay.repeat(40)}`);
    assert.match(lines(plan([on(long, "needle")], [], 120))[0] ?? "", /^1: Please find it\.\n…\n.*The needle\./s);
  });

  it("is listed in the order of time, and of an exact match the conversation with most of them first", () => {
    const at = (seq: number, conversation: number): PassageHit =>
      on(turn(seq, "user", `Needle ${seq}`, { conversation: conversation as ConversationId }), "Needle");
    const order = (manner: "listed" | "exact", hits: readonly PassageHit[]) =>
      planPassages(hits, [], { tokens: 400, headingTokens, manner })
        .flat()
        .map(({ conversation, seq }) => `${conversation}-${seq}`);
    assert.deepEqual(order("listed", [at(9, 1), at(5, 1), at(1, 1)]), ["1-1", "1-5", "1-9"]);
    const newest = { tokens: 400, headingTokens, manner: "listed", isNewestFirst: true } as const;
    const last = planPassages([at(9, 1), at(5, 1)], [], newest);
    assert.deepEqual(
      last.flat().map(({ seq }) => seq),
      [9, 5],
    );
    assert.deepEqual(order("exact", [at(4, 2), at(9, 1), at(5, 1)]), ["1-5", "1-9", "2-4"]);
  });

  it("is one line per change of a value in the order of time, and never merges what was only listed", () => {
    const said = ["port: 80", "Now: \nport: 80\nas before", "port: 8080"].map((text, at) =>
      turn(10 * at, "user", text),
    );
    const listed = (word: string) =>
      planPassages(
        said.map((each) => on(each, word)),
        [],
        { tokens: 400, headingTokens, manner: "listed" },
      ).flat();
    assert.deepEqual(
      listed("port").map(({ seq, alike }) => [seq, alike.length]),
      [
        [0, 1],
        [20, 0],
      ],
    );
    assert.equal(listed("").length, 3);
  });

  it("is the lines with the word, if there are many matches by time", () => {
    const edits = Array.from({ length: 8 }, (_, at) =>
      turn(10 * at, "user", `edit a.json\n- "port": ${at}\n- "x": 1\n+ "port": ${at + 1}\n${hay.repeat(30)}`),
    );
    const hits = edits.map((each) => on(each, "port"));
    const shown = planPassages(hits, [], { tokens: 500, headingTokens, manner: "listed" }).flat();
    assert.deepEqual(
      shown.map(({ text }) => text),
      edits.map((_, at) => `- "port": ${at}\n+ "port": ${at + 1}`),
    );
  });

  it("is not what has the words only far apart, or in lines that an edit keeps", () => {
    const many = Array.from({ length: 8 }, (_, at) => on(turn(10 * at, "user", `The old port is ${at}.`), "old port"));
    const apart = on(turn(200, "tool", `old\n${hay}\nport and harbour`), "old");
    const edit = calling(300, "", "edit port.json\n- one\n+ two");
    const edits = { ...edit, calls: edit.calls.map((call) => ({ ...call, isEdit: true })) };
    const kept: PassageHit = { turn: edits, focus: { from: 1, to: 2 }, isHidden: true };
    const changed = "edit port.json\n- port 7\n+ port 8, the old one";
    const hidden: PassageHit = {
      turn: { ...edits, id: messageIdOf(1 as ConversationId, 400), seq: 400, text: `\n${changed}` },
      focus: { from: 1, to: 2 },
      isHidden: true,
    };
    const words = ["old", "port", "harbour", "ship"];
    const shownOf = (hits: readonly PassageHit[]) =>
      planPassages(hits, [], { tokens: 500, headingTokens, manner: "listed", words }).flat();
    const shown = shownOf([...many, apart, kept, hidden]);
    assert.deepEqual(shown.map(({ seq }) => seq).slice(-3), [70, 200, 400]);
    assert.equal(shown.find(({ seq }) => seq === 200)?.text, "port and harbour");
    assert.equal(shown.at(-1)?.text, "+ port 8, the old one");
    const far = on(turn(200, "tool", `old\n${hay}\nport`), "old");
    const clear = many.map(({ turn: each }) => on({ ...each, text: `${each.text} The harbour of the ship.` }, "old"));
    assert.deepEqual(
      shownOf([...clear, far])
        .map(({ seq }) => seq)
        .slice(-1),
      [70],
    );
    assert.equal(shownOf([kept]).length, 1, "unless there is nothing else");
  });

  it("is the error before a message, the result of a call below prose, and the error that a user pasted", () => {
    const call = calling(1, "", 'bash {"command":"make"}');
    const failed = result(2, call, `${hay.repeat(9)}\nerror: no rule\n\nCommand exited with code 2`, true);
    const next = calling(3, "Oops, the needle!", 'read {"path":"Makefile"}');
    const others = Array.from({ length: 9 }, (_, at) =>
      on(turn(100 + 10 * at, "user", `Find needle ${at}.`), "needle"),
    );
    const hits = [...others.slice(0, 3), on(next, "needle"), ...others.slice(3)];
    const told = lines(plan(hits, [call, failed, next, result(4, next, "all: build test")], 250));
    assert.deepEqual(
      told.filter((line) => /^[1-4][: ]/.test(line)),
      ["2 context: …error: no rule…", '3: Oops, the needle!\nread {"path":"Makefile"}', "4 context: all: build test"],
    );
    const report = turn(
      6,
      "user",
      `It broke.\n${hay.repeat(9)}\nError: bad colour\n    at load (a.js:1:2)\n${hay.repeat(9)}`,
    );
    const answer = turn(5, "assistant", "The needle is done.");
    assert.match(
      lines(plan([on(answer, "needle")], [answer, report], 200))[1] ?? "",
      /It broke\.\n…\n.*Error: bad colour/s,
    );
  });

  it("is no fragment of which nothing can be learnt", () => {
    const edit = editing(40);
    const long = { ...edit, text: `${edit.text}${"\n+ three".repeat(200)}` };
    const needles = [10, 20, 30].map((seq) => on(turn(seq, "user", `Find the needle ${seq}.`), "needle"));
    const path = editing(50);
    const piece = on({ ...path, text: `edit src/a.ts\n- ${"= ".repeat(900)}` }, "src/a.ts");
    const last = on(turn(60, "user", "The needle is here."), "needle");
    const shown = plan([...needles, piece, on(long, "src/a.ts"), last], [], 400).flat();
    assert.deepEqual(
      shown.map(({ seq }) => seq),
      [10, 20, 30, 40, 60],
    );
    assert.match(shown.find(({ seq }) => seq === 40)?.text ?? "", /\+ two/);
  });
});
