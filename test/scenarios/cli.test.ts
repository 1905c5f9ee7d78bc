/**
 * Runs the real bin in separate processes and folders, as its users do. Output for people is checked where a promise
 * depends on it; everything else is read as JSON.
 */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { bare, createFolder, lcm, linesOf, ok } from "./program.ts";
import type { Run } from "./program.ts";
import { readKeyFacts } from "../../src/cli/demo/five-weeks.ts";
import { fixtures, session, messageCount, writeSession } from "./session.ts";

describe("lcm", () => {
  const place = { state: createFolder() };

  it("lists its commands when called without arguments", () => {
    const { stdout } = ok(place);
    for (const name of [
      "status",
      "conversations",
      "messages",
      "grep",
      "context",
      "dag",
      "compact",
      "prompts",
      "demo",
      "import",
      "export",
      "adopt",
      "backup",
      "restore",
      "forget",
      "doctor",
    ])
      assert.match(stdout, new RegExp(`^ +${name}\\b`, "m"));
    assert.equal(ok(place, "--help").stdout, stdout);
  });

  it("prints its version", () => {
    const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
    assert.equal(ok(place, "--version").stdout, `${version}\n`);
  });

  it("has help with examples for each command", () => {
    for (const name of ["grep", "import", "forget", "context", "dag", "compact", "prompts", "demo"]) {
      const { stdout } = ok(place, name, "--help");
      assert.match(stdout, /^Examples:\n +\$ lcm/m);
      assert.equal(/--db <path>/.test(stdout), name !== "demo", `${name}: the demo makes its own database`);
    }
    assert.doesNotMatch(ok(place, "tui", "--help").stdout, /--json/);
    assert.match(ok(place, "--help").stdout.replaceAll("\n", " "), /7 corrupt, 130 interrupted by Ctrl-C\./);
  });

  it("has help that fits 80 columns", () => {
    const narrow = { ...place, env: { COLUMNS: "80" } };
    const names = [...ok(place).stdout.matchAll(/^ {2}([a-z]+) /gm)].map(([, name = ""]) => name);
    assert.ok(names.length > 15);
    for (const name of ["", ...names.filter((each) => each !== "help")])
      for (const line of linesOf(ok(narrow, ...(name === "" ? [] : [name]), "--help").stdout))
        assert.ok(line.length <= 80, `${name}: ${line}`);
  });

  it("has help that wraps in 50 columns, except for examples", () => {
    const narrow = { ...place, env: { COLUMNS: "50" } };
    for (const name of ["compact", "grep", "prune"])
      for (const line of linesOf(ok(narrow, name, "--help").stdout.split("\nExamples:")[0] ?? ""))
        assert.ok(line.length <= 50 || line.includes("LCM_"), `${name}: ${line}`);
  });

  it("suggests a command when help is requested for an unknown one", () => {
    for (const args of [
      ["doctro", "--help"],
      ["doctro", "-h"],
      ["help", "doctro"],
    ]) {
      const run = lcm(place, ...args);
      assert.deepEqual([run.status, run.stdout], [2, ""], args.join(" "));
      assert.match(run.stderr, /^error: unknown command 'doctro'\n\(Did you mean doctor\?\)/);
    }
    assert.equal(lcm(place, "nosuch", "--help", "--json").json.error.code, "invalid");
    assert.match(ok(place, "help", "status").stdout, /^Usage: lcm status/);
  });

  it("knows what other programs call a command", () => {
    const words = {
      search: "grep",
      list: "conversations",
      verify: "doctor",
      uninstall: "setup --remove",
      cost: "stats",
    };
    for (const [word, command] of Object.entries(words)) {
      const run = lcm(place, word, "x");
      assert.deepEqual([run.status, run.stdout], [2, ""], word);
      assert.equal(
        run.stderr,
        `error: unknown command '${word}'\nhint: did you mean \`lcm ${command}\`? pass --help to see all commands\n`,
      );
    }
    assert.match(lcm(place, "remove", "--json").json.error.hint, /`lcm forget` or `lcm prune`/);
    assert.match(lcm(place, "help", "search").stderr, /`lcm grep`/);
    const names = ok(place, "--help").stdout;
    for (const command of Object.values(words)) assert.match(names, new RegExp(`^ {2}${command.split(" ")[0]} `, "m"));
  });

  it("exits with 2 when it is used wrongly, and explains how to use it", () => {
    const wrong: readonly (readonly string[])[] = [
      ["frobnicate"],
      ["status", "--frobnicate"],
      ["describe"],
      ["messages", "1", "--limit", "many"],
      ["messages", "1", "--role", "robot"],
      ["grep", "x", "--limit", "201"],
      ["grep", "x", "-e", "--full-text"],
      ["ask", "x", "--no-model", "--model", "ollama/x"],
      ["ask", "x", "--model=ollama/x", "--no-model"],
      ["compact", "--no-model", "--model", "ollama/x"],
    ];
    for (const args of wrong) {
      const run = lcm(place, ...args);
      assert.equal(run.status, 2, args.join(" "));
      assert.match(run.stderr, /^error: .+\nhint: .+--help/s, args.join(" "));
    }
    const { json, stderr } = lcm(place, "--json", "status", "--frobnicate");
    assert.deepEqual(json, { error: { code: "invalid", message: "unknown option '--frobnicate'" } });
    assert.equal(stderr, "");
  });

  it("reports that there is no database, exits with 3, and creates none", () => {
    const reads: readonly (readonly string[])[] = [
      ["status"],
      ["conversations"],
      ["messages", "1"],
      ["grep", "x"],
      ["context", "1"],
      ["dag", "1"],
      ["compact", "1"],
      ["compact", "1", "--apply"],
      ["prompts", "--render", "1"],
      ["export", "1"],
      ["adopt"],
      ["backup"],
      ["forget", "--secret", "hunter2"],
      ["forget", "--secret", "hunter2", "--apply"],
      ["doctor"],
    ];
    for (const args of reads) {
      const run = lcm(place, ...args);
      assert.equal(run.status, 3, args.join(" "));
      assert.match(run.stderr, /^error: there is no database at .*lcm\.db\nhint: .*lcm import/);
    }
    assert.deepEqual(readdirSync(place.state), []);
    const { error } = lcm(place, "status", "--json").json;
    assert.equal(error.code, "not_found");
    assert.match(error.message, /there is no database/);
  });

  it("finds its database by --db, then LCM_DATABASE_PATH, then the state directory", () => {
    const paths = { flag: join(place.state, "flag.db"), env: join(place.state, "env.db") };
    const env = { LCM_DATABASE_PATH: paths.env };
    assert.match(lcm({ ...place, env }, "status", "--db", paths.flag).stderr, /flag\.db/);
    assert.match(lcm({ ...place, env }, "status").stderr, /env\.db/);
    assert.match(lcm(place, "status").stderr, new RegExp(RegExp.escape(join(place.state, "lcm.db"))));
    assert.match(
      lcm({ ...place, env: { OPENCLAW_STATE_DIR: "~/elsewhere" } }, "status").stderr,
      new RegExp(RegExp.escape(join(place.state, "elsewhere", "lcm.db"))),
    );
  });

  it("reports a --db that names no file, or an impossible one", () => {
    const nameless = lcm(place, "status", "--db", "");
    assert.equal(nameless.status, 2);
    assert.match(nameless.stderr, /^error: --db needs a file name or a URL\nhint: .+\n$/);
    const path = join(writeSession(place.state, '{"role":"user","content":"hi"}\n', "file"), "lcm.db");
    const impossible = lcm(place, "import", join(place.state, "file"), "--db", path);
    assert.equal(impossible.status, 5);
    assert.match(impossible.stderr, /^error: the folder for .*file\/lcm\.db cannot be created: .+\nhint: .+\n$/);
  });

  it("names a wrong setting, and exits with 2", () => {
    const run = lcm({ ...place, env: { LCM_FRESH_TAIL_COUNT: "lots" } }, "status");
    assert.equal(run.status, 2);
    assert.match(run.stderr, /LCM_FRESH_TAIL_COUNT is "lots"/);
  });
});

