/**
 * What the server asks for each request to a model: a plan within a deadline, and what to do with the answer. Requests of
 * one session are planned one after another; one that comes too late is still stored, and goes on unchanged.
 */

import { setImmediate as othersFirst } from "node:timers/promises";
import type { Lcm } from "../core/lcm.ts";
import type { Model } from "../core/model/store.ts";
import { matchesPattern } from "../core/model/session-pattern.ts";
import type { ProxyReport } from "../core/model/proxy-report.ts";
import { notRecorded, recordEnd, recordHosts, recordOurs, type Recording } from "../hosts/shared/prompt-records.ts";
import type { AnswerReader } from "./forward.ts";
import { clientModelOf, type ClientModel, type SentBy } from "./client-model.ts";
import { createFolding, type Folding } from "./folding.ts";
import { identify, type Endpoint, type Headers, type Identity } from "./identity.ts";
import { learnFrom, learnOverflow, noteHostsAnswer, planRequest, storeAnswer } from "./planner.ts";
import type { Plan, PlannerDeps } from "./planner.ts";
import { answerReader, guardedReader, textReader } from "./read-answer.ts";
import { jsonOf, readRequest, type Request } from "./request.ts";
import { createLastBodies, keptBytes, type LastBodies, type LastBody } from "./last-bodies.ts";
import { nameConversation } from "./session.ts";
import { createSessions, type Sessions } from "./sessions.ts";
import { createStatuses } from "./statuses.ts";
import { textIn, type Answer, type Usage, type Wire } from "./wires/wire.ts";

export interface ModelCall extends Endpoint {
  /** Where it goes. */
  readonly url: URL;
  readonly headers: Headers;
  readonly body: Buffer;
  /** The program that it comes from, if each has a path of its own; else empty. */
  readonly run: string;
}

export interface ServedCall {
  /** Null to send the request unchanged. */
  readonly changed: Buffer | null;
  readonly onRefused: () => void;
  readonly onAnswer: (status: number, headers: Headers) => AnswerReader | null;
}

export interface ServiceDeps extends PlannerDeps {
  /** The folder that the programs work in; null if unknown. */
  readonly folder: string | null;
  /** Called when the status has changed. */
  readonly changed?: () => void;
  /** The agent's own model, for users who have agreed to its use; absent otherwise. */
  readonly modelWith?: (client: ClientModel) => Promise<Model>;
  /** How long a session must be idle for its fold; as long as caches live by default. */
  readonly idleMs?: number;
}

export interface Service {
  /** Never throws, and never takes longer than the deadline. */
  plan(call: ModelCall): Promise<ServedCall>;
  report(doing: string, error: unknown): void;
  status(): ProxyStatus;
  /** No more requests will come: what waits for an idle session is folded. */
  end(): void;
}

export type ProxyStatus = Pick<ProxyReport, "sessions" | "problems">;

/** After this many refusals of our prompt a session is only stored. */
const refusalsMax = 3;

export function createService(deps: ServiceDeps): Service {
  const { runtime, folder, changed: onChange = () => undefined } = deps;
  const state = {
    deps,
    sessions: createSessions(folder),
    statuses: createStatuses(runtime.clock, onChange),
    bodies: createLastBodies(),
    folding: createFolding(runtime, deps.idleMs),
  };
  return {
    async plan(call) {
      try {
        return await plan(state, call);
      } catch (error) {
        runtime.note("reading a request", error);
        return untouched;
      }
    },
    report: (doing, error) => runtime.note(doing, error),
    status: () => ({ sessions: state.statuses.all(), problems: runtime.troubles }),
    end: () => state.folding.flush(),
  };
}

interface State {
  readonly deps: ServiceDeps;
  readonly sessions: Sessions;
  readonly statuses: ReturnType<typeof createStatuses>;
  readonly bodies: LastBodies;
  readonly folding: Folding;
}

async function plan(state: State, call: ModelCall): Promise<ServedCall> {
  if (call.isCount) return await planCount(state, call);
  const { deps, bodies } = state;
  const last = bodies.get(hintOf(call));
  const reading = readRequest(call.wire, call.body, last?.request ?? null);
  const first = reading.next();
  if (first.done !== true) return await planLong(state, call, last, reading);
  const known = knownCall(deps, call, last, first.value);
  if (known === null) return untouched;
  const work = async (left: AbortSignal): Promise<Plan | null> => await planKnown(state, known, left);
  const planned = await deps.runtime.attempt(known.queue, "planning a request", work);
  return serve(state, known, planned);
}

