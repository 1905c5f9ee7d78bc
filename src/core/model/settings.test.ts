import assert from "node:assert/strict";
import { describe, it } from "node:test";

import * as fc from "fast-check";

import { LcmError } from "../base/errors.ts";
import { changedSettings, configuredDatabase, envOf, resolveSettings, settings } from "./settings.ts";
import { settingsJsonSchema, settingsMarkdown, settingsUiHints } from "./settings-docs.ts";
import type { Setting } from "./settings-kinds.ts";

/** Copied from the specification by hand, so that a slip in the table cannot agree with itself. */
const specified = {
  enabled: ["LCM_ENABLED", true],
  databasePath: ["LCM_DATABASE_PATH", null],
  contextThreshold: ["LCM_CONTEXT_THRESHOLD", 0.75],
  freshTailCount: ["LCM_FRESH_TAIL_COUNT", 32],
  leafMinFanout: ["LCM_LEAF_MIN_FANOUT", 8],
  condensedMinFanout: ["LCM_CONDENSED_MIN_FANOUT", 4],
  condensedMinFanoutHard: ["LCM_CONDENSED_MIN_FANOUT_HARD", 2],
  incrementalMaxDepth: ["LCM_INCREMENTAL_MAX_DEPTH", 0],
  leafChunkTokens: ["LCM_LEAF_CHUNK_TOKENS", 20000],
  leafTargetTokens: ["LCM_LEAF_TARGET_TOKENS", 1200],
  condensedTargetTokens: ["LCM_CONDENSED_TARGET_TOKENS", 2000],
  maxExpandTokens: ["LCM_MAX_EXPAND_TOKENS", 4000],
  largeFileTokenThreshold: ["LCM_LARGE_FILE_TOKEN_THRESHOLD", 25000],
  summaryModel: ["LCM_SUMMARY_MODEL", null],
  summaryProvider: ["LCM_SUMMARY_PROVIDER", null],
} as const;

/** What our own decisions add. */
const added = {
  contextTarget: ["LCM_CONTEXT_TARGET", 0.5],
  pinsShare: ["LCM_PINS_SHARE", 0.02],
  promptDays: ["LCM_PROMPT_DAYS", -1],
  summaryBaseUrl: ["LCM_SUMMARY_BASE_URL", null],
  summaryConcurrency: ["LCM_SUMMARY_CONCURRENCY", 4],
  summaryTimeoutSeconds: ["LCM_SUMMARY_TIMEOUT_SECONDS", 120],
  newSessionRetainDepth: ["LCM_NEW_SESSION_RETAIN_DEPTH", 2],
  promptDir: ["LCM_PROMPT_DIR", null],
  customInstructions: ["LCM_CUSTOM_INSTRUCTIONS", null],
  timezone: ["LCM_TIMEZONE", "UTC"],
  scopePolicy: ["LCM_SCOPE_POLICY", "agent"],
  ignoreSessionPatterns: ["LCM_IGNORE_SESSION_PATTERNS", []],
  statelessSessionPatterns: ["LCM_STATELESS_SESSION_PATTERNS", []],
  spendCeilingCalls: ["LCM_SPEND_CEILING_CALLS", 120],
  embedCeilingCalls: ["LCM_EMBED_CEILING_CALLS", 2_000],
  spendWindowMinutes: ["LCM_SPEND_WINDOW_MINUTES", 60],
  expandTimeoutSeconds: ["LCM_EXPAND_TIMEOUT_SECONDS", 120],
  mapTokens: ["LCM_MAP_TOKENS", 300_000],
  searchTokens: ["LCM_SEARCH_TOKENS", 450],
  searchTimeoutSeconds: ["LCM_SEARCH_TIMEOUT_SECONDS", 10],
  embedder: ["LCM_EMBEDDER", null],
  embedderBaseUrl: ["LCM_EMBEDDER_BASE_URL", null],
  companionTokens: ["LCM_COMPANION_TOKENS", 4_000],
  proxyTokens: ["LCM_PROXY_TOKENS", 90_000],
  proxyClientKey: ["LCM_PROXY_CLIENT_KEY", false],
  durability: ["LCM_DURABILITY", "auto"],
  databaseUrl: ["LCM_DATABASE_URL", null],
  sharedFiles: ["LCM_SHARED_FILES", null],
  sharedFilesEndpoint: ["LCM_SHARED_FILES_ENDPOINT", null],
} as const;

