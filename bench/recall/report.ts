/** Writes what was measured: a table of all data sets, one per data set by category, and where a way is below plain BM25. */

import { table } from "../table.ts";
import { answerTokens, cutoffs, type Figures, type Measured } from "./measure.ts";
import { evidenceTokens } from "./ways.ts";
import { settings } from "./store.ts";

const shown = (share: number | null): string => (share === null ? "–" : (share * 100).toFixed(1));
const valuesOf = ({ recall, mrr, evidence }: Figures): readonly (number | null)[] => [...recall, mrr, evidence];
const names = [...cutoffs.map((k) => `@${k}`), "MRR", "evidence"];

export function report(measured: readonly Measured[], ways: readonly string[], baseline: string): readonly string[] {
  const rows = measured.flatMap(({ set, figures }) => rowsOf(set, figures.get("all"), ways));
  return [
    "## All data sets",
    table(["data set", "way", "questions", ...names], rows),
    ...belowBaseline(measured, ways, baseline),
    "## What an answer shows",
    `Evidence within so many tokens. Of the tool's own answer, without a number of tokens: the share of the answers of which a message is shown whole, and its mean length in characters.`,
    table(
      ["data set", "way", ...[...answerTokens, evidenceTokens].map(String), "whole", "characters"],
      measured.flatMap(({ set, figures }) => answerRows(set, figures.get("all"), ways)),
    ),
    ...measured.flatMap(({ set, figures }) => [
      `## ${set}, by kind of question`,
      table(
        ["kind", "way", "questions", ...names],
        [...figures].flatMap(([category, byWay]) => (category === "all" ? [] : rowsOf(category, byWay, ways))),
      ),
    ]),
  ];
}

function answerRows(
  label: string,
  byWay: ReadonlyMap<string, Figures> | undefined,
  ways: readonly string[],
): readonly (readonly string[])[] {
  return ways.flatMap((way) => {
    const figures = byWay?.get(way);
    if (figures === undefined || figures.evidence === null) return [];
    const { evidenceWithin, evidence, whole, characters } = figures;
    const length = Math.round(characters).toLocaleString("en");
    return [[label, way, ...[...evidenceWithin, evidence, whole].map(shown), length]];
  });
}

function rowsOf(
  label: string,
  byWay: ReadonlyMap<string, Figures> | undefined,
  ways: readonly string[],
): readonly (readonly string[])[] {
  return ways.flatMap((way) => {
    const figures = byWay?.get(way);
    return figures === undefined ? [] : [[label, way, String(figures.questions), ...valuesOf(figures).map(shown)]];
  });
}

/** Every figure of a data set or kind of question that is below the baseline's. */
function belowBaseline(measured: readonly Measured[], ways: readonly string[], baseline: string): readonly string[] {
  const lines = measured.flatMap(({ set, figures }) =>
    [...figures].flatMap(([category, byWay]) => {
      const base = byWay.get(baseline);
      return ways.flatMap((way) => {
        const found = way === baseline ? undefined : byWay.get(way);
        if (base === undefined || found === undefined) return [];
        const baseValues = valuesOf(base);
        const worse = valuesOf(found).flatMap((value, at) => {
          const least = baseValues[at] ?? null;
          return value === null || least === null || value >= least - 1e-9
            ? []
            : [`${names[at]} ${shown(value)} against ${shown(least)}`];
        });
        const where = category === "all" ? `**${set}**` : `${set}, ${category} (${found.questions})`;
        return worse.length === 0 ? [] : [`- ${where}, ${way}: ${worse.join(", ")}`];
      });
    }),
  );
  return lines.length === 0
    ? [`No figure of any data set or kind of question is below ${baseline}.`]
    : [`Below ${baseline}:`, lines.join("\n")];
}

export const toJson = (measured: readonly Measured[]): unknown =>
  measured.map(({ set, figures }) => ({
    set,
    figures: Object.fromEntries([...figures].map(([category, byWay]) => [category, Object.fromEntries(byWay)])),
  }));

export function page(parts: readonly string[]): string {
  const { leafChunkTokens, leafTargetTokens } = settings;
  return `# Retrieval

How well search finds the messages that answer a question. Written by \`npm run bench:recall -- --doc\`. Questions are searched as they
are, each in its own conversation. The figures are percentages:

- **@5, @10, @20** (recall): the share of the answers found among the first 5, 10 and 20 hits. An answer is a message, or, where
  several messages say the same, any of them.
- **MRR**: the mean reciprocal rank of the first hit that answers.
- **evidence**: the share of the answers of which \`lcm_grep\` shows at least 40 characters of the message's own text within
  ${evidenceTokens.toLocaleString("en")} tokens.

The ways of searching: *plain BM25* is FTS5's own ranking of the same words over the same texts. *Ours* is \`lcm_grep\` with the question.
*Ours with also* adds three rewordings of each question, written by a model that saw only the questions; it may know LoCoMo and BEAM, which are
public, so read the gain there as an upper bound. ${meaningWords(parts)}

The data sets: LoCoMo (two people chatting), BEAM (a person working with an assistant), a real session of a coding agent, and the demo.
Only the demo and its rewordings are part of the project. The ranking was chosen with these conversations in view, so expect less
elsewhere: [decision 0040](decisions/0040-ranking-for-agents.md) has an estimate for conversations that were left out. Summaries were made without a model: each leaf has about ${leafTargetTokens} tokens and
covers up to ${leafChunkTokens.toLocaleString("en")} tokens of messages. The ranking rules are in [src/store/search/rank.ts](../src/store/search/rank.ts).

${parts.join("\n\n")}
`;
}

const meaningWords = (parts: readonly string[]): string =>
  parts.some((part) => part.includes("ours with meaning"))
    ? "*Ours with meaning* also compares\nembeddings, made by the local model that `--embedder` names; *all together* has both."
    : "Search by meaning was not measured in\nthis run (`--embedder` names a model); [decision 0042](decisions/0042-meaning-is-optional.md) has earlier figures.";
