/** `lcm seen`: shows the prompt behind an answer, what changed between two prompts, and when something was in view. */

import { LcmError } from "../../core/base/errors.ts";
import { parseWhen } from "../../core/base/parse-time.ts";
import type { Lcm } from "../../core/lcm.ts";
import { messageName, parseMessageId, isSummaryId } from "../../core/model/types.ts";
import type { ConversationId, MessageId, SummaryId } from "../../core/model/types.ts";
import { changeKinds } from "../../core/seen/compare.ts";
import type { PromptChoice, Seen, ViewSpan } from "../../core/seen/find-seen.ts";
import { budgetLine, reservations } from "../../format/context.ts";
import {
  comparisonLines,
  parsePromptName,
  promptLines,
  rebuiltLines,
  viewSentence,
  viewText,
} from "../../format/seen.ts";
import { inShort } from "../../format/messages.ts";
import { table } from "../../format/table.ts";
import { clockTime } from "../../format/times.ts";
import {
  about,
  anything,
  either,
  flag,
  list,
  maybe,
  object,
  oneOf,
  record as anyRecord,
  text,
  time,
  whole,
} from "./_json.ts";
import { wholeNumber } from "./_options.ts";
import { promptJson, promptOf } from "./_prompt-json.ts";
import { printItems, printPromptBar, readItems, reportJson } from "./_prompt-items.ts";
import { chosenConversation } from "./_reach.ts";
import { defineCommand, exitFindings, withLcm, type Session } from "./_session.ts";

const seenJson = object({
  prompt: promptJson,
  answer: about(maybe(whole), "the message that it is behind"),
  messages: list(anyRecord(anything)),
  guidance: about(maybe(text), "what was added to the system prompt"),
  report: reportJson,
  isExact: about(flag, "whether the messages and the guidance have the recorded hash"),
  reasons: about(list(text), "why not"),
  "text?": about(text, "our part of the prompt to the byte: a line of JSON per message, the guidance first"),
});

const item = either(whole, text);

const comparisonJson = object({
  before: promptJson,
  after: promptJson,
  sharedBytes: about(whole, "what both begin with"),
  changes: list(
    object({
      kind: oneOf(...changeKinds),
      items: about(list(item), "messages by number, summaries by id"),
      of: about(maybe(text), "the summary that they are folded into, or shown in place of"),
    }),
  ),
});

const place = object({ number: whole, at: time });

const foundJson = object({
  found: list(
    object({
      conversation: whole,
      item,
      spans: list(
        object({
          view: oneOf("whole", "shortened", "pinned", "summary", "no"),
          by: about(maybe(text), "the summary that represents it"),
          from: place,
          to: place,
          prompts: whole,
        }),
      ),
    }),
  ),
});

export const seenCommand = defineCommand({
  name: "seen",
  json: either(seenJson, comparisonJson, foundJson),
  summary: "show the prompt behind an answer: what the model saw",
  description:
    "Show the prompt behind an answer, item by item. Prompts are recorded by what they were made of, and rebuilt to the byte " +
    "from what is stored. With two, show what changed and why.",
  arguments: [
    ["[prompt]", "a message (msg_1-42), a prompt (1#12), or a conversation, for its newest prompt"],
    ["[other]", "compare with the prompt behind this message, or with this prompt"],
  ],
  options: {
    turn: ["--turn <name>", "the prompt of this turn of the conversation, as the host names it"],
    at: ["--at <when>", "the last prompt of the conversation up to this time: '2026-02-17 15:30', yesterday, 2h"],
    text: ["--text", "print our part of the prompt to the byte, a line of JSON per message"],
    find: ["--find <what>", "list in which prompts a message, a summary or words were in view"],
    limit: ["--limit <n>", "with words: the best messages to look for", wholeNumber(1, 100), 3],
  },
  exclusive: [
    ["turn", "at", "find"],
    ["text", "find"],
  ],
  examples: [
    ["lcm seen msg_3-42", "the prompt behind this answer"],
    ["lcm seen 3 --at yesterday", "the last prompt up to yesterday, 0:00"],
    ["lcm seen msg_3-42 msg_3-80", "what changed in between, and why"],
    ["lcm seen 3 --find 'peanut allergy'", "when did it stop seeing my instruction?"],
    ["lcm seen msg_3-42 --text | sha256sum", "the exact bytes"],
  ],
  async run(session, options, name?: string, other?: string) {
    return await withLcm(session, options.find === undefined ? "read" : "apart", async (lcm) => {
      if (options.find !== undefined)
        return await find(session, lcm, { name, what: options.find, limit: options.limit });
      const seen = await lcm.findPrompt(await choiceOf(session, lcm, name, options));
      if (other === undefined) return await show(session, lcm, seen, options.text === true);
      if (options.text === true) throw new LcmError("invalid", "--text shows one prompt, not two");
      const { record } = await lcm.findPrompt(await choiceOf(session, lcm, other, {}));
      const [before, after] = [seen.record, record];
      if (before.conversation !== after.conversation)
        throw new LcmError("invalid", "the two prompts are of different conversations");
      const compared = await lcm.comparePrompts(before, after);
      if (session.json)
        return session.printJson(comparisonJson, { ...compared, before: promptOf(before), after: promptOf(after) });
      for (const line of comparisonLines(session, compared)) session.print(line);
    });
  },
});

