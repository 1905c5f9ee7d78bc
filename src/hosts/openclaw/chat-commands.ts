/**
 * `/lcm`, also called `/lossless`: what a person asks from within the chat, perhaps on a phone. So an answer is a few
 * short lines, and what needs somebody comes first. Nothing here is an error to the host: what goes wrong is said.
 */

import { groupsOf, levelSentence } from "../../format/findings.ts";
import type { CompactReport } from "../../core/compaction/compact.ts";
import { errorText } from "../../core/base/errors.ts";
import type { Finding } from "../../core/maintenance/inspect.ts";
import { isSound } from "../../core/maintenance/inspect.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { StoreStatus } from "../../core/model/store.ts";
import { changedSettings } from "../../core/model/settings.ts";
import type { Settings } from "../../core/model/settings.ts";
import type { Spend } from "../../core/model-calls/metering.ts";
import { firstLine } from "../../core/base/excerpt.ts";
import { count } from "../../agent-tools/text.ts";
import type { CommandContext, ReadTranscript, TranscriptPlace } from "./host-api.ts";
import { createHostModel } from "./host-model.ts";
import { describeError } from "./runtime.ts";
import type { Runtime } from "./runtime.ts";
import { agentOf, compactionSecondsOf, isIncognito, serviceOf } from "./sessions.ts";
import type { Service } from "./sessions.ts";
import { drainToReset } from "./read-transcript.ts";
import { findActive } from "./segments.ts";
import { formatTimestamp, msToTimestamp } from "../../core/base/time.ts";
import { formatBytes, formatCount } from "../../core/base/format.ts";
import type { Due } from "../../core/compaction/due.ts";
import { withDeadline } from "../../core/base/deadline.ts";
import type { Timestamp } from "../../core/base/time.ts";

/** Of our engine, as the host knows it. */
const engineId = "lossless-claw";

/** A command as it was given, and what it is about. */
interface Asked {
  readonly runtime: Runtime;
  readonly read: ReadTranscript;
  readonly call: CommandContext;
  /** What stands behind the word. */
  readonly rest: string;
  readonly service: Service;
  readonly place: TranscriptPlace;
  /** A time as the person knows it. */
  readonly clock: (at: Timestamp) => string;
}

interface Word {
  readonly says: string;
  readonly answer: (asked: Asked) => Promise<readonly string[]> | readonly string[];
}

const words: ReadonlyMap<string, Word> = new Map([
  ["status", { says: "what is stored, how full the context is, what needs you", answer: tellStatus }],
  ["doctor", { says: "check that nothing is lost, doubled or broken", answer: examine }],
  ["compact", { says: "fold now what can be folded; words behind it tell the model what to keep", answer: fold }],
  ["help", { says: "this", answer: help }],
]);

/** Never throws. */
export async function runCommand(
  runtime: Runtime,
  read: ReadTranscript,
  call: CommandContext,
): Promise<{ readonly text: string }> {
  const [, word = "", rest = ""] = /^\s*(\S*)\s*([^]*?)\s*$/.exec(call.args ?? "") ?? [];
  const known = words.get(word.toLowerCase() || "status");
  if (known === undefined)
    return { text: [`There is no ${code(`/lcm ${firstLine(word, 20)}`)}. There is:`, ...wordLines()].join("\n") };
  const { sessionKey = "", sessionId = "" } = call;
  const service = serviceOf(runtime.settings.values, call.sessionKey);
  const place = { agentId: call.agentId ?? agentOf(sessionKey), sessionKey, sessionId };
  try {
    const lines = await known.answer({ runtime, read, call, rest, service, place, clock: clockOf(call) });
    return { text: lines.join("\n") };
  } catch (error) {
    runtime.note(`answering /lcm ${word}`, error);
    return { text: `⚠️ ${sentence(describeError(error))}` };
  }
}

const wordLines = (): readonly string[] => [...words].map(([word, { says }]) => `- \`/lcm ${word}\`: ${says}`);

function help(): readonly string[] {
  return [
    "**Lossless Claw** keeps every message. Old ones are folded into summaries, and from each summary the agent " +
      "finds its way back to what was said.",
    ...wordLines(),
    "",
    "`/lossless` is the same. On the machine itself, `openclaw lcm` searches, browses, backs up and mends.",
  ];
}

/** In the zone that the host's people live in, else in the machine's. */
function clockOf({ config }: CommandContext): Asked["clock"] {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  return (at) => {
    try {
      return formatTimestamp(at, config?.agents?.defaults?.userTimezone ?? timeZone);
    } catch {
      return formatTimestamp(at, timeZone); // There is no such zone, which is for the host to say.
    }
  };
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/\.?$/, ".")}`;

const code = (text: string): string => `\`${text.replaceAll("`", "'")}\``;

