/**
 * expandQuery: one question, one grant, one deadline, and an answer that says what it rests on.
 *
 * What speaks of the question is searched for, a grant is made out for the conversations it is in, and a delegate
 * answers from what is read under that grant: a host's sub-agent, or a model that may read on with tools, or nobody,
 * and then the best excerpts are the answer. They are also the answer whenever the delegate fails or is late. The whole
 * of it runs against one deadline: whatever has not come by then is not waited for, and its grant is revoked.
 */

import { readAnswer } from "../model-calls/read-answer.ts";
import { cutToTokens, readCitations } from "./citations.ts";
import { beforeDeadline } from "../base/deadline.ts";
import { checkWhole, LcmError, errorText } from "../base/errors.ts";
import { excerptsOf, readLeads, recordOf, snippetsOf, withLeaves } from "./excerpts.ts";
import type { Excerpt } from "./excerpts.ts";
import { expand, namedSummaries, partAbout, summaryToItem } from "./expand.ts";
import { chargesOf, readGranted } from "./grants.ts";
import type { ConversationId, GrantId, MessageId, SummaryId } from "../model/types.ts";
import { messageName } from "../model/types.ts";
import type { Clock, Model, SearchCaveat, Store } from "../model/store.ts";
import type { Answer, AskProgress, AskRequest, Delegate, DelegateTool, Read, Task } from "./ask-types.ts";
import { originOf } from "./scope.ts";
import type { Reach } from "./scope.ts";
import type { Settings } from "../model/settings.ts";
import { sumTokens } from "../base/tokens.ts";
import { runToolLoop } from "../model-calls/tool-loop.ts";
import type { LoopOutcome } from "../model-calls/tool-loop.ts";
import type { Json } from "../base/json.ts";
import { timeAfter } from "../base/time.ts";
import { delegatePrompt } from "../prompts/delegate.ts";
import { mergeSearches } from "./fusion.ts";
import type { Leads } from "./fusion.ts";

interface AskDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly settings: Settings;
  /** Its calls should be counted and bounded already. */
  readonly model: Model | null;
}

const maxTokensDefault = 2_000;
/** A grant outlives its deadline by so much, should nobody be left to revoke it. */
const graceMs = 60_000;

/** Never later than its signal. Throws for what was asked wrongly, and what the store throws while searching. */
export async function expandQuery(deps: AskDeps, request: AskRequest): Promise<Answer> {
  check(request);
  const { signal, onProgress = ignore } = request;
  const isLate = (): boolean => signal?.aborted === true;
  const inquiry = createInquiry((progress) => (isLate() ? undefined : tellSafely(onProgress, progress)));
  const atDeadline = (): Answer => excerptsAnswer(inquiry, request, `the deadline passed while ${inquiry.stage}`);
  if (isLate()) return atDeadline();
  try {
    return (await beforeDeadline(signal, pursue(deps, request, inquiry), null)) ?? atDeadline();
  } finally {
    if (inquiry.grant !== null) await beforeDeadline(signal, revoke(deps.store, inquiry.grant), undefined);
  }
}

function check({ prompt, query, summaryIds = [], maxTokens, tokenCap, timeoutMs }: AskRequest): void {
  if (prompt.trim() === "") {
    const hint = 'say what you want to know, for example prompt: "What was the root cause?"';
    throw new LcmError("invalid", "prompt is empty", { hint });
  }
  if ((query ?? "").trim() === "" && summaryIds.length === 0) {
    throw new LcmError("invalid", "neither query nor summaryIds is given", {
      hint: 'give words to find it by, for example query: "OAuth authentication", or summaryIds: ["sum_…"]',
    });
  }
  for (const amount of Object.entries({ maxTokens, tokenCap, timeoutMs: Math.ceil(timeoutMs) })) checkWhole(...amount);
}

/** What has come of a question so far: at the deadline, the answer is made of this. */
interface Inquiry {
  readonly tell: (progress: AskProgress) => void;
  /** What is being done, as it would be said after "while". */
  stage: string;
  /** Null as long as it is not known. */
  reach: Reach | null;
  caveats: readonly SearchCaveat[];
  /** What was found or read, as excerpts are made of it. */
  pieces: readonly Excerpt[];
  grant: GrantId | null;
  /** What was handed out, and the leaves that stand for messages among it. */
  readonly summaries: Set<SummaryId>;
  readonly messages: Set<MessageId>;
  readonly leaves: Set<SummaryId>;
  readonly texts: string[];
  tokens: number;
}

