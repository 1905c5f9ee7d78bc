/** The reads of the API: what each takes from a query, and what it answers. */

import { LcmError, errorText } from "../core/base/errors.ts";
import { isSummaryId, roles, seqOf } from "../core/model/types.ts";
import type { JournalEntry, MessageId, SummaryId } from "../core/model/types.ts";
import { caveatSentence } from "../core/recall/grep.ts";
import type { PromptChoice } from "../core/seen/find-seen.ts";
import { readStatus } from "../core/status.ts";
import { bareName } from "../format/conversations.ts";
import { conversationsAsks, type ConversationRow as Row } from "../operator/conversations.ts";
import { historyAsks } from "../operator/history.ts";
import type { Doing, Port } from "../operator/port.ts";
import { reachFor, toHits } from "../operator/search.ts";
import type { Activity, ConversationRow, Found, Hit, Reads } from "./contract.ts";
import type { Jobs } from "./jobs.ts";
import { placesOf } from "./layout.ts";
import { readInView, readItem, readPrompt, readPromptNow, readPromptNumbers, readStats } from "./prompts.ts";
import { must, type Query } from "./query.ts";
import { findId, messageInShort, readFile, readMessage, readSources, readSummary } from "./reading.ts";
import type { About, ReadTable } from "./tables.ts";
import { createTimeline, paceOf, seqSince } from "./timeline.ts";

interface Parts {
  readonly jobs: Jobs;
  readonly about: About;
}

export const createReads = ({ jobs, about }: Parts): ReadTable => ({
  session: async (_, { port }) => await readSession(port, about),
  ...lists,
  ...createTimelineReads(),
  ...reading,
  ...createPromptReads(about),
  search: readSearch,
  status: async (_, { port }) => await readStatus(await port.reading(), 1),
  job: async (query) => jobs.find(must("id", query.text("id"))),
});

async function readSession(port: Port, { version, zone, clock }: About): Promise<Reads["session"]["answer"]> {
  const writer = await port.summariser().catch((error: unknown) => ({ name: "unknown", problem: errorText(error) }));
  const settings = await port.reading().then(
    (lcm) => lcm.settings,
    () => null,
  );
  return {
    version,
    path: port.path,
    readOnly: port.readOnly,
    zone,
    now: clock.now(),
    summariser: writer && { name: writer.name, problem: writer.problem },
    hasMeaning: settings !== null && settings.embedder !== null && settings.embedder !== "off",
  };
}

// ── Lists ────────────────────────────────────────────────────────────────────────────────────────────────────────────

const rowsDefault = 200;
const rowsMax = 1_000;
const activityMax = 100;
const marksDefault = 33;
const marksMax = 257;
const historyDefault = 100;

const lists: ReadTable<"conversations" | "activity" | "history" | "change"> = {
  async conversations(query, doing) {
    const words = (query.text("find") ?? "")
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word !== "");
    const familyOf = query.conversation("familyOf");
    const rows = (await conversationsAsks.conversations({}, doing)).map((row) => ({ row, family: familyName(row) }));
    const segments = Map.groupBy(rows, ({ family }) => family);
    const wanted = rows.find(({ row }) => row.conversation.id === familyOf)?.family;
    const found = rows.filter(
      ({ row, family }) =>
        (query.flag("hidden") || !row.conversation.hidden) &&
        (familyOf === undefined || family === wanted) &&
        isMatch(row, words),
    );
    const from = query.whole("from") ?? 0;
    const shown = found.slice(from, from + (query.whole("limit", rowsMax) ?? rowsDefault));
    return {
      rows: shown.map(({ row, family }): ConversationRow => {
        const name = bareName(row.conversation);
        return { ...row, name, family, segments: segments.get(family)?.length ?? 1 };
      }),
      count: found.length,
    };
  },
  async activity(query, { port, signal }) {
    const { store } = await port.reading();
    const marks = query.whole("marks", marksMax) ?? marksDefault;
    const since = query.time("since");
    const all: Activity[] = [];
    for (const conversation of query.conversations("conversations", activityMax)) {
      signal.throwIfAborted();
      const pace = await store.pace(conversation, marks);
      const last = pace.at(-1);
      const from = since === undefined ? null : await seqSince(store, { conversation, pace, since });
      const recent = from === null || last === undefined ? null : seqOf(last.id) - from + 1;
      all.push({ conversation, pace: paceOf(pace), recent });
    }
    return all;
  },
  history: async (query, doing) =>
    await historyAsks.changes(
      { conversation: query.conversation() ?? null, limit: query.whole("limit", rowsMax) ?? historyDefault },
      doing,
    ),
  async change(query, doing) {
    const change = must("change", query.whole("change"));
    const found = await historyAsks.changeSteps({ change }, doing);
    if (found === null) throw new LcmError("not_found", `there is no change ${change}`);
    const { store } = await doing.port.reading();
    const entries = (await store.journal({ change })).toReversed().slice(0, found.change.steps.length);
    return { ...found, items: entries.map(itemsOf) };
  },
};

