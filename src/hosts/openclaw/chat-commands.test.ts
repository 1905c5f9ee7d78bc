/** The chat commands on a real database: short lines, problems first. */

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, it } from "node:test";
import { LcmError } from "../../core/base/errors.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Conversation } from "../../core/model/types.ts";
import type { Store } from "../../core/model/store.ts";
import { builtInTemplates } from "../../core/prompts/summary.ts";
import { resolveSettings, type ResolvedSettings } from "../../core/model/settings.ts";
import { openSqlite } from "../../store/sqlite/store.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { runCommand } from "./chat-commands.ts";
import type { CommandContext, Llm, ReadTranscript } from "./host-api.ts";
import { runtimeOf } from "../shared/runtime.ts";
import type { Runtime } from "../shared/runtime.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { connect } from "../../store/sqlite/connect.ts";

const scratch = makeScratch("commands");
const now = "2026-11-15T17:30:00.000Z" as Timestamp;
const sessionKey = "agent:main:quay";
const session = { sessionId: "s-1", sessionKey, agentId: "main" };
const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined };
const runtimes: Runtime[] = [];
let files = 0;

afterEach(async () => {
  for (const runtime of runtimes.splice(0)) await runtime.close();
});

interface Given {
  readonly config?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly misplaced?: ResolvedSettings["misplaced"];
  readonly openStore?: (path: string) => Promise<Store>;
}

function createRuntime({
  config = {},
  env = {},
  misplaced = [],
  openStore = (path) => openSqlite({ path, now: () => now }),
}: Given = {}): Runtime {
  const path = join(scratch, `${++files}.db`);
  const runtime = runtimeOf({
    path,
    settings: resolveSettings({ env, config, misplaced }),
    clock: { now: () => now },
    logger: quiet,
    openStore: async () => await openStore(path),
    templates: async () => await Promise.resolve(builtInTemplates),
  });
  runtimes.push(runtime);
  return runtime;
}

/** The transcript of a session in which nothing happened since it was stored. */
const unread: ReadTranscript = async () => await Promise.resolve({ kind: "missing" });

