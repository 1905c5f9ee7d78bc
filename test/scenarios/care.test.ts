import assert from "node:assert/strict";
import {
  copyFileSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { basename, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { before, describe, it } from "node:test";
import { createFolder, lcm, linesOf, ok } from "./program.ts";
import { assertPrivate } from "../support/platform.ts";
import { fixtures, messageCount, writeSession } from "./session.ts";

describe("lcm backup and restore", () => {
  const place = { state: createFolder() };
  const path = join(place.state, "lcm.db");
  before(() => ok(place, "import", writeSession(place.state)));
  const copies = (): readonly string[] => readdirSync(place.state).filter((name) => name.startsWith("lcm.db.backup-"));

  it("keep the newest three beside the database, and never remove one stored elsewhere", () => {
    const elsewhere = join(place.state, "mine.db");
    assert.equal(ok(place, "backup", elsewhere, "--json").json.path, elsewhere);
    assert.equal(lcm(place, "backup", elsewhere).status, 4);
    assert.match(lcm(place, "backup", place.state).stderr, /^error: .* is a folder\nhint: name a file in it\n$/);
    for (let count = 1; count <= 4; count++) ok(place, "backup");
    assert.equal(copies().length, 3);
    assertPrivate(elsewhere);
    assert.ok(ok(place, "status", "--json").json.backups.length === 3);
  });

  it("do not create the folder of a misspelt path", () => {
    const run = lcm(place, "backup", join(place.state, "none", "mine.db"));
    assert.equal(run.status, 3);
    assert.match(run.stderr, /^error: .*folder.*\nhint: .+\n$/);
    assert.equal(existsSync(join(place.state, "none")), false);
  });

  it("find a backup by its name alone, beside the database", () => {
    const name = copies()[0] ?? "";
    const { plan } = ok({ ...place, state: createFolder() }, "restore", name, "--db", path, "--json").json;
    assert.equal(plan.from.path, join(place.state, name));
    assert.equal(lcm(place, "restore", join("elsewhere", name)).status, 3);
  });

  it("report what an unreadable file is", () => {
    const state = createFolder();
    const other = join(state, "lcm.db");
    copyFileSync(path, other);
    const db = new DatabaseSync(other);
    db.exec("PRAGMA user_version = 999");
    db.close();
    const older = join(fixtures, "lcm-0.1.0.db");
    const { stdout } = ok({ state }, "restore", older);
    assert.match(stdout, /^restore .*lcm-0\.1\.0\.db \(.+, made by an older lossless-claw\)$/m);
    assert.match(stdout, /^replaces .*lcm\.db \(.+, made by a newer lossless-claw\)$/m);
    truncateSync(other, 30_000);
    writeFileSync(other, Buffer.alloc(8_192, 0x41), { flag: "r+", flush: true });
    writeFileSync(other, "SQLite format 3\0", { flag: "r+" });
    assert.match(ok({ state }, "restore", older).stdout, /^replaces .*lcm\.db \(.+, damaged\)$/m);
    assert.match(
      ok({ state }, "restore", older, "--apply").stderr,
      /made by an older lossless-claw; convert it with `lcm adopt`/,
    );
  });

  it("list what can be restored, whatever happened to the database, and restore it", () => {
    const home = { state: createFolder() };
    const file = join(home.state, "lcm.db");
    const none = ok(home, "restore", "--db", file).stdout;
    assert.equal(none, `no backups next to ${file}\n`, "there is nothing to back up either");
    copyFileSync(path, file);
    const yet = ok(home, "restore", "--db", file).stdout;
    assert.equal(yet, `no backups next to ${file}; make one with \`lcm --db ${file} backup\`\n`);
    const made = ok(home, "backup", "--json").json.path;
    assert.equal(lcm(home, "restore", "--apply").status, 2);

    // What `status` exits with for each damage.
    const damages: readonly (readonly [number, () => void])[] = [
      [3, () => rmSync(file)],
      [2, () => writeFileSync(file, Buffer.alloc(4_096, 0xa5), { flag: "r+" })],
      [7, () => writeFileSync(file, Buffer.alloc(4_096, 0xa5).fill("SQLite format 3\0", 0, 16), { flag: "r+" })],
    ];
    for (const [status, damage] of damages) {
      damage();
      const refused = lcm(home, "status");
      assert.equal(refused.status, status);
      assert.ok(
        refused.stderr.replaceAll("\n", " ").includes(`the newest backup is ${basename(made)}`),
        refused.stderr,
      );
      assert.match(refused.stderr, /^hint: list backups with `lcm restore`/m);
      const listed = ok(home, "restore");
      assert.match(listed.stdout, /^backup .*\.backup-\w+ \(.+, current format\)$/m);
      assert.match(listed.stderr, /`lcm restore lcm\.db\.backup-\w+` shows what it would replace/);
      ok(home, "restore", basename(made), "--apply");
    }
    const { database, backups } = ok(home, "restore", "--json").json;
    assert.equal(database, file);
    assert.deepEqual(
      backups.map((copy: { kind: string; format: string }) => [copy.kind, copy.format]),
      [
        ["set-aside", "damaged"],
        ["set-aside", "no_database"],
        ["backup", "current"],
      ],
    );
    assert.ok(ok(home, "status", "--json").json.messages > 0);
  });

  it("show what would be replaced, and replace it only with --apply, setting aside what was there", () => {
    ok(place, "import", writeSession(place.state, '{"role":"user","content":"later"}\n', "later.jsonl"));
    const backup = join(place.state, "mine.db");
    const plan = ok(place, "restore", backup, "--json").json;
    assert.deepEqual([plan.dryRun, plan.applied], [true, false]);
    assert.deepEqual(
      [plan.plan.from.contents.messages, plan.plan.replaces.contents.messages],
      [messageCount, messageCount + 1],
    );
    assert.equal(ok(place, "status", "--json").json.messages, messageCount + 1);
    assert.match(ok(place, "restore", backup).stderr, /nothing was changed; pass --apply/);
    assert.equal(lcm(place, "restore", backup, "--dry-run", "--apply").status, 2);

    const { applied, result } = ok(place, "restore", backup, "--apply", "--json").json;
    assert.equal(applied, true);
    assert.equal(ok(place, "status", "--json").json.messages, messageCount);
    assert.equal(ok(place, "status", "--json", "--db", result.replaced).json.messages, messageCount + 1);
    assert.equal(lcm(place, "restore", join(place.state, "none.db")).status, 3);
    assert.equal(lcm(place, "restore", path).status, 2);
  });
});

describe("lcm forget", () => {
  const place = { state: createFolder() };
  const secret = "hunter2-Zx9";
  before(() => {
    const lines = [
      { role: "user", content: `my password is ${secret}, keep it` },
      { role: "assistant", content: [{ type: "toolCall", id: "c1", name: "login", arguments: { password: secret } }] },
      { role: "user", content: "something else" },
    ];
    ok(
      place,
      "import",
      writeSession(place.state, lines.map((line) => `${JSON.stringify(line)}\n`).join(""), "chat.jsonl"),
    );
    ok(place, "backup");
  });

  it("shows what contains a secret, without showing the secret, and changes nothing", () => {
    const words = ok(place, "forget", "--secret", secret);
    assert.match(words.stdout, /2 messages: msg_1-1, msg_1-2\n/);
    assert.match(words.stdout, /my password is \[forgotten\], keep it/);
    assert.match(
      words.stderr,
      /these backups may still contain it.*\n +.*lcm\.db\.backup-.*\nnothing was changed; pass --apply/,
    );
    const plan = ok(place, "forget", "--secret", secret, "--json").json;
    assert.deepEqual(
      [plan.dryRun, plan.applied, plan.plan.messages],
      [true, false, [1, 2].map((seq) => 2 ** 24 + seq)],
    );
    assert.ok(!`${words.stdout}${words.stderr}${JSON.stringify(plan)}`.includes(secret));
    assert.ok(ok(place, "export", "1").stdout.includes(secret));
  });

  it("removes it everywhere with --apply, and names the backups that may still contain it", () => {
    const run = ok({ ...place, input: `${secret}\n` }, "forget", "--secret-stdin", "--apply");
    assert.match(run.stderr, /these backups may still contain it.*\n +.*lcm\.db\.backup-/);
    assert.ok(!ok(place, "export", "1").stdout.includes(secret));
    assert.ok(!readFileSync(join(place.state, "lcm.db")).includes(secret), "not in the file either");
    assert.equal(readdirSync(place.state).filter((name) => name.includes(".backup-")).length, 1, "no new backup");
    assert.match(ok(place, "forget", "--secret", secret, "--apply").stdout, /not found anywhere/);
    assert.equal(ok(place, "doctor", "--json").json.sound, true);
  });

  it("removes one message, and keeps its position", () => {
    assert.match(
      ok(place, "forget", "--message", "msg_1-3").stdout,
      /forgetting msg_1-3 changes:\n +1 message: msg_1-3\n\n +msg_1-3 {2}something else/,
    );
    const { dryRun, applied, result } = ok(place, "forget", "1", "--message", "msg_1-3", "--apply", "--json").json;
    assert.deepEqual([dryRun, applied, result.kind], [false, true, "written"]);
    const { stdout } = ok(place, "messages", "1");
    assert.match(stdout, /\[forgotten\]/);
    assert.doesNotMatch(stdout, /something else/);
    const again = lcm(place, "import", join(place.state, "chat.jsonl"), "--again", "--json");
    assert.equal(again.json.files[0].messages, 0, "a replay does not bring it back");
  });

  it("reports that a message is forgotten already, and does nothing", () => {
    for (const args of [[], ["--apply"]]) {
      const run = ok(place, "forget", "--message", "msg_1-3", ...args);
      assert.deepEqual([run.stdout, run.stderr], ["msg_1-3 is already forgotten; nothing to do\n", ""]);
    }
    const { applied, plan } = ok(place, "forget", "--message", "msg_1-3", "--apply", "--json").json;
    assert.deepEqual([applied, plan.messages], [false, []]);
    const path = writeSession(place.state, '{"role":"user","content":"[forgotten]"}\n', "says.jsonl");
    ok(place, "import", path);
    const { id } = ok(place, "messages", "says", "--json").json.messages[0];
    assert.match(ok(place, "forget", "--message", String(id)).stdout, /^forgetting msg_\d+-\d+ changes/);
  });

  it("requires exactly one thing to forget", () => {
    assert.equal(lcm(place, "forget").status, 2);
    assert.equal(lcm(place, "forget", "--secret", "abc").status, 2);
    assert.equal(lcm(place, "forget", "--secret", "abcdef", "--message", "msg_1-1").status, 2);
    assert.equal(lcm(place, "forget", "--message", "msg_1-1", "--dry-run", "--apply").status, 2);
    const missing = lcm(place, "forget", "--message", "msg_1-999");
    assert.equal(missing.status, 3);
    assert.match(missing.stderr, /^error: there is no msg_1-999\nhint: list messages with `lcm messages /);
  });
});

describe("lcm doctor", () => {
  it("reports a healthy database, and how much it checked", () => {
    const place = { state: createFolder() };
    ok(place, "import", writeSession(place.state));
    assert.equal(ok(place, "doctor").stdout, `healthy: ${messageCount} messages, 0 summaries checked, no findings\n`);
    assert.deepEqual(ok(place, "doctor", "1", "--json").json, {
      sound: true,
      checked: { conversations: 1, messages: messageCount, summaries: 0 },
      findings: [],
    });
  });

  it("lists findings, exits with 1, and names the command that fixes them", () => {
    const place = { state: createFolder() };
    ok(place, "import", writeSession(place.state));
    const db = new DatabaseSync(join(place.state, "lcm.db"));
    db.exec("DELETE FROM context_items WHERE message_id = (1 << 24) + 3");
    db.close();
    const run = lcm(place, "doctor");
    assert.equal(run.status, 1);
    assert.match(
      run.stdout,
      /^\d+ errors\n {2}lost_message\n {4}conversation 1: the context does not reach msg_1-3\n {4}remedy: lcm doctor 1 --fix --apply\n/,
    );
    assert.match(run.stdout, /wrong_totals/);
    assert.match(run.stdout, /problems found: 10 messages, 0 summaries checked, \d+ errors\n$/);
    const { sound, findings } = lcm(place, "doctor", "--json").json;
    assert.equal(sound, false);
    assert.deepEqual(Object.keys(findings[0]).toSorted(), [
      "code",
      "conversation",
      "message",
      "remedy",
      "severity",
      "subject",
    ]);
  });

  /** Damage of every kind that --fix fixes, and one leaf that was linked to another's message. */
  const damage = (state: string): void => {
    const db = new DatabaseSync(join(state, "lcm.db"), { enableForeignKeyConstraints: false });
    db.exec(`UPDATE messages SET created_at = '2026-02-17 07:37:00' WHERE message_id = (1 << 24) + 2;
      UPDATE conversations SET context_tokens = 5;
      DELETE FROM context_items WHERE ordinal = (SELECT max(ordinal) FROM context_items);
      INSERT INTO context_items (conversation_id, ordinal, item_type, message_id) VALUES (1, 900, 'message', (1 << 24) + 3);
      INSERT INTO context_items (conversation_id, ordinal, item_type, summary_id) VALUES (1, 901, 'summary', 'sum_0123456789abcdef');
      UPDATE summaries SET descendant_count = 9;
      INSERT INTO message_parts (conversation_id, message_id, ordinal, part_type) VALUES (1, 77777, 0, 'text');
      DELETE FROM messages_fts WHERE rowid = (1 << 24) + 1`);
    db.close();
  };

  it("--fix shows what it would fix, does it with --apply after a backup, and checks again", () => {
    const place = { state: createFolder(), env: { COLUMNS: "80", LCM_FRESH_TAIL_COUNT: "2" } };
    ok(place, "import", writeSession(place.state));
    ok(place, "compact", "1", "--apply", "--force");
    damage(place.state);
    const shown = lcm(place, "doctor", "--fix");
    assert.equal(shown.status, 1);
    for (const line of linesOf(shown.stdout)) assert.ok(line.length <= 80, line);
    assert.match(
      shown.stdout,
      /^to fix\n {2}conversation 1\n(?: {4}.*\n)+ {2}the database file\n {4}1 orphaned row deleted permanently\n$/m,
    );
    assert.match(shown.stderr, /nothing was changed; pass --apply to do it/);
    const planned = lcm(place, "doctor", "--fix", "--json").json;
    assert.deepEqual([planned.dryRun, planned.applied, planned.result], [true, false, undefined]);
    assert.deepEqual(planned.plan.conversations[0].context, { added: 1, dropped: 2, reordered: false });
    assert.deepEqual(planned.plan.orphans, { rows: 1, searchEntries: 0 });

    const done = ok(place, "doctor", "--fix", "--apply");
    assert.match(done.stdout, /^fixed and checked again\n(?:.*\n)*healthy: /m);
    assert.match(done.stderr, /^backup: .*lcm\.db\.backup-/m);
    assert.match(done.stderr, /undo it with `lcm undo \d+ --apply`/);
    assert.equal(ok(place, "doctor", "--json").json.sound, true);
    assert.match(ok(place, "doctor", "--fix", "--apply").stdout, /nothing for --fix to do\n$/);
    const change = /lcm undo (\d+)/.exec(done.stderr)?.[1] ?? "";
    ok(place, "undo", change, "--apply");
    const again = ok(place, "doctor", "1", "--fix", "--apply", "--no-backup", "--json").json;
    assert.deepEqual([again.dryRun, again.applied, again.backup, again.result.sound], [false, true, null, true]);
    assert.ok(again.result.change > Number(change));
  });

  it("--fix does not write into a damaged file", () => {
    const place = { state: createFolder() };
    ok(place, "import", writeSession(place.state));
    damage(place.state);
    const path = join(place.state, "lcm.db");
    const db = new DatabaseSync(path);
    const { at } = db
      .prepare("SELECT (rootpage - 1) * page_size AS at FROM sqlite_schema, pragma_page_size WHERE name = 'journal'")
      .get() as { at: number };
    db.close();
    const file = openSync(path, "r+");
    writeSync(file, Buffer.of(99), 0, 1, at + 7); // What it says of its own free bytes.
    const before = readFileSync(path);
    for (const args of [["--fix"], ["--fix", "--apply"], ["1", "--fix", "--apply"]]) {
      const run = lcm(place, "doctor", ...args);
      assert.equal(run.status, 7, run.stdout);
      assert.match(run.stderr, /^error: the database is damaged, .*nothing was changed\nhint: .*`lcm restore`/);
      if (args[0] === "--fix") assert.match(run.stdout, /^ {4}the database is damaged: .+/m);
    }
    assert.ok(before.equals(readFileSync(path)));
    assert.deepEqual(
      readdirSync(place.state).filter((name) => name.includes("backup")),
      [],
      "a backup of it would displace a whole one",
    );
  });

  it("--apply without --fix is an error, and so is --dry-run with --apply", () => {
    const place = { state: createFolder() };
    ok(place, "import", writeSession(place.state));
    for (const args of [["--apply"], ["--fix", "--apply", "--dry-run"]])
      assert.equal(lcm(place, "doctor", ...args).status, 2);
  });
});

describe("lcm doctor over summaries", () => {
  const place = {
    state: createFolder(),
    env: { LCM_FRESH_TAIL_COUNT: "2", LCM_LEAF_CHUNK_TOKENS: "1000", LCM_LEAF_TARGET_TOKENS: "200" },
  };
  const ids = (): readonly string[] =>
    ok(place, "dag", "1", "--json").json.nodes.flatMap((node: { id?: string }) => node.id ?? []);
  before(() => {
    const said = Array.from({ length: 40 }, (_, n) => ({
      role: "user",
      content: `Pier ${n} was given to ferry ${n * 7}. `.repeat(20),
    }));
    writeFileSync(join(place.state, "chat.json"), JSON.stringify(said));
    ok(place, "import", join(place.state, "chat.json"));
    ok(place, "compact", "1", "--apply", "--passes", "3");
  });

  it("summarises what needs no action in one line, and lists it only on request", () => {
    assert.equal(
      ok(place, "doctor").stdout,
      "information\n  3 summaries were extracted without a model\n    remedy: lcm repair 1\n\n" +
        "healthy: 40 messages, 3 summaries checked, nothing to fix\n",
    );
    const named = ok(place, "doctor", "-v").stdout;
    for (const id of ids()) assert.match(named, new RegExp(`^ {4}conversation 1, ${id}$`, "m"));
    assert.equal(ok(place, "doctor", "--json").json.findings.length, 3);
  });

  it("explains a truncated summary, exits with 1, and names the command that fixes it", () => {
    const [first = ""] = ids();
    const db = new DatabaseSync(join(place.state, "lcm.db"));
    db.prepare("UPDATE summaries SET level = 'truncated' WHERE summary_id = ?").run(first);
    db.close();
    const run = lcm({ ...place, env: { ...place.env, COLUMNS: "80" } }, "doctor");
    assert.equal(run.status, 1);
    for (const line of linesOf(run.stdout)) assert.ok(line.length <= 80, line);
    assert.match(
      run.stdout.replace(/\n {4}/g, " "),
      /1 summary was cut short, because the model gave no usable answer; the sources are intact/,
    );
    assert.match(run.stdout, new RegExp(`^ {4}conversation 1, ${first}$`, "m"));
    assert.match(run.stdout, /^nothing lost or broken, but 1 warning: 40 messages, 3 summaries checked$/m);
    assert.match(run.stdout, /^ {4}remedy: lcm repair 1$/m);
  });
});

describe("a file that is not ours to touch", () => {
  it("is recognised, with its own exit status, and stays unchanged", () => {
    const place = { state: createFolder() };
    ok(place, "import", writeSession(place.state));
    const damaged = join(place.state, "damaged.db");
    copyFileSync(join(place.state, "lcm.db"), damaged);
    const file = openSync(damaged, "r+");
    writeSync(file, Buffer.alloc(8_192, 0x41), 0, 8_192, 100);
    truncateSync(damaged, 30_000);
    const newer = join(place.state, "newer.db");
    copyFileSync(join(place.state, "lcm.db"), newer);
    const db = new DatabaseSync(newer);
    db.exec("PRAGMA user_version = 999");
    db.close();
    const foreign = join(place.state, "foreign.db");
    const other = new DatabaseSync(foreign);
    other.exec("CREATE TABLE birds (name TEXT)");
    other.close();
    const text = writeSession(place.state, "just text\n", "text.db");
    for (const [path, status] of [
      [damaged, 7],
      [newer, 4],
      [foreign, 2],
      [text, 2],
    ] as const) {
      const before = readFileSync(path);
      for (const args of [["status"], ["doctor"], ["import", join(place.state, "session.jsonl")]]) {
        const run = lcm(place, ...args, "--db", path);
        assert.equal(run.status, status, `${args[0]} ${path}\n${run.stdout}${run.stderr}`);
        assert.match(run.stderr, /^error: .+\nhint: .+\n$/);
      }
      assert.ok(before.equals(readFileSync(path)), path);
    }
  });
});
