/** Finds, checks and watches the model that `compact`, `rewrite` and `repair` write summaries with. */

import { LcmError } from "../../core/base/errors.ts";
import type { Settings } from "../../core/model/settings.ts";
import type { TemplateName } from "../../core/prompts/summary.ts";
import type { NamedModel } from "../../format/model.ts";
import { oneLine } from "../../format/safe-text.ts";
import { watchModel, type Watched } from "../../format/waiting.ts";
import { exitUnavailable } from "../failure.ts";
import type { ModelOptions, PromptFiles, Session, Summariser } from "./_session.ts";

export interface SummaryWriter {
  readonly summariser: Summariser | null;
  /** As a plan shows it. */
  readonly model: NamedModel | null;
  /** Null if no model will be called. */
  readonly watched: Watched | null;
}

/** `flags` is null for `--no-model`. */
export async function findWriter(
  { context }: Session,
  flags: ModelOptions | null,
  settings: Settings,
  isCalled: boolean,
): Promise<SummaryWriter> {
  const summariser = flags === null ? null : await context.summariser(flags);
  if (summariser === null) return { summariser, model: null, watched: null };
  const watched = isCalled ? watchModel(await summariser.create(settings), settings.summaryTimeoutSeconds) : null;
  const { name, from } = summariser;
  return { summariser, model: { name, from, problem: await summariser.check() }, watched };
}

export function demandModel({ model }: SummaryWriter, hint: string): void {
  const problem = model?.problem ?? null;
  if (problem !== null) throw new LcmError("unavailable", problem, { hint });
}

export function demandTemplates({ problems }: PromptFiles, isUsed: (name: TemplateName) => boolean): void {
  for (const [name, problem] of problems) if (isUsed(name)) throw problem;
}

/** `kept`: what remains after Ctrl-C. */
export function noteInterruptible({ context, json, note, paint }: Session, kept: string): void {
  if (!json && context.stderr.isTerminal) note(paint.soft(`press Ctrl-C to stop; ${kept}`));
}

/** Ends a command whose work stopped early, after its results were shown. The message may quote a provider. */
export function endUnavailable({ note, paint }: Session, message: string, hint: string): number {
  note(`${paint.bad("error:")} ${oneLine(message)}`);
  note(`${paint.soft("hint:")} ${hint}`);
  return exitUnavailable;
}
