import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { openSqlite } from "../../store/sqlite/store.ts";
import { dissolveAt } from "../../../test/store-contract/ground.ts";
import { checkLossless } from "../../../test/support/lossless.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { createHost, toAppendable, user } from "../../../test/support/scripted-host.ts";
import { createScriptedModel, thoughtWord } from "../../../test/support/scripted-model.ts";
import type { Behaviour } from "../../../test/support/scripted-model.ts";
import { LcmError } from "../base/errors.ts";
import { createLcm } from "../lcm.ts";
import type { Lcm, LcmDeps } from "../lcm.ts";
import type { ConversationId, Level, NewSummary, SummaryId } from "../model/types.ts";
import type { CompletionRequest, Model, Store } from "../model/store.ts";
import { builtInTemplates, expandFooter } from "../prompts/summary.ts";
import type { PlannedRewrites, RewriteOptions, RewriteReport } from "./rewrite.ts";
import { resolveSettings } from "../model/settings.ts";
import { renderedTokens } from "../base/escape.ts";
import type { Timestamp } from "../base/time.ts";

const folder = makeScratch("rewrite");
after(() => rmSync(folder, { recursive: true, force: true }));

let databases = 0;
let clockMs = Date.UTC(2026, 10, 15);
const clock = { now: (): Timestamp => new Date((clockMs += 5)).toISOString() as Timestamp };
const settings = resolveSettings({
  env: {},
  config: {
    leafTargetTokens: 90,
    condensedTargetTokens: 120,
  },
}).values;

interface Ground {
  readonly store: Store;
  readonly id: ConversationId;
  /** The façade over the same store, with this model. */
  readonly using: (model: Model | null, more?: Partial<LcmDeps>) => Lcm;
  readonly plan: (select?: "all" | number) => Promise<PlannedRewrites>;
  readonly texts: () => Promise<Readonly<Record<SummaryId, string>>>;
  readonly check: () => Promise<void>;
}

/** A talk of 40 messages: six leaves of six, of three of which each is made a d1, and of both a d2, by this level. */
async function ground(level: Level = "normal"): Promise<Ground> {
  const store = await openSqlite({ path: join(folder, `${++databases}.db`), now: clock.now, housekeeping: false });
  const { id } = await store.open({ sessionId: "s", sessionKey: "agent:main:s" });
  const host = createHost("h");
  for (let day = 0; day < 40; day++) {
    const words = `On day ${day} the ${things[day % things.length]} was paid with ${day * 17} euros. `;
    host.says(user(words.repeat(8)));
  }
  await store.append(id, host.entries.map(toAppendable));
  const fold = async (from: number, to: number, name: string): Promise<void> => {
    const text = `${name}: ${"somebody bought something and wrote it down. ".repeat(6)}`;
    const summary = { text, tokens: renderedTokens(text), level, model: null, previousContext: null, fileIds: [] };
    const folded = await store.fold(id, (await store.context(id)).slice(from, to), summary);
    assert.equal(folded.kind, "written");
  };
  for (let leaf = 0; leaf < 6; leaf++) await fold(leaf, leaf + 6, `leaf ${leaf}`);
  await fold(0, 3, "first d1");
  await fold(1, 4, "second d1");
  await fold(0, 2, "d2");
  const using = (model: Model | null, more: Partial<LcmDeps> = {}): Lcm =>
    createLcm({ store, clock, settings, model, ...more });
  return {
    store,
    id,
    using,
    plan: async (select = "all") =>
      await using(null).planRewrite({
        conversation: id,
        select: select === "all" ? { all: true } : { depth: select },
      }),
    async texts() {
      const summaries = await store.summaries({ conversation: id });
      return Object.fromEntries(summaries.map((summary) => [summary.id, summary.text]));
    },
    async check() {
      const lists = [{ conversation: id, entries: host.entries }];
      await checkLossless(store, lists, { expected: ["summary_below_normal"] });
    },
  };
}

const things = ["boat", "roof", "invoice", "garden", "engine", "letter"];
const scripted = (behaviour: Behaviour | (() => Behaviour)): ReturnType<typeof createScriptedModel> =>
  createScriptedModel({ behaviour: typeof behaviour === "string" ? () => behaviour : behaviour });

