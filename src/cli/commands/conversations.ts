/** `lcm conversations`: lists conversations, most recently active first. */

import { resolve } from "node:path";
import type { Conversation } from "../../core/model/types.ts";
import type { ConversationFilter } from "../../core/model/store.ts";
import { nameOf } from "../../format/conversations.ts";
import { oneLine } from "../../format/safe-text.ts";
import { flag, list, object, whole } from "./_json.ts";
import { conversationFields } from "./_shapes.ts";
import { defineCommand, withLcm, type Session } from "./_session.ts";
import { wholeNumber } from "./_options.ts";
import { formatCount, plural } from "../../core/base/format.ts";
import { promptTokens } from "../../core/model/prompt-cost.ts";
import { table } from "../../format/table.ts";
import { clockTime } from "../../format/times.ts";

const json = object({
  conversations: list(object({ ...conversationFields, promptTokens: whole })),
  more: flag,
});

export const conversationsCommand = defineCommand({
  name: "conversations",
  json,
  summary: "list conversations, most recently active first",
  description: "List conversations, most recently active first.",
  options: {
    sessionKey: ["--session-key <key>", "list only the segments of this session key"],
    agent: ["--agent <id>", "list only conversations of this agent"],
    folder: ["--folder <path>", "list only sessions of this folder and of folders inside it"],
    all: ["--all", "include those hidden from recall because their session was deleted"],
    limit: ["--limit <n>", "list at most this many", wholeNumber(1, 1_000_000), 50],
  },
  examples: [
    ["lcm conversations", "list the 50 most recently active"],
    ["lcm conversations --session-key agent:main:main", "list all segments of one session"],
    ["lcm conversations --folder .", "list the sessions of agents in the current folder"],
    ["lcm conversations --json | jq '.conversations[].id'", "print ids for a script"],
  ],
  async run(session, options) {
    const filter: ConversationFilter = {
      ...(options.sessionKey === undefined ? {} : { sessionKey: options.sessionKey }),
      ...(options.agent === undefined ? {} : { agentId: options.agent }),
      ...(options.folder === undefined ? {} : { folder: resolve(options.folder) }),
      includeHidden: options.all === true,
    };
    return await withLcm(session, "read", async (lcm) => {
      const found = await lcm.store.conversations({ ...filter, limit: options.limit + 1 });
      const shown = found.slice(0, options.limit);
      if (session.json)
        return session.printJson(json, {
          conversations: shown.map((each) => ({ ...each, promptTokens: promptTokens(each.totals) })),
          more: found.length > shown.length,
        });
      if (shown.length === 0)
        session.note(noneSentence(options.sessionKey ?? options.agent ?? options.folder, options.all === true));
      else for (const line of toTable(session, shown)) session.print(line);
      if (shown.length > 0)
        session.note(session.paint.soft(footer(session, shown.length, found.length > shown.length)));
    });
  },
});

const noneSentence = (asked: string | undefined, isAll: boolean): string => {
  const narrowed = asked === undefined ? "no conversations yet" : "no matching conversations";
  return isAll ? narrowed : `${narrowed}; pass --all to include hidden ones`;
};

const footer = ({ context }: Session, shown: number, isCut: boolean): string =>
  `${isCut ? `the newest ${plural(shown, "conversation")}; raise --limit to see more; ` : ""}times in ${context.zone}`;

function toTable(session: Session, conversations: readonly Conversation[]): readonly string[] {
  const { paint, context } = session;
  const isPlaced = conversations.some(({ folder }) => folder !== null);
  const hasAgents = new Set(conversations.map(({ agentId }) => agentId)).size > 1;
  const rows = conversations.map((conversation) => {
    const { id, totals, lastMessageAt, agentId, folder, parentSessionId } = conversation;
    return [
      String(id),
      nameOf(conversation) + (parentSessionId === null ? "" : ` (from ${oneLine(parentSessionId)})`),
      formatCount(totals.messages),
      formatCount(totals.summaries),
      formatCount(totals.messageTokens),
      formatCount(totals.contextTokens),
      lastMessageAt === null ? "–" : clockTime(lastMessageAt, context.zone),
      ...(hasAgents ? [oneLine(agentId ?? "–")] : []),
      ...(isPlaced ? [oneLine(folder ?? "–")] : []),
    ];
  });
  const faded = (cell: string, row: number): string =>
    conversations[row]?.hidden === true || conversations[row]?.active === false ? paint.soft(cell) : cell;
  return table(
    [
      { title: "id", align: "right", paint: paint.strong },
      { title: "conversation", flexible: true, paint: faded },
      { title: "messages", align: "right" },
      { title: "summaries", align: "right", spare: true },
      { title: "tokens", align: "right", spare: true },
      { title: "in context", align: "right", spare: true },
      { title: "last message", paint: paint.soft, spare: true },
      ...(hasAgents ? [{ title: "agent", paint: paint.soft, spare: true } as const] : []),
      ...(isPlaced ? [{ title: "folder", paint: paint.soft, spare: true } as const] : []),
    ],
    rows,
    context.stdout.columns,
    paint,
  );
}
