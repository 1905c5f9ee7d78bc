/** Every change in a real browser: the plan first, applied, its result shown, and undone; and a live view beside a writer. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { DatabaseSync } from "node:sqlite";
import { makeDemoDatabase } from "../support/demo-database.ts";
import { withoutBrowser } from "../support/platform.ts";
import { portOver } from "../support/robot.ts";
import { makeScratch } from "../support/scratch.ts";
import { createScriptedModel } from "../support/scripted-model.ts";
import { startExplorer, visit, type Visitor } from "../support/visitor.ts";
import { apply, changeOf, dissolvesAndTakesBack, importInto, seesWhatAnotherWrites, undoNow } from "./stories.ts";

const leaf = "sum_000000013c6ef362";
const top = "sum_000000016a99b44c";

describe("changes in the explorer", { skip: withoutBrowser }, () => {
  const folder = makeScratch("web-changes");
  const path = join(folder, "lcm.db");
  let visitor: Visitor;
  before(async () => {
    await makeDemoDatabase(path);
    const model = createScriptedModel({ behaviour: () => "good" });
    visitor = await visit(await startExplorer(portOver(path, { model })));
  });

  it("rewrites a summary beside its old text, and takes it back", async () => {
    await visitor.go(`#/summary/${leaf}`);
    await visitor.sees("extracted without a model");
    await visitor.press("r");
    await visitor.sees(/Rewrite[^]*scripted\/one/);
    await visitor.page.setViewport({ width: 1000, height: 420 });
    await visitor.page.focus("dialog .primary");
    await visitor.press("Enter");
    await visitor.sees("Draft ready.");
    // Whoever uses keys can go on, and it is in view however long the texts are.
    await visitor.until(`document.activeElement?.textContent === "Apply this draft"`);
    await visitor.until(`document.activeElement.getBoundingClientRect().bottom <= innerHeight`);
    await visitor.page.setViewport({ width: 1280, height: 860 });
    await visitor.sees(/now, 1,181 tokens\s+draft by scripted\/one, \d+ tokens/);
    assert.ok(Number(await visitor.page.evaluate(`document.querySelectorAll("dialog td.old").length`)) > 0);
    assert.ok(Number(await visitor.page.evaluate(`document.querySelectorAll("dialog td.new").length`)) > 0);
    assert.deepEqual(await visitor.barriers(), []);
    await apply(visitor);
    await visitor.sees("1 summary rewritten");
    await visitor.until(`document.activeElement?.textContent === "Close"`);
    // The page behind follows by itself.
    await visitor.sees("written by a model (scripted/one)");
    await undoNow(visitor);
    await visitor.sees("extracted without a model");
  });

  it("dissolves a summary, and takes it back", async () => await dissolvesAndTakesBack(visitor));

  it("says of a dissolved summary when and by which change, and of the change what it was made of", async () => {
    await visitor.go(`#/summary/${top}`);
    await visitor.sees("Dissolve …");
    await visitor.click("Dissolve …");
    await visitor.sees(/Dissolve a summary/);
    await apply(visitor);
    const change = await changeOf(visitor);
    await visitor.click("Close", "button");
    await visitor.sees(new RegExp(`Dissolved on 20\\d\\d-\\d\\d-\\d\\d [^]*by change ${change}`));
    assert.ok(!(await visitor.text()).includes("Dissolve …"));
    await visitor.click(`change ${change}`, "link");
    await visitor.sees(/dissolved into 10 items[^]*made of 10 items sum_000000013c6ef362/);
    assert.equal((await visitor.text()).split("dissolved into").length, 2, "said once");
    assert.deepEqual(await visitor.barriers(), []);
    await visitor.click(`Undo the dissolve of ${top}`);
    await visitor.click("Undo this change");
    await visitor.sees(/Undid change/);
    await visitor.click("Close", "button");
    await visitor.go(`#/summary/${top}`);
    await visitor.sees("Dissolve …");
  });

  it("compacts, and dissolves what that made", async () => {
    await importInto(path, folder, "young", 120);
    await visitor.go("#/changes/2");
    await visitor.sees("Compact …");
    await visitor.click("Compact …");
    await visitor.sees("Fold short runs, too");
    await visitor.click("Fold short runs, too", "checkbox");
    await visitor.until(`document.querySelector("dialog .primary:not(:disabled)") !== null`);
    await visitor.click("Without a model", "checkbox");
    await apply(visitor);
    await visitor.until(`document.querySelector("dialog .done") !== null`);
    await visitor.click("Close", "button");
    await visitor.go("#/message/msg_2-1");
    await visitor.sees("Part of d0 leaf");
    await (await visitor.page.$("main a[href^='#/summary/']"))?.click();
    await visitor.sees("Dissolve …");
    await visitor.press("d");
    await visitor.sees("Dissolve a summary");
    await apply(visitor);
    await undoNow(visitor);
  });

  it("pins what a user said, and takes it back", async () => {
    await visitor.go("#/message/msg_1-10");
    await visitor.sees("About this message");
    assert.ok(!(await visitor.text()).includes("Pin: keep it"));
    await visitor.go("#/message/msg_1-1");
    await visitor.sees("Pin: keep it in every prompt …");
    await visitor.click("Pin: keep it in every prompt …");
    await visitor.sees(/Keep in every prompt/);
    await apply(visitor);
    await undoNow(visitor);
    await visitor.sees("Pin: keep it in every prompt …");
  });

  it("transplants summaries into another conversation, and takes them back", async () => {
    await importInto(path, folder, "empty", 1);
    await visitor.go("#/changes/1");
    await visitor.sees("Copy its summaries into");
    await visitor.until(`document.querySelectorAll("main select option").length > 1`);
    await visitor.choose("Copy its summaries into", "3");
    await visitor.click("Transplant …");
    await visitor.sees("Transplant summaries");
    await apply(visitor);
    await undoNow(visitor);
  });

  it("fixes what can be derived, and takes it back", async () => {
    const database = new DatabaseSync(path);
    database.exec("UPDATE conversations SET context_tokens = context_tokens + 7 WHERE conversation_id = 1");
    database.close();
    await visitor.go("#/health/1");
    await visitor.sees(/Problems found: \d+ error/);
    await visitor.go("#/health");
    await visitor.sees(/The running total[^]*in Morning! Three customers[^]*At a terminal: lcm doctor/);
    await visitor.sees(/Fix 1 finding of “Morning! Three customers wrote/);
    await visitor.go("#/health/1");
    await visitor.click("Fix 1 finding …");
    await visitor.sees("Fix findings");
    await apply(visitor);
    await changeOf(visitor);
    await visitor.click("Close", "button");
    // It checks again by itself.
    await visitor.sees("Healthy.");
  });

  it("lists each change with its texts before and after, and redoes what was undone", async () => {
    await visitor.go("#/changes");
    await visitor.sees(/rewrite[^]*undone by/);
    await visitor.click("1", "link");
    await visitor.sees(/Change 1[^]*rewrite[^]*before\s+after/);
    await visitor.go("#/changes");
    await visitor.sees(/rewrite[^]*undone by/);
    // The rewrite is the oldest, and so the last.
    await (await visitor.page.$$("main tbody button")).at(-1)?.click();
    await visitor.sees("Undo a change");
    await apply(visitor);
    await visitor.sees(/Undid change/);
    await visitor.click("Close", "button");
    await visitor.go(`#/summary/${leaf}`);
    await visitor.sees("written by a model (scripted/one)");
  });

  it("shows what another process writes, without being asked", async () => {
    await seesWhatAnotherWrites(visitor, path, folder);
    assert.deepEqual(visitor.troubles(), []);
  });
});