/** What a person reads in the chat; no line may be a wide table. */
async function say(runtime: Runtime, args?: string, more: Partial<CommandContext> = {}): Promise<string> {
  const call = { ...session, config: { agents: { defaults: { userTimezone: "Asia/Tokyo" } } }, ...more };
  const { text } = await runCommand(runtime, unread, args === undefined ? call : { ...call, args });
  assert(!/\bundefined\b|\bnull\b|NaN|\[object/.test(text), text);
  return text;
}

/** A segment with this many long messages, two per turn. */
async function talk(lcm: Lcm, messages: number, begin: "open" | "openSegment" = "open"): Promise<Conversation> {
  const { id } = await lcm.store[begin](session);
  const items = Array.from({ length: messages }, (_, at) => {
    const role = at % 2 === 0 ? "user" : "assistant";
    const content = `Line ${at}: ${"the harbour crane was painted green in May. ".repeat(20)}`;
    return { kind: "message", message: { role, content }, key: `${id}-${at}`, at: now } as const;
  });
  await lcm.ingest(id, items, { hostCursor: "here" });
  return (await lcm.store.conversation(id)) ?? assert.fail();
}

const summary = `The harbour crane was painted green in May. ${"It was said often. ".repeat(8)}\nExpand for details about: the paint`;
const answering = (complete: Llm["complete"]): Partial<CommandContext> => ({ runtimeContext: { llm: { complete } } });
const good = answering(async () => await Promise.resolve({ text: summary }));

describe("guarantee 27: one status reports what is stored, pending, saved, spent, degraded and set", () => {
  it("shows a session, its segments, its context and what can be folded", async () => {
    const runtime = createRuntime({ config: { freshTailCount: 4 } });
    const lcm = await runtime.open();
    await talk(lcm, 6);
    const { id, totals } = await talk(lcm, 10, "openSegment");
    await lcm.store.setPromptBudget(id, 20_000);
    const tokens = totals.contextTokens.toLocaleString("en-US");
    const text = await say(runtime);
    assert.equal(
      text.replace(/\d+ KB/, "N KB"),
      [
        "✅ **Lossless Claw**: all is well",
        "",
        `**This session (conversation ${id})**`,
        "- 10 messages stored, and 6 in 1 earlier segment",
        `- Prompt: about ${tokens} of 20,000 tokens, compacted above 15,000`,
        `- Not folded: 10 messages, ${tokens} tokens; the newest 4 are folded only if a prompt would not fit`,
        "- 0 summaries",
        "- No compaction due, none running",
        "",
        "**Database**",
        "- 16 messages in 2 conversations, N KB",
        "- 0 summaries, none below normal",
        `- \`${runtime.path}\``,
        "",
        "**Model calls**: 0 of 120 in the last hour, 0 failed",
        "",
        "**Settings**: `freshTailCount: 4` (plugin config)",
      ].join("\n"),
    );
    assert.equal(await say(runtime, "  STATUS "), text);
  });

  it("shows what the last compaction saved and when, in the configured time zone, and what is below normal", async () => {
    const runtime = createRuntime({ config: { freshTailCount: 2 } });
    const lcm = await runtime.open();
    const { id } = await talk(lcm, 12);
    await lcm.compact({ conversation: id, mode: "sweep", force: true });
    const text = await say(runtime);
    const [last] = await lcm.store.compactions(id, 1);
    assert(last && last.tokensAfter < last.tokensBefore);
    assert(text.includes(`- Last compaction: ${last.message} (2026-11-16 02:30 Asia/Tokyo)`), text);
    assert.match(text, /- 12 messages stored\n[^]*- Not folded: 2 messages, /);
    assert.match(text, /- 1 summary \(in context: 1 of depth 0\)/);
    assert.match(text, /- 1 summary, below normal: 1 extractive/);
    assert.match(
      await say(runtime, "", { config: { agents: { defaults: { userTimezone: "Nowhere" } } } }),
      /2026-11-1\d/,
    );
  });

  it("shows that compaction is due, and that it is running", async () => {
    const runtime = createRuntime({
      config: { contextTarget: 0, freshTailCount: 2, leafChunkTokens: 1_000, leafTargetTokens: 100 },
    });
    const lcm = await runtime.open();
    const { id } = await talk(lcm, 12);
    assert.match(await say(runtime), /- One pass due for [\d,]+ tokens, none running/);
    await lcm.store.setPromptBudget(id, 1_000);
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    const model = {
      provider: "slow",
      name: "one",
      async complete() {
        asked.resolve();
        await answer.promise;
        return { kind: "refused" as const, refusal: "overloaded" as const, message: "come\nback later" };
      },
    };
    runtime.compactSoon(id, model);
    await asked.promise;
    assert.match(await say(runtime), /- Compaction due, compaction running/);
    answer.resolve();
    await runtime.settled();
    const text = await say(runtime);
    assert.match(text, /^⚠️ \*\*Lossless Claw\*\*: 1 thing to look at\n- The last compaction did not finish/);
    assert.match(text, /- Last compaction: nothing was folded; waiting for the model \(overloaded\): come back later/);
    assert.match(text, /in the last hour, [1-9]\d* failed/);
  });

  it("shows a rejected credential and used-up model calls", async () => {
    const runtime = createRuntime({ config: { spendCeilingCalls: 1, spendWindowMinutes: 30 } });
    const lcm = await runtime.open();
    const refusing = {
      provider: "anthropic",
      name: "one",
      complete: async () =>
        await Promise.resolve({ kind: "refused" as const, refusal: "auth" as const, message: "no" }),
    };
    await lcm.metered(refusing).complete({
      conversation: null,
      purpose: "leaf",
      system: "",
      prompt: "",
      maxOutputTokens: 1,
      temperature: 0,
    });
    const text = await say(runtime);
    assert.match(text, /2 things to look at/);
    assert.match(
      text,
      /anthropic rejected the credential \(2026-11-16 02:30 Asia\/Tokyo\); it is retried after .* 02:40/,
    );
    assert.match(text, /- All model calls of this window are used/);
    assert.match(text, /\*\*Model calls\*\*: 1 of 1 in the last 30 minutes, 1 failed/);
  });

  it("shows how many messages came outside a finished turn", async () => {
    const runtime = createRuntime();
    const lcm = await runtime.open();
    const { id } = await talk(lcm, 2);
    const message = { role: "user", content: "and this" };
    await lcm.ingest(id, [{ kind: "message", message, key: "late", at: now }], { isCatchingUp: true });
    const text = await say(runtime);
    assert.match(text, /- 1 message from outside a finished turn/);
    assert.match(text, /all is well/);
  });

  it("shows the last problem with its time, and how many came before", async () => {
    const runtime = createRuntime();
    for (const trouble of ["a", "b", "the disk is full"]) runtime.note("storing a turn", new Error(trouble));
    assert.match(
      await say(runtime),
      /- While storing a turn: the disk is full \(2026-11-16 02:30 Asia\/Tokyo\)\. 2 earlier problems in OpenClaw's log/,
    );
  });

  it("reports settings at a place that nothing reads", async () => {
    const misplaced = [{ place: "plugins.config.lossless-claw", keys: ["freshTailCount", "timezone"] }];
    assert.match(
      await say(createRuntime({ misplaced })),
      /- In `openclaw\.json`, freshTailCount and timezone at plugins\.config\.lossless-claw are not read; move them to plugins\.entries\./,
    );
  });

  it("shows changed settings with their source, and unknown ones", async () => {
    const config = { freshTailCount: 8, ignoreSessionPatterns: ["agent:*:cron:*"], "old`Key": true };
    const runtime = createRuntime({ config, env: { LCM_CONTEXT_THRESHOLD: "0.5" } });
    const text = await say(runtime);
    assert.match(text, /- The plugin's config has unknown settings, which are ignored: `old'Key`/);
    assert.match(text, /- `contextThreshold: 0.5` \(`LCM_CONTEXT_THRESHOLD`\)/);
    assert.match(text, /- `ignoreSessionPatterns: \["agent:\*:cron:\*"\]` \(plugin config\)/);
    assert.match(await say(createRuntime()), /\*\*Settings\*\*: all defaults$/);
  });

  it("shows that the host has disabled the engine, or uses another", async () => {
    const runtime = createRuntime();
    const name = Symbol.for("openclaw.contextEngineRegistryState");
    const failed = {
      engineId: "lossless-claw",
      operation: "compact",
      reason: "out of\nmemory",
      failedAt: new Date(now),
    };
    for (const odd of [7, {}, { quarantinedEngines: [] }, { quarantinedEngines: new Map([["other", failed]]) }]) {
      Reflect.set(globalThis, name, odd);
      assert.match(await say(runtime), /all is well/);
    }
    Reflect.set(globalThis, name, { quarantinedEngines: new Map([["lossless-claw", failed]]) });
    const aside = await say(runtime);
    Reflect.deleteProperty(globalThis, name);
    assert.match(aside, /disabled this engine: `compact` failed with "out of memory" \(2026-1/);
    const other = { config: { plugins: { slots: { contextEngine: "legacy" } } } };
    assert.match(await say(runtime, "status", other), /context engine is `legacy`, so nothing new is stored/);
  });

  it("explains that nothing is stored yet, also in a new session under the same key", async () => {
    const runtime = createRuntime();
    assert.match(await say(runtime), /\*\*This session\*\*: Nothing is stored yet/);
    await talk(await runtime.open(), 4);
    assert.match(await say(runtime, "", { sessionId: "s-2" }), /\*\*This session\*\*: Nothing is stored yet/);
  });

  it("explains why a session is not stored, without creating a database", async () => {
    const config = { ignoreSessionPatterns: ["*:cron:*"], statelessSessionPatterns: ["*:subagent:*"] };
    const runtime = createRuntime({ config });
    const left = await say(runtime, "", { sessionKey: "agent:main:cron:1" });
    assert.match(left, /\*\*This session\*\*: It is ignored \(`ignoreSessionPatterns`\)/);
    const { sessionKey: _, ...keyless } = session;
    assert.match((await runCommand(runtime, unread, keyless)).text, /This chat has no session/);
    assert.equal(runtime.isOpen(), false);
    assert.match(await say(runtime, "", { sessionKey: "agent:main:subagent:1" }), /It is read-only/);
    assert.equal(runtime.isOpen(), true);
    assert.match(await say(runtime, "", { sessionKey: "agent:main:cron:1" }), /\*\*Database\*\*/);
    const off = createRuntime({ env: { LCM_ENABLED: "no" } });
    assert.match(await say(off), /The plugin is disabled \(`enabled: false`, environment\)/);
    assert.equal(off.isOpen(), false);
  });

  it("explains why the database cannot be opened and what to do, and shows what it knows without it", async () => {
    const error = new LcmError("unavailable", "the disk is away", { hint: "mount it" });
    const runtime = createRuntime({
      config: { freshTailCount: 8 },
      openStore: async () => await Promise.reject(error),
    });
    const text = await say(runtime);
    assert.match(text, /^⚠️ .*\n- The database `.*\.db` cannot be read: the disk is away \(mount it\)\n/);
    assert.match(text, /`freshTailCount: 8`/);
    for (const word of ["doctor", "compact"]) assert.equal(await say(runtime, word), "⚠️ The disk is away (mount it).");
    assert.match(await say(runtime), /2 things to look at/);
  });

  it("reports a file that is not a database", async () => {
    const runtime = createRuntime();
    mkdirSync(runtime.path);
    assert.match(await say(runtime), /cannot be read: /);
  });
});

describe("the subcommands of /lcm", () => {
  it("are listed by help and after an unknown one", async () => {
    const runtime = createRuntime();
    const help = await say(runtime, "help");
    const wrong = await say(runtime, "statsu now");
    assert.match(wrong, /^Unknown command `\/lcm statsu`/);
    for (const word of ["status", "doctor", "compact", "help"])
      for (const text of [help, wrong]) assert(text.includes(`\`/lcm ${word}\`: `), text);
    assert.match(help, /`\/lossless`[^]*`openclaw lcm`/);
    assert.equal(runtime.isOpen(), false);
  });
});

