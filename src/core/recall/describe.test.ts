import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, describe, it } from "node:test";
import { openSqlite } from "../../store/sqlite/store.ts";
import { foldPlaces, refuses } from "../../../test/store-contract/ground.ts";
import { createRandom } from "../../../test/support/random.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { createHost, toAppendable, toIncoming, user } from "../../../test/support/scripted-host.ts";
import { describe as lookAt } from "./describe.ts";
import type { Described, DescribeRequest, FilePiece } from "./describe.ts";
import { LcmError } from "../base/errors.ts";
import { ingest } from "../ingest/ingest.ts";
import { messageName, seqOf } from "../model/types.ts";
import type { Conversation, SummaryId } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { reachOf } from "./scope.ts";
import type { Reach } from "./scope.ts";
import { estimateTokens } from "../base/tokens.ts";

const folder = makeScratch("describe");
let databases = 0;
const opened: Store[] = [];
after(async () => {
  for (const store of opened) await store.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Ground {
  readonly store: Store;
  readonly path: string;
  readonly own: Conversation;
  readonly reach: Reach;
}

async function ground(): Promise<Ground> {
  const path = join(folder, `${++databases}.db`);
  const store = await openSqlite({ path, housekeeping: false });
  opened.push(store);
  const own = await store.openSegment({ sessionId: "s1", sessionKey: "main", agentId: "one" });
  return { store, path, own, reach: await reachOf(store, { conversation: own.id, policy: "agent" }, {}) };
}

async function say(store: Store, { id }: Conversation, count: number, name = "h"): Promise<void> {
  const host = createHost(name);
  for (let at = 1; at <= count; at++) host.says(user(`${name} says line ${at} about the harbour and its cranes`));
  await store.append(id, host.entries.map(toAppendable));
}

/** Six messages in three leaves under one summary, and one message beyond. */
async function pyramid(store: Store, conversation: Conversation): Promise<readonly [SummaryId, SummaryId]> {
  await say(store, conversation, 7, `c${conversation.id}`);
  const leaf = await foldPlaces(store, conversation.id, [0, 1], "the first two");
  await foldPlaces(store, conversation.id, [1, 2], "the next two");
  await foldPlaces(store, conversation.id, [2, 3], "the last two");
  return [await foldPlaces(store, conversation.id, [0, 2], "all six of them"), leaf];
}

const save = async (store: Store, conversation: Conversation, content: string, exploration: string | null = null) =>
  await store.saveFile({
    conversation: conversation.id,
    name: "notes.txt",
    mimeType: "text/plain",
    content,
    encoding: "utf8",
    exploration,
  });

type Of<K extends Described["kind"]> = Extract<Described, { readonly kind: K }>;
async function look<K extends Described["kind"]>(kind: K, store: Store, request: DescribeRequest): Promise<Of<K>> {
  const described = await lookAt(store, request);
  assert.equal(described.kind, kind);
  return described as Of<K>;
}

const isRefused = async (work: Promise<unknown>): Promise<{ readonly code: string; readonly words: string }> => {
  const error: unknown = await work.then(
    () => assert.fail("it is refused"),
    (reason: unknown) => reason,
  );
  return error instanceof LcmError
    ? { code: error.code, words: `${error.message}. ${error.hint ?? ""}` }
    : assert.fail(String(error));
};

describe("describing a summary", () => {
  it("returns its text, its sources, what was derived from it, and the cost of reading below it", async () => {
    const { store, own, reach } = await ground();
    const [top, leaf] = await pyramid(store, own);
    const above = await look("summary", store, { id: top, reach, tokenCap: 4_000 });
    assert.deepEqual(
      [above.text, above.isWhole, above.origin, above.derived, above.summary.depth],
      ["all six of them", true, null, [], 1],
    );
    assert.equal(above.sources.summaries.length, 3);
    assert.deepEqual(above.sources.messages, []);
    assert.deepEqual(
      above.manifest.rows.map(({ id }) => id),
      above.sources.summaries,
    );
    assert.deepEqual([above.manifest.messages?.count, above.manifest.isBounded], [6, false]);
    const below = await look("summary", store, { id: ` ${leaf} `, reach, tokenCap: 4_000 });
    assert.equal(below.sources.messages.length, 2);
    assert.deepEqual(below.derived, [top]);
    assert.ok(below.tokens > 0 && above.tokens > below.tokens);
  });

  it("returns no more than the token cap, and reports the cut", async () => {
    const { store, own, reach } = await ground();
    const [top] = await pyramid(store, own);
    for (const tokenCap of [1, 2, 3, 10, 40, 80, 130]) {
      const { text, isWhole, manifest, tokens } = await look("summary", store, { id: top, reach, tokenCap });
      assert.ok(tokens <= tokenCap, `${tokens} of ${tokenCap}`);
      assert.equal(isWhole, text === "all six of them");
      assert.equal(manifest.isBounded, manifest.rows.length < 3);
      assert.equal(manifest.messages?.count, 6);
    }
  });

  it("lists direct sources first if not everything fits", async () => {
    const { store, own, reach } = await ground();
    await say(store, own, 8);
    for (const place of [0, 1, 2, 3]) await foldPlaces(store, own.id, [place, place + 1], `two, ${place}`);
    for (const place of [0, 1]) await foldPlaces(store, own.id, [place, place + 1], `four, ${place}`);
    const top = await foldPlaces(store, own.id, [0, 1], "all eight");
    const whole = await look("summary", store, { id: top, reach, tokenCap: 4_000 });
    assert.deepEqual(
      whole.manifest.rows.map(({ level }) => level),
      [1, 2, 2, 1, 2, 2],
    );
    const part = await look("summary", store, { id: top, reach, tokenCap: 120 });
    assert.deepEqual(
      part.manifest.rows.map(({ level }) => level),
      [1, 2, 1],
    );
  });

  it("follows a carried summary to its origin, within the family", async () => {
    const { store, path, own } = await ground();
    const [top] = await pyramid(store, own);
    const next = await store.openSegment({ sessionId: "s2", sessionKey: "main", agentId: "one" });
    const later = await store.openSegment({ sessionId: "s3", sessionKey: "main", agentId: "one" });
    const foreign = await store.openSegment({ sessionId: "s4", sessionKey: "side", agentId: "one" });
    const carried = await carry(store, path, next, top);
    const twice = await carry(store, path, later, carried);
    const astray = await carry(store, path, foreign, top);
    const all: Reach = { kind: "all", conversations: null };
    for (const id of [carried, twice]) {
      const described = await look("summary", store, { id, reach: all, tokenCap: 4_000 });
      assert.equal(described.origin?.id, top);
      assert.equal(described.sources.summaries.length, 3);
      assert.equal(described.manifest.messages?.count, 6);
    }
    const lost = await look("summary", store, { id: astray, reach: all, tokenCap: 4_000 });
    assert.deepEqual([lost.origin, lost.sources.summaries, lost.manifest.rows], [null, [], []]);
    const grant = { kind: "grant", conversations: [later.id] } as const;
    const granted = await look("summary", store, { id: twice, reach: grant, tokenCap: 4_000 });
    assert.deepEqual([granted.origin, granted.manifest.rows], [null, []]);
    await store.setHidden(own.id, true);
    assert.equal((await look("summary", store, { id: carried, reach: all, tokenCap: 4_000 })).origin, null);
  });
});

/** A row such as carrying makes: the text of another summary, and no sources. */
async function carry(store: Store, path: string, to: Conversation, from: SummaryId): Promise<SummaryId> {
  await say(store, to, 1, `carried-${to.id}`);
  const id = await foldPlaces(store, to.id, [0, 0], "all six of them");
  const db = new DatabaseSync(path);
  db.prepare("DELETE FROM summary_messages WHERE summary_id = ?").run(id);
  db.prepare("UPDATE summaries SET carried_from = ?, depth = 1 WHERE summary_id = ?").run(from, id);
  db.close();
  return id;
}

describe("describing a file", () => {
  const lines = Array.from({ length: 40 }, (_, at) => `${at + 1}: the crane lifts crate ${at + 1}`);

  const piece = async (content: string, more: Partial<DescribeRequest>): Promise<FilePiece> => {
    const { store, own, reach } = await ground();
    const { id } = await save(store, own, content);
    const { content: shown, tokens } = await look("file", store, { id, reach, tokenCap: 4_000, ...more });
    assert.ok(shown !== null && tokens <= (more.tokenCap ?? 4_000));
    assert.equal(tokens, estimateTokens(shown.text));
    return shown;
  };

  it("returns a short file in full", async () => {
    const shown = await piece(lines.join("\n"), {});
    assert.deepEqual(shown, {
      text: lines.join("\n"),
      fromLine: 1,
      toLine: 40,
      lines: 40,
      nextLine: null,
      lineCutBy: null,
    });
  });

  it("returns the requested lines, and where to continue", async () => {
    const shown = await piece(lines.join("\n"), { fromLine: 11, toLine: 13 });
    assert.deepEqual([shown.text, shown.toLine, shown.nextLine], [lines.slice(10, 13).join("\n"), 13, 14]);
    const rest = await piece(lines.join("\n"), { fromLine: 39, toLine: 99 });
    assert.deepEqual([rest.text, rest.toLine, rest.nextLine], [lines.slice(38).join("\n"), 40, null]);
  });

  it("cuts at line ends, so that continuing returns everything once", async () => {
    const { store, own, reach } = await ground();
    const { id } = await save(store, own, `${lines.join("\n")}\n\n`);
    for (const limit of [{ tokenCap: 37 }, { tokenCap: 4_000, bytesMax: 100 }]) {
      const shown: string[] = [];
      for (let fromLine: number | null = 1, pages = 0; fromLine !== null && pages < 99; pages++) {
        const { content }: Of<"file"> = await look("file", store, { id, reach, fromLine, ...limit });
        assert.ok(content?.lineCutBy === null && content.fromLine === fromLine);
        assert.equal(content.text.split("\n").length, content.toLine - fromLine + 1);
        shown.push(content.text);
        fromLine = content.nextLine;
      }
      assert.ok(shown.length > 5);
      assert.equal(shown.join("\n"), `${lines.join("\n")}\n\n`);
    }
  });

  it("cuts a line that is too long, and reports it", async () => {
    const shown = await piece(`${"a crate ".repeat(5_000)}\nthe end`, { tokenCap: 50 });
    assert.ok(shown.lineCutBy === "tokens" && shown.text.startsWith("a crate a crate"));
    assert.deepEqual([shown.fromLine, shown.toLine, shown.nextLine], [1, 1, 2]);
    const bytes = await piece("🦉🦉🦉🦉", { bytesMax: 11 });
    assert.deepEqual([bytes.text, bytes.lineCutBy], ["🦉🦉", "bytes"]);
    const fitting = await piece("abc\ndef", { bytesMax: 3 });
    assert.deepEqual([fitting.text, fitting.lineCutBy, fitting.nextLine], ["abc", null, 2]);
    assert.equal((await piece("🦉🦉🦉🦉", { bytesMax: 16 })).lineCutBy, null);
  });

  it("returns an empty file", async () => {
    const shown = await piece("", {});
    assert.deepEqual([shown.text, shown.lines, shown.nextLine, shown.lineCutBy], ["", 0, null, null]);
  });

  it("rejects an invalid range, with the number of lines", async () => {
    for (const range of [
      { fromLine: 41 },
      { fromLine: 0 },
      { fromLine: 5, toLine: 4 },
      { fromLine: 1.5 },
      { toLine: NaN },
    ]) {
      const { code, words } = await isRefused(piece(lines.join("\n"), range));
      assert.equal(code, "invalid");
      assert.match(words, /not in the file \(40 lines\)/);
    }
    for (const more of [{ bytesMax: 0 }, { tokenCap: 0 }, { tokenCap: 2.5 }]) {
      await refuses("invalid", async () => await piece("text", more));
    }
  });

  it("returns the description first, within the token cap", async () => {
    const { store, own, reach } = await ground();
    const { id } = await save(store, own, lines.join("\n"), "Text, 40 lines, about cranes and crates of the harbour.");
    for (const tokenCap of [1, 2, 5, 20, 100, 4_000]) {
      const { file, content, tokens } = await look("file", store, { id, reach, tokenCap });
      assert.ok(tokens <= tokenCap, `${tokens} of ${tokenCap}`);
      assert.equal(tokens, estimateTokens(file.exploration ?? "") + estimateTokens(content?.text ?? ""));
    }
    const { file } = await look("file", store, { id, reach, tokenCap: 4_000 });
    assert.match(file.exploration ?? "", /about cranes and crates/);
  });

  it("describes binary content without returning it", async () => {
    const { store, own, reach } = await ground();
    const content = Buffer.from("not a picture").toString("base64");
    const picture = { name: "a.png", mimeType: "image/png", content, encoding: "base64", exploration: null } as const;
    const { id } = await store.saveFile({ conversation: own.id, ...picture });
    const { file, content: shown, tokens } = await look("file", store, { id, reach, tokenCap: 100 });
    assert.deepEqual([file.mimeType, file.bytes, shown, tokens], ["image/png", 13, null, 0]);
  });

  it("never exceeds the token cap, whatever the text", async () => {
    const { store, own, reach } = await ground();
    const random = createRandom(7);
    const pieces = ["word ", "\n", "東京", "🦉", '{"a":1}', "      ", "========", "0xdeadbeef", "\t", "naïve "];
    for (let round = 0; round < 60; round++) {
      const content = Array.from({ length: random.between(1, 400) }, () => random.pick(pieces)).join("");
      const { id } = await save(store, own, content);
      const tokenCap = random.between(1, 200);
      const { content: shown, tokens } = await look("file", store, { id, reach, tokenCap });
      assert.ok(tokens <= tokenCap && shown !== null, `${tokens} of ${tokenCap}: ${JSON.stringify(content)}`);
      assert.ok(content.startsWith(shown.text) && shown.text.isWellFormed());
    }
  });
});

describe("describing a message", () => {
  it("returns its text and the summaries that cover it, by any form of its id", async () => {
    const { store, own, reach } = await ground();
    const [top, leaf] = await pyramid(store, own);
    const [first] = await store.messages({ conversation: own.id, limit: 1 });
    const number = first?.id ?? assert.fail("there is a message");
    for (const id of [messageName(number), `message ${own.id}-${seqOf(number)}`, String(number)]) {
      const { text, isWhole, coveredBy, message } = await look("message", store, { id, reach, tokenCap: 100 });
      assert.deepEqual([text, isWhole, message.id], [first?.text, true, number]);
      assert.deepEqual(coveredBy, [leaf, top]);
    }
    const short = await look("message", store, { id: messageName(number), reach, tokenCap: 3 });
    assert.ok(!short.isWhole && short.tokens <= 3 && first?.text.startsWith(short.text));
  });

  it("names the file of its moved content", async () => {
    const { store, own, reach } = await ground();
    const host = createHost("large");
    host.says(user(`see this:\n${"a long log line of the crane\n".repeat(400)}`));
    const deps = { store, settings: { largeFileTokenThreshold: 100 } };
    const { messages } = await ingest(deps, own.id, host.entries.map(toIncoming));
    const { files, text } = await look("message", store, {
      id: messages.map(messageName)[0] ?? "?",
      reach,
      tokenCap: 4_000,
    });
    assert.equal(files.length, 1);
    assert.ok(text.includes(files[0] ?? "?"));
    const file = await look("file", store, { id: files[0] ?? "?", reach, tokenCap: 100 });
    assert.equal(file.message, messages[0]);
  });
});

describe("guarantee 25: anything beyond the reach does not exist", () => {
  it("says where a conversation ends only to whoever may read it", async () => {
    const { store, own, reach } = await ground();
    const other = await store.openSegment({ sessionId: "x", sessionKey: "side", agentId: "one" });
    await pyramid(store, own);
    await pyramid(store, other);
    const beyond = async (id: number) =>
      (await isRefused(lookAt(store, { id: `msg_${id}-99`, reach, tokenCap: 9 }))).words;
    assert.match(
      await beyond(own.id),
      new RegExp(`^there is no msg_${own.id}-99: conversation ${own.id} ends with msg_`),
    );
    assert.doesNotMatch(await beyond(other.id), /ends with/);
  });

  it("reports foreign summaries, files and messages as not existing", async () => {
    const { store, own, reach } = await ground();
    const others = [
      await store.openSegment({ sessionId: "x", sessionKey: "side", agentId: "one" }),
      await store.openSegment({ sessionId: "y", sessionKey: "main", agentId: "two" }),
      await store.openSegment({ sessionId: "z" }),
    ];
    for (const other of others) {
      const [top] = await pyramid(store, other);
      const { id: file } = await save(store, other, `a secret of ${other.id}`);
      const [message] = await store.messages({ conversation: other.id, limit: 1 });
      const ids = [
        [top, "sum_00000000000000ff"],
        [file, "file_00000000000000ff"],
        [message === undefined ? "?" : messageName(message.id), "msg_987-654"],
      ] as const;
      for (const [id, absent] of ids) {
        for (const narrow of [reach, { kind: "grant", conversations: [own.id] } as const]) {
          const refusal = await isRefused(lookAt(store, { id, reach: narrow, tokenCap: 100 }));
          const nothing = await isRefused(lookAt(store, { id: absent, reach: narrow, tokenCap: 100 }));
          assert.equal(refusal.code, "not_found");
          assert.equal(refusal.words.replace(id.replace("msg_", ""), absent.replace("msg_", "")), nothing.words);
        }
        const wide = await lookAt(store, { id, reach: { kind: "all", conversations: null }, tokenCap: 100 });
        assert.ok(wide.tokens > 0);
        await store.setHidden(other.id, true);
        await refuses("not_found", async () => {
          await lookAt(store, { id, reach: { kind: "all", conversations: null }, tokenCap: 100 });
        });
        await store.setHidden(other.id, false);
      }
    }
  });

  it("rejects anything that is not an id, such as a path", async () => {
    const { store, reach } = await ground();
    for (const id of [
      "",
      "sum_",
      "sum_xyz",
      "file_../../etc/passwd",
      "../lcm.db",
      "msg_-1",
      "msg_1-1.5",
      "msg_42",
      "42",
      "msg_1-0",
      "msg_1-16777216",
      "grant_1",
    ]) {
      const { code, words } = await isRefused(lookAt(store, { id, reach, tokenCap: 100 }));
      assert.equal(code, "invalid");
      assert.match(words, /ids look like sum_/);
    }
  });
});
