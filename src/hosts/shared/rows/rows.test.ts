import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { JsonObject } from "../../../core/base/json.ts";
import { msToTimestamp } from "../../../core/base/time.ts";
import type { Incoming } from "../../../core/messages/codec.ts";
import { claudeCodeRows } from "./claude-code.ts";
import { codexRows } from "./codex.ts";
import { recogniseRow } from "./formats.ts";
import { isUnfinished, openCodeRows } from "./opencode.ts";
import { piRows } from "./pi.ts";
import type { RowFormat } from "./row-format.ts";

const now = msToTimestamp(0);

function read(format: RowFormat, rows: readonly JsonObject[], from = 1, path?: string) {
  const reader = format.createReader(path);
  const items = rows.map((row, at): Incoming => {
    const line = reader.read(row, from + at, now);
    assert.ok(line.kind === "item");
    return line.item;
  });
  return { items, session: reader.session() };
}

const linkOf = (item: Incoming) => (item.kind === "message" ? item : item.entry);
const kindsOf = (items: readonly Incoming[]): readonly string[] =>
  items.map((item) => (item.kind === "entry" ? "entry" : (item.aside ?? "message")));

describe("rows of Claude Code", () => {
  const row = (
    uuid: string,
    parentUuid: string | null,
    message: JsonObject | null,
    more: JsonObject = {},
  ): JsonObject => ({
    type: message === null ? "attachment" : message["role"],
    uuid,
    parentUuid,
    sessionId: "s1",
    cwd: "/home/user/x",
    timestamp: "2026-11-18T09:00:00.000Z",
    ...(message === null ? { attachment: { type: "hook_additional_context", content: ["ours"] } } : { message }),
    ...more,
  });
  const said = (text: string): JsonObject => ({ role: "user", content: text });
  const result = (id: string): JsonObject => ({ role: "user", content: [{ type: "tool_result", tool_use_id: id }] });
  const call = (id: string): JsonObject => ({
    role: "assistant",
    content: [{ type: "tool_use", id, name: "Bash", input: {} }],
  });
  const parentsOf = (rows: readonly JsonObject[]) =>
    read(claudeCodeRows, rows).items.map((item) => linkOf(item).parentKey);

  it("are messages, notes, or entries; what a hook added comes back as no message", () => {
    const { items } = read(claudeCodeRows, [
      row("a", null, said("hello")),
      row("b", "a", null),
      row("c", "b", said("<local-command-stdout>ok</local-command-stdout>")),
      row("d", "c", said("caveat"), { isMeta: true }),
      row("t", "d", said("<task-notification>done</task-notification>"), { promptSource: "system" }),
      row("e", "d", { role: "assistant", model: "<synthetic>", content: [{ type: "text", text: "API error" }] }),
      row("f", "e", said("<bash-input>ls</bash-input>")),
      { type: "queue-operation", sessionId: "s1", content: "hello" },
    ]);
    assert.deepEqual(kindsOf(items), ["message", "entry", "note", "note", "note", "note", "message", "entry"]);
    assert.equal(linkOf(items[7] ?? assert.fail()).key, "@8");
  });

  it("branch only where a prompt continues something older than the newest prompt", () => {
    const together = [row("p", null, said("go")), row("c1", "p", call("1")), row("c2", "c1", call("2"))];
    const results = [row("r2", "c2", result("2")), row("r1", "c1", result("1"))];
    const rows = [...together, ...results, row("a", "r2", call("3")), row("q", "p", said("go on"))];
    assert.deepEqual(parentsOf(rows), [null, "p", "c1", "c2", "r2", "r1", "a"]);
    const again = [...rows, row("n", "a", said("new")), row("m", "a", said("instead"))];
    assert.deepEqual(parentsOf(again).slice(-2), ["a", "a"], "the last went back behind the one before");
  });

  it("read from the middle of a turn continue what is stored; a prompt says what it continues", () => {
    for (const first of [row("r1", "c1", result("1")), row("a", "r2", call("3")), row("b", "r2", null)])
      assert.deepEqual(parentsOf([first]), [undefined]);
    assert.deepEqual(parentsOf([row("q", "older", said("instead"))]), ["older"]);
  });

  it("of a sub-agent are a session of their own, or beside the conversation where older versions wrote them", () => {
    const own = read(claudeCodeRows, [row("a", null, said("do it"), { isSidechain: true, agentId: "a1" })]);
    assert.deepEqual(own.session, { id: "a1", folder: "/home/user/x", parentSessionId: "s1", title: null });
    assert.deepEqual(kindsOf(own.items), ["message"]);
    const older = read(claudeCodeRows, [row("a", null, said("do it"), { isSidechain: true })]);
    assert.deepEqual([older.session.id, kindsOf(older.items)], ["s1", ["branch"]]);
  });

  it("name the session; a later title counts", () => {
    const titled = [
      { type: "summary", summary: "First", leafUuid: "a" },
      { type: "custom-title", customTitle: "Second", sessionId: "s1" },
    ];
    assert.deepEqual(read(claudeCodeRows, titled).session, {
      id: "s1",
      folder: null,
      parentSessionId: null,
      title: "Second",
    });
  });
});

