/**
 * Defines the tables of a PostgreSQL schema, and the words of scripts (dialect.ts) as functions beside them.
 *
 * Every key of a table with rows of conversations contains conversation_id, so the tables can be distributed or
 * partitioned by it. Columns and rows are those of a database file (sqlite/schema.ts, which says more about them): whole
 * numbers, times as text, and texts that sort by their bytes, whatever the database's own collation is.
 */

import type { TableName } from "../ownership.ts";
import { memberDigits } from "./index-rows.ts";
import { termsVersion } from "../search/tokenize.ts";
import { rowSecurity } from "./row-security.ts";

export const schemaVersion = 2;

/** A step from one version to the next. It must not rewrite a table or scan one: readers wait while it runs. */
export interface Upgrade {
  readonly to: number;
  readonly statements: readonly string[];
}

export const upgrades: readonly Upgrade[] = [
  // Words that begin with three letters alike share a row, where it was two: rows are indexed again.
  {
    to: 2,
    statements: [
      "UPDATE search_progress SET version = 0",
      "CREATE INDEX IF NOT EXISTS conversations_hidden_idx ON conversations (conversation_id) WHERE hidden = 1",
    ],
  },
];

const conversationKey = "FOREIGN KEY (conversation_id) REFERENCES conversations ON DELETE RESTRICT";
const messageKey = "FOREIGN KEY (message_id, conversation_id) REFERENCES messages ON DELETE RESTRICT";
const summaryKey = (column: string, onDelete: "CASCADE" | "RESTRICT"): string =>
  `FOREIGN KEY (${column}, conversation_id) REFERENCES summaries ON DELETE ${onDelete}`;

