import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { readAnswer } from "./read-answer.ts";
import type { Passage } from "../summarize/extractive.ts";
import { expandFooter } from "../prompts/summary.ts";
import { estimateTokens } from "../base/tokens.ts";
import { closeWithFooter, isEcho } from "../summarize/check-summary.ts";

const thought = "Okay, the user wants a summary. I should mention the xylophone.";
const summary = "2026-02-17 15:37: Mara reported that the tent leaks.\nDecided: seal it before Friday.";

describe("guarantee 18: free of reasoning text", () => {
  const tags = ["think", "thinking", "thought", "reasoning", "analysis", "reflection", "scratchpad", "antThinking"];

  it("drops reasoning in tags, anywhere and however nested", () => {
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

  it("recognises reasoning by the name of its tag or token", () => {
    const marks = ["thinking_process", "reasoning_content", "seed:cot_budget_reflect", "chain-of-thought", "deepThink"];
    for (const [open, close] of [
      ...marks.map((name) => [`<${name}>`, `</${name}>`] as const),
      ["<|begin_of_thought|>\n", "\n<|end_of_thought|>\n"],
      ["<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"],
      ["<start_of_thought>", "<end_of_thought>"],
      ["<unused94>thought\n", "<unused95>"],
      ["&lt;think&gt;", "&lt;/think&gt;"],
      ["< think >", "< / think >"],
    ] as const) {
      assert.equal(readAnswer(`${open}${thought}${close}${summary}`), summary, open);
      assert.equal(readAnswer(`${open}${thought}`), "", open);
    }
    const solution = `<|begin_of_solution|>\n${summary}\n<|end_of_solution|>`;
    assert.equal(readAnswer(`<|begin_of_thought|>${thought}<|end_of_thought|>\n${solution}`), summary);
  });

  it("drops reasoning in a quote, a comment or an element", () => {
    for (const aside of [
      `> ${thought}\n> More of it.`,
      `<!-- ${thought} -->`,
      `<details><summary>Thinking</summary>\n${thought}\n</details>`,
      `<plan>${thought}</plan>`,
    ]) {
      assert.equal(readAnswer(`${aside}\n\n${summary}`), summary, aside);
    }
    assert.equal(readAnswer(`${summary}\n\nWait, let me read that again.\nNo xylophone.`), summary);
  });

  it("ends reasoning that began before the answer at its closing tag", () => {
    assert.equal(readAnswer(`${thought}\n</think>\n\n${summary}`), summary);
    assert.equal(readAnswer(`${thought}</think>\n${summary}`), summary);
    assert.equal(readAnswer(`${thought}\n</thinking>${summary}`), summary);
    assert.equal(readAnswer(`<think>${thought}</think>${thought}\n</think>\n${summary}`), summary);
  });

  it("returns nothing for reasoning that never ends, unless a summary begins in it", () => {
    for (const tag of tags) {
      assert.equal(readAnswer(`<${tag}>\n${thought}`), "");
      assert.equal(readAnswer(`${summary}\n\n<${tag}>${thought}`), summary);
    }
    assert.equal(readAnswer(`<think>\n${thought}\n<summary>\n${summary}\n</summary>`), summary);
  });

  it("drops reasoning in a fence or a channel", () => {
    assert.equal(readAnswer(`\`\`\`thinking\n${thought}\n\`\`\`\n\n${summary}`), summary);
    assert.equal(readAnswer(`\`\`\`reasoning\n${thought}`), "");
    const channels = `<|channel|>analysis<|message|>${thought}<|end|><|start|>assistant<|channel|>final<|message|>`;
    assert.equal(readAnswer(`${channels}${summary}<|return|>`), summary);
    assert.equal(readAnswer(`<|channel|>analysis<|message|>${thought}`), "");
    // The marks themselves are often lost on the way.
    assert.equal(readAnswer(`analysis${thought}assistantfinal${summary}`), summary);
    assert.equal(readAnswer(`analysis\n${thought}assistantcommentary${thought}assistantfinal\n${summary}`), summary);
    assert.equal(readAnswer(`analysis<|message|>${thought}<|end|>assistantfinal${summary}`), summary);
    assert.equal(readAnswer(`analysis${thought}`), "");
  });

  it("drops unmarked reasoning before a summary; without a summary, nothing remains", () => {
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
      `I need to write a summary of this conversation. ${thought}`,
      `I should extract the key facts. ${thought}`,
      `We are asked to summarise a conversation. ${thought}`,
      `So the task is to summarize it. ${thought}`,
      `Looking at the conversation, I see several points. ${thought}`,
      `**Analyzing the Dialogue**\n\nI'm focusing on the tent. ${thought}`,
      `## Considering What Matters\nI need to be brief. ${thought}`,
      `好的，用户想要一份摘要。${thought}`,
      `嗯，用户让我总结这段对话。${thought}`,
      `首先，我需要通读对话。${thought}`,
      `用戶要求我總結對話。${thought}`,
      `うーん、テントの話だ。${thought}`,
      `まず、会話の内容を見ていきます。${thought}`,
      `음, 텐트 이야기네. ${thought}`,
      `먼저 대화를 살펴보겠습니다. ${thought}`,
      `Also, der Nutzer möchte eine Zusammenfassung. ${thought}`,
      `Ich muss das Gespräch kurz zusammenfassen. ${thought}`,
      `Bon, voyons cela. ${thought}`,
      `L'utilisateur me demande de résumer. ${thought}`,
      `Veamos, hay una tienda. ${thought}`,
      `Necesito escribir un resumen breve. ${thought}`,
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

  it("removes reasoning, whatever surrounds it", () => {
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
  it("unwraps a summary, and keeps the footer after the wrapper", () => {
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

  it("drops introductions", () => {
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

  it("leaves a summary unchanged that mentions such things", () => {
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
      "parse() returns Result<Reason>, and Map<string, ThinkingBlock> holds the rest.\nIt was merged.",
      "The view is now\n<ThinkingPanel>\nwith\n<reasoning-trace />\ninside, and was shipped.",
      "Cotton, a cottage and apricots were ordered.\n<apricot>\nwas the label.",
      "They read <|channel|> marks, and `<|channel|>final<|message|>` last.\nThe parser keeps the rest.",
      "Analysis by Mara: the word assistantfinal had leaked into answers.\nIt was stripped.",
      "The template ends in <|im_end|> at times.\nThey strip <unused94>thought marks too.",
      "**Planning the trip**\n\nMara booked the ferry and I wrote to the hotel.",
      "**Reviewing the parser**\n\nI changed two lines; the tests passed.",
      "We need to produce 500 units by Friday, and to provide the vendor with the shipping details.",
      "I need to renew my passport, Mara said.\nThe office opens at 9.",
      "The user asked for a summary of the quarterly report, and got it.",
      "Looking at the logs, we found the leak.",
      "Also, the pole broke.\nA new one was ordered.",
      "> Seal it before Friday.\n\nwas what Mara wrote.",
      "<order>\n<id>7</id>\n</order>\nwas sent to the shop.",
      "用户想要一顶新帐篷，并要求周五前送到。",
      "首先讨论了帐篷，然后总结了费用。",
      "まず、ユーザーがテントの漏れを報告した。要約を依頼した。",
      "사용자가 텐트가 샌다고 알렸고 요약을 요청했다.",
      "Der Nutzer möchte das Zelt bis Freitag. Ich habe es bestellt.",
      "L'utilisateur demande un résumé du rapport; il l'a reçu.",
      "El usuario quiere la tienda para el viernes.",
    ]) {
      assert.equal(readAnswer(text), text);
    }
  });

  it("drops what a database cannot store", () => {
    assert.equal(readAnswer("a\0b\u0007 \ud800\r\nc\td"), "ab \ufffd\nc\td");
  });

  it("takes linear time for any text", () => {
    const run = (piece: string) => (count: number) => piece.repeat(count);
    const texts: Record<string, (count: number) => string> = Object.fromEntries(
      [
        "<think>",
        "</think>",
        "<summary>",
        "```thinking\n",
        "[think",
        "<think ",
        "<thinkthink",
        "&lt;think",
        "here is ",
        "# ",
      ]
        .concat([
          "*",
          "#",
          "-",
          "the ",
          "<",
          "<|",
          "<a:",
          "<|channel|>",
          "<|end|>",
          "> \n",
          "ok, ",
          "wait, let me\n",
          "\n\t",
          "m",
        ])
        .concat(["Expand for details about:\n", "[2026-01-01 ", "。", "<x>", "<!--", "<unused9>"])
        .map((piece) => [piece, run(piece)]),
    );
    for (const start of [
      "<",
      "</",
      "<|channel|>",
      "<think",
      "&lt;",
      "the",
      "my",
      "summary",
      "Okay",
      "Hm",
      "**Reading",
      "x",
    ])
      for (const blank of [" ", "\n", "a"]) texts[`${start}${blank}…`] = (count) => `${start}${blank.repeat(count)}x`;
    for (const [name, textOf] of Object.entries(texts)) {
      const [small, large] = [2_000, 16_000].map((count) => cpuOf(textOf(count)));
      // Eight times the text: not nearly sixty-four times the work.
      assert.ok((large ?? 0) <= 24 * Math.max(small ?? 0, 4_000), `${name}: ${small} → ${large} µs`);
    }
  });

  it("returns storable text for any input", () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 0xffff })), (units) => {
        const said = readAnswer(String.fromCharCode(...units));
        assert.ok(said.isWellFormed() && !said.includes("\0"));
      }),
    );
  });
});

/** The microseconds of work that reading takes at best. */
const cpuOf = (text: string): number =>
  Math.min(
    ...Array.from({ length: 3 }, () => {
      const before = process.cpuUsage();
      const said = readAnswer(text);
      closeWithFooter(said, [], 100);
      isEcho(said.slice(0, 2_000), said);
      return process.cpuUsage(before).user;
    }),
  );

describe("an echo", () => {
  const lines = Array.from(
    { length: 40 },
    (_, at) =>
      `[2026-02-17 15:${at + 10} UTC] [user · Mara] Point ${at} is that item ${at * 7} costs ${at * 13} euros.`,
  );
  const source = lines.join("\n\n");
  const texts = lines.map((line) => line.replace(/^.*\] /, ""));

  it("is a copy of the source, of a part of it, or of it without its labels", () => {
    assert.ok(isEcho(source, source));
    assert.ok(isEcho(lines.slice(0, 12).join("\n"), source));
    assert.ok(isEcho(texts.join("\n- "), source));
    assert.ok(isEcho(texts.slice(5, 15).join(" "), source));
    assert.ok(
      isEcho("今日は雨です。明日も雨でしょう。".repeat(10), `ほか ${"今日は雨です。明日も雨でしょう。".repeat(40)}`),
    );
  });

  it("is neither a summary, even one of selected sentences, nor a quoted line", () => {
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

  it("is the model's own, normalised", () => {
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

  it("comes last, and text that the model wrote after it is kept before it", () => {
    assert.equal(
      close(`${summary}\n\n${expandFooter} seams\n\nAlso, the pole broke.`),
      `${summary}\n\nAlso, the pole broke.\n\n${expandFooter} seams`,
    );
  });

  it("is made from the source if the model left it out", () => {
    for (const said of [summary, `${summary}\n${expandFooter}`, `${summary}\n${expandFooter} …`]) {
      const text = close(said);
      assert.ok(text.startsWith(`${summary}\n\n${expandFooter} `), text);
      assert.match(text.split("\n").at(-1) ?? "", /about: .*\w/);
      assert.ok(estimateTokens(text) < estimateTokens(summary) + 50);
    }
  });

  it("counts towards the length: up to a tenth too long is cut by whole lines, more is not", () => {
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
