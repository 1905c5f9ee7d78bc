/**
 * Decides what becomes of a request: stores what is new in it, and puts our prompt in the place of its messages when the
 * conversation has outgrown its budget. Stores the answer, learns from what the provider counts, and folds behind it.
 */

import { estimateTokens } from "../core/base/tokens.ts";
import type { Assembly } from "../core/assembly/assemble.ts";
import type { Lcm } from "../core/lcm.ts";
import { promptTokens } from "../core/model/prompt-cost.ts";
import type { Model } from "../core/model/store.ts";
import { allowanceOf, learnFromCount, learnFromOverflow } from "../hosts/shared/allowance.ts";
import { compactNow } from "../hosts/shared/compact-now.ts";
import type { Runtime, SessionMemory } from "../hosts/shared/runtime.ts";
import type { Identity } from "./identity.ts";
import type { Alignment, RequestPieces } from "./align.ts";
import {
  alignWith,
  isOnPath,
  messageFrom,
  pathEnd,
  rowsUpTo,
  sayingsBehind,
  storeBehind,
  storeNew,
} from "./session.ts";
import type { NewSaying, PathEnd, ServedSession } from "./session.ts";
import { quotable } from "./find-session.ts";
import { isAnswer, piecesOf, textsIn, type PathRow } from "./path.ts";
import { isEndShown, replaceMessages } from "./replace.ts";
import { flatten, jsonOf, trait, unitOf, type FlatPieces, type Request } from "./request.ts";
import type { Answer, Wire } from "./wires/wire.ts";

export interface Plan {
  readonly session: ServedSession;
  /** What to send instead; null to send the request unchanged. */
  readonly body: Buffer | null;
  /** Why it goes as it came, for the status. */
  readonly why: string;
  /** What the answer continues; null if it is not stored. */
  readonly answerBehind: PathEnd | null;
  /** What the body shows; null if it is the client's. */
  readonly assembly: Assembly | null;
  /** Estimated tokens of the messages that are sent; null if unknown. */
  readonly tokens: number | null;
  /** Whether a person's new words are at its end. */
  readonly isPrompt: boolean;
}

export interface PlannerDeps {
  readonly runtime: Runtime;
  /** Tokens that a request may have. */
  readonly tokensMax: number;
  /** Writes summaries; null to extract them. */
  readonly model: Model | null;
  readonly storeOnly: boolean;
  /** How long folding may take while a request waits; 600 ms unless given. */
  readonly foldMs?: number;
}

const foldMsDefault = 600;

export interface Asked {
  readonly session: ServedSession;
  readonly who: Identity;
  readonly request: Request;
  /** Whether its tokens are only counted: then nothing is written. */
  readonly isCount: boolean;
}

export async function planRequest(
  deps: PlannerDeps,
  lcm: Lcm,
  { session, who, request, isCount }: Asked,
): Promise<Plan> {
  const flat = flatten(request.units, askedIn(who, request), session.hostsPieces);
  const afterSummary = afterSummaryIn(flat);
  const isNamed = who.sessionId !== null;
  const asked = { pieces: flat.pieces, afterSummary, summarisedAt: session.summarisedAt, isNamed };
  const isSide = isCount || who.kind === "side";
  const isStored = !isSide;
  const sayings = (from: number): Iterable<NewSaying> => sayingsFrom(request, flat, from);
  const { alignment, isCurrent } = isStored
    ? await storeNew(lcm, session, { ...asked, sayings, mayBegin: who.kind === "turn" })
    : lookOnly(session, asked);
  const end = isStored && alignment.kind !== "retry" ? endOf(session, alignment, flat) : alignment.parent;
  const whyUnchanged = (why: string, tokens: number | null = null): Plan => ({
    session,
    body: null,
    why,
    answerBehind: who.kind === "turn" ? pathEnd(session, end) : null,
    assembly: null,
    tokens,
    isPrompt: who.kind === "turn" && alignment.kind !== "retry" && !isAnswer(flat.pieces.at(-1)),
  });
  if (deps.storeOnly) return whyUnchanged("started with --store-only");
  if (who.storeOnly !== null) return whyUnchanged(who.storeOnly);
  if (request.units.traits.includes(trait.unknown)) return whyUnchanged("it has an item that is not understood");
  if (alignment.kind === "new start" && (isCount || who.kind !== "turn"))
    return whyUnchanged("it is not part of the conversation");
  if (!isCurrent) return whyUnchanged("it goes back to a branch that was left");
  if (session.path.rows.length === 0) return whyUnchanged("nothing of it is stored");

  const budget = budgetOf(deps, session, request);
  if (!isCount) await keepBudget(deps, lcm, session, budget);
  // Large content counts as a reference in the store, and is in the request as it was said.
  const isSmall = request.scanned.bytes.length <= deps.tokensMax * bytesPerToken;
  const mayFit = isSmall && afterSummary === null && alignment.kind !== "folded by the host";
  const fitting = mayFit ? await tokensIfFitting(lcm, session, budget) : null;
  if (fitting !== null) return whyUnchanged("everything fits", fitting);
  const assembly = isCount
    ? await lcm.assemble(session.conversation.id, { budget })
    : await assembleWithin(deps, lcm, session, budget);
  const rowsEnd = rowsUpTo(session.path, end);
  const isBack = rowsEnd < session.path.rows.length;
  const isFolded = isBack && (await isRowFolded(lcm, session.path.rows[rowsEnd - 1]));
  if (!isEndShown({ path: session.path, rowsEnd, assembly }, isFolded))
    return whyUnchanged("it goes back to what is folded");
  const body = replaceMessages({
    request,
    flat: isSide ? knownOnly(flat, alignment.from) : flat,
    path: session.path,
    inRequest: placesInRequest(session, alignment, flat),
    rowsEnd,
    assembly,
  });
  const { tokens } = assembly.report;
  return body === null ? whyUnchanged("everything fits", tokens) : { ...whyUnchanged("", tokens), body, assembly };
}