type Answer = string | { readonly refusal: "filtered" | "overloaded" };

/** A model that answers by the number of the call, and has words of its own for each. */
function writer(answer: (call: number) => Answer | undefined = () => undefined): Model & {
  readonly calls: readonly CompletionRequest[];
} {
  const calls: CompletionRequest[] = [];
  return {
    provider: "scripted",
    name: "writer",
    calls,
    async complete(request) {
      const call = calls.push(request);
      const said = answer(call) ?? draftText(call);
      if (typeof said !== "string") return { kind: "refused", refusal: said.refusal, message: "as the script says" };
      return { kind: "text", text: said, finish: "stop", inputTokens: 7, outputTokens: 5 };
    },
  };
}

const draftText = (call: number): string =>
  `In draft ${call} Mara says what was bought, for how much, and who has the receipts now.\n\n${expandFooter} sums`;

const byHand = (text: string): NewSummary => ({
  text,
  tokens: renderedTokens(text),
  level: "normal",
  model: null,
  previousContext: null,
  fileIds: [],
});

/** The real store, whose nth call of this method is preceded by something. */
function meddling(store: Store, name: keyof Store, before: (call: number) => Promise<void>): Store {
  let calls = 0;
  return new Proxy(store, {
    get(target, property) {
      const method: unknown = Reflect.get(target, property);
      if (property !== name || typeof method !== "function") return method;
      return async (...args: unknown[]): Promise<unknown> => {
        await before(++calls);
        return await Reflect.apply(method, target, args);
      };
    },
  });
}

const statuses = ({ results }: RewriteReport): readonly string[] => results.map(({ status }) => status);
const asked = ({ calls }: { readonly calls: readonly CompletionRequest[] }): number => calls.length;
const textsIn = ({ results }: RewriteReport): Readonly<Record<SummaryId, string>> =>
  Object.fromEntries(results.flatMap((each) => ("old" in each ? [[each.target.summary, each.summary.text]] : [])));
/** The same model, who must not be asked. */
const mute = (): Model => writer(() => assert.fail("it was asked"));
const draft: RewriteOptions = { mode: "draft" };
const apply: RewriteOptions = { mode: "apply" };

describe("a plan to rewrite", () => {
  it("is bottom-up, in conversation order within a depth, with the cost of each", async () => {
    const { plan, texts, store } = await ground();
    const { targets, skipped } = await plan();
    const text = await texts();
    assert.deepEqual(
      targets.map(({ depth, summary }) => `${depth} ${text[summary]?.split(":")[0]}`),
      [...[0, 1, 2, 3, 4, 5].map((leaf) => `0 leaf ${leaf}`), "1 first d1", "1 second d1", "2 d2"],
    );
    assert.deepEqual(skipped, []);
    const [leaf] = targets;
    const sources = await store.sources(targets.map(({ summary }) => summary));
    const messages = await store.messages({ ids: sources.get(leaf?.summary ?? "sum_")?.messages ?? [] });
    const tokens = messages.reduce((sum, message) => sum + message.tokens, 0);
    assert.deepEqual([leaf?.sources, leaf?.sourceTokens, leaf?.targetTokens], [messages.length, tokens, 90]);
    assert.equal(leaf?.template, "leaf");
    await store.close();
  });

  it("selects one depth, or one summary", async () => {
    const { plan, using, store, id } = await ground();
    const { targets } = await plan(1);
    assert.deepEqual(new Set(targets.map(({ depth }) => depth)), new Set([1]));
    const [one] = targets;
    assert.ok(one !== undefined);
    const named = await using(null).planRewrite({ conversation: id, select: { summary: one.summary } });
    assert.deepEqual(named.targets, [one]);
    assert.deepEqual((await plan(7)).targets, []);
    await store.close();
  });

  it("leaves out what the context does not reach, unless named", async () => {
    const { plan, using, store, id } = await ground();
    const top = (await plan(2)).targets[0]?.summary ?? "sum_";
    await dissolveAt(store, id, top);
    assert.deepEqual((await plan(2)).targets, []);
    const named = await using(null).planRewrite({ conversation: id, select: { summary: top } });
    assert.deepEqual(named.targets.length, 1);
    await store.close();
  });

  it("names the origin of a carried summary, and rejects a foreign one", async () => {
    const { plan, using, store, id } = await ground();
    const top = (await plan(2)).targets[0]?.summary ?? "sum_";
    const next = await store.openSegment({ sessionId: "t", sessionKey: "agent:main:s" }, { carryDepth: 2 });
    const { targets, skipped } = await using(null).planRewrite({ conversation: next.id, select: { all: true } });
    assert.deepEqual([targets.length, skipped.length], [0, 1]);
    assert.match(skipped[0]?.reason ?? "", new RegExp(`carried over from ${top}`));
    const draftOfIt = await using(writer()).draftRewrite(skipped[0]?.summary ?? "sum_");
    assert.equal(draftOfIt.kind, "unusable");
    const foreign = using(null).planRewrite({ conversation: next.id, select: { summary: top } });
    await assert.rejects(foreign, { code: "not_found", hint: new RegExp(`lcm dag ${next.id}`) });
    assert.notEqual(next.id, id);
    await store.close();
  });
});

