/** What is kept beside the conversations: stored files' records, grants, model calls and compactions. */

import { LcmError } from "../core/errors.ts";
import type {
  CallResult,
  CompactionRecord,
  ConversationId,
  FileId,
  Grant,
  GrantId,
  NewCall,
  StoredFile,
  Timestamp,
} from "../core/model.ts";
import type { CallAdmission, CallBounds, NewFile, NewGrant, OpenBreaker, Spent } from "../core/ports.ts";
import { fileWith, grant, mustHave } from "./read.ts";
import { toGrant, toOpenBreaker, toStoredFile } from "./rows.ts";
import { count, first, sql } from "./script.ts";
import type { Script } from "./script.ts";
import type { ScriptDeps } from "./totals.ts";

/** A file whose content already lies in the files folder. */
export interface SavedFile extends Omit<NewFile, "content"> {
  readonly id: FileId;
  readonly bytes: number;
  readonly lines: number | null;
  readonly contentHash: string;
  readonly storageUri: string;
}

/** Of two that store the same content at the same time, one file remains; whoever comes second is told of it. */
export function* recordFile(deps: ScriptDeps, file: SavedFile): Script<StoredFile> {
  yield* mustHave(file.conversation);
  const stored = yield* first(
    sql`INSERT INTO large_files (file_id, conversation_id, file_name, mime_type, byte_size, line_count, storage_uri,
                                 encoding, content_hash, exploration_summary, created_at, message_key)
        VALUES (${file.id}, ${file.conversation}, ${file.name}, ${file.mimeType}, ${file.bytes}, ${file.lines},
                ${file.storageUri}, ${file.encoding}, ${file.contentHash}, ${file.exploration},
                ${file.message?.at ?? deps.now()}, ${file.message?.key ?? null})
        ON CONFLICT (conversation_id, content_hash) DO NOTHING RETURNING *`,
    toStoredFile,
  );
  const held = stored ?? (yield* fileWith(file.conversation, file.contentHash));
  if (held === null) throw new LcmError("corrupt", "the database did not return the file it stored");
  return held;
}

// ── Grants ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A child is never wider than its parent: not in conversations, not in tokens, not in time. */
export function* issueGrant(deps: ScriptDeps, wanted: NewGrant): Script<Grant> {
  const now = deps.now();
  const parent = wanted.parent === null ? null : yield* grant(wanted.parent);
  if (wanted.parent !== null) {
    if (parent === null || refusalOf(parent, now) !== null) {
      throw new LcmError("denied", `grant ${wanted.parent} cannot be passed on: it is unknown, used up or over`);
    }
    const foreign = wanted.conversations.filter((id) => !parent.conversations.includes(id));
    if (foreign.length > 0) {
      throw new LcmError("denied", `grant ${wanted.parent} does not reach conversation ${foreign.join(", ")}`);
    }
  }
  const cap = parent === null ? wanted.tokenCap : Math.min(wanted.tokenCap, parent.tokenCap - parent.tokensUsed);
  const expiresAt = parent !== null && parent.expiresAt < wanted.expiresAt ? parent.expiresAt : wanted.expiresAt;
  const issued = yield* first(
    sql`INSERT INTO expansion_grants (grant_id, conversation_ids, token_cap, issued_at, expires_at, parent_grant_id)
        VALUES (${`grant_${deps.hex16()}`}, ${JSON.stringify(wanted.conversations)}, ${cap}, ${now}, ${expiresAt},
                ${wanted.parent}) RETURNING *`,
    toGrant,
  );
  if (issued === null) throw new LcmError("corrupt", "the database did not return the grant it stored");
  return issued;
}

const refusalOf = (held: Grant, now: string): "revoked" | "expired" | "exhausted" | null =>
  held.revokedAt !== null
    ? "revoked"
    : held.expiresAt <= now
      ? "expired"
      : held.tokensUsed >= held.tokenCap
        ? "exhausted"
        : null;

