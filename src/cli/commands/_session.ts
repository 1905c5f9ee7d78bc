/**
 * Defines commands, and the context and session they run in. Commands are mounted on `lcm` and on a host's own program,
 * so they use no process, environment or store except through their context.
 */

import { stripVTControlCharacters } from "node:util";
import type { Command } from "commander";
import type { LcmError } from "../../core/base/errors.ts";
import { formatBytes, shellPath } from "../../core/base/format.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { ForeignDatabase } from "../../core/model/foreign-database.ts";
import type { BackedUp, Move } from "../../core/model/database-file.ts";
import { withoutPassword, type DatabasePlace } from "../../core/base/database-place.ts";
import type { Clock, Model } from "../../core/model/store.ts";
import type { TemplateName, Templates } from "../../core/prompts/summary.ts";
import type { Machine } from "../setup/agents.ts";
import type { ReaderWithNote, Surroundings } from "../mcp-reader.ts";
import type { Exploring } from "./_exploring.ts";
import type { ProxyVerbs } from "./_proxying.ts";
import type { ResolvedSettings, Settings } from "../../core/model/settings.ts";
import type { SessionPlace } from "../../hosts/shared/session-places.ts";
import { exitInterrupted, isBrokenPipe, reportFailure } from "../failure.ts";
import { createProgressLine, type Progress, type ProgressLine } from "../progress.ts";
import { createPaint } from "../../format/paint.ts";
import type { Backup } from "../../format/status.ts";
import type { NamedModel } from "../../format/model.ts";
import type { Restorable, Restored, RestorePlan } from "../../format/restore.ts";
import {
  addOptions,
  examples,
  paragraph,
  seconds,
  type Example,
  type OptionsOf,
  type OptionTable,
} from "./_options.ts";
import type { Schema } from "./_json.ts";
import { breakText } from "../../format/width.ts";
import { longCommand, type LongCommand } from "./_long.ts";
import { runUntilStopped, stoppedError } from "./_stopping.ts";
import { harmlessLine, jsonText, oneLine } from "../../format/safe-text.ts";
import type { Output, Page } from "../../format/page.ts";

export type { DatabaseFacts, RestorePlan } from "../../format/restore.ts";

export interface CommandContext extends ProxyVerbs {
  readonly stdin: NodeJS.ReadableStream;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Whether a person can answer a question. */
  readonly isInteractive: boolean;
  /** The zone in which times are shown and entered. */
  readonly zone: string;
  readonly clock: Clock;
  /** Whether errors are shown with their stack. */
  readonly debug: boolean;
  settings(): Promise<ResolvedSettings>;
  configFile(): Promise<ConfigFile>;
  /** The names of the variables in the environment. */
  variables(): readonly string[];
  /**
   * The model that writes summaries: the one named here, else the configured one; null if there is none. Makes no call and
   * reads no key. Throws `invalid` for a malformed name.
   */
  summariser(named?: ModelOptions): Promise<Summariser | null>;
  /** The prompt templates of this folder, else of the configured one. */
  prompts(dir?: string): Promise<PromptFiles>;
  /** Runs work that Ctrl-C aborts cleanly; a second Ctrl-C ends the program. */
  interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Serves an MCP client on stdin and stdout until it disconnects or a signal ends the program. */
  serveMcp(service: McpService): Promise<void>;
  /** Where agents are looked for. */
  machine(): Machine;
  /** Where this process was started, and by which agent. */
  surroundings(): Surroundings;
  /** Serves a host on stdin and stdout until it disconnects or a signal ends the program. */
  serveHost(service: HostService): Promise<void>;
  /** Runs the terminal UI until the user leaves it or a signal ends the program. Returns the exit status. */
  openTui(request: TuiRequest): Promise<number>;
  /** Serves the explorer until a signal ends the program. */
  serveWeb(request: TuiRequest & Exploring): Promise<void>;
  /** Where the agents on this machine keep their sessions. */
  agents(): readonly SessionPlace[];
  /** OpenCode's database; null if the one at this path is not. */
  openCode(path: string): Promise<ForeignDatabase | null>;
  /** The database at this path, else the configured one. Does not open it. */
  database(path: string | undefined): Promise<Database>;
  /** A dry run creates nothing. */
  openMove(from: DatabasePlace, to: DatabasePlace, isDryRun: boolean): Promise<Move>;
  /** `isLikely`: what Enter answers. */
  confirm(question: string, isLikely?: boolean): Promise<boolean>;
  /** Called once, with the exit status. */
  finish(status: number): void;
  /** Ends the process at once, even inside a step that cannot be stopped. */
  kill(signal: "SIGINT" | "SIGTERM"): void;
}

