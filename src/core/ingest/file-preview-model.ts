/** What a large file is, told by a model: for whoever has one and the patience, never in the middle of a turn. */

import { readAnswer } from "../model-calls/read-answer.ts";
import { explore } from "./file-preview.ts";
import type { MoveOptions } from "./large-content.ts";
import type { Model } from "../model/store.ts";
import { completeWithin } from "../model-calls/metering.ts";
import { explorationPrompt } from "../prompts/file.ts";

const targetTokens = 200;
/** Of each end of the file. */
const sampleCharacters = 12_000;

/**
 * Says nothing when the model refuses, has nothing to say or is not done in time; then the built-in exploration stands.
 * `deadline` gives each file its own.
 */
export const describeWith =
  (model: Model, deadline: () => AbortSignal): NonNullable<MoveOptions["explore"]> =>
  async (content, about) => {
    const sample =
      content.length <= 2 * sampleCharacters
        ? content
        : `${content.slice(0, sampleCharacters)}\n…\n${content.slice(-sampleCharacters)}`.toWellFormed();
    const facts = explore(content, about);
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
