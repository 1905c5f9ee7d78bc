/** Loads the prompt templates: the user's file if there is one, else the built-in text. */

import { join } from "node:path";
import { LcmError } from "../core/base/errors.ts";
import { builtInTemplates, checkTemplate, templateNames, type TemplateName } from "../core/prompts/summary.ts";
import { readIfThere } from "./read-files.ts";

/** Files are `leaf.txt`, `condensed-d1.txt` and so on. Reports bad files as problems instead of throwing. */
export async function loadTemplates(dir: string) {
  /** Built-in where a file cannot be used. */
  const templates: Record<TemplateName, string> = { ...builtInTemplates };
  /** The path of the file, or `built-in`. */
  const sources: Record<TemplateName, string> = { ...builtInTemplates };
  /** Why a file cannot be used. Only work that needs the template fails. */
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
  new LcmError("invalid", `${path} is a folder, not a file`, { hint: "replace it with a text file, or remove it" });

const isFolder = ({ cause }: LcmError): boolean => cause instanceof Error && "code" in cause && cause.code === "EISDIR";
