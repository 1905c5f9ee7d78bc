/**
 * Runs compact, context, dag and prompts by the real bin over real files. The summariser is extractive, or a model that
 * follows a script on the loopback interface.
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { ConversationId } from "../../src/core/model/types.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { startScriptedProvider } from "../support/scripted-provider.ts";
import type { ScriptedProvider } from "../support/scripted-provider.ts";
import { createFolder, lcm, lcmBeside, linesOf, ok } from "./program.ts";
import type { Place, Run } from "./program.ts";
import { withoutSignals } from "../support/platform.ts";

/** Small passes, so that a short conversation makes several, and a deeper summary of them. */
const small = {
  LCM_FRESH_TAIL_COUNT: "4",
  LCM_LEAF_CHUNK_TOKENS: "1000",
  LCM_LEAF_TARGET_TOKENS: "200",
  LCM_CONDENSED_TARGET_TOKENS: "300",
  LCM_LEAF_MIN_FANOUT: "4",
};

const messageCount = 60;

function conversationText(): string {
  const at = (minute: number): string => new Date(Date.UTC(2026, 1, 17, 7, minute)).toISOString();
  const subjects = ["ferry", "harbour", "lighthouse", "timetable", "ticket", "pier", "storm", "captain"];
  const entries = Array.from({ length: messageCount }, (_, n) => {
    const subject = subjects[n % subjects.length];
    const text =
      `On day ${n} the ${subject} was decided: number ${n * 37} of the ${subject} goes to pier ${n % 9}. `.repeat(4);
    return { id: `entry-${n}`, timestamp: at(n), role: n % 2 === 0 ? "user" : "assistant", content: text };
  });
  return entries.map((entry) => `${JSON.stringify(entry)}\n`).join("");
}

function createPlace(env: Readonly<Record<string, string>> = {}): Place {
  const state = createFolder();
  writeFileSync(join(state, "chat.jsonl"), conversationText());
  const place = { state, env: { ...small, ...env } };
  ok(place, "import", join(state, "chat.jsonl"));
  return place;
}

const databaseOf = ({ state }: Place): string => join(state, "lcm.db");
const hashOf = (path: string): string => createHash("sha256").update(readFileSync(path)).digest("hex");
const storedText = (place: Place): string => ok(place, "export", "1").stdout;

interface PassJson {
  readonly depth: number;
  readonly level: string;
  readonly sources: number;
}

const passesOf = (run: Run): readonly PassJson[] => run.json.result.passes;

