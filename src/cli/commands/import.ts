/**
 * `lcm import`: imports transcripts of any agent and other databases, and reports what it could not store by file and line.
 * `--discover` looks for the agents on this machine.
 */

import { errorText, LcmError } from "../../core/base/errors.ts";
import type { ImportReport } from "../../core/ingest/import-transcript.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Merged } from "../../core/model/store.ts";
import { chatsOf, countSessions, importableFile, importablesIn, type Importable } from "../importables.ts";
import { findTranscripts, importedCounts, isDatabase, sessionNameOf } from "../transcript-files.ts";
import type { Imported, TranscriptFile } from "../transcript-files.ts";
import { agentJson, chooseSessions, discoverFlags, type ChosenSessions } from "./_discover.ts";
import type { OptionsOf, OptionTable } from "./_options.ts";
import { about, either, list, maybe, object, oneOf, text, whole } from "./_json.ts";
import { conversationFields } from "./_shapes.ts";
import {
  defineCommand,
  exitFindings,
  exitOk,
  indexAll,
  withLcmOnDemand,
  type Engine,
  type Session,
} from "./_session.ts";
import { formatBytes, formatCount, plural } from "../../core/base/format.ts";
import { oneLine } from "../../format/safe-text.ts";
import { breakLines } from "../../format/width.ts";

const flags = {
  session: ["--session <id>", "store it under this session id, whatever the file says"],
  sessionKey: ["--session-key <key>", "store it under this session key, such as agent:main:main"],
  agent: ["--agent <id>", "store it for this agent"],
  describeFiles: ["--describe-files", "describe large files with the model, one call each"],
  again: ["--again", "read whole files, also what an earlier import has read"],
  ...discoverFlags,
} as const satisfies OptionTable;

type ImportOptions = OptionsOf<typeof flags>;

const json = object({
  "agents?": about(list(agentJson), "what --discover found"),
  files: list(
    either(
      object({
        kind: oneOf("imported"),
        path: text,
        conversation: maybe(object(conversationFields)),
        messages: whole,
        entries: about(whole, "lines that are not messages"),
        duplicates: whole,
        differing: list(object({ position: whole, key: text })),
        malformed: list(object({ position: whole, reason: text })),
        torn: about(maybe(whole), "the number of an incomplete last line"),
      }),
      object({
        kind: oneOf("merged"),
        path: text,
        conversations: list(object({ from: whole, to: whole })),
        known: list(whole),
        messages: whole,
        summaries: whole,
        files: whole,
      }),
      about(object({ kind: oneOf("unchanged"), path: text, conversation: whole }), "nothing was written to it since"),
      object({ kind: oneOf("skipped", "refused"), path: text, reason: text }),
    ),
  ),
  indexed: whole,
});

export const importCommand = defineCommand({
  name: "import",
  json,
  summary: "import transcripts or an archive; creates the database if needed",
  description:
    "Import transcripts: sessions of OpenClaw, Claude Code, Codex, OpenCode and Pi, data exports of ChatGPT and Claude.ai, or " +
    "chats as JSONL or JSON. Importing a " +
    "file again stores only what is new, so an interrupted import can simply be repeated. From an archive of `lcm prune`, a backup or another database, " +
    "conversations that are missing here are imported with their summaries and files.",
  arguments: [["[path...]", "transcripts, folders with them, databases, or - for stdin"]],
  options: flags,
  examples: [
    ["lcm import session.jsonl", "one file"],
    ["lcm import ~/.openclaw/agents/main/sessions", "every transcript in a folder"],
    ["lcm import --discover", "list the agents on this machine, and choose"],
    ["lcm import --discover --host codex --since 30d --yes", "Codex's sessions of the last month"],
    ["lcm import chat.json --session support-42", "under a session id of your choice"],
    ["zcat chat.jsonl.gz | lcm import - --session support-42", "from a pipe"],
    ["lcm import old.db", "restore what `lcm prune --archive old.db` moved"],
  ],
  notes:
    'A chat is one message per line, or a JSON list of them: {"role":"user","content":"hello"}, with optional "id", ' +
    '"timestamp" and "name". Exit status 1: some lines could not be stored; they are listed.',
  run: importAll,
});

