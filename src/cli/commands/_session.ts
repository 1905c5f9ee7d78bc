/**
 * What a command gets to work with, and how it ends. The commands are defined once and mounted twice: on `lcm`, and on
 * a host's own program. So they know no process, no environment and no store; whoever mounts them gives them this.
 */

import { stripVTControlCharacters } from "node:util";
import type { Command } from "commander";
import type { LcmError } from "../../core/base/errors.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Clock, Model } from "../../core/model/store.ts";
import type { TemplateName, Templates } from "../../core/prompts/summary.ts";
import type { Reader } from "../../core/recall/scope.ts";
import type { ResolvedSettings, Settings } from "../../core/model/settings.ts";
import { isBrokenPipe, reportFailure } from "../failure.ts";
import { createProgress } from "../progress.ts";
import type { Progress } from "../progress.ts";
import { createPaint } from "../../format/paint.ts";
import type { Backup } from "../../format/status.ts";
import type { NamedModel } from "../../format/model.ts";
import { addOptions, examples, paragraph } from "./_options.ts";
import type { Example, OptionsOf, OptionTable } from "./_options.ts";
import { breakText } from "../../format/width.ts";
import { jsonText } from "../../format/safe-text.ts";
import type { Output, Page } from "../../format/page.ts";

export interface CommandContext {
  readonly stdin: NodeJS.ReadableStream;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Whether a person is there to answer a question. */
  readonly isInteractive: boolean;
  /** The zone in which times are shown and typed. */
  readonly zone: string;
  readonly clock: Clock;
  /** Whether an unexpected error is shown with its stack. */
  readonly debug: boolean;
  settings(): Promise<ResolvedSettings>;
  /**
   * Who would write summaries: the model named here (`provider/model`), else the configured one; null if there is none,
   * and then they are extracted. Nothing is asked yet, and no key is looked for. `invalid` for a name that is none.
   */
  summariser(named?: ModelOptions): Promise<Summariser | null>;
  /** The prompt templates that hold, of this folder or the usual one, and what is wrong with those that cannot. */
  prompts(dir?: string): Promise<PromptFiles>;
  /** Work that Ctrl-C ends early and in good order; a second one ends the program. */
  interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Answers an MCP client on stdin and stdout until it goes away or the program is told to end. */
  serveMcp(service: McpService): Promise<void>;
  /** Shows the terminal UI until it is left, or the program is told to end. Answers the exit status. */
  openTui(request: TuiRequest): Promise<number>;
  /** The database at this path, or the one that the settings name. Touches nothing yet. */
  database(path: string | undefined): Promise<Database>;
  /** A yes or no from the person at the terminal. */
  confirm(question: string): Promise<boolean>;
  /** Called once, with the exit status. */
  finish(status: number): void;
}

/** What the command line says of the model; the settings say the rest. */
export interface ModelOptions {
  readonly model?: string | undefined;
  readonly provider?: string | undefined;
  readonly baseUrl?: string | undefined;
}

export interface Summariser extends Pick<NamedModel, "name" | "from"> {
  /** The variables that its provider's key is looked for in. */
  readonly keyVariables: readonly string[];
  /** What keeps it from being asked, as far as can be told without asking anybody; null if nothing does. */
  check(): Promise<string | null>;
  /** Throws `invalid` if it is not known where and how to ask it. */
  create(settings: Settings): Promise<Model>;
}

export interface McpService {
  /** Asked for every call. */
  open(): Promise<{ readonly lcm: Lcm; readonly reader: Reader }>;
  /** Trouble that no client can do anything about. */
  onError(error: Error): void;
}

export interface TuiRequest {
  readonly database: Database;
  readonly typed: Page["typed"];
  /** Whether it was asked for that nothing be changed. */
  readonly readOnly: boolean;
  /** Where the host's transcripts are; null for the usual places. */
  readonly sessions: string | null;
  readonly promptDir: string | undefined;
  readonly model: ModelOptions;
}

export interface PromptFiles {
  /** Where files replace built-in templates; it need not exist. */
  readonly dir: string;
  readonly templates: Templates;
  /** The path of the file, or `built-in`. */
  readonly sources: Readonly<Record<TemplateName, string>>;
  /** What keeps a file from being used; the built-in text stands in its place until then. */
  readonly problems: ReadonlyMap<TemplateName, LcmError>;
}

/**
 * What a database is opened for: a look never writes, a change is a write beside which the process goes on with other
 * things, an import is one that does its own indexing.
 */
export type Purpose = "look" | "read" | "search" | "write" | "change" | "import";

