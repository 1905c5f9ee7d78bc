/** Takes a conversation out of a database, or brings it in, as a process that may be killed at any moment. */

import { writeSync } from "node:fs";
import type { ConversationId } from "../../src/core/model/types.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";

export interface ArchivistOrders {
  readonly path: string;
  readonly conversation: ConversationId;
  /** The archive to bring in; without it, the conversation is taken out. */
  readonly archive?: string;
}

export const begun = "begun";
export const done = "done";

const [, self, given] = process.argv;
if (given !== undefined && self !== undefined && import.meta.filename === self)
  await obey(JSON.parse(given) as ArchivistOrders);

async function obey({ path, conversation, archive }: ArchivistOrders): Promise<void> {
  const store = await openSqlite({ path, housekeeping: false });
  const known = await store.conversation(conversation);
  writeSync(1, `${begun}\n`);
  if (archive !== undefined) await store.merge(archive);
  else await store.remove([{ conversation, revision: known?.revision ?? -1 }]);
  writeSync(1, `${done}\n`);
  await store.close();
}
