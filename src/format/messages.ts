/** Formats messages on one line or in full, and the opening of a summary. */

import { belowHeadings } from "../core/base/excerpt.ts";
import { readableMessage } from "../core/messages/codec.ts";
import { resultToolIn } from "../core/messages/dialects.ts";
import type { Message, Part, Summary } from "../core/model/types.ts";
import { isObject, type Json } from "../core/base/json.ts";
import { harmless, oneLine } from "./safe-text.ts";
import type { Page } from "./page.ts";

export function inShort(message: Message): string {
  const result = message.role === "tool" ? toolNameOf(message) : null;
  const said = message.parts.map(partInShort).filter((text) => text !== "");
  const aside = message.aside === "branch" ? "(abandoned branch) " : message.aside === "note" ? "(note) " : "";
  const text =
    said.length > 0 ? said.join("  ") : message.parts.length > 0 ? "(thinking)" : oneLine(message.text) || "(empty)";
  return `${aside}${result === null ? "" : `← ${result}  `}${text}`;
}

function toolNameOf(message: Message): string | null {
  const name = resultToolIn(readableMessage(message)) ?? message.parts.find((part) => part.toolName !== null)?.toolName;
  return typeof name === "string" ? oneLine(name) : null;
}

/** Tables cut the text anyway, so a megabyte need not be scanned. */
const charactersRead = 2_000;

function partInShort(part: Part): string {
  const text = oneLine((part.text ?? "").slice(0, charactersRead));
  switch (part.type) {
    case "reasoning":
      return "";
    case "tool":
      return `→ ${text || oneLine(part.toolName ?? "a tool")}`;
    case "text":
      return text;
    default:
      // A sealed message shows a note.
      if (part.kept !== null) return part.kept;
      // Text from a field beside the content has no block type.
      if (part.metadata?.startsWith('{"field":') === true) return text;
      return [`[${blockTypeOf(part)}]`, text].filter((words) => words !== "").join(" ");
  }
}

/** How a summary begins, without bare headings and the `[time] [speaker]` prefix of an extracted sentence. */
export const openingOf = ({ text }: Pick<Summary, "text">): string =>
  oneLine(belowHeadings(text.slice(0, charactersRead))).replace(/^(?:\[[^\]]*\]\s*)+/, "");

const blockTypeLength = 40;

/** The host's name for a block type that we do not know; its stored type is a generic one. */
function blockTypeOf(part: Part): string {
  const metadata: Json = part.metadata === null ? null : JSON.parse(part.metadata);
  const raw = isObject(metadata) ? metadata["raw"] : undefined;
  if (raw === undefined) return part.type;
  const type = isObject(raw) ? raw["type"] : undefined;
  return typeof type === "string" && type !== "" ? oneLine(type.slice(0, blockTypeLength)) : "unknown";
}

/** `source` names the tool that a result came from; a `reminder` is what the host put beside the user's words. */
export interface MessageSection {
  readonly kind: "said" | "thinking" | "call" | "returned" | "source" | "reminder";
  readonly text: string;
}

/** In the order of the message, but reminders of the host come after what was said. */
export function sectionsOf(message: Message): readonly MessageSection[] {
  const isResult = message.role === "tool";
  const sections = message.parts.map((part): MessageSection => {
    if (part.type === "reasoning") return { kind: "thinking", text: part.kept ?? "(reasoning)" };
    if (part.type === "text" && part.kept !== null) return { kind: "reminder", text: part.kept };
    if (part.type === "tool") return { kind: "call", text: `→ ${part.text ?? part.toolName ?? ""}` };
    return { kind: isResult || part.toolCallId !== null ? "returned" : "said", text: part.text ?? partInShort(part) };
  });
  const kind = isResult ? "returned" : "said";
  const inOrder = [...sections.filter(isOwn), ...sections.filter((section) => !isOwn(section))];
  const all = inOrder.length > 0 ? inOrder : [{ kind, text: message.text || "(empty)" } as const];
  const source = isResult ? toolNameOf(message) : null;
  return source === null ? all : [{ kind: "source", text: `← ${source}` }, ...all];
}

const isOwn = ({ kind }: MessageSection): boolean => kind !== "reminder";

/** What is shown in a softer colour: it was not said in the conversation. */
export const isSoft = ({ kind }: Pick<MessageSection, "kind">): boolean =>
  kind === "thinking" || kind === "source" || kind === "reminder";

/** A whole message, with its reasoning. */
export const wholeLines = ({ paint }: Pick<Page, "paint">, message: Message): readonly string[] =>
  sectionsOf(message).flatMap((section) => {
    const lines = harmless(section.text).split("\n");
    return isSoft(section) ? lines.map((line) => paint.soft(line)) : lines;
  });
