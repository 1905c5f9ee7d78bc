/** `lcm transplant`: copies what one conversation's context knows in front of another's, with all that lies below it. */

import type { Command } from "commander";
import type { Conversation } from "../../core/model.ts";
import { formatCount } from "../../core/text.ts";
import type { Transplantation } from "../../core/transplant.ts";
import { cut, oneLine, padEnd, padStart, plural } from "../../show/render.ts";
import { addApplying, addBackupOption, backUpFirst, isApplying, sayNothingChanged, sayUndo } from "./applying.ts";
import { openingOf } from "./messages.ts";
import { examples, paragraph } from "./options.ts";
import { act, exitOk, indexAll, withLcm } from "./session.ts";
import type { CommandContext, Session } from "./session.ts";

export function addTransplant(program: Command, context: CommandContext): void {
  const command = program
    .command("transplant")
    .summary("copy the summaries of one conversation into another")
    .description(
      "Copy the summaries of one conversation's context, and everything below them down to the messages, in front of " +
        "another's context. The source stays as it is, and the copies are the target's own.",
    )
    .argument("<source>", "the conversation to copy from: its number, session key or session id")
    .argument("<target>", "the conversation to copy into");
  addApplying(addBackupOption(command))
    .addHelpText(
      "after",
      examples(
        ["lcm transplant 553 642", "what would be copied"],
        ["lcm transplant 553 642 --apply", "copy it"],
        ["lcm transplant agent:main:main agent:main:work --apply", "by session key: their newest segments"],
      ),
    )
    .addHelpText(
      "after",
      paragraph(
        "Messages of the source that are not under a summary are not copied; `lcm compact` folds them first. What the " +
          "target holds already is not copied again (exit status 4).",
      ),
    )
    .action(act(context, transplantOne));
}

async function transplantOne(session: Session, command: Command, from: string, into: string): Promise<number> {
  const applying = isApplying(command);
  return await withLcm(session, applying ? "write" : "read", async (lcm) => {
    const [source, target] = [await lcm.find(from), await lcm.find(into)];
    const plan = await lcm.planTransplant(source.id, target.id);
    const show = (planned: Transplantation): void => {
      if (!session.json) for (const line of planLines(session, planned, source, target)) session.print(line);
    };
    show(plan);
    if (!applying || plan.summaries.length === 0) {
      if (session.json) session.printJson({ dryRun: !applying, applied: false, plan });
      else if (plan.summaries.length > 0) sayNothingChanged(session);
      return exitOk;
    }
    const backup = await backUpFirst(session, command);
    const done = await lcm.transplant(plan, (replanned) => {
      if (!session.json) session.note(`conversation ${source.id} changed meanwhile: planned again`);
      show(replanned);
    });
    await indexAll(session, lcm);
    if (done === null) {
      if (session.json) session.printJson({ dryRun: false, applied: false, plan, backup });
      return exitOk;
    }
    const { plan: applied, ...result } = done;
    if (session.json) session.printJson({ dryRun: false, applied: true, plan: applied, result, backup });
    else {
      const { contextItems, summaries, messages } = result;
      const copied = `${plural(summaries, "summary", "summaries")} and ${plural(messages, "message")}`;
      session.print(`Copied ${copied}; ${plural(contextItems, "item")} prepended to conversation ${target.id}.`);
      sayUndo(session, result.change);
    }
    return exitOk;
  });
}

// ── The plan ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const rowsShown = 30;

function planLines(
  session: Session,
  plan: Transplantation,
  source: Conversation,
  target: Conversation,
): readonly string[] {
  const { paint } = session;
  const { shown, depths, messages, targetContext, tokensBefore, tokensAfter } = plan;
  const title = (text: string): string => paint.strong(text);
  const ends = [
    title(`Transplant: conversation ${source.id} → conversation ${target.id}`),
    ...[["from", source] as const, ["into", target] as const].map(([word, { title: name, sessionKey, sessionId }]) =>
      paint.soft(cut(`  ${word} ${oneLine(name ?? sessionKey ?? sessionId)}`, session.columns)),
    ),
    "",
  ];
  if (shown.length === 0) {
    return [
      ...ends,
      `Nothing to transplant: the context of conversation ${source.id} has no summaries.`,
      session.typed(`\`lcm compact ${source.id}\` folds its messages into some.`),
    ];
  }
  const all = depths.reduce((sum, { summaries }) => sum + summaries, 0);
  const { items, summaries, messages: raw } = targetContext;
  const depthWidth = Math.max(...depths.map(({ summaries: count }) => formatCount(count).length));
  return [
    ...ends,
    title(`Source context summaries (${formatCount(shown.length)}):`),
    ...shownLines(session, plan),
    "",
    title(
      `Full DAG to copy: ${plural(all, "summary", "summaries")} ` +
        `(${formatCount(shown.length)} context + ${plural(all - shown.length, "ancestor")})`,
    ),
    ...depths.map(
      ({ depth, summaries: count }) =>
        `  d${depth}: ${padStart(formatCount(count), depthWidth)} ${kindWords(depth, count)}`,
    ),
    `  and the ${plural(messages, "message")} below them`,
    "",
    title(`Target current context (${plural(items, "item")}):`),
    `  ${plural(summaries, "summary", "summaries")} + ${plural(raw, "message")}`,
    "",
    title("After transplant:"),
    `  ${plural(shown.length, "new context item")} prepended`,
    `  ${plural(all, "summary", "summaries")} copied (new IDs, owned by conversation ${target.id})`,
    `  ${plural(messages, "message")} copied, each once`,
    ...(source.totals.contextMessages === 0 ? [] : [leftBehind(source)]),
    `  Estimated token overhead in context: ~${plural(tokensAfter - tokensBefore, "token")} ` +
      paint.soft(`(${formatCount(tokensBefore)} → ${formatCount(tokensAfter)})`),
    "",
  ];
}

/** Only summaries are copied, and what they stand for. */
const leftBehind = ({ id, totals }: Conversation): string =>
  `  ${plural(totals.contextMessages, "newest message")} of conversation ${id} not copied: no summary stands for ` +
  `${totals.contextMessages === 1 ? "it" : "them"} yet`;

const kindWords = (depth: number, count: number): string => (depth > 0 ? "condensed" : count === 1 ? "leaf" : "leaves");

function shownLines({ paint, columns }: Session, { shown }: Transplantation): readonly string[] {
  const rows = shown.slice(0, rowsShown);
  const tokensWidth = Math.max(...rows.map(({ tokens }) => formatCount(tokens).length + 1));
  const depthWidth = Math.max(...rows.map(({ depth }) => `d${depth}`.length));
  const lines = rows.map(({ id, depth, tokens, opening }) => {
    const lead = [
      `  ${id}`,
      padEnd(depth === 0 ? "leaf" : "condensed", "condensed".length),
      paint.depth(depth, padEnd(`d${depth}`, depthWidth)),
      padStart(`${formatCount(tokens)}t`, tokensWidth),
    ];
    const room = columns - (2 + 20 + 2 + "condensed".length + 2 + depthWidth + 2 + tokensWidth + 2) - 2;
    return `${lead.join("  ")}  ${paint.soft(`"${cut(openingOf({ text: opening }), Math.max(10, room))}"`)}`;
  });
  return shown.length > rowsShown ? [...lines, `  and ${formatCount(shown.length - rowsShown)} more`] : lines;
}
