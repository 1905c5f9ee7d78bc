import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { behaviours, createScriptedModel, thoughtWord } from "../../../test/support/scripted-model.ts";
import type { Passage } from "./extractive.ts";
import { refusals } from "../model/types.ts";
import type { ConversationId, NewSummary, Refusal } from "../model/types.ts";
import type { Completion, CompletionRequest, Model, SummaryVerdict } from "../model/store.ts";
import { builtInTemplates, expandFooter } from "../prompts/summary.ts";
import { rulesOf } from "../compaction/choose-runs.ts";
import { targetTokensOf } from "./source.ts";
import { resolveSettings } from "../model/settings.ts";
import { sourceText } from "./source-text.ts";
import { draftWithModel, promptFor, summarize } from "./summarize.ts";
import type { Drafted, Source, SummarizeDeps, SummarizeOptions } from "./summarize.ts";
import { estimateTokens } from "../base/tokens.ts";
import { renderedTokens } from "../base/escape.ts";

const settings = resolveSettings({ env: {}, config: {} }).values;

const things = ["boat", "roof", "invoice", "garden", "engine", "letter", "grant", "tooth"];

/** A conversation of this many messages, about a hundred tokens each. */
const talk = (messages: number): readonly Passage[] =>
  Array.from({ length: messages }, (_, at) => {
    const thing = things[at % things.length];
    return {
      label: `[2026-02-17 ${String(8 + (at % 12)).padStart(2, "0")}:00 UTC] [user · Mara]`,
      text:
        `About the ${thing} number ${at}: we decided to repair it for ${at * 17} euros because a new one would cost ` +
        `too much. Jonas will call ${thing}s & sons at extension ${1000 + at} before Friday, and asked that nobody ` +
        `else touches the ${thing} until then. I looked at /home/mara/${thing}/${at}.txt and it says the same thing.`,
      kind: "user",
    };
  });

function sourceOf(passages: readonly Passage[], more: Partial<Source> = {}): Source {
  const tokens = more.tokens ?? estimateTokens(sourceText(passages));
  return {
    conversation: 1 as ConversationId,
    depth: 0,
    passages,
    tokens,
    overheadTokens: 20,
    targetTokens: targetTokensOf(rulesOf(settings, false), more.depth ?? 0, tokens),
    previousContext: null,
    fileIds: [],
    ...more,
  };
}

/** A model that gives these answers in turn, and then repeats the last. */
function answering(...answers: readonly (string | Completion)[]): Model & { readonly calls: CompletionRequest[] } {
  const calls: CompletionRequest[] = [];
  return {
    provider: "scripted",
    name: "one",
    calls,
    complete: (request) => {
      calls.push(request);
      const answer = answers[Math.min(calls.length, answers.length) - 1] ?? "";
      if (typeof answer !== "string") return Promise.resolve(answer);
      return Promise.resolve({ kind: "text", text: answer, finish: "stop", inputTokens: 9, outputTokens: 9 });
    },
  };
}

const draft = async (
  model: Model | null,
  source: Source = sourceOf(talk(40)),
  options: Partial<SummarizeOptions> = {},
  more: Partial<SummarizeDeps> = {},
): Promise<Drafted> =>
  await summarize({ model, settings, templates: builtInTemplates, ...more }, source, { onRefusal: "wait", ...options });

async function drafted(...args: Parameters<typeof draft>): Promise<NewSummary> {
  const outcome = await draft(...args);
  assert.ok(outcome.kind === "drafted", `expected a draft, got ${JSON.stringify(outcome)}`);
  return outcome.summary;
}

const good = `2026-02-17: Mara and Jonas decided to repair and not to replace, for cost.\n\n${expandFooter} sums`;

