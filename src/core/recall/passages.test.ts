import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { quote } from "../base/excerpt.ts";
import type { Timestamp } from "../base/time.ts";
import { estimateTokens } from "../base/tokens.ts";
import { messageIdOf, type ConversationId, type Role } from "../model/types.ts";
import { planPassages, type Passage, type PassageHit, type Turn } from "./passages.ts";

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
    assert.equal(lengths(20).length, 10, "many hits are shown in short");
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
    const middling = turn(1, "assistant", `${hay.repeat(7)}The needle. ${hay.repeat(2)}`);
    const many = Array.from({ length: 12 }, (_, at) =>
      on(turn(10 * (at + 2), "user", `${hay}Needle ${at}.`), "Needle"),
    );
    const [best] = plan([on(middling, "needle"), ...many], [], 500).flat();
    assert.equal(best?.isWhole, true);
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
    assert.deepEqual(order("exact", [at(4, 2), at(9, 1), at(5, 1)]), ["1-5", "1-9", "2-4"]);
  });
});
