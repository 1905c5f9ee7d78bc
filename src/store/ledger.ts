/** What is kept beside the conversations: stored files' records, grants, model usage, and the journal of changes. */

import { LcmError } from "../core/errors.ts";
import type { ConversationId, FileId, Grant, GrantId, Json, StoredFile, Usage } from "../core/model.ts";
import type { NewFile, NewGrant, Spent } from "../core/ports.ts";
import { grant, mustHave } from "./read.ts";
import { toGrant, toStoredFile } from "./rows.ts";
import { count, first, sql } from "./script.ts";
import type { Script } from "./script.ts";
import type { ScriptDeps } from "./totals.ts";

/** A file whose content already lies in the files folder. */
export interface SavedFile extends Omit<NewFile, "content"> {
  readonly id: FileId;
  readonly bytes: number;
  readonly lines: number;
  readonly storageUri: string;
}

export function* recordFile(deps: ScriptDeps, file: SavedFile): Script<StoredFile> {
  yield* mustHave(file.conversation);
  const stored = yield* first(
    sql`INSERT INTO large_files (file_id, conversation_id, file_name, mime_type, byte_size, line_count, storage_uri,
                                 exploration_summary, created_at)
        VALUES (${file.id}, ${file.conversation}, ${file.name}, ${file.mimeType}, ${file.bytes}, ${file.lines},
                ${file.storageUri}, ${file.exploration}, ${deps.now()}) RETURNING *`,
    toStoredFile,
  );
  if (stored === null) throw new LcmError("corrupt", "the database did not return the file it stored");
  return stored;
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
  const swept = yield* count(
    sql`SELECT count(*) FROM expansion_grants WHERE revoked_at IS NULL AND expires_at <= ${now}`,
  );
  yield sql`UPDATE expansion_grants SET revoked_at = ${now} WHERE revoked_at IS NULL AND expires_at <= ${now}`;
  return swept;
}

// ── Usage and journal ────────────────────────────────────────────────────────────────────────────────────────────────

export function* recordUsage(usage: Usage): Script<void> {
  yield sql`INSERT INTO model_usage (at, conversation_id, purpose, provider, model, input_tokens, output_tokens, result,
                                     duration_ms)
            VALUES (${usage.at}, ${usage.conversation}, ${usage.purpose}, ${usage.provider}, ${usage.model},
                    ${usage.inputTokens}, ${usage.outputTokens}, ${usage.result}, ${usage.durationMs})`;
}

export interface Change {
  readonly operation: "rewrite" | "dissolve" | "transplant" | "forget";
  readonly conversation: ConversationId | null;
  readonly subject: string;
  readonly before: Json;
  readonly after: Json;
}

/** Every applied change of an operator is journalled in the transaction that makes it. */
export function* writeJournal(deps: ScriptDeps, change: Change): Script<void> {
  yield sql`INSERT INTO journal (at, operation, conversation_id, subject, before_json, after_json)
            VALUES (${deps.now()}, ${change.operation}, ${change.conversation}, ${change.subject},
                    ${JSON.stringify(change.before)}, ${JSON.stringify(change.after)})`;
}
