/** Runs the agents' own commands, and tries what they will load from us. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { agents, type AgentName, type Machine } from "./agents.ts";

const timeoutMs = 120_000;
const linesShown = 5;

interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Why it failed, with the end of what it printed; null if it succeeded. */
export async function runProgram(program: string, args: readonly string[]): Promise<string | null> {
  const { status, stdout, stderr } = await run(program, args, "");
  if (status === 0) return null;
  const printed = `${stdout}\n${stderr}`.split("\n").filter((line) => line.trim() !== "");
  const words = [program, ...args].join(" ");
  return [`\`${words}\` failed${status === null ? "" : ` with status ${status}`}`, ...printed.slice(-linesShown)].join(
    "\n",
  );
}

/** Why an agent could not use this package, found out by using it as the agent would; null if it could. */
export async function checkLoads({ folder }: Machine, agent: AgentName): Promise<string | null> {
  const { entry, loads } = agents[agent];
  const path = join(folder, entry);
  if (loads === "module") {
    const { status, stderr } = await run(
      process.execPath,
      ["--input-type=module", "--eval", importing, pathToFileURL(path).href],
      "",
    );
    return status === 0 ? null : `${path} cannot be loaded: ${lastError(stderr)}`;
  }
  const server = join(folder, "bin", "lcm.js");
  const { status, stdout, stderr } = await run(process.execPath, [server, "mcp"], handshake);
  return status === 0 && stdout.includes('"lcm_grep"') ? null : `${server} mcp does not answer: ${lastError(stderr)}`;
}

const importing = "await import(process.argv[1])";

const handshake = [
  {
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "lcm setup", version: "1" } },
  },
  { method: "notifications/initialized" },
  { id: 2, method: "tools/list" },
]
  .map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
  .join("");

const lastError = (stderr: string): string =>
  stderr
    .split("\n")
    .findLast((line) => /error/i.test(line))
    ?.trim() ??
  (stderr.trim().split("\n").at(-1) || "no output");

/** On Windows these programs are often scripts, which only a shell can start. */
async function run(program: string, args: readonly string[], input: string): Promise<Ended> {
  const isScript = program.endsWith(".cmd");
  const words = isScript ? args.map((word) => `"${word}"`) : args;
  const child = spawn(isScript ? `"${program}"` : program, words, {
    shell: isScript,
    stdio: "pipe",
    timeout: timeoutMs,
    windowsHide: true,
  });
  const closed = once(child, "close");
  child.stdin.on("error", () => undefined); // It may end without reading.
  child.stdin.end(input);
  try {
    const [stdout, stderr] = await Promise.all([textOf(child.stdout), textOf(child.stderr), closed]);
    return { status: child.exitCode, stdout, stderr };
  } catch (error) {
    return { status: null, stdout: "", stderr: String(error) };
  }
}
