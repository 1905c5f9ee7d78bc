/** Provides the base of every contract test: a fresh store that is watched, and short helpers for frequent steps. */

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { it } from "node:test";
import type { FindingCode } from "../../src/core/maintenance/inspect.ts";
import { LcmError } from "../../src/core/base/errors.ts";
import type { ErrorCode } from "../../src/core/base/errors.ts";
import type { NewPrompt } from "../../src/core/model/prompts.ts";
import type {
  CompactionRecord,
  ContextItem,
  Conversation,
  ConversationId,
  NewCall,
  NewSummary,
  SummaryId,
} from "../../src/core/model/types.ts";
import type {
  Appended,
  CallBounds,
  ForgetPlan,
  NewFile,
  SearchHit,
  SearchRequest,
  Store,
} from "../../src/core/model/store.ts";
import { rowSteps, writes } from "../../src/store/operations.ts";
import { noLeftovers, type Script, type ScriptDeps } from "../../src/store/script.ts";
import { databaseFileOf } from "../../src/core/model/database-file.ts";
import { checkLossless, checkSound } from "../support/lossless.ts";
import { makeScratch } from "../support/scratch.ts";
import { createHost, toAppendable, user } from "../support/scripted-host.ts";
import type { ScriptedHost } from "../support/scripted-host.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

/** What the suite must know of a store beyond the port. */
export interface StoreUnderTest {
  /** Opens the database at a path, creating it if absent. */
  readonly open: (path: string) => Promise<Store>;
  /** Runs a script on the database of a path, past the port. References to missing rows are not refused. */
  readonly raw: <T>(path: string, script: () => Script<T>) => Promise<T>;
  /** Whether a text or bytes can be found in what the databases of a folder hold, files included. */
  readonly isKept: (folder: string, word: string | Buffer) => Promise<boolean>;
  /** What the status of the database of a path reports as its path. */
  readonly shownPath: (path: string) => string;
  /** Present if the store has a database file. */
  readonly databaseFile?: {
    /** Replaces the database at a path with a backup. */
    readonly restore: (from: string, path: string) => Promise<void>;
  };
}

export interface Ground {
  readonly subject: StoreUnderTest;
  readonly store: Store;
  readonly folder: string;
  readonly path: string;
}

export type SceneOf<L> = L extends Lay<infer Scene> ? Scene : never;

/** Sets up a fresh store for a test, and checks it afterwards. */
type Lay<Scene> = (
  subject: StoreUnderTest,
  test: (scene: Scene) => Promise<void>,
  expected?: readonly FindingCode[],
) => () => Promise<void>;

/** How a suite writes its tests: the promise, and how to check it on a fresh store. */
export const itOn =
  <Scene>(subject: StoreUnderTest, lay: Lay<Scene>) =>
  (promise: string, test: (scene: Scene) => Promise<void>, expected?: readonly FindingCode[]): void =>
    void it(promise, lay(subject, test, expected));

/** The same for promises about the database file; a store without one must say what to use instead. */
export const itOnFile = <Scene>(subject: StoreUnderTest, lay: Lay<Scene>): ReturnType<typeof itOn<Scene>> =>
  subject.databaseFile !== undefined
    ? itOn(subject, lay)
    : (promise) =>
        void it(
          `${promise} (a store without a database file names what to use instead)`,
          onStore(subject, async ({ store }) => {
            assert.throws(
              () => databaseFileOf(store),
              (error) =>
                error instanceof LcmError && error.code === "unavailable" && /database server/.test(error.hint ?? ""),
            );
          }),
        );

/** Also opens the database at a path while the work runs. */
export async function onFile(
  subject: StoreUnderTest,
  path: string,
  work: (store: Store) => Promise<void>,
): Promise<void> {
  const store = await subject.open(path);
  try {
    await work(store);
  } finally {
    await store.close();
  }
}

