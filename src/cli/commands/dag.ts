/** `lcm dag`: shows the context as a tree, each summary with the sources it was made from. */

import { LcmError } from "../../core/base/errors.ts";
import type { Lcm } from "../../core/lcm.ts";
import { isSummaryId, messageName } from "../../core/model/types.ts";
import type { Conversation, Level, Message, Summary } from "../../core/model/types.ts";
import type { Paint } from "../../format/paint.ts";
import { levelWords } from "../../format/summaries.ts";
import { readTree, type Tree, type TreeNode } from "../context-tree.ts";
import { headline } from "../../format/conversations.ts";
import { inShort, openingOf } from "../../format/messages.ts";
import { chosenConversation, conversationArgument } from "./_reach.ts";
import { wholeNumber } from "./_options.ts";
import { about, defining, either, list, maybe, object, oneOf, refer, text, time, whole, type TypeOf } from "./_json.ts";
import { level, role } from "./_shapes.ts";
import { defineCommand, withLcm, type Session } from "./_session.ts";
import { formatCount, plural } from "../../core/base/format.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { table } from "../../format/table.ts";
import { createSpans } from "../../format/times.ts";

const summaryNode = {
  id: text,
  depth: whole,
  level,
  tokens: whole,
  earliestAt: maybe(time),
  latestAt: maybe(time),
  carriedFrom: maybe(text),
  text,
};

const messageNode = object({ id: whole, role, tokens: whole, at: time, text });

const nodeJson = either(
  object({
    kind: oneOf("summary"),
    ...summaryNode,
    from: about(whole, "number of its sources"),
    below: list(refer("node")),
  }),
  object({
    kind: oneOf("messages"),
    count: whole,
    tokens: whole,
    earliestAt: maybe(time),
    latestAt: maybe(time),
    "messages?": list(messageNode),
  }),
);

const json = defining(
  { node: nodeJson },
  object({
    conversation: whole,
    nodes: list(refer("node")),
    leftOut: object({ olderItems: whole, summaries: whole, messages: whole }),
    outside: about(list(object(summaryNode)), "summaries that are no longer in the context"),
  }),
);

export const dagCommand = defineCommand({
  name: "dag",
  json,
  summary: "show summaries and their sources as a tree",
  description:
    "Show the context as a tree: each summary with the summaries or messages it was made from. Summaries that are no longer " +
    "in the context are listed at the end.",
  arguments: [conversationArgument],
  options: {
    summary: ["--summary <id>", "show only this summary and what is below it"],
    summaryId: ["--summary-id <id>", null],
    depth: ["--depth <n>", "show this many levels below the context", wholeNumber(0, 1_000)],
    messages: ["--messages", "show the messages too, one line each"],
    limit: ["--limit <n>", "show at most this many summaries", wholeNumber(1, 100_000), 500],
  },
  examples: [
    ["lcm dag 3", "the whole tree"],
    ["lcm dag 3 --depth 0", "only the context itself"],
    ["lcm dag --summary sum_0123456789abcdef --messages", "one summary, down to its messages"],
  ],
  async run(session, options, name?: string) {
    const top = givenSummary(options);
    return await withLcm(session, "read", async (lcm) => {
      const root = top === undefined ? null : await findSummary(lcm, top);
      const conversation = await chosenConversation(lcm, name, root);
      const dag = await readTree(lcm, conversation, root, options);
      if (session.json) session.printJson(json, toJson(conversation, dag));
      else print(session, conversation, dag);
    });
  },
});

interface SummaryOptions {
  readonly summary?: string;
  readonly summaryId?: string;
}

/** `--summary-id` is an alias of `--summary`. */
export function givenSummary({ summary, summaryId }: SummaryOptions): string | undefined {
  if (summary !== undefined && summaryId !== undefined && summary !== summaryId) {
    throw new LcmError("invalid", "--summary and --summary-id name different summaries", {
      hint: "pass only one of them",
    });
  }
  return summary ?? summaryId;
}

export async function findSummary(lcm: Lcm, id: string): Promise<Summary> {
  if (!isSummaryId(id)) {
    throw new LcmError("invalid", `"${id}" is not a summary id`, { hint: "ids look like sum_0123456789abcdef" });
  }
  const [summary] = await lcm.store.summaries({ ids: [id] });
  if (summary === undefined)
    throw new LcmError("not_found", `there is no summary ${id}`, {
      hint: "list summaries with `lcm dag CONVERSATION`",
    });
  return summary;
}

// ── Output ───────────────────────────────────────────────────────────────────────────────────────────────────────────

function print(session: Session, conversation: Conversation, dag: Tree): void {
  const { paint, note } = session;
  const { totals } = conversation;
  session.print(headline(session, conversation));
  session.print(
    `${plural(totals.messages, "message")}, ${plural(totals.summaries, "summary", "summaries")}; ` +
      `${plural(totals.contextItems, "item")}, ${formatCount(totals.contextTokens)} tokens in context`,
  );
  session.print();
  if (dag.leftOut.olderItems > 0)
    session.print(paint.soft(`… ${plural(dag.leftOut.olderItems, "older item")} of the context not shown`));
  const tree = treeOf(session, dag.nodes);
  for (const line of tree.lines) session.print(line);
  const outside = dag.outside ?? [];
  if (outside.length > 0) {
    session.print();
    session.print(`no longer in the context, because ${outside.length === 1 ? "it was" : "they were"} dissolved:`);
    const nodes = outside.map((summary): TreeNode => ({ kind: "summary", summary, from: 0, below: [] }));
    for (const line of treeOf(session, nodes).lines) session.print(line);
  }
  const { summaries, messages } = dag.leftOut;
  if (summaries > 0)
    note(
      `${plural(summaries, "summary", "summaries")} and what is below not shown; raise --limit, or pass --summary ID to see a part`,
    );
  if (messages > 0) note(`${plural(messages, "message")} not shown; pass --summary ID to see a part`);
  note(paint.soft(tree.words));
}