describe("a dry run of a rewrite", () => {
  it("changes no text, and drafts each from the drafts below it", async () => {
    const { plan, using, texts, store } = await ground();
    const before = await texts();
    const model = writer();
    const targets = await plan();
    const report = await using(model).rewriteAll(targets, draft);
    assert.deepEqual(new Set(statuses(report)), new Set(["drafted"]));
    assert.deepEqual([report.change, report.stopped], [null, null]);
    assert.deepEqual(await texts(), before);
    assert.equal(asked(model), targets.targets.length, "one call for each");
    const draftsIn = (call: number): readonly string[] =>
      [...(model.calls[call - 1]?.prompt ?? "").matchAll(/In draft (\d+) Mara/g)].map(([, number = ""]) => number);
    assert.deepEqual(draftsIn(1), []);
    assert.deepEqual(draftsIn(2), ["1"], "what comes before it");
    assert.deepEqual(draftsIn(7), ["1", "2", "3"], "its sources");
    assert.deepEqual(draftsIn(8), ["7", "4", "5", "6"], "what comes before it, and its sources");
    assert.deepEqual(draftsIn(9), ["7", "8"]);
    await store.close();
  });

  it("drafts sources first, at any concurrency", async () => {
    const { plan, using, store } = await ground();
    const model = writer();
    await using(model).rewriteAll(await plan(), { ...draft, concurrency: 4 });
    const condensed = model.calls.filter(({ prompt }) => !prompt.includes("On day"));
    assert.equal(condensed.length, 3);
    for (const { prompt } of condensed)
      assert.doesNotMatch(/<conversation_segment>[^]*/.exec(prompt)?.[0] ?? "", /leaf \d:|d1:/);
    await store.close();
  });

  it("keeps its drafts, which are applied as reviewed without calling the model again", async () => {
    for (const concurrency of [1, 3]) {
      const { plan, using, texts, store, check } = await ground();
      const targets = await plan();
      const looked = await using(writer()).rewriteAll(targets, { ...draft, concurrency });
      const model = writer(() => assert.fail("it was asked again"));
      const look = await using(model).rewriteAll(targets, { mode: "look", concurrency });
      assert.deepEqual(new Set(statuses(look)), new Set(["drafted"]));
      const report = await using(model).rewriteAll(await plan(), { ...apply, concurrency });
      assert.deepEqual(new Set(statuses(report)), new Set(["applied"]));
      const drafts = looked.results.map((result) =>
        result.status === "drafted" ? [result.target.summary, result.summary.text] : assert.fail(),
      );
      assert.deepEqual(await texts(), Object.fromEntries(drafts));
      await check();
      await store.close();
    }
  });

  it("is applied as reviewed, at any concurrency", async () => {
    for (const [looking, applying] of [
      [3, 1],
      [1, 4],
    ] as const) {
      const { plan, using, texts, store } = await ground();
      const seen = textsIn(await using(writer()).rewriteAll(await plan(), { ...draft, concurrency: looking }));
      const report = await using(mute()).rewriteAll(await plan(), { ...apply, concurrency: applying });
      assert.deepEqual(new Set(statuses(report)), new Set(["applied"]));
      assert.deepEqual(await texts(), seen);
      await store.close();
    }
  });

  it("drafts again if the prompt differs, and keeps the newest five drafts", async () => {
    const { plan, using, store } = await ground();
    const one = { ...(await plan()), targets: (await plan()).targets.slice(0, 1) };
    const calls = async (options: Partial<RewriteOptions>, more: Partial<LcmDeps> = {}, name = "writer") => {
      const model = { ...writer(), name };
      await using(model, more).rewriteAll(one, { ...draft, ...options });
      return asked(model);
    };
    const leaf = `Shorter. ${builtInTemplates.leaf}`;
    const others: readonly Parameters<typeof calls>[] = [
      [{ customInstructions: "Names first." }],
      [{ zone: null }],
      [{ zone: "Asia/Tokyo" }],
      [{}, {}, "another"],
    ];
    assert.equal(await calls({}), 1);
    const five: readonly Parameters<typeof calls>[] = [[{}], ...others];
    for (const other of others) {
      assert.equal(await calls(...other), 1);
      assert.equal(await calls(...other), 0);
    }
    for (const each of five) assert.equal(await calls(...each), 0, "each is kept beside the rest");
    assert.equal(await calls({}, { templates: { ...builtInTemplates, leaf } }), 1);
    for (const four of others) assert.equal(await calls(...four), 0);
    assert.equal(await calls({}), 1, "the oldest made room");
    await store.close();
  });

  it("keeps the drafts of two models, and applies those of the chosen one", async () => {
    const { plan, using, texts, store } = await ground();
    const one = { ...(await plan()), targets: (await plan()).targets.slice(0, 1) };
    const [target] = one.targets;
    assert.ok(target !== undefined);
    const of = (name: string): Model => ({ ...writer((call) => `${name}: ${draftText(call)}`), name });
    for (const name of ["Ada", "Bo"]) await using(of(name)).rewriteAll(one, draft);
    for (const name of ["Ada", "Bo", "Ada"]) {
      const report = await using({ ...mute(), name }).rewriteAll(one, apply);
      assert.deepEqual(statuses(report), ["applied"], "also after another's was applied");
      assert.match((await texts())[target.summary] ?? "", new RegExp(`^${name}: In draft 1`));
    }
    await store.close();
  });

  it("drafts again only unusable texts, and those above them if they are usable now", async () => {
    for (const [second, calls] of [
      ["…", 1],
      [draftText(20), 3],
    ] as const) {
      const { plan, using, texts, store, check } = await ground();
      const before = await texts();
      const looked = await using(writer((call) => (call === 2 ? "…" : undefined))).rewriteAll(await plan(), draft);
      assert.deepEqual(statuses(looked).slice(0, 3), ["drafted", "unusable", "drafted"]);
      const model = writer((call) => (call === 1 ? second : draftText(call + 20)));
      const look = await using(model).rewriteAll(await plan(), { mode: "look" });
      const open = look.results.filter(({ status }) => status === "unreached").map(({ target }) => target.depth);
      assert.deepEqual(open, [0, 1, 2], "what may be asked for: itself, and what stands on it");
      const report = await using(model).rewriteAll(await plan(), apply);
      assert.equal(asked(model), calls);
      const expected = calls === 1 ? { ...before, ...textsIn(looked) } : { ...textsIn(looked), ...textsIn(report) };
      assert.deepEqual(await texts(), expected);
      const anew = report.results.filter((result) => result.status === "applied" && !result.isKept);
      assert.deepEqual(
        anew.map(({ target }) => target.depth),
        calls === 1 ? [] : [0, 1, 2],
      );
      await check();
      await store.close();
    }
  });

  it("forgets drafts together with their sources", async () => {
    const { plan, using, texts, store, id } = await ground();
    const told = (call: number): string => `On day 3 a roof was paid. ${draftText(call)}`;
    await using(writer(told)).rewriteAll(await plan(), draft);
    await store.forget(id, await store.planForget(id, { kind: "secret", text: "On day 3 " }));
    const look = await using(mute()).rewriteAll(await plan(), { mode: "look" });
    assert.ok(!Object.values(textsIn(look)).some((text) => text.includes("On day 3 ")));
    const model = writer();
    await using(model).rewriteAll(await plan(), apply);
    assert.ok(asked(model) > 0);
    assert.ok(!Object.values(await texts()).some((text) => text.includes("On day 3 ")));
    await store.close();
  });

  it("does not call the model when counting kept drafts", async () => {
    const { plan, using, store } = await ground();
    const model = writer(() => assert.fail("it was asked"));
    const look = await using(model).rewriteAll(await plan(), { mode: "look" });
    assert.deepEqual(new Set(statuses(look)), new Set(["unreached"]));
    assert.equal(look.stopped, null);
    await store.close();
  });
});

