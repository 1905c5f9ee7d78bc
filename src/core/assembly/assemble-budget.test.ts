import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { createRandom } from "../../../test/support/random.ts";
import type { Random } from "../../../test/support/random.ts";
import { checkValid } from "../../../test/support/valid-prompt.ts";
import type { Assembly } from "./assemble.ts";
import { messageToStore } from "../messages/codec.ts";
import type { HostMessage } from "../messages/codec.ts";
import { messageName } from "../model/types.ts";
import type { ContextItem, Message } from "../model/types.ts";
import type { Json } from "../base/json.ts";
import { msToTimestamp } from "../base/time.ts";
import {
  onScene,
  user,
  answer,
  call,
  result,
  use,
  used,
  long,
  contentOf,
  said,
  type Scene,
} from "../../../test/support/assembly-scene.ts";

const countedTokens = ({ messages }: Assembly): number =>
  messages.reduce((sum, raw) => sum + messageToStore(raw, { key: "", at: msToTimestamp(0) }).tokens, 0);

/** A random conversation: three dialects, late, early, missing and duplicate results, odd messages. */
function chat(random: Random, turns: number): readonly HostMessage[] {
  let words = 0;
  const word = (): string => `w${(words += 1)}w ${"filler text ".repeat(random.pick([0, 1, 5, 30, 300]))}`;
  const found = (): string => (random.chance(0.1) ? "" : word());
  const later: HostMessage[] = [];
  const messages: HostMessage[] = [];
  for (let turn = 0; turn < turns; turn++) {
    messages.push(random.chance(0.9) ? user(word()) : { role: "custom", content: word() });
    while (random.chance(0.6)) {
      const ids = Array.from({ length: random.between(1, 3) }, (_, at) =>
        random.chance(0.4) ? `call_${at}` : `id${turn}_${at}`,
      );
      const dialect = random.pick(["pi", "anthropic", "openai"] as const);
      const asked: HostMessage =
        dialect === "pi"
          ? call(...ids)
          : dialect === "anthropic"
            ? { role: "assistant", content: ids.map((id) => ({ type: "tool_use", id, name: "read", input: {} })) }
            : {
                role: "assistant",
                content: null,
                tool_calls: ids.map((id) => ({ id, type: "function", function: { name: "f", arguments: "{}" } })),
              };
      const answers = ids.map((id): HostMessage =>
        dialect === "pi"
          ? result(id, found())
          : dialect === "anthropic"
            ? { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: found() }] }
            : { role: "tool", tool_call_id: id, content: found() },
      );
      if (random.chance(0.1)) messages.push(...answers.splice(0, 1));
      messages.push(asked);
      for (const each of answers) {
        const fate = random.weighted({ now: 12, late: 2, never: 1, twice: 1 });
        if (fate === "late") later.push(each);
        if (fate === "now" || fate === "twice") messages.push(each);
        if (fate === "twice") messages.push(each);
      }
    }
    if (random.chance(0.3)) messages.push(...later.splice(0));
    messages.push(random.chance(0.9) ? answer(word()) : { role: "assistant", content: "" });
  }
  return messages;
}

/** Random folds of adjacent messages or summaries, as in a sweep and at worse places. */
async function foldSome({ store, conversation, fold }: Scene, random: Random): Promise<void> {
  for (let pass = 0; pass < random.below(6); pass++) {
    const context = await store.context(conversation);
    const from = random.below(Math.max(1, context.length - 6));
    const isLike = (item: ContextItem | undefined): boolean =>
      item !== undefined && item.depth === context[from]?.depth;
    let to = from;
    while (to < from + random.between(2, 12) && isLike(context[to])) to += 1;
    if (to - from < 2) continue;
    await fold(from, to, `<b>${"gist ".repeat(random.below(60))}</b> & more`);
  }
}

/** Words that identify the newest user message, and the newest message if it is in the context. */
async function wordsInContext({ store, conversation }: Scene): Promise<{
  readonly items: number;
  readonly ofUser: string | null;
  readonly last: string | null;
}> {
  const context = await store.context(conversation);
  const messages = await store.messages({ conversation });
  const isShown = new Set(context.map(({ id }) => id));
  const isUsers = (part: { readonly toolCallId: string | null }): boolean => part.toolCallId === null;
  const said = ({ text }: { readonly text: string }): boolean => /w\d+w/.test(text);
  const newestUser = messages.findLast((each) => each.role === "user" && each.parts.every(isUsers) && said(each));
  const wordOf = (message: Message | undefined): string | null => /w\d+w/.exec(message?.text ?? "")?.[0] ?? null;
  const last = messages.at(-1);
  // The newest user message is shown even if it is folded.
  return {
    items: context.length,
    ofUser: wordOf(newestUser),
    last: last && isShown.has(last.id) ? wordOf(last) : null,
  };
}

