/** OpenAI's responses on the wire, as Codex speaks them: what a request says, and the stream of an answer. */

import type { Answer, Asked, Said, Usage } from "./asked.ts";

type Json = ReturnType<typeof JSON.parse>;

export function readResponses(body: Json): Pick<Asked, "system" | "messages" | "tools"> {
  const items: readonly Json[] = Array.isArray(body.input) ? body.input : [{ role: "user", content: body.input }];
  // Newer models of OpenAI get their tools as an item.
  const tools = [body, ...items].flatMap((each) => each.tools ?? []).map(({ name }: Json) => name);
  return { system: body.instructions ?? "", messages: items.flatMap(readItem), tools };
}

/** A call is a message of the assistant's here, and its output one of a tool, as in the other formats. */
function readItem(item: Json): readonly Said[] {
  const said = { text: "", thinking: "", calls: [] };
  if (item.type === "function_call")
    return [{ ...said, role: "assistant", calls: [{ id: item.call_id, name: item.name }] }];
  if (String(item.type).endsWith("_output")) return [{ ...said, role: "tool", text: textIn(item.output) }];
  const { role } = item;
  return role === "user" || role === "assistant" || role === "developer"
    ? [{ ...said, role: role === "assistant" ? role : "user", text: textIn(item.content) }]
    : [];
}

const textIn = (content: Json): string =>
  typeof content === "string" ? content : (content ?? []).map((part: Json) => part.text ?? "").join("\n");

export function responsesStream({ text, calls = [] }: Answer, { model }: Asked, nth: number, usage: Usage): string {
  const message = {
    type: "message",
    id: `msg_${nth}`,
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text: text ?? "", annotations: [] }],
  };
  const output = [
    ...(text === undefined ? [] : [message]),
    ...calls.map(({ id, name, args }, at) => {
      // A tool of a namespace, such as those of an MCP server, is named `namespace::tool` by scripts.
      const [tool = "", namespace] = name.split("::").toReversed();
      const call = { type: "function_call", id: `fc_${nth}_${at}`, call_id: id ?? `call_${nth}_${at}`, name: tool };
      return { ...call, arguments: JSON.stringify(args), status: "completed", ...(namespace ? { namespace } : {}) };
    }),
  ];
  const response = {
    id: `resp_${nth}`,
    object: "response",
    created_at: 1_770_000_000,
    status: "completed",
    model,
    output,
    usage: {
      input_tokens: usage.input + usage.cacheRead,
      input_tokens_details: { cached_tokens: usage.cacheRead },
      output_tokens: usage.output,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: usage.input + usage.cacheRead + usage.output,
    },
  };
  let number = 0;
  const event = (type: string, rest: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number++, ...rest })}\n\n`;
  return [
    event("response.created", { response: { ...response, status: "in_progress", output: [] } }),
    ...output.map((item, at) => event("response.output_item.done", { output_index: at, item })),
    event("response.completed", { response }),
  ].join("");
}
