import assert from "node:assert/strict";
import { copyFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { assertSameRows, dumpOfContent } from "../../../test/support/dump.ts";
import type { Dump } from "../../../test/support/dump.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { createHost, toAppendable, turnWithTool, user } from "../../../test/support/scripted-host.ts";
import { asSummary } from "../../store/rows.ts";
import { openSqlite } from "../../store/sqlite/store.ts";
import { examine, inspect } from "./inspect.ts";
import type { Finding } from "./inspect.ts";
import { applyFixes, isNothing, planFixes } from "./apply-fix.ts";
import { idIn, messageName } from "../model/types.ts";
import type { ConversationId, MessageId, NewSummary } from "../model/types.ts";
import type { Store } from "../model/store.ts";

const folder = makeScratch("fix");
const soundPath = join(folder, "sound.db");
let copies = 0;

await makeSound(soundPath);

/** Three layers over a conversation with a branch that was left, copies of it before another one, and a carried text. */
async function makeSound(path: string): Promise<void> {
  const store = await openSqlite({ path, housekeeping: false });
  try {
    const talk = await store.open({ sessionId: "talk", sessionKey: "agent:main:talk" });
    const host = createHost("h");
    const say = async (turns: number): Promise<void> => {
      for (let turn = 0; turn < turns; turn++)
        for (const raw of turnWithTool(`c${host.entries.length}`, `asks ${turn}`, `answers ${turn}`)) host.says(raw);
      await store.append(talk.id, host.entries.map(toAppendable));
    };
    await say(6);
    for (let place = 0; place < 6; place++) await fold(store, talk.id, place, 3);
    await fold(store, talk.id, 0, 3);
    await fold(store, talk.id, 1, 2);
    await fold(store, talk.id, 0, 2);
    host.goesBackTo("h-17");
    host.says(user("another way"));
    await say(1);
    const other = await store.open({ sessionId: "other", sessionKey: "agent:main:other" });
    const guest = createHost("g");
    for (let said = 0; said < 8; said++) guest.says(user(`the guest says ${said}`));
    await store.append(other.id, guest.entries.map(toAppendable));
    await fold(store, other.id, 0, 3);
    assert.equal((await store.transplant({ source: talk.id, target: other.id })).kind, "written");
    await store.openSegment({ sessionId: "next", sessionKey: "agent:main:other" }, { carryDepth: 1 });
    while ((await store.index(1_000)) > 0);
    assert.ok((await inspect(store, null)).every(({ severity }) => severity === "info"));
    assert.ok(isNothing(await planFixes(store, null)), "a sound database needs nothing");
  } finally {
    await store.close();
  }
}

async function fold(store: Store, id: ConversationId, from: number, items: number): Promise<void> {
  const run = (await store.context(id)).slice(from, from + items);
  const made: NewSummary = {
    text: `folded at ${from} of ${id}, from ${String(run[0]?.id)}`,
    tokens: 1,
    level: "normal",
    model: null,
    previousContext: null,
    fileIds: [],
  };
  assert.equal((await store.fold(id, run, made)).kind, "written");
}

// ── Breaking ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const lostId = (number: number): number => idIn(1, 100_000 + number);

/** Each takes a row by chance, and is a damage that some program or disk could do. */
const damages = {
  "a time in the format of SQL": (db, a) =>
    on(db, "messages", a, "created_at = replace(substr(created_at, 1, 19), 'T', ' ')"),
  "a time of another zone": (db, a) => on(db, "messages", a, "created_at = substr(created_at, 1, 19) || '+02:00'"),
  "an invalid time": (db, a) => on(db, "messages", a, "created_at = 'yesterday'"),
  "a lost item": (db, a) => drop(db, "context_items", a),
  "many lost items": (db, a) => db.exec(`DELETE FROM context_items WHERE ordinal % ${2 + (a % 3)} = 0`),
  "a message twice in the context": (db, a, b) =>
    addItem(db, b, (table) => row(db, `${table} WHERE item_type = 'message'`, a)),
  "a summary twice in the context": (db, a, b) =>
    addItem(db, b, (table) => row(db, `${table} WHERE item_type = 'summary'`, a)),
  "a message beside the summary that covers it": (db, a, b) =>
    addItem(db, b, () => ({ item_type: "message", ...pick(row(db, "summary_messages", a), "message_id") })),
  "a summary beside the one that was made from it": (db, a, b) =>
    addItem(db, b, () => ({ item_type: "summary", summary_id: row(db, "summary_parents", a)?.["parent_summary_id"] })),
  "an item of another conversation": (db, a, b) =>
    addItem(db, b, () => ({ item_type: "message", ...pick(row(db, "messages", a), "message_id") })),
  "an item without its message": (db, a, b) => addItem(db, b, () => ({ item_type: "message", message_id: lostId(a) })),
  "an item without its summary": (db, a, b) =>
    addItem(db, b, () => ({ item_type: "summary", summary_id: `sum_${String(a).padStart(16, "0")}` })),
  "an item at another place": (db, a, b) => on(db, "context_items", a, `ordinal = ${b % 2 === 0 ? -1 - b : 1_000 + b}`),
  "two swapped items": (db, a, b) => swap(db, "context_items", a, b),
  "a lost link to a message": (db, a) => drop(db, "summary_messages", a),
  "a lost link to a summary": (db, a) => drop(db, "summary_parents", a),
  "messages of a leaf in another order": (db, a, b) => on(db, "summary_messages", a, `ordinal = ${b}`),
  "summaries of a condensed one in another order": (db, a, b) => on(db, "summary_parents", a, `ordinal = ${b}`),
  "a link to a missing message": (db, a, b) => link(db, "summary_messages", "message_id", a, lostId(b)),
  "a link to a missing summary": (db, a) => link(db, "summary_parents", "parent_summary_id", a, "sum_00000000000000ff"),
  "a link to another message": (db, a, b) =>
    link(db, "summary_messages", "message_id", a, row(db, "messages", b)?.["message_id"]),
  "a link to another summary": (db, a, b) =>
    link(db, "summary_parents", "parent_summary_id", a, row(db, "summaries", b)?.["summary_id"]),
  "a wrong depth": (db, a, b) => on(db, "summaries", a, `depth = ${b % 5}`),
  "a leaf marked as condensed": (db, a) => on(db, "summaries", a, "kind = iif(kind = 'leaf', 'condensed', 'leaf')"),
  "a wrong range": (db, a) => on(db, "summaries", a, "earliest_at = '2020-01-01 00:00:00', latest_at = NULL"),
  "a wrong descendant count": (db, a, b) => on(db, "summaries", a, `descendant_count = ${b}`),
  "wrong totals": (db, a, b) => on(db, "conversations", a, `context_tokens = ${b}, message_count = message_count + 1`),
  "a missing message": (db, a) => drop(db, "messages", a),
  "a missing summary": (db, a) => drop(db, "summaries", a),
  "a message missing from the search index": (db, a) =>
    db.exec(`DELETE FROM messages_fts WHERE rowid = ${idIn(1, 1 + (a % 30))}`),
  "a summary missing from the search index": (db, a) =>
    db.exec(`DELETE FROM summaries_fts WHERE rowid = (SELECT search_id FROM summaries LIMIT 1 OFFSET ${a % 5})`),
  "an orphaned search entry of a message": (db, a) =>
    db.exec(`INSERT INTO messages_fts (rowid, text) VALUES (${100_000 + a}, 'x')`),
  "an orphaned search entry of a summary": (db, a) =>
    db.exec(`INSERT INTO summaries_fts (rowid, text) VALUES (${100_000 + a}, 'x')`),
  "an orphaned part": (db, a) =>
    db.exec(
      `INSERT INTO message_parts (conversation_id, message_id, ordinal, part_type) VALUES (1, ${lostId(a)}, 0, 'text')`,
    ),
  "an abandoned branch without its mark": (db) => db.exec("UPDATE messages SET aside = NULL"),
} as const satisfies Readonly<Record<string, (db: DatabaseSync, a: number, b: number) => void>>;

type Row = Readonly<Record<string, unknown>>;

function row(db: DatabaseSync, from: string, chance: number): Row | undefined {
  const rows: readonly Row[] = db.prepare(`SELECT * FROM ${from}`).all();
  return rows[chance % Math.max(1, rows.length)];
}

const pick = (from: Row | undefined, column: string): Row => ({ [column]: from?.[column] });

const keysOf: Readonly<Record<string, readonly string[]>> = {
  messages: ["message_id"],
  summaries: ["summary_id"],
  conversations: ["conversation_id"],
  context_items: ["conversation_id", "ordinal"],
  summary_messages: ["summary_id", "message_id"],
  summary_parents: ["summary_id", "parent_summary_id"],
};

function withRow(db: DatabaseSync, table: string, chance: number, statement: (where: string) => string): void {
  const found = row(db, table, chance);
  if (found === undefined) return;
  const keys = keysOf[table] ?? [];
  const where = keys.map((key) => `${key} = ?`).join(" AND ");
  run(db, statement(where), ...keys.map((key) => found[key]));
}

/** `run` also returns the last rowid, which can be one of the search index and exceed a safe integer. */
function run(db: DatabaseSync, words: string, ...values: readonly unknown[]): void {
  const statement = db.prepare(words);
  statement.setReadBigInts(true);
  statement.run(...(values as readonly (string | number | null)[]));
}

const on = (db: DatabaseSync, table: string, chance: number, set: string): void =>
  withRow(db, table, chance, (where) => `UPDATE OR IGNORE ${table} SET ${set} WHERE ${where}`);
const drop = (db: DatabaseSync, table: string, chance: number): void =>
  withRow(db, table, chance, (where) => `DELETE FROM ${table} WHERE ${where}`);

function addItem(db: DatabaseSync, chance: number, make: (table: string) => Row | undefined): void {
  const item = make("context_items");
  const [message, summary] = [item?.["message_id"] ?? null, item?.["summary_id"] ?? null];
  if (message === null && summary === null) return;
  run(
    db,
    "INSERT OR IGNORE INTO context_items (conversation_id, ordinal, item_type, message_id, summary_id) VALUES (?, ?, ?, ?, ?)",
    1 + (chance % 2),
    (chance % 60) - 10,
    item?.["item_type"],
    message,
    summary,
  );
}

function swap(db: DatabaseSync, table: string, a: number, b: number): void {
  const [one, other] = [row(db, table, a)?.["ordinal"], row(db, table, b)?.["ordinal"]];
  for (const [to, from] of [
    [-999, one],
    [one, other],
    [other, -999],
  ] as const)
    run(db, `UPDATE OR IGNORE ${table} SET ordinal = ? WHERE conversation_id = 1 AND ordinal = ?`, to, from);
}

function link(db: DatabaseSync, table: string, column: string, chance: number, to: unknown): void {
  const { summary_id: summary, conversation_id: conversation } = row(db, "summaries", chance) ?? {};
  if (summary === undefined || to === undefined) return;
  const words = `INSERT OR IGNORE INTO ${table} (conversation_id, summary_id, ${column}, ordinal) VALUES (?, ?, ?, ?)`;
  run(db, words, conversation, summary, to, chance % 7);
}

type Damage = readonly [keyof typeof damages, number, number];

function damaged(list: readonly Damage[]): string {
  const path = join(folder, `damaged-${++copies}.db`);
  copyFileSync(soundPath, path);
  const db = new DatabaseSync(path, { enableForeignKeyConstraints: false });
  for (const [name, a, b] of list) damages[name](db, a, b);
  db.close();
  return path;
}

/** All rows but references to nothing that are removed, which no undo can put back. */
function withoutDangling(path: string): Dump {
  const copy = `${path}.bare`;
  copyFileSync(path, copy);
  const db = new DatabaseSync(copy, { enableForeignKeyConstraints: false });
  const isKnown = (id: string, table: string, column = id): string =>
    `(conversation_id, ${column}) IN (SELECT conversation_id, ${id} FROM ${table})`;
  db.exec(`DELETE FROM message_parts WHERE NOT ${isKnown("message_id", "messages")};
    DELETE FROM context_items WHERE message_id IS NOT NULL AND NOT ${isKnown("message_id", "messages")}
      OR summary_id IS NOT NULL AND NOT ${isKnown("summary_id", "summaries")};
    DELETE FROM summary_messages WHERE NOT ${isKnown("summary_id", "summaries")}
      OR message_id IN (SELECT message_id FROM messages) AND NOT ${isKnown("message_id", "messages")};
    DELETE FROM summary_parents WHERE NOT ${isKnown("summary_id", "summaries", "parent_summary_id")}
      OR NOT ${isKnown("summary_id", "summaries")}`);
  db.close();
  return dumpOfContent(copy);
}

// ── Promises ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const isMechanical = ({ remedy }: Finding): boolean => remedy?.includes("--fix") === true;
const told = ({ code, conversation, subject, message }: Finding): string =>
  `${code} ${conversation} ${subject}: ${message}`;

/** Every text that is stored. */
const texts = (path: string): readonly unknown[] => {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    return [
      ...db.prepare("SELECT message_id, conversation_id, seq, content, aside FROM messages ORDER BY 1").all(),
      ...db.prepare("SELECT summary_id, conversation_id, content, token_count FROM summaries ORDER BY 1").all(),
      ...db.prepare("SELECT p.* FROM message_parts p JOIN messages USING (message_id) ORDER BY 1, 2").all(),
    ];
  } finally {
    db.close();
  }
};