const rows: readonly (readonly [string, Setting])[] = Object.entries(settings);

const fromEnv = (env: Readonly<Record<string, string>>) => resolveSettings({ env, config: {} });
const fromConfig = (config: Readonly<Record<string, unknown>>) => resolveSettings({ env: {}, config });

/** One value of the result by a name known only at run time. */
const valueOf = (resolved: ReturnType<typeof resolveSettings>, key: string): unknown =>
  new Map<string, unknown>(Object.entries(resolved.values)).get(key);

function refusal(resolve: () => unknown): { readonly message: string; readonly hint: string } {
  try {
    resolve();
  } catch (error) {
    assert.ok(error instanceof LcmError, String(error));
    assert.equal(error.code, "invalid");
    return { message: error.message, hint: error.hint ?? "" };
  }
  return assert.fail("was accepted");
}

describe("the table of settings", () => {
  it("has every setting of the specification with its default, then ours, and nothing else", () => {
    const table = rows.map(([key, setting]) => [key, envOf(key), setting.default]);
    const expected = Object.entries({ ...specified, ...added }).map(([key, [env, preset]]) => [key, env, preset]);
    assert.deepEqual(table, expected);
  });

  it("explains each setting that is not in the specification, and only those", () => {
    const explained = rows.filter(([, setting]) => setting.why !== undefined).map(([key]) => key);
    assert.deepEqual(explained, Object.keys(added));
  });

  it("describes each setting in one sentence", () => {
    for (const [key, { sentence, why }] of rows) {
      assert.match(sentence, /^[A-Z][^|\n]+[^.]\.$/, key);
      if (why !== undefined) assert.match(why, /^[A-Z][^|\n]+[^.]\.$/, key);
    }
  });
});

