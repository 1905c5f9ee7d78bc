/**
 * Writes the pages and files that are derived from the source, so nobody has to keep them in step by hand.
 *
 *     node scripts/generate.ts            writes them
 *     node scripts/generate.ts --check    writes nothing; lists stale files, and exits with 1 if there are any
 */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";

import packageJson from "../package.json" with { type: "json" };
import { settingsJsonSchema, settingsMarkdown, settingsUiHints } from "../src/core/model/settings-docs.ts";
import { applicationId, indexes, schemaVersion, tables, views } from "../src/store/sqlite/schema.ts";
import { searchTables } from "../src/store/sqlite/search-index.ts";
import { expectation } from "../src/agent-tools/arguments.ts";
import type { Parameter } from "../src/agent-tools/arguments.ts";
import type { Tool } from "../src/agent-tools/define.ts";
import { tools } from "../src/agent-tools/all.ts";
import { commands, type Command } from "../src/tui/commands.ts";
import { commonKeys } from "../src/tui/offers.ts";
import { keyName } from "../src/tui/keys.ts";
import { modules } from "../src/tui/layers.ts";
import { listKeys, scrollKeys } from "../src/tui/widgets/list.ts";
import { guaranteesMarkdown } from "./guarantees.ts";
import { jsonMarkdown } from "./json-docs.ts";
import { mapMarkdown, withSamples } from "./map.ts";

const root = join(import.meta.dirname, "..");

/** Every generated file, by its path from the root of the repository. A new one is a line here. */
const generators: Readonly<Record<string, () => string>> = {
  "docs/guarantees.md": () => page("scripts/guarantees.ts and the tests named there", guaranteesMarkdown(root)),
  "docs/architecture.md": () => withSamples(root, readIfThere(join(root, "docs/architecture.md")) ?? ""),
  "docs/map.md": () => page("the headers of the files in src", mapMarkdown(root)),
  "docs/settings.md": () => page("src/core/model/settings.ts", settingsMarkdown()),
  "docs/schema.md": () => page("src/store/sqlite/schema.ts", schemaMarkdown()),
  "docs/keys.md": () => page("src/tui", keysMarkdown()),
  "docs/json.md": () => page("src/cli/commands", jsonMarkdown()),
  "docs/tools.md": () => page("src/agent-tools", toolsMarkdown()),
  "openclaw.plugin.json": () => `${JSON.stringify(pluginManifest(), null, 2)}\n`,
};

/** Writes or checks the files under a root. Returns the exit status. */
export function generate(options: {
  readonly root: string;
  readonly check: boolean;
  readonly print: (line: string) => void;
}): 0 | 1 {
  const stale = staleFiles(options.root);
  for (const { path, text } of stale) {
    if (options.check) {
      options.print(`stale: ${path}`);
    } else {
      const target = join(options.root, path);
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, text);
      options.print(`wrote ${path}`);
    }
  }
  if (options.check && stale.length > 0) options.print("run `npm run generate` to bring them up to date");
  return options.check && stale.length > 0 ? 1 : 0;
}

/** Files that are missing or differ from what the source gives, each with the text it should have. */
export function staleFiles(root: string): readonly { readonly path: string; readonly text: string }[] {
  return Object.entries(generators)
    .map(([path, make]) => ({ path, text: make() }))
    .filter(({ path, text }) => readIfThere(join(root, path)) !== text);
}