/** The host's config file. */
export interface ConfigFile {
  readonly path: string;
  readonly exists: boolean;
  /** Why it cannot be used; then all settings but those in the environment are defaults. */
  readonly problem: string | null;
}

/** Override the settings. */
export interface ModelOptions {
  readonly model?: string | undefined;
  readonly provider?: string | undefined;
  readonly baseUrl?: string | undefined;
}

export interface Summariser extends Pick<NamedModel, "name" | "from"> {
  /** The environment variables that may hold its key. */
  readonly keyVariables: readonly string[];
  /** Why it cannot be used, as far as is known without a call; null if nothing is wrong. */
  check(): Promise<string | null>;
  /** Throws `invalid` if its address or API is unknown. */
  create(settings: Settings): Promise<Model>;
}

export interface McpService {
  /** Called for every request, with what the client said about it. */
  open(meta: unknown): Promise<ReaderWithNote & { readonly lcm: Lcm }>;
  /** Receives errors that the client cannot act on. */
  onError(error: Error): void;
}

export interface HostService {
  readonly database: Database;
  /** Reports what only the operator can fix. */
  readonly note: (line: string) => void;
}

export interface TuiRequest {
  readonly database: Database;
  readonly typed: Page["typed"];
  readonly readOnly: boolean;
  /** The folder with the host's transcripts; null for the usual one. */
  readonly sessions: string | null;
  readonly promptDir: string | undefined;
  readonly model: ModelOptions;
}

export interface PromptFiles {
  /** Files here replace built-in templates; the folder may be missing. */
  readonly dir: string;
  readonly templates: Templates;
  /** The path of the file, or `built-in`. */
  readonly sources: Readonly<Record<TemplateName, string>>;
  /** Why a file cannot be used; the built-in template is used instead. */
  readonly problems: ReadonlyMap<TemplateName, LcmError>;
}

/**
 * A look never writes. Reading `apart`, a look, a change and a merge run on another thread, so that this one can show
 * progress and be stopped within a long step; a search may. An import and a merge do their own indexing, and may create
 * the file.
 */
export type Purpose = "look" | "read" | "apart" | "search" | "write" | "change" | "import" | "merge";

/** Defaults: the configured settings, no model, the built-in templates. */
export interface Engine {
  readonly settings?: Settings;
  readonly model?: Model | null;
  readonly templates?: Templates;
  /** `heeded` where no person may just have fixed the key. */
  readonly breaker?: "heeded" | "ignored";
  /** Once this is aborted, the store takes no more calls. */
  readonly until?: AbortSignal;
  /** Lets the model describe large files, each until this signal. */
  readonly describeFilesUntil?: () => AbortSignal;
}