/** What a database is opened with. Left out: the settings as they are, no model, the built-in templates. */
export interface Engine {
  readonly settings?: Settings;
  readonly model?: Model | null;
  readonly templates?: Templates;
  /** `heeded` where no person has just mended the key. */
  readonly breaker?: "heeded" | "ignored";
  /** Has the model describe large files, each until this signal. */
  readonly describeFilesUntil?: () => AbortSignal;
}

/** One database file, from the outside. Methods throw `LcmError`; what is not ours is never touched. */
export interface Database {
  readonly path: string;
  /** Tells this file from any other that was or will be at its path; null where there is none. */
  identity(): string | null;
  /** Another value after every change of the file, by whomever; null where there is none. */
  stamp(): string | null;
  /** Whether this process may write to it. */
  isWritable(): boolean;
  /** Whether there is a file, and whose it is. */
  kind(): "none" | "ours" | "older_program";
  /** Only an import makes a file: `not_found` where there is none. Searches can be ended at any moment. */
  open(purpose: Purpose, engine?: Engine): Promise<Lcm>;
  /** Makes a database of the older program ours, after a backup. Does nothing the second time. */
  adopt(): Promise<Adopted>;
  /** A whole copy; without a path beside the database, where the newest few are kept. */
  backup(to: string | undefined): Promise<BackedUp>;
  /** The copies that lie beside it, oldest first, and what restores have set aside. */
  backups(): readonly Backup[];
  /** The same, with what each is; also where the database itself is damaged, or gone. */
  restorable(): readonly Restorable[];
  /** Looks at a backup, and at what it would replace. */
  planRestore(from: string): Promise<RestorePlan>;
  restore(plan: RestorePlan): Promise<Restored>;
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

export interface BackedUp extends Backup {
  readonly files: number;
  /** Older backups that made room for it. */
  readonly pruned: readonly string[];
}

/** A database file and what is in it; the counts are null where it is not of the present format. */
export interface DatabaseFacts extends Backup {
  readonly format: "current" | "outdated" | "older_program" | "newer" | "damaged" | "no_database";
  readonly contents: { readonly conversations: number; readonly messages: number; readonly summaries: number } | null;
}

export interface Restorable extends DatabaseFacts {
  readonly kind: "backup" | "set-aside";
}

export interface RestorePlan {
  readonly from: DatabaseFacts;
  readonly replaces: DatabaseFacts | null;
  readonly to: string;
}

export interface Restored {
  /** Where what was there before has been put; null when there was nothing. */
  readonly replaced: string | null;
  readonly files: number;
  /** What earlier restores had set aside, and had to make room. */
  readonly pruned: readonly string[];
}

// ── One run of a command ─────────────────────────────────────────────────────────────────────────────────────────────

/** A command under way: its context, with what the options common to all commands say. */
export interface Session extends Page {
  readonly context: CommandContext;
  readonly json: boolean;
  readonly database: Database;
  /** A line of the answer. */
  readonly print: (line?: string) => void;
  /** The answer for programs. */
  readonly printJson: (value: unknown) => void;
  /** A line beside the answer: what was left out, what to do next. */
  readonly note: (line: string) => void;
  readonly progress: (label: string) => Progress;
}

interface CommonOptions {
  readonly db?: string;
  readonly json?: boolean;
  readonly color: boolean;
}

export const exitOk = 0;
export const exitFindings = 1;

/** A command: how it is called, what its help says, and what it does. */
interface CommandDefinition<T extends OptionTable> {
  readonly name: string;
  /** Beside the other commands. */
  readonly summary: string;
  readonly description: string;
  readonly arguments?: readonly (readonly [name: string, what: string])[];
  readonly options?: T;
  /** Groups of options of which only one may be given. */
  readonly exclusive?: readonly (readonly (keyof T & string)[])[];
  readonly examples: readonly Example[];
  /** What else is to be known, below the examples. */
  readonly notes?: string;
  /** Answers the exit status where it is not 0. */
  readonly run: (session: Session, options: OptionsOf<T>, ...args: string[]) => Promise<number | void>;
}

/** Answers what puts it on a program. */
export function defineCommand<const T extends OptionTable = {}>(definition: CommandDefinition<T>) {
  const { name, summary, description, options = {}, exclusive = [], examples: shown, notes, run } = definition;
  return (program: Command, context: CommandContext): void => {
    const command = program.command(name).summary(summary).description(description);
    for (const [argument, what] of definition.arguments ?? []) command.argument(argument, what);
    addOptions(command, options, exclusive);
    command.addHelpText("after", examples(shown));
    if (notes !== undefined) command.addHelpText("after", paragraph(notes));
    const start = async (session: Session) => await run(session, command.opts<OptionsOf<T>>(), ...command.args);
    command.action(async () => await act(context, command, start));
  };
}

/** Runs the command and finishes with its status, whatever happens. */
async function act(
  context: CommandContext,
  command: Command,
  run: (session: Session) => Promise<number | void>,
): Promise<void> {
  const common = command.optsWithGlobals<CommonOptions>();
  const outputs = { stdout: plainIf(!common.color, context.stdout), stderr: plainIf(!common.color, context.stderr) };
  const given = { ...context, ...outputs };
  const typed = asTyped(command.parent?.parent?.name(), common.db);
  try {
    const session = createSession(given, common, await context.database(common.db), typed);
    const status = await run(session);
    context.finish(typeof status === "number" ? status : exitOk);
  } catch (error) {
    // Whoever read our output has heard enough.
    if (isBrokenPipe(error)) context.finish(exitOk);
    else context.finish(reportFailure(given, common.json === true, error, typed));
  }
}

/** Commands that we name are meant to be copied: to the same database, and through the host that has mounted us. */
function asTyped(host: string | undefined, db: string | undefined): (words: string) => string {
  const program = host === undefined ? "lcm" : `${host} lcm`;
  const own = db === undefined ? program : `${program} --db ${quoted(db)}`;
  // The demo makes a database of its own, wherever others are.
  return (words) =>
    words.replace(/(?<=^|`)lcm (?=([a-z]+))/g, (_, command) => `${command === "demo" ? program : own} `);
}

/** For a shell; on Windows all of them know the same quotes, and backslashes in them are plain. */
function quoted(path: string): string {
  if (/^[\w@%+=:,./~-]+$/.test(path)) return path;
  return /^[A-Za-z]:\\[^"$`%]*$/.test(path) ? `"${path}"` : `'${path.replaceAll("'", String.raw`'\''`)}'`;
}

const plainIf = (plain: boolean, output: Output): Output => (plain ? { ...output, colour: false } : output);

const columnsElsewhere = 120;

function createSession(
  context: CommandContext,
  common: CommonOptions,
  database: Database,
  typed: Session["typed"],
): Session {
  const { stdout, stderr } = context;
  const json = common.json === true;
  return {
    context,
    json,
    paint: createPaint(stdout.colour),
    columns: stdout.columns ?? columnsElsewhere,
    bounds: stdout.columns,
    zone: context.zone,
    database,
    print: (line = "") => void stdout.stream.write(`${line}\n`),
    printJson: (value) => void stdout.stream.write(jsonText(value)),
    typed,
    note: (line) =>
      void stderr.stream.write(breakText(typed(stderr.colour ? line : stripVTControlCharacters(line)), stderr.columns)),
    progress: (label) => createProgress(json ? null : stderr, label),
  };
}

/** Opens the database for one piece of work and closes it again. An older file is offered to be adopted first. */
export async function withLcm<T>(
  session: Session,
  purpose: Purpose,
  work: (lcm: Lcm) => Promise<T>,
  engine: Engine = {},
): Promise<T> {
  await adoptIfOlder(session);
  const lcm = await session.database.open(purpose, engine);
  try {
    return await work(lcm);
  } finally {
    await lcm.close();
  }
}

/** Asks whoever sits there; without anybody, opening it says what it is and what to do. */
export async function adoptIfOlder(session: Session): Promise<void> {
  const { database, context } = session;
  if (!context.isInteractive || session.json || database.kind() !== "older_program") return;
  const question = `${database.path} was made by an older lossless-claw. Move it over now? A backup is made first.`;
  if (!(await context.confirm(question))) return; // Opening it then says what it is and what to do.
  const adopted = await database.adopt();
  if (adopted.kind === "adopted") session.note(`adopted; the backup is ${adopted.backup}`);
}

/** A model may take a minute for its first answer; the line shows that somebody is waiting for it. */
const tickMs = 250;

/** Work that may wait for a model: its progress is shown again and again, and Ctrl-C ends it early and in good order. */
export async function attend<T>(
  { context }: Session,
  progress: Progress,
  show: () => void,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const ticker = setInterval(show, tickMs);
  try {
    return await context.interruptible(work);
  } finally {
    clearInterval(ticker);
    progress.end();
  }
}

/** Brings search up to date with what was stored; tells how many rows that took. */
export async function indexAll(session: Session, lcm: Lcm): Promise<number> {
  const rowsPerStep = 1_000;
  const { unindexed: total } = await lcm.store.status();
  const progress = session.progress("indexing for search");
  try {
    // Others may be writing at the same time; what they add is theirs to index.
    for (let left = total, done = 0; left > 0 && done < total; done += rowsPerStep) {
      progress.update({ done: Math.min(done, total), of: total, unit: "rows" });
      left = await lcm.store.index(rowsPerStep);
    }
  } finally {
    progress.end();
  }
  return total;
}
