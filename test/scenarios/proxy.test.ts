/** `lcm run` and `lcm proxy` as a user runs them. */

import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { Check } from "typebox/schema";
import { proxyCommand } from "../../src/cli/commands/proxy.ts";
import { makeScratch } from "../support/scratch.ts";
import { startStrictProvider, type StrictProvider } from "../support/strict-provider.ts";

const schema = proxyCommand.json;
const program = fileURLToPath(new URL("../../bin/lcm.js", import.meta.url));

/** A program that asks a model once, and ends with the status that it is given. */
const agent = `
const base = process.env.ANTHROPIC_BASE_URL;
const body = { model: "m", max_tokens: 9, tools: [{ name: "t" }], messages: [{ role: "user", content: process.argv[2] }] };
const headers = { "content-type": "application/json", "x-api-key": "sk-1", "x-claude-code-session-id": "s1" };
const answer = await fetch(base + "/v1/messages", { method: "POST", headers, body: JSON.stringify(body) });
console.log(answer.status, (await answer.json()).content[0].text);
if (process.argv[3] === "wait") setInterval(() => undefined, 1_000);
else process.exit(Number(process.argv[3] ?? 0));
`;

interface Ran {
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

describe("a program through the proxy", () => {
  const folder = makeScratch("lcm-run");
  const [script, database] = [join(folder, "agent.mjs"), join(folder, "lcm.db")];
  let provider: StrictProvider;

  before(async () => {
    writeFileSync(script, agent);
    provider = await startStrictProvider();
  });
  const children: ChildProcess[] = [];
  after(async () => {
    for (const child of children) child.kill("SIGKILL");
    await provider.close();
  });

  const start = (...words: readonly string[]): ChildProcess => {
    const env = { PATH: process.env["PATH"], HOME: folder, ANTHROPIC_BASE_URL: provider.url, TZ: "UTC" };
    const all = [program, ...(words[0] === "--db" ? [] : ["--db", database]), ...words];
    const child = spawn(process.execPath, all, { env, stdio: ["ignore", "pipe", "pipe"] });
    children.push(child);
    return child;
  };
  const endOf = async (child: ChildProcess): Promise<Ran> => {
    let [out, err] = ["", ""];
    child.stdout?.on("data", (bytes) => (out += String(bytes)));
    child.stderr?.on("data", (bytes) => (err += String(bytes)));
    const [status] = await once(child, "close");
    return { status, out, err };
  };
  const lcm = async (...words: readonly string[]): Promise<Ran> => await endOf(start(...words));

  /** A report is written a moment later. */
  const statusWith = async (words: string): Promise<string> => {
    for (let tries = 0; ; tries++) {
      const { out } = await lcm("proxy", "status");
      if (out.includes(words) || tries === 50) return out;
    }
  };

  it("gets its answer, its words and its own exit status", async () => {
    const { status, out } = await lcm("run", "--", process.execPath, script, "hello there", "7");
    assert.match(out, /^200 Reply \d+: hello there/);
    assert.equal(status, 7);
    assert.equal(provider.requests.at(-1)?.headers["x-api-key"], "sk-1");
    assert.match((await lcm("messages", "1")).out, /hello there[\s\S]*Reply/);
  });

  it("is ended by the signal that ends us", async () => {
    const child = start("run", "--store-only", "--", process.execPath, script, "wait for it", "wait");
    const ended = endOf(child);
    for await (const piece of child.stdout ?? []) if (String(piece).includes("200")) break;
    child.kill("SIGTERM");
    assert.equal((await ended).status, 128 + 15);
  });

  it("that is not there is reported", async () => {
    const { status, err } = await lcm("run", "--", "no-such-agent");
    assert.equal(status, 3);
    assert.match(err, /no-such-agent could not be started/);
    assert.equal((await lcm("run", "--upstream", "nonsense", "--", "x")).status, 2);
  });

  it("is seen while it runs, and afterwards", async () => {
    const child = start("run", "--", process.execPath, script, "look at me", "wait");
    const ended = endOf(child);
    for await (const piece of child.stdout ?? []) if (String(piece).includes("200")) break;
    const last = async () => JSON.parse((await lcm("proxy", "status", "--json")).out).proxies.at(-1);
    let report = await last();
    for (let tries = 0; tries < 50 && !(report.sessions[0]?.tokensInput > 0); tries++) report = await last();
    assert.equal(report.isRunning, true);
    assert.equal(report.pid, child.pid);
    assert.match(report.program, /^node/);
    const { session, turns, requests, whyUnchanged } = report.sessions[0];
    assert.deepEqual({ session, turns, requests }, { session: "s1", turns: 1, requests: 1 });
    assert.match(whyUnchanged, /everything fits/);
    child.kill("SIGTERM");
    await ended;
    assert.equal((await last()).isRunning, false);
    assert.match((await lcm("proxy", "status")).out, /node, since .*: ended \d/);
    const private_ = join(folder, "lcm-proxies");
    for (const name of readdirSync(private_)) assert.equal(statSync(join(private_, name)).mode & 0o777, 0o600);
    assert.equal(statSync(private_).mode & 0o777, 0o700);
  });

  it("may use a proxy that stays, whose address is private and the same after a restart", async () => {
    assert.equal((await lcm("--db", join(folder, "other.db"), "proxy", "status")).status, 3);
    const urls: string[] = [];
    for (const number of [1, 2]) {
      // The second time it has the same port without being told.
      const child = start("proxy", ...(number === 1 ? ["--port", "18717"] : []));
      let out = "";
      for await (const piece of child.stdout ?? []) {
        out += String(piece);
        if (out.includes("openai")) break;
      }
      const url = /http:\S+anthropic/.exec(out)?.[0] ?? "";
      urls.push(url);
      assert.equal(statSync(join(folder, "lcm-proxies", "lcm.db.json")).mode & 0o777, 0o600);
      const body = JSON.stringify({
        max_tokens: 9,
        tools: [{}],
        messages: [{ role: "user", content: `number ${number}` }],
      });
      const headers = { "content-type": "application/json", "x-claude-code-session-id": `p${number}` };
      assert.equal((await fetch(`${url}/v1/messages`, { method: "POST", headers, body })).status, 200);
      const shown = await statusWith(`claude-code p${number}`);
      assert.match(shown, new RegExp(`claude-code p${number}: 1 turn, 1 request, `));
      const told = JSON.parse((await lcm("proxy", "status", "--json")).out);
      assert.ok(schema !== null && Check(schema, told), JSON.stringify(told));
      const second = await lcm("proxy", "--port", "18718");
      assert.equal(second.status, 4, "one proxy per database");
      assert.match(second.err, /a proxy of this database is running on port 18717/);
      const elsewhere = await lcm("--db", join(folder, "other.db"), "proxy", "--port", "18717");
      assert.equal(elsewhere.status, 4, "another database, or another user");
      assert.match(elsewhere.err, /another program listens on port 18717[\s\S]*--port/);
      child.kill("SIGINT");
      await once(child, "close");
    }
    assert.equal(urls[0], urls[1]);
  });
});
