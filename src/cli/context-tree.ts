/** Reads the context of a conversation as a tree, level by level, and counts what a limit leaves out. */

import type { Lcm } from "../core/lcm.ts";
import type {
  ContextItem,
  Conversation,
  Message,
  MessageId,
  Sources,
  Summary,
  SummaryId,
} from "../core/model/types.ts";
import type { Timestamp } from "../core/base/time.ts";

export type TreeNode = SummaryNode | MessagesNode;

interface SummaryNode {
  readonly kind: "summary";
  readonly summary: Summary;
  /** The number of its sources. */
  readonly from: number;
  /** The sources that are shown. */
  readonly below: readonly TreeNode[];
}

/** Consecutive raw messages, or those of a leaf; `messages` is empty unless they are shown. */
interface MessagesNode {
  readonly kind: "messages";
  readonly count: number;
  readonly tokens: number;
  readonly earliestAt: Timestamp | null;
  readonly latestAt: Timestamp | null;
  readonly messages: readonly Message[];
}

export interface Tree {
  readonly nodes: readonly TreeNode[];
  /** What the limits leave out. */
  readonly leftOut: { readonly olderItems: number; readonly summaries: number; readonly messages: number };
  /** Dissolved summaries. Null if only a part was read. */
  readonly outside: readonly Summary[] | null;
}

export interface TreeOptions {
  /** Levels below the context to read. */
  readonly depth?: number;
  /** Whether messages are read, or only counted. */
  readonly messages?: boolean;
  /** The most summaries to read. */
  readonly limit: number;
}

interface Known {
  readonly summaries: ReadonlyMap<SummaryId, Summary>;
  readonly sources: ReadonlyMap<SummaryId, Sources>;
  readonly messages: ReadonlyMap<MessageId, Message>;
  readonly showsMessages: boolean;
}

const itemsMax = 10_000;
const messagesMax = 2_000;

export async function readTree(
  lcm: Lcm,
  conversation: Conversation,
  root: Summary | null,
  options: TreeOptions,
): Promise<Tree> {
  const { store } = lcm;
  const items = root === null ? await store.context(conversation.id, { limit: itemsMax, keep: "newest" }) : [];
  const top = root === null ? items.flatMap((item) => (item.kind === "summary" ? [item.id] : [])) : [root.id];
  const { summaries, sources, leftOut } = await readDown(lcm, top, options);
  const runs = runsOf(items);
  const showsMessages = options.messages === true;
  const raw = runs.flatMap((run) => (run.kind === "summary" ? [] : showsMessages ? run.ids : endsOf(run.ids)));
  const folded = showsMessages ? [...sources.values()].flatMap((each) => each.messages) : [];
  const wanted = [...raw, ...folded];
  const messages = await store.messages({ ids: wanted.slice(0, messagesMax) });
  const known = { summaries, sources, messages: new Map(messages.map((each) => [each.id, each])), showsMessages };
  const nodes =
    root === null
      ? runs.flatMap((run): readonly TreeNode[] =>
          run.kind === "summary" ? summaryNode(run.id, known) : [rawNode(run, known)],
        )
      : summaryNode(root.id, known);
  return {
    nodes,
    leftOut: {
      olderItems: root === null ? Math.max(0, conversation.totals.contextItems - items.length) : 0,
      summaries: leftOut,
      messages: wanted.length - messages.length,
    },
    outside: root === null ? await readOutside(lcm, conversation, top) : null,
  };
}

/** Reads level by level, so that the limit cuts off the deepest summaries. */
async function readDown({ store }: Lcm, top: readonly SummaryId[], { depth = 1_000, limit }: TreeOptions) {
  const summaries = new Map<SummaryId, Summary>();
  const sources = new Map<SummaryId, Sources>();
  let leftOut = 0;
  let level = top;
  for (let levels = 0; level.length > 0 && levels <= depth; levels++) {
    const ids = level.slice(0, limit - summaries.size);
    leftOut += level.length - ids.length;
    for (const summary of await store.summaries({ ids })) summaries.set(summary.id, summary);
    const found = await store.sources(ids);
    for (const [id, each] of found) sources.set(id, each);
    level = ids.flatMap((id) => found.get(id)?.summaries ?? []).filter((id) => !summaries.has(id));
  }
  return { summaries, sources, leftOut };
}

type Run =
  | { readonly kind: "summary"; readonly id: SummaryId }
  | { readonly kind: "messages"; readonly ids: MessageId[]; tokens: number };

function runsOf(items: readonly ContextItem[]): readonly Run[] {
  const runs: Run[] = [];
  for (const item of items) {
    const last = runs.at(-1);
    if (item.kind === "summary") runs.push({ kind: "summary", id: item.id });
    else if (last?.kind === "messages") {
      last.ids.push(item.id);
      last.tokens += item.tokens;
    } else runs.push({ kind: "messages", ids: [item.id], tokens: item.tokens });
  }
  return runs;
}

const endsOf = (ids: readonly MessageId[]): readonly MessageId[] => [
  ...new Set([...ids.slice(0, 1), ...ids.slice(-1)]),
];

/** Empty if the limit left the summary out. */
function summaryNode(id: SummaryId, known: Known, above: readonly SummaryId[] = []): readonly SummaryNode[] {
  const summary = known.summaries.get(id);
  if (summary === undefined || above.includes(id)) return [];
  const { messages = [], summaries = [] } = known.sources.get(id) ?? {};
  const below: readonly TreeNode[] =
    messages.length > 0 && known.showsMessages
      ? [rawNode({ kind: "messages", ids: [...messages], tokens: 0 }, known)]
      : summaries.flatMap((source) => summaryNode(source, known, [...above, id]));
  return [{ kind: "summary", summary, from: messages.length + summaries.length, below }];
}

function rawNode({ ids, tokens }: Run & { readonly kind: "messages" }, known: Known): MessagesNode {
  const found = ids.flatMap((id) => known.messages.get(id) ?? []);
  return {
    kind: "messages",
    count: ids.length,
    tokens: tokens || found.reduce((sum, message) => sum + message.tokens, 0),
    earliestAt: found[0]?.at ?? null,
    latestAt: found.at(-1)?.at ?? null,
    messages: known.showsMessages ? found : [],
  };
}

/** Ids are cheap to read; texts are read only if some summary is outside. */
async function readOutside(
  { store }: Lcm,
  conversation: Conversation,
  top: readonly SummaryId[],
): Promise<readonly Summary[]> {
  const all =
    conversation.totals.contextItems > itemsMax
      ? (await store.context(conversation.id, { kind: "summary" })).flatMap((item) =>
          item.kind === "summary" ? [item.id] : [],
        )
      : top;
  const inside = new Set(await store.closure(all));
  if (inside.size >= conversation.totals.summaries) return [];
  return (await store.summaries({ conversation: conversation.id })).filter(({ id }) => !inside.has(id));
}
