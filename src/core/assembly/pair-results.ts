/** Puts each tool result directly after its call, as providers require; unmatched ones become stand-ins or text. */

import type { HostMessage } from "../messages/codec.ts";
import { isMadeOf, presentBlocks } from "./present-message.ts";
import { callsOf, matchTies, resultsOf, type TiePlace } from "../messages/tool-calls.ts";
import {
  blocksOf,
  isResultBlock,
  isResultRole,
  resultContentOf,
  resultOfBlock,
  resultTo,
  resultToolIn,
} from "../messages/dialects.ts";
import type { Dialect, HostCall, HostResult } from "../messages/dialects.ts";
import { isObject, type Json, type JsonObject } from "../base/json.ts";
import { disarm } from "../base/escape.ts";

/** A message of the paired list. */
export interface Placed {
  /** The given object itself if nothing had to change. */
  readonly message: HostMessage;
  /** Index of the given message it shows; null for a stand-in. */
  readonly from: number | null;
}

export interface UnansweredCall {
  /** Index of the calling message. */
  readonly at: number;
  readonly id: string;
}

export interface Paired {
  readonly messages: readonly Placed[];
  readonly unanswered: readonly UnansweredCall[];
  /** How many results are shown as text. */
  readonly loose: number;
}

/** `isElsewhere`: whether the result of an unanswered call is stored but not shown. */
export function pair(
  messages: readonly HostMessage[],
  isElsewhere: (call: UnansweredCall) => boolean = () => false,
): Paired {
  const { answerTo, isTaken } = matchMessages(messages);
  const list = createList(messages);
  const unanswered: UnansweredCall[] = [];
  let loose = 0;
  /** Tool names by call id, of the calls so far. */
  const called = new Map<string, string>();

  const looseResult = (raw: HostMessage, id: string | null, holder: JsonObject): readonly Json[] => {
    loose += 1;
    const before = id === null ? undefined : called.get(id);
    const name = before ?? resultToolIn(raw) ?? raw["name"];
    const tool = typeof name === "string" && name !== "" ? `tool ${name}` : "a tool";
    const label =
      before === undefined ? `[result of ${tool}, whose call is not shown here]` : `[another result of ${tool}]`;
    return [{ type: "text", text: label }, ...presentBlocks(resultBlocks(holder), "user")].map(disarmBlock);
  };
  /** Places everything in a message except results that go to their calls. */
  const placeRest = (raw: HostMessage, at: number): void => {
    const [first] = resultsOf(raw);
    if (isResultRole(raw["role"])) {
      if (isTaken({ at, nth: 0 })) return;
      return list.place({ role: "user", content: looseResult(raw, first?.id ?? null, raw), ...timeOf(raw) }, at);
    }
    if (first === undefined) return list.place(raw, at);
    let nth = 0;
    const rest = blocksOf(raw["content"]).flatMap((block) => {
      const answer = resultOfBlock(block);
      if (answer === null) return [block];
      return isTaken({ at, nth: nth++ }) ? [] : looseResult(raw, answer.id, answer.holder);
    });
    if (rest.length > 0) list.placeRest(raw, rest, at);
  };
  const placeResult = (call: HostCall, raw: HostMessage, { at, nth }: TiePlace): void => {
    const answer = answerTo({ at, nth });
    called.set(call.id, call.name);
    if (answer === undefined) unanswered.push({ at, id: call.id });
    const holder = answer?.holder ?? standIn(isElsewhere({ at, id: call.id }));
    const from = answer?.from ?? null;
    const isKept = answer !== undefined && isAnsweredAlike(answer.dialect, call.dialect);
    const result = isKept ? holder : resultTo(call, holder);
    const { resultBlock } = call.dialect;
    if (resultBlock?.role !== undefined) list.placeAlone(resultBlock.role, result, from);
    else if (resultBlock !== undefined) list.carry([result], from, timeOf(raw));
    else list.place(isKept ? result : { ...result, ...timeOf(raw) }, from);
  };
  messages.forEach((raw, at) => {
    placeRest(raw, at);
    callsOf(raw).forEach((call, nth) => placeResult(call, raw, { at, nth }));
  });
  return { messages: list.end(), unanswered, loose };
}

function createList(messages: readonly HostMessage[]) {
  const placed: Placed[] = [];
  /** The user message of result blocks that comes next, until another message is placed. */
  let carrier: { readonly blocks: Json[]; from: number | null; readonly time: HostMessage } | null = null;
  const list = {
    place(message: HostMessage, from: number | null): void {
      list.end();
      placed.push({ message, from });
    },
    /** Places a result block as a message of its own. */
    placeAlone(role: string, block: Json, from: number | null): void {
      const given = from === null ? undefined : messages[from];
      const isGiven = given?.["role"] === role && isMadeOf(given["content"], [block]);
      list.place(isGiven && given !== undefined ? given : { role, content: [block] }, from);
    },
    /** Collects result blocks for one user message. */
    carry(blocks: readonly Json[], from: number | null, time: HostMessage): void {
      carrier ??= { blocks: [], from, time };
      carrier.from ??= from;
      for (const block of blocks) carrier.blocks.push(block);
    },
    /** Places what is left of a message, in the same user message as its results if these come just before. */
    placeRest(raw: HostMessage, blocks: readonly Json[], at: number): void {
      if (carrier?.from === at) list.carry(blocks, at, {});
      else list.place({ ...raw, content: blocks }, at);
    },
    end(): readonly Placed[] {
      if (carrier === null) return placed;
      const { blocks, from, time } = carrier;
      const given = from === null ? undefined : messages[from];
      const base = given?.["role"] === "user" ? given : { role: "user", ...time };
      placed.push({ message: isMadeOf(base["content"], blocks) ? base : { ...base, content: blocks }, from });
      carrier = null;
      return placed;
    },
  };
  return list;
}

function matchMessages(messages: readonly HostMessage[]): {
  readonly answerTo: (call: TiePlace) => (HostResult & { readonly from: number }) | undefined;
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

const isAnsweredAlike = (one: Dialect, other: Dialect): boolean =>
  one === other || (one.resultBlock !== undefined && one.resultBlock.type === other.resultBlock?.type);

/** The blocks of a result, and of results nested in it. */
const resultBlocks = (holder: JsonObject): readonly Json[] =>
  blocksOf(resultContentOf(holder)).flatMap((block) =>
    isObject(block) && isResultBlock(block) ? resultBlocks(block) : [block],
  );

/** Tool output in a user message must not pass for a summary. */
const disarmBlock = (block: Json): Json =>
  isObject(block) && typeof block["text"] === "string" ? { ...block, text: disarm(block["text"]) } : block;

const timeOf = ({ timestamp }: HostMessage): HostMessage => (typeof timestamp === "number" ? { timestamp } : {});

const standIn = (isElsewhere: boolean): JsonObject => ({
  content: isElsewhere
    ? "[the result of this call is not shown here: it is summarised or left out above]"
    : "[no result of this call was found]",
  isError: true,
});
