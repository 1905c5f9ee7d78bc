import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { messageName } from "../core/model/types.ts";
import type { ConversationId, GrantId } from "../core/model/types.ts";
import type { ReachRequest, Reader } from "../core/recall/scope.ts";
import type { ToolContext, ToolResult } from "./define.ts";
import type { Timestamp } from "../core/base/time.ts";
import { world, call, codeOf, issue, type Place } from "../../test/support/tools-world.ts";

const secrets = ["amber", "basalt", "copper", "diamond", "emerald", "feldspar"];
const secretsIn = ({ text, details }: ToolResult): readonly string[] =>
  secrets.filter((secret) => text.includes(secret) || JSON.stringify(details).includes(secret));

describe("guarantee 25: a tool reads its own family unless a wider reach is requested and allowed", () => {
  const family = ["amber", "basalt"];
  const everyone = ["amber", "basalt", "copper", "diamond", "emerald"];
  const reading = (policy: Reader["policy"]): ToolContext => ({
    lcm: world.lcm,
    reader: { conversation: world.own.id, policy },
  });
  /** Asked for nothing in particular, a tool shows all secrets within its reach. */
  const probes: readonly (readonly [name: string, args: object])[] = [
    ["lcm_grep", { pattern: "secret is" }],
    ["lcm_grep", { pattern: "secret", mode: "full_text" }],
    ["lcm_grep", { pattern: "secret", scope: "files" }],
    ["lcm_recent", { since: "2026-02-17" }],
    ["lcm_expand_query", { prompt: "What is the secret of this place?", tokenCap: 20_000 }],
  ];
  const wide: readonly (readonly [Reader["policy"], readonly string[] | "denied"])[] = [
    ["own", "denied"],
    ["agent", [...family, "copper"]],
    ["all", everyone],
  ];
  for (const [name, args] of probes) {
    const shown = `${name} ${JSON.stringify(args)}`;
    it(`${shown} reads its own family by default`, async () => {
      for (const policy of ["own", "agent", "all"] as const)
        assert.deepEqual(secretsIn(await call(name, args, reading(policy))), family, policy);
    });
    for (const [policy, allowed] of wide) {
      it(`${shown} with allConversations under ${policy} ${allowed === "denied" ? "is denied" : "reads what is allowed"}`, async () => {
        const result = await call(name, { ...args, allConversations: true }, reading(policy));
        assert.deepEqual(secretsIn(result), allowed === "denied" ? [] : allowed);
        assert.equal(codeOf(result), allowed === "denied" ? "denied" : "answered");
        if (allowed === "denied") assert.match(result.text, /leave out allConversations/);
      });
    }
    it(`${shown} with a conversationId reads it if allowed; otherwise it does not exist`, async () => {
      const open = {
        own: ["earlier"],
        agent: ["earlier", "sister"],
        all: ["earlier", "sister", "stranger", "nobodys"],
      };
      for (const policy of ["own", "agent", "all"] as const) {
        for (const place of ["earlier", "sister", "stranger", "nobodys", "hidden"] as const) {
          const { id, secret } = world[place];
          const result = await call(name, { ...args, conversationId: id }, reading(policy));
          if (open[policy].includes(place)) assert.deepEqual(secretsIn(result), [secret], `${policy} ${place}`);
          else assert.equal(result.text, await unknownText(name, args, reading(policy), id), `${policy} ${place}`);
        }
      }
    });
    it(`${shown} under a grant ${name === "lcm_grep" ? "searches only there" : "is denied"}`, async () => {
      const grant = await issue([world.own.id]);
      const result = await call(name, args, { ...reading("all"), grant });
      if (name !== "lcm_grep") assert.equal(codeOf(result), "denied");
      assert.deepEqual(secretsIn(result), name === "lcm_grep" ? ["basalt"] : []);
    });
    it(`${shown} serves a reader outside any session only under policy all`, async () => {
      const outsider = (policy: Reader["policy"]): ToolContext => ({
        lcm: world.lcm,
        reader: { conversation: null, policy },
      });
      assert.deepEqual(secretsIn(await call(name, args, outsider("all"))), everyone);
      for (const policy of ["own", "agent"] as const) {
        const result = await call(name, args, outsider(policy));
        assert.equal(codeOf(result), "denied");
        assert.deepEqual(secretsIn(result), []);
      }
    });
  }

  /** What is said of a conversation that does not exist, with another number in it. */
  async function unknownText(name: string, args: object, context: ToolContext, id: ConversationId): Promise<string> {
    const { text, isError } = await call(name, { ...args, conversationId: 987_654 }, context);
    assert.ok(isError);
    return text.replace("987654", String(id));
  }

  const idOf = {
    leaf: (place: Place) => place.leaf,
    message: (place: Place) => messageName(place.message),
    file: (place: Place) => place.file,
  };
  for (const kind of ["leaf", "message", "file"] as const) {
    it(`lcm_describe reads a ${kind} of another conversation only if requested and allowed`, async () => {
      const missing = { leaf: "sum_00000000000000aa", message: "msg_987-654", file: "file_00000000000000aa" }[kind];
      const look = async (place: Place, policy: Reader["policy"], asked: ReachRequest = {}): Promise<string> => {
        const result = await call("lcm_describe", { id: idOf[kind](place), ...asked }, reading(policy));
        if (!result.isError) {
          assert.deepEqual(secretsIn(result), [place.secret]);
          assert.equal(
            result.text.includes(`conversation ${place.id}`),
            place.id !== world.own.id,
            "another one is named",
          );
          return "read";
        }
        assert.deepEqual(secretsIn(result), []);
        if (codeOf(result) === "not_found" && asked.conversationId === undefined) {
          const none = await call("lcm_describe", { id: missing, ...asked }, reading(policy));
          assert.equal(
            result.text.replace(numberOf(idOf[kind](place)), "X"),
            none.text.replace(numberOf(missing), "X"),
          );
        }
        return codeOf(result);
      };
      const { own, earlier, sister, stranger, hidden } = world;
      for (const policy of ["own", "agent", "all"] as const) {
        assert.equal(await look(own, policy), "read");
        assert.equal(await look(earlier, policy), "read");
        assert.equal(await look(sister, policy), "not_found");
        assert.equal(await look(hidden, policy, { conversationId: hidden.id }), "not_found");
        assert.equal(
          await look(stranger, policy, { conversationId: own.id }),
          "not_found",
          "of another one than named",
        );
      }
      const everywhere = { allConversations: true };
      assert.equal(await look(sister, "own", everywhere), "denied");
      assert.equal(await look(sister, "own", { conversationId: sister.id }), "not_found");
      assert.equal(await look(sister, "agent", everywhere), "read");
      assert.equal(await look(sister, "agent", { conversationId: sister.id }), "read");
      assert.equal(await look(stranger, "agent", everywhere), "not_found");
      assert.equal(await look(stranger, "agent", { conversationId: stranger.id }), "not_found");
      assert.equal(await look(stranger, "all", everywhere), "read");
      assert.equal(await look(hidden, "all", everywhere), "not_found");
    });
  }
  const numberOf = (id: string): string => /[0-9a-f-]+$/.exec(id)?.[0] ?? "?";

  it("lcm_expand_query does not read a foreign summary by its id", async () => {
    const ask = async (place: Place, policy: Reader["policy"], asked: ReachRequest = {}) =>
      await call("lcm_expand_query", { prompt: "What is it?", summaryIds: [place.leaf], ...asked }, reading(policy));
    for (const policy of ["own", "agent", "all"] as const) {
      const result = await ask(world.sister, policy);
      assert.equal(codeOf(result), "not_found", policy);
      assert.deepEqual(secretsIn(result), []);
    }
    assert.deepEqual(secretsIn(await ask(world.own, "own")), ["basalt"]);
    assert.deepEqual(secretsIn(await ask(world.sister, "agent", { allConversations: true })), ["copper"]);
    assert.equal(codeOf(await ask(world.stranger, "agent", { allConversations: true })), "not_found");
  });
});

