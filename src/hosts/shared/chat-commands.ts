/** Answers `/lcm` in a chat with a few short lines, problems first: people may read it on a phone. */

import { groupsOf, levelSentence } from "../../format/findings.ts";
import type { CompactReport } from "../../core/compaction/compact.ts";
import { errorText } from "../../core/base/errors.ts";
import { isSound, type Finding } from "../../core/maintenance/inspect.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Model, StoreStatus } from "../../core/model/store.ts";
import { changedSettings, misplacedWords, type Settings } from "../../core/model/settings.ts";
import type { Spend } from "../../core/model-calls/metering.ts";
import { firstLine } from "../../core/base/excerpt.ts";
import { describeError, type Runtime } from "./runtime.ts";
import { formatTimestamp, type Timestamp } from "../../core/base/time.ts";
import { formatBytes, formatCount, plural } from "../../core/base/format.ts";
import { oneLine } from "../../format/safe-text.ts";
import { whyPinned } from "../../format/pins.ts";
import { messageName, type Conversation } from "../../core/model/types.ts";
import type { Due } from "../../core/compaction/due.ts";
import { withDeadline } from "../../core/base/deadline.ts";

/** How the answers name the host. */
export interface HostWords {
  readonly name: string;
  /** What a person types on the machine for `lcm`. */
  readonly shell: string;
  /** What uses the host's own compaction, if a session is not ours. */
  readonly ownCompaction: string;
  /** Other names of the command. */
  readonly alias?: string;
}

/** One call of the command, by whichever host. */
export interface CommandCall {
  readonly runtime: Runtime;
  readonly host: HostWords;
  /** The text after `/lcm`. */
  readonly words: string;
  /** Why nothing of this session is stored; null if it is stored. */
  readonly unstored: string | null;
  /** Whether the session may read the database at all. */
  readonly mayRead: boolean;
  readonly zone?: string | undefined;
  readonly compactionMs: number;
  readonly model: Model | null;
  /** Opens the database, once what the host has written so far is stored. */
  open(): Promise<Lcm>;
  conversation(lcm: Lcm): Promise<Conversation | null>;
  /** All segments of the session. */
  family(lcm: Lcm): Promise<readonly Conversation[]>;
  /** Problems that only the host knows of. */
  concerns?(clock: (at: Timestamp) => string): readonly string[];
}

interface Request {
  readonly call: CommandCall;
  readonly runtime: Runtime;
  /** The text after the subcommand. */
  readonly rest: string;
  /** A time in the person's zone. */
  readonly clock: (at: Timestamp) => string;
}

type Answer = (request: Request) => Promise<readonly string[]> | readonly string[];

const subcommands: ReadonlyMap<string, { readonly summary: string; readonly answer: Answer }> = new Map([
  ["status", { summary: "show what is stored, how full the context is, and any problems", answer: showStatus }],
  ["doctor", { summary: "check that nothing is lost, duplicated or broken", answer: examine }],
  ["compact", { summary: "fold what can be folded now; add words to tell the model what to keep", answer: compact }],
  ["pins", { summary: "list the standing instructions that every prompt keeps, and why", answer: listPins }],
  ["help", { summary: "show this list", answer: help }],
]);

/** Never throws. */
export async function answerCommand(call: CommandCall): Promise<string> {
  const { runtime } = call;
  const [, word = "", rest = ""] = /^\s*(\S*)\s*([^]*?)\s*$/.exec(call.words) ?? [];
  const known = subcommands.get(word.toLowerCase() || "status");
  if (known === undefined)
    return [`Unknown command ${code(`/lcm ${firstLine(word, 20)}`)}. Available:`, ...helpLines()].join("\n");
  try {
    return (await known.answer({ call, runtime, rest, clock: clockIn(call.zone) })).join("\n");
  } catch (error) {
    runtime.note(`answering /lcm ${word}`, error);
    return `⚠️ ${sentence(describeError(error))}`;
  }
}

const helpLines = (): readonly string[] =>
  [...subcommands].map(([name, { summary }]) => `- \`/lcm ${name}\`: ${summary}`);

