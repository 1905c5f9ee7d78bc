/**
 * Records what a folder would hold if the power were cut at any moment of real work in it. A cut loses file contents
 * and names that were not synced; the database loses commits that SQLite did not wait for.
 *
 * Around every file system call and SQLite statement the folder is read and compared with the step before: so nothing
 * depends on which calls the code makes, except the syncs, which are observed. SQLite's own syncs cannot be: a commit
 * with `synchronous = FULL` counts as one, and so does removing the log, which SQLite does only after it has synced the
 * database. Any state since the last one may be what the disk has.
 */

import assert from "node:assert/strict";
import fs from "node:fs";
import fsp from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Random } from "./random.ts";

/** Identifies a file or folder whatever its name; a number may be used again, but not with the same time of birth. */
type Inode = string;
type Names = ReadonlyMap<string, Inode>;

type NameChange =
  | { readonly kind: "link"; readonly name: string; readonly inode: Inode }
  | { readonly kind: "unlink"; readonly name: string }
  | { readonly kind: "rename"; readonly from: string; readonly name: string; readonly inode: Inode };

interface Folder {
  readonly synced: Names;
  /** Changes since; a cut keeps the first of them. */
  readonly pending: readonly NameChange[];
  readonly now: Names;
}

interface File {
  /** Null if never. */
  readonly synced: Buffer | null;
  readonly now: Buffer;
}

/** The files that SQLite manages, by name, at one moment. It syncs them in the order that it needs, so they go together. */
type DatabaseState = ReadonlyMap<string, { readonly inode: Inode; readonly content: Buffer }>;

interface Step {
  readonly root: Inode;
  readonly folders: ReadonlyMap<Inode, Folder>;
  readonly files: ReadonlyMap<Inode, File>;
  /** What the disk may hold of the database: the last state that was synced, and every later one. */
  readonly database: readonly DatabaseState[];
}

export interface Recording<Mark> {
  /** Notes what has been achieved so far, such as a message that was acknowledged. */
  readonly mark: (mark: Mark) => void;
  /** Ends recording. */
  readonly stop: () => void;
  readonly steps: number;
  /** Creates a folder as it would be after a cut at a step, and returns the marks before it. */
  cutAt(step: number, random: Random, into: string): readonly Mark[];
}

interface Scan {
  readonly root: Inode;
  readonly folders: ReadonlyMap<Inode, Names>;
  readonly files: ReadonlyMap<Inode, Buffer>;
  readonly database: DatabaseState;
}

const real = { ...fs, promises: { ...fsp } };

const inodeOf = ({ ino, birthtimeNs }: fs.BigIntStats): Inode => `${ino}:${birthtimeNs}`;

/** Everything that is in the folder when recording begins counts as synced. */
export function record<Mark>(folder: string, databaseName: string): Recording<Mark> {
  const marks: { readonly at: number; readonly mark: Mark }[] = [];
  const first = scan(folder, databaseName);
  const steps: Step[] = [
    {
      root: first.root,
      folders: new Map([...first.folders].map(([inode, now]) => [inode, { synced: now, pending: [], now }])),
      files: new Map([...first.files].map(([inode, now]) => [inode, { synced: now, now }])),
      database: [first.database],
    },
  ];
  const last = (): Step => steps.at(-1) as Step;
  let isObserving = false;
  const observe = (): void => {
    if (isObserving) return; // Reading a file calls what is observed.
    isObserving = true;
    const next = nextStep(last(), scan(folder, databaseName));
    if (next !== null) steps.push(next);
    isObserving = false;
  };
  const restore = interpose({
    observe,
    synced: (inode) => void steps.push(afterSync(last(), inode, databaseName)),
    committed: (path) => {
      if (path === join(folder, databaseName)) steps.push({ ...last(), database: last().database.slice(-1) });
    },
  });
  return {
    mark: (mark) => (observe(), void marks.push({ at: steps.length - 1, mark })),
    stop: () => (observe(), restore()),
    get steps() {
      return steps.length;
    },
    cutAt(at, random, into) {
      materialise(steps[at] as Step, random, into);
      return marks.filter((each) => each.at <= at).map(({ mark }) => mark);
    },
  };
}

