/** Describes a map in clauses: what it reads and costs, what it leaves out, and which messages were not read. */

import { formatCount, listed, plural } from "../../base/format.ts";
import { messageRuns } from "../describe.ts";
import type { Skip } from "./items.ts";
import type { MapPlan } from "./plan.ts";
import type { MapSpent, UnreadReason } from "./run.ts";
import type { MapReport } from "./map.ts";

export function coverWords({ messages, kept }: Pick<MapPlan, "messages" | "kept">): string {
  if (messages === 0) return "no messages to read";
  const already = kept === 0 ? "" : `, of which ${formatCount(kept)} were read by an earlier run`;
  return `${plural(messages, "message")} to read${already}`;
}

export const costWords = ({ calls, inputTokens, outputTokens }: MapSpent): string =>
  calls === 0
    ? "no calls"
    : `${plural(calls, "call")}, ${formatCount(inputTokens)} tokens in and ${formatCount(outputTokens)} out`;

const skips: Readonly<Record<Skip, string>> = {
  empty: "without text",
  own_tool: "of lossless-claw's own tools",
  aside: "outside the conversation (notes and abandoned branches)",
  copy: "copies of messages that are read",
};

/** What a plan does not read, and why. */
export function leftOutWords({ skipped, beyond, cut, files }: MapPlan): readonly string[] {
  const counted = Object.entries(skipped).filter(([, count]) => count > 0);
  const reasons = counted.map(([skip, count]) => `${formatCount(count)} ${skips[skip as Skip]}`);
  return [
    ...(reasons.length === 0 ? [] : [`skipped: ${listed(reasons)}`]),
    ...(beyond.messages === 0
      ? []
      : [
          `beyond the budget: ${plural(beyond.messages, "message")}, which would take ${plural(beyond.calls, "more call")} ` +
            `and ${formatCount(beyond.tokens)} tokens`,
        ]),
    ...(cut === 0 ? [] : [`the middle of ${plural(cut, "very long message")} is not read`]),
    ...(files === 0 ? [] : [`the contents of ${plural(files, "large file")} are not read`]),
  ];
}

const reasonWords: Readonly<Record<UnreadReason, string>> = {
  budget: "beyond the budget",
  stopped: "not reached",
  malformed: "never answered properly",
  refused: "refused by the provider",
};

const runsShown = 5;

/** `13 messages not read (10 beyond the budget, 3 not reached): msg_1-4…msg_1-16`; null if all were read. */
export function unreadWords(unread: MapReport["unread"]): string | null {
  if (unread.length === 0) return null;
  const reasons = [...Map.groupBy(unread, ({ reason }) => reason)].map(
    ([reason, some]) => `${formatCount(some.length)} ${reasonWords[reason]}`,
  );
  const runs = messageRuns(unread.map(({ id }) => id).toSorted((one, other) => one - other));
  const more = runs.length > runsShown ? ` and ${plural(runs.length - runsShown, "more run")}` : "";
  return `${plural(unread.length, "message")} not read (${reasons.join(", ")}): ${runs.slice(0, runsShown).join(", ")}${more}`;
}
