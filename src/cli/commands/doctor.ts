/** `lcm doctor`: checks the stored data, and fixes findings whose correct value can be derived. */

import { vectorProblem, vectorRemedy } from "../../format/vectors.ts";
import { LcmError } from "../../core/base/errors.ts";
import { misplacedWords, type ResolvedSettings } from "../../core/model/settings.ts";
import { isSound, type Inspection } from "../../core/maintenance/inspect.ts";
import type { Lcm } from "../../core/lcm.ts";
import { isNothing, type FixPlan } from "../../core/maintenance/apply-fix.ts";
import type { Conversation } from "../../core/model/types.ts";
import type { ConversationFix, StoreStatus } from "../../core/model/store.ts";
import { findingsLines, groupsOf, fixLines, type ReportedFinding } from "../../format/findings.ts";
import { applyOptions, backUpFirst, backupOption, endAtPlan, isApplying, noteUndo } from "./_applying.ts";
import { either, flag, list, maybe, object, oneOf, text, time, whole } from "./_json.ts";
import { findings, planned } from "./_shapes.ts";
import { defineCommand, exitFindings, exitOk, withLcm, type Session } from "./_session.ts";
import { conversationWords, type OptionsOf } from "./_options.ts";
import { plural } from "../../core/base/format.ts";

const examinedFields = {
  sound: flag,
  checked: object({ conversations: whole, messages: whole, summaries: whole }),
  findings,
};
const foundJson = object(examinedFields);
const fixJson = planned(
  object({
    conversations: list(
      object({
        conversation: whole,
        times: list(object({ message: whole, at: time })),
        summaries: list(
          object({
            summary: text,
            kind: oneOf("leaf", "condensed"),
            depth: whole,
            earliestAt: maybe(text),
            latestAt: maybe(text),
            descendants: whole,
          }),
        ),
        sources: list(object({ summary: text, messages: list(whole), summaries: list(text) })),
        context: maybe(object({ added: whole, dropped: whole, reordered: flag })),
        recount: flag,
        unindexed: list(either(whole, text)),
      }),
    ),
    orphans: object({ rows: whole, searchEntries: whole }),
  }),
  object({ change: maybe(whole), conversations: list(whole), removed: whole, ...examinedFields }),
);

export const doctorCommand = defineCommand({
  name: "doctor",
  json: either(foundJson, fixJson),
  summary: "check that nothing is lost, duplicated or broken",
  description:
    "Check that nothing is lost, duplicated or broken: every message is reachable once and readable, every reference, total " +
    "and search entry is correct, and the file itself is intact. Each finding names the command that fixes it. --fix " +
    "fixes findings whose correct value can be derived (order, dangling links, totals, times, search entries) and never " +
    "changes a text. Nothing is changed without --apply.",
  arguments: [["[conversation]", `only ${conversationWords}`]],
  options: {
    verbose: ["-v, --verbose", "list every informational finding too"],
    fix: ["--fix", "fix findings whose correct value can be derived"],
    ...applyOptions,
    ...backupOption,
  },
  examples: [
    ["lcm doctor", "check the whole database"],
    ["lcm doctor 3 --json", "check one conversation, as JSON"],
    ["lcm doctor --fix", "show what would be fixed"],
    ["lcm doctor --fix --apply", "fix it, after a backup"],
  ],
  notes: "Exit status 1: errors or warnings were found, or remain after --fix; informational findings alone give 0.",
  async run(session, options, name?: string) {
    const { fix = false, verbose = false } = options;
    const applying = isApplying(options);
    if (applying && !fix) {
      throw new LcmError("invalid", "--apply needs --fix", { hint: "pass --fix --apply" });
    }
    return await withLcm(session, applying ? "change" : "apart", async (lcm) => {
      const only = name === undefined ? null : await lcm.find(name);
      const found = await examine(session, lcm, only);
      if (!session.json) await printFindings(session, lcm, found, verbose);
      if (fix) return await fixAll({ session, options, applying, lcm, only, found });
      if (session.json) session.printJson(foundJson, found);
      return found.sound ? exitOk : exitFindings;
    });
  },
});

interface Examined {
  readonly sound: boolean;
  readonly checked: Inspection["checked"];
  readonly findings: readonly ReportedFinding[];
}

async function examine(session: Session, lcm: Lcm, only: Conversation | null): Promise<Examined> {
  const settings = await session.context.settings();
  const progress = session.progress("checking");
  const { findings, checked } = await lcm
    .examine(only?.id ?? null, ({ done, of }) => progress.update({ done, of, unit: "messages" }))
    .finally(() => progress.end());
  return {
    sound: isSound(findings),
    checked,
    findings:
      only === null
        ? [...findings, ...settingFindings(settings), ...vectorFindings(settings, await lcm.store.status())]
        : findings,
  };
}

