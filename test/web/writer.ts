/** A process of its own that adds messages to conversation 1 of a database: `writer.ts PATH COUNT`. */

import { createLcm } from "../../src/core/lcm.ts";
import type { ConversationId } from "../../src/core/model/types.ts";
import { openSqlite, systemNow } from "../../src/store/sqlite/store.ts";

const [path = "", count = "0"] = process.argv.slice(2);
const lcm = createLcm({ store: await openSqlite({ path }), clock: { now: systemNow } });
for (let at = 0; at < Number(count); at++) {
  const message = { role: "user", content: `live ${at}` };
  await lcm.ingest(1 as ConversationId, [{ kind: "message", key: `live-${at}`, at: systemNow(), message }]);
}
await lcm.close();
