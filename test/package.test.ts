/**
 * Tests the published package as a user gets it: the files in the tarball, and a separate project that installs only
 * it.
 */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import packageJson from "../package.json" with { type: "json" };
import { npm, pack, publishedFolder } from "./support/published.ts";
import type { Packed } from "./support/published.ts";
import { oldNode } from "./support/old-node.ts";
import { makeScratch } from "./support/scratch.ts";
import { packedMbMax, unpackedMbMax } from "../scripts/dependencies.ts";

const repository = fileURLToPath(new URL("..", import.meta.url));
const scratch = makeScratch("package");
/** A project that installs the package. Its folder has a space in its name, as a user's may. */
const project = join(scratch, "a project");

let folder = "";
let packed: Packed;
before(async () => {
  folder = await publishedFolder();
  packed = pack(folder, scratch);
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), '{ "type": "module", "private": true }');
  const quietly = ["--offline", "--no-audit", "--no-fund", "--cache", join(scratch, "cache")];
  npm(["install", ...quietly, packed.path], project);
});

describe("the published package", () => {
  it("contains the program, its types, its licences and its pages, and nothing else", () => {
    const wanted = [
      /^(package\.json|README\.md|CHANGELOG\.md|SECURITY\.md|LICENSE|openclaw\.plugin\.json)$/,
      /^bin\/(launch|lcm|lcm-tui|lcm-hook)\.js$/,
      /^\.(claude-plugin|codex-plugin|agents\/plugins)\/(plugin|marketplace)\.json$/,
      /^plugin\/(claude-code|codex)-(hooks|mcp)\.json$/,
      /^demo\/[a-z-]+\.jsonl$/,
      /^dist\/(index|needed-node|cli\/main|hosts\/(openclaw|opencode)\/plugin|hosts\/pi\/extension|hosts\/companion\/(hook|background)|(parts|thread)\/[\w-]+)\.js$/,
      /^dist\/(index|(core|models|store|agent-tools)\/([\w-]+\/)*[\w-]+)\.d\.ts$/,
      /^dist\/web\/(main-\w+\.(js|css)|manifest\.json)$/,
      /^dist\/(LICENSES\.txt|parts\/[\w-]+\.js\.LEGAL\.txt)$/,
      /^docs\/([a-z]+\/)?[\w-]+\.(md|svg|png)$/,
    ];
    const paths = packed.files.map(({ path }) => path);
    assert.deepEqual(
      paths.filter((path) => !wanted.some((pattern) => pattern.test(path))),
      [],
    );
    for (const pattern of wanted)
      assert.ok(
        paths.some((path) => pattern.test(path)),
        String(pattern),
      );
  });

  it("is as small as docs/dependencies.md states", () => {
    assert.ok(packed.size < packedMbMax * 1e6, `${packed.size} bytes packed`);
    assert.ok(packed.unpackedSize < unpackedMbMax * 1e6, `${packed.unpackedSize} bytes unpacked`);
  });

  it("has every page that its README links to, except sources", () => {
    const readme = readFileSync(join(folder, "README.md"), "utf8");
    const targets = [...readme.matchAll(/\]\(([^)#:\s]+)(?:#[^)]*)?\)/g)].map(([, target = ""]) => target);
    const paths = packed.files.map(({ path }) => path);
    const missing = targets.filter((target) => !paths.some((path) => path === target || path.startsWith(`${target}/`)));
    assert.deepEqual(
      missing.filter((target) => !/^(src|test|scripts|CONTRIBUTING\.md)/.test(target)),
      [],
    );
  });

  it("depends on nothing, and runs nothing when it is installed", () => {
    const manifest = new Map(Object.entries(packageJson));
    for (const kind of ["dependencies", "peerDependencies", "optionalDependencies", "bundledDependencies"])
      assert.equal(manifest.get(kind), undefined, kind);
    const ofInstalling = /^(pre|post)?(install|prepare)$/;
    assert.deepEqual(
      Object.keys(packageJson.scripts).filter((name) => ofInstalling.test(name)),
      [],
    );
  });

  it("carries the licence of everything that is bundled", () => {
    const licences = readFileSync(join(folder, "dist/LICENSES.txt"), "utf8");
    // The bundler notes above each piece where it comes from.
    const names = globSync("dist/**/*.js", { cwd: folder }).flatMap((path) =>
      [
        ...readFileSync(join(folder, path), "utf8").matchAll(/^\s*\/\/ \S*node_modules\/((?:@[\w.-]+\/)?[\w.-]+)\//gm),
      ].map(([, name = ""]) => name),
    );
    assert.ok(new Set(names).size > 20, "there is something to look for");
    for (const name of new Set(names)) assert.match(licences, new RegExp(`^${name} \\d+\\.\\S+ \\([\\w.-]+\\)$`, "m"));
    assert.match(licences, /TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION/);
  });

  it("is what docs/dependencies.md lists (otherwise run `npm run build`)", () => {
    // Parts of packages are named by their paths in what is built, so where that was done moves sizes and their order a little.
    const listed = (root: string): readonly string[] =>
      readFileSync(join(root, "docs/dependencies.md"), "utf8")
        .split(/\r?\n/)
        .map((line) => line.replace(/ \| (?:< 1|[\d,]+) \|$/, ""))
        .toSorted();
    assert.deepEqual(listed(repository), listed(folder));
  });

  it("needs the same Node everywhere it is stated", () => {
    const needed = /^>=(\d+\.\d+)$/.exec(packageJson.engines.node)?.[1];
    assert.ok(needed !== undefined, packageJson.engines.node);
    const pages = globSync(["*.md", "docs/*.md", "docs/guides/*.md", ".github/workflows/*.yml"], { cwd: repository });
    const versions = /\b(?:Node (?:≥ ?)?|older than |one of )(2\d\.\d+)\b(?!\.\d)|node-version: "(2\d\.\d+)/g;
    const said = pages.flatMap((page) =>
      [...readFileSync(join(repository, page), "utf8").matchAll(versions)].map(([, one, other]) => ({
        page,
        version: one ?? other,
      })),
    );
    assert.ok(said.length > 3);
    assert.deepEqual(
      said.filter(({ version }) => version !== needed),
      [],
    );
  });
});

describe("a project that installs it", () => {
  const env = {
    PATH: process.env["PATH"],
    HOME: scratch,
    USERPROFILE: scratch,
    OPENCLAW_STATE_DIR: join(scratch, "state"),
  };
  const node = (...words: readonly string[]) =>
    spawnSync(process.execPath, words, { cwd: project, env, encoding: "utf8" });

  const example = `
import { createLcm, LcmError, openSqliteWorker, restoreMessage, systemClock, tools } from "lossless-claw";
import type { Assembly, Store, Tool } from "lossless-claw";

const store: Store = await openSqliteWorker({ path: "lcm.db" });
const lcm = createLcm({ store, clock: systemClock });
const { id } = await store.open({ sessionId: "outside" });
const said = { role: "user", content: "a heliotrope in the window" };
await lcm.ingest(id, [{ kind: "message", message: said, key: "m1", at: systemClock.now() }]);
const assembly: Assembly = await lcm.assemble(id, { budget: 10_000 });
const reach = { kind: "all", conversations: null } as const;
const { hits } = await lcm.grep({ pattern: "heliotrope", mode: "full_text", reach });
const [stored] = await store.messages({ conversation: id, keys: ["m1"] });
const restored: unknown = stored && (await restoreMessage(store, stored));
const grep: Tool | undefined = tools.find(({ name }) => name === "lcm_grep");
const found = await grep?.run({ pattern: "heliotrope" }, { lcm, reader: { conversation: id, policy: "own" } });
const refused: unknown = await lcm.grep({ pattern: "(", mode: "regex", reach }).catch((error: unknown) => error);
const code = refused instanceof LcmError ? refused.code : null;
await lcm.close();
console.log(JSON.stringify({ messages: assembly.messages.length, hits: hits.length, restored, text: found?.text, code }));
`;

  it("runs code against the library", () => {
    writeFileSync(join(project, "example.ts"), example);
    const { status, stdout, stderr } = node("example.ts");
    assert.equal(status, 0, stderr);
    assert.equal(stderr, "");
    const { text, ...told } = JSON.parse(stdout);
    assert.match(text, /msg_1-1[^]*heliotrope/);
    assert.deepEqual(told, {
      messages: 1,
      hits: 1,
      restored: { role: "user", content: "a heliotrope in the window" },
      code: "invalid",
    });
  });

  it("on a Node that is too old, says so as the command does, whether imported or required", () => {
    const needed = packageJson.engines.node.replace(">=", "");
    const message = new RegExp(
      `lossless-claw needs Node ${needed} or newer, and this is Node \\d\\S+ \\(.*\\)\\. Install one`,
    );
    const plugin = "./node_modules/lossless-claw/dist/hosts/openclaw/plugin.js";
    const [old = "", ...words] = oldNode;
    for (const code of ['import("lossless-claw")', 'require("lossless-claw")', `import("${plugin}")`]) {
      const { status, stderr } = spawnSync(old, [...words, "-e", code], { cwd: project, env, encoding: "utf8" });
      assert.notEqual(status, 0);
      assert.match(stderr, message);
    }
  });

  it("compiles it strictly, however its compiler resolves modules", () => {
    writeFileSync(join(project, "example.ts"), example);
    const ways = [
      { module: "node16", moduleResolution: "node16", target: "es2024" },
      { module: "nodenext", moduleResolution: "nodenext", target: "esnext" },
      { module: "esnext", moduleResolution: "bundler", target: "esnext" },
    ];
    for (const way of ways) {
      const compilerOptions = {
        ...way,
        strict: true,
        exactOptionalPropertyTypes: true,
        noUncheckedIndexedAccess: true,
        // Our types are checked as well; of other types, only those of Node are needed.
        skipLibCheck: false,
        noEmit: true,
        lib: ["esnext"],
        types: ["node"],
        typeRoots: [join(repository, "node_modules/@types")],
      };
      writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["example.ts"] }));
      const { status, stdout } = node(join(repository, "node_modules/typescript/bin/tsc"), "-p", ".");
      assert.equal(status, 0, `${way.moduleResolution}: ${stdout}`);
    }
  });

  it("can name every type that the library takes or returns, as declarations of its own must", () => {
    // Each takes or returns a type that is inferred, which a compiler can only write down if it has a name.
    const own = `
import { adopt, chooseEmbedder, createLcm, createModel, messageToStore, openSqlite, openSqliteWorker } from "lossless-claw";
import { openStore, reachOf, resolveSettings, restoreMessage } from "lossless-claw";
import type { AskRequest, Delegate, Described, LcmDeps, Store, ToolContext } from "lossless-claw";

const through = <A extends readonly unknown[], R>(call: (...args: A) => R) => (...args: A) => call(...args);
export const engine = (deps: LcmDeps) => ({ ...createLcm(deps) });
export const fields = {
  asked: (given: AskRequest) => ({ ...given }),
  context: (given: ToolContext) => ({ ...given }),
  deps: (given: LcmDeps) => ({ ...given }),
  described: (given: Described) => ({ ...given }),
  store: (given: Store) => ({ ...given }),
};
export const answered = (delegate: Delegate, task: Parameters<Delegate>[0]) => delegate(task);
export const models = [through(chooseEmbedder), through(createModel)] as const;
export const stores = [through(adopt), through(openSqlite), through(openSqliteWorker), through(openStore)] as const;
export const others = [through(messageToStore), through(reachOf), through(resolveSettings), through(restoreMessage)] as const;
`;
    writeFileSync(join(project, "own.ts"), own);
    const typeRoots = [join(repository, "node_modules/@types")];
    const ofNode = { module: "nodenext", target: "esnext", types: ["node"], typeRoots };
    const compilerOptions = { ...ofNode, strict: true, declaration: true, emitDeclarationOnly: true };
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["own.ts"] }));
    const { status, stdout } = node(join(repository, "node_modules/typescript/bin/tsc"), "-p", ".");
    assert.equal(status, 0, stdout);
  });

  it("can require all exports from a CommonJS module", () => {
    const names = Object.keys(packageJson.exports).map((path) => join("lossless-claw", path).replaceAll("\\", "/"));
    assert.deepEqual(names, ["lossless-claw", "lossless-claw/package.json"]);
    writeFileSync(
      join(project, "required.cjs"),
      `for (const name of ${JSON.stringify(names)}) console.log(typeof require(name));`,
    );
    const { stdout, stderr } = node("required.cjs");
    assert.equal(stdout, "object\nobject\n", stderr);
  });

  it("cannot import what is not exported", () => {
    const paths = ["dist/index.js", "dist/cli/main.js", "core/lcm", "src/index.ts", "testing/store-contract"];
    for (const path of paths) {
      const { status, stderr } = node("--input-type=module", "-e", `await import("lossless-claw/${path}")`);
      assert.notEqual(status, 0, path);
      assert.match(stderr, /ERR_PACKAGE_PATH_NOT_EXPORTED/, path);
    }
  });

  it("can start `lcm` and `lcm-tui`", () => {
    const start = (name: string, ...words: readonly string[]) => {
      const isWindows = process.platform === "win32";
      const program = join(project, "node_modules", ".bin", isWindows ? `${name}.cmd` : name);
      return spawnSync(isWindows ? `"${program}"` : program, words, {
        cwd: project,
        // The Node that runs the tests is the first one there.
        env: { ...env, PATH: dirname(process.execPath) },
        encoding: "utf8",
        shell: isWindows,
      });
    };
    for (const name of ["lcm", "lcm-tui"]) {
      const { stdout, stderr } = start(name, "--version");
      assert.equal(stdout.trim(), packageJson.version, stderr);
    }
    const demo = start("lcm", "demo");
    assert.equal(demo.status, 0, demo.stdout + demo.stderr);
    const found = start("lcm", "grep", "heliotrope", "--db", "lcm.db");
    assert.match(found.stdout, /msg_1-1\b[^]*a heliotrope in the window/, found.stderr);
    const noTerminal = start("lcm-tui", "--db", "lcm.db");
    assert.equal(noTerminal.status, 2, noTerminal.stdout + noTerminal.stderr);
  });

  it("gets only the one package", () => {
    assert.deepEqual(globSync(["node_modules/*", "node_modules/lossless-claw/node_modules"], { cwd: project }), [
      join("node_modules", "lossless-claw"),
    ]);
  });
});
