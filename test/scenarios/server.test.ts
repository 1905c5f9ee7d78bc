/** The command line on a PostgreSQL server: the same answers as on a file, and clear words where a server is different. */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { readAddress } from "../../src/core/base/database-place.ts";
import { openStore } from "../../src/store/open.ts";
import { openPool } from "../../src/store/postgres/pool.ts";
import { blocksOf } from "../guides/page.ts";
import { usePostgres } from "../support/shared-postgres.ts";
import { createFolder, lcm, ok, type Place, type Run } from "./program.ts";

const server = await usePostgres();
const state = createFolder();
/** The demo in a file, and the same on the server. */
const { kept } = ok({ state, env: { TMPDIR: state } }, "demo", "--keep", "--json").json;
const file = join(kept, "lcm.db");
const url = `${server.url}?schema=demo`;
const onServer = (env: Readonly<Record<string, string>> = {}): Place => ({
  state,
  env: { LCM_DATABASE_URL: url, ...env },
});
ok({ state }, "--db", file, "index");
ok({ state }, "move", "--from", file, "--to", url, "--apply");
ok(onServer(), "index");

const password = "a%20password";
const assertNoPassword = ({ stdout, stderr }: Run): void =>
  assert.doesNotMatch(stdout + stderr, /a%20password|:a password@|quokka-4711/);

describe("reading commands answer the same on a server as on a file", () => {
  const table: readonly (readonly string[])[] = [
    ["conversations", "--json"],
    ["messages", "1", "--limit", "5", "--json"],
    ["context", "1"],
    ["dag", "1"],
    ["stats", "--json"],
    ["grep", "harbour", "--json"],
    ["grep", "-e", "h[a-z]rbour", "--json"],
    ["recent", "--conversation", "1", "--since", "2020-01-01"],
    ["history", "--json"],
    ["pins", "1", "--json"],
    ["export", "1"],
    ["doctor", "--json"],
  ];
  for (const args of table)
    it(`lcm ${args.join(" ")}`, () => {
      const [here, there] = [lcm({ state }, "--db", file, ...args), lcm(onServer(), ...args)];
      assert.deepEqual([there.status, there.stdout], [here.status, here.stdout], there.stderr);
      assertNoPassword(there);
    });
});

describe("commands that change something", () => {
  const place = onServer;
  const summaries = (): readonly string[] => [
    ...new Set(ok(place(), "dag", "1", "--json").stdout.match(/sum_[0-9a-f]{16}/g)),
  ];

  it("make no backup, say so, and can be undone", () => {
    const before = ok(place(), "context", "1").stdout;
    const [summary = assert.fail()] = summaries();
    const dissolved = ok(place(), "dissolve", "1", "--summary", summary, "--apply");
    assert.match(dissolved.stderr, /no backup is made: the database is on a server/);
    const [, change = ""] = /lcm undo (\d+) --apply/.exec(dissolved.stderr) ?? [];
    assert.notEqual(ok(place(), "context", "1").stdout, before);
    ok(place(), "undo", change, "--apply");
    assert.equal(ok(place(), "context", "1").stdout, before);
  });

  it("fold, redact and check", () => {
    assert.equal(lcm(place(), "compact", "1", "--no-model", "--apply").status, 0);
    ok(place(), "forget", "--secret", "the crew", "--apply");
    assert.equal(lcm(place(), "grep", "the crew", "--json").status, 1);
    assert.match(ok(place(), "doctor").stdout, /healthy/);
  });

  it("archive conversations in a file, and bring them back from it", () => {
    const archive = join(state, "archive.db");
    const before = ok(place(), "export", "1").stdout;
    ok(place(), "prune", "1", "--archive", archive, "--apply");
    assert.equal(lcm(place(), "export", "1").status, 3);
    assert.equal(ok({ state }, "--db", archive, "export", "1").stdout, before);
    const [merged] = ok(place(), "import", archive, "--json").json.files;
    assert.deepEqual(merged.conversations, [{ from: 1, to: 1 }]);
    assert.equal(ok(place(), "export", "1").stdout, before);
    assert.match(ok(place(), "doctor").stdout, /healthy/);
    assert.deepEqual(ok(place(), "import", archive, "--json").json.files[0].known, [1]);
  });

  it("import a transcript into a schema that does not exist yet; nothing else creates one", () => {
    const fresh = { state, env: { LCM_DATABASE_URL: `${server.url}?schema=fresh` } };
    const missing = lcm(fresh, "status");
    assert.equal(missing.status, 3);
    assert.match(missing.stderr, /there is nothing of ours at postgres:\/\/.*\?schema=fresh/);
    const input = '{"role":"user","content":"a heron"}\n';
    ok({ ...fresh, input }, "import", "-", "--session", "s");
    assert.match(ok(fresh, "grep", "heron").stdout, /a heron/);
  });
});