/** A database. Methods throw `LcmError`, and never change a file of another program. */
export interface Database {
  /** The file, or the URL of a server without its password. */
  readonly path: string;
  readonly place: DatabasePlace;
  /** Identifies this file among all that are ever at its path; null if there is none. */
  identity(): string | null;
  /** Changes with every write to the file, by any program; null if there is no file. */
  stamp(): string | null;
  /** Whether this process may write to it. */
  isWritable(): boolean;
  /** The size of its log if this process may not read it, as on a read-only disk; what is in the log is not shown. */
  unseenLogBytes(): number;
  kind(): "none" | "ours" | "older_program";
  /** Only an import creates a file; otherwise throws `not_found`. */
  open(purpose: Purpose, engine?: Engine): Promise<Lcm>;
  /** Converts a database of the older program, after a backup. Idempotent. */
  adopt(): Promise<Adopted>;
  /** Throws if conversations of this file cannot be imported into it. Creates nothing. */
  checkMerge(from: string): Promise<void>;
  /** Without a path, the copy goes next to the database, where only some are kept. */
  backup(to: string | undefined): Promise<PrunedBackUp>;
  /** A new file next to it, for an archive. */
  archivePath(): string;
  /** The copies next to it, oldest first, including files set aside by restores. */
  backups(): readonly Backup[];
  /** The same with their formats; works even if the database is damaged or missing. */
  restorable(): Promise<readonly Restorable[]>;
  planRestore(from: string): Promise<RestorePlan>;
  /** Verifies the backup first. Throws `corrupt` if stored files are missing from it, unless that is allowed. */
  restore(plan: RestorePlan, isPartialAllowed?: boolean): Promise<Restored>;
  /** Ends what `stamp` needs. */
  close(): Promise<void>;
}

export type Adopted =
  | {
      readonly kind: "adopted";
      readonly backup: string;
      readonly messages: number;
      readonly parts: number;
      readonly summaries: number;
    }
  | { readonly kind: "unchanged" };

export interface PrunedBackUp extends BackedUp {
  /** Older backups that were removed. */
  readonly pruned: readonly string[];
}

/** A running command: its context, and the options common to all commands. */
export interface Session extends Page {
  readonly context: CommandContext;
  readonly json: boolean;
  readonly database: Database;
  /** The program that the command belongs to. */
  readonly program: Command;
  /** Prints a line of the result, broken between words on a terminal that is narrower. */
  readonly print: (line?: string) => void;
  readonly printJson: <T>(schema: Schema<T>, value: NoInfer<T>) => void;
  /** Prints a remark to stderr: what was left out, what to do next. */
  readonly note: (line: string) => void;
  readonly progress: (label: string) => Progress;
  /** Shows no progress from now on: the command writes to the terminal itself. */
  readonly silence: () => void;
  /** Aborted by Ctrl-C, or by the time limit of a long command. */
  readonly signal: AbortSignal;
  /** The signal, if the database takes no more calls once it is aborted; undefined if the command ends its own work. */
  readonly until: AbortSignal | undefined;
}

interface CommonOptions {
  readonly timeout?: number;
  readonly db?: string;
  readonly json?: boolean;
  readonly color: boolean;
}

export const exitOk = 0;
export const exitFindings = 1;

interface CommandDefinition<T extends OptionTable> {
  readonly name: string;
  /** For the list of commands. */
  readonly summary: string;
  readonly description: string;
  readonly arguments?: readonly (readonly [name: string, what: string, choices?: readonly string[]])[];
  readonly options?: T;
  /** What `--json` prints; null if it prints none. */
  readonly json: Schema | null;
  /** Left out of the help: for programs only. */
  readonly hidden?: true;
  /** Groups of mutually exclusive options. */
  readonly exclusive?: readonly (readonly (keyof T & string)[])[];
  readonly examples: readonly Example[];
  /** Shown below the examples. */
  readonly notes?: string;
  /** Returns the exit status if it is not 0. */
  readonly run: (session: Session, options: OptionsOf<T>, ...args: string[]) => Promise<number | void>;
}

/** A command as programs and the documentation see it. */
export interface DefinedCommand extends Pick<CommandDefinition<OptionTable>, "name" | "summary" | "json"> {
  readonly hidden: boolean;
  /** Adds it to a program. */
  readonly add: (program: Command, context: CommandContext) => void;
}