const ignore = (): void => undefined;

/** Whoever watches may fail at it; the question goes on. */
function tellSafely(onProgress: (progress: AskProgress) => void, progress: AskProgress): void {
  try {
    onProgress(progress);
  } catch {
    // It was for their eyes only.
  }
}

/** For work that nobody waits for any more. */
function stopIfLate({ signal }: AskRequest): void {
  if (signal?.aborted === true) throw new LcmError("unavailable", "the deadline has passed");
}

const createInquiry = (tell: Inquiry["tell"]): Inquiry => ({
  tell,
  stage: "it was being looked up what may be read",
  reach: null,
  caveats: [],
  pieces: [],
  grant: null,
  summaries: new Set(),
  messages: new Set(),
  leaves: new Set(),
  texts: [],
  tokens: 0,
});

/** A grant that cannot be revoked, because the database is locked or gone, runs out by itself. */
const revoke = async (store: Store, grant: GrantId): Promise<void> => await store.revokeGrant(grant).catch(ignore);

// ── From the question to what answers it ─────────────────────────────────────────────────────────────────────────────

/** Where an answer may be, before anything is read under a grant. */
interface Seeds {
  readonly conversations: readonly ConversationId[];
  read(reach: Reach, tokensMax: number): Promise<readonly Excerpt[]>;
}

async function pursue(deps: AskDeps, request: AskRequest, inquiry: Inquiry): Promise<Answer> {
  const { store } = deps;
  const model = request.model ?? deps.model;
  const reach = typeof request.reach === "function" ? await request.reach() : request.reach;
  inquiry.reach = reach;
  const isNamed = (request.summaryIds ?? []).length > 0;
  const seeds = isNamed ? await lookInto(store, request, reach, inquiry) : await lookFor(deps, request, reach, inquiry);
  if (seeds.conversations.length === 0) return excerptsAnswer(inquiry, request, unsearched(inquiry));
  const delegate = request.delegate === undefined && model !== null ? byModel(model, seeds, inquiry) : request.delegate;
  try {
    const grant = await openGrant(deps, request, inquiry, seeds);
    inquiry.stage = "what was found was being read";
    const share = delegate && (request.tools ?? []).length > 0 ? seedShare : 1;
    const tokenCap = Math.max(1, Math.floor(share * (request.tokenCap ?? deps.settings.maxExpandTokens)));
    inquiry.pieces = await readGranted(store, grant, tokenCap, async (reach, tokensMax) => {
      const value = await seeds.read(reach, tokensMax);
      return { value, charges: chargesOf(value) };
    });
    stopIfLate(request);
    noteRead(inquiry, readOf(inquiry.pieces));
    for (const { text, leaf } of inquiry.pieces) {
      inquiry.texts.push(text);
      if (leaf !== null) inquiry.leaves.add(leaf);
    }
    if (inquiry.pieces.length === 0) return excerptsAnswer(inquiry, request, unsearched(inquiry));
    if (!delegate) return excerptsAnswer(inquiry, request, "no model was asked");
    return await answerBy(delegate, grant, request, inquiry);
  } catch (error) {
    if (!(error instanceof LcmError)) throw error;
    return excerptsAnswer(inquiry, request, `what was found could not be read in full: ${error.message}`);
  }
}

/** What a delegate with tools is given to begin with, of all that may be read. */
const seedShare = 0.6;
const hitsMax = 200;
const patternWordsMax = 64;
const shortened = (text: string): string => text.trim().split(/\s+/).slice(0, patternWordsMax).join(" ");
const hasWords = (text: string): boolean => /[\p{L}\p{N}]/u.test(text);

