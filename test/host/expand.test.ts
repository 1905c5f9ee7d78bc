/** Tests recall on the real host: the tools in a model's hands, a question answered by a sub-agent, and children. */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Lcm } from "../../src/core/lcm.ts";
import { startGateway } from "./gateway.ts";
import type { Gateway } from "./gateway.ts";
import { startModelServer } from "./model-server.ts";
import type { Asked, ModelServer, Reply } from "./model-server.ts";
import { ourPlugin } from "./plugin.ts";
import { withStore } from "./stored.ts";

const session = "agent:main:recall";
const question = { query: "beacon", prompt: "What does the beacon answer to?" };
const ordinary = ["lcm_describe", "lcm_expand_query", "lcm_grep", "lcm_map", "lcm_pin", "lcm_recent"];

const toolsOf = ({ tools }: Asked): readonly string[] => tools.filter((name) => name.startsWith("lcm_")).toSorted();
const isQuestion = ({ session: key }: Asked): boolean => key.startsWith("agent:main:subagent:lcm-question-");
const call = (name: string, args: object): Reply => ({ kind: "answer", calls: [{ name, args }] });
/** A summary that it was shown; the system prompt contains one as an example. */
const leafIn = ({ messages }: Asked): string => /sum_[0-9a-f]{16}/.exec(JSON.stringify(messages))?.[0] ?? "none";
const walkDown = (asked: Asked): Reply => call("lcm_expand", { summaryIds: [leafIn(asked)], includeMessages: true });

