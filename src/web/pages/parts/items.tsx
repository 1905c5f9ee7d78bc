/** Names the items of a prompt or a change, briefly: messages in a row by the first and the last. */

import { useState } from "preact/hooks";
import { plural } from "../../../core/base/format.ts";
import type { MessageId, SummaryId } from "../../../core/model/types.ts";
import { Button, IdLink } from "./ui.tsx";

const namedMax = 4;

/** Messages in a row are named by the first and the last. */
function runsOf(
  items: readonly (MessageId | SummaryId)[],
): readonly (readonly [MessageId | SummaryId, MessageId | SummaryId])[] {
  const runs: (readonly [MessageId | SummaryId, MessageId | SummaryId])[] = [];
  const messages = items.filter((id) => typeof id === "number").toSorted((a, b) => a - b);
  for (const id of [...messages, ...items.filter((id) => typeof id === "string")]) {
    const last = runs.at(-1);
    if (last !== undefined && typeof id === "number" && last[1] === id - 1) runs[runs.length - 1] = [last[0], id];
    else runs.push([id, id]);
  }
  return runs;
}

export function ItemsWords({ items }: { readonly items: readonly (MessageId | SummaryId)[] }) {
  const [isWhole, setWhole] = useState(false);
  const runs = runsOf(items);
  const shown = isWhole ? runs : runs.slice(0, namedMax);
  const left = runs.length - shown.length;
  return (
    <>
      <strong>{plural(items.length, "item")}</strong>{" "}
      {shown.map(([from, to], at) => (
        <>
          {at > 0 && ", "}
          <IdLink id={from} />
          {from !== to && (
            <>
              {" – "}
              <IdLink id={to} />
            </>
          )}
        </>
      ))}
      {left > 0 && (
        <Button class="quiet small" onClick={() => setWhole(true)}>
          and {left} more
        </Button>
      )}
    </>
  );
}