interface Choosing {
  readonly turn?: string;
  readonly at?: string;
}

async function choiceOf(
  session: Session,
  lcm: Lcm,
  name: string | undefined,
  { turn, at }: Choosing,
): Promise<PromptChoice> {
  const [message, prompt] = name === undefined ? [null, null] : [parseMessageId(name), parsePromptName(name)];
  if ((turn !== undefined || at !== undefined) && (message !== null || prompt !== null))
    throw new LcmError("invalid", `--turn and --at choose a prompt of a conversation, and ${name} is one already`);
  if (message !== null) return { message };
  if (prompt !== null) return { ...prompt, conversation: (await lcm.find(String(prompt.conversation))).id };
  const conversation = (await chosenConversation(lcm, name)).id;
  if (turn !== undefined) return { conversation, turn };
  if (at === undefined) return { conversation };
  return { conversation, at: parseWhen("--at", at, session.context.zone, lcm.clock.now()) };
}

async function show(session: Session, lcm: Lcm, seen: Seen, isText: boolean): Promise<number | void> {
  const { record, answer } = seen;
  const rebuilt = await lcm.rebuild(record);
  const { assembly, guidance, isExact, reasons, text: bytes } = rebuilt;
  const { messages, report } = assembly;
  const status = isText && !isExact ? exitFindings : undefined;
  if (session.json) {
    const more = isText ? { text: bytes } : {};
    session.printJson(seenJson, {
      prompt: promptOf(record),
      answer,
      messages,
      guidance,
      report,
      isExact,
      reasons,
      ...more,
    });
    return status;
  }
  const { print, note } = session;
  if (isText) {
    if (session.context.stdout.isTerminal) session.silence();
    session.context.stdout.stream.write(bytes);
    for (const reason of reasons) note(`${session.paint.caution("note:")} not to the byte: ${reason}`);
    return status;
  }
  for (const line of promptLines(session, seen)) print(line);
  if (record.head.hosts === undefined) {
    print(budgetLine(session, report, "of this prompt"));
    printPromptBar(session, report);
    printItems(session, await readItems(lcm, assembly));
    for (const sentence of reservations(report)) note(`${session.paint.caution("note:")} ${sentence}`);
  }
  for (const line of rebuiltLines(session, rebuilt)) note(line);
}

// ── In view ──────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Found {
  readonly conversation: ConversationId;
  readonly item: MessageId | SummaryId;
  readonly spans: readonly ViewSpan[];
}

interface Looking {
  readonly name: string | undefined;
  /** The id of a message or summary, or words. */
  readonly what: string;
  readonly limit: number;
}

async function find(session: Session, lcm: Lcm, looking: Looking): Promise<number | void> {
  const found: Found[] = [];
  for (const { conversation, item: id } of await itemsNamed(lcm, looking))
    found.push({ conversation, item: id, spans: await lcm.findInPrompts(conversation, id) });
  if (session.json) {
    session.printJson(foundJson, { found });
    return found.length === 0 ? exitFindings : undefined;
  }
  if (found.length === 0) {
    session.note("no matches");
    return exitFindings;
  }
  for (const each of found) await printFound(session, lcm, each);
}

async function itemsNamed(lcm: Lcm, { name, what, limit }: Looking): Promise<readonly Omit<Found, "spans">[]> {
  const message = parseMessageId(what);
  if (message !== null || isSummaryId(what)) {
    const [known] =
      message !== null
        ? await lcm.store.messages({ ids: [message] })
        : await lcm.store.summaries({ ids: isSummaryId(what) ? [what] : [] });
    if (known === undefined)
      throw new LcmError("not_found", `there is no ${message === null ? what : messageName(message)}`);
    return [{ conversation: known.conversation, item: known.id }];
  }
  const { id } = await chosenConversation(lcm, name);
  const reach = { kind: "conversation", conversations: [id] } as const;
  const { hits } = await lcm.grep({ pattern: what, scope: "messages", limit, reach });
  return hits.flatMap((hit) => (hit.kind === "message" ? [{ conversation: id, item: hit.id }] : []));
}

async function printFound(session: Session, lcm: Lcm, { item: id, spans }: Found): Promise<void> {
  const { print, paint, bounds, zone } = session;
  const [message] = typeof id === "number" ? await lcm.store.messages({ ids: [id] }) : [];
  const name = typeof id === "number" ? messageName(id) : id;
  print(`${paint.strong(name)}${message === undefined ? "" : ` ${message.role}: ${inShort(message)}`}`.slice(0, 400));
  const rows = spans.map((span) => [
    span.from.number === span.to.number ? String(span.from.number) : `${span.from.number}–${span.to.number}`,
    clockTime(span.from.at, zone),
    viewText(span),
  ]);
  const columns = [{ title: "prompts" }, { title: "from", paint: paint.soft }, { title: "", flexible: true }] as const;
  for (const line of rows.length === 0 ? [] : table(columns, rows, bounds, paint)) print(line);
  print(viewSentence(spans, zone));
  print();
}
