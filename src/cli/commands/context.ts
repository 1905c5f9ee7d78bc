/** `lcm context`: shows what the model sees of a conversation, and what was left out. */

import type { Assembly, AssemblyReport } from "../../core/assembly/assemble.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Conversation } from "../../core/model/types.ts";
import {
  budgetLine,
  budgetSource,
  finerMark,
  finerWords,
  idsOf,
  itemName,
  itemsOf,
  lineOf,
  rangeOf,
  reservations,
  starvedWords,
  wholeItem,
  itemText,
} from "../../format/context.ts";
import type { PromptItem } from "../../format/context.ts";
import { headline } from "../../format/conversations.ts";
import { bar, legend, promptBar } from "../../format/bars.ts";
import { chosenConversation, conversationArgument } from "./_reach.ts";
import { budgetOption } from "./_options.ts";
import { about, anything, either, list, object, oneOf, record, text, whole } from "./_json.ts";
import { role, share } from "./_shapes.ts";
import { defineCommand, withLcm, type Session } from "./_session.ts";
import { formatCount } from "../../core/base/format.ts";
import { table } from "../../format/table.ts";
import { createSpans } from "../../format/times.ts";

const within = about(text, "the summary of the context that it is shown in place of");

const json = object({
  conversation: whole,
  messages: list(record(anything)),
  report: object({
    budget: whole,
    tokens: whole,
    outcome: oneOf("whole", "evicted", "tail_cut", "shortened", "starved"),
    summaries: share,
    finer: about(share, "summaries shown by what they were made from, and the tokens that this adds"),
    older: share,
    tail: share,
    notes: share,
    standing: about(
      object({ items: whole, tokens: whole, left: whole }),
      "standing instructions whose messages are not shown, and how many more do not fit",
    ),
    evicted: share,
    leftOut: share,
    standIns: whole,
    loose: whole,
    shortened: whole,
    depths: list(object({ depth: whole, items: whole, tokens: whole })),
    origins: list(
      either(
        object({ kind: oneOf("summary"), id: text, depth: whole, tokens: whole, "within?": within }),
        object({
          kind: oneOf("message"),
          id: whole,
          role,
          part: oneOf("older", "tail"),
          tokens: whole,
          "within?": within,
        }),
        object({
          kind: oneOf("note"),
          tokens: whole,
          "standing?": about(list(whole), "the messages whose words it repeats"),
        }),
      ),
    ),
  }),
});

export const contextCommand = defineCommand({
  name: "context",
  json,
  summary: "show what the model sees of a conversation",
  description:
    "Show what the model sees of a conversation: its summaries and messages in order, and how many tokens of the budget they " +
    "take. Everything else stays stored and searchable.",
  arguments: [conversationArgument],
  options: {
    budget: budgetOption,
    full: ["--full", "show whole texts, exactly as the model gets them"],
  },
  examples: [
    ["lcm context 3", "one line per item"],
    ["lcm context 3 --budget 32000", "what a model with a smaller budget would see"],
    ["lcm context 3 --full | less", "the whole text"],
    ["lcm context 3 --json | jq '.messages'", "the messages of the prompt, as JSON"],
  ],
  async run(session, { budget, full }, name?: string) {
    return await withLcm(session, "read", async (lcm) => {
      const conversation = await chosenConversation(lcm, name);
      const assembly = await lcm.assemble(conversation.id, budget === undefined ? {} : { budget });
      if (session.json) return session.printJson(json, { conversation: conversation.id, ...assembly });
      printBar(session, conversation, assembly.report, budget !== undefined);
      const items = await readItems(lcm, assembly);
      if (full === true) printWhole(session, items);
      else printLines(session, items);
      for (const sentence of [
        ...(await starvation(lcm, conversation, assembly.report)),
        ...reservations(assembly.report),
      ])
        session.note(`${session.paint.caution("note:")} ${sentence}`);
    });
  },
});

function printBar(session: Session, conversation: Conversation, report: AssemblyReport, isAsked: boolean): void {
  const { print, paint, columns } = session;
  print(headline(session, conversation));
  print(budgetLine(session, report, isAsked ? "--budget" : budgetSource(conversation)));
  print();
  const segments = promptBar(report, paint);
  print(bar(segments, columns));
  for (const line of legend(segments, columns)) print(line);
  for (const line of finerWords(report)) print(paint.soft(line));
  print();
}

async function readItems({ store }: Lcm, assembly: Assembly): Promise<readonly PromptItem[]> {
  const ids = idsOf(assembly.report);
  return itemsOf(assembly, {
    summaries: await store.summaries({ ids: ids.summaries }),
    messages: await store.messages({ ids: ids.messages }),
  });
}

function printLines(session: Session, items: readonly PromptItem[]): void {
  const { paint, context, columns, print, note } = session;
  if (items.length === 0) return;
  const spans = createSpans(
    items.flatMap((item) => rangeOf(item) ?? []),
    context.zone,
  );
  const paintItem = (text: string, row: number): string => {
    const origin = items[row]?.origin;
    if (origin?.kind === "summary") return paint.depth(origin.depth, text);
    return origin?.kind === "message" ? paint.role(origin.role, text) : paint.caution(text);
  };
  const lines = table(
    [
      { title: "item", paint: paintItem },
      { title: "tokens", align: "right" },
      { title: "time", paint: paint.soft, spare: true },
      { title: "text", flexible: true },
    ],
    items.map((item) => {
      const range = rangeOf(item);
      return [
        itemName(item.origin) + finerMark(item.origin),
        formatCount(item.origin.tokens),
        range === null ? "" : spans.of(...range),
        itemText(item),
      ];
    }),
    columns,
    paint,
  );
  const tailAt = items.findIndex(({ origin }) => origin.kind === "message" && origin.part === "tail");
  for (const [at, line] of lines.entries()) {
    // Line 0 is the heading of the table.
    if (at > 1 && at === tailAt + 1) print(paint.soft(lineOf("fresh tail", columns)));
    print(line);
  }
  note(paint.soft(spans.words));
}

function printWhole(session: Session, items: readonly PromptItem[]): void {
  for (const item of items) {
    const { head, text } = wholeItem(session, item);
    session.print(head);
    session.print(text);
    session.print();
  }
}

async function starvation(lcm: Lcm, { id, totals }: Conversation, report: AssemblyReport): Promise<readonly string[]> {
  if (totals.contextItems === 0) return ["the context is empty"];
  if (report.outcome !== "starved") return [];
  const newest = await lcm.store.context(id, { kind: "message", limit: messagesRead, keep: "newest" });
  const smallest = newest.reduce((least, { tokens }) => Math.min(least, tokens), Infinity);
  return [starvedWords(report, newest.length === 0 ? null : smallest)];
}

const messagesRead = 1_000;
