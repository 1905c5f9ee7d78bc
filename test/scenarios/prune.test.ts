/** Prunes old conversations, browses them in their archive, and brings them back, as a person does. */

import assert from "node:assert/strict";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { createFolder, lcm, linesOf, ok } from "./program.ts";
import type { Place } from "./program.ts";
import { assertPrivate } from "../support/platform.ts";

const sessions = [
  { name: "spring", year: 2019, messages: 6 },
  { name: "summer", year: 2020, messages: 4 },
  { name: "today", year: 2026, messages: 2 },
] as const;

/** Two old conversations and a new one. */
function createPlace(): Place {
  const place = { state: createFolder() };
  const paths = sessions.map(({ name, year, messages }) => {
    const lines = Array.from({ length: messages }, (_, index) =>
      JSON.stringify({
        id: `${name}-${index}`,
        role: index % 2 === 0 ? "user" : "assistant",
        content: `the lighthouse of ${name}, part ${index}`,
        timestamp: `${year}-06-01T10:0${index}:00Z`,
      }),
    );
    const path = join(place.state, `${name}.jsonl`);
    writeFileSync(path, lines.join("\n"));
    return path;
  });
  ok(place, "import", paths[0] ?? "", "--session-key", "agent:main:cron:daily");
  ok(place, "import", ...paths.slice(1));
  return place;
}

const idsIn = (place: Place, ...args: readonly string[]): readonly number[] =>
  ok(place, "conversations", "--json", ...args)
    .json.conversations.map(({ id }: { id: number }) => id)
    .toSorted();

const backupsOf = ({ state }: Place): readonly string[] =>
  readdirSync(state).filter((name) => /^lcm\.db\.backup-\d+T\d+Z(-\d+)?$/.test(name));

const transcriptOf = (place: Place, id: number, ...args: readonly string[]): string =>
  ok(place, ...args, "export", String(id)).stdout;

