/** OpenAI's responses: a list of items, each in a message of its own in the store. */

import { isObject, type Json, type JsonObject } from "../../core/base/json.ts";
import { saidIn } from "../../core/messages/said.ts";
import { messageOfItem } from "../../hosts/shared/rows/codex.ts";
import { argumentsOf } from "./chat.ts";
import {
  listIn,
  numberIn,
  objectIn,
  placeIn,
  textIn,
  textOfResult,
  type Answer,
  type Usage,
  type Wire,
} from "./wire.ts";

export const responses: Wire = {
  name: "responses",
  field: "input",
  isPinned: (item) =>
    item["role"] === "system" ||
    item["role"] === "developer" ||
    (item["role"] === "user" && surroundings.test(textOf(item))),
  toMessage: (item) => messageOfItem(typeof item["type"] === "string" ? item : { type: "message", ...item }),
  fromMessage(message) {
    const isModels = message["role"] === "assistant";
    return saidIn(message).flatMap((said): readonly JsonObject[] => {
      const block = objectIn(listIn(message["content"])[said.place.at]);
      // An item of this format is the only block of its message.
      const isItem = /_call(_output)?$/.test(textIn(block["type"]));
      if (isItem) return [block];
      if (said.kind === "call")
        return [{ type: "function_call", call_id: said.id, name: said.name, arguments: argumentsOf(said.input) }];
      if (said.kind === "result")
        return [{ type: "function_call_output", call_id: said.id, output: textOfResult(said.content) }];
      if (said.kind === "text") {
        const text = { type: isModels ? "output_text" : "input_text", text: said.text };
        return [{ type: "message", role: isModels ? "assistant" : "user", content: [text] }];
      }
      const isPicture = said.kind === "other" && block["type"] === "input_image";
      return isPicture ? [{ type: "message", role: "user", content: [block] }] : [];
    });
  },
  ours: (texts) => ({
    type: "message",
    role: "user",
    content: [{ type: "input_text", text: texts.join("\n\n") }],
  }),
  readAnswer,
  createCollector() {
    const items: JsonObject[] = [];
    let response: JsonObject = {};
    return {
      event(data) {
        if (data["type"] === "response.output_item.done") items[placeIn(data["output_index"])] = objectIn(data["item"]);
        else if (data["type"] === "response.completed") response = objectIn(data["response"]);
      },
      answer: () => ({
        ...readAnswer({ ...response, output: items.filter((item) => item !== undefined) }),
        isComplete: response["status"] === "completed" && items.length > 0,
      }),
    };
  },
};

/** What Codex says in the user's name. */
const surroundings =
  /^\s*(?:<(?:environment_context|user_instructions|turn_aborted|permissions|skills)|# AGENTS\.md instructions)/;

function textOf({ content }: JsonObject): string {
  const [first]: readonly Json[] = Array.isArray(content) ? content : [content ?? null];
  return isObject(first) ? textIn(first["text"]) : textIn(first);
}

function readAnswer({ output, usage }: JsonObject): Answer {
  const elements = listIn(output).filter(isObject);
  return { elements, isComplete: elements.length > 0, usage: usageIn(objectIn(usage)) };
}

const usageIn = (usage: JsonObject): Usage | null =>
  typeof usage["input_tokens"] === "number"
    ? { input: usage["input_tokens"], cached: numberIn(objectIn(usage["input_tokens_details"])["cached_tokens"]) }
    : null;
