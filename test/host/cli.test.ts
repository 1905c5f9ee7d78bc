/** Tests `openclaw lcm …`: our commands in the host's own program, with and without a running gateway. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { startGateway } from "./gateway.ts";
import type { CliRun, Gateway } from "./gateway.ts";
import { hostBin } from "./install.ts";
import { echo, startModelServer } from "./model-server.ts";
import type { ModelServer, Script } from "./model-server.ts";
import { ourPlugin } from "./plugin.ts";
import { assertStored } from "./stored.ts";

const session = "agent:main:cli";

const summary =
  "Anchor and bollard of the harbour were discussed: both are old. The user described them in turn, and the assistant " +
  "confirmed each. Nothing was decided, and no repair has been ordered.";

/** Requests of `lcm` itself are not streamed, unlike the host's. */
const summarise: Script = (asked) => {
  if (asked.body.stream === true) return echo(asked);
  const message = { role: "assistant", content: summary };
  const choices = [{ index: 0, message, finish_reason: "stop" }];
  const usage = { prompt_tokens: 90, completion_tokens: 9, total_tokens: 99 };
  const body = { id: "1", object: "chat.completion", created: 1, model: asked.model, choices, usage };
  return { kind: "body", status: 200, body: JSON.stringify(body) };
};

describe("openclaw lcm", () => {
  let server: ModelServer;
  let gateway: Gateway;
  /** Runs it, and expects this exit status. */
  const lcm = async (status: number, ...args: readonly string[]): Promise<CliRun> => {
    const run = await gateway.cli("lcm", ...args);
    assert.equal(run.status, status, `openclaw lcm ${args.join(" ")}\n${run.stdout}\n${run.stderr}`);
    return run;
  };

  before(async () => {
    server = await startModelServer();
    server.script(summarise);
    gateway = await startGateway({ server, plugins: ourPlugin({ freshTailCount: 2, formerKey: true }) });
    for (const word of ["anchor", "bollard", "capstan"])
      assert.equal(
        (await gateway.turn(session, `The ${word} of the harbour. ${"It is old. ".repeat(60)}`)).status,
        200,
      );
  });
  after(async () => await server.close());

  it("shows the same commands as lcm, under the host's name", async () => {
    const { stdout, stderr } = await lcm(0, "--help");
    assert.match(stdout, /^Usage: openclaw lcm \[options\] \[command\]$/m);
    for (const name of ["status", "grep", "compact", "doctor", "mcp"])
      assert.match(stdout, new RegExp(`^  ${name} `, "m"));
    assert.match(stdout, /^Exit status: 0 ok, 1 findings or no match, 2 invalid/m);
    assert.equal(stderr, "");
    assert.match((await lcm(0)).stderr, /^Usage: openclaw lcm /m);
    assert.match((await lcm(0, "grep", "--help")).stdout, /^ {2}\$ openclaw lcm grep /m);
  });

  it("reads what the gateway stores, with the plugin's settings and their source", async () => {
    const { json, stderr } = toJson(await lcm(0, "status", "--json"));
    assert.equal(stderr, "");
    assert.equal(json.path, gateway.database);
    assert.equal(json.messages, 6);
    assert.deepEqual(
      json.settings.map(({ key, value, source }: Json) => [key, value, source]),
      [["freshTailCount", 2, "plugin config"]],
    );
  });

  it("searches beside the gateway, and leaves stdout to the answer", async () => {
    const { json } = toJson(await lcm(0, "grep", "bollard", "--json"));
    assert.equal(json.hits.length, 2);
    assert.match((await lcm(0, "--json", "doctor")).stdout, /"code": "unknown_setting"[^]*formerKey/);
  });

  it("folds beside the gateway, which goes on with what was folded", async () => {
    assert.match((await lcm(0, "compact", session, "--force")).stdout, /4 messages/);
    const { json } = toJson(await lcm(0, "compact", session, "--apply", "--force", "--json"));
    assert.deepEqual(
      json.result.passes.map(({ sources, level }: Json) => [sources, level]),
      [[4, "normal"]],
    );
    server.script(echo);
    assert.equal((await gateway.turn(session, "and now?")).status, 200);
    const seen = server.asked.findLast(({ kind }) => kind === "turn")?.messages.map(({ text }) => text) ?? [];
    assert(
      seen.some((text) => text.includes(summary)),
      seen.join("\n"),
    );
    await assertStored(gateway, session);
  });

  it("exits with 2 on wrong usage, in our words, for people and for programs", async () => {
    const people = await lcm(2, "status", "--nosuch");
    assert.equal(people.stdout, "");
    assert.equal(people.stderr, "error: unknown option '--nosuch'\nhint: pass --help to see the usage\n");
    const programs = toJson(await lcm(2, "describe", "--json"));
    assert.deepEqual(programs.json, { error: { code: "invalid", message: "missing required argument 'id'" } });
    assert.equal(programs.stderr, "");
  });

  it("tolerates a reader that goes away", async () => {
    const { node, openclaw, path, compiled } = await hostBin();
    const state = { OPENCLAW_STATE_DIR: gateway.state, OPENCLAW_CONFIG_PATH: join(gateway.state, "openclaw.json") };
    const env = { PATH: path, HOME: gateway.home, TMPDIR: join(gateway.home, "tmp"), NODE_COMPILE_CACHE: compiled };
    const child = spawn(node, [openclaw, "lcm", "status"], {
      env: { ...env, ...state, CI: "1", NO_COLOR: "1", OPENCLAW_NO_RESPAWN: "1" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    child.stdout.destroy();
    const closed = once(child, "close");
    assert.equal(await textOf(child.stderr), "");
    assert.deepEqual(await closed, [0, null]);
  });

  it("works without a gateway, and reports when there is no database", async () => {
    await gateway.stop();
    assert.equal(toJson(await lcm(0, "grep", "capstan", "--json")).json.hits.length, 2);
    for (const end of ["", "-wal", "-shm"]) rmSync(join(gateway.state, `lcm.db${end}`), { force: true });
    const { stderr } = await lcm(3, "status");
    assert.match(stderr, /^error: there is no database at .*lcm\.db\nhint: .+\n$/);
  });
});

type Json = ReturnType<typeof JSON.parse>;

const toJson = ({ stdout, stderr }: CliRun): { readonly json: Json; readonly stderr: string } => ({
  json: JSON.parse(stdout),
  stderr,
});
