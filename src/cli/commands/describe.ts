/** `lcm describe`: shows summaries, messages and files by their ids, with their sources and size. */

import { conversationOf, messageRuns, type Described } from "../../core/recall/describe.ts";
import { parseRoles } from "../../core/recall/span.ts";
import { LcmError } from "../../core/base/errors.ts";
import type { Lcm } from "../../core/lcm.ts";
import { isSummaryId, messageName, parseMessageId, type Conversation, type SummaryId } from "../../core/model/types.ts";
import type { Manifest, ManifestRow } from "../../core/model/store.ts";
import { headLine, textLines } from "../../format/passages.ts";
import { marksAt, markWords, type MarksBeside } from "../../format/marks.ts";
import { namesSeveral, type Several } from "../../core/recall/describe-several.ts";
import type { TextParts } from "../../core/recall/text-parts.ts";
import { headline } from "../../format/conversations.ts";
import { openingOf } from "../../format/messages.ts";
import { tokensMax, wholeNumber } from "./_options.ts";
import { everywhere } from "./_reach.ts";
import { about, either, flag, list, maybe, object, oneOf, text, time, whole } from "./_json.ts";
import { level, marks, role, summaryFields } from "./_shapes.ts";
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
const textFields = {
  text,
  isWhole: flag,
  tokens: whole,
  parts: about(
    list(object({ text, leftOut: about(whole, "tokens left out before it") })),
    "the text, or what is shown of it",
  ),
  leftOut: about(whole, "tokens left out after the last part"),
  found: about(maybe(whole), "how often the words to find occur"),
};

const item = either(
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
    isOnce: about(flag, "lines that it repeats are shown once"),
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

const several = object({
  items: about(list(item), "for several ids"),
  marks: about(marks, "compactions, resets and models between consecutive messages"),
  leftOut: object({ count: whole, from: maybe(text) }),
  last: about(maybe(whole), "the last message of its conversation, if messages beyond it were asked for"),
  tokens: whole,
});

const json = either(item, several);

export const describeCommand = defineCommand({
  name: "describe",
  json,
  summary: "show summaries, messages or files by their ids",
  description:
    "Show items by their ids: a summary with what lies below it and how many tokens each part takes, messages, or the " +
    "lines of a file. A text that is too long is shown without its middle.",
  arguments: [["<id...>", "sum_…, file_…, msg_1-42 or a range msg_1-42..47, as printed by other commands"]],
  options: {
    around: ["--around <n>", "add this many messages before and after", wholeNumber(0, 50)],
    role: ["--role <role>", "of a range: only messages of this role; several separated by commas"],
    find: ["--find <text>", "show the places in a long text where this occurs"],
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
    ["lcm describe msg_1-42..47", "six messages"],
    ["lcm describe msg_1-42 --around 3", "what was said before and after it"],
    ["lcm describe msg_1-42 --find 'no such file'", "the places in a long message"],
    ["lcm describe file_0123456789abcdef --from-line 200", "a file, from line 200"],
  ],
  async run(session, { tokens, bytes, around, find, role, ...lines }, ...ids) {
    const id = ids.join(" ");
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
      const described = await lcm.describeSeveral({
        id,
        reach: await everywhere(lcm),
        tokenCap: tokens ?? lcm.settings.maxExpandTokens,
        ...lines,
        ...(around === undefined ? {} : { around }),
        ...(role === undefined ? {} : { roles: parseRoles("--role", role) }),
        ...(find === undefined ? {} : { find }),
        ...(bytes === undefined ? {} : { bytesMax: bytes }),
      });
      const [only] = described.items;
      if (session.json)
        session.printJson(
          json,
          only === undefined || namesSeveral({ id, ...(around && { around }) }) ? described : only,
        );
      else await printAll(session, lcm, described);
    });
  },
});

/** One item in full; several messages one below the other, with marks between them. */
async function printAll(session: Session, lcm: Lcm, { items, marks: found, leftOut, last }: Several): Promise<void> {
  const [only] = items;
  if (last !== null) session.note(`${messageName(last)} is the last of this conversation`);
  else if (only === undefined) session.note("none of these messages has this role");
  if (items.length === 1 && only !== undefined) return await print(session, lcm, only);
  for (const [at, item] of items.entries()) {
    if (item.kind === "message") printShort(session, item, marksAt(found, items, at));
    else await print(session, lcm, item);
    session.print();
  }
  if (leftOut.count > 0 && leftOut.from !== null) {
    const id = parseMessageId(leftOut.from);
    const from = id === null ? leftOut.from : messageName(id);
    session.note(`${plural(leftOut.count, "item")} left out from ${from} on; raise --tokens to see more`);
  }
}

function printShort(session: Session, { message, ...shortened }: Of<"message">, beside: MarksBeside): void {
  const { paint, context } = session;
  for (const mark of beside.before) session.print(paint.soft(markWords(mark, context.zone)));
  session.print(
    headLine(session, messageName(message.id), paint.role(message.role, message.role), {
      ...message,
      from: message.at,
    }),
  );
  printText(session, shortened);
  for (const mark of beside.after) session.print(paint.soft(markWords(mark, context.zone)));
}

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
  const { summary, sources, derived, origin, manifest } = described;
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
  printText(session, described);
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
  const { message, coveredBy, files } = described;
  const { id, role, seq, at, tokens, aside } = message;
  printHead(session, messageName(id), paint.role(role, role), [
    ["when", formatTimestamp(at, context.zone)],
    ["position", `${formatCount(seq)} of ${plural(totals.messages, "message")}${aside === null ? "" : ` (${aside})`}`],
    ["tokens", formatCount(tokens)],
    ...named("folded into", coveredBy),
    ...named("files", files),
  ]);
  printText(session, described);
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

function printText(session: Session, { parts, leftOut, found }: Pick<Of<"message">, keyof TextParts>): void {
  const { paint } = session;
  const gap = (tokens: number): void => {
    if (tokens > 0) session.print(paint.soft(`  … ${plural(tokens, "token")} left out …`));
  };
  if (found === 0) session.note("the words to find do not occur here");
  for (const part of parts) {
    gap(part.leftOut);
    // Stored references to files name the tool of a model.
    const shown = part.text.replaceAll("; lcm_describe shows it.]", "; lcm describe shows it.]");
    for (const each of textLines(session, shown)) session.print(each);
  }
  gap(leftOut);
  if (found === null && (leftOut > 0 || parts.some((part) => part.leftOut > 0)))
    session.note(paint.soft("the text is cut; raise --tokens to see more, or pass --find"));
}