export function defineCommand<const T extends OptionTable = {}>(definition: CommandDefinition<T>): DefinedCommand {
  const {
    name,
    summary,
    description,
    options = {},
    exclusive = [],
    examples: shown,
    notes,
    hidden = false,
    run,
  } = definition;
  const add: DefinedCommand["add"] = (program, context) => {
    const command = program.command(name, { hidden }).summary(summary).description(description);
    for (const [argument, what, choices] of definition.arguments ?? []) {
      command.argument(argument, what);
      if (choices !== undefined) command.registeredArguments.at(-1)?.choices(choices);
    }
    const isLimited = longCommand(name) !== null && !("timeout" in options);
    addOptions(command, isLimited ? { ...options, ...timeLimit } : options, exclusive);
    command.addHelpText("after", examples(shown));
    if (notes !== undefined) command.addHelpText("after", paragraph(notes));
    const start = async (session: Session) => await run(session, command.opts<OptionsOf<T>>(), ...command.args);
    command.action(async () => await act(context, command, start));
  };
  return { name, summary, json: definition.json, hidden, add };
}

const timeLimit = { timeout: ["--timeout <seconds>", "stop after this long", seconds] } as const satisfies OptionTable;

async function act(
  context: CommandContext,
  command: Command,
  run: (session: Session) => Promise<number | void>,
): Promise<void> {
  const common = command.optsWithGlobals<CommonOptions>();
  const outputs = { stdout: plainIf(!common.color, context.stdout), stderr: plainIf(!common.color, context.stderr) };
  const given = { ...context, ...outputs };
  const typed = asTyped(command.parent?.parent?.name(), common.db);
  const long = longCommand(command.name());
  try {
    const line = createProgressLine(common.json === true ? null : given.stderr, long?.doing ?? "");
    const database = await context.database(common.db);
    const confirm: CommandContext["confirm"] = async (...asked) => await line.pauseFor(context.confirm(...asked));
    const session = createSession({ context: { ...given, confirm }, command, database, typed, line });
    const status = await (long === null ? run(session) : runLong(session, long, common.timeout, { line, run }));
    context.finish(typeof status === "number" ? status : exitOk);
  } catch (error) {
    // The reader of our output is done.
    if (isBrokenPipe(error)) context.finish(exitOk);
    else context.finish(reportFailure(given, common.json === true, error, typed));
  }
}

/** Shows its progress, and stops it on Ctrl-C and at its time limit. */
async function runLong(
  session: Session,
  long: LongCommand,
  timeout: number | undefined,
  { line, run }: { readonly line: ProgressLine; readonly run: (session: Session) => Promise<number | void> },
): Promise<number | void> {
  const { context, json, typed } = session;
  const { endsItself = false, limitsItself = false } = long;
  const limits = {
    interruptible: async <T>(work: (signal: AbortSignal) => Promise<T>) => await context.interruptible(work),
    timeoutSeconds: limitsItself ? undefined : timeout,
    endsItself,
  };
  const ticker = setInterval(line.tick, tickMs).unref(); // Work whose reader is gone must not wait for it.
  try {
    const ending = await runUntilStopped(
      limits,
      async (signal) => await run({ ...session, signal, until: endsItself ? undefined : signal }),
    );
    if (ending.kind === "done") return ending.value;
    line.clear();
    const status = reportFailure(context, json, stoppedError(long, ending.by, timeout, line.reached()), typed);
    if (ending.isStuck) context.kill(ending.by === "interrupt" ? "SIGINT" : "SIGTERM");
    return ending.by === "interrupt" ? exitInterrupted : status;
  } finally {
    clearInterval(ticker);
    line.clear();
  }
}

/** Printed commands can be copied: they name the same database, and the host that mounted us. */
function asTyped(host: string | undefined, db: string | undefined): (words: string) => string {
  const program = host === undefined ? "lcm" : `${host} lcm`;
  const own = db === undefined ? program : `${program} --db ${shellPath(withoutPassword(db))}`;
  // The demo creates its own database, and a command may name another one.
  const isItsOwn = (command: string): boolean => /^demo\b|\s--(?:db|from)\s/.test(command);
  return (words) =>
    words.replace(/(?<=^|`)lcm (?=([a-z]+[^`]*))/g, (_, command) => `${isItsOwn(command) ? program : own} `);
}

const plainIf = (plain: boolean, output: Output): Output => (plain ? { ...output, colour: false } : output);

const columnsElsewhere = 120;

interface SessionParts extends Pick<Session, "context" | "database" | "typed"> {
  readonly command: Command;
  readonly line: ProgressLine;
}

