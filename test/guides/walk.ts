/**
 * Walks through a page and runs every command in order, in its own home folder. Commands of other programs are not run;
 * a table names the test that proves each. A command in neither is an error.
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

/** With GUIDES=write in the environment, what is no longer said is rewritten: cut it to what matters, with lines `…`. */
const isWriting = process.env["GUIDES"] === "write";

export const root = fileURLToPath(new URL("../..", import.meta.url));

// ── Commands proved elsewhere ────────────────────────────────────────────────────────────────────────────────────────

interface Proof {
  readonly command: RegExp;
  /** A path relative to the repository, and words that occur there. */
  readonly file: string;
  readonly holds: readonly string[];
}

const host = "test/host/package.test.ts";

export const proofs: readonly Proof[] = [
  { command: /^npm (?:ci|test)$/, file: ".ci/run", holds: ["npm ci", "npm test"] },
  { command: /^npm run build$/, file: "test/support/published.ts", holds: ["scripts/build.ts"] },
  // A test requested by name also runs in `npm test`.
  {
    command: /^(?:SEED=\d+ )?npx node --test test\/simulation\/simulation\.test\.ts$/,
    file: "scripts/test-files.ts",
    holds: ["test/**/*.test.ts"],
  },
  { command: /^npm pack$/, file: "test/support/published.ts", holds: ['["pack", '] },
  {
    command: /^npm install (?:-g )?\S+\.tgz$/,
    file: "test/package.test.ts",
    holds: ['["install", ...quietly, packed.path]'],
  },
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
  // There the gateway is stopped and started by signals: its service belongs to the system, out of a test's reach.
  { command: /^openclaw gateway (?:re)?st(?:art|op)$/, file: "test/host/gateway.ts", holds: ['"gateway"', "stop"] },
  {
    command: /^(?:claude|codex) mcp add lossless-claw -- (?:npx lcm|node \S+\/bin\/lcm\.js) mcp$/,
    file: "test/scenarios/mcp.test.ts",
    holds: ["StdioClientTransport", "bin"],
  },
  // Ours, but it needs the agent.
  { command: /^lcm setup(?: [a-z-]+)?(?: --remove)?$/, file: "test/host/setup.ts", holds: ['"setup"', '"--remove"'] },
  {
    command: /^lcm (?:run(?: --store-only)? -- \w+|proxy(?: status)?)$/,
    file: "test/scenarios/proxy.test.ts",
    holds: ['"run"', '"--store-only"', '"proxy"', '"status"'],
  },
  // Ours, but it takes seconds, and is run there.
  { command: /^npx lcm demo --keep$/, file: "test/scenarios/mcp.test.ts", holds: ['"demo", "--keep"'] },
  {
    command: /^lcm web(?: --write| --port \d+ --no-open)?$/,
    file: "test/web/command.test.ts",
    holds: ['start("--write", "--json")', 'start("--port", port)'],
  },
  { command: /^ssh -L \S+ \S+$/, file: "test/web/security.test.ts", holds: ["answers over a forwarded port"] },
  { command: /^(?:npx )?lcm(?: tui)?$/, file: "test/tui/lifecycle.test.ts", holds: ["robot"] },
];

// ── The walk ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Walk {
  /** The reader's home; `.openclaw` in it is the state directory. */
  readonly home: string;
  /** Replaces what the page exports under these names. */
  readonly exported: Readonly<Record<string, string>>;
}

/** Runs it from its first command to its last, and returns how many were run here. */
export async function walk(shell: Shell, page: string, { home, exported }: Walk): Promise<number> {
  const path = join(root, page);
  const lines = readFileSync(path, "utf8").split("\n");
  const env: Record<string, string> = {};
  const names: Names = new Map();
  let [ran, moved] = [0, 0];

  /** The output of a single command; none if it is not ours. */
  const run = async (command: string, where: string): Promise<string> => {
    const [, name, value = ""] = /^export ([A-Z_]+)=(.*)$/.exec(command) ?? [];
    const [, text, file] = /^echo '([^']*)' > ([\w.-]+)$/.exec(command) ?? [];
    const ours = argumentsOf(withNames(command, names));
    if (name !== undefined) {
      assert.match(name, /^LCM_|_API_KEY$/, where);
      env[name] = exported[name] ?? wordsOf(value).join(" ");
    } else if (file !== undefined) writeFileSync(join(home, file), `${text}\n`);
    else if (ours === null)
      assert.ok(isProved(command), `${where}\nis not ours, and no table names a test that proves it`);
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
    assert.ok(isWriting, `${where}\nprints now:\n${said}\nand the page shows:\n${shown}`);
    const now = [...said.trimEnd().split("\n"), ...(lines[line + moved + below] === "```" ? [] : [""])];
    lines.splice(line + moved, below, ...now);
    moved += now.length - below;
    writeFileSync(path, lines.join("\n"));
  }
  return ran;
}

const isProved = (command: string): boolean => proofs.some((proof) => proof.command.test(command));

/** The arguments of `lcm`, under whichever name it is called; null if it is not ours. */
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

/** One process for all of it: loading the program takes longest. */
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

/** Whether a table's file contains what the table claims. */
export const holdsOf = ({ file, holds }: Proof): readonly string[] =>
  existsSync(join(root, file))
    ? holds.filter((words) => !readFileSync(join(root, file), "utf8").includes(words))
    : [`${file} is not there`];
