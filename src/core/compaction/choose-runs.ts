/**
 * Which runs to fold next. Pure: from items of a context and the rules to runs, so that a plan can be printed, tested
 * and thrown away. Nothing here knows a store, a model or a text.
 *
 * A leaf run is raw messages outside the fresh tail; it never separates a tool call from its result. A condensed run is
 * summaries of one depth that stand side by side.
 */

import type { ContextItem } from "../model/types.ts";
import { safeCuts } from "../messages/tool-calls.ts";
import type { Ties } from "../messages/tool-calls.ts";
import type { Targets } from "../summarize/source.ts";
import type { Settings } from "../model/settings.ts";
import { sumTokens } from "../base/tokens.ts";

export interface Rules extends Targets {
  readonly freshTailCount: number;
  /** The most source tokens of one pass, unless one call with its results is longer. */
  readonly chunkTokens: number;
  /** A shorter raw run is not worth a summary yet. */
  readonly leafMinTokens: number;
  /** Summaries of one depth in a row that make one above: of leaves, and of condensed ones. */
  readonly leafFanout: number;
  readonly condensedFanout: number;
  /** The deepest summary that may be made. */
  readonly depthMax: number;
}

/** A forced sweep takes short runs too, and the lowest fanout. In a small window summaries are short. */
export function rulesOf(settings: Settings, force: boolean, budget = Number.POSITIVE_INFINITY): Rules {
  const { condensedMinFanoutHard, leafChunkTokens } = settings;
  const targetMax = Math.max(targetTokensMin, Math.floor(budget / summariesPerBudget));
  const leafTargetTokens = Math.min(settings.leafTargetTokens, targetMax);
  return {
    freshTailCount: settings.freshTailCount,
    chunkTokens: leafChunkTokens,
    leafMinTokens: force ? 0 : Math.min(2 * leafTargetTokens, leafChunkTokens),
    leafFanout: force ? condensedMinFanoutHard : settings.leafMinFanout,
    condensedFanout: force ? condensedMinFanoutHard : settings.condensedMinFanout,
    depthMax: Number.POSITIVE_INFINITY,
    leafTargetTokens,
    condensedTargetTokens: Math.min(settings.condensedTargetTokens, targetMax),
  };
}

/** A prompt should hold at least this many summaries. */
const summariesPerBudget = 10;
/** Less says nothing, whatever the settings are. */
const targetTokensMin = 100;
/** Less cannot be made shorter by a summary and what stands around it. */
const chunkTokensMin = 1_000;

/** Forced, and with figures that can always shorten something: the way out of an overflow. */
export function strictRules(settings: Settings, budget: number): Rules {
  const rules = rulesOf(settings, true, budget);
  return {
    ...rules,
    chunkTokens: Math.max(rules.chunkTokens, chunkTokensMin),
    leafTargetTokens: Math.max(rules.leafTargetTokens, targetTokensMin),
    condensedTargetTokens: Math.max(rules.condensedTargetTokens, targetTokensMin),
  };
}

/** What may be made between turns. */
export const depthMaxBetweenTurns = ({ incrementalMaxDepth }: Settings): number =>
  incrementalMaxDepth === -1 ? Number.POSITIVE_INFINITY : incrementalMaxDepth;

// ── Leaves ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A raw message that could be folded, and what ties it to others. */
export interface Candidate {
  readonly tokens: number;
  readonly ties: Ties;
}

/** Which end of the candidates a run is taken from, and whether there are more beyond the other. */
export interface Stretch {
  readonly from: "oldest" | "newest";
  readonly isMore: boolean;
}

/**
 * The run to fold next, as a range of these neighbours; null when they are too few tokens to be worth it. It is the
 * longest one at the chosen end that fits the chunk, or else the shortest that is worth it and separates nothing.
 */
export function leafRun(
  candidates: readonly Candidate[],
  stretch: Stretch,
  rules: Rules,
): readonly [from: number, to: number] | null {
  const sums = prefixSums(candidates.map(({ tokens }) => tokens));
  const all = candidates.length;
  const { isMore } = stretch;
  const near = stretch.from === "oldest" ? 0 : all;
  const far = all - near;
  const rangeTo = (cut: number): readonly [number, number] => [Math.min(near, cut), Math.max(near, cut)];
  const tokensTo = (cut: number): number => Math.abs((sums[cut] ?? 0) - (sums[near] ?? 0));
  // The far end may cut a pair that is not seen from here, if there is more beyond it: then it is a last resort.
  const cuts = safeCuts(candidates.map(({ ties }) => ties)).filter((cut) => cut !== near && (cut !== far || !isMore));
  const fromNear = stretch.from === "oldest" ? cuts : cuts.toReversed();
  const worthwhile = fromNear.filter((cut) => tokensTo(cut) >= rules.leafMinTokens);
  const chosen = worthwhile.findLast((cut) => tokensTo(cut) <= rules.chunkTokens) ?? worthwhile[0];
  if (chosen !== undefined) return rangeTo(chosen);
  return isMore && all > 0 ? rangeTo(far) : null;
}

function prefixSums(values: readonly number[]): readonly number[] {
  let sum = 0;
  return [0, ...values.map((value) => (sum += value))];
}

// ── Condensing ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** Every run of the shallowest depth that has one, oldest first; they do not overlap and can be folded side by side. */
export function condensedRuns(
  context: readonly ContextItem[],
  rules: Rules,
  isLeftAlone: (run: readonly ContextItem[]) => boolean = () => false,
): readonly (readonly ContextItem[])[] {
  const stretches = equalDepthStretches(context);
  const depths = [...new Set(stretches.map((stretch) => stretch.depth))].toSorted((a, b) => a - b);
  for (const depth of depths) {
    if (depth + 1 > rules.depthMax) break;
    const fanout = depth === 0 ? rules.leafFanout : rules.condensedFanout;
    const runs = stretches
      .filter((stretch) => stretch.depth === depth)
      .flatMap(({ items }) => cutIntoRuns(items, fanout, rules.chunkTokens))
      .filter((run) => !isLeftAlone(run));
    if (runs.length > 0) return runs;
  }
  return [];
}

interface EqualDepth {
  readonly depth: number;
  readonly items: ContextItem[];
}

function equalDepthStretches(context: readonly ContextItem[]): readonly EqualDepth[] {
  const stretches: EqualDepth[] = [];
  let depthBefore: number | null = null;
  for (const item of context) {
    const depth = item.kind === "summary" ? item.depth : null;
    if (depth !== null && depth === depthBefore) stretches.at(-1)?.items.push(item);
    else if (depth !== null) stretches.push({ depth, items: [item] });
    depthBefore = depth;
  }
  return stretches;
}

/** Runs of at least `fanout`, longer while they fit the chunk. What is left over waits for its neighbours. */
function cutIntoRuns(
  items: readonly ContextItem[],
  fanout: number,
  chunkTokens: number,
): readonly (readonly ContextItem[])[] {
  const runs: (readonly ContextItem[])[] = [];
  for (let from = 0; items.length - from >= fanout;) {
    let to = from + fanout;
    let tokens = sumTokens(items.slice(from, to));
    for (let next = items[to]; next !== undefined && tokens + next.tokens <= chunkTokens; next = items[to]) {
      tokens += next.tokens;
      to += 1;
    }
    runs.push(items.slice(from, to));
    from = to;
  }
  return runs;
}
