/** Formats the name of a conversation, its age, and how full its context is. */

import type { Conversation } from "../core/model/types.ts";
import type { Paint } from "./paint.ts";
import { timestampToMs, type Timestamp } from "../core/base/time.ts";
import { cut } from "./width.ts";
import { clockTime } from "./times.ts";
import { oneLine } from "./safe-text.ts";
import type { Page } from "./page.ts";

export const headline = ({ paint, columns }: Page, conversation: Conversation): string =>
  paint.strong(cut(`conversation ${conversation.id} · ${nameOf(conversation)}`, columns));

/** Marks hidden conversations and earlier segments. */
export const nameOf = (conversation: Named & Pick<Conversation, "active" | "hidden">): string =>
  bareName(conversation) + (conversation.hidden ? " (hidden)" : conversation.active ? "" : " (earlier)");

type Named = Pick<Conversation, "title" | "sessionKey" | "sessionId">;

export const bareName = ({ title, sessionKey, sessionId }: Named): string => oneLine(title ?? sessionKey ?? sessionId);

const minuteMs = 60_000;

/** `3 min ago`, `5 h ago`, and the date after a week. */
export function ago(at: Timestamp, now: Timestamp, zone: string): string {
  const minutes = Math.floor((timestampToMs(now) - timestampToMs(at)) / minuteMs);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} min ago`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ago`;
  if (minutes < 7 * 24 * 60) return `${Math.floor(minutes / 24 / 60)} d ago`;
  return clockTime(at, zone).slice(0, "2026-02-17".length);
}

/** `promptTokens` is the size of a prompt that holds the whole context. */
interface Use {
  readonly promptTokens: number;
  readonly budget: number;
  readonly thresholdTokens: number;
}

/** `12%`, `<1%`. */
export function useShare({ promptTokens, budget }: Use): string {
  const percent = (promptTokens / Math.max(1, budget)) * 100;
  if (percent > 999) return ">999%";
  return promptTokens > 0 && percent < 1 ? "<1%" : `${Math.round(percent)}%`;
}

/** The budget as a line: bold up to what is used, with a cross at the compaction threshold: `━━━───┼──`. */
export function useBar(use: Use, cells: number, paint: Paint): string {
  const { promptTokens, budget, thresholdTokens } = use;
  const share = (tokens: number): number => tokens / Math.max(1, budget);
  const used = promptTokens === 0 ? 0 : Math.max(1, Math.min(cells, Math.round(share(promptTokens) * cells)));
  const mark = Math.min(cells - 1, Math.floor(share(thresholdTokens) * cells));
  const tone = promptTokens > budget ? paint.bad : promptTokens > thresholdTokens ? paint.caution : paint.good;
  const line = (from: number, to: number, cell: string, crossed: string): string =>
    Array.from({ length: Math.max(0, to - from) }, (_, at) => (from + at === mark ? crossed : cell)).join("");
  return `${tone(line(0, used, "━", "╋"))}${paint.soft(line(used, cells, "─", "┼"))}`;
}
