/** Tests that the plugin's config applies to `lcm` as well: an operator sets a thing once. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { settings } from "../../src/core/model/settings.ts";
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

describe("lcm settings", () => {
  const row = (place: Place, key: string) =>
    ok(place, "settings", "--json").json.settings.find((each: { key: string }) => each.key === key);

  it("shows every setting, its value, where it comes from and what was overruled", () => {
    const place = createPlace(configured({ freshTailCount: 7, contextThreshold: 0.5 }), { LCM_FRESH_TAIL_COUNT: "9" });
    const { json } = ok(place, "settings", "--json");
    assert.deepEqual(
      json.settings.map(({ key }: { key: string }) => key),
      Object.keys(settings),
    );
    assert.deepEqual(json.file, { path: join(place.state, "openclaw.json"), exists: true, problem: null });
    assert.deepEqual(row(place, "freshTailCount"), {
      key: "freshTailCount",
      variable: "LCM_FRESH_TAIL_COUNT",
      configKey: "plugins.entries.lossless-claw.config.freshTailCount",
      value: 9,
      default: 32,
      source: "environment",
      overruled: [{ source: "plugin config", value: 7 }],
    });
    assert.deepEqual(
      [row(place, "contextThreshold").source, row(place, "enabled").source],
      ["plugin config", "default"],
    );
    const { stdout, stderr } = ok({ ...place, env: { ...place.env, COLUMNS: "80" } }, "settings");
    assert.match(stdout, /^freshTailCount +9 +LCM_FRESH_TAIL_COUNT, overrides 7 in config$/m);
    assert.match(stdout, /^contextThreshold +0\.5 +config$/m);
    assert.match(stdout, /^databasePath +not set +default$/m);
    assert.match(stdout, /^config +.*openclaw\.json\n.*plugins\.entries\.lossless-claw\.config$/m);
    assert.equal(stderr, "");
    const tooLong = stdout.split("\n").filter((line) => line.length > 80 && !line.includes(place.state));
    assert.deepEqual(tooLong, []);
  });

  it("reports a config that is missing or broken, unknown keys and unknown variables", () => {
    const none = { state: createFolder(), env: { LCM_FRESH_TAIL: "9", LCM_DEBUG: "" } };
    const missing = ok(none, "settings");
    assert.match(missing.stdout, /openclaw\.json \(missing\)/);
    assert.equal(missing.stderr, "note: not a setting, and ignored: LCM_FRESH_TAIL in the environment\n");
    writeFileSync(join(none.state, "openclaw.json"), "{ no config");
    assert.match(ok(none, "settings").stdout, /openclaw\.json \(openclaw\.json is not valid JSON\)/);
    writeFileSync(join(none.state, "openclaw.json"), configured({ oldFlag: 1 }));
    assert.match(ok(none, "settings").stderr, /ignored: oldFlag in config\n/);
  });

  const misplaced: readonly (readonly [place: string, config: object])[] = [
    ["plugins.config.lossless-claw", { plugins: { config: { "lossless-claw": { freshTailCount: 7 } } } }],
    ["plugins.lcm", { plugins: { lcm: { freshTailCount: 7 } } }],
    ["plugins.lossless-claw.config", { plugins: { "lossless-claw": { config: { freshTailCount: 7 } } } }],
    [
      "plugins.entries.lossless-claw",
      { plugins: { entries: { "lossless-claw": { enabled: true, freshTailCount: 7 } } } },
    ],
    [
      "plugins.entries.lossless_claw.config",
      { plugins: { entries: { lossless_claw: { config: { freshTailCount: 7 } } } } },
    ],
    ["lossless-claw", { "lossless-claw": { freshTailCount: 7 } }],
  ];
  for (const [where, config] of misplaced)
    it(`reports settings at ${where}, which nothing reads, as do status and doctor`, () => {
      const place = createPlace(JSON.stringify(config));
      const words = new RegExp(
        `freshTailCount at ${where.replaceAll(".", "\\.")} is not read; move it to plugins\\.entries\\.lossless-claw\\.config`,
      );
      const { json } = ok(place, "settings", "--json");
      assert.deepEqual(json.misplaced, [{ place: where, keys: ["freshTailCount"] }]);
      assert.equal(row(place, "freshTailCount").value, 32);
      assert.match(ok(place, "settings").stderr, words);
      assert.match(ok(place, "status").stdout.replace(/\s+/g, " "), words);
      assert.match(ok(place, "doctor").stdout.replace(/\s+/g, " "), words);
      const [finding] = ok(place, "doctor", "--json").json.findings;
      assert.deepEqual([finding.severity, finding.code, finding.subject], ["info", "misplaced_setting", where]);
    });

  it("reports no misplaced settings where there are none", () => {
    const place = createPlace(configured({ freshTailCount: 7, enabled: true }));
    assert.deepEqual(ok(place, "settings", "--json").json.misplaced, []);
    assert.equal(ok(place, "settings").stderr, "");
  });
});
