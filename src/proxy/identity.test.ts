import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { JsonObject } from "../core/base/json.ts";
import { endpointOf, identify } from "./identity.ts";

const tools = [{ name: "read" }];
const who = (headers: Record<string, string>, rest: JsonObject = { tools }, last: JsonObject | null = null): string => {
  const { host, sessionId, parentSessionId, kind } = identify(headers, rest, last);
  return [host, sessionId, parentSessionId, kind].join(" ");
};
const why = (headers: Record<string, string>, rest: JsonObject = {}): string | null =>
  identify(headers, rest, null).storeOnly;

describe("who sends a request", () => {
  it("is said by Claude Code in a header or in its metadata", () => {
    assert.equal(who({ "x-claude-code-session-id": "s1" }), "claude-code s1  turn");
    assert.equal(who({ "x-claude-code-session-id": "s1", "x-claude-code-agent-id": "a1" }), "claude-code a1 s1 turn");
    assert.equal(who({}, { tools, metadata: { user_id: '{"session_id":"s2"}' } }), "claude-code s2  turn");
    assert.equal(who({ "x-claude-code-session-id": "s1" }, {}), "claude-code s1  side");
    const asks = { role: "user", content: [{ type: "text", text: "CRITICAL: Respond with TEXT ONLY. …" }] };
    assert.equal(who({ "x-claude-code-session-id": "s1" }, { tools }, asks), "claude-code s1  compaction");
  });

  it("is said by Codex", () => {
    const turn = (kind: string): string => JSON.stringify({ thread_id: "t1", request_kind: kind });
    assert.equal(who({ "thread-id": "t1", "x-codex-turn-metadata": turn("turn") }), "codex t1  turn");
    assert.equal(
      who({ "x-codex-turn-metadata": turn("compaction"), "x-codex-parent-thread-id": "t0" }),
      "codex t1 t0 compaction",
    );
    assert.equal(who({ "thread-id": "t1" }, {}, { type: "compaction_trigger" }), "codex t1  compaction");
  });

  it("is said by OpenCode, and guessed for others", () => {
    assert.equal(who({ "x-session-id": "ses_1", "x-parent-session-id": "ses_0" }), "opencode ses_1 ses_0 turn");
    assert.equal(who({ "x-session-id": "ses_1" }, {}), "opencode ses_1  side");
    assert.equal(who({ "user-agent": "pi/1.5.0 (linux)" }), "pi   turn");
    assert.equal(who({ "user-agent": "pi/1.5.0" }, { tools, prompt_cache_key: "k1" }), "pi k1  turn");
    assert.equal(who({}), "agent   turn");
  });
});

describe("a request that must not be changed", () => {
  it("carries a mark over its body, belongs to a subscription, or has only a part of the conversation", () => {
    assert.match(why({}, { system: [{ type: "text", text: "x: cch=ab12;" }] }) ?? "", /mark/);
    assert.match(why({ authorization: "Bearer sk-ant-oat01-x" }) ?? "", /subscription/);
    assert.match(why({ "anthropic-beta": "oauth-2025-04-20,other" }) ?? "", /subscription/);
    assert.match(why({ authorization: "Bearer eyJhbGciOi" }) ?? "", /subscription/);
    assert.match(why({ "chatgpt-account-id": "x" }) ?? "", /subscription/);
    assert.match(why({}, { previous_response_id: "resp_1" }) ?? "", /previous_response_id/);
    assert.equal(
      why({ authorization: "Bearer sk-proj-1", "x-api-key": "sk-ant-api03" }, { previous_response_id: null }),
      null,
    );
  });
});

describe("the format of a request", () => {
  it("is known by its path", () => {
    assert.equal(endpointOf("POST", "/v1/messages?beta=true")?.wire.name, "anthropic");
    assert.equal(endpointOf("POST", "/chat/completions")?.wire.name, "chat");
    assert.equal(endpointOf("POST", "/v1/responses")?.wire.name, "responses");
    assert.deepEqual(
      ["/v1/messages", "/v1/messages/count_tokens?beta=true", "/v1/responses", "/v1/responses/input_tokens"].map(
        (path) => endpointOf("POST", path)?.isCount,
      ),
      [false, true, false, true],
    );
    for (const path of ["/v1/messages/batches", "/v1/responses/compact", "/v1/models"])
      assert.equal(endpointOf("POST", path), null);
    assert.equal(endpointOf("GET", "/v1/messages"), null);
  });
});
