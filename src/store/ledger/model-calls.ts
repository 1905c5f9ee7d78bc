/** Counts model calls and refuses those that may not be made; records compactions. */

import { checkAmount, LcmError } from "../../core/base/errors.ts";
import { tokensMax } from "../../core/model/types.ts";
import type { OpenBreaker } from "../../core/model/store.ts";
import { timeAfter, type Timestamp } from "../../core/base/time.ts";
import { mustHave } from "../conversation/reads.ts";
import { toOpenBreaker } from "../rows.ts";
import { count, first, sql, type Script, type WriteScripts } from "../script.ts";

/** Reading the time, then waiting for another call's lock, may take as long as the longest wait for a lock. */
const aheadMs = 2 * 60_000;

export const modelCalls = {
  /** A refused call leaves no row. */
  *beginCall(deps, call, bounds) {
    const { windowSince, breakerSince } = bounds;
    const now = deps.now();
    const until = timeAfter(now, aheadMs);
    const breaker = breakerSince === null ? null : yield* breakerOf(call.provider, breakerSince, until);
    if (breaker !== null) {
      const message = `${call.provider} rejected the credential at ${breaker.at} (${breaker.model}); it is not called again yet`;
      return { kind: "refused", refusal: "breaker", message };
    }
    const made = yield* count(sql`SELECT count(*) FROM model_usage WHERE at BETWEEN ${windowSince} AND ${until}
                                    AND CASE WHEN purpose = 'embed' THEN 1 ELSE 0 END = ${Number(call.purpose === "embed")}`);
    if (made >= bounds.callsMax) {
      const calls = call.purpose === "embed" ? "calls of embedding models" : "model calls";
      const message = `${made} ${calls} since ${windowSince}, of ${bounds.callsMax} allowed`;
      return { kind: "refused", refusal: "ceiling", message };
    }
    const id = yield* count(
      sql`INSERT INTO model_usage (at, conversation_id, purpose, provider, model, input_tokens, output_tokens, result,
                                   duration_ms)
          VALUES (${now}, ${call.conversation}, ${call.purpose}, ${call.provider}, ${call.model}, 0, 0, 'open', 0)
          RETURNING usage_id`,
    );
    return { kind: "granted", id };
  },

  *endCall(_, id, { inputTokens, outputTokens, result, durationMs }) {
    for (const [name, value] of Object.entries({ inputTokens, outputTokens })) checkAmount(name, value, tokensMax);
    checkAmount("durationMs", durationMs);
    const ended = yield sql`UPDATE model_usage SET input_tokens = ${inputTokens}, output_tokens = ${outputTokens},
        result = ${result}, duration_ms = ${durationMs} WHERE usage_id = ${id} RETURNING usage_id`;
    if (ended.length === 0) throw new LcmError("not_found", `there is no model call ${id}`);
  },

  *recordCompaction(_, record) {
    const { passes, tokensBefore, tokensAfter, durationMs } = record;
    for (const [name, value] of Object.entries({ passes, tokensBefore, tokensAfter, durationMs }))
      checkAmount(name, value);
    yield* mustHave(record.conversation);
    yield sql`INSERT INTO compactions (conversation_id, at, mode, outcome, message, passes, tokens_before, tokens_after,
                                       duration_ms, asked)
              VALUES (${record.conversation}, ${record.at}, ${record.mode}, ${record.outcome}, ${record.message},
                      ${record.passes}, ${record.tokensBefore}, ${record.tokensAfter}, ${record.durationMs},
                      ${record.asked ? 1 : 0})`;
  },
} satisfies WriteScripts;

/** Decided by the newest call that shows whether the provider accepts the credential; a time-out or rate limit does not. */
const breakerOf = (provider: string, since: Timestamp, until: Timestamp): Script<OpenBreaker | null> =>
  first(
    sql`SELECT provider, model, at FROM (SELECT * FROM model_usage WHERE provider = ${provider} AND result IN ('ok', 'auth')
          ORDER BY usage_id DESC LIMIT 1) WHERE result = 'auth' AND at BETWEEN ${since} AND ${until}`,
    toOpenBreaker,
  );
