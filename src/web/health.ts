/** Checks conversations, as `lcm doctor` does, and places what it finds on the timeline. */

import { isFixedByText } from "../core/maintenance/inspect.ts";
import { isSummaryId, parseMessageId, seqOf } from "../core/model/types.ts";
import type { ConversationId, SummaryId } from "../core/model/types.ts";
import { groupsOf } from "../format/findings.ts";
import type { Doing } from "../operator/port.ts";
import type { Health } from "./contract.ts";
import { placesOf } from "./layout.ts";

const placedMax = 1_000;

export async function checkHealth(
  conversation: ConversationId | null,
  { port, signal, onProgress }: Doing,
): Promise<Health> {
  const lcm = await port.reading();
  const revision = conversation === null ? null : ((await lcm.store.conversation(conversation))?.revision ?? 0);
  const { findings, checked } = await lcm.examine(conversation, ({ done, of }) => {
    // Between two conversations nothing is under way, so it can end here.
    signal.throwIfAborted();
    onProgress({ done, of, words: "checking", stops: true });
  });
  const groups = await groupsOf(lcm.store, findings);
  const fixed = findings.filter(({ remedy }) => remedy?.includes(" --fix ") === true);
  const repaired = findings.filter(({ code }) => code !== "unused_summary" && isFixedByText(code));
  const conversationsOf = (some: typeof findings): readonly ConversationId[] => [
    ...new Set(some.flatMap((each) => each.conversation ?? [])),
  ];
  const subjects = findings.map(({ subject }) => subject).slice(0, placedMax);
  const summaries = [...new Set(subjects.filter((each): each is SummaryId => isSummaryId(each)))];
  const places = await placesOf(lcm.store, summaries);
  const messages = subjects.flatMap((subject) => {
    const id = parseMessageId(subject);
    return id === null ? [] : [[subject, { from: seqOf(id), to: seqOf(id) }] as const];
  });
  return {
    revision,
    groups,
    checked,
    count: findings.filter(({ severity }) => severity !== "info").length,
    fixable: conversationsOf(fixed),
    repairable: conversationsOf(repaired),
    places: Object.fromEntries([...messages, ...places]),
  };
}