const columns = {
  registry: `
    kind lcm_text NOT NULL CHECK (kind IN ('session', 'conversations', 'changes')),
    session_key lcm_text NOT NULL DEFAULT '', agent_id lcm_text NOT NULL DEFAULT '', number bigint NOT NULL,
    PRIMARY KEY (kind, session_key, agent_id)`,
  conversations: `
    conversation_id bigint PRIMARY KEY, session_id lcm_text NOT NULL, session_key lcm_text, agent_id lcm_text,
    active bigint NOT NULL DEFAULT 1, hidden bigint NOT NULL DEFAULT 0, title lcm_text,
    created_at lcm_text NOT NULL, updated_at lcm_text NOT NULL, last_message_at lcm_text,
    message_count bigint NOT NULL DEFAULT 0, message_tokens bigint NOT NULL DEFAULT 0,
    summary_count bigint NOT NULL DEFAULT 0, context_items bigint NOT NULL DEFAULT 0,
    context_tokens bigint NOT NULL DEFAULT 0, context_messages bigint NOT NULL DEFAULT 0,
    context_message_tokens bigint NOT NULL DEFAULT 0, next_seq bigint NOT NULL DEFAULT 1,
    last_summary bigint NOT NULL DEFAULT 0, indexed_seq bigint NOT NULL DEFAULT 0,
    indexed_summary bigint NOT NULL DEFAULT 0, unindexed bigint NOT NULL DEFAULT 0, head_key lcm_text,
    host_cursor lcm_text, prompt_budget bigint, caught_up bigint NOT NULL DEFAULT 0,
    forgets bigint NOT NULL DEFAULT 0, revision bigint NOT NULL DEFAULT 0, folder lcm_text, parent_session lcm_text,
    CHECK (unindexed = 1 OR (indexed_seq >= next_seq - 1 AND indexed_summary >= last_summary))`,
  messages: `
    message_id bigint NOT NULL, conversation_id bigint NOT NULL,
    seq bigint GENERATED ALWAYS AS (message_id & 16777215) STORED,
    role lcm_text NOT NULL CHECK (role IN ('system', 'user', 'assistant', 'tool')),
    content lcm_text NOT NULL, token_count bigint NOT NULL, created_at lcm_text NOT NULL, stored_at bigint NOT NULL,
    message_key lcm_text NOT NULL, parent_key lcm_text, envelope lcm_text, entry lcm_text,
    aside lcm_text CHECK (aside IN ('branch', 'note')), moved lcm_text, copied_from bigint, late bigint, checksum bigint,
    PRIMARY KEY (message_id, conversation_id), UNIQUE (conversation_id, message_key),
    CHECK (message_id >> 24 = conversation_id), ${conversationKey}`,
  message_parts: `
    message_id bigint NOT NULL, ordinal bigint NOT NULL, conversation_id bigint NOT NULL,
    part_type lcm_text NOT NULL CHECK (part_type IN (
      'text', 'reasoning', 'tool', 'patch', 'file', 'subtask', 'compaction', 'step_start', 'step_finish', 'snapshot',
      'agent', 'retry')),
    text_length bigint, text_content lcm_text, tool_call_id lcm_text, tool_name lcm_text, metadata lcm_text,
    PRIMARY KEY (message_id, ordinal, conversation_id), ${messageKey}`,
  summaries: `
    search_id bigint NOT NULL, summary_id lcm_text NOT NULL, conversation_id bigint NOT NULL,
    kind lcm_text NOT NULL CHECK (kind IN ('leaf', 'condensed')), depth bigint NOT NULL DEFAULT 0,
    content lcm_text NOT NULL, token_count bigint NOT NULL, earliest_at lcm_text, latest_at lcm_text,
    descendant_count bigint NOT NULL DEFAULT 0, created_at lcm_text NOT NULL, updated_at lcm_text NOT NULL,
    file_ids lcm_text NOT NULL DEFAULT '[]', model lcm_text,
    level lcm_text NOT NULL DEFAULT 'normal' CHECK (level IN ('normal', 'aggressive', 'extractive', 'truncated')),
    revision bigint NOT NULL DEFAULT 0, previous_context lcm_text, carried_from lcm_text, rewrite_reason lcm_text,
    checksum bigint,
    PRIMARY KEY (summary_id, conversation_id), UNIQUE (search_id, conversation_id),
    CHECK (search_id >> 24 = conversation_id), ${conversationKey}`,
  summary_messages: `
    summary_id lcm_text NOT NULL, message_id bigint NOT NULL, ordinal bigint NOT NULL, conversation_id bigint NOT NULL,
    PRIMARY KEY (summary_id, message_id, conversation_id), ${summaryKey("summary_id", "CASCADE")}, ${messageKey}`,
  summary_parents: `
    summary_id lcm_text NOT NULL, parent_summary_id lcm_text NOT NULL, ordinal bigint NOT NULL,
    conversation_id bigint NOT NULL,
    PRIMARY KEY (summary_id, parent_summary_id, conversation_id), ${summaryKey("summary_id", "CASCADE")},
    ${summaryKey("parent_summary_id", "RESTRICT")}`,
  context_items: `
    conversation_id bigint NOT NULL, ordinal bigint NOT NULL,
    item_type lcm_text NOT NULL CHECK (item_type IN ('message', 'summary')), message_id bigint, summary_id lcm_text,
    PRIMARY KEY (conversation_id, ordinal), ${messageKey}, ${summaryKey("summary_id", "RESTRICT")},
    CHECK ((item_type = 'message') = (message_id IS NOT NULL) AND (item_type = 'summary') = (summary_id IS NOT NULL))`,
  large_files: `
    file_id lcm_text NOT NULL, conversation_id bigint NOT NULL, file_name lcm_text, mime_type lcm_text,
    byte_size bigint, line_count bigint,
    encoding lcm_text NOT NULL DEFAULT 'utf8' CHECK (encoding IN ('utf8', 'base64')), content_hash lcm_text,
    storage_uri lcm_text NOT NULL, exploration_summary lcm_text, created_at lcm_text NOT NULL, message_key lcm_text,
    file_number bigint GENERATED BY DEFAULT AS IDENTITY,
    PRIMARY KEY (file_id, conversation_id), ${conversationKey}`,
  expansion_grants: `
    grant_id lcm_text PRIMARY KEY, conversation_ids lcm_text NOT NULL, token_cap bigint NOT NULL,
    tokens_used bigint NOT NULL DEFAULT 0, issued_at lcm_text NOT NULL, expires_at lcm_text NOT NULL,
    revoked_at lcm_text, parent_grant_id lcm_text REFERENCES expansion_grants`,
  transcript_entries: `
    entry_id bigint GENERATED BY DEFAULT AS IDENTITY, conversation_id bigint NOT NULL, entry_key lcm_text NOT NULL,
    parent_key lcm_text, after_seq bigint NOT NULL, entry_type lcm_text NOT NULL, created_at lcm_text,
    raw lcm_text NOT NULL, checksum bigint,
    PRIMARY KEY (entry_id, conversation_id), UNIQUE (conversation_id, entry_key), ${conversationKey}`,
  turns: `
    conversation_id bigint NOT NULL, turn_key lcm_text NOT NULL,
    PRIMARY KEY (conversation_id, turn_key), ${conversationKey}`,
  missing_parents: `
    conversation_id bigint NOT NULL, parent_key lcm_text NOT NULL, child_key lcm_text NOT NULL, late_key lcm_text,
    PRIMARY KEY (conversation_id, parent_key), ${conversationKey}`,
  model_usage: `
    usage_id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, at lcm_text NOT NULL, conversation_id bigint,
    purpose lcm_text NOT NULL, provider lcm_text NOT NULL, model lcm_text NOT NULL, input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL, result lcm_text NOT NULL, duration_ms bigint NOT NULL`,
  compactions: `
    compaction_id bigint GENERATED BY DEFAULT AS IDENTITY, conversation_id bigint NOT NULL, at lcm_text NOT NULL,
    mode lcm_text NOT NULL CHECK (mode IN ('incremental', 'sweep', 'until_under')), outcome lcm_text NOT NULL,
    message lcm_text NOT NULL, passes bigint NOT NULL, tokens_before bigint NOT NULL, tokens_after bigint NOT NULL,
    duration_ms bigint NOT NULL, asked bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (compaction_id, conversation_id), ${conversationKey}`,
  journal: `
    journal_id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, change_id bigint NOT NULL, at lcm_text NOT NULL,
    operation lcm_text NOT NULL, conversation_id bigint, subject lcm_text NOT NULL, before_json lcm_text NOT NULL,
    after_json lcm_text NOT NULL, undone_by bigint`,
  drafts: `
    summary_id lcm_text NOT NULL, basis lcm_text NOT NULL, draft_json lcm_text NOT NULL, at lcm_text NOT NULL,
    conversation_id bigint NOT NULL, PRIMARY KEY (summary_id, basis, conversation_id)`,
  map_answers: `
    conversation_id bigint NOT NULL, message_id bigint NOT NULL, basis lcm_text NOT NULL, answer_json lcm_text NOT NULL,
    at lcm_text NOT NULL, PRIMARY KEY (conversation_id, message_id, basis)`,
  message_vectors: `
    conversation_id bigint NOT NULL, model lcm_text NOT NULL, block bigint NOT NULL, made bigint NOT NULL,
    bytes bigint NOT NULL, bits bytea NOT NULL,
    PRIMARY KEY (conversation_id, model, block), CHECK (length(bits) = made * bytes), ${conversationKey}`,
  embedders: `
    name lcm_text PRIMARY KEY, embedded bigint NOT NULL, failure lcm_text, at lcm_text NOT NULL`,
  pins: `
    conversation_id bigint NOT NULL, message_id bigint NOT NULL, words lcm_text NOT NULL, said_at lcm_text NOT NULL,
    state lcm_text NOT NULL CHECK (state IN ('pinned', 'unpinned')),
    origin lcm_text NOT NULL CHECK (origin IN ('cue', 'model', 'person', 'agent')), reason lcm_text NOT NULL,
    at lcm_text NOT NULL, PRIMARY KEY (conversation_id, message_id), ${conversationKey}`,
  search_words: `
    conversation_id bigint NOT NULL, message_id bigint NOT NULL, words lcm_text NOT NULL,
    PRIMARY KEY (conversation_id, message_id), ${conversationKey}, ${messageKey}`,
  prompts: `
    conversation_id bigint NOT NULL, prompt_number bigint NOT NULL, at bigint NOT NULL, newest_seq bigint NOT NULL,
    last_seq bigint NOT NULL, tail bigint NOT NULL, tokens bigint NOT NULL, budget bigint NOT NULL,
    bytes bigint NOT NULL, hash bytea, live bigint NOT NULL, live_tokens bigint NOT NULL,
    outcome lcm_text CHECK (outcome IN ('answered', 'overflow')), counted bigint, cached bigint, turn_key lcm_text,
    PRIMARY KEY (conversation_id, prompt_number), ${conversationKey}`,
  prompt_heads: `
    conversation_id bigint NOT NULL, since bigint NOT NULL, head_json lcm_text NOT NULL,
    PRIMARY KEY (conversation_id, since), ${conversationKey}`,
  search_progress: `version bigint NOT NULL`,
  checksum_backlog: `table_name lcm_text PRIMARY KEY, after_id bigint NOT NULL`,
} as const satisfies Readonly<Record<TableName, string>>;

