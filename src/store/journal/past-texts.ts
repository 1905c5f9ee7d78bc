/** Takes the journal back step by step, and lists what summaries and pins were before each. */

import type { PastSummary } from "../../core/model/store.ts";
import type { Pin, SummaryId } from "../../core/model/types.ts";
import { toPin } from "../conversation/pins.ts";
import { asSummary, toSummary } from "../rows.ts";
import type { ReadScript, Script } from "../script.ts";
import { steps } from "./read.ts";
import { rowAt, tiesOf, type Columns, type Image } from "./record.ts";

export const pastTexts: ReadScript<"pastTexts"> = function* (id) {
  const summaries = new Map<SummaryId, PastRow>();
  const found: { summaries: PastSummary[]; pins: Pin[] } = { summaries: [], pins: [] };
  for (const { before } of yield* steps({ conversation: id })) {
    const changed = new Set<SummaryId>();
    for (const image of before?.rows ?? []) {
      const pin = pinIn(image);
      if (pin !== null) found.pins.push(pin);
      const of = image.key["summary_id"];
      if (typeof of !== "string" || image.table === "summary_messages") continue;
      const summary = asSummary(of);
      summaries.set(summary, takenBack(summaries.get(summary) ?? (yield* present(summary)), image));
      changed.add(summary);
    }
    for (const summary of changed) found.summaries.push(...pastOf(summary, summaries.get(summary)));
  }
  return found;
};

/** A summary's row, null if there is none, and the places of its sources. */
interface PastRow {
  readonly columns: Columns | null;
  readonly sources: ReadonlyMap<string, number>;
}

function* present(summary: SummaryId): Script<PastRow> {
  const links = yield* tiesOf("summary_parents", summary);
  return {
    columns: yield* rowAt("summaries", { summary_id: summary }),
    sources: new Map(links.map(({ key, columns }) => [String(key["parent_summary_id"]), Number(columns?.["ordinal"])])),
  };
}

function takenBack({ columns, sources }: PastRow, image: Image): PastRow {
  if (image.table === "summaries")
    return { columns: image.columns === null ? null : { ...columns, ...image.columns }, sources };
  const { [image.table === "summary_parents" ? "parent_summary_id" : ""]: source } = image.key;
  if (typeof source !== "string") return { columns, sources };
  const left = new Map(sources);
  if (image.columns === null) left.delete(source);
  else left.set(source, Number(image.columns["ordinal"]));
  return { columns, sources: left };
}

function pastOf(summary: SummaryId, past: PastRow | undefined): readonly PastSummary[] {
  if (past === undefined || past.columns === null || typeof past.columns["content"] !== "string") return [];
  const sources = [...past.sources].toSorted(([, a], [, b]) => a - b).map(([source]) => asSummary(source));
  return [{ summary: toSummary({ ...past.columns, summary_id: summary }), sources }];
}

function pinIn({ table, key, columns }: Image): Pin | null {
  return table === "pins" && columns !== null ? toPin({ ...key, ...columns }) : null;
}
