/** The rows of the tree of summaries as lines: columns that line up, and fewer of them where there is little room. */

import type { MessageId, SummaryId, Timestamp } from "../../core/model.ts";
import { formatCount } from "../../core/text.ts";
import { createSpans, cut, padEnd, padStart, plural, widthOf } from "../../show/render.ts";
import type { Paint } from "../../show/render.ts";
import { row as drawRow } from "../draw.ts";
import type { MessageFacts, SummaryFacts } from "./dag-asks.ts";
import { kindOf } from "./dag-detail.ts";
import type { Row } from "./dag-tree.ts";

/** What was read of rows; null for what is gone. */
export interface Known {
  readonly summaries: ReadonlyMap<SummaryId, SummaryFacts | null>;
  readonly messages: ReadonlyMap<MessageId, MessageFacts | null>;
}

interface Line {
  readonly what: string;
  readonly from: string;
  readonly tokens: string;
  readonly span: readonly [Timestamp, Timestamp] | null;
  /** What operators look for. */
  readonly warning: string;
  readonly text: string;
  readonly paint: (paint: Paint, what: string) => string;
}

const plainly = (_: Paint, what: string): string => what;
const softly = (paint: Paint, what: string): string => paint.soft(what);
const bare = { from: "", tokens: "", span: null, warning: "", text: "", paint: plainly };

function lineOf(row: Row, { summaries, messages }: Known): Line {
  const lead = "  ".repeat(row.indent);
  switch (row.kind) {
    case "summary": {
      const sign = row.isOpen ? "-" : "+";
      const facts = summaries.get(row.id);
      if (facts === undefined) return { ...bare, what: `${lead}${sign} …` };
      if (facts === null) return { ...bare, what: `${lead}  ${row.id}`, text: "is not there any more", paint: softly };
      const { depth, from, level, tokens, earliestAt, latestAt, isCarried, isStale, opening } = facts;
      return {
        what: `${lead}${sign} d${depth} ${kindOf(depth)}`,
        from: isCarried ? "–" : formatCount(from),
        tokens: formatCount(tokens),
        span: [earliestAt, latestAt],
        warning: [...(level === "normal" ? [] : [level]), ...(isStale ? ["stale"] : [])].join(", "),
        text: isCarried ? `(carried) ${opening}` : opening,
        paint: (paint, what) => paint.depth(depth, what),
      };
    }
    case "message": {
      const facts = messages.get(row.id);
      if (facts === undefined) return { ...bare, what: `${lead}  …` };
      if (facts === null) return { ...bare, what: `${lead}  a message`, text: "is not there any more", paint: softly };
      const { role, tokens, at, opening } = facts;
      const paint = (by: Paint, what: string): string => by.role(role, what);
      return { ...bare, what: `${lead}  ${role}`, tokens: formatCount(tokens), span: [at, at], text: opening, paint };
    }
    case "run": {
      const [first, last] = [messages.get(row.first), messages.get(row.last)];
      const words = { tail: "the fresh tail", older: "not folded", anywhere: "anywhere among the oldest items" };
      return {
        ...bare,
        what: `  ${plural(row.count, "message")}`,
        tokens: formatCount(row.tokens),
        span: first && last ? [first.at, last.at] : null,
        text: words[row.place],
      };
    }
    case "outside": {
      const text = row.count === null ? "open to look for them" : plural(row.count, "summary", "summaries");
      return { ...bare, what: `${row.isOpen ? "-" : "+"} not in the context`, text, paint: softly };
    }
    case "note":
      return { ...bare, what: `${lead}  ${row.words}`, paint: softly };
  }
}

export interface Listing {
  readonly rows: readonly Row[];
  readonly known: Known;
  /** Which of them keys act on. */
  readonly selected: number;
  /** The times between which all of them lie. */
  readonly between: readonly Timestamp[];
  readonly zone: string;
}

/** The words that a table's columns are called by, and its lines. */
export function drawRows(listing: Listing, columns: number, paint: Paint): readonly string[] {
  const { rows, known, selected, between, zone } = listing;
  const spans = createSpans(between, zone);
  const lines = rows.map((each) => lineOf(each, known));
  const spanned = lines.map(({ span }) => (span === null ? "" : spans.of(...span)));
  const widest = (cells: readonly string[], least: number): number =>
    cells.reduce((most, cell) => Math.max(most, widthOf(cell)), least);
  const table = lines.filter(({ tokens }) => tokens !== "");
  const room = columns - 2;
  const what = Math.min(
    widest(
      table.map((line) => line.what),
      12,
    ),
    Math.max(12, Math.floor(room * 0.6)),
  );
  const widths = {
    from: widest(
      lines.map((line) => line.from),
      "from".length,
    ),
    tokens: widest(
      lines.map((line) => line.tokens),
      "tokens".length,
    ),
    time: widest(spanned, "time".length),
  };
  const left = room - what - gap.length;
  // Where the whole span has no room, when it begins may have.
  const isNarrow = !keptOf(widths, left).has("time");
  const times = isNarrow ? lines.map(({ span }) => (span === null ? "" : spans.of(span[0], span[0]))) : spanned;
  if (isNarrow) widths.time = widest(times, "time".length);
  const kept = keptOf(widths, left);
  const cellsOf = (from: string, tokens: string, time: string): string =>
    [
      ...(kept.has("from") ? [padStart(from, widths.from)] : []),
      ...(kept.has("tokens") ? [padStart(tokens, widths.tokens)] : []),
      ...(kept.has("time") ? [padEnd(time, widths.time)] : []),
    ].join(gap);
  const head = [padEnd("what", what), cellsOf("from", "tokens", "time"), "text"].filter((cell) => cell !== "");
  return [
    paint.soft(cut(`  ${head.join(gap)}`, columns)),
    ...lines.map((line, at) => {
      const isSelected = at === selected;
      const cells = line.tokens === "" ? "" : cellsOf(line.from, line.tokens, times[at] ?? "");
      const first = padEnd(cut(line.what, cells === "" ? room : what), what);
      const before = [first, ...(cells === "" ? [] : [cells])].join(gap);
      const rest = room - widthOf(before) - gap.length;
      const warning = cut(line.warning, Math.max(0, rest));
      const text = cut(line.text, Math.max(0, rest - (warning === "" ? 0 : widthOf(warning) + gap.length)));
      const said = [...(warning === "" ? [] : [warning]), text].join(gap);
      if (isSelected) return drawRow(`${before}${gap}${said}`, true, columns, paint);
      const told = [...(warning === "" ? [] : [paint.caution(warning)]), text].join(gap);
      const painted = [line.paint(paint, first), ...(cells === "" ? [] : [paint.soft(cells)]), told].join(gap);
      return drawRow(painted, false, columns, paint);
    }),
  ];
}

const gap = "  ";
const textMin = 14;

type Spare = "from" | "tokens" | "time";

/** Columns go, one after the other, until the text has room. */
function keptOf(widths: Readonly<Record<Spare, number>>, room: number): ReadonlySet<Spare> {
  const kept = new Set<Spare>(["from", "tokens", "time"]);
  const left = (): number => [...kept].reduce((sum, each) => sum - widths[each] - gap.length, room);
  for (const each of ["from", "time", "tokens"] as const) if (left() < textMin) kept.delete(each);
  return kept;
}
