/** Appends to conversations until told to stop, as a host does while an operator works. */

import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { messageToStore } from "../../src/core/messages/codec.ts";
import { LcmError } from "../../src/core/base/errors.ts";
import type { ConversationId } from "../../src/core/model/types.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

const [path = "", ...names] = process.argv.slice(2);
const store = await openSqlite({ path });
const talking = new Set(names.map((name) => Number(name) as ConversationId));
const ending = new AbortController();
process.on("SIGTERM", () => ending.abort());
for (let n = 0; !ending.signal.aborted; n++) {
  for (const id of talking) {
    const key = `busy-${n}`;
    const message = messageToStore(
      { role: "user", content: `said while others work, ${n}` },
      { key, at: "2025-11-20T12:00:00.000Z" as Timestamp },
    );
    try {
      await store.append(id, [{ kind: "message", message }]);
      writeSync(1, `${id} ${key}\n`);
    } catch (error) {
      // The operator has pruned it.
      if (!(error instanceof LcmError && error.code === "not_found")) throw error;
      talking.delete(id);
    }
    await sleep(15);
  }
}
await store.close();
