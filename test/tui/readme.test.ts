/** Checks that the README and the guide show the terminal UI as it is. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { drawScreens, filesWith } from "../../scripts/screens.ts";

describe("the screens of the README and of the guide to the terminal", () => {
  it("are what a robot sees on the demo's database; `npm run screens` writes them", async () => {
    const screens = await drawScreens();
    assert.equal(screens.sections.length, 5);
    for (const section of screens.sections) assert.match(section, /```text\n ◆ lossless-claw › /);
    const files = filesWith(screens);
    for (const { path, is, should } of files) assert.equal(is, should, path);
    const readme = readFileSync(fileURLToPath(new URL("../../README.md", import.meta.url)), "utf8");
    assert.ok(readme.includes("docs/pictures/terminal.svg"));
  });
});