describe("recall on the host", () => {
  let server: ModelServer;
  let gateway: Gateway;

  /** One turn: the model calls the tool and gets its result, which is returned. Others are scripted. */
  async function calling(name: string, args: object, others?: (asked: Asked) => Reply): Promise<string> {
    const shown: string[] = [];
    server.script((asked) => {
      if (asked.session !== session) return others?.(asked) ?? "Something else.";
      shown.push(asked.results.join("\n"));
      return asked.results.length === 0 ? call(name, args) : "Thanks.";
    });
    const turn = await gateway.turn(session, `use ${name}`, { timeoutMs: 180_000 });
    assert.equal(turn.status, 200, turn.text);
    return shown.at(-1) ?? "";
  }

  const lastResult = (): { readonly isError: boolean; readonly details: Readonly<Record<string, unknown>> } =>
    gateway
      .transcript(session)
      .flatMap(({ message = [] }) => message)
      .findLast(({ role }) => role === "toolResult");

  async function until(isSo: () => Promise<boolean>, what: string): Promise<void> {
    for (const deadline = AbortSignal.timeout(120_000); !(await isSo());) {
      assert(!deadline.aborted, `${what}: not in time\n${gateway.log().slice(-2000)}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** The host takes seconds to delete a session, and no turn waits for that. */
  const gone = async (key: string): Promise<void> =>
    await until(async () => !JSON.stringify(await gateway.rpc("sessions.list")).includes(key), `${key} is gone`);

  const callsOf = async ({ store }: Lcm) => await store.usageSince("2026-01-01T00:00:00.000Z" as never);

  before(async () => {
    server = await startModelServer();
    gateway = await startGateway({ server, plugins: ourPlugin({ freshTailCount: 2 }) });
    server.script(({ kind }) => (kind === "completion" ? "They spoke of the beacon." : "Noted."));
    await gateway.turn(
      session,
      `The beacon answers to heliotrope-77. ${"It stands on the northern cape. ".repeat(40)}`,
    );
    for (let turn = 0; turn < 4; turn++)
      await gateway.turn(session, `${turn}: ${"The tide came in and went out again. ".repeat(40)}`);
    // Perhaps all of it is folded already, in the background.
    const told = await gateway.rpc("sessions.compact", { key: session });
    await withStore(gateway, async ({ store }) => {
      const [conversation] = await store.conversations({ sessionKey: session });
      assert((conversation?.totals.summaries ?? 0) > 0, JSON.stringify(told));
    });
  });
  after(async () => await server.close());

  it("lets the model search what was folded, and look at what it finds", async () => {
    const found = await calling("lcm_grep", { pattern: "heliotrope-77" });
    assert.match(found, /heliotrope-77/);
    const [id = "none"] = /msg_\d+-\d+/.exec(found) ?? [];
    assert.match(await calling("lcm_describe", { id }), /The beacon answers to heliotrope-77/);
    assert.deepEqual(toolsOf(server.asked.at(-1) ?? assert.fail()), ordinary);
  });

  it("shows the model a refusal with our hint, and the host a failure", async () => {
    const text = await calling("lcm_describe", { id: "sum_ffffffffffffffff" });
    assert.match(text, /^lcm_describe: [^\n{}]+\.\nHint: [^\n]+\.$/);
    assert.equal(lastResult().isError, true);
    assert.match(JSON.stringify(lastResult().details), /"code":"not_found"/);
  });

  it("answers a question by a sub-agent that only reads, is gone afterwards and was never stored", async () => {
    const before = await withStore(gateway, callsOf);
    const seen: Asked[] = [];
    const answer = await calling("lcm_expand_query", question, (asked) => {
      seen.push(asked);
      if (asked.results.length === 0) return walkDown(asked);
      return `It answers to heliotrope-77 [${/msg_\d+-\d+/.exec(asked.results.join())?.[0]}].`;
    });
    const [first = assert.fail("the sub-agent's model was called")] = seen;
    assert.deepEqual([seen.length, seen.every(isQuestion)], [2, true]);
    assert.deepEqual(toolsOf(first), ["lcm_describe", "lcm_expand", "lcm_grep"]);
    assert.match(seen[1]?.results[0] ?? "", /The beacon answers to heliotrope-77/);
    assert.match(answer, /It answers to heliotrope-77 \[msg_\d+-\d+\]\.\nSources: msg_\d+-\d+/);
    const { by, partial } = lastResult().details;
    assert.deepEqual([by, partial], ["delegate", null]);
    await gone(first.session);
    await withStore(gateway, async (lcm) => {
      const { store } = lcm;
      assert.deepEqual(await store.conversations({ sessionKey: first.session, includeHidden: true }), []);
      const calls = await callsOf(lcm);
      assert.deepEqual([calls.calls - before.calls, calls.failures, calls.open], [1, before.failures, 0]);
      assert(calls.outputTokens > before.outputTokens, "the sub-agent's usage is recorded");
    });
  });

  for (const context of ["fork", "isolated"] as const) {
    it(`${context === "fork" ? "lets" : "does not let"} a child that begins ${context} walk down`, async () => {
      const children: Asked[] = [];
      await calling("tool_call", { id: "sessions_spawn", args: { task: "Look at the beacon.", context } }, (asked) => {
        children.push(asked);
        return context === "fork" && asked.results.length === 0 ? walkDown(asked) : "Looked.";
      });
      const steps = context === "fork" ? 2 : 1;
      await until(async () => await Promise.resolve(children.length >= steps), "the child looks");
      const [first = assert.fail("the child's model was called"), second] = children;
      assert.deepEqual(toolsOf(first), context === "fork" ? [...ordinary, "lcm_expand"].toSorted() : ordinary);
      if (context === "fork") assert.match(second?.results.join() ?? "", /The beacon answers to heliotrope-77/);
    });
  }

  it("answers by excerpts at the deadline, and ends a sub-agent that hangs", async () => {
    await gateway.restart({ plugins: ourPlugin({ freshTailCount: 2, expandTimeoutSeconds: 5 }) });
    const seen: Asked[] = [];
    const answer = await calling("lcm_expand_query", question, (asked) => {
      seen.push(asked);
      return { kind: "hang" };
    });
    assert.match(answer, /heliotrope-77/);
    assert.match(
      answer,
      /Partial: (the deadline passed while waiting for the delegate|OpenClaw did not answer \(timeout\))/,
    );
    // On a slow machine the deadline may pass before the sub-agent calls its model.
    const list = async (): Promise<string> => JSON.stringify(await gateway.rpc("sessions.list"));
    await until(async () => !(await list()).includes("lcm-question-"), "the sub-agent is gone");
    assert(seen.every(isQuestion));
  });

  it("calls the host's model where there is no gateway to run sub-agents", async () => {
    await gateway.stop();
    await gateway.cli("config", "set", "plugins.entries.lossless-claw.config.expandTimeoutSeconds", "120");
    const shown: string[] = [];
    server.script(({ kind, results, prompt }) => {
      if (kind === "completion") return `It answers to heliotrope-77 [${/msg_\d+-\d+/.exec(prompt)?.[0]}].`;
      shown.push(...results);
      return results.length === 0 ? call("lcm_expand_query", question) : "Thanks.";
    });
    const { status, stdout, stderr } = await gateway.cli("agent", "--local", "--session-key", session, "-m", "Well?");
    assert.equal(status, 0, stdout + stderr);
    assert.match(shown.join(), /It answers to heliotrope-77 \[msg_\d+-\d+\]\.\nSources: msg_\d+-\d+/);
  });
});