function readIfThere(path: string): string | null {
  try {
    // Git may have checked the file out with the platform's line endings.
    return readFileSync(path, "utf8").replaceAll("\r\n", "\n");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}

const page = (source: string, text: string): string =>
  `<!-- Made by scripts/generate.ts from ${source}. Edit that, then run \`npm run generate\`. -->\n\n${text}`;

// ── The plugin ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** What OpenClaw reads before it runs any of our code; its docs/plugins/manifest.md describes the fields. */
function pluginManifest(): object {
  const { name, version, description } = packageJson;
  return {
    id: name,
    name: "Lossless Claw",
    version,
    description,
    kind: "context-engine",
    categories: ["context"],
    activation: { onStartup: true },
    // OpenClaw drops registered tools that are not named here.
    contracts: { tools: tools.map((tool) => tool.name) },
    cliCommands: [
      { name: "lcm", description: "Browse, search and maintain stored conversations", hasSubcommands: true },
    ],
    commandAliases: ["lcm", "lossless"].map((alias) => ({ name: alias, kind: "runtime-slash", cliCommand: "lcm" })),
    uiHints: settingsUiHints(),
    configSchema: settingsJsonSchema(),
  };
}

// ── The database ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** One sentence per table. A table without one does not compile. */
const purposes: Readonly<Record<keyof typeof tables, string>> = {
  registry:
    "What must be unique across conversations: each session's active conversation, and the last number given to a conversation and to a change.",
  conversations: "A segment of a session, from one reset to the next, with running totals.",
  messages:
    "Every message the host sent, once per key. `envelope` and `entry` keep what the message had besides its text and parts; `moved` lists content that was moved to files, and `checksum` is the CRC-32 of all of these.",
  message_parts:
    "The blocks a message is rebuilt from, in order. A block's text is the next `text_length` characters of the message's `content`.",
  summaries:
    "The nodes of the summary graph: a leaf represents messages, a condensed summary represents summaries one depth below.",
  summary_messages: "The messages a leaf was made from, in order.",
  summary_parents: "The summaries a condensed summary was made from, in order; `parent_summary_id` is the source.",
  context_items: "What the model sees of a conversation: messages and summaries, ordered by an ordinal that has gaps.",
  large_files:
    "Content that was too large for its message, stored once per conversation as a file in the files folder.",
  expansion_grants: "What a delegate may read: which conversations, how many tokens, until when.",
  transcript_entries:
    "Lines of the host's transcript that are not messages, kept so that the transcript can be exported whole.",
  turns: "The turns already stored, by the host's key, so that a repeated turn writes nothing.",
  missing_parents:
    "Parents that a stored message names but that are not stored yet; a message that fills such a gap later is placed before the child.",
  model_usage:
    "Every model call, recorded before it is made (`result` is `open`): its purpose, tokens, duration and result.",
  compactions: "Every compaction that folded something or failed: tokens before and after, outcome, duration.",
  journal:
    "Every step of every change an operator applied, with its rows before and after, so that it can be shown and undone. All steps of one command share a `change_id`.",
  drafts: "Texts that a model wrote to replace a summary, applied or not; `basis` is a digest of the request.",
  map_answers:
    "What a model answered about single messages when all of them were read, so that an interrupted run continues; `basis` is a digest of what was asked, and of the model.",
  message_vectors:
    "Vectors of messages for search by meaning, one bit per dimension: up to 1,024 in a block, in the order of the messages' numbers. A block is continued, and made again after a message in it has changed.",
  embedders: "What each configured embedding model has done: how many texts it has embedded, and why it last failed.",
  pins: "Standing instructions: a user's own words that stay in prompts when their message is no longer shown, with who pinned or unpinned them, and why.",
  search_words:
    "How somebody might ask for what a message says, written by the model that summarised it. Indexed with the message, never shown.",
  prompts:
    "A record of every prompt: where its newest messages end, its budget and sizes, and a hash of our part of it, so that it can be rebuilt. `turn_key`, `outcome` and what the provider counted are as the host told.",
  prompt_heads:
    "What prompts are made of besides that, as JSON without any text: summaries with digests, runs of messages, pins and what was evicted. A head is the same for all prompts from its number on, up to the next head.",
  search_progress: "The version of the search index.",
  checksum_backlog:
    "Tables with rows of an earlier schema that have no checksum yet: those with an id above `after_id`. Empty once all have one.",
};

const viewsPurpose =
  "For your own queries: two tables with the columns that the older plugin stored, computed. An item's time is that of its message or summary.";

const searchPurpose =
  "The full-text index over the terms of each text. It stores no text; hits are read from the rows.";

function schemaMarkdown(): string {
  const database = new DatabaseSync(":memory:");
  try {
    // SQLite parses its own language best, and rejects an invalid schema here.
    for (const statement of [...Object.values(tables), ...searchTables, ...indexes, ...Object.values(views)])
      database.exec(statement);
    const sections = Object.entries(tables).map(
      ([table, definition]) => `## ${table}\n\n${purposeOf(table)}\n\n${columnsOf(database, table, definition)}`,
    );
    return `# The database

One SQLite file. Its \`user_version\` is ${schemaVersion}; its \`application_id\`, 0x${applicationId.toString(16)}, identifies it as ours.
Times are text in UTC with milliseconds, \`2026-02-17T07:37:00.000Z\`, so they sort as text.

${sections.join("\n\n")}

## Search

${searchPurpose}

${fenced(searchTables.filter((statement) => statement.startsWith("CREATE")))}

## Views

${viewsPurpose}

${fenced(Object.values(views).map((statement) => statement.replaceAll(/\s+/g, " ").trim()))}

## Indexes

${fenced(indexes)}
`;
  } finally {
    database.close();
  }
}

const purposeOf = (table: string): string => new Map(Object.entries(purposes)).get(table) ?? "";

const fenced = (statements: readonly string[]): string =>
  `\`\`\`sql\n${statements.map((s) => `${s};`).join("\n")}\n\`\`\``;

function columnsOf(database: DatabaseSync, table: string, definition: string): string {
  const references = new Map(
    database
      .prepare(`SELECT "from", "table", "to" FROM pragma_foreign_key_list(?)`)
      .all(table)
      .map((row) => [String(row["from"]), `references \`${String(row["table"])}.${String(row["to"])}\``]),
  );
  const choices = new Map(
    [...definition.matchAll(/CHECK \((\w+) IN \(([^)]+)\)\)/g)].map(([, column = "", values = ""]) => [
      column,
      `one of ${values
        .trim()
        .split(/,\s*/)
        .map((value) => `\`${value.replaceAll("'", "")}\``)
        .join(", ")}`,
    ]),
  );
  const lines = database
    .prepare(`SELECT name, type, "notnull" AS required, dflt_value AS preset, pk, hidden FROM pragma_table_xinfo(?)`)
    .all(table)
    .map((row) => {
      const name = String(row["name"]);
      const isKey = Number(row["pk"]) > 0;
      const notes = [
        isKey ? "primary key" : null,
        Number(row["hidden"]) > 0 ? "computed" : null,
        references.get(name) ?? null,
        choices.get(name) ?? null,
        row["preset"] === null ? null : `default \`${String(row["preset"])}\``,
      ].filter((note) => note !== null);
      const absent = isKey || Number(row["required"]) > 0 || Number(row["hidden"]) > 0 ? "" : "yes";
      return `| \`${name}\` | ${String(row["type"]).toLowerCase()} | ${absent} | ${notes.join("; ")} |`;
    });
  const unique = [...definition.matchAll(/UNIQUE \(([^)]+)\)/g)].map(
    ([, columns = ""]) => `\n\nUnique: \`${columns}\`.`,
  );
  return ["| Column | Type | Null | Notes |", "| --- | --- | --- | --- |", ...lines].join("\n") + unique.join("");
}

