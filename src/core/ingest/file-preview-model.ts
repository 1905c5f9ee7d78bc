/** Describes a large file with a model, outside of turns. */

import { readAnswer } from "../model-calls/read-answer.ts";
import { previewFile } from "./file-preview.ts";
import type { MoveOptions } from "./large-content.ts";
import type { Model } from "../model/store.ts";
import { completeWithin } from "../model-calls/metering.ts";
import { explorationPrompt } from "../prompts/file.ts";

const targetTokens = 200;
/** From each end of the file. */
const sampleCharacters = 12_000;

/** Empty if the model refuses or is late, in which case the built-in preview is used. Each file has its own deadline. */
export const describeWith =
  (model: Model, deadline: () => AbortSignal): NonNullable<MoveOptions["explore"]> =>
  async (content, about) => {
    const sample =
      content.length <= 2 * sampleCharacters
        ? content
        : `${content.slice(0, sampleCharacters)}\n…\n${content.slice(-sampleCharacters)}`.toWellFormed();
    const facts = previewFile(content, about);
    const completion = await completeWithin(model, {
      purpose: "file",
      conversation: null,
      ...explorationPrompt({ ...about, facts, sample, targetTokens }),
      temperature: 0.2,
      maxOutputTokens: 3 * targetTokens,
      signal: deadline(),
    });
    return completion.kind === "text" && completion.finish !== "length" ? readAnswer(completion.text) : "";
  };
