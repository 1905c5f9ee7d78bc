/**
 * Answers a question from stored conversations: searches, opens a grant, reads excerpts, and asks a delegate.
 * Everything runs against one deadline. If the delegate is missing, fails or is late, the best excerpts are the answer.
 */

import { readAnswer } from "../model-calls/read-answer.ts";
import { cutToTokens, readCitations } from "./citations.ts";
import { beforeDeadline } from "../base/deadline.ts";
import { checkWhole, LcmError, errorText } from "../base/errors.ts";
import { excerptsOf, readLeads, recordOf, snippetsOf, withLeaves, type Excerpt } from "./excerpts.ts";
import { expand, namedSummaries, partAbout, summaryToItem } from "./expand.ts";
import { chargesOf, readGranted } from "./grants.ts";
import { messageName, type ConversationId, type GrantId, type MessageId, type SummaryId } from "../model/types.ts";
import type { Clock, Model, SearchCaveat, Store } from "../model/store.ts";
import type { Answer, AskProgress, AskRequest, Delegate, DelegateTool, Read, Task } from "./ask-types.ts";
import { originOf, type Reach } from "./scope.ts";
import type { Settings } from "../model/settings.ts";
import { sumTokens } from "../base/tokens.ts";
import { runToolLoop, type LoopOutcome } from "../model-calls/tool-loop.ts";
import type { Json } from "../base/json.ts";
import { timeAfter } from "../base/time.ts";
import { plural } from "../base/format.ts";
import { delegatePrompt } from "../prompts/delegate.ts";
import { leadsOf, type Leads } from "./leads.ts";

interface AskDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly settings: Settings;
  /** Its calls must already be metered and bounded. */
  readonly model: Model | null;
}

const maxTokensDefault = 2_000;
/** A grant that is never revoked expires this long after the deadline. */
const graceMs = 60_000;

/** Settles before the signal fires. Throws for invalid requests, and what the store throws while searching. */
export async function expandQuery(deps: AskDeps, request: AskRequest): Promise<Answer> {
  check(request);
  const { signal, onProgress = ignore } = request;
  const isLate = (): boolean => signal?.aborted === true;
  const inquiry = createInquiry((progress) => (isLate() ? undefined : reportSafely(onProgress, progress)));
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
    const hint = 'pass a question, for example prompt: "What was the root cause?"';
    throw new LcmError("invalid", "prompt is empty", { hint });
  }
  if ((query ?? "").trim() === "" && summaryIds.length === 0) {
    throw new LcmError("invalid", "query and summaryIds are both missing", {
      hint: 'pass words to search for, for example query: "OAuth authentication", or summaryIds: ["sum_…"]',
    });
  }
  for (const amount of Object.entries({ maxTokens, tokenCap, timeoutMs: Math.ceil(timeoutMs) })) checkWhole(...amount);
}

/** The state of a question so far; at the deadline, the answer is made of this. */
interface Inquiry {
  readonly report: (progress: AskProgress) => void;
  /** The current step, as a phrase that can follow "while". */
  stage: string;
  /** Null until it is resolved. */
  reach: Reach | null;
  caveats: readonly SearchCaveat[];
  excerpts: readonly Excerpt[];
  grant: GrantId | null;
  /** What was read, and the leaves that cover messages among it. */
  readonly summaries: Set<SummaryId>;
  readonly messages: Set<MessageId>;
  readonly leaves: Set<SummaryId>;
  readonly texts: string[];
  tokens: number;
}

const ignore = (): void => undefined;

function reportSafely(onProgress: (progress: AskProgress) => void, progress: AskProgress): void {
  try {
    onProgress(progress);
  } catch {
    // Progress is only informative: a listener that throws must not end the question.
  }
}

function stopIfLate({ signal }: AskRequest): void {
  if (signal?.aborted === true) throw new LcmError("unavailable", "the deadline has passed");
}

const createInquiry = (report: Inquiry["report"]): Inquiry => ({
  report,
  stage: "checking what may be read",
  reach: null,
  caveats: [],
  excerpts: [],
  grant: null,
  summaries: new Set(),
  messages: new Set(),
  leaves: new Set(),
  texts: [],
  tokens: 0,
});

