/** The tool `lcm_describe`: reads one summary, message or file by its id. */

import { conversationOf, messageRuns } from "../core/recall/describe.ts";
import type { Described, FilePiece } from "../core/recall/describe.ts";
import { namesSeveral, type Several, type SeveralRequest } from "../core/recall/describe-several.ts";
import type { Mark } from "../core/recall/marks.ts";
import type { TextParts } from "../core/recall/text-parts.ts";
import type { Lcm } from "../core/lcm.ts";
import { readGranted } from "../core/recall/grants.ts";
import { messageName, parseMessageId, type ConversationId, type FileId, type SummaryId } from "../core/model/types.ts";
import type { Manifest, ManifestRow } from "../core/model/store.ts";
import { parseRoles } from "../core/recall/span.ts";
import { reachOf, type ReachRequest } from "../core/recall/scope.ts";
import { firstLine, quote } from "../core/base/excerpt.ts";
import { allConversations, conversationId, textOf, tokenCapOf } from "./arguments.ts";
import { createClock, heading, markLine, meantDays, quoteName } from "./text.ts";
import { defineTool, withinGrant, type ToolContext, type ToolResult } from "./define.ts";
import { formatRange } from "../core/base/time.ts";
import { formatBytes, formatCount, plural } from "../core/base/format.ts";

export const describeTool = defineTool({
  name: "lcm_describe",
  label: "Read a summary, message or file",
  description:
    "Read by id: a message, a range of messages (msg_1-74..77), a summary or a stored file, as named by lcm_grep or in " +
    "your context. Use around to see what happened before and after, and find to read the right place of a long text, " +
    "which is otherwise cut in the middle. A summary lists what lies below it and what that costs to read. Never calls " +
    "a model.",
  audience: "both",
  example: { id: "sum_0123456789abcdef" },
  parameters: {
    type: "object",
    required: ["id"],
    properties: {
      id: textOf(
        "What to read: sum_…, msg_… or file_…; several separated by commas; a range of messages as msg_1-74..77.",
      ),
      around: {
        type: "integer",
        minimum: 0,
        maximum: 50,
        description: "Add this many messages before and after, with compactions and resets between them.",
      },
      role: textOf("Of a range or with around: only messages of this role: user, assistant or tool."),
      find: textOf("Show the places in a long message or summary where this occurs, instead of its beginning and end."),
      conversationId,
      allConversations,
      fromLine: { type: "integer", minimum: 1, description: "For a file: start at this line, counted from 1." },
      toLine: { type: "integer", minimum: 1, description: "For a file: stop after this line." },
      maxBytes: { type: "integer", minimum: 1, description: "For a file: return at most this many bytes." },
      tokenCap: tokenCapOf(
        "Return at most this many tokens of stored text. Default: 900 for several messages, otherwise the setting " +
          "maxExpandTokens (4000).",
      ),
    },
  },
  async run({ maxBytes, role, ...args }, context) {
    const { maxExpandTokens } = context.lcm.settings;
    const isOverview = namesSeveral(args) && !/(?:sum|file)_/.test(args.id);
    const tokenCap = args.tokenCap ?? (isOverview ? Math.min(overviewTokens, maxExpandTokens) : maxExpandTokens);
    const request = {
      ...args,
      ...(maxBytes === undefined ? {} : { bytesMax: maxBytes }),
      ...(role === undefined ? {} : { roles: parseRoles("role", role) }),
      tokenCap,
      wholeCap: Math.floor(slightlyMore * tokenCap),
    };
    const several = await look(request, context);
    const [first] = several.items;
    if (several.items.length === 1 && first !== undefined && !namesSeveral(request)) return resultOf(first, context);
    return severalResult(several, context);
  },
});

/** Of several messages, the long ones are mostly outputs that nobody asked for. */
const overviewTokens = 900;
/** A text that is only slightly longer than asked for is better shown whole than asked for again. */
const slightlyMore = 1.3;

