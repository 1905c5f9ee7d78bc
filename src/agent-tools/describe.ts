/** The tool `lcm_describe`: reads one summary, message or file by its id. */

import { conversationOf, messageRuns } from "../core/recall/describe.ts";
import type { Described, DescribeRequest, FilePiece } from "../core/recall/describe.ts";
import { readGranted } from "../core/recall/grants.ts";
import { messageName, type FileId, type SummaryId } from "../core/model/types.ts";
import type { Manifest, ManifestRow } from "../core/model/store.ts";
import { reachOf, type ReachRequest } from "../core/recall/scope.ts";
import { firstLine, quote } from "../core/base/excerpt.ts";
import { allConversations, conversationId, shownTokenCap, textOf } from "./arguments.ts";
import { heading, quoteName } from "./text.ts";
import { defineTool, withinGrant, type ToolContext, type ToolResult } from "./define.ts";
import { formatRange } from "../core/base/time.ts";
import { formatBytes, formatCount, plural } from "../core/base/format.ts";

export const describeTool = defineTool({
  name: "lcm_describe",
  label: "Read a summary, message or file",
  description:
    "Read one item by its id: a summary (sum_…), a message (msg_…) or a stored file (file_…). Take ids from lcm_grep " +
    "or from the summaries in your context. A summary is returned with a list of what lies below it and the tokens each " +
    "part takes; a file is returned in pieces, by line. Fast and cheap: it never calls a model.",
  audience: "both",
  example: { id: "sum_0123456789abcdef" },
  parameters: {
    type: "object",
    required: ["id"],
    properties: {
      id: textOf("The id of the item to read: sum_…, msg_… or file_…."),
      conversationId,
      allConversations,
      fromLine: { type: "integer", minimum: 1, description: "For a file: start at this line, counted from 1." },
      toLine: { type: "integer", minimum: 1, description: "For a file: stop after this line." },
      maxBytes: { type: "integer", minimum: 1, description: "For a file: return at most this many bytes." },
      tokenCap: shownTokenCap,
    },
  },
  async run({ maxBytes, ...args }, context) {
    const request = {
      ...args,
      ...(maxBytes === undefined ? {} : { bytesMax: maxBytes }),
      tokenCap: args.tokenCap ?? context.lcm.settings.maxExpandTokens,
    };
    const described = await look(request, context);
    switch (described.kind) {
      case "summary":
        return summaryResult(described, context);
      case "message":
        return messageResult(described, context);
      case "file":
        return fileResult(described, context);
    }
  },
});

async function look(request: Omit<DescribeRequest, "reach"> & ReachRequest, { lcm, reader, grant }: ToolContext) {
  const { store } = lcm;
  if (grant === undefined) return await lcm.describe({ ...request, reach: await reachOf(store, reader, request) });
  return await readGranted(store, grant, request.tokenCap, async (reach, tokensMax) => {
    const value = await lcm.describe({ ...request, reach: withinGrant(reach, request), tokenCap: tokensMax });
    return { value, charges: new Map([[conversationOf(value), value.tokens]]) };
  });
}

type Shown = Omit<ToolResult, "isError">;
type Of<K extends Described["kind"]> = Extract<Described, { readonly kind: K }>;

const lines = (...parts: readonly (string | false)[]): string => parts.filter((part) => part !== false).join("\n");
const idsShown = 20;
const named = (what: string, ids: readonly string[]): string | false => {
  const others = ids.length > idsShown ? ` and ${formatCount(ids.length - idsShown)} more` : "";
  return ids.length > 0 && `${what}: ${ids.slice(0, idsShown).join(", ")}${others}`;
};
const more = (isWhole: boolean, tokens: number): string | false =>
  !isWhole && `Cut at tokenCap; the whole text has ${formatCount(tokens)} tokens. Raise tokenCap to read the rest.`;

function summaryResult(
  { summary, sources, derived, origin, manifest, text, isWhole, tokens: read }: Of<"summary">,
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
      quote(text),
      more(isWhole, tokens),
    ),
    details: {
      id,
      type: "summary",
      kind,
      depth,
      level,
      content: text,
      truncated: !isWhole,
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
  { message, coveredBy, files, text, isWhole, tokens: read }: Of<"message">,
  context: ToolContext,
): Shown {
  const { role, seq, at, tokens, conversation } = message;
  const id = messageName(message.id);
  return {
    text: lines(
      heading(context, { id, what: [role, `${formatCount(tokens)} tokens`], from: at, conversation }),
      named("Summarised in", coveredBy.slice(0, 1)),
      named("Files", files),
      quote(text),
      more(isWhole, tokens),
    ),
    details: {
      id,
      type: "message",
      role,
      seq,
      content: text,
      truncated: !isWhole,
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
