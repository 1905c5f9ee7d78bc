/** `lcm prompts`: lists, shows and exports the prompt templates, and renders the exact prompt of a summary. */

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { LcmError } from "../../core/base/errors.ts";
import type { Lcm } from "../../core/lcm.ts";
import { createFoldRun } from "../../core/compaction/fold-run.ts";
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
import { either, list, maybe, object, text, whole } from "./_json.ts";
import { defineCommand, exitFindings, exitOk, withLcm, type PromptFiles, type Session } from "./_session.ts";
import { formatCount, listed, plural } from "../../core/base/format.ts";
import { table } from "../../format/table.ts";
import { harmless } from "../../format/safe-text.ts";

const listJson = object({
  dir: text,
  templates: list(object({ name: text, for: text, source: text, tokens: maybe(whole), problem: maybe(text) })),
});
const templateJson = object({ name: text, source: text, text });
const exportedJson = object({ written: list(text) });
const renderedJson = object({
  template: text,
  depth: whole,
  previousContext: text,
  inputTokens: whole,
  system: text,
  prompt: text,
});

export const promptsCommand = defineCommand({
  name: "prompts",
  json: either(listJson, templateJson, renderedJson, exportedJson),
  summary: "show, customise and try the prompts for summaries",
  description:
    "Show the prompts for summaries. A file leaf.txt, condensed-d1.txt, condensed-d2.txt or condensed-d3.txt in the prompt " +
    "folder replaces the built-in prompt for its depth.",
  options: {
    list: ["--list", "list the templates in use and where each comes from (the default)"],
    show: ["--show <name>", "print one template", templateNames],
    export: ["--export [folder]", "write the built-in templates as files to edit (default: to the prompt folder)"],
    render: ["--render <what>", "print the exact prompt of a summary (by id), or of the next pass of a conversation"],
    force: ["--force", "with --export: overwrite existing files"],
  },
  exclusive: [["list", "show", "export", "render"]],
  examples: [
    ["lcm prompts", "list the templates in use"],
    ["lcm prompts --show leaf", "print the template for leaves"],
    ["lcm prompts --export", "write files to edit into the prompt folder"],
    ["lcm prompts --render sum_0123456789abcdef", "print what the model gets for this summary"],
    ["lcm prompts --render 3", "print what it would get next for conversation 3"],
  ],
  notes: "Exit status 1: the list contains a file that cannot be used.",
  async run(session, options) {
    if (options.force === true && options.export === undefined) {
      throw new LcmError("invalid", "--force needs --export", { hint: "remove --force, or add --export" });
    }
    const files = await session.context.prompts();
    if (options.show !== undefined) show(session, files, options.show);
    else if (options.export !== undefined) exportAll(session, files, options.export, options.force === true);
    else if (options.render !== undefined) await render(session, files, options.render);
    else return listAll(session, files);
    return exitOk;
  },
});

function demand({ problems }: PromptFiles, name: TemplateName): void {
  const problem = problems.get(name);
  if (problem !== undefined) throw problem;
}

function listAll(
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
    printJson(listJson, { dir, templates: rows });
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
      `${basename(source)}${problem === null ? "" : ", unusable"}`,
    ]),
    columns,
    paint,
  );
  for (const line of lines) print(line);
  for (const { message, hint } of problems.values()) {
    note(`${paint.bad("problem:")} ${message}`);
    if (hint !== undefined) note(`${paint.soft("hint:")} ${hint}`);
  }
  note(paint.soft(`files in ${dir} replace the built-in templates; --export writes them there`));
  return status;
}

const templateUses: Readonly<Record<TemplateName, string>> = {
  leaf: "messages → leaf",
  "condensed-d1": "leaves → d1",
  "condensed-d2": "d1 → d2",
  "condensed-d3": "d2 and deeper → d3+",
};

