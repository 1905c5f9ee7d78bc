import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { entryFromStore, messageFromStore, messageToStore, textOfParts } from "../messages/codec.ts";
import {
  forgetMessage,
  escapedForms,
  containsSecret,
  isOwnWord,
  isTitleFrom,
  redactJson,
  redactLine,
  redactMessage,
  redactText,
  redactTitle,
} from "./redact.ts";
import type { MessageOrigin } from "../messages/codec.ts";
import type { ConversationId, Message, MessageId } from "../model/types.ts";
import { firstLine } from "../base/excerpt.ts";
import type { JsonObject } from "../base/json.ts";
import { forgottenMark } from "../model/types.ts";
import type { Timestamp } from "../base/time.ts";

const at = "2026-01-01T00:00:00.000Z" as Timestamp;

function stored(raw: JsonObject, more: Pick<MessageOrigin, "entry" | "hole"> = {}): Message {
  const entry = { type: "message", id: "k", note: "n", message: raw };
  const message = messageToStore(raw, { key: "k", at, entry, ...more });
  return {
    ...message,
    id: 1 as MessageId,
    conversation: 1 as ConversationId,
    seq: 1,
    parentKey: null,
    text: textOfParts(message.parts),
    aside: null,
    moved: [],
  };
}

describe("forgetting", () => {
  it("keeps only the place of a message", () => {
    const left = forgetMessage(
      stored({
        role: "toolResult",
        toolCallId: "t",
        toolName: "read",
        content: [{ type: "text", text: "secret" }],
        details: { secret: 1 },
      }),
    );
    assert.deepEqual(messageFromStore({ ...left, role: "tool", at }), {
      role: "toolResult",
      toolCallId: "t",
      toolName: "read",
      content: forgottenMark,
    });
    assert.ok(!JSON.stringify(left).includes("secret"));
  });

  it("keeps references to files, and drops those that were redacted", () => {
    const secret = "hunter2hunter2";
    const [kept, lost] = ["file_0123456789abcdef", "file_fedcba9876543210"] as const;
    const pieces = [`by ${secret}: `, `[File ${kept} · ${secret}.log]`, `, and ${secret} `, `[File ${lost}]`, " end"];
    const text = pieces.join("");
    const placed = (file: typeof kept | typeof lost, piece: number, path: readonly (string | number)[]) => ({
      file,
      path,
      from: pieces.slice(0, piece).join("").length,
      length: pieces[piece]?.length ?? 0,
    });
    const path = ["content", 0, "text"];
    const moved = [placed(kept, 1, path), placed(lost, 3, path)];
    const message = { ...stored({ role: "user", content: [{ type: "text", text }] }), moved };

    const left = redactMessage(message, secret);
    assert.deepEqual(
      left.moved.map(({ from, length }) => left.text.slice(from, from + length)),
      [`[File ${kept} · ${forgottenMark}.log]`, `[File ${lost}]`],
    );
    assert.deepEqual(
      redactMessage(message, `File ${lost}`).moved.map(({ file }) => file),
      [kept],
    );
    assert.deepEqual(redactMessage(message, `]${pieces[2]}[`).moved, []);
    assert.deepEqual(forgetMessage(message).moved, []);
  });

  it("follows a field whose name contains the secret", () => {
    const secret = "hunter2hunter2";
    const reference = "[File file_0123456789abcdef]";
    const moved = [
      { file: "file_0123456789abcdef", path: ["details", secret], from: 0, length: reference.length },
    ] as const;
    const left = redactMessage(
      { ...stored({ role: "user", content: "x", details: { [secret]: reference } }), moved },
      secret,
    );
    assert.deepEqual(left.moved, [{ ...moved[0], path: ["details", forgottenMark] }]);
  });

  it("redacts a secret in text, reasoning, arguments, envelopes and lines", () => {
    const secret = 'sk-"42"';
    const left = redactMessage(
      stored({
        role: "assistant",
        content: [
          { type: "text", text: `key ${secret}.` },
          { type: "thinking", thinking: secret },
          {
            type: "toolCall",
            id: "1",
            name: "x",
            arguments: { [secret]: [secret, { deep: JSON.stringify({ k: secret }) }] },
          },
          { type: "image", data: secret },
        ],
        note: secret,
      }),
      secret,
    );
    assert.ok(!JSON.stringify(left).includes("42"), JSON.stringify(left));
    const raw = messageFromStore({ ...left, role: "assistant", at });
    assert.equal((raw["content"] as { text: string }[])[0]?.text, `key ${forgottenMark}.`);
  });

  it("redacts a number and keeps the JSON valid", () => {
    assert.equal(redactJson('{"pin":12345,"other":1}', "12345"), `{"pin":"${forgottenMark}","other":1}`);
    assert.equal(redactJson(null, "12345"), null);
  });

  it("leaves no trace of a secret, and every message can still be rebuilt", () => {
    const word = fc.stringMatching(/^[a-z0-9"\\{}:, ]{4,12}$/);
    fc.assert(
      fc.property(word, fc.jsonValue(), (secret, value) => {
        const args = { a: secret, b: value as never, c: `x${secret}y` };
        const message = stored({
          role: "assistant",
          content: [
            { type: "text", text: `${secret}!${secret}` },
            { type: "toolCall", id: "1", name: "f", arguments: args },
          ],
        });
        const left = redactMessage(message, secret);
        const raw = messageFromStore({ ...left, role: "assistant", at });
        assert.ok(!containsSecret(redactText(secret, secret), secret));
        if (raw["content"] !== forgottenMark) assert.equal((raw["content"] as unknown[]).length, 2);
        if (isOwnWord(secret)) return; // Refused before it comes to this.
        const { text, parts, envelope, entry } = left;
        const told = [text, envelope, entry, ...parts.flatMap((part) => [part.text, part.kept, part.metadata])];
        for (const words of told) assert.ok(words === null || !containsSecret(words, secret), words ?? "");
      }),
    );
  });

  it("finds a secret as other programs escape it", () => {
    const secret = 'pä/"ß';
    const once = String.raw`p\u00e4/\"\u00df`;
    for (const written of [
      once,
      once.replaceAll("e4", "E4").replaceAll("df", "DF"),
      once.replace("/", String.raw`\/`),
      JSON.stringify(once).slice(1, -1),
      JSON.stringify(JSON.stringify(JSON.stringify(secret).slice(1, -1)).slice(1, -1)).slice(1, -1),
    ])
      assert.equal(redactText(`so ${written}.`, secret), `so ${forgottenMark}.`, written);
    assert.deepEqual(escapedForms("ordinary"), ["ordinary"]);
    assert.ok(escapedForms(`${secret}\\\u{1f600}`).length < 260);
  });

  it("forgets the whole message if a secret spans blocks or fields", () => {
    const across = stored({
      role: "assistant",
      content: [
        { type: "text", text: "it begins here" },
        { type: "text", text: "and ends there" },
      ],
    });
    assert.equal(redactMessage(across, "here\nand ends").text, forgottenMark);
    const call = { type: "toolCall", id: "1", name: "login", arguments: { token: "abc", other: 1 } };
    for (const secret of ['"token":"abc"', '{"token":"abc","other":1}', '"token":"abc","ot']) {
      const left = redactMessage(stored({ role: "assistant", content: [call] }), secret);
      assert.equal(messageFromStore({ ...left, role: "assistant", at })["content"], forgottenMark);
      assert.ok(!JSON.stringify(left).includes("abc"));
    }
    const result = stored({ role: "toolResult", toolCallId: "abc-1", content: "fine" });
    assert.equal(redactMessage(result, '"toolCallId":"abc-1"').envelope, '{"role":"tool","content":"text"}');
  });

  it("forgets the whole message if a secret is part of how a block is stored", () => {
    const raw = { role: "assistant", content: [{ type: "note", data: { pin: 4711, kind: "x" } }] };
    const secret = '"pin":4711';
    const left = redactMessage({ ...stored(raw), entry: null }, secret);
    for (const { metadata } of left.parts) assert.ok(!metadata?.includes(secret), metadata ?? "");
    assert.equal(left.text, forgottenMark);
  });

  it("keeps only the place of a transcript line if redacting is not enough", () => {
    const line = '{"type":"custom","id":"e1","data":{"token":"abc"}}';
    assert.equal(redactLine(line, 'abc"'), `{"type":"custom","id":"e1","forgotten":"${forgottenMark}"}`);
    assert.equal(redactLine(line, '"type":"custom"'), `{"forgotten":"${forgottenMark}"}`);
    assert.equal(redactLine(line, "e1xx"), line);
  });

  it("distinguishes its own words from secrets", () => {
    for (const word of ["content", "text", "lock", "forgotten", '"role":"user"', "null"])
      assert.ok(isOwnWord(word), word);
    for (const word of ["contents", "user text", "hunter2"]) assert.ok(!isOwnWord(word), word);
  });

  it("recognises a title taken from a message", () => {
    const text =
      "\n  Please   move the archive to\tthe other disk, and tell nobody about it, least of all the others!\nNow.";
    assert.ok(isTitleFrom(firstLine(text, 80), { text }));
    assert.ok(isTitleFrom("move the archive", { text }));
    assert.ok(!isTitleFrom("Archives", { text }));
    assert.ok(!isTitleFrom(" ", { text }));
    assert.ok(!isTitleFrom(forgottenMark, { text: forgottenMark }));
  });

  it("redacts a secret that is cut off in a title", () => {
    const long = "k".repeat(100);
    assert.equal(redactTitle(firstLine(`the key ${long}`, 80), long), `the key ${forgottenMark}`);
    assert.equal(redactTitle("a BEGIN KEY", "BEGIN KEY\nabcdef"), `a ${forgottenMark}`);
    assert.equal(redactTitle("one two three", "one\n two"), `${forgottenMark} three`);
    assert.equal(redactTitle("the other day…", "keyword"), "the other day…");
    assert.equal(redactTitle("a b c", "a   "), "a b c");
  });
});

describe("the line of another host", () => {
  const secret = "hunter2hunter2";
  const item = { type: "function_call", call_id: "c", name: "login", arguments: `{"password":"${secret}"}` };
  const row = { timestamp: at, ordinal: 3, type: "response_item", payload: item, echo: { of: secret } };
  const hole = { field: "payload", holds: "block" } as const;
  const message = stored({ role: "assistant", content: [item] }, { entry: row, hole });

  it("loses a secret wherever it has it, and stays a line", () => {
    const left = redactMessage(message, secret);
    const line = entryFromStore({ ...message, ...left });
    assert.doesNotMatch(JSON.stringify(line), /hunter2/);
    assert.deepEqual([line["ordinal"], (line["payload"] as JsonObject)["call_id"]], [3, "c"]);
  });

  it("keeps its place when its message is forgotten", () => {
    const left = forgetMessage(message);
    const line = entryFromStore({ ...message, ...left });
    assert.doesNotMatch(JSON.stringify(line), /hunter2/);
    assert.deepEqual(Object.keys(line).toSorted(), ["ordinal", "payload", "timestamp", "type"]);
  });
});
