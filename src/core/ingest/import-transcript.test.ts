import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { openSqlite, systemNow } from "../../store/sqlite/store.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { LcmError } from "../base/errors.ts";
import { exportTranscript } from "./export-transcript.ts";
import { importTranscript } from "./import-transcript.ts";
import type { ImportTarget, SourceLine } from "./import-transcript.ts";
import { messageName } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import type { Json } from "../base/json.ts";
import type { Timestamp } from "../base/time.ts";

async function* linesOf(values: readonly Json[]): AsyncGenerator<SourceLine> {
  for (const [index, value] of values.entries()) yield { position: index + 1, text: JSON.stringify(value) };
}

const chat = (...texts: readonly string[]): readonly Json[] => texts.map((text) => ({ role: "user", content: text }));

const paste = (name: string): string => `${name} says:\n${"lorem ipsum ".repeat(60)}`;

async function onStore(
  test: (
    bring: (values: readonly Json[], target?: Partial<ImportTarget>) => ReturnType<typeof importTranscript>,
    store: Store,
    filesDir: string,
  ) => Promise<void>,
  largeFileTokenThreshold = 25_000,
): Promise<void> {
  const folder = makeScratch("ingest");
  const store = await openSqlite({ path: join(folder, "lcm.db"), filesDir: join(folder, "files") });
  try {
    const deps = { store, clock: { now: systemNow }, settings: { largeFileTokenThreshold } };
    await test(
      async (values, target) => await importTranscript(deps, linesOf(values), { fallbackSessionId: "log", ...target }),
      store,
      join(folder, "files"),
    );
  } finally {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

describe("importing a chat without a name", () => {
  it("continues the same chat when it has grown", async () => {
    await onStore(async (bring) => {
      const first = await bring(chat("a", "b"));
      const grown = await bring(chat("a", "b", "c"));
      assert.equal(grown.conversation?.id, first.conversation?.id);
      assert.deepEqual([grown.messages, grown.duplicates], [1, 2]);
    });
  });

  it("keeps another chat of the same name separate, and recognises each again", async () => {
    await onStore(async (bring, store) => {
      const one = await bring(chat("be kind", "alpha", "x"));
      const two = await bring(chat("be kind", "beta", "x"));
      const three = await bring(chat("gamma"));
      const again = await bring(chat("be kind", "beta", "x", "y"));
      assert.deepEqual(
        [one, two, three, again].map(({ conversation }) => conversation?.sessionId),
        ["log", "log-2", "log-3", "log-2"],
      );
      assert.deepEqual([again.messages, again.duplicates, again.differing], [1, 3, []]);
      const lines = await Array.fromAsync(exportTranscript(store, two.conversation?.id ?? assert.fail()));
      assert.deepEqual(
        lines.map((line) => (JSON.parse(line) as { content: string }).content),
        ["be kind", "beta", "x", "y"],
      );
    });
  });
});

describe("two files of one name with nothing in common", () => {
  it("are two chats", async () => {
    await onStore(async (bring) => {
      const line = (id: string): Json => ({
        type: "message",
        id,
        parentId: null,
        message: { role: "user", content: id },
      });
      const [one, other] = [await bring([line("a")]), await bring([line("b")])];
      assert.notEqual(one.conversation?.id, other.conversation?.id);
    });
  });
});

describe("the title of an imported chat", () => {
  it("is the first thing its user said that is neither a command nor blank", async () => {
    await onStore(async (bring) => {
      assert.equal((await bring(chat(" \n ", "/status", "Hello there"))).conversation?.title, "Hello there");
    });
  });
});

describe("importing a file that is not a transcript", () => {
  const bringLines = async (store: Store, lines: Iterable<string>) => {
    async function* source(): AsyncGenerator<SourceLine> {
      let position = 0;
      for (const text of lines) yield { position: ++position, text };
    }
    const deps = { store, clock: { now: systemNow } };
    return await importTranscript(deps, source(), { fallbackSessionId: "README" });
  };
  const header = '{"type":"session","version":3,"id":"fresh"}';
  const isRefusal = (words: RegExp) => (error: unknown) =>
    error instanceof LcmError && error.code === "invalid" && words.test(error.message) && error.hint !== undefined;

  it("is rejected, with nothing stored and no conversation created", async () => {
    await onStore(async (_, store) => {
      const readme = ["# Harbour", "", "```json", '{"role": 5}', "```", "Run it."];
      const refused = isRefusal(/^not a transcript: none of its 5 lines is a message$/);
      await assert.rejects(bringLines(store, readme), refused);
      await assert.rejects(bringLines(store, ["just words"]), isRefusal(/its only line is not a message/));
      const otherProgram = JSON.stringify({ type: "user", message: { role: "user", content: "hi" } });
      await assert.rejects(bringLines(store, [otherProgram, otherProgram]), isRefusal(/none of its 2 lines/));
      assert.deepEqual(await store.conversations({ includeHidden: true }), []);
    });
  });

  it("does not read it to the end", async () => {
    await onStore(async (_, store) => {
      for (const [line, lines] of [
        ["a line of a log", "10,000"],
        [`{"n":"${"9".repeat(1_000_000)}"}`, "32"],
      ] as const) {
        let given = 0;
        const endless = function* (): Generator<string> {
          for (; given < 20_000; given++) yield line;
        };
        const refused = isRefusal(new RegExp(`none of its first ${lines} lines is a message`));
        await assert.rejects(bringLines(store, endless()), refused);
        assert.ok(given <= 10_000);
      }
      assert.deepEqual(await store.conversations(), []);
    });
  });

  it("accepts a long first line, and separates a second chat of its name, however late its messages begin", async () => {
    await onStore(async (_, store) => {
      const long = await bringLines(store, [
        JSON.stringify({ type: "custom", data: "x".repeat(4_100_000) }),
        '{"type":"session","id":"long"}',
        '{"role":"user","content":"said"}',
      ]);
      assert.deepEqual([long.conversation?.sessionId, long.messages], ["long", 1]);
      const chat = (words: string): readonly string[] => [
        '{"type":"session"}',
        ...Array.from({ length: 300 }, (_, n) => `{"type":"custom","n":${n}}`),
        ...["a", "b", "c"].map((each) => `{"role":"user","content":"${words} ${each}"}`),
      ];
      const first = await bringLines(store, chat("one"));
      const second = await bringLines(store, chat("two"));
      assert.deepEqual([first.messages, second.messages, second.duplicates], [3, 3, 0]);
      assert.notEqual(first.conversation?.id, second.conversation?.id);
      assert.equal((await bringLines(store, chat("two"))).duplicates, 304);
    });
  });

  it("accepts a session that has just begun, and a file that begins with other lines", async () => {
    await onStore(async (_, store) => {
      const fresh = await bringLines(store, [header, '{"type":"model_change","id":"a","parentId":null}']);
      assert.deepEqual([fresh.conversation?.sessionId, fresh.messages, fresh.entries], ["fresh", 0, 2]);
      const noise = Array.from({ length: 400 }, (_, n) => (n % 2 === 0 ? "noise" : `{"type":"note","id":"n${n}"}`));
      const late = await bringLines(store, [...noise, '{"role":"user","content":"at last"}']);
      assert.deepEqual([late.messages, late.entries, late.malformed.length], [1, 200, 200]);
      const empty = await bringLines(store, ["", " "]);
      assert.deepEqual([empty.conversation, empty.malformed], [null, []]);
    });
  });
});

describe("a running import", () => {
  it("reports its progress, line by line", async () => {
    await onStore(async (_, store) => {
      const positions: number[] = [];
      const deps = { store, clock: { now: systemNow }, settings: { largeFileTokenThreshold: 25_000 } };
      const lines = linesOf(chat("a", "b", "c"));
      await importTranscript(deps, lines, { fallbackSessionId: "log" }, (position) => positions.push(position));
      assert.deepEqual(positions, [1, 2, 3]);
    });
  });

  it("indexes what it stored, even a single message", async () => {
    const folder = makeScratch("ingest");
    const store = await openSqlite({ path: join(folder, "lcm.db"), housekeeping: false });
    const deps = { store, clock: { now: systemNow }, settings: { largeFileTokenThreshold: 25_000 } };
    try {
      const { conversation } = await importTranscript(deps, linesOf(chat("the heron")), { fallbackSessionId: "log" });
      const { search } = await store.skeleton(conversation?.id ?? assert.fail());
      assert.deepEqual(search, { missing: [], pending: 0 });
    } finally {
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe("importing the same chat twice at once", () => {
  it("creates one conversation", async () => {
    await onStore(async (bring, store) => {
      const words = Array.from({ length: 600 }, (_, n) => `message ${n}`);
      const reports = await Promise.all([bring(chat(...words)), bring(chat(...words))]);
      assert.equal((await store.conversations()).length, 1);
      assert.equal(
        reports.reduce((sum, { messages }) => sum + messages, 0),
        600,
      );
      assert.equal((await store.status()).messages, 600);
    });
  });
});

describe("importing a chat again after something in it was forgotten", () => {
  it("recognises it, and restores nothing", async () => {
    await onStore(async (bring, store) => {
      const words = ["the password is hunter2x", "thanks", "hunter2x it is"];
      const { conversation } = await bring(chat(...words));
      const secret = { kind: "secret", text: "hunter2x" } as const;
      await store.forget(null, await store.planForget(null, secret));
      const again = await bring(chat(...words));
      assert.equal(again.conversation?.id, conversation?.id);
      assert.deepEqual([again.messages, again.duplicates, again.differing], [0, 3, []]);
      assert.equal((await store.planForget(null, secret)).messages.length, 0);
      assert.notEqual((await bring(chat("another chat", "of the same name"))).conversation?.id, conversation?.id);
    });
  });
});

describe("importing a chat with large content", () => {
  const chatWithPastes = chat(paste("Ada"), `<file name="notes.md">${paste("Grace")}</file>`, "thanks");

  it("takes its title from the original text, not from a reference", async () => {
    await onStore(async (bring, store) => {
      const { conversation } = await bring(chatWithPastes);
      assert.equal(conversation?.title, "Ada says:");
      assert.equal((await store.files(conversation?.id ?? assert.fail())).length, 2);
      assert.equal(
        (await bring(chat("/status", `<file name="notes.md">${paste("Grace")}</file>`))).conversation?.title,
        '<file name="notes.md">Grace says:',
      );
    }, 80);
  });

  it("gives the file the time and key of its message, whenever it is imported", async () => {
    await onStore(async (bring, store) => {
      const said = (id: string, timestamp: string, name: string) => ({
        role: "user",
        content: paste(name),
        id,
        timestamp,
      });
      const { conversation } = await bring([
        said("m1", "2019-05-06T07:08:09Z", "Ada"),
        said("m2", "2021-01-01T00:00:00Z", "Bea"),
        said("m3", "2023-01-01T00:00:00Z", "Ada"),
      ]);
      const files = await store.files(conversation?.id ?? assert.fail());
      assert.deepEqual(
        files.map(({ createdAt, messageKey }) => [createdAt, messageKey]),
        [
          ["2019-05-06T07:08:09.000Z", "m1"],
          ["2021-01-01T00:00:00.000Z", "m2"],
        ],
      );
      const before = "2020-01-01T00:00:00.000Z" as Timestamp;
      const wanted = {
        pattern: "lorem",
        mode: "full_text",
        scope: "files",
        sort: "recency",
        limit: 9,
        before,
      } as const;
      assert.deepEqual(new Set((await store.search(wanted)).hits.map(({ id }) => id)), new Set([files[0]?.id]));
    }, 80);
  });

  it("recognises it after it has grown, and keeps another of its name separate", async () => {
    await onStore(async (bring) => {
      const first = await bring(chatWithPastes);
      const grown = await bring([...chatWithPastes, ...chat("one more")]);
      assert.equal(grown.conversation?.id, first.conversation?.id);
      assert.deepEqual([grown.messages, grown.duplicates, grown.differing], [1, 3, []]);
      assert.notEqual((await bring(chat(paste("Alan")))).conversation?.id, first.conversation?.id);
    }, 80);
  });

  it("recognises it after its files were lost, and restores them", async () => {
    await onStore(async (bring, store, filesDir) => {
      const first = await bring(chatWithPastes);
      const { id } = first.conversation ?? assert.fail();
      await store.setTitle(id, null);
      rmSync(filesDir, { recursive: true });
      const again = await bring(chatWithPastes);
      assert.equal(again.conversation?.id, id);
      assert.equal(again.conversation?.title, "Ada says:");
      assert.deepEqual(
        await Array.fromAsync(exportTranscript(store, id)),
        chatWithPastes.map((line) => JSON.stringify(line)),
      );
    }, 80);
  });

  it("guarantee 4: exports exactly the lines that were imported", async () => {
    const data = Buffer.alloc(3_100, "picture").toString("base64");
    const lines: readonly Json[] = [
      { type: "session", version: 3, id: "s", timestamp: "2026-02-17T07:37:00.000Z", cwd: "/home/ada" },
      {
        type: "message",
        id: "a1",
        parentId: null,
        timestamp: "2026-02-17T07:37:01.000Z",
        message: {
          role: "user",
          content: [
            { type: "text", text: paste("Ada") },
            { type: "image", data, mimeType: "image/png" },
          ],
          timestamp: 1_771_313_821_000,
        },
      },
      {
        type: "custom",
        customType: paste("a custom line"),
        id: "a2",
        parentId: "a1",
        timestamp: "2026-02-17T07:37:02.000Z",
      },
      {
        type: "message",
        id: "a3",
        parentId: "a2",
        timestamp: "2026-02-17T07:37:03.000Z",
        message: {
          role: "assistant",
          content: [
            { type: "thinking", thinking: paste("hm"), thinkingSignature: "c2ln" },
            { type: "toolCall", id: "t", name: "write", arguments: { path: "a.ts", content: paste("code") } },
          ],
          stopReason: "toolUse",
          timestamp: 7,
        },
      },
      {
        type: "message",
        id: "a4",
        parentId: "a3",
        extra: true,
        message: {
          role: "toolResult",
          toolCallId: "t",
          toolName: "write",
          content: [{ type: "text", text: paste("Ada") }],
          isError: false,
        },
      },
      {
        type: "message",
        id: "a5",
        parentId: "a3",
        timestamp: "2026-02-17T07:37:05.000Z",
        message: { role: "user", content: `another branch <file name="x">${paste("Grace")}</file>` },
      },
    ];
    await onStore(async (bring, store) => {
      const { conversation } = await bring(lines);
      const { id } = conversation ?? assert.fail();
      assert.deepEqual(
        await Array.fromAsync(exportTranscript(store, id)),
        lines.map((line) => JSON.stringify(line)),
      );
      assert.equal((await store.files(id)).length, 4, "the two equal ones are one");
    }, 80);
  });

  it("guarantee 4: does so over many pages, with any entries between them", async () => {
    const at = "2026-02-17T07:37:00.000Z";
    const lines = Array.from({ length: 226 }, (_, place): Json => {
      const link = { id: `k${place}`, parentId: place === 0 ? null : `k${place - 1}`, timestamp: at };
      return place % 25 === 0
        ? { type: "custom", ...link, data: { place } }
        : { type: "message", ...link, message: { role: "user", content: `said ${place}` } };
    });
    await onStore(async (bring, store) => {
      const { conversation } = await bring(lines);
      assert.deepEqual(
        await Array.fromAsync(exportTranscript(store, conversation?.id ?? assert.fail())),
        lines.map((line) => JSON.stringify(line)),
      );
    });
  });
});

describe("exporting after a file was lost", () => {
  it("writes every line, with references in place of lost content, and reports which", async () => {
    await onStore(async (bring, store, filesDir) => {
      const { conversation } = await bring([
        { role: "user", content: `<file name="a">${paste("Ada")}</file> and <file name="b">${paste("Bea")}</file>` },
        { role: "assistant", content: "Two letters." },
        { role: "user", content: paste("Cleo") },
      ]);
      const { id } = conversation ?? assert.fail();
      const [ada] = await store.files(id);
      rmSync(join(filesDir, ada?.storageUri ?? assert.fail()));
      const exported = exportTranscript(store, id);
      const lines: string[] = [];
      let step = await exported.next();
      for (; step.done !== true; step = await exported.next()) lines.push(step.value);
      assert.equal(lines.length, 3);
      assert.match(lines[0] ?? "", new RegExp(`File ${ada?.id} .* and <file name=\\\\"b\\\\">Bea says`));
      assert.match(lines[2] ?? "", /Cleo/);
      const [first] = await store.messages({ conversation: id, limit: 1 });
      assert.deepEqual(
        step.value.map(({ subject, reason }) => [subject, reason.includes(ada?.id ?? "?")]),
        [[messageName(first?.id ?? assert.fail()), true]],
      );
    }, 80);
  });
});

describe("importing under a session key", () => {
  it("adds another session under the same key as a further segment, and the newest is active", async () => {
    await onStore(async (bring, store) => {
      const key = { sessionKey: "agent:main:main" };
      const one = await bring(chat("a"), { ...key, sessionId: "first" });
      const two = await bring(chat("b"), { ...key, sessionId: "second" });
      assert.notEqual(one.conversation?.id, two.conversation?.id);
      assert.equal((await store.conversation(one.conversation?.id ?? assert.fail()))?.active, false);
      assert.equal(two.conversation?.active, true);
      assert.equal((await bring(chat("a"), { ...key, sessionId: "first" })).duplicates, 1);
    });
  });
});

describe("text redacted from a moved file", () => {
  it("does not come back when the same transcript is imported again", async () => {
    const folder = makeScratch("forgotten-file");
    try {
      const store = await openSqlite({ path: join(folder, "lcm.db"), housekeeping: false });
      const deps = {
        store,
        clock: { now: () => "2026-11-15T00:00:00.000Z" as Timestamp },
        settings: { largeFileTokenThreshold: 50 },
      };
      const lines = async function* (): AsyncGenerator<SourceLine> {
        const content = `the password is hunter2-secret ${"and much more ".repeat(60)}`;
        yield { position: 1, value: { role: "user", content } };
      };
      const first = await importTranscript(deps, lines(), { fallbackSessionId: "s" });
      const id = first.conversation?.id ?? assert.fail();
      const plan = await store.planForget(null, { kind: "secret", text: "hunter2-secret" });
      assert.equal((await store.forget(null, plan)).kind, "written");
      const again = await importTranscript(deps, lines(), { fallbackSessionId: "s" });
      assert.deepEqual([again.messages, again.duplicates, again.differing], [0, 1, []]);
      const files = await store.files(id);
      assert.equal(files.length, 1);
      for (const file of files) assert.doesNotMatch(await store.fileContent(file.id), /hunter2/);
      await store.close();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("is not reported as different after the threshold has changed", async () => {
    const folder = makeScratch("other-threshold");
    try {
      const store = await openSqlite({ path: join(folder, "lcm.db"), housekeeping: false });
      const clock = { now: () => "2026-11-15T00:00:00.000Z" as Timestamp };
      const lines = async function* (word: string): AsyncGenerator<SourceLine> {
        yield { position: 1, value: { role: "user", content: `${word} `.repeat(200) } };
      };
      for (const largeFileTokenThreshold of [50, 90, 25_000, 20]) {
        const deps = { store, clock, settings: { largeFileTokenThreshold } };
        const { differing } = await importTranscript(deps, lines("ledger"), { fallbackSessionId: "s", sessionId: "s" });
        assert.deepEqual(differing, []);
      }
      const deps = { store, clock, settings: { largeFileTokenThreshold: 50 } };
      const other = await importTranscript(deps, lines("lantern"), { fallbackSessionId: "s", sessionId: "s" });
      assert.equal(other.differing.length, 1);
      await store.close();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
