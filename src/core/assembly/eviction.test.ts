import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { createRandom } from "../../../test/support/random.ts";
import { cutsTo, frontMax } from "./eviction.ts";
import type { Sizes } from "./eviction.ts";

const sizesOf = (costs: readonly number[], budget: number): Sizes => {
  let total = 0;
  const before = costs.map((cost) => (total += cost) - cost);
  return { budget, total, before };
};
const cuts = (floor: number, sizes: Sizes): readonly number[] => [...cutsTo(floor, sizes)];
const tens = (count: number): readonly number[] => Array.from({ length: count }, () => 10);

describe("where a context is cut", () => {
  it("is at the start while it fits", () => {
    assert.equal(cuts(9, sizesOf(tens(10), 100))[0], 0);
  });

  it("is a whole step past the budget, and stays until the context has grown by a step", () => {
    // A step of 512 is 128, or 12.8 items.
    const first = (count: number): number | undefined => cuts(count - 5, sizesOf(tens(count), 512))[0];
    assert.deepEqual([51, 52, 60, 64, 65, 76, 77, 90].map(first), [0, 13, 13, 13, 26, 26, 39, 52]);
  });

  it("stays when the budget varies slightly every turn", () => {
    const costs = tens(100_000);
    const first = (budget: number): unknown => cutsTo(costs.length - 5, sizesOf(costs, budget)).next().value;
    assert.equal(new Set([9_000, 9_001, 9_040, 9_100, 8_990].map(first)).size, 1);
  });

  it("does so at every budget, without jumping back and forth", () => {
    const { before } = sizesOf(tens(10_000), 0);
    const random = createRandom(3);
    for (const base of [2_048, 2_560, 3_000, 3_584, 4_096]) {
      const cutsSeen: number[] = [];
      for (let total = 10_000; total < 100_000; total += 100) {
        const budget = Math.round(base * (1 + random.between(-50, 50) / 10_000));
        cutsSeen.push(...cutsTo(total / 10 - 5, { budget, total, before }).take(1));
      }
      const changes = cutsSeen.filter((cut, turn) => cut !== cutsSeen[turn - 1]).length;
      const budgets = 90_000 / base;
      assert.ok(changes < 7 * budgets, `${changes} changes in ${budgets.toFixed()} budgets of ${base.toFixed()}`);
    }
  });

  it("uses smaller steps where a larger one would cut what must be shown", () => {
    // 45 of 50 items must be shown, of which 48 fit: a step of 64 would cut seven, one of 32 cuts four.
    assert.equal(cuts(5, sizesOf(tens(50), 480))[0], 4);
  });

  it("is the floor when no step is small enough", () => {
    assert.deepEqual(cuts(1, sizesOf(tens(3), 25)), [1]);
  });

  it("only moves forward, and ends at the floor", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(500), { minLength: 1, maxLength: 60 }),
        fc.nat(3_000),
        fc.nat(60),
        (costs, budget, floorOf) => {
          const floor = floorOf % costs.length;
          const found = cuts(floor, sizesOf(costs, budget));
          assert.equal(found.at(-1), floor);
          for (const [index, cut] of found.entries()) assert.ok(index === 0 || cut > (found[index - 1] ?? 0));
        },
      ),
    );
  });
});

describe("the limit of the message in front of a cut", () => {
  it("is an eighth to a quarter of the budget, and hardly follows small variations of it", () => {
    const cutsSeen = Array.from({ length: 400 }, (_, at) => at * 1_024 + 37 * (at % 5));
    for (let budget = 4_000; budget < 9_000; budget += 111) {
      const changing = cutsSeen.filter((cut) => frontMax(budget * 0.98, cut) !== frontMax(budget * 1.02, cut));
      assert.ok(changing.length < 40, `${changing.length} of 400 cuts at ${budget}`);
      for (const cut of cutsSeen) {
        const share = frontMax(budget, cut) / budget;
        assert.ok(share > 0.124 && share <= 0.25, `${share} of ${budget}`);
      }
    }
  });
});