function show({ json, print, printJson }: Session, files: PromptFiles, name: TemplateName): void {
  demand(files, name);
  const { templates, sources } = files;
  if (json) return printJson(templateJson, { name, source: sources[name], text: templates[name] });
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
    throw new LcmError("conflict", `${listed(there)} ${there.length === 1 ? "already exists" : "already exist"}`, {
      hint: "pass --force to overwrite, or --export FOLDER to write elsewhere",
    });
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const { path, text } of files) writeFileSync(path, text);
  if (session.json) return session.printJson(exportedJson, { written: files.map(({ path }) => path) });
  for (const { path } of files) session.print(path);
  session.note(folder === dir ? "edit them; the next summary uses them" : `to use them, move them to ${dir}`);
}

interface Rendered {
  readonly request: CompletionRequest;
  readonly depth: number;
  /** Where the preceding summary in the prompt comes from. */
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
  if (session.json)
    return session.printJson(renderedJson, { template, depth, previousContext, inputTokens, system, prompt });
  const { paint, print, note } = session;
  print(paint.strong("system"));
  print(harmless(system));
  print();
  print(paint.strong("prompt"));
  print(harmless(prompt));
  note(paint.soft(`template ${template}, ${plural(inputTokens, "token")}, previous context: ${previousContext}`));
}

/** A model that records the request it gets instead of answering it. */
function createRecorder(): Model & { readonly recorded: readonly CompletionRequest[] } {
  const recorded: CompletionRequest[] = [];
  return {
    provider: "none",
    name: "recorder",
    recorded,
    async complete(request) {
      recorded.push(request);
      return { kind: "refused", refusal: "cancelled", message: "only the prompt was requested" };
    },
  };
}

async function ofSummary(lcm: Lcm, templates: Templates, id: string): Promise<Rendered> {
  const { store, settings } = lcm;
  const summary = await findSummary(lcm, id);
  const rules = rewriteRules(settings, await lcm.find(String(summary.conversation)));
  const source = await sourceOfSummary(store, summary, { targets: rules, zone: settings.timezone });
  if (source === null) {
    throw new LcmError("invalid", `${id} has no sources: it was carried over from an earlier segment`, {
      hint:
        summary.carriedFrom === null
          ? "check it with `lcm doctor`"
          : `render the original: \`lcm prompts --render ${summary.carriedFrom}\``,
    });
  }
  const recorded = summary.previousContext;
  const previousContext = recorded ?? source.previousContext;
  const recorder = createRecorder();
  const asked = { ...source, previousContext };
  await summarize({ model: recorder, settings, templates }, asked, { onRefusal: "wait" });
  const isThere = previousContext !== null && summary.depth <= 1;
  return {
    request: recordedBy(recorder, `${id} covers too little for a model to summarise`),
    depth: summary.depth,
    previousContext: !isThere ? "none" : recorded === null ? "recomputed" : "recorded",
  };
}

function recordedBy({ recorded }: ReturnType<typeof createRecorder>, otherwise: string): CompletionRequest {
  const [request] = recorded;
  if (request === undefined) throw new LcmError("not_found", otherwise);
  return request;
}

async function ofNextPass(lcm: Lcm, templates: Templates, name: string): Promise<Rendered> {
  const { id } = await lcm.find(name);
  const { passes: planned, due } = await lcm.planCompaction({ conversation: id, mode: "sweep" });
  const settings = { ...lcm.settings, summaryConcurrency: 1 };
  const recorder = createRecorder();
  const deps = { store: lcm.store, settings, templates, model: recorder, leftAlone: new Set<string>() };
  const foldRun = createFoldRun(deps, { conversation: id, onRefusal: "wait" });
  const passes = new Passes({ ...deps, foldRun }, { conversation: id }, due);
  const rules = rulesOf(settings, false, due.budget);
  // The recorder refuses, which ends the passes before anything is folded.
  if ((await passes.foldLeaves(rules, 1)) === null) await passes.condense(rules);
  const request = recordedBy(recorder, `conversation ${id} has nothing to fold`);
  return { request, depth: planned[0]?.depth ?? 0, previousContext: "as it is now" };
}
