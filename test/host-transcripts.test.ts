/**
 * Transcripts of real hosts, through the store and back: whole, in pieces, again, and into the files they came from.
 * The fixtures are runs of the hosts with a scripted model, without the hosts' prompts. More are read if they are there.
 */

import assert from "node:assert/strict";
import {
  appendFileSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import type { Json, JsonObject } from "../src/core/base/json.ts";
import type { Lcm } from "../src/core/lcm.ts";
import type { Conversation, ConversationId } from "../src/core/model/types.ts";
import { chatsOf, importablesIn } from "../src/cli/importables.ts";
import { importTranscriptFile, type Imported } from "../src/cli/transcript-files.ts";
import { openCodeRows } from "../src/hosts/shared/rows/opencode.ts";
import { importFormat } from "../src/hosts/shared/session-places.ts";
import { openOpenCode } from "../src/store/foreign/opencode.ts";
import { freshLcms } from "./support/fresh-lcm.ts";
import { fillOpenCode } from "./support/opencode-database.ts";
import { createRandom } from "./support/random.ts";
import { makeScratch } from "./support/scratch.ts";

const fixtures = fileURLToPath(new URL("fixtures/hosts", import.meta.url));
const shared = fileURLToPath(new URL("../../shared/data/hosts", import.meta.url));
const scratch = makeScratch("host-transcripts");
const withLcm = freshLcms("host-transcripts");

const linesOf = (path: string): readonly string[] => readFileSync(path, "utf8").trimEnd().split("\n");
const parsed = (lines: readonly string[]): readonly Json[] => lines.map((line) => JSON.parse(line) as Json);

const files = [
  ...globSync("{claude-code,codex,pi}/**/*.jsonl", { cwd: fixtures }).map((name) => join(fixtures, name)),
  ...globSync("{claude-code,codex,pi}/*.jsonl", { cwd: shared, exclude: ["**/hooks.jsonl"] }).map((name) =>
    join(shared, name),
  ),
];
const names = new Map(
  files.map((path) => [
    path,
    path.startsWith(fixtures) ? path.slice(fixtures.length + 1) : `shared ${path.slice(shared.length + 1)}`,
  ]),
);

const reading = { target: { fallbackSessionId: "a-file" }, onProgress: () => undefined, isStored: () => true };

async function importFile(lcm: Lcm, path: string): Promise<Imported> {
  return await importTranscriptFile(
    { path, bytes: statSync(path).size, isFound: false },
    { ...reading, open: async () => lcm },
  );
}

async function exported(lcm: Lcm, conversation: ConversationId): Promise<readonly Json[]> {
  const lines = await Array.fromAsync(lcm.export(conversation));
  return parsed(lines);
}

/** Everything that is stored of a conversation, except ids and times of storing. */
async function stateOf({ store }: Lcm, { id }: Conversation) {
  const messages = await store.messages({ conversation: id, limit: 10_000 });
  const context = await store.context(id);
  return {
    messages: messages.map(({ key, role, aside, text, seq }) => ({ key, role, aside, text, seq })),
    context: context.map(({ id, kind, ordinal }) => ({ id, kind, ordinal })),
    entries: (await store.entries(id, 0, Number.MAX_SAFE_INTEGER)).map(({ key, afterSeq, type }) => ({
      key,
      afterSeq,
      type,
    })),
  };
}

const sound = async (lcm: Lcm): Promise<void> => {
  for (const { id } of await lcm.store.conversations({ includeHidden: true }))
    assert.deepEqual(await lcm.inspect(id), []);
};

const onlyOne = async ({ store }: Lcm): Promise<Conversation> => {
  const conversations = await store.conversations({ includeHidden: true });
  assert.equal(conversations.length, 1);
  return conversations[0] ?? assert.fail();
};

/** The same place in another folder, so that the file's name still says whose it is. */
function placeFor(path: string, name: string): string {
  const place = join(scratch, name, basename(dirname(path)), basename(path));
  mkdirSync(dirname(place), { recursive: true });
  rmSync(place, { force: true });
  return place;
}

describe("transcripts of hosts", () => {
  it("include those of longer runs", { skip: !existsSync(shared) && "there are none here" }, () => {
    assert.ok(files.some((path) => path.startsWith(shared)));
  });

  for (const path of files) {
    const name = names.get(path) ?? path;

    it(`${name} comes back row by row, and a second import brings nothing`, async () => {
      await withLcm(async ({ lcm }) => {
        const report = await importFile(lcm, path);
        assert.deepEqual([report.malformed, report.differing, report.duplicates], [[], [], 0]);
        const conversation = await onlyOne(lcm);
        assert.deepEqual(await exported(lcm, conversation.id), parsed(linesOf(path)));
        await sound(lcm);
        const before = await stateOf(lcm, conversation);
        const again = await importFile(lcm, path);
        assert.deepEqual([again.messages, again.entries, again.differing], [0, 0, []]);
        assert.deepEqual(await stateOf(lcm, await onlyOne(lcm)), before);
      });
    });

    it(`${name} is stored alike in whatever pieces it is read`, async () => {
      const lines = linesOf(path);
      let whole: Awaited<ReturnType<typeof stateOf>> | null = null;
      await withLcm(async ({ lcm }) => {
        await importFile(lcm, path);
        whole = await stateOf(lcm, await onlyOne(lcm));
      });
      for (let seed = 1; seed <= 12; seed++) {
        const random = createRandom(seed);
        const place = placeFor(path, `pieces-${seed}`);
        await withLcm(async ({ lcm }) => {
          for (let at = 0; at < lines.length;) {
            const until = Math.min(lines.length, at + random.between(1, 1 + Math.ceil(lines.length / 3)));
            appendFileSync(place, `${lines.slice(at, until).join("\n")}\n`);
            // Half of a line, as a host leaves it that is still writing.
            const torn = until < lines.length && random.chance(0.3) ? (lines[until] ?? "").slice(0, 20) : "";
            if (torn !== "") appendFileSync(place, torn);
            await importFile(lcm, place);
            if (torn !== "") writeFileSync(place, `${lines.slice(0, until).join("\n")}\n`);
            at = until;
          }
          const conversation = await onlyOne(lcm);
          assert.deepEqual(await stateOf(lcm, conversation), whole, `seed ${seed}`);
          assert.deepEqual(await exported(lcm, conversation.id), parsed(lines), `seed ${seed}`);
          await sound(lcm);
        });
      }
    });
  }

  it("are not read again where nothing was written", async () => {
    await withLcm(async ({ lcm }) => {
      // A session in several files is read again: there is one cursor for all of them.
      const found = files.filter((path) => path.startsWith(fixtures) && !path.includes("01a1ee8a-0dff"));
      for (const path of found) assert.equal((await importFile(lcm, path)).isUnchanged, false);
      for (const path of found) assert.equal((await importFile(lcm, path)).isUnchanged, true, path);
    });
  });
});

/** What is in the context, as text. */
async function contextOf({ store }: Lcm, { id }: Conversation): Promise<readonly string[]> {
  const ids = (await store.context(id)).map((item) => item.id);
  const messages = await store.messages({ conversation: id, limit: 10_000 });
  return ids.map((each) => messages.find((message) => message.id === each)?.text ?? "");
}

const fixture = (pattern: string): string =>
  join(fixtures, globSync(pattern, { cwd: fixtures })[0] ?? assert.fail(pattern));

describe("a session of Claude Code", () => {
  const trunk = fixture("claude-code/1*.jsonl");

  it("keeps calls that were made together, with their results, and leaves the branch that was rewound", async () => {
    await withLcm(async ({ lcm }) => {
      await importFile(lcm, trunk);
      const texts = await contextOf(lcm, await onlyOne(lcm));
      const together = texts.findIndex((text) => text.startsWith("three at once"));
      assert.deepEqual(texts.slice(together + 5, together + 8), ["1\tvm\n2\t", "two", "one"]);
      assert.deepEqual(texts.slice(-2), ["instead of going back", "Reply 9: you said «instead of going back»"]);
      assert.ok(!texts.includes("back on the trunk"));
      const left = await lcm.store.messages({ conversation: (await onlyOne(lcm)).id, limit: 1_000 });
      assert.equal(left.find(({ text }) => text === "back on the trunk")?.aside, "branch", "what was left is kept");
    });
  });

  it("is stored alike wherever it is cut in two, also between calls that were made together", async () => {
    const lines = linesOf(trunk);
    let whole: Awaited<ReturnType<typeof stateOf>> | null = null;
    await withLcm(async ({ lcm }) => {
      await importFile(lcm, trunk);
      whole = await stateOf(lcm, await onlyOne(lcm));
    });
    for (let cut = 1; cut < lines.length; cut++) {
      const place = placeFor(trunk, `cut-${cut}`);
      await withLcm(async ({ lcm }) => {
        writeFileSync(place, `${lines.slice(0, cut).join("\n")}\n`);
        await importFile(lcm, place);
        appendFileSync(place, `${lines.slice(cut).join("\n")}\n`);
        await importFile(lcm, place);
        assert.deepEqual(await stateOf(lcm, await onlyOne(lcm)), whole, `after line ${cut}`);
      });
    }
  });

  it("keeps what the host says apart from what people say, and goes on across its compaction", async () => {
    await withLcm(async ({ lcm }) => {
      await importFile(lcm, trunk);
      const conversation = await onlyOne(lcm);
      const messages = await lcm.store.messages({ conversation: conversation.id, limit: 10_000 });
      const notes = messages.filter(({ aside }) => aside === "note").map(({ text }) => text.split("\n")[0] ?? "");
      assert.equal(notes.length, 5);
      assert.match(
        notes.join("\n"),
        /^This session is being continued[^]*<local-command-caveat>[^]*<command-name>\/compact/,
      );
      const texts = await contextOf(lcm, conversation);
      const compacted = texts.indexOf("after the compaction");
      assert.ok(compacted > 0 && texts.indexOf("first: the word is PLUM") === 0, "nothing before it is gone");
      assert.equal(conversation.title, "first: the word is PLUM");
    });
  });

  it("has its sub-agents and forks beside it, each in a conversation of its own", async () => {
    await withLcm(async ({ lcm }) => {
      for (const path of files.filter((each) => each.startsWith(join(fixtures, "claude-code"))))
        await importFile(lcm, path);
      const found = await lcm.store.conversations({ agentId: "claude-code" });
      const named = found.map(({ sessionId, sessionKey, folder, parentSessionId }) => ({
        sessionId,
        sessionKey,
        folder,
        parentSessionId,
      }));
      const session = basename(trunk, ".jsonl");
      const agent = "a12d8ceb1e9fb60a0";
      const fork = basename(fixture("claude-code/f*.jsonl"), ".jsonl");
      const folder = "/home/user/x";
      assert.deepEqual(
        named.toSorted((a, b) => a.sessionId.localeCompare(b.sessionId)),
        [
          { sessionId: session, sessionKey: `claude-code:${session}`, folder, parentSessionId: null },
          { sessionId: agent, sessionKey: `claude-code:${agent}`, folder, parentSessionId: session },
          { sessionId: fork, sessionKey: `claude-code:${fork}`, folder, parentSessionId: null },
        ],
      );
      await sound(lcm);
    });
  });
});

describe("a session of an older Claude Code", () => {
  it("has its sub-agents in its own file; they are kept beside the conversation", async () => {
    const row = (uuid: string, parentUuid: string | null, content: string, isSidechain: boolean) => ({
      type: "user",
      uuid,
      parentUuid,
      sessionId: "s1",
      isSidechain,
      timestamp: "2026-11-18T09:00:00.000Z",
      message: { role: "user", content },
    });
    const rows = [
      row("a", null, "go", false),
      row("x", null, "helper: look", true),
      row("y", "x", "helper: found", true),
      row("b", "a", "done", false),
    ];
    const path = join(scratch, "older.jsonl");
    writeFileSync(path, rows.map((each) => `${JSON.stringify(each)}\n`).join(""));
    await withLcm(async ({ lcm }) => {
      await importFile(lcm, path);
      const conversation = await onlyOne(lcm);
      assert.deepEqual(await contextOf(lcm, conversation), ["go", "done"]);
      assert.deepEqual(await exported(lcm, conversation.id), rows);
      await sound(lcm);
    });
  });
});

describe("a rollout of Codex", () => {
  it("is what was said and done, once, with the host's own words as notes", async () => {
    await withLcm(async ({ lcm }) => {
      await importFile(lcm, fixture("codex/*T11-26-37*.jsonl"));
      const conversation = await onlyOne(lcm);
      const texts = await contextOf(lcm, conversation);
      assert.deepEqual(
        texts.slice(0, 5).map((text) => text.split("\n")[0]),
        [
          "first: the word is PLUM",
          "Reply 1: you said «first: the word is PLUM»",
          "second",
          "calling exec_command",
          'exec_command {"cmd":"echo tool-ran"}',
        ],
      );
      assert.ok(!texts.some((text) => /HOST-SUMMARY|environment_context|skills_instructions/.test(text)));
      const assembly = await lcm.assemble(conversation.id, { budget: 100_000 });
      assert.ok(JSON.stringify(assembly.messages).includes("call_c"));
      const { sessionKey, folder } = conversation;
      assert.deepEqual([sessionKey, folder], [`codex:${conversation.sessionId}`, "/home/user/x"]);
    });
  });
});

describe("turns that were taken back in Codex", () => {
  const revisions = files.filter((path) => path.startsWith(fixtures) && path.includes("01a1ee8a-0dff")).toSorted();

  it("are a branch that was left, though the thread goes on in other files", async () => {
    assert.equal(revisions.length, 3);
    await withLcm(async ({ lcm }) => {
      for (const path of revisions) assert.deepEqual((await importFile(lcm, path)).differing, []);
      const conversation = await onlyOne(lcm);
      assert.deepEqual(await contextOf(lcm, conversation), [
        "one: keep",
        "Reply 1: you said «one: keep»",
        "five: again elsewhere",
        "Reply 11: you said «five: again elsewhere»",
      ]);
      const rows = revisions.flatMap((path) => parsed(linesOf(path)));
      assert.deepEqual(await exported(lcm, conversation.id), rows);
      for (const path of revisions) assert.equal((await importFile(lcm, path)).messages, 0);
      assert.equal((await contextOf(lcm, conversation)).length, 4);
      await sound(lcm);
    });
  });

  it("are one where older versions count them", async () => {
    const rows = [
      { type: "session_meta", payload: { id: "t1", cwd: "/x" } },
      ...["one", "two", "three"].map((text) => spoken(text)),
      { type: "event_msg", payload: { type: "thread_rolled_back", num_turns: 2 } },
      { type: "turn_context", payload: { cwd: "/x" } },
      spoken("other"),
    ].map((row) => ({ timestamp: "2026-11-18T09:00:00.000Z", ...row }));
    const path = join(scratch, "taken-back.jsonl");
    writeFileSync(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    await withLcm(async ({ lcm }) => {
      await importFile(lcm, path);
      const conversation = await onlyOne(lcm);
      assert.deepEqual(await contextOf(lcm, conversation), ["one", "other"]);
      assert.deepEqual(await exported(lcm, conversation.id), rows);
      await sound(lcm);
    });
  });

  const spoken = (text: string) => ({
    type: "response_item",
    payload: { type: "message", role: "user", content: [{ type: "input_text", text }] },
  });
});

describe("a session of OpenCode", () => {
  const document = (name: string) =>
    JSON.parse(readFileSync(join(fixtures, "opencode", `${name}.json`), "utf8")) as JsonObject;
  const rowsOf = ({ info, messages }: JsonObject): readonly Json[] => [
    { info: info ?? null },
    ...(messages as readonly Json[]),
  ];
  async function importRows(lcm: Lcm, rows: readonly Json[]) {
    async function* lines() {
      for (const [at, value] of rows.entries()) yield { position: at + 1, value };
    }
    return await lcm.import(lines(), { fallbackSessionId: "x", format: importFormat(openCodeRows) });
  }

  it("comes back row by row, in whatever pieces it is read", async () => {
    const rows = rowsOf(document("before"));
    for (let cut = 1; cut <= rows.length; cut++) {
      await withLcm(async ({ lcm }) => {
        await importRows(lcm, rows.slice(0, cut));
        const report = await importRows(lcm, rows);
        assert.deepEqual([report.duplicates, report.differing], [cut, []]);
        assert.deepEqual(await exported(lcm, (await onlyOne(lcm)).id), rows);
        await sound(lcm);
      });
    }
  });

  it("keeps what a revert has deleted, as a branch that was left; the host's compaction is a note", async () => {
    await withLcm(async ({ lcm }) => {
      await importRows(lcm, rowsOf(document("before")));
      const report = await importRows(lcm, rowsOf(document("after")));
      assert.deepEqual(report.differing, [], "what the host says about the session may change");
      const conversation = await onlyOne(lcm);
      const texts = await contextOf(lcm, conversation);
      assert.equal(texts.at(-2), "on the other branch");
      assert.ok(!texts.some((text) => /to be reverted|HOST-SUMMARY/.test(text)));
      assert.ok(texts.some((text) => text.includes('bash {"command":"echo tool-ran"')));
      const all = await lcm.store.messages({ conversation: conversation.id, limit: 1_000 });
      assert.deepEqual(
        all.filter(({ aside }) => aside === "branch").map(({ text }) => text),
        ["to be reverted", "Reply 10: you said «to be reverted»"],
      );
      const kept = await Array.fromAsync(lcm.export(conversation.id, false));
      assert.deepEqual(parsed(kept).slice(1), rowsOf(document("after")).slice(1), "without it, the host's own list");
      await sound(lcm);
    });
  });

  it("is imported up to the answer that is being written, and that answer only when it is whole", async () => {
    const path = join(makeScratch("running"), "opencode.db");
    const whole = document("before");
    const messages = whole["messages"] as readonly {
      readonly info: JsonObject;
      readonly parts: readonly JsonObject[];
    }[];
    const at = messages.findLastIndex(({ info }) => info["role"] === "assistant");
    const { info = {}, parts = [] } = messages[at] ?? {};
    const { completed: _, ...time } = info["time"] as JsonObject;
    const begun = { info: { ...info, time }, parts: parts.slice(0, 1) };
    const { info: asked = {} } = messages[at - 1] ?? {};
    // Whoever asks meanwhile waits for the answer.
    const later = { ...asked, id: "msg_z", time: { created: Number(time["created"]) + 1 } };
    const queued = {
      info: later,
      parts: [{ id: "prt_z", sessionID: asked["sessionID"], messageID: "msg_z", type: "text", text: "and?" }],
    };
    await withLcm(async ({ lcm }) => {
      const importing = {
        open: async () => await Promise.resolve(lcm),
        target: { fallbackSessionId: "x" },
        onProgress: () => undefined,
      };
      for (const list of [
        [...messages.slice(0, at), begun, queued],
        [...messages.slice(0, at + 1), queued],
      ]) {
        fillOpenCode(path, { ...whole, messages: list });
        const file = { path, bytes: 1, isFound: false };
        const [session] = (await importablesIn(file, async (each) => await Promise.resolve(openOpenCode(each)))) ?? [];
        const report = await session?.import(importing);
        assert.deepEqual(report?.differing, []);
      }
      const rows = await exported(lcm, (await onlyOne(lcm)).id);
      assert.deepEqual(rows.slice(1 + at, 2 + at), [messages[at]]);
    });
  });

  it("names the session that started it", async () => {
    await withLcm(async ({ lcm }) => {
      await importRows(lcm, rowsOf(document("child")));
      const parent = document("before")["info"] as JsonObject;
      const { parentSessionId, title } = await onlyOne(lcm);
      assert.deepEqual([parentSessionId, title], [parent["id"], "d (@general subagent)"]);
    });
  });
});

describe("a session of Pi", () => {
  it("shows the branch it is on, with the entries that Pi shows as messages", async () => {
    await withLcm(async ({ lcm }) => {
      await importFile(lcm, fixture("pi/**/*.jsonl"));
      const conversation = await onlyOne(lcm);
      const texts = await contextOf(lcm, conversation);
      assert.deepEqual(texts.slice(-5), [
        "On the other branch nothing was decided.",
        "The build is green.",
        "on the new branch",
        "",
        "Here as well.",
      ]);
      assert.deepEqual(
        [conversation.title, conversation.agentId, conversation.folder],
        ["Plums", "pi", "/home/user/x"],
      );
    });
  });
});

describe("data exports of web chats", () => {
  const node = (id: string, parent: string | null, children: readonly string[], role: string, text: string) => ({
    id,
    parent,
    children,
    message: {
      id,
      author: { role, name: null, metadata: {} },
      create_time: 1_795_000_000.5,
      content: { content_type: "text", parts: [text] },
      metadata: {},
    },
  });
  /** The second question was asked again; the chat ended on the first wording's answer. */
  const chatGpt = {
    title: "Herons",
    create_time: 1_795_000_000,
    conversation_id: "chat-1",
    current_node: "d",
    mapping: {
      root: { id: "root", parent: null, children: ["s"], message: null },
      s: node("s", "root", ["a"], "system", "You are a helpful assistant"),
      a: node("a", "s", ["b"], "user", "What is grey?"),
      b: node("b", "a", ["c", "e"], "assistant", "A heron."),
      c: node("c", "b", ["d"], "user", "Where?"),
      d: node("d", "c", [], "assistant", "At the pond."),
      e: node("e", "b", [], "user", "Where and when?"),
    },
  };
  const said = (uuid: string, sender: string, text: string, more: object = {}) => ({
    uuid,
    sender,
    text,
    content: [{ type: "text", text }],
    created_at: "2026-11-18T09:00:00.000000Z",
    attachments: [],
    files: [],
    ...more,
  });
  const claudeAi = {
    uuid: "chat-2",
    name: "Tea",
    created_at: "2026-11-18T09:00:00.000000Z",
    chat_messages: [
      said("m1", "human", "Read this", {
        attachments: [{ file_name: "tea.txt", extracted_content: "Oolong is half black" }],
      }),
      said("m2", "assistant", "I did"),
    ],
  };

  async function importChats(lcm: Lcm, document: Json) {
    const path = join(scratch, "conversations.json");
    writeFileSync(path, JSON.stringify(document));
    const chats = (await chatsOf({ path, bytes: statSync(path).size, isFound: false })) ?? assert.fail();
    return await Promise.all(chats.map(async (chat) => await chat.import({ ...reading, open: async () => lcm })));
  }

  it("of ChatGPT are conversations whose context is the branch they ended on", async () => {
    await withLcm(async ({ lcm }) => {
      await importChats(lcm, [chatGpt]);
      const conversation = await onlyOne(lcm);
      assert.deepEqual(await contextOf(lcm, conversation), ["What is grey?", "A heron.", "Where?", "At the pond."]);
      assert.deepEqual([conversation.title, conversation.sessionKey], ["Herons", "chatgpt:chat-1"]);
      const { mapping, ...about } = chatGpt;
      const rows = await exported(lcm, conversation.id);
      assert.deepEqual(rows[0], about);
      assert.deepEqual(new Set(rows.slice(1)), new Set(Object.values(mapping)));
      const [again] = await importChats(lcm, [chatGpt]);
      assert.deepEqual([again?.messages, again?.entries, again?.differing], [0, 0, []]);
      await sound(lcm);
    });
  });

  it("of Claude.ai are conversations with the texts of attached files", async () => {
    await withLcm(async ({ lcm }) => {
      await importChats(lcm, [claudeAi]);
      const conversation = await onlyOne(lcm);
      const texts = await contextOf(lcm, conversation);
      assert.match(texts[0] ?? "", /^Read this\n<file name="tea.txt">\nOolong is half black/);
      assert.deepEqual([conversation.title, conversation.sessionKey], ["Tea", "claude-ai:chat-2"]);
      const { chat_messages: messages, ...about } = claudeAi;
      assert.deepEqual(await exported(lcm, conversation.id), [about, ...messages]);
      await sound(lcm);
    });
  });

  it("are told from a chat that is a list of messages", async () => {
    const path = join(scratch, "chat.json");
    writeFileSync(path, JSON.stringify([{ role: "user", content: 'the "mapping" is' }]));
    assert.equal(await chatsOf({ path, bytes: 100, isFound: false }), null);
  });
});