// ── The keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const commandRows = (): string =>
  Object.values<Command>(commands)
    .map(({ help, name, changes }) => {
      const [command = ""] = name.split(" ");
      return `| ${help}${changes === true ? " *(changes the database)*" : ""} | \`lcm ${command}\` |`;
    })
    .join("\n");

type Keys = (typeof modules)[number]["keys"];

function keysMarkdown(): string {
  const rows = (keys: Keys): string =>
    keys
      .map(({ keys: names, help, changes }) => {
        const shown = names.map((name) => `\`${keyName(name).replace("|", "\\|")}\``).join(" ");
        return `| ${shown} | ${help}${changes === true ? " *(changes the database)*" : ""} |`;
      })
      .join("\n");
  const shared = [...listKeys, ...scrollKeys];
  const section = (name: string, keys: Keys): string =>
    `## ${name}\n\n| key | what it does |\n|---|---|\n${rows(keys)}`;
  return `# Keys of the terminal UI

Run \`lcm\` in a terminal to open it. The bar at the bottom shows the most useful keys of the current screen, and \`?\` shows all
of them. A key that is unavailable says why. You can click the keys in the bar; a click selects a row, a double click opens it,
and the wheel scrolls. Nothing is written until you confirm it, and \`u\` lists changes and undoes them.

There is no need to remember keys: \`:\` or \`ctrl+p\` opens the palette, which lists the keys of the current screen and every command
below, finds them by a few letters of their words, and shows why one is unavailable.

${section("Everywhere", commonKeys)}

${section("In lists and texts", shared)}

## Commands of the palette

| what it does | like |
|---|---|
${commandRows()}

${modules
  .map(({ name, keys }) => ({
    name,
    keys: keys.filter((each) => !shared.some(({ help }) => help === each.help)),
  }))
  .filter(({ keys }) => keys.length > 0)
  .map(({ name, keys }) => section(name, keys))
  .join("\n\n")}
`;
}

