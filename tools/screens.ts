/**
 * `npm run screens`: the terminal UI as it looks, into the README. A robot walks through the database of `lcm demo`, with a
 * clock and ids that are always the same; a test fails when what it sees is no longer what the README shows.
 */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDemoTranscript, demoSession } from "../src/cli/demo/transcript.ts";
import { createLcm } from "../src/core/lcm.ts";
import type { Timestamp } from "../src/core/model.ts";
import { msToTimestamp, timestampToMs } from "../src/core/text.ts";
import { openSqlite } from "../src/store/sqlite.ts";
import { portOver, startRobot } from "../src/testing/robot.ts";
import type { Robot } from "../src/testing/robot.ts";

const columns = 100;

/** What is shown, and how one gets there from the first screen. */
const walk: readonly {
  readonly title: string;
  readonly rows: number;
  /** What is seen when all of it is there. */
  readonly sees: string | RegExp;
  readonly go: (robot: Robot) => Promise<void>;
}[] = [
  { title: "Conversations", rows: 17, sees: "h checks all of it", go: async () => undefined },
  {
    title: "Messages, with `↵`",
    rows: 22,
    sees: "msg_1487",
    go: async (robot) => await robot.press("enter"),
  },
  {
    title: "Summaries, with `s`",
    rows: 24,
    sees: /- d1 condensed[^]*made from/,
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
    sees: /hits[^]*esc back/,
    async go(robot) {
      await robot.press("enter");
      await robot.sees("msg_1487");
      await robot.press("/");
      await robot.type("passport");
      await robot.sees("hits");
      await robot.press("enter");
    },
  },
];

/** A section of Markdown for each screen. */
export async function drawScreens(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "lcm-screens-"));
  try {
    const path = join(folder, "lcm.db");
    const now = await makeDemo(path);
    const sections: string[] = [];
    for (const { title, rows, sees, go } of walk) {
      const port = { ...portOver(path), path: "~/.openclaw/lcm.db" };
      const robot = startRobot(port, { columns, rows, now });
      await robot.sees("1,487");
      await go(robot);
      await robot.sees(sees);
      await robot.settled();
      sections.push(
        `${title}:\n\n\`\`\`text\n${robot
          .lines()
          .map((line) => line.trimEnd())
          .join("\n")}\n\`\`\`\n`,
      );
      await robot.end();
      await port.close();
    }
    return sections.join("\n");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** As `lcm demo` makes it, and the time just after its last message. */
async function makeDemo(path: string): Promise<Timestamp> {
  let [ids, seconds] = [0, 0];
  const transcript = createDemoTranscript();
  const last = timestampToMs(String(transcript.at(-1)?.["timestamp"]) as Timestamp);
  const now = (): Timestamp => msToTimestamp(last + 1_000 * ++seconds);
  const hex16 = (): string => Math.imul(++ids, 0x9e3779b1).toString(16).replace("-", "").padStart(16, "5b1c07e94d");
  const lcm = createLcm({ store: await openSqlite({ path, housekeeping: false, now, hex16 }), clock: { now } });
  try {
    const lines = async function* () {
      for (const [index, value] of transcript.entries()) yield { position: index + 1, value };
    };
    await lcm.import(lines(), { fallbackSessionId: demoSession });
    const { id } = await lcm.find(demoSession);
    await lcm.compact({ conversation: id, mode: "sweep" });
    while ((await lcm.store.index(1_000)) > 0);
    return msToTimestamp(last + 4 * 60_000);
  } finally {
    await lcm.close();
  }
}

const [begin, end] = ["<!-- screens: made by `npm run screens` -->", "<!-- end of screens -->"];

/** The README with these screens in their place. */
export function withScreens(readme: string, screens: string): string {
  const [from, to] = [readme.indexOf(begin), readme.indexOf(end)];
  if (from === -1 || to < from) throw new Error("the README has no place for the screens");
  return `${readme.slice(0, from + begin.length)}\n\n${screens}\n${readme.slice(to)}`;
}

if (import.meta.main) {
  const path = join(import.meta.dirname, "..", "README.md");
  writeFileSync(path, withScreens(readFileSync(path, "utf8"), await drawScreens()));
}
