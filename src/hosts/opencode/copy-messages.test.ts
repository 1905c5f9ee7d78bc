import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readNew } from "./copy-messages.ts";
import type { HostClient, HostMessageRow } from "./host-api.ts";

const row = (id: string, role: "user" | "assistant", isFinished = true): HostMessageRow => ({
  info: {
    id,
    sessionID: "ses_1",
    role,
    time: { created: 1, ...(isFinished && role === "assistant" ? { completed: 2 } : {}) },
  },
  parts: [],
});

/** Its server, with these messages; records what it was asked for. */
function serve(messages: readonly HostMessageRow[]) {
  const limits: (number | undefined)[] = [];
  const client = {
    session: {
      get: async () => await Promise.resolve({ data: { id: "ses_1", directory: "/work" } }),
      messages: async ({ query }: { readonly query?: { readonly limit: number } }) => {
        limits.push(query?.limit);
        return await Promise.resolve({ data: query === undefined ? messages : messages.slice(-query.limit) });
      },
    },
  } as unknown as HostClient;
  return { client, limits };
}

const idsOf = (rows: { readonly messages: readonly HostMessageRow[] }) => rows.messages.map(({ info }) => info.id);
const session = { id: "ses_1", directory: "/work" };

describe("what is new in a session of OpenCode", () => {
  const all = Array.from({ length: 60 }, (_, at) => row(`m${at}`, at % 2 === 0 ? "user" : "assistant"));

  it("is everything at first", async () => {
    const { client } = serve(all);
    const read = await readNew(client, "ses_1", null);
    assert.equal(read.messages.length, 60);
    assert.equal(read.session.directory, "/work");
  });

  it("begins with the newest message that is stored, so that the next ones continue it", async () => {
    const { client, limits } = serve(all);
    assert.deepEqual(idsOf(await readNew(client, "ses_1", { session, newest: "m57" })), ["m57", "m58", "m59"]);
    assert.equal(limits.length, 1);
    assert.ok(limits[0]! < 60, "the whole session is not read for it");
  });

  it("is everything again if that message is gone, or far back", async () => {
    for (const newest of ["reverted", "m2"]) {
      const { client } = serve(all);
      assert.equal(idsOf(await readNew(client, "ses_1", { session, newest })).length, 60);
    }
  });

  it("ends before the answer that is being written, but has older ones that never ended", async () => {
    const { client } = serve([
      row("u1", "user"),
      row("dead", "assistant", false),
      row("u2", "user"),
      row("now", "assistant", false),
    ]);
    assert.deepEqual(idsOf(await readNew(client, "ses_1", null)), ["u1", "dead", "u2"]);
  });

  it("is an error if the server refuses", async () => {
    const client = {
      session: { get: async () => await Promise.resolve({ error: { name: "NotFound" } }) },
    } as unknown as HostClient;
    await assert.rejects(readNew(client, "ses_1", null), /refused: .*NotFound/);
  });
});
