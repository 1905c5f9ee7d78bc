/** `lcm describe`: shows one summary, message or file by its id, with its sources and their size. */

import { conversationOf, messageRuns, type Described } from "../../core/recall/describe.ts";
import { LcmError } from "../../core/base/errors.ts";
import type { Lcm } from "../../core/lcm.ts";
import { isSummaryId, messageName, parseMessageId, type Conversation, type SummaryId } from "../../core/model/types.ts";
import type { Manifest, ManifestRow } from "../../core/model/store.ts";
import { textLines } from "../../format/passages.ts";
import { headline } from "../../format/conversations.ts";
import { openingOf } from "../../format/messages.ts";
import { tokensMax, wholeNumber } from "./_options.ts";
import { everywhere } from "./_reach.ts";
import { about, either, flag, list, maybe, object, oneOf, text, time, whole } from "./_json.ts";
import { level, role, summaryFields } from "./_shapes.ts";
import { defineCommand, withLcm, type Session } from "./_session.ts";
import { formatRange, formatTimestamp } from "../../core/base/time.ts";
import { formatBytes, formatCount, plural } from "../../core/base/format.ts";
import { facts, table } from "../../format/table.ts";
import { createSpans } from "../../format/times.ts";
import { oneLine } from "../../format/safe-text.ts";

const line = wholeNumber(1, 1_000_000_000);

const factFields = {
  id: text,
  conversation: whole,
  depth: whole,
  tokens: whole,
  level,
  earliestAt: maybe(time),
  latestAt: maybe(time),
  descendants: whole,
  fileIds: list(text),
  model: maybe(text),
  createdAt: time,
  revision: whole,
  carriedFrom: maybe(text),
  rewriteReason: maybe(text),
};
const messagesBelow = object({ count: whole, tokens: whole });
const textFields = { text, isWhole: flag, tokens: whole };

const json = either(
  object({
    kind: oneOf("summary"),
    summary: object(factFields),
    sources: object({ messages: list(whole), summaries: list(text) }),
    derived: about(list(text), "the summaries made from it"),
    origin: maybe(object(factFields)),
    manifest: object({
      rows: list(object({ ...summaryFields, level: about(whole, "how far below"), messages: maybe(messagesBelow) })),
      messages: maybe(messagesBelow),
      isBounded: flag,
    }),
    ...textFields,
  }),
  object({
    kind: oneOf("message"),
    message: object({
      id: whole,
      conversation: whole,
      seq: whole,
      key: text,
      role,
      tokens: whole,
      at: time,
      aside: maybe(text),
    }),
    coveredBy: list(text),
    files: list(text),
    ...textFields,
  }),
  object({
    kind: oneOf("file"),
    file: object({
      id: text,
      conversation: whole,
      name: maybe(text),
      mimeType: maybe(text),
      bytes: whole,
      lines: maybe(whole),
      encoding: text,
      storageUri: text,
      exploration: maybe(text),
      createdAt: time,
      messageKey: maybe(text),
    }),
    path: maybe(text),
    message: maybe(whole),
    content: maybe(
      object({
        text,
        fromLine: whole,
        toLine: whole,
        lines: whole,
        nextLine: maybe(whole),
        lineCutBy: maybe(text),
      }),
    ),
    tokens: whole,
  }),
);