describe("guarantees 12 and 13, fuzzed: a valid prompt within the budget for any messages and folds", () => {
  const budgets = [0, 20, 60, 150, 400, 1_000, 2_500, 6_000, 15_000, 40_000];

  it("holds over orders, delays, evictions, dialects and mid-session switches", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (seed) => {
        const random = createRandom(seed);
        await onScene(async (scene) => {
          const sent = chat(random, random.between(1, 25));
          await scene.say(...sent);
          await foldSome(scene, random);
          for (const budget of budgets) {
            const assembly = await scene.see(budget, random.pick([0, 1, 4, 16, 1_000]));
            const { messages, report } = assembly;
            checkValid(messages);
            assert.ok(countedTokens(assembly) <= budget, `${countedTokens(assembly)} tokens of ${budget}`);
            assert.equal(report.tokens, countedTokens(assembly));
            assert.equal(messages.length, report.origins.length);
            const words = await wordsInContext(scene);
            assert.ok(report.evicted.items <= words.items);
            const isTailCut = report.outcome === "tail_cut" || report.outcome === "shortened";
            if (report.outcome !== "starved" && words.ofUser !== null)
              assert.ok(said(assembly).includes(words.ofUser), `the newest user message, ${words.ofUser}`);
            if (!isTailCut && report.outcome !== "starved" && words.last !== null)
              assert.ok(said(assembly).includes(words.last), `the newest message, ${words.last}`);
            if (report.outcome === "whole" && report.summaries.items === 0 && report.shortened === 0) {
              const shown = new Set(said(assembly).match(/w\d+w/g));
              assert.deepEqual(
                (JSON.stringify(sent).match(/w\d+w/g) ?? []).filter((word) => !shown.has(word)),
                [],
                "every word that was said",
              );
            }
          }
        });
      }),
      { numRuns: 40 },
    );
  });
});

