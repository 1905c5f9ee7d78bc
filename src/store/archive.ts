/** Conversations out of a database and into another. */

import { LcmError } from "../core/errors.ts";
import type { ConversationId } from "../core/model.ts";
import type { Changed, Extent, Merged, RemovePlan, Written } from "../core/ports.ts";
import type { Script } from "./script.ts";
import type { ScriptDeps } from "./totals.ts";

export function* extents(_conversations: readonly ConversationId[]): Script<readonly Extent[]> {
  throw new LcmError("unavailable", "not yet");
}

export function* remove(_deps: ScriptDeps, _plan: RemovePlan): Script<Written<Changed & { readonly bytes: number }>> {
  throw new LcmError("unavailable", "not yet");
}

export async function archive(): Promise<{ path: string; bytes: number; files: number }> {
  throw new LcmError("unavailable", "not yet");
}

export async function merge(): Promise<Merged> {
  throw new LcmError("unavailable", "not yet");
}
