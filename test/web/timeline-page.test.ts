/** The timeline in a real browser with 100,000 messages: zooming, panning, selecting and opening, by pointer and by keys. */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { longDatabase } from "../support/long-conversation.ts";
import { withoutBrowser } from "../support/platform.ts";
import { portOver } from "../support/robot.ts";
import { startExplorer, visit, type Visitor } from "../support/visitor.ts";

describe("the timeline of 100,000 messages", { skip: withoutBrowser }, () => {
  let visitor: Visitor;
  /** The canvas on the screen. */
  let box = { x: 0, y: 0, width: 0, height: 0 };
  const requests: string[] = [];
  before(async () => {
    visitor = await visit(await startExplorer(portOver(await longDatabase(), { readOnly: true })));
    visitor.page.on("request", (request) => requests.push(request.url()));
  });
  const open = async (settings = ""): Promise<void> => {
    await visitor.go("#/changes");
    await visitor.sees("History");
    await visitor.go(`#/timeline/1${settings}`);
    await visitor.until("document.querySelector('canvas')?.width > 300");
    box = (await visitor.page.evaluate(
      "(({ x, y, width, height }) => ({ x, y, width, height }))(document.querySelector('canvas').getBoundingClientRect())",
    )) as typeof box;
  };
  const shown = async (): Promise<number> => {
    const [, count = ""] = /(?:All|In view): ([\d,]+) messages?/.exec(await visitor.text()) ?? [];
    return Number(count.replaceAll(",", ""));
  };
  /** The share of the pixels that have another colour than most. */
  const inked = `(() => {
    const canvas = document.querySelector("canvas");
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let at = 3; at < data.length; at += 4) if (data[at] > 0) count++;
    return count / (canvas.width * canvas.height);
  })()`;

  it("shows a year at once, and every depth of summaries", async () => {
    await open();
    await visitor.sees("All: 100,000 messages, 2025-02-03 – 2026-02-05");
    await visitor.until(`${inked} > 0.3`);
    const calls = requests.filter((url) => url.includes("/api/timeline"));
    assert.ok(calls.length <= 2, calls.join("\n"));
  });

  it("zooms with the wheel from a year to a few messages, and back", async () => {
    await open();
    await visitor.sees("All: 100,000");
    await visitor.page.mouse.move(box.x + box.width / 2, box.y + box.height - 60);
    for (let turn = 0; turn < 14; turn++) await visitor.page.mouse.wheel({ deltaY: -400 });
    await visitor.until(`/In view: \\d\\d? messages?\\b/.test(document.body.innerText)`);
    assert.ok((await shown()) < 100);
    await visitor.sees(/In view as a list: \d+ items/);
    for (let turn = 0; turn < 14; turn++) await visitor.page.mouse.wheel({ deltaY: 400 });
    await visitor.sees("All: 100,000 messages");
  });

  it("zooms and pans with keys", async () => {
    await open("?axis=messages");
    await visitor.sees("All: 100,000");
    for (let press = 0; press < 6; press++) await visitor.press("+");
    await visitor.until(`/In view: [12],\\d{3} messages/.test(document.body.innerText)`);
    const before = await visitor.address();
    await visitor.press("]", "]");
    await visitor.until(`location.hash !== ${JSON.stringify(before)}`);
    await visitor.press("0");
    await visitor.sees("All: 100,000 messages");
  });

  it("walks from item to item with arrows, says each, and opens it with enter", async () => {
    await open("?axis=messages&from=500&to=540");
    await visitor.sees(/In view: \d\d messages/);
    await visitor.page.focus("canvas");
    await visitor.until(`document.querySelectorAll(".in-view tbody tr").length > 10`);
    await visitor.press("ArrowDown", "ArrowRight");
    await visitor.sees(/msg_1-5\d\d, [\d,]+ tokens, below a summary/);
    await visitor.press("ArrowUp");
    await visitor.sees(/d0 leaf sum_[0-9a-f]{16}: messages/);
    await visitor.press("Enter");
    await visitor.sees("Read it beside its 32 messages");
    assert.match(await visitor.address(), /focus=sum_/);
    assert.deepEqual(await visitor.barriers(), []);
    await visitor.press("Escape");
    await visitor.misses("Read it beside its 32 messages");
  });

  it("opens what is clicked, and zooms where it is double-clicked", async () => {
    await open("?axis=messages&from=500&to=540");
    await visitor.until(`document.querySelectorAll(".in-view tbody tr").length > 10`);
    await visitor.page.mouse.click(box.x + box.width / 2, box.y + 40);
    await visitor.sees(/d3 condensed sum_[0-9a-f]{16}/);
    await open("?axis=messages");
    await visitor.sees("All: 100,000");
    await visitor.page.mouse.click(box.x + box.width / 3, box.y + box.height - 60, { count: 2 });
    await visitor.until(`/In view: /.test(document.body.innerText)`);
    assert.ok((await shown()) < 50_000);
  });

  it("lets go at once, whatever it was about to write into the address", async () => {
    await open("?axis=messages&from=500&to=540");
    for (let tried = 0; tried < 5; tried++) {
      await visitor.page.mouse.click(box.x + box.width / 2, box.y + 40);
      await visitor.go("#/changes");
      await visitor.sees("History");
      await visitor.go("#/timeline/1?axis=messages&from=500&to=540");
      await visitor.until("document.querySelector('canvas')?.width > 300");
      await visitor.page.mouse.click(box.x + box.width / 2, box.y + 40);
      await visitor.go("#/timeline/1?focus=msg_1-10"); // The same view, another part.
      await visitor.sees(/msg_1-10\b/);
    }
  });

  it("selects what is dragged over, and zooms to it", async () => {
    await open("?axis=messages");
    await visitor.sees("All: 100,000");
    const y = box.y + box.height - 60;
    await visitor.page.mouse.move(box.x + box.width * 0.25, y);
    await visitor.page.mouse.down();
    await visitor.page.mouse.move(box.x + box.width * 0.4, y, { steps: 5 });
    await visitor.page.mouse.move(box.x + box.width * 0.5, y, { steps: 5 });
    await visitor.page.mouse.up();
    await visitor.sees(/2[45],\d{3} messages\s+selected/);
    await visitor.click("Zoom to them");
    await visitor.until(`/In view: 2\\d,\\d{3} messages/.test(document.body.innerText)`);
  });

  it("pans and pinches with fingers", async () => {
    await open("?axis=messages&from=1000&to=3000");
    await visitor.sees(/In view: 2,\d{3} messages/);
    const before = await visitor.address();
    const y = box.y + box.height - 60;
    const touch = await visitor.page.createCDPSession();
    const at = (...xs: readonly number[]) => ({ touchPoints: xs.map((x, id) => ({ x: box.x + x, y, id })) });
    await touch.send("Input.dispatchTouchEvent", { type: "touchStart", ...at(600) });
    for (let x = 580; x >= 300; x -= 40) await touch.send("Input.dispatchTouchEvent", { type: "touchMove", ...at(x) });
    await touch.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
    await visitor.until(`location.hash !== ${JSON.stringify(before)}`);
    await touch.send("Input.dispatchTouchEvent", { type: "touchStart", ...at(500, 600) });
    for (let out = 0; out <= 200; out += 40)
      await touch.send("Input.dispatchTouchEvent", { type: "touchMove", ...at(500 - out, 600 + out) });
    await touch.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
    await visitor.until(`/In view: \\d{3} messages/.test(document.body.innerText)`);
  });

  it("marks matches, and leads from the list to the canvas", async () => {
    await open("?q=crane");
    await visitor.sees(/matches ▾/);
    await visitor.page.click(".in-view summary");
    const show = await visitor.page.$(".in-view tbody button");
    assert.ok(show);
    await show.click();
    await visitor.until(`document.activeElement?.tagName === "CANVAS"`);
  });

  it("asks for a part, never for all 100,000 messages", async () => {
    const sizes = (await visitor.page.evaluate(
      `performance.getEntriesByType("resource").filter((e) => e.name.includes("/api/timeline")).map((e) => e.decodedBodySize)`,
    )) as readonly number[];
    assert.ok(sizes.length > 5);
    assert.ok(Math.max(...sizes) < 2_000_000, String(sizes));
    assert.deepEqual(visitor.troubles(), []);
  });
});