describe("guarantee 12: never over budget", () => {
  it("evicts the oldest items, and begins with a fixed note", async () => {
    await onScene(async ({ say, see }) => {
      await say(
        ...Array.from({ length: 40 }, (_, at) =>
          at % 2 === 0 ? user(`${at} ${long(50)}`) : answer(`${at} ${long(50)}`),
        ),
      );
      const { messages, report, made } = await see(1_000);
      assert.equal(report.outcome, "evicted");
      assert.match(contentOf(messages[0]), /^\[Earlier parts .* not shown here\. .*lcm_grep.*lcm_expand_query/);
      assert.match(said({ messages, report, made }), /39 lorem/);
      assert.equal(report.evicted.items + report.older.items + report.tail.items, 40);
    });
  });

  it("counts summaries as rendered, and evicts more when they cost more than planned", async () => {
    await onScene(async ({ say, fold, see }) => {
      await say(...Array.from({ length: 30 }, (_, at) => user(`${at} ${long(100)}`)));
      for (let at = 0; at < 10; at++) await fold(at, at + 2, "<a href='x'>&&&&</a> ".repeat(14));
      for (const budget of [1_000, 2_000, 2_800, 3_000, 3_500, 4_000]) {
        const assembly = await see(budget);
        assert.ok(countedTokens(assembly) <= budget);
        assert.ok(assembly.report.outcome === "evicted" || assembly.report.outcome === "whole");
      }
    });
  });

  it("evicts summaries too if there are fewer raw messages than the tail allows, or none", async () => {
    await onScene(async ({ say, fold, see }) => {
      await say(...Array.from({ length: 42 }, (_, at) => user(`${at} ${long(100)}`)));
      for (let at = 0; at < 20; at++) await fold(at, at + 2, `gist ${at}`);
      const some = await see(1_500, 32);
      assert.deepEqual([some.report.outcome, some.report.tail.items], ["evicted", 2]);
      assert.ok(some.report.summaries.items > 5);
      await fold(20, 22, "gist 20");
      const none = await see(1_500, 32);
      assert.deepEqual([none.report.outcome, none.report.tail.items], ["evicted", 0]);
      assert.match(said(none), /gist 20/);
    });
  });

  it("cuts the tail up to the newest user message when it does not fit", async () => {
    await onScene(async ({ say, see }) => {
      await say(
        user("old"),
        call("a"),
        result("a", long(600, "alpha")),
        user("newest question"),
        call("b"),
        result("b", long(300, "beta")),
        answer("done"),
      );
      const { messages, report } = await see(700, 10);
      assert.equal(report.outcome, "tail_cut");
      assert.deepEqual(messages.slice(1), [
        user("newest question"),
        call("b"),
        result("b", long(300, "beta")),
        answer("done"),
      ]);
    });
  });

  it("then shortens results, the largest first, and marks what is omitted", async () => {
    await onScene(async ({ store, conversation, say, see }) => {
      const answers = [result("b", long(100, "beta")), answer(long(490, "done"))];
      await say(user("question"), call("a", "b"), result("a", long(2_000, "alpha")), ...answers);
      const { messages, report } = await see(1_000, 10);
      checkValid(messages);
      assert.equal(report.outcome, "shortened");
      assert.equal(report.shortened, 1);
      const [, , item] = await store.context(conversation);
      const id = item?.kind === "message" ? messageName(item.id) : "none";
      const shortened = new RegExp(`alpha.*\\[… [\\d,]+ characters of ${id} left out …\\].*end of alpha`);
      assert.match(JSON.stringify(messages[2]), shortened);
      assert.deepEqual(messages.toSpliced(2, 1), [user("question"), call("a", "b"), ...answers]);
    });
  });

  it("then shortens other texts, then drops the oldest after the question, and cuts the question last", async () => {
    await onScene(async ({ say, see }) => {
      await say(
        user(long(300, "question")),
        answer(long(2_000, "first")),
        call("a"),
        result("a", "small"),
        ...Array.from({ length: 5 }, (_, at) => answer(long(200, `later${at}`))),
        answer(long(2_000, "last")),
      );
      const texts = await see(1_500, 20);
      assert.deepEqual(texts.messages[0], user(long(300, "question")));
      assert.match(said(texts), /first.*left out.*end of first.*later0.*last.*left out.*end of last/);
      const fewer = await see(600, 20);
      assert.doesNotMatch(said(fewer), /end of first/);
      assert.match(said(fewer), /end of question.*end of last/);
      const least = await see(150, 20);
      assert.match(said(least), /question.*characters of msg_1-1 left out.*end of question/);
      assert.doesNotMatch(said(least), /last/);
    });
  });

  it("shows the newest user message even if it is far older than what fits", async () => {
    await onScene(async ({ say, see }) => {
      await say(user("the task of the night"));
      for (let at = 0; at < 150; at++) await say(call(`c${at}`), result(`c${at}`, long(100, `r${at}`)));
      const assembly = await see(2_000, 1_000);
      assert.match(said(assembly), /the task of the night/);
      assert.match(said(assembly), /end of r149/);
      checkValid(assembly.messages);
    });
  });

  it("finds it among hundreds of tool results in user messages", async () => {
    await onScene(async ({ say, see }) => {
      await say(user("the task of the night"));
      for (let at = 0; at < 400; at++) await say(use(`c${at}`), used(`c${at}`, long(20, `r${at}`)));
      const { messages } = await see(2_000, 8);
      checkValid(messages);
      assert.deepEqual(messages[1], user("the task of the night"));
    });
  });

  it("shows the newest user message before what is kept, wherever the context is cut", async () => {
    await onScene(async ({ say, see }) => {
      await say(...Array.from({ length: 5 }, (_, at) => user(`old ${at} ${long(30)}`)), user("the task of the night"));
      for (let at = 0; at < 60; at++) await say(call(`c${at}`), result(`c${at}`, long(100, `r${at}`)));
      for (const budget of [7_000, 5_000, 4_000, 3_000]) {
        const assembly = await see(budget, 16);
        const { messages, report } = assembly;
        checkValid(messages);
        assert.deepEqual([report.outcome, report.shortened], ["evicted", 0]);
        assert.match(contentOf(messages[0]), /Earlier parts/);
        assert.deepEqual(messages[1], user("the task of the night"));
        assert.equal(said(assembly).split("the task of the night").length, 2, "once");
        assert.equal(report.evicted.items, 126 - (messages.length - 1));
        assert.ok(report.tokens <= budget);
      }
    });
  });

  it("shortens it only if it is a large part of the budget, and the same way while the cut stays", async () => {
    await onScene(async ({ say, see }) => {
      await say(user(long(1_500, "task")));
      for (let at = 0; at < 40; at++) await say(call(`c${at}`), result(`c${at}`, long(100, `r${at}`)));
      const { messages, report } = await see(4_000, 8);
      assert.match(contentOf(messages[1]), /^task.*characters of msg_1-1 left out.*end of task$/s);
      assert.deepEqual([report.shortened, report.tail.items], [1, 8]);
      assert.deepEqual((await see(3_980, 8)).messages[1], messages[1]);
    });
  });

  it("shows it behind the summary that covers it, and first if that is evicted", async () => {
    await onScene(async ({ say, fold, see }) => {
      await say(user("the task of the night"), call("a"), result("a", long(300)));
      for (let at = 0; at < 60; at++) await say(call(`c${at}`), result(`c${at}`, long(100, `r${at}`)));
      await fold(0, 3, "They have a task.");
      const small = await see(3_000, 8);
      checkValid(small.messages);
      assert.match(said(small), /the task of the night/);
      assert.equal(small.report.evicted.items, 121 - (small.messages.length - 2), "it is no item of the context");
    });
    await onScene(async ({ say, fold, see }) => {
      await say(...Array.from({ length: 40 }, (_, at) => answer(`${at} ${long(100)}`)));
      await say(user("the task of the night"), call("a"), result("a", long(300)), answer("on it"));
      await fold(40, 43, "They have a task.");
      const assembly = await see(2_000, 1);
      assert.equal(assembly.report.outcome, "evicted");
      assert.match(said(assembly), /They have a task.*the task of the night.*on it/);
      assert.equal(said(assembly).split("the task of the night").length, 2);
    });
  });

  it("shows it word for word through a turn of hundreds of calls, however often that is folded and condensed", async () => {
    await onScene(async ({ say, fold, see, store, conversation }) => {
      const task = user(`Find the leak. ${long(200, "task")}`);
      await say(user("Good morning."), answer("Good morning."), task);
      const dialects = [
        (id: string) => [call(id), result(id, long(60, id))],
        (id: string) => [use(id), used(id, long(60, id))],
      ];
      for (let step = 0; step < 300; step++) {
        await say(...(dialects[step % 2]?.(`c${step}`) ?? []));
        const context = await store.context(conversation);
        const raw = context.findIndex(({ kind }) => kind === "message");
        if (context.length - raw >= 40) await fold(raw, raw + 20, `Part ${step}. ${long(20)}`);
        const leaves = context.filter(({ depth }) => depth === 0).length;
        if (leaves >= 4) await fold(raw - leaves, raw, `Together ${step}. ${long(20)}`);
        const { messages, report } = await see(8_000, 16);
        checkValid(messages);
        assert.ok(report.tokens <= 8_000);
        const shown = messages.filter(({ content }) => content === task["content"]);
        assert.deepEqual(shown, [task], `step ${step}`);
      }
      const { messages } = await see(8_000, 16);
      const places = messages.flatMap(({ content }, at) =>
        typeof content === "string" && content.startsWith("<summary") ? [at] : [],
      );
      const place = messages.findIndex(({ content }) => content === task["content"]);
      assert.ok(
        place > 0 && place < (places.at(-1) ?? 0),
        "the summary that covers it is before it, later ones behind it",
      );
    });
  });

  it("keeps a folded question where it is when a newer one is asked, until the next fold", async () => {
    await onScene(async ({ say, fold, see }) => {
      await say(user("the task of the night"), ...Array.from({ length: 12 }, (_, at) => answer(`${at} ${long(50)}`)));
      await fold(0, 6, "They have a task.");
      const before = await see(20_000);
      assert.match(said(before), /They have a task.*the task of the night.*5 lorem/);
      await say(user("and now?"), answer("done"), user("thanks"), answer("welcome"));
      const after = await see(20_000);
      assert.deepEqual(after.messages.slice(0, before.messages.length), before.messages);
      await fold(1, 9, "They did it.");
      assert.doesNotMatch(said(await see(20_000)), /the task of the night/);
      assert.match(said(await see(20_000)), /They did it.*and now\?.*done/);
    });
  });

  it("repeats no question where the raw messages begin with one, and never a tool's result", async () => {
    await onScene(async ({ say, fold, see }) => {
      await say(user("first task"), answer(long(50)), user("second task"), answer("begun"));
      await fold(0, 2, "One task is done.");
      assert.doesNotMatch(said(await see(5_000)), /first task/);
      await say(...["a", "b", "c"].flatMap((id) => [use(id), used(id, long(30, id))]), use("d"), used("d", "end"));
      await fold(1, 7, "They went on.");
      const { messages } = await see(5_000, 1);
      assert.deepEqual(
        messages.filter(
          ({ role, content }) => role === "user" && typeof content === "string" && !content.startsWith("<"),
        ),
        [user("second task")],
      );
    });
  });

  it("shortens a folded question that is a large part of the budget, and the same way until the next fold", async () => {
    await onScene(async ({ say, fold, see }) => {
      await say(user(long(3_000, "task")), ...Array.from({ length: 12 }, (_, at) => answer(`${at} ${long(50)}`)));
      await fold(0, 6, "They have a task.");
      const { messages, report } = await see(8_000);
      assert.match(contentOf(messages[1]), /^task.*characters of msg_1-1 left out.*end of task$/s);
      assert.ok((report.origins[1]?.tokens ?? 0) <= 2_000);
      for (const budget of [7_900, 8_050, 8_180]) assert.deepEqual((await see(budget)).messages, messages);
      assert.deepEqual((await see(40_000)).messages[1], user(long(3_000, "task")));
    });
  });

  it("counts pictures inside tool results, also in messages that are shown changed", async () => {
    await onScene(async ({ say, see }) => {
      const picture = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } };
      const answered = (id: string, content: readonly Json[]): Json => ({
        type: "tool_result",
        tool_use_id: id,
        content,
      });
      await say(user("look"));
      for (let at = 0; at < 20; at++) {
        const ids = [`a${at}`, `b${at}`];
        await say(
          { role: "assistant", content: ids.map((id) => ({ type: "tool_use", id, name: "shot", input: {} })) },
          { role: "user", content: [answered(`a${at}`, [picture]), { type: "text", text: " " }] },
          { role: "user", content: [answered(`b${at}`, [])] },
        );
      }
      const assembly = await see(10_000);
      checkValid(assembly.messages);
      assert.equal(said(assembly).split('"type":"image"').length - 1, 6);
      assert.equal(assembly.report.tokens, countedTokens(assembly));
      assert.ok(assembly.report.tokens > 6 * 1_600);
    });
  });

  it("handles messages of only reasoning", async () => {
    await onScene(async ({ say, see }) => {
      const thought = { type: "thinking", thinking: long(3_000), signature: "s" };
      await say({ role: "user", content: [thought] });
      for (const budget of [1_000, 100]) checkValid((await see(budget)).messages);
      await say(user("hi"), { role: "assistant", content: [thought] }, { role: "user", content: [thought] });
      for (const budget of [1_000, 300]) {
        const assembly = await see(budget);
        checkValid(assembly.messages);
        assert.deepEqual(assembly.messages.at(-1), user("hi"));
        assert.equal(assembly.report.evicted.items, 3);
      }
    });
  });

  it("shows nothing when nothing fits, and reports so", async () => {
    await onScene(async ({ say, see }) => {
      await say(user(long(500)));
      for (const budget of [0, -5, Number.NaN, 10]) {
        const { messages, report } = await see(budget);
        assert.deepEqual(messages, []);
        assert.equal(report.outcome, "starved");
        assert.equal(report.evicted.items, 1);
      }
    });
  });

  it("works without any user message", async () => {
    await onScene(async ({ say, see }) => {
      await say(answer(long(500, "first")), answer(long(500, "last")));
      const cut = await see(200);
      assert.match(said(cut), /end of last/);
      assert.equal(cut.report.outcome, "shortened");
      await say({
        role: "assistant",
        content: Array.from({ length: 300 }, (_, at) => ({ type: "text", text: `${at}` })),
      });
      const { messages, report } = await see(150);
      assert.equal(report.outcome, "starved");
      assert.equal(messages.length, 1, "the note alone");
    });
  });

  it("handles messages of many small texts, pictures, or call arguments", async () => {
    await onScene(async ({ say, see }) => {
      const picture = { type: "image", data: "AAAA", mimeType: "image/png" };
      await say(
        { role: "user", content: Array.from({ length: 400 }, (_, at) => ({ type: "text", text: `piece ${at}` })) },
        {
          role: "assistant",
          content: [
            { type: "toolCall", id: "w", name: "write", arguments: { text: long(900) } },
            { type: "thinking", thinking: long(900) },
          ],
        },
        { ...result("w", ""), content: [picture, picture] },
        {
          role: "assistant",
          content: null,
          tool_calls: [
            { id: "o", type: "function", function: { name: "f", arguments: JSON.stringify({ text: long(900) }) } },
          ],
        },
        { role: "tool", tool_call_id: "o", content: long(900) },
      );
      for (let budget = 8_000; budget >= 60; budget = Math.floor(budget * 0.7)) {
        const assembly = await see(budget, 10);
        checkValid(assembly.messages);
        assert.ok(countedTokens(assembly) <= budget);
        assert.match(said(assembly), /piece 0/);
        for (const { tool_calls: calls } of assembly.messages) {
          if (Array.isArray(calls)) JSON.parse((calls[0] as { function: { arguments: string } }).function.arguments);
        }
      }
    });
  });
});
