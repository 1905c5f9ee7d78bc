import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { closeWithFooter, isEcho, readAnswer } from "./answer.ts";
import type { Passage } from "./extract.ts";
import { expandFooter } from "./prompts.ts";
import { estimateTokens } from "./text.ts";

const thought = "Okay, the user wants a summary. I should mention the xylophone.";
const summary = "2026-02-17 15:37: Mara reported that the tent leaks.\nDecided: seal it before Friday.";

describe("guarantee 18: free of reasoning text", () => {
  const tags = ["think", "thinking", "thought", "reasoning", "analysis", "reflection", "scratchpad", "antThinking"];

  it("thinking in tags is dropped, wherever it stands and however it is nested", () => {
    for (const tag of tags) {
      for (const answer of [
        `<${tag}>${thought}</${tag}>${summary}`,
        `<${tag}>\n${thought}\n</${tag}>\n\n${summary}`,
        `<${tag.toUpperCase()} kind="deep">\n${thought}\n</${tag.toUpperCase()}>\n${summary}`,
        `${summary}\n<${tag}>${thought}</${tag}>`,
        `<${tag}>a<${tag}>${thought}</${tag}>xylophone</${tag}>${summary}`,
        `<${tag}>${thought} I will write <${tag}> first.</${tag}>\n${summary}`,
      ]) {
        assert.equal(readAnswer(answer), summary, answer);
      }
    }
    assert.equal(readAnswer(`[THINK]${thought}[/THINK]${summary}`), summary);
    assert.equal(readAnswer(`◁think▷${thought}◁/think▷${summary}`), summary);
    assert.equal(readAnswer(`<seed:think>${thought}</seed:think>${summary}`), summary);
  });

  it("thinking that was begun before the answer ends where it says", () => {
    assert.equal(readAnswer(`${thought}\n</think>\n\n${summary}`), summary);
    assert.equal(readAnswer(`${thought}</think>\n${summary}`), summary);
    assert.equal(readAnswer(`${thought}\n</thinking>${summary}`), summary);
    assert.equal(readAnswer(`<think>${thought}</think>${thought}\n</think>\n${summary}`), summary);
  });

  it("thinking that never ends leaves nothing, unless a summary begins in it", () => {
    for (const tag of tags) {
      assert.equal(readAnswer(`<${tag}>\n${thought}`), "");
      assert.equal(readAnswer(`${summary}\n\n<${tag}>${thought}`), summary);
    }
    assert.equal(readAnswer(`<think>\n${thought}\n<summary>\n${summary}\n</summary>`), summary);
  });

  it("thinking in a fence or a channel is dropped", () => {
    assert.equal(readAnswer(`\`\`\`thinking\n${thought}\n\`\`\`\n\n${summary}`), summary);
    assert.equal(readAnswer(`\`\`\`reasoning\n${thought}`), "");
    const channels = `<|channel|>analysis<|message|>${thought}<|end|><|start|>assistant<|channel|>final<|message|>`;
    assert.equal(readAnswer(`${channels}${summary}<|return|>`), summary);
    assert.equal(readAnswer(`<|channel|>analysis<|message|>${thought}`), "");
  });

  it("thinking aloud is dropped up to the summary; without one there is none", () => {
    for (const preamble of [
      `Here is my thought process:\n${thought}`,
      `Here's my reasoning: ${thought}`,
      `**Thinking:**\n${thought}`,
      `## Thought process\n\n${thought}`,
      `Let me think about what matters here. ${thought}`,
      `Okay, so the user has a tent. ${thought}`,
      `Hmm, a tent. ${thought}`,
      `First, I need to look at the record. ${thought}`,
      `The user wants me to summarize this. ${thought}`,
      `We need to condense the record. ${thought}`,
      `Sure! Let me analyze the record first.\n${thought}`,
    ]) {
      for (const mark of ["Summary:", "## Summary", "**Final summary:**", "Here is the summary:", "---"]) {
        assert.equal(readAnswer(`${preamble}\n\n${mark}\n${summary}`), summary, `${preamble} ${mark}`);
      }
      assert.equal(readAnswer(`${preamble}\n\n<summary>${summary}</summary>`), summary, preamble);
      const long = `${preamble}${` ${thought}`.repeat(5)}`;
      assert.equal(readAnswer(`${long}\n\n<summary>${summary}</summary>`), summary, preamble);
      assert.equal(readAnswer(preamble), "", preamble);
    }
  });

  it("whatever surrounds it, the thought is gone", () => {
    const forms = fc.constantFrom(
      (text: string) => `<think>${text}</think>`,
      (text: string) => `<thinking>\n${text}\n</thinking>\n`,
      (text: string) => `\n\`\`\`thinking\n${text}\n\`\`\`\n`,
      (text: string) => `<analysis>${text}</analysis>\n`,
    );
    const blocks = fc.array(fc.tuple(forms, fc.lorem()), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(blocks, fc.array(fc.lorem(), { maxLength: 3 }), (thoughts, words) => {
        const answer = thoughts.map(([form, text], at) => `${form(`xylophone ${text}`)}${words[at] ?? ""}`).join("");
        assert.doesNotMatch(readAnswer(answer), /xylophone/);
      }),
    );
  });
});

