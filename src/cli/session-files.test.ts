import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { makeScratch } from "../../test/support/scratch.ts";
import { portOver } from "../../test/support/robot.ts";
import type { Transcript } from "../operator/port.ts";

const header = (id: string): string => `${JSON.stringify({ type: "session", id, version: 1 })}\n`;
const said = (id: string, content: string): string =>
  `${JSON.stringify({ type: "message", id, parentId: null, message: { role: "user", content } })}\n`;
const plain = (content: string): string => `${JSON.stringify({ role: "user", content })}\n`;

function ground() {
  const folder = makeScratch("transcripts");
  const agents = join(folder, "agents");
  const write = (name: string, text: string): string => {
    const path = join(agents, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    return path;
  };
  const port = portOver(join(folder, "lcm.db"), { sessions: agents });
  const only = async (): Promise<Transcript> => {
    const [first, ...others] = await port.transcripts();
    assert.ok(first !== undefined && others.length === 0);
    return first;
  };
  return { write, port, only };
}

describe("the host's transcripts", () => {
  it("are found with their agents, newest first, and named by their headers", async () => {
    const { write, port } = ground();
    const older = write("main/sessions/a.jsonl", header("session-a") + said("1", "hello"));
    write("research/sessions/b.jsonl", said("1", "hello"));
    write("main/sessions/sessions.json", "{}");
    write("main/sessions/a.jsonl.deleted.2026", "");
    utimesSync(older, 1_000, 1_000);
    const found = await port.transcripts();
    assert.deepEqual(
      found.map(({ sessionId, agentId, conversation, isStored }) => [sessionId, agentId, conversation, isStored]),
      [
        ["b", "research", null, false],
        ["session-a", "main", null, false],
      ],
    );
    await port.close();
  });

  it("are stored, partly stored when they have grown, and stored again after the next import", async () => {
    const { write, port, only } = ground();
    const path = write("main/sessions/a.jsonl", header("session-a") + said("1", "hello"));
    assert.equal(
      await port.importTranscript(await only(), () => undefined),
      "1 message, 1 other entry, 0 already stored",
    );
    const stored = await only();
    assert.ok(stored.isStored && stored.conversation !== null);
    const [conversation] = await (await port.reading()).store.conversations();
    assert.equal(conversation?.agentId, "main");
    appendFileSync(path, said("2", "and more"));
    const grown = await only();
    assert.deepEqual([grown.isStored, grown.conversation], [false, stored.conversation]);
    assert.equal(await port.importTranscript(grown, () => undefined), "1 message, 0 other entries, 0 already stored");
    assert.equal((await only()).isStored, true);
    await port.close();
  });

  it("are compared by their last message, however long it is and whatever follows it", async () => {
    const { write, port, only } = ground();
    const path = write("main/sessions/a.jsonl", header("a") + said("1", "x".repeat(200_000)));
    appendFileSync(path, `${JSON.stringify({ type: "custom", id: "2", data: "y".repeat(70_000) })}\n{"torn":`);
    await port.importTranscript(await only(), () => undefined);
    assert.equal((await only()).isStored, true);
    await port.close();
  });

  it("are compared by the position of the last line if lines have no ids", async () => {
    const { write, port, only } = ground();
    const path = write("main/sessions/chat.jsonl", plain("one") + plain("two"));
    await port.importTranscript(await only(), () => undefined);
    assert.equal((await only()).isStored, true);
    appendFileSync(path, plain("three"));
    assert.equal((await only()).isStored, false);
    await port.close();
  });

  it("are not imported without write permission", async () => {
    const { write, only, port } = ground();
    write("main/sessions/a.jsonl", said("1", "hello"));
    const reader = portOver(port.path, { sessions: port.sessions, readOnly: true });
    await assert.rejects(
      reader.importTranscript(await only(), () => undefined),
      /--read-only/,
    );
    await assert.rejects(port.reading(), { code: "not_found" });
    await reader.close();
    await port.close();
  });
});