const indexes = [
  "conversations_session_id_idx ON conversations (session_id, active)",
  "conversations_session_key_idx ON conversations (session_key, conversation_id)",
  "conversations_hidden_idx ON conversations (conversation_id) WHERE hidden = 1",
  "conversations_unindexed_idx ON conversations (conversation_id) WHERE unindexed = 1",
  "messages_moved_idx ON messages (conversation_id) WHERE moved IS NOT NULL",
  "summaries_below_normal_idx ON summaries (level) WHERE level <> 'normal'",
  "summaries_carried_from_idx ON summaries (carried_from) WHERE carried_from IS NOT NULL",
  "summaries_conv_depth_idx ON summaries (conversation_id, depth, earliest_at)",
  "summary_messages_message_idx ON summary_messages (message_id)",
  "summary_parents_parent_summary_idx ON summary_parents (parent_summary_id)",
  "context_items_message_idx ON context_items (message_id) WHERE message_id IS NOT NULL",
  "context_items_summary_idx ON context_items (summary_id) WHERE summary_id IS NOT NULL",
  "context_items_summaries_idx ON context_items (conversation_id, ordinal) WHERE item_type = 'summary'",
  "large_files_conv_idx ON large_files (conversation_id, created_at)",
  "expansion_grants_open_idx ON expansion_grants (expires_at) WHERE revoked_at IS NULL",
  "expansion_grants_parent_idx ON expansion_grants (parent_grant_id) WHERE parent_grant_id IS NOT NULL",
  "transcript_entries_order_idx ON transcript_entries (conversation_id, after_seq, entry_id)",
  "missing_parents_late_idx ON missing_parents (conversation_id, late_key)",
  "model_usage_at_idx ON model_usage (at)",
  "model_usage_provider_idx ON model_usage (provider, usage_id)",
  "compactions_conv_idx ON compactions (conversation_id, compaction_id)",
  "journal_change_idx ON journal (change_id)",
  "pins_newest_idx ON pins (conversation_id, said_at, message_id)",
  "pins_message_idx ON pins (message_id)",
  "search_words_message_idx ON search_words (message_id)",
  "search_blocks_block_idx ON search_blocks (conversation_id, corpus, block)",
] as const;

