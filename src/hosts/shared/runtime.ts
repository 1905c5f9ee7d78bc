/**
 * What outlives a turn: the open store, the queues of sessions, running compactions and recorded problems. OpenClaw
 * creates an engine per turn, and hosts evaluate our modules several times per process, so one runtime per database file
 * is shared by all copies through a global symbol.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate as immediately, setTimeout as sleep } from "node:timers/promises";
import { withDeadline } from "../../core/base/deadline.ts";
import { LcmError, errorText } from "../../core/base/errors.ts";
import type { Timestamp } from "../../core/base/time.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { ResolvedSettings } from "../../core/model/settings.ts";
import type { Clock, Embedder, Model, Store } from "../../core/model/store.ts";
import type { ConversationId, GrantId } from "../../core/model/types.ts";
import type { Templates } from "../../core/prompts/summary.ts";
import type { DelegateTool } from "../../core/recall/ask-types.ts";

export interface Logger {
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

export interface RuntimeDeps {
  readonly path: string;
  readonly settings: ResolvedSettings;
  readonly clock: Clock;
  readonly logger: Logger;
  /** How long a turn waits for the store; a few seconds by default. */
  readonly patienceMs?: number;
  /** Adopts a database of the older program first. */
  openStore(): Promise<Store>;
  templates(): Promise<Templates>;
  /** For search by meaning; null without one. Loads nothing yet. */
  embedder?(): Promise<Embedder | null>;
}

/** What is remembered of a session between turns. Losing it only makes budgets less precise. */
export interface SessionMemory {
  /** Prompt tokens that the host does not count: tool schemas, and what its estimate or ours missed. */
  allowance: number | null;
  /** The smallest budget of the last turn minus the allowance; compaction works towards it. */
  promptBudget: number | null;
}

/** A problem that an operator may want to know about. */
export interface Trouble {
  readonly at: Timestamp;
  /** What was being done, to be read after "while". */
  readonly doing: string;
  readonly message: string;
}

/** What a child session may read of its parent, as long as it lives. */
export interface ChildGrant {
  readonly grant: GrantId;
  /** For a child that answers a question: what it reads through these is recorded, so that it can be cited. */
  readonly tools?: readonly DelegateTool[];
}

export interface Runtime {
  readonly path: string;
  readonly settings: ResolvedSettings;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Does not open the database. */
  isOpen(): boolean;
  /** Opens the database on first use. A failed attempt is repeated by the next caller. */
  open(): Promise<Lcm>;
  /** Runs the work of a session one after another; sessions do not wait for each other. */
  inOrder<T>(session: string, work: () => Promise<T>): Promise<T>;
  /**
   * The same for a turn, which waits only a few seconds, then gets null while the work continues. Until that work ends,
   * later turns of the session do not wait at all. The signal aborts when the turn stops waiting.
   */
  inTurn<T>(
    session: string,
    doing: string,
    work: (left: AbortSignal) => Promise<T>,
  ): Promise<{ readonly value: T } | null>;
  /** The same for work whose failure the host need not know: it is recorded, and the result is null. */
  attempt: Runtime["inTurn"];
  /** Starts a due compaction in the background, unless one of this conversation is running. */
  compactSoon(conversation: ConversationId, model: Model | null): void;
  isCompacting(conversation: ConversationId): boolean;
  /** Starts embedding new messages in the background, unless that is running or no embedder is configured. */
  embedSoon(): void;
  /**
   * Records something about a prompt once the turn has gone on, in the order of the calls of a session. A record that
   * fails is only missing: the problem is noted, unless the store cannot be opened at all, and the result is null.
   */
  recordSoon<T>(session: string, work: (lcm: Lcm) => Promise<T>): Promise<T | null>;
  /** Resolves when no background work is running. */
  settled(): Promise<void>;
  /** Of one agent's session: agents may use the same session key. */
  memoryOf(session: { readonly agentId: string; readonly sessionKey: string }): SessionMemory;
  /** The grants of child sessions, by session key. */
  readonly grants: Map<string, ChildGrant>;
  /** The newest last. */
  readonly troubles: readonly Trouble[];
  /** Logs and records a problem. */
  note(doing: string, error: unknown): void;
  /** Logs a warning once per process. */
  warnOnce(message: string): void;
  /** Ends what is running and closes the store. A later call opens it again. */
  close(): Promise<void>;
}

interface SharedState {
  readonly runtimes: Map<string, Runtime & Configurable>;
  /** Runs work outside the current turn: when a turn ends, the host ends everything started within it. */
  readonly detached: ReturnType<typeof AsyncLocalStorage.snapshot>;
}

interface Configurable {
  configure(deps: RuntimeDeps): void;
}

const name = Symbol.for("lossless-claw.runtimes");
// The first copy is loaded while the host starts, and so outside any turn.
const shared = ((globalThis as { [name]?: SharedState })[name] ??= {
  runtimes: new Map(),
  detached: AsyncLocalStorage.snapshot(),
});

