/** A message as a person reads it: in one line, or whole. And how a summary begins. */

import { messageFromStore } from "../core/messages/codec.ts";
import { resultToolIn } from "../core/messages/dialects.ts";
import type { Message, Part, Summary } from "../core/model/types.ts";
import type { Json } from "../core/base/json.ts";
import { isObject } from "../core/base/json.ts";
import { harmless, oneLine } from "./safe-text.ts";
import type { Page } from "./page.ts";

/** A message in one line: what it says, and what it calls. */
export function inShort(message: Message): string {
  const result = message.role === "tool" ? toolNameOf(message) : null;
  const said = message.parts.map(partInShort).filter((text) => text !== "");
  const aside = message.aside === "branch" ? "(left branch) " : message.aside === "note" ? "(note) " : "";
  const text =
    said.length > 0 ? said.join("  ") : message.parts.length > 0 ? "(thinking)" : oneLine(message.text) || "(empty)";
  return `${aside}${result === null ? "" : `← ${result}  `}${text}`;
}

function toolNameOf(message: Message): string | null {
  const name =
    resultToolIn(messageFromStore(message)) ?? message.parts.find((part) => part.toolName !== null)?.toolName;
  return typeof name === "string" ? oneLine(name) : null;
}

/** A table cuts it anyway; a megabyte need not be looked through for that. */
const charactersLookedAt = 2_000;

function partInShort(part: Part): string {
  const text = oneLine((part.text ?? "").slice(0, charactersLookedAt));
  switch (part.type) {
    case "reasoning":
      return "";
    case "tool":
      return `→ ${text || oneLine(part.toolName ?? "a tool")}`;
    case "text":
      return text;
    default:
      // What is said beside the content has no block to name.
      if (part.metadata?.startsWith('{"field":') === true) return text;
      return [`[${blockTypeOf(part)}]`, text].filter((words) => words !== "").join(" ");
  }
}

/** How a summary begins, without the time and the speaker that stand before an extracted sentence. */
export const openingOf = ({ text }: Pick<Summary, "text">): string =>
  oneLine(text.slice(0, charactersLookedAt)).replace(/^(?:\[[^\]]*\]\s*)+/, "");

const blockTypeLength = 40;

/** The host's own word for a block of a kind unknown to us. Kinds unknown to us are stored under a type that is not theirs. */
function blockTypeOf(part: Part): string {
  const metadata: Json = part.metadata === null ? null : JSON.parse(part.metadata);
  const raw = isObject(metadata) ? metadata["raw"] : undefined;
  if (raw === undefined) return part.type;
  const type = isObject(raw) ? raw["type"] : undefined;
  return typeof type === "string" && type !== "" ? oneLine(type.slice(0, blockTypeLength)) : "unknown";
}

/** What a message is made of: something said or thought, a call of a tool, what came back, and who it came from. */
export interface Piece {
  readonly kind: "said" | "thinking" | "call" | "returned" | "source";
  readonly text: string;
}

export function piecesOf(message: Message): readonly Piece[] {
  const isResult = message.role === "tool";
  const pieces = message.parts.map((part): Piece => {
    if (part.type === "reasoning") return { kind: "thinking", text: part.kept ?? "(reasoning)" };
    if (part.type === "tool") return { kind: "call", text: `→ ${part.text ?? part.toolName ?? ""}` };
    return { kind: isResult || part.toolCallId !== null ? "returned" : "said", text: part.text ?? partInShort(part) };
  });
  const kind = isResult ? "returned" : "said";
  const all = pieces.length > 0 ? pieces : [{ kind, text: message.text || "(empty)" } as const];
  const source = isResult ? toolNameOf(message) : null;
  return source === null ? all : [{ kind: "source", text: `← ${source}` }, ...all];
}

/** All of a message, with its reasoning, line by line. */
export const wholeLines = ({ paint }: Pick<Page, "paint">, message: Message): readonly string[] =>
  piecesOf(message).flatMap(({ kind, text }) => {
    const lines = harmless(text).split("\n");
    return kind === "thinking" || kind === "source" ? lines.map((line) => paint.soft(line)) : lines;
  });