// ── The tools ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The structured result of each tool; its text says the same to a model. A test requires one for every tool. */
const results: Readonly<Record<string, string>> = {
  lcm_grep:
    "`matches`, each with `id`, `type`, `snippet`, `conversationId` and `createdAt`; a message also has `role` and `seq`, a summary `summaryId`, `depth`, `kind` and `earliestAt` (it covers the time from there to `createdAt`), a file `fileName` and `line`. " +
    "`mode` says how the pattern was searched for in the end, `total` is the number of hits, `matches` are those that fit `tokenCap`; `caveats` are sentences about what was not searched or shown, and `truncated` means that there may be more. " +
    "An invalid pattern is an error, and a search that was stopped reports it: “no matches” means that there are none in what was searched.",
  lcm_describe:
    "For a summary: `content`, `kind`, `depth`, `level`, `tokenCount`, `createdAt`, `earliestAt`, `latestAt`, `descendantCount`, `parentIds` (the summaries it was made from), `messageIds` (the messages, of a leaf), `childIds` (what was made from it), `fileIds`, `carriedFrom`, and `manifest`: every summary below it with its `level` (how far below), `depth`, `tokens`, times, `opening`, and number of `messages`. " +
    "For a message: `content`, `role`, `seq`, `tokenCount`, `createdAt`, `coveredBy`, `fileIds`. " +
    "For a file: `content`, `fileName`, `mimeType`, `byteSize`, `lineCount`, `explorationSummary`, `messageId` (the message it was moved from), `storagePath` (the whole path of its file), and the position of the piece: `fromLine`, `toLine`, `nextLine`. `truncated` means that `content` is not complete.",
  lcm_expand_query:
    "`answer`, `citedIds` (summaries) and `citedMessages`, each of which was read for the answer; `expandedSummaryCount`, `totalSourceTokens`, `truncated` (cut at `maxTokens`), `by` (`model`, `delegate`, or `excerpts` when neither answered), `partial` (why the answer is incomplete, else null) and `caveats` of the search. " +
    "With `thorough`, also `reading`: `messages`, `read`, `unread` (each `id` with its `reason`), `facts`, `matching` (messages with facts), `subjects` (each with its exact number of `facts` and `messages`), `dropped` (facts without a true quote), `spent` and `files`. If it would cost too much: `ran` false, and the `plan`.",
  lcm_map:
    "`ran`, and the `plan`: `messages`, `kept` (answered by an earlier call), `calls`, `inputTokens`, `outputTokens`, `beyond`, `skipped`, `cut`, `files`. If it ran, also `results` (how many), `files` (each `id` with its `conversationId`; lines of `id`, `at`, `role`, `result`), `unread` (each `id` with its `reason`: `budget`, `stopped`, `malformed`, `refused`), `spent` and `stopped` (why it ended early).",
  lcm_recent:
    "`since` and `before` as interpreted; `items`, oldest first, each with `kind`, `id`, `text`, `tokens`, `earliestAt`, `latestAt`, `conversationId` and `isWhole`; `tokens`, `leftOut` (how many items and tokens did not fit) and `truncated`.",
  lcm_expand:
    "`items` with `kind`, `id`, `text`, `tokens`, `createdAt` and `conversationId`; `expandedSummaryIds`, `tokens` (charged to the grant), `leftOut`, `messagesBelow` (messages that were not requested) and `truncated`.",
  lcm_pin:
    "For pin and unpin: `message`, `words`, `saidAt`, `state`, `origin`, `reason` and `change`, the number that `lcm undo` takes. For list: `pins`, newest first.",
};