/** Checks what every stored summary must satisfy. */
function checkSummary(summary: NewSummary, source: Source): void {
  const { text, tokens, level } = summary;
  const target = source.targetTokens;
  const cap = {
    normal: 1.5 * target,
    aggressive: 1.5 * Math.floor(target / 2),
    extractive: target,
    truncated: Math.min(target, 512),
  }[level];
  assert.equal(tokens, renderedTokens(text));
  assert.ok(tokens < source.tokens - source.overheadTokens, `${tokens} tokens of ${source.tokens}`);
  assert.ok(tokens <= cap, `${tokens} tokens, over the cap of ${cap}`);
  assert.equal(text.includes("[Truncated for context management]"), level === "truncated");
  assert.equal(text.match(/^Expand for details about: \S/gm)?.length, 1, text);
  assert.ok(text.split("\n").at(-1)?.startsWith(expandFooter));
  assert.doesNotMatch(text, new RegExp(thoughtWord));
  assert.ok(text.isWellFormed() && !text.includes("\0"));
  assert.equal(summary.model, level === "normal" || level === "aggressive" ? "scripted/one" : null);
}

describe("guarantee 18: a summary is shorter than its source, under its cap, free of reasoning, with its level", () => {
  it("by at least one token, and one token is enough", async () => {
    const tokens = renderedTokens(good);
    const shorterBy = async (saved: number): Promise<NewSummary> => {
      const source = sourceOf(talk(40), { tokens: tokens + 20 + saved, targetTokens: 1_000 });
      const summary = await drafted(answering(good), source, { onRefusal: "extract" });
      assert.ok(summary.tokens < source.tokens - source.overheadTokens);
      return summary;
    };
    assert.equal((await shorterBy(1)).text, good);
    assert.notEqual((await shorterBy(0)).text, good);
  });

  it("for any behaviour of the model", async () => {
    for (const behaviour of behaviours) {
      const aborting = new AbortController();
      const model = createScriptedModel({
        delayMs: 1,
        behaviour() {
          if (behaviour === "hangs") queueMicrotask(() => aborting.abort());
          return behaviour;
        },
      });
      for (let pass = 0; pass < 12; pass++) {
        const source = sourceOf(talk(4 + 8 * (pass % 7)), { depth: pass % 4, previousContext: "Earlier." });
        const summary = await drafted(model, source, { onRefusal: "extract", signal: aborting.signal });
        checkSummary(summary, source);
      }
    }
  });

  it("for any answer", async () => {
    const piece = fc.oneof(
      fc.array(fc.nat({ max: 0xffff })).map((units) => String.fromCharCode(...units)),
      fc.lorem({ mode: "sentences" }),
      fc.constantFrom("<think>", "</think>", "<summary>", "</summary>", "```", "\n", "\n\n", `${expandFooter} x`, "\0"),
      fc.constantFrom("Expand for details about:", "Let me think.", "Summary:", "[Truncated from 9 tokens]", "---"),
    );
    const answer = fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join(" "));
    await fc.assert(
      fc.asyncProperty(answer, answer, fc.nat({ max: 30 }), fc.nat({ max: 3 }), async (first, second, size, depth) => {
        const source = sourceOf(talk(size), { depth });
        const outcome = await draft(answering(first, second), source);
        if (outcome.kind === "drafted") {
          const { text } = outcome.summary;
          // A text may quote the footer or the marker; the promise concerns its ending.
          assert.ok(text.split("\n").at(-1)?.startsWith(expandFooter), text);
          assert.ok(outcome.summary.tokens < source.tokens - source.overheadTokens);
          assert.ok(outcome.summary.tokens <= 1.5 * source.targetTokens);
          assert.ok(text.isWellFormed() && !text.includes("\0"));
        } else {
          assert.equal(outcome.kind, "incompressible");
          assert.ok(size < 3, `${size} messages can be shortened`);
        }
      }),
      { numRuns: 100 },
    );
  });

  it("a good answer is kept unchanged, at level normal", async () => {
    const model = answering(good);
    const summary = await drafted(model, sourceOf(talk(40), { previousContext: "Before.", fileIds: ["file_01"] }));
    assert.deepEqual(summary, {
      text: good,
      tokens: estimateTokens(good),
      level: "normal",
      model: "scripted/one",
      previousContext: "Before.",
      fileIds: ["file_01"],
    });
    assert.equal(model.calls.length, 1);
  });

  it("after a bad answer the model is asked once more, more strictly; then sentences are extracted", async () => {
    const source = sourceOf(talk(40));
    const long = Array.from({ length: 400 }, (_, at) => `And ${at} more things were said about the boats.`).join("\n");
    const { system, prompt } = promptFor({ settings, templates: builtInTemplates }, source, {}, "normal");
    const instructions = prompt.replace(/<conversation_segment>[^]*<\/conversation_segment>/, "");
    const echoes = [system, instructions, `${system}\n\n${instructions}`, instructions.replaceAll("\n", " ")];
    const garbled = [good.replace("02-17", "0\ufffd-17"), `${"{}[];:,.<>|=+-*/ ".repeat(20)}\n${good.slice(0, 60)}`];
    const bad: readonly (string | Completion)[] = [
      "",
      "...",
      "Done.",
      `${expandFooter} everything`,
      `<think>${thoughtWord}</think>`,
      long,
      sourceText(source.passages),
      sourceText(source.passages.slice(0, 8)),
      ...echoes,
      ...garbled,
      { kind: "text", text: good, finish: "length", inputTokens: 1, outputTokens: 1 },
      { kind: "refused", refusal: "filtered", message: "" },
      { kind: "refused", refusal: "too_long", message: "" },
      { kind: "refused", refusal: "rejected", message: "" },
    ];
    for (const answer of bad) {
      const once = answering(answer, good);
      assert.equal((await drafted(once, source)).level, "aggressive", JSON.stringify(answer).slice(0, 80));
      const never = answering(answer);
      const summary = await drafted(never, source);
      assert.equal(summary.level, "truncated");
      assert.match(summary.text, /^\[Truncated for context management\]\n/);
      assert.ok(summary.tokens <= 512);
      checkSummary(summary, source);
      assert.deepEqual([once.calls.length, never.calls.length], [2, 2]);
    }
  });

  it("each answer learns its level, and why it is not used", async () => {
    const verdicts: SummaryVerdict[] = [];
    const completion = { kind: "text", finish: "stop", inputTokens: 9, outputTokens: 9 } as const;
    const onRead = (verdict: SummaryVerdict): unknown => verdicts.push(verdict);
    await drafted(answering({ ...completion, text: "", onRead }, { ...completion, text: good, onRead }));
    assert.deepEqual(verdicts, [
      { level: "normal", reason: "the answer was empty" },
      { level: "aggressive", reason: null },
    ]);
  });

  it("replacement characters are allowed if the source has them", async () => {
    const [first, ...others] = talk(40);
    assert.ok(first);
    const source = sourceOf([{ ...first, text: `${first.text} The meter said 4\ufffd7.` }, ...others]);
    assert.equal((await drafted(answering(`The meter said 4\ufffd7. ${good}`), source)).level, "normal");
  });

  it("a ruled table of numbers counts as words", async () => {
    const rule = `├${"─".repeat(24)}┼${"─".repeat(24)}┤`;
    const rows = ["north 41", "south 7", "east 980"].flatMap((row) => [rule, `│ ${row.replace(" ", " │ ")} │`]);
    assert.equal((await drafted(answering([...rows, rule].join("\n")), sourceOf(talk(40)))).level, "normal");
  });

  it("an echo of the preceding summary is rejected", async () => {
    const previousContext = talk(6)
      .map(({ text }) => text)
      .join("\n");
    const model = answering(previousContext, good);
    assert.equal((await drafted(model, sourceOf(talk(40).slice(10), { previousContext }))).level, "aggressive");
  });

  it("the second attempt asks for half the length and durable facts, at a lower temperature", async () => {
    const model = answering("", good);
    await drafted(model);
    const [first, second] = model.calls;
    assert.ok(first && second);
    assert.deepEqual([first.temperature, second.temperature], [0.2, 0.1]);
    assert.deepEqual([first.maxOutputTokens, second.maxOutputTokens], [3_000, 1_800]);
    assert.match(first.prompt, /\b1200 tokens/);
    assert.match(second.prompt, /\b600 tokens/);
    assert.match(second.prompt, /durable facts/);
    assert.equal(first.purpose, "leaf");
  });

  it("without a model the summary is extracted, at the full target", async () => {
    const source = sourceOf(talk(120), { previousContext: "Before." });
    const summary = await drafted(null, source);
    checkSummary(summary, source);
    assert.equal(summary.level, "extractive");
    assert.ok(summary.tokens > 600 && summary.tokens <= 1_200, `${summary.tokens}`);
    assert.equal(summary.previousContext, null, "no prompt was given one");
  });

  it("the last resort fits at every size, with its marker", async () => {
    for (let size = 3; size < 60; size++) {
      const source = sourceOf(talk(size));
      checkSummary(await drafted(answering(""), source), source);
    }
  });

  it("a source too small to shorten is left alone, without a model call", async () => {
    const model = answering(good);
    for (const tokens of [0, 1, 10, 30]) {
      const source = sourceOf(talk(1), { tokens });
      assert.deepEqual(await draft(model, source), { kind: "incompressible" });
    }
    assert.equal(model.calls.length, 0);
  });
});

