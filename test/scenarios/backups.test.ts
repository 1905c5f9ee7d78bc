/** What an operator sees of backups that are incomplete, files that others may read, and names that try to forge output. */

import assert from "node:assert/strict";
import { chmodSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { withoutModes, withoutShell } from "../support/platform.ts";
import { createFolder, lcm, ok } from "./program.ts";

const line = (content: string): string => `${JSON.stringify({ role: "user", content })}\n`;

/** A database with one message whose text is in a stored file. */
function createPlace() {
  const place = { state: createFolder(), env: { LCM_LARGE_FILE_TOKEN_THRESHOLD: "20" } };
  const session = join(place.state, "session.jsonl");
  writeFileSync(session, line("the heron waits at the weir ".repeat(20)) + line("and then?"));
  ok(place, "import", session);
  return place;
}

describe("guarantee 31: an incomplete backup", () => {
  it("is listed as such, refused before anything changes, and restored in part on request", () => {
    const place = createPlace();
    const { path } = ok(place, "backup", "--json").json;
    const files = join(place.state, "lcm-files");
    rmSync(`${path}.files`, { recursive: true });
    rmSync(files, { recursive: true });

    const listed = ok(place, "restore");
    assert.match(listed.stdout, /incomplete: 1 stored file missing\)/);
    assert.doesNotMatch(listed.stderr, /--apply/, "it is not proposed");
    assert.match(ok(place, "restore", path).stdout, /incomplete: 1 stored file missing/);
    const refused = lcm(place, "restore", path, "--apply");
    assert.equal(refused.status, 7);
    assert.match(
      refused.stderr.replaceAll("\n", " "),
      /error: .*incomplete: 1 of its 1 stored files.*hint: .*--partial/,
    );
    assert.deepEqual(
      readdirSync(place.state).filter((name) => name.includes("set-aside")),
      [],
    );

    const restored = ok(place, "restore", path, "--apply", "--partial");
    assert.match(restored.stdout, /^without 1 stored file that the backup does not hold$/m);
    assert.equal(lcm(place, "doctor").status, 1);
  });
});

describe("a backup", () => {
  it("is a database too: opened in its place, it has its stored files", () => {
    const place = createPlace();
    const to = join(place.state, "friday.db");
    ok(place, "backup", to);
    const there = { state: createFolder() };
    assert.match(ok(there, "--db", to, "doctor").stdout, /^healthy: 2 messages/m);
    assert.match(ok(there, "--db", to, "grep", "heron", "--scope", "files").stdout, /the heron waits/);
    // SQLite leaves them, empty, if the last connection could only read.
    const logs = ["friday.db-wal", "friday.db-shm"];
    assert.deepEqual(
      readdirSync(place.state).filter((name) => name.startsWith("friday") && !logs.includes(name)),
      ["friday.db", "friday.db.files"],
      "no other folder is made for its files",
    );
  });

  it("of a database that has lost a stored file says that it lacks it too", () => {
    const place = createPlace();
    assert.doesNotMatch(ok(place, "backup").stderr, /without/);
    rmSync(join(place.state, "lcm-files"), { recursive: true });
    assert.match(ok(place, "backup").stderr, /^without 1 stored file that the database itself has lost; `lcm doctor`/m);
    assert.equal(ok(place, "backup", "--json").json.lost, 1);
  });
});

describe("a stored file that is gone", () => {
  it("comes back from its transcript, as doctor says", () => {
    const place = createPlace();
    rmSync(join(place.state, "lcm-files"), { recursive: true });
    assert.match(
      lcm(place, "doctor").stdout.replaceAll(/\s+/g, " "),
      /and so can its transcript, with `lcm import --again`/,
    );
    ok(place, "import", "--again", join(place.state, "session.jsonl"));
    assert.match(ok(place, "doctor").stdout, /^healthy: 2 messages/m);
  });
});

describe("doctor", () => {
  it("reports a database that every user may read, and how to change that", { skip: withoutModes }, () => {
    const place = createPlace();
    ok(place, "doctor");
    const path = join(place.state, "lcm.db");
    chmodSync(path, 0o644);
    const found = lcm(place, "doctor");
    assert.equal(found.status, 1);
    assert.ok(found.stdout.includes(`chmod -R go= ${path}`), found.stdout);
  });
});

describe("the name of a file", () => {
  it("is printed without control characters", { skip: withoutShell }, () => {
    const place = { state: createFolder() };
    const name = "a\u001b[2Jb\u001b]0;title\u0007\rc.jsonl";
    const [session, other, backup] = [name, `x${name}`, `lcm.db.backup-${name}`].map((each) => join(place.state, each));
    writeFileSync(session ?? "", line("hello"));
    writeFileSync(other ?? "", "nothing of ours\n");
    writeFileSync(backup ?? "", "");
    const runs = [
      ok(place, "import", session ?? ""),
      lcm(place, "import", other ?? ""),
      lcm(place, "import", place.state),
      ok(place, "restore"),
      ok(place, "status"),
      lcm(place, "backup", backup ?? ""),
      lcm(place, "export", "1", "--output", session ?? ""),
      ok(place, "backup", `${backup ?? ""}.copy`),
    ];
    for (const { stdout, stderr } of runs) assert.doesNotMatch(stdout + stderr, /[\u0000-\u0008\u000b-\u001f\u007f]/);
    assert.match(runs[0]?.stdout ?? "", /a␛\[2Jb/);
  });
});