/** Best effort: a grant that cannot be revoked expires by itself. */
const revoke = async (store: Store, grant: GrantId): Promise<void> => await store.revokeGrant(grant).catch(ignore);

/** Where to read, before anything is read under a grant. */
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
    inquiry.stage = "reading excerpts";
    const share = delegate && (request.tools ?? []).length > 0 ? seedShare : 1;
    const tokenCap = Math.max(1, Math.floor(share * (request.tokenCap ?? deps.settings.maxExpandTokens)));
    inquiry.excerpts = await readGranted(store, grant, tokenCap, async (reach, tokensMax) => {
      const value = await seeds.read(reach, tokensMax);
      return { value, charges: chargesOf(value) };
    });
    stopIfLate(request);
    noteRead(inquiry, readOf(inquiry.excerpts));
    for (const { text, leaf } of inquiry.excerpts) {
      inquiry.texts.push(text);
      if (leaf !== null) inquiry.leaves.add(leaf);
    }
    if (inquiry.excerpts.length === 0) return excerptsAnswer(inquiry, request, unsearched(inquiry));
    if (!delegate) return excerptsAnswer(inquiry, request, "no model was used");
    return await answerBy(delegate, grant, request, inquiry);
  } catch (error) {
    if (!(error instanceof LcmError)) throw error;
    return excerptsAnswer(inquiry, request, `not everything could be read: ${error.message}`);
  }
}

/** Share of the tokens spent on the first reading if the delegate has tools to read more. */
const seedShare = 0.6;
const hitsMax = 200;
/** How many wordings a search takes beside its pattern. */
const alsoMax = 5;
const patternWordsMax = 64;
const shortened = (text: string): string => text.trim().split(/\s+/).slice(0, patternWordsMax).join(" ");
const hasWords = (text: string): boolean => /[\p{L}\p{N}]/u.test(text);

