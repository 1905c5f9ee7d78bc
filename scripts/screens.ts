/**
 * Writes screens of the terminal UI into its guide, and draws one as a picture for the README (`npm run screens`). A
 * robot walks through the database of `lcm demo` with a fixed clock and fixed ids; a test fails when they no longer
 * match. Pictures of the explorer are taken by a real browser, where it runs.
 */

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { makeDemoDatabase } from "../test/support/demo-database.ts";
import { withoutBrowser } from "../test/support/platform.ts";
import { portOver, startRobot } from "../test/support/robot.ts";
import type { Robot } from "../test/support/robot.ts";
import { drawPicture } from "./screen-picture.ts";
import { takePictures } from "./web-screens.ts";

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

export interface Screens {
  /** The heading and text of each on a page. */
  readonly sections: readonly string[];
  /** The one that is pictured, as SVG. */
  readonly picture: string;
}

/** The screen that shows most of what this is. */
const isPictured = (title: string): boolean => title.startsWith("Summaries");

export async function drawScreens(): Promise<Screens> {
  const folder = mkdtempSync(join(tmpdir(), "lcm-screens-"));
  try {
    const path = join(folder, "lcm.db");
    const now = await makeDemoDatabase(path);
    const sections: string[] = [];
    let picture = "";
    for (const screen of walk) {
      const { title, rows } = screen;
      const { text } = await show(screen, { path, now, colour: false });
      sections.push(`${title}:\n\n\`\`\`text\n${text}\n\`\`\`\n`);
      if (!isPictured(title)) continue;
      const coloured = await show(screen, { path, now, colour: true });
      picture = await drawPicture(coloured.written, { columns, rows }, "Summaries in the terminal UI");
    }
    return { sections, picture };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function show(
  { rows, sees, go }: (typeof walk)[number],
  { path, now, colour }: { readonly path: string; readonly now: string; readonly colour: boolean },
): Promise<{ readonly text: string; readonly written: string }> {
  const port = { ...portOver(path), path: "~/.openclaw/lcm.db" };
  const robot = startRobot(port, { columns, rows, now, colour });
  await robot.sees("1,487");
  await go(robot);
  await robot.sees(sees);
  await robot.settled();
  const shown = {
    text: robot
      .lines()
      .map((line) => line.trimEnd())
      .join("\n"),
    written: robot.written(),
  };
  await robot.end();
  await port.close();
  return shown;
}

const repository = join(import.meta.dirname, "..");
const [begin, end] = ["<!-- screens: made by `npm run screens` -->", "<!-- end of screens -->"];

const guide = "docs/guides/terminal.md";
const picturePath = "docs/pictures/terminal.svg";

/** Every file that shows screens, as it is and as it should be. */
export function filesWith({ sections, picture }: Screens): readonly {
  readonly path: string;
  readonly is: string;
  readonly should: string;
}[] {
  const read = (path: string): string => {
    const full = join(repository, path);
    return existsSync(full) ? readFileSync(full, "utf8").replaceAll("\r\n", "\n") : "";
  };
  const is = read(guide);
  const [from, to] = [is.indexOf(begin), is.indexOf(end)];
  if (from === -1 || to < from) throw new Error(`${guide} has no place for the screens`);
  return [
    { path: guide, is, should: `${is.slice(0, from + begin.length)}\n\n${sections.join("\n")}\n${is.slice(to)}` },
    { path: picturePath, is: read(picturePath), should: picture },
  ];
}

if (import.meta.main) {
  mkdirSync(join(repository, dirname(picturePath)), { recursive: true });
  for (const { path, should } of filesWith(await drawScreens())) writeFileSync(join(repository, path), should);
  if (withoutBrowser === false) await takePictures();
  else console.log(`the pictures of the explorer stay as they are: ${withoutBrowser}`);
}
