/** Creates an engine over its own new database for each test. */

import { join } from "node:path";
import { createLcm } from "../../src/core/lcm.ts";
import type { Lcm } from "../../src/core/lcm.ts";
import type { Store } from "../../src/core/model/store.ts";
import { openSqlite, systemNow } from "../../src/store/sqlite/store.ts";
import { makeScratch } from "./scratch.ts";

export interface FreshLcm {
  readonly lcm: Lcm;
  readonly store: Store;
  readonly path: string;
}

export function freshLcms(name: string): (test: (ground: FreshLcm) => Promise<void>) => Promise<void> {
  const folder = makeScratch(name);
  let databases = 0;
  return async (test) => {
    const path = join(folder, `${++databases}.db`);
    const store = await openSqlite({ path, housekeeping: false });
    const lcm = createLcm({ store, clock: { now: systemNow } });
    try {
      await test({ lcm, store, path });
    } finally {
      await lcm.close();
    }
  };
}
