/** Spans of rows of one conversation, and how a search takes them off a list piece by piece. */

/** Some rows of a conversation: those numbered after `after`, up to `newest`. */
export interface Span {
  readonly conversation: number;
  readonly after: number;
  readonly newest: number;
  /** None of them is later. */
  readonly latest: string;
}

/**
 * Takes spans of about this many rows off a list, whose last one is taken first: from its newest rows down, or from its
 * oldest up.
 */
export function takeSpans(list: Span[], rowsMax: number, from: "newest" | "oldest" = "newest"): readonly Span[] {
  const taken: Span[] = [];
  for (let left = rowsMax; left > 0;) {
    const span = list.pop();
    if (span === undefined) break;
    const rows = Math.min(left, span.newest - span.after);
    const cut = from === "newest" ? span.newest - rows : span.after + rows;
    const [older, newer] = [
      { ...span, newest: cut },
      { ...span, after: cut },
    ];
    taken.push(from === "newest" ? newer : older);
    const rest = from === "newest" ? older : newer;
    if (rest.newest > rest.after) list.push(rest);
    left -= rows;
  }
  return taken;
}

export const rowsIn = (spans: readonly Span[]): number =>
  spans.reduce((sum, { after, newest }) => sum + newest - after, 0);