/** Whether there was something to fix. */
async function checkMending(list: readonly Damage[]): Promise<boolean> {
  const path = damaged(list);
  const store = await openSqlite({ path, housekeeping: false });
  try {
    const [rows, said] = [withoutDangling(path), texts(path)];
    const findings = await inspect(store, null);
    const plan = await planFixes(store, null);
    assert.equal(isNothing(plan), !findings.some(isMechanical), "it offers to fix exactly what it can");
    const { change } = await applyFixes(store, plan);
    assert.equal(change === null, isNothing(plan));

    const left = await inspect(store, null);
    assert.deepEqual(left.filter(isMechanical).map(told), [], "nothing mechanical is left");
    assert.ok(isNothing(await planFixes(store, null)), "a second time there is nothing to do");
    assert.deepEqual(left.filter(({ code }) => code === "lost_message").map(told), []);
    assert.deepEqual(texts(path), said, "every text is where it was");
    // Findings that need a decision or a backup remain.
    const stays = findings.filter(({ code, remedy }) => remedy === "lcm restore" && code !== "out_of_order");
    const still = new Set(left.map(({ code, subject }) => `${code} ${subject}`));
    for (const finding of stays)
      assert.ok(still.has(`${finding.code} ${finding.subject}`) || finding.code === "wrong_depth", told(finding));

    if (change === null) return false;
    const { entries } = await store.planUndo(change);
    const undone = await store.undo(change);
    const isIdle = entries.every(
      ({ after, hasTotals }) => !hasTotals && Object.values(after.rows).every((n) => n === 0),
    );
    if (undone.kind === "blocked") assert.match(undone.obstacles[0]?.message ?? "", /only removed orphaned rows/);
    assert.equal(undone.kind, isIdle ? "blocked" : "undone");
    assertSameRows(dumpOfContent(path), rows, "taken back, all is as it was but for references to nothing");
    return true;
  } finally {
    await store.close();
    for (const made of [path, `${path}.bare`]) rmSync(made, { force: true });
  }
}

