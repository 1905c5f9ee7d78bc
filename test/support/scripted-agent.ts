/**
 * Agents that speak HTTP to a model, as Claude Code, Codex and OpenCode do: each keeps its own history, sends all of it with
 * every turn, answers calls, and can rewind, edit, trim, compact and fork. What they send is trimmed from real requests.
 */

import assert from "node:assert/strict";
import { createEventReader } from "../../src/proxy/wires/wire.ts";
import { anthropic } from "../../src/proxy/wires/anthropic.ts";
import { chat } from "../../src/proxy/wires/chat.ts";
import { responses } from "../../src/proxy/wires/responses.ts";
import type { WireName } from "./strict-provider.ts";

/* oxlint-disable typescript/no-explicit-any */
type Any = any;

const wires = { anthropic, chat, responses };

export interface AgentOptions {
  readonly base: () => string;
  readonly wire: WireName;
  readonly sessionId: string | null;
  readonly isStreaming?: boolean;
  readonly headers?: Record<string, string>;
}

export interface AgentAnswer {
  readonly status: number;
  readonly elements: readonly Any[];
  readonly text: string;
  readonly usage: { readonly input: number } | null;
}

const imageOf = (data: string): object => ({
  type: "image",
  source: { type: "base64", media_type: "image/png", data },
});

const reminder =
  "<system-reminder>\nAs you answer, you can use this context: the folder is /project.\n</system-reminder>";

export class ScriptedAgent {
  readonly options: AgentOptions;
  history: Any[] = [];
  /** Everything that was ever in the history, without what the host wrote itself. */
  readonly all = new Set<Any>();
  sent = 0;
  /** The last message of each request. */
  readonly lasts = new Set<string>();
  isShown = false;

  constructor(options: AgentOptions) {
    this.options = options;
  }

  /** A user's message, then calls and their results until the model has nothing more to call. */
  async prompt(text: string, picture?: string): Promise<string> {
    this.add(this.user(text, picture));
    return await this.run();
  }

  async run(): Promise<string> {
    for (let step = 0; step < 5; step++) {
      const answer = await this.send(this.history);
      assert.equal(answer.status, 200, answer.text);
      for (const element of answer.elements) this.add(element);
      const results = this.resultsFor(answer.elements);
      if (results.length === 0) return answer.text;
      for (const result of results) this.add(result);
    }
    return "";
  }

  add(element: Any): void {
    this.history.push(element);
    this.all.add(element);
  }

  /** `picture`: data that it shows. */
  user(text: string, picture?: string): Any {
    const url = `data:image/png;base64,${picture}`;
    if (this.options.wire === "anthropic") {
      const shown = picture === undefined ? [] : [imageOf(picture)];
      const blocks = [{ type: "text", text }, ...shown];
      if (this.history.length === 0) return { role: "user", content: [{ type: "text", text: reminder }, ...blocks] };
      return { role: "user", content: picture === undefined ? text : blocks };
    }
    if (this.options.wire === "chat") {
      const shown = { type: "image_url", image_url: { url } };
      return { role: "user", content: picture === undefined ? text : [{ type: "text", text }, shown] };
    }
    const shown = picture === undefined ? [] : [{ type: "input_image", image_url: url }];
    return { type: "message", role: "user", content: [{ type: "input_text", text }, ...shown] };
  }

  resultsFor(elements: readonly Any[]): readonly Any[] {
    const output = (id: string): string => `output of ${id}: ${"line of a file. ".repeat(8)}`;
    if (this.options.wire === "anthropic") {
      const calls = elements.flatMap(({ content }) => content).filter((block: Any) => block.type === "tool_use");
      if (calls.length === 0) return [];
      // A search loads the tool that it finds; what was looked at is a picture.
      const contents: Record<string, (id: string) => Any> = {
        search: () => [{ type: "tool_reference", tool_name: "deferred" }],
        look: (id) => [{ type: "text", text: output(id) }, imageOf(Buffer.from(id).toString("base64"))],
      };
      const resultOf = ({ id, name }: Any): Any => contents[name]?.(id) ?? output(id);
      return [
        {
          role: "user",
          content: calls.map((call: Any) => ({ type: "tool_result", tool_use_id: call.id, content: resultOf(call) })),
        },
      ];
    }
    if (this.options.wire === "chat")
      return elements.flatMap(({ tool_calls = [] }) =>
        tool_calls.map(({ id }: Any) => ({ role: "tool", tool_call_id: id, content: output(id) })),
      );
    return elements.flatMap((item) =>
      item.type === "function_call"
        ? [{ type: "function_call_output", call_id: item.call_id, output: output(item.call_id) }]
        : [],
    );
  }

  /** Where a prompt of the user begins, of which a person can go back to one. */
  prompts(): readonly number[] {
    return this.history.flatMap((element, at) => {
      const isResult =
        Array.isArray(element.content) && element.content.some((block: Any) => block.type === "tool_result");
      return element.role === "user" && !isResult ? [at] : [];
    });
  }

  rewind(to: number): void {
    this.history = this.history.slice(0, to);
  }

  /** Drops what came before, as hosts do whose request was too long. */
  dropFront(from: number): void {
    this.history = this.history.slice(from);
  }

  /** Clears an old result, as some hosts do to save room. */
  trim(): void {
    const at = this.history.findIndex(
      (element) => /output of (?:thoughtful_)?call/.test(JSON.stringify(element)) && element.role !== "assistant",
    );
    if (at < 0) return;
    const clear = (value: Any): Any =>
      JSON.parse(
        JSON.stringify(value, (field, inner) =>
          (field === "content" || field === "output") && typeof inner === "string"
            ? "[Old tool result content cleared]"
            : inner,
        ),
      );
    this.history = this.history.with(at, clear(this.history[at]));
  }

