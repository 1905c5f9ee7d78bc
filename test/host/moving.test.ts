/**
 * Tests a session of which another engine served, and the older program stored, a part: we continue it. The older
 * database is adopted in place, and what it has of the transcript is not stored again.
 */

import assert from "node:assert/strict";
import { copyFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { flattened } from "../support/lossless.ts";
import { startGateway } from "./gateway.ts";
import type { Gateway } from "./gateway.ts";
import { echo, startModelServer } from "./model-server.ts";
import type { ModelServer } from "./model-server.ts";
import { ourPlugin } from "./plugin.ts";
import { segmentsOf, withStore } from "./stored.ts";
import { assertLiveOnce, assertValid, requestsOf } from "./wire.ts";

type Json = ReturnType<typeof JSON.parse>;

const said = ["the harbour opens at six", "ping", "ping", "the crane is on pier nine", "ping", "who has the key?"];
const summary = "They spoke about when the harbour opens.";
/** Words that are only in the summary, as far as the prompt shows. */
const folded = 2;

const textOf = ({ content }: Json): string =>
  typeof content === "string" ? content : content.map(({ text = "" }: Json) => text).join("\n");

interface Session {
  readonly key: string;
  /** Whether the older program knew its key; its first versions did not. */
  readonly isNamed: boolean;
}

const sessions: readonly Session[] = [
  { key: "agent:main:moving", isNamed: true },
  { key: "agent:main:nameless", isNamed: false },
];

interface Older {
  readonly sessionId: string;
  readonly sessionKey: string | null;
  readonly messages: readonly Json[];
}

/** The older program's database after it has stored these messages and folded the first of each session. */
function writeOlder(path: string, conversations: readonly Older[]): void {
  copyFileSync(fileURLToPath(new URL("../fixtures/lcm-0.15.3.db", import.meta.url)), path);
  const db = new DatabaseSync(path, { enableForeignKeyConstraints: false });
  const insert = (table: string, row: Readonly<Record<string, string | number | null>>): void => {
    const columns = Object.keys(row);
    const values = columns.map((name) => `:${name}`).join(", ");
    db.prepare(`INSERT INTO ${table} (${columns.join(", ")}) VALUES (${values})`).run(row);
  };
  const tables = "message_parts summary_messages summary_parents context_items summaries messages conversations";
  for (const table of tables.split(" ")) db.exec(`DELETE FROM ${table}`);
  let id = 0;
  for (const [index, { sessionId, sessionKey, messages }] of conversations.entries()) {
    const place = { conversation_id: index + 1 };
    const summary_id = `sum_${String(index).padStart(16, "0")}`;
    insert("conversations", { ...place, session_id: sessionId, session_key: sessionKey, active: 1 });
    insert("summaries", { ...place, summary_id, kind: "leaf", depth: 0, content: summary, token_count: 9 });
    insert("context_items", { ...place, ordinal: 0, item_type: "summary", summary_id });
    for (const [at, message] of messages.entries()) {
      const message_id = ++id;
      const created_at = new Date(message.timestamp + 1_000).toISOString().slice(0, 19).replace("T", " ");
      const said = { role: message.role, content: textOf(message), token_count: 9, created_at };
      insert("messages", { ...place, message_id, seq: at + 1, ...said });
      for (const [ordinal, raw] of blocksOf(message).entries()) {
        const metadata = JSON.stringify({ originalRole: message.role, rawType: raw.type, raw });
        const part = { part_id: `${id}-${ordinal}`, message_id, session_id: sessionId, ordinal, metadata };
        insert("message_parts", { ...part, part_type: "text", text_content: raw.text });
      }
      if (at < folded) insert("summary_messages", { summary_id, message_id, ordinal: at });
      else insert("context_items", { ...place, ordinal: at, item_type: "message", message_id });
    }
  }
  db.close();
}

const blocksOf = ({ content }: Json): readonly Json[] =>
  typeof content === "string" ? [{ type: "text", text: content }] : content;

describe("moving from the older program", () => {
  let server: ModelServer;
  let gateway: Gateway;
  /** What the older program has of the host's list: all but an exchange in the middle, and the newest. */
  const kept = new Map<string, readonly Json[]>();
  const transcript = ({ key }: Session): readonly Json[] =>
    gateway.transcript(key).filter(({ type }: Json) => type === "message");

  before(async () => {
    server = await startModelServer();
    gateway = await startGateway({ server });
    for (const { key } of sessions) {
      for (const text of said) assert.equal((await gateway.turn(key, text)).text, `You said: ${text}`);
    }
    await gateway.stop();
    const older = sessions.map((session): Older => {
      const rows = transcript(session);
      assert.equal(rows.length, 2 * said.length);
      const some = rows.slice(0, -2).filter((_, at) => at !== 6 && at !== 7);
      kept.set(session.key, some);
      const [header] = gateway.transcript(session.key);
      assert.equal(header.type, "session");
      const sessionKey = session.isNamed ? session.key : null;
      return { sessionId: header.id, sessionKey, messages: some.map(({ message }) => message) };
    });
    writeOlder(join(gateway.state, "lcm.db"), older);
    await gateway.start({ plugins: ourPlugin() });
    server.script(echo);
  });
  after(async () => await server.close());

  it("adopts the database at the first turn, with a backup beside it, and reports it", async () => {
    for (const { key } of sessions) assert.equal((await gateway.turn(key, "and now?")).text, "You said: and now?");
    await gateway.logged(/older lossless-claw/);
    const [, backup] = await gateway.logged(/converted .* messages and .* summaries; the original is kept as (\S+)/);
    const backups = readdirSync(gateway.state).filter((name) => name.startsWith("lcm.db.backup"));
    assert.deepEqual(
      backups.map((name) => join(gateway.state, name)),
      [backup],
    );
  });

  for (const session of sessions) {
    const name = session.isNamed ? "a session" : "a session whose key it did not know";

    it(`shows the model what the older summary of ${name} was made from, since there is room, and everything since`, () => {
      const asked = requestsOf(server.asked, session.key).at(-1);
      assert.ok(asked !== undefined);
      assertValid(asked);
      assertLiveOnce(asked, "and now?");
      const [held = [], rows] = [kept.get(session.key), transcript(session)];
      const shown = [...held, ...rows.slice(-4, -2)].map(({ message }) => textOf(message));
      const told = asked.messages.map(({ text }) => text);
      for (const [at, text] of shown.entries())
        assert.ok(told[at]?.includes(text), `${at}: ${text}\n${told.join("\n")}`);
      assert.equal(told.length, shown.length + 1);
      assert.ok(!JSON.stringify(asked.messages).includes(summary));
    });
  }

  it("stores nothing twice: what was stored stays, what was missed is stored aside, the rest continues", async () => {
    for (const session of sessions) await checkStored(session);
    await gateway.restart();
    for (const session of sessions) {
      assert.equal((await gateway.turn(session.key, "still there?")).text, "You said: still there?");
      await checkStored(session);
    }
  });

  async function checkStored(session: Session): Promise<void> {
    const [held = [], rows] = [kept.get(session.key), transcript(session)];
    await withStore(gateway, async (lcm) => {
      const [conversation, ...more] = await segmentsOf(lcm, session.key);
      assert.ok(conversation !== undefined && more.length === 0, "it continues in one segment");
      const shown = await flattened(lcm.store, conversation.id);
      assert.ok(shown.slice(0, held.length).every(({ key }) => key.startsWith("older:")));
      assert.deepEqual(
        shown.map(({ text }) => text),
        [...held, ...rows.slice(2 * said.length - 2)].map(({ message }) => textOf(message)),
      );
      const messages = await lcm.store.messages({ conversation: conversation.id });
      assert.deepEqual(
        messages.filter(({ aside }) => aside !== null).map(({ key }) => key),
        rows.slice(6, 8).map(({ id }) => id),
      );
      assert.equal(messages.length, rows.length);
      const findings = await lcm.inspect(null);
      assert.deepEqual(
        findings.filter(({ severity }) => severity !== "info"),
        [],
      );
    });
  }
});