/** How many pieces at the end are the host's request for a summary: an element of its own, or a block behind the last one's. */
function askedIn(who: Identity, { wire, units: { starts, pieces } }: Request): number {
  if (who.kind !== "compaction") return 0;
  const count = pieces.length - (starts.at(-2) ?? 0);
  return wire.name === "anthropic" ? Math.min(1, count) : count;
}

function afterSummaryIn({ hosts, starts }: FlatPieces): number | null {
  const at = hosts.lastIndexOf(1);
  return at < 0 ? null : (starts[at] ?? 0);
}

function lookOnly(session: ServedSession, asked: RequestPieces) {
  const alignment = alignWith(session, asked);
  const { kind, from } = alignment;
  // Only a request that repeats the conversation, up to its last words, is one about it.
  const isAboutIt = (kind === "extension" || kind === "retry" || kind === "branch") && from > 1;
  return { alignment, isCurrent: isAboutIt };
}

/** What the request says from a piece on: the rest of the element that it belongs to, and all later ones. */
function* sayingsFrom(request: Request, flat: FlatPieces, from: number): Generator<NewSaying> {
  const { wire, scanned, units } = request;
  const { owners, starts, counts, pieces, hosts } = flat;
  // What tells nothing by itself, such as a thought, is stored with what follows it.
  const before = from === 0 ? -1 : (owners[from - 1] ?? -1);
  const isPartial = from < pieces.length && owners[from] === before;
  const first = isPartial ? before : before + 1;
  for (let at = first; at < scanned.count; at++) {
    if (((units.traits[at] ?? 0) & (trait.pinned | trait.unknown)) !== 0) continue;
    // Where nothing is stored, the host's summary is all there is of the past.
    if (hosts[at] === 1 && from > 0) continue;
    const message = wire.toMessage(jsonOf(request, at));
    if (message === null) continue;
    const [begin, shown] = [starts[at] ?? 0, counts[at] ?? 0];
    const skipped = isPartial && at === first ? from - begin : 0;
    const said = { message: messageFrom(message, skipped), pieces: pieces.slice(begin + skipped, begin + shown) };
    if (shown === (units.starts[at + 1] ?? 0) - (units.starts[at] ?? 0)) yield said;
    // The host's request for a summary is not part of the conversation.
    else if (shown > 0) yield withoutLast(said);
  }
}

function withoutLast({ message, pieces }: NewSaying): NewSaying {
  const { content } = message;
  return { message: Array.isArray(content) ? { ...message, content: content.slice(0, -1) } : message, pieces };
}

/** Where the request ends in the path. */
const endOf = ({ path }: ServedSession, { from, parent }: Alignment, { pieces }: FlatPieces): number =>
  Math.min(path.pieces.length, parent + pieces.length - from);

function placesInRequest(
  { path }: ServedSession,
  { places, from, parent }: Alignment,
  { pieces }: FlatPieces,
): Int32Array {
  const inRequest = new Int32Array(path.pieces.length).fill(-1);
  for (let at = 0; at < from; at++) {
    const place = places[at] ?? -1;
    if (place >= 0 && place < inRequest.length) inRequest[place] = at;
  }
  for (let at = from; at < pieces.length; at++) {
    const place = parent + at - from;
    if (place < inRequest.length && path.pieces[place] === pieces[at]) inRequest[place] = at;
  }
  return inRequest;
}

const isRowFolded = async ({ store }: Lcm, row: PathRow | undefined): Promise<boolean> =>
  row !== undefined && (await store.coveredBy(row.id)).length > 0;

/** What follows the conversation in a request about it is sent unchanged. */
function knownOnly(flat: FlatPieces, from: number): FlatPieces {
  const counts = flat.counts.map((count, at) => ((flat.starts[at] ?? 0) + count > from ? 0 : count));
  return { ...flat, counts };
}

