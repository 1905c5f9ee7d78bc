/** `lcm_describe`: one thing by its id, with what it was made from and what it would take to read that. */

import { conversationOf } from "../core/recall/describe.ts";
import type { Described, DescribeRequest, FilePiece } from "../core/recall/describe.ts";
import { readGranted } from "../core/recall/grants.ts";
import { messageName } from "../core/model/types.ts";
import type { FileId, MessageId, SummaryId } from "../core/model/types.ts";
import type { Manifest, ManifestRow } from "../core/model/store.ts";
import { reachOf } from "../core/recall/scope.ts";
import type { Asked } from "../core/recall/scope.ts";
import { firstLine, quote } from "../core/base/excerpt.ts";
import { allConversations, conversationId, shownTokenCap, textOf } from "./arguments.ts";
import { count, heading, quoteName } from "./text.ts";
import { defineTool, withinGrant } from "./define.ts";
import type { ToolContext, ToolResult } from "./define.ts";
import { formatRange } from "../core/base/time.ts";
import { formatBytes, formatCount } from "../core/base/format.ts";

export const describeTool = defineTool({
  name: "lcm_describe",
  label: "Look at a summary, message or file",
  description:
    "Read one thing whole by its id: a summary (sum_…), a message (msg_…) or a stored file (file_…), as lcm_grep and " +
    "the summaries in your context name them. A summary comes with what lies below it and how many tokens each part " +
    "takes; a file comes in pieces, by lines. Cheap: nothing is asked of a model.",
  audience: "both",
  example: { id: "sum_0123456789abcdef" },
  parameters: {
    type: "object",
    required: ["id"],
    properties: {
      id: textOf("sum_…, msg_… or file_…, as another answer gave it."),
      conversationId,
      allConversations,
      fromLine: { type: "integer", minimum: 1, description: "Of a file: the first line to show, counted from 1." },
      toLine: { type: "integer", minimum: 1, description: "Of a file: the last line to show." },
      maxBytes: { type: "integer", minimum: 1, description: "Of a file: how many bytes to show at most." },
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

async function look(request: Omit<DescribeRequest, "reach"> & Asked, { lcm, reader, grant }: ToolContext) {
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
/** What was cut at tokenCap, and how to see the rest. */
const more = (isWhole: boolean, tokens: number): string | false =>
  !isWhole && `Cut at tokenCap, of ${formatCount(tokens)} tokens in all: raise tokenCap to see the rest.`;

// ── Summaries ────────────────────────────────────────────────────────────────────────────────────────────────────────

function summaryResult(
  { summary, sources, derived, origin, manifest, text, isWhole, tokens: read }: Of<"summary">,
  context: ToolContext,
): Shown {
  const { id, depth, level, tokens, earliestAt, latestAt, conversation, fileIds } = summary;
  const kind = depth === 0 ? "leaf" : "condensed";
  const isAlone = summary.carriedFrom !== null && origin === null;
  const what = [`${kind} summary, depth ${depth}`, `${formatCount(tokens)} tokens`];
  // What is shown below it, it was made from.
  const isShown = (source: SummaryId): boolean => manifest.rows.some((row) => row.id === source);
  const unshown = sources.summaries.every(isShown) ? [] : sources.summaries;
  return {
    text: lines(
      heading(context, { id, what, from: earliestAt, to: latestAt, conversation }),
      level !== "normal" && `Level: ${level}, so its text says less than it could; what it was made from says all.`,
      origin !== null && `Carried over from ${origin.id} of an earlier segment, whose sources these are.`,
      isAlone && "Carried over from an earlier conversation that cannot be read from here: there is only this text.",
      named("Made from", [...unshown, ...messageRuns(sources.messages)]),
      named("Made into", derived),
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

/** `msg_4 to msg_9, msg_12`: messages that follow each other are told by the first and the last. */
function messageRuns(ids: readonly MessageId[]): readonly string[] {
  const runs: [first: MessageId, last: MessageId][] = [];
  for (const id of ids) {
    const run = runs.at(-1);
    if (run?.[1] === id - 1) run[1] = id;
    else runs.push([id, id]);
  }
  return runs.map(([first, last]) =>
    first === last ? messageName(first) : `${messageName(first)} to ${messageName(last)}`,
  );
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
    `Below it: ${count(descendants, "summary", "summaries")}${amount}:`,
    ...rows.map(row),
    missing > 0 &&
      `  and ${formatCount(missing)} more: raise tokenCap, or lcm_describe one of these for what is below it`,
  );
}

const messageAmount = ({ count: messages, tokens }: { readonly count: number; readonly tokens: number }): string =>
  `${count(messages, "message")} of ${formatCount(tokens)} tokens`;
const quoteOpening = (text: string): string => JSON.stringify(firstLine(text, openingCharsMax));

// ── Messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────

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

// ── Files ────────────────────────────────────────────────────────────────────────────────────────────────────────────

function fileResult({ file, message, content, tokens: read }: Of<"file">, context: ToolContext): Shown {
  const { id, name, mimeType, bytes, lines: lineCount, conversation, createdAt, exploration } = file;
  const what = [
    ...(name === null ? [] : [quoteName(name)]),
    ...(mimeType === null ? [] : [firstLine(mimeType, 60)]),
    formatBytes(bytes),
    ...(lineCount === null ? [] : [count(lineCount, "line")]),
  ];
  return {
    text: lines(
      heading(context, { id, what, from: createdAt, conversation }),
      message !== null && `Moved out of ${messageName(message)}`,
      exploration !== null && `What it is about:\n${quote(exploration)}`,
      content === null
        ? "Its content is bytes, not text."
        : `Lines ${content.fromLine} to ${content.toLine} of ${content.lines}:\n${quote(content.text)}`,
      ...wayOn(id, content),
    ),
    details: {
      id,
      type: "file",
      fileName: name,
      mimeType,
      byteSize: bytes,
      lineCount,
      storagePath: file.storageUri,
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

function wayOn(id: FileId, content: FilePiece | null): readonly (string | false)[] {
  if (content === null) return [];
  const { toLine, nextLine, lineCutBy } = content;
  const next = nextLine !== null && `lcm_describe ${JSON.stringify({ id, fromLine: nextLine })}`;
  if (lineCutBy === null) return [next && `Go on with ${next}`];
  const raised = lineCutBy === "bytes" ? "maxBytes" : "tokenCap";
  return [`Line ${toLine} was cut: raise ${raised} to see more of it.`, next && `The line after it: ${next}`];
}
