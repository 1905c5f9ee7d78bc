/** `lcm context`: what the model sees of a conversation, what that is made of, and what had to be left out. */

import type { Command } from "commander";
import type { Assembly, AssemblyReport, Origin } from "../../core/assemble.ts";
import { isObject } from "../../core/content.ts";
import type { HostMessage } from "../../core/content.ts";
import type { Lcm } from "../../core/lcm.ts";
import { messageName } from "../../core/model.ts";
import type { Conversation, Json, Message, Summary, Timestamp } from "../../core/model.ts";
import { formatCount } from "../../core/text.ts";
import { bar, legend, makeUp } from "../../show/make-up.ts";
import { createSpans, cut, harmless, oneLine, plural, table, widthOf } from "../../show/render.ts";
import { headline } from "./conversations.ts";
import { inShort, openingOf } from "./messages.ts";
import { budgetOption, conversationWords, examples } from "./options.ts";
import { act, exitOk, withLcm } from "./session.ts";
import type { CommandContext, Session } from "./session.ts";

interface ContextOptions {
  readonly budget?: number;
  readonly full?: boolean;
}

export function addContext(program: Command, context: CommandContext): void {
  program
    .command("context")
    .summary("show what the model sees of a conversation")
    .description(
      "Show what the model sees of a conversation: which summaries and messages, in which order, and how many tokens they take " +
        "of the budget. What is not shown here is stored all the same.",
    )
    .argument("<conversation>", conversationWords)
    .addOption(budgetOption())
    .option("--full", "the whole texts, exactly as the model gets them")
    .addHelpText(
      "after",
      examples(
        ["lcm context 3", "a line for each item"],
        ["lcm context 3 --budget 32000", "what a smaller model would see"],
        ["lcm context 3 --full | less", "every word of it"],
        ["lcm context 3 --json | jq '.messages'", "the prompt's messages, for a program"],
      ),
    )
    .action(act(context, showContext));
}

async function showContext(session: Session, command: Command, name: string): Promise<number> {
  const { budget, full } = command.opts<ContextOptions>();
  return await withLcm(session, "read", async (lcm) => {
    const conversation = await lcm.find(name);
    const assembly = await lcm.assemble(conversation.id, budget === undefined ? {} : { budget });
    if (session.json) {
      session.printJson({ conversation: conversation.id, ...assembly });
      return exitOk;
    }
    printMakeUp(session, conversation, assembly.report, budget !== undefined);
    const items = await itemsOf(lcm, assembly);
    if (full === true) printWhole(session, items);
    else printLines(session, items);
    for (const sentence of [
      ...(await starvation(lcm, conversation, assembly.report)),
      ...reservations(assembly.report),
    ])
      session.note(`${session.paint.caution("note:")} ${sentence}`);
    return exitOk;
  });
}

function printMakeUp(session: Session, conversation: Conversation, report: AssemblyReport, isAsked: boolean): void {
  const { print, paint, columns } = session;
  const { budget, tokens } = report;
  const { promptBudget } = conversation;
  const source = isAsked ? "--budget" : promptBudget === null ? "no host gave one yet" : "as the host last gave it";
  const share = Math.round((tokens / Math.max(1, budget)) * 100);
  print(headline(session, conversation));
  print(
    `assembled: ${formatCount(tokens)} tokens, ${share}% of a budget of ${formatCount(budget)} ${paint.soft(`(${source})`)}`,
  );
  print();
  const segments = makeUp(report, paint);
  print(bar(segments, columns));
  for (const line of legend(segments, columns)) print(line);
  print();
}

// ── One line each ────────────────────────────────────────────────────────────────────────────────────────────────────

/** A message of the prompt, with what is stored about where it comes from. */
interface Item {
  readonly origin: Origin;
  readonly shown: HostMessage;
  readonly summary: Summary | undefined;
  readonly message: Message | undefined;
}

async function itemsOf(lcm: Lcm, { messages, report }: Assembly): Promise<readonly Item[]> {
  const summaryIds = report.origins.flatMap((origin) => (origin.kind === "summary" ? [origin.id] : []));
  const messageIds = report.origins.flatMap((origin) => (origin.kind === "message" ? [origin.id] : []));
  const summaries = new Map((await lcm.store.summaries({ ids: summaryIds })).map((each) => [each.id, each]));
  const stored = new Map((await lcm.store.messages({ ids: messageIds })).map((each) => [each.id, each]));
  return messages.flatMap((shown, at) => {
    const origin = report.origins[at];
    if (origin === undefined) return [];
    const summary = origin.kind === "summary" ? summaries.get(origin.id) : undefined;
    const message = origin.kind === "message" ? stored.get(origin.id) : undefined;
    return [{ origin, shown, summary, message }];
  });
}

