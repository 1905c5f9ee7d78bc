/** A short soak; `npm run soak:postgres` runs a long one. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { soak } from "./postgres-soak/soak.ts";

describe("guarantee 37: many processes on one server that fails and is replaced", () => {
  it("lose nothing that was acknowledged, and double nothing", async (t) => {
    const result = await soak({ processes: 4, seconds: 40, say: (line) => t.diagnostic(line) });
    t.diagnostic(JSON.stringify(result));
    assert.ok(result.killed > 0 && result.acknowledged > 0);
  });
});
