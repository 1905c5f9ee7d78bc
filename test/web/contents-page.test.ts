/** What conversations may hold beside words, in a real browser: pictures, segments of one session, vectors of meanings. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { createLcm } from "../../src/core/lcm.ts";
import type { HostMessage } from "../../src/core/messages/codec.ts";
import { resolveSettings } from "../../src/core/model/settings.ts";
import { systemClock } from "../../src/index.ts";
import { chooseEmbedder } from "../../src/models/choose-embedder.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { pictureBytes } from "../support/picture.ts";
import { withoutBrowser } from "../support/platform.ts";
import { portOver } from "../support/robot.ts";
import { makeScratch } from "../support/scratch.ts";
import { vectorOf } from "../support/scripted-embedder.ts";
import { startScriptedProvider, type ScriptedProvider } from "../support/scripted-provider.ts";
import { startExplorer, visit, type Visitor } from "../support/visitor.ts";

const pictureOf = (size: number): string => pictureBytes(size).toString("base64");
const image = (size: number) => ({ type: "image", data: pictureOf(size), mimeType: "image/png" });

/** The last picture is so large that it is moved to a file. */
const album: readonly HostMessage[] = [
  { role: "user", content: [{ type: "text", text: "two pictures of the pier" }, image(8), image(12)] },
  {
    role: "user",
    content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: pictureOf(16) } }],
  },
  { role: "user", content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${pictureOf(20)}` } }] },
  { role: "user", content: [{ type: "text", text: "and a large one" }, image(200)] },
];
const talk: readonly HostMessage[] = [
  "my vehicle needs oil",
  "rain over the harbour",
  "bread and soup\n\n| what | pence |\n|---|---|\n| rye | 1,200 |\n| soup | 350 |",
].map((content) => ({ role: "user", content }));

describe("what conversations hold", { skip: withoutBrowser }, () => {
  let visitor: Visitor;
  let provider: ScriptedProvider;
  after(async () => await provider.close());
  before(async () => {
    provider = await startScriptedProvider();
    const same = new Map([["vehicle", "car"]]);
    provider.play({ kind: "vectors", of: (text) => vectorOf(text, same) });
    const env = {
      LCM_EMBEDDER: "openai:small",
      LCM_EMBEDDER_BASE_URL: `${provider.url}/v1`,
      LCM_LARGE_FILE_TOKEN_THRESHOLD: "1000",
    };
    const folder = makeScratch("web-contents");
    const path = join(folder, "lcm.db");
    const settings = resolveSettings({ env, config: {} }).values;
    const embedder = await chooseEmbedder(settings, { stateDir: folder, env: {}, cwd: folder });
    const lcm = createLcm({
      store: await openSqlite({ path, housekeeping: false }),
      clock: systemClock,
      settings,
      embedder,
    });
    const key = { sessionKey: "agent:main:garage", agentId: "main" };
    for (const [sessionId, messages] of [
      ["spring", talk],
      ["summer", album],
      ["autumn", talk.slice(1)],
    ] as const) {
      const { id } = await lcm.store.openSegment({ ...key, sessionId });
      const said = messages.map((message, at) => ({ message, key: `${sessionId}-${at}`, at: systemClock.now() }));
      await lcm.ingest(
        id,
        said.map((each) => ({ kind: "message", ...each })),
      );
    }
    while ((await lcm.store.index(100)) > 0);
    assert.equal((await lcm.makeVectors()).outcome, "complete");
    await lcm.close();
    visitor = await visit(await startExplorer(portOver(path, { readOnly: true, env })));
  });

  it("unfolds the segments of a session, and folds them again", async () => {
    await visitor.go("#/");
    await visitor.sees(/3 conversations[^]*3 segments of this session/);
    const segments = `document.querySelectorAll("tr.inner .conversation-name").length`;
    await visitor.click("▸ 3 segments of this session");
    await visitor.until(`${segments} === 3`);
    assert.deepEqual(await visitor.barriers(), []);
    await (await visitor.page.$("tr.inner a.conversation-name[href='#/timeline/2']"))?.click();
    await visitor.sees("All: 4 messages");
    await visitor.page.goBack();
    await visitor.click("▸ 3 segments of this session");
    await visitor.until(`${segments} === 3`);
    await visitor.click("▾ 3 segments of this session");
    await visitor.until(`${segments} === 0`);
  });

  it("orders conversations by how much they grew in a week, and by their messages", async () => {
    await visitor.go("#/");
    await visitor.sees(/\+3[^]*\+4|\+4[^]*\+3/);
    const order = `[...document.querySelectorAll(".conversation-name")].map(({ hash }) => hash.split("/").at(-1)).join("")`;
    await visitor.until(`${order} === "321"`);
    await visitor.choose("Order", "growth");
    await visitor.until(`${order} === "213"`);
    assert.match(await visitor.address(), /order=growth/);
    await visitor.choose("Order", "messages");
    await visitor.until(`${order} === "213"`);
  });

  it("keeps numbers of tables whole and to the right, and scrolls what is too wide", async () => {
    await visitor.page.setViewport({ width: 360, height: 740, isMobile: true, hasTouch: true });
    await visitor.go("#/message/msg_1-3");
    await visitor.sees(/what\s+pence\s+rye\s+1,200/);
    const look = `(({ textAlign, whiteSpace }) => textAlign + " " + whiteSpace)(getComputedStyle(document.querySelector("td.number")))`;
    assert.equal(await visitor.page.evaluate(look), "right nowrap");
    assert.equal(await visitor.page.evaluate(`document.querySelectorAll("td.number").length`), 2);
    await visitor.page.setViewport({ width: 1280, height: 860 });
  });

  it("shows pictures whichever host wrote them, and those that were moved to files", async () => {
    const widths = `[...document.querySelectorAll("main img.picture")].map((each) => each.naturalWidth).join()`;
    for (const [number, sizes] of [
      [1, "8,12"],
      [2, "16"],
      [3, "20"],
      [4, "200"],
    ] as const) {
      await visitor.go(`#/message/msg_2-${number}`);
      await visitor.until(`${widths} === ${JSON.stringify(sizes)}`);
    }
    assert.deepEqual(await visitor.barriers(), []);
    assert.equal(
      await visitor.page.$eval("main img.picture", (picture) => picture.getAttribute("alt")),
      "picture beside the words: and a large one",
    );
    await visitor.go("#/messages/2");
    await visitor.sees("1 file or picture of this conversation");
    await visitor.page.click("details.block summary");
    await (await visitor.page.waitForSelector("main a[href^='#/file/']"))?.click();
    await visitor.until(`${widths} === "200"`);
    assert.deepEqual(visitor.troubles(), []);
  });

  it("finds by meaning what no word has, and says when it cannot", async () => {
    await visitor.go("#/search");
    await visitor.fill("Words, or what it is about", "car");
    await visitor.sees(/No match contains "car"[^]*my vehicle needs oil[^]*rain over/);
    assert.deepEqual(await visitor.barriers(), []);
    provider.play({ kind: "body", status: 200, body: "{}" });
    await visitor.fill("Words, or what it is about", "car oil");
    await visitor.sees(/1 match\b[^]*Searched by words alone: openai:small[^]*my vehicle needs oil/);
    assert.deepEqual(visitor.troubles(), []);
  });
});
