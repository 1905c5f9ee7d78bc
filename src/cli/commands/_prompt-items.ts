/** Prints what a prompt is made of: as a bar, item by item, and as JSON. */

import type { Assembly, AssemblyReport } from "../../core/assembly/assemble.ts";
import { formatCount } from "../../core/base/format.ts";
import type { Lcm } from "../../core/lcm.ts";
import { bar, legend, promptBar } from "../../format/bars.ts";
import { finerMark, finerWords, idsOf, itemName, itemsOf, itemText, lineOf, rangeOf } from "../../format/context.ts";
import type { PromptItem } from "../../format/context.ts";
import { table } from "../../format/table.ts";
import { createSpans } from "../../format/times.ts";
import { about, either, list, object, oneOf, text, whole } from "./_json.ts";
import type { Session } from "./_session.ts";
import { role, share } from "./_shapes.ts";

const within = about(text, "the summary of the context that it is shown in place of");

export const reportJson = object({
  budget: whole,
  tokens: whole,
  outcome: oneOf("whole", "evicted", "tail_cut", "shortened", "starved"),
  summaries: share,
  finer: about(share, "summaries shown by what they were made from, and the tokens that this adds"),
  older: share,
  tail: share,
  notes: share,
  standing: about(
    object({ items: whole, tokens: whole, left: whole }),
    "standing instructions whose messages are not shown, and how many more do not fit",
  ),
  evicted: share,
  leftOut: share,
  standIns: whole,
  loose: whole,
  shortened: whole,
  depths: list(object({ depth: whole, items: whole, tokens: whole })),
  origins: list(
    either(
      object({ kind: oneOf("summary"), id: text, depth: whole, tokens: whole, "within?": within }),
      object({
        kind: oneOf("message"),
        id: whole,
        role,
        part: oneOf("older", "tail"),
        tokens: whole,
        "within?": within,
      }),
      object({
        kind: oneOf("note"),
        tokens: whole,
        "standing?": about(list(whole), "the messages whose words it repeats"),
      }),
    ),
  ),
});

export function printPromptBar({ print, paint, columns }: Session, report: AssemblyReport): void {
  print();
  const segments = promptBar(report, paint);
  print(bar(segments, columns));
  for (const line of legend(segments, columns)) print(line);
  for (const line of finerWords(report)) print(paint.soft(line));
  print();
}

export async function readItems({ store }: Lcm, assembly: Assembly): Promise<readonly PromptItem[]> {
  const ids = idsOf(assembly.report);
  return itemsOf(assembly, {
    summaries: await store.summaries({ ids: ids.summaries }),
    messages: await store.messages({ ids: ids.messages }),
  });
}

export function printItems(session: Session, items: readonly PromptItem[]): void {
  const { paint, context, columns, print, note } = session;
  if (items.length === 0) return;
  const spans = createSpans(
    items.flatMap((item) => rangeOf(item) ?? []),
    context.zone,
  );
  const paintItem = (text: string, row: number): string => {
    const origin = items[row]?.origin;
    if (origin?.kind === "summary") return paint.depth(origin.depth, text);
    return origin?.kind === "message" ? paint.role(origin.role, text) : paint.caution(text);
  };
  const lines = table(
    [
      { title: "item", paint: paintItem },
      { title: "tokens", align: "right" },
      { title: "time", paint: paint.soft, spare: true },
      { title: "text", flexible: true },
    ],
    items.map((item) => {
      const range = rangeOf(item);
      return [
        itemName(item.origin) + finerMark(item.origin),
        formatCount(item.origin.tokens),
        range === null ? "" : spans.of(...range),
        itemText(item),
      ];
    }),
    columns,
    paint,
  );
  const tailAt = items.findIndex(({ origin }) => origin.kind === "message" && origin.part === "tail");
  for (const [at, line] of lines.entries()) {
    // Line 0 is the heading of the table.
    if (at > 1 && at === tailAt + 1) print(paint.soft(lineOf("fresh tail", columns)));
    print(line);
  }
  note(paint.soft(spans.words));
}
