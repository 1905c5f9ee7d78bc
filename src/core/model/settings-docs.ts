/** Generates the plugin's config schema, its form hints and docs/settings.md from the table of settings. */

import { envOf, exampleOf, rows, type SettingKey } from "./settings.ts";
import { expectation, schemaOf, type Setting } from "./settings-kinds.ts";
import type { Json, JsonObject } from "../base/json.ts";

/**
 * For the plugin's manifest. Unknown keys are allowed, because configs of the older program have some. Defaults appear
 * only in descriptions: a host writes a schema's defaults into the config, where they would look like the operator's.
 */
export function settingsJsonSchema(): JsonObject {
  return { type: "object", additionalProperties: true, properties: perSetting(describedSchema) };
}

/** For the settings form of a host. */
export function settingsUiHints(): JsonObject {
  return perSetting((setting, key) => ({
    label: labelOf(key),
    help: withDefault(setting),
    placeholder: String(exampleOf(setting)),
    ...(everyday.has(key) ? {} : { advanced: true }),
  }));
}

/** Shown without opening the advanced settings. */
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

const withDefault = ({ sentence, default: preset }: Setting): string =>
  preset === null || isEmptyList(preset) ? sentence : `${sentence} Default: ${String(preset)}.`;

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

/** `summaryBaseUrl` is "Summary base URL". */
function labelOf(key: string): string {
  const words = key.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).replace(/ url$/, " URL");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function settingsMarkdown(): string {
  const table = rows.map(([key, setting]) => {
    const preset = setting.default === null ? "not set" : `\`${JSON.stringify(setting.default)}\``;
    return `| \`${key}\` | \`${envOf(key)}\` | ${preset} | ${expectation(setting)} | ${setting.sentence} |`;
  });
  const reasons = rows.flatMap(([key, { why }]) => (why === undefined ? [] : [`- \`${key}\`: ${why}`]));
  return `# Settings

Set these with environment variables or in the plugin's config. The variable takes precedence, then the config,
then the default. An empty variable counts as not set. A wrong value is an error that names the setting, its value and
the valid values. Keys that are not listed here are ignored; \`lcm doctor\` reports them.
\`lcm settings\` shows every value and where it comes from.

\`\`\`json
{ "plugins": { "entries": { "lossless-claw": { "config": { "incrementalMaxDepth": 1 } } } } }
\`\`\`

The state directory is \`OPENCLAW_STATE_DIR\`, or \`~/.openclaw\` when that is not set.

| Key | Variable | Default | Value | What it does |
| --- | --- | --- | --- | --- |
${table.join("\n")}

## Settings that the older program does not have

Each exists because no single value suits everyone:

${reasons.join("\n")}
`;
}