describe("an applied rewrite", () => {
  it("is one change that can be undone, and loses nothing", async () => {
    const { plan, using, texts, store, check } = await ground();
    const before = await texts();
    const { change, results } = await using(writer()).rewriteAll(await plan(), { ...apply, operation: "repair" });
    assert.ok(change !== null);
    const journal = await store.journal({ change });
    assert.equal(journal.length, results.length);
    assert.deepEqual(new Set(journal.map(({ operation }) => operation)), new Set(["repair"]));
    for (const text of Object.values(await texts())) assert.match(text, /^In draft \d+ Mara/);
    await check();
    assert.equal((await store.undo(change)).kind, "undone");
    assert.deepEqual(await texts(), before);
    await store.close();
  });

  it("records every call with its purpose", async () => {
    const { plan, using, store } = await ground();
    const model = writer();
    const lcm = using(model);
    const before = (await lcm.spend()).usage.calls;
    await lcm.rewriteAll(await plan(), apply);
    assert.equal((await lcm.spend()).usage.calls - before, asked(model));
    assert.deepEqual(new Set(model.calls.map(({ purpose }) => purpose)), new Set(["rewrite"]));
    await store.close();
  });

  it("needs a model", async () => {
    const { plan, using, texts, store } = await ground("extractive");
    const before = await texts();
    const report = using(null).rewriteAll(await plan(), apply);
    await assert.rejects(report, { code: "unavailable", hint: /--model .*LCM_SUMMARY_MODEL/ });
    assert.deepEqual(await texts(), before);
    await store.close();
  });
});

