/** Escaping: keeps stored text from opening or closing an element of a prompt. */

import { once } from "./once.ts";
import { estimateTokens } from "./tokens.ts";

export const escapeText = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

export const escapeAttribute = (text: string): string => escapeText(text).replaceAll('"', "&quot;");

/** Tokens of a summary's text in a prompt, where it is escaped. */
export const renderedTokens = (text: string): number => estimateTokens(escapeText(text));

/** Text by others inside a user's message, with our own elements defused. What the user wrote is shown unchanged. */
export const disarm = (text: string): string => text.replace(forgedElement(), "&lt;");

/** Matches what opens or closes an element of these names, in any case, with blanks or invisible characters, or wide. */
export const forgeries = (names: readonly string[]): RegExp =>
  new RegExp(
    `[<\\uff1c\\ufe64](?=[\\s\\p{Cf}/\\uff0f]*(?:${names
      .map((name) => [...name].join("[\\s\\p{Cf}]*").replaceAll("_", "[_\\uff3f-]?"))
      .join("|")}))`,
    "giu",
  );

const forgedElement = once(() => forgeries(["summary", "parents", "content", "standing_instructions", "instruction"]));
