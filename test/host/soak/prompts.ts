/** Checks each prompt of a soak: what a provider accepts, and what was said in the session. */

import assert from "node:assert/strict";
import { estimateTokens } from "../../../src/core/base/tokens.ts";
import { violationsIn } from "../../support/strict-provider.ts";
import type { Asked } from "../model-server.ts";
import { assertLiveOnce, assertValid } from "../wire.ts";
import type { Ledger } from "./ledger.ts";

type Json = ReturnType<typeof JSON.parse>;

/** The start of a user's turn: each is unique, and sorts after those before it. */
export const turnMark = (name: string, turn: number): string => `Turn ${name}#${turn}:`;
const marks = /Turn ([a-z]+)#(\d+):/g;

/** The speaker whose turn a prompt is; "" if it is nobody's. */
export const speakerIn = (prompt: string): string => [...prompt.matchAll(marks)].at(-1)?.[1] ?? "";

export interface PromptRules {
  readonly ledger: Ledger;
  readonly contextWindow: number;
  /** The turns on the host's current path, by its own record. */
  readonly turnsOf: (session: string, name: string) => readonly number[];
  /** Whether the store was away a moment ago, so that the host had to do without us. */
  readonly isAlone?: () => boolean;
}

const isChild = ({ session }: Asked): boolean => session.includes(":subagent:");

/**
 * Checks that what went to the model is a valid array within the window, and shows each turn once, in order, the live
 * one last. The host may also record a retried turn again: then it appears as often as in the host's own transcript.
 * Returns its tokens, by our own estimate.
 */
export function checkPrompt(asked: Asked, rules: PromptRules): number {
  const { ledger } = rules;
  const check = (what: string, assertion: () => void): void => {
    try {
      assertion();
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      ledger.broken(what, `${asked.session} (${asked.format}): ${why}\n${outlineOf(asked)}`);
    }
  };
  check("guarantee 13: a valid array", () => assertAccepted(asked));
  const tokens = checkSize(asked, rules);
  if (isChild(asked)) return tokens;
  checkOrder(asked, rules);
  const live = [...asked.prompt.matchAll(marks)].at(-1);
  if (live === undefined) ledger.count("request with words of the host's own last");
  else check("guarantee 14: the live turn once and last", () => assertLiveOnce(unfolded(asked), live[0]));
  return tokens;
}

/** The newest messages of a prompt, to see what is wrong with it. */
export const outlineOf = ({ messages }: Asked): string =>
  messages
    .slice(-20)
    .map(
      ({ role, text, calls }) => `  ${role}: ${JSON.stringify(text.slice(0, 120))} ${calls.map(({ id }) => id).join()}`,
    )
    .join("\n");

function assertAccepted(asked: Asked): void {
  if (asked.format === "responses") assert.deepEqual(violationsIn("responses", asked.body), []);
  else assertValid(asked);
}

function checkSize(asked: Asked, { ledger, contextWindow, isAlone = () => false }: PromptRules): number {
  const tokens = estimateTokens(JSON.stringify(asked.body, withoutPictures));
  ledger.count(tokens > contextWindow - 4_096 ? "request near the window" : "request within the window");
  // Refusing a turn that is too long by itself is up to the host; what came before it is up to us.
  const before = estimateTokens(JSON.stringify(asked.messages.slice(0, liveFrom(asked)), withoutPictures));
  if (tokens <= contextWindow || liveFrom(asked) === 0) return tokens;
  if (isAlone()) ledger.event("request over the window while the store was away", `${asked.session}: ${tokens} tokens`);
  else
    ledger.broken(
      "guarantee 12: within the window",
      `${asked.session}: ${tokens} tokens, ${before} of before the turn`,
    );
  return tokens;
}

function checkOrder(asked: Asked, { ledger, turnsOf }: PromptRules): void {
  const name = asked.session.split(":").at(-1) ?? "";
  const said = asked.messages
    .filter(({ role }) => role === "user")
    .flatMap(({ text }) => [...withoutSummaries(text).matchAll(marks)])
    .filter(([, session]) => session === name)
    .map(([, , turn]) => Number(turn));
  const isInOrder = said.every((turn, at) => at === 0 || turn > (said[at - 1] ?? 0));
  if (isInOrder) return;
  const held = turnsOf(asked.session, name);
  if (isWithin(said.slice(0, -1), held)) return ledger.count("request with a turn that the host has twice");
  ledger.broken(
    "guarantee 14: each turn once, in order",
    `${asked.session}: ${said.join(" ")}; the host has ${held.join(" ")}`,
  );
}

/**
 * Without summaries. In a long turn the question may be folded, too: it is then in a summary, and repeated behind it; and
 * a summary of what came next may follow it.
 */
export const unfolded = (asked: Asked): Asked => ({
  ...asked,
  messages: asked.messages.flatMap((message) => {
    const text = withoutSummaries(message.text);
    return text.trim() === "" && text !== message.text ? [] : [{ ...message, text }];
  }),
});

/** Without ours, and without those of a host that had to compact by itself. */
const withoutSummaries = (text: string): string =>
  text.replaceAll(/<summary id=[^]*?<\/summary>/g, "").replaceAll(/<summary>[^]*<\/summary>/g, "");

/** The turns from the first to the host's current one. */
export function turnsOnPath(events: readonly Json[], name: string): readonly number[] {
  const byId = new Map(events.map((event) => [event.id, event]));
  const turns: number[] = [];
  for (let event = events.at(-1); event !== undefined; event = byId.get(event.parentId)) {
    if (event.message?.role !== "user") continue;
    const said = [...JSON.stringify(event.message.content).matchAll(marks)].filter(([, session]) => session === name);
    turns.unshift(...said.map(([, , turn]) => Number(turn)));
  }
  return turns;
}

/** Whether all of these are among those, in that order. */
function isWithin(turns: readonly number[], held: readonly number[]): boolean {
  let at = 0;
  for (const turn of held) if (turn === turns[at]) at++;
  return at === turns.length;
}

const liveFrom = ({ messages }: Asked): number =>
  Math.max(
    0,
    messages.findLastIndex(({ role }) => role === "user"),
  );

/** The length of its bytes does not tell what a picture costs. */
const withoutPictures = (_: string, value: unknown): unknown =>
  typeof value === "string" && value.length > 500 && /^(data:image|[\w+/]{500})/.test(value) ? "a picture" : value;