describe("resolving settings", () => {
  it("returns the defaults when nothing is set", () => {
    const { values, sources, unknownKeys } = resolveSettings({ env: {}, config: {} });
    assert.deepEqual(values, Object.fromEntries(rows.map(([key, setting]) => [key, setting.default])));
    assert.deepEqual(sources, Object.fromEntries(rows.map(([key]) => [key, "default"])));
    assert.deepEqual(unknownKeys, []);
  });

  it("prefers the environment, then the plugin config, then the default, and reports the source", () => {
    const { values, sources } = resolveSettings({
      env: { LCM_FRESH_TAIL_COUNT: "7" },
      config: { freshTailCount: 9, contextThreshold: 0.5 },
    });
    assert.equal(values.freshTailCount, 7);
    assert.equal(sources.freshTailCount, "environment");
    assert.equal(values.contextThreshold, 0.5);
    assert.equal(sources.contextThreshold, "plugin config");
    assert.equal(values.leafMinFanout, 8);
    assert.equal(sources.leafMinFanout, "default");
  });

  it("reports the config as the source even if the value equals the default", () => {
    assert.equal(fromConfig({ freshTailCount: 32 }).sources.freshTailCount, "plugin config");
  });

  for (const blank of ["", "  ", "\n"]) {
    it(`takes the variable ${JSON.stringify(blank)} as not set`, () => {
      const env = Object.fromEntries(rows.map(([key]) => [envOf(key), blank]));
      const { values, sources } = resolveSettings({ env, config: { freshTailCount: 9 } });
      assert.equal(values.freshTailCount, 9);
      assert.equal(sources.freshTailCount, "plugin config");
      assert.equal(sources.databasePath, "default");
    });
  }

  it("treats null in the config as not set if null is the default", () => {
    const { values, sources } = fromConfig({ summaryModel: null });
    assert.equal(values.summaryModel, null);
    assert.equal(sources.summaryModel, "default");
  });

  it("allows unknown keys, and names them", () => {
    const { unknownKeys } = fromConfig({ freshTailCount: 9, pruneHeartbeatOk: true, toString: 1, LCM_ENABLED: false });
    assert.deepEqual(unknownKeys, ["pruneHeartbeatOk", "toString", "LCM_ENABLED"]);
  });

  it("ignores variables of other programs", () => {
    assert.equal(fromEnv({ freshTailCount: "many", LCM_FRESH_TAIL: "many" }).values.freshTailCount, 32);
  });

  for (const [word, expected] of [
    ["true", true],
    ["1", true],
    ["yes", true],
    ["ON", true],
    [" True ", true],
    ["false", false],
    ["0", false],
    ["No", false],
    ["off", false],
  ] as const) {
    it(`reads the variable ${JSON.stringify(word)} as ${expected}`, () => {
      assert.equal(fromEnv({ LCM_ENABLED: word }).values.enabled, expected);
    });
  }

  it("leaves paths unchanged", () => {
    assert.equal(fromEnv({ LCM_DATABASE_PATH: "~/my files/lcm.db" }).values.databasePath, "~/my files/lcm.db");
  });

  it("splits a list in a variable at commas", () => {
    const { values } = fromEnv({ LCM_IGNORE_SESSION_PATTERNS: "agent:*:cron:*, agent:test:* ,," });
    assert.deepEqual(values.ignoreSessionPatterns, ["agent:*:cron:*", "agent:test:*"]);
  });

  it("allows -1 where it means no limit or none", () => {
    const { values } = fromEnv({ LCM_INCREMENTAL_MAX_DEPTH: "-1", LCM_NEW_SESSION_RETAIN_DEPTH: "-1" });
    assert.equal(values.incrementalMaxDepth, -1);
    assert.equal(values.newSessionRetainDepth, -1);
  });
});

