/**
 * Everything that can be asked of the outside, and what is answered. A part of the UI says who performs what it asks, which
 * throws what the core throws; here they are put together. Performing changes no state: the answer is an event.
 */

import { contextAsks } from "./context/asks.ts";
import { conversationsAsks } from "./conversations/asks.ts";
import { dagAsks } from "./summaries/asks.ts";
import { messagesAsks } from "./messages/asks.ts";
import { searchAsks } from "./search/asks.ts";
import { statusAsks } from "./status/asks.ts";
import { transcriptsAsks } from "./transcripts/asks.ts";
import { changesAsks } from "./dialogs/changes-asks.ts";
import { rewriteAsks } from "./dialogs/rewrite/asks.ts";
import type { Doing } from "./port.ts";

const all = {
  ...conversationsAsks,
  ...messagesAsks,
  ...dagAsks,
  ...contextAsks,
  ...searchAsks,
  ...statusAsks,
  ...transcriptsAsks,
  ...changesAsks,
  ...rewriteAsks,
};

type All = typeof all;
type Kind = keyof All;
type Told<K extends Kind> = Awaited<ReturnType<All[K]>>;

/** What is asked: a kind, and what that takes. */
export type Ask<K extends Kind = Kind> = { readonly [P in K]: { readonly kind: P } & Parameters<All[P]>[0] }[K];

/** The answer, beside what was asked. */
export type Answer<K extends Kind = Kind> = {
  readonly [P in K]: { readonly kind: P; readonly ask: Ask<P>; readonly told: Told<P> };
}[K];

const performers: { readonly [K in Kind]: (ask: Ask<K>, doing: Doing) => Promise<Told<K>> } = all;

/** What is answered, as an event can carry it. */
export async function perform<K extends Kind>(ask: Ask<K>, doing: Doing): Promise<Answer<K>> {
  const kind: K = ask.kind;
  return { kind, ask, told: await performers[kind](ask, doing) };
}
