/** Companies on one server, and agents in one schema: another's role sees nothing, through any tool or statement. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { tools } from "../src/agent-tools/all.ts";
import { createLcm } from "../src/core/lcm.ts";
import { resolveSettings } from "../src/core/model/settings.ts";
import type { Store } from "../src/core/model/store.ts";
import { openPostgres } from "../src/store/postgres/store.ts";
import { readAddress } from "../src/store/postgres/address.ts";
import { openPool } from "../src/store/postgres/pool.ts";
import { foldPlaces, numbered, refuses } from "./store-contract/ground.ts";
import { checkSound } from "./support/lossless.ts";
import { startMachine, type PostgresMachine } from "./support/postgres-machine.ts";
import { makeScratch } from "./support/scratch.ts";
import { createHost, toAppendable, user } from "./support/scripted-host.ts";

let machine: PostgresMachine;
let folder = "";
before(async () => {
  machine = await startMachine();
  folder = makeScratch("tenants");
});
after(async () => await machine.stop());

const urlFor = (role: string, schema: string): string =>
  `${machine.url.replace("postgres@", `${role}@`)}?schema=${schema}`;
const openAs = async (role: string, schema: string): Promise<Store> =>
  await openPostgres({ url: urlFor(role, schema), filesDir: join(folder, schema), connectionsMax: 2 });

/** Statements as a role, each in the transaction of the one before; the rows of the last. */
async function asRole(role: string, ...texts: readonly string[]): Promise<readonly unknown[]> {
  const pool = await openPool(readAddress(urlFor(role, "lcm")), 1);
  const client = await pool.connect();
  try {
    let rows: readonly unknown[] = [];
    for (const text of texts) ({ rows } = await client.query(text));
    return rows;
  } finally {
    client.release();
    await pool.end();
  }
}

/** A conversation of an agent in which a secret is said, folded and kept in a file. */
async function keepSecret(store: Store, agentId: string, secret: string) {
  const { id } = await store.open({ sessionId: `of ${agentId}`, sessionKey: `agent:${agentId}:main`, agentId });
  const host = createHost(agentId);
  for (const text of numbered(6, (n) => `the keeper said ${secret} for the ${n}th time`)) host.says(user(text));
  const { messages } = await store.append(id, host.entries.map(toAppendable));
  const summary = await foldPlaces(store, id, [0, 2], `they spoke of ${secret}`);
  while ((await store.index(100)) > 0);
  return { id, message: messages[4] ?? assert.fail(), summary };
}

describe("companies with a schema and a role each", () => {
  it("work beside each other, and another's role reads and changes nothing", async () => {
    for (const company of ["acme", "globex"])
      await machine.query(`CREATE ROLE ${company} LOGIN; CREATE SCHEMA ${company} AUTHORIZATION ${company}`);
    const acme = await openAs("acme", "acme");
    await keepSecret(acme, "main", "quokka");
    const globex = await openAs("globex", "globex");
    assert.equal((await globex.status()).messages, 0);
    await refuses("denied", async () => await openAs("globex", "acme"));
    for (const statement of ["SELECT * FROM acme.messages", "DELETE FROM acme.conversations", "SET ROLE acme"])
      await assert.rejects(asRole("globex", statement), /permission denied/);
    for (const store of [acme, globex]) await store.close();
  });

  it("a role that may not create the schema is told who may", async () => {
    await machine.query("CREATE ROLE visitor LOGIN");
    const opened = openAs("visitor", "nowhere");
    await assert.rejects(opened, /may not create/);
    await assert.rejects(opened, (error: { readonly hint?: string }) => /CREATE SCHEMA nowhere/.test(error.hint ?? ""));
  });
});

