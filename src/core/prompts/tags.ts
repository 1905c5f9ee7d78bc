/** The tags that mark quoted text in prompts, which the text inside cannot forge. */

import { forgeries } from "../base/escape.ts";
import { once } from "../base/once.ts";

export const tags = {
  segment: "conversation_segment",
  previous: "previous_context",
  operator: "operator_instructions",
  file: "file_content",
  recalled: "recalled_record",
  question: "question_asked",
  item: "record_item",
  task: "task_per_item",
  facts: "found_facts",
};

export const enclose = (tag: string, text: string): string =>
  `<${tag}>\n${text.replace(forgedTag(), "&lt;")}\n</${tag}>`;

/** The same with a key in the opening tag, by which an answer names the text. */
export const encloseAs = (tag: string, key: string, text: string): string =>
  enclose(tag, text).replace(`<${tag}>`, () => `<${tag} key="${key}">`);

const forgedTag = once(() => forgeries(Object.values(tags)));
