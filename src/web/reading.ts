/** Reads messages, summaries beside their sources, files, and where an id leads. */

import { LcmError } from "../core/base/errors.ts";
import type { Lcm } from "../core/lcm.ts";
import { readableMessage } from "../core/messages/codec.ts";
import { mustFind } from "../core/model/find-conversation.ts";
import type { Store } from "../core/model/store.ts";
import { forgottenMark, isFileId, isSummaryId, messageName, messageIdOf, parseMessageId } from "../core/model/types.ts";
import type {
  ConversationId,
  FileId,
  Message,
  MessageId,
  StoredFile,
  Summary,
  SummaryId,
} from "../core/model/types.ts";
import { fileIdsOf } from "../core/ingest/large-content.ts";
import { bareName } from "../format/conversations.ts";
import { inShort, openingOf } from "../format/messages.ts";
import { parsePromptName } from "../format/seen.ts";
import { blocksIn, pictureAddress, pictureTypes } from "./blocks.ts";
import type {
  FileReading,
  MessageInShort,
  MessageReading,
  Reads,
  SourcesPage,
  SummaryInShort,
  SummaryReading,
} from "./contract.ts";
import { placesOf } from "./layout.ts";

const openingMax = 240;
/** As much of a text as a list shows. */
export const opened = (text: string): string =>
  text.length > openingMax ? `${text.slice(0, openingMax - 1).trimEnd()}…` : text;

export function messageInShort(message: Message): MessageInShort {
  const { id, seq, role, at, tokens, aside } = message;
  return { id, seq, role, at, tokens, aside, opening: opened(inShort(message)) };
}

export function summaryInShort(summary: Summary): SummaryInShort {
  const { id, conversation, depth, level, tokens, model, createdAt, revision, carriedFrom, rewriteReason } = summary;
  const earliestAt = summary.earliestAt ?? createdAt;
  const opening = opened(openingOf(summary));
  const latestAt = summary.latestAt ?? earliestAt;
  const facts = { id, conversation, depth, level, tokens, model, createdAt, revision, carriedFrom, rewriteReason };
  return { ...facts, earliestAt, latestAt, opening };
}

const blocksOf = (message: Message) =>
  blocksIn(readableMessage(message), new Set(message.moved.map(({ file }) => file)));

export async function readMessage(lcm: Lcm, id: MessageId): Promise<MessageReading> {
  const { store } = lcm;
  const [message] = await store.messages({ ids: [id] });
  if (message === undefined) throw new LcmError("not_found", `there is no ${messageName(id)}`);
  const { conversation, seq, key } = message;
  const owner = await mustFind(store, conversation);
  const pins = await store.pins(conversation);
  const [before] = await store.pace(conversation, 1, { from: seq - 1, to: seq - 1 });
  const [after] = await store.messages({ conversation, afterSeq: seq, limit: 1 });
  return {
    ...messageInShort(message),
    conversation,
    name: bareName(owner),
    key,
    blocks: blocksOf(message),
    isForgotten: message.text.includes(forgottenMark),
    isDamaged: message.isDamaged === true,
    coveredBy: (await store.summaries({ ids: await store.coveredBy(id) })).map(summaryInShort),
    files: await readFiles(store, fileIdsOf([message])),
    pin: pins.find((pin) => pin.message === id && pin.state === "pinned") ?? null,
    before: seq > 1 && before !== undefined && before.id < id ? before.id : null,
    after: after?.id ?? null,
    prompt: await promptBehind(lcm, id),
  };
}

async function promptBehind(lcm: Lcm, message: MessageId): Promise<number | null> {
  try {
    return (await lcm.findPrompt({ message })).record.number;
  } catch (error) {
    if (error instanceof LcmError && error.code === "not_found") return null;
    throw error;
  }
}

async function readFiles(store: Store, ids: readonly FileId[]): Promise<readonly StoredFile[]> {
  return (await Promise.all(ids.map(async (id) => await store.file(id)))).filter((file) => file !== null);
}

export async function mustHaveSummary(store: Store, id: SummaryId): Promise<Summary> {
  const [summary] = await store.summaries({ ids: [id] });
  if (summary === undefined) throw new LcmError("not_found", `there is no summary ${id}`);
  return summary;
}

/** Where the text of a carried summary was written; a damaged file may lack it. */
export async function originOf(store: Store, { id, conversation, carriedFrom }: Summary): Promise<Origin> {
  const [from] = carriedFrom === null ? [] : await store.summaries({ ids: [carriedFrom] });
  return from === undefined || from.id === id ? { id, conversation } : await originOf(store, from);
}

type Origin = Pick<Summary, "id" | "conversation">;

/** From the newest change of its place, unless something shows it or was made from it. */
async function dissolvedBy(store: Store, { id, conversation }: Summary): Promise<SummaryReading["dissolved"]> {
  const items = await store.context(conversation, { kind: "summary" });
  if (items.some((item) => item.id === id)) return null;
  for (const { subject, change, at, before, after } of await store.journal({ conversation })) {
    const [was, is] = [before, after].map(({ places }) => places.some((place) => place === id));
    if (subject === id && was !== is) return was === true ? { change, at } : null;
  }
  return null;
}

