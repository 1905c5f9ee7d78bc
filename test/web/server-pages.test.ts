/** The pages over a database on a PostgreSQL server: the same views, changes and live updates as over a file. */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { makeDemoDatabase } from "../support/demo-database.ts";
import { withoutBrowser } from "../support/platform.ts";
import { makeRecordedTalk } from "../support/recorded-prompts.ts";
import { portOver } from "../support/robot.ts";
import { makeScratch } from "../support/scratch.ts";
import { usePostgres } from "../support/shared-postgres.ts";
import { startExplorer, visit, type Visitor } from "../support/visitor.ts";
import { dissolvesAndTakesBack, nameOfView, seesView, seesWhatAnotherWrites, views } from "./stories.ts";

describe("the explorer on a server", { skip: withoutBrowser }, async () => {
  const server = await usePostgres();
  const [demoUrl, talkUrl] = [`${server.url}?schema=demo`, `${server.url}?schema=talk`];
  let demo: Visitor;
  let talk: Visitor;
  before(async () => {
    const now = await makeDemoDatabase(demoUrl);
    await makeRecordedTalk(talkUrl);
    demo = await visit(await startExplorer(portOver(demoUrl), { now: () => now }));
    talk = await visit(await startExplorer(portOver(talkUrl, { readOnly: true })));
  });

  for (const story of views)
    it(`shows ${nameOfView(story)}`, async () => await seesView(story[2] === "talk" ? talk : demo, story));

  it("dissolves a summary, and takes it back", async () => await dissolvesAndTakesBack(demo));

  it("shows what another process writes, without being asked", async () => {
    await seesWhatAnotherWrites(demo, demoUrl, makeScratch("web-server"));
    assert.deepEqual([...demo.troubles(), ...talk.troubles()], []);
  });
});