describe("lcm compact", () => {
  it("shows what it would fold, how many calls it takes and what it saves, and changes nothing", () => {
    const place = createPlace();
    const before = hashOf(databaseOf(place));
    const { stdout, stderr } = ok(place, "compact", "1");
    assert.match(stdout, /^conversation 1 · /);
    assert.match(stdout, /^due +nothing: a prompt of about [\d,]+ tokens, within 96,000 \(75% of 128,000\)$/m);
    assert.match(stdout, /^model +none: summaries are extracted locally, without a model$/m);
    assert.match(
      stdout,
      /^plan +depth +summaries +from +tokens in +target\n +d0 +\d+ +\d+ messages +[\d,]+ +→ [\d,]+\n +d1 /m,
    );
    assert.match(stdout, /^prompt +█+ +[\d,]+\n +█+ +[\d,]+ +−\d+%$/m);
    assert.equal(stderr, "nothing was changed; pass --apply to do it\n");
    const { dryRun, applied, plan } = ok(place, "compact", "1", "--dry-run", "--json").json;
    assert.deepEqual([dryRun, applied, plan.model, plan.cost], [true, false, null, null]);
    assert.ok(plan.passes.length > 4 && plan.tokensAfter < plan.tokensBefore / 3);
    assert.equal(hashOf(databaseOf(place)), before);
  });

  it("folds with --apply, keeps every message, and is sound afterwards", () => {
    const place = createPlace();
    const text = storedText(place);
    const run = ok(place, "compact", "1", "--apply", "--json");
    const { dryRun, applied, plan, result } = run.json;
    assert.deepEqual([dryRun, applied, result.compacted, result.outcome], [false, true, true, { kind: "settled" }]);
    assert.equal(result.passes.length, plan.passes.length);
    assert.deepEqual(new Set(passesOf(run).map(({ level }) => level)), new Set(["extractive"]));
    assert.equal(Math.max(...passesOf(run).map(({ depth }) => depth)), 1);
    assert.equal(storedText(place), text);
    assert.equal(ok(place, "doctor", "--json").json.sound, true);

    const again = ok(place, "compact", "1", "--apply");
    assert.match(again.stdout, /^plan +nothing to fold; pass --force to fold short runs too$/m);
    assert.match(again.stdout, /nothing was folded; nothing is left to fold\n$/);
    const status = ok(place, "status", "--json").json;
    assert.deepEqual([status.lastCompaction.outcome, status.lastCompaction.passes], ["settled", result.passes.length]);
    assert.equal(status.lastCompaction.tokensAfter, result.tokensAfter);
    assert.equal(status.unindexed, 0);
    assert.match(
      ok(place, "status").stdout,
      /^compaction +.+\n +[\d,]+ → [\d,]+ tokens in \d+ passes; nothing is left/m,
    );
  });

  it("reports which summaries are below normal, and how far it got", () => {
    const { stdout } = ok(createPlace(), "compact", "1", "--apply");
    assert.match(stdout, /^folded +\d+ × d0 and \d+ × d1 in \d+\.\d s$/m);
    assert.match(stdout, /^levels +\d+ extractive \(without a model\)$/m);
    assert.match(stdout, /[\d,]+ → [\d,]+ tokens in \d+ passes; nothing is left to fold\n$/);
  });

  it("stops at the given number of passes, or of tokens", () => {
    const place = createPlace();
    assert.equal(ok(place, "compact", "1", "--passes", "2", "--json").json.plan.passes.length, 2);
    const two = ok(place, "compact", "1", "--passes", "2", "--concurrency", "1", "--apply", "--json").json.result;
    assert.deepEqual([two.passes.length, two.outcome], [2, { kind: "bounded", bound: "passes" }]);
    const target = two.tokensAfter - 500;
    const plan = ok(place, "compact", "1", "--until", String(target), "--json").json.plan;
    assert.ok(plan.tokensAfter <= target && plan.passes.length < 4, JSON.stringify(plan));
    const under = ok(place, "compact", "1", "--until", String(target), "--apply", "--json").json.result;
    assert.deepEqual(under.outcome, { kind: "under", targetTokens: target });
    assert.ok(under.tokensAfter <= target);
  });

  it("reports a missed target, exits with 6, and shows what is achievable", () => {
    const place = createPlace();
    ok(place, "compact", "1", "--apply", "--no-backup");
    const run = lcm(place, "compact", "1", "--until", "50", "--apply");
    assert.equal(run.status, 6, run.stdout);
    assert.equal(
      ok(place, "status", "--json").json.backups.length,
      1,
      "an unplanned fold is also preceded by a backup",
    );
    assert.match(run.stderr, /^error: .+ target was missed.*\nhint: [\d,]+ tokens is the minimum/m);
    const again = lcm(place, "compact", "1", "--until", "50", "--apply", "--json");
    assert.deepEqual([again.status, again.json.result.tokensAfter > 50], [6, true]);
  });

  it("does not suggest what was done already", () => {
    const place = createPlace();
    ok(place, "compact", "1", "--apply");
    ok(place, "compact", "1", "--force", "--apply");
    const { stdout } = ok(place, "compact", "1", "--force");
    assert.match(stdout, /^plan +nothing to fold$/m);
    assert.match(
      ok(place, "compact", "1", "--until", "100000").stdout,
      /^plan +nothing to do: already at or below 100,000$/m,
    );
  });

  it("does nothing in mode due while nothing is due, and sweeps once the budget requires it", () => {
    const place = createPlace({ LCM_LEAF_CHUNK_TOKENS: "100000" });
    const idle = ok(place, "compact", "1", "--mode", "due", "--apply");
    assert.match(idle.stdout, /^plan +nothing to do\nnothing is due\n$/m);
    const due = ok(place, "compact", "1", "--mode", "due", "--budget", "2000", "--json").json.plan;
    assert.deepEqual([due.due.kind, due.due.thresholdTokens], ["sweep", 1500]);
    assert.ok(due.passes.length > 0);
  });

  it("exits with 2 for contradictory options or an invalid number, and with 3 for an unknown conversation", () => {
    const place = createPlace();
    const wrong: readonly (readonly string[])[] = [
      ["1", "--dry-run", "--apply"],
      ["1", "--until", "100", "--mode", "sweep"],
      ["1", "--mode", "all"],
      ["1", "--until", "0"],
      ["1", "--passes", "many"],
      ["1", "--timeout", "0"],
      ["1", "--concurrency", "65"],
      ["1", "--model", "nameless"],
      ["1", "--model", "nowhere/model", "--apply"],
      ["1", "--instructions", "Keep the piers."],
    ];
    for (const args of wrong) {
      const run = lcm(place, "compact", ...args);
      assert.equal(run.status, 2, `${args.join(" ")}\n${run.stderr}`);
      assert.match(run.stderr, /^error: .+\nhint: .+/s, args.join(" "));
    }
    assert.equal(lcm(place, "compact", "7").status, 3);
    const empty = { state: createFolder() };
    assert.equal(lcm(empty, "compact", "1", "--apply").status, 3);
  });
});

