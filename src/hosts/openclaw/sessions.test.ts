import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { resolveSettings } from "../../core/model/settings.ts";
import type { Settings } from "../../core/model/settings.ts";
import { agentOf, delegateKey, isDelegateKey, placeOf, serviceOf } from "./sessions.ts";

const withConfig = (config: Readonly<Record<string, unknown>>): Settings => resolveSettings({ env: {}, config }).values;

describe("which sessions are served", () => {
  const settings = withConfig({
    ignoreSessionPatterns: ["agent:*:cron:*", "agent:main:a.b+c"],
    statelessSessionPatterns: ["agent:*:hook:*", "agent:*:cron:*"],
  });
  const cases: readonly [string | undefined, ReturnType<typeof serviceOf>][] = [
    ["agent:main:main", "served"],
    ["agent:main:subagent:research", "served"],
    ["agent:main:cron:nightly", "left"],
    ["agent:other:cron:", "left"],
    ["agent:main:cron", "served"],
    ["not agent:main:cron:nightly", "served"],
    ["agent:main:a.b+c", "left"],
    ["agent:main:axbbc", "served"],
    ["agent:main:cron:two\nlines", "left"],
    ["agent:main:hook:7", "reader"],
    [undefined, "left"],
    [delegateKey("main", "7"), "left"],
  ];
  for (const [key, service] of cases) {
    it(`${JSON.stringify(key)} is ${service}`, () => assert.equal(serviceOf(settings, key), service));
  }

  it("is none when the plugin is not enabled", () =>
    assert.equal(serviceOf(withConfig({ enabled: false }), "agent:main:main"), "left"));
});

describe("a session's place", () => {
  it("is what the host names, or else what the key contains", () => {
    const sessionTarget = { agentId: "work", sessionId: "s2", sessionKey: "agent:work:main" };
    assert.deepEqual(placeOf({ sessionId: "s1", sessionKey: "agent:main:main", sessionTarget }), sessionTarget);
    assert.deepEqual(placeOf({ sessionId: "s1", sessionKey: "agent:work:main" }), {
      agentId: "work",
      sessionKey: "agent:work:main",
      sessionId: "s1",
    });
    assert.equal(agentOf("no such form"), "main");
  });

  it("distinguishes children that answer questions from other children", () => {
    assert.ok(isDelegateKey(delegateKey("main", "a")));
    assert.ok(!isDelegateKey("agent:main:subagent:research"));
    assert.equal(agentOf(delegateKey("work", "a")), "work");
  });
});
