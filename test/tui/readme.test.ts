/** Checks that the README and the guide show the terminal UI as it is. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { drawScreens, pagesWith } from "../../scripts/screens.ts";

describe("the screens of the README and of the guide to the terminal", () => {
  it("are what a robot sees on the demo's database; `npm run screens` writes them", async () => {
    const screens = await drawScreens();
    for (const { section } of screens) assert.match(section, /```text\n ◆ lossless-claw › /);
    const pages = pagesWith(screens);
    for (const { path, is, should } of pages) assert.equal(is, should, path);
    const shown = pages.map(({ is }) => [...is.matchAll(/```text\n ◆ lossless-claw › /g)].length);
    assert.deepEqual(shown, [2, 5]);
  });
});
