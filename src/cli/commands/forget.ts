/**
 * `lcm forget`: removes one message, or a secret everywhere it occurs. It makes no backup, which would keep the secret,
 * and lists the existing ones instead.
 */

import { text as readAll } from "node:stream/consumers";
import { LcmError } from "../../core/base/errors.ts";
import { forgetsNothing, planForget } from "../../core/maintenance/forget.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { ForgetPlan } from "../../core/model/store.ts";
import { applyOptions, isApplying } from "./_applying.ts";
import { about, either, flag, list, object, oneOf, text, whole, type TypeOf } from "./_json.ts";
import { defineCommand, withLcm, type Session } from "./_session.ts";
import { forgetLines, forgottenShown, forgottenWords, heldByBackups, transcriptsStay } from "../../format/forget.ts";
import { conversationWords, messageId, type OptionsOf, type OptionTable } from "./_options.ts";

const flags = {
  message: ["--message <id>", "remove the message with this id", messageId],
  secret: ["--secret <text>", "remove this text everywhere"],
  secretStdin: ["--secret-stdin", "read the secret from stdin, to keep it out of the shell history"],
  ...applyOptions,
} as const satisfies OptionTable;

type ForgetOptions = OptionsOf<typeof flags>;

const json = object({
  dryRun: flag,
  applied: flag,
  plan: object({
    target: either(object({ kind: oneOf("message"), id: whole }), object({ kind: oneOf("secret"), characters: whole })),
    messages: list(whole),
    summaries: list(text),
    files: list(text),
    journal: list(whole),
    entries: whole,
  }),
  backups: about(list(text), "backups that may still contain it"),
  "result?": object({ kind: oneOf("written"), removed: whole }),
});

export const forgetCommand = defineCommand({
  name: "forget",
  json,
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
  return await withLcm(session, applying ? "change" : "apart", async (lcm) => {
    const scope = name === undefined ? null : (await lcm.find(name)).id;
    const plan = await planForget(lcm.store, scope, target);
    if (!session.json) await printPlan(session, lcm, plan);
    const mayHold = forgetsNothing(plan) ? [] : session.database.backups().map(({ path }) => path);
    if (!applying || forgetsNothing(plan)) {
      if (session.json)
        session.printJson(json, { dryRun: !applying, applied: false, plan: shownPlan(plan), backups: mayHold });
      else if (!forgetsNothing(plan)) {
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
      session.printJson(json, { dryRun: false, applied: true, plan: shownPlan(plan), result, backups: mayHold });
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

/** The output must not contain the secret. */
const shownPlan = (plan: ForgetPlan): TypeOf<typeof json>["plan"] => ({
  ...plan,
  target: plan.target.kind === "secret" ? { kind: "secret", characters: plan.target.text.length } : plan.target,
});

async function printPlan(session: Session, lcm: Lcm, plan: ForgetPlan): Promise<void> {
  const shown = await lcm.store.messages({ ids: plan.messages.slice(0, forgottenShown) });
  for (const line of forgetLines(session, plan, shown)) session.print(line);
}

function printResult(session: Session, removed: number, mayHold: readonly string[]): void {
  session.print(forgottenWords(removed));
  noteBackups(session, mayHold);
  session.note(transcriptsStay);
}

function noteBackups({ note }: Session, mayHold: readonly string[]): void {
  if (mayHold.length === 0) return;
  note(heldByBackups);
  for (const path of mayHold) note(`  ${path}`);
}
