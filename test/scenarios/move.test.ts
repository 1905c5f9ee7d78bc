/** Moving between a file and a server: nothing lost, nothing doubled, whatever interrupts it. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describe, it } from "node:test";
import { openStore } from "../../src/store/open.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { copyFixture } from "../support/older-database.ts";
import { homeAt } from "../support/platform.ts";
import { createHost, toAppendable, user } from "../support/scripted-host.ts";
import { usePostgres } from "../support/shared-postgres.ts";
import { bare, bin, createFolder, lcm, ok } from "./program.ts";

const server = await usePostgres();
let schemas = 0;
const newUrl = (): string => `${server.url}?schema=moved_${++schemas}`;

/** A file with conversations that have files, summaries and a journal. */
async function createFile(conversations: number, messages = 12) {
  const state = createFolder();
  const path = join(state, "lcm.db");
  const store = await openSqlite({ path, housekeeping: false });
  for (let at = 0; at < conversations; at++) {
    const { id } = await store.open({ sessionId: `s${at}`, sessionKey: `agent:main:s${at}` });
    const host = createHost(`h${at}`);
    for (let said = 0; said < messages; said++) host.says(user(`heron ${said} of ${at} \0 and \ud800 half`));
    host.notes("custom", { kept: true });
    await store.append(id, host.entries.map(toAppendable), { turnKey: "t" });
    for (const size of [40, 2 ** 20 + 9]) {
      const content = `file of ${at} `.padEnd(size, "x");
      await store.saveFile({
        conversation: id,
        name: "notes.txt",
        mimeType: null,
        encoding: "utf8",
        exploration: null,
        content,
      });
    }
    const run = (await store.context(id)).slice(0, 4);
    const text = { text: "a summary", tokens: 1, level: "normal", model: null, previousContext: null } as const;
    const folded = await store.fold(id, run, { ...text, fileIds: [] });
    assert.equal(folded.kind, "written");
    await store.setTitle(id, `number ${at}`);
  }
  await store.close();
  return { state, path };
}

const exportAll = (state: string, db: string): readonly string[] => {
  const conversations: readonly { readonly id: number }[] = ok({ state }, "--db", db, "conversations", "--json").json
    .conversations;
  return conversations.map(({ id }) => ok({ state }, "--db", db, "export", String(id)).stdout);
};

describe("a file of the older program", () => {
  for (const version of ["0.1.0", "0.15.3"] as const)
    it(`of version ${version} is adopted, moved to a server and back, and its export is the same to the byte`, () => {
      const state = createFolder();
      copyFixture(version, state);
      const [path, url, back] = [join(state, "lcm.db"), newUrl(), join(state, "back.db")];
      assert.equal(lcm({ state }, "move", "--to", url).status, 4, "it must be adopted first");
      ok({ state }, "adopt");
      ok({ state }, "move", "--to", url, "--apply");
      ok({ state }, "move", "--from", url, "--to", back, "--apply");
      const exported = exportAll(state, path);
      assert.ok(exported.join("").length > 1_000);
      assert.deepEqual(exportAll(state, url), exported);
      assert.deepEqual(exportAll(state, back), exported);
      for (const db of [url, back]) assert.match(ok({ state }, "--db", db, "doctor").stdout, /healthy/);
    });
});

