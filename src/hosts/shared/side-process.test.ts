import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { eventually, patienceMs } from "../../../test/support/eventually.ts";
import type { JsonObject } from "../../core/base/json.ts";
import { createSideProcess, type SideProcess, type SideProcessOptions } from "./side-process.ts";

const script = fileURLToPath(new URL("../../../test/support/scripted-side-process.ts", import.meta.url));
const started: SideProcess[] = [];
after(async () => void (await Promise.all(started.map(async (side) => await side.close()))));

function start(options: Partial<SideProcessOptions> & { readonly args?: readonly string[] } = {}) {
  const notes: string[] = [];
  const side = createSideProcess({
    command: [process.execPath, script, ...(options.args ?? [])],
    env: process.env,
    greeting: { host: "test" },
    note: (line) => notes.push(line),
    ...options,
  });
  started.push(side);
  return { side, notes };
}

const soon = { timeoutMs: patienceMs };

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

describe("a side process", () => {
  it("is started by the first call, and answers", async () => {
    const { side } = start();
    assert.equal(side.pid, undefined);
    assert.deepEqual(await side.call("echo", { text: "hello" }, soon), { text: "hello" });
    assert.ok(side.pid);
  });

  it("passes errors on as they are, with their hint", async () => {
    const { side } = start();
    await assert.rejects(side.call("fail", {}, soon), {
      code: "conflict",
      message: "it is locked",
      hint: "wait a little",
    });
    await assert.rejects(side.call("break", {}, soon), { code: "unavailable", message: "x is not a function" });
  });

  it("may ask the host", async () => {
    const methods = { complete: async ({ prompt }: JsonObject) => await Promise.resolve(`re: ${prompt as string}`) };
    const { side } = start({ methods });
    assert.deepEqual(await side.call("ask", { prompt: "sum up" }, soon), { answer: "re: sum up" });
  });

  it("is started again once when it dies", async () => {
    const { side } = start();
    await assert.rejects(side.call("die", {}, soon), /the connection has ended/);
    await eventually(() => side.pid === undefined);
    assert.deepEqual(await side.call("echo", { n: 1 }, soon), { n: 1 });
    await assert.rejects(side.call("die", {}, soon), { code: "unavailable" });
    await eventually(() => side.pid === undefined);
    await assert.rejects(side.call("echo", {}, soon), /has ended twice; it is tried again later/);
  });

  it("that hangs costs the time of one call; the next ones hardly wait until it answers again", async () => {
    const { side } = start();
    await side.call("echo", {}, soon);
    await assert.rejects(side.call("deaf", { ms: 1_500 }, { timeoutMs: 50 }), /no answer to deaf within 50 ms/);
    await assert.rejects(side.call("deaf", { ms: 1_500 }, soon), /no answer to deaf within 100 ms/);
    // This one is answered as soon as the machine allows, and shows that the process lives.
    const echo = async () => await side.call("echo", { n: 2 }, soon).catch(() => null);
    for (let answer = await echo(); answer === null; answer = await echo()) await sleep(50);
    // Once the late answers have come, a slow one is waited for again.
    await eventually(async () => {
      await sleep(1_000);
      return (await side.call("deaf", { ms: 300 }, soon).catch(() => null)) === "at last";
    }, "a process that answers again is waited for");
  });

  it("that cannot start says why, once, in its own words", async () => {
    const { side, notes } = start({ args: ["broken"] });
    await assert.rejects(side.call("echo", {}, soon), /there is no such database/);
    await assert.rejects(side.call("echo", {}, soon), /there is no such database/);
    assert.deepEqual(notes, ["lossless-claw is not in use: there is no such database"]);
  });

  it("whose program is missing says so", async () => {
    const { side, notes } = start({ command: ["no-such-node-anywhere"] });
    await assert.rejects(side.call("echo", {}, soon), /no-such-node-anywhere does not start/);
    assert.match(notes.join("\n"), /not in use: no-such-node-anywhere does not start/);
  });

  it("of another version is not used", async () => {
    const { side, notes } = start({ args: ["7"] });
    await assert.rejects(side.call("echo", {}, soon), /speaks protocol 7, and this plugin 1/);
    assert.equal(notes.length, 1);
    await eventually(() => side.pid === undefined);
  });

  it("that never says hello is given up", async () => {
    const { side } = start({ args: ["mute"], startMs: 500 });
    await assert.rejects(side.call("echo", {}, soon), /no answer to hello within 500 ms/);
  });

  it("ends when it is closed, and takes no more calls", async () => {
    const { side } = start();
    await side.call("echo", {}, soon);
    const { pid } = side;
    await side.close();
    assert.equal(isAlive(pid!), false);
    await assert.rejects(side.call("echo", {}, soon), /closed/);
  });

  it("ends when its client is killed", async () => {
    const client = `
      import { createSideProcess } from ${JSON.stringify(new URL("side-process.ts", import.meta.url).href)};
      const side = createSideProcess({ command: ${JSON.stringify([process.execPath, script])}, env: process.env, greeting: {}, note() {} });
      await side.call("echo", {}, { timeoutMs: 120_000 });
      process.stdout.write(String(side.pid), () => process.kill(process.pid, "SIGKILL"));`;
    const { stdout } = spawnSync(process.execPath, ["--input-type=module-typescript", "--eval", client], {
      encoding: "utf8",
    });
    assert.match(stdout, /^\d+$/);
    await eventually(() => !isAlive(Number(stdout)));
  });
});
