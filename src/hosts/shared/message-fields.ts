/** Reads what hosts of Pi's family write into their messages. */

import { isObject, type Json } from "../../core/base/json.ts";
import type { HostMessage } from "../../core/messages/codec.ts";

/** The prompt tokens that an assistant message reports, cached ones included; 0 if it reports none. */
export const inputTokensOf = (message: HostMessage): number =>
  sumOfUsage(message, ["input", "cacheRead", "cacheWrite"]);

export const cachedTokensOf = (message: HostMessage): number => sumOfUsage(message, ["cacheRead"]);

export const outputTokensOf = (message: HostMessage): number => sumOfUsage(message, ["output"]);

function sumOfUsage({ usage }: HostMessage, fields: readonly string[]): number {
  if (!isObject(usage)) return 0;
  const parts = fields.map((field) => usage[field]);
  return parts.reduce<number>((sum, part) => sum + (typeof part === "number" ? part : 0), 0);
}

/** The text of a message's content. */
export function textOf(content: Json | undefined): string {
  if (typeof content === "string") return content;
  const parts = Array.isArray(content) ? content.filter(isObject) : [];
  return parts.flatMap(({ type, text }) => (type === "text" && typeof text === "string" ? [text] : [])).join("\n");
}
