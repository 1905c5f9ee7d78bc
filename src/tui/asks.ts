/** Everything the UI can ask for (reads, writes, model calls), and how an ask is performed. */

import { contextAsks } from "./context/asks.ts";
import { conversationsAsks } from "../operator/conversations.ts";
import { summariesAsks } from "./summaries/asks.ts";
import { messagesAsks } from "./messages/asks.ts";
import { searchAsks } from "../operator/search.ts";
import { statusAsks } from "./status/asks.ts";
import { transcriptsAsks } from "./transcripts/asks.ts";
import { askAsks } from "./ask/asks.ts";
import { workAsks } from "../operator/work.ts";
import { changesAsks } from "../operator/changes.ts";
import { filesAsks } from "./files/asks.ts";
import { historyAsks } from "../operator/history.ts";
import { promptsAsks } from "../operator/prompts.ts";
import { rewriteAsks } from "../operator/rewrite.ts";
import type { Doing } from "../operator/port.ts";

const all = {
  ...conversationsAsks,
  ...messagesAsks,
  ...summariesAsks,
  ...contextAsks,
  ...searchAsks,
  ...statusAsks,
  ...transcriptsAsks,
  ...filesAsks,
  ...historyAsks,
  ...promptsAsks,
  ...changesAsks,
  ...rewriteAsks,
  ...workAsks,
  ...askAsks,
};

type All = typeof all;
type Kind = keyof All;
type Result<K extends Kind> = Awaited<ReturnType<All[K]>>;

export type Ask<K extends Kind = Kind> = { readonly [P in K]: { readonly kind: P } & Parameters<All[P]>[0] }[K];

export type AskAnswer<K extends Kind = Kind> = {
  readonly [P in K]: { readonly kind: P; readonly ask: Ask<P>; readonly result: Result<P> };
}[K];

const performers: { readonly [K in Kind]: (ask: Ask<K>, doing: Doing) => Promise<Result<K>> } = all;

export async function perform<K extends Kind>(ask: Ask<K>, doing: Doing): Promise<AskAnswer<K>> {
  const kind: K = ask.kind;
  return { kind, ask, result: await performers[kind](ask, doing) };
}
