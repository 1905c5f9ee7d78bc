/** Describes where a message or a secret would be forgotten, without showing the secret. */

import { forgetsNothing } from "../core/maintenance/forget.ts";
import { redactText } from "../core/maintenance/redact.ts";
import { forgottenMark, messageName, type Message } from "../core/model/types.ts";
import type { ForgetPlan } from "../core/model/store.ts";
import { plural } from "../core/base/format.ts";
import { inShort } from "./messages.ts";
import type { Page } from "./page.ts";
import { oneLine } from "./safe-text.ts";
import { breakLines, cut } from "./width.ts";

/** How many messages a plan quotes. */
export const forgottenShown = 10;

const notSearched = "message keys, session ids and session keys are not searched and stay unchanged";

/** `shown`: the first of its messages. */
export function forgetLines(page: Page, plan: ForgetPlan, shown: readonly Message[]): readonly string[] {
  const { target, messages, summaries, files, journal, entries } = plan;
  if (forgetsNothing(plan))
    return target.kind === "message"
      ? [`${messageName(target.id)} is already forgotten; nothing to do`]
      : ["not found anywhere", ...breakLines(notSearched, page.columns)];
  const named = (words: string, ids: readonly string[]): string => `  ${words}: ${ids.join(", ")}`;
  const places = [
    messages.length > 0 && named(plural(messages.length, "message"), messages.map(messageName)),
    summaries.length > 0 &&
      named(`${plural(summaries.length, "summary", "summaries")} to rewrite afterwards`, summaries),
    files.length > 0 && named(plural(files.length, "stored file"), files),
    entries > 0 && `  ${plural(entries, "title or other line", "titles or other lines")} of transcripts`,
    journal.length > 0 && `  ${plural(journal.length, "journal entry", "journal entries")}`,
  ].filter((line) => line !== false);
  const more = messages.length - shown.length;
  return [
    target.kind === "message" ? `forgetting ${messageName(target.id)} changes:` : "the secret occurs in:",
    ...places.map((line) => cut(line, page.columns)),
    "",
    ...excerptLines(page, shown, target),
    ...(more > 0 ? [`  and ${plural(more, "more message")}`] : []),
    "",
    ...breakLines(notSearched, page.columns),
  ];
}

function excerptLines(page: Page, messages: readonly Message[], target: ForgetPlan["target"]): readonly string[] {
  const width = Math.max(0, ...messages.map(({ id }) => messageName(id).length));
  const room = Math.max(20, page.columns - width - 4);
  return messages.map(
    (message) => `  ${page.paint.strong(messageName(message.id).padEnd(width))}  ${excerptOf(message, target, room)}`,
  );
}

function excerptOf(message: Message, target: ForgetPlan["target"], room: number): string {
  if (target.kind === "message") return cut(inShort(message), room);
  const masked = oneLine(redactText(message.text, target.text));
  const at = masked.indexOf(forgottenMark);
  if (at < 0) return "(outside its text)";
  const from = Math.max(0, at - Math.floor(room / 3));
  return cut(from === 0 ? masked : `…${masked.slice(from)}`, room);
}

export const forgottenWords = (removed: number): string => `forgotten in ${plural(removed, "place")}`;

export const heldByBackups = "these backups may still contain it; delete them if necessary:";

export const transcriptsStay = "transcript files outside the database were not changed";
