/** Plans of changes as people see them, and why one cannot be applied. */

import { plural } from "../core/base/format.ts";
import { forgetsNothing } from "../core/maintenance/forget.ts";
import { obstacleLines, undoLines, undoRefusal } from "../format/changes.ts";
import { dissolutionLines } from "../format/dissolve.ts";
import { fixLines } from "../format/findings.ts";
import { pinLines } from "../format/pins.ts";
import { transplantationLines } from "../format/transplant.ts";
import { compactionLines, isFolding } from "../format/compact.ts";
import { headline } from "../format/conversations.ts";
import { forgetLines, heldByBackups } from "../format/forget.ts";
import type { Page } from "../format/page.ts";
import { pruneLines } from "../format/prune.ts";
import { restoreLines } from "../format/restore.ts";
import { breakLines } from "../format/width.ts";
import type { Trouble } from "./port.ts";
import type { PlannedChange } from "./changes.ts";
import type { PlannedWork } from "./work.ts";

/** How a surface offers what else a plan could be. */
export interface Ways {
  readonly foldShortRuns: string;
  readonly foldLocally: string;
}

/** As on the command line. */
export function planLines(planned: PlannedChange, page: Page, ways: Ways): readonly string[] {
  switch (planned.kind) {
    case "dissolve":
      return dissolutionLines(page, planned.plan);
    case "transplant":
      return transplantationLines(page, planned.plan, planned.source, planned.target);
    case "undo":
      return [
        ...undoLines(page, planned.plan),
        ...(planned.plan.obstacles.length === 0 ? [] : ["", ...obstacleLines(page, planned.plan)]),
      ];
    case "pin":
      return pinLines(planned.plan);
    case "fix":
      return planned.plan === null ? [] : fixLines(page, planned.plan);
    default:
      return workLines(planned, page, ways);
  }
}

/** As on the command line, and what becomes of the current state. */
function workLines(work: PlannedWork, page: Page, ways: Ways): readonly string[] {
  const { paint, columns } = page;
  const soft = (words: string): readonly string[] => breakLines(page.typed(words), columns).map(paint.soft);
  switch (work.kind) {
    case "compact":
      return [
        headline(page, work.conversation),
        ...compactionLines(page, work.plan, work.spend, {
          nothing: work.isForced ? "nothing to fold" : `nothing to fold; ${ways.foldShortRuns}`,
        }),
      ];
    case "prune": {
      const { archive, plan } = work;
      const action = archive === null ? "to delete permanently" : `to archive in ${archive}`;
      if (plan.conversations.length === 0) return pruneLines(page, plan, action);
      const source = archive === null ? "a backup is made first; `lcm import BACKUP` restores them" : null;
      const back = source ?? `\`lcm import ${archive}\` restores them; a backup is made too`;
      return [...pruneLines(page, plan, action), "", ...soft(`undo cannot restore them; ${back}`)];
    }
    case "forget":
      return [
        ...forgetLines(page, work.plan, work.shown),
        ...(forgetsNothing(work.plan) ? [] : lastWords(work.backups, page)),
      ];
    case "restore":
      return [
        ...restoreLines(work.plan).flatMap((line) => breakLines(line, columns)),
        "",
        ...soft("the current database is set aside first, and can be restored in the same way"),
      ];
    case "export": {
      const { conversation, target } = work;
      return [
        headline(page, conversation),
        ...breakLines(`${plural(conversation.totals.messages, "message")} to ${target.path}`, columns),
        ...(target.exists ? ["", paint.caution("the file exists and will be replaced")] : []),
      ];
    }
    case "backup":
      return [...breakLines(`a copy of ${work.path} and its files, beside it`, columns)];
  }
}

const lastWords = (backups: readonly string[], { paint, columns }: Page): readonly string[] => [
  "",
  paint.caution("this cannot be undone, and no backup is made"),
  ...(backups.length === 0 ? [] : [...breakLines(heldByBackups, columns), ...backups.map((path) => `  ${path}`)]),
];

/** Why the plan cannot be applied; null if it can. */
export function planRefusal(planned: PlannedChange, ways: Ways): Trouble | null {
  switch (planned.kind) {
    case "undo":
      return planned.plan.obstacles.length > 0 ? undoRefusal(planned.plan) : null;
    case "transplant":
      return planned.plan.summaries.length === 0 ? { message: "nothing to transplant", hint: null } : null;
    case "fix":
      return planned.plan === null ? { message: "nothing to fix automatically", hint: null } : null;
    case "compact": {
      if (!isFolding(planned.plan)) return { message: "nothing to do", hint: null };
      const problem = planned.plan.model?.problem ?? null;
      return problem === null ? null : { message: problem, hint: ways.foldLocally };
    }
    case "prune":
      return planned.plan.conversations.length > 0 ? null : { message: "nothing to delete", hint: null };
    case "forget":
      return forgetsNothing(planned.plan) ? { message: "nothing to forget", hint: null } : null;
    case "restore": {
      const { path, missingFiles } = planned.plan.from;
      const missing = `${plural(missingFiles, "stored file")} of it ${missingFiles === 1 ? "is" : "are"} missing`;
      const hint = `\`lcm restore ${path} --partial --apply\` restores everything else`;
      return missingFiles === 0 ? null : { message: missing, hint };
    }
    default:
      return null;
  }
}