describe("rows of Codex", () => {
  const item = (payload: JsonObject, more: JsonObject = {}): JsonObject => ({
    timestamp: "2026-11-18T09:00:00.000Z",
    type: "response_item",
    payload,
    ...more,
  });
  const said = (role: string, text: string, kinds?: readonly string[]): JsonObject => ({
    type: "message",
    role,
    content: [{ type: "input_text", text }],
    ...(kinds === undefined ? {} : { internal_chat_message_metadata_passthrough: { content_item_kinds: kinds } }),
  });

  it("are messages and notes by what the host says of them, or by their text in older versions", () => {
    const { items } = read(codexRows, [
      item(said("user", "hello", ["user.text"])),
      item(said("user", "<environment_context>", ["environments.environment_context"])),
      item(said("user", "<environment_context>")),
      item(said("user", "# AGENTS.md instructions for /x")),
      item(said("user", "hello")),
      item(said("developer", "rules")),
      item(said("assistant", "summary"), { metadata: { compaction_output: true } }),
      item({ type: "ghost_snapshot" }),
      { timestamp: "2026-11-18T09:00:00.000Z", type: "event_msg", payload: { type: "user_message", message: "hello" } },
    ]);
    assert.deepEqual(kindsOf(items), ["message", "note", "note", "note", "message", "note", "note", "entry", "entry"]);
  });

  it("are known by their place, which some rows say themselves", () => {
    const keys = (row: JsonObject, position: number) =>
      linkOf(read(codexRows, [row], position).items[0] ?? assert.fail()).key;
    assert.equal(keys(item(said("user", "hello"), { ordinal: 6 }), 99), "@7");
    assert.equal(keys(item(said("user", "hello")), 7), "@7");
  });

  it("continue what came before the turns that were taken back", () => {
    const back = { timestamp: "", type: "event_msg", payload: { type: "thread_rolled_back", num_turns: 2 } };
    const rows = ["one", "two", "three"].flatMap((text) => [item(said("user", text)), item(said("assistant", "ok"))]);
    const { items } = read(codexRows, [...rows, back, item(said("user", "other"))]);
    assert.deepEqual(
      items.map((each) => linkOf(each).parentKey),
      [...Array<undefined>(7), "@2"],
    );
  });

  it("of a revision have keys of their own, and continue the row that the thread went back to", () => {
    const revision = "01a1ee8a-c720-7920-8416-e6c3baa6987d";
    const meta = (base: JsonObject) => ({
      ...item({ id: "t1", history_base: base }),
      type: "session_meta",
      ordinal: 15,
    });
    const rows = [meta({ thread_id: "t1", end_ordinal_exclusive: 15 }), item(said("user", "other"), { ordinal: 16 })];
    const linksOf = (first: JsonObject) => {
      const { items } = read(codexRows, [first, ...rows.slice(1)], 1, `/x/rollout-2026-t1_${revision}.jsonl`);
      return items.map((each) => [linkOf(each).key, linkOf(each).parentKey]);
    };
    assert.deepEqual(linksOf(rows[0] ?? {}), [
      [`${revision}@16`, "@15"],
      [`${revision}@17`, undefined],
    ]);
    assert.deepEqual(linksOf(meta({ thread_id: "other", end_ordinal_exclusive: 9 }))[0]?.[1], "other@9");
    const fork = read(codexRows, rows, 1, "/x/rollout-2026-t1.jsonl").items.map((each) => linkOf(each).parentKey);
    assert.deepEqual(fork, [undefined, undefined], "a fork continues a row of another thread");
  });

  it("name the thread, its folder and the thread that started it", () => {
    const meta = { id: "t2", session_id: "t1", cwd: "/x", parent_thread_id: "t1" };
    const copied = { id: "t0", cwd: "/y" };
    const rows = [meta, copied].map((payload) => ({ timestamp: "", type: "session_meta", payload }));
    assert.deepEqual(read(codexRows, rows).session, { id: "t2", folder: "/x", parentSessionId: "t1", title: null });
  });
});

describe("messages of OpenCode", () => {
  const message = (id: string, role: string, parts: readonly JsonObject[], more: JsonObject = {}): JsonObject => ({
    info: { id, sessionID: "ses_1", role, time: { created: 1 }, ...more },
    parts,
  });

  it("continue the one before; the host's request to go on is a note", () => {
    const { items } = read(openCodeRows, [
      { info: { id: "ses_1", directory: "/x", title: "T", parentID: "ses_0" } },
      message("msg_1", "user", [{ type: "text", text: "hello" }]),
      message("msg_2", "user", [{ type: "text", text: "Continue", synthetic: true }]),
      message("msg_3", "user", [
        { type: "text", text: "read it" },
        { type: "text", text: "Called", synthetic: true },
      ]),
    ]);
    assert.deepEqual(
      items.map((item) => linkOf(item).parentKey),
      [null, "session:ses_1", "msg_1", "msg_2"],
    );
    assert.deepEqual(kindsOf(items), ["entry", "message", "note", "message"]);
  });

  it("are unfinished until the host says so", () => {
    assert.equal(isUnfinished(message("m", "assistant", [])), true);
    assert.equal(isUnfinished(message("m", "assistant", [], { time: { created: 1, completed: 2 } })), false);
    assert.equal(isUnfinished(message("m", "assistant", [], { error: { name: "x" } })), false);
    assert.equal(isUnfinished(message("m", "user", [])), false);
  });
});

describe("entries of Pi", () => {
  it("with the host's prompt are notes", () => {
    const entry = { type: "message", id: "a", parentId: null, message: { role: "system", content: "" } };
    assert.deepEqual(kindsOf(read(piRows, [entry]).items), ["note"]);
  });
});

describe("a row that no host can be told from", () => {
  it("is nobody's", () => {
    const message = { role: "user", content: "hello" };
    for (const row of [
      { type: "session", id: "x" },
      { type: "message", id: "a", message },
      { type: "message", id: "a", sessionId: "s1", message },
      { ...message, type: "user", sessionId: "s1" },
      message,
      7,
      null,
    ])
      assert.equal(recogniseRow(row), null, JSON.stringify(row));
  });
});