describe("guarantee 20: overflow rescue always has a path without a model", () => {
  const trouble = refusals.filter((refusal) => !["filtered", "too_long", "rejected"].includes(refusal));
  const refusing = (refusal: Refusal): Model => answering({ kind: "refused", refusal, message: "not now" });

  it("a provider failure is returned and nothing is drafted if the caller prefers to wait", async () => {
    for (const refusal of trouble) {
      assert.deepEqual(await draft(refusing(refusal)), { kind: "refused", refusal, message: "not now" });
    }
  });

  it("otherwise the summary is made without the model", async () => {
    const source = sourceOf(talk(40));
    for (const refusal of trouble) {
      const summary = await drafted(refusing(refusal), source, { onRefusal: "extract" });
      assert.equal(summary.level, "extractive");
      checkSummary(summary, source);
    }
  });

  it("a model that hangs and ignores its signal is abandoned when the signal fires", async () => {
    for (const onRefusal of ["wait", "extract"] as const) {
      const aborting = new AbortController();
      const model = createScriptedModel({ behaviour: () => "hangs" });
      const outcome = draft(model, sourceOf(talk(40)), { onRefusal, signal: aborting.signal });
      setTimeout(() => aborting.abort(), 1);
      const got = await outcome;
      if (got.kind === "drafted") assert.equal(got.summary.level, "extractive");
      else assert.equal(got.kind === "refused" && got.refusal, "cancelled");
      assert.equal(got.kind, onRefusal === "wait" ? "refused" : "drafted");
    }
  });

  it("with a signal already aborted the model is not called", async () => {
    const model = answering(good);
    const outcome = await draft(model, sourceOf(talk(40)), { signal: AbortSignal.abort() });
    assert.equal(outcome.kind === "refused" && outcome.refusal, "cancelled");
    assert.equal(model.calls.length, 0);
  });

  it("an adapter that throws counts as an unreachable provider", async () => {
    const outcome = await draft(createScriptedModel({ behaviour: () => "throws" }));
    assert.equal(outcome.kind === "refused" && outcome.refusal, "unreachable");
  });

  it("a failure at the second attempt counts as well", async () => {
    const model = answering("", { kind: "refused", refusal: "overloaded", message: "busy" });
    assert.deepEqual(await draft(model), { kind: "refused", refusal: "overloaded", message: "busy" });
  });
});

