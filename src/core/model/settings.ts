/**
 * Every setting, once. The parser, the JSON schema of the plugin's config and the page in docs/ are made from this
 * table, so a setting cannot exist in one of them and be missing in another.
 *
 * Nothing here touches the world: the environment comes in as a record, and paths stay the strings they were given as.
 * Where `null` is the default, the sentence says what its absence means.
 */

import { assert, LcmError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";

/** Far above any use, so that "never" can be written as a number, and far below where numbers lose precision. */
const wholeMax = 1_000_000_000;

/** Timers overflow at about 24 days; an hour is more than anybody waits. */
const timeoutSecondsMax = 3_600;

const minutesOfYear = 525_600;

export const settings = {
  enabled: {
    kind: "boolean",
    default: true,
    sentence: "When false, nothing is stored or compacted, no tool answers, and the host's messages pass through.",
  },
  databasePath: {
    kind: "path",
    default: null,
    example: "/var/lib/openclaw/lcm.db",
    sentence: "The SQLite database; when not set, `lcm.db` in the state directory.",
  },
  contextThreshold: {
    kind: "number",
    default: 0.75,
    bounds: [0, 1],
    sentence: "The part of the prompt budget that the context may fill before a full sweep runs.",
  },
  freshTailCount: {
    kind: "integer",
    default: 32,
    bounds: [0, wholeMax],
    sentence:
      "How many of the newest raw messages are never folded; more where a tool result would lose its call otherwise.",
  },
  leafMinFanout: {
    kind: "integer",
    default: 8,
    bounds: [2, wholeMax],
    sentence: "How many leaves in a row it takes to condense them into a summary of depth 1.",
  },
  condensedMinFanout: {
    kind: "integer",
    default: 4,
    bounds: [2, wholeMax],
    sentence: "How many condensed summaries of one depth in a row it takes to condense them into one a depth above.",
  },
  condensedMinFanoutHard: {
    kind: "integer",
    default: 2,
    bounds: [2, wholeMax],
    sentence: "What both fanouts are lowered to in a forced sweep, so it may not exceed either.",
  },
  incrementalMaxDepth: {
    kind: "integer",
    default: 0,
    bounds: [-1, wholeMax],
    sentence:
      "The deepest summary that compaction between turns may make: 0 is leaves only, 1 condenses them, -1 is no limit.",
  },
  leafChunkTokens: {
    kind: "integer",
    default: 20_000,
    bounds: [2, wholeMax],
    sentence:
      "How many tokens of raw messages a leaf pass takes at most, and how many outside the fresh tail start one.",
  },
  leafTargetTokens: {
    kind: "integer",
    default: 1_200,
    bounds: [1, wholeMax],
    sentence: "The length in tokens that a leaf should have, which must be below `leafChunkTokens`.",
  },
  condensedTargetTokens: {
    kind: "integer",
    default: 2_000,
    bounds: [1, wholeMax],
    sentence: "The length in tokens that a condensed summary should have.",
  },
  maxExpandTokens: {
    kind: "integer",
    default: 4_000,
    bounds: [1, wholeMax],
    sentence: "How many tokens of stored text one expansion may read, and how much of a file is described at once.",
  },
  largeFileTokenThreshold: {
    kind: "integer",
    default: 25_000,
    bounds: [1, wholeMax],
    sentence:
      "A file inside a message is stored on its own, and replaced by a short reference, above this many tokens.",
  },
  summaryModel: {
    kind: "string",
    default: null,
    example: "anthropic/claude-sonnet-4-20250514",
    sentence:
      "The model that writes summaries; when not set, the session's own (another needs `allowModelOverride` there), and outside of a host the one in OpenClaw's config.",
  },
  summaryProvider: {
    kind: "string",
    default: null,
    example: "anthropic",
    sentence:
      "The provider of that model; when not set, the one its name begins with, else the one in OpenClaw's config.",
  },
  summaryBaseUrl: {
    kind: "string",
    default: null,
    example: "http://127.0.0.1:11434/v1",
    sentence: "Where that provider is reached outside of a host; when not set, its own address or OpenClaw's config.",
    why: "A model on one's own machine or behind a gateway has an address that nobody else can know.",
  },
  summaryConcurrency: {
    kind: "integer",
    default: 4,
    bounds: [1, 64],
    sentence: "How many summaries of one conversation are written at the same time.",
    why: "A hosted model answers many at once, and one on the operator's own machine only one after the other.",
  },
  summaryTimeoutSeconds: {
    kind: "integer",
    default: 120,
    bounds: [1, timeoutSecondsMax],
    sentence: "How long one model call may take before it counts as failed.",
    why: "A model on the operator's own machine can need many times what a hosted one does.",
  },
  newSessionRetainDepth: {
    kind: "integer",
    default: 2,
    bounds: [-1, wholeMax],
    sentence: "Summaries of at least this depth are carried over when `/new` opens a segment; -1 carries none.",
    why: "One person wants a clean start where another wants to go on, and both say `/new`.",
  },
  promptDir: {
    kind: "path",
    default: null,
    example: "/etc/openclaw/lcm-prompts",
    sentence: "The folder of files that replace built-in prompts; when not set, `lcm-prompts` in the state directory.",
    why: "Prompts are reviewed and shared like source code, so they may have to lie where that is kept.",
  },
  customInstructions: {
    kind: "string",
    default: null,
    example: "Always keep invoice numbers.",
    sentence: "Text that is added to every summary prompt; when not set, none.",
    why: "What must never be dropped differs by field of work, and a whole prompt file is much to keep for one line.",
  },
  timezone: {
    kind: "zone",
    default: "UTC",
    sentence: "The time zone of the timestamps in the text that is given to be summarised.",
    why: 'A summary that says "this morning" is right only in the zone its people live in, which no row tells.',
  },
  scopePolicy: {
    kind: "choice",
    default: "agent",
    choices: ["own", "agent", "all"],
    sentence:
      "How far tools may read when asked to: `own` family, same `agent` or `all`, the default of command line and MCP.",
    why: "Only the operator knows whether those who share a database may read each other.",
  },
  ignoreSessionPatterns: {
    kind: "list",
    default: [],
    example: ["agent:*:cron:*"],
    sentence:
      "Sessions whose key matches one of these, `*` standing for any characters, are left to the host entirely.",
    why: "Which sessions are noise, or too private to keep, depends on how an operator names and uses them.",
  },
  statelessSessionPatterns: {
    kind: "list",
    default: [],
    example: ["agent:*:subagent:*"],
    sentence:
      "Sessions whose key matches one of these only read: they have the tools, and nothing of them is stored or folded.",
    why: "Which sessions come and go by the hundred, and are worth nothing afterwards, depends on what they are used for.",
  },
  spendCeilingCalls: {
    kind: "integer",
    default: 120,
    bounds: [0, wholeMax],
    sentence: "How many model calls a spend window allows; then passes wait, and overflow is met without a model.",
    why: "What a call costs differs a hundredfold between models, so no one ceiling fits all purses.",
  },
  spendWindowMinutes: {
    kind: "integer",
    default: 60,
    bounds: [1, minutesOfYear],
    sentence: "How long a spend window is.",
    why: "Quotas of providers run by the minute, the hour or the day, and the ceiling is only of use in their measure.",
  },
  expandTimeoutSeconds: {
    kind: "integer",
    default: 120,
    bounds: [1, timeoutSecondsMax],
    sentence: "How long an expansion query may take before it answers with what it has.",
    why: "A model on the operator's own machine can need many times what a hosted one does.",
  },
  searchTimeoutSeconds: {
    kind: "integer",
    default: 10,
    bounds: [1, timeoutSecondsMax],
    sentence: "How long a search may run before it stops and says how far it got.",
    why: "The same pattern takes a hundred times longer on a large database and a slow disk.",
  },
} as const satisfies Readonly<Record<string, Setting>>;

/** One row of the table. `why` is owed by every setting that the specification does not name. */
export type Setting = { readonly sentence: string; readonly why?: string } & (
  | { readonly kind: "boolean"; readonly default: boolean }
  | { readonly kind: "integer" | "number"; readonly default: number; readonly bounds: Bounds }
  | { readonly kind: "string" | "path"; readonly default: null; readonly example: string }
  | { readonly kind: "zone"; readonly default: string }
  | { readonly kind: "choice"; readonly default: string; readonly choices: readonly string[] }
  | { readonly kind: "list"; readonly default: readonly string[]; readonly example: readonly string[] }
);

/** `freshTailCount` is `LCM_FRESH_TAIL_COUNT` in the environment. */
export const envOf = (key: string): string => `LCM_${key.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;

/** Both ends are allowed. */
type Bounds = readonly [least: number, most: number];

export type SettingKey = keyof typeof settings;

export type Settings = { readonly [K in SettingKey]: ValueOf<(typeof settings)[K]> };

type ValueOf<S extends Setting> = S extends { readonly choices: readonly (infer Choice)[] }
  ? Choice
  : S["kind"] extends "boolean"
    ? boolean
    : S["kind"] extends "integer" | "number"
      ? number
      : S["kind"] extends "list"
        ? readonly string[]
        : S["default"] extends null
          ? string | null
          : string;

type Value = boolean | number | string | null | readonly string[];

export type SettingSource = "environment" | "plugin config" | "default";

export interface ResolvedSettings {
  readonly values: Settings;
  readonly sources: Readonly<Record<SettingKey, SettingSource>>;
  /** Keys of the plugin config that mean nothing to us. Older configs have some, so they are told, not refused. */
  readonly unknownKeys: readonly string[];
}

/**
 * Environment, then plugin config, then default. An empty variable is one that is not set. Throws `invalid` for the
 * first wrong value.
 *
 * A host that fills the schema's defaults into the config makes every default look written by the operator: give it the
 * config as it was written.
 */
export function resolveSettings(given: {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly config: Readonly<Record<string, unknown>>;
}): ResolvedSettings {
  const values: Record<string, Value> = {};
  const sources: Record<string, SettingSource> = {};
  for (const [key, setting] of rows) {
    const text = given.env[envOf(key)];
    const written = given.config[key];
    if (text !== undefined && text.trim() !== "") {
      values[key] = accept(key, setting, "environment", text, kinds[setting.kind].fromText(text));
      sources[key] = "environment";
    } else if (written !== undefined && !(written === null && setting.default === null)) {
      values[key] = accept(key, setting, "plugin config", written, written);
      sources[key] = "plugin config";
    } else {
      values[key] = setting.default;
      sources[key] = "default";
    }
  }
  assert(isSettings(values) && namesEverySetting(sources), "the table makes every setting");
  checkTogether(values, sources);
  return { values, sources, unknownKeys: Object.keys(given.config).filter((key) => !Object.hasOwn(settings, key)) };
}

export interface ChangedSetting {
  readonly key: string;
  readonly env: string;
  readonly value: unknown;
  readonly source: string;
}

/** What the operator has set. */
export function changedSettings({ values, sources }: ResolvedSettings): readonly ChangedSetting[] {
  const keys = Object.keys(settings) as readonly SettingKey[];
  return keys
    .filter((key) => sources[key] !== "default")
    .map((key) => ({ key, env: envOf(key), value: values[key], source: sources[key] }));
}

export const rows: readonly (readonly [key: string, setting: Setting])[] = Object.entries(settings);

function accept(key: string, setting: Setting, source: SettingSource, given: unknown, value: unknown): Value {
  if (fits(setting, value)) return value;
  const hint = `for example ${assignment(source, key, exampleOf(setting))}`;
  const wrong = `${nameIn(source, key)} is ${show(given)}, but must be ${expectation(setting)}`;
  throw new LcmError("invalid", wrong, { hint });
}

const isSettings = (values: Readonly<Record<string, Value>>): values is Settings =>
  rows.every(([key, setting]) => fits(setting, values[key]));

const namesEverySetting = <T>(record: Readonly<Record<string, T>>): record is Readonly<Record<SettingKey, T>> =>
  rows.every(([key]) => Object.hasOwn(record, key));

// ── What a setting may be, by its kind ───────────────────────────────────────────────────────────────────────────────

interface Kind {
  /** What a variable's text stands for, not yet checked; undefined when it cannot stand for anything. */
  readonly fromText: (text: string) => unknown;
  /** The one rule for what a setting may be; the JSON schema says the same, save for time zones. */
  readonly fits: (value: unknown, limits: Limits) => boolean;
  /** The rule in words. */
  readonly expectation: (limits: Limits) => string;
  readonly schema: (limits: Limits) => JsonObject;
}

/** What a row says beyond its kind. */
interface Limits {
  readonly bounds: Bounds;
  readonly choices: readonly string[];
}

const isWithin = ([least, most]: Bounds, value: unknown): boolean =>
  typeof value === "number" && value >= least && value <= most;

const isFilled = (value: unknown): value is string => typeof value === "string" && /\S/.test(value);

function isZone(name: string): boolean {
  // The default needs no look into the zone tables, the first of which costs more than all the rest here.
  if (name === settings.timezone.default) return true;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    // A RangeError is how the language says that it knows no such zone; the caller says it better.
    return false;
  }
}

const booleanWords: ReadonlyMap<string, boolean> = new Map([
  ...["true", "1", "yes", "on"].map((word) => [word, true] as const),
  ...["false", "0", "no", "off"].map((word) => [word, false] as const),
]);

const text: Kind = {
  fromText: (text) => text,
  fits: (value) => value === null || isFilled(value),
  expectation: () => "text, not blank",
  schema: () => ({ type: ["string", "null"], pattern: "\\S" }),
};

const kinds: Readonly<Record<Setting["kind"], Kind>> = {
  boolean: {
    fromText: (text) => booleanWords.get(text.trim().toLowerCase()),
    fits: (value) => typeof value === "boolean",
    expectation: () => "true or false (a variable may also say 1 or 0, yes or no, on or off)",
    schema: () => ({ type: "boolean" }),
  },
  integer: {
    fromText: (text) => (/^-?\d+$/.test(text.trim()) ? Number(text) : undefined),
    fits: (value, { bounds }) => Number.isInteger(value) && isWithin(bounds, value),
    expectation: ({ bounds }) => `a whole number from ${bounds.join(" to ")}`,
    schema: ({ bounds: [minimum, maximum] }) => ({ type: "integer", minimum, maximum }),
  },
  number: {
    fromText: (text) => (/^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text.trim()) ? Number(text) : undefined),
    fits: (value, { bounds }) => isWithin(bounds, value),
    expectation: ({ bounds }) => `a number from ${bounds.join(" to ")}`,
    schema: ({ bounds: [minimum, maximum] }) => ({ type: "number", minimum, maximum }),
  },
  string: text,
  path: { ...text, expectation: () => "a path, not blank" },
  zone: {
    fromText: (text) => text.trim(),
    fits: (value) => isFilled(value) && isZone(value),
    expectation: () => "a time zone by its IANA name",
    schema: () => ({ type: "string", pattern: "\\S" }),
  },
  choice: {
    fromText: (text) => text.trim(),
    fits: (value, { choices }) => typeof value === "string" && choices.includes(value),
    expectation: ({ choices }) => `one of ${choices.join(", ")}`,
    schema: ({ choices }) => ({ type: "string", enum: choices }),
  },
  list: {
    fromText: (text) =>
      text
        .trim()
        .split(/\s*,\s*/)
        .filter(isFilled),
    fits: (value) => Array.isArray(value) && value.every(isFilled),
    expectation: () => "a list of texts, none blank (a variable separates them by commas)",
    schema: () => ({ type: "array", items: { type: "string", pattern: "\\S" } }),
  },
};

const limitsOf = (setting: Setting): Limits => ({ bounds: [-Infinity, Infinity], choices: [], ...setting });

const fits = (setting: Setting, value: unknown): value is Value => kinds[setting.kind].fits(value, limitsOf(setting));
export const expectation = (setting: Setting): string => kinds[setting.kind].expectation(limitsOf(setting));
export const schemaOf = (setting: Setting): JsonObject => kinds[setting.kind].schema(limitsOf(setting));

// ── Settings that limit each other ───────────────────────────────────────────────────────────────────────────────────

const limits = [
  { lower: "condensedMinFanoutHard", relation: "at most", upper: "condensedMinFanout" },
  { lower: "condensedMinFanoutHard", relation: "at most", upper: "leafMinFanout" },
  { lower: "leafTargetTokens", relation: "below", upper: "leafChunkTokens" },
] as const;

function checkTogether(values: Settings, sources: ResolvedSettings["sources"]): void {
  for (const { lower, relation, upper } of limits) {
    const [low, high] = [values[lower], values[upper]];
    if (low < high || (low === high && relation === "at most")) continue;

    const told = (key: SettingKey): string => `${nameIn(sources[key], key)} (${sources[key]})`;
    // One of the two was set by somebody, and that is where a remedy can be written.
    const remedySource = sources[lower] === "default" ? sources[upper] : sources[lower];
    const remedy = Math.max(settings[lower].bounds[0], Math.min(settings[lower].default, Math.floor(high / 2)));
    const hint = `for example ${assignment(remedySource, lower, remedy)}`;
    const wrong = `${told(lower)} is ${low}, but must be ${relation} ${told(upper)}, which is ${high}`;
    throw new LcmError("invalid", wrong, { hint });
  }
}

// ── Saying it ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** As the one who set it knows it. */
const nameIn = (source: SettingSource, key: string): string => (source === "environment" ? envOf(key) : key);

const assignment = (source: SettingSource, key: string, value: Value): string =>
  source === "environment" ? `${envOf(key)}=${String(value)}` : `"${key}": ${JSON.stringify(value)}`;

export const exampleOf = (setting: Setting): Value => ("example" in setting ? setting.example : setting.default);

const shownCharsMax = 80;

function show(value: unknown): string {
  const text = typeof value === "number" ? String(value) : (JSON.stringify(value) ?? typeof value);
  return text.length > shownCharsMax ? `${text.slice(0, shownCharsMax)}…` : text;
}
