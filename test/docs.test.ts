/** What the pages say is true: their links lead somewhere, and the README's examples compile and run. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const pages = globSync("{*.md,docs/**/*.md}", { cwd: root });

describe("the pages", () => {
  it("link only to what exists", () => {
    assert.ok(pages.length > 5);
    const broken = pages.flatMap((page) => {
      const text = readFileSync(join(root, page), "utf8");
      return [...text.matchAll(/\]\(([^)#:\s]+)(?:#[^)]*)?\)/g)]
        .map(([, target = ""]) => target)
        .filter((target) => !existsSync(join(root, dirname(page), target)))
        .map((target) => `${page} links to ${target}`);
    });
    assert.deepEqual(broken, []);
  });
});

describe("the library examples of the README", () => {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const examples = [...readme.matchAll(/```ts\n(import [\s\S]*?)```/g)].map(([, example = ""], at) => ({
    name: `example-${at}.ts`,
    example,
  }));
  const library = pathToFileURL(join(root, "src/index.ts")).href;

  it("run one after the other, and find what was stored", () => {
    const folder = mkdtempSync(join(tmpdir(), "lcm-example-"));
    try {
      const outputs = examples.map(({ name, example }) => {
        writeFileSync(join(folder, name), example.replaceAll('"lossless-claw"', JSON.stringify(library)));
        return execFileSync(process.execPath, [name], { cwd: folder, encoding: "utf8", env: {} });
      });
      assert.equal(outputs.length, 2);
      assert.match(outputs[0] ?? "", /my order is late \[\]/);
      assert.match(outputs[1] ?? "", /name: 'lcm_grep'[^]*\nmsg_1 · user · .*\n> hello, my order is late\n/);
      assert.ok(existsSync(join(folder, "lcm.db")));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("compile for a user with strict types", () => {
    const folder = mkdtempSync(join(tmpdir(), "lcm-example-"));
    try {
      for (const { name, example } of examples) writeFileSync(join(folder, name), example);
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
});
