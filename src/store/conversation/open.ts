/** Opens conversations: finds or creates the one a session writes to, starts new segments, and sets their properties. */

import { LcmError } from "../../core/base/errors.ts";
import type { Conversation, ConversationId } from "../../core/model/types.ts";
import type { SessionIdentity } from "../../core/model/store.ts";
import { activate, deactivate, freshNumber } from "../registry.ts";
import { agentOf, toConversation, toSummaryId } from "../rows.ts";
import { all, first, int, one, sql, statement } from "../script.ts";
import type { Script, ScriptDeps, Value, WriteScript } from "../script.ts";
import { adjustTotals } from "../totals.ts";
import { insertEntry } from "./append.ts";
import { carryPins } from "./pins.ts";
import { mustHave } from "./reads.ts";
import { copySummary } from "./summary-rows.ts";

export const open: WriteScript<"open"> = function* (deps, session) {
  const active = (yield* findActive(session)) ?? (yield* giveKey(deps, session));
  if (active === null) return yield* insertConversation(deps, session);
  return yield* learnOrigin(yield* takeSessionId(active, session), session);
};

function* takeSessionId(active: Conversation, session: SessionIdentity): Script<Conversation> {
  // Until a host has written to it, a conversation takes the id of whichever session of its key comes first.
  if (active.hostCursor !== null || active.sessionId === session.sessionId || session.sessionId === "") return active;
  yield sql`UPDATE conversations SET session_id = ${session.sessionId} WHERE conversation_id = ${active.id}`;
  return yield* mustHave(active.id);
}

/** A session that did not know its folder or its parent before may know it now. */
function* learnOrigin(known: Conversation, session: SessionIdentity): Script<Conversation> {
  const folder = known.folder ?? session.folder ?? null;
  const parent = known.parentSessionId ?? session.parentSessionId ?? null;
  if (folder === known.folder && parent === known.parentSessionId) return known;
  yield sql`UPDATE conversations SET folder = ${folder}, parent_session = ${parent} WHERE conversation_id = ${known.id}`;
  return { ...known, folder, parentSessionId: parent };
}

/** A conversation stored under a session id alone (by an import or the older program) continues under its key. */
function* giveKey(deps: ScriptDeps, { sessionId, sessionKey, agentId }: SessionIdentity): Script<Conversation | null> {
  if (typeof sessionKey !== "string") return null;
  const nameless = yield* findActive({ sessionId });
  if (nameless === null) return null;
  yield sql`UPDATE conversations SET session_key = ${sessionKey}, updated_at = ${deps.now()}, revision = revision + 1,
              agent_id = coalesce(agent_id, ${agentId ?? agentOf(sessionKey)})
            WHERE conversation_id = ${nameless.id}`;
  const named = yield* mustHave(nameless.id);
  yield* activate(named.id, sessionKey, named.agentId);
  return named;
}

export const openSession: WriteScript<"openSession"> = function* (deps, session) {
  const key = session.sessionKey ?? null;
  const known = yield* first(
    sql`SELECT * FROM conversations WHERE session_id = ${session.sessionId} AND (${key} IS NULL OR session_key = ${key})
        ORDER BY active DESC, conversation_id DESC LIMIT 1`,
    toConversation,
  );
  return known === null ? yield* openSegment(deps, session) : yield* learnOrigin(known, session);
};

export const openSegment: WriteScript<"openSegment"> = function* (
  deps,
  session,
  { hostCursor, carryDepth, begins } = {},
) {
  const known = begins === undefined ? null : yield* findBegunWith(session, begins.key);
  if (known !== null) return yield* learnOrigin(known, session);
  const previous = yield* findActive(session);
  if (previous !== null) {
    yield sql`UPDATE conversations SET active = 0, updated_at = ${deps.now()}, revision = revision + 1
              WHERE conversation_id = ${previous.id}`;
    yield* deactivate(previous.id, previous.sessionKey);
  }
  const made = yield* insertConversation(deps, {
    ...session,
    agentId: session.agentId ?? previous?.agentId ?? null,
    folder: session.folder ?? previous?.folder ?? null,
    parentSessionId: session.parentSessionId ?? previous?.parentSessionId ?? null,
  });
  if (hostCursor !== undefined)
    yield sql`UPDATE conversations SET host_cursor = ${hostCursor} WHERE conversation_id = ${made.id}`;
  if (begins !== undefined) {
    yield* insertEntry(made.id, begins, 0);
    // Earlier entries belong to another segment: the next message continues this one, whatever this one continued.
    yield sql`UPDATE conversations SET head_key = ${begins.key} WHERE conversation_id = ${made.id}`;
  }
  if (previous !== null && carryDepth !== undefined) yield* carryOver(deps, previous.id, made.id, carryDepth);
  return yield* mustHave(made.id);
};