function resultOf(described: Described, context: ToolContext): Shown {
  switch (described.kind) {
    case "summary":
      return summaryResult(described, context);
    case "message":
      return messageResult(described, context);
    case "file":
      return fileResult(described, context);
  }
}

async function look(request: Omit<SeveralRequest, "reach"> & ReachRequest, context: ToolContext): Promise<Several> {
  const { lcm, reader, grant } = context;
  const { store } = lcm;
  if (grant === undefined) return await describeAll(lcm, { ...request, reach: await reachOf(store, reader, request) });
  return await readGranted(store, grant, request.tokenCap, async (reach, tokensMax) => {
    // A grant pays for no more than it has.
    const exact = { ...request, tokenCap: tokensMax, wholeCap: tokensMax };
    const value = await describeAll(lcm, { ...exact, reach: withinGrant(reach, request) });
    const charges = new Map<ConversationId, number>();
    for (const item of value.items)
      charges.set(conversationOf(item), (charges.get(conversationOf(item)) ?? 0) + item.tokens);
    return { value, charges };
  });
}

async function describeAll(lcm: Lcm, request: SeveralRequest): Promise<Several> {
  if (namesSeveral(request)) return await lcm.describeSeveral(request);
  const item = await lcm.describe(request);
  return { items: [item], marks: [], leftOut: { count: 0, from: null }, last: null, tokens: item.tokens };
}

/** Messages under short headings, in order, with marks between them; other items as they are alone. */
function severalResult({ items, marks, leftOut, last }: Several, context: ToolContext): Shown {
  const results = items.map((item) => resultOf(item, context));
  const when = createClock(context.zone ?? "UTC");
  const isOnce = items.some((item) => item.kind === "message" && item.isOnce);
  const markLines = (isHere: (mark: Mark) => boolean) => marks.filter(isHere).map((mark) => markLine(mark, context));
  const blocks = items.flatMap((item, at) => {
    if (item.kind !== "message") return [results[at]?.text ?? ""];
    const { conversation, seq } = item.message;
    const isIn = (mark: Mark): boolean => mark.conversation === conversation;
    const isFirst = !items.some(
      (other) =>
        other.kind === "message" && other.message.seq === seq - 1 && other.message.conversation === conversation,
    );
    return [
      ...(isFirst ? markLines((mark) => isIn(mark) && mark.afterSeq === seq - 1) : []),
      shortMessage(item, when(item.message), context),
      ...markLines((mark) => isIn(mark) && mark.afterSeq === seq),
    ];
  });
  const { count, from } = leftOut;
  const first = from === null ? null : parseMessageId(from);
  const rest = `Left out: ${plural(count, "item")} from ${first === null ? from : messageName(first)} on. Ask for them separately, or raise tokenCap.`;
  const end = last === null ? [] : [`${messageName(last)} is the last of this conversation.`];
  const none = items.length === 0 && last === null ? ["None of these messages has this role."] : [];
  return {
    text: [
      `Times in ${context.zone ?? "UTC"}.${isOnce ? ` ${onceWords}` : ""}`,
      ...blocks,
      ...(count === 0 ? [] : [rest]),
      ...end,
      ...none,
    ].join("\n"),
    details: {
      items: results.map(({ details }) => details),
      marks: marks.map((mark) => ({ ...mark })),
      leftOut: count,
    },
    read: {
      summaries: results.flatMap(({ read }) => read?.summaries ?? []),
      messages: results.flatMap(({ read }) => read?.messages ?? []),
      tokens: results.reduce((sum, { read }) => sum + (read?.tokens ?? 0), 0),
    },
  };
}

const onceWords = "Lines that an output repeats are shown once; read it by its own id to see them all.";

function shortMessage({ message, ...shortened }: Of<"message">, when: string, context: ToolContext): string {
  const meant = meantDays(message, shortened.text, context);
  const aside = message.aside === null ? "" : ` (${message.aside === "branch" ? "abandoned branch" : "note"})`;
  return lines(`${messageName(message.id)} ${message.role}${when}${aside}${meant}`, partsText(shortened));
}

