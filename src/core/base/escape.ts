/** Escaping: stored text can neither open nor close an element of a prompt. */

import { estimateTokens } from "./tokens.ts";
/** What the text of a summary costs in a prompt, where it is escaped. */
export const renderedTokens = (text: string): number => estimateTokens(escapeText(text));

/**
 * Text that somebody else wrote and that we put into a user's message: it may look like anything but one of our
 * elements. What a user wrote is shown as it is.
 */
export const disarm = (text: string): string => text.replace(forgedElement, "&lt;");

/** What opens or closes something like an element: in any case, with blanks or invisible characters in it, in wide signs. */
export const forgeries = (names: readonly string[]): RegExp =>
  new RegExp(
    `[<\\uff1c\\ufe64](?=[\\s\\p{Cf}/\\uff0f]*(?:${names
      .map((name) => [...name].join("[\\s\\p{Cf}]*").replaceAll("_", "[_\\uff3f-]?"))
      .join("|")}))`,
    "giu",
  );

const forgedElement = forgeries(["summary", "parents", "content"]);

export const escapeText = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

export const escapeAttribute = (text: string): string => escapeText(text).replaceAll('"', "&quot;");
