/**
 * The arrows between the folders of src, and what may stand where. Each rule is a pure check over file texts; it is
 * first shown to bite on a small example, and then held against everything in src.
 *
 * Tests beside the sources and test/support may import anything: they are no part of what ships.
 */

import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";

/** A file of src; the path is relative to src. */
interface SourceFile {
  readonly path: string;
  readonly source: string;
}

interface Violation {
  readonly path: string;
  readonly line: number;
  readonly why: string;
}

interface Rule {
  readonly promise: string;
  readonly check: (files: readonly SourceFile[]) => readonly Violation[];
  /** Each breaks the rule once, in its second line. */
  readonly bad: readonly SourceFile[];
  readonly good: readonly SourceFile[];
}

/** What each folder may import besides itself. A folder that is not named here is not part of the design. */
const arrows: Readonly<Record<string, readonly string[]>> = {
  core: [],
  store: ["core", "node:"],
  llm: ["core", "node:"],
  tools: ["core", "node:", "packages"],
  show: ["core", "node:", "packages"],
  openclaw: ["core", "tools", "node:", "packages"],
  mcp: ["core", "tools", "node:", "packages"],
  cli: ["core", "tools", "show", "node:", "packages"],
  tui: ["core", "show", "node:", "packages"],
  web: ["core", "node:", "packages"],
};

/** The composition roots choose the store, the model and the surface; they alone read the environment. */
const roots = [
  "cli/main.ts",
  "cli/context.ts",
  "cli/open.ts",
  "cli/tui.ts",
  "hosts/openclaw/plugin.ts",
  "hosts/openclaw/cli.ts",
];
const openers = ["cli/open.ts", "hosts/openclaw/plugin.ts"];
const surfaces = ["openclaw", "mcp", "cli", "tui", "web"];
const linesMax = 500;

