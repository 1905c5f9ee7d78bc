/**
 * Everything that can be asked of the outside, and what is answered. A part of the UI says what it asks and who performs
 * it; here they are put together. Performing changes no state: the answer is an event.
 */

import { contextAsks } from "./screens/context-asks.ts";
import type { ContextAsks } from "./screens/context-asks.ts";
import { conversationsAsks } from "./screens/conversations-asks.ts";
import type { ConversationsAsks } from "./screens/conversations-asks.ts";
import { dagAsks } from "./screens/dag-asks.ts";
import type { DagAsks } from "./screens/dag-asks.ts";
import { messagesAsks } from "./screens/messages-asks.ts";
import type { MessagesAsks } from "./screens/messages-asks.ts";
import { searchAsks } from "./screens/search-asks.ts";
import type { SearchAsks } from "./screens/search-asks.ts";
import { statusAsks } from "./screens/status-asks.ts";
import type { StatusAsks } from "./screens/status-asks.ts";
import { transcriptsAsks } from "./screens/transcripts-asks.ts";
import type { TranscriptsAsks } from "./screens/transcripts-asks.ts";
import { changesAsks } from "./dialogs/changes-asks.ts";
import type { ChangesAsks } from "./dialogs/changes-asks.ts";
import { rewriteAsks } from "./dialogs/rewrite-asks.ts";
import type { RewriteAsks } from "./dialogs/rewrite-asks.ts";
import type { Doing, Performers } from "./port.ts";

interface Asks
  extends
    ConversationsAsks,
    MessagesAsks,
    DagAsks,
    ContextAsks,
    SearchAsks,
    StatusAsks,
    TranscriptsAsks,
    ChangesAsks,
    RewriteAsks {}

type Kind = keyof Asks;

/** What is asked: a kind, and what that takes. */
export type Ask<K extends Kind = Kind> = { readonly [P in K]: { readonly kind: P } & Asks[P]["ask"] }[K];

/** The answer, beside what was asked. */
export type Answer<K extends Kind = Kind> = {
  readonly [P in K]: { readonly kind: P; readonly ask: Ask<P>; readonly told: Asks[P]["told"] };
}[K];

const performers: Performers<Asks> = {
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

/** What is answered, as an event can carry it. */
export async function perform<K extends Kind>(ask: Ask<K>, doing: Doing): Promise<Answer<K>> {
  const kind: K = ask.kind;
  return { kind, ask, told: await performers[kind](ask, doing) };
}
