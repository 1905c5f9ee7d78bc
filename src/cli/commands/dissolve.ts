/** `lcm dissolve`: puts what a summary was made from back into its place in the context. */

import type { Command } from "commander";
import { Option } from "commander";
import type { Dissolution, Returning } from "../../core/dissolve.ts";
import { LcmError } from "../../core/errors.ts";
import { messageName } from "../../core/model.ts";
import { summaryOverheadTokens } from "../../core/render-summary.ts";
import { formatCount, formatRange } from "../../core/text.ts";
import { comparison } from "../../show/make-up.ts";
import { cut, facts, plural, table } from "../../show/render.ts";
import { addApplying, addBackupOption, backUpFirst, isApplying, sayNothingChanged, sayUndo } from "./applying.ts";
import { headline } from "./conversations.ts";
import { findSummary, givenSummary } from "./dag.ts";
import { openingOf } from "./messages.ts";
import { conversationWords, examples, paragraph } from "./options.ts";
import { act, exitOk, withLcm } from "./session.ts";
import type { CommandContext, Session } from "./session.ts";

interface DissolveOptions {
  readonly summary?: string;
  readonly summaryId?: string;
  readonly purge?: boolean;
}

export function addDissolve(program: Command, context: CommandContext): void {
  const command = program
    .command("dissolve")
    .summary("put what a summary was made from back into the context")
    .description(
      "Put what a summary was made from back into its place in the context: the messages of a leaf, the summaries of a " +
        "condensed one. The summary itself stays stored and is still found, unless --purge removes it.",
    )
    .argument("<conversation>", conversationWords)
    .option("--summary <id>", "the summary, as `lcm context` and `lcm dag` show it")
    .addOption(new Option("--summary-id <id>", "the same").hideHelp())
    .option("--purge", "remove the summary too, if nothing was made from it");
  addApplying(addBackupOption(command))
    .addHelpText(
      "after",
      examples(
        ["lcm dissolve 3 --summary sum_0123456789abcdef", "what would come back"],
        ["lcm dissolve 3 --summary sum_0123456789abcdef --apply", "put it back"],
      ),
    )
    .addHelpText(
      "after",
      paragraph(
        "A summary below another one is reached from above: dissolve the one that the context shows first. What comes " +
          "back may be folded again by the next compaction.",
      ),
    )
    .action(act(context, dissolveOne));
}

async function dissolveOne(session: Session, command: Command, name: string): Promise<number> {
  const options = command.opts<DissolveOptions>();
  const { purge = false } = options;
  const applying = isApplying(command);
  const given = givenSummary(options);
  if (given === undefined) {
    throw new LcmError("invalid", "it is not said which summary", {
      hint: "--summary ID; `lcm dag CONVERSATION` lists them",
    });
  }
  return await withLcm(session, applying ? "write" : "read", async (lcm) => {
    const conversation = await lcm.find(name);
    const { id } = await findSummary(lcm, given);
    const plan = await lcm.planDissolve({ conversation: conversation.id, summary: id, purge });
    const show = (planned: Dissolution): void => {
      if (!session.json) for (const line of planLines(session, planned)) session.print(line);
    };
    if (!session.json) session.print(headline(session, conversation));
    show(plan);
    if (!applying) {
      if (session.json) session.printJson({ dryRun: true, applied: false, plan });
      else sayNothingChanged(session);
      return exitOk;
    }
    const backup = await backUpFirst(session, command);
    const { plan: applied, ...result } = await lcm.dissolve(plan, (replanned) => {
      if (!session.json) session.note("the conversation changed meanwhile: planned again");
      show(replanned);
    });
    if (session.json) session.printJson({ dryRun: false, applied: true, plan: applied, result, backup });
    else {
      session.print(doneWords(applied));
      sayUndo(session, result.change);
    }
    return exitOk;
  });
}

// ── The plan ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** How wide the names of the facts are, with what separates them from the values. */
const nameColumns = "ordinal shift".length + 2;
const rowsShown = 12;

function planLines(session: Session, plan: Dissolution): readonly string[] {
  const { paint, columns, context } = session;
  const { dissolved, place, run, shifted, tokensBefore, tokensAfter } = plan;
  const { id, depth, tokens, earliestAt, latestAt } = dissolved;
  const range = earliestAt === null || latestAt === null ? [] : [formatRange(earliestAt, latestAt, context.zone)];
  const room = columns - nameColumns;
  const returned = run.reduce((sum, item) => sum + item.tokens, 0);
  return facts(
    [
      [
        "summary",
        [paint.strong(id), paint.depth(depth, `d${depth}`), plural(tokens, "token")].join(" · "),
        ...range,
        ...quoted(dissolved.opening, room),
        place === null
          ? "in no context: nothing returns"
          : `item ${formatCount(place.item)} of ${formatCount(place.of)} in the context`,
      ],
      ...(place === null
        ? []
        : [
            [
              "returns",
              `${countOf(run)}, ${plural(returned, "token")}${around(run)}`,
              ...runTable(session, run, room),
            ] as const,
            [
              "ordinal shift",
              shifted === 0 ? "none: there is room" : `${plural(shifted, "later item moves", "later items move")} up`,
            ] as const,
          ]),
      [plan.purge ? "purge" : "afterwards", ...afterwards(plan)],
      ...(place === null ? [] : [["context", ...comparison(tokensBefore, tokensAfter, room, paint)] as const]),
    ],
    paint,
    session.context.stdout.columns,
  );
}

const quoted = (opening: string, room: number): readonly string[] =>
  opening === "" ? [] : [`"${cut(openingOf({ text: opening }), Math.max(10, room - 2))}"`];

/** Why the context grows by more than the texts do. */
const around = ([first]: readonly Returning[]): string =>
  first?.kind === "summary" ? `, and in a prompt about ${summaryOverheadTokens} around each` : "";

function countOf(run: readonly Returning[]): string {
  const [first] = run;
  return first?.kind === "summary"
    ? `${plural(run.length, "summary", "summaries")} of depth ${first.depth}`
    : plural(run.length, "message");
}

function runTable({ paint }: Session, run: readonly Returning[], room: number): readonly string[] {
  const shown = run.slice(0, rowsShown);
  const rows = shown.map((item) => [
    item.kind === "summary" ? item.id : messageName(item.id),
    item.kind === "summary" ? `d${item.depth}` : item.role,
    formatCount(item.tokens),
    openingOf({ text: item.opening }),
  ]);
  const kindPaint = (cell: string, row: number): string => {
    const item = shown[row];
    return item?.kind === "message" ? paint.role(item.role, cell) : paint.depth(item?.depth ?? 0, cell);
  };
  const lines = table(
    [
      { title: "id", paint: paint.strong },
      { title: shown[0]?.kind === "message" ? "role" : "depth", paint: kindPaint },
      { title: "tokens", align: "right" },
      { title: "begins", flexible: true },
    ],
    rows,
    room,
    paint,
  );
  return run.length > rowsShown ? [...lines, paint.soft(`and ${formatCount(run.length - rowsShown)} more`)] : lines;
}

function afterwards({ purge, derived, carriedBy }: Dissolution): readonly string[] {
  if (purge) return ["the summary itself is removed too: search no longer finds it"];
  const needing = [...derived, ...carriedBy];
  return [
    "the summary stays stored, and search still finds it",
    needing.length === 0 ? "--purge removes it too" : `--purge could not remove it: ${needing.join(", ")} needs it`,
  ];
}

const doneWords = ({ run, place, purge }: Dissolution): string =>
  [...(place === null ? [] : [`dissolved: ${countOf(run)} returned`]), ...(purge ? ["purged"] : [])].join("; ");
