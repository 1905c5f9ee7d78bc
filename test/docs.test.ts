/** What the pages say is true: their links lead somewhere, and the README's example compiles and runs. */

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

describe("the library example of the README", () => {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const example = /```ts\n(import [\s\S]*?)```/.exec(readme)?.[1] ?? assert.fail("the README has an example");
  const library = pathToFileURL(join(root, "src/index.ts")).href;

  it("runs, and finds what it stored", () => {
    const folder = mkdtempSync(join(tmpdir(), "lcm-example-"));
    try {
      const file = join(folder, "example.ts");
      writeFileSync(file, example.replace('"lossless-claw"', JSON.stringify(library)));
      const output = execFileSync(process.execPath, [file], { cwd: folder, encoding: "utf8" });
      assert.match(output, /my order is late \[\]/);
      assert.ok(existsSync(join(folder, "lcm.db")));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("compiles for a user with strict types", () => {
    const folder = mkdtempSync(join(tmpdir(), "lcm-example-"));
    try {
      writeFileSync(join(folder, "example.ts"), example);
      const compilerOptions = {
        paths: { "lossless-claw": [join(root, "src/index.ts")] },
        typeRoots: [join(root, "node_modules/@types")],
      };
      const config = { extends: join(root, "tsconfig.json"), compilerOptions, include: ["example.ts"] };
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
