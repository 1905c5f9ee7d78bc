/**
 * Checks the pages: links resolve, examples compile and run, and every command, option, setting, variable and script
 * named exists. guides.test.ts runs the commands of the guides.
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Command } from "commander";
import { addCommands } from "../src/cli/commands/index.ts";
import { createContext } from "../src/cli/context.ts";
import { envOf, settings } from "../src/core/model/settings.ts";
import { blocksOf, spansOf, wordsOf } from "./guides/page.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), "utf8").replaceAll("\r\n", "\n");
const pages = globSync(["*.md", "docs/**/*.md"], { cwd: root })
  .map((path) => path.replaceAll("\\", "/"))
  .toSorted()
  .map((path) => ({ path, text: read(path) }));
const guides = pages.filter(({ path }) => path === "README.md" || path.startsWith("docs/guides/"));

// ── Links ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The anchor of a heading. */
const anchorsOf = (text: string): readonly string[] =>
  [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-"),
  );

describe("the pages", () => {
  it("link only to what exists, down to the heading", () => {
    assert.ok(pages.length > 20);
    const broken = pages.flatMap(({ path, text }) =>
      [...text.matchAll(/\]\(([^)#:\s]*)(?:#([^)\s]*))?\)/g)].flatMap(([, target = "", anchor]) => {
        const to = target === "" ? path : join(dirname(path), target);
        if (!existsSync(join(root, to))) return [`${path} links to ${target}`];
        if (anchor === undefined || anchorsOf(read(to)).includes(anchor)) return [];
        return [`${path} links to #${anchor} in ${to}`];
      }),
    );
    assert.deepEqual(broken, []);
  });

  it("are all reachable from the README", () => {
    const seen = new Set<string>();
    const visit = (path: string): void => {
      if (seen.has(path) || !existsSync(join(root, path))) return;
      seen.add(path);
      for (const [, target = ""] of read(path).matchAll(/\]\(([^)#:\s]+\.md)(?:#[^)]*)?\)/g))
        visit(join(dirname(path), target).replaceAll("\\", "/"));
    };
    visit("README.md");
    assert.deepEqual(
      pages.map(({ path }) => path).filter((path) => !seen.has(path)),
      [],
    );
  });

  it("begin with a README that reads in a minute", () => {
    assert.ok(read("README.md").split("\n").length <= 175);
  });

  it("give the same figures as the pages they are taken from", () => {
    const rows = [...read("README.md").matchAll(/^\|(.*)\*\*(.*)\*\*.*\]\((docs\/\w+\.md)\) \|$/gm)];
    assert.equal(rows.length, 5);
    for (const [, what, figure = "", page = ""] of rows)
      assert.ok(read(page).includes(figure.replace(/%$/, "")), `${page} does not contain ${figure} for ${what}`);
  });
});

// ── Names that must exist ────────────────────────────────────────────────────────────────────────────────────────────

const program = new Command("lcm");
addCommands(program, createContext({ finish: () => undefined }), false);
program.option("-V, --version").option("-h, --help");

const optionsOf = (command: Command): readonly (string | null | undefined)[] =>
  command.options.flatMap(({ long, short }) => [long, short]);
const anyOption = [program, ...program.commands].flatMap(optionsOf);

/** Options of other programs that pages name by themselves. */
const foreignOptions = [
  "--force",
  "--accept-capabilities",
  "--strict-json",
  "--doc",
  "--tune",
  "--embedder",
  "--postgres",
];

/** Why this is not a valid command of ours; null if it is one, or not a command at all. */
function faultOf(code: string): string | null {
  const words = wordsOf(code.replace(/^(?:npx |openclaw )(?=lcm\b)/, ""));
  const options = words.filter((word) => /^--?[a-z][\w-]*$/.test(word));
  if (words[0]?.startsWith("--") === true) {
    const unknown = options.find((option) => !anyOption.includes(option) && !foreignOptions.includes(option));
    return unknown === undefined ? null : `no command has ${unknown}`;
  }
  if (words[0] !== "lcm" && words[0] !== "lcm-tui") return null;
  const name = words.slice(1).find((word, index, all) => !word.startsWith("-") && all[index - 1] !== "--db");
  const command = name === undefined || name === "…" ? program : program.commands.find((each) => each.name() === name);
  if (command === undefined) return `there is no lcm ${name}`;
  const unknown = options.find((option) => ![...optionsOf(command), ...optionsOf(program)].includes(option));
  return unknown === undefined ? null : `lcm ${name ?? ""} has no ${unknown}`;
}

const scripts: unknown = JSON.parse(read("package.json")).scripts;
const ofGuides = (check: (text: string) => readonly string[]): readonly string[] =>
  guides.flatMap(({ path, text }) => check(text).map((fault) => `${path}: ${fault}`));

describe("what pages name", () => {
  it("are existing commands and options", () => {
    assert.equal(faultOf("lcm grep WORDS --limit 3"), null);
    assert.equal(faultOf("npx lcm compact 3 --purge"), "lcm compact has no --purge");
    assert.equal(faultOf("openclaw lcm frobnicate"), "there is no lcm frobnicate");
    assert.equal(faultOf("--frobnicate"), "no command has --frobnicate");
    const faults = pages.flatMap(({ path, text }) =>
      spansOf(text).flatMap((span) => {
        const fault = faultOf(span);
        return fault === null ? [] : [`${path}: ${span}: ${fault}`];
      }),
    );
    assert.deepEqual(faults, []);
  });

  it("are existing chat commands", () => {
    const source = read("src/hosts/shared/chat-commands.ts");
    const faults = ofGuides((text) =>
      spansOf(text).filter((span) => {
        const [, word] = /^\/lcm (\w+)/.exec(span) ?? [];
        return word !== undefined && !source.includes(`["${word}", {`);
      }),
    );
    assert.deepEqual(faults, []);
  });

  it("are existing scripts", () => {
    assert.ok(typeof scripts === "object" && scripts !== null);
    const faults = pages.flatMap(({ path, text }) =>
      [...text.matchAll(/\bnpm run ([\w:]+)/g)].flatMap(([, name = ""]) =>
        name in scripts ? [] : [`${path}: npm run ${name}`],
      ),
    );
    assert.deepEqual(faults, []);
  });

  it("are existing variables", () => {
    const known = new Set<string>([...Object.keys(settings).map(envOf), "LCM_DEBUG", "LCM_NODE"]);
    assert.match(read("src/cli/context.ts"), /\bLCM_DEBUG\b/);
    assert.match(read("bin/launch.js"), /\bLCM_NODE\b/);
    const faults = pages.flatMap(({ path, text }) =>
      [...text.matchAll(/\bLCM_[A-Z_]*[A-Z]\b/g)]
        .filter(([name]) => !known.has(name))
        .map(([name]) => `${path}: ${name}`),
    );
    assert.deepEqual(faults, []);
  });

  it("are existing settings", () => {
    const faults = ofGuides((text) =>
      spansOf(text).flatMap((span) => {
        const [, name] = /^([a-z]+(?:[A-Z][a-z]+)+)(?:: \S+)?$/.exec(span) ?? [];
        return name === undefined || name in settings || notSettings.includes(name) ? [] : [name];
      }),
    );
    assert.deepEqual(faults, []);
  });
});

/** Names of the same form: of the library, and of the arguments and results of tools. */
const notSettings: readonly string[] = [
  "allConversations",
  "carryDepth",
  "citedIds",
  "citedMessages",
  "createLcm",
  "endPrompt",
  "headingTokens",
  "isError",
  "onProgress",
  "openSqlite",
  "recordPrompt",
  "sessionKey",
  "summaryIds",
  "tokenCap",
  "toolCall",
  "toolResult",
];

describe("data blocks in the guides", () => {
  const blocks = guides.flatMap(({ path, text }) => blocksOf(text).map((block) => ({ path, ...block })));
  const of = (language: string) => blocks.filter((block) => block.language === language);

  it("are JSON, and use existing settings", () => {
    assert.ok(of("json").length >= 3);
    for (const { path, line, text } of of("json")) {
      const value = JSON.parse(text);
      const isHosts = "mcpServers" in value || "permissions" in value;
      const config = value.plugins?.entries["lossless-claw"].config ?? (isHosts ? {} : value);
      const unknown = Object.keys(config).filter((key) => !(key in settings));
      assert.deepEqual(unknown, [], `${path}:${line}`);
    }
  });

  it("are TOML", () => {
    const lines = of("toml").flatMap(({ text }) => text.split("\n"));
    assert.ok(lines.length > 0);
    for (const line of lines) assert.match(line, /^(?:\[[\w.-]+\]|\w+ = (?:".*"|\d+|\[.*\]))?$/);
  });

  it("are in a language that is checked, or plain output", () => {
    const checked = ["", "sh", "sql", "ts", "json", "toml", "text", "xml"]; // SQL: scenarios/server.test.ts.
    assert.deepEqual(
      blocks.filter(({ language }) => !checked.includes(language)),
      [],
    );
  });
});

// ── Examples ─────────────────────────────────────────────────────────────────────────────────────────────────────────

describe("the examples of the library", () => {
  const page = blocksOf(read("docs/guides/library.md"));
  const examples = page
    .filter(({ language }) => language === "ts")
    .map(({ text }, at) => ({ name: `example-${at}.ts`, text }));
  const library = pathToFileURL(join(root, "src/index.ts")).href;

  it("run one after the other, and print what the page shows", () => {
    const folder = mkdtempSync(join(tmpdir(), "lcm-example-"));
    try {
      for (const { name, text } of examples)
        writeFileSync(join(folder, name), text.replaceAll('"lossless-claw"', JSON.stringify(library)));
      // In one process: loading the library takes longest.
      const all = examples.map(({ name }) => `await import("./${name}");\nconsole.log("\\f");\n`).join("");
      writeFileSync(join(folder, "all.ts"), all);
      const said = execFileSync(process.execPath, ["all.ts"], { cwd: folder, encoding: "utf8", env: {} });
      const outputs = said.split("\f\n").slice(0, -1);
      assert.equal(outputs.length, 4);
      assert.equal(outputs[0]?.trim(), page.find(({ language }) => language === "text")?.text);
      assert.match(outputs[1] ?? "", /role: 'user', content: 'hello, my order is late'/);
      assert.match(outputs[2] ?? "", /^complete 1$/m);
      assert.match(outputs[3] ?? "", /name: 'lcm_grep'[^]*\nmsg_1-1 user .*\n> hello, my order is late\n/);
      assert.ok(existsSync(join(folder, "lcm.db")));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("compile for a user with strict types", () => {
    const folder = mkdtempSync(join(tmpdir(), "lcm-example-"));
    try {
      for (const { name, text } of examples) writeFileSync(join(folder, name), text);
      const compilerOptions = {
        paths: { "lossless-claw": [join(root, "src/index.ts")] },
        typeRoots: [join(root, "node_modules/@types")],
      };
      const config = { extends: join(root, "tsconfig.json"), compilerOptions, include: ["*.ts"] };
      writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
      writeFileSync(join(folder, "package.json"), '{"type":"module"}');
      execFileSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", folder], {
        encoding: "utf8",
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("begin with one of about twenty lines", () => {
    const lines = examples[0]?.text.split("\n").filter((line) => line !== "") ?? [];
    assert.ok(lines.length > 0 && lines.length <= 20, String(lines.length));
  });
});
