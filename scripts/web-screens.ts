/** Takes pictures of the explorer for the README and its guide: a real browser visits the database of `lcm demo`. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeDemoDatabase } from "../test/support/demo-database.ts";
import { portOver } from "../test/support/robot.ts";
import { openBrowser, startExplorer, visit } from "../test/support/visitor.ts";

const folder = join(import.meta.dirname, "..", "docs", "pictures");
const size = { width: 1120, height: 680 };

interface Picture {
  readonly name: string;
  readonly theme: "light" | "dark";
  readonly address: string;
  /** What is visible once it is complete. */
  readonly sees: RegExp;
}

const timeline = { address: "#/timeline/1?q=passport", sees: /matches ▾[^]*All: 1,487 messages/ };

const pictures: readonly Picture[] = [
  { name: "timeline-light", theme: "light", ...timeline },
  { name: "timeline-dark", theme: "dark", ...timeline },
  {
    name: "summary",
    theme: "light",
    address: "#/summary/sum_000000013c6ef362",
    sees: /Made from 154 messages[^]*msg_1-3\b/,
  },
  { name: "seen", theme: "dark", address: "#/seen/1", sees: /prompt 2 of 2[^]*What changed[^]*34 items/ },
];

/** More would make the repository and the package heavy. */
const bytesMax = 150_000;

export async function takePictures(): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), "lcm-pictures-"));
  const path = join(scratch, "lcm.db");
  const now = await makeDemoDatabase(path);
  const port = portOver(path, { readOnly: true });
  const served = await startExplorer({ ...port, path: "~/.openclaw/lcm.db" }, { now: () => now });
  const visitor = await visit(served, size);
  mkdirSync(folder, { recursive: true });
  try {
    for (const { name, theme, address, sees } of pictures) {
      await visitor.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
      await visitor.go(address);
      await visitor.sees(sees);
      await visitor.until("document.querySelector('.loading') === null");
      // The canvas is drawn in the frame after the next.
      await visitor.page.evaluate(
        "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 400))))",
      );
      const bytes = await visitor.page.screenshot({ type: "png", optimizeForSpeed: false });
      if (bytes.length > bytesMax) throw new Error(`${name}.png takes ${bytes.length} bytes`);
      writeFileSync(join(folder, `web-${name}.png`), bytes);
    }
  } finally {
    await (await openBrowser()).close();
    await served.close();
    await port.close();
    rmSync(scratch, { recursive: true, force: true });
  }
}
