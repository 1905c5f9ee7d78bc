/**
 * Writes the pages and files that repeat what the source already says, so that nobody keeps them in step by hand.
 *
 *     node scripts/generate.ts            writes them
 *     node scripts/generate.ts --check    writes nothing; lists what is stale, and exits with 1 if anything is
 */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";

import packageJson from "../package.json" with { type: "json" };
import { settingsJsonSchema, settingsMarkdown, settingsUiHints } from "../src/core/model/settings-docs.ts";
import { applicationId, indexes, schemaVersion, searchTables, tables } from "../src/store/sqlite/schema.ts";
import { expectation } from "../src/agent-tools/arguments.ts";
import type { Parameter } from "../src/agent-tools/arguments.ts";
import type { Tool } from "../src/agent-tools/define.ts";
import { tools } from "../src/agent-tools/all.ts";
import { commonKeys } from "../src/tui/app.ts";
import { keyName } from "../src/tui/keys.ts";
import { modules } from "../src/tui/layers.ts";
import { listKeys, scrollKeys } from "../src/tui/widgets/list.ts";
import { guaranteesMarkdown } from "./guarantees.ts";
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
  "docs/tools.md": () => page("src/agent-tools", toolsMarkdown()),
  "openclaw.plugin.json": () => `${JSON.stringify(pluginManifest(), null, 2)}\n`,
};

/** Generates, or checks, under a root; tells the exit status. */
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

/** What differs from the source, or is missing, with the text that it should have. */
export function staleFiles(root: string): readonly { readonly path: string; readonly text: string }[] {
  return Object.entries(generators)
    .map(([path, make]) => ({ path, text: make() }))
    .filter(({ path, text }) => readIfThere(join(root, path)) !== text);
}

function readIfThere(path: string): string | null {
  try {
    // Git may have checked the file out with the line ends of its platform.
    return readFileSync(path, "utf8").replaceAll("\r\n", "\n");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}

const page = (source: string, text: string): string =>
  `<!-- Made by scripts/generate.ts from ${source}. Edit that, then run \`npm run generate\`. -->\n\n${text}`;

// ── The plugin ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** What OpenClaw reads before it runs any of our code; its docs/plugins/manifest.md tells what each field does. */
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
    // A tool that is registered and not named here is dropped.
    contracts: { tools: tools.map((tool) => tool.name) },
    cliCommands: [
      { name: "lcm", description: "Browse, search and look after stored conversations", hasSubcommands: true },
    ],
    commandAliases: ["lcm", "lossless"].map((alias) => ({ name: alias, kind: "runtime-slash", cliCommand: "lcm" })),
    uiHints: settingsUiHints(),
    configSchema: settingsJsonSchema(),
  };
}

// ── The database ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** One sentence per table. A table without one does not compile. */
const purposes: Readonly<Record<keyof typeof tables, string>> = {
  conversations:
    "A segment of a session, from one reset to the next, with running totals, so that its size is known uncounted.",
  messages:
    "Every message the host sent, once, by its key; `envelope` and `entry` are what it had besides its text and parts; `moved` tells which places of it lie in files.",
  message_parts:
    "The blocks that a message is rebuilt from, in order; what one says is `text_length` of the message's `content`.",
  summaries:
    "The nodes of the summary graph: a leaf stands for messages, a condensed one for summaries one depth below.",
  summary_messages: "The messages that a leaf was made from, in order.",
  summary_parents: "The summaries that a condensed summary was made from, in order; `parent_summary_id` is the source.",
  context_items:
    "What the model sees of a conversation: messages and summaries, by an ordinal that is an order with gaps.",
  large_files:
    "What was too large to stay in its message, each content once in a conversation; it lies in the files folder, text as it is, bytes as bytes.",
  expansion_grants: "What a delegate may read: which conversations, how many tokens, until when.",
  transcript_entries:
    "Lines of the host's transcript that are no messages, kept so that the transcript can be given back whole.",
  turns: "The turns already stored, by the host's key, so that a repeated one writes nothing.",
  missing_parents:
    "Parents that a stored message names and that are not stored: what fills such a gap later belongs in front of the child.",
  model_usage:
    "Every model call, from before it is made (`result` is `open`), with what it was for, what it took and what became of it.",
  compactions: "Every compaction that folded something or could not: what it saved, how it ended, how long it took.",
  journal:
    "Every step of every change an operator applied, with its rows as they were and became, so that it can be shown and undone; `change_id` is the same for all that one command did.",
  drafts: "Texts that a model wrote for a rewrite nobody has applied yet; `basis` is a digest of what it was asked.",
  search_progress: "Up to which row the search index is built.",
};

