/** Pins or unpins what a message says, for a person or the agent, as a change that can be undone. */

import { messageName } from "../../core/model/types.ts";
import { recordWork } from "../journal/record.ts";
import { mustHave } from "../conversation/reads.ts";
import { sql, type Script, type ScriptDeps, type WriteScript } from "../script.ts";
import { adjustTotals } from "../totals.ts";
import type { PinPlan } from "../../core/model/changes.ts";

export const pin: WriteScript<"pin"> = function* (deps, plan, partOf) {
  const { conversation, pin: wanted, forgets } = plan;
  if ((yield* mustHave(conversation)).forgets !== forgets)
    return { kind: "stale", reason: "something was forgotten since the message was read" };
  const { message, state } = wanted;
  const operation = state === "pinned" ? "pin" : "unpin";
  const { change } = yield* recordWork(
    deps,
    { operation, conversation, subject: messageName(message), partOf },
    [{ table: "pins", key: { conversation_id: conversation, message_id: message } }],
    write(deps, plan),
  );
  return { kind: "written", change };
};

function* write(deps: ScriptDeps, { conversation, pin: wanted }: PinPlan): Script<void> {
  const { message, words, saidAt, state, origin, reason } = wanted;
  const now = deps.now();
  yield sql`INSERT INTO pins (conversation_id, message_id, words, said_at, state, origin, reason, at)
            VALUES (${conversation}, ${message}, ${words}, ${saidAt}, ${state}, ${origin}, ${reason}, ${now})
            ON CONFLICT (conversation_id, message_id) DO UPDATE SET words = ${words}, state = ${state},
              origin = ${origin}, reason = ${reason}, at = ${now}`;
  yield* adjustTotals(deps, conversation, {});
}
