/** Checks conversations, as `lcm doctor` does, and places what it finds on the timeline. */

import { isFixedByText, type Finding } from "../core/maintenance/inspect.ts";
import { mustFind } from "../core/model/find-conversation.ts";
import { isSummaryId, parseMessageId, seqOf } from "../core/model/types.ts";
import type { ConversationId, SummaryId } from "../core/model/types.ts";
import { bareName } from "../format/conversations.ts";
import { groupsOf } from "../format/findings.ts";
import type { Doing } from "../operator/port.ts";
import type { Health } from "./contract.ts";
import { placesOf } from "./layout.ts";
import { originOf } from "./reading.ts";

const placedMax = 1_000;

const countsOf = (all: readonly Finding["conversation"][]): Health["fixable"] =>
  [...Map.groupBy(all, (each) => each)].flatMap(([conversation, of]) =>
    conversation === null ? [] : [{ conversation, count: of.length }],
  );

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
  const fixed = findings.filter(({ remedy }) => remedy?.includes(" --fix ") === true);
  const repaired = findings.filter(({ code }) => code !== "unused_summary" && isFixedByText(code));
  const subjects = findings.map(({ subject }) => subject).slice(0, placedMax);
  const summaries = [...new Set(subjects.filter((each): each is SummaryId => isSummaryId(each)))];
  const carried = (await lcm.store.summaries({ ids: summaries })).filter(({ carriedFrom }) => carriedFrom !== null);
  const origins = new Map<string, Finding["conversation"]>();
  for (const copy of carried) origins.set(copy.id, (await originOf(lcm.store, copy)).conversation);
  // A copy gets a new text with what it was copied from, where something was forgotten, and else none.
  const isStuck = ({ code, subject }: Finding): boolean => origins.has(subject) && code !== "summary_outdated";
  const groups = await groupsOf(
    lcm.store,
    findings.map((each) => (isStuck(each) && isFixedByText(each.code) ? { ...each, remedy: null } : each)),
  );
  const places = [
    // What an earlier segment carried over lies at the beginning.
    ...carried.map(({ id }) => [id, { from: 1, to: 1 }] as const),
    ...(await placesOf(lcm.store, summaries)),
  ];
  const names = new Map<ConversationId, string>();
  for (const id of new Set([...findings.flatMap((each) => each.conversation ?? []), ...origins.values()]))
    if (id !== null) names.set(id, bareName(await mustFind(lcm.store, id)));
  const messages = subjects.flatMap((subject) => {
    const id = parseMessageId(subject);
    return id === null ? [] : [[subject, { from: seqOf(id), to: seqOf(id) }] as const];
  });
  return {
    revision,
    groups,
    checked,
    count: findings.filter(({ severity }) => severity !== "info").length,
    fixable: countsOf(fixed.map((each) => each.conversation)),
    repairable: countsOf(
      repaired.flatMap((each) => (isStuck(each) ? [] : [origins.get(each.subject) ?? each.conversation])),
    ),
    names: Object.fromEntries(names),
    places: Object.fromEntries([...messages, ...places]),
  };
}