describe("lcm status, conversations and messages", () => {
  const place = { state: createFolder() };
  before(() => ok(place, "import", writeSession(place.state)));

  it("count what is stored", () => {
    const status = ok({ ...place, env: { LCM_FRESH_TAIL_COUNT: "64" } }, "status", "--json").json;
    assert.equal(status.path, join(place.state, "lcm.db"));
    assert.deepEqual(
      [status.schemaVersion, status.conversations, status.messages, status.summaries, status.files, status.unindexed],
      [7, 1, messageCount, 0, 0, 0],
    );
    assert.ok(status.bytes > 0 && status.tokens > 0);
    assert.equal(status.contextTokens, status.tokens);
    assert.deepEqual(status.newestActivity, { conversation: 1, at: "2026-02-17T07:37:12.000Z" });
    assert.deepEqual(status.usageLast24h, {
      calls: 0,
      inputTokens: 0,
      outputTokens: 0,
      failures: 0,
      open: 0,
      embedCalls: 0,
      embedTokens: 0,
    });
    assert.deepEqual([status.due.length, status.due[0].conversation, status.due[0].kind], [1, 1, "nothing"]);
    assert.deepEqual([status.lastCompaction, status.model, status.prompts.problems], [null, null, []]);
    assert.deepEqual(status.settings, [
      { key: "freshTailCount", env: "LCM_FRESH_TAIL_COUNT", value: 64, source: "environment" },
    ]);
    const words = ok(place, "status").stdout;
    for (const fact of [
      /^database +.*lcm\.db$/m,
      /^messages +10$/m,
      /^due +nothing: a prompt of about [\d,]+ tokens, within 96,000 \(75% of 128,000\)$/m,
      /^compaction +none yet$/m,
      /^model +none: summaries are extracted locally, without a model$/m,
      /^prompts +built-in$/m,
      /^model calls +0 of 120 in the last hour$/m,
      /^settings +all defaults$/m,
      /^search +up to date$/m,
    ])
      assert.match(words, fact);
  });

  it("report what is due in every active conversation", () => {
    const several = { state: createFolder() };
    for (const name of ["a", "b", "c"]) {
      const said = Array.from({ length: name === "c" ? 1 : 60 }, (_, n) => ({
        role: "user",
        content: `${name} ${n} ferry. `.repeat(40),
      }));
      writeFileSync(join(several.state, `${name}.json`), JSON.stringify(said));
      ok(several, "import", join(several.state, `${name}.json`), "--session", name);
    }
    assert.match(ok(several, "status").stdout, /^due +nothing$/m);
    const pressed = { ...several, env: { LCM_CONTEXT_THRESHOLD: "0.05" } };
    assert.match(
      ok(pressed, "status").stdout,
      /^due +2 conversations: \d \(sweep, [\d,]+ tokens\), \d \(sweep, [\d,]+\)$/m,
    );
    const { due } = ok(pressed, "status", "--json").json;
    assert.deepEqual(due.map(({ kind }: { kind: string }) => kind).toSorted(), ["nothing", "sweep", "sweep"]);
  });

  it("fit 80 columns on request, in a pipe too", () => {
    const narrow = {
      ...place,
      env: { COLUMNS: "80", LCM_SUMMARY_MODEL: "google/gemini-none", LCM_FRESH_TAIL_COUNT: "64" },
    };
    for (const args of [["conversations"], ["status"], ["doctor"], ["prompts"], ["compact", "1"]])
      for (const line of linesOf(ok(narrow, ...args).stdout))
        assert.ok(line.length <= 80 || line.includes(place.state), `${args.join(" ")}: ${line}`);
    assert.match(ok({ ...place, env: { COLUMNS: "60" } }, "conversations").stdout, /…/);
  });

  it("list conversations with their totals", () => {
    const { conversations, more } = ok(place, "conversations", "--json").json;
    assert.equal(more, false);
    assert.equal(conversations[0].totals.messages, messageCount);
    assert.match(
      ok(place, "conversations").stdout,
      /^id +conversation +messages +summaries +tokens +in context +last message\n +1 +Where does the harbour ferry leave\?/,
    );
    const none = ok(place, "conversations", "--session-key", "agent:nobody:main");
    assert.equal(none.stdout, "");
    assert.match(none.stderr, /no matching conversations/);
  });

  it("give the original messages as JSON, with their ids", () => {
    const { conversation, messages } = ok(place, "messages", "1", "--json", "--limit", "3", "--from-start").json;
    assert.equal(conversation, 1);
    assert.deepEqual(
      messages.map((message: { seq: number }) => message.seq),
      [1, 2, 3],
    );
    assert.deepEqual(
      messages.map((each: { message: unknown }) => each.message),
      session
        .filter((entry) => "message" in entry)
        .slice(0, 3)
        .map((entry) => entry.message),
    );
    assert.deepEqual(Object.keys(messages[0]), ["id", "seq", "key", "role", "at", "tokens", "aside", "message"]);
  });

  it("show a line for each message, calls and results compactly", () => {
    const { stdout } = ok(place, "messages", "1");
    const lines = linesOf(stdout);
    assert.equal(lines.length, messageCount + 2);
    assert.match(stdout, /^ {2}── model changed to .* ──$/m, "with a mark where the model changed");
    assert.match(stdout, /assistant {2}I will look it up\. {2}→ look_up \{"query":"ferry"/);
    assert.match(stdout, /tool +← look_up {2}Pier 7/);
    assert.match(stdout, /assistant {2}\(empty\)/);
    assert.match(stdout, /竹芝から出ます。 {2}\[hologram\] a b {2}\[image\]/);
    assert.match(
      ok(place, "messages", "1", "--full").stdout,
      /They mean the old harbour\.\n +I will look it up\.\n +→ look_up/,
    );
  });

  it("cut lines to the width of the terminal, counting wide characters twice", () => {
    const { stdout } = ok({ ...place, env: { COLUMNS: "60" } }, "messages", "1");
    const wide = (line: string): number =>
      Array.from(line).reduce(
        (sum, character) => sum + (/[\u3000-\u9fff\u{1f300}-\u{1faff}]/u.test(character) ? 2 : 1),
        0,
      );
    for (const line of linesOf(stdout)) assert.ok(wide(line) <= 60, line);
    assert.match(stdout, /…$/m);
  });

  it("select by role and time", () => {
    const seqs = (...args: readonly string[]): readonly number[] =>
      ok(place, "messages", "1", "--json", ...args).json.messages.map((message: { seq: number }) => message.seq);
    assert.deepEqual(seqs("--role", "tool"), [3]);
    assert.deepEqual(seqs("--since", "2026-02-17T07:37:11Z"), [9, 10]);
    assert.deepEqual(seqs("--before", "2026-02-17T07:37:03Z"), [1]);
    assert.deepEqual(seqs("--limit", "2"), [9, 10]);
    assert.equal(lcm(place, "messages", "1", "--since", "soon").status, 2);
    for (const args of [["messages", "1"], ["grep", "x"], ["recent"]]) {
      const swapped = lcm(place, ...args, "--since", "2h", "--before", "3h");
      assert.equal(swapped.status, 2, args.join(" "));
      assert.match(swapped.stderr, /^error: --since 2h is not earlier than --before 3h\nhint: swap them/);
    }
    assert.equal(lcm(place, "messages", "42").status, 3);
  });

  it("guarantee 29: times are shown and typed in the user's zone, and are UTC in JSON", () => {
    const inZone = (zone: string, ...args: readonly string[]): Run =>
      ok({ ...place, env: { TZ: zone } }, "messages", "1", "--limit", "1", ...args);
    assert.match(inZone("America/St_Johns").stdout, /2026-02-17 04:07/);
    assert.match(inZone("Asia/Tokyo").stdout, /2026-02-17 16:37/);
    assert.match(inZone("Asia/Tokyo").stderr, /times in Asia\/Tokyo/);
    assert.equal(inZone("Asia/Tokyo", "--json").json.messages[0].at, "2026-02-17T07:37:12.000Z");
    const since = (zone: string): number =>
      inZone(zone, "--json", "--limit", "100", "--since", "2026-02-17 16:37").json.messages.length;
    assert.equal(since("Asia/Tokyo"), messageCount);
    assert.equal(since("UTC"), 0);
  });

  it("use no colours unless a terminal or FORCE_COLOR requests them", () => {
    const isColoured = (env: Readonly<Record<string, string>>, ...args: readonly string[]): boolean =>
      ok({ ...place, env }, "conversations", ...args).stdout.includes("\u001b[");
    assert.equal(isColoured({}), false);
    assert.doesNotMatch(ok({ ...place, env: { CI: "true" } }, "status").stdout, /[\u001b␛]/, "also not in CI");
    assert.equal(isColoured({ FORCE_COLOR: "1" }), true);
    assert.equal(isColoured({ FORCE_COLOR: "1" }, "--no-color"), false);
    assert.equal(isColoured({ FORCE_COLOR: "1", NO_COLOR: "1" }), false);
  });
});

describe("guarantee 22: lcm grep reports everything it left out", () => {
  const place = { state: createFolder() };
  before(() => {
    ok(place, "import", writeSession(place.state));
    const runaway = `${JSON.stringify({ role: "user", content: `${"a".repeat(5_000)}!` })}\n`;
    ok(place, "import", writeSession(place.state, runaway, "runaway.jsonl"));
  });

  it("finds words, phrases, wide scripts, emoji and identifiers", () => {
    for (const [pattern, seq] of [
      ["ferries harbours", 1],
      ['"every 20 minutes"', 3],
      ["港", 5],
      ["🚢", 5],
      ["ERR_NONE", 3],
    ] as const) {
      const { hits } = ok(place, "grep", "--json", pattern).json;
      assert.ok(
        hits.some((hit: { seq: number }) => hit.seq === seq),
        pattern,
      );
      assert.deepEqual(Object.keys(hits[0]).toSorted(), [
        "at",
        "conversation",
        "focus",
        "id",
        "kind",
        "role",
        "score",
        "seq",
        "snippet",
      ]);
    }
  });

  it("shows where a hit is and its text", () => {
    const { stdout, stderr } = ok({ ...place, env: { FORCE_COLOR: "1" } }, "grep", "ferry", "--no-color");
    assert.match(
      stdout,
      /^msg_1-1 {2}user {2}conversation 1 {2}2026-02-17 04:07\n {2}Where does the harbour ferry leave\?/m,
    );
    assert.match(stderr, /match(es)? in 11 messages of 2 conversations/);
    assert.ok(ok({ ...place, env: { FORCE_COLOR: "1" } }, "grep", "ferry").stdout.includes("\u001b[31mferry"));
  });

  it("searches everything even if the whole index must be rebuilt, as after an upgrade", () => {
    const place = { state: createFolder() };
    const said = Array.from(
      { length: 9_000 },
      (_, n) => `${JSON.stringify({ role: "user", content: `heron h${n}x` })}\n`,
    );
    ok(place, "import", writeSession(place.state, said.join("")));
    const db = new DatabaseSync(join(place.state, "lcm.db"));
    db.exec("UPDATE search_progress SET version = 0");
    db.close();
    const { hits, caveats } = ok(place, "grep", "--json", "h6500x").json;
    assert.deepEqual([hits.length, hits[0]?.seq, caveats], [1, 6_501, []]);
  });

  it("takes a regular expression with -e, in one conversation or all", () => {
    assert.deepEqual(
      ok(place, "grep", "-e", "^pier \\d", "--json").json.hits.map((hit: { seq: number }) => hit.seq),
      [3],
    );
    assert.deepEqual(lcm(place, "grep", "-e", "^pier \\d", "--conversation", "2", "--json").json.hits, []);
    assert.equal(lcm(place, "grep", "x", "--conversation", "9").status, 3);
  });

  it("recognises a regular expression, and searches for its words if it matches nothing", () => {
    const { hits, mode } = ok(place, "grep", String.raw`^pier \d`, "--json").json;
    assert.deepEqual([hits.length, mode], [1, "regex"]);
    assert.match(ok(place, "grep", String.raw`^pier \d`).stderr, /^1 match of this regular expression in 11 messages/);
    assert.equal(ok(place, "grep", "--full-text", String.raw`^pier \d`, "--json").json.mode, "full_text");
    const { stdout, stderr } = ok(place, "grep", "ferry.*harbour");
    assert.match(stdout, /Where does the harbour ferry leave/);
    assert.match(
      stderr,
      /^note: nothing matches this as a regular expression; searched for the words "ferry harbour" /,
    );
  });

  it("explains an invalid pattern, and exits with 2", () => {
    const run = lcm(place, "grep", "-e", "(unclosed");
    assert.equal(run.status, 2);
    assert.match(
      run.stderr,
      /invalid regular expression "\(unclosed": Unterminated group\nhint: .*search for words instead/,
    );
    const told = lcm(place, "grep", "-e", "(unclosed", "--json");
    assert.deepEqual([told.status, told.json.error.code, told.stderr], [2, "invalid", ""]);
    assert.match(lcm(place, "grep", "$$$").stderr, /hint: .*to find punctuation, use a regular expression\n$/);
  });

  it("reports that a time limit was reached, which is not the same as no matches", () => {
    const run = lcm(place, "grep", "-e", "(a+)+$", "--timeout", "1");
    assert.equal(run.status, 6);
    assert.match(run.stderr, /stopped at the time limit of 1 s.*matches may be missing/);
    assert.doesNotMatch(run.stdout + run.stderr, /no matches/);
    assert.equal(lcm(place, "grep", "-e", "(a+)+$", "--timeout", "1", "--json").json.caveats[0].kind, "time");
  });

  it("reports that there are more matches than shown", () => {
    const run = ok(place, "grep", "-e", "ping", "--limit", "1");
    assert.match(run.stderr, /more than 1 match.*\n1 shown; searched 11 messages /);
  });

  it("narrows by role, message and order, and lists without a pattern", () => {
    const seqs = (...args: readonly string[]): readonly number[] =>
      ok(place, "grep", "--json", ...args).json.hits.map(({ seq }: { readonly seq: number }) => seq);
    assert.deepEqual(seqs("minutes", "--role", "tool"), [3]);
    assert.deepEqual(seqs("--role", "user", "--sort", "oldest", "--limit", "1", "--conversation", "1"), [1]);
    assert.deepEqual(seqs("--before", "msg_1-3", "--limit", "1"), [2]);
    const shown = ok(place, "grep", "every 20 minutes", "--role", "tool").stdout;
    assert.match(shown, /^msg_1-2 {2}assistant \(context\) {2}.*\n {2}….*look_up/m, "the call beside its result");
    assert.equal(lcm(place, "grep", "ferry", "--role", "nobody").status, 2);
    assert.equal(lcm(place, "grep").status, 2);
    assert.equal(lcm(place, "grep", "--since", "msg_9-1").status, 3);
  });

  it("describes a range, neighbours, and places in a text", () => {
    const ids = (stdout: string): readonly string[] => stdout.match(/^msg_1-\d+/gm) ?? [];
    assert.deepEqual(ids(ok(place, "describe", "msg_1-2..4").stdout), ["msg_1-2", "msg_1-3", "msg_1-4"]);
    assert.deepEqual(ids(ok(place, "describe", "msg_1-3", "--around", "1").stdout), ["msg_1-2", "msg_1-3", "msg_1-4"]);
    assert.deepEqual(ids(ok(place, "describe", "msg_1-1", "msg_1-5").stdout), ["msg_1-1", "msg_1-5"]);
    assert.equal(ok(place, "describe", "msg_1-3", "--find", "minutes", "--json").json.found, 1);
  });

  it("reports how much was searched when nothing matches, and exits with 1", () => {
    const run = lcm(place, "grep", "xylophone");
    assert.deepEqual([run.status, run.stdout], [1, ""]);
    assert.match(run.stderr, /^no matches in 11 messages of 2 conversations\n$/);
    assert.deepEqual(lcm(place, "grep", "xylophone", "--json").json, {
      hits: [],
      passages: [],
      caveats: [],
      mode: "full_text",
      searched: { conversations: 2, messages: 11, summaries: 0 },
    });
  });
});

describe("lcm adopt", () => {
  for (const [name, messages, summaries] of [
    ["lcm-0.1.0.db", 138, 16],
    ["lcm-0.15.3.db", 124, 14],
  ] as const) {
    it(`converts ${name} with everything in it, once`, () => {
      const place = { state: createFolder() };
      const path = join(place.state, "lcm.db");
      copyFileSync(join(fixtures, name), path);
      const refused = lcm(place, "status");
      assert.equal(refused.status, 4);
      assert.match(refused.stderr, /was made by an older lossless-claw\nhint: .*lcm adopt/);
      const named = lcm(place, "status", "--db", path, "--json").json.error.hint;
      assert.equal(named, `convert it with \`lcm adopt --db ${path}\`, which makes a backup first`);

      const adopted = ok(place, "adopt", "--json").json;
      assert.deepEqual([adopted.kind, adopted.messages, adopted.summaries], ["adopted", messages, summaries]);
      assert.equal(adopted.indexed, messages + summaries);
      assert.deepEqual(readFileSync(adopted.backup).subarray(0, 15).toString(), "SQLite format 3");
      assert.match(ok(place, "adopt").stdout, /^nothing to do/);

      const status = ok(place, "status", "--json").json;
      assert.deepEqual([status.messages, status.summaries, status.unindexed], [messages, summaries, 0]);
      assert.equal(ok(place, "doctor", "--json").json.sound, true);
      assert.equal(linesOf(ok(place, "export", "1").stdout).length, messages);
    });
  }
});

describe("the demo", () => {
  it("shows that every promise it mentions is kept, fits 80 columns, and leaves nothing behind", () => {
    const folder = createFolder();
    const demo = fileURLToPath(new URL("../../src/cli/demo/run.ts", import.meta.url));
    const run = spawnSync(process.execPath, [demo], {
      encoding: "utf8",
      env: { ...bare, TMPDIR: folder, COLUMNS: "80" },
    });
    assert.equal(run.status, 0, run.stdout + run.stderr);
    assert.equal(run.stderr, "");
    assert.equal(run.stdout.match(/✓/g)?.length, 3);
    assert.doesNotMatch(run.stdout, /✗|nothing found/);
    for (const line of linesOf(run.stdout)) assert.ok(Array.from(line).length <= 80, line);
    assert.match(run.stdout, /\n\nNext:\n {2}npx lcm demo --keep .*\n {2}npx lcm import /);
    assert.deepEqual(readdirSync(folder), []);
  });

  it("has at least 80% of its key facts in the prompt or one expand of 4,000 tokens away", () => {
    const { facts, tokensBefore, promptTokens } = ok({ state: createFolder() }, "demo", "--json").json;
    const { facts: all, inContext, byExpand, inMessages } = facts;
    process.stdout.write(`key facts: ${inContext} in the prompt, ${byExpand} one expand away, of ${all}\n`);
    assert.ok(all >= 40 && (inContext + byExpand) / all >= 0.8, JSON.stringify(facts));
    assert.ok(promptTokens < tokensBefore / 10);
    assert.equal(inContext + byExpand + inMessages.length, all, "it says where the others are");
  });

  it("names the messages with the other facts, and what to try next, each of which works", () => {
    const place = { state: createFolder() };
    const { stdout } = ok({ ...place, env: { TMPDIR: place.state } }, "demo", "--keep");
    const others = /the others by id, with lcm describe: (.*)/.exec(stdout)?.[1]?.split(", ") ?? [];
    assert.ok(others.length > 0, stdout);
    const env = { LCM_DATABASE_PATH: /LCM_DATABASE_PATH=(.*)/.exec(stdout)?.[1] ?? "" };
    const answers = readKeyFacts().map(({ answer }) => answer);
    for (const id of others) {
      const { text } = ok({ ...place, env }, "describe", id, "--json").json;
      assert.ok(
        answers.some((answer) => answer.every((words) => text.includes(words))),
        text,
      );
    }
    assert.match(stdout, /^ {2}npx lcm +# the terminal UI$/m);
    const steps = stdout.matchAll(/^ {2}npx lcm (\w[^#\n]*?) *(?:#.*)?$/gm).toArray();
    assert.deepEqual(
      steps.map(([, step = ""]) => step.split(" ")[0]),
      ["context", "dag", "describe", "expand", "grep", "ask"],
    );
    for (const [, step = ""] of steps) ok({ ...place, env }, ...step.split(" "));
  });

  it("is kept for browsing on request", () => {
    const place = { state: createFolder() };
    const { kept } = ok({ ...place, env: { TMPDIR: place.state } }, "demo", "--keep", "--json").json;
    assert.equal(ok(place, "doctor", "--json", "--db", join(kept, "lcm.db")).json.sound, true);
    assert.match(ok(place, "status", "--db", join(kept, "lcm.db")).stdout, /^search +up to date$/m);
  });
});
