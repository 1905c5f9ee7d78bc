/** `lcm proxy` and `lcm run` on a machine with other users, other programs and a network in between: processes as users start them. */

import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmodSync, globSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { withoutLinks, withoutModes, withoutShell } from "../support/platform.ts";
import { startRawProvider, type RawProvider } from "../support/raw-provider.ts";
import { makeScratch } from "../support/scratch.ts";
import { startStrictProvider, type StrictProvider } from "../support/strict-provider.ts";

const program = fileURLToPath(new URL("../../bin/lcm.js", import.meta.url));

interface Running {
  readonly child: ChildProcess;
  /** What it has printed so far. */
  readonly said: () => string;
  readonly ended: Promise<number | null>;
}

function start(folder: string, words: readonly string[], env: Record<string, string> = {}): Running {
  const all = { PATH: process.env["PATH"], HOME: folder, TMPDIR: folder, TZ: "UTC", ...env };
  const whole = [program, "--db", join(folder, "state", "lcm.db"), ...words];
  const child = spawn("sh", ["-c", 'umask 0; exec "$@"', "sh", process.execPath, ...whole], {
    env: all,
    stdio: "pipe",
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes) => (said += String(bytes)));
  return { child, said: () => said, ended: once(child, "close").then(([status]) => status as number | null) };
}

async function run(folder: string, words: readonly string[], env: Record<string, string> = {}) {
  const { said, ended } = start(folder, words, env);
  const status = await ended;
  return { status, said: said() };
}

/** Serves until the test is over; the test gets the address of an upstream. */
async function serving(
  folder: string,
  { words = [], env = {} }: { readonly words?: readonly string[]; readonly env?: Record<string, string> },
  test: (urlOf: (upstream: string) => string, said: string) => Promise<void>,
): Promise<void> {
  const running = start(folder, ["proxy", ...words], env);
  try {
    while (!running.said().includes("/openai  ")) {
      const ended = await Promise.race([running.ended, once(running.child.stdout ?? running.child, "data")]);
      if (typeof ended === "number") throw new Error(running.said());
    }
    const base = /http:\/\/127\.0\.0\.1:\d+\/[\w-]+/.exec(running.said())?.[0] ?? "";
    await test((upstream) => `${base}/${upstream}`, running.said());
  } finally {
    running.child.kill("SIGINT");
    await running.ended;
  }
}

const ports = { next: 18_800 + (process.pid % 100) * 10 };
const freePort = (): string => String(ports.next++);
const secretIn = (url: string): string => new URL(url).pathname.split("/")[1] ?? "";

const request = {
  method: "POST",
  headers: {
    "content-type": "application/json",
    "x-claude-code-session-id": "s1",
    "x-api-key": "sk-key-1",
    authorization: "Bearer sk-key-2",
    cookie: "session=sk-key-3",
  },
  body: JSON.stringify({ max_tokens: 9, tools: [{ name: "t" }], messages: [{ role: "user", content: "hello" }] }),
};

describe("other users of the machine", { skip: withoutShell }, () => {
  let provider: StrictProvider;
  let stranger: RawProvider;
  before(async () => {
    provider = await startStrictProvider();
    stranger = await startRawProvider();
  });
  after(async () => {
    await provider.close();
    await stranger.close();
  });
  const placeIn = (folder: string): string => join(folder, "state", "lcm-proxies", "lcm.db.json");
  const plant = (folder: string, place: object, mode: number): void => {
    mkdirSync(dirname(placeIn(folder)), { recursive: true, mode: 0o700 });
    writeFileSync(placeIn(folder), JSON.stringify(place));
    chmodSync(placeIn(folder), mode);
  };
  const planted = { port: 1, secret: "A".repeat(32), pid: 1 };

  it("can read nothing that is written, and no key is in it", { skip: withoutModes }, async () => {
    const folder = makeScratch("modes");
    const words = ["--port", freePort(), "--upstream", `m=${provider.url}`, "--upstream", `s=${stranger.url}`];
    stranger.answer = (socket) => socket.end("HTTP/1.1 401 No\r\ncontent-length: 24\r\n\r\nthe key sk-key-1 is bad.");
    await serving(folder, { words }, async (urlOf) => {
      assert.equal((await fetch(`${urlOf("m")}/v1/messages?key=sk-key-4`, request)).status, 200);
      assert.equal((await fetch(`${urlOf("s")}/v1/messages`, request)).status, 401);
      assert.equal((await fetch(`${urlOf("s")}/v1/messages`, { ...request, body: "sk-key-5" })).status, 401);
      const names = globSync("**/*", { cwd: folder });
      assert.ok(
        names.some((name) => name.endsWith("lcm.db-wal")) && names.some((name) => name.endsWith("lcm.db.json")),
      );
      for (const name of names) {
        const about = statSync(join(folder, name));
        assert.equal(about.mode & 0o077, 0, name);
        if (about.isFile()) assert.doesNotMatch(readFileSync(join(folder, name), "latin1"), /sk-key/, name);
      }
    });
    for (const name of globSync("**/*", { cwd: folder }))
      if (statSync(join(folder, name)).isFile())
        assert.doesNotMatch(readFileSync(join(folder, name), "latin1"), /sk-key/, name);
  });

  it("may have read a secret that was not private: it is not used again", { skip: withoutModes }, async () => {
    for (const [place, mode, isKept] of [
      [planted, 0o600, true],
      [planted, 0o644, false],
      [{ ...planted, secret: "" }, 0o600, false],
      [{ ...planted, secret: "a/b" }, 0o600, false],
    ] as const) {
      const folder = makeScratch("place");
      plant(folder, place, mode);
      await serving(folder, { words: ["--port", freePort()] }, async (urlOf) => {
        assert.equal(secretIn(urlOf("m")) === planted.secret, isKept);
        assert.equal(statSync(placeIn(folder)).mode & 0o777, 0o600);
      });
    }
  });

  it("cannot have another file overwritten by a link", { skip: withoutLinks }, async () => {
    const folder = makeScratch("link");
    mkdirSync(dirname(placeIn(folder)), { recursive: true, mode: 0o700 });
    writeFileSync(join(folder, "precious"), "mine");
    symlinkSync(join(folder, "precious"), placeIn(folder));
    await serving(folder, { words: ["--port", freePort()] }, async () => {
      assert.equal(readFileSync(join(folder, "precious"), "utf8"), "mine");
    });
  });

  it("get no secret if they take the port of a proxy that has ended", async () => {
    const folder = makeScratch("stale");
    const { port } = new URL(stranger.url);
    const gone = spawn(process.execPath, ["-e", ""]);
    await once(gone, "close");
    stranger.received = "";
    plant(folder, { ...planted, port: Number(port), pid: gone.pid }, 0o600);
    assert.equal((await run(folder, ["proxy", "status"])).status, 3);
    const taken = await run(folder, ["proxy", "--port", port]);
    assert.equal(taken.status, 4);
    assert.match(taken.said, new RegExp(`another program listens on port ${port}`));
    const older = makeScratch("older");
    plant(older, { port: Number(port), secret: planted.secret }, 0o600);
    assert.equal((await run(older, ["proxy", "status"])).status, 3);
    assert.equal(stranger.received, "");
  });
});