describe("lcm prune", () => {
  it("shows what would be removed, and changes nothing without --apply and an action", () => {
    const place = createPlace();
    const dry = ok(place, "prune", "--older-than", "2022-01-01");
    assert.deepEqual(
      linesOf(dry.stdout).map((line) => line.replace(/\d+(\.\d+)? (K?B)/, "… $2")),
      [
        "id  conversation                                              messages  summaries    size  last activity",
        " 1  agent:main:cron:daily · the lighthouse of spring, part 0         6          0  … KB  2019-06-01 07:35",
        " 2  the lighthouse of summer, part 0                                 4          0  … KB  2020-06-01 07:33",
        "2 conversations with 10 messages and 0 summaries selected: about … KB of the database",
      ],
    );
    assert.match(
      dry.stderr,
      /nothing was changed; pass --archive FILE --apply to archive them, or --delete --apply to delete them/,
    );
    const half = lcm(place, "prune", "--older-than", "2022-01-01", "--apply");
    assert.equal(half.status, 2);
    assert.match(half.stderr, /^error: .+\nhint: pass --archive FILE .+, or --delete .+\n$/);
    for (const [args, words] of [
      [[], /no conversations selected/],
      [
        ["--older-than", "6m"],
        /--older-than takes days, weeks or years, not "6m"\nhint: for six months, pass 26w or 180d/,
      ],
      [["--older-than", "2999-01-01"], /in the future/],
      [["--match", "*", "--archive", "a.db", "--delete"], /exclude each other/],
      [["--match", "*", "--archive", " "], /needs a file name/],
    ] as const) {
      const run = lcm(place, "prune", ...args);
      assert.equal(run.status, 2, run.stdout);
      assert.match(run.stderr, words);
    }
    assert.equal(lcm(place, "prune", "99").status, 3);
    assert.match(ok(place, "prune", "--match", "nobody", "--delete", "--apply").stdout, /nothing to do/);
    assert.deepEqual(idsIn(place), [1, 2, 3]);
    assert.deepEqual(backupsOf(place), []);
  });

  it("archives them; the archive can be browsed, searched and imported again", () => {
    const place = createPlace();
    const transcripts = [1, 2].map((id) => transcriptOf(place, id));
    const archive = join(place.state, "old.db");
    const run = ok(place, "prune", "--older-than", "2022-01-01", "--archive", "old.db", "--apply");
    assert.match(run.stdout, new RegExp(`\narchived in ${RegExp.escape(archive)}: \\d+ KB\ndeleted 2 conversations`));
    assert.match(run.stderr, new RegExp(`restore them with \`lcm import ${RegExp.escape(archive)}\``));
    assertPrivate(archive);
    assert.equal(backupsOf(place).length, 1);
    assert.deepEqual(idsIn(place), [3]);
    assert.equal(lcm(place, "grep", "spring", "--json").json.hits.length, 0);
    ok(place, "doctor");

    assert.deepEqual(idsIn(place, "--db", archive), [1, 2]);
    assert.equal(ok(place, "--db", archive, "grep", "spring", "--json").json.hits.length, 6);
    assert.deepEqual(
      [1, 2].map((id) => transcriptOf(place, id, "--db", archive)),
      transcripts,
    );
    ok(place, "--db", archive, "doctor");
    const again = lcm(place, "prune", "3", "--archive", "old.db", "--apply");
    assert.equal(again.status, 4);
    assert.match(again.stderr, /old\.db already exists/);
    assert.equal(backupsOf(place).length, 1, "no backup is made without a change");

    assert.equal(ok(place, "import", archive).stdout, `${archive}: 2 conversations, 10 messages, 0 summaries\n`);
    assert.equal(ok(place, "import", archive).stdout, `${archive}: nothing new, 2 conversations already stored\n`);
    assert.deepEqual(idsIn(place), [1, 2, 3]);
    assert.deepEqual(
      [1, 2].map((id) => transcriptOf(place, id)),
      transcripts,
    );
    assert.equal(ok(place, "grep", "spring", "--json").json.hits.length, 6);
    ok(place, "doctor");
  });

  it("deletes them, and the backup made first restores them", () => {
    const place = createPlace();
    const transcript = transcriptOf(place, 1);
    const { json } = ok(place, "prune", "--match", "agent:*:cron:*", "--delete", "--apply", "--json");
    assert.deepEqual([json.dryRun, json.applied, json.plan.totals.conversations], [false, true, 1]);
    assert.equal(json.plan.conversations[0].lastActivityAt, "2019-06-01T10:05:00.000Z");
    assert.equal(json.result.archive, null);
    assert.ok(existsSync(json.backup));
    assert.deepEqual(idsIn(place), [2, 3]);
    assert.match(ok(place, "history").stdout, /prune .*cannot be undone/);
    assert.deepEqual(ok(place, "import", json.backup, "--json").json.files[0], {
      kind: "merged",
      path: json.backup,
      conversations: [{ from: 1, to: 1 }],
      known: [2, 3],
      messages: 6,
      summaries: 0,
      files: 0,
    });
    assert.equal(transcriptOf(place, 1), transcript);
    const kept = backupsOf(place).length;
    ok(place, "prune", "1", "--delete", "--apply", "--no-backup");
    assert.equal(backupsOf(place).length, kept);
  });

  it("merges an archive into another database beside what is there", () => {
    const [place, other] = [createPlace(), createPlace()];
    ok(place, "prune", "1", "2", "--archive", "old.db", "--apply");
    const archive = join(place.state, "old.db");
    const run = ok(other, "import", archive);
    assert.deepEqual(linesOf(run.stdout), [
      `${archive}: 2 conversations, 10 messages, 0 summaries`,
      "  its conversation 1 is now 4",
      "  its conversation 2 is now 5",
    ]);
    assert.equal(ok(other, "grep", "spring", "--json").json.hits.length, 12);
    ok(other, "doctor");
    const itself = lcm(other, "import", join(other.state, "lcm.db"));
    assert.equal(itself.status, 2);
    assert.match(itself.stderr, /is the database itself/);
    const named = lcm(other, "import", archive, "--session", "mine");
    assert.equal(named.status, 2);
    assert.match(named.stderr, /its conversations keep their names/);
  });
});
