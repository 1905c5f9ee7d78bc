/**
 * `lcm forget`: removes one message, or a secret everywhere it occurs. It makes no backup, which would keep the secret,
 * and lists the existing ones instead.
 */

import { text as readAll } from "node:stream/consumers";
import { LcmError } from "../../core/base/errors.ts";
import { forgetMessage, redactText } from "../../core/maintenance/redact.ts";
import type { Lcm } from "../../core/lcm.ts";
import { forgottenMark, messageName, type Message } from "../../core/model/types.ts";
import type { ForgetPlan } from "../../core/model/store.ts";
import { applyOptions, isApplying } from "./_applying.ts";
import { defineCommand, withLcm, type Session } from "./_session.ts";
import { inShort } from "../../format/messages.ts";
import { conversationWords, messageId, type OptionsOf, type OptionTable } from "./_options.ts";
import { plural } from "../../core/base/format.ts";
import { cut } from "../../format/width.ts";
import { oneLine } from "../../format/safe-text.ts";

const flags = {
  message: ["--message <id>", "remove the message with this id", messageId],
  secret: ["--secret <text>", "remove this text everywhere"],
  secretStdin: ["--secret-stdin", "read the secret from stdin, to keep it out of the shell history"],
  ...applyOptions,
} as const satisfies OptionTable;

type ForgetOptions = OptionsOf<typeof flags>;

export const forgetCommand = defineCommand({
  name: "forget",
  summary: "remove one message, or a secret everywhere it occurs",
  description:
    "Remove one message, or a secret everywhere it occurs: in messages, the search index, summaries (which are marked for " +
    "rewriting), stored files and the journal. This cannot be undone, and no backup is made.",
  arguments: [["[conversation]", `only in ${conversationWords}`]],
  options: flags,
  exclusive: [["message", "secret", "secretStdin"]],
  examples: [
    ["lcm forget --message msg_1-234", "show what would be removed"],
    ["lcm forget --message msg_1-234 --apply", "remove it"],
    ["pbpaste | lcm forget --secret-stdin --apply", "remove a password that was pasted by mistake"],
  ],
  run: forget,
});

async function forget(session: Session, options: ForgetOptions, name?: string): Promise<void> {
  const applying = isApplying(options);
  const target = await targetOf(session, options);
  return await withLcm(session, applying ? "write" : "read", async (lcm) => {
    const scope = name === undefined ? null : (await lcm.find(name)).id;
    const plan = await withoutForgotten(lcm, await lcm.store.planForget(scope, target));
    if (!session.json) await printPlan(session, lcm, plan);
    const mayHold = isEmpty(plan) ? [] : session.database.backups().map(({ path }) => path);
    if (!applying || isEmpty(plan)) {
      if (session.json)
        session.printJson({ dryRun: !applying, applied: false, plan: shownPlan(plan), backups: mayHold });
      else if (!isEmpty(plan)) {
        noteBackups(session, mayHold);
        session.note("nothing was changed; pass --apply to remove it permanently, without a backup");
      }
      return;
    }
    const result = await lcm.store.forget(scope, plan);
    if (result.kind === "stale") {
      throw new LcmError("conflict", `nothing was removed: ${result.reason}`, { hint: "run it again" });
    }
    if (session.json)
      session.printJson({ dryRun: false, applied: true, plan: shownPlan(plan), result, backups: mayHold });
    else printResult(session, result.removed, mayHold);
  });
}

async function targetOf(
  session: Session,
  { message, secret, secretStdin }: ForgetOptions,
): Promise<ForgetPlan["target"]> {
  if (message !== undefined) return { kind: "message", id: message };
  const text = secretStdin === true ? await readSecret(session) : secret;
  if (text !== undefined && text !== "") return { kind: "secret", text };
  throw new LcmError("invalid", text === "" ? "the secret is empty" : "nothing selected to forget", {
    hint: "pass --message ID, --secret TEXT or --secret-stdin",
  });
}