describe("guarantee 25: a delegate reads only what its grant allows", () => {
  const held = (grant?: GrantId): ToolContext => ({
    lcm: world.lcm,
    reader: { conversation: world.own.id, policy: "all" },
    ...(grant === undefined ? {} : { grant }),
  });
  const reads: readonly (readonly [name: string, args: (place: Place) => object])[] = [
    ["lcm_expand", (place) => ({ summaryIds: [place.leaf], includeMessages: true })],
    ["lcm_describe", (place) => ({ id: place.leaf })],
    ["lcm_describe", (place) => ({ id: messageName(place.message) })],
    ["lcm_describe", (place) => ({ id: place.file })],
  ];

  it("lcm_expand without a grant is denied, with a hint at lcm_expand_query", async () => {
    const result = await call("lcm_expand", { summaryIds: [world.own.leaf] }, held());
    assert.equal(codeOf(result), "denied");
    assert.match(result.text, /lcm_expand_query/);
  });

  for (const [name, args] of reads) {
    const shown = (): string => `${name} ${JSON.stringify(args(world.own))}`;
    it(`${name} pays for what it reads (${Object.keys(args({} as Place)).join()})`, async () => {
      const grant = await issue([world.own.id]);
      const result = await call(name, args(world.own), held(grant));
      assert.deepEqual(secretsIn(result), ["basalt"], result.text);
      const { tokensUsed } = (await world.lcm.store.grant(grant)) ?? assert.fail("kept");
      assert.ok(tokensUsed > 0 && tokensUsed === result.read?.tokens, shown());
    });

    it(`${name} reads nothing under a forged, expired, revoked, exhausted or foreign grant`, async () => {
      const { store } = world.lcm;
      const { own, stranger } = world;
      const past = "2001-01-01T00:00:00.000Z" as Timestamp;
      const terms = { conversations: [own.id], tokenCap: 100, parent: null };
      const expired = (await store.issueGrant({ ...terms, expiresAt: past })).id;
      const revoked = await issue([own.id]);
      await store.revokeGrant(revoked);
      const exhausted = await issue([own.id], 100);
      await store.spendGrant(exhausted, own.id, 100);
      const foreign = await issue([stranger.id]);
      const states = { forged: "grant_0123456789abcdef", expired, revoked, exhausted, foreign } as const;
      for (const [state, grant] of Object.entries(states)) {
        const result = await call(name, args(own), held(grant));
        assert.equal(codeOf(result), state === "foreign" ? "not_found" : "denied", `${state}: ${result.text}`);
        assert.deepEqual(secretsIn(result), [], state);
        assert.equal(result.read, undefined);
      }
      assert.equal((await store.grant(foreign))?.tokensUsed, 0);
    });

    it(`${name} does not reach beyond the grant by conversationId`, async () => {
      const grant = await issue([world.own.id, world.sister.id]);
      const narrowed = await call(name, { ...args(world.own), conversationId: world.sister.id }, held(grant));
      assert.equal(codeOf(narrowed), "not_found");
      const beyond = await call(name, { ...args(world.stranger), conversationId: world.stranger.id }, held(grant));
      assert.equal(codeOf(beyond), "not_found");
      assert.deepEqual([...secretsIn(narrowed), ...secretsIn(beyond)], []);
      const within = await call(name, { ...args(world.sister), conversationId: world.sister.id }, held(grant));
      assert.deepEqual(secretsIn(within), ["copper"]);
    });

    it(`${name} returns no more tokens than remain`, async () => {
      const grant = await issue([world.own.id], 4);
      const result = await call(name, args(world.own), held(grant));
      assert.ok((result.read?.tokens ?? 0) <= 4, result.text);
      assert.ok(((await world.lcm.store.grant(grant))?.tokensUsed ?? 99) <= 4);
      assert.equal(result.details["truncated"] ?? true, true, result.text);
    });
  }

  it("lcm_grep finds nothing beyond the grant, and pays for what it shows", async () => {
    const { own, sister, stranger } = world;
    const grant = await issue([own.id, sister.id]);
    const secret = { pattern: "basalt copper diamond", also: ["the secret", "secret is diamond"] };
    const found = await call("lcm_grep", secret, held(grant));
    assert.deepEqual(secretsIn(found).toSorted(), ["basalt", "copper"], found.text);
    const { tokensUsed } = (await world.lcm.store.grant(grant)) ?? assert.fail("kept");
    assert.ok(tokensUsed > 0 && tokensUsed === found.read?.tokens);
    assert.ok(found.read.messages.length > 0);
    const narrowed = await call("lcm_grep", { ...secret, conversationId: sister.id }, held(grant));
    assert.deepEqual(secretsIn(narrowed), ["copper"]);
    const beyond: readonly (readonly [object, string])[] = [
      [{ ...secret, conversationId: stranger.id }, "not_found"],
      [{ ...secret, allConversations: true }, "denied"],
      [{ around: messageName(stranger.message) }, "not_found"],
      [{ after: messageName(stranger.message) }, "not_found"],
    ];
    for (const [args, code] of beyond) {
      const result = await call("lcm_grep", args, held(grant));
      assert.equal(codeOf(result), code, result.text);
      assert.deepEqual(secretsIn(result), []);
    }
    for (const scope of ["messages", "summaries", "both", "files"])
      for (const mode of ["full_text", "regex"])
        assert.deepEqual(secretsIn(await call("lcm_grep", { pattern: "diamond", scope, mode }, held(grant))), []);
  });

  it("lcm_grep reads nothing under a grant that is spent, revoked or forged, and no more than remains", async () => {
    const asked = { pattern: "secret basalt" };
    for (const scope of ["messages", "summaries", "files"]) {
      const few = await issue([world.own.id], 4);
      const result = await call("lcm_grep", { ...asked, scope }, held(few));
      assert.ok((result.read?.tokens ?? 0) <= 4 && !result.isError, result.text);
      assert.ok(((await world.lcm.store.grant(few))?.tokensUsed ?? 99) <= 4);
    }
    const spent = await issue([world.own.id], 100);
    await world.lcm.store.spendGrant(spent, world.own.id, 100);
    const revoked = await issue([world.own.id]);
    await world.lcm.store.revokeGrant(revoked);
    for (const grant of [spent, revoked, "grant_0123456789abcdef"] as const) {
      const result = await call("lcm_grep", asked, held(grant));
      assert.deepEqual([codeOf(result), secretsIn(result), result.read], ["denied", [], undefined]);
    }
  });

  it("lcm_describe under a grant rejects allConversations", async () => {
    const result = await call(
      "lcm_describe",
      { id: world.stranger.leaf, allConversations: true },
      held(await issue([world.own.id])),
    );
    assert.equal(codeOf(result), "denied");
    assert.deepEqual(secretsIn(result), []);
  });
});
