/** `lcm history`: what operators have changed, when, and whether it still holds. */

import { LcmError } from "../../core/base/errors.ts";
import type { Change } from "../../core/maintenance/history.ts";
import { changeLines, changeTable } from "../../format/changes.ts";
import { diffColumns } from "../../format/diff.ts";
import { conversationWords, wholeNumber } from "./_options.ts";
import { defineCommand, withLcm } from "./_session.ts";
import type { Session } from "./_session.ts";
import { listed, plural } from "../../core/base/format.ts";

export const historyCommand = defineCommand({
  name: "history",
  summary: "what was rewritten, dissolved, transplanted or fixed, and when",
  description:
    "What was rewritten, repaired, dissolved, transplanted, fixed, taken back, forgotten or pruned: one line for each " +
    "change, newest first. All that one command did is one change.",
  arguments: [["[conversation]", `only what was done to ${conversationWords}`]],
  options: {
    change: ["--change <number>", "one change step by step, and its texts before and after", wholeNumber(1, 1e15 - 1)],
    verbose: ["-v, --verbose", "every change like that"],
    limit: ["--limit <n>", "how many changes to list", wholeNumber(1, 1_000_000), 20],
  },
  examples: [
    ["lcm history", "the newest changes"],
    ["lcm history --change 12", "what change 12 did, as a diff"],
    ["lcm undo 12", "what taking it back would do"],
  ],
  async run(session, { change, verbose = false, limit }, name?: string) {
    return await withLcm(session, "read", async (lcm) => {
      const of = name === undefined ? {} : { conversation: (await lcm.find(name)).id };
      const changes = await lcm.history({ ...of, ...(change === undefined ? { limit: limit + 1 } : { change }) });
      if (change !== undefined && changes.length === 0) throw noSuchChange(change, name);
      const isDetailed = verbose || change !== undefined;
      const shown = changes.slice(0, limit);
      if (session.json)
        return session.printJson({ changes: isDetailed ? shown : shown.map(({ steps: _, ...rest }) => rest) });
      if (shown.length === 0) session.note("nothing was changed by an operator yet");
      else if (isDetailed) for (const each of shown) printDetails(session, each);
      else printList(session, shown, changes.length > shown.length);
    });
  },
});

const noSuchChange = (change: number, of?: string): LcmError =>
  new LcmError("not_found", `there is no change ${change}${of === undefined ? "" : ` to conversation ${of}`}`, {
    hint: "`lcm history` lists the changes",
  });

function printList(session: Session, changes: readonly Change[], isMore: boolean): void {
  const { paint, print, note } = session;
  const { lines, times } = changeTable(session, changes);
  for (const line of lines) print(line);
  const more = isMore ? `the newest ${plural(changes.length, "change")}; --limit shows more; ` : "";
  note(
    paint.soft(
      `${more}${times}; \`lcm history --change N\` shows one, \`lcm undo N\` shows what taking it back would do`,
    ),
  );
}

function printDetails(session: Session, change: Change): void {
  const { paint, print, typed, context } = session;
  for (const line of changeLines(session, change, diffColumns(context.stdout))) print(line);
  print(paint.soft(typed(standing(change))));
  print();
}

function standing({ state, undoneBy, wayBack }: Change): string {
  switch (state) {
    case "holds":
      return `\`${wayBack} --apply\` takes it back`;
    case "partly undone":
      return `undone in part, by change ${listed(undoneBy.map(String))}; \`${wayBack} --apply\` takes back the rest`;
    case "undone":
      return `undone by change ${listed(undoneBy.map(String))}; \`${wayBack} --apply\` does it again`;
    case "for good":
      return wayBack === null ? "this cannot be undone" : `\`${wayBack} --apply\` copies them again`;
  }
}
