/** `lcm history`: lists what operators changed, when, and whether it was undone. */

import { LcmError } from "../../core/base/errors.ts";
import type { Change } from "../../core/maintenance/history.ts";
import { changeLines, changeTable } from "../../format/changes.ts";
import { diffColumns } from "../../format/diff.ts";
import { conversationWords, wholeNumber } from "./_options.ts";
import { list, object } from "./_json.ts";
import { changeInListJson } from "./_shapes.ts";
import { defineCommand, withLcm, type Session } from "./_session.ts";
import { listed, plural } from "../../core/base/format.ts";

const json = object({ changes: list(changeInListJson) });

export const historyCommand = defineCommand({
  name: "history",
  json,
  summary: "list what was rewritten, dissolved, transplanted or fixed",
  description:
    "List what was rewritten, repaired, dissolved, transplanted, fixed, undone, forgotten or pruned, newest first. " +
    "Everything that one command did is one change.",
  arguments: [["[conversation]", `only changes to ${conversationWords}`]],
  options: {
    change: [
      "--change <number>",
      "show one change step by step, with its texts before and after",
      wholeNumber(1, 1e15 - 1),
    ],
    verbose: ["-v, --verbose", "show every change like that"],
    limit: ["--limit <n>", "list at most this many changes", wholeNumber(1, 1_000_000), 20],
  },
  examples: [
    ["lcm history", "list the newest changes"],
    ["lcm history --change 12", "show what change 12 did, as a diff"],
    ["lcm undo 12", "show what undoing it would do"],
  ],
  async run(session, { change, verbose = false, limit }, name?: string) {
    return await withLcm(session, "read", async (lcm) => {
      const of = name === undefined ? {} : { conversation: (await lcm.find(name)).id };
      const changes = await lcm.history({ ...of, ...(change === undefined ? { limit: limit + 1 } : { change }) });
      if (change !== undefined && changes.length === 0) throw noSuchChange(change, name);
      const isDetailed = verbose || change !== undefined;
      const shown = changes.slice(0, limit);
      if (session.json)
        return session.printJson(json, { changes: isDetailed ? shown : shown.map(({ steps: _, ...rest }) => rest) });
      if (shown.length === 0) session.note("no changes yet");
      else if (isDetailed) for (const each of shown) printDetails(session, each);
      else printList(session, shown, changes.length > shown.length);
    });
  },
});

const noSuchChange = (change: number, of?: string): LcmError =>
  new LcmError("not_found", `there is no change ${change}${of === undefined ? "" : ` to conversation ${of}`}`, {
    hint: "list the changes with `lcm history`",
  });

function printList(session: Session, changes: readonly Change[], isMore: boolean): void {
  const { paint, print, note } = session;
  const { lines, times } = changeTable(session, changes);
  for (const line of lines) print(line);
  const more = isMore ? `the newest ${plural(changes.length, "change")}; raise --limit to see more; ` : "";
  note(
    paint.soft(`${more}${times}; \`lcm history --change N\` shows one, \`lcm undo N\` shows what undoing it would do`),
  );
}

function printDetails(session: Session, change: Change): void {
  const { paint, print, typed, context } = session;
  for (const line of changeLines(session, change, diffColumns(context.stdout))) print(line);
  print(paint.soft(typed(stateWords(change))));
  print();
}

function stateWords({ state, undoneBy, wayBack }: Change): string {
  switch (state) {
    case "holds":
      return `undo it with \`${wayBack} --apply\``;
    case "partly undone":
      return `partly undone by change ${listed(undoneBy.map(String))}; undo the rest with \`${wayBack} --apply\``;
    case "undone":
      return `undone by change ${listed(undoneBy.map(String))}; redo it with \`${wayBack} --apply\``;
    case "for good":
      return wayBack === null ? "this cannot be undone" : `copy them again with \`${wayBack} --apply\``;
  }
}