/** The runtime of this database file. Changed settings take effect on the store that is already open. */
export function runtimeOf(deps: RuntimeDeps): Runtime {
  const known = shared.runtimes.get(deps.path);
  known?.configure(deps);
  const runtime = known ?? createRuntime(deps);
  shared.runtimes.set(deps.path, runtime);
  return runtime;
}

/** The message of an error with its hint. */
export function describeError(error: unknown): string {
  const hint = error instanceof LcmError && error.hint !== undefined ? ` (${error.hint})` : "";
  return `${errorText(error)}${hint}`;
}

function createRuntime(first: RuntimeDeps): Runtime & Configurable {
  let deps = first;
  const current = (): RuntimeDeps => deps;
  const database = createDatabase(current);
  const problems = createProblems(current);
  const queues = createQueues(current, problems.note);
  const compactions = createCompactions(current, database.open, problems.note);
  const embedding = createEmbedding(current, database.open, problems.note);
  const recording = createRecording(database.open, queues.inOrder, problems.note);
  return {
    path: first.path,
    logger: first.logger,
    get settings() {
      return deps.settings;
    },
    get clock() {
      return deps.clock;
    },
    configure(next) {
      if (JSON.stringify(next.settings) !== JSON.stringify(deps.settings)) database.reload();
      // The logger of the copy that was loaded first keeps working.
      deps = { ...next, logger: deps.logger };
    },
    isOpen: database.isOpen,
    open: database.open,
    ...queues,
    compactSoon: compactions.start,
    isCompacting: compactions.isRunning,
    embedSoon: embedding.start,
    recordSoon: recording.start,
    async settled() {
      await recording.settled();
      await compactions.settled();
      await embedding.settled();
    },
    memoryOf: createMemories(),
    grants: new Map(),
    ...problems,
    async close() {
      await Promise.all([compactions.stop(), embedding.stop(), recording.settled()]);
      await database.close();
    },
  };
}

function createDatabase(deps: () => RuntimeDeps) {
  let store: Promise<Store> | null = null;
  let lcm: Promise<Lcm> | null = null;
  let embedder: Embedder | null = null;
  const closeEmbedder = async (): Promise<void> => {
    const old = embedder;
    embedder = null;
    await old?.close();
  };
  const openStore = async (): Promise<Store> => {
    const mine = (store ??= shared.detached(async () => await deps().openStore()));
    return await mine.catch((error: unknown) => {
      if (store === mine) store = null;
      throw error;
    });
  };
  return {
    isOpen: () => store !== null,
    async open(this: void): Promise<Lcm> {
      const { clock, settings } = deps();
      // Imported here, because most copies of the plugin only register.
      const parts = () =>
        Promise.all([openStore(), deps().templates(), import("../../core/lcm.ts"), deps().embedder?.() ?? null]);
      const mine = (lcm ??= parts().then(([opened, templates, { createLcm }, chosen]) => {
        embedder = chosen;
        return createLcm({ store: opened, clock, settings: settings.values, templates, embedder });
      }));
      return await mine.catch((error: unknown) => {
        if (lcm === mine) lcm = null;
        throw error;
      });
    },
    reload() {
      lcm = null;
      void closeEmbedder();
    },
    async close() {
      const opened = store;
      [store, lcm] = [null, null];
      await closeEmbedder();
      await (await opened?.catch(() => null))?.close(); // A store that failed to open needs no closing.
    },
  };
}

const patienceMsDefault = 5_000;

function createQueues(deps: () => RuntimeDeps, note: Runtime["note"]): Pick<Runtime, "inOrder" | "inTurn" | "attempt"> {
  const queues = new Map<string, Promise<unknown>>();
  const late = new Set<string>();
  const inOrder: Runtime["inOrder"] = async (session, work) => {
    const before = queues.get(session) ?? Promise.resolve();
    const mine = before.then(work, work);
    const end = mine.catch(() => undefined);
    queues.set(session, end);
    void end.then(() => queues.get(session) === end && queues.delete(session) && late.delete(session));
    return await mine;
  };
  const inTurn: Runtime["inTurn"] = async (session, doing, work) => {
    const { patienceMs = patienceMsDefault } = deps();
    const left = new AbortController();
    const mine = inOrder(session, async () => await work(left.signal));
    try {
      const patience = sleep(late.has(session) ? 0 : patienceMs, null, { signal: left.signal });
      const done = await Promise.race([mine.then((value) => ({ value })), patience]);
      if (done !== null) return done;
      if (!late.has(session)) note(doing, `still running after ${patienceMs} ms; the turn continues without it`);
      late.add(session);
      mine.catch((error: unknown) => note(doing, error));
      return null;
    } finally {
      left.abort();
    }
  };
  const attempt: Runtime["attempt"] = async (session, doing, work) => {
    try {
      return await inTurn(session, doing, work);
    } catch (error) {
      note(doing, error);
      return null;
    }
  };
  return { inOrder, inTurn, attempt };
}

/** A background compaction ends after this long; what it has folded stays. */
const backgroundMs = 30 * 60_000;

