/** Loaded before a test file: adds the CPU time of its process, and of those it started, to the file that LCM_TEST_CPU names. */

import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { dirname, relative } from "node:path";

/** Linux counts in these the ended processes that were waited for, as the 14th word on does; it counts in 1/100 s. */
const counters = "/proc/self/stat";
const ticksPerSecond = 100;

const report = process.env["LCM_TEST_CPU"];
if (report !== undefined) process.on("exit", () => appendFileSync(report, line()));

function line(): string {
  const { user, system } = process.cpuUsage();
  const seconds = (user + system) / 1e6;
  return `${relative(dirname(import.meta.dirname), process.argv[1] ?? "")}\t${seconds.toFixed(2)}\t${childSeconds().toFixed(2)}\n`;
}

/** Without those that are still running, and 0 where the system does not report it. */
function childSeconds(): number {
  if (!existsSync(counters)) return 0;
  // The second word is the command in brackets, which may contain blanks.
  const words = readFileSync(counters, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(words[13]) + Number(words[14])) / ticksPerSecond;
}
