/** What a simulated life needs of a database beyond the port of its store. */

import type { Leftovers, Script } from "../../src/store/script.ts";
import type { SearchIndex } from "../../src/store/search/indexing.ts";
import type { Store } from "../../src/core/model/store.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

/** Where a life gets its time and its random digits from. */
export interface LifeDeps {
  readonly now: () => Timestamp;
  readonly hex16: () => string;
}

/** The database of one life. */
export interface LifeDatabase {
  readonly leftovers: Leftovers;
  readonly searchIndex: SearchIndex;
  /** Opens it once more, beside others that are open. */
  open(): Promise<Store>;
  /** Everything fails that was not committed, as with a power cut; stores that are open are of no use afterwards. */
  crash(): Promise<string>;
  /** Every row, as one text. */
  picture(): Promise<string>;
  /** Runs a script that throws before its commit. */
  breakOff(script: () => Script<unknown>): Promise<void>;
  end(): Promise<void>;
}

export interface SimulatedStore {
  /** What replays a seed. */
  readonly testFile: string;
  /** Makes an empty database. */
  begin(folder: string, deps: LifeDeps): Promise<LifeDatabase>;
}
