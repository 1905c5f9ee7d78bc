/** The blocks of a message as they came, whichever host wrote it: texts, calls, results, pictures. */

import { isObject, type Json, type JsonObject } from "../core/base/json.ts";
import type { HostMessage } from "../core/messages/codec.ts";
import {
  isFailedResult,
  isHostsReminder,
  mediaDataOf,
  reasoningFieldOf,
  resultToolIn,
  blocksOf,
} from "../core/messages/dialects.ts";
import { saidIn, type Said } from "../core/messages/said.ts";
import { isFileId } from "../core/model/types.ts";
import type { FileId } from "../core/model/types.ts";
import type { Block } from "./contract.ts";

/** `files` were moved out of the message: a text that is only the reference of one becomes a link to it. */
export function blocksIn(raw: HostMessage, files: ReadonlySet<FileId>): readonly Block[] {
  const said = saidIn(raw);
  const isAlone = said.every(isReminder);
  if (said.length > 0)
    return said.flatMap((each): readonly Block[] =>
      isReminder(each) && !isAlone ? [{ kind: "reminder", text: each.text }] : blockOf(each, raw, files),
    );
  const { content } = raw;
  if (typeof content === "string") return content === "" ? [] : [{ kind: "text", text: content }];
  return Array.isArray(content) ? content.map(other) : [other(raw)];
}

const isReminder = (said: Said): said is Extract<Said, { readonly kind: "text" }> =>
  said.kind === "text" && said.role === "user" && isHostsReminder(said.text);

function blockOf(said: Said, raw: HostMessage, files: ReadonlySet<FileId>): readonly Block[] {
  switch (said.kind) {
    case "text":
      return [textOrFile(said.text, files)];
    case "call": {
      const { id, name, input } = said;
      return [{ kind: "call", id, name, input }];
    }
    case "result":
      return resultOf(said, raw, files);
    case "reasoning":
      return [{ kind: "reasoning", text: reasoningIn(said.block) }];
    case "other":
      return [pictureOf(said.block, files) ?? other(said.block)];
  }
}

/** The texts of a result are one block; its pictures follow. */
function resultOf(
  { id, content, isError }: Extract<Said, { readonly kind: "result" }>,
  raw: HostMessage,
  files: ReadonlySet<FileId>,
): readonly Block[] {
  const inside = blocksOf(content);
  const texts = inside.flatMap((block) =>
    isObject(block) && typeof block["text"] === "string" ? [block["text"]] : [],
  );
  const pictures = inside.flatMap((block) => pictureOf(block, files) ?? []);
  const isBare = inside.length > 0 && texts.length === 0 && pictures.length === 0;
  const text = isBare || (inside.length === 0 && typeof content !== "string") ? jsonOf(content) : texts.join("\n");
  const isFailed = isError || isFailedResult(raw);
  const moved = textOrFile(text, files);
  return [
    { kind: "result", id, name: resultToolIn(raw), isFailed, text },
    ...(moved.kind === "file" ? [moved] : []),
    ...pictures,
  ];
}

const jsonOf = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

function reasoningIn(block: JsonObject): string {
  const { text, thinking } = block;
  const own = block[reasoningFieldOf(block) ?? ""];
  const found = [own, thinking, text].find((value) => typeof value === "string");
  return typeof found === "string" ? found : "(reasoning)";
}

function textOrFile(text: string, files: ReadonlySet<FileId>): Block {
  const file = movedIn(text, files);
  return file === null ? { kind: "text", text } : { kind: "file", file, text };
}

/** The file to which this text is a reference. */
function movedIn(text: string, files: ReadonlySet<FileId>): FileId | null {
  const [first = ""] = /file_[0-9a-f]{16}/.exec(text) ?? [];
  return isFileId(first) && files.has(first) ? first : null;
}

/** What a browser shows without running anything in it. */
export const pictureTypes = ["image/png", "image/jpeg", "image/gif", "image/webp"] as const;

/** In the message, or moved to a file. */
function pictureOf(block: Json, files: ReadonlySet<FileId>): Block | null {
  const data = mediaDataOf(block);
  if (data === null || !isObject(block)) return null;
  const { source } = block;
  const named = [block["mimeType"], block["media_type"], isObject(source) ? source["media_type"] : undefined];
  const moved = movedIn(data.slice(0, referenceMax), files);
  const isType = (type: string): boolean => named.includes(type) || (moved !== null && data.includes(type));
  const mimeType = pictureTypes.find(isType) ?? typeBySignature(data);
  if (mimeType === undefined) return null;
  if (moved !== null) return { kind: "picture", address: pictureAddress(moved), mimeType };
  return /^[\w+/=\s-]+$/.test(data) ? { kind: "picture", address: `data:${mimeType};base64,${data}`, mimeType } : null;
}

/** A reference names its file at its beginning. */
const referenceMax = 200;
export const pictureAddress = (file: FileId): string => `/api/picture?id=${file}`;

const signatures: readonly (readonly [string, (typeof pictureTypes)[number]])[] = [
  ["iVBORw0KGgo", "image/png"],
  ["/9j/", "image/jpeg"],
  ["R0lGOD", "image/gif"],
  ["UklGR", "image/webp"],
];
const typeBySignature = (data: string) => signatures.find(([start]) => data.startsWith(start))?.[1];

const other = (json: Json): Block => {
  const type = isObject(json) && typeof json["type"] === "string" ? json["type"] : "message";
  return { kind: "other", type, json };
};
