/** Undo where several things stand in its way. The contract holds the rest. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { followed, of, onScene, rewrite } from "../testing/contract/undo-scene.ts";
import { openSqlite } from "./sqlite.ts";

const subject = {
  open: async (path: string) => await openSqlite({ path, housekeeping: false }),
  restore: async (): Promise<void> => undefined,
};

describe("what stands in the way of taking a change back", () => {
  it(
    "is the newest of what was done since; taking each back in turn leads there",
    onScene(subject, async ({ store, leaves }) => {
      const [first, second, third] = [
        await rewrite(store, of(leaves, 5), "leaf anew"),
        await rewrite(store, of(leaves, 5), "leaf anew again"),
        await rewrite(store, of(leaves, 5), "leaf anew once more"),
      ];
      const { obstacles } = await store.planUndo(first);
      assert.deepEqual(
        obstacles.map(({ change }) => change),
        [third],
      );
      assert.deepEqual(
        (await followed(store, first)).map((remedy) => Number(/\d+/.exec(remedy)?.[0])),
        [third, second],
      );
    }),
  );
});