const rangeOf = ({ summary, message }: Item): readonly [Timestamp, Timestamp] | null => {
  if (message !== undefined) return [message.at, message.at];
  if (summary === undefined) return null;
  const from = summary.earliestAt ?? summary.createdAt;
  return [from, summary.latestAt ?? from];
};

function printLines(session: Session, items: readonly Item[]): void {
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
      { title: "time", paint: paint.soft },
      { title: "text", flexible: true },
    ],
    items.map((item) => {
      const range = rangeOf(item);
      return [
        nameOf(item.origin),
        formatCount(item.origin.tokens),
        range === null ? "" : spans.of(...range),
        wordsOf(item),
      ];
    }),
    columns,
    paint,
  );
  const tailAt = items.findIndex(({ origin }) => origin.kind === "message" && origin.part === "tail");
  for (const [at, line] of lines.entries()) {
    // The first line is the table's heading.
    if (at > 1 && at === tailAt + 1) print(paint.soft(rule("fresh tail", columns)));
    print(line);
  }
  note(paint.soft(spans.words));
}

const nameOf = (origin: Origin): string => {
  switch (origin.kind) {
    case "summary":
      return `d${origin.depth} ${origin.id}`;
    case "message":
      return `${origin.role} ${messageName(origin.id)}`;
    case "note":
      return "note";
  }
};

function wordsOf({ summary, message, shown }: Item): string {
  if (message !== undefined) return inShort(message);
  return summary === undefined ? oneLine(textOf(shown)) : openingOf(summary);
}

function rule(words: string, columns: number): string {
  const line = `── ${words} `;
  return line + "─".repeat(Math.max(0, columns - widthOf(line)));
}

// ── In full ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function printWhole({ paint, columns, print }: Session, items: readonly Item[]): void {
  for (const { origin, shown } of items) {
    const role = typeof shown["role"] === "string" ? shown["role"] : "message";
    print(
      paint.soft(rule(cut(`${nameOf(origin)}, as ${role}, ${plural(origin.tokens, "token")}`, columns - 4), columns)),
    );
    print(harmless(textOf(shown)));
    print();
  }
}

/**
 * What a message says, and whatever else it holds as JSON: the calls beside its content, and all of a message that has no
 * content. Pictures and the like are told by their size.
 */
function textOf(message: HostMessage): string {
  const { content, tool_calls: calls } = message;
  const blocks = [content, calls].flatMap((field): readonly Json[] =>
    Array.isArray(field) ? field : field === undefined || field === null ? [] : [field],
  );
  return (blocks.length > 0 || content !== undefined ? blocks : [message]).map(blockText).join("\n");
}

function blockText(block: Json): string {
  const text = isObject(block) ? block["text"] : block;
  return typeof text === "string" ? text : (JSON.stringify(block, withoutBulk) ?? "");
}

const bulkCharacters = 4_000;

const withoutBulk = (_key: string, value: unknown): unknown =>
  typeof value === "string" && value.length > bulkCharacters ? `… ${formatCount(value.length)} characters` : value;

/** Why nothing is shown. */
async function starvation(lcm: Lcm, { id, totals }: Conversation, report: AssemblyReport): Promise<readonly string[]> {
  if (totals.contextItems === 0) return ["the context is empty"];
  if (report.outcome !== "starved") return [];
  const newest = await lcm.store.context(id, { kind: "message", limit: lookedAt, keep: "newest" });
  const smallest = newest.reduce((least, { tokens }) => Math.min(least, tokens), Infinity);
  const words = `a budget of ${plural(report.budget, "token")} is too small for anything`;
  return [newest.length === 0 ? words : `${words}: the smallest message takes ${formatCount(smallest)}`];
}

const lookedAt = 1_000;

/** What whoever reads the list must know besides. */
function reservations({ evicted, standIns, loose, shortened }: AssemblyReport): readonly string[] {
  return [
    ...(evicted.items === 0
      ? []
      : [
          `${plural(evicted.items, "older item")} (${formatCount(evicted.tokens)} tokens) did not fit the budget: ` +
            "stored and found by grep, but not seen by the model; `lcm compact` makes room",
        ]),
    ...(standIns === 0 ? [] : [`${plural(standIns, "tool call")} without a result got a stand-in that says so`]),
    ...(loose === 0 ? [] : [`${plural(loose, "tool result")} shown as text, because the call is folded`]),
    ...(shortened === 0 ? [] : [`${plural(shortened, "message")} shortened, because not even the fresh tail fits`]),
  ];
}