describe("the prompt", () => {
  const asked = async (
    ...[source, options, more]: Parameters<typeof draft> extends [unknown, ...infer R] ? R : never
  ) => {
    const model = answering(good);
    await draft(model, source, options, more);
    const [request] = model.calls;
    assert.ok(request);
    return request;
  };

  it("contains the instructions of the settings, of the request, or of both", async () => {
    const custom = { ...settings, customInstructions: "Keep invoice numbers." };
    const source = sourceOf(talk(40));
    const { prompt } = await asked(source, { customInstructions: "Mind the roof." }, { settings: custom });
    assert.match(prompt, /<operator_instructions>\nKeep invoice numbers\.\nMind the roof\.\n</);
    assert.match((await asked(source, {}, { settings: custom })).prompt, /\nKeep invoice numbers\.\n</);
    assert.match((await asked(source, { customInstructions: "Mind the roof." })).prompt, /\nMind the roof\.\n</);
    assert.doesNotMatch((await asked(source, { customInstructions: " " })).prompt, /operator_instructions/);
  });

  it("contains the preceding summary up to depth 1, and records it; deeper, neither", async () => {
    for (const depth of [0, 1, 2, 3]) {
      const source = sourceOf(talk(40), { depth, previousContext: "Before, the boat sank." });
      const isTold = (await asked(source)).prompt.includes("the boat sank");
      const { previousContext } = await drafted(answering(good), source);
      assert.deepEqual([isTold, previousContext], depth <= 1 ? [true, "Before, the boat sank."] : [false, null]);
    }
  });

  it("carries its purpose, its conversation and its deadline", async () => {
    const { signal } = new AbortController();
    const request = await asked(sourceOf(talk(40), { depth: 1 }), { signal });
    assert.deepEqual([request.purpose, request.conversation, request.signal], ["condensed", 1, signal]);
    assert.equal((await asked(sourceOf(talk(40)), { purpose: "rewrite" })).purpose, "rewrite");
  });
});