async function lookFor(deps: AskDeps, request: AskRequest, reach: Reach, inquiry: Inquiry): Promise<Seeds> {
  const { store, settings } = deps;
  const { signal, query = "" } = request;
  // Quotes mean an exact phrase in a query, but not in a question.
  const question = shortened(request.prompt.replace(/["“”]/g, " "));
  const asked = query.trim() === request.prompt.trim() ? [question] : [shortened(query), question];
  const wanted = [...asked, ...(request.also ?? []).map(shortened)];
  const telling = [...new Set(wanted)].filter(hasWords);
  // A pattern without words is passed on, so that the search reports the error.
  const patterns =
    telling.length > 0 ? telling.slice(0, 1 + Math.max(alsoMax, request.also?.length ?? 0)) : wanted.slice(0, 1);
  inquiry.stage = "searching";
  inquiry.report({ kind: "searching", query });
  const timeoutMs = Math.min(settings.searchTimeoutSeconds * 1_000, Math.ceil(request.timeoutMs / 2));
  const [pattern = "", ...also] = patterns;
  const best = { pattern, also, mode: "full_text", scope: "both", sort: "relevance", limit: hitsMax } as const;
  const within = reach.conversations === null ? {} : { conversations: reach.conversations };
  const result = await store.search({ ...best, ...within }, { timeoutMs, ...(signal && { signal }) });
  // More matches than the limit are expected here.
  inquiry.caveats = result.caveats.filter(({ kind }) => kind !== "limit");
  const leads: Leads = leadsOf(result);
  inquiry.excerpts = snippetsOf(leads);
  const excerpts = await withLeaves(store, inquiry.excerpts);
  inquiry.excerpts = excerpts;
  const summaries = new Set([...leads.summaries.map(({ id }) => id), ...excerpts.flatMap(({ leaf }) => leaf ?? [])]);
  inquiry.report({ kind: "found", summaries: summaries.size, messages: leads.messages.length });
  return {
    conversations: [...new Set(excerpts.map(({ conversation }) => conversation))],
    read: async (_, tokensMax) => await readLeads(store, leads, { query: patterns.join(" "), tokensMax }),
  };
}

/** Why an empty result does not prove that there is nothing; null if it does. */
function unsearched({ caveats }: Inquiry): string | null {
  const isOpen = caveats.some(({ kind }) => kind === "time" || kind === "unindexed" || kind === "newest_ranked");
  const files = caveats.reduce((sum, caveat) => (caveat.kind === "files" ? caveat.files : sum), 0);
  if (isOpen) return "not everything could be searched";
  return files === 0 ? null : `the contents of ${plural(files, "large file")} were not searched`;
}

/** Deep enough to reach the messages below any summary. */
const depthMax = 16;

async function lookInto(store: Store, request: AskRequest, reach: Reach, inquiry: Inquiry): Promise<Seeds> {
  const { summaryIds = [] } = request;
  inquiry.stage = "looking up the summaries";
  const named = await namedSummaries(store, summaryIds, reach);
  inquiry.report({ kind: "found", summaries: named.length, messages: 0 });
  const query = [request.query ?? "", request.prompt].find(hasWords) ?? "";
  const own = named.map((summary, rank): Excerpt => ({ ...summaryToItem(summary), rank, leaf: null }));
  inquiry.excerpts = own;
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
      const excerpts = await withLeaves(store, items);
      return excerpts.length > 0 ? excerpts : partsOf(own, query, tokensMax);
    },
  };
}

/** The texts of the summaries themselves, for one carried from a segment that cannot be read. */
function partsOf(excerpts: readonly Excerpt[], query: string, tokensMax: number): readonly Excerpt[] {
  let left = tokensMax;
  return excerpts.flatMap((excerpt) => {
    const part = partAbout(excerpt.text, query, left, 1);
    left -= part?.tokens ?? 0;
    return part === null ? [] : [{ ...excerpt, ...part }];
  });
}

/** A grant that comes too late is revoked at once: nobody waits for it. */
async function openGrant(deps: AskDeps, request: AskRequest, inquiry: Inquiry, seeds: Seeds): Promise<GrantId> {
  const { store, clock, settings } = deps;
  inquiry.stage = "opening a grant";
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

const readOf = (excerpts: readonly Excerpt[]): Read => ({
  summaries: excerpts.flatMap((each) => (each.kind === "summary" ? [each.id] : [])),
  messages: excerpts.flatMap((each) => (each.kind === "message" ? [each.id] : [])),
  tokens: sumTokens(excerpts),
});

function noteRead(inquiry: Inquiry, { summaries, messages, tokens }: Read): void {
  for (const id of summaries) inquiry.summaries.add(id);
  for (const id of messages) inquiry.messages.add(id);
  inquiry.tokens += tokens;
  inquiry.report({ kind: "reading", ids: [...summaries, ...messages.map(messageName)], tokens });
}

async function answerBy(delegate: Delegate, grant: GrantId, request: AskRequest, inquiry: Inquiry): Promise<Answer> {
  const { maxTokens = maxTokensDefault, signal } = request;
  const tools = (request.tools ?? []).map((tool): DelegateTool => ({
    ...tool,
    run: underGrant(tool, grant, request, inquiry),
  }));
  inquiry.stage = "waiting for the delegate";
  const { excerpts } = inquiry;
  const toolNames = tools.map(({ name }) => name);
  const about = { question: request.prompt, record: recordOf(excerpts), tools: toolNames, maxTokens };
  const summaryIds = [...new Set([...(request.summaryIds ?? []), ...inquiry.summaries, ...inquiry.leaves])];
  const outcome = await attempt(delegate, { ...delegatePrompt(about), grant, summaryIds, maxTokens, signal, tools });
  if (outcome.kind === "failed") return excerptsAnswer(inquiry, request, outcome.reason);
  const citable = { ...inquiry, summaries: new Set([...inquiry.summaries, ...inquiry.leaves]) };
  const said = readCitations(readText(outcome.text, inquiry), citable);
  if (!hasWords(said.text)) return excerptsAnswer(inquiry, request, "the delegate returned no usable answer");
  const { text, isCut } = cutToTokens(said.text, maxTokens);
  const { summaries, messages } = readCitations(text, citable);
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

/** A delegate is foreign code: whatever it throws or returns is an outcome. */
async function attempt(delegate: Delegate, task: Task): Promise<LoopOutcome> {
  try {
    return outcomeOf(await delegate(task));
  } catch (error) {
    return { kind: "failed", reason: `the delegate failed: ${errorText(error)}` };
  }
}

function outcomeOf(returned: unknown): LoopOutcome {
  const { kind, text, reason, isCut }: { readonly [field: string]: unknown } = { ...Object(returned) };
  if (kind === "answered" && typeof text === "string") return { kind, text, isCut: isCut === true };
  const hasReason = kind === "failed" && typeof reason === "string";
  return { kind: "failed", reason: hasReason ? errorText(reason) : "the delegate returned no usable answer" };
}

/** Always reads under this grant, whatever the delegate passes, and records what was read. */
function underGrant(tool: DelegateTool, grant: GrantId, request: AskRequest, inquiry: Inquiry): DelegateTool["run"] {
  const access = { grant, ...(request.signal && { signal: request.signal }) };
  return async (args) => {
    const reading = await tool.run(args, access);
    inquiry.texts.push(reading.text);
    if (!reading.isError) noteRead(inquiry, reading.read);
    return reading;
  };
}

/** Strips reasoning, unless it cites what was read: then it is the answer. */
function readText(text: string, { summaries, messages }: Inquiry): string {
  const read = readAnswer(text);
  if (read !== "") return read;
  const unmarked = readAnswer(`${answerHead}${text}`).replace(answerHead.trim(), "").trim();
  const cited = [...summaries, ...[...messages].map(messageName)].some((id) => unmarked.includes(id));
  return cited ? unmarked : "";
}

const answerHead = "Answer:\n\n";

function byModel(model: Model, { conversations }: Seeds, inquiry: Inquiry): Delegate {
  const conversation = conversations.length === 1 ? (conversations[0] ?? null) : null;
  const onStep = (step: number): void => {
    inquiry.stage = `asking ${model.name} (step ${step})`;
    inquiry.report({ kind: "asking", model: model.name, step });
  };
  return async ({ tools, ...task }) => {
    const callable = tools.map((tool) => ({
      ...tool,
      run: async (args: Json) => await tool.run(args, { grant: task.grant }),
    }));
    return await runToolLoop(model, { ...task, conversation, onStep, tools: callable });
  };
}

/** The best excerpts so far. Synchronous, so it works at the deadline. */
function excerptsAnswer(inquiry: Inquiry, request: AskRequest, partial: string | null): Answer {
  const { maxTokens = maxTokensDefault, query = "", prompt, zone } = request;
  const about = {
    query: `${shortened(query)} ${shortened(prompt)}`,
    maxTokens,
    ...(zone === undefined ? {} : { zone }),
  };
  const { text, shown } = excerptsOf(inquiry.excerpts, about);
  const cut = cutToTokens(shown.length === 0 ? nothingFound(request, inquiry, partial) : text, maxTokens);
  const summaries = shown.flatMap(({ kind, id, leaf }) => (kind === "summary" ? [id] : leaf === null ? [] : [leaf]));
  return {
    ...figuresOf(inquiry),
    answer: cut.text,
    citedIds: [...new Set(summaries)],
    citedMessages: readOf(shown).messages,
    truncated: cut.isCut || shown.length < inquiry.excerpts.length,
    by: "excerpts",
    partial,
  };
}

const figuresOf = ({ summaries, tokens, caveats }: Inquiry) => ({
  expandedSummaryCount: summaries.size,
  totalSourceTokens: tokens,
  caveats,
});

const reachWords: Readonly<Record<Reach["kind"], string>> = {
  family: "this session",
  project: "any session of this project",
  conversation: "the given conversation",
  agent: "any session of this agent",
  all: "any session",
  grant: "the conversations of the grant",
};

const nothingFound = ({ query, prompt }: AskRequest, { reach }: Inquiry, partial: string | null): string => {
  if (reach === null) return `No answer: ${partial ?? "nothing was searched"}.`;
  const searched = `Searched for: ${[...new Set([query ?? prompt, prompt])].join(" / ")}`;
  return partial === null
    ? `Nothing relevant was found in ${reachWords[reach.kind]}. ${searched}`
    : `Nothing was found in ${reachWords[reach.kind]}, but ${partial}. ${searched}`;
};
