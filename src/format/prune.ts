/** Describes which conversations a prune removes, how much space that frees, and what depends on them. */

import type { Pruned, PrunePlan } from "../core/maintenance/prune.ts";
import { formatBytes, formatCount, listed, plural } from "../core/base/format.ts";
import { nameOf } from "./conversations.ts";
import type { Page } from "./page.ts";
import { oneLine } from "./safe-text.ts";
import { table } from "./table.ts";
import { clockTime } from "./times.ts";
import { breakLines } from "./width.ts";

const rowsShown = 50;

/** `action`: what becomes of them, such as `to delete permanently`. */
export function pruneLines(page: Page, { conversations, totals }: PrunePlan, action: string): readonly string[] {
  const { paint, columns, bounds, zone } = page;
  if (conversations.length === 0) return ["no matching conversations; nothing to do"];
  const rows = conversations
    .slice(0, rowsShown)
    .map((each) => [
      String(each.conversation),
      each.title === null || each.sessionKey === null ? nameOf(each) : `${oneLine(each.sessionKey)} · ${nameOf(each)}`,
      formatCount(each.messages),
      formatCount(each.summaries),
      formatBytes(each.bytes + each.fileBytes),
      clockTime(each.lastActivityAt, zone),
    ]);
  const lines = table(
    [
      { title: "id", align: "right", paint: paint.strong },
      { title: "conversation", flexible: true },
      { title: "messages", align: "right" },
      { title: "summaries", align: "right", spare: true },
      { title: "size", align: "right" },
      { title: "last activity", paint: paint.soft, spare: true },
    ],
    rows,
    bounds,
    paint,
  );
  const warned = Map.groupBy(
    conversations.flatMap(({ conversation, warnings }) => warnings.map((warning) => ({ conversation, warning }))),
    ({ warning }) => warning,
  );
  const more = conversations.length - rows.length;
  return [
    ...lines,
    ...(more > 0 ? [`and ${formatCount(more)} more; \`lcm prune --json\` lists all`] : []),
    "",
    ...breakLines(`${contentsOf(totals)} ${action}: ${spaceOf(totals)}`, columns),
    ...[...warned].flatMap(([warning, those]) => {
      const ids = those.map(({ conversation }) => String(conversation));
      const which = `${ids.length === 1 ? "conversation" : "conversations"} ${listed(ids)}:`;
      return breakLines(`${paint.caution(which)} ${warning}`, columns);
    }),
  ];
}

const contentsOf = ({ conversations, messages, summaries }: PrunePlan["totals"]): string =>
  `${plural(conversations, "conversation")} with ${plural(messages, "message")} and ${plural(summaries, "summary", "summaries")}`;

const spaceOf = ({ bytes, files, fileBytes }: PrunePlan["totals"]): string =>
  `about ${formatBytes(bytes)} of the database${files === 0 ? "" : `, and ${plural(files, "stored file")} of ${formatBytes(fileBytes)}`}`;

export function prunedLines({ archive, plan, bytes }: Pruned): readonly string[] {
  const files = archive === null || archive.files === 0 ? "" : ` and ${plural(archive.files, "stored file")}`;
  const shrunk = bytes === 0 ? "" : `; the database is ${formatBytes(bytes)} smaller`;
  return [
    ...(archive === null ? [] : [`archived in ${archive.path}: ${formatBytes(archive.bytes)}${files}`]),
    `deleted ${plural(plan.totals.conversations, "conversation")}${shrunk}`,
  ];
}