export const describeCommand = defineCommand({
  name: "describe",
  json,
  summary: "show one summary, message or file by its id",
  description:
    "Show one item by its id: a summary with what lies below it and how many tokens each part takes, a message, or the " +
    "lines of a file.",
  arguments: [["<id>", "sum_…, file_… or msg_1-42, as printed by other commands"]],
  options: {
    fromLine: ["--from-line <n>", "start at this line of a file", line],
    toLine: ["--to-line <n>", "end at this line of a file", line],
    bytes: ["--bytes <n>", "show at most this many bytes of a file", line],
    tokens: [
      "--tokens <n>",
      "show at most this many tokens (default: LCM_MAX_EXPAND_TOKENS, 4,000)",
      wholeNumber(1, tokensMax),
    ],
  },
  examples: [
    ["lcm describe sum_0123456789abcdef", "its text and its sources"],
    ["lcm describe msg_1-42", "one message, and the summaries that cover it"],
    ["lcm describe file_0123456789abcdef --from-line 200", "a file, from line 200"],
  ],
  async run(session, { tokens, bytes, ...lines }, id) {
    const ofFiles = (
      [
        ["--from-line", lines.fromLine],
        ["--to-line", lines.toLine],
        ["--bytes", bytes],
      ] as const
    ).find(([, given]) => given !== undefined);
    if (ofFiles !== undefined && (isSummaryId(id) || parseMessageId(id) !== null)) {
      throw new LcmError("invalid", `${ofFiles[0]} is for files, and ${id} is not a file`, {
        hint: "limit summaries and messages with --tokens",
      });
    }
    return await withLcm(session, "read", async (lcm) => {
      const described = await lcm.describe({
        id,
        reach: await everywhere(lcm),
        tokenCap: tokens ?? lcm.settings.maxExpandTokens,
        ...lines,
        ...(bytes === undefined ? {} : { bytesMax: bytes }),
      });
      if (session.json) session.printJson(json, described);
      else await print(session, lcm, described);
    });
  },
});

type Of<K extends Described["kind"]> = Extract<Described, { readonly kind: K }>;
type Facts = Parameters<typeof facts>[0];

async function print(session: Session, lcm: Lcm, described: Described): Promise<void> {
  const conversation = await lcm.find(String(conversationOf(described)));
  session.print(headline(session, conversation));
  switch (described.kind) {
    case "summary":
      return printSummary(session, described);
    case "message":
      return printMessage(session, described, conversation);
    case "file":
      return printFile(session, described);
  }
}

function printSummary(session: Session, described: Of<"summary">): void {
  const { paint, context } = session;
  const { summary, sources, derived, origin, manifest, text, isWhole } = described;
  const { id, depth, level, tokens, earliestAt, latestAt, fileIds, rewriteReason, carriedFrom } = summary;
  const madeFrom =
    sources.messages.length > 0
      ? `${plural(sources.messages.length, "message")}: ${messageRuns(sources.messages).join(", ")}`
      : plural(sources.summaries.length, "summary", "summaries");
  printHead(session, id, paint.depth(depth, `summary, depth ${depth}`), [
    ...(earliestAt && latestAt ? [["when", formatRange(earliestAt, latestAt, context.zone)] as const] : []),
    ["tokens", `${formatCount(tokens)}${belowWords(manifest)}`],
    ["level", level === "normal" ? level : `${level} ${paint.soft("(less detailed than a normal summary)")}`],
    ...(rewriteReason === null ? [] : [["stale", paint.caution(oneLine(rewriteReason))] as const]),
    ...(carriedFrom === null ? [] : [["carried", carriedWords(carriedFrom, origin !== null)] as const]),
    ...(carriedFrom === null || origin !== null ? [["made from", madeFrom] as const] : []),
    ...named("used in", derived),
    ...named("files", fileIds),
  ]);
  printText(session, text, isWhole);
  if (manifest.rows.length === 0) return;
  session.print();
  for (const row of manifestLines(session, manifest)) session.print(row);
  const more = manifest.isBounded ? "more lies below; raise --tokens to see it; " : "";
  session.note(paint.soft(`${more}\`lcm expand ${id}\` reads its sources`));
}

const carriedWords = (from: SummaryId, isThere: boolean): string =>
  isThere
    ? `over from ${from} of an earlier segment, with its sources`
    : `over from ${from}, which no longer exists: only this text is left`;

const belowWords = ({ messages }: Manifest): string =>
  messages === null ? "" : `; covers ${plural(messages.count, "message")} with ${plural(messages.tokens, "token")}`;

