/** What Pi's `context_edit` rows change: the content that the model sees of an earlier row, or that it sees nothing of it. */

import { isObject, type Json } from "../../core/base/json.ts";

/** By the id of the row, from the rows of the current branch; the last edit of a row counts. */
export function editsIn(branch: readonly object[]): Readonly<Record<string, Json>> {
  const rows = JSON.parse(JSON.stringify(branch)) as readonly Json[];
  const roles = new Map<Json | undefined, Json | undefined>();
  const edits: Record<string, Json> = {};
  for (const row of rows) {
    if (!isObject(row)) continue;
    const { type, id, targetId, replacement, message } = row;
    if (isObject(message)) roles.set(id, message["role"]);
    if (type !== "context_edit" || typeof targetId !== "string") continue;
    const content = isObject(replacement) ? (replacement["content"] ?? null) : null;
    // Those roles take blocks only.
    const isText = typeof content === "string" && blockRoles.has(roles.get(targetId));
    edits[targetId] = isText ? [{ type: "text", text: content }] : content;
  }
  return edits;
}

const blockRoles: ReadonlySet<unknown> = new Set(["assistant", "toolResult"]);
