/** What can be done with a summary, wherever one is selected: rewrite it, dissolve it, see what its prompt was told. */

import type { SummaryId } from "../../core/model/types.ts";
import { textLines } from "../../format/passages.ts";
import { goTo } from "../contract.ts";
import type { Answers, Binding, Frame, Place, Step } from "../contract.ts";
import { textPage } from "../widgets/draw.ts";
import type { OfConversation } from "../port.ts";
import type { Previous } from "./asks.ts";
import { wrap } from "../../format/width.ts";

/** `disabled`: why there is no summary. */
export function summaryKeys<S extends OfConversation>(
  selected: (state: S) => SummaryId | null,
  disabled: (state: S) => string | null,
) {
  const key = (
    words: Pick<Binding<S>, "keys" | "says" | "short" | "changes">,
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
    dagPrevious: (state, told, frame) => ({ state, ...goTo(previousText(told, frame)) }),
  };
  return {
    answers,
    rewrite: key(
      { keys: ["w", "r"], short: "rewrite", says: "have the summary's text written anew", changes: true },
      ({ conversation }, summary) => goTo({ kind: "rewrite", conversation, select: { summary } }),
    ),
    rewrites: key(
      { keys: ["W"], says: "have it and all below it written anew", changes: true },
      ({ conversation }, summary) => goTo({ kind: "rewrite", conversation, select: { subtree: summary } }),
    ),
    dissolve: key(
      { keys: ["d"], short: "dissolve", says: "put what the summary was made from back in its place", changes: true },
      ({ conversation }, summary) => goTo({ kind: "dissolve", conversation, summary }),
    ),
    previous: key(
      { keys: ["p"], says: "show what the summary's prompt was told of what came before" },
      (_, summary) => ({ asks: [{ kind: "dagPrevious", summary }] }),
    ),
  };
}

export function previousText({ summary, recorded, recomputed }: Previous, frame: Frame): Place {
  const width = textPage(frame).columns;
  const title = `previous context of ${summary.id}`;
  if (recorded !== null) return { kind: "text", title, lines: textLines({ bounds: width }, recorded, "") };
  const now =
    recomputed === null
      ? ["A rewrite would be given none: nothing stands before it."]
      : [`A rewrite would be given this, recomputed from what stands before it now (${recomputed.id}):`];
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
  if (depth > 1) return "None was given: only leaves and summaries of depth 1 are told what came before.";
  if (model === null && level !== "normal") return "None was given: its text was made without a model.";
  return "None is recorded: nothing stood before it, or whoever made it did not keep what did.";
}