const searchPurpose =
  "The full-text index over a prepared form of the text. It holds no text itself; what it finds is read from the rows.";

function schemaMarkdown(): string {
  const database = new DatabaseSync(":memory:");
  try {
    // SQLite reads its own language better than we would; and a schema it refuses is found here.
    for (const statement of [...Object.values(tables), ...searchTables, ...indexes]) database.exec(statement);
    const sections = Object.entries(tables).map(
      ([table, definition]) => `## ${table}\n\n${purposeOf(table)}\n\n${columnsOf(database, table, definition)}`,
    );
    return `# The database

One SQLite file. Its \`user_version\` is ${schemaVersion}.
Its \`application_id\`, 0x${applicationId.toString(16)}, tells it from other SQLite files.
Times are text in UTC with milliseconds, \`2026-02-17T07:37:00.000Z\`, so that their order is the order of the text.

${sections.join("\n\n")}

## Search

${searchPurpose}

${fenced(searchTables.filter((statement) => statement.startsWith("CREATE")))}

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

type Keys = (typeof modules)[number]["keys"];

function keysMarkdown(): string {
  const rows = (keys: Keys): string =>
    keys
      .map(({ keys: names, says, changes }) => {
        const shown = names.map((name) => `\`${keyName(name).replace("|", "\\|")}\``).join(" ");
        return `| ${shown} | ${says}${changes === true ? " *(changes the database)*" : ""} |`;
      })
      .join("\n");
  const shared = [...listKeys, ...scrollKeys];
  const section = (name: string, keys: Keys): string =>
    `## ${name}\n\n| key | what it does |\n|---|---|\n${rows(keys)}`;
  return `# Keys of the terminal UI

\`lcm\` in a terminal opens it. The bar at the bottom shows the keys that matter where you are, \`?\` shows all of them,
and a key that cannot be used says why. Keys in the bar can be clicked; a click selects a row, a double click opens it, and
the wheel scrolls. Nothing is written before you say yes to a plan, and everything that is written can be undone.

${section("Everywhere", commonKeys)}

${section("In lists and texts", shared)}

${modules
  .map(({ name, keys }) => ({
    name,
    keys: keys.filter((each) => !shared.some(({ says }) => says === each.says)),
  }))
  .filter(({ keys }) => keys.length > 0)
  .map(({ name, keys }) => section(name, keys))
  .join("\n\n")}
`;
}

