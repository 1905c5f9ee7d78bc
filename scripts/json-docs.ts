/** Writes docs/json.md: what each command prints with `--json`. */

import { isObject, type Json, type JsonObject } from "../src/core/base/json.ts";
import { commands } from "../src/cli/commands/index.ts";
import type { DefinedCommand } from "../src/cli/commands/_session.ts";
import { failureJson } from "../src/cli/commands/_shapes.ts";
import { object, text } from "../src/cli/commands/_json.ts";

const errorJson = object({ error: failureJson });
const versionJson = object({ version: text });

/** Commands that print JSON and are not internal. */
const documented = commands.flatMap(({ json, ...command }) =>
  json === null || command.hidden ? [] : [{ ...command, json }],
);

export function jsonMarkdown(): string {
  return `# JSON output

Every command except \`tui\` and \`mcp\` prints JSON to stdout with \`--json\`: one object, with nothing before or after it. Remarks for
people are left out or go to stderr. Times are UTC with milliseconds. These shapes are covered by semantic versioning: within a major
version, fields are added but not removed or changed, so ignore fields that you do not know. A test validates the output of every command against this page's schemas.

Below, \`?\` marks a field that may be missing, and \`time\` is a text such as \`2026-02-17T07:37:00.000Z\`. A message's \`id\` is the number
behind \`msg_1-42\`: \`describe\` and other commands take that name.

- A command that fails prints only this, and exits with a status other than 0:

${block(errorJson)}

- A command that changes something prints its \`plan\`, and with \`--apply\` also its \`result\`. \`applied\` says whether anything was
  changed.
- \`lcm --version --json\` prints \`${typeText(versionJson, "").replaceAll(/\s+/g, " ")}\`.

${documented.map(section).join("\n\n")}
`;
}

const section = ({ name, summary, json }: Pick<DefinedCommand, "name" | "summary"> & { readonly json: Json }): string =>
  `## ${name}\n\n${summary.charAt(0).toUpperCase()}${summary.slice(1)}.\n\n${block(json)}`;

function block(schema: Json): string {
  const definitions = isObject(schema) && isObject(schema["$defs"]) ? Object.entries(schema["$defs"]) : [];
  const named = definitions.map(([name, inner]) => `${name}: ${typeText(inner, "")}`);
  return `\`\`\`text\n${[typeText(schema, ""), ...named].join("\n\n")}\n\`\`\``;
}

/** The type that a schema describes, much as in TypeScript. */
function typeText(schema: Json | undefined, indent: string): string {
  if (!isObject(schema)) return "anything";
  const { title, $ref, anyOf, type, properties, items, additionalProperties: others } = schema;
  if (typeof title === "string") return title;
  if (typeof $ref === "string") return $ref.replace("#/$defs/", "");
  if (Array.isArray(schema["enum"])) return schema["enum"].map((value) => JSON.stringify(value)).join(" | ");
  if (Array.isArray(anyOf)) return anyOf.map((each) => typeText(each, indent)).join(" | ");
  if (isObject(properties)) return fieldsText(schema, indent);
  if (type === "object") return `{ [key]: ${typeText(others, indent)} }`;
  if (type === "array") return listText(items, indent);
  return typeof type === "string" ? (plainTypes.get(type) ?? type) : "anything";
}

const plainTypes: ReadonlyMap<string, string> = new Map([
  ["string", "text"],
  ["integer", "integer"],
]);

function listText(items: Json | undefined, indent: string): string {
  const item = typeText(items, indent);
  return isObject(items) && ("anyOf" in items || "enum" in items) ? `(${item})[]` : `${item}[]`;
}

function fieldsText(schema: JsonObject, indent: string): string {
  const { properties, required } = schema;
  const inner = `${indent}  `;
  const lines = Object.entries(isObject(properties) ? properties : {}).map(([key, value]) => {
    const mark = Array.isArray(required) && required.includes(key) ? "" : "?";
    const what = isObject(value) && typeof value["description"] === "string" ? `  // ${value["description"]}` : "";
    return `${inner}${key}${mark}: ${typeText(value, inner)}${what}`;
  });
  const short = `{ ${lines.map((line) => line.trim()).join(", ")} }`;
  const isShort = short.length + indent.length <= 80 && !short.includes("//") && !short.includes("\n");
  return isShort ? short : `{\n${lines.join("\n")}\n${indent}}`;
}