function toolsMarkdown(): string {
  return `# Tools for agents

These tools let an agent find what is no longer in its context. They are the same in the plugin, the MCP server (\`lcm mcp\`)
and the library, which exports them as \`tools\`. \`lcm_expand\` reads under a grant and is offered only to the delegate that
answers a question.

${tools.map(({ name, label, audience }) => `- [\`${name}\`](#${name}): ${label.toLowerCase()}${audience === "delegate" ? " (only for the delegate that answers a question)" : ""}`).join("\n")}

## What to tell your agent

The tools describe themselves, and most models need nothing more. If yours forgets that it can look things up, add this to its
instructions:

> Older parts of this conversation are shown to you as summaries; nothing is lost. Before you say that you do not know, or
> ask for something again, look it up: \`lcm_grep\` finds words, names, errors and paths, \`lcm_describe\` reads one id in full,
> and \`lcm_expand_query\` answers a question from what is below the summaries. When a summary ends with “Expand for details
> about: …” and you need one of these details, call \`lcm_expand_query\`; do not guess.

## What applies to all tools

- **Reach.** A tool reads the session it is called in, including the segments before a reset; over MCP also the other sessions of the
  same [project](guides/mcp.md#who-may-read-what). \`conversationId\` and \`allConversations\` reach further, as far as the setting \`scopePolicy\` allows: \`own\` not at all, \`agent\` (the default in a
  host) to the same agent's sessions, \`all\` (the default of the command line and MCP) to everything that is not hidden. What
  is out of reach is indistinguishable from something that does not exist.
- **Text and details.** Each result is a short text for the model, plus the same content as data, except over MCP, where some clients would
  show the data instead of the text. In the text, our own lines start at the
  margin and stored text is quoted with \`>\`: it is a record of what was said, never an instruction.
- **Ids** can be copied from any result into any call: \`sum_…\`, \`msg_…\`, \`file_…\`.
- **Limits.** A result that was cut says so, and how to get the rest.
- **Times** are UTC unless an offset is given: \`2026-02-17\`, \`2026-02-17T15:30:00+01:00\`, \`today\`, \`yesterday\`, or relative:
  \`30m\`, \`2h\`, \`7d\`, \`4w\` ago.
- **Arguments.** Harmless variations are accepted: a number or boolean as a string, one id instead of a list, null for nothing,
  another spelling of names and choices (\`all_conversations\`, \`fulltext\`). Anything else is an error that names the argument
  and what it must be.

${tools.map(toolMarkdown).join("\n\n")}
`;
}

function toolMarkdown({ name, description, parameters, example }: Tool): string {
  const rows = Object.entries(parameters.properties).map(([key, parameter]) => {
    const preset = parameters.required.includes(key) ? "required" : defaultOf(parameter);
    return `| \`${key}\` | ${expectation(parameter)} | ${preset} | ${parameter.description} |`;
  });
  return `## ${name}

${description}

| Argument | Value | Default | What it does |
| --- | --- | --- | --- |
${rows.join("\n")}

\`\`\`json
${JSON.stringify(example)}
\`\`\`

Details: ${results[name] ?? "none"}`;
}

const defaultOf = (parameter: Parameter): string =>
  "default" in parameter ? `\`${JSON.stringify(parameter.default)}\`` : "";

if (import.meta.main) {
  process.exitCode = generate({
    root,
    check: process.argv.includes("--check"),
    print: console.log,
  });
}