describe("a draft with the model only", () => {
  const ask = async (
    source: Source,
    levels: readonly ("normal" | "aggressive")[],
    ...answers: (string | Completion)[]
  ) => {
    const model = answering(...answers);
    const outcome = await draftWithModel({ model, settings, templates: builtInTemplates }, source, {}, levels);
    return { outcome, calls: model.calls.length };
  };
  const long = sourceOf(talk(40));
  const reasonFor = async (answer: string | Completion, source = long): Promise<string> => {
    const { outcome } = await ask(source, ["normal"], answer);
    return outcome.kind === "unusable" ? outcome.reason : outcome.kind;
  };

  it("comes from the first level with a usable answer", async () => {
    const first = await ask(long, ["normal", "aggressive"], good);
    assert.ok(first.outcome.kind === "drafted" && first.outcome.summary.level === "normal" && first.calls === 1);
    const second = await ask(long, ["normal", "aggressive"], "", good);
    assert.ok(second.outcome.kind === "drafted" && second.outcome.summary.level === "aggressive");
  });

  it("is not extracted instead: a reason is returned", async () => {
    const cut = { kind: "text", text: good, finish: "length", inputTokens: 1, outputTokens: 1 } as const;
    const filtered = { kind: "refused", refusal: "filtered", message: "not this" } as const;
    assert.equal(await reasonFor(""), "the answer was empty");
    assert.equal(await reasonFor("<think>hm</think>"), "the answer was only reasoning");
    assert.match(await reasonFor("Done."), /^the answer was too short: \d of about \d+ tokens$/);
    assert.match(
      await reasonFor("More was said. ".repeat(2_000)),
      /^the answer was too long: \d+ tokens, the cap is 1800$/,
    );
    assert.equal(await reasonFor(cut), "the answer was cut off before its end");
    assert.equal(await reasonFor(sourceText(long.passages.slice(0, 9))), "the answer repeats its source");
    assert.equal(await reasonFor(filtered), "the model refused it: not this");
    assert.equal(
      await reasonFor(`${expandFooter} the exact sums and the names of all of the people involved`),
      "the answer was only its footer",
    );
  });

  it("makes no model call if no answer could be usable", async () => {
    const wordless = sourceOf([{ label: "[user]", text: "[image] [image] [image] ".repeat(40), kind: "user" }]);
    const short = sourceOf(talk(1), { tokens: 30, targetTokens: 15, overheadTokens: 20 });
    for (const [source, reason] of [
      [wordless, /no words/],
      [short, /too short/],
    ] as const) {
      const { outcome, calls } = await ask(source, ["normal", "aggressive"], good);
      assert.ok(outcome.kind === "unusable" && calls === 0);
      assert.match(outcome.reason, reason);
    }
  });

  it("returns a provider failure", async () => {
    const { outcome, calls } = await ask(long, ["normal", "aggressive"], {
      kind: "refused",
      refusal: "overloaded",
      message: "later",
    });
    assert.deepEqual([outcome, calls], [{ kind: "refused", refusal: "overloaded", message: "later" }, 1]);
  });
});
