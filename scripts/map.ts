/** The map of src: every folder and file with the first sentence of its header, and code samples cut from the files. */

import { globSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";

/** What each folder is for. A folder of src without a sentence, or a sentence without a folder, is an error. */
const folders: Readonly<Record<string, string>> = {
  core: "The domain, and what every surface calls. Imports nothing outside core.",
  "core/base": "Text, time, JSON, tokens, errors. Knows neither messages nor stores.",
  "core/model": "The nouns, the ports (store, search, language model, content) and the settings.",
  "core/messages": "What a host's message is: its encoding, its tool calls, the fresh tail.",
  "core/prompts": "Every prompt text.",
  "core/model-calls": "Calling a model: metering, tools, reading the answer.",
  "core/ingest": "The way in: storing messages, importing and exporting transcripts, moving large content to files.",
  "core/summarize": "From source text to the text of a summary, with a model or without one.",
  "core/compaction": "What to fold, when, and how far to go.",
  "core/assembly": "From a stored context to the messages of a prompt, within a budget.",
  "core/seen": "What the model saw: records of prompts, rebuilt, compared and counted.",
  "core/recall": "Recall: grep, describe, expand, recent, ask; who may read what.",
  "core/recall/map": "Reading everything: the same question about every message, and answers with exact counts.",
  "core/recall/passages": "What a search shows of the messages that it found.",
  "core/maintenance": "What operators do: inspect, fix, rewrite, repair, dissolve, transplant, prune, forget, undo.",
  store: "The database: the only folder with SQL. Every operation is a script.",
  "store/content": "Where large content is kept.",
  "store/search": "Search: the terms of a text, candidates, ranking, regular expressions, files.",
  "store/search/meaning":
    "Search by meaning: vectors of messages, comparing them with a question, and fusing both rankings.",
  "store/conversation": "The life of a conversation: open, append, fold, read, rewind.",
  "store/ledger": "Records beside the conversations: files, grants, model calls.",
  "store/journal": "Changes by operators: recorded row by row, read back, undone.",
  "store/maintenance": "The operators' operations on rows.",

  "store/postgres": "PostgreSQL, for several machines. Not offered to users yet: only its tests open it.",
  "store/threads": "Calls to a thread of ours, and searches in one that can be ended.",
  "store/transfer": "Rows on their way from one database to another: archives, merging, moves.",
  "store/sqlite": "SQLite: connection, schema, threads, backups, archives.",
  "store/sqlite/backups": "Backing up, and restoring what was backed up.",
  "store/sqlite/versions": "Upgrades from one schema version to the next.",
  "store/foreign": "Databases of other programs, only read.",
  "store/adopt": "Databases of the older program, converted in place.",
  models: "Language model providers: which model, its credentials, the calls.",
  "agent-tools": "The tools an agent calls, defined once as data.",
  mcp: "The MCP server.",
  format: "Text for people: tables, bars, plans, findings. Shared by the command line and the terminal UI.",
  operator:
    "What a person does in the terminal UI and the explorer: reading, planning changes, applying what was planned.",
  tui: "The terminal UI: a stack of layers, each a state with pure `update` and `draw`.",
  web: "The explorer in the browser: its server, and the contract between server and pages.",
  "web/contract": "What the server answers, view by view: types only.",
  "web/pages": "The explorer's pages, which run in a browser.",
  "web/pages/parts": "Parts of several views: dialogs for changes, plots, comparisons.",
  "web/pages/text": "Stored text as elements: Markdown, code, results, a summary aligned with its sources.",
  "web/pages/timeline": "The timeline: layers, camera, drawing, gestures and keys.",
  "web/pages/views": "One file per view.",
  "tui/widgets": "Lists, panes, fields and boxes.",
  "tui/dialogs": "Dialogs: plans, targets, texts.",
  "tui/dialogs/rewrite": "The dialog that rewrites summaries: plan, draft, review, apply.",
  "tui/conversations": "Screen: all conversations.",
  "tui/messages": "Screen: the transcript of a conversation.",
  "tui/summaries": "Screen: the summary graph.",
  "tui/context": "Screen: what the model sees.",
  "tui/files": "Screen: stored files.",
  "tui/search": "Screen: search results.",
  "tui/ask": "Screen: the answer to a question.",
  "tui/status": "Screen: status.",
  "tui/history": "Screen: changes, and undoing them.",
  "tui/prompts": "What the model saw, turn by turn.",
  "tui/transcripts": "Screen: session files to import.",
  cli: "The command line `lcm`.",
  "cli/commands": "One file per command; shared parts start with an underscore.",
  "cli/demo": "The demo's conversation and its check.",
  "cli/setup": "Connecting the agents of this machine, and taking that back.",
  "hosts/shared/rows": "What hosts write, row by row: which is a message, a note, or kept whole. Pure.",
  "hosts/openclaw": "The OpenClaw plugin.",
  "hosts/pi": "The Pi extension.",
  "hosts/shared": "What every host needs: the engine, reading on in a transcript, the companion.",
  "hosts/claude-code": "Claude Code, as a companion.",
  "hosts/codex": "Codex, as a companion.",
  "hosts/opencode": "The OpenCode plugin; its engine is in a side process.",
  "hosts/companion": "The hook of Claude Code and Codex, and what it leaves to the background.",
  proxy: "The proxy between any agent and its model.",
  "proxy/wires": "The formats of model providers: what the elements of a request are, and how an answer comes.",
  "": "The library's entry point and the package itself.",
};

/** The first sentence of the comment that opens a file. */
export function firstSentence(source: string): string | null {
  const [, comment] = /^\/\*\*([\s\S]*?)\*\//.exec(source) ?? [];
  if (comment === undefined) return null;
  const text = comment.replace(/\s*\n\s*\*?\s*/g, " ").trim();
  return /^.*?[.!?](?=\s|$)/.exec(text)?.[0] ?? text;
}

export function mapMarkdown(root: string): string {
  const paths = globSync("**/*.{ts,tsx}", { cwd: join(root, "src") })
    .map((path) => path.replaceAll("\\", "/"))
    .filter((path) => !/\.(test|d)\.ts$/.test(path))
    .toSorted();
  const byFolder = Map.groupBy(paths, (path) => (path.includes("/") ? posix.dirname(path) : ""));
  for (const folder of byFolder.keys())
    if (!(folder in folders)) throw new Error(`src/${folder} has no sentence in scripts/map.ts`);
  const sections = Object.entries(folders).map(([folder, purpose]) => {
    const files = byFolder.get(folder);
    if (files === undefined) throw new Error(`scripts/map.ts describes src/${folder}, which has no files`);
    return `## src/${folder}\n\n${purpose}\n\n| file | what it does |\n|---|---|\n${files.map((path) => row(root, path)).join("\n")}`;
  });
  return `# The map

Every source file with the first sentence of its header. The folders inside core and store are listed bottom-up: each builds on
those above it in the list. [A test](../test/architecture.test.ts) checks all imports. Start with
[the architecture](architecture.md), which follows a message through these files.

${sections.join("\n\n")}
`;
}

function row(root: string, path: string): string {
  const sentence = firstSentence(readFileSync(join(root, "src", path), "utf8"));
  if (sentence === null) throw new Error(`src/${path} does not begin with a comment that says what it does`);
  return `| [${posix.basename(path).replace(/\.tsx?$/, "")}](../src/${path}) | ${sentence.replaceAll("|", "\\|")} |`;
}

/** A page with each sample replaced by the code it names: `<!-- sample: path name -->`, a code block, `<!-- end -->`. */
export const withSamples = (root: string, page: string): string =>
  page.replace(
    /(<!-- sample: (\S+) (\w+) -->)[\s\S]*?(?=<!-- end -->)/g,
    (_, start: string, path: string, name: string) => {
      const source = readFileSync(join(root, path), "utf8");
      const [code] =
        new RegExp(`^export (?:const|function\\*?) ${name}\\b[\\s\\S]*?\\n\\};?\\n`, "m").exec(source) ?? [];
      if (code === undefined) throw new Error(`${path} exports no ${name}`);
      return `${start}\n\n\`\`\`ts\n${code}\`\`\`\n\n`;
    },
  );
