/**
 * `lcm prompts`: what a model is told when it writes a summary. Which templates hold, what one says, files to start from,
 * and the very prompt that a summary was or would be asked for with.
 */

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { LcmError } from "../../core/base/errors.ts";
import type { Lcm } from "../../core/lcm.ts";
import { Passes } from "../../core/compaction/passes.ts";
import { rulesOf } from "../../core/compaction/choose-runs.ts";
import type { CompletionRequest, Model } from "../../core/model/store.ts";
import { builtInTemplates, templateNameOf, templateNames } from "../../core/prompts/summary.ts";
import type { TemplateName, Templates } from "../../core/prompts/summary.ts";
import { rewriteRules } from "../../core/maintenance/rewrite.ts";
import { summarize } from "../../core/summarize/summarize.ts";
import { sourceOfSummary } from "../../core/summarize/source.ts";
import { estimateTokens } from "../../core/base/tokens.ts";
import { findSummary } from "./dag.ts";
import { defineCommand, exitFindings, exitOk, withLcm } from "./_session.ts";
import type { PromptFiles, Session } from "./_session.ts";
import { formatCount, listed, plural } from "../../core/base/format.ts";
import { table } from "../../format/table.ts";
import { harmless } from "../../format/safe-text.ts";

export const promptsCommand = defineCommand({
  name: "prompts",
  summary: "show, change and try the prompts that summaries are written with",
  description:
    "Show the prompts that summaries are written with. A file leaf.txt, condensed-d1.txt, condensed-d2.txt or " +
    "condensed-d3.txt in the prompt folder replaces the built-in one for its depth.",
  options: {
    list: ["--list", "which templates hold and where each comes from; the default"],
    show: ["--show <name>", "what one of them says", templateNames],
    export: ["--export [folder]", "write the built-in ones as files to start from (default: the prompt folder)"],
    render: ["--render <what>", "the very prompt of a summary (its id), or of the next pass of a conversation"],
    force: ["--force", "with --export: replace files that are there"],
  },
  exclusive: [["list", "show", "export", "render"]],
  examples: [
    ["lcm prompts", "which templates hold"],
    ["lcm prompts --show leaf", "what the one for leaves says"],
    ["lcm prompts --export", "files to edit, in the prompt folder"],
    ["lcm prompts --render sum_0123456789abcdef", "what the model is given for this summary"],
    ["lcm prompts --render 3", "what it would be given next in conversation 3"],
  ],
  notes: "Exit status 1 of the list means that a file cannot be used; it is named.",
  async run(session, options) {
    if (options.force === true && options.export === undefined) {
      throw new LcmError("invalid", "--force goes with --export", { hint: "leave it out" });
    }
    const files = await session.context.prompts();
    if (options.show !== undefined) show(session, files, options.show);
    else if (options.export !== undefined) exportAll(session, files, options.export, options.force === true);
    else if (options.render !== undefined) await render(session, files, options.render);
    else return list(session, files);
    return exitOk;
  },
});

/** Whoever needs a template that cannot be used is told why. */
function demand({ problems }: PromptFiles, name: TemplateName): void {
  const problem = problems.get(name);
  if (problem !== undefined) throw problem;
}

// ── The templates ────────────────────────────────────────────────────────────────────────────────────────────────────

function list(
  { json, print, printJson, note, paint, columns }: Session,
  { dir, templates, sources, problems }: PromptFiles,
): number {
  const rows = templateNames.map((name) => ({
    name,
    for: templateUses[name],
    source: sources[name],
    tokens: problems.has(name) ? null : estimateTokens(templates[name]),
    problem: problems.get(name)?.message ?? null,
  }));
  const status = problems.size === 0 ? exitOk : exitFindings;
  if (json) {
    printJson({ dir, templates: rows });
    return status;
  }
  const paintSource = (cell: string, at: number): string => {
    const { source, problem } = rows[at] ?? {};
    return typeof problem === "string" ? paint.bad(cell) : source === "built-in" ? paint.soft(cell) : cell;
  };
  const lines = table(
    [
      { title: "template", paint: paint.strong },
      { title: "tokens", align: "right" },
      { title: "for" },
      { title: "from", paint: paintSource },
    ],
    rows.map(({ name, tokens, for: use, source, problem }) => [
      name,
      tokens === null ? "–" : formatCount(tokens),
      use,
      `${basename(source)}${problem === null ? "" : ", cannot be used"}`,
    ]),
    columns,
    paint,
  );
  for (const line of lines) print(line);
  for (const { message, hint } of problems.values()) {
    note(`${paint.bad("problem:")} ${message}`);
    if (hint !== undefined) note(`${paint.soft("hint:")} ${hint}`);
  }
  note(paint.soft(`files in ${dir} replace the built-in ones; --export writes them there to start from`));
  return status;
}

/** Of what, and what becomes of it. */
const templateUses: Readonly<Record<TemplateName, string>> = {
  leaf: "messages → leaf",
  "condensed-d1": "leaves → d1",
  "condensed-d2": "d1 → d2",
  "condensed-d3": "d2 and deeper → d3+",
};