  /** Another process goes on with the session. It writes some messages in another way that says the same. */
  resume(): void {
    this.history = this.history.map((element) => {
      const { content, id: _, status: __, ...rest } = element;
      if (content === undefined || element.type === "reasoning") return element;
      if (typeof content === "string") return { ...rest, content: [{ type: "text", text: content }] };
      const [first, ...others] = content ?? [];
      const isText = first?.type === "text" && others.length === 0 && this.options.wire !== "responses";
      return { ...rest, content: isText ? first.text : content };
    });
  }

  /** The host's own compaction: it asks for a summary, and goes on with that and what came last. */
  async compact(keep: number): Promise<void> {
    const words =
      "CRITICAL: Respond with TEXT ONLY. Your task is to create a detailed summary of the conversation so far.";
    const answer = await this.send([...this.history, this.user(words)], "compaction");
    assert.equal(answer.status, 200, answer.text);
    const from = this.prompts().at(-keep) ?? this.history.length;
    const text = `This session is being continued from a previous conversation that ran out of context. ${answer.text}`;
    const summary =
      this.options.wire === "anthropic"
        ? {
            role: "user",
            content: [
              { type: "text", text: reminder },
              { type: "text", text },
            ],
          }
        : this.user(text);
    this.history = [summary, ...(keep === 0 ? [] : this.history.slice(from))];
  }

  fork(sessionId: string): ScriptedAgent {
    const fork = new ScriptedAgent({ ...this.options, sessionId });
    fork.history = [...this.history];
    return fork;
  }

  body(list: readonly Any[]): Any {
    const tools: object[] = ["read", "look", "search"].map((name) => ({ name, input_schema: { type: "object" } }));
    if (this.options.wire === "anthropic") tools.push({ name: "deferred", input_schema: {}, defer_loading: true });
    const stream = this.options.isStreaming ?? true;
    if (this.options.wire === "anthropic") {
      const marked = [...list.slice(0, -1), withMark(list.at(-1))];
      const system = [{ type: "text", text: "You are an agent.", cache_control: { type: "ephemeral" } }];
      const thinking = { type: "enabled", budget_tokens: 50 };
      return { model: "scripted", messages: marked, system, tools, max_tokens: 100, thinking, stream };
    }
    if (this.options.wire === "chat")
      return {
        model: "scripted",
        messages: [{ role: "system", content: "You are an agent." }, ...list],
        tools: tools.map((tool) => ({ type: "function", function: tool })),
        stream,
      };
    const environment = {
      type: "message",
      role: "user",
      content: [{ type: "input_text", text: "<environment_context>\n  <cwd>/project</cwd>\n</environment_context>" }],
    };
    return {
      model: "scripted",
      instructions: "You are an agent.",
      input: [environment, ...list],
      tools,
      store: false,
      stream,
    };
  }

  headers(kind: "turn" | "compaction"): Record<string, string> {
    const { wire, sessionId } = this.options;
    const id: Record<string, string> =
      sessionId === null
        ? { "user-agent": "agent/1.0" }
        : wire === "anthropic"
          ? { "x-claude-code-session-id": sessionId }
          : wire === "chat"
            ? { "x-session-id": sessionId }
            : {
                "thread-id": sessionId,
                "x-codex-turn-metadata": JSON.stringify({ thread_id: sessionId, request_kind: kind }),
              };
    return {
      "content-type": "application/json",
      authorization: "Bearer sk-secret-key",
      ...id,
      ...this.options.headers,
    };
  }

  async send(list: readonly Any[], kind: "turn" | "compaction" = "turn", signal?: AbortSignal): Promise<AgentAnswer> {
    const { wire: name } = this.options;
    const wire = wires[name];
    // A fork shows its history with its first request.
    const shown = kind === "turn" ? list : name === "chat" ? [] : list.slice(0, -1);
    if (!this.isShown) for (const element of shown) this.all.add(element);
    this.isShown ||= shown.length > 0;
    this.sent += 1;
    const body = this.body(list);
    this.lasts.add(JSON.stringify((body.input ?? body.messages).at(-1)));
    const path = { anthropic: "/v1/messages", chat: "/v1/chat/completions", responses: "/v1/responses" }[name];
    const response = await fetch(this.options.base() + path, {
      method: "POST",
      headers: this.headers(kind),
      // OpenCode asks for summaries without tools.
      body: JSON.stringify(kind === "compaction" && name === "chat" ? { ...body, tools: undefined } : body),
      ...(signal === undefined ? {} : { signal }),
    });
    const text = await response.text();
    if (response.status !== 200) return { status: response.status, elements: [], text, usage: null };
    const collector = wire.createCollector();
    const isStream = response.headers.get("content-type")?.includes("event-stream") === true;
    if (isStream) createEventReader((data) => collector.event(data))(text);
    const answer = isStream ? collector.answer() : wire.readAnswer(JSON.parse(text));
    // An answer that came was said, even if the agent asks once more.
    if (kind === "turn") for (const element of answer.elements) this.all.add(element);
    return { status: 200, elements: answer.elements, text: wordsIn(answer.elements), usage: answer.usage };
  }
}

const wordsIn = (elements: readonly Any[]): string =>
  elements
    .map(({ content }) =>
      typeof content === "string" ? content : (content ?? []).map((block: Any) => block.text ?? "").join(""),
    )
    .join("");

/** Claude Code marks the last block, and writes a text as a block to do so. */
function withMark(element: Any): Any {
  const blocks = typeof element.content === "string" ? [{ type: "text", text: element.content }] : element.content;
  return { ...element, content: [...blocks.slice(0, -1), { ...blocks.at(-1), cache_control: { type: "ephemeral" } }] };
}
