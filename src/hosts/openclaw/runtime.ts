/**
 * What outlives a turn. The host makes an engine for every turn, and evaluates the plugin's modules several times in one
 * process: so the store with its threads, what is queued and what was noticed lie here, once per database file, and
 * every copy of the plugin finds them through a name that all of them know.
 *
 * Nothing is opened before somebody needs it. Opening that fails is tried again by whoever comes next.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { LcmError, errorText } from "../../core/base/errors.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { ConversationId, GrantId } from "../../core/model/types.ts";
import type { Clock, Model, Store } from "../../core/model/store.ts";
import type { Templates } from "../../core/prompts/summary.ts";
import type { DelegateTool } from "../../core/recall/ask-types.ts";
import type { ResolvedSettings } from "../../core/model/settings.ts";
import type { Logger } from "./host-api.ts";
import { withDeadline } from "../../core/base/deadline.ts";
import type { Timestamp } from "../../core/base/time.ts";

export interface RuntimeDeps {
  readonly path: string;
  readonly settings: ResolvedSettings;
  readonly clock: Clock;
  readonly logger: Logger;
  /** How long a turn waits for the store; a few seconds unless said otherwise. */
  readonly patienceMs?: number;
  /** Adopts a database of the older program first; tells what it did about it. */
  openStore(): Promise<Store>;
  templates(): Promise<Templates>;
}

/** What is remembered of a session between its turns. Losing it costs a little precision and nothing else. */
export interface SessionMemory {
  /** Tokens of a prompt that the host does not count: schemas of tools, and where its estimate or ours was low. */
  allowance: number | null;
  /** The smallest budget of the last turn, less the allowance; what compaction works towards. */
  promptBudget: number | null;
}

/** Something that an operator may want to know of. */
export interface Trouble {
  readonly at: Timestamp;
  /** What was being done, as said after "while". */
  readonly during: string;
  readonly message: string;
}

/** What a child session holds of its parent's, as long as it lives. */
export interface Held {
  readonly grant: GrantId;
  /** Of one that answers a question: what is read through these is noted, so that it may be cited. */
  readonly tools?: readonly DelegateTool[];
}

export interface Runtime {
  readonly path: string;
  readonly settings: ResolvedSettings;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Whether the database has been opened, without opening it. */
  isOpen(): boolean;
  open(): Promise<Lcm>;
  /** Work of one session, one after the other; sessions do not wait for each other. */
  inOrder<T>(session: string, work: () => Promise<T>): Promise<T>;
  /**
   * The same for a turn, which does not wait for long, as when another process holds the database: it gets null then, and
   * the work goes on. As long as it does, no other of that session is waited for. The signal says that nobody waits.
   */
  inTurn<T>(
    session: string,
    during: string,
    work: (left: AbortSignal) => Promise<T>,
  ): Promise<{ readonly value: T } | null>;
  /** The same for what the host need not hear of: a failure is noted, and is null too. */
  attempt<T>(session: string, during: string, work: () => Promise<T>): Promise<{ readonly value: T } | null>;
  /** What is due for a conversation is folded, without anybody waiting; nothing if that is under way already. */
  compactSoon(conversation: ConversationId, model: Model | null): void;
  isCompacting(conversation: ConversationId): boolean;
  /** Resolves when nothing is being folded. */
  settled(): Promise<void>;
  memoryOf(session: string): SessionMemory;
  /** What child sessions read under, by their keys. */
  readonly grants: Map<string, Held>;
  /** The newest last. */
  readonly troubles: readonly Trouble[];
  note(during: string, error: unknown): void;
  /** Says something once in the life of the process. */
  sayOnce(message: string): void;
  /** Ends what is under way. Whoever comes afterwards opens it again. */
  close(): Promise<void>;
}

interface Shared {
  readonly runtimes: Map<string, Runtime & { configure(deps: RuntimeDeps): void }>;
  /** Runs work outside whatever is going on: the host ends all that was begun within a turn when the turn ends. */
  readonly detached: ReturnType<typeof AsyncLocalStorage.snapshot>;
}

const name = Symbol.for("lossless-claw.runtimes");
// The first copy is loaded while the host starts, and so outside any turn.
const shared = ((globalThis as { [name]?: Shared })[name] ??= {
  runtimes: new Map(),
  detached: AsyncLocalStorage.snapshot(),
});

/** The runtime of this database file; made on first use, and with other settings made anew over the same store. */
export function runtimeOf(deps: RuntimeDeps): Runtime {
  const known = shared.runtimes.get(deps.path);
  if (known === undefined) {
    const made = createRuntime(deps);
    shared.runtimes.set(deps.path, made);
    return made;
  }
  known.configure(deps);
  return known;
}

/** What went wrong, and what helps. */
export function told(error: unknown): string {
  const hint = error instanceof LcmError && error.hint !== undefined ? ` (${error.hint})` : "";
  return `${errorText(error)}${hint}`;
}