type Shown = Omit<ToolResult, "isError">;
type Of<K extends Described["kind"]> = Extract<Described, { readonly kind: K }>;

const lines = (...parts: readonly (string | false)[]): string => parts.filter((part) => part !== false).join("\n");
const idsShown = 20;
const named = (what: string, ids: readonly string[]): string | false => {
  const others = ids.length > idsShown ? ` and ${formatCount(ids.length - idsShown)} more` : "";
  return ids.length > 0 && `${what}: ${ids.slice(0, idsShown).join(", ")}${others}`;
};
/** The parts of a text, quoted; between them our own lines say how much was left out. */
function partsText({
  parts,
  leftOut,
  found,
  isWhole,
  text,
}: Pick<Of<"message">, keyof TextParts | "isWhole" | "text">): string {
  if (isWhole && found === null) return quote(text);
  const gap = (tokens: number): string | false =>
    tokens > 0 &&
    `… ${plural(tokens, "token")} left out${found === null ? '; pass find: "words" or raise tokenCap' : ""} …`;
  return lines(
    found !== null && (found === 0 ? "The words to find do not occur here." : `Found in ${plural(found, "place")}:`),
    ...parts.flatMap((part) => [gap(part.leftOut), quote(part.text)]),
    gap(leftOut),
  );
}

function summaryResult(
  { summary, sources, derived, origin, manifest, tokens: read, ...shortened }: Of<"summary">,
  context: ToolContext,
): Shown {
  const { id, depth, level, tokens, earliestAt, latestAt, conversation, fileIds } = summary;
  const kind = depth === 0 ? "leaf" : "condensed";
  const isAlone = summary.carriedFrom !== null && origin === null;
  const what = [`${kind} summary, depth ${depth}`, `${formatCount(tokens)} tokens`];
  // Sources listed in the manifest are not listed again.
  const isShown = (source: SummaryId): boolean => manifest.rows.some((row) => row.id === source);
  const unshown = sources.summaries.every(isShown) ? [] : sources.summaries;
  return {
    text: lines(
      heading(context, { id, what, from: earliestAt, to: latestAt, conversation }),
      level !== "normal" && `Level: ${level}. The text omits details; its sources have them all.`,
      origin !== null && `Carried over from ${origin.id} of an earlier segment; the sources listed here belong to it.`,
      isAlone && "Carried over from an earlier segment that cannot be read from here: only this text is available.",
      named("Sources", [...unshown, ...messageRuns(sources.messages, " to ")]),
      named("Summarised again in", derived),
      named("Files", fileIds),
      manifestText(manifest, (origin ?? summary).descendants, context),
      "Text:",
      partsText(shortened),
    ),
    details: {
      id,
      type: "summary",
      kind,
      depth,
      level,
      content: shortened.text,
      truncated: !shortened.isWhole,
      tokenCount: tokens,
      createdAt: summary.createdAt,
      earliestAt,
      latestAt,
      conversationId: conversation,
      descendantCount: summary.descendants,
      parentIds: sources.summaries,
      childIds: derived,
      messageIds: sources.messages.map(messageName),
      fileIds,
      carriedFrom: summary.carriedFrom,
      manifest: manifest.rows.map((row) => ({ ...row })),
      manifestTruncated: manifest.isBounded,
    },
    read: { summaries: [id], messages: [], tokens: read },
  };
}

const openingCharsMax = 90;