describe("where the database is", () => {
  it("is shown without the password", () => {
    const status = ok(onServer(), "status");
    assert.match(status.stdout, /database +postgres:\/\/postgres@127\.0\.0\.1:\d+\/t_\w+\?schema=demo/);
    for (const run of [
      status,
      ok(onServer(), "settings"),
      ok(onServer(), "settings", "--json"),
      ok(onServer(), "status", "--json"),
    ])
      assertNoPassword(run);
    const hint = lcm({ state }, "--db", url, "dissolve", "1", "--summary", "sum_0000000000000000");
    assertNoPassword(hint);
  });

  it("is what --db says, then the variables, then lcm.db", () => {
    assert.match(ok(onServer({ LCM_DATABASE_PATH: file }), "settings").stdout, /database +postgres:/);
    assert.match(ok(onServer(), "--db", file, "settings").stdout, /database +\S*lcm\.db/);
    assert.match(
      ok({ state, env: { LCM_DATABASE_PATH: file } }, "--db", url, "settings").stdout,
      /database +postgres:/,
    );
  });
});

describe("what only a file can do", () => {
  const refused = (args: readonly string[], hint: RegExp): void => {
    const run = lcm(onServer(), ...args);
    assert.equal(run.status, 6, run.stderr);
    assert.match(run.stderr, hint);
    assertNoPassword(run);
  };
  it("names what to use instead", () => {
    refused(["backup"], /pg_dump, or its point-in-time recovery; `lcm move --to FILE`/);
    refused(["restore", "some.backup", "--apply"], /pg_restore, or its point-in-time recovery/);
    refused(["restore"], /pg_restore, or its point-in-time recovery/);
    refused(["adopt"], /convert the file first, then move it/);
  });
});

describe("a server that cannot be used is an error with a hint", () => {
  const fails = (given: string, status: number, message: RegExp, env: Readonly<Record<string, string>> = {}): void => {
    const run = lcm({ state, env }, "--db", given, "status");
    assert.equal(run.status, status, run.stderr);
    assert.match(run.stderr, message);
    assertNoPassword(run);
  };
  const changed = (change: (url: URL) => void): string => {
    const other = new URL(url);
    change(other);
    return other.href;
  };

  it("for a URL that cannot be read", () => {
    fails("postgres://u:quokka-4711@:none:/db", 2, /the URL of the database cannot be read/);
    fails(`${url}&schema=Not a schema`.replace("schema=demo&", ""), 2, /is not a usable name of a schema/);
  });
  it("for a server that is not there", () => {
    fails("postgres://u:quokka-4711@127.0.0.1:1/db", 6, /cannot be reached: .*\n.*check that the server runs/);
  });
  it("for a wrong password, which may also come from PGPASSWORD", () => {
    fails(
      changed((other) => (other.password = "quokka-4711")),
      5,
      /refused to let us in.*\n.*PGPASSWORD or PGPASSFILE/,
    );
    const bare = changed((other) => (other.password = ""));
    fails(bare, 5, /refused to let us in/, { PGPASSWORD: "quokka-4711" });
    ok({ state, env: { PGPASSWORD: decodeURIComponent(password) } }, "--db", bare, "status");
  });
  it("for a database that does not exist", () => {
    fails(
      changed((other) => (other.pathname = "/nowhere")),
      3,
      /there is no such database.*\n.*createdb/,
    );
  });
  it("and leaves nothing behind", () => {
    assert.ok(!existsSync(join(state, "lcm.db")));
  });
});

describe("the SQL of the guide", () => {
  it("runs on the server, as it is printed", async () => {
    await (await openStore(`${server.url}?schema=lcm`)).close();
    const guide = readFileSync(new URL("../../docs/guides/postgres.md", import.meta.url), "utf8");
    const blocks = blocksOf(guide).filter(({ language }) => language === "sql");
    assert.equal(blocks.length, 3);
    const pool = await openPool(readAddress(server.url), 1);
    const client = await pool.connect();
    try {
      for (const { text } of blocks) {
        await client.query("BEGIN");
        await client.query(text);
        await client.query("ROLLBACK"); // Roles are shared by all databases of a server.
      }
    } finally {
      client.release();
      await pool.end();
    }
  });
});
