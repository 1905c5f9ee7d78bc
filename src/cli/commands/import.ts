/** `lcm import`: imports transcripts and other databases, and reports what it could not store by file and line. */

import { databaseFileOf } from "../../core/model/database-file.ts";
import { errorText, LcmError } from "../../core/base/errors.ts";
import type { ImportReport } from "../../core/ingest/import-transcript.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Merged } from "../../core/model/store.ts";
import {
  findTranscripts,
  importedCounts,
  importTranscriptFile,
  isDatabase,
  sessionNameOf,
} from "../transcript-files.ts";
import type { Imported, TranscriptFile } from "../transcript-files.ts";
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
} as const satisfies OptionTable;

type ImportOptions = OptionsOf<typeof flags>;

const json = object({
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
    "Import transcripts: session files (JSONL), or chats as JSONL or JSON. Importing a file again stores only what is new, " +
    "so an interrupted import can simply be repeated. From an archive of `lcm prune`, a backup or another database, " +
    "conversations that are missing here are imported with their summaries and files.",
  arguments: [["<path...>", "transcripts, folders with .jsonl and .json files, databases, or - for stdin"]],
  options: flags,
  examples: [
    ["lcm import session.jsonl", "one file"],
    ["lcm import ~/.openclaw/agents/main/sessions", "every transcript in a folder"],
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
  const files = await findTranscripts(paths, session.context.stdin);
  if (options.session !== undefined && files.length > 1) {
    throw new LcmError("invalid", `--session takes one file, not ${files.length}`, {
      hint: "import them one by one, or remove --session",
    });
  }
  const databases = new Set<string>();
  for (const file of files) if (!file.isFound && (await isDatabase(file))) databases.add(file.path);
  const naming = (["session", "sessionKey", "agent"] as const).find((name) => options[name] !== undefined);
  if (databases.size > 0 && naming !== undefined) {
    throw new LcmError("invalid", `${[...databases][0]} is a database: its conversations keep their names`, {
      hint: "remove --session, --session-key and --agent",
    });
  }
  await session.context.settings(); // A wrong one is not an error of a file.
  const work = async (open: () => Promise<Lcm>): Promise<number> => {
    const outcomes: Outcome[] = [];
    for (const file of files) {
      const outcome = databases.has(file.path)
        ? await importDatabase(session, open, file)
        : await importFile(session, open, file, { ...options, isAlone: files.length === 1 });
      outcomes.push(outcome);
      if (!session.json) printOutcome(session, outcome);
    }
    const indexed = session.database.kind() === "none" ? 0 : await indexAll(session, await open());
    if (session.json) session.printJson(json, { files: outcomes, indexed });
    return outcomes.every(isClean) ? exitOk : exitFindings;
  };
  return await withLcmOnDemand(
    session,
    databases.size === 0 ? "import" : "merge",
    work,
    options.describeFiles === true ? await describing(session) : {},
  );
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
  return { kind: "merged", path, ...(await databaseFileOf(store).merge(path)) };
}

const noticeableBytes = 10_000_000;

async function importFile(
  session: Session,
  open: () => Promise<Lcm>,
  file: TranscriptFile,
  options: ImportOptions & { readonly isAlone: boolean },
): Promise<Outcome> {
  const { path, bytes } = file;
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
  try {
    return { kind: "imported", path, ...(await importTranscriptFile(file, { open, target, onProgress })) };
  } catch (error) {
    // One file that is not a transcript does not stop the others.
    const isSkipped = error instanceof LcmError && error.code === "invalid" && !(options.isAlone && !file.isFound);
    if (!isSkipped) throw naming(path, error);
    return { kind: file.isFound ? "skipped" : "refused", path, reason: error.message };
  } finally {
    progress.end();
  }
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
  const { conversation, differing } = outcome;
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
  if (more > 0) note(`${path}: and ${formatCount(more)} more; --json lists all`);
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
  if (more > 0) note(`${path}: and ${plural(more, "line")} more; --json lists all`);
  if (differing.length > 0) {
    note(
      `${paint.soft("hint:")} if this is another session, give it its own id: \`lcm import ${path} --session NAME\``,
    );
  }
}