const findBegunWith = ({ sessionId, sessionKey = null }: SessionIdentity, key: string): Script<Conversation | null> =>
  first(
    sql`SELECT c.* FROM conversations c JOIN transcript_entries e USING (conversation_id)
        WHERE c.session_id = ${sessionId} AND c.session_key IS NOT DISTINCT FROM ${sessionKey} AND e.entry_key = ${key} AND e.after_seq = 0`,
    toConversation,
  );

/**
 * Copies the deep summaries of the previous segment's context to the front of the new one; their sources stay there.
 * What is pinned there is pinned here too.
 */
function* carryOver(deps: ScriptDeps, from: ConversationId, to: ConversationId, depth: number): Script<void> {
  const shown = yield* all(
    sql`SELECT c.summary_id, s.token_count FROM context_items c JOIN summaries s USING (conversation_id, summary_id)
        WHERE c.conversation_id = ${from} AND c.item_type = 'summary' AND s.depth >= ${depth} ORDER BY c.ordinal`,
    (row) => ({ id: toSummaryId(row), tokens: int(row, "token_count") }),
  );
  for (const [at, { id }] of shown.entries()) {
    const copy = yield* copySummary(deps, id, to, "carried");
    yield sql`INSERT INTO context_items (conversation_id, ordinal, item_type, summary_id)
              VALUES (${to}, ${at + 1}, 'summary', ${copy})`;
  }
  const contextTokens = shown.reduce((sum, { tokens }) => sum + tokens, 0);
  yield* carryPins(deps.now(), from, to);
  yield* adjustTotals(deps, to, { summaries: shown.length, contextItems: shown.length, contextTokens });
}

function* findActive({ sessionId, sessionKey, agentId }: SessionIdentity): Script<Conversation | null> {
  if (typeof sessionKey === "string") {
    const agent = agentId ?? agentOf(sessionKey);
    return yield* first(
      sql`SELECT c.* FROM registry r JOIN conversations c ON c.conversation_id = r.number
          WHERE r.kind = 'session' AND r.session_key = ${sessionKey} AND (${agent} IS NULL OR r.agent_id = ${agent})
          ORDER BY r.number DESC LIMIT 1`,
      toConversation,
    );
  }
  return yield* first(
    sql`SELECT * FROM conversations WHERE session_id = ${sessionId} AND session_key IS NULL AND active = 1
        ORDER BY conversation_id DESC LIMIT 1`,
    toConversation,
  );
}

function* insertConversation(deps: ScriptDeps, session: SessionIdentity): Script<Conversation> {
  if (session.sessionId === "") throw new LcmError("invalid", "a conversation needs a session id that is not empty");
  const now = deps.now();
  const key = session.sessionKey ?? null;
  const agent = session.agentId ?? agentOf(key);
  const made = yield* one(
    sql`INSERT INTO conversations (conversation_id, session_id, session_key, agent_id, folder, parent_session, created_at,
                                   updated_at)
        VALUES (${yield* freshNumber("conversations")}, ${session.sessionId}, ${key}, ${agent}, ${session.folder ?? null},
                ${session.parentSessionId ?? null}, ${now}, ${now})
        RETURNING *`,
    toConversation,
  );
  yield* activate(made.id, key, agent);
  return made;
}

export const setTitle: WriteScript<"setTitle"> = (deps, id, title) => set(deps, id, "title", title);
export const setHidden: WriteScript<"setHidden"> = (deps, id, hidden) => set(deps, id, "hidden", Number(hidden));
/** The host continues the conversation under another session id. */
export const setSession: WriteScript<"setSession"> = (deps, id, sessionId) => set(deps, id, "session_id", sessionId);

function* set(deps: ScriptDeps, id: ConversationId, column: string, value: Value): Script<void> {
  yield* mustHave(id);
  yield statement(
    `UPDATE conversations SET ${column} = ?, updated_at = ?, revision = revision + 1 WHERE conversation_id = ?`,
    [value, deps.now(), id],
  );
}

/** Changing the prompt budget does not touch the conversation's revision or its time. */
export const setPromptBudget: WriteScript<"setPromptBudget"> = function* (_, id, tokens) {
  if (!Number.isSafeInteger(tokens) || tokens < 1) {
    throw new LcmError("invalid", `a prompt budget must be a whole number of tokens, not ${tokens}`);
  }
  const { promptBudget } = yield* mustHave(id);
  if (promptBudget === tokens) return;
  yield sql`UPDATE conversations SET prompt_budget = ${tokens} WHERE conversation_id = ${id}`;
};
