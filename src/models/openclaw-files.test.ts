import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import fc from "fast-check";
import { makeScratch } from "../../test/support/scratch.ts";
import { parseTolerantly, readCustomProviders, readOpenclawConfig } from "./openclaw-files.ts";

describe("a config that people edit", () => {
  it("may contain comments, bare keys, single quotes and trailing commas", () => {
    const text = `\uFEFF// mine
    {
      agents: { defaults: { model: { primary: 'anthropic/it\\'s "new"', }, }, }, /* the
      rest */ "url": "http://a/b, // no comment", // one
      'odd key': ["a,]", "b\\",}",], // two
    }`;
    assert.deepEqual(parseTolerantly(text), {
      agents: { defaults: { model: { primary: `anthropic/it's "new"` } } },
      url: "http://a/b, // no comment",
      "odd key": ["a,]", 'b",}'],
    });
  });

  it("is read unchanged if it is plain JSON", () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(4), (json, indent) => {
        const value: unknown = JSON.parse(json);
        assert.deepEqual(parseTolerantly(JSON.stringify(value, null, indent)), value);
      }),
    );
  });

  it("is null if missing, and an error that quotes nothing if broken", async () => {
    const stateDir = makeScratch("config");
    assert.equal(await readOpenclawConfig(stateDir, {}), null);
    writeFileSync(join(stateDir, "openclaw.json"), `{ "apiKey": "sk-very-secret" oops }`);
    await assert.rejects(readOpenclawConfig(stateDir, {}), (error: Error) => {
      assert.equal("code" in error && error.code, "invalid");
      assert.doesNotMatch(JSON.stringify([error.message, String(error.cause), error.stack]), /secret/);
      return true;
    });
    const elsewhere = join(stateDir, "mine.json");
    writeFileSync(elsewhere, "{ agent: { model: 'x/y' } }");
    assert.deepEqual(await readOpenclawConfig(stateDir, { OPENCLAW_CONFIG_PATH: elsewhere }), {
      agent: { model: "x/y" },
    });
  });
});

describe("custom providers", () => {
  it("come from the config and the host's own list, which takes precedence field by field", async () => {
    const stateDir = makeScratch("providers");
    const folder = join(stateDir, "agents", "main", "agent");
    mkdirSync(folder, { recursive: true });
    const kept = {
      providers: { acme: { baseUrl: "https://kept.example" }, Other: { baseUrl: "https://other.example" } },
    };
    writeFileSync(join(folder, "models.json"), JSON.stringify(kept));
    const acme = { baseUrl: "https://written.example", api: "anthropic-messages", apiKey: "ACME_KEY" };
    const providers = await readCustomProviders(stateDir, { models: { providers: { acme } } });
    assert.deepEqual(Object.fromEntries(providers), {
      acme: { baseUrl: "https://kept.example", api: "anthropic-messages", apiKey: "ACME_KEY" },
      other: { baseUrl: "https://other.example", api: null, apiKey: undefined },
    });
    assert.equal((await readCustomProviders(makeScratch("none"), null)).size, 0);
  });
});