/** A count must be of what would be sent. Nothing is written for it, and it is in no status. */
async function planCount({ deps, sessions, statuses }: State, call: ModelCall): Promise<ServedCall> {
  const known = knownCall(deps, call, null, await inSlices(readRequest(call.wire, call.body, null)));
  if (known === null) return untouched;
  const { who, request, queue } = known;
  const planned = await deps.runtime.attempt(queue, "planning a count", async () => {
    const lcm = await deps.runtime.open();
    const session = await sessions.known(lcm, who);
    return session && (await planRequest(deps, lcm, { session, who, request, isCount: true }));
  });
  const body = planned?.value?.body ?? null;
  return { ...untouched, changed: statuses.refused(who.host, who.sessionId ?? "") < refusalsMax ? body : null };
}

/** What is new in it takes a while to read. Others are served meanwhile, and the deadline holds for that, too. */
async function planLong(
  state: State,
  call: ModelCall,
  last: LastBody | null,
  reading: ReturnType<typeof readRequest>,
): Promise<ServedCall> {
  const { deps, bodies } = state;
  const hint = hintOf(call);
  const served = await deps.runtime.attempt(`reading ${hint}`, "reading a long request", async (left) => {
    // Another one of the session may have been read meanwhile.
    const newest = bodies.get(hint);
    const isStale = newest !== last;
    const request = await inSlices(isStale ? readRequest(call.wire, call.body, newest?.request ?? null) : reading);
    const known = knownCall(deps, call, newest, request);
    if (known === null) return untouched;
    // The next one need not read it again, even if this one is not planned in time.
    bodies.keep(hint, { request: known.request, sent: call.body });
    const planned = await deps.runtime.inOrder(known.queue, async () => await planKnown(state, known, left));
    return serve(state, known, left.aborted ? null : { value: planned });
  });
  return served?.value ?? untouched;
}

