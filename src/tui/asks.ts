/** Everything the UI can ask for (reads, writes, model calls), and how an ask is performed. */

import { contextAsks } from "./context/asks.ts";
import { conversationsAsks } from "./conversations/asks.ts";
import { summariesAsks } from "./summaries/asks.ts";
import { messagesAsks } from "./messages/asks.ts";
import { searchAsks } from "./search/asks.ts";
import { statusAsks } from "./status/asks.ts";
import { transcriptsAsks } from "./transcripts/asks.ts";
import { askAsks } from "./ask/asks.ts";
import { workAsks } from "./dialogs/work-asks.ts";
import { changesAsks } from "./dialogs/changes-asks.ts";
import { filesAsks } from "./files/asks.ts";
import { historyAsks } from "./history/asks.ts";
import { rewriteAsks } from "./dialogs/rewrite/asks.ts";
import type { Doing } from "./port.ts";

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
