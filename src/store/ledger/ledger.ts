/** What is kept beside the conversations: stored files' records, grants, model calls and compactions. */

import { LcmError } from "../../core/base/errors.ts";
import { idDigits } from "../../core/model/types.ts";
import type { ConversationId, FileId, Grant, GrantId, StoredFile } from "../../core/model/types.ts";
import type { NewFile, OpenBreaker } from "../../core/model/store.ts";
import { fileWith, mustHave, reads, storedAmong } from "../conversation/reads.ts";
import { toGrant, toOpenBreaker, toStoredFile } from "../rows.ts";
import { count, first, one, sql } from "../script.ts";
import type { Script, ScriptDeps, WriteScripts } from "../script.ts";
import type { Timestamp } from "../../core/base/time.ts";

/** A file whose content already lies in the files folder. */
type SavedFile = Omit<NewFile, "content"> &
  Pick<StoredFile, "id" | "bytes" | "lines" | "storageUri"> & { readonly contentHash: string };

/** An id that no file of the conversation has. */
export function* freshFileId(deps: ScriptDeps, conversation: ConversationId): Script<FileId> {
  for (;;) {
    const candidate: FileId = `file_${idDigits(conversation, deps.hex16())}`;
    if ((yield* storedAmong([candidate])).length === 0) return candidate;
  }
}

/** Of two that store the same content at the same time, one file remains; whoever comes second is told of it. */
export function* recordFile(deps: ScriptDeps, file: SavedFile): Script<StoredFile> {
  yield* mustHave(file.conversation);
  yield sql`INSERT INTO large_files (file_id, conversation_id, file_name, mime_type, byte_size, line_count, storage_uri,
                                     encoding, content_hash, exploration_summary, created_at, message_key)
            VALUES (${file.id}, ${file.conversation}, ${file.name}, ${file.mimeType}, ${file.bytes}, ${file.lines},
                    ${file.storageUri}, ${file.encoding}, ${file.contentHash}, ${file.exploration},
                    ${file.message?.at ?? deps.now()}, ${file.message?.key ?? null})
            ON CONFLICT (conversation_id, content_hash) DO NOTHING`;
  return yield* one(fileWith(file.conversation, file.contentHash), toStoredFile);
}

export const ledger = {
  /** A child is never wider than its parent: not in conversations, not in tokens, not in time. */
  *issueGrant(deps, wanted) {
    const now = deps.now();
    const parent = wanted.parent === null ? null : yield* reads.grant(wanted.parent);
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
    return yield* one(
      sql`INSERT INTO expansion_grants (grant_id, conversation_ids, token_cap, issued_at, expires_at, parent_grant_id)
          VALUES (${`grant_${deps.hex16()}`}, ${JSON.stringify(wanted.conversations)}, ${cap}, ${now}, ${expiresAt},
                  ${wanted.parent}) RETURNING *`,
      toGrant,
    );
  },

  /** Takes tokens from a grant and from every grant above it: a child spends its parent's tokens too. */
  *spendGrant(deps, id, conversation, tokens) {
    if (!Number.isSafeInteger(tokens) || tokens < 0)
      throw new LcmError("invalid", `${tokens} is no number of tokens to spend`);
    const now = deps.now();
    const chain: Grant[] = [];
    for (let next: GrantId | null = id; next !== null;) {
      const held: Grant | null = yield* reads.grant(next);
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
  },

  *revokeGrant(deps, id) {
    yield sql`UPDATE expansion_grants SET revoked_at = ${deps.now()} WHERE revoked_at IS NULL AND grant_id IN (
      WITH RECURSIVE held(grant_id) AS (
        VALUES (${id}) UNION SELECT g.grant_id FROM expansion_grants g JOIN held h ON g.parent_grant_id = h.grant_id
      ) SELECT grant_id FROM held)`;
  },

  *sweepGrants(deps) {
    const now = deps.now();
    const swept = yield sql`UPDATE expansion_grants SET revoked_at = ${now}
                            WHERE revoked_at IS NULL AND expires_at <= ${now} RETURNING grant_id`;
    return swept.length;
  },

  /** A call that may not be made is no call, and leaves no row. */
  *beginCall(deps, call, bounds) {
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
  },

  *endCall(_, id, { inputTokens, outputTokens, result, durationMs }) {
    const ended = yield sql`UPDATE model_usage SET input_tokens = ${inputTokens}, output_tokens = ${outputTokens},
        result = ${result}, duration_ms = ${durationMs} WHERE usage_id = ${id} RETURNING usage_id`;
    if (ended.length === 0) throw new LcmError("not_found", `there is no model call ${id}`);
  },

  *recordCompaction(_, record) {
    yield* mustHave(record.conversation);
    yield sql`INSERT INTO compactions (conversation_id, at, mode, outcome, message, passes, tokens_before, tokens_after,
                                       duration_ms)
              VALUES (${record.conversation}, ${record.at}, ${record.mode}, ${record.outcome}, ${record.message},
                      ${record.passes}, ${record.tokensBefore}, ${record.tokensAfter}, ${record.durationMs})`;
  },
} satisfies WriteScripts;

const refusalOf = (held: Grant, now: string): "revoked" | "expired" | "exhausted" | null =>
  held.revokedAt !== null
    ? "revoked"
    : held.expiresAt <= now
      ? "expired"
      : held.tokensUsed >= held.tokenCap
        ? "exhausted"
        : null;

/** The newest call that tells whether the credential is accepted decides: one that was cut short, or came too often, does not. */
const breakerOf = (provider: string, since: Timestamp): Script<OpenBreaker | null> =>
  first(
    sql`SELECT provider, model, at FROM (SELECT * FROM model_usage WHERE provider = ${provider} AND result IN ('ok', 'auth')
          ORDER BY usage_id DESC LIMIT 1) WHERE result = 'auth' AND at >= ${since}`,
    toOpenBreaker,
  );
