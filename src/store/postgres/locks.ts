/**
 * What each write locks. Writes of one conversation, session or ledger exclude each other, in this process and in all
 * others; a write that may touch anything excludes all others.
 */

import { createHash } from "node:crypto";
import type { SessionIdentity } from "../../core/model/store.ts";
import type { writes } from "../operations.ts";

/** The number of a conversation, the name of something else, or null for everything. */
export type Lock = number | string | null;

const session = ([{ sessionKey, sessionId }]: readonly [SessionIdentity, ...unknown[]]): Lock =>
  `session ${sessionKey ?? sessionId}`;
const conversation = ([id]: readonly [number, ...unknown[]]): Lock => id;
const planned = ([plan]: readonly [{ readonly conversation: number }, ...unknown[]]): Lock => plan.conversation;
const ledger = (): Lock => "ledger";
const everything = (): Lock => null;

type Arguments<Script> = Script extends (deps: never, ...args: infer Args) => unknown ? Args : never;

export const lockOf: { readonly [Name in keyof typeof writes]: (args: Arguments<(typeof writes)[Name]>) => Lock } = {
  open: session,
  openSession: session,
  openSegment: session,
  setTitle: conversation,
  setHidden: conversation,
  setSession: everything,
  setPromptBudget: conversation,
  append: conversation,
  fold: conversation,
  dissolve: everything,
  rewrite: everything,
  pin: planned,
  transplant: everything,
  fix: everything,
  sweepOrphans: everything,
  undo: everything,
  saveDraft: ([summary]) => `drafts of ${summary}`,
  saveMapAnswers: () => "map answers",
  saveVectors: planned,
  dropVectors: everything,
  recordEmbedder: ledger,
  issueGrant: ledger,
  spendGrant: ledger,
  revokeGrant: ledger,
  sweepGrants: ledger,
  beginCall: ledger,
  endCall: ledger,
  recordCompaction: planned,
  recordPrompt: conversation,
  endPrompt: conversation,
};

const hash = (text: string): number => createHash("sha256").update(text).digest().readInt32LE();

/** Numbers of conversations are positive, so names get negative ones. */
const numberOf = (lock: number | string): number => (typeof lock === "number" ? lock : -Math.abs(hash(lock)) - 1);

/** The statement that takes a lock until the transaction ends. Locks are of the database, so schemas have theirs. */
export function lockStatement(schema: string, lock: Lock): string {
  const room = hash(schema);
  return lock === null
    ? `SELECT pg_advisory_xact_lock(${room}, 0)`
    : `SELECT pg_advisory_xact_lock_shared(${room}, 0), pg_advisory_xact_lock(${room}, ${numberOf(lock)})`;
}

/** A condition that is true if the conversation's lock could be taken without waiting. */
export const tryLock = (schema: string): string => `pg_try_advisory_xact_lock(${hash(schema)}, conversation_id::int)`;

/** For writes that take the locks of conversations as they go. */
export const sharedLockStatement = (schema: string): string =>
  `SELECT pg_advisory_xact_lock_shared(${hash(schema)}, 0)`;