async function importAll(session: Session, options: ImportOptions, ...paths: readonly string[]): Promise<number> {
  const chosen = await chooseSessions(session, options, paths);
  const files = chosen === null ? await findTranscripts(paths, session.context.stdin) : [];
  if (options.session !== undefined && files.length > 1) {
    throw new LcmError("invalid", `--session takes one file, not ${files.length}`, {
      hint: "import them one by one, or remove --session",
    });
  }
  const { databases, importables } = await sortFiles(session, files);
  const naming = (["session", "sessionKey", "agent"] as const).find((name) => options[name] !== undefined);
  const several = [
    ...databases,
    ...importables.filter(({ file, path }) => path !== file.path).map(({ file }) => file),
  ][0];
  if (several !== undefined && naming !== undefined) {
    const what = (await isDatabase(several)) ? "is a database" : "has several chats";
    throw new LcmError("invalid", `${several.path} ${what}: its conversations keep their names`, {
      hint: "remove --session, --session-key and --agent",
    });
  }
  await session.context.settings(); // A wrong one is not an error of a file.
  const work = async (open: () => Promise<Lcm>): Promise<number> => {
    const outcomes: Outcome[] = [];
    const report = (outcome: Outcome): void => {
      outcomes.push(outcome);
      if (!session.json && chosen === null) printOutcome(session, outcome);
    };
    for (const file of databases) report(await importDatabase(session, open, file));
    for (const each of chosen?.sessions ?? importables)
      report(await importOne(session, open, each, { ...options, isAlone: files.length === 1 }));
    const indexed = session.database.kind() === "none" ? 0 : await indexAll(session, await open());
    if (session.json) session.printJson(json, { ...agentsIn(chosen), files: outcomes.map(toJson), indexed });
    else if (chosen !== null) printChosen(session, chosen, outcomes);
    return outcomes.every(isClean) ? exitOk : exitFindings;
  };
  return await withLcmOnDemand(
    session,
    databases.length === 0 ? "import" : "merge",
    work,
    options.describeFiles === true ? await describing(session) : {},
  );
}

const agentsIn = (chosen: ChosenSessions | null) => (chosen === null ? {} : { agents: chosen.agents });

/** Databases of ours are merged; in OpenCode's, each session is imported. */
async function sortFiles({ context }: Session, files: readonly TranscriptFile[]) {
  const databases: TranscriptFile[] = [];
  const importables: Importable[] = [];
  for (const file of files) {
    const inside = (await isDatabase(file))
      ? await importablesIn(file, async (path) => await context.openCode(path))
      : null;
    const found = inside ?? (await chatsOf(file));
    if (found !== null) importables.push(...found);
    else if (!file.isFound && (await isDatabase(file))) databases.push(file);
    else importables.push(importableFile(file));
  }
  return { databases, importables };
}

async function describing({ context }: Session): Promise<Engine> {
  const summariser = await context.summariser();
  const problem = summariser === null ? "none is configured" : await summariser.check();
  if (summariser === null || problem !== null) {
    throw new LcmError("unavailable", `--describe-files needs a model: ${problem}`, {
      hint: "set LCM_SUMMARY_MODEL, or remove --describe-files to describe them without a model",
    });
  }
  const { values: settings } = await context.settings();
  const describeFilesUntil = (): AbortSignal => AbortSignal.timeout(settings.summaryTimeoutSeconds * 1_000);
  return { settings, model: await summariser.create(settings), describeFilesUntil };
}

type Outcome = { readonly path: string } & (
  | ({ readonly kind: "imported" } & Imported)
  | ({ readonly kind: "merged" } & Merged)
  /** A file in a folder that is not a transcript. */
  | { readonly kind: "skipped"; readonly reason: string }
  | { readonly kind: "refused"; readonly reason: string }
);

