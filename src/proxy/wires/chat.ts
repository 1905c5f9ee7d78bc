/** OpenAI's chat completions, which most other providers speak as well. */

import { isObject, type Json, type JsonObject } from "../../core/base/json.ts";
import { saidIn } from "../../core/messages/said.ts";
import { listIn, numberIn, objectIn, placeIn, textIn, textOfResult, type Usage, type Wire } from "./wire.ts";

export const chat: Wire = {
  name: "chat",
  field: "messages",
  isPinned: ({ role }) => role === "system" || role === "developer",
  toMessage: (element) => (["user", "assistant", "tool"].includes(textIn(element["role"])) ? element : null),
  fromMessage(message) {
    const elements: JsonObject[] = [];
    let [texts, calls, blocks]: [string[], JsonObject[], Json[]] = [[], [], []];
    const isModels = message["role"] === "assistant";
    const end = (): void => {
      const text = texts.join("\n");
      if (isModels && (text !== "" || calls.length > 0))
        elements.push({ role: "assistant", content: text || null, ...(calls.length > 0 ? { tool_calls: calls } : {}) });
      if (!isModels && blocks.length > 0)
        elements.push({ role: "user", content: [...(text === "" ? [] : [{ type: "text", text }]), ...blocks] });
      else if (!isModels && text !== "") elements.push({ role: "user", content: text });
      [texts, calls, blocks] = [[], [], []];
    };
    for (const said of saidIn(message)) {
      if (said.kind === "text") texts.push(said.text);
      else if (said.kind === "call")
        calls.push({
          id: said.id,
          type: "function",
          function: { name: said.name, arguments: argumentsOf(said.input) },
        });
      else if (said.kind === "result") {
        end();
        elements.push({ role: "tool", tool_call_id: said.id, content: textOfResult(said.content) });
      } else if (said.kind === "other" && isObject(said.block) && said.block["type"] === "image_url")
        blocks.push(said.block);
    }
    end();
    return elements;
  },
  ours: (texts) => ({ role: "user", content: texts.join("\n\n") }),
  readAnswer({ choices, usage }) {
    const { message } = objectIn(listIn(choices)[0]);
    const elements = isObject(message) ? [message] : [];
    return { elements, isComplete: elements.length > 0, usage: usageIn(objectIn(usage)) };
  },
  createCollector() {
    let [text, isComplete]: [string, boolean] = ["", false];
    let usage: JsonObject = {};
    const calls: { id: string; name: string; args: string }[] = [];
    return {
      event(data) {
        if (isObject(data["usage"])) usage = data["usage"];
        const choice = objectIn(listIn(data["choices"])[0]);
        const delta = objectIn(choice["delta"]);
        text += textIn(delta["content"]);
        for (const piece of listIn(delta["tool_calls"]).map(objectIn)) {
          const call = (calls[placeIn(piece["index"])] ??= { id: "", name: "", args: "" });
          const { name, arguments: args } = objectIn(piece["function"]);
          call.id ||= textIn(piece["id"]);
          call.name += textIn(name);
          call.args += textIn(args);
        }
        if (typeof choice["finish_reason"] === "string") isComplete = true;
      },
      answer() {
        const made = calls.flatMap(({ id, name, args }) => [
          { id, type: "function", function: { name, arguments: args } },
        ]);
        const element = { role: "assistant", content: text || null, ...(made.length > 0 ? { tool_calls: made } : {}) };
        return {
          elements: [element],
          isComplete: isComplete && (text !== "" || made.length > 0),
          usage: usageIn(usage),
        };
      },
    };
  },
};

export const argumentsOf = (input: Json): string => (typeof input === "string" ? input : JSON.stringify(input));

const usageIn = (usage: JsonObject): Usage | null =>
  typeof usage["prompt_tokens"] === "number"
    ? { input: usage["prompt_tokens"], cached: numberIn(objectIn(usage["prompt_tokens_details"])["cached_tokens"]) }
    : null;
