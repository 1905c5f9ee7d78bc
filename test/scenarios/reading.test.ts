/**
 * Tests `lcm map` and `lcm ask --thorough` by the real bin, with a model on the wire that reads honestly: plans, exact
 * counts, files, interruption by Ctrl-C and by SIGKILL, and continuing without paying twice.
 */

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import type { Json } from "../../src/core/base/json.ts";
import { itemsIn, lineFor } from "../support/honest-reader.ts";
import { homeAt } from "../support/platform.ts";
import { startScriptedProvider, type ScriptedProvider, type Step } from "../support/scripted-provider.ts";
import { bare, bin, createFolder, lcmBeside, ok, type Place } from "./program.ts";

let provider: ScriptedProvider;
before(async () => (provider = await startScriptedProvider()));
after(async () => await provider.close());

const weather = (n: number): string =>
  `Day ${n}: ${n % 5 === 0 ? "it rained" : "the sun shone"} in ${n % 2 === 0 ? "Bern" : "Lima"}.`;

function createPlace(messages = 400): Place {
  const state = createFolder();
  const lines = Array.from({ length: messages }, (_, n) => JSON.stringify({ role: "user", content: weather(n) }));
  writeFileSync(join(state, "days.jsonl"), `${lines.join("\n")}\n`);
  const env = { LCM_SUMMARY_MODEL: "wire/reader", LCM_SUMMARY_BASE_URL: `${provider.url}/v1`, COLUMNS: "100" };
  ok({ state }, "import", join(state, "days.jsonl"));
  return { state, env };
}

const promptOf = (body: unknown): string => {
  const { messages = [] } = body as { messages?: readonly { role: string; content: string }[] };
  return messages.findLast(({ role }) => role === "user")?.content ?? "";
};

/** How often each message was shown to the model. */
const shown = new Map<string, number>();

const honest = (result: (text: string) => Json): Step => ({
  kind: "reply",
  to(body) {
    const items = itemsIn(promptOf(body));
    for (const { text } of items) shown.set(text, (shown.get(text) ?? 0) + 1);
    if (items.length > 0) return items.map((item) => lineFor(item, result(item.text))).join("\n");
    return `${/^Counted: .*$/m.exec(promptOf(body))?.[0]} ${/\[msg_\d+-\d+\]/.exec(promptOf(body))?.[0]}`;
  },
});

const rain = (text: string): Json => ({ rain: text.includes("it rained") });
const schema = '{"type":"object","properties":{"rain":{"type":"boolean"}},"required":["rain"]}';
const facts = (text: string): Json => ({
  facts: text.includes("it rained")
    ? [{ subject: `rain in ${/in (\w+)\./.exec(text)?.[1]}`, statement: "It rained.", quote: "it rained" }]
    : [],
});

