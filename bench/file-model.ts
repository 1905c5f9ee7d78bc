/**
 * A language model that is asked through files: `requests/<hash>.txt` holds a request, and whoever plays the model writes
 * `answers/<hash>.txt`. The hash is that of the request, so a request is asked once, however often it is made.
 */

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { formatCount } from "../src/core/base/format.ts";
import { estimateTokens } from "../src/core/base/tokens.ts";
import type { Completion, CompletionRequest, Model } from "../src/core/model/store.ts";

/** One call, and what became of its answer. */
export interface FileCall {
  readonly hash: string;
  readonly purpose: CompletionRequest["purpose"];
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** `accepted (normal)`, or `refused: …` with the summariser's reason. */
  verdict: string;
}

export interface FileModel extends Model {
  readonly calls: readonly FileCall[];
}

const pollMs = 200;
/** A file that changed more recently may still be written to. */
const settledMs = 300;

export function createFileModel(folder: string, note: (line: string) => void): FileModel {
  const calls: FileCall[] = [];
  mkdirSync(join(folder, "requests"), { recursive: true });
  mkdirSync(join(folder, "answers"), { recursive: true });
  return {
    provider: "files",
    name: "any",
    calls,
    async complete(request) {
      const asked = textOfRequest(request);
      const hash = createHash("sha256").update(asked).digest("hex").slice(0, 16);
      const answerPath = join(folder, "answers", `${hash}.txt`);
      const inputTokens = estimateTokens(request.system) + estimateTokens(request.prompt);
      if (!isSettled(answerPath)) {
        const requestPath = join(folder, "requests", `${hash}.txt`);
        writeFileSync(requestPath, asked);
        note(`waiting for ${answerPath}, the answer to ${requestPath} (${formatCount(inputTokens)} tokens)`);
      }
      while (!isSettled(answerPath)) {
        if (request.signal?.aborted === true) return cancelled;
        await sleep(pollMs);
      }
      const text = readFileSync(answerPath, "utf8");
      const { purpose } = request;
      const call: FileCall = { hash, purpose, inputTokens, outputTokens: estimateTokens(text), verdict: "not read" };
      calls.push(call);
      const { outputTokens } = call;
      return {
        kind: "text",
        text,
        finish: "stop",
        inputTokens,
        outputTokens,
        onRead({ level, reason }) {
          call.verdict = reason === null ? `accepted (${level})` : `refused: ${reason}`;
        },
      };
    },
  };
}

const cancelled: Completion = {
  kind: "refused",
  refusal: "cancelled",
  message: "stopped before an answer was written",
};

const textOfRequest = ({ system, prompt, maxOutputTokens, temperature }: CompletionRequest): string =>
  `[system]\n${system}\n\n[prompt]\n${prompt}\n\n[limits]\nat most ${maxOutputTokens} tokens of output, temperature ${temperature}\n`;

function isSettled(path: string): boolean {
  const changedMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  return changedMs !== undefined && Date.now() - changedMs >= settledMs;
}