/** What stood in place of a summary that was dissolved or put back. */
function itemsOf({ operation, subject, before, after }: JournalEntry): readonly (MessageId | SummaryId)[] {
  const isKnown = isSummaryId(subject) && (operation === "dissolve" || operation === "undo");
  const changed = new Set(before.places).symmetricDifference(new Set(after.places));
  return isKnown ? [...changed].filter((id) => id !== subject) : [];
}

/** The segments of an agent and session key; without a key, those of a session. */
const familyName = ({ conversation: { agentId, sessionKey, sessionId } }: Row): string =>
  JSON.stringify(sessionKey === null ? [null, sessionId] : [agentId, sessionKey]);

function isMatch({ conversation }: Row, words: readonly string[]): boolean {
  if (words.length === 0) return true;
  const { id, title, sessionKey, sessionId, agentId, folder } = conversation;
  const text = [id, title, sessionKey, sessionId, agentId, folder].join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}

// ── The timeline and reading ─────────────────────────────────────────────────────────────────────────────────────────

const cellsDefault = 400;
const cellsMax = 2_000;

function createTimelineReads(): ReadTable<"timeline"> {
  const readTimeline = createTimeline();
  return {
    timeline: async (query, { port }) =>
      await readTimeline(await port.reading(), {
        conversation: must("conversation", query.conversation()),
        from: query.whole("from"),
        to: query.whole("to"),
        cells: Math.max(1, query.whole("cells", cellsMax) ?? cellsDefault),
        prompt: query.whole("prompt") ?? null,
      }),
  };
}

const messagesMax = 200;
const sourcesDefault = 50;

const reading: ReadTable<"messages" | "message" | "summary" | "sources" | "find" | "files" | "file"> = {
  async messages(query, { port }) {
    const conversation = must("conversation", query.conversation());
    const { store } = await port.reading();
    const [to, since] = [query.whole("to"), query.time("since")];
    const pace = since === undefined ? [] : await store.pace(conversation, marksMax);
    const from = since === undefined ? query.whole("from") : await seqSince(store, { conversation, pace, since });
    const found = await store.messages({
      conversation,
      ...(from === undefined ? {} : { afterSeq: from - 1 }),
      ...(to === undefined ? {} : { beforeSeq: to + 1 }),
      limit: query.whole("limit", messagesMax) ?? messagesMax,
      keep: from === undefined && to !== undefined ? "newest" : "oldest",
    });
    return found.map(messageInShort);
  },
  message: async (query, { port }) => await readMessage(await port.reading(), must("id", query.message("id"))),
  summary: async (query, { port }) => await readSummary(await port.reading(), must("id", query.summary("id"))),
  sources: async (query, { port }) =>
    await readSources(await port.reading(), {
      summary: must("summary", query.summary("summary")),
      from: query.whole("from") ?? 0,
      limit: query.whole("limit", messagesMax) ?? sourcesDefault,
    }),
  find: async (query, { port }) => await findId(await port.reading(), must("id", query.text("id"))),
  files: async (query, { port }) =>
    await (await port.reading()).store.files(must("conversation", query.conversation())),
  file: async (query, { port }) =>
    await readFile(await port.reading(), must("id", query.file("id")), Math.max(1, query.whole("fromLine") ?? 1)),
};