function scan(folder: string, databaseName: string): Scan {
  const folders = new Map<Inode, Names>();
  const files = new Map<Inode, Buffer>();
  const database = new Map<string, { readonly inode: Inode; readonly content: Buffer }>();
  const managed = ["", "-wal", "-journal"].map((suffix) => databaseName + suffix);
  const visit = (path: string, isRoot: boolean): Inode => {
    const own = inodeOf(real.statSync(path, { bigint: true }));
    const names = new Map<string, Inode>();
    for (const { name, ...entry } of real.readdirSync(path, { withFileTypes: true }).map(nameAndKind)) {
      if (isRoot && name === `${databaseName}-shm`) continue; // Rebuilt whenever the database is opened.
      const below = join(path, name);
      if (entry.isFolder) {
        names.set(name, visit(below, false));
        continue;
      }
      const inode = inodeOf(real.statSync(below, { bigint: true }));
      const content = real.readFileSync(below);
      if (isRoot && managed.includes(name)) database.set(name, { inode, content });
      else names.set(name, inode);
      files.set(inode, content);
    }
    folders.set(own, names);
    return own;
  };
  return { root: visit(folder, true), folders, files, database };
}

const nameAndKind = (entry: fs.Dirent) => ({ name: entry.name, isFolder: entry.isDirectory() });

/** Null if nothing has changed. */
function nextStep(before: Step, found: Scan): Step | null {
  const folders = new Map<Inode, Folder>();
  let isChanged = found.folders.size !== before.folders.size;
  for (const [inode, now] of found.folders) {
    const known = before.folders.get(inode) ?? { synced: new Map(), pending: [], now: new Map<string, Inode>() };
    const changes = changesBetween(known.now, now);
    folders.set(inode, changes.length === 0 ? known : { ...known, now, pending: [...known.pending, ...changes] });
    isChanged ||= changes.length > 0;
  }
  const files = new Map<Inode, File>();
  for (const [inode, content] of found.files) {
    const known = before.files.get(inode);
    const isSame = known !== undefined && known.now.equals(content);
    files.set(inode, isSame ? known : { synced: known?.synced ?? null, now: content });
    isChanged ||= !isSame;
  }
  const states = before.database;
  const latest = states.at(-1) as DatabaseState;
  const state = new Map(
    [...found.database].map(([name, { inode, content }]) => {
      // A file of ours that was renamed to the database has what was synced of it.
      const isOwn = before.files.has(inode) && ![...latest.values()].some((known) => known.inode === inode);
      return [name, { inode, content: isOwn ? (files.get(inode)?.synced ?? Buffer.alloc(0)) : content }];
    }),
  );
  const isSameState =
    state.size === latest.size &&
    [...state].every(([name, { inode, content }]) => {
      const known = latest.get(name);
      return known?.inode === inode && known.content.equals(content);
    });
  if (!isChanged && isSameState) return null;
  // Names that a cut may bring back still need their content.
  for (const [inode, file] of before.files) if (!files.has(inode)) files.set(inode, file);
  for (const [inode, folder] of before.folders) if (!folders.has(inode)) folders.set(inode, folder);
  return {
    root: found.root,
    folders,
    files,
    database: isSameState ? states : hasLog(latest) && !hasLog(state) ? [state] : [...states, state],
  };
}

const hasLog = (state: DatabaseState): boolean => [...state.keys()].some((name) => name.endsWith("-wal"));

function changesBetween(before: Names, now: Names): readonly NameChange[] {
  const gone = new Map([...before].filter(([name]) => !now.has(name)).map(([name, inode]) => [inode, name]));
  const changes: NameChange[] = [];
  for (const [name, inode] of now) {
    if (before.get(name) === inode) continue;
    const from = gone.get(inode);
    if (from !== undefined) gone.delete(inode);
    changes.push(from === undefined ? { kind: "link", name, inode } : { kind: "rename", from, name, inode });
  }
  return [...changes, ...[...gone.values()].map((name) => ({ kind: "unlink", name }) as const)];
}

function afterSync(before: Step, inode: Inode, databaseName: string): Step {
  const folder = before.folders.get(inode);
  const file = before.files.get(inode);
  const latest = before.database.at(-1) as DatabaseState;
  const owner = latest.get(databaseName)?.inode;
  const isManaged = [...latest.values()].some((known) => known.inode === inode);
  return {
    ...before,
    folders:
      folder === undefined
        ? before.folders
        : new Map([...before.folders, [inode, { synced: folder.now, pending: [], now: folder.now }]]),
    files: file === undefined ? before.files : new Map([...before.files, [inode, { synced: file.now, now: file.now }]]),
    // Synced names settle which file is the database.
    database: isManaged
      ? [latest]
      : inode === before.root
        ? before.database.filter((state) => state.get(databaseName)?.inode === owner)
        : before.database,
  };
}

function applied(names: Names, changes: readonly NameChange[]): Names {
  const result = new Map(names);
  for (const change of changes) {
    if (change.kind === "rename") result.delete(change.from);
    if (change.kind === "unlink") result.delete(change.name);
    else result.set(change.name, change.inode);
  }
  return result;
}