describe("a summary that is already what the model wrote", () => {
  it("is not rewritten, unless a fresh text is requested", async () => {
    const { plan, using, texts, store } = await ground();
    await using(writer()).rewriteAll(await plan(), apply);
    const written = await texts();
    for (const mode of ["look", "draft", "apply"] as const) {
      const report = await using(mute()).rewriteAll(await plan(), { mode });
      assert.deepEqual(new Set(statuses(report)), new Set(["current"]));
      assert.equal(report.change, null);
    }
    const model = writer((call) => draftText(call + 20));
    const fresh = await using(model).rewriteAll(await plan(), { ...apply, fresh: true });
    assert.deepEqual([new Set(statuses(fresh)), asked(model)], [new Set(["applied"]), 9]);
    for (const [id, text] of Object.entries(await texts())) assert.notEqual(text, written[id as SummaryId]);
    await store.close();
  });

  it("is rewritten from its kept draft after an undo", async () => {
    const { plan, using, texts, store } = await ground();
    const { change } = await using(writer()).rewriteAll(await plan(), apply);
    const written = await texts();
    await store.undo(change ?? 0);
    const report = await using(mute()).rewriteAll(await plan(), apply);
    assert.deepEqual(new Set(statuses(report)), new Set(["applied"]));
    assert.deepEqual(await texts(), written);
    await store.close();
  });
});