describe("where requests go", { skip: withoutShell }, () => {
  it("is never the proxy itself", async () => {
    const folder = makeScratch("loop");
    const port = freePort();
    const env = { ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}/secret/anthropic` };
    await serving(folder, { words: ["--port", port], env }, async (_, said) => {
      assert.match(said, /\/anthropic {2}\(https:\/\/api\.anthropic\.com\)/);
    });
  });

  it("is refused if a part of it would be lost, or hide a path of ours", async () => {
    const folder = makeScratch("upstreams");
    for (const upstream of [
      "run-x=http://a.example",
      "x=http://u:p@a.example",
      "x=http://a.example/?key=1",
      "x=http://",
    ])
      assert.equal((await run(folder, ["run", "--upstream", upstream, "--", "true"])).status, 2, upstream);
    const wrong = { ANTHROPIC_BASE_URL: "api.anthropic.com" };
    assert.equal((await run(folder, ["run", "--", "true"], wrong)).status, 2);
  });

  it("is not a proxy of the network, on the way to us; from us on it is what the environment says", async () => {
    const folder = makeScratch("network");
    const [provider, network] = [await startRawProvider(), await startRawProvider()];
    const script = join(folder, "agent.mjs");
    // Answers what it hears; Node's fetch goes through the network's proxy as other programs do.
    writeFileSync(
      script,
      `for (const name of ["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"])
         console.log((await fetch(process.env[name] + "/x", { headers: { "x-api-key": "sk-" + name } })).status);`,
    );
    const env = { HTTP_PROXY: network.url, NODE_USE_ENV_PROXY: "1", NO_PROXY: "other.example" };
    const upstreams = ["--upstream", `anthropic=${provider.url}`, "--upstream", "openai=http://provider.example/v1"];
    const { status, said } = await run(folder, ["run", ...upstreams, "--", process.execPath, script], env);
    assert.equal(status, 0, said);
    assert.match(said, /^200\n200\n/);
    assert.match(provider.received, /^GET \/x .*sk-ANTHROPIC_BASE_URL/s);
    assert.match(network.received, /^GET http:\/\/provider\.example\/v1\/x .*sk-OPENAI_BASE_URL/s);
    assert.doesNotMatch(network.received, /ANTHROPIC|127\.0\.0\.1/);
    await provider.close();
    await network.close();
  });
});

describe("a fault of ours", { skip: withoutShell }, () => {
  it("does not end the proxy, and is in its status", async () => {
    const folder = makeScratch("fault");
    const fault = join(folder, "fault.mjs");
    writeFileSync(fault, 'process.on("SIGUSR2", () => { throw new Error("a fault of ours"); });');
    const running = start(folder, ["proxy", "--port", freePort()], { NODE_OPTIONS: `--import ${fault}` });
    while (!running.said().includes("/openai  ")) await once(running.child.stdout ?? running.child, "data");
    const base = /http:\/\/127\.0\.0\.1:\d+\/[\w-]+/.exec(running.said())?.[0] ?? "";
    running.child.kill("SIGUSR2");
    let problems = "";
    for (let asked = 0; asked < 100 && !problems.includes("fault"); asked++)
      problems = await (await fetch(`${base}/status`)).text();
    assert.match(problems, /a fault of ours/);
    running.child.kill("SIGINT");
    assert.equal(await running.ended, 0);
  });
});
