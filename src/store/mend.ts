/** Setting right what follows from other rows: see core/fix.ts for what is right. */

import type { Changed, Mending, PartOf, Written } from "../core/changes.ts";
import { LcmError } from "../core/errors.ts";
import type { Script } from "./script.ts";
import type { ScriptDeps } from "./totals.ts";

export function* mend(_deps: ScriptDeps, _plan: Mending, _partOf?: PartOf): Script<Written<Changed>> {
  throw new LcmError("unavailable", "not yet");
}

export function* sweepOrphans(
  _deps: ScriptDeps,
  _partOf?: PartOf,
): Script<{ readonly change: number | null; readonly removed: number }> {
  throw new LcmError("unavailable", "not yet");
}