describe("an unusable answer", () => {
  const bad: readonly (readonly [Answer, RegExp])[] = [
    [" \n", /empty/],
    [`<think>The ${thoughtWord} user wants a summary.</think>`, /only reasoning/],
    ["Done.", /too short: \d+ of about \d+ tokens/],
    ["And then more was bought. ".repeat(60), /too long: \d+ tokens, the cap is 135/],
    [{ refusal: "filtered" }, /refused it: as the script says/],
  ];

  it("keeps the old text, is reported with its reason, and does not stop the others", async () => {
    for (const [answer, reason] of bad) {
      const { plan, using, texts, store, check } = await ground();
      const before = await texts();
      const { targets } = await plan();
      const model = writer((call) => (call === 2 ? answer : undefined));
      const report = await using(model).rewriteAll({ targets, skipped: [] }, apply);
      const [second] = report.results.filter(({ status }) => status === "unusable");
      assert.ok(second?.status === "unusable" && second.target.summary === targets[1]?.summary);
      assert.match(second.reason, reason);
      assert.equal(statuses(report).filter((status) => status === "applied").length, targets.length - 1);
      const now = await texts();
      const kept = before[second.target.summary] ?? "";
      assert.equal(now[second.target.summary], kept);
      const firstCondensed = targets.findIndex(({ depth }) => depth === 1);
      assert.ok(model.calls[firstCondensed]?.prompt.includes(kept.trim()), "above it the old text is read");
      await check();
      await store.close();
    }
  });

  it("falls back to an aggressive text only if the old text is not normal", async () => {
    const { plan, using, store } = await ground();
    const strict = writer((call) => (call === 1 ? "" : undefined));
    const [first] = (await plan()).targets;
    assert.ok(first !== undefined);
    const report = await using(strict).rewriteAll({ targets: [first], skipped: [] }, apply);
    assert.deepEqual([statuses(report), asked(strict)], [["unusable"], 1]);
    await store.close();

    const poor = await ground("extractive");
    const second = writer((call) => (call === 1 ? "" : undefined));
    const [leaf] = (await poor.plan()).targets;
    assert.ok(leaf !== undefined && leaf.level === "extractive");
    await poor.using(second).rewriteAll({ targets: [leaf], skipped: [] }, apply);
    const [now] = await poor.store.summaries({ ids: [leaf.summary] });
    assert.deepEqual([now?.level, now?.model], ["aggressive", "scripted/writer"]);
    await poor.store.close();
  });

  it("does not replace a text that became normal meanwhile, even if kept", async () => {
    const { plan, using, texts, store } = await ground("extractive");
    const one = { ...(await plan()), targets: (await plan()).targets.slice(0, 1) };
    const [target] = one.targets;
    assert.ok(target !== undefined);
    const looked = await using(writer((call) => (call === 1 ? "" : undefined))).rewriteAll(one, draft);
    assert.ok(looked.results[0]?.status === "drafted" && looked.results[0].summary.level === "aggressive");
    await store.rewrite({ summary: target.summary, revision: 0 }, byHand("a whole and normal text"));
    const model = writer(() => "");
    const report = await using(model).rewriteAll(one, apply);
    assert.deepEqual([statuses(report), asked(model)], [["unusable"], 1]);
    assert.equal((await texts())[target.summary], "a whole and normal text");
    await store.close();
  });
});