describe("lcm map", () => {
  it("shows the plan and its cost, and reads nothing without --apply", async () => {
    const place = createPlace();
    const { stdout, stderr } = await lcmBeside(place, ["map", "Did it rain?", "--schema", schema]);
    assert.match(
      stdout,
      /^model {2}wire\/reader .*\n +8 calls, about [\d,]+ tokens in, [\d,]+ out\nplan {3}400 messages to read\n$/,
    );
    assert.equal(stderr, "nothing was changed; pass --apply to do it\n");
    const { plan, dryRun } = (await lcmBeside(place, ["map", "Did it rain?", "--json", "--budget", "3000"])).json;
    assert.equal(dryRun, true);
    assert.ok(plan.beyond.messages > 0 && plan.inputTokens + plan.outputTokens <= 3_000);
    assert.equal(provider.asked.length, 0);
  });

  it("stores a line per message, and writes them to a file or to stdout", async () => {
    const place = createPlace();
    provider.play(honest(rain));
    const run = await lcmBeside(place, ["map", "Did it rain?", "--schema", schema, "--apply"]);
    assert.equal(run.status, 0, run.stderr);
    assert.match(
      run.stdout,
      /\nresults {2}400 lines, of which 5 are shown\nstored {3}lcm describe (file_\w{16})\nspent {4}8 calls/,
    );
    const asked = provider.asked.length;
    const output = join(place.state, "rain.jsonl");
    const into = ["map", "Did it rain?", "--schema", `@${join(place.state, "schema.json")}`, "--apply", "--output"];
    writeFileSync(join(place.state, "schema.json"), schema);
    await lcmBeside(place, [...into, output]);
    const { stdout } = await lcmBeside(place, [...into, "-", "--query", "rained", "--since", "2000-01-01"]);
    assert.equal(provider.asked.length, asked, "nothing is asked again");
    const lines = readFileSync(output, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    assert.deepEqual([lines.length, lines.filter(({ result }) => result.rain === true).length], [400, 80]);
    const matching = stdout.split("\n").filter((line) => line.startsWith("{"));
    assert.equal(matching.length, 80);
    assert.equal(JSON.parse(matching[0] ?? "").id, "msg_1-1");
  });

  it("continues after SIGKILL, and pays for no answer twice", async () => {
    const place = createPlace(600);
    shown.clear();
    const answer = honest(rain);
    provider.play(answer, answer, answer, { kind: "hang" });
    const args = ["map", "Rain?", "--schema", schema, "--apply", "--json", "--concurrency", "2"];
    const asked = provider.asked.length;
    const program = spawn(process.execPath, [bin, ...args], {
      cwd: place.state,
      env: { ...bare, ...homeAt(place.state), OPENCLAW_STATE_DIR: place.state, ...place.env },
      stdio: "ignore",
    });
    const closed = once(program, "close");
    while (provider.asked.length < asked + 5) await sleep(20);
    program.kill("SIGKILL");
    await closed;
    provider.play(answer);
    const { json, status } = await lcmBeside(place, args);
    assert.equal(status, 0);
    assert.deepEqual([json.plan.messages, json.plan.kept, json.result.results], [600, 150, 600]);
    assert.deepEqual([json.result.unread, json.result.spent.calls], [[], 9]);
    assert.deepEqual([shown.size, new Set(shown.values())], [600, new Set([1])]);
  });

  it("names what was not read, and exits with 6", async () => {
    const place = createPlace(100);
    provider.play(honest(rain), { kind: "error", status: 401 });
    const args = ["map", "Rain?", "--schema", schema, "--apply", "--concurrency", "1"];
    const run = await lcmBeside(place, args);
    assert.equal(run.status, 6);
    const stderr = run.stderr.replaceAll(/\s+/g, " ");
    assert.match(
      stderr,
      /error: the model was not available \(auth\): .*; 50 messages not read \(50 not reached\): msg_1-51…msg_1-100/,
    );
    assert.match(stderr, /hint: run the same command again to read on; what was read is kept/);
    assert.match(run.stdout, /results {2}50 lines/);
  });

  it("refuses a schema or options that make no sense, and a missing model", async () => {
    const place = createPlace(3);
    for (const [args, problem] of [
      [["--schema", "{"], /--schema is not JSON/],
      [["--schema", '{"type":"string","pattern":"a"}'], /uses "pattern", which is not supported/],
      [["--schema", "@nowhere.json"], /--schema is not JSON: ENOENT/],
      [["--since", "soon"], /--since is "soon"/],
      [["--summary", "sum_1"], /sum_1/],
    ] as const) {
      const { status, stderr } = await lcmBeside(place, ["map", "Rain?", ...args]);
      assert.match(stderr, problem);
      assert.equal(status, 2);
    }
    const { status, stderr } = await lcmBeside({ state: place.state }, ["map", "Rain?", "--apply"]);
    assert.match(stderr, /needs a model, and none is configured/);
    assert.equal(status, 6);
  });
});

describe("lcm ask --thorough", () => {
  it("shows the plan first, then answers with exact counts, sources and a file of all facts", async () => {
    const place = createPlace();
    provider.play(honest(facts));
    const question = ["ask", "How often did it rain, and where?", "--thorough"];
    const asked = provider.asked.length;
    const plan = await lcmBeside(place, question);
    assert.match(plan.stdout, /9 calls, about [\d,]+ tokens in, [\d,]+ out\nplan {3}400 messages to read\n$/);
    assert.equal(provider.asked.length, asked);
    const { stdout, status } = await lcmBeside(place, [...question, "--apply"]);
    assert.equal(status, 0);
    assert.match(stdout, /Counted: 400 messages read; 80 facts in 80 messages; 2 distinct subjects\. \[msg_1-1\]/);
    assert.match(
      stdout,
      /\nread {5}400 messages; 80 facts in 80 messages\nsources {2}lcm describe msg_1-1\nfacts {4}lcm describe file_/,
    );
    const { result } = (await lcmBeside(place, [...question, "--apply", "--json"])).json;
    assert.deepEqual(result.reading.subjects, [
      { subject: "rain in bern", facts: 40, messages: 40 },
      { subject: "rain in lima", facts: 40, messages: 40 },
    ]);
    assert.equal(result.reading.spent.calls, 1, "only the answer is asked again");
  });

  it("reads less on request, and says what was not read", async () => {
    const place = createPlace();
    provider.play(honest(facts));
    const { stdout, stderr, status } = await lcmBeside(place, [
      "ask",
      "Rain?",
      "--thorough",
      "--apply",
      "--budget",
      "8000",
    ]);
    assert.equal(status, 6);
    assert.match(stdout, /Counted: (\d+) messages read/);
    assert.match(
      stderr.replaceAll(/\s+/g, " "),
      /^error: (\d+) messages not read \(\1 beyond the budget\): msg_1-\d+…msg_1-400/,
    );
  });

  it("refuses options that belong to the other way of asking", async () => {
    const place = createPlace(3);
    for (const [args, problem] of [
      [["--thorough", "--query", "x"], /--query does not apply to --thorough/],
      [["--thorough", "--tokens", "100"], /--tokens does not apply to --thorough/],
      [["--since", "7d"], /--since needs --thorough/],
      [["--apply"], /--apply needs --thorough/],
      [["--thorough", "--no-model"], /reading every message needs a model/],
    ] as const) {
      const { status, stderr } = await lcmBeside(place, ["ask", "Rain?", ...args]);
      assert.match(stderr, problem);
      assert.equal(status, 2);
    }
  });
});
