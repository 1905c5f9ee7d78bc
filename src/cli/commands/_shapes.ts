/** What the JSON output of several commands contains. */

import { levels, operations, roles } from "../../core/model/types.ts";
import { about, either, flag, list, maybe, object, oneOf, text, time, whole, type Schema } from "./_json.ts";

export const role = oneOf(...roles);
export const level = oneOf(...levels);

export const failureJson = object({ code: text, message: text, "hint?": text });

export const conversationFields = {
  id: whole,
  sessionId: text,
  sessionKey: maybe(text),
  agentId: maybe(text),
  folder: about(maybe(text), "the working folder of the session"),
  parentSessionId: about(maybe(text), "the session that started this one"),
  active: about(flag, "the newest segment of its session key"),
  hidden: about(flag, "the host deleted the session"),
  title: maybe(text),
  createdAt: time,
  updatedAt: time,
  lastMessageAt: maybe(time),
  totals: object({
    messages: whole,
    messageTokens: whole,
    summaries: whole,
    contextItems: whole,
    contextTokens: whole,
    contextMessages: whole,
    contextMessageTokens: whole,
  }),
  revision: about(whole, "incremented by every write"),
  hostCursor: about(maybe(text), "position in the host's transcript up to which everything is stored"),
  fileCursor: about(maybe(text), "the same in imported files"),
  forgets: about(whole, "incremented by every redaction"),
  caughtUp: about(whole, "user messages outside a committed turn"),
  promptBudget: about(maybe(whole), "in tokens, as last set by the host"),
};

/** Marks between messages. */
export const marks = list(
  object({
    conversation: whole,
    afterSeq: about(whole, "the message that it follows"),
    at: maybe(time),
    kind: oneOf("compaction", "segment", "model"),
    text,
  }),
);

/** The size of something in the context. */
export const share = object({ items: whole, tokens: whole });

export const usageJson = object({
  calls: whole,
  inputTokens: whole,
  outputTokens: whole,
  failures: whole,
  open: about(whole, "calls without a result yet"),
  embedCalls: about(whole, "calls of a remote embedding model, which have a ceiling of their own"),
  embedTokens: whole,
});

export const dueFields = {
  kind: oneOf("sweep", "incremental", "nothing"),
  budget: whole,
  thresholdTokens: whole,
  targetTokens: about(whole, "where an automatic sweep stops; 0: when nothing is left to fold"),
  promptTokens: whole,
  rawTokens: whole,
};

export const modelJson = object({
  name: about(text, "provider/model"),
  from: about(text, "where it is configured"),
  problem: about(maybe(text), "why it cannot be used"),
});

export const backupFields = { path: text, bytes: whole };

export const misplacedJson = list(object({ place: text, keys: list(text) }));

export const caveats = list(
  either(
    object({ kind: oneOf("limit"), limit: whole }),
    object({ kind: oneOf("time"), timeoutMs: whole, scanned: whole, of: whole }),
    object({ kind: oneOf("newest_ranked"), ranked: whole }),
    object({ kind: oneOf("partial_match"), missing: list(text) }),
    object({ kind: oneOf("corrected"), words: list(object({ from: text, to: text })) }),
    object({ kind: oneOf("as_words"), words: text }),
    object({ kind: oneOf("beyond_end"), asked: whole, last: whole }),
    object({ kind: oneOf("files", "unreadable"), files: whole }),
    object({ kind: oneOf("unindexed"), rows: whole }),
    object({ kind: oneOf("no_meaning"), reason: text }),
    object({ kind: oneOf("unembedded"), messages: whole, of: whole }),
  ),
);

export const findings = list(
  object({
    severity: oneOf("error", "warning", "info"),
    code: text,
    conversation: maybe(whole),
    subject: text,
    message: text,
    remedy: about(maybe(text), "the command that fixes it"),
  }),
);

/** A summary in a plan. */
export const summaryFields = {
  id: text,
  depth: whole,
  tokens: whole,
  earliestAt: maybe(time),
  latestAt: maybe(time),
  opening: about(text, "the beginning of its text"),
};

const changeFields = {
  change: whole,
  at: time,
  operation: oneOf(...operations),
  conversations: list(whole),
  what: text,
  state: oneOf("holds", "undone", "partly undone", "for good"),
  undoneBy: list(whole),
  undoes: about(maybe(whole), "the change that it undid"),
  wayBack: about(maybe(text), "the command that undoes or redoes it"),
};

const steps = list(
  object({
    conversation: maybe(whole),
    subject: text,
    what: text,
    texts: maybe(object({ before: text, after: text })),
    undoneBy: maybe(whole),
  }),
);

export const changeJson = object({ ...changeFields, steps });
export const changeInListJson = object({ ...changeFields, "steps?": steps });

/** What a command prints that is a dry run without `--apply`. */
export const planned = <P, R>(plan: Schema<P>, result: Schema<R>) =>
  object({
    dryRun: flag,
    applied: flag,
    plan,
    "result?": result,
    "backup?": about(maybe(text), "the path of the backup that was made first"),
    "error?": failureJson,
  });