describe("agents with a role each in one schema", () => {
  const secret = "wombat";

  it("see and change only what is theirs, through every tool and every statement", async () => {
    const owner = await openAs("postgres", "shared");
    await machine.query(`CREATE ROLE alpha LOGIN; CREATE ROLE beta LOGIN; CREATE ROLE operator LOGIN BYPASSRLS;
      SET search_path = shared; SELECT admit_agent('alpha', 'alpha'); SELECT admit_agent('beta', 'beta')`);
    const [alpha, beta] = [await openAs("alpha", "shared"), await openAs("beta", "shared")];
    const place = await keepSecret(alpha, "alpha", secret);
    const own = await keepSecret(beta, "beta", "numbat");
    await alpha.issueGrant({
      conversations: [place.id],
      tokenCap: 1_000,
      expiresAt: "2999-01-01T00:00:00.000Z" as never,
      parent: null,
    });

    const { values: settings } = resolveSettings({ env: {}, config: {} });
    const lcm = createLcm({ store: beta, clock: { now: () => new Date().toISOString() as never }, settings });
    const asked = {
      lcm_grep: { pattern: secret, allConversations: true },
      lcm_describe: { id: `${place.summary},msg_${place.id}-5` },
      lcm_expand: { summaryIds: [place.summary], includeMessages: true },
      lcm_expand_query: { query: secret, prompt: `What about ${secret}?`, allConversations: true },
      lcm_recent: { since: "2000-01-01", allConversations: true },
      lcm_map: { prompt: "what?", conversationId: place.id },
      lcm_pin: { action: "pin", messageId: `msg_${place.id}-5`, text: secret },
    };
    assert.deepEqual(Object.keys(asked).toSorted(), tools.map(({ name }) => name).toSorted(), "every tool is asked");
    for (const tool of tools) {
      const { text } = await tool.run(asked[tool.name as keyof typeof asked], {
        lcm,
        reader: { conversation: null, policy: "all" },
      });
      assert.ok(!/keeper said wombat|spoke of wombat/.test(text), `${tool.name}: ${text}`);
    }
    const found = await tools[0]?.run(
      { pattern: "numbat", allConversations: true },
      {
        lcm,
        reader: { conversation: null, policy: "all" },
      },
    );
    assert.match(found?.text ?? "", /numbat/, "what is theirs is found");

    const tables = await machine.query(`SELECT table_name AS t FROM information_schema.tables
      WHERE table_schema = 'shared' AND table_name NOT IN ('agent_roles')`);
    for (const { t } of tables) {
      const rows = await asRole(
        "beta",
        `SELECT * FROM shared.${String(t)} AS row
        WHERE row::text LIKE '%${secret}%' OR row::text LIKE '%agent:alpha%'`,
      );
      assert.deepEqual(rows, [], `${String(t)} shows nothing of alpha's`);
    }
    assert.deepEqual(await asRole("beta", "SELECT DISTINCT conversation_id FROM shared.search_blocks"), [
      { conversation_id: own.id },
    ]);
    assert.deepEqual(await asRole("beta", "SELECT * FROM shared.expansion_grants"), []);
    await refuses(
      "denied",
      async () => await beta.open({ sessionId: "x", sessionKey: "agent:alpha:x", agentId: "alpha" }),
    );
    assert.equal((await owner.status()).messages, 12);
    for (const store of [owner, alpha, beta]) await store.close();
  });

  it("cannot pass for another with tables, functions or settings of their own", async () => {
    const tricks = [
      "CREATE TEMP TABLE agent_roles AS SELECT 'beta'::name AS role_name, 'alpha'::text AS agent_id",
      "CREATE TEMP TABLE conversations AS SELECT generate_series(1, 99)::bigint AS conversation_id",
      "SET search_path = pg_temp, shared",
      "SELECT count(*)::int AS n FROM shared.messages WHERE content LIKE '%wombat%'",
    ];
    assert.deepEqual(await asRole("beta", ...tricks), [{ n: 0 }]);
    for (const statement of [
      "INSERT INTO shared.agent_roles VALUES ('beta', 'alpha')",
      "SET search_path = shared; SELECT admit_agent('beta', 'alpha')",
      "UPDATE shared.lcm_schema SET version = 9",
    ])
      await assert.rejects(asRole("beta", statement), /permission denied|must be owner/);
  });

  it("leave the operator, who passes row security, everything to check", async () => {
    await machine.query(`GRANT USAGE ON SCHEMA shared TO operator; GRANT SELECT, INSERT, UPDATE, DELETE
      ON ALL TABLES IN SCHEMA shared TO operator; GRANT USAGE ON ALL SEQUENCES IN SCHEMA shared TO operator`);
    const operator = await openAs("operator", "shared");
    assert.equal((await operator.status()).messages, 12);
    await checkSound(operator);
    const plan = await operator.planForget(null, { kind: "secret", text: secret });
    assert.equal(plan.messages.length, 6);
    assert.equal((await operator.forget(null, plan)).kind, "written");
    await checkSound(operator, [null], ["summary_outdated"]);
    await operator.close();
  });
});