function createSession({ context, command, database, typed, line }: SessionParts): Session {
  const { stdout, stderr } = context;
  const write = ({ stream }: Output, text: string): void => {
    line.clear();
    stream.write(text);
  };
  return {
    context,
    program: command.parent ?? command,
    json: command.optsWithGlobals<CommonOptions>().json === true,
    paint: createPaint(stdout.colour),
    columns: stdout.columns ?? columnsElsewhere,
    bounds: stdout.columns,
    zone: context.zone,
    database,
    print: (text = "") => write(stdout, breakText(harmlessLine(text, stdout.colour), stdout.columns)),
    printJson: (_, value) => write(stdout, jsonText(value)),
    typed,
    note: (text) => {
      const shown = harmlessLine(typed(stderr.colour ? text : stripVTControlCharacters(text)), stderr.colour);
      write(stderr, breakText(shown, stderr.columns));
    },
    progress: (label) => line.step(oneLine(label)),
    silence: line.silence,
    signal: neverAborted,
    until: undefined,
  };
}

const neverAborted = new AbortController().signal;

/** Opens the database, runs the work and closes it. Offers to convert an older file first. */
export async function withLcm<T>(
  session: Session,
  purpose: Purpose,
  work: (lcm: Lcm) => Promise<T>,
  engine: Engine = {},
): Promise<T> {
  return await withLcmOnDemand(session, purpose, async (open) => await work(await open()), engine);
}

/** The same for work that opens it when needed: an import creates nothing before there is something to store. */
export async function withLcmOnDemand<T>(
  session: Session,
  purpose: Purpose,
  work: (open: () => Promise<Lcm>) => Promise<T>,
  engine: Engine = {},
): Promise<T> {
  await adoptIfOlder(session);
  const until = session.until === undefined ? {} : { until: session.until };
  const open = async (): Promise<Lcm> => {
    const lcm = await session.database.open(purpose, { ...engine, ...until });
    const unseen = session.database.unseenLogBytes();
    if (unseen > 0)
      session.note(
        `the newest changes are not shown: ${session.database.path}-wal (${formatBytes(unseen)}) cannot be used here`,
      );
    return lcm;
  };
  return await onDemand(open, work);
}

export async function onDemand<T>(
  open: () => Promise<Lcm>,
  work: (open: () => Promise<Lcm>) => Promise<T>,
): Promise<T> {
  const opened: Lcm[] = [];
  try {
    return await work(async () => opened[0] ?? (opened[0] = await open()));
  } finally {
    for (const lcm of opened) await lcm.close();
  }
}

export async function adoptIfOlder(session: Session): Promise<void> {
  const { database, context } = session;
  if (!context.isInteractive || session.json || database.kind() !== "older_program") return;
  const question = `${database.path} was made by an older lossless-claw. Convert it now? A backup is made first.`;
  if (!(await context.confirm(question))) return; // Opening it then fails with a hint.
  const adopted = await database.adopt();
  if (adopted.kind === "adopted") session.note(`converted; the backup is ${adopted.backup}`);
}

const tickMs = 250;

/** Runs work that may wait long for a model, and redraws its progress regularly. */
export async function attend<T>(progress: Progress, show: () => void, work: () => Promise<T>): Promise<T> {
  const ticker = setInterval(show, tickMs);
  try {
    return await work();
  } finally {
    clearInterval(ticker);
    progress.end();
  }
}

/** Brings the search index up to date, unless the command is stopped; returns the number of rows to index. */
export async function indexAll(session: Session, lcm: Lcm): Promise<number> {
  const rowsPerStep = 1_000;
  const { unindexed: total } = await lcm.store.status();
  const progress = session.progress("indexing for search");
  try {
    // Rows that other programs add meanwhile are theirs to index.
    for (let left = total, done = 0; left > 0 && done < total && !session.signal.aborted; done += rowsPerStep) {
      progress.update({ done: Math.min(done, total), of: total, unit: "rows" });
      left = await lcm.store.index(rowsPerStep);
    }
  } finally {
    progress.end();
  }
  return total;
}