function createCompactions(deps: () => RuntimeDeps, open: Runtime["open"], note: Runtime["note"]) {
  const running = new Map<ConversationId, Promise<void>>();
  let stopping = new AbortController();
  const compact = async (conversation: ConversationId, model: Model | null): Promise<void> => {
    const doing = `compacting conversation ${conversation}`;
    try {
      const lcm = await open();
      const metered = model === null ? {} : { model: lcm.metered(model) };
      const { outcome, passes, message } = await withDeadline(backgroundMs, stopping.signal, async (signal) =>
        lcm.compact({ conversation, mode: "due", signal, ...metered }),
      );
      if (outcome.kind === "failed") note(doing, message);
      else if (passes.length > 0) deps().logger.info(`conversation ${conversation}: ${message}`);
    } catch (error) {
      note(doing, error);
    } finally {
      running.delete(conversation);
    }
  };
  const settled = async (): Promise<void> => {
    while (running.size > 0) await Promise.all(running.values());
  };
  return {
    start(this: void, conversation: ConversationId, model: Model | null): void {
      if (running.has(conversation)) return;
      running.set(
        conversation,
        shared.detached(async () => await compact(conversation, model)),
      );
    },
    isRunning: (conversation: ConversationId): boolean => running.has(conversation),
    settled,
    async stop() {
      stopping.abort();
      await settled();
      stopping = new AbortController();
    },
  };
}

/** How long to leave a model alone that has failed; the next turn after that tries again. */
const embedderRetryMs = 5 * 60_000;

/** One embedding at a time for the whole database; it rests as long as it works, so that the host's machine stays free. */
function createEmbedding(deps: () => RuntimeDeps, open: Runtime["open"], note: Runtime["note"]) {
  let running: Promise<void> | null = null;
  let stopping = new AbortController();
  let notBefore = -Infinity;
  const embed = async (): Promise<void> => {
    try {
      const { signal } = stopping;
      let workedFrom = performance.now();
      const { outcome, problem, embedded } = await (
        await open()
      ).makeVectors({
        signal,
        async rest() {
          // Nobody waits for it: a signal that ends the rest ends the work as well.
          await sleep(performance.now() - workedFrom, undefined, { signal }).catch(() => undefined);
          workedFrom = performance.now();
        },
      });
      if (outcome === "complete" && embedded > 0) deps().logger.info(`embedded ${embedded} messages for search`);
      if (outcome !== "failed") return;
      notBefore = performance.now() + embedderRetryMs;
      note("embedding messages for search", problem);
    } catch (error) {
      notBefore = performance.now() + embedderRetryMs;
      note("embedding messages for search", error);
    } finally {
      running = null;
    }
  };
  return {
    start(this: void): void {
      if (deps().settings.values.embedder === null || running !== null || performance.now() < notBefore) return;
      running = shared.detached(embed);
    },
    settled: async (): Promise<void> => await (running ?? Promise.resolve()),
    async stop() {
      stopping.abort();
      await running;
      stopping = new AbortController();
    },
  };
}

function createRecording(open: Runtime["open"], inOrder: Runtime["inOrder"], note: Runtime["note"]) {
  const running = new Set<Promise<unknown>>();
  const start: Runtime["recordSoon"] = async (session, work) => {
    const record = inOrder(`prompts of ${session}`, async () => {
      await immediately(); // The turn goes on first.
      const lcm = await open().catch(() => null); // Whoever stores the turn has noted why.
      return lcm === null ? null : await work(lcm);
    });
    const mine = record.catch((error: unknown) => {
      note(`recording a prompt of ${session}`, error);
      return null;
    });
    running.add(mine);
    void mine.then(() => running.delete(mine));
    return await mine;
  };
  return {
    start: async <T>(session: string, work: (lcm: Lcm) => Promise<T>) =>
      await shared.detached(async () => await start(session, work)),
    settled: async (): Promise<void> => void (await Promise.all(running)),
  };
}

const sessionsRemembered = 1_000;

function createMemories(): Runtime["memoryOf"] {
  const memories = new Map<string, SessionMemory>();
  return ({ agentId, sessionKey }) => {
    const session = JSON.stringify([agentId, sessionKey]);
    const memory = memories.get(session) ?? { allowance: null, promptBudget: null };
    memories.delete(session);
    memories.set(session, memory);
    const [oldest] = memories.keys();
    if (memories.size > sessionsRemembered && oldest !== undefined) memories.delete(oldest);
    return memory;
  };
}

const troublesKept = 20;

function createProblems(deps: () => RuntimeDeps) {
  const troubles: Trouble[] = [];
  const warned = new Set<string>();
  return {
    troubles,
    note(this: void, doing: string, error: unknown): void {
      const message = describeError(error);
      deps().logger.warn(`while ${doing}: ${message}`);
      troubles.push({ at: deps().clock.now(), doing, message });
      if (troubles.length > troublesKept) troubles.shift();
    },
    warnOnce(this: void, message: string): void {
      if (warned.has(message)) return;
      warned.add(message);
      deps().logger.warn(message);
    },
  };
}
