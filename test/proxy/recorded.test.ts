/**
 * What the real agents sent (recorded by test/host/record-bodies.ts), replayed through the proxy with a small budget: thirty
 * turns each, with a rewind, a fork, a sub-agent, a compaction, and answers that broke off and were asked for again.
 */

import assert from "node:assert/strict";
import { globSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, it } from "node:test";
import { comparable, isTelling, saidIn } from "../../src/core/messages/said.ts";
import type { Recording, RecordedRequest } from "../host/record-bodies.ts";
import { findingsIn, startProxyGround, storedPieces, wires, type ProxyGround } from "../support/proxy-ground.ts";
import type { StrictAnswer } from "../support/strict-provider.ts";

type Json = ReturnType<typeof JSON.parse>;

const folder = join(import.meta.dirname, "..", "fixtures", "proxy");
const bytesMax = 50_000;

for (const file of globSync("*.json", { cwd: folder }).toSorted()) {
  describe(`what ${basename(file, ".json")} sent`, () => {
    const recording: Recording = JSON.parse(readFileSync(join(folder, file), "utf8"));
    const { requests, wire } = recording;
    const lists = listsOf(recording);

    it("is a small file with turns, a compaction and broken answers, and nothing of the machine that it was recorded on", () => {
      assert.ok(statSync(join(folder, file)).size < bytesMax);
      assert.ok(requests.some(({ answer }) => answer === null));
      assert.ok(requests.some(({ kind }) => kind === "other"));
      assert.doesNotMatch(readFileSync(join(folder, file), "utf8"), /sk-|\/(?:root|dev\/shm|tmp|work)\//);
    });

    it("is stored once, sent on as a valid body with equal bytes outside the messages, and its compaction is undone", async () => {
      const ground = await startProxyGround({
        tokensMax: 1_600,
        settings: { leafChunkTokens: 400, leafTargetTokens: 80, freshTailCount: 4 },
      });
      try {
        for (const [at, request] of requests.entries()) await replay(ground, recording, request, lists[at] ?? []);
        const received = ground.provider.requests;
        assert.ok(received.filter(({ raw }) => raw.includes("<summary id=")).length > requests.length / 2);
        const compacted = requests.findIndex((request, at) => {
          const before = requests.findLastIndex((other, nth) => nth < at && isTurnOf(other, sessionOf(request)));
          return request.kind === "turn" && (lists[at]?.length ?? 0) < 0.6 * (lists[before]?.length ?? 0);
        });
        assert.ok(compacted > 0);
        assert.match(received[compacted]?.raw ?? "", /<summary id=/);
        for (const session of new Set(requests.map(sessionOf)))
          assert.deepEqual(await storedIn(ground, session), expectedIn(recording, lists, session), session);
        assert.deepEqual(await findingsIn(ground), []);
        assert.deepEqual(ground.runtime.troubles, []);
      } finally {
        await ground.close();
      }
    });

    /** The provider answers as it did then, and must get exactly one request. */
    async function replay(
      ground: ProxyGround,
      { rests, path }: Recording,
      request: RecordedRequest,
      list: readonly Json[],
    ): Promise<void> {
      const { provider, proxy } = ground;
      const { headers, answer } = request;
      const { field } = wires[wire];
      const body = JSON.stringify({ ...rests[request.rest], [field]: list });
      if (answer === null) provider.faults.push({ kind: "die" });
      else provider.answer = () => answer;
      const before = provider.requests.length;
      const sent = { "content-type": "application/json", ...headers };
      await fetch(proxy.urlOf("model") + path, { method: "POST", headers: sent, body })
        .then(async (response) => await response.text())
        .catch((error: unknown) => assert.equal(answer, null, String(error)));
      await ground.settled();
      const [received, ...others] = provider.requests.slice(before);
      assert.deepEqual([received?.violations, others.length], [[], 0]);
      assert.equal(outside(received?.raw ?? "", field), outside(body, field));
    }
  });
}

/** The messages of each request. */
function listsOf({ requests, elements }: Recording): readonly (readonly Json[])[] {
  const lists: (readonly Json[])[] = [];
  for (const { like, keep, more } of requests)
    lists.push([...(lists[like] ?? []).slice(0, keep), ...more.map((number) => elements[number])]);
  return lists;
}

/** A body without its messages. */
function outside(raw: string, field: string): string {
  const list = `${JSON.stringify(field)}:${JSON.stringify(JSON.parse(raw)[field])}`;
  assert.ok(raw.includes(list));
  return raw.replace(list, "");
}

/** The agent's own name of the session; empty if it sends none. */
function sessionOf({ headers }: RecordedRequest): string {
  const names = ["x-claude-code-agent-id", "x-claude-code-session-id", "thread-id", "x-session-id"];
  return names.map((name) => headers[name]).find((id) => id !== undefined) ?? "";
}

const isTurnOf = (request: RecordedRequest, session: string): boolean =>
  request.kind === "turn" && sessionOf(request) === session;

async function storedIn(ground: ProxyGround, session: string): Promise<readonly string[]> {
  const { store } = await ground.lcm();
  const conversations = await store.conversations(session === "" ? {} : { sessionId: session });
  const ids = new Set(conversations.map(({ sessionId }) => sessionId));
  const pieces = await Promise.all([...ids].map(async (id) => await storedPieces(ground, id)));
  return pieces.flat().toSorted();
}

/**
 * Everything that a session showed or was answered, as often as one request has it: tests say nothing twice, but they show
 * the same picture. What the agent asked for itself is not part of it.
 */
function expectedIn(
  { requests, wire }: Recording,
  lists: readonly (readonly Json[])[],
  session: string,
): readonly string[] {
  const answers = requests.flatMap(({ kind, answer }) => (kind === "other" && answer !== null ? [answer.text] : []));
  // OpenCode repeats its question before the summary that it got.
  const asked = [...answers, "What did we do so far?"];
  const most = new Map<string, number>();
  requests.forEach((request, at) => {
    if (!isTurnOf(request, session)) return;
    const shown = (lists[at] ?? [])
      .filter((element) => !wires[wire].isPinned(element))
      .flatMap((element) =>
        saidIn(wires[wire].toMessage(element) ?? {})
          .filter(isTelling)
          .map(comparable),
      );
    const counts = new Map<string, number>();
    for (const piece of [...shown, ...(request.answer === null ? [] : piecesOf(request.answer))])
      if (!asked.some((text) => piece.includes(text))) counts.set(piece, (counts.get(piece) ?? 0) + 1);
    for (const [piece, count] of counts) most.set(piece, Math.max(count, most.get(piece) ?? 0));
  });
  return [...most].flatMap(([piece, count]) => Array.from({ length: count }, () => piece)).toSorted();
}

function piecesOf({ text, calls = [] }: StrictAnswer): readonly string[] {
  const place = { field: "content", at: 0 };
  const said = comparable({ kind: "text", role: "assistant", text, place });
  return [
    said,
    ...calls.map(({ id, name, input }) =>
      comparable({ kind: "call", id, name: name.split("::").at(-1) ?? "", input, place }),
    ),
  ];
}