/** How much of what was not synced survives: by the file system's own journal it may be all names and no content. */
type Luck = "nothing" | "names" | "some" | "everything";

function materialise({ root, folders, files, database }: Step, random: Random, into: string): void {
  const luck = random.weighted<Luck>({ nothing: 3, names: 3, some: 3, everything: 1 });
  const which = random.weighted({ oldest: 2, newest: 2, some: 3 });
  const state = which === "oldest" ? database[0] : which === "newest" ? database.at(-1) : random.pick(database);
  const contentOf = ({ synced, now }: File): Buffer => {
    if (synced?.equals(now) === true || luck === "everything") return now;
    const old = synced ?? Buffer.alloc(0);
    if (luck !== "some") return old;
    return random.pick([old, now.subarray(0, random.below(now.length + 1)), Buffer.alloc(now.length), now]);
  };
  const place = (inode: Inode, path: string): void => {
    const folder = folders.get(inode);
    if (folder === undefined) return real.writeFileSync(path, contentOf(files.get(inode) as File), { mode: 0o600 });
    const { synced, pending } = folder;
    const survive = luck === "nothing" ? 0 : luck === "some" ? random.below(pending.length + 1) : pending.length;
    real.mkdirSync(path, { recursive: true, mode: 0o700 });
    for (const [name, below] of applied(synced, pending.slice(0, survive))) place(below, join(path, name));
  };
  place(root, into);
  for (const [name, { content }] of state ?? []) real.writeFileSync(join(into, name), content, { mode: 0o600 });
}

interface Observer {
  readonly observe: () => void;
  readonly synced: (inode: Inode) => void;
  readonly committed: (path: string | null) => void;
}

type Call = (...args: readonly unknown[]) => unknown;

const syncCalls = [
  "mkdirSync",
  "writeFileSync",
  "copyFileSync",
  "renameSync",
  "rmSync",
  "openSync",
  "chmodSync",
] as const;
const asyncCalls = ["mkdir", "writeFile", "copyFile", "rename", "rm", "chmod"] as const;

/** Observes around every call of this process that may change a file. Returns how to end that. */
function interpose({ observe, synced, committed }: Observer): () => void {
  const undo: (() => void)[] = [];
  const replace = (owner: object, name: string, wrap: (call: Call) => Call): void => {
    const original = Reflect.get(owner, name) as Call;
    Reflect.set(owner, name, wrap(original));
    undo.push(() => Reflect.set(owner, name, original));
  };
  for (const name of syncCalls)
    replace(fs, name, (call) => (...args) => {
      observe();
      const result = call(...args);
      observe();
      return result;
    });
  for (const name of asyncCalls)
    replace(fsp, name, (call) => async (...args) => {
      observe();
      const result = await call(...args);
      observe();
      return result;
    });
  replace(fs, "fsyncSync", (call) => (...args) => {
    observe();
    call(...args);
    synced(inodeOf(real.fstatSync(args[0] as number, { bigint: true })));
  });
  replace(fsp, "open", (open) => async (...args) => {
    const handle = (await open(...args)) as FileHandle;
    const sync = handle.sync.bind(handle);
    handle.sync = async () => {
      observe();
      await sync();
      synced(inodeOf(await handle.stat({ bigint: true })));
    };
    return handle;
  });
  replace(DatabaseSync.prototype, "exec", (exec) => {
    return function (this: DatabaseSync, ...args) {
      observe();
      exec.apply(this, [...args]);
      observe();
      if (args[0] === "COMMIT" && this.prepare("PRAGMA synchronous").get()?.["synchronous"] === 2)
        committed(this.location());
    };
  });
  syncBuiltinESMExports();
  return () => {
    for (const each of undo) each();
    syncBuiltinESMExports();
  };
}

/** A cut after which the disk has only what was synced, or everything. */
const always = (luck: Luck, state: "oldest" | "newest"): Random =>
  ({ weighted: (weights: object) => ("everything" in weights ? luck : state) }) as unknown as Random;

export const unlucky = always("nothing", "oldest");

/** The model must know everything that was done: a cut that loses nothing leaves what is really there. */
export function assertFaithful(
  recording: Pick<Recording<unknown>, "cutAt" | "steps">,
  folder: string,
  into: string,
): void {
  recording.cutAt(recording.steps - 1, always("everything", "newest"), into);
  const listed = (place: string) =>
    real
      .readdirSync(place, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.name.endsWith("-shm"))
      .map((entry) => join(entry.parentPath, entry.name))
      .map((path) => `${path.slice(place.length)} ${real.readFileSync(path).toString("base64")}`)
      .toSorted();
  assert.deepEqual(listed(into), listed(folder), "the recording misses something that was done");
}
