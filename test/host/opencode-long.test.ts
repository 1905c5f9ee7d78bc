/** Two hundred turns of the real OpenCode in a small window: every request fits, and nothing is out of reach. */

import assert from "node:assert/strict";
import { after, before, describe, it, type TestContext } from "node:test";
import { startModelServer, type Asked, type ModelServer } from "./model-server.ts";
import { assertStored, obey, tokensOfRequest, turnsOf } from "./opencode-script.ts";
import {
  createHome,
  databaseRows,
  openCodePlugin,
  removeHome,
  startOpenCode,
  type Home,
  type HomeOptions,
} from "./opencode-server.ts";

const turns = 200;
const window = 32_000;

let model: ModelServer;
const homes: Home[] = [];
before(async () => {
  model = await startModelServer();
  model.script(obey);
});
after(async () => {
  await model.close();
  for (const home of homes) removeHome(home);
});

/** Says that many things, and returns the milliseconds that each turn took. */
async function talk(options: Partial<HomeOptions>) {
  const home = createHome({ modelUrl: model.url, ...options });
  homes.push(home);
  const host = await startOpenCode(home);
  const session = await host.createSession();
  const took: number[] = [];
  for (let turn = 1; turn <= turns; turn++) {
    const call = turn % 5 === 0 ? `\nCALL bash {"command":"seq 1 120","description":"count"}` : "";
    const started = performance.now();
    await host.prompt(session, `turn ${turn}: the word for drawer ${turn} is quince-${turn}.${call || " SAY 150"}`);
    took.push(performance.now() - started);
  }
  return { home, host, session, took };
}

describe("a long session of OpenCode", () => {
  it(`${turns} turns fit a window of ${window} tokens, and the first is found as well as the last`, async (test) => {
    const { home, host, session, took } = await talk({
      plugin: openCodePlugin(),
      limit: { context: window, output: 2_000 },
    });
    try {
      const asked = turnsOf(model.asked);
      const sizes = asked.map(tokensOfRequest);
      for (const [at, { ours, bytes }] of sizes.entries())
        assert.ok(Math.max(ours, bytes) <= window, `request ${at + 1} has ${ours} tokens, ${bytes} by its bytes`);
      const { conversation } = await assertStored(home, session);
      assert.ok(conversation.totals.summaries > 0, "something was folded");
      assert.deepEqual(
        databaseRows(home, session).filter(({ info }) => info.summary === true),
        [],
        "OpenCode has not compacted",
      );
      for (const turn of [1, 2, 77, 150, turns]) {
        const { text } = await host.prompt(session, `CALL lcm_grep {"pattern":"quince-${turn}"}`);
        assert.match(text, new RegExp(`the word for drawer ${turn} is quince-${turn}\\.`));
      }
      await reportTo(test, asked, sizes, took);
    } finally {
      await host.kill();
    }
  });
});

async function reportTo(
  test: TestContext,
  asked: readonly Asked[],
  sizes: readonly { readonly ours: number }[],
  took: readonly number[],
): Promise<void> {
  const texts = asked.map(({ body }) => JSON.stringify(body.messages));
  const kept = texts.slice(1).map((text, at) => commonPrefix(texts[at] ?? "", text) / (texts[at]?.length ?? 1));
  const { host, took: without } = await talk({ limit: { context: 1_000_000, output: 2_000 } });
  await host.kill();
  const median = (numbers: readonly number[]): number => numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? 0;
  const last = (numbers: readonly number[]): number => median(numbers.slice(-100));
  test.diagnostic(`largest request: ${Math.max(...sizes.map(({ ours }) => ours))} tokens`);
  test.diagnostic(
    `of each prompt the next one keeps, as its prefix: ${percent(mean(kept))}; ${kept.filter((share) => share > 0.99).length} of ${kept.length} keep all`,
  );
  test.diagnostic(
    `median of the last 100 turns: ${last(took).toFixed(0)} ms; without us, in a large window: ${last(without).toFixed(0)} ms`,
  );
}

const mean = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0) / numbers.length;
const percent = (share: number): string => `${(100 * share).toFixed(1)}%`;

function commonPrefix(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return at;
}
