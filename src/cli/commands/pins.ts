/** `lcm pins`: lists standing instructions, pins and unpins them, and finds them in earlier messages. */

import { LcmError } from "../../core/base/errors.ts";
import { plural } from "../../core/base/format.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { PinChange } from "../../core/maintenance/pins.ts";
import { messageIdHint, messageName, parseMessageId, pinOrigins, pinStates } from "../../core/model/types.ts";
import type { Conversation, MessageId } from "../../core/model/types.ts";
import { headline } from "../../format/conversations.ts";
import { pinLines, pinsTable, placeOfPin, whyPinned } from "../../format/pins.ts";
import { oneLine } from "../../format/safe-text.ts";
import { applyOptions, backUpFirst, backupOption, endAtPlan, isApplying, noteUndo } from "./_applying.ts";
import { about, either, list, maybe, object, oneOf, text, time, whole } from "./_json.ts";
import type { OptionsOf } from "./_options.ts";
import { chosenConversation, conversationArgument } from "./_reach.ts";
import { defineCommand, withLcm, type Session } from "./_session.ts";
import { planned } from "./_shapes.ts";

const pinFields = {
  message: whole,
  words: text,
  saidAt: time,
  state: oneOf(...pinStates),
  origin: about(oneOf(...pinOrigins), "who pinned or unpinned it"),
  reason: about(text, "the words of the cue, or what a person or the agent gave"),
};
const stored = { conversation: whole, ...pinFields, at: time };

const listing = object({
  conversation: whole,
  pins: list(
    object({ ...stored, place: about(oneOf("front", "message", "left", "unpinned"), "in the present prompt") }),
  ),
});
const changing = planned(
  either(
    object({ conversation: whole, pin: object(pinFields), forgets: whole, before: maybe(object(stored)) }),
    object({ conversation: whole, found: list(object(pinFields)), forgets: whole }),
  ),
  object({ change: whole }),
);

const options = {
  add: ["--add <message>", "pin what this message of the user says; `lcm grep` and `lcm messages` show ids"],
  text: ["--text <words>", "with --add: pin only these words of the message"],
  remove: ["--remove <message>", "unpin what this message says, for good"],
  find: ["--find", "look for standing instructions in messages stored by earlier versions"],
  reason: ["--reason <words>", "with --add or --remove: why, for those who read the list"],
  all: ["--all", "list unpinned ones too"],
  ...backupOption,
  ...applyOptions,
} as const;

export const pinsCommand = defineCommand({
  name: "pins",
  json: either(listing, changing),
  summary: "list, pin and unpin standing instructions",
  description:
    'List what users said for good ("always answer in German", "never touch prod"). Prompts repeat these words at ' +
    "their front once the message itself is no longer shown.",
  arguments: [conversationArgument],
  options,
  examples: [
    ["lcm pins 3", "what is pinned in conversation 3, by whom and why"],
    ["lcm pins --add msg_3-42 --apply", "pin what this message says"],
    ["lcm pins --remove msg_3-42 --apply", "unpin it"],
    ["lcm pins 3 --find --apply", "pin what earlier versions did not look for"],
  ],
  async run(session, given, name?: string) {
    const asked = [given.add, given.remove, given.find].filter((each) => each !== undefined);
    if (asked.length > 1) throw new LcmError("invalid", "--add, --remove and --find exclude each other");
    const applying = isApplying(given);
    return await withLcm(session, applying ? "change" : "apart", async (lcm) => {
      const message = messageIn(given.add ?? given.remove);
      if (message !== null) return await change(session, lcm, { ...given, message, name });
      const conversation = await chosenConversation(lcm, name);
      return given.find === true
        ? await find(session, lcm, conversation, given)
        : await show(session, lcm, conversation, given.all === true);
    });
  },
});

type Given = OptionsOf<typeof options>;

function messageIn(id: string | undefined): MessageId | null {
  if (id === undefined) return null;
  const message = parseMessageId(id);
  if (message === null) throw new LcmError("invalid", `${id} is not the id of a message`, { hint: messageIdHint });
  return message;
}

async function show(session: Session, lcm: Lcm, conversation: Conversation, all: boolean): Promise<void> {
  const { report } = await lcm.assemble(conversation.id);
  const stored = await lcm.store.pins(conversation.id, all ? {} : { inForce: true });
  const pins = stored.map((pin) => ({ ...pin, place: placeOfPin(pin, report) }));
  if (session.json) return session.printJson(listing, { conversation: conversation.id, pins });
  session.print(headline(session, conversation));
  if (pins.length === 0) return session.note("nothing is pinned");
  for (const line of pinsTable(session, pins)) session.print(line);
}

async function change(
  session: Session,
  lcm: Lcm,
  given: Given & { readonly message: MessageId; readonly name: string | undefined },
): Promise<void> {
  const { message, name, text: words, reason } = given;
  const request = {
    message,
    by: "person",
    ...(name === undefined ? {} : { conversation: (await chosenConversation(lcm, name)).id }),
    ...(reason === undefined ? {} : { reason }),
  } as const;
  const plan =
    given.add === undefined
      ? await lcm.planUnpin(request)
      : await lcm.planPin({ ...request, ...(words === undefined ? {} : { text: words }) });
  if (!session.json) for (const line of pinLines(plan)) session.print(line);
  await apply(session, given, plan, async () => await lcm.pin(plan));
}

async function find(session: Session, lcm: Lcm, conversation: Conversation, given: Given): Promise<void> {
  const progress = session.progress("searching");
  const onProgress = (read: number): void => progress.say(`${plural(read, "message")} of users read`);
  const plan = await lcm
    .findPins(conversation.id, { signal: session.signal, onProgress })
    .finally(() => progress.end());
  if (!session.json) {
    session.print(headline(session, conversation));
    for (const each of plan.found)
      session.print(`${messageName(each.message)} (${whyPinned(each)}) "${oneLine(each.words)}"`);
    session.print(`${plural(plan.found.length, "standing instruction")} to pin`);
  }
  if (plan.found.length === 0) return endAtPlan(session, isApplying(given), plan, null);
  await apply(session, given, plan, async () => await lcm.pinFound(plan));
}

async function apply(
  session: Session,
  given: Given,
  plan: PinChange | Awaited<ReturnType<Lcm["findPins"]>>,
  work: () => Promise<{ readonly change: number } | null>,
): Promise<void> {
  if (!isApplying(given)) return endAtPlan(session, false, plan);
  const backup = await backUpFirst(session, given);
  const result = await work();
  if (result === null) return;
  if (session.json) return session.printJson(changing, { dryRun: false, applied: true, plan, result, backup });
  session.print("done; the next prompt follows it");
  noteUndo(session, result.change);
}
