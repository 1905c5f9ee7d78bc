/** `lcm messages`: shows the messages of a conversation, one line each or in full. */

import { readableMessage } from "../../core/messages/codec.ts";
import { messageName, roles, type Conversation, type Message } from "../../core/model/types.ts";
import { parseSpan } from "../../core/base/parse-time.ts";
import { chosenConversation, conversationArgument } from "./_reach.ts";
import { inShort, wholeLines } from "../../format/messages.ts";
import { about, anything, list, maybe, object, record, text, time, whole } from "./_json.ts";
import { marks, role } from "./_shapes.ts";
import { marksAmong, type Mark } from "../../core/recall/marks.ts";
import { markWords } from "../../format/marks.ts";
import { defineCommand, withLcm, type Session } from "./_session.ts";
import { wholeNumber } from "./_options.ts";
import { formatCount, plural } from "../../core/base/format.ts";
import { padStart, widthOf } from "../../format/width.ts";
import { table } from "../../format/table.ts";
import { clockTime } from "../../format/times.ts";

const json = object({
  conversation: whole,
  messages: list(
    object({
      id: whole,
      seq: whole,
      key: text,
      role,
      at: time,
      tokens: whole,
      aside: about(maybe(text), "why it is not part of the context"),
      message: about(record(anything), "as the host sent it"),
    }),
  ),
  marks: about(marks, "compactions, resets and models between these messages"),
});

export const messagesCommand = defineCommand({
  name: "messages",
  json,
  summary: "show the messages of a conversation",
  description: "Show the messages of a conversation, by default the newest 20.",
  arguments: [conversationArgument],
  options: {
    since: ["--since <time>", "show messages from this time on: 2026-02-17, '2026-02-17 15:30', yesterday, 2h"],
    before: ["--before <time>", "show messages before this time"],
    role: ["--role <role>", "show messages of this role", roles],
    limit: ["--limit <n>", "show at most this many", wholeNumber(1, 1_000_000), 20],
    fromStart: ["--from-start", "show the oldest instead of the newest"],
    full: ["--full", "show whole messages, with reasoning"],
  },
  examples: [
    ["lcm messages 3", "the newest 20 of conversation 3"],
    ["lcm messages 3 --from-start --limit 5 --full", "the first five, in full"],
    ["lcm messages agent:main:main --since 2h --role user", "what the user said in the last two hours"],
    ["lcm messages 3 --json | jq '.messages[].message'", "the original messages"],
  ],
  async run(session, options, name?: string) {
    const { clock, zone } = session.context;
    const range = {
      ...parseSpan(options, zone, clock.now(), "--"),
      ...(options.role === undefined ? {} : { role: options.role }),
    };
    return await withLcm(session, "read", async (lcm) => {
      const conversation = await chosenConversation(lcm, name);
      const messages = await lcm.store.messages({
        conversation: conversation.id,
        ...range,
        limit: options.limit,
        keep: options.fromStart === true ? "oldest" : "newest",
      });
      // Between messages of one role only, a mark would be in the wrong place.
      const found = options.role === undefined ? await marksAmong(lcm.store, messages) : [];
      if (session.json)
        session.printJson(json, { conversation: conversation.id, messages: messages.map(toJson), marks: found });
      else if (options.full === true) printWhole(session, messages, found);
      else printTable(session, messages, found);
      if (!session.json) session.note(session.paint.soft(footer(session, conversation, messages, options.limit)));
    });
  },
});

const toJson = (message: Message) => {
  const { id, seq, key, role, at, tokens, aside } = message;
  return { id, seq, key, role, at, tokens, aside, message: readableMessage(message) };
};

function footer(session: Session, { id, totals }: Conversation, messages: readonly Message[], limit: number): string {
  const all = `${formatCount(totals.messages)} in conversation ${id}`;
  if (messages.length === 0) return `no matches among the ${all}`;
  const more = messages.length < limit || totals.messages <= limit ? "" : "; raise --limit to see more";
  return `${plural(messages.length, "message")} of ${all}${more}; times in ${session.context.zone}`;
}

function toTable(session: Session, messages: readonly Message[]): readonly string[] {
  if (messages.length === 0) return [];
  const { paint, context } = session;
  return table(
    [
      { title: "seq", align: "right", paint: paint.soft, spare: true },
      { title: "id" },
      { title: "time", paint: paint.soft, spare: true },
      { title: "role", paint: (cell, row) => paint.role(messages[row]?.role ?? "user", cell) },
      { title: "text", flexible: true, paint: (cell, row) => (isAside(messages[row]) ? paint.soft(cell) : cell) },
    ],
    messages.map((message) => [
      String(message.seq),
      messageName(message.id),
      clockTime(message.at, context.zone),
      message.role,
      inShort(message),
    ]),
    session.columns,
    paint,
  );
}

const isAside = (message: Message | undefined): boolean => message !== undefined && message.aside !== null;

/** The table, with a line for each mark: a table has a heading, then one line for each message. */
function printTable(session: Session, messages: readonly Message[], found: readonly Mark[]): void {
  const [head, ...rows] = toTable(session, messages);
  if (head === undefined) return;
  session.print(head);
  printMarks(session, found, 0, (messages[0]?.seq ?? 1) - 1);
  for (const [at, row] of rows.entries()) {
    session.print(row);
    const seq = messages[at]?.seq ?? 0;
    printMarks(session, found, seq, seq);
  }
}

function printMarks(session: Session, found: readonly Mark[], from: number, to: number): void {
  for (const mark of found)
    if (mark.afterSeq >= from && mark.afterSeq <= to)
      session.print(session.paint.soft(`  ${markWords(mark, session.context.zone)}`));
}

function printWhole(session: Session, messages: readonly Message[], found: readonly Mark[]): void {
  const { paint, context } = session;
  printMarks(session, found, 0, (messages[0]?.seq ?? 1) - 1);
  const seqWidth = messages.reduce((widest, { seq }) => Math.max(widest, widthOf(String(seq))), 0);
  for (const message of messages) {
    const role = paint.role(message.role, paint.strong(message.role));
    const facts = `${messageName(message.id)}, ${plural(message.tokens, "token")}`;
    session.print(
      `${padStart(String(message.seq), seqWidth)}  ${role}  ${paint.soft(`${clockTime(message.at, context.zone)}  ${facts}`)}`,
    );
    for (const line of wholeLines(session, message)) session.print(`  ${line}`.trimEnd());
    session.print();
    printMarks(session, found, message.seq, message.seq);
  }
}
