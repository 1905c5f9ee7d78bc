/** The real Pi while our side fails: killed, database locked, absent or full. Pi goes on, and nothing is lost afterwards. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, beforeEach, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { makeScratch } from "../support/scratch.ts";
import { hold } from "./hold.ts";
import { echo, startModelServer, type Asked } from "./model-server.ts";
import { assertStored, createPiHome, printPi, runPi, startPi, type RunningPi } from "./pi.ts";

const server = await startModelServer();
after(async () => await server.close());
beforeEach(() => {
  server.forget();
  server.script(echo);
});

const shownIn = (asked: Asked | undefined): string => asked?.messages.map(({ text }) => text).join("\n") ?? "";
const notes = ({ events }: RunningPi): readonly string[] =>
  events.flatMap(({ type, message }) => (type === "extension_ui_request" ? [message] : []));

describe("guarantee 1: Pi killed at any time", () => {
  it("brings with its next start what the store lacks", async () => {
    const home = createPiHome(makeScratch("pi-kill"), server);
    for (const pauseMs of [0, 40, 120]) {
      const pi = await startPi(home, ["-c"]);
      await pi.say(`before ${pauseMs}`);
      server.script(({ prompt }) => ({
        kind: "drip",
        answer: {
          kind: "answer",
          text: `slowly: ${prompt}`,
          calls: [{ name: "bash", args: { command: "sleep 0.05" } }],
        },
        pauseMs: 10,
        breaks: false,
      }));
      void pi.ask({ type: "prompt", message: `killed after ${pauseMs}` }).catch(() => undefined);
      await sleep(pauseMs);
      await pi.kill();
      server.script(echo);
    }
    await printPi(home, ["-c", "-p", "and now?"]);
    await assertStored(home);
    assert.match(shownIn(server.asked.at(-1)), /before 0[^]*before 40[^]*before 120[^]*and now\?/);
  });

  it("in print mode ends at once, although a summary is being written, and loses nothing", async () => {
    const env = { LCM_FRESH_TAIL_COUNT: "2", LCM_LEAF_CHUNK_TOKENS: "1000", LCM_LEAF_TARGET_TOKENS: "300" };
    const home = createPiHome(makeScratch("pi-print"), server, { window: 16_000, env });
    const answer = { kind: "answer", text: "Here it is." } as const;
    server.script(({ tools }) =>
      tools.length === 0 ? { kind: "hang" } : { kind: "drip", answer, pauseMs: 50, breaks: false },
    );
    for (let turn = 1; turn <= 4; turn++) await printPi(home, ["-c", "-p", `turn ${turn} ${"pebble ".repeat(1_500)}`]);
    assert.ok(
      server.asked.some(({ tools }) => tools.length === 0),
      "a summary was asked for",
    );
    await assertStored(home);
  });
});

describe("guarantee 38: our database in trouble", () => {
  it("locked by another process: Pi answers from its own messages, and later everything is stored", async () => {
    const home = createPiHome(makeScratch("pi-locked"), server);
    const pi = await startPi(home);
    await pi.say("one");
    const lock = await hold(home.database, "BEGIN IMMEDIATE");
    await pi.say("two");
    await pi.say("three");
    assert.match(shownIn(server.asked.at(-1)), /one[^]*two[^]*three/);
    await lock.release();
    await pi.say("four");
    assert.match(shownIn(server.asked.at(-1)), /one[^]*two[^]*three[^]*four/);
    assert.equal(notes(pi).length, 1, notes(pi).join("\n"));
    await pi.end();
    await assertStored(home);
  });

  it("impossible to open: Pi goes on, says so once, and fills it when it can", async () => {
    const home = createPiHome(makeScratch("pi-absent"), server, {});
    const folder = join(home.folder, "elsewhere");
    writeFileSync(folder, "a file where the folder should be");
    const broken = {
      ...home,
      database: join(folder, "lcm.db"),
      env: { ...home.env, LCM_DATABASE_PATH: join(folder, "lcm.db") },
    };
    const pi = await startPi(broken);
    for (const text of ["one", "two"]) await pi.say(text);
    assert.match(shownIn(server.asked.at(-1)), /one[^]*two/);
    assert.equal(notes(pi).length, 1, notes(pi).join("\n"));
    rmSync(folder);
    mkdirSync(folder);
    await pi.say("three");
    await pi.end();
    await assertStored(broken);

    // Removed between two starts: the next one brings everything again.
    rmSync(folder, { recursive: true });
    mkdirSync(folder);
    await printPi(broken, ["-c", "-p", "four"]);
    await assertStored(broken);
  });

  it("kept out by wrong settings: Pi goes on and shows the reason, in print mode too", async () => {
    const home = createPiHome(makeScratch("pi-wrong"), server, { env: { LCM_FRESH_TAIL_COUNT: "many" } });
    const { printed, errors } = await runPi(home, ["-p", "hello"]);
    assert.match(printed, /You said: hello/);
    assert.match(errors, /^lossless-claw: .*LCM_FRESH_TAIL_COUNT.*Pi goes on without it\.\n$/);
    const pi = await startPi(home);
    for (const text of ["one", "two"]) await pi.say(text);
    assert.equal(notes(pi).length, 1, notes(pi).join("\n"));
    await pi.end();
  });

  it("on a full disk: Pi goes on, and everything is stored once there is room", async (t) => {
    const home = createPiHome(makeScratch("pi-full"), server);
    const disk = join(home.folder, "disk");
    mkdirSync(disk);
    const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], { encoding: "utf8" });
    if (mounted.status !== 0) return t.skip(`no file system of its own without root: ${mounted.stderr.trim()}`);
    after(() => spawnSync("umount", ["-l", disk]));
    const database = join(disk, "lcm.db");
    const small = { ...home, database, env: { ...home.env, LCM_DATABASE_PATH: database } };
    const pi = await startPi(small);
    await pi.say("one");
    fill(dirname(database));
    for (const text of ["two", "three"]) await pi.say(`${text} ${"pebble ".repeat(3_000)}`);
    assert.match(shownIn(server.asked.at(-1)), /one[^]*two[^]*three/);
    assert.ok(notes(pi).length >= 1, "nothing failed");
    rmSync(join(disk, "filler"));
    await pi.say("four");
    await pi.end();
    await assertStored(small);
  });
});

function fill(folder: string): void {
  for (let size = 4_000_000; size >= 1_000; size = Math.floor(size / 2)) {
    try {
      writeFileSync(join(folder, "filler"), Buffer.alloc(size), { flag: "a" });
    } catch {
      // No more of that size; a part of it may have been written.
    }
  }
}