/** A table whose first column is the tree, and `words` that explain its signs and times. */
export function treeOf(
  session: Session,
  nodes: readonly TreeNode[],
): { readonly lines: readonly string[]; readonly words: string } {
  const { paint, columns, context } = session;
  const rows = nodes.flatMap((node) => rowsOf(node, "", ""));
  const spans = createSpans(
    rows.flatMap(({ range }) => range ?? []),
    context.zone,
  );
  const words = [...legendOf(rows), spans.words].join("; ");
  if (rows.length === 0) return { lines: [], words };
  const paintTree = (cell: string, at: number): string => {
    const [, branches = "", name = ""] = /^([│├└─ ]*)(.*)$/.exec(cell) ?? [];
    return paint.soft(branches) + (rows[at]?.paint(paint, name) ?? name);
  };
  const lines = table(
    [
      { title: "context", paint: paintTree },
      { title: "from", align: "right", paint: paint.soft, spare: true },
      { title: "tokens", align: "right" },
      { title: "time", paint: paint.soft, spare: true },
      { title: "text", flexible: true },
    ],
    rows.map(({ tree, from, tokens, range, text }) => [
      tree,
      from,
      formatCount(tokens),
      range === null ? "" : spans.of(...range),
      text,
    ]),
    columns,
    paint,
  );
  return { lines, words };
}

interface Row {
  readonly tree: string;
  readonly from: string;
  readonly tokens: number;
  readonly range: readonly [Timestamp, Timestamp] | null;
  readonly text: string;
  readonly level: Level;
  readonly paint: (paint: Paint, name: string) => string;
}

/** The node and what is shown below it; `lead` precedes its own line, `rest` the lines below. */
function rowsOf(node: TreeNode, lead: string, rest: string): readonly Row[] {
  const below =
    node.kind === "messages"
      ? node.messages
      : node.below.flatMap((each): readonly (TreeNode | Message)[] =>
          each.kind === "messages" ? each.messages : [each],
        );
  return [
    rowOf(node, lead),
    ...below.flatMap((each, at) => {
      const isLast = at === below.length - 1;
      const own = `${rest}${isLast ? "└─ " : "├─ "}`;
      return "role" in each ? [messageRow(each, own)] : rowsOf(each, own, `${rest}${isLast ? "   " : "│  "}`);
    }),
  ];
}

function rowOf(node: TreeNode, lead: string): Row {
  if (node.kind === "messages") {
    const { count, tokens, earliestAt, latestAt } = node;
    const range = earliestAt === null || latestAt === null ? null : ([earliestAt, latestAt] as const);
    const tree = `${lead}${plural(count, "message")}`;
    return { tree, from: "", tokens, range, text: "", level: "normal", paint: (_, name) => name };
  }
  const { summary, from } = node;
  const { id, depth, level, tokens, createdAt, earliestAt, latestAt, carriedFrom } = summary;
  const text = openingOf(summary);
  return {
    tree: `${lead}d${depth} ${id}${levelSigns[level]}`,
    from: carriedFrom === null ? (from === 0 ? "" : formatCount(from)) : "–",
    tokens,
    range: [earliestAt ?? createdAt, latestAt ?? earliestAt ?? createdAt],
    text: carriedFrom === null ? text : `(carried from ${carriedFrom}) ${text}`,
    level,
    paint: (paint, name) => paint.depth(depth, name),
  };
}

const messageRow = (message: Message, lead: string): Row => ({
  tree: `${lead}${message.role} ${messageName(message.id)}`,
  from: "",
  tokens: message.tokens,
  range: [message.at, message.at],
  text: inShort(message),
  level: "normal",
  paint: (paint, name) => paint.role(message.role, name),
});

const levelSigns: Readonly<Record<Level, string>> = { normal: "", aggressive: "'", extractive: "~", truncated: "!" };

function legendOf(rows: readonly Row[]): readonly string[] {
  return [...new Set(rows.map(({ level }) => level))].flatMap((level) =>
    level === "normal" ? [] : [`${levelSigns[level]} ${levelWords[level]}`],
  );
}

// ── For programs ─────────────────────────────────────────────────────────────────────────────────────────────────────

const toJson = ({ id }: Conversation, { nodes, leftOut, outside }: Tree) => ({
  conversation: id,
  nodes: nodes.map(nodeToJson),
  leftOut,
  outside: (outside ?? []).map(summaryToJson),
});

function nodeToJson(node: TreeNode): TypeOf<typeof nodeJson> {
  if (node.kind === "summary")
    return { kind: node.kind, ...summaryToJson(node.summary), from: node.from, below: node.below.map(nodeToJson) };
  const messages = node.messages.map(({ id, role, tokens, at, text }) => ({ id, role, tokens, at, text }));
  const { messages: _, ...rest } = node;
  return messages.length === 0 ? rest : { ...rest, messages };
}

const summaryToJson = ({ id, depth, level, tokens, earliestAt, latestAt, carriedFrom, text }: Summary) => ({
  id,
  depth,
  level,
  tokens,
  earliestAt,
  latestAt,
  carriedFrom,
  text,
});
