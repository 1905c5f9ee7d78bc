/** Keys for a selected summary, shared by screens: rewrite, dissolve, show its previous context. */

import type { SummaryId } from "../../core/model/types.ts";
import { textLines } from "../../format/passages.ts";
import { goTo, type Answers, type Binding, type Frame, type Destination, type Step } from "../contract.ts";
import { textPage } from "../widgets/draw.ts";
import type { OfConversation } from "../../operator/port.ts";
import type { Previous } from "./asks.ts";
import { wrap } from "../../format/width.ts";

/** `disabled`: why no summary is selected. */
export function summaryKeys<S extends OfConversation>(
  selected: (state: S) => SummaryId | null,
  disabled: (state: S) => string | null,
) {
  const key = (
    words: Pick<Binding<S>, "keys" | "help" | "short" | "changes" | "asksModel">,
    act: (state: S, summary: SummaryId) => Omit<Step<S>, "state">,
  ): Binding<S> => ({
    ...words,
    disabled,
    does(state) {
      const summary = selected(state);
      return { state, ...(summary !== null && act(state, summary)) };
    },
  });
  const answers: Answers<S> = {
    summaryPrevious: (state, result, frame) => ({ state, ...goTo(previousText(result, frame)) }),
  };
  return {
    answers,
    rewrite: key(
      { keys: ["w", "r"], short: "rewrite", help: "rewrite the summary with a model", changes: true, asksModel: true },
      ({ conversation }, summary) => goTo({ kind: "rewrite", conversation, select: { summary } }),
    ),
    rewrites: key(
      { keys: ["W"], help: "rewrite the summary and everything below it", changes: true, asksModel: true },
      ({ conversation }, summary) => goTo({ kind: "rewrite", conversation, select: { subtree: summary } }),
    ),
    dissolve: key(
      { keys: ["d"], short: "dissolve", help: "dissolve the summary into its sources", changes: true },
      ({ conversation }, summary) => goTo({ kind: "dissolve", conversation, summary }),
    ),
    previous: key({ keys: ["p"], help: "show the previous context its prompt contained" }, (_, summary) => ({
      asks: [{ kind: "summaryPrevious", summary }],
    })),
  };
}

export function previousText({ summary, recorded, recomputed }: Previous, frame: Frame): Destination {
  const width = textPage(frame).columns;
  const title = `previous context of ${summary.id}`;
  if (recorded !== null) return { kind: "text", title, lines: textLines({ bounds: width }, recorded, "") };
  const now =
    recomputed === null
      ? ["A rewrite would get none: nothing comes before it."]
      : [`A rewrite would get this, recomputed from the summary before it (${recomputed.id}):`];
  return {
    kind: "text",
    title,
    lines: [
      ...wrap(whyNone(summary), width),
      ...(summary.depth > 1 ? [] : ["", ...now.flatMap((line) => wrap(line, width))]),
      ...(recomputed === null ? [] : ["", ...textLines({ bounds: width }, recomputed.text, "")]),
    ],
  };
}

function whyNone({ depth, level, model }: Previous["summary"]): string {
  if (depth > 1) return "None: only leaves and summaries of depth 1 get previous context.";
  if (model === null && level !== "normal") return "None: its text was made without a model.";
  return "None is recorded: nothing came before it, or the program that made it did not record it.";
}
