/** `lcm settings`: shows every setting, its value and where it comes from, and settings that nothing reads. */

import {
  envOf,
  isSettingKey,
  misplacedWords,
  pluginConfigPlace,
  rows,
  shownValue,
  type ResolvedSettings,
  type SettingKey,
} from "../../core/model/settings.ts";
import { listed } from "../../core/base/format.ts";
import { oneLine } from "../../format/safe-text.ts";
import { facts, table } from "../../format/table.ts";
import { cut } from "../../format/width.ts";
import { anything, flag, list, maybe, object, oneOf, text } from "./_json.ts";
import { misplacedJson } from "./_shapes.ts";
import { defineCommand, type ConfigFile, type Session } from "./_session.ts";

const sources = oneOf("environment", "plugin config", "default");

const json = object({
  database: text,
  file: object({ path: text, exists: flag, problem: maybe(text) }),
  settings: list(
    object({
      key: text,
      variable: text,
      configKey: text,
      value: anything,
      default: anything,
      source: sources,
      overruled: list(object({ source: sources, value: anything })),
    }),
  ),
  unknownKeys: list(text),
  unknownVariables: list(text),
  misplaced: misplacedJson,
});

export const settingsCommand = defineCommand({
  name: "settings",
  json,
  summary: "show every setting, its value and where it comes from",
  description:
    "Show every setting, its value and where it comes from: the environment, OpenClaw's config, or the default. Settings " +
    "that were overruled, that are unknown, or that are at a place where nothing reads them are shown too.",
  examples: [
    ["lcm settings", "list all of them"],
    ["LCM_FRESH_TAIL_COUNT=64 lcm settings", "see what a variable overrules"],
    [`lcm settings --json | jq '.settings[] | select(.source != "default")'`, "those that are set"],
  ],
  notes: "docs/settings.md describes each setting.",
  async run(session) {
    const { context, database } = session;
    const file = await context.configFile();
    const resolved = await context.settings();
    const unknownVariables = context.variables().filter(isUnknownVariable);
    if (session.json) {
      const { unknownKeys, misplaced } = resolved;
      const settings = rowsOf(resolved);
      session.printJson(json, { database: database.path, file, settings, unknownKeys, unknownVariables, misplaced });
    } else print(session, file, resolved, unknownVariables);
  },
});

/** Variables that are read, but are not settings. */
const otherVariables = new Set(["LCM_DEBUG", "LCM_NODE", "LCM_LAUNCHED"]);
const variables = new Set(rows.map(([key]) => envOf(key)));

const isUnknownVariable = (name: string): boolean =>
  name.startsWith("LCM_") && !variables.has(name) && !otherVariables.has(name);

const rowsOf = ({ values, sources, overruled }: ResolvedSettings) =>
  rows.flatMap(([key, setting]) => {
    if (!isSettingKey(key)) return [];
    return [
      {
        key,
        variable: envOf(key),
        configKey: `${pluginConfigPlace}.${key}`,
        value: shownValue(key, values[key]),
        default: setting.default,
        source: sources[key],
        overruled: overruledOf(overruled, key),
      },
    ];
  });

const overruledOf = (overruled: ResolvedSettings["overruled"], key: SettingKey) =>
  Object.hasOwn(overruled, key) ? [{ source: "plugin config" as const, value: shownValue(key, overruled[key]) }] : [];

function print(session: Session, file: ConfigFile, resolved: ResolvedSettings, unknown: readonly string[]): void {
  const { paint, database, bounds } = session;
  const state = file.problem ?? (file.exists ? null : "missing");
  const lines = facts(
    [
      ["database", database.path],
      ["config", file.path + (state === null ? "" : ` (${state})`), paint.soft(`its key is ${pluginConfigPlace}`)],
    ],
    paint,
    bounds,
  );
  for (const line of lines) session.print(line);
  session.print();
  const shown = rowsOf(resolved);
  const isSet = (row: number): boolean => shown[row]?.source !== "default";
  const columns = [
    { title: "setting" },
    { title: "value", flexible: true, paint: (cell: string, row: number) => (isSet(row) ? paint.strong(cell) : cell) },
    { title: "from", paint: (cell: string, row: number) => (isSet(row) ? cell : paint.soft(cell)) },
  ] as const;
  const cells = shown.map(({ key, value, ...from }) => [key, valueWords(value), sourceWords(from)]);
  for (const line of table(columns, cells, bounds, paint)) session.print(line);
  for (const words of remarks(resolved, unknown)) session.note(`${paint.caution("note:")} ${words}`);
}

const valueWords = (value: unknown): string =>
  value === null ? "not set" : oneLine(typeof value === "string" ? value : JSON.stringify(value));

const overruledMax = 20;

type Row = ReturnType<typeof rowsOf>[number];

function sourceWords({ source, variable, overruled }: Pick<Row, "source" | "variable" | "overruled">): string {
  if (source === "default") return source;
  if (source === "plugin config") return "config";
  return [
    variable,
    ...overruled.map(({ value }) => `overrides ${cut(valueWords(value), overruledMax)} in config`),
  ].join(", ");
}

const remarks = ({ unknownKeys, misplaced }: ResolvedSettings, unknown: readonly string[]): readonly string[] => [
  ...misplaced.map((each) => oneLine(misplacedWords(each))),
  ...(unknownKeys.length === 0 ? [] : [oneLine(`not a setting, and ignored: ${listed(unknownKeys)} in config`)]),
  ...(unknown.length === 0 ? [] : [oneLine(`not a setting, and ignored: ${listed(unknown)} in the environment`)]),
];
