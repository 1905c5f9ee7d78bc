/**
 * Lists every operation of the store port: `reads` change nothing, `writes` run alone.
 * The store and its worker thread use this list. A missing operation, or one with another signature, does not compile.
 */

import type { DatabaseFile } from "../core/model/database-file.ts";
import type { Store } from "../core/model/store.ts";
import { dissolve } from "./maintenance/dissolve.ts";
import { forget, planForget } from "./maintenance/forget.ts";
import { holderOf } from "./search/shared-files.ts";
import { journal } from "./journal/read.ts";
import { recordFile } from "./ledger/files.ts";
import { mapAnswers, saveMapAnswers } from "./ledger/map-answers.ts";
import { endPrompt, noteNumbers, prompts, recordPrompt, summaryCalls } from "./ledger/prompts.ts";
import { grants } from "./ledger/grants.ts";
import { modelCalls } from "./ledger/model-calls.ts";
import { manifest } from "./conversation/subtree.ts";
import { fix, sweepOrphans } from "./maintenance/fix.ts";
import { outlines } from "./conversation/outlines.ts";
import * as read from "./conversation/reads.ts";
import { draft, rewrite, saveDraft } from "./maintenance/rewrite.ts";
import { extents, remove } from "./maintenance/remove.ts";
import type { ReadScripts, Script, StoreMethod, WriteScript, WriteScripts } from "./script.ts";
import { pins } from "./conversation/pins.ts";
import { pin } from "./maintenance/pin.ts";
import { planTransplant, transplant } from "./maintenance/transplant.ts";
import { pastTexts } from "./journal/past-texts.ts";
import { planUndo, undo } from "./journal/undo.ts";
import { engineCheck, integrity, skeleton, status } from "./maintenance/inspect-facts.ts";
import { append } from "./conversation/append.ts";
import { fold } from "./conversation/fold.ts";
import {
  open,
  openSegment,
  openSession,
  setHidden,
  setPromptBudget,
  setSession,
  setTitle,
} from "./conversation/open.ts";
import { dropVectors, pendingVectors, recordEmbedder, saveVectors } from "./search/meaning/vectors.ts";
import { journalGone } from "./journal/record.ts";

/** Methods that need more than rows: content, the search index, the clock or the database file. */
const beyondRows = [
  "search",
  "index",
  "fileContent",
  "fileLines",
  "filePath",
  "saveFile",
  "status",
  "skeleton",
  "planForget",
  "forget",
  "remove",
  "archive",
  "merge",
  "integrity",
  "close",
] as const satisfies readonly StoreMethod[];

export const reads = {
  ...read.reads,
  ...outlines,
  manifest,
  pins,
  holderOf,
  journal,
  planUndo,
  planTransplant,
  draft,
  mapAnswers,
  extents,
  pendingVectors,
  prompts,
  noteNumbers,
  pastTexts,
  summaryCalls,
} as const satisfies ReadScripts;

/** A rewind drops places of lost messages; the journal keeps them, so that the loss is still reported. */
const appendAndJournal: WriteScript<"append"> = function* (deps, id, appended, options) {
  const { gone, ...result } = yield* append(deps, id, appended, options);
  if (gone.length > 0) yield* journalGone(deps, `lost places in conversation ${id}`, { context_items: gone });
  return result;
};

export const writes = {
  open,
  openSegment,
  openSession,
  setTitle,
  setHidden,
  setSession,
  setPromptBudget,
  append: appendAndJournal,
  fold,
  dissolve,
  rewrite,
  pin,
  transplant,
  fix,
  sweepOrphans,
  undo,
  saveDraft,
  saveMapAnswers,
  saveVectors,
  dropVectors,
  recordEmbedder,
  recordPrompt,
  endPrompt,
  ...grants,
  ...modelCalls,
} as const satisfies Required<Omit<WriteScripts, keyof typeof reads | (typeof beyondRows)[number]>>;

/** What these operations do to rows; the store adds the rest. */
export const rowSteps = { status, skeleton, planForget, forget, remove, recordFile, integrity, engineCheck } as const;

export const databaseFileMethods = ["backup"] as const satisfies readonly (keyof DatabaseFile)[];

export const methods = [...Object.keys(reads), ...Object.keys(writes), ...beyondRows] as readonly StoreMethod[];

/** Turns scripts into methods of the port. Each script receives `given` before the arguments of the call. */
export function offer<Name extends StoreMethod>(
  scripts: Readonly<Record<Name, (...args: never[]) => Script<unknown>>>,
  given: readonly unknown[],
  run: <T>(script: () => Script<T>, name: Name, args: readonly unknown[]) => Promise<T>,
): Pick<Store, Name> {
  const methods = Object.entries<(...args: never[]) => Script<unknown>>(scripts).map(([name, script]) => [
    name,
    async (...args: readonly unknown[]) =>
      await run(() => script(...([...given, ...args] as never[])), name as Name, args),
  ]);
  return Object.fromEntries(methods) as Pick<Store, Name>;
}