function help({ call }: Request): readonly string[] {
  const { alias, shell } = call.host;
  return [
    "**Lossless Claw** keeps every message. It folds old ones into summaries; the agent can recall the originals.",
    ...helpLines(),
    "",
    (alias === undefined ? "" : `\`${alias}\` is the same command. `) +
      `On the machine, \`${shell}\` can search, browse, back up and repair.`,
  ];
}

const pinsShown = 20;

async function listPins(request: Request): Promise<readonly string[]> {
  const { call } = request;
  if (call.unstored !== null) return [call.unstored];
  const lcm = await call.open();
  const { store } = lcm;
  const conversation = await call.conversation(lcm);
  if (conversation === null) return [nothingYet];
  const pins = await store.pins(conversation.id, { inForce: true, limit: pinsShown + 1 });
  if (pins.length === 0)
    return ["Nothing is pinned. What you say for good (“always …”, “never …”) is pinned by itself."];
  return [
    "**Standing instructions**, newest first; prompts repeat them once your message is no longer shown:",
    ...pins
      .slice(0, pinsShown)
      .map((pin) => `- ${oneLine(pin.words)} (${messageName(pin.message)}, ${whyPinned(pin)})`),
    ...(pins.length > pinsShown ? [`- … more: \`${call.host.shell} pins ${conversation.id}\``] : []),
    "",
    `Unpin one: ask the agent, or run \`${call.host.shell} pins --remove msg_… --apply\`.`,
  ];
}

/** In this time zone, or else the machine's. */
function clockIn(zone: string | undefined): Request["clock"] {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  return (at) => {
    try {
      return formatTimestamp(at, zone ?? timeZone);
    } catch {
      return formatTimestamp(at, timeZone); // An unknown zone is the host's to report.
    }
  };
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/\.?$/, ".")}`;

export const code = (text: string): string => `\`${text.replaceAll("`", "'")}\``;

const nothingYet = "Nothing is stored yet. Your next message stores everything, including the past.";

type State = Awaited<ReturnType<typeof readState>>;

async function showStatus(request: Request): Promise<readonly string[]> {
  const { runtime, call } = request;
  // Asking for the status of an unserved session must not create a database.
  const isReadable = call.mayRead || runtime.isOpen();
  const result = isReadable ? await readState(request).catch(describeError) : null;
  const state = typeof result === "string" ? null : result;
  const concerns = [
    ...(typeof result === "string" ? [`The database ${code(runtime.path)} cannot be read: ${result}`] : []),
    ...concernsOf(request, state),
  ];
  const number = state?.session?.conversation.id ?? null;
  return [
    concerns.length === 0
      ? "✅ **Lossless Claw**: all is well"
      : `⚠️ **Lossless Claw**: ${plural(concerns.length, "thing")} to look at`,
    ...concerns.map((concern) => `- ${concern}`),
    ...section(`This session${number === null ? "" : ` (conversation ${number})`}`, sessionLines(request, state)),
    ...(state === null ? [] : section("Database", databaseLines(state.store))),
    ...(state === null ? [] : section("Model calls", [spendText(state.spend)])),
    ...section("Settings", settingLines(runtime)),
  ];
}

const section = (title: string, lines: readonly string[]): readonly string[] =>
  lines.length === 1
    ? ["", `**${title}**: ${lines.join("")}`]
    : ["", `**${title}**`, ...lines.map((line) => `- ${line}`)];

async function readState({ call }: Request) {
  const lcm = await call.open();
  return {
    session: call.unstored === null ? await readSession(lcm, call) : null,
    store: await lcm.store.status(),
    spend: await lcm.spend(),
  };
}