describe("reading an answer", () => {
  it("takes the inside of what it is wrapped in, with the last line behind it", () => {
    for (const answer of [
      `<summary>\n${summary}\n</summary>`,
      `<final>${summary}</final>`,
      `Here is the summary:\n<summary>\n${summary}\n</summary>`,
      `<summary id="sum_1" kind="leaf">\n<content>\n${summary}\n</content>\n</summary>`,
      `\`\`\`text\n${summary}\n\`\`\``,
      `<summary>\n${summary}`,
    ]) {
      assert.equal(readAnswer(answer), summary, answer);
    }
    assert.equal(
      readAnswer(`<summary>\n${summary}\n</summary>\n${expandFooter} the tent`),
      `${summary}\n\n${expandFooter} the tent`,
    );
  });

  it("drops how models introduce themselves", () => {
    for (const opener of [
      "Sure, here is the summary:",
      "Certainly! Here's a condensed summary of the conversation:",
      "Here is the summary of the segment from 12:30 to 14:00:",
      "Summary:",
      "## Conversation Summary\n",
      "**Summary**\n",
      "Let me summarize the conversation:",
      "Okay, here is the summary:\n\n**Summary**",
      "Okay! Summary:",
    ]) {
      assert.equal(readAnswer(`${opener}\n${summary}`), summary, opener);
    }
    assert.equal(readAnswer(`Here is the summary: ${summary}`), summary);
  });

  it("leaves a summary alone that speaks of such things", () => {
    for (const text of [
      "The team strips `<think>` blocks from answers.\nThe parser keeps the rest.",
      "They strip <think> tags from answers, and more.\nThe parser keeps the rest.",
      "The tags `<think>` and `</think>` are stripped.\nThe parser keeps the rest.",
      "They saw </think> tags in the answers.\nThe parser keeps the rest.",
      "Let the record show that the reasoning was sound.",
      "The user asked me to book a flight to Graz, which I did.",
      "First I booked the flight.\nSummary of costs: 120 EUR.",
      "Analysis of the third quarter: sales rose by 4%.\n---\nOkay was the word of the day.",
      `${"The page was rebuilt. ".repeat(20)}\n<summary>\nis the element that folds.\n</summary>\nIt was kept.`,
      "If a < b then c.\n```ts\nconst a = 1;\n```\nDone.",
    ]) {
      assert.equal(readAnswer(text), text);
    }
  });

  it("drops what a database cannot hold", () => {
    assert.equal(readAnswer("a\0b\u0007 \ud800\r\nc\td"), "ab \ufffd\nc\td");
  });

  it("takes time in proportion to the text, whatever it holds", () => {
    for (const piece of [
      "<think>",
      "</think>",
      "<summary>",
      "```thinking\n",
      "[think",
      "<think ",
      "here is ",
      "# ",
      "*",
    ]) {
      assert.ok(readAnswer(piece.repeat(20_000)).length <= piece.length * 20_000);
    }
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 0xffff })), (units) => {
        const said = readAnswer(String.fromCharCode(...units));
        assert.ok(said.isWellFormed() && !said.includes("\0"));
      }),
    );
  });
});