describe("a wrong value", () => {
  const inEnvironment: readonly (readonly [name: string, value: string, message: string, hint: string])[] = [
    [
      "LCM_ENABLED",
      "maybe",
      'LCM_ENABLED is "maybe", but must be true or false (variables also accept 1 or 0, yes or no, on or off)',
      "for example LCM_ENABLED=true",
    ],
    [
      "LCM_CONTEXT_THRESHOLD",
      "75",
      'LCM_CONTEXT_THRESHOLD is "75", but must be a number from 0 to 1',
      "for example LCM_CONTEXT_THRESHOLD=0.75",
    ],
    [
      "LCM_CONTEXT_THRESHOLD",
      "75%",
      'LCM_CONTEXT_THRESHOLD is "75%", but must be a number from 0 to 1',
      "for example LCM_CONTEXT_THRESHOLD=0.75",
    ],
    [
      "LCM_CONTEXT_THRESHOLD",
      "NaN",
      'LCM_CONTEXT_THRESHOLD is "NaN", but must be a number from 0 to 1',
      "for example LCM_CONTEXT_THRESHOLD=0.75",
    ],
    [
      "LCM_FRESH_TAIL_COUNT",
      "-1",
      'LCM_FRESH_TAIL_COUNT is "-1", but must be a whole number from 0 to 1000000000',
      "for example LCM_FRESH_TAIL_COUNT=32",
    ],
    [
      "LCM_FRESH_TAIL_COUNT",
      "3.5",
      'LCM_FRESH_TAIL_COUNT is "3.5", but must be a whole number from 0 to 1000000000',
      "for example LCM_FRESH_TAIL_COUNT=32",
    ],
    [
      "LCM_LEAF_CHUNK_TOKENS",
      "20k",
      'LCM_LEAF_CHUNK_TOKENS is "20k", but must be a whole number from 2 to 1000000000',
      "for example LCM_LEAF_CHUNK_TOKENS=20000",
    ],
    [
      "LCM_INCREMENTAL_MAX_DEPTH",
      "-2",
      'LCM_INCREMENTAL_MAX_DEPTH is "-2", but must be a whole number from -1 to 1000000000',
      "for example LCM_INCREMENTAL_MAX_DEPTH=0",
    ],
    [
      "LCM_EXPAND_TIMEOUT_SECONDS",
      "86400",
      'LCM_EXPAND_TIMEOUT_SECONDS is "86400", but must be a whole number from 1 to 3600',
      "for example LCM_EXPAND_TIMEOUT_SECONDS=120",
    ],
    [
      "LCM_SCOPE_POLICY",
      "everything",
      'LCM_SCOPE_POLICY is "everything", but must be one of own, agent, all',
      "for example LCM_SCOPE_POLICY=agent",
    ],
    [
      "LCM_TIMEZONE",
      "Mars/Olympus",
      'LCM_TIMEZONE is "Mars/Olympus", but must be an IANA time zone name',
      "for example LCM_TIMEZONE=UTC",
    ],
  ];
  for (const [name, value, message, hint] of inEnvironment) {
    it(`of ${name}, ${JSON.stringify(value)}, is rejected by name, with what is valid`, () => {
      assert.deepEqual(
        refusal(() => fromEnv({ [name]: value })),
        { message, hint },
      );
    });
  }

  const inConfig: readonly (readonly [key: string, value: unknown, message: string, hint: string])[] = [
    [
      "enabled",
      "yes",
      'enabled is "yes", but must be true or false (variables also accept 1 or 0, yes or no, on or off)',
      'for example "enabled": true',
    ],
    [
      "freshTailCount",
      "32",
      'freshTailCount is "32", but must be a whole number from 0 to 1000000000',
      'for example "freshTailCount": 32',
    ],
    [
      "freshTailCount",
      null,
      "freshTailCount is null, but must be a whole number from 0 to 1000000000",
      'for example "freshTailCount": 32',
    ],
    [
      "contextThreshold",
      Number.NaN,
      "contextThreshold is NaN, but must be a number from 0 to 1",
      'for example "contextThreshold": 0.75',
    ],
    [
      "leafMinFanout",
      1,
      "leafMinFanout is 1, but must be a whole number from 2 to 1000000000",
      'for example "leafMinFanout": 8',
    ],
    [
      "databasePath",
      " ",
      'databasePath is " ", but must be a path, not blank',
      'for example "databasePath": "/var/lib/openclaw/lcm.db"',
    ],
    [
      "summaryModel",
      { id: "x" },
      'summaryModel is {"id":"x"}, but must be text, not blank',
      'for example "summaryModel": "anthropic/claude-sonnet-4-20250514"',
    ],
    [
      "scopePolicy",
      "Own",
      'scopePolicy is "Own", but must be one of own, agent, all',
      'for example "scopePolicy": "agent"',
    ],
    ["timezone", "", 'timezone is "", but must be an IANA time zone name', 'for example "timezone": "UTC"'],
    [
      "ignoreSessionPatterns",
      ["a", ""],
      'ignoreSessionPatterns is ["a",""], but must be ' +
        "a list of texts, none blank (in a variable, separated by commas)",
      'for example "ignoreSessionPatterns": ["agent:*:cron:*"]',
    ],
  ];
  for (const [key, value, message, hint] of inConfig) {
    it(`of ${key}, ${JSON.stringify(value)}, is rejected by name, with what is valid`, () => {
      assert.deepEqual(
        refusal(() => fromConfig({ [key]: value })),
        { message, hint },
      );
    });
  }

  it("is cut to a recognisable length in the error", () => {
    const { message } = refusal(() => fromConfig({ freshTailCount: "9".repeat(5000) }));
    assert.ok(message.length < 200, message);
  });

  it("is rejected even if the variable that would override it is empty", () => {
    const given = { env: { LCM_FRESH_TAIL_COUNT: "" }, config: { freshTailCount: "x" } };
    assert.match(refusal(() => resolveSettings(given)).message, /^freshTailCount is "x"/);
  });
});

