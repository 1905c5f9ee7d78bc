/**
 * One of many processes that use one database for some time. It writes a line for each turn that was acknowledged, and
 * ends with an error if an answer is wrong.
 */

import assert from "node:assert/strict";
import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { LcmError } from "../../src/core/base/errors.ts";
import { createLcm } from "../../src/core/lcm.ts";
import type { ConversationId } from "../../src/core/model/types.ts";
import type { Store } from "../../src/core/model/store.ts";
import { resolveSettings } from "../../src/core/model/settings.ts";
import type { Timestamp } from "../../src/core/base/time.ts";
import { openPostgres } from "../../src/store/postgres/store.ts";
import { summary } from "../store-contract/ground.ts";
import { createRandom } from "../support/random.ts";
import { turnWithTool } from "../support/scripted-host.ts";
import { untilAnswered } from "../support/until-answered.ts";

export interface WorkOrders {
  readonly url: string;
  readonly filesDir: string;
  readonly worker: number;
  readonly seconds: number;
}

/** What a worker reports: a turn that is stored, or its figures at the end. */
export type Report =
  | { readonly stored: string; readonly session: string }
  | { readonly done: Readonly<Record<string, number>> };

export const sharedSession = "shared";
export const ownSession = (worker: number): string => `own ${worker}`;
export const messagesPerTurn = 4;
export const keyOf = (name: string, turn: number, place: number): string => `${name}/${turn}/${place}`;
export const wordOf = (name: string, turn: number): string => `w${name.replaceAll(" ", "x")}n${turn}q`;

const weights = { appendOwn: 8, appendShared: 3, fold: 4, rewrite: 2, undo: 2, search: 3, read: 3, record: 2 } as const;

async function work({ url, filesDir, worker, seconds }: WorkOrders): Promise<void> {
  const store = await untilAnswered(async () => await openPostgres({ url, filesDir, connectionsMax: 2 }));
  const random = createRandom(worker + 1);
  const figures: Record<string, number> = {};
  const count = (name: string): void => void (figures[name] = (figures[name] ?? 0) + 1);
  const tell = (report: Report): void => void writeSync(1, `${JSON.stringify(report)}\n`);
  const lcm = createLcm({
    store,
    clock: { now: () => new Date().toISOString() as Timestamp },
    settings: resolveSettings({ env: {}, config: {} }).values,
  });
  const idOf = async (sessionId: string): Promise<ConversationId> =>
    (await untilAnswered(async () => await store.open({ sessionId }))).id;
  const own = await idOf(ownSession(worker));
  const shared = await idOf(sharedSession);
  const turns = { own: 0, shared: 0 };
  const changes: number[] = [];

  const append = async (kind: "own" | "shared"): Promise<void> => {
    const name = `${kind} ${worker}`;
    const turn = turns[kind]++;
    const messages = turnWithTool(`call-${name}-${turn}`, `${name} asks ${wordOf(name, turn)}`, `answer ${turn}`);
    const at = "2026-02-17T07:37:00.000Z" as Timestamp;
    const items = messages.map(
      (message, place) => ({ kind: "message", message, key: keyOf(name, turn, place), at }) as const,
    );
    await untilAnswered(
      async () => await lcm.ingest(kind === "own" ? own : shared, items, { turnKey: `${name} ${turn}` }),
    );
    tell({ stored: `${name} ${turn}`, session: kind === "own" ? ownSession(worker) : sharedSession });
  };
  const steps = {
    appendOwn: async () => await append("own"),
    appendShared: async () => await append("shared"),
    async fold() {
      const run = await store.context(own, { kind: "message", limit: random.between(4, 10) });
      const [first, last] = [run[0]?.ordinal ?? 0, run.at(-1)?.ordinal ?? 0];
      if (run.length < 4 || last - first !== run.length - 1) return count("nothing to fold");
      const folded = await store.fold(own, run, summary(`a summary of ${run.length} by ${worker}`));
      count(`fold ${folded.kind}`);
    },
    async rewrite() {
      const [item] = await store.context(own, { kind: "summary", limit: 1, keep: "newest" });
      const [known] = item?.kind === "summary" ? await store.summaries({ ids: [item.id] }) : [];
      if (known === undefined) return count("nothing to rewrite");
      const plan = { summary: known.id, revision: known.revision };
      const rewritten = await store.rewrite(plan, summary(`${known.text}, again`));
      count(`rewrite ${rewritten.kind}`);
      if (rewritten.kind === "written") changes.push(rewritten.change);
    },
    async undo() {
      const change = changes.pop();
      if (change === undefined) return count("nothing to undo");
      count(`undo ${(await store.undo(change)).kind}`);
    },
    async search() {
      if (turns.own === 0) return;
      await checkFound(store, own, wordOf(`own ${worker}`, random.below(turns.own)));
      count("search found");
    },
    async read() {
      const messages = await store.messages({ conversation: own });
      assert.equal(messages.length, turns.own * messagesPerTurn, "a reader sees what was acknowledged");
      count("read");
    },
    async record() {
      const fields = { mode: "sweep", outcome: "settled", message: "", asked: false } as const;
      const at = new Date().toISOString() as Timestamp;
      const numbers = { passes: 0, tokensBefore: 0, tokensAfter: 0, durationMs: 0 };
      await store.recordCompaction({ conversation: own, at, ...fields, ...numbers });
      count("recorded");
    },
  };
  const until = performance.now() + seconds * 1_000;
  while (performance.now() < until) {
    const name = random.weighted(weights);
    try {
      await steps[name]();
    } catch (error) {
      if (!(error instanceof LcmError && error.code === "unavailable")) throw error;
      count(`${name} unavailable`);
    }
    await sleep(random.below(60));
  }
  figures["turns of its own"] = turns.own;
  figures["turns shared"] = turns.shared;
  tell({ done: figures });
  await untilAnswered(async () => await store.index(1)).catch(() => undefined);
  await store.close();
}

async function checkFound(store: Store, conversation: ConversationId, word: string): Promise<void> {
  const request = { pattern: word, mode: "full_text", scope: "messages", sort: "recency", limit: 5 } as const;
  const { hits, caveats } = await store.search({ ...request, conversations: [conversation] });
  assert.ok(hits.length > 0, `${word} is found; caveats ${JSON.stringify(caveats)}`);
}

const [, self, given] = process.argv;
if (given !== undefined && self !== undefined && import.meta.filename === self)
  await work(JSON.parse(given) as WorkOrders);