describe("a rewrite that ends early", () => {
  it("keeps what was applied if the provider fails, and reports the rest as unreached", async () => {
    const { plan, using, texts, store, check } = await ground();
    const before = await texts();
    const { targets } = await plan();
    const model = writer((call) => (call === 4 ? { refusal: "overloaded" } : undefined));
    const report = await using(model).rewriteAll({ targets, skipped: [] }, apply);
    const left = targets.length - 3;
    assert.deepEqual(statuses(report), [...Array(3).fill("applied"), ...Array(left).fill("unreached")]);
    assert.equal(report.stopped?.refusal, "overloaded");
    assert.equal(asked(model), 4, "nobody is asked after that");
    const now = await texts();
    for (const [at, { summary }] of targets.entries()) assert.equal(now[summary] === before[summary], at >= 3);
    await check();
    await store.close();
  });

  it("applies nothing after an interrupt, not even finished drafts", async () => {
    const { plan, using, store } = await ground();
    const targets = await plan();
    await using(writer()).rewriteAll(targets, draft);
    const interruption = new AbortController();
    const report = await using(writer()).rewriteAll(targets, {
      ...apply,
      signal: interruption.signal,
      onResult: () => interruption.abort(),
    });
    assert.deepEqual(statuses(report).slice(0, 2), ["applied", "unreached"]);
    assert.equal(statuses(report).filter((status) => status === "applied").length, 1);
    await store.close();
  });

  it("keeps what was applied before an interrupt, and gives up on a model that hangs", async () => {
    const { plan, using, store, check } = await ground();
    const { targets } = await plan();
    const interruption = new AbortController();
    let calls = 0;
    const model = scripted(() => {
      calls += 1;
      if (calls < 3) return "good";
      queueMicrotask(() => interruption.abort());
      return "hangs";
    });
    const report = await using(model).rewriteAll({ targets, skipped: [] }, { ...apply, signal: interruption.signal });
    assert.deepEqual(statuses(report).slice(0, 4), ["applied", "applied", "unreached", "unreached"]);
    assert.equal(report.stopped?.refusal, "cancelled");
    await check();
    await store.close();
  });

  it("resumes where it stopped when run again", async () => {
    const { plan, using, texts, store, check } = await ground();
    const { targets } = await plan();
    const first = writer((call) => (call === 4 ? { refusal: "overloaded" } : undefined));
    await using(first).rewriteAll(await plan(), apply);
    const written = await texts();
    const model = writer((call) => draftText(call + 20));
    const report = await using(model).rewriteAll(await plan(), apply);
    const left = targets.length - 3;
    assert.deepEqual(statuses(report), [...Array(3).fill("current"), ...Array(left).fill("applied")]);
    assert.equal(asked(model), left);
    const now = await texts();
    for (const { summary } of targets.slice(0, 3)) assert.equal(now[summary], written[summary]);
    await check();
    await store.close();
  });

  const gone = new LcmError("unavailable", "the disk is full");

  it("reports what was applied if the database fails, and the failure", async () => {
    for (const method of ["rewrite", "beginCall", "endCall", "saveDraft"] as const) {
      const { plan, using, texts, store, check } = await ground();
      const before = await texts();
      const { targets } = await plan();
      const failing = meddling(store, method, async (call) => {
        if (call >= 3) throw gone;
      });
      const report = await using(writer(), { store: failing }).rewriteAll({ targets, skipped: [] }, apply);
      const left = targets.length - 2;
      assert.deepEqual(statuses(report), [...Array(2).fill("applied"), ...Array(left).fill("unreached")], method);
      assert.deepEqual([report.failed, report.stopped], [gone, null], "it is not the model's trouble");
      assert.ok(report.change !== null);
      const now = await texts();
      for (const [at, { summary }] of targets.entries()) assert.equal(now[summary] === before[summary], at >= 2);
      await check();
      assert.equal((await store.undo(report.change)).kind, "undone");
      await store.close();
    }
  });

  it("throws errors of the database if nothing was applied, and never blames the model", async () => {
    for (const [method, options] of [
      ["rewrite", apply],
      ["beginCall", apply],
      ["endCall", draft],
      ["saveDraft", { ...draft, concurrency: 3 }],
    ] as const) {
      for (const error of [gone, new LcmError("corrupt", "this is no page of a database")]) {
        const { plan, using, store } = await ground();
        const failing = meddling(store, method, async () => {
          throw error;
        });
        const report = using(writer(), { store: failing }).rewriteAll(await plan(), options);
        await assert.rejects(report, error, method);
        await store.close();
      }
    }
  });

  it("calls beforeApplying once, and not if nothing is applied", async () => {
    const { plan, using, store } = await ground();
    let calls = 0;
    const beforeApplying = async (): Promise<void> => void calls++;
    const options = { ...apply, beforeApplying };
    await using(writer(() => ({ refusal: "overloaded" }))).rewriteAll(await plan(), options);
    await using(writer(() => "")).rewriteAll(await plan(), options);
    await using(writer()).rewriteAll(await plan(), { ...options, mode: "draft" });
    assert.equal(calls, 0);
    await using(writer()).rewriteAll(await plan(), options);
    assert.equal(calls, 1);
    await using(writer()).rewriteAll(await plan(), options);
    assert.equal(calls, 1, "all say already what they would be made to say");
    await store.close();
  });
});

