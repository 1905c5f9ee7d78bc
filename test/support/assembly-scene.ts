/** A conversation to assemble prompts from, for tests. */

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { makeScratch } from "./scratch.ts";
import { assemble } from "../../src/core/assembly/assemble.ts";
import type { Assembly } from "../../src/core/assembly/assemble.ts";
import { messageToStore } from "../../src/core/messages/codec.ts";
import type { HostMessage } from "../../src/core/messages/codec.ts";
import type { ConversationId, SummaryId } from "../../src/core/model/types.ts";
import type { Store } from "../../src/core/model/store.ts";
import { estimateTokens } from "../../src/core/base/tokens.ts";
import { msToTimestamp } from "../../src/core/base/time.ts";

/** One conversation in a real database, with shorthands for the tests. */
export interface Scene {
  readonly store: Store;
  readonly conversation: ConversationId;
  readonly say: (...messages: readonly HostMessage[]) => Promise<void>;
  /** Folds context items by index. */
  readonly fold: (from: number, to: number, text?: string) => Promise<SummaryId>;
  readonly see: (budget: number, freshTailCount?: number) => Promise<Assembly>;
}

export const startMs = Date.UTC(2026, 1, 17);

export async function onScene(test: (scene: Scene) => Promise<void>): Promise<void> {
  const folder = makeScratch("assemble");
  const store = await openSqlite({ path: join(folder, "lcm.db"), housekeeping: false });
  try {
    const { id: conversation } = await store.open({ sessionId: "s" });
    let count = 0;
    await test({
      store,
      conversation,
      async say(...messages) {
        const items = messages.map((raw) => {
          count += 1;
          const at = msToTimestamp(startMs + count * 1_000);
          return { kind: "message", message: messageToStore(raw, { key: `key${count}`, at }) } as const;
        });
        await store.append(conversation, items);
      },
      async fold(from, to, text = `what happened from ${from} to ${to}`) {
        const run = (await store.context(conversation)).slice(from, to);
        // The store rejects a summary longer than its run, so the count may be too low here.
        const runTokens = run.reduce((sum, item) => sum + item.tokens, 0);
        const tokens = Math.min(estimateTokens(text), runTokens - 1);
        const summary = { text, tokens, level: "normal", model: null, previousContext: null, fileIds: [] } as const;
        const folded = await store.fold(conversation, run, summary);
        assert.equal(folded.kind, "written");
        return folded.summary;
      },
      see: async (budget, freshTailCount = 4) => await assemble(store, { conversation, budget, freshTailCount }),
    });
  } finally {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

export const user = (text: string): HostMessage => ({ role: "user", content: text });
export const answer = (text: string): HostMessage => ({ role: "assistant", content: [{ type: "text", text }] });
export const call = (...ids: readonly string[]): HostMessage => ({
  role: "assistant",
  content: ids.map((id) => ({ type: "toolCall", id, name: "read", arguments: { path: `/${id}` } })),
});
export const result = (id: string, text: string): HostMessage => ({
  role: "toolResult",
  toolCallId: id,
  toolName: "read",
  content: [{ type: "text", text }],
  isError: false,
});
export const use = (id: string): HostMessage => ({
  role: "assistant",
  content: [{ type: "tool_use", id, name: "run", input: {} }],
});
export const used = (id: string, content: string, ...words: readonly string[]): HostMessage => ({
  role: "user",
  content: [{ type: "tool_result", tool_use_id: id, content }, ...words.map((text) => ({ type: "text", text }))],
});
export const long = (tokens: number, word = "lorem"): string =>
  `${word} ${"and then the next thing ".repeat(tokens / 5)}end of ${word}`;
export const contentOf = (message: HostMessage | undefined): string => {
  const content = message?.["content"];
  assert.ok(typeof content === "string");
  return content;
};
export const said = ({ messages }: Assembly): string => JSON.stringify(messages);