/** Takes tokens from a grant and from every grant above it: a child spends its parent's tokens too. */
export function* spendGrant(
  deps: ScriptDeps,
  id: GrantId,
  conversation: ConversationId,
  tokens: number,
): Script<Spent> {
  if (!Number.isSafeInteger(tokens) || tokens < 0)
    throw new LcmError("invalid", `${tokens} is no number of tokens to spend`);
  const now = deps.now();
  const chain: Grant[] = [];
  for (let next: GrantId | null = id; next !== null;) {
    const held: Grant | null = yield* grant(next);
    if (held === null) return { kind: "refused", reason: "unknown" };
    const refusal = refusalOf(held, now);
    if (refusal !== null) return { kind: "refused", reason: refusal };
    if (!held.conversations.includes(conversation)) return { kind: "refused", reason: "foreign" };
    if (held.tokensUsed + tokens > held.tokenCap) return { kind: "refused", reason: "exhausted" };
    chain.push(held);
    next = held.parent;
  }
  for (const held of chain) {
    yield sql`UPDATE expansion_grants SET tokens_used = tokens_used + ${tokens} WHERE grant_id = ${held.id}`;
  }
  return { kind: "granted", remaining: Math.min(...chain.map((held) => held.tokenCap - held.tokensUsed - tokens)) };
}

export function* revokeGrant(deps: ScriptDeps, id: GrantId): Script<void> {
  yield sql`UPDATE expansion_grants SET revoked_at = ${deps.now()} WHERE revoked_at IS NULL AND grant_id IN (
    WITH RECURSIVE held(grant_id) AS (
      VALUES (${id}) UNION SELECT g.grant_id FROM expansion_grants g JOIN held h ON g.parent_grant_id = h.grant_id
    ) SELECT grant_id FROM held)`;
}

export function* sweepGrants(deps: ScriptDeps): Script<number> {
  const now = deps.now();
  const swept = yield sql`UPDATE expansion_grants SET revoked_at = ${now}
                          WHERE revoked_at IS NULL AND expires_at <= ${now} RETURNING grant_id`;
  return swept.length;
}

// ── Calls and compactions ───────────────────────────────────────────────────────────────────────────────────────────────

/** A call that may not be made is no call, and leaves no row. */
export function* beginCall(deps: ScriptDeps, call: NewCall, bounds: CallBounds): Script<CallAdmission> {
  const breaker = bounds.breakerSince === null ? null : yield* breakerOf(call.provider, bounds.breakerSince);
  if (breaker !== null) {
    const message = `${call.provider} did not accept the credential at ${breaker.at} (${breaker.model}), and is not asked again yet`;
    return { kind: "refused", refusal: "breaker", message };
  }
  const made = yield* count(sql`SELECT count(*) FROM model_usage WHERE at >= ${bounds.windowSince}`);
  if (made >= bounds.callsMax) {
    const message = `${made} model calls since ${bounds.windowSince}, of ${bounds.callsMax} allowed`;
    return { kind: "refused", refusal: "ceiling", message };
  }
  const id = yield* count(
    sql`INSERT INTO model_usage (at, conversation_id, purpose, provider, model, input_tokens, output_tokens, result,
                                 duration_ms)
        VALUES (${deps.now()}, ${call.conversation}, ${call.purpose}, ${call.provider}, ${call.model}, 0, 0, 'open', 0)
        RETURNING usage_id`,
  );
  return { kind: "granted", id };
}

/** The newest call that tells whether the credential is accepted decides: one that was cut short, or came too often, does not. */
function* breakerOf(provider: string, since: Timestamp): Script<OpenBreaker | null> {
  return yield* first(
    sql`SELECT provider, model, at FROM (SELECT * FROM model_usage WHERE provider = ${provider} AND result IN ('ok', 'auth')
          ORDER BY usage_id DESC LIMIT 1) WHERE result = 'auth' AND at >= ${since}`,
    toOpenBreaker,
  );
}

export function* endCall(id: number, { inputTokens, outputTokens, result, durationMs }: CallResult): Script<void> {
  const ended = yield sql`UPDATE model_usage SET input_tokens = ${inputTokens}, output_tokens = ${outputTokens},
      result = ${result}, duration_ms = ${durationMs} WHERE usage_id = ${id} RETURNING usage_id`;
  if (ended.length === 0) throw new LcmError("not_found", `there is no model call ${id}`);
}

export function* recordCompaction(record: CompactionRecord): Script<void> {
  yield* mustHave(record.conversation);
  yield sql`INSERT INTO compactions (conversation_id, at, mode, outcome, message, passes, tokens_before, tokens_after,
                                     duration_ms)
            VALUES (${record.conversation}, ${record.at}, ${record.mode}, ${record.outcome}, ${record.message},
                    ${record.passes}, ${record.tokensBefore}, ${record.tokensAfter}, ${record.durationMs})`;
}
