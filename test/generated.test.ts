/** Checks that generated files, which are committed for readers without the source, are up to date. */

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";

import packageJson from "../package.json" with { type: "json" };
import { tools } from "../src/agent-tools/all.ts";
import { generate, staleFiles } from "../scripts/generate.ts";

const repository = join(import.meta.dirname, "..");

describe("generated files", () => {
  it("match the source (otherwise run `npm run generate`)", () => {
    assert.deepEqual(
      staleFiles(repository).map(({ path }) => path),
      [],
    );
  });

  it("describe the result of every tool", () => {
    assert.doesNotMatch(readFileSync(join(repository, "docs/tools.md"), "utf8"), /^Details: none$/m);
  });

  it("give the plugin's manifest the package's name, tools and version", () => {
    const manifest = JSON.parse(readFileSync(join(repository, "openclaw.plugin.json"), "utf8"));
    assert.deepEqual([manifest.id, manifest.version], [packageJson.name, packageJson.version]);
    assert.deepEqual(
      manifest.contracts.tools,
      tools.map(({ name }) => name),
    );
    assert.equal(manifest.configSchema.additionalProperties, true);
  });
});

describe("the generator", () => {
  let root = "";
  before(() => {
    root = mkdtempSync(join(tmpdir(), "lcm-generated-"));
  });
  after(() => rmSync(root, { recursive: true }));

  function run(check: boolean): { readonly status: number; readonly lines: readonly string[] } {
    const lines: string[] = [];
    const status = generate({ root, check, print: (line) => lines.push(line) });
    return { status, lines };
  }

  it("finds missing and stale files, writes exactly those, and then finds nothing", () => {
    const pages = ["guarantees", "architecture", "map", "settings", "schema", "keys", "json", "tools"].map(
      (page) => `docs/${page}.md`,
    );
    const paths = [...pages, "openclaw.plugin.json"];
    const missing = run(true);
    assert.equal(missing.status, 1);
    assert.deepEqual(
      missing.lines.slice(0, -1),
      paths.map((path) => `stale: ${path}`),
    );
    assert.deepEqual(run(false), { status: 0, lines: paths.map((path) => `wrote ${path}`) });
    assert.deepEqual(run(true), { status: 0, lines: [] });

    writeFileSync(join(root, "docs/schema.md"), "as it was last year\n");
    const stale = run(true);
    assert.equal(stale.status, 1);
    assert.deepEqual(stale.lines.slice(0, -1), ["stale: docs/schema.md"]);
    assert.equal(readFileSync(join(root, "docs/schema.md"), "utf8"), "as it was last year\n");
    assert.deepEqual(run(false), { status: 0, lines: ["wrote docs/schema.md"] });
    assert.deepEqual(run(false), { status: 0, lines: [] });
  });

  it("treats line ends of another platform as equal", () => {
    run(false);
    const path = join(root, "docs/settings.md");
    writeFileSync(path, readFileSync(path, "utf8").replaceAll("\n", "\r\n"));
    assert.deepEqual(run(true), { status: 0, lines: [] });
  });
});
