/** Puts each tool result directly after its call, as every provider wants it. */

import type { HostMessage } from "../messages/codec.ts";
import type { Json, JsonObject } from "../base/json.ts";
import { isMadeOf, presentBlocks } from "./present-message.ts";
import { callsOf, matchTies, resultsOf } from "../messages/tool-calls.ts";
import type { TiePlace } from "../messages/tool-calls.ts";
import { blocksOf, isResultBlock, isResultRole, resultOfBlock, resultTo, resultToolIn } from "../messages/dialects.ts";
import type { ToolCall, ToolResult } from "../messages/dialects.ts";
import { isObject } from "../base/json.ts";
import { disarm } from "../base/escape.ts";
/** A message of the list that a provider takes. */
export interface Placed {
  /** The very object that was given, where nothing had to be changed. */
  readonly message: HostMessage;
  /** Position, in the list that was given, of what it shows; null for a stand-in. */
  readonly from: number | null;
}

export interface UnansweredCall {
  /** Position of the message that calls. */
  readonly at: number;
  readonly id: string;
}

export interface Paired {
  readonly messages: readonly Placed[];
  readonly unanswered: readonly UnansweredCall[];
  /** How many results are shown as text. */
  readonly loose: number;
}

/** Every result right behind its call. `isElsewhere` tells of a call without one whether its result is kept unshown. */
export function pair(
  messages: readonly HostMessage[],
  isElsewhere: (call: UnansweredCall) => boolean = () => false,
): Paired {
  const { answerTo, isTaken } = matchMessages(messages);
  const placed: Placed[] = [];
  const unanswered: UnansweredCall[] = [];
  let loose = 0;
  /** Names of the tools called so far, by the ids of the calls. */
  const called = new Map<string, string>();
  /** A user's message of result blocks that is placed next, as soon as no more can belong into it. */
  let carrier: { readonly blocks: Json[]; from: number | null; readonly time: HostMessage } | null = null;

  const placeCarrier = (): void => {
    if (carrier === null) return;
    const { blocks, from, time } = carrier;
    const given = from === null ? undefined : messages[from];
    const base = given?.["role"] === "user" ? given : { role: "user", ...time };
    placed.push({ message: isMadeOf(base["content"], blocks) ? base : { ...base, content: blocks }, from });
    carrier = null;
  };
  const place = (message: HostMessage, from: number | null): void => {
    placeCarrier();
    placed.push({ message, from });
  };
  const carry = (blocks: readonly Json[], from: number | null, time: HostMessage): void => {
    carrier ??= { blocks: [], from, time };
    carrier.from ??= from;
    for (const block of blocks) carrier.blocks.push(block);
  };
  const looseResult = (raw: HostMessage, id: string | null, holder: JsonObject): readonly Json[] => {
    loose += 1;
    const before = id === null ? undefined : called.get(id);
    const name = before ?? resultToolIn(raw) ?? raw["name"];
    const tool = typeof name === "string" && name !== "" ? `tool ${name}` : "a tool";
    const label =
      before === undefined ? `[result of ${tool}, whose call is not shown here]` : `[another result of ${tool}]`;
    return [{ type: "text", text: label }, ...presentBlocks(saidBy(holder), "user")].map(disarmBlock);
  };
  /** What a message says in its own place: everything but results that are with their calls. */
  const placeRest = (raw: HostMessage, at: number): void => {
    const [row] = resultsOf(raw);
    if (isResultRole(raw["role"])) {
      if (isTaken({ at, nth: 0 })) return;
      place({ role: "user", content: looseResult(raw, row?.id ?? null, raw), ...timeOf(raw) }, at);
    } else if (row === undefined) {
      place(raw, at);
    } else {
      let nth = 0;
      const rest = blocksOf(raw["content"]).flatMap((block) => {
        const answer = resultOfBlock(block);
        if (answer === null) return [block];
        return isTaken({ at, nth: nth++ }) ? [] : looseResult(raw, answer.id, answer.holder);
      });
      if (rest.length === 0) return;
      if (carrier?.from === at) carry(rest, at, {});
      else place({ ...raw, content: rest }, at);
    }
  };
  const placeResult = (call: ToolCall, raw: HostMessage, { at, nth }: TiePlace): void => {
    const answer = answerTo({ at, nth });
    called.set(call.id, call.name);
    if (answer === undefined) unanswered.push({ at, id: call.id });
    const holder = answer?.holder ?? standIn(isElsewhere({ at, id: call.id }));
    const time = timeOf(raw);
    const from = answer?.from ?? null;
    const isKept = answer?.dialect === call.dialect;
    const result = isKept ? holder : resultTo(call, holder);
    if (call.dialect.resultBlock !== undefined) carry([result], from, time);
    else place(isKept ? result : { ...result, ...time }, from);
  };
  messages.forEach((raw, at) => {
    placeRest(raw, at);
    callsOf(raw).forEach((call, nth) => placeResult(call, raw, { at, nth }));
  });
  placeCarrier();
  return { messages: placed, unanswered, loose };
}

function matchMessages(messages: readonly HostMessage[]): {
  readonly answerTo: (call: TiePlace) => (ToolResult & { readonly from: number }) | undefined;
  readonly isTaken: (answer: TiePlace) => boolean;
} {
  const answers = messages.map(resultsOf);
  const pairs = matchTies(
    messages.map((raw, at) => ({ calls: callsOf(raw), answers: (answers[at] ?? []).map(({ id }) => id) })),
  );
  const keyOf = ({ at, nth }: TiePlace): string => `${at}.${nth}`;
  const places = new Map(pairs.map(({ call, answer }) => [keyOf(call), answer]));
  const taken = new Set(pairs.map(({ answer }) => keyOf(answer)));
  return {
    answerTo: (call) => {
      const place = places.get(keyOf(call));
      const answer = place && answers[place.at]?.[place.nth];
      return answer && { ...answer, from: place.at };
    },
    isTaken: (answer) => taken.has(keyOf(answer)),
  };
}

/** What a result says; what results inside it say. */
const saidBy = (holder: JsonObject): readonly Json[] =>
  blocksOf(holder["content"]).flatMap((block) => (isObject(block) && isResultBlock(block) ? saidBy(block) : [block]));

/** A tool's words in a user's message must not pass for a summary. */
const disarmBlock = (block: Json): Json =>
  isObject(block) && typeof block["text"] === "string" ? { ...block, text: disarm(block["text"]) } : block;

export const timeOf = ({ timestamp }: HostMessage): HostMessage => (typeof timestamp === "number" ? { timestamp } : {});

export const standIn = (isElsewhere: boolean): JsonObject => ({
  content: isElsewhere
    ? "[the result of this call is not shown here: it is part of what is summarised or left out above]"
    : "[no result of this call was found]",
  isError: true,
});