/** A test on a fresh store. `expected` are findings that the test causes. */
export function onStore(
  subject: StoreUnderTest,
  test: (ground: Ground) => Promise<void>,
  expected: readonly FindingCode[] = [],
): () => Promise<void> {
  return async () => {
    const folder = makeScratch("contract");
    const path = join(folder, "lcm.db");
    try {
      await onFile(subject, path, async (store) => {
        await test({ subject, store: watched(store, expected), folder, path });
      });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  };
}

/** The same base with more on it; `after` is checked when the test is over. */
export const further =
  <Scene, More>(
    lay: Lay<Scene>,
    add: (scene: Scene) => Promise<More>,
    after: (scene: Scene) => Promise<void> = async () => {},
  ): Lay<Scene & More> =>
  (subject, test, expected) =>
    lay(
      subject,
      async (scene) => {
        await test({ ...scene, ...(await add(scene)) });
        await after(scene);
      },
      expected,
    );

/** An empty conversation, and the host that will write to it. */
export const onTalk = further(onStore, async ({ store }) => {
  const talk = await store.open({ sessionId: "s" });
  return { talk, id: talk.id, host: createHost("h") };
});

/** Checks that everything this host has written is stored once, in order. */
export const nothingIsLost = async ({ store, id, host }: Pick<SceneOf<typeof onTalk>, "store" | "id" | "host">) =>
  await checkLossless(store, [{ conversation: id, entries: host.entries }]);

/** Writes that remove nothing: all but those meant to. */
const adding: ReadonlySet<unknown> = new Set([...Object.keys(writes), "forget", "saveFile"]).difference(
  new Set(["fix", "sweepOrphans", "undo"]),
);

/** After every such write the whole database is inspected, and has no fewer rows than before. */
function watched(store: Store, expected: readonly FindingCode[]): Store {
  let held = { conversations: 0, messages: 0, summaries: 0, files: 0 };
  const look = async (): Promise<void> => {
    await checkSound(store, [null], expected);
    const { conversations, messages, summaries, files } = await store.status();
    const holds = { conversations, messages, summaries, files };
    for (const name of ["conversations", "messages", "summaries", "files"] as const) {
      assert.ok(holds[name] >= held[name], `there were ${held[name]} ${name}, and now there are ${holds[name]}`);
    }
    held = holds;
  };
  return new Proxy(store, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (!adding.has(name) || typeof method !== "function") return method;
      return async (...args: readonly unknown[]): Promise<unknown> => {
        const result: unknown = await Reflect.apply(method, target, args);
        await look();
        return result;
      };
    },
  });
}

export const ask = (pattern: string, more: Partial<SearchRequest> = {}): SearchRequest => ({
  pattern,
  mode: "full_text",
  scope: "both",
  sort: "recency",
  limit: 50,
  ...more,
});

/** Everything that a search finds: its hits, and the summaries beside them. */
export async function findAll(store: Store, request: SearchRequest): Promise<readonly SearchHit[]> {
  const { hits, summaries = [] } = await store.search(request);
  return [...hits, ...summaries];
}

export const newFile = (conversation: ConversationId, content: string, more: Partial<NewFile> = {}): NewFile => ({
  conversation,
  name: null,
  mimeType: null,
  content,
  encoding: "utf8",
  exploration: null,
  ...more,
});

/** Content that every store keeps outside its rows. */
export const tooLargeForATable = ` ${"x".repeat(2 ** 20)}`;

/** Every file below a folder. */
export const filesBelow = (folder: string): readonly string[] =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
    : [];

export const isOnDisk = (folder: string, word: string | Buffer): boolean =>
  filesBelow(folder).some((path) => readFileSync(path).includes(word));

export const isKept = async (subject: StoreUnderTest, folder: string, word: string | Buffer): Promise<boolean> =>
  await subject.isKept(folder, word);

/** What a script of a test needs. */
const deps: ScriptDeps = {
  now: () => at(new Date().toISOString()),
  hex16: () => "0".repeat(16),
  leftovers: noLeftovers,
};

/** Forgets in the rows, and is interrupted before anything else. */
export const forgetRowsAlone = async (subject: StoreUnderTest, path: string, plan: ForgetPlan): Promise<void> =>
  void (await subject.raw(path, () => rowSteps.forget(deps, null, plan)));

export const at = (text: string): Timestamp => text as Timestamp;

