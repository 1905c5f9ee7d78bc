/**
 * Defines the tables and indexes of a database. Adopting rebuilds an older file to exactly these (adopt/rebuild.ts).
 *
 * Every key contains conversation_id, so rows can be distributed by it. So do ids of messages, which are therefore keys by
 * themselves, and of summaries: `conversation_id << 24` plus a number counted in `conversations`. What is unique across
 * conversations is in `registry`.
 *
 * Text is stored once: a message's `content` is its parts' texts joined by newlines, and a part keeps only the length
 * of its own. Ordinals of the context are an order with gaps, not an index.
 */

import type { TableName } from "../ownership.ts";

export const schemaVersion = 7;

/** "LCM1": distinguishes our files from other SQLite files. */
export const applicationId = 0x4c434d31;

const messageKey = "FOREIGN KEY (message_id) REFERENCES messages (message_id) ON DELETE RESTRICT";
const summaryKey = (column: string): string =>
  `FOREIGN KEY (conversation_id, ${column}) REFERENCES summaries (conversation_id, summary_id)`;

/** Whether the search index has all rows of a conversation. `unindexed` is 1 otherwise, and may be 1 when it has. */
export const isIndexed = "(indexed_seq >= next_seq - 1 AND indexed_summary >= last_summary)";

export const tables = {
  /** The active conversation of each session, and the last number given to a conversation or an operator's change. */
  registry: `
    CREATE TABLE registry (
      kind TEXT NOT NULL CHECK (kind IN ('session', 'conversations', 'changes')),
      session_key TEXT NOT NULL DEFAULT '',
      agent_id TEXT NOT NULL DEFAULT '',
      number INTEGER NOT NULL,
      PRIMARY KEY (kind, session_key, agent_id)
    ) WITHOUT ROWID`,
  /** Without a rowid, no number is assigned by itself: a process of an earlier version must not create conversations. */
  conversations: `
    CREATE TABLE conversations (
      conversation_id INTEGER PRIMARY KEY,
      session_id TEXT NOT NULL,
      session_key TEXT,
      agent_id TEXT,
      active INTEGER NOT NULL DEFAULT 1,
      hidden INTEGER NOT NULL DEFAULT 0,
      title TEXT,
      created_at TEXT NOT NULL,
      updated_at TEXT NOT NULL,
      last_message_at TEXT,
      message_count INTEGER NOT NULL DEFAULT 0,
      message_tokens INTEGER NOT NULL DEFAULT 0,
      summary_count INTEGER NOT NULL DEFAULT 0,
      context_items INTEGER NOT NULL DEFAULT 0,
      context_tokens INTEGER NOT NULL DEFAULT 0,
      context_messages INTEGER NOT NULL DEFAULT 0,
      context_message_tokens INTEGER NOT NULL DEFAULT 0,
      next_seq INTEGER NOT NULL DEFAULT 1,
      last_summary INTEGER NOT NULL DEFAULT 0,
      indexed_seq INTEGER NOT NULL DEFAULT 0,
      indexed_summary INTEGER NOT NULL DEFAULT 0,
      unindexed INTEGER NOT NULL DEFAULT 0,
      head_key TEXT,
      host_cursor TEXT,
      prompt_budget INTEGER,
      caught_up INTEGER NOT NULL DEFAULT 0,
      forgets INTEGER NOT NULL DEFAULT 0,
      revision INTEGER NOT NULL DEFAULT 0,
      folder TEXT,
      parent_session TEXT,
      CHECK (unindexed = 1 OR ${isIndexed})
    ) WITHOUT ROWID`,
  messages: `
    CREATE TABLE messages (
      message_id INTEGER PRIMARY KEY,
      conversation_id INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE RESTRICT,
      seq INTEGER GENERATED ALWAYS AS (message_id & 0xffffff) VIRTUAL,
      role TEXT NOT NULL CHECK (role IN ('system', 'user', 'assistant', 'tool')),
      content TEXT NOT NULL,
      token_count INTEGER NOT NULL,
      created_at TEXT NOT NULL,
      stored_at INTEGER NOT NULL,
      message_key TEXT NOT NULL,
      parent_key TEXT,
      envelope TEXT,
      entry TEXT,
      aside TEXT CHECK (aside IN ('branch', 'note')),
      moved TEXT,
      copied_from INTEGER,
      late INTEGER,
      checksum INTEGER,
      UNIQUE (conversation_id, message_key),
      CHECK (message_id >> 24 = conversation_id)
    )`,
  message_parts: `
    CREATE TABLE message_parts (
      message_id INTEGER NOT NULL,
      ordinal INTEGER NOT NULL,
      conversation_id INTEGER NOT NULL,
      part_id TEXT GENERATED ALWAYS AS (message_id || '.' || ordinal) VIRTUAL,
      part_type TEXT NOT NULL CHECK (part_type IN (
        'text', 'reasoning', 'tool', 'patch', 'file', 'subtask', 'compaction', 'step_start', 'step_finish', 'snapshot',
        'agent', 'retry'
      )),
      text_length INTEGER,
      text_content TEXT,
      tool_call_id TEXT,
      tool_name TEXT,
      metadata TEXT,
      PRIMARY KEY (message_id, ordinal, conversation_id),
      ${messageKey}
    ) WITHOUT ROWID`,
  summaries: `
    CREATE TABLE summaries (
      search_id INTEGER PRIMARY KEY,
      summary_id TEXT NOT NULL,
      conversation_id INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE RESTRICT,
      kind TEXT NOT NULL CHECK (kind IN ('leaf', 'condensed')),
      depth INTEGER NOT NULL DEFAULT 0,
      content TEXT NOT NULL,
      token_count INTEGER NOT NULL,
      earliest_at TEXT,
      latest_at TEXT,
      descendant_count INTEGER NOT NULL DEFAULT 0,
      created_at TEXT NOT NULL,
      updated_at TEXT NOT NULL,
      file_ids TEXT NOT NULL DEFAULT '[]',
      model TEXT,
      level TEXT NOT NULL DEFAULT 'normal' CHECK (level IN ('normal', 'aggressive', 'extractive', 'truncated')),
      revision INTEGER NOT NULL DEFAULT 0,
      previous_context TEXT,
      carried_from TEXT,
      rewrite_reason TEXT,
      checksum INTEGER,
      UNIQUE (summary_id, conversation_id),
      CHECK (search_id >> 24 = conversation_id)
    )`,
  summary_messages: `
    CREATE TABLE summary_messages (
      summary_id TEXT NOT NULL,
      message_id INTEGER NOT NULL,
      ordinal INTEGER NOT NULL,
      conversation_id INTEGER NOT NULL,
      PRIMARY KEY (summary_id, message_id, conversation_id),
      ${summaryKey("summary_id")} ON DELETE CASCADE,
      ${messageKey}
    ) WITHOUT ROWID`,
  summary_parents: `
    CREATE TABLE summary_parents (
      summary_id TEXT NOT NULL,
      parent_summary_id TEXT NOT NULL,
      ordinal INTEGER NOT NULL,
      conversation_id INTEGER NOT NULL,
      PRIMARY KEY (summary_id, parent_summary_id, conversation_id),
      ${summaryKey("summary_id")} ON DELETE CASCADE,
      ${summaryKey("parent_summary_id")} ON DELETE RESTRICT
    ) WITHOUT ROWID`,
  context_items: `
    CREATE TABLE context_items (
      conversation_id INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE RESTRICT,
      ordinal INTEGER NOT NULL,
      item_type TEXT NOT NULL CHECK (item_type IN ('message', 'summary')),
      message_id INTEGER,
      summary_id TEXT,
      PRIMARY KEY (conversation_id, ordinal),
      ${messageKey},
      ${summaryKey("summary_id")} ON DELETE RESTRICT,
      CHECK ((item_type = 'message') = (message_id IS NOT NULL) AND (item_type = 'summary') = (summary_id IS NOT NULL))
    ) WITHOUT ROWID`,
  large_files: `
    CREATE TABLE large_files (
      file_id TEXT NOT NULL,
      conversation_id INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE RESTRICT,
      file_name TEXT,
      mime_type TEXT,
      byte_size INTEGER,
      line_count INTEGER,
      encoding TEXT NOT NULL DEFAULT 'utf8' CHECK (encoding IN ('utf8', 'base64')),
      content_hash TEXT,
      storage_uri TEXT NOT NULL,
      exploration_summary TEXT,
      created_at TEXT NOT NULL,
      message_key TEXT,
      PRIMARY KEY (file_id, conversation_id)
    )`,
  expansion_grants: `
    CREATE TABLE expansion_grants (
      grant_id TEXT PRIMARY KEY,
      conversation_ids TEXT NOT NULL,
      token_cap INTEGER NOT NULL,
      tokens_used INTEGER NOT NULL DEFAULT 0,
      issued_at TEXT NOT NULL,
      expires_at TEXT NOT NULL,
      revoked_at TEXT,
      parent_grant_id TEXT REFERENCES expansion_grants(grant_id)
    )`,
  transcript_entries: `
    CREATE TABLE transcript_entries (
      entry_id INTEGER PRIMARY KEY AUTOINCREMENT,
      conversation_id INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE RESTRICT,
      entry_key TEXT NOT NULL,
      parent_key TEXT,
      after_seq INTEGER NOT NULL,
      entry_type TEXT NOT NULL,
      created_at TEXT,
      raw TEXT NOT NULL,
      checksum INTEGER,
      UNIQUE (conversation_id, entry_key)
    )`,
  turns: `
    CREATE TABLE turns (
      conversation_id INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE RESTRICT,
      turn_key TEXT NOT NULL,
      PRIMARY KEY (conversation_id, turn_key)
    ) WITHOUT ROWID`,
  missing_parents: `
    CREATE TABLE missing_parents (
      conversation_id INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE RESTRICT,
      parent_key TEXT NOT NULL,
      child_key TEXT NOT NULL,
      late_key TEXT,
      PRIMARY KEY (conversation_id, parent_key)
    ) WITHOUT ROWID`,
  model_usage: `
    CREATE TABLE model_usage (
      usage_id INTEGER PRIMARY KEY AUTOINCREMENT,
      at TEXT NOT NULL,
      conversation_id INTEGER,
      purpose TEXT NOT NULL,
      provider TEXT NOT NULL,
      model TEXT NOT NULL,
      input_tokens INTEGER NOT NULL,
      output_tokens INTEGER NOT NULL,
      result TEXT NOT NULL,
      duration_ms INTEGER NOT NULL
    )`,
  compactions: `
    CREATE TABLE compactions (
      compaction_id INTEGER PRIMARY KEY AUTOINCREMENT,
      conversation_id INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE RESTRICT,
      at TEXT NOT NULL,
      mode TEXT NOT NULL CHECK (mode IN ('incremental', 'sweep', 'until_under')),
      outcome TEXT NOT NULL,
      message TEXT NOT NULL,
      passes INTEGER NOT NULL,
      tokens_before INTEGER NOT NULL,
      tokens_after INTEGER NOT NULL,
      duration_ms INTEGER NOT NULL,
      asked INTEGER NOT NULL DEFAULT 0
    )`,
  journal: `
    CREATE TABLE journal (
      journal_id INTEGER PRIMARY KEY AUTOINCREMENT,
      change_id INTEGER NOT NULL,
      at TEXT NOT NULL,
      operation TEXT NOT NULL,
      conversation_id INTEGER,
      subject TEXT NOT NULL,
      before_json TEXT NOT NULL,
      after_json TEXT NOT NULL,
      undone_by INTEGER
    )`,
  drafts: `
    CREATE TABLE drafts (
      summary_id TEXT NOT NULL,
      basis TEXT NOT NULL,
      draft_json TEXT NOT NULL,
      at TEXT NOT NULL,
      conversation_id INTEGER NOT NULL,
      PRIMARY KEY (summary_id, basis, conversation_id)
    ) WITHOUT ROWID`,
  /** What a model answered about a message, under the digest of what it was asked. */
  map_answers: `
    CREATE TABLE map_answers (
      conversation_id INTEGER NOT NULL,
      message_id INTEGER NOT NULL,
      basis TEXT NOT NULL,
      answer_json TEXT NOT NULL,
      at TEXT NOT NULL,
      PRIMARY KEY (conversation_id, message_id, basis)
    ) WITHOUT ROWID`,
  /** `bits` has one vector for each of the `made` messages that the block holds so far, `bytes` long. */
  message_vectors: `
    CREATE TABLE message_vectors (
      conversation_id INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE RESTRICT,
      model TEXT NOT NULL,
      block INTEGER NOT NULL,
      made INTEGER NOT NULL,
      bytes INTEGER NOT NULL,
      bits BLOB NOT NULL,
      PRIMARY KEY (conversation_id, model, block),
      CHECK (length(bits) = made * bytes)
    ) WITHOUT ROWID`,
  embedders: `
    CREATE TABLE embedders (
      name TEXT NOT NULL PRIMARY KEY,
      embedded INTEGER NOT NULL,
      failure TEXT,
      at TEXT NOT NULL
    ) WITHOUT ROWID`,
  /** Standing instructions. A new segment copies those of the one before, so a message may be of another conversation. */
  pins: `
    CREATE TABLE pins (
      conversation_id INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE RESTRICT,
      message_id INTEGER NOT NULL,
      words TEXT NOT NULL,
      said_at TEXT NOT NULL,
      state TEXT NOT NULL CHECK (state IN ('pinned', 'unpinned')),
      origin TEXT NOT NULL CHECK (origin IN ('cue', 'model', 'person', 'agent')),
      reason TEXT NOT NULL,
      at TEXT NOT NULL,
      PRIMARY KEY (conversation_id, message_id)
    ) WITHOUT ROWID`,
  /** How somebody might ask for a message, written by the model of its leaf. Indexed with the message, never shown. */
  search_words: `
    CREATE TABLE search_words (
      conversation_id INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE RESTRICT,
      message_id INTEGER NOT NULL,
      words TEXT NOT NULL,
      PRIMARY KEY (conversation_id, message_id),
      ${messageKey}
    ) WITHOUT ROWID`,
  /** What each prompt was made of, besides its head. `hash` and the sizes are of our part of it. */
  prompts: `
    CREATE TABLE prompts (
      conversation_id INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE RESTRICT,
      prompt_number INTEGER NOT NULL,
      at INTEGER NOT NULL,
      newest_seq INTEGER NOT NULL,
      last_seq INTEGER NOT NULL,
      tail INTEGER NOT NULL,
      tokens INTEGER NOT NULL,
      budget INTEGER NOT NULL,
      bytes INTEGER NOT NULL,
      hash BLOB,
      live INTEGER NOT NULL,
      live_tokens INTEGER NOT NULL,
      outcome TEXT CHECK (outcome IN ('answered', 'overflow')),
      counted INTEGER,
      cached INTEGER,
      turn_key TEXT,
      PRIMARY KEY (conversation_id, prompt_number)
    ) WITHOUT ROWID`,
  /** What all prompts from this number on have in common, up to the next head. */
  prompt_heads: `
    CREATE TABLE prompt_heads (
      conversation_id INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE RESTRICT,
      since INTEGER NOT NULL,
      head_json TEXT NOT NULL,
      PRIMARY KEY (conversation_id, since)
    ) WITHOUT ROWID`,
  search_progress: `
    CREATE TABLE search_progress (
      version INTEGER NOT NULL
    )`,
  /** Tables with rows of an earlier version that have no checksum yet: those after this id. */
  checksum_backlog: `
    CREATE TABLE checksum_backlog (
      table_name TEXT NOT NULL PRIMARY KEY,
      after_id INTEGER NOT NULL
    ) WITHOUT ROWID`,
} as const satisfies Readonly<Record<TableName, string>>;