/** Why nothing of a session is stored; null if it is. */
function leftWords({ service, runtime, call }: Asked): string | null {
  const { values, sources } = runtime.settings;
  if (service === "served") return null;
  if (!values.enabled) return `All is switched off (\`enabled: false\`, ${sources.enabled}).`;
  if (call.sessionKey === undefined) return "This chat belongs to no session, so nothing of it is stored.";
  if (isIncognito(call.sessionKey)) return "It is incognito: nothing of it is stored or folded.";
  return service === "reader"
    ? "It only reads (`statelessSessionPatterns`): nothing of it is stored or folded."
    : "It is left to OpenClaw (`ignoreSessionPatterns`): nothing of it is stored or folded.";
}

/** A reset stands in the transcript alone, until the next turn reads it. What cannot be read now, that will. */
async function openCaughtUp({ runtime, read, service, place }: Asked): Promise<Lcm> {
  const lcm = await runtime.open();
  const doing = `catching up ${place.sessionKey} for a command`;
  if (service === "served" && place.sessionId !== "")
    await runtime.attempt(place.sessionKey, doing, async () => await drainToReset(lcm, read, place));
  return lcm;
}

const nothingYet = "Nothing is stored of it yet. From your next message on everything is, the past included.";

// ── Status ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What a database tells about a session and about itself. */
type State = Awaited<ReturnType<typeof readState>>;

async function tellStatus(asked: Asked): Promise<readonly string[]> {
  const { runtime, service } = asked;
  // Where nothing is stored, asking makes no database.
  const isThere = service !== "left" || runtime.isOpen();
  const found = isThere ? await readState(asked).catch(describeError) : null;
  const state = typeof found === "string" ? null : found;
  const concerns = [
    ...(typeof found === "string" ? [`The database ${code(runtime.path)} cannot be read: ${found}`] : []),
    ...concernsOf(asked, state),
  ];
  const number = state?.session?.conversation.id ?? null;
  return [
    concerns.length === 0
      ? "✅ **Lossless Claw**: all is well"
      : `⚠️ **Lossless Claw**: ${count(concerns.length, "thing")} to look at`,
    ...concerns.map((concern) => `- ${concern}`),
    ...section(`This session${number === null ? "" : ` (conversation ${number})`}`, await sessionLines(asked, state)),
    ...(state === null ? [] : section("Database", databaseLines(state.store))),
    ...(state === null ? [] : section("Model calls", [spendWords(state.spend)])),
    ...section("Settings", settingLines(runtime)),
  ];
}

const section = (title: string, lines: readonly string[]): readonly string[] =>
  lines.length === 1
    ? ["", `**${title}**: ${lines.join("")}`]
    : ["", `**${title}**`, ...lines.map((line) => `- ${line}`)];

async function readState(asked: Asked) {
  const lcm = await openCaughtUp(asked);
  return {
    session: asked.service === "served" ? await readSession(lcm, asked.place) : null,
    store: await lcm.store.status(),
    spend: await lcm.spend(),
  };
}

async function readSession(lcm: Lcm, place: TranscriptPlace) {
  const { store } = lcm;
  const conversation = await findActive(store, place);
  if (conversation === null) return null;
  const { id } = conversation;
  return {
    conversation,
    segments: await store.conversations({ familyOf: id }),
    due: await lcm.due(id),
    summaries: await store.context(id, { kind: "summary" }),
    last: (await store.compactions(id, 1))[0] ?? null,
  };
}

/** What somebody should know who asks whether all is well. */
function concernsOf({ runtime, call, clock }: Asked, state: State | null): readonly string[] {
  const slot = call.config?.plugins?.slots?.contextEngine ?? engineId;
  const aside = findQuarantine();
  const last = state?.session?.last ?? null;
  const { usage, callsMax, breakers } = state?.spend ?? { usage: { calls: 0 }, callsMax: 1, breakers: [] };
  const trouble = runtime.troubles.at(-1);
  const earlier = runtime.troubles.length - 1;
  const { unknownKeys } = runtime.settings;
  return [
    slot !== engineId &&
      `OpenClaw's context engine is ${code(slot)}, so nothing new is stored: \`plugins.slots.contextEngine\` names it`,
    aside !== null &&
      `OpenClaw has put this engine aside: ${aside.why} (${clock(aside.at)}). Until it is restarted, its own ` +
        "compaction answers `/compact`; `/lcm compact` is ours",
    usage.calls >= callsMax && "The model calls of this window are used up: passes wait, or do without a model",
    ...breakers.map(({ provider, at, until }) => {
      const asks = `it is asked again from ${clock(until)} on`;
      return `${provider} refused the credential (${clock(at)}); ${asks}`;
    }),
    (last?.outcome === "failed" || last?.outcome === "waiting") &&
      "The last compaction did not come to its end, see below",
    trouble !== undefined &&
      `While ${trouble.doing}: ${trouble.message} (${clock(trouble.at)})` +
        (earlier === 0 ? "" : `. ${formatCount(earlier)} more before it, see OpenClaw's log`),
    unknownKeys.length > 0 && `Not a setting, in the plugin's config: ${unknownKeys.map(code).join(", ")}`,
  ].filter((concern) => concern !== false);
}