/** Where summaries reach into each other: opens up what is named until nothing is, and fixes the rest each time. */
async function checkDissolving(list: readonly Damage[]): Promise<void> {
  const path = damaged(list);
  const store = await openSqlite({ path, housekeeping: false });
  try {
    const opened = new Set<string>();
    for (;;) {
      await applyFixes(store, await planFixes(store, null));
      const left = await inspect(store, null);
      if (left.some(({ code }) => code === "cycle")) return;
      const next = left.find(({ remedy }) => /dissolve .* --summary sum_\w+$/.test(remedy ?? ""));
      if (next === undefined) return assert.deepEqual(left.filter(isTangled).map(told), []);
      const summary = asSummary(/sum_\w+/.exec(next.remedy ?? "")?.[0] ?? "");
      assert.ok(next.conversation !== null && !opened.has(summary), `${summary} is opened up once`);
      opened.add(summary);
      const item = (await store.context(next.conversation)).find(({ id }) => id === summary);
      assert.ok(item !== undefined, `${summary} is in the context`);
      const { conversation } = next;
      assert.equal((await store.dissolve({ conversation, summary, ordinal: item.ordinal })).kind, "written");
    }
  } finally {
    await store.close();
    rmSync(path);
  }
}

/** Only a backup fixes it. */
const loss: keyof typeof damages = "a link to a missing message";

