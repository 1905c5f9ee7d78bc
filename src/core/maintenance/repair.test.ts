import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { openSqlite } from "../../store/sqlite/store.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { createHost, toAppendable, user } from "../../../test/support/scripted-host.ts";
import { createScriptedModel } from "../../../test/support/scripted-model.ts";
import { createLcm } from "../lcm.ts";
import type { Lcm } from "../lcm.ts";
import { isSound } from "./inspect.ts";
import type { ConversationId, NewSummary, SummaryId } from "../model/types.ts";
import { estimateTokens } from "../base/tokens.ts";
import type { Timestamp } from "../base/time.ts";

const folder = makeScratch("repair");
after(() => rmSync(folder, { recursive: true, force: true }));

let databases = 0;
const clock = { now: (): Timestamp => "2026-11-15T08:00:00.000Z" as Timestamp };

async function open(): Promise<Lcm> {
  const store = await openSqlite({ path: join(folder, `${++databases}.db`), now: clock.now, housekeeping: false });
  const model = createScriptedModel({ behaviour: () => "good" });
  return createLcm({ store, clock, model });
}

/** A conversation whose leaves are these, in order, of six messages each. */
async function talk(
  { store }: Lcm,
  name: string,
  ...leaves: readonly Partial<NewSummary>[]
): Promise<{ readonly id: ConversationId; readonly leaves: readonly SummaryId[] }> {
  const { id } = await store.open({ sessionId: name });
  const host = createHost(name);
  for (let at = 0; at < 6 * leaves.length; at++)
    host.says(user(`${name} ${at} ${"the lamp was lit again. ".repeat(20)}`));
  await store.append(id, host.entries.map(toAppendable));
  const made: SummaryId[] = [];
  for (const [at, leaf] of leaves.entries()) {
    const text = leaf.text ?? `What was said in ${name} until ${at}, by whom and why, in so many words.`;
    const usual = {
      tokens: estimateTokens(text),
      level: "normal",
      model: null,
      previousContext: null,
      fileIds: [],
    } as const;
    const summary: NewSummary = { text, ...usual, ...leaf };
    const run = (await store.context(id)).slice(at, at + 6);
    const folded = await store.fold(id, run, summary);
    assert.ok(folded.kind === "written");
    made.push(folded.summary);
  }
  return { id, leaves: made };
}

describe("a repair", () => {
  it("selects only empty, truncated and extracted summaries", async () => {
    const lcm = await open();
    const { id, leaves } = await talk(
      lcm,
      "one",
      {},
      { level: "truncated" },
      { level: "aggressive" },
      { level: "extractive" },
      { text: "", tokens: 0 },
    );
    const [, truncated, , extractive, empty] = leaves;
    const plan = await lcm.planRepair(id);
    assert.deepEqual(
      plan.targets.map(({ summary }) => summary),
      [truncated, extractive, empty],
    );
    assert.deepEqual(
      plan.findings.map(({ code, subject }) => [code, subject]),
      [
        ["summary_below_normal", truncated],
        ["summary_below_normal", extractive],
        ["empty_summary", empty],
      ],
    );
    await lcm.close();
  });

  it("selects an aggressive summary only if it has another fault", async () => {
    const lcm = await open();
    const { id, leaves } = await talk(lcm, "one", { level: "aggressive", text: "", tokens: 0 });
    assert.deepEqual(
      (await lcm.planRepair(id)).targets.map(({ summary }) => summary),
      leaves,
    );
    await lcm.close();
  });

  it("selects summaries of forgotten content, and those marked by the older program", async () => {
    const lcm = await open();
    const marked = "[LCM fallback summary; the model did not answer]\nsomebody lit a lamp, and then another one";
    const { id, leaves } = await talk(
      lcm,
      "one",
      { text: "The code is 4711, and nobody else knows it." },
      { text: marked },
    );
    const forgetting = await lcm.store.planForget(id, { kind: "secret", text: "4711" });
    assert.equal((await lcm.store.forget(id, forgetting)).kind, "written");
    const { targets } = await lcm.planRepair(id);
    assert.deepEqual(
      targets.map(({ summary }) => summary),
      leaves,
    );
    await lcm.close();
  });

  it("covers one or all conversations, bottom-up, and leaves no findings", async () => {
    const lcm = await open();
    const one = await talk(lcm, "one", { level: "truncated" }, {});
    const two = await talk(lcm, "two", { level: "extractive" }, { level: "truncated" });
    const own = await lcm.planRepair(two.id);
    assert.deepEqual(
      own.targets.map(({ summary }) => summary),
      two.leaves,
    );
    const plan = await lcm.planRepair(null);
    assert.deepEqual(
      plan.targets.map(({ conversation, summary }) => [conversation, summary]),
      [[one.id, one.leaves[0]], ...two.leaves.map((leaf) => [two.id, leaf])],
    );
    const report = await lcm.rewriteAll(plan, { mode: "apply", operation: "repair" });
    assert.deepEqual(new Set(report.results.map(({ status }) => status)), new Set(["applied"]));
    assert.ok(report.change !== null);
    assert.deepEqual(
      (await lcm.store.journal({ change: report.change })).map(({ operation }) => operation),
      ["repair", "repair", "repair"],
    );
    assert.deepEqual((await lcm.planRepair(null)).findings, []);
    assert.ok(isSound(await lcm.inspect(null)));
    await lcm.close();
  });
});
