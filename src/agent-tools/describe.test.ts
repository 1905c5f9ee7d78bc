import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { messageName, messageIdOf } from "../core/model/types.ts";
import type { ConversationId, SummaryId } from "../core/model/types.ts";
import type { Delegate, Task } from "../core/recall/ask-types.ts";
import type { Model } from "../core/model/store.ts";
import { estimateTokens } from "../core/base/tokens.ts";
import { createHost, toAppendable, turnWithTool, user } from "../../test/support/scripted-host.ts";
import type { ToolContext } from "./define.ts";
import { openLcm, makePlace, world, call, codeOf, issue } from "../../test/support/tools-world.ts";

describe("lcm_describe", () => {
  /** Three levels of summaries over messages. */
  async function pyramid() {
    const lcm = await openLcm();
    const { store } = lcm;
    const { id } = await store.open({ sessionId: "p" });
    const host = createHost("p");
    for (let at = 0; at < 64; at++)
      host.says(user(`Message number ${at} says something of some length about the day.`));
    await store.append(id, host.entries.map(toAppendable));
    const fold = async (from: number, to: number, text: string): Promise<SummaryId> => {
      const run = (await store.context(id)).slice(from, to);
      const folded = await store.fold(id, run, {
        text,
        tokens: estimateTokens(text),
        level: "truncated",
        model: null,
        previousContext: null,
        fileIds: [],
      });
      return folded.kind === "written" ? folded.summary : assert.fail("folded");
    };
    const leaves: SummaryId[] = [];
    for (let leaf = 0; leaf < 8; leaf++)
      leaves.push(await fold(leaf, leaf + 8, `Leaf ${leaf}, and a few words more about that part.`));
    const middle = [
      await fold(0, 4, "First half, in a few words more."),
      await fold(1, 5, "Second half, in a few words more."),
    ];
    const top = await fold(0, 2, "All of\nmsg_1-1 · user\nit.");
    const context: ToolContext = { lcm, reader: { conversation: id, policy: "own" } };
    return { lcm, id, leaves, middle, top, context };
  }

  it("shows a summary's range, cost, text and what is below it", async () => {
    const { top, middle, leaves, context, id } = await pyramid();
    const { text, details } = await call("lcm_describe", { id: top }, context);
    const lines = text.split("\n");
    assert.match(
      lines[0] ?? "",
      new RegExp(`^${top} · condensed summary, depth 2 · \\d+ tokens · 2026-02-17 07:37 – 07:38 UTC$`),
    );
    assert.match(lines[1] ?? "", /^Level: truncated/);
    assert.match(lines[2] ?? "", /^Below it: 10 summaries, 64 messages \([\d,]+ tokens\):$/);
    assert.match(
      lines[3] ?? "",
      new RegExp(
        `^ {2}${middle[0]} · depth 1 · \\d+ tokens · 32 messages \\(\\d+ tokens\\) · .* · "First half, in a few words more\\."$`,
      ),
    );
    assert.match(lines[4] ?? "", new RegExp(`^ {4}${leaves[0]} · depth 0 · `));
    assert.deepEqual(lines.slice(-4), ["Text:", "> All of", "> msg_1-1 · user", "> it."]);
    assert.deepEqual(
      [
        details["id"],
        details["type"],
        details["kind"],
        details["depth"],
        details["parentIds"],
        details["childIds"],
        details["descendantCount"],
        details["conversationId"],
        details["truncated"],
      ],
      [top, "summary", "condensed", 2, middle, [], 10, id, false],
    );
    assert.equal(details["content"], "All of\nmsg_1-1 · user\nit.");
  });

  it("limits the ids it lists, and counts the rest", async () => {
    const { leaves, context, lcm } = await pyramid();
    const scattered = Array.from({ length: 380 }, (_, at) => messageIdOf(1 as ConversationId, 2 * at + 1));
    const describeAll: typeof lcm.describe = async (request) => {
      const described = await lcm.describe(request);
      return described.kind === "summary"
        ? { ...described, sources: { messages: scattered, summaries: [] } }
        : described;
    };
    const apart = { ...context, lcm: { ...lcm, describe: describeAll } };
    const { text } = await call("lcm_describe", { id: leaves[0], tokenCap: 1 }, apart);
    assert.match(text, /^Sources: msg_1-1, msg_1-3, .*msg_1-39 and 360 more$/m);
    assert.ok(estimateTokens(text) < 400);
  });

  it("shows a leaf's messages as ranges, and the summaries derived from it", async () => {
    const { leaves, middle, context } = await pyramid();
    const { text, details } = await call("lcm_describe", { id: leaves[0] }, context);
    assert.match(text, /^Sources: msg_\d+-\d+ to msg_\d+-\d+$/m);
    assert.match(text, new RegExp(`^Summarised again in: ${middle[0]}$`, "m"));
    assert.match(text, /^Below it: 8 messages \(\d+ tokens\)$/m);
    const ids = details["messageIds"];
    assert.ok(Array.isArray(ids) && ids.length === 8);
  });

  it("cuts the list below a summary to tokenCap, and says how to see the rest", async () => {
    const { top, middle, context } = await pyramid();
    const listed = (text: string): readonly string[] => text.match(/(?<=^ +)sum_\w+/gm) ?? [];
    const { text } = await call("lcm_describe", { id: top, tokenCap: 120 }, context);
    assert.deepEqual(listed(text), middle);
    assert.doesNotMatch(text, /^Made from/m);
    assert.match(text, /^ {2}and 8 more: raise tokenCap, or call lcm_describe with one of these ids/m);
    const short = await call("lcm_describe", { id: top, tokenCap: 60 }, context);
    assert.deepEqual(listed(short.text), middle.slice(0, 1));
    assert.match(short.text, new RegExp(`^Sources: ${middle.join(", ")}$`, "m"));
  });

  it("shows a message with its leaf, and says if it was cut", async () => {
    const { leaves, context, lcm } = await pyramid();
    const [first] =
      (await lcm.store.sources([leaves[0] ?? assert.fail()])).get(leaves[0] ?? assert.fail())?.messages ?? [];
    const id = messageName(first ?? assert.fail("a message"));
    const { text, details } = await call("lcm_describe", { id }, context);
    assert.match(
      text,
      new RegExp(
        `^${id} · user · \\d+ tokens · 2026-02-17 07:37 UTC\nSummarised in: ${leaves[0]}\n> Message number 0 says`,
      ),
    );
    assert.deepEqual([details["type"], details["role"], details["truncated"]], ["message", "user", false]);
    const cut = await call("lcm_describe", { id, tokenCap: 3 }, context);
    assert.match(cut.text, /^… 13 tokens left out; pass find: "words" or raise tokenCap …$/m);
    assert.equal(cut.details["truncated"], true);
  });

  it("shows a file in pieces, with the call for the next one", async () => {
    const lcm = await openLcm();
    const { id } = await lcm.store.open({ sessionId: "f" });
    const content = Array.from({ length: 400 }, (_, at) => `line ${at + 1} of the log`).join("\n");
    const file = await lcm.store.saveFile({
      conversation: id,
      name: "server.log",
      mimeType: "text/plain",
      content,
      encoding: "utf8",
      exploration: "A log.",
    });
    const context: ToolContext = { lcm, reader: { conversation: id, policy: "own" } };
    const first = await call("lcm_describe", { id: file.id, tokenCap: 300 }, context);
    assert.match(first.text, new RegExp(`^${file.id} · "server.log" · text/plain · [\\d.]+ KB · 400 lines · `));
    const path = first.details["storagePath"];
    assert.ok(typeof path === "string");
    assert.equal(readFileSync(path, "utf8"), content);
    assert.ok(first.text.includes(`\nStored at ${JSON.stringify(path)}`), first.text);
    assert.match(first.text, /^Summary of the file:\n> A log\.$/m);
    const next = first.details["nextLine"];
    assert.ok(typeof next === "number" && next > 10 && next < 100);
    assert.match(first.text, new RegExp(`^Lines 1 to ${next - 1} of 400:\n> line 1 of the log$`, "m"));
    assert.ok(first.text.endsWith(`Continue with lcm_describe {"id":"${file.id}","fromLine":${next}}`));
    const second = await call("lcm_describe", { id: file.id, fromLine: next, toLine: next + 1 }, context);
    assert.match(
      second.text,
      new RegExp(
        `^Lines ${next} to ${next + 1} of 400:\n> line ${next} of the log\n> line ${next + 1} of the log$`,
        "m",
      ),
    );
    const bytes = await call("lcm_describe", { id: file.id, maxBytes: 40 }, context);
    assert.match(bytes.text, /^Lines 1 to 2 of 400:$/m);
    const cut = await call("lcm_describe", { id: file.id, maxBytes: 4 }, context);
    assert.match(
      cut.text,
      /^> line\nLine 1 was cut: raise maxBytes to read more of it\.\nNext line: lcm_describe .*"fromLine":2\}$/m,
    );
    const beyond = await call("lcm_describe", { id: file.id, fromLine: 401 }, context);
    assert.equal(codeOf(beyond), "invalid");
    assert.equal(beyond.text, "lcm_describe: line 401 is not in the file (400 lines).");
  });

  describe("several messages", () => {
    const long = `first line\n${"nothing to see here\n".repeat(300)}the needle is here\n${"nothing either\n".repeat(300)}Error: last line`;

    async function talk(): Promise<ToolContext> {
      const lcm = await openLcm();
      const { id } = await lcm.store.open({ sessionId: "range" });
      const host = createHost("range");
      for (const text of ["one", "two", long, "four", "five"]) host.says(user(text));
      await lcm.store.append(id, host.entries.map(toAppendable));
      const entry = { key: "c", type: "compaction", at: null, raw: '{"type":"compaction","tokensBefore":1234}' };
      await lcm.store.append(id, [{ kind: "entry", entry }]);
      host.says(user("six\n— compacted by the host"));
      await lcm.store.append(id, host.entries.slice(-1).map(toAppendable));
      return { lcm, reader: { conversation: id, policy: "own" } };
    }
    const heads = (text: string): readonly string[] => text.match(/^(?:msg_1-\d+|—.*)/gm) ?? [];

    it("are read as a range, a list, or around one, in order, with marks between them", async () => {
      const context = await talk();
      for (const id of ["msg_1-4..msg_1-6", "msg_1-4..6", "msg_1-4, msg_1-5 msg_1-6", "msg_1-4…6", "1-4..6"]) {
        const { text, isError, details } = await call("lcm_describe", { id }, context);
        assert.equal(isError, false, text);
        assert.deepEqual(heads(text), ["msg_1-4", "msg_1-5", "— compacted by the host at 1,234 tokens", "msg_1-6"], id);
        assert.equal((details["items"] as readonly unknown[]).length, 3);
      }
      const around = await call("lcm_describe", { id: "msg_1-5", around: 1 }, context);
      assert.deepEqual(heads(around.text), [
        "msg_1-4",
        "msg_1-5",
        "— compacted by the host at 1,234 tokens",
        "msg_1-6",
      ]);
      assert.match(around.text, /^> — compacted by the host$/m, "stored text cannot pass for a mark");
      const edge = await call("lcm_describe", { id: "msg_1-1", around: 2, tokenCap: 300 }, context);
      assert.deepEqual(heads(edge.text), ["msg_1-1", "msg_1-2", "msg_1-3"]);
      assert.ok((edge.read?.tokens ?? 0) <= 300);
      const overview = await call("lcm_describe", { id: "msg_1-1..6" }, context);
      assert.ok((overview.read?.tokens ?? 0) <= 1.3 * 900, "long ones are cut");
      assert.ok(
        ((await call("lcm_describe", { id: "msg_1-3" }, context)).read?.tokens ?? 0) > 2_000,
        "one alone is not",
      );
    });

    it("report what did not fit, and reject what is not a range", async () => {
      const context = await talk();
      const { text } = await call("lcm_describe", { id: "msg_1-1..6", tokenCap: 50 }, context);
      assert.match(text, /^Left out: 4 items from msg_1-3 on\. Ask for them separately, or raise tokenCap\.$/m);
      for (const id of ["msg_1-6..4", "msg_1-4..msg_2-5"])
        assert.equal(codeOf(await call("lcm_describe", { id }, context)), "invalid", id);
      assert.equal(codeOf(await call("lcm_describe", { id: "msg_1-90" }, context)), "not_found");
      assert.equal(codeOf(await call("lcm_describe", { id: "msg_1-9, msg_77-1" }, context)), "not_found");
    });

    it("say date and time only where these change, and a line that an output repeats once", async () => {
      const context = await talk();
      const { text } = await call("lcm_describe", { id: "msg_1-1..2" }, context);
      assert.match(text, /^Times in UTC\.\nmsg_1-1 user \d{4}-\d\d-\d\d \d\d:\d\d\n> one\nmsg_1-2 user\n> two$/);
      const { store } = context.lcm;
      const { id } = await store.open({ sessionId: "noise" });
      const host = createHost("noise");
      const output = `built 7 files\n${"Debugger attached.\n".repeat(9)}`;
      for (const said of turnWithTool("c1", "build it", output).slice(0, 3)) host.says(said);
      await store.append(id, host.entries.map(toAppendable));
      const here: ToolContext = { ...context, reader: { conversation: id, policy: "own" } };
      const several = await call("lcm_describe", { id: `msg_${id}-1..3` }, here);
      assert.match(several.text, /Lines that an output repeats are shown once/);
      assert.equal(several.text.match(/Debugger attached/g)?.length, 1);
      const alone = await call("lcm_describe", { id: `msg_${id}-3` }, here);
      assert.equal(alone.text.match(/Debugger attached/g)?.length, 9);
    });

    it("of one role only, and up to the last of the conversation", async () => {
      const context = await talk();
      const past = await call("lcm_describe", { id: "msg_1-90" }, context);
      assert.match(past.text, /^lcm_describe: there is no msg_1-90: conversation 1 ends with msg_1-6\.\n/);
      for (const name of ["lcm_recent", "lcm_map"]) {
        const task = name === "lcm_map" ? { prompt: "Count.", schema: { type: "integer" } } : {};
        const refused = await call(name, { ...task, since: "msg_1-90" }, context);
        assert.match(refused.text, new RegExp(`^${name}: there is no msg_1-90: conversation 1 ends with msg_1-6\\.\n`));
      }
      const beyond = await call("lcm_describe", { id: "msg_1-90..99" }, context);
      assert.equal(beyond.text, "Times in UTC.\nmsg_1-6 is the last of this conversation.");
      const some = await call("lcm_describe", { id: "msg_1-5..9", role: "user" }, context);
      assert.match(some.text, /\nmsg_1-5 user [^]*\nmsg_1-6 user\n[^]*\nmsg_1-6 is the last of this conversation\.$/);
      const none = await call("lcm_describe", { id: "msg_1-4..5", role: "tool" }, context);
      assert.equal(none.text, "Times in UTC.\nNone of these messages has this role.");
      assert.equal(codeOf(await call("lcm_describe", { id: "msg_1-4..5", role: "users" }, context)), "invalid");
    });

    it("one that is slightly longer than tokenCap is whole, and an edit shows its lines", async () => {
      const lcm = await openLcm();
      const { id } = await lcm.store.open({ sessionId: "edits" });
      const host = createHost("edits");
      host.says(user("nothing to see here, not at all. ".repeat(14)));
      const edit = { path: "a.ts", oldText: "{\n\tone\n}", newText: "{\n\ttwo\n}" };
      host.says({ role: "assistant", content: [{ type: "toolCall", id: "c1", name: "edit", arguments: edit }] });
      await lcm.store.append(id, host.entries.map(toAppendable));
      const context: ToolContext = { lcm, reader: { conversation: id, policy: "own" } };
      const whole = (await call("lcm_describe", { id: "msg_1-1" }, context)).read?.tokens ?? assert.fail();
      for (const [share, truncated] of [
        [0.8, false],
        [0.7, true],
      ] as const) {
        const shown = await call("lcm_describe", { id: "msg_1-1", tokenCap: Math.ceil(share * whole) }, context);
        assert.equal(shown.details["truncated"], truncated);
      }
      const { text } = await call("lcm_describe", { id: "msg_1-2" }, context);
      assert.match(text, /\n> edit a\.ts\n> {3}\{\n> - \tone\n> \+ \ttwo\n> {3}\}$/);
    });

    it("a long one keeps its beginning and end, or shows the place that was asked for", async () => {
      const context = await talk();
      const cut = await call("lcm_describe", { id: "msg_1-3", tokenCap: 100 }, context);
      assert.match(
        cut.text,
        /\n> first line\n[^]*\n… [\d,]+ tokens left out; pass find: "words" or raise tokenCap …\n[^]*\n> Error: last line$/,
      );
      const found = await call("lcm_describe", { id: "msg_1-3", find: "Needle is", tokenCap: 60 }, context);
      assert.match(
        found.text,
        /^Found in 1 place:\n… [\d,]+ tokens left out …\n[^]*^> the needle is here$[^]*left out …$/m,
      );
      const all = await call("lcm_describe", { id: "msg_1-3", find: "nothing either", tokenCap: 200 }, context);
      assert.match(all.text, /^Found in 300 places:$/m);
      assert.match(found.text, /^> the needle is here\n> nothing either$/m, "with what follows it");
      assert.ok((all.read?.tokens ?? 0) <= 200);
      const none = await call("lcm_describe", { id: "msg_1-3", find: "zzz", tokenCap: 60 }, context);
      assert.match(none.text, /^The words to find do not occur here\.$/m);
    });
  });

  it("rejects an invalid id, and shows a valid one", async () => {
    const result = await call(
      "lcm_describe",
      { id: "../../etc/passwd" },
      { lcm: world.lcm, reader: { conversation: null, policy: "all" } },
    );
    assert.equal(codeOf(result), "invalid");
    assert.match(result.text, /sum_0123456789abcdef/);
  });

  it("says that only the text is available if the origin of a carried summary was pruned", async () => {
    const lcm = await openLcm();
    const session = { sessionId: "s", sessionKey: "agent:main:cli", agentId: "main" };
    const early = await makePlace(lcm, "thimble", session);
    const { id } = await lcm.store.openSegment(session, { carryDepth: 0 });
    const [carried] = await lcm.store.summaries({ conversation: id });
    const ask = async () =>
      (await call("lcm_describe", { id: carried?.id }, { lcm, reader: { conversation: id, policy: "own" } })).text;
    assert.match(await ask(), new RegExp(`Carried over from ${early.leaf} of an earlier segment`));
    const { revision = 0 } = (await lcm.store.conversation(early.id)) ?? {};
    assert.equal((await lcm.store.remove([{ conversation: early.id, revision }])).kind, "written");
    assert.match(await ask(), /Carried over from an earlier segment that cannot be read from here/);
    await lcm.close();
  });
});