const isTangled = ({ code }: Finding): boolean => code === "doubled_message" || code === "out_of_order";

const anyDamage = fc.tuple(
  fc.constantFrom(...(Object.keys(damages) as readonly (keyof typeof damages)[])),
  fc.nat(1_000),
  fc.nat(1_000),
);

describe("fixing", () => {
  for (const name of (Object.keys(damages) as readonly (keyof typeof damages)[]).filter((each) => each !== loss))
    it(`fixes ${name}`, async () => {
      // Summaries have names by chance, and a row moved to where it stood already is no damage: a few draws always, and
      // as many more as it takes to have damaged something.
      let mended = 0;
      for (let draw = 0; draw < 3 || (mended === 0 && draw < 50); draw++)
        if (await checkMending([[name, draw * 5, draw * 37 + 3]])) mended += 1;
      assert.ok(mended > 0, "chance has damaged something");
    });

  it("fixes any combination of damage, loses nothing, is idempotent, and can be undone", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyDamage, { minLength: 2, maxLength: 10 }), async (list) => {
        await checkMending(list);
      }),
      { numRuns: 100 },
    );
  });

  it("keeps reporting a missing message, whether a summary or the context refers to it", async () => {
    const path = damaged([[loss, 3, 3]]);
    const db = new DatabaseSync(path, { enableForeignKeyConstraints: false });
    const idOf = (from: string): number =>
      Number(db.prepare(`SELECT max(message_id) AS id FROM ${from}`).get()?.["id"]);
    const [folded, shown] = [
      idOf("summary_messages WHERE message_id IN (SELECT message_id FROM messages)"),
      idOf("context_items"),
    ];
    for (const id of [folded, shown]) db.exec(`DELETE FROM messages WHERE message_id = ${id}`);
    const links = (): unknown => db.prepare("SELECT * FROM summary_messages ORDER BY 1, 2").all();
    const before = links();
    const store = await openSqlite({ path, housekeeping: false });
    try {
      const gone = async (): Promise<readonly string[]> =>
        (await inspect(store, null)).filter(({ code }) => code === "missing_message").map(({ subject }) => subject);
      const told = [...[folded, shown].map((id) => messageName(id as MessageId)), "msg_1-100003"].toSorted();
      assert.deepEqual((await gone()).toSorted(), told);
      await applyFixes(store, await planFixes(store, null));
      assert.ok(isNothing(await planFixes(store, null)));
      assert.deepEqual((await gone()).toSorted(), told);
      assert.deepEqual(links(), before, "a summary still says what it was made from");
    } finally {
      await store.close();
      db.close();
    }
  });

  it("drops a summary from the context that another one there was made from", async () => {
    const path = damaged([]);
    const db = new DatabaseSync(path);
    const shown = (): unknown => db.prepare("SELECT summary_id FROM context_items WHERE conversation_id = 2").all();
    const before = shown();
    db.exec(`INSERT INTO context_items (conversation_id, ordinal, item_type, summary_id)
      SELECT 2, -5, 'summary', parent_summary_id FROM summary_parents JOIN context_items c USING (summary_id)
      WHERE c.conversation_id = 2 LIMIT 1`);
    assert.notDeepEqual(shown(), before);
    const store = await openSqlite({ path, housekeeping: false });
    try {
      await applyFixes(store, await planFixes(store, null));
      assert.deepEqual(shown(), before);
    } finally {
      await store.close();
      db.close();
    }
  });

  it("counts what was checked", async () => {
    const store = await openSqlite({ path: damaged([]), housekeeping: false });
    try {
      const { conversations, messages, summaries } = await store.status();
      assert.deepEqual((await examine(store, null)).checked, { conversations, messages, summaries });
    } finally {
      await store.close();
    }
  });

  it("does not report faults of another conversation", async () => {
    const path = damaged([]);
    const db = new DatabaseSync(path, { enableForeignKeyConstraints: false });
    const ids = db.prepare("SELECT summary_id AS id FROM summaries WHERE conversation_id = ?");
    const [one, other] = [1, 2].map((id) => String(ids.get(id)?.["id"]));
    run(
      db,
      "INSERT INTO summary_parents (conversation_id, summary_id, parent_summary_id, ordinal) VALUES (2, ?, ?, 9)",
      other,
      one,
    );
    db.close();
    const store = await openSqlite({ path, housekeeping: false });
    try {
      const codes = async (id: number): Promise<readonly string[]> =>
        (await inspect(store, id as ConversationId)).flatMap(({ code, severity }) => (severity === "info" ? [] : code));
      assert.deepEqual([await codes(1), (await codes(2)).includes("dangling_reference")], [[], true]);
    } finally {
      await store.close();
    }
  });

  it("of one conversation does not touch the rest of the file", async () => {
    const store = await openSqlite({ path: damaged([["an orphaned part", 1, 1]]), housekeeping: false });
    try {
      const [{ id } = assert.fail("one is there")] = await store.conversations();
      assert.deepEqual((await planFixes(store, null)).orphans, { rows: 1, searchEntries: 0 });
      assert.ok(isNothing(await planFixes(store, id)));
    } finally {
      await store.close();
    }
  });

  it("drops the link to a missing message once the host's transcript has restored it", async () => {
    const path = join(folder, "back.db");
    const store = await openSqlite({ path, housekeeping: false });
    try {
      const { id } = await store.open({ sessionId: "talk" });
      const host = createHost("h");
      for (let said = 0; said < 8; said++) host.says(user(`says ${said}`));
      await store.append(id, host.entries.map(toAppendable));
      await fold(store, id, 0, 4);
      const db = new DatabaseSync(path, { enableForeignKeyConstraints: false });
      const lost = Number(
        db.prepare("SELECT message_id AS id FROM messages ORDER BY seq LIMIT 1 OFFSET 1").get()?.["id"],
      );
      for (const table of ["message_parts", "messages"]) db.exec(`DELETE FROM ${table} WHERE message_id = ${lost}`);
      db.close();
      const setRight = async (): Promise<readonly string[]> => {
        await applyFixes(store, await planFixes(store, null));
        return (await inspect(store, null)).filter(({ severity }) => severity === "error").map(({ code }) => code);
      };
      assert.deepEqual(await setRight(), ["missing_message"]);
      await store.append(id, host.entries.map(toAppendable));
      assert.deepEqual(await setRight(), []);
    } finally {
      await store.close();
    }
  });

  it("puts back a lost summary instead of its sources, but not one that was dissolved", async () => {
    const path = damaged([]);
    const store = await openSqlite({ path, housekeeping: false });
    try {
      const id = 1 as ConversationId;
      const lose = async (): Promise<void> => {
        const db = new DatabaseSync(path);
        db.exec("DELETE FROM context_items WHERE conversation_id = 1");
        db.close();
        await applyFixes(store, await planFixes(store, id));
      };
      const before = await store.context(id);
      await lose();
      const refs = (items: typeof before): readonly unknown[] => items.map((item) => item.id);
      assert.deepEqual(refs(await store.context(id)), refs(before));
      const [top] = await store.context(id);
      assert.ok(top?.kind === "summary" && top.depth > 0);
      await store.dissolve({ conversation: id, summary: top.id, ordinal: top.ordinal });
      assert.ok(!(await inspect(store, id)).some(({ subject }) => subject === top.id), "it is no orphan");
      const opened = await store.context(id);
      await lose();
      assert.deepEqual(refs(await store.context(id)), refs(opened));
    } finally {
      await store.close();
    }
  });

  it("names the summary to dissolve if summaries overlap, and fixes the rest afterwards", async () => {
    const tangles = [
      "a link to another message",
      "a link to another summary",
      "a lost link to a message",
      "a lost link to a summary",
      "an abandoned branch without its mark",
    ] as const;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom(...tangles), fc.nat(1_000), fc.nat(1_000)), { minLength: 1, maxLength: 6 }),
        async (list) => await checkDissolving(list),
      ),
      { numRuns: 40 },
    );
  });
});
