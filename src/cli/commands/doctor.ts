/** `lcm doctor`: every promise about what is stored, checked against the rows, and what is mechanical set right. */

import { LcmError } from "../../core/base/errors.ts";
import type { Inspection } from "../../core/maintenance/inspect.ts";
import { isSound } from "../../core/maintenance/inspect.ts";
import type { Lcm } from "../../core/lcm.ts";
import { isNothing } from "../../core/maintenance/apply-fix.ts";
import type { FixPlan } from "../../core/maintenance/apply-fix.ts";
import type { Conversation } from "../../core/model/types.ts";
import type { ConversationFix } from "../../core/model/store.ts";
import { findingsLines, groupsOf, mendingLines } from "../../format/findings.ts";
import type { ToldFinding } from "../../format/findings.ts";
import { applyOptions, backUpFirst, backupOption, endAtPlan, isApplying, sayUndo } from "./_applying.ts";
import { defineCommand, exitFindings, exitOk, withLcm } from "./_session.ts";
import type { Session } from "./_session.ts";
import { conversationWords } from "./_options.ts";
import type { OptionsOf } from "./_options.ts";
import { plural } from "../../core/base/format.ts";

export const doctorCommand = defineCommand({
  name: "doctor",
  summary: "check that nothing is lost, doubled or broken",
  description:
    "Check that nothing is lost, doubled or broken: every message is reached once and reads back, every reference, total " +
    "and search entry is right, and the file itself is sound. Every finding names the command that mends it. " +
    "--fix sets right what follows from other rows, and no text: order, links to nothing, totals, times, search " +
    "entries. Nothing is changed without --apply.",
  arguments: [["[conversation]", `only ${conversationWords}`]],
  options: {
    verbose: ["-v, --verbose", "name everything that is only for information, too"],
    fix: ["--fix", "set right what needs no decision"],
    ...applyOptions,
    ...backupOption,
  },
  examples: [
    ["lcm doctor", "the whole database"],
    ["lcm doctor 3 --json", "one conversation, as JSON"],
    ["lcm doctor --fix", "what would be set right"],
    ["lcm doctor --fix --apply", "set it right, after a backup"],
  ],
  notes: "Exit status 1 means that there are errors or warnings, or still are after --fix; information alone is 0.",
  async run(session, options, name?: string) {
    const { fix = false, verbose = false } = options;
    const applying = isApplying(options);
    if (applying && !fix) {
      throw new LcmError("invalid", "--apply goes with --fix", { hint: "without --fix there is nothing to apply" });
    }
    return await withLcm(session, applying ? "write" : "read", async (lcm) => {
      const only = name === undefined ? null : await lcm.find(name);
      const found = await examine(session, lcm, only);
      if (!session.json) await printFindings(session, lcm, found, verbose);
      if (fix) return await setRight(session, options, applying, lcm, only, found);
      if (session.json) session.printJson(found);
      return found.sound ? exitOk : exitFindings;
    });
  },
});

interface Examined {
  readonly sound: boolean;
  readonly checked: Inspection["checked"];
  readonly findings: readonly ToldFinding[];
}

async function examine(session: Session, lcm: Lcm, only: Conversation | null): Promise<Examined> {
  const { unknownKeys } = await session.context.settings();
  const progress = session.progress("checking");
  const { findings, checked } = await lcm
    .examine(only?.id ?? null, ({ done, of }) => progress.update({ done, of, unit: "conversations" }))
    .finally(() => progress.end());
  return {
    sound: isSound(findings),
    checked,
    findings: only === null ? [...findings, ...unknownSettings(unknownKeys)] : findings,
  };
}

/** Older versions had other settings, and configs outlive them: told in one line, and nothing that has to be mended. */
function unknownSettings(keys: readonly string[]): readonly ToldFinding[] {
  if (keys.length === 0) return [];
  const message = `the plugin's config sets what is not known here, and it is passed over: ${keys.join(", ")}`;
  return [
    { severity: "info", code: "unknown_setting", conversation: null, subject: "plugin config", message, remedy: null },
  ];
}

async function printFindings(session: Session, lcm: Lcm, found: Examined, verbose: boolean): Promise<void> {
  const groups = await groupsOf(lcm.store, found.findings);
  for (const line of findingsLines(session, groups, found.checked, verbose)) session.print(line);
}

// ── Setting right ────────────────────────────────────────────────────────────────────────────────────────────────────

async function setRight(
  session: Session,
  options: OptionsOf<typeof backupOption>,
  applying: boolean,
  lcm: Lcm,
  only: Conversation | null,
  found: Examined,
): Promise<number> {
  const plan = await lcm.planFix(only?.id ?? null);
  const shown = { conversations: plan.conversations.map(shownMending), orphans: plan.orphans };
  if (!session.json) for (const line of planLines(session, plan)) session.print(line);
  if (!applying || isNothing(plan)) {
    endAtPlan(session, applying, shown, isNothing(plan) ? null : undefined);
    return found.sound ? exitOk : exitFindings;
  }
  const backup = await backUpFirst(session, options);
  const progress = session.progress("setting right");
  const fixed = await lcm
    .fix(plan, {
      onProgress: ({ done, of }) => progress.update({ done, of, unit: "conversations" }),
      onReplan: (conversation, next) => {
        if (session.json) return;
        session.note(`conversation ${conversation} changed meanwhile: planned again`);
        for (const line of next === null ? [] : mendingLines(session, next)) session.note(line);
      },
    })
    .finally(() => progress.end());
  const left = await examine(session, lcm, only);
  if (session.json)
    session.printJson({
      dryRun: false,
      applied: fixed.change !== null,
      plan: shown,
      result: { ...fixed, ...left },
      backup,
    });
  else {
    session.print();
    session.print(session.paint.strong(left.sound ? "set right, and checked again" : "set right; this is left"));
    await printFindings(session, lcm, left, false);
    if (fixed.change !== null) sayUndo(session, fixed.change);
  }
  return left.sound ? exitOk : exitFindings;
}

/** The whole context would be as long as the conversation. */
const shownMending = ({ context, revision: _, ...mending }: ConversationFix): object => ({
  ...mending,
  context: context === null ? null : { added: context.added, dropped: context.dropped, reordered: context.reordered },
});

const conversationsShown = 20;

function planLines(session: Session, plan: FixPlan): readonly string[] {
  const { paint } = session;
  if (isNothing(plan)) return ["", "there is nothing that --fix sets right"];
  const { conversations, orphans } = plan;
  const more = conversations.length - conversationsShown;
  return [
    "",
    paint.strong("--fix sets right"),
    ...conversations.slice(0, conversationsShown).flatMap((mending) => mendingLines(session, mending)),
    more > 0 && `  ${paint.soft(`and ${plural(more, "conversation")} more; --json lists all`)}`,
    orphans.rows + orphans.searchEntries > 0 && "  the file",
    orphans.rows > 0 &&
      `    ${plural(orphans.rows, "row that belongs", "rows that belong")} to nothing, removed for good`,
    orphans.searchEntries > 0 &&
      `    ${plural(orphans.searchEntries, "search entry", "search entries")} without a row, removed`,
  ].filter((line) => line !== false);
}
