/** Every view of the explorer in a real browser: what it shows, by keys alone, in dark and light, for screen readers. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { makeDemoDatabase } from "../support/demo-database.ts";
import { withoutBrowser } from "../support/platform.ts";
import { makeRecordedTalk } from "../support/recorded-prompts.ts";
import { portOver } from "../support/robot.ts";
import { makeScratch } from "../support/scratch.ts";
import { startExplorer, visit, type Visitor } from "../support/visitor.ts";
import { nameOfView, seesView, views } from "./stories.ts";

describe("the explorer", { skip: withoutBrowser }, () => {
  let demo: Visitor;
  let talk: Visitor;
  before(async () => {
    const folder = makeScratch("web-views");
    const now = await makeDemoDatabase(join(folder, "demo.db"));
    await makeRecordedTalk(join(folder, "talk.db"));
    const clock = { now: () => now };
    demo = await visit(await startExplorer(portOver(join(folder, "demo.db"), { readOnly: true }), clock));
    talk = await visit(await startExplorer(portOver(join(folder, "talk.db"), { readOnly: true })));
  });

  for (const story of views)
    it(`shows ${nameOfView(story)}`, async () => await seesView(story[2] === "talk" ? talk : demo, story));

  it("filters conversations as one types, and says when none matches", async () => {
    await demo.go("#/");
    await demo.sees("1,487");
    await demo.fill("Filter by name, agent, key, id or folder", "heliotrope");
    await demo.sees("No matching conversations.");
    await demo.fill("Filter by name, agent, key, id or folder", "customers");
    await demo.sees("1,487");
    assert.match(await demo.address(), /find=customers/);
  });

  it("goes back and forward, and opens any address anew", async () => {
    await demo.go("#/message/msg_1-10");
    await demo.sees("msg_1-11 →");
    await demo.click("msg_1-11 →", "link");
    await demo.sees("← msg_1-10");
    await demo.page.goBack();
    await demo.sees("← msg_1-9");
    await demo.page.goForward();
    await demo.sees("← msg_1-10");
    await demo.page.reload();
    await demo.sees("← msg_1-10");
  });

  it("makes every id a link, up to what a summary was made from and back", async () => {
    await demo.go("#/message/msg_1-10");
    await demo.click("sum_000000013c6ef362", "link");
    await demo.sees("Made from 154 messages");
    await demo.click("sum_000000016a99b44c", "link");
    await demo.sees("Made from 10 summaries");
  });

  it("leads from a line of a summary to the message that it tells of", async () => {
    await demo.go("#/summary/sum_000000013c6ef362");
    await demo.sees("msg_1-10");
    const button = await demo.page.$(
      "::-p-xpath(//div[contains(@class, 'aligned-line')][contains(., 'Three orders')]//button)",
    );
    assert.ok(button);
    await button.click();
    await demo.until(
      `document.querySelector(".source.focused")?.textContent.includes("Three orders, one charge too many")`,
    );
    await demo.until(`document.activeElement === document.querySelector(".source.focused")`);
    for (const value of ["dark", "light"]) {
      await demo.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);
      assert.deepEqual(await demo.barriers("color-contrast"), [], value);
    }
  });

  it("goes to an id that is typed, and says if nothing has it", async () => {
    await demo.go("#/");
    const name = "Go to an id, such as msg_1-42, a summary, a file or a prompt";
    await demo.fill(name, "msg_1-999999");
    await demo.press("Enter");
    await demo.sees('nothing is called "msg_1-999999"');
    await demo.fill(name, "sum_000000016a99b44c");
    await demo.press("Enter");
    await demo.sees("Made from 10 summaries");
    demo.troubles();
  });

  it("searches by regular expression and with filters, and finds hits on the timeline", async () => {
    await demo.go("#/search?q=passport&roles=assistant");
    await demo.sees("Appointment booked");
    await demo.misses("omg Theo");
    await demo.click("regex");
    await demo.fill("Regular expression", "pass(port|word)s?\\b.{0,20}here");
    await demo.click("assistant");
    await demo.sees(/Theo's passport is here!/);
    await demo.fill("Regular expression", "(");
    await demo.sees(/parenthes|group|regular expression/i);
    await demo.go("#/timeline/1?q=passport");
    await demo.sees(/\d+ matches/);
    demo.troubles();
  });

  it("keeps filters in the history, lists by filters alone, and leads back from no match", async () => {
    await demo.go("#/search");
    await demo.sees("What are you looking for?");
    await demo.fill("Words", "passport");
    await demo.sees(/\d+ matches/);
    await demo.choose("In", "files");
    await demo.sees("Nothing matches.");
    await demo.page.goBack();
    await demo.sees(/15 matches/);
    await demo.page.goForward();
    await demo.sees("Nothing matches.");
    await demo.click("Search without filters");
    await demo.sees(/15 matches/);
    await demo.go("#/search?roles=user&since=2026-10-11");
    await demo.sees(/2026-10-11/);
    await demo.until(`document.querySelectorAll(".hit .role-user").length > 2`);
    assert.equal(
      await demo.page.evaluate(`document.querySelectorAll(".hit .role:not(.role-user), .hit mark").length`),
      0,
    );
  });

  it("leaves a field in which one types alone, however late a view comes", async () => {
    await demo.go("#/");
    await demo.sees("1,487");
    await demo.page.evaluate(`location.hash = "#/health/1"; document.getElementById("go").focus();`);
    await demo.sees(/Nothing lost|Healthy|finding/i);
    await demo.sees("11 summaries were extracted");
    assert.equal(await demo.page.evaluate("document.activeElement.id"), "go");
    await demo.page.keyboard.type("msg");
    await demo.press("Escape");
    assert.equal(await demo.page.evaluate("document.activeElement.tagName"), "BODY");
  });

  it("goes to the heading after each jump, also within a view", async () => {
    for (const id of ["1#9", "1#10", "1#11"]) {
      await talk.page.evaluate("document.activeElement.blur()");
      await talk.press("g");
      await talk.until(`document.activeElement?.id === "go"`);
      await talk.page.keyboard.type(id);
      await talk.press("Enter");
      await talk.sees(`prompt ${id.slice(2)} of 20`);
      await talk.until(`document.activeElement?.tagName === "H1"`);
    }
    await talk.click("Now");
    await talk.sees("The prompt that would be sent now");
  });

  it("shows the text that stands for what is no longer in view", async () => {
    await talk.go("#/when/msg_1-3");
    await talk.sees("whose text may leave it out");
    await (await talk.page.waitForSelector("details.block summary"))?.click();
    await talk.sees("Piles before turn 8.");
    await talk.go("#/cost/1");
    await talk.sees(/sent again[^]*#9\s[^]*0 → 1/);
  });

  it("goes to a day of the messages, under the heading of that day", async () => {
    await demo.go("#/messages/1");
    await demo.sees("1,448–1,487 of 1,487");
    await demo.page.$eval("main input[type=date]", (field) => {
      field.setAttribute("value", "2026-09-20");
      field.dispatchEvent(new Event("input", { bubbles: true }));
    });
    await demo.sees(/Earlier[^]*\n2026-09-20\n/);
    await demo.until(`document.querySelector(".message-row.target time")?.dateTime.startsWith("2026-09-20")`);
  });

  it("opens a hit unfolded where its words are together, and marks them", async () => {
    await demo.go("#/search?q=drift monitor clock&roles=tool");
    await demo.sees(/\d+ match/);
    await demo.press("Enter");
    await demo.until(`document.activeElement?.classList.contains("hit-link")`);
    const words = (await demo.page.evaluate(
      `[...document.activeElement.querySelectorAll("mark")].map((mark) => mark.textContent)`,
    )) as readonly string[];
    assert.ok(words.length > 0);
    await demo.press("Enter");
    await demo.until(`CSS.highlights.get("found")?.size >= ${new Set(words).size}`);
    const seen = `[...CSS.highlights.get("found")].some((range) => {
      const { top, bottom } = range.getBoundingClientRect();
      return bottom > top && top >= 0 && bottom <= innerHeight;
    })`;
    await demo.until(seen);
    assert.match(await demo.address(), /mark=/);
    await demo.go("#/message/msg_1-10");
    await demo.until(`!CSS.highlights.has("found")`);
  });

  it("steps through prompts with keys, and says what changed", async () => {
    await talk.go("#/seen/1?prompt=9");
    await talk.sees(/prompt 9 of 20[^]*folded into sum_0000000100000001/);
    await talk.press("ArrowRight");
    await talk.sees(/prompt 10 of 20[^]*What changed since prompt 9[^]*arrived/);
    await talk.press("End");
    await talk.sees("The prompt that would be sent now");
    await talk.fill("With another budget, in tokens", "60");
    await talk.sees(/of a budget of 60/);
    await talk.press("Escape");
  });

  it("opens an item of a prompt exactly as the model got it", async () => {
    await talk.go("#/seen/1?prompt=9");
    await talk.click("Unfold d0 sum_0000000100000001");
    await talk.sees(/Exactly what the model got, as user:[^]*<summary[^]*Piles before turn 8/);
  });

  it("does everything by keys alone, with help", async () => {
    await demo.go("#/");
    await demo.sees("1,487");
    await demo.press("?");
    await demo.sees(/Keys[^]*next conversation[^]*this help[^]*What the words mean[^]*carried/);
    assert.deepEqual(await demo.barriers(), []);
    await demo.press("Escape");
    await demo.misses("next conversation");
    // The help gives the focus back a moment after it has closed, and a key before that goes to the page.
    const atList = async () => (await demo.address()).endsWith("/conversations");
    for (let tries = 0; tries < 60 && (await atList()); tries++) {
      await demo.press("j", "Enter");
      await sleep(500);
    }
    await demo.sees("All: 1,487 messages");
    await demo.press("/");
    await demo.until(`document.activeElement?.id === "timeline-search"`);
    await demo.page.keyboard.type("passport");
    await demo.press("Enter");
    await demo.sees(/\d+ matches/);
    await demo.page.evaluate("document.activeElement.blur()");
    await demo.press("3");
    await demo.sees("Check everything");
    await demo.press("2");
    await demo.sees("What are you looking for?");
  });

  it("goes from view to view of a conversation, and from fields to what they found, by keys", async () => {
    await demo.go("#/timeline/1");
    await demo.sees("All: 1,487 messages");
    for (const [key, sees] of [
      ["S", "prompt 2 of 2"],
      ["O", "Tokens per prompt"],
      ["M", /1,448–1,487 of 1,487/],
      ["C", "Nothing was changed yet."],
      ["F", "What are you looking for?"],
    ] as const) {
      await demo.press(key);
      await demo.sees(sees);
    }
    await demo.until(`document.activeElement?.id === "words"`);
    await demo.page.keyboard.type("passport");
    await demo.sees(/\d+ matches/);
    await demo.press("ArrowDown", "ArrowDown");
    await demo.until(`document.activeElement === document.querySelectorAll(".hit a.hit-link")[1]`);
    await demo.press("1");
    await demo.sees("1,487");
    await demo.press("f");
    await demo.press("Enter");
    await demo.until(`document.activeElement?.classList.contains("conversation-name")`);
    await demo.press("f");
    await demo.press("Escape");
    await demo.until(`document.activeElement === document.body`);
  });

  it("begins each view at its heading, and skips to the content", async () => {
    await demo.go("#/changes");
    await demo.until(`document.activeElement?.tagName === "H1"`);
    await demo.page.focus(".brand");
    await demo.page.keyboard.down("Shift");
    await demo.press("Tab");
    await demo.page.keyboard.up("Shift");
    assert.equal(await demo.page.evaluate("document.activeElement.textContent.trim()"), "Skip to the content");
    await demo.press("Enter");
    await demo.until(`document.activeElement?.id === "content"`);
  });

  it("is dark or light as the system, or as one chooses, also later", async () => {
    await demo.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
    const paper = async () => await demo.page.evaluate("getComputedStyle(document.body).backgroundColor");
    const light = await paper();
    await demo.press("m");
    assert.notEqual(await paper(), light);
    await demo.page.reload();
    await demo.sees(/lossless-claw \d/);
    assert.notEqual(await paper(), light);
    await demo.press("m");
    assert.equal(await paper(), light);
    await demo.press("m");
  });

  it("fits a phone: nothing is wider than the screen", async () => {
    await demo.page.setViewport({ width: 360, height: 740, isMobile: true, hasTouch: true });
    for (const [address, sees, of] of views) {
      if (of !== undefined) continue;
      await demo.go(address);
      await demo.sees(sees);
      assert.equal(await demo.page.evaluate("document.documentElement.scrollWidth <= 360"), true, address);
    }
    await demo.page.setViewport({ width: 1280, height: 860 });
  });

  it("says what is not there", async () => {
    await demo.go("#/message/msg_1-99999");
    await demo.sees(/there is no msg_1-99999|msg_1-99999/i);
    await demo.go("#/message/nonsense");
    await demo.sees("nonsense is not a message.");
    await demo.go("#/timeline/77");
    await demo.sees(/conversation 77/i);
    demo.troubles();
  });

  it("shows a plan on a read-only server, and does not apply it", async () => {
    await demo.go("#/summary/sum_000000016a99b44c");
    await demo.sees("Dissolve …");
    await demo.press("d");
    await demo.sees(/Dissolve a summary[^]*returns/);
    assert.equal(await demo.page.$eval("dialog .primary", (button) => button.hasAttribute("disabled")), true);
    await demo.click("Cancel");
  });
});
