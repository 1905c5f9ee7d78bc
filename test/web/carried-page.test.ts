/** What an earlier segment carried over, in a real browser: where it is, where it comes from, and how it is set right. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { createLcm } from "../../src/core/lcm.ts";
import { resolveSettings } from "../../src/core/model/settings.ts";
import type { SummaryId } from "../../src/core/model/types.ts";
import { systemClock } from "../../src/index.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { summary } from "../store-contract/ground.ts";
import { withoutBrowser } from "../support/platform.ts";
import { portOver } from "../support/robot.ts";
import { makeScratch } from "../support/scratch.ts";
import { createScriptedModel } from "../support/scripted-model.ts";
import { startExplorer, visit, type Visitor } from "../support/visitor.ts";
import { apply } from "./stories.ts";

describe("what was carried over", { skip: withoutBrowser }, () => {
  const path = join(makeScratch("web-carried"), "lcm.db");
  let visitor: Visitor;
  let [origin, copy]: readonly (SummaryId | undefined)[] = [];
  before(async () => {
    const settings = resolveSettings({ env: {}, config: {} }).values;
    const lcm = createLcm({ store: await openSqlite({ path, housekeeping: false }), clock: systemClock, settings });
    const key = { sessionKey: "agent:main:pier", agentId: "main" };
    const said = (from: number) =>
      Array.from({ length: 6 }, (_, at) => ({
        kind: "message" as const,
        key: `m${from + at}`,
        at: systemClock.now(),
        message: { role: "user", content: `pile ${from + at} of the pier, and who measured it ${"again ".repeat(30)}` },
      }));
    const { id } = await lcm.store.openSegment({ ...key, sessionId: "one" });
    await lcm.ingest(id, said(1));
    const text = summary("Piles one to six were measured.", { level: "truncated", tokens: 9 });
    const folded = await lcm.store.fold(id, await lcm.store.context(id), text);
    assert.ok(folded.kind === "written");
    origin = folded.summary;
    const next = await lcm.store.openSegment({ ...key, sessionId: "two" }, { carryDepth: 0 });
    await lcm.ingest(next.id, said(7));
    [copy] = await lcm.store.carriedBy(origin);
    await lcm.close();
    visitor = await visit(
      await startExplorer(portOver(path, { model: createScriptedModel({ behaviour: () => "good" }) })),
    );
  });

  it("is on the timeline of its segment, with its finding", async () => {
    await visitor.go("#/timeline/2?findings=true");
    await visitor.sees(/All: 6 messages[^]*In view as a list: 7 items/);
    await visitor.sees("Findings (1)");
    await visitor.page.click(".in-view summary");
    await visitor.sees(String(copy));
  });

  it("is a finding for which nothing is offered that cannot be done", async () => {
    await visitor.go("#/health");
    await visitor.sees(
      /1 summary was cut short[^]*#1[^]*At a terminal: lcm repair 1\n[^]*1 summary was cut short[^]*#2/,
    );
    const offered = `[...document.querySelectorAll("main .actions button")].map((each) => each.textContent).join()`;
    assert.match(String(await visitor.page.evaluate(offered)), /^Rewrite poor summaries of [^,]*\(#1\) …$/);
  });

  it("offers the rewrite of its original, and nothing that cannot be done", async () => {
    await visitor.go(`#/summary/${copy}`);
    await visitor.sees(/a copy, carried over from an earlier segment: #1[^]*Its sources are in the earlier segment/);
    assert.doesNotMatch(await visitor.text(), /Dissolve …|Rewrite …/);
    assert.deepEqual(await visitor.barriers(), []);
    await visitor.click("Rewrite the original …");
    await visitor.click("Draft");
    await visitor.sees("Draft ready.");
    await apply(visitor);
    await visitor.sees("1 summary rewritten");
    await visitor.click("Close", "button");
    await visitor.sees("The copy keeps its text");
    await visitor.click(String(origin), "link");
    await visitor.sees(/written by a model \(scripted\/one\)[^]*Made from 6 messages/);
    assert.deepEqual(visitor.troubles(), []);
  });
});
