/**
 * The arrows between the folders of src, and rules about what may appear where. Every rule is a pure check over file
 * texts: each first has to catch its own bad examples, and is then applied to all of src. Tests may import anything.
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

// ── The table ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What a unit may import besides itself. `later`: only as a type, or with `import()` when it is first needed. */
interface Arrow {
  readonly to: readonly string[];
  readonly later?: readonly string[];
}

/** Units of one folder in order: each may import those before it, and what all of them may. */
const layers = (folder: string, names: readonly string[], all: readonly string[]): Readonly<Record<string, Arrow>> =>
  Object.fromEntries(
    names.map((name, at) => [
      `${folder}/${name}`,
      { to: [...all, ...names.slice(0, at).map((below) => `${folder}/${below}`)] },
    ]),
  );

const node = "node:";
const packages = "packages";

/**
 * A unit is a file or folder of src; a file belongs to the longest name that it begins with. Composition roots choose
 * the store, the model and the surface, and are rows like all others. A unit without a row fails.
 */
const arrows: Readonly<Record<string, Arrow>> = {
  ...layers(
    "core",
    [
      "base",
      "model",
      "messages",
      "prompts",
      "model-calls",
      "ingest",
      "summarize",
      "compaction",
      "assembly",
      "seen",
      "recall",
      "maintenance",
      "lcm.ts",
      "status.ts",
    ],
    [],
  ),
  ...layers(
    "store",
    [
      "dialect.ts",
      "script.ts",
      "checksums.ts",
      "rows.ts",
      "totals.ts",
      "registry.ts",
      "ownership.ts",
      "content",
      "search",
      "threads",
      "conversation",
      "ledger",
      "journal",
      "maintenance",
      "operations.ts",
      "stored-files.ts",
      "forgetting.ts",
      "transfer",
      "sqlite",
    ],
    ["core", node],
  ),
  // As SQLite, which it never sees; the driver is loaded when a database is opened.
  "store/postgres": {
    to: [
      "core",
      ...["dialect", "script", "rows", "ownership", "operations", "stored-files", "forgetting"].map(
        (n) => `store/${n}.ts`,
      ),
      ...["content", "search", "conversation", "transfer"].map((name) => `store/${name}`),
      node,
    ],
    later: [packages],
  },
  // Chooses the store by where the database is, and gives a server what only files can do.
  "store/open-server.ts": { to: ["core"], later: ["store/postgres", "store/sqlite", "store/content"] },
  "store/search-thread.ts": { to: ["core", "store/open-server.ts", "store/threads", node] },
  "store/open.ts": {
    to: ["core", "store/open-server.ts"],
    later: ["store/sqlite", "store/open-server.ts", "store/search-thread.ts", "store/threads"],
  },
  "store/open-move.ts": {
    to: ["core", "store/open-server.ts"],
    later: ["store/sqlite", "store/postgres", "store/transfer", node],
  },
  // Databases of other programs.
  "store/foreign": { to: ["core", "store/sqlite", node] },
  "store/lease.ts": { to: ["store/sqlite", node] },
  "store/adopt": { to: ["core", "store", node] },
  // The thread adopts a database of the older program before it opens it.
  "store/sqlite/thread.ts": { to: ["core", "store", node] },
  "store/sqlite/worker.ts": {
    to: ["core", "store/threads", "store/script.ts", "store/operations.ts", "store/search", "store/sqlite", node],
  },
  models: { to: ["core", node], later: [packages] },
  "agent-tools": { to: ["core", packages] },
  format: { to: ["core", node, packages] },
  mcp: { to: ["core", "agent-tools", node, packages] },
  operator: { to: ["core", "format", node] },
  tui: { to: ["core", "format", "operator", "agent-tools", node, packages] },
  "web/contract": { to: ["core", "format"] },
  "web/contract.ts": { to: ["core", "format", "web/contract"] },
  web: { to: ["core", "format", "operator", "web/contract", "web/contract.ts", node, packages] },
  // Run in browsers.
  "web/pages": { to: ["core", "format", "web/contract", "web/contract.ts", packages] },
  proxy: { to: ["core", "hosts/shared", "hosts/shared/rows", node] },
  "hosts/shared/rows": { to: ["core"] },
  "hosts/shared": { to: ["core", "agent-tools", "format", "hosts/shared/rows", node] },
  // Chooses the store and the models of an engine, for whichever host.
  "hosts/shared/open-runtime.ts": {
    to: ["core", "hosts/shared", "models/openclaw-files.ts", node],
    later: ["store/open.ts", "models"],
  },
  "hosts/openclaw": { to: ["core", "agent-tools", "format", "hosts/shared", node, packages] },
  "hosts/openclaw/cli.ts": { to: ["core", "cli/commands", node], later: ["cli/context.ts", packages] },
  "hosts/openclaw/plugin.ts": {
    to: ["core", "agent-tools", "hosts/openclaw", "hosts/shared", "package.ts", "models/openclaw-files.ts", node],
    later: ["store/open.ts", "models", packages],
  },
  "hosts/opencode": { to: ["core", "hosts/shared", node] },
  "hosts/opencode/plugin.ts": { to: ["core", "hosts/opencode", "hosts/shared", "package.ts", node] },
  "hosts/claude-code": { to: ["core", "hosts/shared", "hosts/shared/rows", node] },
  "hosts/codex": { to: ["core", "hosts/shared", "hosts/shared/rows", node] },
  // One hook serves both. It is a process per turn of a host, so it opens the store in its own thread, at once.
  "hosts/companion": {
    to: [
      "core",
      "hosts/claude-code",
      "hosts/codex",
      "hosts/shared",
      "models/openclaw-files.ts",
      "store/lease.ts",
      "store/sqlite",
      node,
    ],
    later: ["models", "store/open.ts"],
  },
  cli: { to: ["core", "agent-tools", "format", "hosts/shared", "package.ts", node, packages], later: ["proxy"] },
  "hosts/pi": { to: ["core", "hosts/shared", node] },
  "hosts/pi/extension.ts": { to: ["core", "hosts/pi", "hosts/shared", "package.ts", node] },
  "cli/open.ts": { to: ["core", "store", "models", "cli", node] },
  "cli/server-database.ts": { to: ["core", "store/open.ts", "cli", node], later: ["store"] },
  "cli/main.ts": { to: ["core", "cli", "package.ts", node, packages], later: ["tui", "mcp"] },
  "cli/context.ts": {
    to: ["core", "format", "cli", "hosts/shared", "package.ts", node, packages],
    later: ["tui", "mcp"],
  },
  "cli/port.ts": { to: ["core", "format", "operator", "cli", node] },
  "cli/tui.ts": { to: ["core", "format", "cli", node], later: ["tui", packages] },
  "cli/web.ts": { to: ["core", "cli", "package.ts", node], later: ["web"] },
  "cli/proxy.ts": { to: ["core", "hosts/shared", "proxy", "cli", node] },
  "cli/serve.ts": { to: ["core", "hosts/shared", "cli"] },
  "cli/demo/run.ts": { to: ["cli/main.ts"] },
  "index.ts": { to: ["core", "store", "models", "agent-tools"] },
  "package.ts": { to: [node] },
};