const isClean = (outcome: Outcome): boolean =>
  outcome.kind === "imported" ? outcome.malformed.length + outcome.differing.length === 0 : outcome.kind !== "refused";

/** One statement, so it cannot report how far it is. */
async function importDatabase(
  session: Session,
  open: () => Promise<Lcm>,
  { path, bytes }: TranscriptFile,
): Promise<Outcome> {
  const { context, json, note, paint, database } = session;
  await database.checkMerge(path);
  const { store } = await open();
  if (context.stderr.isTerminal && !json && bytes > noticeableBytes)
    note(paint.soft(`importing ${path}, ${formatBytes(bytes)} in one step …`));
  return { kind: "merged", path, ...(await store.merge(path)) };
}

const noticeableBytes = 10_000_000;

async function importOne(
  session: Session,
  open: () => Promise<Lcm>,
  importable: Importable,
  options: ImportOptions & { readonly isAlone: boolean },
): Promise<Outcome> {
  const { path, file } = importable;
  const { bytes } = file;
  const name = sessionNameOf(file);
  const progress = session.progress(`importing ${name}`);
  const target = {
    fallbackSessionId: name,
    ...(options.session === undefined ? {} : { sessionId: options.session }),
    ...(options.sessionKey === undefined ? {} : { sessionKey: options.sessionKey }),
    ...(options.agent === undefined ? {} : { agentId: options.agent }),
  };
  const onProgress = (done: number, stored: number): void => {
    const detail = `${plural(stored, "message")} stored`;
    if (Number.isFinite(bytes)) progress.update({ done, of: bytes, unit: "bytes", detail });
    else progress.say(`${formatBytes(done)}  ${detail}`);
  };
  const isStored = (): boolean => session.database.kind() === "ours";
  try {
    return {
      kind: "imported",
      path,
      ...(await importable.import({ open, isStored, target, onProgress, isAgain: options.again === true })),
    };
  } catch (error) {
    // One file that is not a transcript does not stop the others.
    const isSkipped = error instanceof LcmError && error.code === "invalid" && !(options.isAlone && !file.isFound);
    if (!isSkipped) throw naming(path, error);
    return { kind: file.isFound ? "skipped" : "refused", path, reason: error.message };
  } finally {
    progress.end();
  }
}

function toJson(outcome: Outcome) {
  if (outcome.kind !== "imported") return outcome;
  const { isUnchanged, ...imported } = outcome;
  const { path, conversation } = imported;
  return isUnchanged && conversation !== null
    ? ({ kind: "unchanged", path, conversation: conversation.id } as const)
    : imported;
}

/** All sessions of an agent in one line, and what could not be stored. */
function printChosen(session: Session, { agents, sessions }: ChosenSessions, outcomes: readonly Outcome[]): void {
  let isNew = false;
  for (const { host, name } of agents) {
    const own = outcomes.filter((_, at) => sessions[at]?.host === host);
    if (own.length === 0) continue;
    const imported = own.filter((outcome) => outcome.kind === "imported");
    const read = imported.filter(({ isUnchanged }) => !isUnchanged);
    const sum = read.reduce(
      (total, { messages, entries }) => ({ messages: total.messages + messages, entries: total.entries + entries }),
      { messages: 0, entries: 0 },
    );
    const came = [plural(sum.messages, "message"), plural(sum.entries, "other entry", "other entries")];
    const parts = [
      ...(read.length === 0 ? [] : [`${plural(countSessions(read), "session")} read`, ...came]),
      ...(read.length === imported.length
        ? []
        : [`${formatCount(countSessions(imported) - countSessions(read))} unchanged`]),
    ];
    session.print(`${name}: ${parts.join(", ")}`);
    isNew ||= sum.messages > 0;
    for (const outcome of own) {
      if (outcome.kind === "imported" && outcome.malformed.length + outcome.differing.length === 0) continue;
      printOutcome(session, outcome);
    }
  }
  if (isNew) session.note("`lcm tui` browses them, `lcm grep WORDS` searches them");
}

