/**
 * Simulates one seed's world: hosts, rivals and operators that all work on one store. Hosts crash, rewind and repeat
 * themselves, rivals fold from outdated reads, operators dissolve, rewrite and transplant. The hosts' own lists define
 * what must be stored. Everything random comes from the seed.
 */

import assert from "node:assert/strict";
import { restoreMessage } from "../../src/core/ingest/large-content.ts";
import type { ContextItem, ConversationId, NewSummary } from "../../src/core/model/types.ts";
import type { AppendOptions, DissolvePlan, RewritePlan, Store } from "../../src/core/model/store.ts";
import { rowSteps, writes } from "../../src/store/operations.ts";
import { indexBatch } from "../../src/store/search/indexing.ts";
import type { Script } from "../../src/store/script.ts";
import { checkLossless, flattened } from "../support/lossless.ts";
import type { HostList } from "../support/lossless.ts";
import { createRandom } from "../support/random.ts";
import type { Random } from "../support/random.ts";
import { createHost, toAppendable, toIncoming } from "../support/scripted-host.ts";
import type { ScriptedHost } from "../support/scripted-host.ts";
import type { SimulatedStore } from "./database.ts";
import { createEngine } from "./engine.ts";
import type { Engine } from "./engine.ts";
import { brokenOff } from "./interruption.ts";
import { aTurn } from "./turns.ts";
import type { JsonObject } from "../../src/core/base/json.ts";
import { forgottenMark } from "../../src/core/model/types.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

/** A segment of a session: our conversation, and the host's own file of it. */
interface Segment {
  readonly conversation: ConversationId;
  readonly session: { readonly sessionId: string; readonly sessionKey: string };
  readonly host: ScriptedHost;
  /** How much of the host's file has been sent. What comes after was written while we were down. */
  delivered: number;
  inherited: readonly JsonObject[];
}

/** A planned change, from a context that may be gone by the time it is made. */
type Plan =
  | {
      readonly kind: "fold";
      readonly conversation: ConversationId;
      readonly run: readonly ContextItem[];
      readonly summary: NewSummary;
    }
  | { readonly kind: "dissolve"; readonly plan: DissolvePlan }
  | {
      readonly kind: "rewrite";
      readonly plan: RewritePlan;
      readonly conversation: ConversationId;
      readonly summary: NewSummary;
    };

const weights = {
  turn: 20,
  busyDay: 4,
  unheardTurn: 3,
  bootstrap: 4,
  replay: 6,
  rewind: 5,
  plan: 14,
  carryOut: 14,
  transplant: 7,
  compact: 10,
  assemble: 8,
  reset: 1,
  newSession: 1.5,
  index: 4,
  search: 5,
  interrupt: 6,
  crash: 1.5,
  reopen: 1,
  forget: 0.7,
} as const;

/** A summary of something forgotten needs another text, and one made without a good answer needs a better one. */
const expected = ["summary_outdated", "summary_below_normal", "summary_too_long"] as const;

export type Step = keyof typeof weights;
export type Tally = Record<string, number>;

export interface Life {
  /** What has happened so far, a line each. */
  readonly log: readonly string[];
  readonly tally: Tally;
  step(): Promise<void>;
  /** Everything, including the file. */
  check(): Promise<void>;
  end(): Promise<void>;
}