describe("a move", () => {
  it("shows first what it would do, and creates nothing", async () => {
    const { state, path } = await createFile(2);
    const url = newUrl();
    const { dryRun, applied, plan } = ok({ state }, "--db", path, "move", "--to", url, "--json").json;
    assert.deepEqual(
      [dryRun, applied, plan.conversations.length, plan.conversations[0].isThere],
      [true, false, 2, false],
    );
    const { status, stderr } = lcm({ state }, "--db", url, "status");
    assert.equal(status, 3);
    assert.match(
      stderr.replaceAll("\n", " "),
      /`lcm move --from FILE --to '?postgres:.*` or `lcm --db '?postgres:\S* import`/,
    );
  });

  it("brings everything, files of any size too, and back", async () => {
    const { state, path } = await createFile(2);
    const [url, back, shared] = [newUrl(), join(state, "back.db"), join(state, "shared")];
    const env = { LCM_SHARED_FILES: shared };
    const moved = ok({ state, env }, "--db", path, "move", "--to", url, "--apply", "--json").json.result;
    assert.deepEqual([moved.moved, moved.files, moved.missingFiles, moved.left], [2, 4, 0, 0]);
    assert.match(
      ok({ state, env }, "--db", path, "move", "--to", url).stdout.replaceAll("\n", " "),
      /every conversation of .* is at .* already/,
    );
    const returned = ok({ state, env }, "--db", url, "move", "--to", back, "--apply");
    assert.match(returned.stderr.replaceAll("\n", " "), /`lcm index --db \S*back\.db` builds it now/);
    const [one, other] = [await openSqlite({ path, readOnly: true }), await openSqlite({ path: back, readOnly: true })];
    const remote = await openStore(url, { sharedFiles: shared });
    for (const { id } of await one.conversations()) {
      const pictures = [one, remote, other].map(async (store) => ({
        conversation: await store.conversation(id),
        context: await store.context(id),
        messages: await store.messages({ conversation: id }),
        entries: await store.entries(id, 0, 1_000),
        summaries: await store.summaries({ conversation: id }),
        files: await store.files(id),
        contents: await Promise.all((await store.files(id)).map(async (each) => await store.fileContent(each.id))),
      }));
      const [first, ...others] = await Promise.all(pictures);
      for (const picture of others) assert.deepEqual(picture, first);
    }
    for (const store of [one, remote, other]) await store.close();
    assert.match(ok({ state, env }, "--db", url, "doctor").stdout, /healthy/);
    const fresh = ok(
      { state, env, input: '{"role":"user","content":"after the move"}\n' },
      "--db",
      url,
      "import",
      "-",
      "--session",
      "new",
    );
    assert.match(fresh.stdout, /conversation 3/, "numbers go on");
  });

  it("that was killed at any moment is continued, and nothing is doubled", async () => {
    const { state, path } = await createFile(6, 300);
    const url = newUrl();
    const args = ["--db", path, "move", "--to", url, "--apply"];
    for (let kill = 0; kill < 3; kill++) {
      const options = {
        cwd: state,
        env: { ...bare, ...homeAt(state), OPENCLAW_STATE_DIR: state },
        stdio: "ignore",
      } as const;
      const program = spawn(process.execPath, [bin, ...args], options);
      const closed = once(program, "close");
      const wanted = 2 * (kill + 1);
      for (let there = 0; there < wanted && program.exitCode === null;) there = await conversationsAt(url);
      program.kill("SIGKILL");
      await closed;
    }
    const { result } = ok({ state }, ...args, "--json").json;
    assert.equal(result.moved + result.alreadyThere, 6);
    assert.ok(result.alreadyThere >= 2, "what the killed runs had moved stayed");
    assert.deepEqual(result.differing, []);
    assert.deepEqual(exportAll(state, url), exportAll(state, path));
    assert.match(ok({ state }, "--db", url, "doctor").stdout, /healthy/);
  });

  it("names what was changed since it was moved, and refuses a target with other conversations", async () => {
    const { state, path } = await createFile(1);
    const url = newUrl();
    ok({ state }, "--db", path, "move", "--to", url, "--apply");
    const store = await openStore(url);
    const [{ id } = assert.fail()] = await store.conversations();
    await store.append(id, [toAppendable(createHost("later").says(user("said on the server")))]);
    await store.close();
    const again = lcm({ state }, "--db", path, "move", "--to", url, "--apply");
    assert.equal(again.status, 1, again.stderr);
    assert.match(again.stderr, /conversation 1 differs in \d rows? of messages/);
    const { state: elsewhere, path: other } = await createFile(2);
    const refused = lcm({ state: elsewhere }, "--db", other, "move", "--to", url, "--apply");
    assert.equal(refused.status, 4);
    assert.match(refused.stderr, /has other conversations .*\n.*import the file there instead/);
    const imported = ok({ state: elsewhere }, "--db", url, "import", other, "--json").json.files[0];
    assert.equal(imported.conversations.length, 2);
    assert.match(ok({ state }, "--db", url, "doctor").stdout, /healthy/);
  });

  it("is between a file and a server", async () => {
    const { state, path } = await createFile(1);
    const file = lcm({ state }, "--db", path, "move", "--to", join(state, "other.db"));
    assert.deepEqual([file.status, /backup FILE/.test(file.stderr)], [2, true], file.stderr);
    const servers = lcm({ state }, "--db", newUrl(), "move", "--to", newUrl());
    assert.deepEqual([servers.status, /pg_dump/.test(servers.stderr)], [2, true], servers.stderr);
  });
});

/** 0 while there is nothing yet. */
async function conversationsAt(url: string): Promise<number> {
  const store = await openStore(url);
  try {
    return (await store.status()).conversations;
  } finally {
    await store.close();
  }
}