/** They alone read the environment. */
const roots = [
  "cli/main.ts",
  "cli/context.ts",
  "cli/open.ts",
  "cli/tui.ts",
  "cli/web.ts",
  "cli/serve.ts",
  "cli/proxy.ts",
  "hosts/opencode/plugin.ts",
  "hosts/openclaw/plugin.ts",
  "hosts/openclaw/cli.ts",
  "hosts/companion/hook.ts",
  "hosts/companion/background.ts",
  "hosts/pi/extension.ts",
];
const linesMax = 500;
const filesMax = 20;

// ── Rules ────────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Rule {
  readonly promise: string;
  readonly check: (files: readonly SourceFile[]) => readonly Violation[];
  /** Each breaks the rule once, in its second line. */
  readonly bad: readonly SourceFile[];
  readonly good: readonly SourceFile[];
}

const rules: readonly Rule[] = [
  {
    promise: "every import follows the table of arrows",
    check: checkArrows,
    bad: [
      file("core/base/time.ts", `import type { Message } from "../model/types.ts";`),
      file("core/ingest/ingest.ts", `import { compact } from "../compaction/compact.ts";`),
      file("core/model/store.ts", `import { readFileSync } from "node:fs";`),
      file("core/recall/grep.ts", `import colours from "picocolors";`),
      file("core/lcm.ts", `export { tools } from "../agent-tools/all.ts";`),
      file("store/search/rank.ts", `import { append } from "../conversation/append.ts";`),
      file("store/journal/undo.ts", `import {\n  adopt,\n} from "../adopt/adopt.ts";`),
      file("store/sqlite/store.ts", `import { Pool } from "pg";`),
      file("models/refusal.ts", `import { generateText } from "ai";`),
      file("hosts/openclaw/engine.ts", `const { open } = await import("../../store/sqlite/store.ts");`),
      file("hosts/openclaw/plugin.ts", `import { openSqliteWorker } from "../../store/sqlite/worker.ts";`),
      file("cli/failure.ts", `const worker = new Worker(new URL("../store/sqlite/thread.ts", import.meta.url));`),
      file("cli/context.ts", `import { runTui } from "../tui/run.ts";`),
      file("tui/app.ts", `import { act } from "../cli/commands/_session.ts";`),
      file("index.ts", `export { main } from "./cli/main.ts";`),
      file("utils/strings.ts", `import { LcmError } from "../core/base/errors.ts";`),
      file("core/strings.ts", `import { LcmError } from "./base/errors.ts";`),
    ],
    good: [
      file("core/recall/grep.ts", `import type { Store } from "../model/store.ts";`),
      file("core/base/time.ts", `// import { open } from "../../store/sqlite/store.ts";`),
      file("core/base/time.ts", `const glob = "/*"; /* import "node:fs" */`),
      file(
        "models/refusal.ts",
        `import type { LanguageModel } from "ai";\nconst { generateText } = await import("ai");`,
      ),
      file("hosts/openclaw/plugin.ts", `const { openPlace } = await import("../../store/open.ts");`),
      file("cli/main.ts", `import type { App } from "../tui/app.ts";\nconst { run } = await import("../tui/run.ts");`),
    ],
  },
  {
    promise: "no product file imports a test or test/support",
    check: (files) =>
      findImports(
        files,
        ({ target }) => target.startsWith("../") || isTest(target),
        "tests are not part of the product",
      ),
    bad: [
      file("index.ts", `export { scriptedModel } from "../test/support/scripted-model.ts";`),
      file("cli/open.ts", `import { sample } from "./open.test.ts";`),
    ],
    good: [file("core/lcm.test.ts", `import { scratch } from "../../test/support/scratch.ts";`)],
  },
  {
    promise: "no imports form a cycle",
    check: findCycles,
    bad: [file("core/lcm.ts", `import { lcm } from "./lcm.ts";`)],
    good: [
      file("store/sqlite/store.ts", `const worker = new Worker(new URL("./thread.ts", import.meta.url));`),
      file("store/sqlite/thread.ts", `import { openStore } from "./store.ts";`),
    ],
  },
  {
    promise: "only the store imports node:sqlite",
    check: (files) =>
      findImports(
        files,
        ({ path, specifier }) => specifier === "node:sqlite" && !isIn("store", path),
        "node:sqlite belongs in store/",
      ),
    bad: [
      file("cli/open.ts", `import { DatabaseSync } from "node:sqlite";`),
      file("models/oauth.ts", `const { DatabaseSync } = await import("node:sqlite");`),
    ],
    good: [file("store/sqlite/store.ts", `import { DatabaseSync } from "node:sqlite";`)],
  },
  {
    promise: "a host's SDK is imported only in that host's folder",
    check: (files) =>
      findImports(
        files,
        ({ path, specifier }) => /^@?openclaw(\/|$)/.test(specifier) && !isIn("hosts/openclaw", path),
        "OpenClaw's SDK belongs in hosts/openclaw/",
      ),
    bad: [file("cli/commands/mcp.ts", `import type { PluginApi } from "openclaw/plugin-sdk";`)],
    good: [file("hosts/openclaw/plugin.ts", `import type { PluginApi } from "openclaw/plugin-sdk";`)],
  },
  {
    promise: "only the store contains SQL",
    check: (files) =>
      findText(
        files.filter(({ path }) => !isIn("store", path)),
        /["'`]\s*(SELECT|INSERT|REPLACE|UPDATE|DELETE|CREATE|DROP|ALTER|PRAGMA)\s+[\w*"'[$]/g,
        "SQL belongs in store/",
      ),
    bad: [
      file("core/recall/grep.ts", "const hits = sql`SELECT * FROM messages`;"),
      file("cli/commands/prune.ts", `db.exec("DELETE FROM summaries");`),
      file("tui/app.ts", "const text = `\n  CREATE TABLE notes (text)`;"),
    ],
    good: [
      file("store/operations.ts", "const hits = sql`SELECT * FROM messages`;"),
      file("mcp/server.ts", `app.on("DELETE", "/x");\nconst help = "Select one. DELETE removes it.";`),
      file("core/recall/grep.ts", "// the store runs `SELECT * FROM messages`\nconst one = 1;"),
    ],
  },
  {
    promise: "only the composition roots read the environment",
    check: (files) =>
      findText(
        files.filter(({ path }) => !roots.includes(path)),
        /\bprocess\s*\.\s*env\b|\{[^{}]*\benv\b[^{}]*\}\s*(=\s*process\b|from\s*["']node:process["'])/g,
        `process.env belongs in ${roots.join(", ")}`,
      ),
    bad: [
      file("core/model/settings.ts", `const value = process.env["LCM_DB"];`),
      file("format/width.ts", `const { env, stdout } = process;`),
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
        files.filter(({ path }) => isIn("core", path)),
        /\b(Date|performance)\.now\b|\bnew Date\(\s*\)|\bMath\.random\b|\bcrypto\.(randomUUID|getRandomValues)\b/g,
        "time and ids come through a port",
      ),
    bad: [
      file("core/ingest/ingest.ts", "const now = Date.now();"),
      file("core/ingest/ingest.ts", "const now = new Date();"),
      file("core/ingest/ingest.ts", "const id = `sum_${Math.random()}`;"),
      file("core/ingest/ingest.ts", "const id = crypto.randomUUID();"),
    ],
    good: [
      file("core/base/time.ts", "const time = new Date(message.at); // never Date.now()"),
      file("cli/open.ts", "const now = Date.now();"),
    ],
  },
  {
    promise: `no file is longer than ${linesMax} lines`,
    check: (files) =>
      files.flatMap((file) => {
        const lines = file.source.trimEnd().split("\n").length;
        return lines <= linesMax ? [] : [violation(file, linesMax + 1, `${lines} lines: split it along a decision`)];
      }),
    bad: [],
    good: [{ path: "core/lcm.ts", source: "one;\n".repeat(linesMax) }],
  },
  {
    promise: `no folder of core or store has more than ${filesMax} files`,
    check: (files) =>
      [...Map.groupBy(files, ({ path }) => posix.dirname(path))].flatMap(([folder, [first, ...more]]) =>
        first === undefined || more.length < filesMax || !/^(core|store)/.test(folder)
          ? []
          : [violation(first, 1, `${folder} has ${more.length + 1} files: it is no longer a map`)],
      ),
    bad: [],
    good: [],
  },
];

describe("the architecture", () => {
  const files = globSync("**/*.{ts,tsx}", { cwd: fileURLToPath(new URL("../src", import.meta.url)) })
    .map((path) => path.replaceAll("\\", "/"))
    .filter((path) => !isTest(path))
    .map((path) => ({ path, source: readFileSync(new URL(`../src/${path}`, import.meta.url), "utf8") }));

  for (const { promise, check } of rules) {
    it(promise, () => {
      assert.deepEqual(check(files).map(violationToText), []);
    });
  }

  it("is checked over all of src", () => {
    for (const unit of Object.keys(arrows))
      assert.ok(
        files.some(({ path }) => isIn(unit, path)),
        `${unit} has no file`,
      );
  });
});

describe("a wrong import anywhere is reported with file and line", () => {
  const units = Object.keys(arrows);
  const targets = [...units, "node:fs", "commander"];
  for (const from of units) {
    it(`in ${from}`, () => {
      const path = from.endsWith(".ts") ? from : `${from}/example.ts`;
      for (const to of targets) {
        const target = to.endsWith(".ts") || !units.includes(to) ? to : `${to}/other.ts`;
        const specifier = units.includes(to) ? `./${posix.relative(posix.dirname(path), target)}` : to;
        const isWrong = to !== from && !isAllowed(path, { specifier, line: 2, when: "load" });
        const reported = checkArrows([file(path, `import { one } from "${specifier}";`)]).map(violationToText);
        assert.deepEqual(
          reported,
          isWrong ? [`src/${path}:2 ${from} may not import ${targetOf(path, specifier)}`] : [],
        );
      }
    });
  }

  it("and most imports are wrong", () => {
    const allowed = units.flatMap((from) => units.filter((to) => arrows[from]?.to.some((each) => isIn(each, to))));
    assert.ok(allowed.length < (units.length * units.length) / 2, `${allowed.length} of ${units.length}²`);
  });
});

describe("each rule catches its bad examples", () => {
  for (const rule of rules) {
    it(rule.promise, () => {
      for (const bad of rule.bad) {
        const places = rule.check([bad]).map(({ path, line }) => `${path}:${line}`);
        assert.deepEqual(places, [`${bad.path}:2`], `expected one violation in line 2 of\n${bad.source}`);
      }
      assert.deepEqual(rule.check(rule.good.filter(({ path }) => !isTest(path))).map(violationToText), []);
    });
  }

  it("names all files of a cycle", () => {
    const cycles = findCycles([
      { path: "core/a.ts", source: `import { b } from "./b.ts";` },
      { path: "core/b.ts", source: `// why\nimport type { c } from "./deep/c.ts";` },
      { path: "core/deep/c.ts", source: `export const a = () => import("../a.ts");` },
      { path: "core/d.ts", source: `import { a } from "./a.ts";` },
    ]);
    assert.deepEqual(cycles.map(violationToText), [
      "src/core/deep/c.ts:1 closes the cycle core/a.ts → core/b.ts → core/deep/c.ts → core/a.ts",
    ]);
  });

  it("reports a file from its line 501 on, and a folder from its file 21 on", () => {
    const check = (files: readonly SourceFile[]): readonly string[] =>
      rules.flatMap((rule) => (rule.bad.length === 0 ? rule.check(files).map(violationToText) : []));
    const long = { path: "core/lcm.ts", source: "one;\n".repeat(linesMax + 1) };
    assert.deepEqual(check([long]), ["src/core/lcm.ts:501 501 lines: split it along a decision"]);
    const crowd = Array.from({ length: filesMax + 1 }, (_, at) => ({ path: `core/base/${at}.ts`, source: "" }));
    assert.deepEqual(check(crowd), ["src/core/base/0.ts:1 core/base has 21 files: it is no longer a map"]);
  });
});

// ── Reading a source ─────────────────────────────────────────────────────────────────────────────────────────────────

interface Import {
  readonly specifier: string;
  readonly line: number;
  /** A type only; when the module loads; when the line runs; in another thread. */
  readonly when: "type" | "load" | "late" | "elsewhere";
}

function importsOf(file: SourceFile): readonly Import[] {
  const source = withoutComments(file.source);
  const forms: readonly (readonly [RegExp, Import["when"] | "type or load"])[] = [
    [/\b(?:import|export)\b([^;"'`]*?)\bfrom\s*["']([^"']+)["']/g, "type or load"],
    [/^\s*import()\s*["']([^"']+)["']/gm, "load"],
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

/** Everything a slash, star or quote can be part of. A slash starts a regular expression only where a value is expected. */
const tokens = [
  /\/\/[^\n]*/,
  /\/\*[\s\S]*?\*\//,
  /"(?:\\.|[^"\\\n])*"/,
  /'(?:\\.|[^'\\\n])*'/,
  /`(?:\\[\s\S]|[^`\\])*`/,
  /(?<=[=(,:!&|?{};[]\s*|return\s+)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n])+\//,
];
const anyToken = new RegExp(tokens.map((token) => token.source).join("|"), "g");

/** Replaces comments by blanks of the same length, which keeps offsets and lines. Strings are skipped whole. */
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

// ── Arrows ───────────────────────────────────────────────────────────────────────────────────────────────────────────

function checkArrows(files: readonly SourceFile[]): readonly Violation[] {
  return files.flatMap((file) =>
    importsOf(file)
      .filter((each) => !isAllowed(file.path, each))
      .map((each) =>
        violation(
          file,
          each.line,
          `${unitOf(file.path) ?? "no unit"} may not import ${targetOf(file.path, each.specifier)}`,
        ),
      ),
  );
}

function isAllowed(path: string, { specifier, when }: Import): boolean {
  const unit = unitOf(path);
  if (unit === null) return false;
  const target = targetOf(path, specifier);
  const { to, later = [] } = arrows[unit] ?? { to: [] };
  const isCovered = (names: readonly string[]): boolean => names.some((name) => isIn(name, target));
  return unitOf(target) === unit || isCovered(to) || (when !== "load" && isCovered(later));
}

/** The unit that a path belongs to: the longest name that it begins with. */
const unitOf = (path: string): string | null =>
  Object.keys(arrows)
    .filter((unit) => isIn(unit, path))
    .toSorted((one, other) => other.length - one.length)[0] ?? null;

/** What an import leads to: a path in src, `node:`, or `packages`. */
function targetOf(path: string, specifier: string): string {
  if (specifier.startsWith(node)) return node;
  if (!specifier.startsWith(".")) return packages;
  return posix.join(posix.dirname(path), specifier);
}

function findImports(
  files: readonly SourceFile[],
  isWrong: (each: { readonly path: string; readonly specifier: string; readonly target: string }) => boolean,
  why: string,
): readonly Violation[] {
  return files.flatMap((file) =>
    importsOf(file)
      .filter(({ specifier }) => isWrong({ path: file.path, specifier, target: targetOf(file.path, specifier) }))
      .map(({ line }) => violation(file, line, why)),
  );
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

function isTest(path: string): boolean {
  return path.endsWith(".test.ts");
}

/** Whether a path is that file, or lies in that folder. */
const isIn = (name: string, path: string): boolean => path === name || path.startsWith(`${name}/`);

const violation = (file: SourceFile, line: number, why: string): Violation => ({ path: file.path, line, why });
const violationToText = ({ path, line, why }: Violation): string => `src/${path}:${line} ${why}`;

/** An example whose point is in its second line. */
function file(path: string, line: string): SourceFile {
  return { path, source: `// An example.\n${line}\n` };
}