/** The search index, as index-rows.ts writes it. The empty word has all rows of its block, so what is indexed is known. */
const searchBlocks = `
  conversation_id bigint NOT NULL, block integer NOT NULL, corpus "char" NOT NULL, key lcm_text NOT NULL,
  entries lcm_text NOT NULL, PRIMARY KEY (key, corpus, conversation_id, block)`;

/** Content that was moved out of messages. Its file's row may have gone to another conversation, which names it. */
const fileContents = `
  conversation_id bigint NOT NULL, name lcm_text NOT NULL, content bytea NOT NULL, written_at bigint NOT NULL,
  PRIMARY KEY (conversation_id, name)`;

const digit = (place: string): string => `strpos('${memberDigits}', substr(entries, ${place}, 1)) - 1`;
const indexedRows = (corpus: string): string => `
  CREATE VIEW ${corpus}_fts_docsize WITH (security_invoker = true) AS
  SELECT (conversation_id << 24) + (block::bigint << 12) + (${digit("2 * n - 1")}) * 64 + ${digit("2 * n")} AS id
  FROM search_blocks, generate_series(1, length(entries) / 2) AS n
  WHERE key = '=' AND corpus = '${corpus[0]}'`;

/**
 * The words of dialect.ts. A document that is not JSON gives null; characters that jsonb cannot hold are replaced. The
 * cast is outside the CASE, because the planner computes casts of constants in branches that are not taken.
 */