describe("a rewrite while others write", () => {
  it("reads a changed text again, and does not draft twice from the same input", async () => {
    const { plan, using, store } = await ground();
    const [target] = (await plan(1)).targets;
    assert.ok(target !== undefined);
    const model = writer();
    const busy: Model = {
      ...model,
      async complete(request) {
        const answer = await model.complete(request);
        await store.rewrite({ summary: target.summary, revision: 0 }, byHand("rewritten elsewhere"));
        return answer;
      },
    };
    const report = await using(busy).rewriteAll({ targets: [target], skipped: [] }, apply);
    const [result] = report.results;
    assert.ok(result?.status === "applied");
    assert.deepEqual([result.old.text, asked(model)], ["rewritten elsewhere", 1]);
    const journal = await store.journal({ change: report.change ?? 0 });
    assert.equal(journal[0]?.before.summaries[0]?.text, "rewritten elsewhere", "which an undo brings back");
    await store.close();
  });

  it("drafts again if a source was rewritten", async () => {
    const { plan, using, store } = await ground();
    const [target] = (await plan(1)).targets;
    assert.ok(target !== undefined);
    const [below = "sum_"] = (await store.sources([target.summary])).get(target.summary)?.summaries ?? [];
    const model = writer();
    const busy: Model = {
      ...model,
      async complete(request) {
        const answer = await model.complete(request);
        if (asked(model) === 1) await store.rewrite({ summary: below, revision: 0 }, byHand("another source"));
        return answer;
      },
    };
    const report = await using(busy).rewriteAll({ targets: [target], skipped: [] }, apply);
    assert.deepEqual([statuses(report), asked(model)], [["applied"], 2]);
    assert.match(model.calls[1]?.prompt ?? "", /another source/);
    await store.close();
  });

  it("gives up on a summary that keeps changing", async () => {
    const { plan, using, store } = await ground();
    const { targets } = await plan(2);
    const [target] = targets;
    assert.ok(target !== undefined);
    const model = writer();
    const busy = meddling(store, "rewrite", async (call) => {
      const text = byHand(`change ${call} of somebody else`);
      const written = await store.rewrite({ summary: target.summary, revision: call - 1 }, text);
      assert.equal(written.kind, "written");
    });
    const report = await using(model, { store: busy }).rewriteAll({ targets, skipped: [] }, apply);
    assert.deepEqual([statuses(report), report.change], [["unusable"], null]);
    assert.equal(asked(model), 1);
    const [now] = await store.summaries({ ids: [target.summary] });
    assert.equal(now?.text, "change 5 of somebody else");
    await store.close();
  });

  it("neither applies nor keeps a draft from forgotten content", async () => {
    for (const options of [draft, apply]) {
      const { plan, using, texts, store, id } = await ground();
      const { targets } = await plan(0);
      const target = targets.slice(0, 1);
      const model = writer();
      const busy: Model = {
        ...model,
        async complete(request) {
          const answer = await model.complete(request);
          if (asked(model) > 1) return answer;
          // Not in what this one is written from: only the count of what was forgotten can tell.
          const forgetting = { kind: "secret", text: "On day 39" } as const;
          await store.forget(id, await store.planForget(id, forgetting));
          return answer;
        },
      };
      const lcm = using(busy);
      const report = await lcm.rewriteAll({ targets: target, skipped: [] }, options);
      const isApplied = options.mode === "apply";
      assert.deepEqual([statuses(report), asked(model)], [[isApplied ? "applied" : "drafted"], isApplied ? 2 : 1]);
      assert.ok(!Object.values(await texts()).some((text) => text.includes("In draft 1")));
      const look = await lcm.rewriteAll(await plan(0), { mode: "look" });
      assert.ok(!statuses(look).includes("drafted"), "no draft is kept");
      await store.close();
    }
  });

  it("reports a summary that no longer exists", async () => {
    const { using, store } = await ground();
    const drafted = await using(writer()).draftRewrite("sum_0123456789abcdef");
    assert.deepEqual(drafted, { kind: "unusable", reason: "it no longer exists" });
    await store.close();
  });
});
