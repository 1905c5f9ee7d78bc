/** Two hundred turns of the real Pi in a small window: every request fits, nothing is lost, and Pi never compacts itself. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { estimateTokens } from "../../src/core/base/tokens.ts";
import { makeScratch } from "../support/scratch.ts";
import { startModelServer, type Asked } from "./model-server.ts";
import { assertStored, createPiHome, printPi, startPi, transcriptsOf, type PiHome, type RunningPi } from "./pi.ts";

const turns = 200;
const window = 32_000;

const server = await startModelServer();
after(async () => await server.close());

/** A summary is asked for without tools. */
const isTurn = ({ tools }: Asked): boolean => tools.length > 0;

const wordsOf = (turn: number, count: number): string =>
  Array.from(
    { length: count },
    (_, at) => `${["ledger", "harbour", "copper", "lantern", "willow"][(turn + at) % 5]}${turn * at}`,
  ).join(" ");

describe("guarantee 12: two hundred turns in a window of 32,000 tokens", () => {
  const home = createPiHome(makeScratch("pi-long"), server, { window, reserve: 4_000 });
  let summaries = 0;
  const summarise = (): string => `Part ${++summaries}: they counted ${wordsOf(summaries, 40)}.`;

  it("keep every request below the window, and every message stored and recallable", async (t) => {
    server.script((asked) => {
      if (!isTurn(asked)) return summarise();
      const turn = Number(/turn (\d+)/.exec(asked.prompt)?.[1]);
      const isCalling = turn % 4 === 0 && asked.results.length === 0;
      const calls = isCalling ? { calls: [{ name: "read", args: { path: "log.txt" } }] } : {};
      return { kind: "answer", text: `Answer ${turn}: its code is Q${turn * 7919}. ${wordsOf(turn, 60)}`, ...calls };
    });
    const pi = await startPi(home);
    const timesMs = await takeTurns(home, pi, turns);
    const requests = server.asked.filter(isTurn);
    assert.ok(requests.length >= turns * 1.25, `${requests.length} requests`);
    for (const { body } of requests) {
      const text = JSON.stringify(body);
      assert.ok(text.length / 4 <= window, `${text.length / 4} tokens by length`);
      assert.ok(estimateTokens(text) <= window, `${estimateTokens(text)} tokens by our estimate`);
    }
    const rows = transcriptsOf(home).flat();
    const compactions = rows.filter(({ type }) => type === "compaction");
    assert.ok(compactions.every(({ fromHook, details }) => fromHook && details.by === "lossless-claw"));
    assert.ok(
      server.asked
        .filter((asked) => !isTurn(asked))
        .every(({ system }) => system.startsWith("You keep the memory of a conversation")),
      "Pi itself never had to compact",
    );
    const shown =
      requests
        .at(-1)
        ?.messages.map(({ text }) => text)
        .join("\n") ?? "";
    assert.match(shown, /<summary /);
    assert.doesNotMatch(shown, /zebra31\b/, "the first turn is not shown any more");

    server.script((asked) => {
      if (!isTurn(asked)) return summarise();
      const call = { name: "lcm_grep", args: { pattern: asked.prompt.split(" ").at(-1) ?? "" } };
      return asked.results.length === 0 ? { kind: "answer", text: "", calls: [call] } : "found";
    });
    for (const turn of [1, 2, 100, turns]) {
      await pi.say(`find zebra${turn * 31}`);
      const found = server.asked.filter(isTurn).at(-1)?.results.join("\n") ?? "";
      assert.match(found, new RegExp(`In turn ${turn} the word is`));
    }
    await pi.end();
    await assertStored(home);

    server.script(({ body }) => (JSON.stringify(body).length > 4 * window ? { kind: "overflow" } : "Answer"));
    server.forget();
    assert.match(await printPi(home, ["--no-extensions", "-c", "-p", "without you"]), /Answer/);
    assert.equal(server.asked.length, 1, "Pi alone goes on from what we have stored as its compaction");

    const without = createPiHome(makeScratch("pi-alone"), server, { window: 500_000, isOurs: false });
    const alone = await startPi(without);
    const aloneMs = await takeTurns(without, alone, 20);
    await alone.end();
    const prompts = requests.map(({ body }) => JSON.stringify(body.messages));
    const kept = prompts.slice(1).map((text, at) => sharedLength(text, prompts[at] ?? "") / (prompts[at]?.length ?? 1));
    const largest = Math.max(...requests.map(({ body }) => Math.ceil(JSON.stringify(body).length / 4)));
    t.diagnostic(
      `${requests.length} requests, the largest of ${largest} tokens by length; ${(100 * mean(kept)).toFixed(1)}% of a ` +
        `request's bytes are sent again unchanged; a turn takes ${median(timesMs.slice(0, 20)).toFixed(0)} ms at first, ` +
        `${median(timesMs.slice(-20)).toFixed(0)} ms at the end, ${median(aloneMs).toFixed(0)} ms without us`,
    );
  });
});

describe("guarantee 12: one turn of two hundred tool calls in a window of 32,000 tokens", () => {
  it("shows the question word for word in every request, until the answer", async (t) => {
    const home = createPiHome(makeScratch("pi-one-turn"), server, { window, reserve: 4_000 });
    writeFileSync(join(home.work, "log.txt"), `${wordsOf(7, 120)}\n`);
    const calls = 200;
    let asked = 0;
    let summaries = 0;
    server.script((request) => {
      if (!isTurn(request)) return `Part ${++summaries}: the agent read ${wordsOf(summaries, 40)}.`;
      const call = { name: "read", args: { path: "log.txt", limit: 1 + (asked % 50) } };
      return { kind: "answer", text: `Step ${++asked}.`, ...(asked <= calls ? { calls: [call] } : {}) };
    });
    const pi = await startPi(home);
    server.forget();
    const question = `Read the log ${calls} times, and count "copper" & <lantern>. ${wordsOf(3, 200)}`;
    await pi.say(question);
    const requests = server.asked.filter(isTurn);
    assert.equal(requests.length, calls + 1);
    for (const [at, { body, messages }] of requests.entries()) {
      assert.ok(estimateTokens(JSON.stringify(body)) <= window, `request ${at + 1}`);
      const shown = messages.filter(({ role, text }) => role === "user" && text === question);
      assert.equal(shown.length, 1, `request ${at + 1}`);
    }
    await pi.say("Thank you.");
    await pi.end();
    const [stored] = await assertStored(home);
    assert.ok((stored?.totals.summaries ?? 0) > 3 && summaries > 3);
    t.diagnostic(`${requests.length} requests of one turn, ${stored?.totals.summaries} summaries`);
  });
});

async function takeTurns(home: PiHome, pi: RunningPi, count: number): Promise<readonly number[]> {
  writeFileSync(join(home.work, "log.txt"), `${wordsOf(7, 300)}\n`);
  const timesMs: number[] = [];
  for (let turn = 1; turn <= count; turn++) {
    const startedMs = performance.now();
    await pi.say(`In turn ${turn} the word is zebra${turn * 31}. ${wordsOf(turn, 80)}`);
    timesMs.push(performance.now() - startedMs);
  }
  return timesMs;
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

const median = (values: readonly number[]): number =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;

/** How many characters two texts have in common at their start. */
function sharedLength(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  return at;
}