const troublesKept = 20;
const sessionsRemembered = 1_000;
/** A background compaction ends by itself after this long; what it has folded stays. */
const backgroundMs = 30 * 60_000;
const patienceMsDefault = 5_000;

function createRuntime(first: RuntimeDeps): Runtime & { configure(deps: RuntimeDeps): void } {
  const { detached } = shared;
  let deps = first;
  let store: Promise<Store> | null = null;
  let lcm: Promise<Lcm> | null = null;
  let stop = new AbortController();
  const queues = new Map<string, Promise<unknown>>();
  const late = new Set<string>();
  const compacting = new Map<ConversationId, Promise<void>>();
  const memories = new Map<string, SessionMemory>();
  const troubles: Trouble[] = [];
  const said = new Set<string>();

  const openStore = async (): Promise<Store> => {
    const mine = (store ??= detached(async () => await deps.openStore()));
    return await mine.catch((error: unknown) => {
      if (store === mine) store = null;
      throw error;
    });
  };

  const self: Runtime & { configure(deps: RuntimeDeps): void } = {
    get path() {
      return deps.path;
    },
    get settings() {
      return deps.settings;
    },
    get clock() {
      return deps.clock;
    },
    get logger() {
      return deps.logger;
    },
    configure(next) {
      if (JSON.stringify(next.settings) !== JSON.stringify(deps.settings)) lcm = null;
      // The host's own logger of the copy that was loaded first goes on working.
      deps = { ...next, logger: deps.logger };
    },
    isOpen: () => store !== null,
    async open() {
      const { clock, settings } = deps;
      // Loaded here: most copies of the plugin are only asked what there is.
      const parts = () => Promise.all([openStore(), deps.templates(), import("../../core/lcm.ts")]);
      const mine = (lcm ??= parts().then(([opened, templates, { createLcm }]) =>
        createLcm({ store: opened, clock, settings: settings.values, templates }),
      ));
      return await mine.catch((error: unknown) => {
        if (lcm === mine) lcm = null;
        throw error;
      });
    },
    async inOrder(session, work) {
      const before = queues.get(session) ?? Promise.resolve();
      const mine = before.then(work, work);
      const end = mine.catch(() => undefined);
      queues.set(session, end);
      void end.then(() => queues.get(session) === end && queues.delete(session) && late.delete(session));
      return await mine;
    },
    async inTurn(session, during, work) {
      const { patienceMs = patienceMsDefault } = deps;
      const left = new AbortController();
      const mine = self.inOrder(session, async () => await work(left.signal));
      try {
        const patience = sleep(late.has(session) ? 0 : patienceMs, null, { signal: left.signal });
        const done = await Promise.race([mine.then((value) => ({ value })), patience]);
        if (done !== null) return done;
        if (!late.has(session)) self.note(during, `it takes more than ${patienceMs} ms, and goes on without the turn`);
        late.add(session);
        mine.catch((error: unknown) => self.note(during, error));
        return null;
      } finally {
        left.abort();
      }
    },
    async attempt(session, during, work) {
      try {
        return await self.inTurn(session, during, work);
      } catch (error) {
        self.note(during, error);
        return null;
      }
    },
    compactSoon(conversation, model) {
      if (compacting.has(conversation)) return;
      const work = detached(async () => {
        try {
          const opened = await self.open();
          const written = model === null ? {} : { model: opened.metered(model) };
          const report = await withDeadline(backgroundMs, stop.signal, async (signal) =>
            opened.compact({ conversation, mode: "due", signal, ...written }),
          );
          if (report.outcome.kind === "failed") self.note(`conversation ${conversation} was compacted`, report.message);
          else if (report.passes.length > 0) deps.logger.info(`conversation ${conversation}: ${report.message}`);
        } catch (error) {
          self.note(`conversation ${conversation} was compacted`, error);
        } finally {
          compacting.delete(conversation);
        }
      });
      compacting.set(conversation, work);
    },
    isCompacting: (conversation) => compacting.has(conversation),
    async settled() {
      while (compacting.size > 0) await Promise.all(compacting.values());
    },
    memoryOf(session) {
      const memory = memories.get(session) ?? { allowance: null, promptBudget: null };
      memories.delete(session);
      memories.set(session, memory);
      const [oldest] = memories.keys();
      if (memories.size > sessionsRemembered && oldest !== undefined) memories.delete(oldest);
      return memory;
    },
    grants: new Map(),
    troubles,
    note(during, error) {
      const message = told(error);
      deps.logger.warn(`while ${during}: ${message}`);
      troubles.push({ at: deps.clock.now(), during, message });
      if (troubles.length > troublesKept) troubles.shift();
    },
    sayOnce(message) {
      if (said.has(message)) return;
      said.add(message);
      deps.logger.warn(message);
    },
    async close() {
      stop.abort();
      await self.settled();
      stop = new AbortController();
      const opened = store;
      [store, lcm] = [null, null];
      await (await opened?.catch(() => null))?.close(); // What could not be opened is closed.
    },
  };
  return self;
}