export async function createLife(simulated: SimulatedStore, seed: number, folder: string): Promise<Life> {
  const random = createRandom(seed);
  const log: string[] = [];
  const tally: Tally = {};
  const count = (name: string): void => void (tally[name] = (tally[name] ?? 0) + 1);
  const segments: Segment[] = [];
  const plans: Plan[] = [];
  let words = 0;
  let clockMs = Date.UTC(2026, 10, 15);
  const outside = {
    now: (): Timestamp => new Date((clockMs += 7)).toISOString() as Timestamp,
    hex16: () => random.hex16(),
  };
  const database = await simulated.begin(folder, outside);
  const { searchIndex } = database;
  const deps = { ...outside, leftovers: database.leftovers };
  const reach = async (): Promise<Store> => await database.open();
  /** Two connections, as of a gateway and an operator; each step uses one of them. */
  let stores = [await reach(), await reach()] as const;
  let store = stores[0];
  const engineOf = (): Engine => createEngine(store, random, deps.now, count);

  const closeAll = async (): Promise<void> => {
    for (const each of stores) await each.close();
  };
  const reachAgain = async (): Promise<void> => {
    stores = [await reach(), await reach()];
    store = stores[0];
  };

  /** Prefers an old one to a new one, so that some grow long. */
  const aSegment = (): Segment =>
    segments[Math.min(random.below(segments.length), random.below(segments.length))] as Segment;
  const forgotten: string[] = [];
  /** What is left of something once these words are forgotten. */
  const asLeft = <T extends JsonObject>(raw: T): T =>
    forgotten.length === 0
      ? raw
      : (JSON.parse(
          JSON.stringify(raw).replace(/word\d+x\d+q/g, (word) => (forgotten.includes(word) ? forgottenMark : word)),
        ) as T);
  const listOf = ({ conversation, host, delivered, inherited }: Segment): HostList => ({
    conversation,
    entries: host.entries.slice(0, delivered).map((entry) => ({ ...entry, raw: asLeft(entry.raw) })),
    inherited: inherited.map(asLeft),
  });

  // ── What hosts do ──────────────────────────────────────────────────────────────────────────────────────────────────

  const openSession = async (name: string): Promise<Segment> => {
    const session = { sessionId: name, sessionKey: `agent:main:${name}` };
    const { id } = await store.open(session);
    const segment = { conversation: id, session, host: createHost(`${name}.0`), delivered: 0, inherited: [] };
    segments.push(segment);
    return segment;
  };

  const liveTurn = (host: ScriptedHost): void => {
    for (let spoken = random.between(1, 2); spoken > 0; spoken--)
      for (const raw of aTurn(random, () => `word${seed}x${++words}q`)) host.says(raw);
    if (random.chance(0.2)) host.notes(random.pick(["model_change", "custom", "label"]), { n: random.below(5) });
  };

  const handOver = async (segment: Segment, from: number, upto: number, options?: AppendOptions): Promise<string> => {
    const before = segment.delivered;
    const items = segment.host.entries.slice(from, upto);
    const appended = await engineOf().lcm.ingest(segment.conversation, items.map(toIncoming), options);
    segment.delivered = Math.max(before, upto);
    const fresh = segment.host.entries.slice(before, segment.delivered);
    assert.equal(appended.messages.length, fresh.filter(({ kind }) => kind === "message").length, "new messages");
    assert.equal(appended.entries, fresh.filter(({ kind }) => kind === "entry").length, "new lines");
    const forgot = new Set(
      items.filter(({ raw }) => JSON.stringify(asLeft(raw)) !== JSON.stringify(raw)).map(({ key }) => key),
    );
    assert.deepEqual(
      appended.differing.filter((key) => !forgot.has(key)),
      [],
      "nothing came with different content",
    );
    const { hostCursor } = (await store.conversation(segment.conversation)) ?? {};
    if (options?.hostCursor !== undefined) assert.equal(hostCursor, options.hostCursor);
    return `${from}–${upto} to ${segment.conversation}, ${appended.messages.length} new`;
  };

  // ── What planners do ───────────────────────────────────────────────────────────────────────────────────────────────

  const aSummary = (below: number): NewSummary => ({
    text: `summary word${seed}x${++words}q`,
    tokens: random.below(Math.max(1, Math.min(below, 40))),
    level: random.pick(["normal", "aggressive", "extractive"]),
    model: null,
    previousContext: null,
    fileIds: [],
  });

  const makePlan = async (): Promise<string> => {
    const { conversation } = aSegment();
    const context = await store.context(conversation);
    const summaries = context.flatMap((item) => (item.kind === "summary" ? [item] : []));
    const kind = summaries.length === 0 ? "fold" : random.weighted({ fold: 6, dissolve: 2, rewrite: 2 });
    if (kind === "fold") {
      const start = random.below(context.length);
      const depth = context[start]?.depth;
      let end = start;
      while (end < context.length && context[end]?.depth === depth) end++;
      const run = context.slice(start, Math.min(end, start + random.between(1, 8)));
      if (run.length === 0) return "nothing to plan";
      const tokens = run.reduce((sum, item) => sum + item.tokens, 0);
      if (tokens === 0) return "a run that cannot be shortened";
      plans.push({ kind, conversation, run, summary: aSummary(tokens) });
      const within = run.slice(random.below(run.length));
      const left = within.reduce((sum, item) => sum + item.tokens, 0);
      if (hasRival() && left > 0) plans.push({ kind, conversation, run: within, summary: aSummary(left) });
      return `fold of ${run.length} in ${conversation}`;
    }
    const chosen = random.pick(summaries);
    const [known] = await store.summaries({ ids: [chosen.id] });
    const isCarried = typeof known?.carriedFrom === "string";
    if (kind === "dissolve" && isCarried) return `${chosen.id} was carried over: there is nothing to dissolve it into`;
    for (let planners = hasRival() ? 2 : 1; planners > 0; planners--) {
      if (kind === "dissolve")
        plans.push({ kind, plan: { conversation, summary: chosen.id, ordinal: chosen.ordinal } });
      else
        plans.push({
          kind,
          conversation,
          plan: { summary: chosen.id, revision: known?.revision ?? 0 },
          summary: aSummary(60),
        });
    }
    return `${kind} of ${chosen.id} in ${conversation}`;
  };

  /** Another planner who saw the same, and decided the same. */
  const hasRival = (): boolean => random.chance(0.4);

  const takePlan = (): Plan | undefined => plans.splice(random.below(plans.length), 1)[0];

  const carryOut = async (): Promise<string> => {
    const plan = takePlan();
    if (plan === undefined) return "nothing planned";
    const fits = await stillFits(plan);
    const outcome = await (async () => {
      switch (plan.kind) {
        case "fold":
          return await store.fold(plan.conversation, plan.run, plan.summary);
        case "dissolve":
          return await store.dissolve(plan.plan);
        case "rewrite":
          return await store.rewrite(plan.plan, plan.summary);
      }
    })();
    assert.equal(
      outcome.kind,
      fits ? "written" : "stale",
      `a ${plan.kind} whose plan ${fits ? "fits" : "no longer fits"}`,
    );
    count(`${plan.kind} ${outcome.kind}`);
    return `${plan.kind} ${outcome.kind}`;
  };

  /** Whether what the planner saw is still current. */
  const stillFits = async (plan: Plan): Promise<boolean> => {
    switch (plan.kind) {
      case "fold": {
        const context = await store.context(plan.conversation);
        const start = context.findIndex(({ id }) => id === plan.run[0]?.id);
        const now = context.slice(start, start + plan.run.length);
        const isWhole =
          start >= 0 &&
          plan.run.every(({ id, tokens }, place) => now[place]?.id === id && now[place].tokens === tokens);
        // Moved by a dissolve, a run counts as gone although it is still whole: planning again costs little.
        return isWhole && now[0]?.ordinal === plan.run[0]?.ordinal && now.at(-1)?.ordinal === plan.run.at(-1)?.ordinal;
      }
      case "dissolve": {
        const { conversation, summary, ordinal } = plan.plan;
        return (await store.context(conversation)).some((item) => item.id === summary && item.ordinal === ordinal);
      }
      case "rewrite":
        return (await store.summaries({ ids: [plan.plan.summary] }))[0]?.revision === plan.plan.revision;
    }
  };

  let lastTransplant: readonly [Segment, Segment];
  const transplant = async (): Promise<string> => {
    const [source, target] = random.chance(0.3) ? lastTransplant : [aSegment(), aSegment()];
    lastTransplant = [source, target];
    if (source === target) {
      await assert.rejects(
        store.transplant({ source: source.conversation, target: target.conversation }),
        /into itself/,
      );
      return "into itself, refused";
    }
    await checkLossless(store, [listOf(source)], { wholeFile: false, expected });
    const folded = (await store.context(source.conversation)).filter(({ kind }) => kind === "summary");
    const below = await flattenedItems(store, folded);
    const outcome = await store.transplant({ source: source.conversation, target: target.conversation });
    count(`transplant ${outcome.kind}`);
    if (outcome.kind === "written") {
      assert.equal(outcome.messages, below.length, "each message below is copied once");
      target.inherited = [...below, ...target.inherited];
    } else assert.ok(outcome.kind === "duplicate" || folded.length === 0, "everything transplantable is transplanted");
    return `${source.conversation} → ${target.conversation} ${outcome.kind}`;
  };

  // ── What goes wrong ────────────────────────────────────────────────────────────────────────────────────────────────

  /** A write that is interrupted between two of its statements leaves nothing behind. */
  const interrupt = async (): Promise<string> => {
    const segment = aSegment();
    const before = await database.picture();
    const { name, script } = await anyScript(segment);
    const after = random.between(0, 30);
    let wasWhole = false;
    await database.breakOff(() =>
      brokenOff(script, after, () => {
        wasWhole = true;
      }),
    );
    const left = differenceOf(before, await database.picture());
    assert.equal(left, "", `a ${name} interrupted after ${after} statements has left something behind`);
    count(wasWhole ? "broken off before commit" : "broken off between statements");
    return `${name} after ${after} statements`;
  };

  /** An interrupted version of a step that would have been made. */
  const anyScript = async (segment: Segment): Promise<{ readonly name: string; readonly script: Script<unknown> }> => {
    const plan = random.chance(0.5) ? takePlan() : undefined;
    switch (plan?.kind) {
      case "fold":
        return { name: "fold", script: writes.fold(deps, plan.conversation, plan.run, plan.summary) };
      case "dissolve":
        return { name: "dissolve", script: writes.dissolve(deps, plan.plan) };
      case "rewrite":
        return { name: "rewrite", script: writes.rewrite(deps, plan.plan, plan.summary) };
      case undefined:
    }
    const other = aSegment();
    if (other !== segment && random.chance(0.3))
      return {
        name: "transplant",
        script: writes.transplant(deps, { source: other.conversation, target: segment.conversation }),
      };
    if (random.chance(0.2)) return { name: "index", script: indexBatch(searchIndex, 64) };
    if (random.chance(0.1)) {
      const carried = random.chance(0.5) ? { carryDepth: random.below(3) } : {};
      return { name: "reset", script: writes.openSegment(deps, segment.session, carried) };
    }
    const word = random.chance(0.2) ? aStoredWord(segment) : null;
    if (word !== null) {
      const plan = await store.planForget(null, { kind: "secret", text: word });
      return { name: "forget", script: rowSteps.forget(deps, null, plan) };
    }
    // The host has the turn in its file; a later bootstrap brings it.
    if (random.chance(0.4)) goBack(segment);
    liveTurn(segment.host);
    const unheard = segment.host.entries.slice(segment.delivered).map(toAppendable);
    return {
      name: "append",
      script: writes.append(deps, segment.conversation, unheard, { hostCursor: "never", turnKey: "never" }),
    };
  };

  const aStoredWord = ({ host, delivered }: Segment): string | null => {
    const stored = JSON.stringify(host.entries.slice(0, delivered)).match(/word\d+x\d+q/g);
    return stored === null ? null : random.pick(stored);
  };

  const goBack = ({ host }: Segment): string => {
    if (host.entries.length === 0) return "nowhere";
    const { key } = random.pick(host.entries);
    host.goesBackTo(key);
    return key;
  };

  /** Opened again as a power cut would leave it; nothing closes cleanly. */
  const crash = async (): Promise<string> => {
    const told = await database.crash();
    await closeAll();
    await reachAgain();
    return told;
  };

  const revisions = new Map<ConversationId, number>();
  /** Segments that a step has written to; all of them are checked at the end. */
  const changed = async (): Promise<readonly Segment[]> => {
    const moved = (await store.conversations()).filter(({ id, revision }) => revisions.get(id) !== revision);
    for (const { id, revision } of moved) revisions.set(id, revision);
    return segments.filter(({ conversation }) => moved.some(({ id }) => id === conversation));
  };

  // ── A step ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  const steps: Readonly<Record<Step, () => Promise<string>>> = {
    async turn() {
      const segment = aSegment();
      liveTurn(segment.host);
      const upto = segment.host.entries.length;
      const turnKey = `turn ${upto}`;
      const told = await handOver(segment, segment.delivered, upto, { hostCursor: String(upto), turnKey });
      if (random.chance(0.2))
        assert.equal((await store.append(segment.conversation, [], { turnKey })).turn, "duplicate");
      return told;
    },
    async busyDay() {
      const segment = aSegment();
      for (let turns = random.between(5, 20); turns > 0; turns--) liveTurn(segment.host);
      return await handOver(segment, segment.delivered, segment.host.entries.length);
    },
    async unheardTurn() {
      const segment = aSegment();
      liveTurn(segment.host);
      return `in ${segment.conversation}`;
    },
    /** The whole file again, in chunks of any size. */
    async bootstrap() {
      const segment = aSegment();
      const all = segment.host.entries.length;
      for (let from = 0; from < all;) {
        const upto = Math.min(all, from + random.between(1, 40));
        await handOver(segment, random.between(0, Math.min(from, segment.delivered)), upto);
        from = upto;
      }
      return `of ${segment.conversation}`;
    },
    async replay() {
      const segment = aSegment();
      const known = segment.host.entries.slice(0, segment.delivered);
      const pieces = Array.from({ length: random.between(1, 3) }, () => {
        const from = random.below(known.length + 1);
        return known.slice(from, from + random.below(30));
      });
      const items = random.chance(0.5) ? pieces.flat() : random.shuffled(pieces.flat());
      const again = await engineOf().lcm.ingest(segment.conversation, items.map(toIncoming));
      assert.deepEqual([again.messages, again.entries, again.duplicates], [[], 0, items.length]);
      return `of ${items.length} in ${segment.conversation}`;
    },
    async rewind() {
      const segment = aSegment();
      const to = goBack(segment);
      liveTurn(segment.host);
      return `to ${to}: ${await handOver(segment, segment.delivered, segment.host.entries.length)}`;
    },
    plan: makePlan,
    carryOut,
    transplant,
    async compact() {
      const told: string[] = [];
      const meanwhile = async (): Promise<void> => {
        const name = random.pick(["turn", "rewind", "carryOut", "plan", "index"] as const);
        told.push(`${name} ${await steps[name]()}`);
      };
      const outcome = await engineOf().compact(aSegment().conversation, meanwhile);
      if (told.length > 0) count("life while the model thinks");
      return [outcome, ...told].join("; meanwhile ");
    },
    async assemble() {
      return await engineOf().assemble(aSegment().conversation);
    },
    async reset() {
      const { session } = aSegment();
      const carried = random.chance(0.5) ? { carryDepth: random.below(3) } : {};
      const { id } = await store.openSegment(session, carried);
      const host = createHost(`${session.sessionId}.${segments.length}`);
      segments.push({ conversation: id, session, host, delivered: 0, inherited: [] });
      const family = await store.conversations({ familyOf: id });
      assert.equal(family.length, segments.filter((each) => each.session.sessionKey === session.sessionKey).length);
      assert.deepEqual(
        family.filter(({ active }) => active).map((each) => each.id),
        [id],
      );
      return `${session.sessionId}, now ${id}`;
    },
    async newSession() {
      return `${(await openSession(`s${segments.length}`)).conversation}`;
    },
    async index() {
      return `${await store.index(random.between(1, 60))} left`;
    },
    async search() {
      return await searchFor(segments, store, random, forgotten);
    },
    interrupt,
    crash,
    async reopen() {
      await closeAll();
      await reachAgain();
      return "it";
    },
    async forget() {
      const word = aStoredWord(aSegment());
      if (word === null) return "nothing said yet";
      const plan = await store.planForget(null, { kind: "secret", text: word });
      const outcome = await store.forget(null, plan);
      assert.equal(outcome.kind, "written");
      forgotten.push(word);
      return `${word} in ${plan.messages.length} messages and ${plan.summaries.length} summaries`;
    },
  };

  const first = await openSession("s0");
  lastTransplant = [first, first];
  return {
    log,
    tally,
    async step() {
      const name = random.weighted(weights);
      log.push(name);
      count(name);
      store = random.pick(stores);
      const told = await steps[name]();
      log[log.length - 1] = `${name} ${told}`;
      await checkLossless(store, (await changed()).map(listOf), { wholeFile: false, expected });
    },
    async check() {
      await checkLossless(store, segments.map(listOf), { expected });
    },
    async end() {
      await closeAll();
      await database.end();
    },
  };
}