const rules: readonly Rule[] = [
  arrowRule("core", "core imports only core", {
    bad: [
      `import { open } from "../store/sqlite.ts";`,
      `import type { Script } from "../store/script.ts";`,
      `import { readFileSync } from "node:fs";`,
      `import colours from "picocolors";`,
      `import "../llm/provider.ts";`,
      `export { tools } from "../tools/tools.ts";`,
    ],
    good: [
      `import type { Message } from "./model.ts";`,
      `// import { open } from "../store/sqlite.ts";`,
      `const glob = "/*"; /* import "node:fs" */`,
    ],
  }),
  arrowRule("store", "store imports core and node:", {
    bad: [`import { main } from "../cli/main.ts";`, `import { Pool } from "pg";`],
    good: [`import { DatabaseSync } from "node:sqlite";`, `import { LcmError } from "../core/errors.ts";`],
  }),
  arrowRule("llm", "llm imports core, and loads a package only when a model is asked", {
    bad: [
      `import {\n  sql,\n} from "../store/script.ts";`,
      `import { createContext } from "../cli/context.ts";`,
      `import { generateText } from "ai";`,
    ],
    good: [
      `import type { Model } from "../core/ports.ts";`,
      `import type { LanguageModel } from "ai";`,
      `const { generateText } = await import("ai");`,
    ],
  }),
  arrowRule("tools", "tools imports core", {
    bad: [`const { run } = await import("../cli/commands.ts");`, `import { open } from "../store/sqlite.ts";`],
    good: [`import { grep } from "../core/recall.ts";`],
  }),
  arrowRule("openclaw", "openclaw imports core and tools, and mounts cli/commands", {
    bad: [
      `import { createContext } from "../cli/context.ts";`,
      `import { open } from "../store/sqlite.ts";`,
      `const { complete } = await import("../llm/provider.ts");`,
    ],
    good: [
      `import { tools } from "../tools/tools.ts";`,
      `import { commands } from "../cli/commands.ts";`,
      `import { rewrite } from "../cli/commands/rewrite.ts";`,
    ],
  }),
  arrowRule("mcp", "mcp imports core and tools", {
    bad: [`import { open } from "../cli/open.ts";`, `import { complete } from "../llm/provider.ts";`],
    good: [`import { tools } from "../tools/tools.ts";`],
  }),
  arrowRule("show", "show imports core", {
    bad: [`import { Session } from "../cli/commands/session.ts";`, `import { App } from "../tui/app.ts";`],
    good: [`import { formatCount } from "../core/text.ts";`, `import { diffLines } from "diff";`],
  }),
  arrowRule("cli", "cli imports core, tools and show", {
    bad: [`import { openStore } from "../store/sqlite.ts";`, `const { App } = await import("../tui/app.ts");`],
    good: [`import { tools } from "../tools/tools.ts";`, `import { Command } from "commander";`],
  }),
  arrowRule("tui", "tui imports core and show", {
    bad: [`import { act } from "../cli/commands/session.ts";`, `import { grepTool } from "../tools/grep.ts";`],
    good: [`import { createLcm } from "../core/lcm.ts";`, `import { table } from "../show/render.ts";`],
  }),
  arrowRule("web", "web imports core", {
    bad: [`const worker = new Worker(new URL("../store/sqlite-worker.ts", import.meta.url));`],
    good: [`import { createLcm } from "../core/lcm.ts";`],
  }),
  {
    promise: "the composition roots choose store and model, and load a surface only when it is asked for",
    check: (files) => checkArrows(files.filter((file) => roots.includes(file.path))),
    bad: [
      file("cli/main.ts", `import { openStore } from "../store/sqlite.ts";`),
      file("cli/main.ts", `import { App } from "../tui/app.ts";`),
      file("hosts/openclaw/plugin.ts", `import { sample } from "../testing/scripted-llm.ts";`),
    ],
    good: [
      file(
        "cli/open.ts",
        `import { openStore } from "../store/sqlite.ts";\nimport { complete } from "../llm/provider.ts";`,
      ),
      file("hosts/openclaw/plugin.ts", `const { openStore } = await import("../store/sqlite.ts");`),
      file("cli/main.ts", `import type { App } from "../tui/app.ts";\nconst { run } = await import("../tui/app.ts");`),
    ],
  },
  {
    promise: "the library's face shows core, store, llm and tools",
    check: (files) => checkArrows(files.filter((file) => file.path === "index.ts")),
    bad: [file("index.ts", `export { main } from "./cli/main.ts";`)],
    good: [
      file(
        "index.ts",
        `export { openStore } from "./store/sqlite.ts";\nexport type { Message } from "./core/model.ts";`,
      ),
    ],
  },
  {
    promise: "every file stands in a folder of the design",
    check: (files) =>
      shipped(files)
        .filter((file) => file.path !== "index.ts" && arrows[folderOf(file.path)] === undefined)
        .map((file) => violation(file, 1, "no arrow leads here")),
    bad: [],
    good: [file("index.ts", ""), file("core/compaction/choose-runs.ts", ""), file("test/support/lossless.ts", "")],
  },
  {
    promise: "what ships imports no test and nothing from testing/, which may import anything themselves",
    check: (files) =>
      shipped(files).flatMap((file) =>
        importsOf(file)
          .filter((each) => !isShipped(targetOf(file.path, each.specifier)))
          .map((each) => violation(file, each.line, `imports ${each.specifier}`)),
      ),
    bad: [
      file("index.ts", `export { scriptedLlm } from "./testing/scripted-llm.ts";`),
      file("cli/demo/run.ts", `import { sample } from "./open.test.ts";`),
    ],
    good: [
      file("core/compaction/choose-runs.test.ts", `import { openStore } from "../store/sqlite.ts";`),
      file("test/support/lossless.ts", `import { openStore } from "../store/sqlite.ts";`),
    ],
  },
  {
    promise: "no two files import each other, over however many steps",
    check: findCycles,
    bad: [file("core/compaction/choose-runs.ts", `import { plan } from "./plan.ts";`)],
    good: [
      file("store/sqlite/store.ts", `const worker = new Worker(new URL("./sqlite-worker.ts", import.meta.url));`),
      file("store/sqlite/worker.ts", `import { openStore } from "./sqlite.ts";`),
    ],
  },
  {
    promise: "only the store knows node:sqlite",
    check: (files) =>
      shipped(files)
        .filter((file) => folderOf(file.path) !== "store")
        .flatMap((file) =>
          importsOf(file)
            .filter((each) => each.specifier === "node:sqlite")
            .map((each) => violation(file, each.line, "node:sqlite belongs in store/")),
        ),
    bad: [
      file("cli/open.ts", `import { DatabaseSync } from "node:sqlite";`),
      file("llm/spend.ts", `const { DatabaseSync } = await import("node:sqlite");`),
    ],
    good: [file("store/sqlite/store.ts", `import { DatabaseSync } from "node:sqlite";`)],
  },
  {
    promise: "only openclaw/ knows the host's SDK",
    check: (files) =>
      shipped(files)
        .filter((file) => folderOf(file.path) !== "openclaw")
        .flatMap((file) =>
          importsOf(file)
            .filter((each) => /^(openclaw|@openclaw)(\/|$)/.test(each.specifier))
            .map((each) => violation(file, each.line, `${each.specifier} belongs in openclaw/`)),
        ),
    bad: [file("cli/commands.ts", `import type { PluginApi } from "openclaw/plugin-sdk";`)],
    good: [file("hosts/openclaw/plugin.ts", `import type { PluginApi } from "openclaw/plugin-sdk";`)],
  },
  {
    promise: "only the store holds SQL",
    check: (files) =>
      findText(
        shipped(files).filter((file) => folderOf(file.path) !== "store"),
        /["'`]\s*(SELECT|INSERT|REPLACE|UPDATE|DELETE|CREATE|DROP|ALTER|PRAGMA)\s+[\w*"'[$]/g,
        "SQL belongs in store/",
      ),
    bad: [
      file("core/recall/grep.ts", "const hits = sql`SELECT * FROM messages`;"),
      file("cli/commands.ts", `db.exec("DELETE FROM summaries");`),
      file("tui/app.ts", "const text = `\n  CREATE TABLE notes (text)`;"),
    ],
    good: [
      file("store/operations.ts", "const hits = sql`SELECT * FROM messages`;"),
      file("web/server.ts", `app.on("DELETE", "/x");\nconst help = "Select one. DELETE removes it.";`),
      file("core/recall/grep.ts", "// the store asks `SELECT * FROM messages`\nconst one = 1;"),
    ],
  },
  {
    promise: "only the composition roots read the environment",
    check: (files) =>
      findText(
        shipped(files).filter((file) => !roots.includes(file.path)),
        /\bprocess\s*\.\s*env\b|\{[^{}]*\benv\b[^{}]*\}\s*(=\s*process\b|from\s*["']node:process["'])/g,
        `process.env belongs in ${roots.join(", ")}`,
      ),
    bad: [
      file("core/model/settings.ts", `const value = process.env["LCM_DB"];`),
      file("format/render.ts", `const { env, stdout } = process;`),
      file("models/credentials.ts", `import { env } from "node:process";`),
    ],
    good: [
      file("cli/open.ts", `const value = process.env["LCM_DB"];`),
      file("models/credentials.ts", `const read = (env: Environment) => env["LCM_KEY"]; // not process.env`),
    ],
  },
  {
    promise: "the core has no clock and no randomness",
    check: (files) =>
      findText(
        shipped(files).filter((file) => folderOf(file.path) === "core"),
        /\b(Date|performance)\.now\b|\bnew Date\(\s*\)|\bMath\.random\b|\bcrypto\.(randomUUID|getRandomValues)\b/g,
        "the time and ids come through a port",
      ),
    bad: [
      file("core/ingest/ingest.ts", "const now = Date.now();"),
      file("core/ingest/ingest.ts", "const now = new Date();"),
      file("core/ingest/ingest.ts", "const id = `sum_${Math.random()}`;"),
      file("core/ingest/ingest.ts", "const id = crypto.randomUUID();"),
    ],
    good: [
      file("core/base/text.ts", "const time = new Date(message.at); // never Date.now()"),
      file("cli/open.ts", "const now = Date.now();"),
    ],
  },
  {
    promise: `no file is longer than ${linesMax} lines`,
    check: (files) =>
      files
        .filter((file) => !isTest(file.path))
        .flatMap((file) => {
          const lines = file.source.trimEnd().split("\n").length;
          return lines <= linesMax
            ? []
            : [violation(file, linesMax + 1, `${lines} lines: a decision in it wants a file`)];
        }),
    bad: [],
    good: [
      { path: "core/compaction/choose-runs.ts", source: "one;\n".repeat(linesMax) },
      { path: "core/compaction/choose-runs.test.ts", source: "one;\n".repeat(linesMax + 1) },
    ],
  },
];

describe("the architecture", () => {
  const files = globSync("**/*.ts", { cwd: fileURLToPath(new URL("../src", import.meta.url)) }).map(
    (path): SourceFile => ({
      path: path.replaceAll("\\", "/"),
      source: readFileSync(new URL(`../src/${path}`, import.meta.url), "utf8"),
    }),
  );

  for (const rule of rules) {
    it(rule.promise, () => {
      assert.deepEqual(rule.check(files).map(violationToText), []);
    });
  }

  it("is read from all of src", () => {
    assert.ok(files.some((file) => file.path === "core/model/types.ts"));
    assert.ok(files.some((file) => file.path === "store/sqlite/schema.ts"));
  });
});

describe("each rule of the architecture bites", () => {
  for (const rule of rules) {
    it(rule.promise, () => {
      for (const bad of rule.bad) {
        const found = rule.check([bad]);
        assert.deepEqual(
          found.map(({ path, line }) => `${path}:${line}`),
          [`${bad.path}:2`],
          `expected one violation in line 2 of\n${bad.source}`,
        );
      }
      assert.deepEqual(rule.check(rule.good).map(violationToText), []);
    });
  }

  it("a cycle is named by all of its files", () => {
    const found = findCycles([
      { path: "core/a.ts", source: `import { b } from "./b.ts";` },
      { path: "core/b.ts", source: `// why\nimport type { c } from "./deep/c.ts";` },
      { path: "core/deep/c.ts", source: `export const a = () => import("../a.ts");` },
      { path: "core/d.ts", source: `import { a } from "./a.ts";` },
    ]);
    assert.deepEqual(found.map(violationToText), [
      "src/core/deep/c.ts:1 closes the cycle core/a.ts → core/b.ts → core/deep/c.ts → core/a.ts",
    ]);
  });

  it("a folder that the design does not know is named", () => {
    const rule = rules.find((each) => each.promise.includes("folder of the design"));
    const found = rule?.check([file("utils/strings.ts", ""), file("loose.ts", "")]) ?? [];
    assert.deepEqual(found.map(violationToText), [
      "src/utils/strings.ts:1 no arrow leads here",
      "src/loose.ts:1 no arrow leads here",
    ]);
  });

  it("a file is too long from its line 501 on", () => {
    const rule = rules.find((each) => each.promise.includes("lines"));
    const found =
      rule?.check([{ path: "core/compaction/choose-runs.ts", source: "one;\n".repeat(linesMax + 1) }]) ?? [];
    assert.deepEqual(found.map(violationToText), [
      "src/core/compaction/choose-runs.ts:501 501 lines: a decision in it wants a file",
    ]);
  });
});

// ── Reading a source ─────────────────────────────────────────────────────────────────────────────────────────────────

interface Import {
  readonly specifier: string;
  readonly line: number;
  /** By the compiler only, when the module is loaded, when the line is reached, or in another thread. */
  readonly when: "type" | "load" | "late" | "elsewhere";
}

function importsOf(file: SourceFile): readonly Import[] {
  const source = withoutComments(file.source);
  const forms: readonly (readonly [RegExp, Import["when"] | "type or load"])[] = [
    [/\b(?:import|export)\b([^;"'`]*?)\bfrom\s*["']([^"']+)["']/g, "type or load"],
    [/\bimport()\s*["']([^"']+)["']/g, "load"],
    [/\bimport()\(\s*["'`]([^"'`]+)["'`]/g, "late"],
    [/\bnew URL()\(\s*["'`](\.[^"'`]+)["'`]/g, "elsewhere"],
  ];
  return forms.flatMap(([form, when]) =>
    [...source.matchAll(form)].map((match): Import => {
      const [, clause = "", specifier = ""] = match;
      const isTypeOnly = /^\s*type\b/.test(clause);
      return {
        specifier,
        line: lineAt(source, match.index),
        when: when === "type or load" ? (isTypeOnly ? "type" : "load") : when,
      };
    }),
  );
}

/** What a slash, a star or a quote can be part of; a slash begins a pattern only where a value can stand. */
const tokens = [
  /\/\/[^\n]*/,
  /\/\*[\s\S]*?\*\//,
  /"(?:\\.|[^"\\\n])*"/,
  /'(?:\\.|[^'\\\n])*'/,
  /`(?:\\[\s\S]|[^`\\])*`/,
  /(?<=[=(,:!&|?{};[]\s*|return\s+)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n])+\//,
];
const anyToken = new RegExp(tokens.map((token) => token.source).join("|"), "g");

/** Comments become blanks of the same length, so that offsets and lines stay. Strings are stepped over whole. */
function withoutComments(source: string): string {
  return source.replace(anyToken, (token) => (/^\/[/*]/.test(token) ? token.replace(/[^\n]/g, " ") : token));
}

function findText(files: readonly SourceFile[], pattern: RegExp, why: string): readonly Violation[] {
  return files.flatMap((file) => {
    const source = withoutComments(file.source);
    return [...source.matchAll(pattern)].map((match) => violation(file, lineAt(source, match.index), why));
  });
}

const lineAt = (source: string, offset: number): number => source.slice(0, offset).split("\n").length;

// ── The arrows ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** The rule of one folder, its roots aside, which have a rule of their own. The examples stand in a file of it. */
function arrowRule(
  folder: string,
  promise: string,
  examples: { readonly bad: readonly string[]; readonly good: readonly string[] },
): Rule {
  const example = (line: string): SourceFile => file(`${folder}/example.ts`, line);
  return {
    promise,
    check: (files) => checkArrows(files.filter(({ path }) => folderOf(path) === folder && !roots.includes(path))),
    bad: examples.bad.map(example),
    good: examples.good.map(example),
  };
}

function checkArrows(files: readonly SourceFile[]): readonly Violation[] {
  return shipped(files).flatMap((file) =>
    importsOf(file)
      .filter((each) => !isAllowed(file.path, each))
      .map((each) => violation(file, each.line, `imports ${each.specifier}`)),
  );
}

function isAllowed(path: string, each: Import): boolean {
  const target = targetOf(path, each.specifier);
  const to = folderOf(target);
  if (path === "index.ts") return to === "core" || to === "store" || to === "llm" || to === "tools";

  const from = folderOf(path);
  if (to === from || arrows[from]?.includes(to)) return true;
  if (openers.includes(path) && (to === "store" || to === "llm")) return true;
  if (from === "llm" && to === "packages") return each.when !== "load";
  if (from === "openclaw" && /^cli\/commands[./]/.test(target)) return true;
  return roots.includes(path) && surfaces.includes(to) && each.when !== "load";
}

/** What an import leads to: a path in src, `node:`, or `packages`. */
function targetOf(path: string, specifier: string): string {
  if (specifier.startsWith("node:")) return "node:";
  if (!specifier.startsWith(".")) return "packages";
  return posix.join(posix.dirname(path), specifier);
}

function findCycles(files: readonly SourceFile[]): readonly Violation[] {
  const paths = new Map(files.map((file) => [file.path, file]));
  const done = new Set<string>();
  const found: Violation[] = [];
  const visit = (file: SourceFile, trail: readonly string[]): void => {
    if (done.has(file.path)) return;
    const here = [...trail, file.path];
    for (const each of importsOf(file)) {
      if (each.when === "elsewhere") continue;
      const target = targetOf(file.path, each.specifier);
      const next = paths.get(target);
      if (here.includes(target)) {
        const cycle = [...here.slice(here.indexOf(target)), target].join(" → ");
        found.push(violation(file, each.line, `closes the cycle ${cycle}`));
      } else if (next !== undefined) visit(next, here);
    }
    done.add(file.path);
  };
  for (const file of files) visit(file, []);
  return found;
}

// ── Paths and violations ─────────────────────────────────────────────────────────────────────────────────────────────

const isTest = (path: string): boolean => path.endsWith(".test.ts");
const folderOf = (path: string): string => path.split("/")[0] ?? path;
const isShipped = (path: string): boolean => !isTest(path) && folderOf(path) !== "testing";
const shipped = (files: readonly SourceFile[]): readonly SourceFile[] => files.filter((file) => isShipped(file.path));

const violation = (file: SourceFile, line: number, why: string): Violation => ({ path: file.path, line, why });
const violationToText = ({ path, line, why }: Violation): string => `src/${path}:${line} ${why}`;

/** An example whose point stands in its second line. */
function file(path: string, line: string): SourceFile {
  return { path, source: `// An example.\n${line}\n` };
}
