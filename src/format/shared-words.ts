/** Words that the command line and the explorer share, without what a terminal needs. */

import { listed } from "../core/base/format.ts";
import type { Change } from "../core/maintenance/history.ts";
import type { PromptChange } from "../core/seen/compare.ts";
import type { ViewSpan } from "../core/seen/find-seen.ts";

/** Followed by the summary, if there is one. */
export const changeVerbs: Readonly<Record<PromptChange["kind"], string>> = {
  arrived: "arrived",
  folded: "folded into",
  evicted: "no longer shown: evicted, or deleted",
  left: "no longer shown: the host went back to an earlier message",
  unfolded: "shown in place of",
  repeated: "repeated beside",
  "not repeated": "no longer repeated beside",
  returned: "shown again",
  rewritten: "rewritten",
  shortened: "shortened",
  "whole again": "shown whole again",
  pinned: "repeated as a standing instruction",
  unpinned: "no longer repeated as a standing instruction",
};

export const viewWords: Readonly<Record<ViewSpan["view"], string>> = {
  whole: "in view",
  shortened: "in view, shortened",
  pinned: "repeated as a standing instruction",
  summary: "covered by",
  no: "not in view",
};

export type ChangeInShort = Omit<Change, "steps">;

/** Whether it still holds; empty if it does. */
export function stateWords({ state, undoneBy, wayBack }: ChangeInShort): string {
  switch (state) {
    case "holds":
      return "";
    case "for good":
      return wayBack === null ? "cannot be undone" : "can be redone";
    case "undone":
    case "partly undone":
      return `${state} by ${listed(undoneBy.map(String))}`;
  }
}
