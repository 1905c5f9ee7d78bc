/** The ways of searching that are compared. Each maps a question to the keys of messages, best first. */

import { grepTool } from "../../src/agent-tools/grep.ts";
import type { Lcm } from "../../src/core/lcm.ts";
import { messageName } from "../../src/core/model/types.ts";
import type { Question } from "./data.ts";
import { field, list, textOf } from "./fields.ts";
import { createPlainSearch } from "./plain-bm25.ts";
import type { Stored } from "./store.ts";

export interface Way {
  readonly name: string;
  /** Prepares a conversation. */
  readonly open: (stored: Stored) => Search | Promise<Search>;
  /** Whether it can be measured for a question; for example, only where there are rewordings. */
  readonly applies?: (question: Question) => boolean;
}

export interface Search {
  readonly hits: (question: Question) => readonly string[] | Promise<readonly string[]>;
  /** What the tool answers within a number of tokens, or within its own; undefined if there is no tool. */
  readonly shown?: (question: Question, tokenCap?: number) => Promise<Answer>;
}

export interface Answer {
  /** The text that is shown of each message, by key. */
  readonly texts: ReadonlyMap<string, string>;
  /** The keys of messages that are shown whole. */
  readonly whole: ReadonlySet<string>;
  readonly characters: number;
}

export const hitsMax = 50;
export const evidenceTokens = 2_000;

export const plain: Way = {
  name: "plain BM25",
  open({ messages }) {
    const search = createPlainSearch(messages, hitsMax);
    return { hits: ({ question }) => search(question) };
  },
};

/** The tool's default; `asked` adds arguments for a question. */
const byTool = (
  name: string,
  asked: (question: Question) => Record<string, unknown>,
  lcmOf: (stored: Stored) => Lcm = ({ lcm }) => lcm,
): Way => ({
  name,
  open(stored) {
    const { conversation, messages } = stored;
    const lcm = lcmOf(stored);
    const keys = new Map(messages.map(({ id, key }) => [id, key]));
    const names = new Map(messages.map(({ id, key }) => [messageName(id), key]));
    const reach = { kind: "conversation", conversations: [conversation] } as const;
    return {
      async hits(question) {
        const { hits } = await lcm.grep({
          pattern: question.question,
          mode: "full_text",
          reach,
          limit: hitsMax,
          ...asked(question),
        });
        return hits.map((hit) => (hit.kind === "message" ? (keys.get(hit.id) ?? "") : ""));
      },
      async shown(question, tokenCap) {
        const cap = tokenCap === undefined ? {} : { tokenCap };
        const args = { pattern: question.question, mode: "full_text", ...cap, ...asked(question) };
        const { details, text, isError } = await grepTool.run(args, { lcm, reader: { conversation, policy: "own" } });
        if (isError) throw new Error(text);
        return { ...shownIn(details, names), characters: text.length };
      },
    };
  },
});

function shownIn(details: unknown, names: ReadonlyMap<string, string>): Omit<Answer, "characters"> {
  const shown = new Map<string, string>();
  const whole = new Set<string>();
  for (const part of [...list(field(details, "passages")), ...list(field(details, "matches"))]) {
    const key = names.get(textOf(part, "id"));
    const text = textOf(part, "text") || textOf(part, "snippet");
    if (key === undefined) continue;
    shown.set(key, `${shown.get(key) ?? ""}\n${text}`);
    if (field(part, "isWhole") === true) whole.add(key);
  }
  return { texts: shown, whole };
}

export const ours = byTool("ours", () => ({}));

export const oursWithAlso: Way = {
  ...byTool("ours with also", ({ also }) => ({ also })),
  applies: ({ also }) => also.length > 0,
};

const meantOf = ({ meant }: Stored): Lcm => {
  if (meant === null) throw new Error("no embedder");
  return meant;
};

export const oursWithMeaning = byTool("ours with meaning", () => ({}), meantOf);

export const allTogether: Way = {
  ...byTool("all together", ({ also }) => ({ also }), meantOf),
  applies: ({ also }) => also.length > 0,
};