async function lookFor(deps: AskDeps, request: AskRequest, reach: Reach, inquiry: Inquiry): Promise<Seeds> {
  const { store, settings } = deps;
  const { signal, query = "" } = request;
  // Quotes in a question are no demand for the exact words, as they are in a query.
  const question = shortened(request.prompt.replace(/["“”]/g, " "));
  const wanted = query.trim() === request.prompt.trim() ? [question] : [shortened(query), question];
  const telling = [...new Set(wanted)].filter(hasWords);
  // Without any word, the search says what is wrong with it.
  const patterns = telling.length > 0 ? telling : wanted.slice(0, 1);
  inquiry.stage = "it was being searched for";
  inquiry.tell({ kind: "searching", query });
  const timeoutMs = Math.min(settings.searchTimeoutSeconds * 1_000, Math.ceil(request.timeoutMs / 2));
  const results = await Promise.all(
    patterns.map(async (pattern) => {
      const best = { pattern, mode: "full_text", scope: "both", sort: "relevance", limit: hitsMax } as const;
      const within = reach.conversations === null ? {} : { conversations: reach.conversations };
      return await store.search({ ...best, ...within }, { timeoutMs, ...(signal && { signal }) });
    }),
  );
  inquiry.caveats = caveatsOf(results.map(({ caveats }) => caveats));
  const leads: Leads = mergeSearches(results.map(({ hits }) => hits));
  inquiry.pieces = snippetsOf(leads);
  const found = await withLeaves(store, inquiry.pieces);
  inquiry.pieces = found;
  const summaries = new Set([...leads.summaries.map(({ id }) => id), ...found.flatMap(({ leaf }) => leaf ?? [])]);
  inquiry.tell({ kind: "found", summaries: summaries.size, messages: leads.messages.length });
  return {
    conversations: [...new Set(found.map(({ conversation }) => conversation))],
    read: async (_, tokensMax) => await readLeads(store, leads, { query: patterns.join(" "), tokensMax }),
  };
}

/** Why nothing found does not mean that there is nothing; null if it does. */
function unsearched({ caveats }: Inquiry): string | null {
  const isOpen = caveats.some(({ kind }) => kind === "time" || kind === "unindexed" || kind === "newest_ranked");
  const files = caveats.reduce((sum, caveat) => (caveat.kind === "files" ? caveat.files : sum), 0);
  const inFiles = `the contents of ${files === 1 ? "a large text that lies in a file" : `${files} large texts that lie in files`}`;
  if (isOpen) return "not everything could be searched";
  return files === 0 ? null : `${inFiles} were not searched`;
}

/** Each kind once; that there is more than was asked for is no news here, nor which words of a question nobody used. */
function caveatsOf(searches: readonly (readonly SearchCaveat[])[]): readonly SearchCaveat[] {
  const told = new Map<SearchCaveat["kind"], SearchCaveat>();
  for (const [place, caveats] of searches.entries()) {
    for (const caveat of caveats) {
      const isNews = caveat.kind !== "limit" && (place === 0 || caveat.kind !== "partial_match");
      if (isNews && !told.has(caveat.kind)) told.set(caveat.kind, caveat);
    }
  }
  return [...told.values()];
}

/** Down to the messages, however deep they lie. */
const depthMax = 16;

async function lookInto(store: Store, request: AskRequest, reach: Reach, inquiry: Inquiry): Promise<Seeds> {
  const { summaryIds = [] } = request;
  inquiry.stage = "the summaries were being looked up";
  const named = await namedSummaries(store, summaryIds, reach);
  inquiry.tell({ kind: "found", summaries: named.length, messages: 0 });
  const query = [request.query ?? "", request.prompt].find(hasWords) ?? "";
  const own = named.map((summary, rank): Excerpt => ({ ...summaryToItem(summary), rank, leaf: null }));
  inquiry.pieces = own;
  const conversations = new Set(named.map(({ conversation }) => conversation));
  for (const summary of named) {
    const origin = await originOf(store, reach, summary);
    if (origin !== null) conversations.add(origin.conversation);
  }
  return {
    conversations: [...conversations],
    async read(granted, tokensMax) {
      const deep = { summaryIds, reach: granted, query, maxDepth: depthMax, includeMessages: true } as const;
      const { items, expanded } = await expand(store, { ...deep, tokenCap: tokensMax });
      for (const id of expanded) inquiry.summaries.add(id);
      const pieces = await withLeaves(store, items);
      return pieces.length > 0 ? pieces : partsOf(own, query, tokensMax);
    },
  };
}

/** Carried from what cannot be reached, a summary has nothing below it but says something itself. */
function partsOf(pieces: readonly Excerpt[], query: string, tokensMax: number): readonly Excerpt[] {
  let left = tokensMax;
  return pieces.flatMap((piece) => {
    const part = partAbout(piece.text, query, left, 1);
    left -= part?.tokens ?? 0;
    return part === null ? [] : [{ ...piece, ...part }];
  });
}

/** Revoked at once if it comes too late: whoever waited for it is gone. */
async function openGrant(deps: AskDeps, request: AskRequest, inquiry: Inquiry, seeds: Seeds): Promise<GrantId> {
  const { store, clock, settings } = deps;
  inquiry.stage = "leave to read was being asked for";
  await store.sweepGrants();
  stopIfLate(request);
  const { id } = await store.issueGrant({
    conversations: seeds.conversations,
    tokenCap: request.tokenCap ?? settings.maxExpandTokens,
    expiresAt: timeAfter(clock.now(), request.timeoutMs + graceMs),
    parent: null,
  });
  inquiry.grant = id;
  if (request.signal?.aborted === true) await revoke(store, id);
  stopIfLate(request);
  return id;
}

const readOf = (pieces: readonly Excerpt[]): Read => ({
  summaries: pieces.flatMap((piece) => (piece.kind === "summary" ? [piece.id] : [])),
  messages: pieces.flatMap((piece) => (piece.kind === "message" ? [piece.id] : [])),
  tokens: sumTokens(pieces),
});

function noteRead(inquiry: Inquiry, { summaries, messages, tokens }: Read): void {
  for (const id of summaries) inquiry.summaries.add(id);
  for (const id of messages) inquiry.messages.add(id);
  inquiry.tokens += tokens;
  inquiry.tell({ kind: "reading", ids: [...summaries, ...messages.map(messageName)], tokens });
}

// ── Delegates ────────────────────────────────────────────────────────────────────────────────────────────────────────

async function answerBy(delegate: Delegate, grant: GrantId, request: AskRequest, inquiry: Inquiry): Promise<Answer> {
  const { maxTokens = maxTokensDefault, signal } = request;
  const tools = (request.tools ?? []).map((tool): DelegateTool => ({
    ...tool,
    run: underGrant(tool, grant, request, inquiry),
  }));
  inquiry.stage = "the delegate was at work";
  const { pieces } = inquiry;
  const about = { question: request.prompt, record: recordOf(pieces), tools: tools.map(({ name }) => name), maxTokens };
  const summaryIds = [...new Set([...(request.summaryIds ?? []), ...inquiry.summaries, ...inquiry.leaves])];
  const outcome = await attempt(delegate, { ...delegatePrompt(about), grant, summaryIds, maxTokens, signal, tools });
  if (outcome.kind === "failed") return excerptsAnswer(inquiry, request, outcome.reason);
  const handedOut = { ...inquiry, summaries: new Set([...inquiry.summaries, ...inquiry.leaves]) };
  const said = readCitations(readText(outcome.text, inquiry), handedOut);
  if (!hasWords(said.text)) return excerptsAnswer(inquiry, request, "the delegate gave no answer that could be used");
  const { text, isCut } = cutToTokens(said.text, maxTokens);
  const { summaries, messages } = readCitations(text, handedOut);
  return {
    ...figuresOf(inquiry),
    answer: text,
    citedIds: summaries,
    citedMessages: messages,
    truncated: isCut || outcome.isCut === true,
    by: request.delegate ? "delegate" : "model",
    partial: null,
  };
}

/** A delegate comes from a host or calls a provider, so nothing that it does or says is a fault of ours. */
async function attempt(delegate: Delegate, task: Task): Promise<LoopOutcome> {
  try {
    return outcomeOf(await delegate(task));
  } catch (error) {
    return { kind: "failed", reason: `the delegate failed: ${errorText(error)}` };
  }
}

function outcomeOf(said: unknown): LoopOutcome {
  const { kind, text, reason, isCut }: { readonly [field: string]: unknown } = { ...Object(said) };
  if (kind === "answered" && typeof text === "string") return { kind, text, isCut: isCut === true };
  const isTold = kind === "failed" && typeof reason === "string";
  return { kind: "failed", reason: isTold ? errorText(reason) : "the delegate gave no answer that could be used" };
}

/** Whatever a delegate names as its grant, it reads under this one; and what it is given is noted. */
function underGrant(tool: DelegateTool, grant: GrantId, request: AskRequest, inquiry: Inquiry): DelegateTool["run"] {
  const held = { grant, ...(request.signal && { signal: request.signal }) };
  return async (args) => {
    const reading = await tool.run(args, held);
    inquiry.texts.push(reading.text);
    if (!reading.isError) noteRead(inquiry, reading.read);
    return reading;
  };
}

/** Without thinking. What sounds like thinking aloud and cites what was read is an answer all the same. */
function readText(text: string, { summaries, messages }: Inquiry): string {
  const read = readAnswer(text);
  if (read !== "") return read;
  const unmarked = readAnswer(`${answerHead}${text}`).replace(answerHead.trim(), "").trim();
  const cited = [...summaries, ...[...messages].map(messageName)].some((id) => unmarked.includes(id));
  return cited ? unmarked : "";
}

const answerHead = "Answer:\n\n";

/** The model as a delegate. */
function byModel(model: Model, { conversations }: Seeds, inquiry: Inquiry): Delegate {
  const conversation = conversations.length === 1 ? (conversations[0] ?? null) : null;
  const onStep = (step: number): void => {
    inquiry.stage = `${model.name} was being asked (step ${step})`;
    inquiry.tell({ kind: "asking", model: model.name, step });
  };
  return async ({ tools, ...task }) => {
    const callable = tools.map((tool) => ({
      ...tool,
      run: async (args: Json) => await tool.run(args, { grant: task.grant }),
    }));
    return await runToolLoop(model, { ...task, conversation, onStep, tools: callable });
  };
}

// ── Excerpts ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The best of what was found and read so far; needs nothing of the world, so it can be had at the deadline. */
function excerptsAnswer(inquiry: Inquiry, request: AskRequest, partial: string | null): Answer {
  const { maxTokens = maxTokensDefault, query = "", prompt, zone } = request;
  const about = {
    query: `${shortened(query)} ${shortened(prompt)}`,
    maxTokens,
    ...(zone === undefined ? {} : { zone }),
  };
  const { text, shown } = excerptsOf(inquiry.pieces, about);
  const cut = cutToTokens(shown.length === 0 ? nothingFound(request, inquiry, partial) : text, maxTokens);
  const summaries = shown.flatMap((piece) =>
    piece.kind === "summary" ? [piece.id] : piece.leaf === null ? [] : [piece.leaf],
  );
  return {
    ...figuresOf(inquiry),
    answer: cut.text,
    citedIds: [...new Set(summaries)],
    citedMessages: readOf(shown).messages,
    truncated: cut.isCut || shown.length < inquiry.pieces.length,
    by: "excerpts",
    partial,
  };
}

const figuresOf = ({
  summaries,
  tokens,
  caveats,
}: Inquiry): Pick<Answer, "expandedSummaryCount" | "totalSourceTokens" | "caveats"> => ({
  expandedSummaryCount: summaries.size,
  totalSourceTokens: tokens,
  caveats,
});

const places: Readonly<Record<Reach["kind"], string>> = {
  family: "this session",
  conversation: "the conversation that was named",
  agent: "any session of this agent",
  all: "any session",
  grant: "what was granted",
};

const nothingFound = ({ query, prompt }: AskRequest, { reach }: Inquiry, partial: string | null): string => {
  if (reach === null) return `Nothing could be found out: ${partial ?? "nothing was looked at"}.`;
  const searched = `Searched for: ${[...new Set([query ?? prompt, prompt])].join(" / ")}`;
  return partial === null
    ? `Nothing in ${places[reach.kind]} speaks of it. ${searched}`
    : `Nothing was found in ${places[reach.kind]}, but ${partial}. ${searched}`;
};
