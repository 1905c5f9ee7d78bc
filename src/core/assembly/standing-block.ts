/**
 * Renders standing instructions as a message of the prompt: the pinned words of users whose messages the prompt does not
 * show, newest first, within their own budget. The words are data, so they are escaped as summaries are.
 *
 * What is shown follows from which messages are shown, so it changes only when a fold or an eviction changes the prompt.
 */

import type { HostMessage } from "../messages/codec.ts";
import { messageName, type Pin } from "../model/types.ts";
import { timestampToMs } from "../base/time.ts";
import { escapeText } from "../base/escape.ts";
import { estimateTokens } from "../base/tokens.ts";
import { tokensOf } from "./present-message.ts";
import { isMessage, type PromptItem } from "./prompt-items.ts";

export interface StandingBlock {
  readonly message: HostMessage;
  readonly tokens: number;
  readonly pins: readonly Pin[];
  /** How many more there are that do not fit. */
  readonly left: number;
}

/** The block for a prompt that shows these items; null if it needs none. */
export type ShowStanding = (kept: readonly PromptItem[]) => StandingBlock | null;

export const showNoStanding: ShowStanding = () => null;

/** Newest pins that are read for a prompt. Far more than fit. */
export const pinsRead = 256;

export function createShowStanding(pins: readonly Pin[], tokensMax: number): ShowStanding {
  const lines = pins.map((pin) => ({ pin, tokens: estimateTokens(lineOf(pin)) + 1 }));
  return (kept) => {
    const shown = new Set(
      kept.flatMap(({ source, cuts }) => (isMessage(source) && cuts.length === 0 ? source.id : [])),
    );
    const missing = lines.filter(({ pin }) => !shown.has(pin.message));
    let room = tokensMax - frameTokens;
    const fitting = missing.filter(({ tokens }) => (tokens > room ? false : ((room -= tokens), true)));
    // The estimate of the whole differs a little from the sum of its lines.
    for (let count = fitting.length; count > 0; count--) {
      const block = renderStanding(
        fitting.slice(0, count).map(({ pin }) => pin),
        missing.length - count,
      );
      if (block.tokens <= tokensMax) return block;
    }
    return null;
  };
}

/** What the block says of one pin. */
export const lineOf = ({ message, saidAt, words }: Pin): string =>
  `<instruction id="${messageName(message)}" said_at="${saidAt.slice(0, 19)}Z">${escapeText(words)}</instruction>`;

const frame = (inside: string, left: number): string =>
  `<standing_instructions record="the user's own words, from earlier messages that are not shown; newest first, and a ` +
  `newer one overrides an older one"${left === 0 ? "" : ` not_shown="${left}"`}>\n${inside}\n</standing_instructions>`;

const frameTokens = tokensOf({ role: "user", content: frame("", 99) });

/** The block with exactly these pins, of which the newest comes first. */
export function renderStanding(pins: readonly Pin[], left: number): StandingBlock {
  const [newest] = pins;
  const message = {
    role: "user",
    content: frame(pins.map(lineOf).join("\n"), left),
    // The host shows each message's time.
    ...(newest === undefined ? {} : { timestamp: timestampToMs(newest.saidAt) }),
  };
  return { message, tokens: tokensOf(message), pins, left };
}
