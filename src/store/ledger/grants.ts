/** Issues, spends and revokes grants: what a delegate may read, how much of it, and until when. */

import { checkAmount, LcmError } from "../../core/base/errors.ts";
import { timeAfter, type Timestamp } from "../../core/base/time.ts";
import type { Grant, GrantId } from "../../core/model/types.ts";
import { reads } from "../conversation/reads.ts";
import { toGrant } from "../rows.ts";
import { one, sql, type WriteScripts } from "../script.ts";

export const grants = {
  /** A child grant is never wider than its parent, in conversations, tokens or time. */
  *issueGrant(deps, wanted) {
    checkAmount("tokenCap", wanted.tokenCap);
    const now = deps.now();
    const parent = wanted.parent === null ? null : yield* reads.grant(wanted.parent);
    if (wanted.parent !== null) {
      if (parent === null || refusalOf(parent, now) !== null) {
        throw new LcmError(
          "denied",
          `grant ${wanted.parent} cannot be passed on: it is unknown, used up, revoked or expired`,
        );
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

  /** Takes tokens from a grant and from every grant above it. */
  *spendGrant(deps, id, conversation, tokens) {
    if (!Number.isSafeInteger(tokens) || tokens < 0)
      throw new LcmError("invalid", `the tokens to spend must be a whole number, not ${tokens}`);
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
                            WHERE revoked_at IS NULL AND (expires_at <= ${now} OR issued_at > ${latestIssue(now)})
                            RETURNING grant_id`;
    return swept.length;
  },
} satisfies WriteScripts;

/** A grant issued later than this was dated by a clock that was ahead, so its end is wrong as well. */
const latestIssue = (now: Timestamp): Timestamp => timeAfter(now, 60_000);

const refusalOf = (held: Grant, now: Timestamp): "revoked" | "expired" | "exhausted" | null =>
  held.revokedAt !== null
    ? "revoked"
    : held.expiresAt <= now || held.issuedAt > latestIssue(now)
      ? "expired"
      : held.tokensUsed >= held.tokenCap
        ? "exhausted"
        : null;
