/** `lcm map`: has a model do one task for every message. Without --apply it shows the plan and its cost. */

import { readFileSync, writeFileSync } from "node:fs";
import { LcmError, errorText } from "../../core/base/errors.ts";
import { formatCount, plural } from "../../core/base/format.ts";
import type { Json } from "../../core/base/json.ts";
import type { Lcm } from "../../core/lcm.ts";
import { roles } from "../../core/model/types.ts";
import { mapLine } from "../../core/recall/map/file.ts";
import type { MapReport, MapRequest } from "../../core/recall/map/map.ts";
import { spentWords } from "../../format/map.ts";
import { facts } from "../../format/table.ts";
import { textLines } from "../../format/passages.ts";
import { applyOptions } from "./_applying.ts";
import { about, anything, list, maybe, object, text, whole } from "./_json.ts";
import {
  endJson,
  endMapping,
  fileIdsJson,
  mappingOptions,
  missingWords,
  planAndRead,
  planFields,
  spentJson,
  unreadJson,
} from "./_mapping.ts";
import { providerOptions, type OptionsOf, type OptionTable } from "./_options.ts";
import { reachOptions } from "./_reach.ts";
import { planned } from "./_shapes.ts";
import { defineCommand, type Session } from "./_session.ts";

const collect = (id: string, before?: unknown): readonly string[] => [...(Array.isArray(before) ? before : []), id];

const flags = {
  schema: ["--schema <json>", "JSON Schema of each result, or @FILE that contains it (default: a short text)"],
  query: ["--query <words>", "read only messages that `lcm grep` finds for this"],
  role: ["--role <role>", "read only messages of this role", roles],
  summary: ["--summary <id>", "read only messages below this summary; repeatable", collect],
  ...reachOptions,
  ...mappingOptions,
  output: ["--output <file>", "write the results to this file instead of storing them; - for stdout"],
  model: ["--model <name>", "ask this model, named as provider/model"],
  ...providerOptions,
  ...applyOptions,
} as const satisfies OptionTable;

type MapOptions = OptionsOf<typeof flags>;

const json = planned(
  object(planFields),
  object({
    results: about(whole, "messages with a result"),
    first: about(list(anything), "the first lines: id, at, role and result"),
    unread: unreadJson,
    spent: spentJson,
    stopped: about(maybe(text), "why it ended early"),
    files: about(fileIdsJson, "stored files with all lines"),
    output: maybe(text),
  }),
);

export const mapCommand = defineCommand({
  name: "map",
  json,
  summary: "do one task for every message, with a model",
  description:
    "Have a model do the same task for every message of a search, a time, a role or a summary, and check each result " +
    "against a JSON Schema. Results are stored as files, a line of JSON per message. Without --apply, only show what would " +
    "be read, and its cost.",
  arguments: [["<task...>", "what to do for each message; quotes are optional"]],
  options: flags,
  exclusive: [["conversation", "family"]],
  examples: [
    ["lcm map 'What did the user ask for?' --role user --since 7d", "show the plan and its cost"],
    ["lcm map 'What did the user ask for?' --role user --since 7d --apply", "do it"],
    ["lcm map 'Which test failed?' --schema @test.json --apply --output -", "to stdout, by the schema in a file"],
  ],
  notes:
    "The model comes from --model, else LCM_SUMMARY_MODEL, else OpenClaw's config. Every answer is kept: after Ctrl-C, " +
    "--timeout or a refusal, the same command continues and pays nothing twice. Exit status 6: some messages were not " +
    "read; 130: interrupted.",
  run: mapAll,
});

async function mapAll(session: Session, options: MapOptions, ...words: readonly string[]): Promise<number | void> {
  const { query, role } = options;
  const asked = { prompt: words.join(" "), schema: schemaOf(options.schema) };
  const narrower = { ...(query !== undefined && { query }), ...(role !== undefined && { role }) };
  return await planAndRead(session, options, {
    request: (cover): MapRequest => ({ ...cover, ...narrower, ...asked }),
    plan: async (lcm, request) => lcm.planMap(request),
    run: async (lcm, request) => lcm.map(request),
    end: async (_, lcm, report, plan) => keep(session, lcm, report, { ...asked, plan, output: options.output ?? null }),
  });
}

const linesShown = 5;

async function keep(
  session: Session,
  lcm: Lcm,
  report: MapReport,
  { prompt, plan, output }: { readonly prompt: string; readonly plan: object; readonly output: string | null },
): Promise<number> {
  const { results, unread, spent, stopped } = report;
  const files = output === null ? await lcm.saveMap({ prompt, results }) : [];
  const lines = results.map(mapLine);
  if (output !== null && output !== "-") write(output, lines);
  const shown = lines.slice(0, output === "-" ? lines.length : linesShown);
  if (session.json) {
    const first = results.slice(0, linesShown).map((each): unknown => JSON.parse(mapLine(each)));
    const result = { results: results.length, first, unread, spent, stopped, files: files.map(({ id }) => id), output };
    return endJson(session, results.length > 0, { plan, result }, missingWords(report));
  }
  for (const line of shown) for (const part of output === "-" ? [line] : textLines(session, line)) session.print(part);
  const kept = files.map(({ id }) => `lcm describe ${id}`);
  const rows = [
    [
      "results",
      `${plural(results.length, "line")}${shown.length < lines.length ? `, of which ${formatCount(shown.length)} are shown` : ""}`,
    ],
    ...(kept.length === 0 ? [] : [["stored", ...kept] as const]),
    ...(output === null || output === "-" ? [] : [["written", output] as const]),
    ["spent", spentWords(spent)],
  ] as const;
  if (output !== "-") for (const line of facts(rows, session.paint, session.bounds)) session.print(line);
  return endMapping(session, missingWords(report));
}

function write(path: string, lines: readonly string[]): void {
  try {
    writeFileSync(path, lines.map((line) => `${line}\n`).join(""));
  } catch (error) {
    throw new LcmError("unavailable", `${path} cannot be written: ${errorText(error)}`, {
      hint: "run it again with another --output: every answer is kept",
    });
  }
}

const schemaDefault = { type: "string", description: "A short answer; empty if there is none." };

function schemaOf(given: string | undefined): Json {
  if (given === undefined) return schemaDefault;
  const hint = `for example --schema '{"type":"object","properties":{"topic":{"type":"string"}}}', or --schema @FILE`;
  try {
    const words = given.startsWith("@") ? readFileSync(given.slice(1), "utf8") : given;
    return JSON.parse(words) as Json;
  } catch (error) {
    throw new LcmError("invalid", `--schema is not JSON: ${errorText(error)}`, { hint });
  }
}