/** What the host keeps of an engine that threw where it may not. Other versions of it keep nothing there. */
function findQuarantine(): { readonly at: Timestamp; readonly why: string } | null {
  const registry: unknown = Reflect.get(globalThis, Symbol.for("openclaw.contextEngineRegistryState"));
  const engines = isObject(registry) ? registry["quarantinedEngines"] : null;
  const entry: unknown = engines instanceof Map ? engines.get(engineId) : null;
  if (!isObject(entry)) return null;
  const { failedAt, operation, reason } = entry;
  const at = msToTimestamp(failedAt instanceof Date ? failedAt.getTime() : 0);
  return { at, why: `${code(errorText(operation))} failed with "${errorText(reason)}"` };
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;

async function sessionLines(asked: Asked, state: State | null): Promise<readonly string[]> {
  const { runtime, clock } = asked;
  const left = leftWords(asked);
  if (left !== null) return [left];
  if (state === null) return ["What is stored of it cannot be describeError now."];
  if (state.session === null) return [nothingYet];
  const { conversation, due, summaries, last } = state.session;
  const { totals, caughtUp } = conversation;
  const earlier = state.session.segments.filter(({ id }) => id !== conversation.id);
  const before = earlier.reduce((sum, segment) => sum + segment.totals.messages, 0);
  const depths = [...Map.groupBy(summaries, ({ depth }) => depth)].toSorted(([a], [b]) => b - a);
  const inContext = depths.map(([depth, of]) => `${formatCount(of.length)} of depth ${depth}`).join(", ") || "none";
  const newest = formatCount(runtime.settings.values.freshTailCount);
  const [context, budget, threshold] = [due.contextTokens, due.budget, due.thresholdTokens].map(formatCount);
  return [
    `${count(totals.messages, "message")} stored` +
      (earlier.length === 0 ? "" : `, and ${formatCount(before)} in ${count(earlier.length, "earlier segment")}`),
    `Context: ${context} of ${budget} tokens, folded above ${threshold}`,
    `Not folded: ${count(totals.contextMessages, "message")}, ${formatCount(totals.contextMessageTokens)} tokens; ` +
      `the newest ${newest} always stay`,
    `${count(totals.summaries, "summary", "summaries")}${totals.summaries === 0 ? "" : ` (in context: ${inContext})`}`,
    `${dueWords(due)}, ${runtime.isCompacting(conversation.id) ? "folding is under way" : "none under way"}`,
    ...(last === null ? [] : [`Last compaction: ${errorText(last.message)} (${clock(last.at)})`]),
    ...(caughtUp === 0
      ? []
      : [
          `${count(caughtUp, "message")} came outside a finished turn (commands, failed turns, turns of another ` +
            "engine); stored all the same",
        ]),
  ];
}

function dueWords({ kind, rawTokens }: Due): string {
  switch (kind) {
    case "nothing":
      return "No compaction due";
    case "incremental":
      return `One pass due for ${formatCount(rawTokens)} tokens`;
    case "sweep":
      return "Compaction due";
  }
}

function databaseLines({
  messages,
  conversations,
  summaries,
  bytes,
  path,
  belowNormal,
}: StoreStatus): readonly string[] {
  const below = Object.entries(belowNormal).filter(([, amount]) => amount > 0);
  const levelsWords = below.map(([level, amount]) => `${formatCount(amount)} ${level}`).join(", ");
  return [
    `${count(messages, "message")} in ${count(conversations, "conversation")}, ${formatBytes(bytes)}`,
    `${count(summaries, "summary", "summaries")}, ${below.length === 0 ? "none" : levelsWords} below normal`,
    code(path),
  ];
}

function spendWords({ usage, callsMax, windowMinutes }: Spend): string {
  const window = windowMinutes === 60 ? "hour" : count(windowMinutes, "minute");
  const [calls, most, failures] = [usage.calls, callsMax, usage.failures].map(formatCount);
  return `${calls} of ${most} in the last ${window}, ${failures} failed`;
}

const valueCharsMax = 60;

function settingLines({ settings }: Runtime): readonly string[] {
  const changed = changedSettings(settings);
  if (changed.length === 0) return ["all default"];
  return changed.map(({ key, env, value, source }) => {
    const shown = firstLine(typeof value === "string" ? value : JSON.stringify(value), valueCharsMax);
    return `${code(`${key}: ${shown}`)} (${source === "environment" ? code(env) : source})`;
  });
}

// ── Doctor ───────────────────────────────────────────────────────────────────────────────────────────────────────────

const marks: Readonly<Record<Finding["severity"], string>> = { error: "❌", warning: "⚠️", info: "ℹ️" };

async function examine(asked: Asked): Promise<readonly string[]> {
  const left = leftWords(asked);
  if (left !== null) return [`**This session**: ${left}`];
  const { sessionKey, agentId } = asked.place;
  const lcm = await openCaughtUp(asked);
  const segments = await lcm.store.conversations({ sessionKey, agentId, includeHidden: true });
  if (segments.length === 0) return [`**This session**: ${nothingYet}`];
  const findings: Finding[] = [];
  for (const { id } of segments) findings.push(...(await lcm.inspect(id)));
  const messages = segments.reduce((sum, { totals }) => sum + totals.messages, 0);
  const summaries = segments.reduce((sum, { totals }) => sum + totals.summaries, 0);
  return [
    `${verdictOf(findings)}: ${count(messages, "message")} and ${count(summaries, "summary", "summaries")} checked.`,
    ...(await groupsOf(lcm.store, findings)).map(({ severity, sentence: all, findings: [first, ...others] }) => {
      const more = others.length === 0 ? "" : ` (and ${formatCount(others.length)} more like it)`;
      return `- ${marks[severity]} ${sentence(all ?? `${first?.message}${more}`)}`;
    }),
    ...(isSound(findings) ? [] : ["", "On the machine, `openclaw lcm doctor` names each one and what mends it."]),
  ];
}

function verdictOf(findings: readonly Finding[]): string {
  const errors = findings.filter(({ severity }) => severity === "error").length;
  const warnings = findings.filter(({ severity }) => severity === "warning").length;
  if (errors > 0) return `❌ **Not sound**, ${count(errors, "error")}`;
  return warnings > 0 ? `⚠️ **Nothing lost or broken**, ${count(warnings, "warning")}` : "✅ **All is well**";
}

// ── Compact ──────────────────────────────────────────────────────────────────────────────────────────────────────────

async function fold(asked: Asked): Promise<readonly string[]> {
  const { runtime, call, rest } = asked;
  const left = leftWords(asked);
  if (left !== null) return [`**This session**: ${left}`, "`/compact` is OpenClaw's own here."];
  const lcm = await openCaughtUp(asked);
  const conversation = await findActive(lcm.store, asked.place);
  if (conversation === null) return [`**This session**: ${nothingYet}`];
  const llm = call.runtimeContext?.llm;
  const model = llm === undefined ? null : lcm.metered(createHostModel(llm, runtime));
  const report = await withDeadline(compactionSecondsOf(call.config) * 1_000, undefined, async (signal) =>
    lcm.compact({
      conversation: conversation.id,
      mode: "sweep",
      force: true,
      signal,
      ...(model === null ? {} : { model }),
      ...(rest === "" ? {} : { customInstructions: rest }),
    }),
  );
  const byLevel = Map.groupBy(report.passes, ({ level }) => level);
  return [
    `${report.compacted ? "✅ " : ""}${sentence(errorText(report.message))}`,
    ...wayOn(report, runtime.settings.values),
    ...[...byLevel].flatMap(([level, passes]) => levelSentence(level, passes.length) ?? []).map(sentence),
    ...(model === null ? ["OpenClaw offers no model here, so texts are extracted, and follow no instructions."] : []),
  ];
}

/** What it means, and how it goes on. */
function wayOn({ outcome, passes }: CompactReport, { freshTailCount }: Settings): readonly string[] {
  switch (outcome.kind) {
    case "waiting":
      return ["What is folded stays. It goes on after your next message, or with `/lcm compact`."];
    case "failed":
      return ["What is folded stays. `/lcm doctor` checks what is stored."];
    case "bounded":
      return ["What is folded stays, and `/lcm compact` goes on from there."];
    case "idle":
    case "under":
    case "settled":
      return passes.length > 0 ? [] : [`The newest ${count(freshTailCount, "message")} always stay as they are.`];
  }
}
