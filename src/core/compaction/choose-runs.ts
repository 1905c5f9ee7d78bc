/**
 * Chooses which runs of a context to fold next. Pure: no store, model or text.
 * A leaf run is raw messages outside the fresh tail; it never separates a tool call from its result. A condensed run is
 * adjacent summaries of one depth.
 */

import type { ContextItem } from "../model/types.ts";
import { safeCuts, type Ties } from "../messages/tool-calls.ts";
import type { Targets } from "../summarize/source.ts";
import type { Settings } from "../model/settings.ts";
import { sumTokens } from "../base/tokens.ts";

export interface Rules extends Targets {
  readonly freshTailCount: number;
  /** Most source tokens per pass, unless a single call with its results is longer. */
  readonly chunkTokens: number;
  /** A condensed run is longer than its fanout as long as it fits into this. */
  readonly condensedChunkTokens: number;
  /** Raw runs below this are not worth a summary yet. */
  readonly leafMinTokens: number;
  /** How many adjacent summaries of one depth are condensed together: leaves, and condensed ones. */
  readonly leafFanout: number;
  readonly condensedFanout: number;
  /** Depth of the deepest summary that may be made. */
  readonly depthMax: number;
}

/** A forced sweep takes short runs too, with the lowest fanout. A small budget gets short summaries. */
export function rulesOf(settings: Settings, force: boolean, budget = Number.POSITIVE_INFINITY): Rules {
  const { condensedMinFanoutHard, leafChunkTokens } = settings;
  const targetMax = Math.max(targetTokensMin, Math.floor(budget / summariesPerBudget));
  const leafTargetTokens = Math.min(settings.leafTargetTokens, targetMax);
  return {
    freshTailCount: settings.freshTailCount,
    chunkTokens: leafChunkTokens,
    condensedChunkTokens: leafChunkTokens,
    leafMinTokens: force ? 0 : Math.min(2 * leafTargetTokens, leafChunkTokens),
    leafFanout: force ? condensedMinFanoutHard : settings.leafMinFanout,
    condensedFanout: force ? condensedMinFanoutHard : settings.condensedMinFanout,
    depthMax: Number.POSITIVE_INFINITY,
    leafTargetTokens,
    condensedTargetTokens: Math.min(settings.condensedTargetTokens, targetMax),
  };
}

/** A prompt should have room for at least this many summaries. */
const summariesPerBudget = 10;
/** Shorter summaries carry no information, whatever the settings are. */
const targetTokensMin = 100;
/** A summary and its wrapper cannot be shorter than a smaller chunk. */
const chunkTokensMin = 1_000;

/** Forced rules with limits that can always shorten something: for overflows. */
export function strictRules(settings: Settings, budget: number): Rules {
  const rules = rulesOf(settings, true, budget);
  return {
    ...rules,
    chunkTokens: Math.max(rules.chunkTokens, chunkTokensMin),
    condensedChunkTokens: Math.max(rules.condensedChunkTokens, chunkTokensMin),
    leafTargetTokens: Math.max(rules.leafTargetTokens, targetTokensMin),
    condensedTargetTokens: Math.max(rules.condensedTargetTokens, targetTokensMin),
  };
}

/** A raw message that could be folded, and its calls and results. */
export interface Candidate {
  readonly tokens: number;
  readonly ties: Ties;
}

/** The end at which folding starts. */
export type End = "oldest" | "newest";

/**
 * The run to fold next, as a range of adjacent candidates; null if they have too few tokens. It is the longest one at
 * the given end that fits the chunk, or else the shortest that is worth folding and separates nothing. `isMore`: there
 * are more raw messages beyond the other end.
 */
export function leafRun(
  candidates: readonly Candidate[],
  { from, isMore }: { readonly from: End; readonly isMore: boolean },
  rules: Rules,
): readonly [from: number, to: number] | null {
  const sums = prefixSums(candidates.map(({ tokens }) => tokens));
  const all = candidates.length;
  const near = from === "oldest" ? 0 : all;
  const far = all - near;
  const rangeTo = (cut: number): readonly [number, number] => [Math.min(near, cut), Math.max(near, cut)];
  const tokensTo = (cut: number): number => Math.abs((sums[cut] ?? 0) - (sums[near] ?? 0));
  // With more beyond it, the far end may separate a call from a result not read yet: use it only as a last resort.
  const cuts = safeCuts(candidates.map(({ ties }) => ties)).filter((cut) => cut !== near && (cut !== far || !isMore));
  const fromNear = from === "oldest" ? cuts : cuts.toReversed();
  const worthwhile = fromNear.filter((cut) => tokensTo(cut) >= rules.leafMinTokens);
  const chosen = worthwhile.findLast((cut) => tokensTo(cut) <= rules.chunkTokens) ?? worthwhile[0];
  if (chosen !== undefined) return rangeTo(chosen);
  return isMore && all > 0 ? rangeTo(far) : null;
}

function prefixSums(values: readonly number[]): readonly number[] {
  let sum = 0;
  return [0, ...values.map((value) => (sum += value))];
}

/** All runs of the shallowest depth that has any, oldest first. They do not overlap, so they can be folded in parallel. */
export function condensedRuns(
  context: readonly ContextItem[],
  rules: Rules,
  isLeftAlone: (run: readonly ContextItem[]) => boolean = () => false,
): readonly (readonly ContextItem[])[] {
  const byDepth = Map.groupBy(stretchesOf(context), ([first]) => first?.depth ?? -1);
  for (const [depth, stretches] of [...byDepth].toSorted(([a], [b]) => a - b)) {
    if (depth === -1) continue;
    if (depth + 1 > rules.depthMax) break;
    const fanout = depth === 0 ? rules.leafFanout : rules.condensedFanout;
    const runs = stretches
      .flatMap((items) => cutIntoRuns(items, fanout, rules.condensedChunkTokens))
      .filter((run) => !isLeftAlone(run));
    if (runs.length > 0) return runs;
  }
  return [];
}

/** Adjacent items of one depth. */
function stretchesOf(context: readonly ContextItem[]): readonly (readonly ContextItem[])[] {
  const starts = context.flatMap(({ depth }, at) => (depth === context[at - 1]?.depth ? [] : [at]));
  return starts.map((start, nth) => context.slice(start, starts[nth + 1]));
}

/** Runs of at least `fanout` items, longer while they fit the chunk. Leftovers wait until there are enough. */
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