async function readSession(lcm: Lcm, call: CommandCall) {
  const { store } = lcm;
  const conversation = await call.conversation(lcm);
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

function concernsOf({ runtime, call, clock }: Request, state: State | null): readonly string[] {
  const last = state?.session?.last ?? null;
  const { usage, callsMax, breakers } = state?.spend ?? { usage: { calls: 0 }, callsMax: 1, breakers: [] };
  const trouble = runtime.troubles.at(-1);
  const earlier = runtime.troubles.length - 1;
  const { unknownKeys, misplaced } = runtime.settings;
  return [
    ...(call.concerns?.(clock) ?? []),
    usage.calls >= callsMax && "All model calls of this window are used up: compaction waits, or runs without a model",
    ...breakers.map(
      ({ provider, at, until }) =>
        `${provider} rejected the credential (${clock(at)}); it is retried after ${clock(until)}`,
    ),
    (last?.outcome === "failed" || last?.outcome === "waiting") && "The last compaction did not finish; see below",
    trouble !== undefined &&
      `While ${trouble.doing}: ${trouble.message} (${clock(trouble.at)})` +
        (earlier === 0 ? "" : `. ${plural(earlier, "earlier problem")} in ${call.host.name}'s log`),
    unknownKeys.length > 0 &&
      `The plugin's config has unknown settings, which are ignored: ${unknownKeys.map(code).join(", ")}`,
    ...misplaced.map((each) => `In \`openclaw.json\`, ${misplacedWords(each)}`),
  ].filter((concern) => concern !== false);
}

function sessionLines(request: Request, state: State | null): readonly string[] {
  const { runtime, clock, call } = request;
  if (call.unstored !== null) return [call.unstored];
  if (state === null) return ["Not available right now."];
  if (state.session === null) return [nothingYet];
  const { conversation, due, summaries, last } = state.session;
  const { totals, caughtUp } = conversation;
  const earlier = state.session.segments.filter(({ id }) => id !== conversation.id);
  const before = earlier.reduce((sum, segment) => sum + segment.totals.messages, 0);
  const depths = [...Map.groupBy(summaries, ({ depth }) => depth)].toSorted(([a], [b]) => b - a);
  const inContext = depths.map(([depth, of]) => `${formatCount(of.length)} of depth ${depth}`).join(", ") || "none";
  const newest = formatCount(runtime.settings.values.freshTailCount);
  const [prompt, budget, threshold] = [due.promptTokens, due.budget, due.thresholdTokens].map(formatCount);
  return [
    `${plural(totals.messages, "message")} stored` +
      (earlier.length === 0 ? "" : `, and ${formatCount(before)} in ${plural(earlier.length, "earlier segment")}`),
    `Prompt: about ${prompt} of ${budget} tokens, compacted above ${threshold}`,
    `Not folded: ${plural(totals.contextMessages, "message")}, ${formatCount(totals.contextMessageTokens)} tokens; ` +
      `the newest ${newest} are folded only if a prompt would not fit`,
    `${plural(totals.summaries, "summary", "summaries")}${totals.summaries === 0 ? "" : ` (in context: ${inContext})`}`,
    `${dueText(due)}, ${runtime.isCompacting(conversation.id) ? "compaction running" : "none running"}`,
    ...(last === null ? [] : [`Last compaction: ${errorText(last.message)} (${clock(last.at)})`]),
    ...(caughtUp === 0
      ? []
      : [
          `${plural(caughtUp, "message")} from outside a finished turn (commands, failed turns, turns of another ` +
            "engine), stored too",
        ]),
  ];
}

function dueText({ kind, rawTokens }: Due): string {
  switch (kind) {
    case "nothing":
      return "No compaction due";
    case "incremental":
      return `One pass due for ${formatCount(rawTokens)} tokens`;
    case "sweep":
      return "Compaction due";
  }
}

function databaseLines(status: StoreStatus): readonly string[] {
  const { messages, conversations, summaries, bytes, path, belowNormal } = status;
  const below = Object.entries(belowNormal).filter(([, amount]) => amount > 0);
  const levels = below.map(([level, amount]) => `${formatCount(amount)} ${level}`).join(", ");
  return [
    `${plural(messages, "message")} in ${plural(conversations, "conversation")}, ${formatBytes(bytes)}`,
    `${plural(summaries, "summary", "summaries")}, ${below.length === 0 ? "none below normal" : `below normal: ${levels}`}`,
    ...meaningLines(status),
    code(path),
  ];
}

const meaningLines = ({ vectors, embedders }: StoreStatus): readonly string[] => [
  ...vectors.map(
    ({ model, made, pending }) =>
      `Meaning: ${plural(made, "message")} embedded by ${code(model)}, ${pending === 0 ? "complete" : `${formatCount(pending)} to do`}`,
  ),
  ...embedders.slice(-1).flatMap(({ name, failure }) => (failure === null ? [] : [`${code(name)} failed: ${failure}`])),
];

function spendText({ usage, callsMax, windowMinutes }: Spend): string {
  const window = windowMinutes === 60 ? "hour" : plural(windowMinutes, "minute");
  const [calls, most, failures] = [usage.calls, callsMax, usage.failures].map(formatCount);
  return `${calls} of ${most} in the last ${window}, ${failures} failed`;
}

const valueCharsMax = 60;

function settingLines({ settings }: Runtime): readonly string[] {
  const changed = changedSettings(settings);
  if (changed.length === 0) return ["all defaults"];
  return changed.map(({ key, env, value, source }) => {
    const shown = firstLine(typeof value === "string" ? value : JSON.stringify(value), valueCharsMax);
    return `${code(`${key}: ${shown}`)} (${source === "environment" ? code(env) : source})`;
  });
}

const marks: Readonly<Record<Finding["severity"], string>> = { error: "❌", warning: "⚠️", info: "ℹ️" };

async function examine({ call }: Request): Promise<readonly string[]> {
  if (call.unstored !== null) return [`**This session**: ${call.unstored}`];
  const lcm = await call.open();
  const segments = await call.family(lcm);
  if (segments.length === 0) return [`**This session**: ${nothingYet}`];
  const findings: Finding[] = [];
  for (const { id } of segments) findings.push(...(await lcm.inspect(id)));
  const messages = segments.reduce((sum, { totals }) => sum + totals.messages, 0);
  const summaries = segments.reduce((sum, { totals }) => sum + totals.summaries, 0);
  return [
    `${verdictOf(findings)}: ${plural(messages, "message")} and ${plural(summaries, "summary", "summaries")} checked.`,
    ...(await groupsOf(lcm.store, findings)).map(({ severity, sentence: all, findings: [first, ...others] }) => {
      const more = others.length === 0 ? "" : ` (and ${formatCount(others.length)} more like it)`;
      return `- ${marks[severity]} ${sentence(all ?? `${first?.message}${more}`)}`;
    }),
    ...(isSound(findings)
      ? []
      : ["", `On the machine, \`${call.host.shell} doctor\` lists each one and how to fix it.`]),
  ];
}

function verdictOf(findings: readonly Finding[]): string {
  const errors = findings.filter(({ severity }) => severity === "error").length;
  const warnings = findings.filter(({ severity }) => severity === "warning").length;
  if (errors > 0) return `❌ **Problems found**, ${plural(errors, "error")}`;
  return warnings > 0 ? `⚠️ **Nothing lost or broken**, ${plural(warnings, "warning")}` : "✅ **All is well**";
}

async function compact({ runtime, call, rest }: Request): Promise<readonly string[]> {
  const { unstored, host } = call;
  if (unstored !== null) return [`**This session**: ${unstored}`, `${host.ownCompaction} here.`];
  const lcm = await call.open();
  const conversation = await call.conversation(lcm);
  if (conversation === null) return [`**This session**: ${nothingYet}`];
  const model = call.model === null ? null : lcm.metered(call.model);
  const report = await withDeadline(call.compactionMs, undefined, async (signal) =>
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
    ...nextSteps(report, runtime.settings.values),
    ...[...byLevel].flatMap(([level, passes]) => levelSentence(level, passes.length) ?? []).map(sentence),
    ...(model === null
      ? [`${host.name} offers no model here, so summaries are extracted and ignore instructions.`]
      : []),
  ];
}

function nextSteps({ outcome, passes }: CompactReport, { freshTailCount }: Settings): readonly string[] {
  switch (outcome.kind) {
    case "waiting":
      return ["What was folded is kept. It continues after your next message, or with `/lcm compact`."];
    case "failed":
      return ["What was folded is kept. Check what is stored with `/lcm doctor`."];
    case "bounded":
      return ["What was folded is kept. Continue with `/lcm compact`."];
    case "idle":
    case "under":
    case "settled":
      return passes.length > 0
        ? []
        : [`The newest ${plural(freshTailCount, "message")} are folded only if a prompt would not fit.`];
  }
}
