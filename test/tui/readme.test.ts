/** The README shows the terminal UI as it is. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { drawScreens, withScreens } from "../../tools/screens.ts";

describe("the screens of the README", () => {
  it("are what a robot sees on the demo's database; `npm run screens` writes them", async () => {
    const readme = readFileSync(join(import.meta.dirname, "..", "..", "README.md"), "utf8").replaceAll("\r\n", "\n");
    const screens = await drawScreens();
    assert.equal([...screens.matchAll(/```text\n ◆ lossless-claw › /g)].length, 5);
    assert.equal(readme, withScreens(readme, screens));
  });
});
