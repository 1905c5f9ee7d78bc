/** `lcm web` as a person starts it: the link, what it serves, and how it ends. */

import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { pagesInMemory } from "../../scripts/pages.ts";
import type { Session } from "../../src/web/contract.ts";
import { makeRecordedTalk } from "../support/recorded-prompts.ts";
import { makeScratch } from "../support/scratch.ts";

const lcm = fileURLToPath(new URL("../../bin/lcm.js", import.meta.url));
const path = join(makeScratch("web-command"), "lcm.db");
before(async () => {
  await makeRecordedTalk(path);
});

interface Started {
  readonly child: ChildProcess;
  readonly link: string;
  /** What it has written until now. */
  readonly output: () => string;
}

async function start(...words: readonly string[]): Promise<Started> {
  const child = spawn(process.execPath, [lcm, "web", "--db", path, ...words], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  const linked = Promise.withResolvers<string>();
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      const [link] = /http:\/\/127\.0\.0\.1:\d+\/\?key=[\w-]{43}/.exec(output) ?? [];
      if (link !== undefined) linked.resolve(link);
    });
  child.on("exit", () => linked.reject(new Error(`it ended: ${output}`)));
  return { child, link: await linked.promise, output: () => output };
}

async function end({ child }: Started, signal: NodeJS.Signals = "SIGINT"): Promise<number | null> {
  const exit = once(child, "exit");
  child.kill(signal);
  const [status] = await exit;
  return status;
}

const sessionAt = async (link: string): Promise<Session> =>
  JSON.parse(await (await browse(link, "/api/session")).text());

async function browse(link: string, at: string): Promise<Response> {
  const opened = await fetch(link, { redirect: "manual" });
  const cookie = opened.headers.get("set-cookie")?.split(";")[0] ?? "";
  return await fetch(new URL(at, link), { headers: { cookie } });
}

describe("lcm web", () => {
  it("prints a link that serves the pages and the data, and ends on Ctrl-C", async () => {
    const started = await start();
    const document = await (await browse(started.link, "/")).text();
    const [, script = ""] = /<script type="module" src="([^"]+)"/.exec(document) ?? [];
    const asset = await browse(started.link, script);
    assert.deepEqual([asset.status, asset.headers.get("content-type")], [200, "text/javascript; charset=utf-8"]);
    const session = await sessionAt(started.link);
    assert.deepEqual([session.path, session.readOnly], [path, "it was started without --write"]);
    assert.equal(await end(started), 0);
    assert.match(started.output(), /nothing can be changed; Ctrl-C ends it/);
    await assert.rejects(fetch(started.link));
  });

  it("allows changes with --write, and prints JSON with --json", async () => {
    const started = await start("--write", "--json");
    const { url, port, write } = JSON.parse(started.output());
    assert.deepEqual([url, String(port), write], [started.link, new URL(started.link).port, true]);
    assert.equal((await sessionAt(started.link)).readOnly, null);
    assert.equal(await end(started, "SIGTERM"), 0);
  });

  it("says what to do if its port is taken, or there is no database", async () => {
    const other = createServer();
    await once(other.listen(0, "127.0.0.1"), "listening");
    const address = other.address();
    const port = typeof address === "object" ? String(address?.port) : "";
    await assert.rejects(start("--port", port), /another program listens on port \d+[\s\S]*--port/);
    other.close();
    const missing = join(makeScratch("web-none"), "none.db");
    await assert.rejects(start("--db", missing), /there is no database/);
  });
});

describe("the pages", () => {
  it("are built from the sources, under names of their content, within 150 kB compressed", async () => {
    const { document, files } = await pagesInMemory();
    let bytes = 0;
    for (const [name, { bytes: content, type }] of files) {
      assert.match(name, /-[A-Z0-9]{8}\.(?:js|css)(?:\.LEGAL\.txt)?$/);
      if (/javascript|css/.test(type)) bytes += gzipSync(content, { level: 9 }).length;
    }
    assert.ok(bytes > 0 && bytes <= 150_000, `${bytes} bytes`);
    for (const [, name = ""] of document.matchAll(/"\/assets\/([^"]+)"/g)) assert.ok(files.has(name), name);
  });

  it("load nothing of elsewhere", async () => {
    const { files } = await pagesInMemory();
    for (const [name, { bytes }] of files) {
      if (name.endsWith(".txt")) continue;
      const text = new TextDecoder().decode(bytes);
      const addresses = text.match(/\bhttps?:\/\/[\w.-]+/g) ?? [];
      // Names of XML vocabularies are no addresses.
      assert.deepEqual(
        addresses.filter((each) => !each.startsWith("http://www.w3.org")),
        [],
        name,
      );
    }
  });
});
