/** Marks on the timeline: where a conversation begins and ends, folds, changes by operators, and what was pinned. */

import { plural } from "../core/base/format.ts";
import { timestampToMs, type Timestamp } from "../core/base/time.ts";
import type { Lcm } from "../core/lcm.ts";
import type { Change } from "../core/maintenance/history.ts";
import { conversationIn, seqOf } from "../core/model/types.ts";
import type { Conversation } from "../core/model/types.ts";
import type { Mark, MarkKind, Timeline } from "./contract.ts";
import type { Layout } from "./layout.ts";

export interface Marking extends Pick<Timeline, "window" | "extent" | "before" | "after"> {
  readonly cells: number;
  readonly layout: Layout;
}

const changesMax = 100;
const pinsMax = 200;
/** How finely times are placed. */
const steps = 256;

export async function marksIn(lcm: Lcm, conversation: Conversation, marking: Marking): Promise<readonly Mark[]> {
  const { window, cells, layout, extent } = marking;
  if (extent === null) return [];
  const { store } = lcm;
  const { id } = conversation;
  const pace = await store.pace(id, steps);
  const times = pace.map((mark) => [seqOf(mark.id), timestampToMs(mark.at)] as const);
  const seqAt = (at: Timestamp): number => placeAt(times, timestampToMs(at));
  const changes = await lcm.history({ conversation: id, limit: changesMax });
  const pins = await store.pins(id, { inForce: true, limit: pinsMax });
  const all: readonly Mark[] = [
    ...resets(conversation, marking, extent),
    ...layout.summaries.map(({ outline }): Mark => {
      const { id: of, depth, createdAt: at } = outline;
      return { kind: "fold", seq: seqAt(at), at, count: 1, words: `folded into ${of} (d${depth})`, of };
    }),
    ...changes.map(({ change, at, operation, what }): Mark => {
      const words = `change ${change}: ${what.slice(0, wordsMax)}`;
      return { kind: kindOf(operation), seq: seqAt(at), at, count: 1, words, of: { change } };
    }),
    ...pins.flatMap(({ message, saidAt: at, words }): readonly Mark[] =>
      conversationIn(message) === id
        ? [
            {
              kind: "pin",
              seq: seqOf(message),
              at,
              count: 1,
              words: `pinned: ${words.slice(0, wordsMax)}`,
              of: message,
            },
          ]
        : [],
    ),
  ];
  return clustered(
    all.filter(({ seq }) => seq >= window.from && seq <= window.to),
    { window, cells },
  );
}

const wordsMax = 200;

function resets(
  { createdAt, lastMessageAt }: Conversation,
  { before, after }: Marking,
  extent: { readonly from: number; readonly to: number },
): readonly Mark[] {
  const mark = { kind: "reset", count: 1, of: null } as const;
  return [
    ...(before === null
      ? []
      : [{ ...mark, seq: extent.from, at: createdAt, words: `continues conversation ${before}` }]),
    ...(after === null
      ? []
      : [
          {
            ...mark,
            seq: extent.to,
            at: lastMessageAt ?? createdAt,
            words: `reset: conversation ${after} continues it`,
          },
        ]),
  ];
}

function kindOf(operation: Change["operation"]): MarkKind {
  switch (operation) {
    case "rewrite":
    case "repair":
      return "rewrite";
    case "forget":
      return "forgotten";
    case "pin":
    case "unpin":
      return "pin";
    case "dissolve":
    case "transplant":
    case "fix":
    case "undo":
    case "prune":
      return "change";
  }
}

/** The number of the message that was the newest at a time. */
function placeAt(times: readonly (readonly [seq: number, ms: number])[], ms: number): number {
  const at = times.findLastIndex(([, time]) => time <= ms);
  const [before, after] = [times[Math.max(0, at)], times[at + 1]];
  if (before === undefined) return 0;
  if (at < 0 || after === undefined || after[1] <= before[1]) return before[0];
  return Math.round(before[0] + ((after[0] - before[0]) * (ms - before[1])) / (after[1] - before[1]));
}

/** Those of one kind in one cell become one mark. */
function clustered(marks: readonly Mark[], { window, cells }: Pick<Marking, "window" | "cells">): readonly Mark[] {
  const cell = Math.max(1, (window.to - window.from + 1) / cells);
  const groups = Map.groupBy(marks, ({ kind, seq }) => `${kind} ${Math.floor((seq - window.from) / cell)}`);
  return [...groups.values()].flatMap((group): readonly Mark[] => {
    const [first] = group;
    if (first === undefined || group.length === 1) return group;
    const more = plural(group.length - 1, "more", "more");
    return [{ ...first, count: group.length, words: `${first.words}, and ${more}` }];
  });
}
