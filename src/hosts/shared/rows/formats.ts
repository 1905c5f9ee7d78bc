/** All formats of hosts, and which of them a row is written in. */

import { isObject, type Json, type JsonObject } from "../../../core/base/json.ts";
import { chatGptRows, rowsOfChat } from "./chatgpt.ts";
import { claudeAiRows, rowsOfClaudeChat } from "./claude-ai.ts";
import { claudeCodeRows } from "./claude-code.ts";
import { codexRows } from "./codex.ts";
import { openCodeRows } from "./opencode.ts";
import { piRows } from "./pi.ts";
import type { HostName, RowFormat } from "./row-format.ts";

const formats: readonly RowFormat[] = [claudeCodeRows, codexRows, openCodeRows, chatGptRows, claudeAiRows, piRows];

/** A chat of an export that has many. */
export interface ExportedChat {
  readonly format: RowFormat;
  readonly rows: readonly JsonObject[];
}

/** The chats in a data export of a web product; null if the document is something else. */
export function chatsIn(document: Json): readonly ExportedChat[] | null {
  if (!Array.isArray(document) || document.length === 0) return null;
  const chats = document.map((chat: Json): ExportedChat | null => {
    const ofChatGpt = rowsOfChat(chat);
    if (ofChatGpt !== null) return { format: chatGptRows, rows: ofChatGpt };
    const ofClaude = rowsOfClaudeChat(chat);
    return ofClaude === null ? null : { format: claudeAiRows, rows: ofClaude };
  });
  return chats.some((chat) => chat === null) ? null : chats.filter((chat) => chat !== null);
}

export const formatOf = (host: HostName): RowFormat => formats.find((format) => format.host === host) ?? piRows;

/** Null for a row that no host can be told from. */
export const recogniseRow = (row: Json): RowFormat | null =>
  isObject(row) ? (formats.find((format) => format.recognises(row)) ?? null) : null;