/** The same error, naming the file. Errors of the operating system and of the database name theirs. */
function naming(path: string, error: unknown): unknown {
  const isNamed = error instanceof LcmError ? error.code !== "invalid" : error instanceof Error && "syscall" in error;
  if (isNamed) return error;
  if (!(error instanceof LcmError)) return new Error(`${path}: ${errorText(error)}`, { cause: error });
  const { code, message, hint } = error;
  return new LcmError(code, `${path}: ${message}`, { cause: error, ...(hint !== undefined && { hint }) });
}

function printOutcome(session: Session, outcome: Outcome): void {
  const { paint, print, note } = session;
  const path = oneLine(outcome.path);
  if (outcome.kind === "skipped") return print(`${path}: ${paint.soft(`skipped, ${outcome.reason}`)}`);
  if (outcome.kind === "refused") return note(`${paint.bad(path)}: ${outcome.reason}`);
  if (outcome.kind === "merged") return printMerged(session, { ...outcome, path });
  const { conversation, differing, isUnchanged } = outcome;
  if (isUnchanged) return print(`${path}: ${paint.soft("unchanged since the last import")}`);
  if (isEmpty(outcome)) return note(`${paint.caution("note:")} ${path} is empty`);
  const place = conversation === null ? "" : paint.soft(`conversation ${conversation.id}: `);
  const columns = session.context.stdout.columns ?? Infinity;
  for (const line of breakLines(`${path}: ${place}${importedCounts(outcome)}`, columns)) print(line);
  printMalformed(session, { ...outcome, path });
  printDiffering(session, path, differing);
}

function printMerged({ print, context }: Session, outcome: Outcome & { kind: "merged" }): void {
  const { path, conversations, known, messages, summaries, files } = outcome;
  const came = [
    plural(conversations.length, "conversation"),
    plural(messages, "message"),
    plural(summaries, "summary", "summaries"),
    ...(files === 0 ? [] : [plural(files, "stored file")]),
  ];
  const parts = [
    ...(conversations.length === 0 ? ["nothing new"] : came),
    ...(known.length === 0 ? [] : [`${plural(known.length, "conversation")} already stored`]),
  ];
  for (const line of breakLines(`${path}: ${parts.join(", ")}`, context.stdout.columns ?? Infinity)) print(line);
  const renamed = conversations.filter(({ from, to }) => from !== to);
  for (const { from, to } of renamed.slice(0, renamedShown)) print(`  its conversation ${from} is now ${to}`);
  if (renamed.length > renamedShown)
    print(`  and ${formatCount(renamed.length - renamedShown)} more; --json lists all`);
}

const renamedShown = 10;

const isEmpty = ({ messages, entries, duplicates, malformed }: ImportReport): boolean =>
  messages + entries + duplicates + malformed.length === 0;

const malformedShown = 5;

function printMalformed({ paint, note }: Session, { path, malformed, torn }: Outcome & { kind: "imported" }): void {
  for (const { position, reason } of malformed.slice(0, malformedShown)) {
    const isTorn = position === torn;
    note(
      `${paint.bad(`${path}:${position}:`)} ${isTorn ? "the last line is incomplete; import the file again once it is finished" : reason}`,
    );
  }
  const more = malformed.length - malformedShown;
  if (more > 0) note(`${path}: and ${formatCount(more)} more; --again --json lists all`);
}

const differingShown = 10;

function printDiffering({ paint, note }: Session, path: string, differing: ImportReport["differing"]): void {
  for (const { position, key } of differing.slice(0, differingShown)) {
    const what = key.startsWith("@") ? `line ${position} of this session` : `entry ${key}`;
    note(
      `${paint.caution(`${path}:${position}:`)} ${what} is already stored with different content; the stored one stays`,
    );
  }
  const more = differing.length - differingShown;
  if (more > 0) note(`${path}: and ${plural(more, "line")} more; --again --json lists all`);
  if (differing.length > 0) {
    note(
      `${paint.soft("hint:")} if this is another session, give it its own id: \`lcm import ${path} --session NAME\``,
    );
  }
}
