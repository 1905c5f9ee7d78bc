/**
 * Walks through a page: every command is run, in the order of the page, over a home of its own. Commands of other programs
 * are not; each stands in a table that says which test proves it instead. What is in neither is a command nobody ran.
 */

import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { isSaid, stepsOf, withNames, wordsOf } from "./page.ts";
import type { Names } from "./page.ts";
import type { Answer, Order } from "./shell.ts";

/** With GUIDES=write in the environment, what is no longer said is written anew: cut it to what matters, with lines `…`. */
const isWriting = process.env["GUIDES"] === "write";

export const root = fileURLToPath(new URL("../..", import.meta.url));

// ── What others prove ────────────────────────────────────────────────────────────────────────────────────────────────

interface Proof {
  readonly command: RegExp;
  /** Relative to the repository, and words that stand in there. */
  readonly file: string;
  readonly holds: readonly string[];
}

const host = "test/host/package.test.ts";

export const proofs: readonly Proof[] = [
  { command: /^npm (?:ci|test)$/, file: ".ci/run", holds: ["npm ci", "npm test"] },
  { command: /^npm run build$/, file: "test/support/published.ts", holds: ["scripts/build.ts"] },
  // What is asked for by name is run by `npm test` like all others.
  {
    command: /^(?:SEED=\d+ )?npx node --test test\/simulation\/simulation\.test\.ts$/,
    file: "scripts/test.ts",
    holds: ["test/**/*.test.ts"],
  },
  { command: /^npm pack$/, file: "test/support/published.ts", holds: ['["pack", '] },
  { command: /^npm install \S+\.tgz$/, file: "test/package.test.ts", holds: ['["install", ...quietly, packed.path]'] },
  {
    command: /^openclaw plugins install (?:-l \.|npm-pack:\S+) --force --accept-capabilities$/,
    file: host,
    holds: ['"plugins", "install", "-l"', '"plugins", "install", `npm-pack:', '"--force", "--accept-capabilities"'],
  },
  {
    command: /^openclaw plugins uninstall lossless-claw --force$/,
    file: host,
    holds: ['"plugins", "uninstall", id, "--force"'],
  },
  { command: /^openclaw plugins doctor$/, file: host, holds: ['"plugins", "doctor"'] },
  {
    command: /^openclaw config set plugins\.entries\.lossless-claw\.config\.\w+ \S+ --strict-json$/,
    file: host,
    holds: ['"config", "set", key', "--strict-json"],
  },
  // The gateway is stopped and started by signals there: its service is the system's, and not in a test's power.
  { command: /^openclaw gateway (?:re)?st(?:art|op)$/, file: "test/host/gateway.ts", holds: ['"gateway"', "stop"] },
  {
    command: /^(?:claude|codex) mcp add lossless-claw -- (?:npx lcm|node \S+\/bin\/lcm\.js) mcp$/,
    file: "test/scenarios/mcp.test.ts",
    holds: ["StdioClientTransport", "bin"],
  },
  // Ours, but it takes seconds, and is run there.
  { command: /^npx lcm demo --keep$/, file: "test/scenarios/mcp.test.ts", holds: ['"demo", "--keep"'] },
  { command: /^(?:npx )?lcm(?: tui)?$/, file: "test/tui/lifecycle.test.ts", holds: ["robot"] },
];

// ── The walk ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Walk {
  /** Of the reader; `.openclaw` in it is the state directory. */
  readonly home: string;
  /** Put in the place of what the page exports under these names. */
  readonly exported: Readonly<Record<string, string>>;
}

/** Takes it from its first command to its last, and tells how many were run here. */
export async function walk(shell: Shell, page: string, { home, exported }: Walk): Promise<number> {
  const path = join(root, page);
  const lines = readFileSync(path, "utf8").split("\n");
  const env: Record<string, string> = {};
  const names: Names = new Map();
  let [ran, moved] = [0, 0];

  /** What a single command says; nothing if it is not for us. */
  const run = async (command: string, where: string): Promise<string> => {
    const [, name, value = ""] = /^export ([A-Z_]+)=(.*)$/.exec(command) ?? [];
    const [, text, file] = /^echo '([^']*)' > ([\w.-]+)$/.exec(command) ?? [];
    const ours = argumentsOf(withNames(command, names));
    if (name !== undefined) {
      assert.match(name, /^LCM_|_API_KEY$/, where);
      env[name] = exported[name] ?? wordsOf(value).join(" ");
    } else if (file !== undefined) writeFileSync(join(home, file), `${text}\n`);
    else if (ours === null) assert.ok(isProved(command), `${where}\nis not ours, and in no table of what others prove`);
    else {
      ran += 1;
      const { status, said } = await shell.run({ ...ours, home, env: { ...env, ...ours.env } });
      assert.equal(status, 0, `${where}\n${said}`);
      return said.replaceAll(home, "~");
    }
    return "";
  };

  for (const { command, shown, line, below } of stepsOf(lines.join("\n"))) {
    const where = `${page}:${line}: ${command}`;
    let said = "";
    for (const part of command.split(" && ")) said += await run(part, where);
    if (shown === null || isSaid(shown, said, names)) continue;
    assert.ok(isWriting, `${where}\nsays now:\n${said}\nand the page:\n${shown}`);
    const now = [...said.trimEnd().split("\n"), ...(lines[line + moved + below] === "```" ? [] : [""])];
    lines.splice(line + moved, below, ...now);
    moved += now.length - below;
    writeFileSync(path, lines.join("\n"));
  }
  return ran;
}

const isProved = (command: string): boolean => proofs.some((proof) => proof.command.test(command));

/** What `lcm` gets, under whichever name it is called; null if it is not ours. */
function argumentsOf(command: string): Pick<Order, "args" | "env"> | null {
  const words = [...wordsOf(command)];
  const env: Record<string, string> = {};
  for (let at = words[0]; at !== undefined && /^[A-Z_]+=/.test(at); at = words[0]) {
    env[at.slice(0, at.indexOf("="))] = at.slice(at.indexOf("=") + 1);
    words.shift();
  }
  if (words.join(" ") === "npm run demo") return { args: ["demo"], env };
  if (words[0] === "npx" || words[0] === "openclaw") words.shift();
  return words.length > 1 && words[0] === "lcm" && !isProved(command) ? { args: words.slice(1), env } : null;
}

// ── The shell ────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Shell {
  run(order: Order): Promise<Answer>;
  close(): Promise<void>;
}

/** One process for all of it: what takes longest about a command is to load the program. */
export function openShell(): Shell {
  const still = pathToFileURL(join(import.meta.dirname, "still.ts")).href;
  const child = fork(join(import.meta.dirname, "shell.ts"), {
    env: { TZ: "UTC", COLUMNS: "80" },
    execArgv: ["--import", still],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const ended = once(child, "exit");
  return {
    async run(order) {
      const answer = Promise.withResolvers<Answer>();
      child.once("message", answer.resolve);
      const gone = ended.then(() => assert.fail(`lcm ${order.args.join(" ")} ended the process that it ran in`));
      if (child.connected) child.send(order);
      return await Promise.race([answer.promise, gone]);
    },
    async close() {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}

/** Whether a table's file says what the table says of it. */
export const holdsOf = ({ file, holds }: Proof): readonly string[] =>
  existsSync(join(root, file))
    ? holds.filter((words) => !readFileSync(join(root, file), "utf8").includes(words))
    : [`${file} is not there`];