export async function readSummary({ store }: Lcm, id: SummaryId): Promise<SummaryReading> {
  const summary = await mustHaveSummary(store, id);
  const { conversation, text, fileIds } = summary;
  const { messages = [], summaries = [] } = (await store.sources([id])).get(id) ?? {};
  const [place] = await placesOf(store, [id]);
  const name = bareName(await mustFind(store, conversation));
  const above = await store.summaries({ ids: (await store.derived([id])).get(id) ?? [] });
  return {
    ...summaryInShort(summary),
    name,
    text,
    sources: { messages: messages.length, summaries: summaries.length },
    dissolved: above.length > 0 ? null : await dissolvedBy(store, summary),
    origin: summary.carriedFrom === null ? null : await originOf(store, summary),
    above: above.map(summaryInShort),
    carriedBy: await store.carriedBy(id),
    range:
      place === undefined
        ? null
        : { from: messageIdOf(conversation, place[1].from), to: messageIdOf(conversation, place[1].to) },
    files: await readFiles(store, fileIds),
  };
}

export async function readSources(
  { store }: Lcm,
  { summary: id, from, limit }: { readonly summary: SummaryId; readonly from: number; readonly limit: number },
): Promise<SourcesPage> {
  await mustHaveSummary(store, id);
  const { messages = [], summaries = [] } = (await store.sources([id])).get(id) ?? {};
  const end = from + limit;
  const next = end < messages.length + summaries.length ? end : null;
  if (messages.length > 0) {
    const found = await store.messages({ ids: messages.slice(from, end) });
    const sources = found.map(
      (message) => ({ kind: "message", message: messageInShort(message), blocks: blocksOf(message) }) as const,
    );
    return { sources, next };
  }
  const found = await store.summaries({ ids: summaries.slice(from, end) });
  const sources = found.map(
    (summary) => ({ kind: "summary", summary: summaryInShort(summary), text: summary.text }) as const,
  );
  return { sources, next };
}

// ── Files ────────────────────────────────────────────────────────────────────────────────────────────────────────────

const charactersMax = 100_000;

export async function mustHaveFile(store: Store, id: FileId): Promise<StoredFile> {
  const file = await store.file(id);
  if (file === null) throw new LcmError("not_found", `there is no file ${id}`);
  return file;
}

export async function readFile({ store }: Lcm, id: FileId, fromLine: number): Promise<FileReading> {
  const file = await mustHaveFile(store, id);
  const keys = file.messageKey === null ? [] : [file.messageKey];
  const [message] = await store.messages({ conversation: file.conversation, keys });
  const isPicture = pictureTypes.some((type) => type === file.mimeType);
  const base = { file, message: message?.id ?? null };
  if (file.encoding === "base64") return { ...base, text: null, picture: isPicture ? pictureAddress(id) : null };
  const { text, lines } = await store.fileLines(id, { fromLine, charactersMax });
  // The last line may have been cut.
  const shown = text.length < charactersMax ? text : text.slice(0, Math.max(1, text.lastIndexOf("\n")));
  const last = fromLine + shown.split("\n").length - 1;
  return { ...base, text: { text: shown, fromLine, nextLine: last < lines ? last + 1 : null }, picture: null };
}

// ── Ids ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

export async function findId({ store }: Lcm, id: string): Promise<Reads["find"]["answer"]> {
  const found = await placeOf(store, id.trim());
  if (found === null)
    throw new LcmError("not_found", `nothing is called ${JSON.stringify(id.slice(0, 80))}`, {
      hint: "ids look like msg_1-42, sum_0123456789abcdef, file_0123456789abcdef, 1#12 or 3",
    });
  return found;
}

async function placeOf(store: Store, id: string): Promise<Reads["find"]["answer"] | null> {
  if (isSummaryId(id)) return place("summary", (await store.summaries({ ids: [id] }))[0]?.conversation);
  if (isFileId(id)) return place("file", (await store.file(id))?.conversation);
  const prompt = parsePromptName(id);
  if (prompt !== null) {
    const { conversation, number } = prompt;
    const known = await store.conversation(conversation);
    const rows = known === null ? [] : (await store.prompts(conversation, { from: number, to: number })).rows;
    return place("prompt", rows[0]?.conversation);
  }
  if (/^\d{1,9}$/.test(id)) return place("conversation", (await store.conversation(Number(id) as ConversationId))?.id);
  const message = parseMessageId(id);
  if (message === null) return null;
  return place("message", (await store.messages({ ids: [message] }))[0]?.conversation);
}

const place = (
  kind: Reads["find"]["answer"]["kind"],
  conversation: ConversationId | undefined,
): Reads["find"]["answer"] | null => (conversation === undefined ? null : { kind, conversation });
