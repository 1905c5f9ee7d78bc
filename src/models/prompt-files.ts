/** The prompt templates that hold: an operator's file where there is one, else the built-in text. */

import { join } from "node:path";
import { LcmError } from "../core/base/errors.ts";
import { builtInTemplates, checkTemplate, templateNames } from "../core/prompts/summary.ts";
import type { TemplateName } from "../core/prompts/summary.ts";
import { readIfThere } from "./read-files.ts";

/** Files are `leaf.txt`, `condensed-d1.txt` and so on. Never throws for what is in them, or instead of them. */
export async function loadTemplates(dir: string) {
  /** Where a file cannot be used the built-in text stands, which nobody asked for. */
  const templates: Record<TemplateName, string> = { ...builtInTemplates };
  /** The path of the file, or `built-in`. */
  const sources: Record<TemplateName, string> = { ...builtInTemplates };
  /** Why a file cannot be used. It concerns only whoever needs that template. */
  const problems = new Map<TemplateName, LcmError>();
  for (const name of templateNames) {
    const path = join(dir, `${name}.txt`);
    try {
      const text = await readIfThere(path);
      sources[name] = text === null ? "built-in" : path;
      if (text !== null) checkTemplate(path, text);
      templates[name] = text ?? builtInTemplates[name];
    } catch (error) {
      if (!(error instanceof LcmError)) throw error;
      sources[name] = path;
      problems.set(name, isFolder(error) ? folderInstead(path) : error);
    }
  }
  return { templates, sources, problems };
}

const folderInstead = (path: string): LcmError =>
  new LcmError("invalid", `${path} is a folder, not a file`, { hint: "put a text file in its place, or take it away" });

const isFolder = ({ cause }: LcmError): boolean => cause instanceof Error && "code" in cause && cause.code === "EISDIR";
