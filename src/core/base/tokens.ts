/**
 * Estimates how many tokens a text has, without a tokenizer.
 * The reference is o200k, which cuts a text into pieces by a fixed pattern, then merges the bytes of each piece by a
 * table of 200,000 entries. Here an automaton over kinds of characters cuts in the same way, and each of its steps has a
 * price instead: what such pieces cost on average.
 */

import { tables } from "./token-tables.ts";

// Local constants: imported bindings are slower in the loop below.
const { asciiPairs, kindOf, steps, pending, isTied, tied, rowSize, priceBits, priceMask } = tables;

/**
 * Within 15% of o200k on English, code, Chinese, Japanese and Korean; not below it on JSON, logs and encoded bytes.
 * Joining two texts never adds more than a few tokens to the sum of theirs.
 */
export function estimateTokens(text: string): number {
  const length = text.length;
  let hundredths = 0;
  let row = 0;
  let before = 0;
  for (let at = 0; at < length; at++) {
    const unit = text.charCodeAt(at);
    let column: number;
    if ((unit | before) < 128) {
      const pair = asciiPairs[(before << 7) | unit] ?? 0;
      column = pair >> 8;
      hundredths += pair & 255;
    } else {
      column = (kindOf[unit] ?? 0) | (isTied(before, unit) ? tied : 0);
    }
    const step = steps[row | column] ?? 0;
    hundredths += step & priceMask;
    row = step >> priceBits;
    before = unit;
  }
  hundredths += pending[row / rowSize] ?? 0;
  return hundredths === 0 ? 0 : Math.max(1, Math.round(hundredths / 100));
}

/** No text has more tokens than this per UTF-16 unit. */
export const tokensPerCharacterMax = 4;

export const sumTokens = (items: readonly { readonly tokens: number }[]): number =>
  items.reduce((sum, { tokens }) => sum + tokens, 0);
