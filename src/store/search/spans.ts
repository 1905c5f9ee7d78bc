/** Rows of conversations that are still to be read, taken in portions: from the newest down, or from the oldest up. */

/** Some rows of a conversation: those numbered after `after`, up to `newest`. */
export interface Span {
  readonly conversation: number;
  readonly after: number;
  readonly newest: number;
  /** None of them is later. */
  readonly latest: string;
}

/** Takes spans of about this many rows off a list, whose last one is taken first, from its newest rows down. */
export function takeSpans(list: Span[], rowsMax: number): readonly Span[] {
  const taken: Span[] = [];
  for (let left = rowsMax; left > 0;) {
    const span = list.pop();
    if (span === undefined) break;
    const from = Math.max(span.after, span.newest - left);
    taken.push({ ...span, after: from });
    if (from > span.after) list.push({ ...span, newest: from });
    left -= span.newest - from;
  }
  return taken;
}

/** The same, from the oldest rows of a span up. */
export function takeOldest(list: Span[], rowsMax: number): readonly Span[] {
  const taken: Span[] = [];
  for (let left = rowsMax; left > 0;) {
    const span = list.pop();
    if (span === undefined) break;
    const newest = Math.min(span.newest, span.after + left);
    taken.push({ ...span, newest });
    if (newest < span.newest) list.push({ ...span, after: newest });
    left -= newest - span.after;
  }
  return taken;
}

export const rowsIn = (spans: readonly Span[]): number =>
  spans.reduce((sum, { after, newest }) => sum + newest - after, 0);