export const indexes = [
  `CREATE INDEX conversations_session_id_idx ON conversations (session_id, active)`,
  `CREATE INDEX conversations_session_key_idx ON conversations (session_key, conversation_id)`,
  `CREATE INDEX conversations_unindexed_idx ON conversations (conversation_id) WHERE unindexed = 1`,
  `CREATE INDEX messages_moved_idx ON messages (conversation_id) WHERE moved IS NOT NULL`,
  `CREATE INDEX summaries_below_normal_idx ON summaries (level) WHERE level <> 'normal'`,
  `CREATE INDEX summaries_carried_from_idx ON summaries (carried_from) WHERE carried_from IS NOT NULL`,
  `CREATE INDEX summaries_conv_depth_idx ON summaries (conversation_id, depth, earliest_at)`,
  `CREATE INDEX summary_messages_message_idx ON summary_messages (message_id)`,
  `CREATE INDEX summary_parents_parent_summary_idx ON summary_parents (parent_summary_id)`,
  `CREATE INDEX context_items_summary_idx ON context_items (summary_id) WHERE summary_id IS NOT NULL`,
  `CREATE INDEX context_items_summaries_idx ON context_items (conversation_id, ordinal) WHERE item_type = 'summary'`,
  `CREATE INDEX large_files_conv_idx ON large_files (conversation_id, created_at)`,
  `CREATE UNIQUE INDEX large_files_content_idx ON large_files (conversation_id, content_hash)`,
  `CREATE INDEX expansion_grants_open_idx ON expansion_grants (expires_at) WHERE revoked_at IS NULL`,
  `CREATE INDEX expansion_grants_parent_idx ON expansion_grants (parent_grant_id) WHERE parent_grant_id IS NOT NULL`,
  `CREATE INDEX transcript_entries_order_idx ON transcript_entries (conversation_id, after_seq, entry_id)`,
  `CREATE INDEX missing_parents_late_idx ON missing_parents (conversation_id, late_key)`,
  `CREATE INDEX model_usage_at_idx ON model_usage (at)`,
  `CREATE INDEX model_usage_provider_idx ON model_usage (provider, usage_id)`,
  `CREATE INDEX compactions_conv_idx ON compactions (conversation_id, compaction_id)`,
  `CREATE INDEX journal_change_idx ON journal (change_id)`,
  `CREATE INDEX pins_newest_idx ON pins (conversation_id, said_at, message_id)`,
  `CREATE INDEX search_words_message_idx ON search_words (message_id)`,
  `CREATE INDEX pins_message_idx ON pins (message_id)`,
] as const;

/** For people's own queries: these tables with the columns that the older program stored and we compute. */
export const views = {
  context_items_as_before: `
    CREATE VIEW context_items_as_before AS
    SELECT c.*, coalesce(m.created_at, s.created_at) AS created_at FROM context_items c
      LEFT JOIN messages m USING (conversation_id, message_id)
      LEFT JOIN summaries s USING (conversation_id, summary_id)`,
  message_parts_as_before: `
    CREATE VIEW message_parts_as_before AS
    SELECT p.*, c.session_id FROM message_parts p JOIN conversations c USING (conversation_id)`,
} as const;
