import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { makeScratch } from "../../test/support/scratch.ts";
import { openSqlite } from "../store/sqlite/store.ts";

const program = fileURLToPath(new URL("../../bin/lcm.js", import.meta.url));

describe("lcm serve", () => {
  it("ends with its client, even while another process keeps the database locked", async () => {
    const state = makeScratch("serve");
    const path = join(state, "lcm.db");
    await (await openSqlite({ path })).close();
    using other = new DatabaseSync(path);
    other.exec("BEGIN EXCLUSIVE");
    const env = { PATH: process.env["PATH"], HOME: state, OPENCLAW_STATE_DIR: state };
    const serve = spawn(process.execPath, [program, "serve"], { env, stdio: ["pipe", "pipe", "ignore"] });
    const ask = (id: number, method: string, params: object): boolean =>
      serve.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    ask(1, "hello", { protocol: 1, host: "opencode", words: {} });
    await once(serve.stdout, "data");
    const session = { host: "opencode", sessionId: "s" };
    const info = { id: "m", sessionID: "s", role: "user", time: { created: 1 } };
    ask(2, "store", { session, rows: [{ info, parts: [] }], from: 0 });
    serve.stdin.end();
    const [status] = await once(serve, "exit");
    assert.equal(status, 0);
  });
});