/** Search goes by words where vectors are missing, so this is informational. */
function vectorFindings({ values }: ResolvedSettings, status: StoreStatus): readonly ReportedFinding[] {
  const embedder = values.embedder === "off" ? null : values.embedder;
  const message = vectorProblem(embedder, status);
  if (message === null) return [];
  const about = { severity: "info", conversation: null, subject: "search by meaning" } as const;
  return [{ ...about, code: "vectors_incomplete", message, remedy: vectorRemedy(embedder) }];
}

/** Configs outlive the settings of older versions, so this is informational. */
function settingFindings({ unknownKeys, misplaced }: ResolvedSettings): readonly ReportedFinding[] {
  const info = { severity: "info", conversation: null, remedy: null } as const;
  const unknown = `the plugin config has unknown settings, which are ignored: ${unknownKeys.join(", ")}`;
  return [
    ...(unknownKeys.length === 0
      ? []
      : [{ ...info, code: "unknown_setting", subject: "plugin config", message: unknown } as const]),
    ...misplaced.map(
      (each) => ({ ...info, code: "misplaced_setting", subject: each.place, message: misplacedWords(each) }) as const,
    ),
  ];
}

async function printFindings(session: Session, lcm: Lcm, found: Examined, verbose: boolean): Promise<void> {
  const groups = await groupsOf(lcm.store, found.findings);
  for (const line of findingsLines(session, groups, found.checked, verbose)) session.print(line);
}

interface FixJob {
  readonly session: Session;
  readonly options: OptionsOf<typeof backupOption>;
  readonly applying: boolean;
  readonly lcm: Lcm;
  readonly only: Conversation | null;
  readonly found: Examined;
}

async function fixAll({ session, options, applying, lcm, only, found }: FixJob): Promise<number> {
  const plan = await lcm.planFix(only?.id ?? null);
  const shown = { conversations: plan.conversations.map(shownFix), orphans: plan.orphans };
  if (!session.json) for (const line of planLines(session, plan)) session.print(line);
  if (!applying || isNothing(plan)) {
    endAtPlan(session, applying, shown, isNothing(plan) ? null : undefined);
    return found.sound ? exitOk : exitFindings;
  }
  const backup = await backUpFirst(session, options);
  const progress = session.progress("fixing");
  const fixed = await lcm
    .fix(plan, {
      onProgress: ({ done, of }) => progress.update({ done, of, unit: "conversations" }),
      onReplan: (conversation, next) => {
        if (session.json) return;
        session.note(`conversation ${conversation} changed meanwhile; here is the new plan`);
        for (const line of next === null ? [] : fixLines(session, next)) session.note(line);
      },
    })
    .finally(() => progress.end());
  const left = await examine(session, lcm, only);
  if (session.json)
    session.printJson(fixJson, {
      dryRun: false,
      applied: fixed.change !== null,
      plan: shown,
      result: { ...fixed, ...left },
      backup,
    });
  else {
    session.print();
    session.print(session.paint.strong(left.sound ? "fixed and checked again" : "fixed; remaining findings"));
    await printFindings(session, lcm, left, false);
    if (fixed.change !== null) noteUndo(session, fixed.change);
  }
  return left.sound ? exitOk : exitFindings;
}

/** The whole context would be as long as the conversation. */
const shownFix = ({ context, revision: _, ...fix }: ConversationFix) => ({
  ...fix,
  context: context === null ? null : { added: context.added, dropped: context.dropped, reordered: context.reordered },
});

const conversationsShown = 20;

function planLines(session: Session, plan: FixPlan): readonly string[] {
  const { paint } = session;
  if (isNothing(plan)) return ["", "nothing for --fix to do"];
  const { conversations, orphans } = plan;
  const more = conversations.length - conversationsShown;
  return [
    "",
    paint.strong("to fix"),
    ...conversations.slice(0, conversationsShown).flatMap((fix) => fixLines(session, fix)),
    more > 0 && `  ${paint.soft(`and ${plural(more, "conversation")} more; --json lists all`)}`,
    orphans.rows + orphans.searchEntries > 0 && "  the database file",
    orphans.rows > 0 && `    ${plural(orphans.rows, "orphaned row")} deleted permanently`,
    orphans.searchEntries > 0 &&
      `    ${plural(orphans.searchEntries, "search entry", "search entries")} without a row deleted`,
  ].filter((line) => line !== false);
}