describe("an echo", () => {
  const lines = Array.from(
    { length: 40 },
    (_, at) =>
      `[2026-02-17 15:${at + 10} UTC] [user · Mara] Point ${at} is that item ${at * 7} costs ${at * 13} euros.`,
  );
  const source = lines.join("\n\n");
  const texts = lines.map((line) => line.replace(/^.*\] /, ""));

  it("is a copy of the source, of a stretch of it, or of it without its labels", () => {
    assert.ok(isEcho(source, source));
    assert.ok(isEcho(lines.slice(0, 12).join("\n"), source));
    assert.ok(isEcho(texts.join("\n- "), source));
    assert.ok(isEcho(texts.slice(5, 15).join(" "), source));
    assert.ok(
      isEcho("今日は雨です。明日も雨でしょう。".repeat(10), `ほか ${"今日は雨です。明日も雨でしょう。".repeat(40)}`),
    );
  });

  it("is not a summary, even one of picked sentences, and not a quoted line", () => {
    assert.ok(!isEcho("Mara listed forty points with their costs, from 0 to 507 euros. ".repeat(3), source));
    assert.ok(!isEcho(texts.filter((_, at) => at % 4 === 0).join("\n"), source));
    assert.ok(!isEcho(texts[3] ?? "", source));
  });
});

describe("the last line of a summary", () => {
  const passages: readonly Passage[] = Array.from({ length: 30 }, (_, at) => ({
    label: `[2026-02-17 15:${at + 10} UTC] [user]`,
    text: `The invoice ${4000 + at} from Hallstatt Boats was paid late, and the mooring fee is still open.`,
    kind: "user",
  }));
  const close = (said: string, cap = 500): string => closeWithFooter(said, passages, cap) ?? "too long";

  it("is the model's own, brought into its form", () => {
    for (const written of [
      `${expandFooter} seams, glue`,
      `**${expandFooter}** seams, glue`,
      `- expand for details about: seams, glue`,
      `## Expand for details about:\n\n* seams, glue`,
    ]) {
      assert.equal(close(`${summary}\n\n${written}`), `${summary}\n\n${expandFooter} seams, glue`, written);
    }
    assert.equal(close(`${summary}\n${expandFooter}\n- seams\n- glue`), `${summary}\n\n${expandFooter} seams; glue`);
  });

  it("is last, and what the model wrote behind it is kept before it", () => {
    assert.equal(
      close(`${summary}\n\n${expandFooter} seams\n\nAlso, the pole broke.`),
      `${summary}\n\nAlso, the pole broke.\n\n${expandFooter} seams`,
    );
  });

  it("is made from the source where the model left it out", () => {
    for (const said of [summary, `${summary}\n${expandFooter}`, `${summary}\n${expandFooter} …`]) {
      const text = close(said);
      assert.ok(text.startsWith(`${summary}\n\n${expandFooter} `), text);
      assert.match(text.split("\n").at(-1) ?? "", /about: .*\w/);
      assert.ok(estimateTokens(text) < estimateTokens(summary) + 50);
    }
  });

  it("counts: an excess of a tenth is met by whole lines, more is not", () => {
    const said = Array.from({ length: 40 }, (_, at) => `Line ${at} tells of the tent.`).join("\n");
    const whole = estimateTokens(close(`${said}\n${expandFooter} seams`, 10_000));
    const cut = close(`${said}\n${expandFooter} seams`, Math.ceil(whole / 1.09));
    assert.match(cut, /^Line 0 tells of the tent\.\n[^]*tent\.\n\nExpand for details about: seams$/);
    assert.ok(estimateTokens(cut) <= Math.ceil(whole / 1.09));
    assert.equal(close(`${said}\n${expandFooter} seams`, Math.floor(whole / 1.12)), "too long");
    assert.equal(close(said.replaceAll("\n", " "), estimateTokens(said)), "too long", "one line cannot be cut");
    const topics = `${expandFooter} ${"seams, poles, ".repeat(60)}glue`;
    const most = estimateTokens(`${said}\n\n${topics}`);
    assert.equal(close(`${said}\n${topics}`, Math.floor(most / 1.12)), "too long", "nor is much cut for a long footer");
  });

  it("is not a summary by itself", () => {
    assert.equal(close(`${expandFooter} seams`), "too long");
  });
});