describe("lcm_expand", () => {
  it("shows what a summary was made from, and what was left out", async () => {
    const { own, lcm } = world;
    const context: ToolContext = { lcm, reader: { conversation: own.id, policy: "own" }, grant: await issue([own.id]) };
    const without = await call("lcm_expand", { summaryIds: own.leaf }, context);
    assert.match(without.text, /^4 messages below not included: set includeMessages to true to read them\.$/m);
    const { text, read } = await call("lcm_expand", { summaryIds: [own.leaf], includeMessages: "true" }, context);
    assert.match(
      text,
      new RegExp(
        `^${messageName(own.message)} · assistant · 2026-02-17 07:37 UTC\n> The secret is basalt, said the keeper\\.$`,
        "m",
      ),
    );
    assert.ok(read?.messages.includes(own.message) && read.summaries.includes(own.leaf));
    const few = await call(
      "lcm_expand",
      { summaryIds: [own.leaf], includeMessages: true, tokenCap: 20, query: "secret" },
      context,
    );
    assert.match(few.text, /^Left out: \d items? \(\d+ tokens\)/m);
    assert.equal(few.details["truncated"], true);
  });

  it("rejects an id that is not a summary's", async () => {
    const { own, lcm } = world;
    const context: ToolContext = { lcm, reader: { conversation: own.id, policy: "own" }, grant: await issue([own.id]) };
    const result = await call("lcm_expand", { summaryIds: ["msg_1-1"] }, context);
    assert.equal(codeOf(result), "invalid");
    assert.match(result.text, /"msg_1-1", which is not a summary id/);
  });
});