// ── What the model saw ───────────────────────────────────────────────────────────────────────────────────────────────

const promptsMax = 2_000;
const budgetMax = 100_000_000;

const createPromptReads = ({
  zone,
}: About): ReadTable<"promptNow" | "prompts" | "prompt" | "promptItem" | "inView" | "stats"> => ({
  promptNow: async (query, { port }) =>
    await readPromptNow(
      await port.reading(),
      must("conversation", query.conversation()),
      query.whole("budget", budgetMax),
    ),
  prompts: async (query, { port }) =>
    await readPromptNumbers(await port.reading(), must("conversation", query.conversation())),
  prompt: async (query, { port }) => await readPrompt(await port.reading(), choiceOf(query)),
  promptItem: async (query, { port }) =>
    await readItem(await port.reading(), {
      conversation: must("conversation", query.conversation()),
      number: query.whole("number"),
      budget: query.whole("budget", budgetMax),
      item: must("item", query.whole("item")),
    }),
  inView: async (query, { port }) => await readInView(await port.reading(), must("id", query.text("id")), zone),
  stats: async (query, { port }) =>
    await readStats(await port.reading(), {
      conversation: must("conversation", query.conversation()),
      since: query.time("since"),
      limit: query.whole("limit", promptsMax) ?? promptsMax,
    }),
});

function choiceOf(query: Query): PromptChoice {
  const message = query.message("message");
  if (message !== undefined) return { message };
  const [number, turn, at] = [query.whole("number"), query.text("turn"), query.time("at")];
  return {
    conversation: must("conversation", query.conversation()),
    ...(number === undefined ? {} : { number }),
    ...(turn === undefined ? {} : { turn }),
    ...(at === undefined ? {} : { at }),
  };
}

// ── Search ───────────────────────────────────────────────────────────────────────────────────────────────────────────

const hitsDefault = 50;
const hitsMax = 200;

async function readSearch(query: Query, { port, signal }: Doing): Promise<Found> {
  const lcm = await port.reading();
  const pattern = must("pattern", query.text("pattern"));
  const conversation = query.conversation() ?? null;
  const where = conversation === null ? "all" : query.flag("family") ? "family" : "conversation";
  const mode = query.oneOf("mode", ["full_text", "regex"]);
  const [roleNames, since, before] = [query.someOf("roles", roles), query.time("since"), query.time("before")];
  const sort = query.oneOf("sort", ["recency", "oldest", "relevance", "hybrid"]);
  const request = {
    pattern,
    scope: query.oneOf("scope", ["messages", "summaries", "both", "files"]) ?? "both",
    reach: await reachFor(lcm.store, where, conversation),
    limit: Math.max(1, query.whole("limit", hitsMax) ?? hitsDefault),
    ...(mode === undefined ? {} : { mode }),
    ...(roleNames === undefined || roleNames.length === 0 ? {} : { roles: roleNames }),
    ...(since === undefined ? {} : { since }),
    ...(before === undefined ? {} : { before }),
    ...(sort === undefined ? {} : { sort }),
  };
  const timeoutMs = lcm.settings.searchTimeoutSeconds * 1_000;
  const found = await lcm.grep(request, { timeoutMs, signal });
  const hits = await toHits(lcm.store, { pattern, mode: found.mode }, found);
  const summaries = hits.flatMap(({ hit }) => (hit.kind === "summary" ? [hit.id] : []));
  const places = new Map<string, Hit["place"]>(await placesOf(lcm.store, summaries));
  return {
    hits: hits.map((each): Hit => {
      const { hit } = each;
      const own = hit.kind === "message" ? { from: seqOf(hit.id), to: seqOf(hit.id) } : (places.get(hit.id) ?? null);
      return { ...each, place: own };
    }),
    caveats: found.caveats,
    notes: found.caveats.map((caveat) => caveatSentence(caveat, "flags")),
  };
}