describe("lcm compact with a model", () => {
  let provider: ScriptedProvider;
  before(async () => (provider = await startScriptedProvider()));
  after(async () => await provider.close());

  const answer = {
    kind: "answer",
    text: "The piers were given out one by one, and the captain agreed to every one of them.\nExpand for details about: numbers",
  } as const;
  const withModel = (): Place =>
    createPlace({ LCM_SUMMARY_MODEL: "harbour/scripted-1", LCM_SUMMARY_BASE_URL: `${provider.url}/v1` });

  it("names the model and the cost first, and writes the model's answers", async () => {
    const place = withModel();
    const { stdout } = ok(place, "compact", "1");
    assert.match(
      stdout,
      /^model +harbour\/scripted-1 \(LCM_SUMMARY_MODEL\)\n +\d+ calls, about [\d,]+ tokens in, [\d,]+ out$/m,
    );
    const askedBefore = provider.asked.length;
    provider.play(answer);
    const args = ["compact", "1", "--apply", "--json", "--instructions", "Keep every pier."];
    const run = await lcmBeside(place, args);
    assert.equal(run.status, 0, run.stderr);
    const { plan, result } = run.json;
    assert.deepEqual(plan.model, { name: "harbour/scripted-1", from: "LCM_SUMMARY_MODEL", problem: null });
    assert.deepEqual(new Set(passesOf(run).map(({ level }) => level)), new Set(["normal"]));
    const asked = provider.asked.slice(askedBefore);
    assert.equal(asked.length, result.passes.length);
    assert.ok(asked.every(({ body }) => JSON.stringify(body).includes("Keep every pier.")));
    assert.match(ok(place, "context", "1", "--full").stdout, /the captain agreed to every one of them/);
    const status = ok(place, "status", "--json").json;
    assert.deepEqual(status.model, { name: "harbour/scripted-1", from: "LCM_SUMMARY_MODEL", problem: null });
    assert.deepEqual([status.spend.usage.calls, status.spend.usage.failures], [asked.length, 0]);
    assert.equal(ok(place, "doctor", "--json").json.sound, true);
  });

  it("guarantee 21: exits with 6 and a hint when the credential is refused, and status reports it", async () => {
    const place = withModel();
    const text = storedText(place);
    provider.play({ kind: "error", status: 401 });
    const run = await lcmBeside(place, ["compact", "1", "--apply"]);
    assert.equal(run.status, 6, run.stdout + run.stderr);
    assert.match(run.stderr, /^error: nothing was folded; waiting for the model \(auth\): harbour\/scripted-1 .+401/m);
    assert.match(run.stderr, /^hint: log in with openclaw, set HARBOUR_API_KEY, or .+--no-model/m);
    assert.match(ok(place, "status").stdout, /harbour rejected the credential at 20\d\d-/);
    const { spend, lastCompaction } = ok(place, "status", "--json").json;
    assert.deepEqual([spend.breakers[0].provider, lastCompaction.outcome], ["harbour", "waiting"]);
    provider.play(answer);
    const mended = await lcmBeside(place, ["compact", "1", "--apply", "--json"]);
    assert.equal(mended.status, 0, "a person at a terminal need not wait for the breaker");
    assert.equal(storedText(place), text);
    assert.deepEqual(ok(place, "status", "--json").json.spend.breakers, []);
  });

  it("reports a missing key first, calls no provider, and does not continue without the model", () => {
    const place = createPlace({ LCM_SUMMARY_MODEL: "google/gemini-none" });
    const problem = /there is no credential for google: set GEMINI_API_KEY/;
    assert.match(ok(place, "status").stdout, problem);
    assert.match(ok(place, "status", "--json").json.model.problem, problem);
    assert.match(ok(place, "compact", "1").stdout, problem);
    const before = hashOf(databaseOf(place));
    const run = lcm(place, "compact", "1", "--apply");
    assert.equal(run.status, 6);
    assert.match(
      run.stderr,
      /error: there is no credential for google.*\nhint: log in .+ set GEMINI_API_KEY or .+--no-model/,
    );
    assert.equal(hashOf(databaseOf(place)), before);
    const status = ok(place, "status", "--json").json;
    assert.deepEqual([status.backups, status.usageLast24h.calls], [[], 0]);
    for (const time of ["first", "second"])
      assert.match(ok(place, "ask", "which number goes to the lighthouse?").stderr, problem, time);
    const { spend, usageLast24h } = ok(place, "status", "--json").json;
    assert.deepEqual([spend.breakers, usageLast24h.calls], [[], 0]);
    assert.equal(ok(place, "compact", "1", "--no-model", "--apply", "--json").json.applied, true);
  });

  it("reports an unknown provider first, and lists the known ones", () => {
    const place = createPlace({ LCM_SUMMARY_MODEL: "foo/bar" });
    const problem = /unknown provider "foo", and no base URL is set/;
    assert.match(ok(place, "status").stdout, problem);
    assert.match(ok(place, "compact", "1").stdout, problem);
    const run = lcm(place, "compact", "1", "--apply");
    assert.equal(run.status, 2);
    assert.match(
      run.stderr,
      /^error: unknown provider "foo".*\nhint: known providers: anthropic, .+LCM_SUMMARY_BASE_URL/,
    );
    assert.deepEqual(ok(place, "status", "--json").json.backups, []);
  });

  it("guarantee 21: names the model that its provider does not have", async () => {
    const place = withModel();
    provider.play({ kind: "error", status: 404 });
    const run = await lcmBeside(place, ["compact", "1", "--apply"]);
    assert.equal(run.status, 6);
    assert.match(
      run.stderr,
      /harbour has no model "scripted-1": HTTP 404.*\nhint: choose another model with --model or LCM_SUMMARY_MODEL/,
    );
  });

  it("guarantee 20: stops at the ceiling of calls, keeps what is folded, and explains how to continue", async () => {
    const place = withModel();
    provider.play(answer);
    const limited = { ...place, env: { ...place.env, LCM_SPEND_CEILING_CALLS: "2" } };
    assert.match(ok(limited, "compact", "1").stdout, /only 2 calls left of 2 per 60 minutes/);
    const run = await lcmBeside(limited, ["compact", "1", "--apply", "--concurrency", "1"]);
    assert.equal(run.status, 6);
    assert.match(run.stdout, /^folded +2 × d0/m);
    assert.match(run.stderr, /waiting for the model \(ceiling\).*\nhint: wait .+ or raise LCM_SPEND_CEILING_CALLS/);
    assert.match(ok(limited, "status").stdout, /^model calls +2 of 2 in the last hour: passes wait/m);
  });

  it(
    "stops cleanly at Ctrl-C: what is folded stays, and the exit status is 130",
    { skip: withoutSignals },
    async () => {
      const place = withModel();
      const text = storedText(place);
      provider.play(answer, { kind: "hang" });
      const askedBefore = provider.asked.length;
      const run = await lcmBeside(place, ["compact", "1", "--apply", "--concurrency", "1"], async (program) => {
        while (provider.asked.length < askedBefore + 2) await sleep(20);
        program.kill("SIGINT");
      });
      assert.equal(run.status, 130, run.stderr);
      assert.match(
        run.stderr,
        /^interrupted: [\d,]+ → [\d,]+ tokens in 1 pass; .+\nsummaries made so far are kept; run it again/m,
      );
      assert.equal(ok(place, "status", "--json").json.summaries, 1);
      assert.equal(storedText(place), text);
      assert.equal(ok(place, "doctor", "--json").json.sound, true);
    },
  );

  it("guarantee 9: stops at its deadline, and reports it", async () => {
    const place = withModel();
    provider.play(answer, { kind: "hang" });
    const run = await lcmBeside(place, ["compact", "1", "--apply", "--concurrency", "1", "--timeout", "10"]);
    assert.equal(run.status, 0, run.stderr);
    assert.match(run.stdout, /in 1 pass; stopped at the deadline\n$/);
  });

  it("exits with 6 at a deadline before which nothing was folded", async () => {
    const place = withModel();
    provider.play({ kind: "hang" });
    // As a fraction of milliseconds, too.
    const run = await lcmBeside(place, ["compact", "1", "--apply", "--timeout", "1.5005"]);
    assert.equal(run.status, 6, run.stdout);
    assert.match(
      run.stderr,
      /^error: nothing was folded; stopped at the deadline\nhint: raise --timeout, or pass --no-/m,
    );
  });

  it("takes the model of OpenClaw's config, unless another is given", async () => {
    const place = createPlace();
    const config = {
      agents: { defaults: { model: { primary: "quay/scripted-2" } } },
      models: { providers: { quay: { baseUrl: `${provider.url}/v1`, api: "openai-completions", apiKey: "k" } } },
    };
    writeFileSync(join(place.state, "openclaw.json"), `// by hand\n${JSON.stringify(config)}`);
    assert.match(ok(place, "status").stdout, /^model +quay\/scripted-2 \(OpenClaw's config\)$/m);
    assert.match(ok(place, "compact", "1", "--model", "ollama/other").stdout, /^model +ollama\/other \(--model\)$/m);
    provider.play(answer);
    const run = await lcmBeside(place, ["compact", "1", "--apply", "--json", "--passes", "1"]);
    assert.equal(run.status, 0, run.stderr);
    assert.equal(provider.asked.at(-1)?.headers.authorization, "Bearer k");
  });

  it("ignores a broken config for commands that need no model, and status reports it", () => {
    const place = createPlace();
    writeFileSync(join(place.state, "openclaw.json"), "{ no config");
    for (const args of [["messages", "1"], ["context", "1"], ["dag", "1"], ["doctor"], ["compact", "1", "--no-model"]])
      ok(place, ...args);
    assert.match(ok(place, "status").stdout, /^model +openclaw\.json is not valid JSON/m);
    assert.equal(lcm(place, "compact", "1").status, 2);
  });
});

describe("lcm context", () => {
  const place = createPlace();
  before(() => ok(place, "compact", "1", "--apply", "--passes", "5", "--concurrency", "1"));

  it("shows what the model sees, a line each, within 80 columns", () => {
    const { stdout } = ok({ ...place, env: { ...place.env, COLUMNS: "80" } }, "context", "1");
    const lines = linesOf(stdout);
    for (const line of lines) assert.ok(line.length <= 80, line);
    assert.match(stdout, /^prompt: [\d,]+ tokens, \d+% of a budget of 128,000 \(the default\)$/m);
    assert.match(stdout, /^[▒░─━·]{80}$/m);
    assert.match(stdout, /^item +tokens +time +text$/m);
    assert.match(stdout, /^d\d sum_[0-9a-f]{16} +[\d,]+ +02-17 \d\d:\d\d…\d\d:\d\d +\S/m);
    assert.match(stdout, /^── fresh tail ─+\n(user|assistant) msg_\d+-\d+ .+\n.+\n.+\n.+\n$/m);
  });

  it("gives programs the messages and the report, within the budget", () => {
    const { conversation, messages, report } = ok(place, "context", "1", "--json").json;
    assert.equal(conversation, 1);
    assert.equal(messages.length, report.origins.length);
    assert.deepEqual([report.budget, report.evicted.items], [128_000, 0]);
    const tight = ok(place, "context", "1", "--budget", "700", "--json").json.report;
    assert.ok(tight.tokens <= 700);
    assert.ok(tight.evicted.items > 0);
    assert.match(
      ok(place, "context", "1", "--budget", "700").stderr,
      /note: \d+ older items .+ did not fit the budget/,
    );
  });

  it("shows every word with --full, including the wrapper of a summary", () => {
    const { stdout } = ok(place, "context", "1", "--full");
    assert.match(stdout, /<summary id="sum_[0-9a-f]{16}" kind="leaf" depth="0"/);
    assert.match(stdout, /^── user msg_\d+-\d+, as user, \d+ tokens ─+$/m);
    assert.equal(lcm(place, "context", "9").status, 3);
    assert.equal(lcm(place, "context", "1", "--budget", "0").status, 2);
  });
});

describe("lcm context of messages from OpenAI's clients", () => {
  const place = { state: createFolder() };
  const call = { id: "call_1", type: "function", function: { name: "look_up", arguments: '{"pier":7}' } };
  const chat = [
    { role: "user", content: "Where does the ferry leave?" },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: "call_1", content: "Pier 7" },
  ];
  before(() => {
    writeFileSync(join(place.state, "chat.json"), JSON.stringify(chat));
    ok(place, "import", join(place.state, "chat.json"));
  });

  it("shows calls that are beside the content", () => {
    const { stdout } = ok(place, "context", "1", "--full");
    assert.ok(stdout.includes(`\n${JSON.stringify(call)}\n`), stdout);
    assert.doesNotMatch(stdout, /null/);
  });

  it("reports that a budget is too small for anything, and for what", () => {
    const { stdout, stderr } = ok(place, "context", "1", "--budget", "1");
    assert.match(stderr, /note: a budget of 1 token is too small for any message: the smallest takes \d+$/m);
    assert.doesNotMatch(stdout + stderr, /context is empty/);
  });
});

describe("lcm dag", () => {
  const place = createPlace();
  before(() => ok(place, "compact", "1", "--apply"));

  interface NodeJson {
    readonly kind: "summary" | "messages";
    readonly id: string;
    readonly depth: number;
    readonly from: number;
    readonly count: number;
    readonly below: readonly NodeJson[];
    readonly messages: readonly unknown[];
  }
  const nodesOf = (...args: readonly string[]): readonly NodeJson[] => ok(place, "dag", ...args, "--json").json.nodes;

  it("shows the tree from the context down to the counts of messages", () => {
    const { stdout, stderr } = ok({ ...place, env: { ...place.env, COLUMNS: "80" } }, "dag", "1");
    for (const line of linesOf(stdout)) assert.ok(line.length <= 80, line);
    assert.match(
      stdout,
      /^d1 sum_[0-9a-f]{16}~ +\d+ +\d+ +02-17 \d\d:\d\d…\d\d:\d\d +\S.*\n├─ d0 sum_[0-9a-f]{16}~ +\d+ /m,
    );
    assert.match(stdout, /^└─ d0 sum_/m);
    assert.match(stdout, /^\d+ messages +[\d,]+ /m);
    assert.match(stderr, /~ extracted without a model; times in 2026, America\/St_Johns/);
  });

  it("is nested for programs, and counts every message once", () => {
    const nodes = nodesOf("1");
    const count = (node: NodeJson): number =>
      node.kind === "messages"
        ? node.count
        : node.depth === 0
          ? node.from
          : node.below.reduce((sum, each) => sum + count(each), 0);
    assert.equal(
      nodes.reduce((sum, node) => sum + count(node), 0),
      messageCount,
    );
    assert.equal(nodesOf("1", "--depth", "0")[0]?.below.length, 0);
  });

  it("shows one summary with its messages, by either name of the option", () => {
    const [top] = nodesOf("1");
    const leaf = top?.below[0]?.id ?? "";
    for (const option of ["--summary", "--summary-id"]) {
      const [node, ...others] = nodesOf(option, leaf, "--messages");
      assert.deepEqual([node?.id, others.length], [leaf, 0]);
      assert.equal(node?.below[0]?.messages.length, node?.from);
    }
    assert.match(
      ok(place, "dag", "--summary", leaf, "--messages").stdout,
      /^├─ user msg_1-1 +\d+ +02-17 03:30 +On day 0/m,
    );
  });

  it("reports what it leaves out", () => {
    const { stderr } = ok(place, "dag", "1", "--limit", "2");
    assert.match(stderr, /\d+ summar\w+ and what is below not shown; raise --limit/);
    assert.ok(ok(place, "dag", "1", "--limit", "2", "--json").json.leftOut.summaries > 0);
  });

  it("lists at its end what is no longer in the context", async () => {
    const dissolved = createPlace();
    ok(dissolved, "compact", "1", "--apply");
    assert.deepEqual(ok(dissolved, "dag", "1", "--json").json.outside, []);
    const store = await openSqlite({ path: databaseOf(dissolved) });
    const conversation = 1 as ConversationId;
    const [item] = await store.context(conversation, { kind: "summary", limit: 1 });
    assert.ok(item?.kind === "summary");
    await store.dissolve({ conversation, summary: item.id, ordinal: item.ordinal });
    await store.close();
    const { nodes, outside } = ok(dissolved, "dag", "1", "--json").json;
    assert.deepEqual([nodes[0].depth, outside.length, outside[0].id], [0, 1, item.id]);
    const words = new RegExp(`no longer in the context, because it was dissolved:\\n.+\\nd1 ${item.id}~`);
    assert.match(ok(dissolved, "dag", "1").stdout, words);
  });

  it("shows the same number of tokens in context as every other command: the sum of what it lists", () => {
    const { contextTokens: tokens, due } = ok(place, "status", "--json").json;
    const words = tokens.toLocaleString("en-US");
    const { nodes } = ok(place, "dag", "1", "--json").json;
    assert.equal(
      nodes.reduce((sum: number, node: { tokens: number }) => sum + node.tokens, 0),
      tokens,
    );
    assert.equal(ok(place, "conversations", "--json").json.conversations[0].totals.contextTokens, tokens);
    assert.match(ok(place, "status").stdout, new RegExp(`, ${words} in context`));
    assert.match(ok(place, "conversations").stdout, new RegExp(` ${words} `));
    assert.match(ok(place, "dag", "1").stdout, new RegExp(`, ${words} tokens in context\\n`));
    assert.ok(due[0].promptTokens > tokens, "a prompt holds more than the texts in context");
  });

  it("calls the size of a prompt by another name, and the same everywhere", () => {
    const tokens = ok(place, "status", "--json").json.due[0].promptTokens;
    const words = tokens.toLocaleString("en-US");
    const { plan } = ok(place, "compact", "1", "--json").json;
    assert.deepEqual([plan.tokensBefore, plan.due.promptTokens], [tokens, tokens]);
    assert.equal(ok(place, "conversations", "--json").json.conversations[0].promptTokens, tokens);
    assert.match(ok(place, "status").stdout, new RegExp(`a prompt of about ${words} tokens`));
    assert.match(ok(place, "context", "1").stdout, /^prompt: [\d,]+ tokens, /m);
  });

  it("exits with 2 for an invalid id, and 3 for an unknown one", () => {
    assert.equal(lcm(place, "dag", "--summary", "sum_x").status, 2);
    assert.equal(lcm(place, "dag", "--summary", "sum_0123456789abcdef").status, 3);
  });
});

describe("lcm prompts", () => {
  it("lists the templates, shows one, and writes them out without replacing anything", () => {
    const place = { state: createFolder() };
    const dir = join(place.state, "lcm-prompts");
    const listed = ok(place, "prompts", "--list", "--json").json;
    assert.equal(listed.dir, dir);
    assert.deepEqual(
      listed.templates.map((each: { name: string; source: string }) => `${each.name} ${each.source}`),
      ["leaf built-in", "condensed-d1 built-in", "condensed-d2 built-in", "condensed-d3 built-in"],
    );
    const leaf = ok(place, "prompts", "--show", "leaf").stdout;
    assert.match(leaf, /\{conversationSegment\}/);
    assert.match(ok(place, "prompts", "--export").stdout, new RegExp(`^${dir}/leaf\\.txt\n`));
    assert.equal(readFileSync(join(dir, "leaf.txt"), "utf8"), leaf);
    writeFileSync(join(dir, "leaf.txt"), "Mine: {conversationSegment}");
    const refused = lcm(place, "prompts", "--export");
    assert.equal(refused.status, 4);
    assert.match(refused.stderr, /already exist\nhint: pass --force to overwrite/);
    assert.equal(ok(place, "prompts", "--show", "leaf").stdout, "Mine: {conversationSegment}\n");
    const table = ok({ ...place, env: { COLUMNS: "60" } }, "prompts").stdout;
    assert.match(table, /^leaf +\d+ +messages → leaf +leaf\.txt\ncondensed-d1 +\d+ +leaves → d1 +condensed-d1\.txt$/m);
    assert.match(
      table,
      /^condensed-d2 +\d+ +d1 → d2 +\S+\ncondensed-d3 +\d+ +d2 and deeper → d3\+ +condensed-d3\.txt$/m,
    );
    ok(place, "prompts", "--export", "--force");
    assert.equal(ok(place, "prompts", "--show", "leaf").stdout, leaf);
    ok(place, "prompts", "--export", join(place.state, "elsewhere"));
    assert.equal(lcm(place, "prompts", "--show", "rhyme").status, 2);
    assert.equal(lcm(place, "prompts", "--list", "--show", "leaf").status, 2);
    assert.equal(lcm(place, "prompts", "--force").status, 2);
  });

  it("prints the exact prompt of the next pass, and of an existing summary", () => {
    const place = createPlace();
    const before = hashOf(databaseOf(place));
    const next = ok(place, "prompts", "--render", "1", "--json").json;
    assert.deepEqual([next.template, next.depth], ["leaf", 0]);
    assert.match(next.prompt, /\[1 · 2026-02-17 07:00 UTC\] \[user\] On day 0 the ferry was decided/);
    assert.equal(hashOf(databaseOf(place)), before, "nothing is written for it");

    ok(place, "compact", "1", "--apply", "--passes", "3", "--concurrency", "1");
    const [first, second] = ok(place, "dag", "1", "--json").json.nodes;
    const rendered = ok(place, "prompts", "--render", first.id, "--json").json;
    assert.deepEqual([rendered.prompt, rendered.system], [next.prompt, next.system]);
    assert.equal(rendered.previousContext, "none");
    const later = ok(place, "prompts", "--render", second.id, "--json").json;
    assert.equal(later.previousContext, "recomputed");
    assert.ok(later.prompt.includes(first.text.split("\n")[0]));
    assert.match(ok(place, "prompts", "--render", second.id).stdout, /^system\n.+\n\nprompt\n/s);
    assert.equal(lcm(place, "prompts", "--render", "sum_0123456789abcdef").status, 3);
    assert.equal(lcm(place, "prompts", "--render", "nobody").status, 3);
  });

  it("names an unusable file, and only commands that need it exit with 2", () => {
    const place = createPlace({ LCM_SUMMARY_MODEL: "ollama/any" });
    const dir = join(place.state, "lcm-prompts");
    mkdirSync(join(dir, "condensed-d3.txt"), { recursive: true });
    writeFileSync(join(dir, "leaf.txt"), "Sum up {conversationSegment} for {reader}.");
    writeFileSync(join(dir, "condensed-d1.txt"), "Mine: {conversationSegment}");
    const needing = [
      ["compact", "1"],
      ["compact", "1", "--apply"],
      ["prompts", "--show", "leaf"],
      ["prompts", "--render", "1"],
    ];
    for (const args of needing) {
      const run = lcm(place, ...args);
      assert.equal(run.status, 2, args.join(" "));
      assert.match(run.stderr, /^error: .*leaf\.txt" has an unknown placeholder \{reader\}\nhint: .*\{targetTokens\}/);
    }
    const list = lcm(place, "prompts");
    assert.equal(list.status, 1);
    assert.match(list.stdout, /^leaf +– +messages → leaf +leaf\.txt, unusable$/m);
    assert.match(list.stdout, /^condensed-d1 +\d+ +leaves → d1 +condensed-d1\.txt$/m);
    assert.match(list.stderr, /^problem: .*leaf\.txt" has an unknown placeholder \{reader\}/m);
    assert.match(list.stderr, /^problem: .*condensed-d3\.txt is a folder, not a file$/m);
    assert.equal(
      lcm(place, "prompts", "--json").json.templates[3].problem,
      `${join(dir, "condensed-d3.txt")} is a folder, not a file`,
    );
    assert.equal(ok(place, "prompts", "--show", "condensed-d1").stdout, "Mine: {conversationSegment}\n");
    assert.match(
      ok(place, "status").stdout,
      /^prompts +3 custom files.*\n +.*leaf\.txt" has an unknown placeholder \{reader\}/m,
    );
    ok(place, "compact", "1", "--no-model", "--apply");
  });
});
