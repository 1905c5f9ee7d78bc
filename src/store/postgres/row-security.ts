/**
 * Functions of the schema by which an operator lets a role read and write the conversations of its own agents alone.
 * The server keeps the rest from it, whatever program asks. Roles with BYPASSRLS and the owner of the tables see all.
 */

/** Our tables. Partitions are reached through theirs. */
const ownTables = `
    SELECT c.relname AS name, EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid
        AND a.attname = 'conversation_id' AND NOT a.attisdropped) AS by_conversation
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p') AND NOT c.relispartition`;

/**
 * A role sees the conversations of its agents, and what belongs to one of them. A model call for no conversation has no
 * content and is seen by all; a change of no conversation is the operator's.
 */
const condition = `
    CASE name
      WHEN 'conversations' THEN 'agent_id = ANY (own_agents())'
      WHEN 'registry' THEN $c$ kind <> 'session' OR agent_id = ANY (own_agents()) $c$
      WHEN 'expansion_grants' THEN 'are_own(conversation_ids)'
      WHEN 'model_usage' THEN
        'conversation_id IS NULL OR conversation_id = ANY (ARRAY(SELECT c.conversation_id FROM conversations c))'
      ELSE 'conversation_id = ANY (ARRAY(SELECT c.conversation_id FROM conversations c))'
    END`;

export const rowSecurity: readonly string[] = [
  "CREATE TABLE agent_roles (role_name name NOT NULL, agent_id lcm_text NOT NULL, PRIMARY KEY (role_name, agent_id))",
  `CREATE FUNCTION own_agents() RETURNS lcm_text[] LANGUAGE sql STABLE AS $body$
    SELECT coalesce(array_agg(agent_id), '{}') FROM agent_roles WHERE role_name = current_user $body$`,
  `CREATE FUNCTION are_own(list text) RETURNS boolean LANGUAGE sql STABLE AS $body$
    SELECT NOT EXISTS (SELECT 1 FROM numbers_in(list) AS id
      WHERE NOT EXISTS (SELECT 1 FROM conversations c WHERE c.conversation_id = id.value)) $body$`,
  // Whoever asks cannot put another table or function of the same name before ours.
  `DO $do$ BEGIN
    EXECUTE format('ALTER FUNCTION own_agents() SET search_path = %I, pg_catalog, pg_temp', current_schema());
    EXECUTE format('ALTER FUNCTION are_own(text) SET search_path = %I, pg_catalog, pg_temp', current_schema());
  END $do$`,
  `CREATE FUNCTION protect_agents() RETURNS void LANGUAGE plpgsql AS $body$
  DECLARE name name; by_conversation boolean;
  BEGIN
    FOR name, by_conversation IN ${ownTables} LOOP
      CONTINUE WHEN NOT by_conversation AND name NOT IN ('registry', 'expansion_grants');
      EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
      EXECUTE format('DROP POLICY IF EXISTS own_agents ON %I', name);
      EXECUTE format('CREATE POLICY own_agents ON %I USING (%s)', name, ${condition});
    END LOOP;
  END $body$`,
  `CREATE FUNCTION admit_agent(role_name text, agent text) RETURNS void LANGUAGE plpgsql AS $body$
  DECLARE name name; by_conversation boolean;
  BEGIN
    PERFORM protect_agents();
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), role_name);
    FOR name, by_conversation IN ${ownTables} LOOP
      EXECUTE format(CASE WHEN name IN ('lcm_schema', 'agent_roles') THEN 'GRANT SELECT ON %I TO %I'
        ELSE 'GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO %I' END, name, role_name);
    END LOOP;
    EXECUTE format('GRANT SELECT ON messages_fts_docsize, summaries_fts_docsize TO %I', role_name);
    EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA %I TO %I', current_schema(), role_name);
    INSERT INTO agent_roles VALUES (role_name, agent) ON CONFLICT DO NOTHING;
  END $body$`,
];
