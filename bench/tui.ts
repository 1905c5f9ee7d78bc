/**
 * Measures the terminal UI on a real pseudo-terminal over one long conversation: CPU until the first screen, and key
 * latency. Prints JSON. See bench.ts.
 */

import { startTerminal } from "../test/support/terminal.ts";
import type { Terminal } from "../test/support/terminal.ts";
import { spread } from "./measure.ts";
import type { Spread } from "./measure.ts";

export interface Shown {
  readonly firstScreenCpuMs: number;
  readonly firstScreenMs: number;
  /** From a key to the screen that it changed, by screen. */
  readonly keys: Readonly<Record<string, Spread>>;
  readonly all: Spread;
}

/** The published program, which starts sooner than the sources. */
const built = new URL("../dist/cli/main.js", import.meta.url).href;
const script = `import("${built}").then((lcm) => lcm.main(process.argv.slice(1))).then((status) => process.exit(status))`;
const [database = ""] = process.argv.slice(2);

/** How to get to a screen, what shows that it is there, and what to type on it. */
const screens: readonly {
  readonly name: string;
  readonly open: readonly string[];
  readonly sees: RegExp;
  readonly keys: readonly string[];
}[] = [
  { name: "messages", open: ["enter"], sees: /messages/, keys: walk("j", "k", "pageUp", "pageDown", "g", "G") },
  { name: "summaries", open: ["s"], sees: /\bd\d/, keys: walk("j", "k", "enter", "pageDown", "g", "G", "J") },
  { name: "context", open: ["c"], sees: /fresh tail/, keys: walk("j", "k", "pageDown", "g", "G") },
];

/** The same keys in rotation, and many of the first ones: that is how people read. */
function walk(...keys: readonly string[]): readonly string[] {
  const [down = "", up = ""] = keys;
  return Array.from({ length: 60 }, (_, at) =>
    at % 4 === 3 ? (keys[(at >> 2) % keys.length] ?? down) : at % 8 < 4 ? up : down,
  );
}

/** Null where a key changed nothing: at the end of a list. */
async function press(terminal: Terminal, key: string): Promise<number | null> {
  const before = terminal.screen();
  const start = performance.now();
  terminal.press(key);
  while (performance.now() - start < patienceMs) {
    await terminal.drawn(Math.max(1, patienceMs - (performance.now() - start)));
    if (terminal.screen() !== before) return performance.now() - start;
  }
  return null;
}

const patienceMs = 400;
const first = "latest activity first";

/** A key may have led beyond the screen it was pressed on. */
async function backToTheFirst(terminal: Terminal): Promise<void> {
  for (let tries = 0; tries < 5 && !terminal.screen().includes(first); tries++) {
    terminal.press("q");
    for (let waited = 0; waited < 5 && !terminal.screen().includes(first); waited++)
      await terminal.drawn(patienceMs / 4);
  }
  await terminal.sees(first);
}

const start = performance.now();
const terminal = startTerminal(`${process.execPath} -e '${script}' -- tui --db ${database}`, {
  columns: 120,
  rows: 40,
});
await terminal.sees(first);
const [firstScreenMs, firstScreenCpuMs] = [performance.now() - start, terminal.cpuMs()];
const keys: Record<string, Spread> = {};
const all: number[] = [];
for (const screen of screens) {
  terminal.press(...screen.open);
  await terminal.sees(screen.sees);
  const took: number[] = [];
  for (const key of screen.keys) {
    const ms = await press(terminal, key);
    if (ms !== null) took.push(ms);
  }
  keys[screen.name] = spread(took);
  all.push(...took);
  await backToTheFirst(terminal);
}
terminal.press("q");
await terminal.ended();
const shown: Shown = { firstScreenCpuMs, firstScreenMs, keys, all: spread(all) };
console.log(JSON.stringify(shown));
