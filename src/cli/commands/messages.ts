/** `lcm messages`: what was said, a line each, or whole. */

import type { Command } from "commander";
import { Option } from "commander";
import { isObject, messageFromStore } from "../../core/content.ts";
import { messageName, roles } from "../../core/model.ts";
import type { Conversation, Json, Message, Part, Role, Summary } from "../../core/model.ts";
import { formatCount } from "../../core/text.ts";
import { parseSpan } from "../../core/when.ts";
import { harmless, oneLine, padStart, plural, clockTime, table, widthOf } from "../../show/render.ts";
import { act, exitOk, withLcm } from "./session.ts";
import type { CommandContext, Session } from "./session.ts";
import { conversationWords, examples, wholeNumber } from "./options.ts";

interface MessagesOptions {
  readonly since?: string;
  readonly before?: string;
  readonly role?: Role;
  readonly limit: number;
  readonly fromStart?: boolean;
  readonly full?: boolean;
}

export function addMessages(program: Command, context: CommandContext): void {
  program
    .command("messages")
    .summary("show the messages of a conversation")
    .description("Show the messages of a conversation: the newest 20, unless said otherwise.")
    .argument("<conversation>", conversationWords)
    .option("--since <time>", "only from this time on: 2026-02-17, '2026-02-17 15:30', yesterday, 2h")
    .option("--before <time>", "only before this time")
    .addOption(new Option("--role <role>", "only of this role").choices(roles))
    .option("--limit <n>", "how many at most", wholeNumber(1, 1_000_000), 20)
    .option("--from-start", "the oldest instead of the newest")
    .option("--full", "whole messages, with reasoning, instead of a line each")
    .addHelpText(
      "after",
      examples(
        ["lcm messages 3", "the newest 20 of conversation 3"],
        ["lcm messages 3 --from-start --limit 5 --full", "how it began, in full"],
        ["lcm messages agent:main:main --since 2h --role user", "what was asked in the last two hours"],
        ["lcm messages 3 --json | jq '.messages[].message'", "the original messages"],
      ),
    )
    .action(act(context, showMessages));
}

async function showMessages(session: Session, command: Command, name: string): Promise<number> {
  const options = command.opts<MessagesOptions>();
  const { clock, zone } = session.context;
  const range = {
    ...parseSpan(options, zone, clock.now(), "--"),
    ...(options.role === undefined ? {} : { role: options.role }),
  };
  return await withLcm(session, "read", async (lcm) => {
    const conversation = await lcm.find(name);
    const messages = await lcm.store.messages({
      conversation: conversation.id,
      ...range,
      limit: options.limit,
      keep: options.fromStart === true ? "oldest" : "newest",
    });
    if (session.json) session.printJson({ conversation: conversation.id, messages: messages.map(toJson) });
    else if (options.full === true) printWhole(session, messages);
    else for (const line of toTable(session, messages)) session.print(line);
    if (!session.json) session.note(session.paint.soft(footer(session, conversation, messages, options)));
    return exitOk;
  });
}

const toJson = (message: Message): unknown => {
  const { id, seq, key, role, at, tokens, aside } = message;
  return { id, seq, key, role, at, tokens, aside, message: messageFromStore(message) };
};

function footer(
  session: Session,
  { id, totals }: Conversation,
  messages: readonly Message[],
  options: MessagesOptions,
): string {
  const all = `${formatCount(totals.messages)} in conversation ${id}`;
  if (messages.length === 0) return `no such message among the ${all}`;
  const more = messages.length < options.limit || totals.messages <= options.limit ? "" : "; --limit shows more";
  return `${plural(messages.length, "message")} of ${all}${more}; times in ${session.context.zone}`;
}

function toTable(session: Session, messages: readonly Message[]): readonly string[] {
  if (messages.length === 0) return [];
  const { paint, context } = session;
  return table(
    [
      { title: "seq", align: "right", paint: paint.soft },
      { title: "id" },
      { title: "time", paint: paint.soft },
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

/** A message in one line: what it says, and what it calls. */
export function inShort(message: Message): string {
  const result = message.role === "tool" ? toolNameOf(message) : null;
  const said = message.parts.map(partInShort).filter((text) => text !== "");
  const aside = message.aside === "branch" ? "(left branch) " : message.aside === "note" ? "(note) " : "";
  const text =
    said.length > 0 ? said.join("  ") : message.parts.length > 0 ? "(thinking)" : oneLine(message.text) || "(empty)";
  return `${aside}${result === null ? "" : `← ${result}  `}${text}`;
}

function toolNameOf(message: Message): string | null {
  const name = messageFromStore(message)["toolName"] ?? message.parts.find((part) => part.toolName !== null)?.toolName;
  return typeof name === "string" ? oneLine(name) : null;
}

/** A table cuts it anyway; a megabyte need not be looked through for that. */
const charactersLookedAt = 2_000;

function partInShort(part: Part): string {
  const text = oneLine((part.text ?? "").slice(0, charactersLookedAt));
  switch (part.type) {
    case "reasoning":
      return "";
    case "tool":
      return `→ ${text || oneLine(part.toolName ?? "a tool")}`;
    case "text":
      return text;
    default:
      // What is said beside the content has no block to name.
      if (part.metadata?.startsWith('{"field":') === true) return text;
      return [`[${blockTypeOf(part)}]`, text].filter((words) => words !== "").join(" ");
  }
}

/** How a summary begins, without the time and the speaker that stand before an extracted sentence. */
export const openingOf = ({ text }: Pick<Summary, "text">): string =>
  oneLine(text.slice(0, charactersLookedAt)).replace(/^(?:\[[^\]]*\]\s*)+/, "");

const blockTypeLength = 40;

/** The host's own word for a block of a kind unknown to us. Kinds unknown to us are stored under a type that is not theirs. */
function blockTypeOf(part: Part): string {
  const metadata: Json = part.metadata === null ? null : JSON.parse(part.metadata);
  const raw = isObject(metadata) ? metadata["raw"] : undefined;
  if (raw === undefined) return part.type;
  const type = isObject(raw) ? raw["type"] : undefined;
  return typeof type === "string" && type !== "" ? oneLine(type.slice(0, blockTypeLength)) : "unknown";
}

function printWhole(session: Session, messages: readonly Message[]): void {
  const { paint, context } = session;
  const seqWidth = messages.reduce((widest, { seq }) => Math.max(widest, widthOf(String(seq))), 0);
  for (const message of messages) {
    const role = paint.role(message.role, paint.strong(message.role));
    const facts = `${messageName(message.id)}, ${plural(message.tokens, "token")}`;
    session.print(
      `${padStart(String(message.seq), seqWidth)}  ${role}  ${paint.soft(`${clockTime(message.at, context.zone)}  ${facts}`)}`,
    );
    for (const line of wholeLines(session, message)) session.print(`  ${line}`.trimEnd());
    session.print();
  }
}

function wholeLines({ paint }: Session, message: Message): readonly string[] {
  const lines = (text: string): readonly string[] => harmless(text).split("\n");
  const blocks = message.parts.map((part): readonly string[] => {
    if (part.type === "reasoning") return lines(part.kept ?? "(reasoning)").map((line) => paint.soft(line));
    if (part.type === "tool") return lines(`→ ${part.text ?? part.toolName ?? ""}`);
    return lines(part.text ?? partInShort(part));
  });
  const all = blocks.length > 0 ? blocks.flat() : lines(message.text || "(empty)");
  const result = message.role === "tool" ? toolNameOf(message) : null;
  return result === null ? all : [paint.soft(`← ${result}`), ...all];
}
