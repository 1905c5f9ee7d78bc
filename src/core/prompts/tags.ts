/** The tags that mark quoted text in prompts, which the text inside cannot forge. */

import { forgeries } from "../base/escape.ts";

export const tags = {
  segment: "conversation_segment",
  previous: "previous_context",
  operator: "operator_instructions",
  file: "file_content",
  recalled: "recalled_record",
  question: "question_asked",
};

export const enclose = (tag: string, text: string): string => `<${tag}>\n${text.replace(forgedTag, "&lt;")}\n</${tag}>`;

const forgedTag = forgeries(Object.values(tags));