describe("/lcm doctor", () => {
  it("reports that all is well in all segments", async () => {
    const runtime = createRuntime();
    assert.match(await say(runtime, "doctor"), /Nothing is stored yet/);
    const lcm = await runtime.open();
    await talk(lcm, 6);
    await talk(lcm, 10, "openSegment");
    assert.equal(await say(runtime, "doctor"), "✅ **All is well**: 16 messages and 0 summaries checked.");
  });

  it("reports findings as the command line does, and where to find details", async () => {
    const runtime = createRuntime({ config: { freshTailCount: 2 } });
    const lcm = await runtime.open();
    const { id } = await talk(lcm, 12);
    await lcm.compact({ conversation: id, mode: "sweep", force: true });
    assert.equal(
      await say(runtime, "doctor"),
      "✅ **All is well**: 12 messages and 1 summary checked.\n- ℹ️ 1 summary was extracted without a model.",
    );
    const db = connect(runtime.path, false);
    db.exec("DELETE FROM context_items WHERE item_type = 'message'");
    db.close();
    const text = await say(runtime, "doctor");
    assert.match(text, /^❌ \*\*Problems found\*\*, \d+ errors: 12 messages and 1 summary checked\.\n/);
    assert.match(text, /- ❌ The context does not reach msg_\d+-\d+ \(and 1 more like it\)\./);
    assert.match(text, /`openclaw lcm doctor` lists each one and how to fix it\.$/);
  });
});