/** Sends everything the host has written; what is stored already stays. */
export const deliver = async (store: Store, conversation: Conversation, host: ScriptedHost): Promise<Appended> =>
  await store.append(conversation.id, host.entries.map(toAppendable));

/** The host's user says these words, one message each; then everything the host has written is sent. */
export async function say(
  store: Store,
  conversation: Conversation,
  host: ScriptedHost,
  ...words: readonly string[]
): Promise<Appended> {
  for (const word of words) host.says(user(word));
  return await deliver(store, conversation, host);
}

/** One field of each. */
export const each = <T, Name extends keyof T>(items: readonly T[], name: Name): readonly T[Name][] =>
  items.map((item) => item[name]);

export const numbered = (length: number, word: (index: number) => string): readonly string[] =>
  Array.from({ length }, (_, index) => word(index));

/** One token long, so it shortens whatever it replaces. */
export const summary = (text: string, more: Partial<NewSummary> = {}): NewSummary => ({
  text,
  tokens: 1,
  level: "normal",
  model: null,
  previousContext: null,
  fileIds: [],
  ...more,
});

/** Folds the items from one position of the context to another, both included, and returns the summary. */
export async function foldPlaces(
  store: Store,
  conversation: ConversationId,
  [from, to]: readonly [number, number],
  text: string,
): Promise<SummaryId> {
  const run = (await store.context(conversation)).slice(from, to + 1);
  const outcome = await store.fold(conversation, run, summary(text));
  assert.ok(outcome.kind === "written", "the fold is written");
  return outcome.summary;
}

export async function dissolveAt(store: Store, conversation: ConversationId, id: SummaryId): Promise<void> {
  const item = await itemOf(store, conversation, id);
  const outcome = await store.dissolve({ conversation, summary: id, ordinal: item.ordinal });
  assert.equal(outcome.kind, "written");
}

export async function itemOf(store: Store, conversation: ConversationId, id: ContextItem["id"]): Promise<ContextItem> {
  const item = (await store.context(conversation)).find((each) => each.id === id);
  assert.ok(item !== undefined, `${id} is in the context`);
  return item;
}

/** The texts of the context, oldest first. */
export async function shownTexts(store: Store, conversation: ConversationId): Promise<readonly string[]> {
  const context = await store.context(conversation);
  return await Promise.all(
    context.map(async (item) =>
      item.kind === "message"
        ? ((await store.messages({ ids: [item.id] }))[0]?.text ?? "?")
        : ((await store.summaries({ ids: [item.id] }))[0]?.text ?? "?"),
    ),
  );
}

export const leafCall = (conversation: ConversationId | null, more: Partial<NewCall> = {}): NewCall => ({
  conversation,
  purpose: "leaf",
  provider: "scripted",
  model: "one",
  ...more,
});

const ever = at("0000-01-01T00:00:00.000Z");
export const unbounded: CallBounds = { callsMax: 1_000_000, windowSince: ever, breakerSince: null };

export const compaction = (conversation: ConversationId, more: Partial<CompactionRecord> = {}): CompactionRecord => ({
  conversation,
  at: at("2026-02-17T08:00:00.000Z"),
  mode: "sweep",
  asked: false,
  outcome: "settled",
  message: "nothing left to fold after 3 passes",
  passes: 3,
  tokensBefore: 900,
  tokensAfter: 300,
  durationMs: 12,
  ...more,
});

/** A recorded prompt of no messages. */
export const newPrompt = (more: Partial<NewPrompt> = {}): NewPrompt => ({
  at: at("2026-02-17T08:00:00.000Z"),
  head: "{}",
  stored: 0,
  lastSeq: 0,
  tail: 0,
  tokens: 0,
  budget: 0,
  bytes: 0,
  hash: "00112233445566778899aabbccddeeff",
  live: 0,
  liveTokens: 0,
  keepSince: null,
  ...more,
});

export const refuses = async (code: ErrorCode, work: () => Promise<unknown>): Promise<void> => {
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof LcmError, `expected an LcmError, got ${String(error)}`);
    assert.equal(error.code, code, error.message);
    return true;
  });
};

export const nowhere = 987_654 as ConversationId;
