/** What is made from the table of settings: the plugin's config for the host, and the page for operators. */

import { envOf, exampleOf, expectation, rows, schemaOf } from "./settings.ts";
import type { Setting, SettingKey } from "./settings.ts";
import type { Json, JsonObject } from "../base/json.ts";

/**
 * For the plugin's manifest. Unknown keys are allowed, because configs written for the older program hold some. What a
 * host finds as a default it writes into the config, where it would pass for what the operator wants: so a default is
 * only told.
 */
export function settingsJsonSchema(): JsonObject {
  return { type: "object", additionalProperties: true, properties: perSetting(describedSchema) };
}

/** How a host's form shows each setting. */
export function settingsUiHints(): JsonObject {
  return perSetting((setting, key) => ({
    label: labelOf(key),
    help: withDefault(setting),
    placeholder: String(exampleOf(setting)),
    ...(everyday.has(key) ? {} : { advanced: true }),
  }));
}

/** What an operator may well want to change without having read much. */
const everyday: ReadonlySet<string> = new Set<SettingKey>([
  "enabled",
  "contextThreshold",
  "freshTailCount",
  "incrementalMaxDepth",
  "customInstructions",
  "timezone",
  "scopePolicy",
  "ignoreSessionPatterns",
  "statelessSessionPatterns",
  "spendCeilingCalls",
]);

const perSetting = (make: (setting: Setting, key: string) => Json): JsonObject =>
  Object.fromEntries(rows.map(([key, setting]) => [key, make(setting, key)]));

const describedSchema = (setting: Setting): Json => ({ description: withDefault(setting), ...schemaOf(setting) });

/** Where there is none, the sentence says what holds then. */
const withDefault = ({ sentence, default: preset }: Setting): string =>
  preset === null || isEmptyList(preset) ? sentence : `${sentence} Default: ${String(preset)}.`;

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

/** `summaryBaseUrl` is "Summary base URL". */
function labelOf(key: string): string {
  const words = key.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).replace(/ url$/, " URL");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The page for operators. */
export function settingsMarkdown(): string {
  const table = rows.map(([key, setting]) => {
    const preset = setting.default === null ? "not set" : `\`${JSON.stringify(setting.default)}\``;
    return `| \`${key}\` | \`${envOf(key)}\` | ${preset} | ${expectation(setting)} | ${setting.sentence} |`;
  });
  const reasons = rows.flatMap(([key, { why }]) => (why === undefined ? [] : [`- \`${key}\`: ${why}`]));
  return `# Settings

Each setting can be given as an environment variable or in the plugin's config: the variable wins, then the config, then
the default. An empty variable counts as not set. A wrong value is an error that names the setting, the value and what
it may be. Keys that are not listed here are tolerated, and reported by \`lcm doctor\`.

\`\`\`json
{ "plugins": { "entries": { "lossless-claw": { "config": { "incrementalMaxDepth": 1 } } } } }
\`\`\`

The state directory is \`OPENCLAW_STATE_DIR\`, or \`~/.openclaw\` when that is not set.

| Key | Variable | Default | Value | What it does |
| --- | --- | --- | --- | --- |
${table.join("\n")}

## Why a default cannot do

The older program does not have these; each is here because no one value is right for everybody.

${reasons.join("\n")}
`;
}
