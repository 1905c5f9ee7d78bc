/**
 * Writes screens of the terminal UI into the README and its guide (`npm run screens`). A robot walks through the
 * database of `lcm demo` with a fixed clock and fixed ids; a test fails when the pages no longer match.
 */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeDemoDatabase } from "../test/support/demo-database.ts";
import { portOver, startRobot } from "../test/support/robot.ts";
import type { Robot } from "../test/support/robot.ts";

const columns = 100;

/** A screen, and how to get there from the first one. */
const walk: readonly {
  readonly title: string;
  readonly rows: number;
  /** What is visible once it is complete. */
  readonly sees: string | RegExp;
  readonly go: (robot: Robot) => Promise<void>;
}[] = [
  { title: "Conversations", rows: 17, sees: "press h to check it", go: async () => undefined },
  {
    title: "Messages, with `↵`",
    rows: 22,
    sees: "msg_1-1487",
    go: async (robot) => await robot.press("enter"),
  },
  {
    title: "Summaries, with `s`",
    rows: 24,
    sees: /- d1 condensed[^]*d0 leaf[^]*made from/,
    async go(robot) {
      await robot.press("s");
      await robot.sees("d1 condensed");
      await robot.press("enter");
    },
  },
  {
    title: "What the model sees, with `c`",
    rows: 22,
    sees: "calendar_list",
    go: async (robot) => await robot.press("c"),
  },
  {
    title: "Search, with `/`",
    rows: 20,
    sees: /matches[^]*esc back/,
    async go(robot) {
      await robot.press("enter");
      await robot.sees("msg_1-1487");
      await robot.press("/");
      await robot.type("passport");
      await robot.sees("matches");
      await robot.press("enter");
    },
  },
];

export interface Screen {
  readonly title: string;
  /** Its heading and text on a page. */
  readonly section: string;
}

export async function drawScreens(): Promise<readonly Screen[]> {
  const folder = mkdtempSync(join(tmpdir(), "lcm-screens-"));
  try {
    const path = join(folder, "lcm.db");
    const now = await makeDemoDatabase(path);
    const screens: Screen[] = [];
    for (const { title, rows, sees, go } of walk) {
      const port = { ...portOver(path), path: "~/.openclaw/lcm.db" };
      const robot = startRobot(port, { columns, rows, now });
      await robot.sees("1,487");
      await go(robot);
      await robot.sees(sees);
      await robot.settled();
      const lines = robot.lines().map((line) => line.trimEnd());
      screens.push({ title, section: `${title}:\n\n\`\`\`text\n${lines.join("\n")}\n\`\`\`\n` });
      await robot.end();
      await port.close();
    }
    return screens;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const repository = join(import.meta.dirname, "..");
const [begin, end] = ["<!-- screens: made by `npm run screens` -->", "<!-- end of screens -->"];

/** Which screens a page shows: the README the most telling, the guide all of them. */
const pages: readonly { readonly path: string; readonly shows: (title: string) => boolean }[] = [
  { path: "README.md", shows: (title) => /^Summaries|^What the model sees/.test(title) },
  { path: "docs/guides/terminal.md", shows: () => true },
];

/** Every page that shows screens, as it is and as it should be. */
export function pagesWith(
  screens: readonly Screen[],
): readonly { readonly path: string; readonly is: string; readonly should: string }[] {
  return pages.map(({ path, shows }) => {
    const is = readFileSync(join(repository, path), "utf8").replaceAll("\r\n", "\n");
    const [from, to] = [is.indexOf(begin), is.indexOf(end)];
    if (from === -1 || to < from) throw new Error(`${path} has no place for the screens`);
    const sections = screens.filter(({ title }) => shows(title)).map(({ section }) => section);
    return { path, is, should: `${is.slice(0, from + begin.length)}\n\n${sections.join("\n")}\n${is.slice(to)}` };
  });
}

if (import.meta.main) {
  for (const { path, should } of pagesWith(await drawScreens())) writeFileSync(join(repository, path), should);
}