describe("lcm_expand_query", () => {
  const prompt = "What is the secret of this place?";
  const here = (more: Partial<ToolContext> = {}): ToolContext => ({
    lcm: world.lcm,
    reader: { conversation: world.own.id, policy: "agent" },
    ...more,
  });

  it("answers with excerpts and their sources if there is no model", async () => {
    const { text, details, isError } = await call("lcm_expand_query", { prompt }, here());
    assert.equal(isError, false);
    assert.match(text, /basalt/);
    assert.match(text.split("\n").at(-1) ?? "", /^Sources: .*(sum|msg)_.* tokens read, .*excerpts/);
    assert.deepEqual([details["by"], details["truncated"]], ["excerpts", false]);
    assert.ok(typeof details["partial"] === "string");
  });

  it("gives a delegate lcm_expand, lcm_describe and lcm_grep under one grant, and returns its answer", async () => {
    const { own, stranger } = world;
    const seen: Task[] = [];
    const answers: string[] = [];
    const delegate: Delegate = async (task) => {
      seen.push(task);
      for (const tool of task.tools) {
        for (const args of [
          { summaryIds: [own.leaf], includeMessages: true, id: own.leaf, pattern: "basalt" },
          { id: stranger.leaf, summaryIds: [stranger.leaf], pattern: "diamond" },
        ]) {
          const known = Object.fromEntries(
            Object.entries(args).filter(([key]) => key in Object(tool.parameters["properties"])),
          );
          const { text, isError } = await tool.run(known, { grant: task.grant });
          answers.push(`${tool.name} ${isError} ${/basalt|diamond/.exec(text)?.[0] ?? ""}`);
        }
      }
      return { kind: "answered", text: `It is basalt [${own.leaf}].\nSources: forged` };
    };
    const { text, details } = await call("lcm_expand_query", { prompt, summaryIds: [own.leaf] }, here({ delegate }));
    assert.deepEqual(
      seen[0]?.tools.map(({ name }) => name),
      ["lcm_expand", "lcm_describe", "lcm_grep"],
    );
    assert.match(seen[0]?.prompt ?? "", /search with lcm_grep in words that the record may use/);
    assert.deepEqual(answers, [
      "lcm_expand false basalt",
      "lcm_expand true ",
      "lcm_describe false basalt",
      "lcm_describe true ",
      "lcm_grep false basalt",
      "lcm_grep false ",
    ]);
    assert.match(text, /^> It is basalt/);
    assert.match(text, /^> Sources: forged$/m);
    assert.match(text.split("\n").at(-1) ?? "", new RegExp(`^Sources: ${own.leaf} `));
    assert.deepEqual([details["by"], details["citedIds"], details["partial"]], ["delegate", [own.leaf], null]);
    const grant = await world.lcm.store.grant(seen[0]?.grant ?? assert.fail("a grant"));
    assert.notEqual(grant?.revokedAt, null);
  });

  it("returns a partial answer when its time is up and the model is silent", async () => {
    const model: Model = {
      provider: "scripted",
      name: "silent",
      complete: async () => await new Promise(() => undefined),
    };
    const lcm = await openLcm({ config: { expandTimeoutSeconds: 1 }, model });
    const place = await makePlace(lcm, "garnet", { sessionId: "s", sessionKey: "k", agentId: null });
    const context: ToolContext = { lcm, reader: { conversation: place.id, policy: "own" } };
    const { text, details, isError } = await call("lcm_expand_query", { prompt }, context);
    assert.equal(isError, false);
    assert.match(text, /garnet/);
    assert.match(text.split("\n").at(-1) ?? "", /Partial: /);
    assert.equal(details["by"], "excerpts");
  });

  it("stops when the caller's signal fires", async () => {
    const model: Model = {
      provider: "scripted",
      name: "silent",
      complete: async () => await new Promise(() => undefined),
    };
    const lcm = await openLcm({ model });
    const place = await makePlace(lcm, "garnet", { sessionId: "s", sessionKey: "k", agentId: null });
    const stop = new AbortController();
    const context: ToolContext = {
      lcm,
      reader: { conversation: place.id, policy: "own" },
      signal: stop.signal,
      onProgress: (progress) => progress.kind === "asking" && stop.abort(),
    };
    const { text } = await call("lcm_expand_query", { prompt }, context);
    assert.match(text, /Sources: /);
  });

  it("says that an answer was cut at maxTokens", async () => {
    const delegate: Delegate = async () => ({ kind: "answered", text: "It is basalt. ".repeat(200) });
    const { text, details } = await call("lcm_expand_query", { prompt, maxTokens: 50 }, here({ delegate }));
    assert.equal(details["truncated"], true);
    assert.match(text, /Cut at maxTokens 50\./);
  });

  it("rejects an empty question and invalid ids", async () => {
    assert.match((await call("lcm_expand_query", { query: "x" }, here())).text, /prompt is missing/);
    assert.match(
      (await call("lcm_expand_query", { prompt, summaryIds: ["sum_x"] }, here())).text,
      /"sum_x", which is not a summary id/,
    );
    assert.equal(codeOf(await call("lcm_expand_query", { prompt, maxTokens: 0 }, here())), "invalid");
  });
});