function budgetOf({ runtime, tokensMax }: PlannerDeps, session: ServedSession, request: Request): number {
  const memory = memoryOf(runtime, session);
  memory.allowance ??= Math.min(tokensMax / 2, estimateTokens(request.scanned.rest));
  return Math.max(1, Math.floor(tokensMax - allowanceOf(memory, tokensMax)));
}

async function keepBudget(deps: PlannerDeps, lcm: Lcm, session: ServedSession, budget: number): Promise<void> {
  const memory = memoryOf(deps.runtime, session);
  if (memory.promptBudget !== budget) await lcm.store.setPromptBudget(session.conversation.id, budget);
  memory.promptBudget = budget;
}

/** The tokens of a conversation of which nothing is folded and nothing need be; else null. Reads no message. */
async function tokensIfFitting(lcm: Lcm, { conversation }: ServedSession, budget: number): Promise<number | null> {
  const { totals } = (await lcm.store.conversation(conversation.id)) ?? conversation;
  const isRaw = totals.contextItems === totals.contextMessages;
  return isRaw && promptTokens(totals) <= budget ? promptTokens(totals) : null;
}

/** Of English text; other text has fewer, and is then looked at more closely. */
const bytesPerToken = 4;

/** What does not fit is folded without a model first, if that is quick enough; only then is something left out. */
async function assembleWithin(
  { runtime, foldMs = foldMsDefault }: PlannerDeps,
  lcm: Lcm,
  { conversation }: ServedSession,
  budget: number,
): Promise<Assembly> {
  const assembly = await lcm.assemble(conversation.id, { budget });
  if (assembly.report.evicted.items === 0 && assembly.report.shortened === 0) return assembly;
  const current = (await lcm.store.conversation(conversation.id)) ?? conversation;
  const call = { conversation: current, why: "overflow", model: null, budget, limitMs: foldMs } as const;
  const { compacted } = await compactNow(runtime, lcm, call);
  return compacted ? await lcm.assemble(conversation.id, { budget }) : assembly;
}

const memoryOf = (runtime: Runtime, { identity }: ServedSession): SessionMemory =>
  runtime.memoryOf({ agentId: identity.agentId ?? "", sessionKey: identity.sessionKey ?? "" });

/** Stores the answer behind the request that it answers. */
export async function storeAnswer(
  lcm: Lcm,
  wire: Wire,
  { session, answerBehind }: Plan,
  answer: Answer,
): Promise<number> {
  if (answerBehind === null || !answer.isComplete) return 0;
  const sayings = answer.elements.flatMap((element) => {
    const message = wire.toMessage(element);
    return message === null ? [] : [{ message, pieces: piecesOf(message) }];
  });
  const said = sayings.flatMap((saying) => saying.pieces);
  for (const piece of said) session.hostsPieces.delete(piece);
  if (!isOnPath(session, answerBehind)) return await storeBehind(lcm, session, answerBehind, sayings);
  const { pieces: end } = answerBehind;
  const pieces = [...session.path.pieces.slice(0, end), ...said];
  const behind = (from: number): Iterable<NewSaying> => sayingsBehind(sayings, end, from);
  return (
    await storeNew(lcm, session, {
      pieces,
      afterSummary: null,
      summarisedAt: null,
      isNamed: true,
      sayings: behind,
      mayBegin: false,
    })
  ).added;
}

/**
 * What the model wrote for the host comes back as the host's words, not as something that was said. Short words, such as
 * "Yes.", may have been said as well: then they are part of the conversation.
 */
export function noteHostsAnswer(wire: Wire, { session }: Plan, answer: Answer): void {
  for (const element of answer.elements)
    for (const piece of unitOf(wire, element).pieces)
      if (!session.path.pieces.includes(piece)) session.hostsPieces.add(piece);
  const written = answer.elements.flatMap((element) => textsIn(wire.toMessage(element)));
  session.hostsTexts.push(...written.flatMap((text) => quotable(text) ?? []));
  session.hostsTexts.splice(0, session.hostsTexts.length - hostsTextsMax);
  session.summarisedAt = session.path.pieces.length;
}

/** A compaction of Pi's asks for up to two. */
const hostsTextsMax = 8;

export function learnFrom({ runtime, tokensMax }: PlannerDeps, { session, tokens }: Plan, { usage }: Answer): void {
  if (usage !== null && tokens !== null) learnFromCount(memoryOf(runtime, session), tokensMax, usage.input - tokens);
}

/** After a refusal because of its length the next request must be smaller. */
export async function learnOverflow({ runtime, tokensMax }: PlannerDeps, lcm: Lcm, { session }: Plan): Promise<void> {
  const memory = memoryOf(runtime, session);
  learnFromOverflow(memory, tokensMax, undefined);
  const budget = Math.max(1, Math.floor(tokensMax - allowanceOf(memory, tokensMax)));
  const conversation = await lcm.store.conversation(session.conversation.id);
  if (conversation === null) return;
  await compactNow(runtime, lcm, { conversation, why: "overflow", model: null, budget, limitMs: 10 * foldMsDefault });
}
