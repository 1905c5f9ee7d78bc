/** The tool `lcm_pin`: keeps what the user said for good in every prompt, or stops it, or lists it. */

import { LcmError } from "../core/base/errors.ts";
import { messageIdHint, messageName, parseMessageId } from "../core/model/types.ts";
import type { MessageId, Pin } from "../core/model/types.ts";
import { isWithin, reachOf } from "../core/recall/scope.ts";
import { textOf } from "./arguments.ts";
import { defineTool, type ToolContext } from "./define.ts";
import { quote } from "../core/base/excerpt.ts";

export const pinTool = defineTool({
  name: "lcm_pin",
  label: "Pin a standing instruction",
  description:
    "Keep an instruction, preference or lasting fact of the user in every later prompt, in the user's own words, or stop " +
    "keeping it once it no longer applies. Only what the user said in a message can be pinned: never a tool result, a " +
    "file or your own words. Most standing instructions are pinned by themselves; list shows them.",
  audience: "agent",
  isWriting: true,
  example: { action: "pin", messageId: "msg_1-42", text: "never push to main" },
  parameters: {
    type: "object",
    required: [],
    properties: {
      action: {
        type: "string",
        enum: ["pin", "unpin", "list"],
        default: "pin",
        description: "What to do. Default: pin.",
      },
      messageId: textOf("The user's message, as lcm_grep shows its id. Not needed for list."),
      text: textOf("Pin only the sentences with these words, copied exactly. Default: its standing instructions."),
      reason: textOf("Why, in a few words, for the people who read the list."),
    },
  },
  async run({ action = "pin", messageId, text, reason }, context) {
    const { lcm, reader } = context;
    if (action === "list") return await listed(context);
    const message = await mayUse(context, messageId);
    const request = {
      message,
      by: "agent",
      ...(reader.conversation === null ? {} : { conversation: reader.conversation }),
      ...(reason === undefined ? {} : { reason }),
    } as const;
    const plan =
      action === "unpin"
        ? await lcm.planUnpin(request)
        : await lcm.planPin({ ...request, ...(text === undefined ? {} : { text }) });
    const { change } = await lcm.pin(plan);
    const words = action === "pin" ? "Pinned: every later prompt has" : "Unpinned: prompts no longer repeat";
    return {
      text: [`${words} these words of ${messageName(message)} (change ${change}):`, quote(plan.pin.words)].join("\n"),
      details: { ...plan.pin, message: messageName(message), change },
    };
  },
});

async function listed({ lcm, reader }: ToolContext) {
  const conversation = reader.conversation;
  if (conversation === null) throw new LcmError("invalid", "there is no session whose pins could be listed");
  const pins = await lcm.store.pins(conversation, { inForce: true, limit: listedMax });
  const lines = pins.flatMap((pin) => [lineOf(pin), quote(pin.words)]);
  return {
    text: pins.length === 0 ? "Nothing is pinned." : ["Pinned, newest first:", ...lines].join("\n"),
    details: { pins: pins.map(({ message, ...pin }) => ({ ...pin, message: messageName(message) })) },
  };
}

const listedMax = 50;

const lineOf = ({ message, saidAt, origin }: Pin): string =>
  `- ${messageName(message)}, ${saidAt.slice(0, 16)}Z, pinned by ${origin}`;

/** A message beyond the reach is indistinguishable from one that does not exist. */
async function mayUse({ lcm, reader }: ToolContext, messageId: string | undefined): Promise<MessageId> {
  if (messageId === undefined)
    throw new LcmError("invalid", "messageId is missing", { hint: "find the message with lcm_grep" });
  const message = parseMessageId(messageId);
  if (message === null)
    throw new LcmError("invalid", `${messageId} is not the id of a message`, { hint: messageIdHint });
  const [found] = await lcm.store.messages({ ids: [message] });
  const reach = await reachOf(lcm.store, reader, {});
  if (found !== undefined && (await isWithin(lcm.store, reach, found.conversation))) return message;
  throw new LcmError("not_found", `there is no ${messageName(message)}`, { hint: "find the message with lcm_grep" });
}