/** The summaries below, with the tokens that reading each or its messages takes. */
function manifestLines({ paint, context, columns }: Session, { rows }: Manifest): readonly string[] {
  const times = rows.flatMap(({ earliestAt, latestAt }) => (earliestAt && latestAt ? [earliestAt, latestAt] : []));
  const spans = createSpans(times, context.zone);
  const span = ({ earliestAt, latestAt }: ManifestRow): string =>
    earliestAt && latestAt ? spans.of(earliestAt, latestAt) : "";
  return table(
    [
      { title: "below it", paint: (cell, row) => paint.depth(rows[row]?.depth ?? 0, cell) },
      { title: "tokens", align: "right" },
      { title: "messages (tokens)", align: "right" },
      { title: "time", paint: paint.soft },
      { title: "text", flexible: true },
    ],
    rows.map((row) => [
      `${"  ".repeat(row.level - 1)}${row.id}`,
      formatCount(row.tokens),
      row.messages === null ? "" : `${formatCount(row.messages.count)} (${formatCount(row.messages.tokens)})`,
      span(row),
      openingOf({ text: row.opening }),
    ]),
    columns,
    paint,
  );
}

function printMessage(session: Session, described: Of<"message">, { totals }: Conversation): void {
  const { paint, context } = session;
  const { message, coveredBy, files, text, isWhole } = described;
  const { id, role, seq, at, tokens, aside } = message;
  printHead(session, messageName(id), paint.role(role, role), [
    ["when", formatTimestamp(at, context.zone)],
    ["position", `${formatCount(seq)} of ${plural(totals.messages, "message")}${aside === null ? "" : ` (${aside})`}`],
    ["tokens", formatCount(tokens)],
    ...named("folded into", coveredBy),
    ...named("files", files),
  ]);
  // Stored references to files name the tool of a model.
  printText(session, text.replaceAll("; lcm_describe shows it.]", "; lcm describe shows it.]"), isWhole);
}

function printFile(session: Session, { file, path, message, content }: Of<"file">): void {
  const { paint, context, print } = session;
  const { id, name, mimeType, bytes, lines, createdAt, exploration } = file;
  printHead(session, id, oneLine([name, mimeType].filter((word) => word !== null).join(", ")), [
    ["when", formatTimestamp(createdAt, context.zone)],
    ...(message === null ? [] : named("moved out of", [messageName(message)])),
    ...(path === null ? [] : [["path", oneLine(path)] as const]),
    ["size", `${formatBytes(bytes)}${lines === null ? "" : `, ${plural(lines, "line")}`}`],
  ]);
  if (exploration !== null) {
    print(paint.strong("preview"));
    for (const each of textLines(session, exploration)) print(each);
    print();
  }
  if (content === null) return session.note("the content is binary, not text");
  const { fromLine, toLine, nextLine, lineCutBy } = content;
  const ends = [...new Set([fromLine, toLine])].map(formatCount).join(" to ");
  print(paint.strong(`${fromLine === toLine ? "line" : "lines"} ${ends} of ${formatCount(content.lines)}`));
  for (const each of textLines(session, content.text)) print(each);
  if (lineCutBy !== null) session.note(`line ${formatCount(toLine)} is cut; raise --${lineCutBy} to see more of it`);
  if (nextLine === null) return;
  const next = lineCutBy === null ? "continue with" : "next line";
  session.note(paint.soft(`${next}: \`lcm describe ${id} --from-line ${nextLine}\``));
}

function printHead(session: Session, id: string, what: string, pairs: Facts): void {
  session.print(`${session.paint.strong(id)}  ${what}`.trimEnd());
  for (const each of facts(pairs, session.paint, session.context.stdout.columns)) session.print(each);
  session.print();
}

const named = (what: string, ids: readonly string[]): Facts => (ids.length === 0 ? [] : [[what, ids.join(", ")]]);

function printText(session: Session, text: string, isWhole: boolean): void {
  for (const each of textLines(session, text)) session.print(each);
  if (!isWhole) session.note(session.paint.soft("the text is cut; raise --tokens to see more"));
}