describe("/lcm compact", () => {
  it("folds with the session's model and the given instructions, and reports what was saved", async () => {
    const runtime = createRuntime({ config: { freshTailCount: 2 } });
    const lcm = await runtime.open();
    const { id } = await talk(lcm, 12);
    const prompts: string[] = [];
    const model = answering(async ({ messages }) => {
      prompts.push(...messages.map(({ content }) => content));
      return await Promise.resolve({ text: summary, usage: { inputTokens: 9, outputTokens: 4 } });
    });
    const text = await say(runtime, "compact  keep every\ncolour ", model);
    const [last] = await lcm.store.compactions(id, 1);
    assert.equal(text, `✅ ${last?.message}.`);
    assert.match(text, /^✅ [\d,]+ → [\d,]+ tokens in 1 pass; nothing is left to fold\.$/);
    assert(prompts.length > 0 && prompts.every((prompt) => prompt.includes("keep every\ncolour")));
    assert.equal((await lcm.spend()).usage.calls, prompts.length);
    assert.equal(
      await say(runtime, "compact", model),
      "Nothing was folded; nothing is left to fold.\nThe newest 2 messages are folded only if a prompt would not fit.",
    );
  });

  it("extracts without a model, and says so", async () => {
    const runtime = createRuntime({ config: { freshTailCount: 2 } });
    await talk(await runtime.open(), 12);
    const text = await say(runtime, "compact");
    assert.match(text, /^✅ .*\n1 summary was extracted without a model\.\nOpenClaw offers no model here/);
  });

  it("reports why the model refuses, and folds nothing", async () => {
    const runtime = createRuntime({ config: { freshTailCount: 2 } });
    await talk(await runtime.open(), 12);
    const failing = answering(async () => await Promise.reject(Object.assign(new Error("slow down"), { status: 429 })));
    assert.equal(
      await say(runtime, "compact", failing),
      "Nothing was folded; waiting for the model (rate_limit): slow down.\n" +
        "What was folded is kept. It continues after your next message, or with `/lcm compact`.",
    );
  });

  it("ends at the host's deadline, and says how to continue", async () => {
    const runtime = createRuntime({ config: { freshTailCount: 2 } });
    await talk(await runtime.open(), 12);
    const hanging = answering(async () => await new Promise(() => undefined));
    const config = { agents: { defaults: { compaction: { timeoutSeconds: 0.05 } } } };
    assert.match(await say(runtime, "compact", { ...hanging, config }), /\/lcm compact`/);
  });

  it("does nothing to an ignored session", async () => {
    const runtime = createRuntime({ config: { ignoreSessionPatterns: ["*"] } });
    assert.match(
      await say(runtime, "compact", good),
      /It is ignored[^]*`\/compact` uses OpenClaw's own compaction here/,
    );
    assert.match(await say(runtime, "doctor"), /It is ignored/);
    assert.equal(runtime.isOpen(), false);
    assert.match(await say(createRuntime(), "compact", good), /Nothing is stored yet/);
  });
});
