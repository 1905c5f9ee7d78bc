/** What the timeline shows, as a table: the same for those who cannot see the canvas, or prefer a list. */

import { formatCount, plural } from "../../../core/base/format.ts";
import { messageIdOf, messageName } from "../../../core/model/types.ts";
import type { ConversationId } from "../../../core/model/types.ts";
import type { NodeState, Timeline } from "../../contract.ts";
import { Button, IdLink, StateBadge, Table, When } from "../parts/ui.tsx";
import { depthName } from "../words.ts";
import type { Item, Window } from "./stage.ts";

/** More would not be read one by one. */
const rowsMax = 60;

interface Row {
  readonly id: string;
  readonly what: string;
  readonly at: Timeline["summaries"][number]["earliestAt"];
  readonly tokens: number;
  readonly state: NodeState;
  readonly target: Pick<Item, "row" | "seq">;
}

/** The finest that there are few enough of: messages, else the summaries of one depth or more. */
function rowsIn(timelines: readonly Timeline[], { from, to }: Window): readonly Row[] {
  const rows = timelines.flatMap((timeline): readonly Row[] => [
    ...timeline.summaries
      .filter((node) => node.to >= from && node.from <= to)
      .map(({ id, depth, earliestAt, tokens, state, from: seq }) => ({
        id,
        what: depthName(depth),
        at: earliestAt,
        tokens,
        state,
        target: { row: depth, seq },
      })),
    ...(timeline.messages ?? [])
      .filter(({ seq }) => seq >= from && seq <= to)
      .map(({ id, role, at, tokens, state, seq }) => ({
        id: messageName(id),
        what: role,
        at,
        tokens,
        state,
        target: { row: -1, seq },
      })),
  ]);
  const known = new Map(rows.map((row) => [row.id, row]));
  return [...known.values()].sort((a, b) => b.target.row - a.target.row || a.target.seq - b.target.seq);
}

interface Props {
  readonly timelines: readonly Timeline[];
  readonly window: Window;
  readonly onFocus: (target: Row["target"]) => void;
}

export function InView({ timelines, window, onFocus }: Props) {
  const rows = rowsIn(timelines, window);
  const shown = rows.slice(0, rowsMax);
  return (
    <details class="in-view">
      <summary>In view as a list: {plural(rows.length, "item")}</summary>
      {rows.length > shown.length && (
        <p class="soft">
          The first {formatCount(shown.length)} of {formatCount(rows.length)}. Zoom in to see fewer.
        </p>
      )}
      <Table
        label="Items in view"
        columns={["item", "what", "from", "tokens #", "state", "on the timeline"]}
        rows={shown.map(({ id, what, at, tokens, state, target }) => [
          id,
          <IdLink id={id} />,
          what,
          <When at={at} />,
          formatCount(tokens),
          <StateBadge state={state} />,
          <Button class="quiet small" aria-label={`show ${id} on the timeline`} onClick={() => onFocus(target)}>
            show
          </Button>,
        ])}
      />
    </details>
  );
}

/** A sentence about an item, for the pointer and for screen readers. */
export function itemWords(conversation: ConversationId, { row, first, last, count, tokens, id }: Item): string {
  const name = row < 0 ? "message" : depthName(row);
  const range =
    first === last
      ? messageName(messageIdOf(conversation, first))
      : `messages ${formatCount(first)}–${formatCount(last)}`;
  const amount = `${formatCount(tokens)} tokens`;
  if (row < 0) return count === 1 ? `${range}, ${amount}` : `${plural(count, name)}: ${range}, about ${amount}`;
  return id === null ? `${formatCount(count)} × ${name}: ${range}, ${amount}` : `${name} ${id}: ${range}, ${amount}`;
}
