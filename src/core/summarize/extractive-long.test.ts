import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import fc from "fast-check";
import { createRandom } from "../../../test/support/random.ts";
import { extract, type Passage } from "./extractive.ts";
import { estimateTokens } from "../base/tokens.ts";
import { footer, said, bodyOf, facts, outputs, kept, type Line } from "../../../test/support/extracts.ts";

const asks = [
  "can you check {thing} again? it still looks odd to me",
  "What does {thing} do when the basket is empty?",
  "I am back. Where were we with {thing}?",
  "hm, {thing} does not look right on my phone",
  "Could you explain {thing} to me like I had never seen it?",
  "thanks! and what about {thing}?",
  "Let's have a look at {thing} next, I think it is slow when there are {n} items in it",
  "why is {thing} called {n} times on that page?",
  "is there a better name for {thing}?",
  "please go on with {thing}, I will read it after lunch",
];
const replies = [
  "Sure! I had a look at {thing}. It reads the basket, adds up {n} lines, and then writes the result back. Nothing in it depends on the order of the lines, so it should be safe to call twice. If you want I can also add a test that shows that.",
  "Of course. {thing} is called once for every render, which is more often than it needs to be, but each call takes well under a millisecond. I would leave it alone for now and come back to it when we know more about how people use the page.",
  "Good question. As far as I can see, {thing} was written for the old checkout, where there was only one address. With two addresses it takes the first one, and that happens to be right in most cases. It is not pretty, but it is not wrong either.",
  "I looked at {thing} on a small screen. The label is cut off after {n} characters, and the icon next to it is pushed into the second line. Here are a few things that we could do about it:\n\n- make the label shorter\n- let it wrap, and give the icon a fixed place\n- hide the icon when there is no room\n\nLet me know which of these you like best.",
  "Here is what happens step by step. First the page asks for {thing}. Then the server looks into its cache, which holds about {n} entries, and answers from there if it can. Otherwise it goes to the database, which takes longer, but only the first time.",
  "Great, that works now! I have also cleaned up a few things around {thing} while I was there: shorter names, fewer comments that only repeat the code, and one early return less. Is there anything else that you would like me to look at?",
];
const things = [
  "the basket badge",
  "parseAddress",
  "src/cart/total.ts",
  "the login form",
  "order #4471",
  "the address book",
  "checkout_total",
  "the search box",
  "renderInvoice",
  "the stock counter",
  "the footer",
  "getShippingRate",
];
const corpus = [
  "english-agent",
  "english-chat",
  "english-essay",
  "english-news",
  "english-technical",
  "german-letter",
  "japanese-chat",
  "japanese-story",
  "chinese-chat",
  "chinese-story",
  "typescript-queue",
  "python-service",
  "rust-server",
  "log-service",
  "log-kernel",
  "json-records",
  "markdown-readme",
  "sql-report",
];

const corpusText = (name: string): string =>
  readFileSync(new URL(`../../../test/corpus/${name}.txt`, import.meta.url), "utf8");

/** Weeks of work and life with an assistant, about 20,000 tokens, the facts spread evenly through it. */
function longChat(): readonly Passage[] {
  const random = createRandom(7);
  const fill = (text: string): string => {
    const thing = random.pick(things);
    return text.replaceAll("{thing}", thing).replaceAll("{n}", () => String(random.between(2, 90)));
  };
  const lines: Line[] = [];
  for (const [place, fact] of facts.entries()) {
    for (let turn = 0; turn < 4; turn++) {
      lines.push(["user", fill(random.pick(asks))]);
      if (random.chance(0.3)) {
        lines.push(["assistant", fill('Let me check that.\nread {"path":"src/cart/total.ts"}')]);
        lines.push(["tool", fill(random.pick(outputs))]);
      }
      lines.push(["assistant", fill(random.pick(replies))]);
    }
    const quoted = corpus[place];
    if (quoted !== undefined)
      lines.push([
        /^(?:log|json|sql|rust|python|typescript)/.test(quoted) ? "tool" : random.pick(["user", "assistant"] as const),
        corpusText(quoted),
      ]);
    lines.push(...fact.lines);
  }
  let minute = 0;
  return lines.map(([kind, text]): Passage => {
    minute += random.between(1, random.chance(0.05) ? 900 : 12);
    const at = new Date(Date.UTC(2026, 1, 17, 8, minute)).toISOString();
    return {
      label: `[${at.slice(0, 10)} ${at.slice(11, 16)} UTC] [${kind === "tool" ? "tool · bash" : kind}]`,
      text,
      kind,
    };
  });
}

