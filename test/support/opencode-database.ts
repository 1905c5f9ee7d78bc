/** A database like OpenCode's, filled with what `opencode export` writes of sessions. */

import { DatabaseSync } from "node:sqlite";
import type { JsonObject } from "../../src/core/base/json.ts";

const schema = `
  CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL);
  CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, workspace_id text, parent_id text, slug text NOT NULL,
    directory text NOT NULL, path text, title text NOT NULL, version text NOT NULL, share_url text,
    summary_additions integer, summary_deletions integer, summary_files integer, summary_diffs text, metadata text,
    cost real DEFAULT 0 NOT NULL, tokens_input integer DEFAULT 0 NOT NULL, tokens_output integer DEFAULT 0 NOT NULL,
    tokens_reasoning integer DEFAULT 0 NOT NULL, tokens_cache_read integer DEFAULT 0 NOT NULL,
    tokens_cache_write integer DEFAULT 0 NOT NULL, revert text, permission text, agent text, model text,
    time_created integer NOT NULL, time_updated integer NOT NULL, time_compacting integer, time_archived integer);
  CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
    time_updated integer NOT NULL, data text NOT NULL);
  CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);`;

/** Sessions that are there already are replaced, messages that are missing in them deleted. */
export function fillOpenCode(path: string, ...documents: readonly JsonObject[]): void {
  using db = new DatabaseSync(path);
  if (db.prepare("SELECT 1 FROM sqlite_schema").get() === undefined) db.exec(schema);
  for (const document of documents) {
    const info = document["info"] as unknown as Info;
    const { time, tokens, summary = {}, model, permission } = info;
    const values = {
      id: info.id,
      project_id: info.projectID,
      parent_id: info.parentID ?? null,
      slug: info.slug,
      directory: info.directory,
      path: info.path ?? null,
      title: info.title,
      version: info.version,
      summary_additions: summary.additions ?? null,
      summary_deletions: summary.deletions ?? null,
      summary_files: summary.files ?? null,
      cost: info.cost,
      tokens_input: tokens.input,
      tokens_output: tokens.output,
      tokens_reasoning: tokens.reasoning,
      tokens_cache_read: tokens.cache.read,
      tokens_cache_write: tokens.cache.write,
      permission: permission === undefined ? null : JSON.stringify(permission),
      agent: info.agent ?? null,
      model: model === undefined ? null : JSON.stringify(model),
      time_created: time.created,
      time_updated: time.updated,
    };
    const names = Object.keys(values);
    db.prepare("DELETE FROM session WHERE id = ?").run(info.id);
    db.prepare("DELETE FROM message WHERE session_id = ?").run(info.id);
    db.prepare("DELETE FROM part WHERE session_id = ?").run(info.id);
    db.prepare(`INSERT INTO session (${names.join()}) VALUES (${names.map(() => "?").join()})`).run(
      ...Object.values(values),
    );
    for (const { info: own, parts } of document["messages"] as unknown as readonly Message[]) {
      const { id, sessionID, ...data } = own;
      const { created, completed = created } = data.time;
      db.prepare("INSERT INTO message VALUES (?, ?, ?, ?, ?)").run(
        id,
        sessionID,
        created,
        completed,
        JSON.stringify(data),
      );
      for (const { id: part, sessionID: _, messageID, ...rest } of parts)
        db.prepare("INSERT INTO part VALUES (?, ?, ?, 0, 0, ?)").run(part, messageID, sessionID, JSON.stringify(rest));
    }
  }
}

interface Info {
  readonly id: string;
  readonly projectID: string;
  readonly parentID?: string;
  readonly slug: string;
  readonly directory: string;
  readonly path?: string;
  readonly title: string;
  readonly version: string;
  readonly cost: number;
  readonly agent?: string;
  readonly model?: object;
  readonly permission?: object;
  readonly summary?: { readonly additions?: number; readonly deletions?: number; readonly files?: number };
  readonly tokens: {
    readonly input: number;
    readonly output: number;
    readonly reasoning: number;
    readonly cache: { readonly read: number; readonly write: number };
  };
  readonly time: { readonly created: number; readonly updated: number };
}

interface Message {
  readonly info: {
    readonly id: string;
    readonly sessionID: string;
    readonly time: { readonly created: number; readonly completed?: number };
  };
  readonly parts: readonly { readonly id: string; readonly sessionID: string; readonly messageID: string }[];
}