describe("settings that limit each other", () => {
  it("reject a hard fanout above the condensed one, naming both as the operator set them", () => {
    const given = { env: { LCM_CONDENSED_MIN_FANOUT_HARD: "6" }, config: { condensedMinFanout: 5 } };
    assert.deepEqual(
      refusal(() => resolveSettings(given)),
      {
        message:
          "LCM_CONDENSED_MIN_FANOUT_HARD (environment) is 6, " +
          "but must be at most condensedMinFanout (plugin config), which is 5",
        hint: "for example LCM_CONDENSED_MIN_FANOUT_HARD=2",
      },
    );
  });

  it("reject a hard fanout above that of leaves, since it replaces both", () => {
    const { message } = refusal(() => fromConfig({ condensedMinFanoutHard: 4, leafMinFanout: 3 }));
    assert.equal(
      message,
      "condensedMinFanoutHard (plugin config) is 4, but must be at most leafMinFanout (plugin config), which is 3",
    );
  });

  it("reject a leaf as long as its source, even if only the chunk was set", () => {
    assert.deepEqual(
      refusal(() => fromEnv({ LCM_LEAF_CHUNK_TOKENS: "1200" })),
      {
        message:
          "leafTargetTokens (default) is 1200, but must be below LCM_LEAF_CHUNK_TOKENS (environment), which is 1200",
        hint: "for example LCM_LEAF_TARGET_TOKENS=600",
      },
    );
  });

  it("allow values at the limit", () => {
    const { values } = fromConfig({ condensedMinFanoutHard: 4, leafTargetTokens: 1, leafChunkTokens: 2 });
    assert.equal(values.condensedMinFanoutHard, values.condensedMinFanout);
  });

  it("give a hint that works for any numbers", () => {
    const fanout = fc.integer({ min: 2, max: 30 });
    const tokens = fc.integer({ min: 2, max: 5000 });
    fc.assert(
      fc.property(fanout, fanout, fanout, tokens, tokens, (hard, condensed, leaf, target, chunk) => {
        const config = { condensedMinFanout: condensed, leafMinFanout: leaf, leafChunkTokens: chunk };
        const wrong = { ...config, condensedMinFanoutHard: hard, leafTargetTokens: target };
        if (hard <= Math.min(condensed, leaf) && target < chunk) {
          assert.equal(fromConfig(wrong).values.condensedMinFanoutHard, hard);
          return;
        }
        // Two things can be wrong; each hint mends one.
        const correct = (given: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => ({
          ...given,
          ...JSON.parse(`{${refusal(() => fromConfig(given)).hint.replace("for example ", "")}}`),
        });
        const once = correct(wrong);
        const twice = hard > Math.min(condensed, leaf) && target >= chunk ? correct(once) : once;
        assert.equal(fromConfig(twice).values.leafChunkTokens, chunk);
      }),
    );
  });
});

describe("the database", () => {
  const url = "postgres://lcm:quokka-4711@db.example.org/agents";
  const chosen = (env: Readonly<Record<string, string>>, config: Readonly<Record<string, unknown>>) =>
    configuredDatabase(resolveSettings({ env, config }));

  it("is the URL rather than the path, unless only the path is in the environment", () => {
    assert.equal(chosen({}, {}), null);
    assert.equal(chosen({}, { databasePath: "a.db" }), "a.db");
    assert.equal(chosen({}, { databasePath: "a.db", databaseUrl: url }), url);
    assert.equal(chosen({ LCM_DATABASE_URL: url }, { databasePath: "a.db" }), url);
    assert.equal(chosen({ LCM_DATABASE_URL: url, LCM_DATABASE_PATH: "a.db" }, {}), url);
    assert.equal(chosen({ LCM_DATABASE_PATH: "a.db" }, { databaseUrl: url }), "a.db");
  });

  it("is shown without its password, also where it is wrong", () => {
    const shown = changedSettings(
      resolveSettings({ env: { LCM_DATABASE_URL: `${url}?sslpassword=quokka-4711` }, config: {} }),
    );
    assert.deepEqual(
      shown.map(({ value }) => value),
      ["postgres://lcm@db.example.org/agents?schema=lcm"],
    );
    const { message, hint } = refusal(() => fromConfig({ databaseUrl: "mysql://lcm:quokka-4711@db/agents" }));
    assert.match(message, /^databaseUrl is not a URL that can be used, but must be a URL that begins with postgres:/);
    assert.doesNotMatch(message + hint, /quokka/);
  });
});

describe("any value within bounds", () => {
  /** Every value a setting may have, and how a shell would say it. */
  function within(setting: Setting): fc.Arbitrary<{ readonly value: unknown; readonly text: string }> {
    const said = <T>(values: fc.Arbitrary<T>) => values.map((value) => ({ value, text: String(value) }));
    const filled = fc.string({ unit: "grapheme", minLength: 1 }).filter((text) => text.trim() !== "");
    switch (setting.kind) {
      case "boolean":
        return said(fc.boolean());
      case "integer":
        return said(fc.integer({ min: setting.bounds[0], max: setting.bounds[1] }));
      case "number":
        return said(fc.double({ min: setting.bounds[0], max: setting.bounds[1], noNaN: true }));
      case "string":
      case "path":
        return said(filled);
      case "url":
        return said(fc.constantFrom("postgres://db/agents", "postgresql://user@db:5433/agents?schema=lcm"));
      case "zone":
        return said(fc.constantFrom("UTC", "+05:30", ...Intl.supportedValuesOf("timeZone")));
      case "choice":
        return said(fc.constantFrom(...setting.choices));
      case "list":
        return said(
          fc.array(
            filled.filter((text) => !text.includes(",") && text.trim() === text),
            { minLength: 1 },
          ),
        );
    }
  }

  /** Room for any value of the settings that are limited by another one. */
  const room = { condensedMinFanout: 1_000_000_000, leafMinFanout: 1_000_000_000, leafChunkTokens: 1_000_000_000 };
  const low = { condensedMinFanoutHard: 2, leafTargetTokens: 1 };
  const limited = new Set(["condensedMinFanoutHard", "leafTargetTokens"]);

  for (const [key, setting] of rows) {
    it(`of ${key} reads back as itself, from a variable and from the config`, () => {
      const others = limited.has(key) ? room : low;
      fc.assert(
        fc.property(within(setting), ({ value, text }) => {
          fc.pre(key !== "leafTargetTokens" || Number(value) < room.leafChunkTokens);
          const env = resolveSettings({ env: { [envOf(key)]: text }, config: others });
          assert.deepEqual(valueOf(env, key), value);
          const config = fromConfig({ ...others, [key]: value });
          assert.deepEqual(valueOf(config, key), value);
        }),
      );
    });
  }
});

describe("the JSON schema of the settings", () => {
  const schema = settingsJsonSchema();

  it("describes every setting, and mentions its default without setting it", () => {
    const { properties } = schema;
    assert.ok(isRecord(properties));
    assert.deepEqual(Object.keys(properties), Object.keys(settings));
    for (const [key, setting] of rows) {
      const property: unknown = properties[key];
      assert.ok(isRecord(property));
      const told = setting.default === null || setting.kind === "list" ? "" : ` Default: ${setting.default}.`;
      assert.equal(property["description"], `${setting.sentence}${told}`);
      assert.ok(!("default" in property), key);
    }
  });

  it("is plain JSON", () => {
    assert.deepEqual(JSON.parse(JSON.stringify(schema)), schema);
  });

  it("accepts the defaults and unknown keys", () => {
    assert.ok(accepts(schema, { ...fromConfig({}).values, pruneHeartbeatOk: true }));
  });

  it("accepts exactly what the parser accepts", () => {
    const value = fc.oneof(
      fc.jsonValue({ maxDepth: 1 }),
      fc.integer({ min: -3, max: 5000 }),
      fc.double({ min: -1, max: 2, noNaN: true }),
      fc.constantFrom("own", "agent", "all", "UTC", "", " ", null, true, 1_000_000_001),
      fc.array(fc.constantFrom("a", "", " b ")),
    );
    fc.assert(
      fc.property(fc.constantFrom(...rows.map(([key]) => key)), value, (key, candidate) => {
        // What no schema can say: which zones there are, and how one setting limits another.
        fc.pre(key !== "timezone");
        const room = key === "condensedMinFanoutHard" ? { condensedMinFanout: 6000, leafMinFanout: 6000 } : {};
        const target = key === "leafTargetTokens" ? { leafChunkTokens: 6000 } : {};
        const small = key === "leafChunkTokens" ? { leafTargetTokens: 1 } : {};
        const config = { ...room, ...target, ...small, [key]: candidate };
        assert.equal(accepts(schema, config), parses(config), JSON.stringify(config));
      }),
      { numRuns: 2000 },
    );
  });

  const parses = (config: Readonly<Record<string, unknown>>): boolean => {
    try {
      fromConfig(config);
      return true;
    } catch (error) {
      assert.ok(error instanceof LcmError);
      return false;
    }
  };
});

describe("the settings form", () => {
  const hints = settingsUiHints();

  it("has a label, a text and a placeholder for each, and most are advanced", () => {
    assert.deepEqual(Object.keys(hints), Object.keys(settings));
    assert.deepEqual(hints["summaryBaseUrl"], {
      label: "Summary base URL",
      help: settings.summaryBaseUrl.sentence,
      placeholder: "http://127.0.0.1:11434/v1",
      advanced: true,
    });
    assert.deepEqual(hints["freshTailCount"], {
      label: "Fresh tail count",
      help: `${settings.freshTailCount.sentence} Default: 32.`,
      placeholder: "32",
    });
  });
});

describe("the settings page", () => {
  it("names every key and variable in one row", () => {
    const lines = settingsMarkdown().split("\n");
    for (const [key] of rows) {
      assert.equal(lines.filter((line) => line.startsWith(`| \`${key}\` | \`${envOf(key)}\` |`)).length, 1, key);
    }
  });

  it("has rows of five cells", () => {
    const cells = settingsMarkdown()
      .split("\n")
      .filter((line) => line.startsWith("|"))
      .map((line) => line.split("|").length - 2);
    assert.deepEqual(new Set(cells), new Set([5]));
  });
});

// ── As much of JSON Schema as ours uses ──────────────────────────────────────────────────────────────────────────────

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function accepts(schema: unknown, value: unknown): boolean {
  assert.ok(isRecord(schema));
  return Object.entries(schema).every(([keyword, rule]) => {
    switch (keyword) {
      case "description":
        return true;
      case "type":
        return [rule].flat().some((type) => isOfType(type, value));
      case "minimum":
        return typeof value !== "number" || value >= Number(rule);
      case "maximum":
        return typeof value !== "number" || value <= Number(rule);
      case "pattern":
        return typeof value !== "string" || new RegExp(String(rule), "u").test(value);
      case "enum":
        return Array.isArray(rule) && rule.includes(value);
      case "items":
        return !Array.isArray(value) || value.every((item) => accepts(rule, item));
      case "additionalProperties":
        return rule === true;
      case "properties":
        assert.ok(isRecord(rule));
        return (
          isRecord(value) && Object.entries(rule).every(([key, own]) => !(key in value) || accepts(own, value[key]))
        );
      default:
        return assert.fail(`the schema uses ${keyword}, which this test does not know`);
    }
  });
}

function isOfType(type: unknown, value: unknown): boolean {
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  if (type === "object") return isRecord(value);
  if (type === "integer") return Number.isInteger(value);
  return typeof value === type;
}