function manifestText(manifest: Manifest, descendants: number, { zone }: ToolContext): string | false {
  const { rows, messages } = manifest;
  const amount = messages === null ? "" : `, ${messageAmount(messages)}`;
  if (rows.length === 0 && descendants === 0) return messages !== null && `Below it: ${messageAmount(messages)}`;
  const row = ({ id, level, depth, tokens, earliestAt, latestAt, opening, messages }: ManifestRow): string =>
    [
      `${"  ".repeat(level)}${id}`,
      `depth ${depth}`,
      `${formatCount(tokens)} tokens`,
      ...(messages === null ? [] : [messageAmount(messages)]),
      ...(earliestAt === null || latestAt === null ? [] : [formatRange(earliestAt, latestAt, zone)]),
      quoteOpening(opening),
    ].join(" · ");
  const missing = descendants - rows.length;
  return lines(
    `Below it: ${plural(descendants, "summary", "summaries")}${amount}:`,
    ...rows.map(row),
    missing > 0 &&
      `  and ${formatCount(missing)} more: raise tokenCap, or call lcm_describe with one of these ids to see what is below it`,
  );
}

const messageAmount = ({ count: messages, tokens }: { readonly count: number; readonly tokens: number }): string =>
  `${plural(messages, "message")} (${formatCount(tokens)} tokens)`;
const quoteOpening = (text: string): string => JSON.stringify(firstLine(text, openingCharsMax));

function messageResult(
  { message, coveredBy, files, tokens: read, ...shortened }: Of<"message">,
  context: ToolContext,
): Shown {
  const { role, seq, at, tokens, conversation } = message;
  const id = messageName(message.id);
  return {
    text: lines(
      heading(context, { id, what: [role, `${formatCount(tokens)} tokens`], from: at, conversation }) +
        meantDays(message, shortened.text, context),
      named("Summarised in", coveredBy.slice(0, 1)),
      named("Files", files),
      partsText(shortened),
    ),
    details: {
      id,
      type: "message",
      role,
      seq,
      content: shortened.text,
      truncated: !shortened.isWhole,
      tokenCount: tokens,
      createdAt: at,
      conversationId: conversation,
      coveredBy,
      fileIds: files,
    },
    read: { summaries: [], messages: [message.id], tokens: read },
  };
}

function fileResult({ file, path, message, content, tokens: read }: Of<"file">, context: ToolContext): Shown {
  const { id, name, mimeType, bytes, lines: lineCount, conversation, createdAt, exploration } = file;
  const what = [
    ...(name === null ? [] : [quoteName(name)]),
    ...(mimeType === null ? [] : [firstLine(mimeType, 60)]),
    formatBytes(bytes),
    ...(lineCount === null ? [] : [plural(lineCount, "line")]),
  ];
  return {
    text: lines(
      heading(context, { id, what, from: createdAt, conversation }),
      message !== null && `Moved out of ${messageName(message)}`,
      path !== null && `Stored at ${JSON.stringify(path)}`,
      exploration !== null && `Summary of the file:\n${quote(exploration)}`,
      content === null
        ? "The content is binary and cannot be shown as text."
        : `Lines ${content.fromLine} to ${content.toLine} of ${content.lines}:\n${quote(content.text)}`,
      ...nextCalls(id, content),
    ),
    details: {
      id,
      type: "file",
      fileName: name,
      mimeType,
      byteSize: bytes,
      lineCount,
      storagePath: path,
      explorationSummary: exploration,
      messageId: message === null ? null : messageName(message),
      createdAt,
      conversationId: conversation,
      ...(content === null
        ? { content: null, truncated: false }
        : {
            content: content.text,
            fromLine: content.fromLine,
            toLine: content.toLine,
            nextLine: content.nextLine,
            truncated: content.nextLine !== null || content.lineCutBy !== null || content.fromLine > 1,
          }),
    },
    read: { summaries: [], messages: [], tokens: read },
  };
}

function nextCalls(id: FileId, content: FilePiece | null): readonly (string | false)[] {
  if (content === null) return [];
  const { toLine, nextLine, lineCutBy } = content;
  const next = nextLine !== null && `lcm_describe ${JSON.stringify({ id, fromLine: nextLine })}`;
  if (lineCutBy === null) return [next && `Continue with ${next}`];
  const raised = lineCutBy === "bytes" ? "maxBytes" : "tokenCap";
  return [`Line ${toLine} was cut: raise ${raised} to read more of it.`, next && `Next line: ${next}`];
}
