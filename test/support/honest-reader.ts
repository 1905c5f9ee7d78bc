/**
 * A model that reads every message it is shown and answers truthfully, by a rule of the test. It understands the prompts of
 * a map and of a thorough answer, and can be made to answer badly.
 */

import type { Completion, CompletionRequest, Model } from "../../src/core/model/store.ts";
import type { Json } from "../../src/core/base/json.ts";
import { estimateTokens } from "../../src/core/base/tokens.ts";

export interface ShownItem {
  readonly key: string;
  readonly text: string;
}

export interface HonestReader extends Model {
  readonly calls: readonly CompletionRequest[];
  /** How often each text was shown. */
  readonly shown: ReadonlyMap<string, number>;
}

/** What it says to a prompt that shows messages; null for its honest answer. */
type Whim = (items: readonly ShownItem[], call: number, request: CompletionRequest) => Completion | string | null;

/** `result` answers about one message, `answer` from the facts. */
export function createHonestReader(
  result: (text: string) => Json,
  {
    whim = () => null,
    answer = answerFromCounts,
  }: { readonly whim?: Whim; readonly answer?: (prompt: string) => string } = {},
): HonestReader {
  const calls: CompletionRequest[] = [];
  const shown = new Map<string, number>();
  return {
    provider: "scripted",
    name: "reader",
    calls,
    shown,
    async complete(request) {
      await Promise.resolve();
      calls.push(request);
      const items = itemsIn(request.prompt);
      if (items.length === 0) return said(request, answer(request.prompt));
      for (const { text } of items) shown.set(text, (shown.get(text) ?? 0) + 1);
      const own =
        whim(items, calls.length, request) ?? items.map((item) => lineFor(item, result(item.text))).join("\n");
      return typeof own === "string" ? said(request, own) : own;
    },
  };
}

export const lineFor = ({ key }: Pick<ShownItem, "key">, result: Json): string => JSON.stringify({ item: key, result });

export const itemsIn = (prompt: string): readonly ShownItem[] =>
  [...prompt.matchAll(/<record_item key="(\w+)">\n([^]*?)\n<\/record_item>/g)].map(([, key = "", text = ""]) => ({
    key,
    text,
  }));

export const said = (request: CompletionRequest, text: string): Completion => ({
  kind: "text",
  text,
  finish: estimateTokens(text) > request.maxOutputTokens ? "length" : "stop",
  inputTokens: estimateTokens(request.system) + estimateTokens(request.prompt),
  outputTokens: estimateTokens(text),
});

/** Repeats the counts it was given, and cites the first facts. */
function answerFromCounts(prompt: string): string {
  const counts = /^Counted: .*$/m.exec(prompt)?.[0] ?? "";
  const cited = [...prompt.matchAll(/\[msg_\d+-\d+\]/g)].slice(0, 3).map(([id]) => id);
  return `${counts} ${cited.join(" ")}`.trim();
}