async function inSlices<T>(work: Generator<void, T>): Promise<T> {
  for (;;) {
    await othersFirst();
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

/** A request that was read, and what is known of the one before. */
interface KnownCall {
  readonly call: ModelCall;
  readonly last: LastBody | null;
  readonly request: Request;
  readonly who: Identity;
  readonly queue: string;
  /** What is planned for it, once it is, perhaps after it was sent. */
  readonly outcome: { plan: Plan | null };
}

function knownCall(
  deps: ServiceDeps,
  call: ModelCall,
  last: LastBody | null,
  request: Request | null,
): KnownCall | null {
  if (request === null) return null;
  const { count } = request.scanned;
  const who = identify(call.headers, request.rest, count === 0 ? null : jsonOf(request, count - 1));
  if (isExcluded(deps, who)) return null;
  return { call, last, request, who, queue: `${who.host}:${who.sessionId ?? call.run}`, outcome: { plan: null } };
}

/** Null if the request belongs to no session. */
async function planKnown(
  { deps, sessions, folding }: State,
  known: KnownCall,
  left: AbortSignal,
): Promise<Plan | null> {
  const { call, request, who } = known;
  const lcm = await deps.runtime.open();
  const session = await sessions.find(lcm, who, request, call.run);
  if (session === null) return null;
  folding.stir(session.conversation.id);
  const made = await planRequest(deps, lcm, { session, who, request, isCount: false });
  known.outcome.plan = made;
  // Perhaps its answer is not read, and nothing else folds what made it late.
  if (left.aborted) deps.runtime.compactSoon(session.conversation.id, deps.model);
  return made;
}

/** `planned` is null if there was no time to plan. */
function serve(
  { deps, statuses, bodies, folding }: State,
  known: KnownCall,
  planned: { readonly value: Plan | null } | null,
): ServedCall {
  const made = planned?.value ?? null;
  const { call, last, request, who, queue, outcome } = known;
  const status = statuses.of(who.host, made?.session.sessionId ?? who.sessionId ?? "unknown");
  const isRefused = status.read().refused >= refusalsMax;
  const changed = made === null || isRefused ? null : made.body;
  const sent = changed ?? call.body;
  const whyNoPlan = planned === null ? "it could not be read in time" : "it is not part of a conversation";
  const why = isRefused ? "the provider refused our prompt" : (made?.why ?? whyNoPlan);
  status.countRequest({
    bytesAsked: call.body.length,
    bytesSent: sent.length,
    bytesKept: keptBytes(request, sent, last),
    whyUnchanged: changed === null ? why : "",
    isPrompt: made?.isPrompt ?? false,
  });
  bodies.keep(hintOf(call), { request, sent });
  const model = textIn(request.rest["model"]) || null;
  let recording = recordRequest(deps, known, { made, model, why: changed === null ? why : null });
  let bytesSent = sent.length;
  const onRefused = (): void => {
    bytesSent = call.body.length;
    // The request itself goes on then.
    recording = recordRequest(deps, known, { made, model, why: "the provider refused our prompt" });
    status.countRefusal();
  };
  const countUsage = (usage: Usage): void => status.countUsage(usage, call.body.length, bytesSent);
  const onAnswer = (code: number, headers: Headers): AnswerReader => {
    const isInTime = made !== null;
    const answered = { wire: call.wire, headers, code, outcome, isInTime, who, countUsage, queue, recording };
    const reader = readerFor(deps, folding, {
      ...answered,
      writer: writerFor(deps, { ...call, rest: request.rest }),
    });
    return guardedReader(reader, (error) => deps.runtime.note("reading an answer", error));
  };
  return { changed, onRefused, onAnswer };
}

const untouched: ServedCall = { changed: null, onRefused: () => undefined, onAnswer: () => null };

function isExcluded({ runtime }: ServiceDeps, { host, sessionId }: Identity): boolean {
  const { enabled, ignoreSessionPatterns, statelessSessionPatterns } = runtime.settings.values;
  const patterns = [...ignoreSessionPatterns, ...statelessSessionPatterns];
  return !enabled || patterns.some((pattern) => matchesPattern(pattern, `${host}:${sessionId ?? ""}`));
}

interface SentRequest {
  /** Null if there was no time to plan. */
  readonly made: Plan | null;
  readonly model: string | null;
  /** Why it went unchanged; null if it did not. */
  readonly why: string | null;
}

/** Only of turns: other requests are not behind an answer of the conversation. */
async function recordRequest(
  { runtime }: ServiceDeps,
  { who, queue, outcome }: KnownCall,
  { made, model, why }: SentRequest,
): Recording {
  if (who.kind !== "turn") return await notRecorded;
  if (made !== null && made.assembly !== null && why === null)
    return await recordOurs(runtime, queue, made.assembly, { model });
  // A late plan ends before the next work of the session begins.
  const find = async () =>
    await runtime.inOrder(queue, async () => await Promise.resolve(outcome.plan?.session.conversation ?? null));
  return await recordHosts(runtime, queue, { find, why: why ?? "", model });
}

interface AnswerTo {
  readonly wire: Wire;
  readonly headers: Headers;
  readonly code: number;
  readonly outcome: KnownCall["outcome"];
  /** Whether the plan was made before the request was sent. */
  readonly isInTime: boolean;
  readonly who: Identity;
  readonly countUsage: (usage: Usage) => void;
  /** The session's, in which the answer is stored behind its request. */
  readonly queue: string;
  readonly recording: Recording;
  /** Who writes summaries; null to extract them. */
  readonly writer: () => Promise<Model | null>;
}

/** The model that the user has chosen, else the agent's own if the user has agreed to that. */
function writerFor({ model, modelWith }: ServiceDeps, sent: SentBy): AnswerTo["writer"] {
  const client = model === null && modelWith !== undefined ? clientModelOf(sent) : null;
  return async () => (client === null || modelWith === undefined ? model : await modelWith(client));
}

function readerFor(deps: ServiceDeps, folding: Folding, to: AnswerTo): AnswerReader {
  const { runtime } = deps;
  const { wire, who, countUsage, queue } = to;
  const later = (doing: string, work: (lcm: Lcm, plan: Plan) => Promise<unknown>): void => {
    const task = runtime.inOrder(queue, async () => {
      const { plan } = to.outcome;
      // A request that could not be stored comes again with the next one, and so does its answer.
      if (plan !== null) await work(await runtime.open(), plan);
    });
    task.catch((error: unknown) => runtime.note(doing, error));
  };
  if (to.code !== 200)
    return textReader((said) => {
      if (!isOverflow(to.code, said)) return;
      recordEnd(runtime, queue, to.recording, { outcome: "overflow" });
      later("folding after an overflow", async (lcm, plan) => await learnOverflow(deps, lcm, plan));
    });
  return answerReader(wire, to.headers, (answer: Answer) => {
    if (answer.usage !== null) countUsage(answer.usage);
    const { input: counted = null, cached = null } = answer.usage ?? {};
    recordEnd(runtime, queue, to.recording, { outcome: "answered", counted, cached });
    later("storing an answer", async (lcm, plan) => {
      if (who.kind !== "turn") return noteHostsAnswer(wire, plan, answer);
      if (to.isInTime) learnFrom(deps, plan, answer);
      await storeAnswer(lcm, wire, plan, answer);
      await nameConversation(lcm, plan.session);
      await folding.consider(lcm, plan.session.conversation.id, await to.writer());
      runtime.embedSoon();
    });
  });
}

const isOverflow = (code: number, said: string): boolean =>
  code === 413 || (code === 400 && /context_length_exceeded|prompt is too long|context (?:length|window)/i.test(said));

/** Whose last body this one probably continues. */
function hintOf({ headers, run, wire }: ModelCall): string {
  const names = [
    "x-claude-code-session-id",
    "x-claude-code-agent-id",
    "thread-id",
    "x-session-id",
    "session_id",
    "user-agent",
  ];
  return [run, wire.name, ...names.map((name) => String(headers[name] ?? ""))].join(" ");
}