/** The baseline: as much of the beginning as fits. */
function beginningOf(passages: readonly Passage[], targetTokens: number): string {
  let text = "";
  for (const { label, text: words } of passages) {
    const longer = `${text}${label} ${words}\n\n`;
    if (estimateTokens(longer) > targetTokens) return text;
    text = longer;
  }
  return text;
}

/** Folds as compaction does: a run of passages becomes a summary labelled with their time range. */
function folded(passages: readonly Passage[], targetTokens: number): Passage {
  const timeOf = (passage: Passage | undefined): string => /^\[(\S+ \S+)/.exec(passage?.label ?? "")?.[1] ?? "";
  const label = `[${timeOf(passages[0])} – ${timeOf(passages.at(-1))} UTC]`;
  return { label, text: extract(passages, { targetTokens }), kind: "summary" };
}

const inRuns = <T>(items: readonly T[], runs: number): readonly (readonly T[])[] =>
  Array.from({ length: runs }, (_, run) =>
    items.slice(Math.floor((run * items.length) / runs), Math.floor(((run + 1) * items.length) / runs)),
  );

describe("an extract of a long conversation", () => {
  const passages = longChat();

  it(`keeps nearly all of ${facts.length} facts in a leaf of 1,200 tokens out of 20,000, far more than the beginning contains`, () => {
    const sourceTokens = estimateTokens(passages.map((passage) => passage.text).join("\n"));
    assert.ok(sourceTokens > 18_000 && sourceTokens < 22_000, `the conversation is ${sourceTokens} tokens`);
    const result = extract(passages, { targetTokens: 1_200 });
    const beginning = beginningOf(passages, 1_200);
    assert.ok(kept(result) >= 25, `${kept(result)} of ${facts.length} are in:\n${result}`);
    assert.ok(kept(beginning) <= 3, `the beginning holds ${kept(beginning)}`);
    assert.ok(estimateTokens(result) > 1_100, "the room is used");
  });

  it("keeps most of them in half the length", () => {
    const result = extract(passages, { targetTokens: 600 });
    assert.ok(kept(result) >= 14, `${kept(result)} of ${facts.length} are in:\n${result}`);
  });

  it("loses few of them through leaves, d1, d2 and d3", () => {
    const leaves = inRuns(passages, 8).map((run) => folded(run, 1_200));
    const d1 = inRuns(leaves, 4).map((run) => folded(run, 1_200));
    const d2 = inRuns(d1, 2).map((run) => folded(run, 1_200));
    const d3 = folded(d2, 1_200);
    const counts = [leaves, d1, d2, [d3]].map((level) => kept(level.map(({ text }) => text).join("\n")));
    assert.ok(
      counts.every((count, depth) => count >= ([26, 26, 25, 17][depth] ?? 0)),
      `kept ${counts.join(", ")} in\n${d3.text}`,
    );
    const labels = d3.text.match(/^\[/gm)?.length ?? 0;
    assert.ok(labels < d3.text.split("\n").length, "no line needs more than one label, and many need none");
    assert.ok(
      estimateTokens(d3.text.replace(/^(?:\[[^\]]*\] ?){1,2}/gm, "")) > 0.75 * estimateTokens(d3.text),
      d3.text,
    );
  });
});

describe("for any input, an extract", () => {
  const kinds = ["user", "assistant", "tool", "system", "summary"] as const;
  const line = fc.oneof(
    fc.string({ unit: "grapheme", maxLength: 60 }),
    fc.lorem({ maxCount: 30 }),
    fc.constantFrom(
      "",
      "   ",
      "```",
      "```ts",
      "---",
      "[user] Yes.",
      "[2026-02-17 15:37 UTC] [user] No?",
      "Expand for details about: x",
    ),
    fc.constantFrom(
      "数据库就用 TiDB 吧，预算上限是每月 3000 元。",
      "👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦",
      "ประชุมกับคุณสมชายเลื่อนเป็นวันที่",
      "قررنا الإبقاء عليه؟",
      "1. e.g. this. and that! (why?)",
    ),
    fc.constantFrom(
      "const a = { b: 1 };",
      "2026-02-17T07:41:55.018Z ERROR [x] failed",
      "ok (×3)",
      'read {"path":"a.ts"}',
      "\u2028\u0000\r\t",
      "…",
      "a\u0301".repeat(40),
    ),
    fc
      .tuple(fc.constantFrom("a", "漢", "😀", ".", " x", "=>", '"', "a,", "\u0301"), fc.integer({ min: 1, max: 3_000 }))
      .map(([unit, times]) => `${times % 2 === 0 ? "" : "x"}${unit.repeat(times)}`),
  );
  const passage: fc.Arbitrary<Passage> = fc.record({
    label: fc.oneof(
      fc.constantFrom(
        "[2026-02-17 15:37 UTC] [user]",
        "[2026-02-17 15:37 – 2026-02-19 07:00 UTC]",
        "[2026-13-99 99:99 UTC] [tool · bash]",
        "",
      ),
      fc.string({ unit: "grapheme", maxLength: 200 }),
    ),
    text: fc.array(line, { maxLength: 12 }).map((lines) => lines.join("\n")),
    kind: fc.constantFrom(...kinds),
  });
  const given = fc.record({
    passages: fc.array(passage, { maxLength: 12 }),
    targetTokens: fc.oneof(fc.integer({ min: 32, max: 200 }), fc.integer({ min: 32, max: 5_000 })),
  });

  it("fits its target, is no longer than its source, ends in its footer, and is deterministic", () => {
    fc.assert(
      fc.property(given, ({ passages, targetTokens }) => {
        const result = extract(passages, { targetTokens });
        const tokens = estimateTokens(result);
        const sourceTokens = estimateTokens(passages.map(({ text }) => text).join("\n"));
        assert.ok(tokens <= targetTokens, `${tokens} of ${targetTokens} tokens:\n${result}`);
        if (sourceTokens > 40)
          assert.ok(tokens <= sourceTokens, `${tokens} of ${sourceTokens} source tokens:\n${result}`);
        assert.match(result.split("\n").at(-1) ?? "", footer);
        assert.ok(result.isWellFormed(), "no character is torn");
        assert.equal(extract(passages, { targetTokens }), result);
      }),
      { numRuns: 400 },
    );
  });

  it("adds nothing that was not said", () => {
    const sentence = fc
      .array(
        fc.constantFrom(
          "Noor",
          "the",
          "retries",
          "7",
          "worker",
          "we",
          "decided",
          "Leeds",
          "on",
          "花筏に",
          "決めました",
          "orders.db",
        ),
        { minLength: 1, maxLength: 40 },
      )
      .chain((words) => fc.constantFrom(".", "?", "!", "。", "").map((end) => words.join(" ") + end));
    fc.assert(
      fc.property(
        fc.array(fc.array(sentence, { maxLength: 8 }), { maxLength: 10 }),
        fc.integer({ min: 32, max: 300 }),
        (texts, targetTokens) => {
          const source = texts.map((sentences) => sentences.join(" ")).join("\n");
          const result = extract(
            texts.map((sentences) => said("user", sentences.join(" "))),
            { targetTokens },
          );
          for (const quoted of bodyOf(result)
            .replace(/^(?:\[[^\]]*\] ?)+/gm, "")
            .split(/\n|…|(?<=[.?!。]) /)) {
            assert.ok(source.includes(quoted.trim()), `"${quoted}" is not in\n${source}`);
          }
        },
      ),
      { numRuns: 200 },
    );
  });
});