const functions = String.raw`
CREATE FUNCTION storable_json(doc text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT regexp_replace(doc, '\\u(0000|[dD][89a-fA-F][0-9a-fA-F]{2})', '\\ufffd', 'g') $$;
CREATE FUNCTION as_json(doc text) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT (CASE WHEN pg_input_is_valid(doc, 'jsonb') THEN doc
    WHEN pg_input_is_valid(storable_json(doc), 'jsonb') THEN storable_json(doc) END)::jsonb $$;
CREATE FUNCTION numbers_in(list text) RETURNS TABLE (key bigint, value bigint) LANGUAGE sql IMMUTABLE ROWS 50 AS $$
  SELECT ordinality - 1, e::bigint FROM json_array_elements_text(list::json) WITH ORDINALITY AS t (e, ordinality) $$;
CREATE FUNCTION texts_in(list text) RETURNS TABLE (key bigint, value lcm_text) LANGUAGE sql IMMUTABLE ROWS 50 AS $$
  SELECT ordinality - 1, e::lcm_text FROM json_array_elements_text(list::json) WITH ORDINALITY AS t (e, ordinality) $$;
CREATE FUNCTION pairs_in(list text) RETURNS TABLE (key bigint, one bigint, other bigint) LANGUAGE sql IMMUTABLE ROWS 50 AS $$
  SELECT ordinality - 1, (e ->> 0)::bigint, (e ->> 1)::bigint
  FROM json_array_elements(list::json) WITH ORDINALITY AS t (e, ordinality) $$;
CREATE FUNCTION objects_in(list text) RETURNS TABLE (value jsonb) LANGUAGE sql IMMUTABLE ROWS 2 AS $$
  SELECT jsonb_array_elements(as_json(list)) $$;
CREATE FUNCTION objects_at(doc text, path text) RETURNS TABLE (value jsonb) LANGUAGE sql IMMUTABLE ROWS 10 AS $$
  SELECT jsonb_path_query(as_json(doc), (path || '[*]')::jsonpath) $$;
CREATE FUNCTION texts_at(doc text, path text) RETURNS TABLE (value lcm_text) LANGUAGE sql IMMUTABLE ROWS 10 AS $$
  SELECT (jsonb_path_query(as_json(doc), (path || '[*]')::jsonpath) #>> '{}')::lcm_text $$;
CREATE FUNCTION json_number(doc jsonb, path text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT (jsonb_path_query_first(doc, path::jsonpath) #>> '{}')::bigint $$;
CREATE FUNCTION json_number(doc text, path text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT json_number(as_json(doc), path) $$;
CREATE FUNCTION json_word(doc text, path text) RETURNS lcm_text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN strpos(doc, '"' || regexp_replace(path, '^.*\.', '') || '"') > 0 OR strpos(doc, '\u') > 0
    THEN (jsonb_path_query_first(as_json(doc), path::jsonpath) #>> '{}')::lcm_text END $$;
CREATE FUNCTION is_same_json(one jsonb, other text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT one = as_json(other) $$;
CREATE FUNCTION instr(content text, part text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT strpos(content, part) > 0 $$;
CREATE FUNCTION is_own_tool(name text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT name ~ 'lcm_[a-z]' $$;
CREATE FUNCTION is_garbled(content text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT content ~ E'[\x01-\x08\x0b\x0c\x0e-\x1f]|[0-9]\uFFFD|\uFFFD[0-9]|\uFFFF0' $$;
CREATE FUNCTION substr(content text, first bigint, many bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT substr(content, first::int, many::int) $$;
CREATE FUNCTION substr(bytes bytea, first bigint, many bigint) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
  SELECT substr(bytes, first::int, many::int) $$;
CREATE FUNCTION hex8(number bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT lpad(to_hex(number), 8, '0') $$;
CREATE FUNCTION list_end(list bigint[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT array_to_json(list)::text $$;
CREATE FUNCTION list_end(list text[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT array_to_json(list)::text $$;
CREATE FUNCTION list_end(list json[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT array_to_json(list)::text $$;
CREATE AGGREGATE json_group_array(bigint) (sfunc = array_append, stype = bigint[], finalfunc = list_end, initcond = '{}');
CREATE AGGREGATE json_group_array(text) (sfunc = array_append, stype = text[], finalfunc = list_end, initcond = '{}');
CREATE AGGREGATE json_group_array(json) (sfunc = array_append, stype = json[], finalfunc = list_end, initcond = '{}');
CREATE FUNCTION drop_entry(of_corpus text, id bigint, code text) RETURNS void LANGUAGE sql AS $$
  UPDATE search_blocks SET entries = CASE WHEN key LIKE '=%' THEN regexp_replace(entries, '^((?:..)*?)' || code, '\1')
      ELSE regexp_replace(regexp_replace(entries, '(\n[^ \n]+ (?:[^\n][^\n])*?)' || code, '\1', 'g'),
        '\n[^ \n]+ (?=\n|$)', '', 'g') END
    WHERE conversation_id = id >> 24 AND corpus = of_corpus::"char" AND block = (id & 16777215) >> 12
      AND strpos(entries, code) > 0;
  DELETE FROM search_blocks WHERE conversation_id = id >> 24 AND corpus = of_corpus::"char"
    AND block = (id & 16777215) >> 12 AND entries = '' $$;
`;