async function flattenedItems(store: Store, folded: readonly ContextItem[]): Promise<readonly JsonObject[]> {
  const conversation = folded[0] === undefined ? null : await ownerOf(store, folded[0]);
  if (conversation === null) return [];
  const wanted = new Set(folded.map(({ id }) => id));
  const all = await flattened(store, conversation);
  const below: JsonObject[] = [];
  for (const message of all) {
    const above = await store.coveredBy(message.id);
    if (above.some((id) => wanted.has(id))) below.push(await restoreMessage(store, message));
  }
  return below;
}

async function ownerOf(store: Store, item: ContextItem): Promise<ConversationId | null> {
  return item.kind === "summary" ? ((await store.summaries({ ids: [item.id] }))[0]?.conversation ?? null) : null;
}

/** A word that one host has said once is found in its message, by words and by expression. */
async function searchFor(
  segments: readonly Segment[],
  store: Store,
  random: Random,
  forgotten: readonly string[],
): Promise<string> {
  const { host, conversation, delivered } = random.pick(segments);
  const said = host.entries.slice(0, delivered).flatMap((entry) => {
    const [word] = /word\d+x\d+q/.exec(JSON.stringify(entry.raw)) ?? [];
    return entry.kind === "message" && word !== undefined && !forgotten.includes(word)
      ? [{ key: entry.key, word }]
      : [];
  });
  if (said.length === 0) return "nothing said yet";
  const { key, word } = random.pick(said);
  const mode = random.pick(["regex", "full_text"] as const);
  const pattern = mode === "regex" ? `\\b${word}\\b` : word;
  const scoped = random.chance(0.5) ? { conversations: [conversation] } : {};
  const sort = random.pick(["recency", "relevance", "hybrid"] as const);
  const { hits, caveats } = await store.search({ pattern, mode, scope: "messages", sort, limit: 200, ...scoped });
  const found = await store.messages({ ids: hits.flatMap((hit) => (hit.kind === "message" ? [hit.id] : [])) });
  assert.ok(
    found.some((message) => message.key === key && message.conversation === conversation),
    `${mode} ${sort} search finds ${word}, said in ${key}; caveats ${JSON.stringify(caveats)}`,
  );
  return `${mode} ${sort} ${word}`;
}

/** Where two texts begin to differ, and a little of both; nothing if they are the same. */
function differenceOf(one: string, other: string): string {
  if (one === other) return "";
  let at = 0;
  while (one[at] === other[at]) at += 1;
  return [one, other].map((text) => text.slice(Math.max(0, at - 300), at + 300)).join("\n→ ");
}
