/** The prompt templates that hold: an operator's file where there is one, else the built-in text. */

import { join } from "node:path";
import { builtInTemplates, checkTemplate, templateNames } from "../core/prompts.ts";
import type { TemplateName, Templates } from "../core/prompts.ts";
import { readIfThere } from "./reading.ts";

export interface LoadedTemplates {
  readonly templates: Templates;
  /** The path of the file, or `built-in`. */
  readonly sources: Readonly<Record<TemplateName, string>>;
}

/**
 * Files are `leaf.txt`, `condensed-d1.txt` and so on. Throws `invalid` for a placeholder that does not exist, and
 * `denied` for a file that cannot be read.
 */
export async function loadTemplates(dir: string): Promise<LoadedTemplates> {
  const templates: Record<TemplateName, string> = { ...builtInTemplates };
  const sources: Record<TemplateName, string> = { ...builtInTemplates };
  for (const name of templateNames) {
    const path = join(dir, `${name}.txt`);
    const text = await readIfThere(path);
    if (text !== null) checkTemplate(path, text);
    templates[name] = text ?? builtInTemplates[name];
    sources[name] = text === null ? "built-in" : path;
  }
  return { templates, sources };
}
