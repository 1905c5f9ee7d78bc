/** Tests that the plugin's config applies to `lcm` as well: an operator sets a thing once. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { createFolder, lcm, ok } from "./program.ts";
import type { Place } from "./program.ts";

const configured = (config: object): string =>
  JSON.stringify({ plugins: { entries: { "lossless-claw": { enabled: true, config } } } });

/** A user with this openclaw.json, and with a conversation wherever it points. */
function createPlace(openclawJson: string, env: Readonly<Record<string, string>> = {}): Place {
  const state = createFolder();
  const place = { state, env };
  writeFileSync(join(state, "openclaw.json"), openclawJson);
  writeFileSync(join(state, "session.jsonl"), '{"role":"user","content":"the harbour opens at six"}\n');
  ok(place, "import", join(state, "session.jsonl"));
  return place;
}

const settingsOf = (place: Place): readonly (readonly [key: string, value: unknown, source: string])[] =>
  ok(place, "status", "--json").json.settings.map(
    ({ key, value, source }: { key: string; value: unknown; source: string }) => [key, value, source] as const,
  );

describe("the plugin's config", () => {
  it("sets the database path and the settings, after --db and the environment", () => {
    const path = join(createFolder(), "operators.db");
    const place = createPlace(configured({ databasePath: path, contextThreshold: 0.5, freshTailCount: 7 }));
    assert.equal(ok(place, "status", "--json").json.path, path);
    assert.deepEqual(settingsOf(place), [
      ["databasePath", path, "plugin config"],
      ["contextThreshold", 0.5, "plugin config"],
      ["freshTailCount", 7, "plugin config"],
    ]);
    const { stdout } = ok(place, "status");
    assert.match(stdout, /freshTailCount = 7 \(plugin config\)/);

    const env = { LCM_FRESH_TAIL_COUNT: "9", LCM_DATABASE_PATH: join(place.state, "env.db") };
    assert.match(lcm({ ...place, env }, "status").stderr, /there is no database at .*env\.db/);
    assert.match(lcm({ ...place, env }, "status", "--db", "flag.db").stderr, /there is no database at .*flag\.db/);
    assert.deepEqual(settingsOf({ ...place, env: { LCM_FRESH_TAIL_COUNT: "9" } }).at(-1), [
      "freshTailCount",
      9,
      "environment",
    ]);
  });

  it("is read from the host's path, as people write it, with the variables that it names", () => {
    const elsewhere = join(createFolder(), "host.json5");
    const written = configured({
      databasePath: "${DATA_HOME}/lcm.db",
      customInstructions: "Keep $${PRICE} and ${NONE}.",
    });
    writeFileSync(elsewhere, `// by hand\n${written}`);
    const data = createFolder();
    const place = createPlace("{}", { OPENCLAW_CONFIG_PATH: elsewhere, DATA_HOME: data });
    assert.deepEqual(settingsOf(place), [
      ["databasePath", join(data, "lcm.db"), "plugin config"],
      ["customInstructions", "Keep ${PRICE} and ${NONE}.", "plugin config"],
    ]);
  });

  it("names the model that writes summaries", () => {
    const place = createPlace(configured({ summaryModel: "ollama/any" }));
    assert.deepEqual(ok(place, "status", "--json").json.model, {
      name: "ollama/any",
      from: "plugin config",
      problem: null,
    });
  });

  it("is refused with its key where a value is wrong, and never blocks the help", () => {
    const place = createPlace("{}");
    writeFileSync(join(place.state, "openclaw.json"), configured({ contextThreshold: 75 }));
    const run = lcm(place, "status");
    assert.equal(run.status, 2);
    assert.match(run.stderr, /^error: contextThreshold is 75, but must be a number from 0 to 1\nhint: .+\n$/);
    ok(place, "--help");
  });

  for (const [what, text] of [
    ["is not one that can be understood", "{ no config"],
    ["has no place for ours", '{"plugins":{"entries":["lossless-claw"]}}'],
    ["has none of ours", '{"plugins":{"entries":{"another":{"config":{"freshTailCount":3}}}}}'],
  ] as const)
    it(`sets nothing where openclaw.json ${what}`, () => assert.deepEqual(settingsOf(createPlace(text)), []));

  it("may have unknown keys, which doctor reports and tolerates", () => {
    const place = createPlace(configured({ pruneHeartbeatOk: true, freshTailCount: 7, oldFlag: "x" }));
    const { stdout } = ok(place, "doctor");
    assert.match(stdout, /information\n .*unknown settings.*pruneHeartbeatOk, oldFlag\n/);
    assert.match(stdout, /healthy:/);
    const { sound, findings } = ok(place, "doctor", "--json").json;
    assert.equal(sound, true);
    assert.deepEqual(
      findings.map(({ severity, code }: { severity: string; code: string }) => [severity, code]),
      [["info", "unknown_setting"]],
    );
    assert.deepEqual(ok(place, "doctor", "1", "--json").json.findings, []);
  });
});