/** Everything in an empty schema, in order; with partitions, tables with a conversation's rows are divided by it. */
export const schemaStatements = (partitions: number | null): readonly string[] => [
  `CREATE DOMAIN lcm_text AS text COLLATE "C"`,
  ...Object.entries({ ...columns, search_blocks: searchBlocks, file_contents: fileContents }).flatMap(
    ([name, definition]) => tableStatements(name, definition, partitions),
  ),
  ...indexes.map((index) => `CREATE INDEX ${index}`),
  "CREATE UNIQUE INDEX large_files_content_idx ON large_files (conversation_id, content_hash)",
  ...["messages", "summaries"].map(indexedRows),
  functions,
  ...rowSecurity,
  `INSERT INTO search_progress (version) VALUES (${termsVersion})`,
  `CREATE TABLE lcm_schema (version bigint NOT NULL)`,
  `INSERT INTO lcm_schema (version) VALUES (${schemaVersion})`,
];

/** Only a table with the conversation in its key can be divided by it. */
const isDivisible = (definition: string): boolean =>
  /conversation_id bigint PRIMARY KEY|PRIMARY KEY \([^)]*conversation_id/.test(definition);

function tableStatements(name: string, definition: string, partitions: number | null): readonly string[] {
  if (partitions === null || !isDivisible(definition)) return [`CREATE TABLE ${name} (${definition})`];
  return [
    `CREATE TABLE ${name} (${definition}) PARTITION BY HASH (conversation_id)`,
    ...Array.from(
      { length: partitions },
      (_, at) =>
        `CREATE TABLE ${name}_${at} PARTITION OF ${name} FOR VALUES WITH (MODULUS ${partitions}, REMAINDER ${at})`,
    ),
  ];
}
