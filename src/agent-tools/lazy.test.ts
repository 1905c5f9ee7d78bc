import assert from "node:assert/strict";
import { registerHooks } from "node:module";
import { describe, it } from "node:test";

describe("the argument checker", () => {
  it("is loaded on the first call, not at start", async () => {
    const loaded: string[] = [];
    registerHooks({
      resolve(specifier, context, next) {
        if (specifier.startsWith("typebox")) loaded.push(specifier);
        return next(specifier, context);
      },
    });
    const { tools } = await import("./all.ts");
    const { checkArguments } = await import("./arguments.ts");
    assert.equal(tools.length, 7);
    assert.equal(loaded.length, 0, loaded.join(", "));
    await checkArguments({ type: "object", required: [], properties: {} }, {});
    assert.deepEqual(loaded, ["typebox/schema"]);
  });
});