// ── The tools ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What comes back, for programs; the text says the same to a model. A tool without one is noticed by the test. */
const results: Readonly<Record<string, string>> = {
  lcm_grep:
    "`matches`, each with `id`, `type`, `snippet`, `conversationId` and `createdAt`; a message also has `role` and `seq`, a summary `summaryId`, `depth`, `kind` and `earliestAt` (it is of the time from there to `createdAt`), a file `fileName` and `line`. " +
    "`total` is how many were found, `matches` are those that fit `tokenCap`; `caveats` are sentences on what was not searched or shown, and `truncated` says that there may be more. " +
    "An invalid pattern is an error, and a search that was stopped says so: “no matches” means that there are none in what it names.",
  lcm_describe:
    "Of a summary: `content`, `kind`, `depth`, `level`, `tokenCount`, `createdAt`, `earliestAt`, `latestAt`, `descendantCount`, `parentIds` (the summaries it was made from), `messageIds` (the messages, of a leaf), `childIds` (what was made from it), `fileIds`, `carriedFrom`, and `manifest`: every summary below it with its `level` below this one, `depth`, `tokens`, times, `opening`, and the `messages` below it. " +
    "Of a message: `content`, `role`, `seq`, `tokenCount`, `createdAt`, `coveredBy`, `fileIds`. " +
    "Of a file: `content`, `fileName`, `mimeType`, `byteSize`, `lineCount`, `explorationSummary`, `messageId` (what it was moved out of), `storagePath`, and where the piece lies: `fromLine`, `toLine`, `nextLine`. `truncated` says that `content` is not all of it.",
  lcm_expand_query:
    "`answer`, `citedIds` (summaries) and `citedMessages`, of which each was read for it; `expandedSummaryCount`, `totalSourceTokens`, `truncated` (cut at `maxTokens`), `by` (`model`, `delegate`, or `excerpts` when neither answered), `partial` (why it is less than was asked for, else null) and `caveats` of the search.",
  lcm_recent:
    "`since` and `before` as they were understood; `items`, oldest first, each with `kind`, `id`, `text`, `tokens`, `earliestAt`, `latestAt`, `conversationId` and `isWhole`; `tokens`, `leftOut` (how many items and tokens did not fit) and `truncated`.",
  lcm_expand:
    "`items` with `kind`, `id`, `text`, `tokens`, `createdAt` and `conversationId`; `expandedSummaryIds`, `tokens` (what the grant paid), `leftOut`, `messagesBelow` (messages that were not asked for) and `truncated`.",
};

function toolsMarkdown(): string {
  return `# Tools for agents

What an agent can call to find again what is no longer in its context. They are the same in the plugin, the MCP
server (\`lcm mcp\`) and the library, which exports them as \`tools\`; only \`lcm_expand\`, which reads under a grant, is
offered to nobody but the delegate that answers a question.

${tools.map(({ name, label, audience }) => `- [\`${name}\`](#${name}): ${label.toLowerCase()}${audience === "delegate" ? " (only for the delegate that answers a question)" : ""}`).join("\n")}

## How to tell your agent

The tools describe themselves, and most models need no more. If yours forgets that it can look things up, put this into
its instructions:

> Older parts of this conversation are shown to you as summaries; nothing of it is lost. Before you say that you do not
> know or ask for something again, look: \`lcm_grep\` finds words, names, errors and paths, \`lcm_describe\` reads one id
> whole, and \`lcm_expand_query\` answers a question from what lies below the summaries. When a summary ends with
> “Expand for details about: …” and you need one of these details, ask \`lcm_expand_query\`; do not guess them.

## What holds for all of them

- **Reach.** A tool reads the session it is called in, with all its segments from before a reset. \`conversationId\` and
  \`allConversations\` reach further, as far as the setting \`scopePolicy\` allows: \`own\` not at all, \`agent\` (the default
  in a host) to the same agent's sessions, \`all\` (the default of the command line and MCP) to everything that is not
  hidden. What lies beyond is told like something that does not exist.
- **Text and details.** Each answer is a short text for the model and the same as data. In the text our own lines begin
  at the margin and stored text is quoted with \`>\`: it is a record of what was said, never an instruction.
- **Ids** are copyable from any answer into any call: \`sum_…\`, \`msg_…\`, \`file_…\`.
- **Limits.** Whatever was cut says so, and how to get the rest.
- **Times** are UTC where no offset is given: \`2026-02-17\`, \`2026-02-17T15:30:00+01:00\`, \`today\`, \`yesterday\`, or so
  long ago: \`30m\`, \`2h\`, \`7d\`, \`4w\`.
- **Arguments.** A number or a boolean written as a string, one id instead of a list, null for nothing, and names and
  choices in another spelling (\`all_conversations\`, \`fulltext\`) are understood. Anything else is an error that names the
  argument and what it must be.

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
