import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { cutsTo } from "./evict.ts";
import type { Sizes } from "./evict.ts";

const sizesOf = (costs: readonly number[], budget: number, room = budget): Sizes => {
  let total = 0;
  const before = costs.map((cost) => (total += cost) - cost);
  return { budget, room, total, before };
};
const cuts = (floor: number, sizes: Sizes): readonly number[] => [...cutsTo(floor, sizes)];
const tens = (count: number): readonly number[] => Array.from({ length: count }, () => 10);

describe("where a context is cut", () => {
  it("is nowhere, as long as it fits", () => {
    assert.equal(cuts(9, sizesOf(tens(10), 100))[0], 0);
  });

  it("is a whole step beyond the budget, and then stays while the context grows by that step", () => {
    // A quarter of 400 is 10 items.
    const first = (count: number): number | undefined => cuts(count - 5, sizesOf(tens(count), 400))[0];
    assert.deepEqual([40, 41, 45, 50, 51, 60, 61].map(first), [0, 10, 10, 10, 20, 20, 30]);
  });

  it("is in smaller steps where a quarter would reach into what must be shown", () => {
    // 45 of 50 items must be shown, of which 48 fit: only a sixteenth of the budget can be evicted.
    assert.equal(cuts(5, sizesOf(tens(50), 480))[0], 3);
  });

  it("is at the floor when no step is small enough", () => {
    assert.deepEqual(cuts(1, sizesOf(tens(3), 25)), [1]);
  });

  it("goes forward only, ends at the floor, and ends", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(500), { minLength: 1, maxLength: 60 }),
        fc.nat(3_000),
        fc.nat(60),
        fc.nat(60),
        (costs, budget, note, floorOf) => {
          const floor = floorOf % costs.length;
          const found = cuts(floor, sizesOf(costs, budget, budget - note));
          assert.equal(found.at(-1), floor);
          for (const [index, cut] of found.entries()) assert.ok(index === 0 || cut > (found[index - 1] ?? 0));
        },
      ),
    );
  });
});
