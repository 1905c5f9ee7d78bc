/** `lcm context`: shows what the model sees of a conversation, and what was left out. */

import type { AssemblyReport } from "../../core/assembly/assemble.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Conversation } from "../../core/model/types.ts";
import { budgetLine, budgetSource, reservations, starvedWords, wholeItem } from "../../format/context.ts";
import type { PromptItem } from "../../format/context.ts";
import { headline } from "../../format/conversations.ts";
import { agents } from "../setup/agents.ts";
import { chosenConversation, conversationArgument } from "./_reach.ts";
import { budgetOption } from "./_options.ts";
import { anything, list, object, record, whole } from "./_json.ts";
import { printItems, printPromptBar, readItems, reportJson } from "./_prompt-items.ts";
import { defineCommand, withLcm, type Session } from "./_session.ts";

const json = object({ conversation: whole, messages: list(record(anything)), report: reportJson });

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
      const { messages, report } = assembly;
      if (session.json) return session.printJson(json, { conversation: conversation.id, messages, report });
      printBar(session, conversation, assembly.report, budget !== undefined);
      const items = await readItems(lcm, assembly);
      if (full === true) printWhole(session, items);
      else printItems(session, items);
      for (const sentence of [
        ...ownPrompts(conversation),
        ...(await starvation(lcm, conversation, assembly.report)),
        ...reservations(assembly.report),
      ])
        session.note(`${session.paint.caution("note:")} ${sentence}`);
    });
  },
});

function printBar(session: Session, conversation: Conversation, report: AssemblyReport, isAsked: boolean): void {
  const { print } = session;
  print(headline(session, conversation));
  print(budgetLine(session, report, isAsked ? "--budget" : budgetSource(conversation)));
  printPromptBar(session, report);
}

function printWhole(session: Session, items: readonly PromptItem[]): void {
  for (const item of items) {
    const { head, text } = wholeItem(session, item);
    session.print(head);
    session.print(text);
    session.print();
  }
}

/** Our plugin of these hosts stores what is said and cannot change what is sent; the proxy can, and then there is a budget. */
function ownPrompts({ agentId, promptBudget }: Conversation): readonly string[] {
  const host = (["claude-code", "codex"] as const).find((name) => name === agentId);
  if (host === undefined || promptBudget !== null) return [];
  const { label, program } = agents[host];
  return [
    `${label} builds its prompts itself; this is what lossless-claw would show instead, as it does with \`lcm run -- ${program}\``,
  ];
}

async function starvation(lcm: Lcm, { id, totals }: Conversation, report: AssemblyReport): Promise<readonly string[]> {
  if (totals.contextItems === 0) return ["the context is empty"];
  if (report.outcome !== "starved") return [];
  const newest = await lcm.store.context(id, { kind: "message", limit: messagesRead, keep: "newest" });
  const smallest = newest.reduce((least, { tokens }) => Math.min(least, tokens), Infinity);
  return [starvedWords(report, newest.length === 0 ? null : smallest)];
}

const messagesRead = 1_000;