function show({ json, print, printJson }: Session, files: PromptFiles, name: TemplateName): void {
  demand(files, name);
  const { templates, sources } = files;
  if (json) return printJson({ name, source: sources[name], text: templates[name] });
  print(harmless(templates[name]).trimEnd());
}

function exportAll(session: Session, { dir }: PromptFiles, to: string | true, force: boolean): void {
  const folder = to === true ? dir : resolve(to);
  const files = templateNames.map((name) => ({
    path: join(folder, `${name}.txt`),
    text: `${builtInTemplates[name]}\n`,
  }));
  const there = files.map(({ path }) => path).filter((path) => existsSync(path));
  if (there.length > 0 && !force) {
    throw new LcmError("conflict", `${listed(there)} ${there.length === 1 ? "exists" : "exist"} already`, {
      hint: "--force replaces them; --export FOLDER writes elsewhere",
    });
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const { path, text } of files) writeFileSync(path, text);
  if (session.json) return session.printJson({ written: files.map(({ path }) => path) });
  for (const { path } of files) session.print(path);
  session.note(
    folder === dir ? "edit them; the next summary is written with them" : `they hold once they lie in ${dir}`,
  );
}

// ── The very prompt ──────────────────────────────────────────────────────────────────────────────────────────────────

interface Rendered {
  readonly request: CompletionRequest;
  readonly depth: number;
  /** Where the text before it comes from. */
  readonly previousContext: "recorded" | "recomputed" | "none" | "as it is now";
}

async function render(session: Session, files: PromptFiles, what: string): Promise<void> {
  const { templates } = files;
  const { request, depth, previousContext } = await withLcm(session, "read", async (lcm) =>
    what.startsWith("sum_") ? await ofSummary(lcm, templates, what) : await ofNextPass(lcm, templates, what),
  );
  const { system, prompt } = request;
  const inputTokens = estimateTokens(system) + estimateTokens(prompt);
  const template = templateNameOf(depth);
  demand(files, template);
  if (session.json) return session.printJson({ template, depth, previousContext, inputTokens, system, prompt });
  const { paint, print, note } = session;
  print(paint.strong("system"));
  print(harmless(system));
  print();
  print(paint.strong("prompt"));
  print(harmless(prompt));
  note(paint.soft(`template ${template}, ${plural(inputTokens, "token")}, previous context: ${previousContext}`));
}

/** Takes the prompt down instead of answering it: what it writes down is what any other model would get. */
function createListener(): Model & { readonly heard: readonly CompletionRequest[] } {
  const heard: CompletionRequest[] = [];
  return {
    provider: "none",
    name: "listener",
    heard,
    async complete(request) {
      heard.push(request);
      return { kind: "refused", refusal: "cancelled", message: "only the prompt was asked for" };
    },
  };
}

async function ofSummary(lcm: Lcm, templates: Templates, id: string): Promise<Rendered> {
  const { store, settings } = lcm;
  const summary = await findSummary(lcm, id);
  const rules = rewriteRules(settings, await lcm.find(String(summary.conversation)));
  const source = await sourceOfSummary(store, summary, { targets: rules, zone: settings.timezone });
  if (source === null) {
    throw new LcmError("invalid", `${id} was not written from sources: it was carried over`, {
      hint:
        summary.carriedFrom === null
          ? "`lcm doctor` says more"
          : `render ${summary.carriedFrom}, which it was carried from`,
    });
  }
  const recorded = summary.previousContext;
  const previousContext = recorded ?? source.previousContext;
  const listener = createListener();
  const asked = { ...source, previousContext };
  await summarize({ model: listener, settings, templates }, asked, { onRefusal: "wait" });
  const isThere = previousContext !== null && summary.depth <= 1;
  return {
    request: mustHear(listener.heard, `${id} stands for too little to ask a model about it`),
    depth: summary.depth,
    previousContext: !isThere ? "none" : recorded === null ? "recomputed" : "recorded",
  };
}

function mustHear(heard: readonly CompletionRequest[], otherwise: string): CompletionRequest {
  const [request] = heard;
  if (request === undefined) throw new LcmError("not_found", otherwise);
  return request;
}

async function ofNextPass(lcm: Lcm, templates: Templates, name: string): Promise<Rendered> {
  const { id } = await lcm.find(name);
  const { passes: planned, due } = await lcm.planCompaction({ conversation: id, mode: "sweep" });
  const settings = { ...lcm.settings, summaryConcurrency: 1 };
  const listener = createListener();
  const deps = { store: lcm.store, settings, templates, model: listener, leftAlone: new Set<string>() };
  const passes = new Passes(deps, { conversation: id, onRefusal: "wait" }, due);
  const rules = rulesOf(settings, false, due.budget);
  // The first refusal ends them, so nothing is folded.
  if ((await passes.foldLeaves(rules, 1)) === null) await passes.condense(rules);
  const request = mustHear(listener.heard, `there is nothing to fold in conversation ${id}`);
  return { request, depth: planned[0]?.depth ?? 0, previousContext: "as it is now" };
}