/** Shells append a line break that is not part of the secret. */
async function readSecret({ context, note }: Session): Promise<string> {
  if (context.isInteractive) note("type the secret, then press Enter and Ctrl-D");
  return (await readAll(context.stdin)).replace(/\r?\n$/, "");
}

/** Empties the plan if its messages are already forgotten, unless a later rewrite put old text into the journal. */
async function withoutForgotten(lcm: Lcm, plan: ForgetPlan): Promise<ForgetPlan> {
  if (plan.target.kind === "secret" || plan.journal.length + plan.entries > 0) return plan;
  const messages = await lcm.store.messages({ ids: plan.messages });
  return messages.every(isForgotten) ? { ...plan, messages: [], summaries: [] } : plan;
}

/** A message that only quotes the mark differs in its envelope. */
function isForgotten(message: Message): boolean {
  const left = forgetMessage(message);
  return message.text === left.text && message.envelope === left.envelope && message.entry === left.entry;
}

const isEmpty = (plan: ForgetPlan): boolean =>
  plan.messages.length + plan.summaries.length + plan.files.length + plan.journal.length + plan.entries === 0;

/** The output must not contain the secret. */
const shownPlan = (plan: ForgetPlan): unknown => ({
  ...plan,
  target: plan.target.kind === "secret" ? { kind: "secret", characters: plan.target.text.length } : plan.target,
});

const excerptsShown = 10;
const notSearched = "message keys, session ids and session keys are not searched and stay unchanged";

async function printPlan(session: Session, lcm: Lcm, plan: ForgetPlan): Promise<void> {
  const { print } = session;
  if (isEmpty(plan))
    return print(
      plan.target.kind === "message"
        ? `${messageName(plan.target.id)} is already forgotten; nothing to do`
        : `not found anywhere\n${notSearched}`,
    );
  const { messages, summaries, files, journal, entries } = plan;
  const named = (words: string, ids: readonly string[]): string => `  ${words}: ${ids.join(", ")}`;
  const places = [
    messages.length > 0 && named(plural(messages.length, "message"), messages.map(messageName)),
    summaries.length > 0 &&
      named(`${plural(summaries.length, "summary", "summaries")} to rewrite afterwards`, summaries),
    files.length > 0 && named(plural(files.length, "stored file"), files),
    entries > 0 && `  ${plural(entries, "title or other line", "titles or other lines")} of transcripts`,
    journal.length > 0 && `  ${plural(journal.length, "journal entry", "journal entries")}`,
  ].filter((line) => line !== false);
  print(
    plan.target.kind === "message" ? `forgetting ${messageName(plan.target.id)} changes:` : "the secret occurs in:",
  );
  for (const line of places) print(cut(line, session.columns));
  print();
  const shown = await lcm.store.messages({ ids: messages.slice(0, excerptsShown) });
  for (const line of excerptLines(session, shown, plan.target)) print(line);
  if (messages.length > shown.length) print(`  and ${plural(messages.length - shown.length, "more message")}`);
  print();
  print(notSearched);
}

function excerptLines(session: Session, messages: readonly Message[], target: ForgetPlan["target"]): readonly string[] {
  const width = Math.max(0, ...messages.map(({ id }) => messageName(id).length));
  const room = Math.max(20, session.columns - width - 4);
  return messages.map(
    (message) =>
      `  ${session.paint.strong(messageName(message.id).padEnd(width))}  ${excerptOf(message, target, room)}`,
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

function printResult(session: Session, removed: number, mayHold: readonly string[]): void {
  session.print(`forgotten in ${plural(removed, "place")}`);
  noteBackups(session, mayHold);
  session.note("transcript files outside the database were not changed");
}

function noteBackups({ note }: Session, mayHold: readonly string[]): void {
  if (mayHold.length === 0) return;
  note("these backups may still contain it; delete them if necessary:");
  for (const path of mayHold) note(`  ${path}`);
}
