import assert from "node:assert/strict";
import { registerHooks } from "node:module";
import { describe, it } from "node:test";
import { makeScratch } from "../../test/support/scratch.ts";

describe("the packages for providers", () => {
  it("are loaded on the first call, and not before", async () => {
    const loaded: string[] = [];
    registerHooks({
      resolve(specifier, context, next) {
        if (/^(ai|@ai-sdk\/.+)$/.test(specifier)) loaded.push(specifier);
        return next(specifier, context);
      },
    });
    const { createModel } = await import("./provider-model.ts");
    const model = await createModel(
      { provider: "ollama", model: "qwen3", baseUrl: null },
      {
        stateDir: makeScratch("lazy"),
        env: {},
        timeoutMs: 5_000,
        fetch: () => Promise.resolve(new Response("{}", { status: 400 })),
      },
    );
    assert.equal(loaded.length, 0, loaded.join(", "));
    const request = {
      purpose: "leaf",
      conversation: null,
      system: "",
      prompt: "Hi",
      temperature: 0,
      maxOutputTokens: 9,
    } as const;
    assert.equal((await model.complete(request)).kind, "refused");
    assert.ok(loaded.includes("ai") && loaded.includes("@ai-sdk/openai-compatible"), loaded.join(", "));
    assert.ok(!loaded.includes("@ai-sdk/anthropic"), "nor is a provider loaded that nobody chose");
  });
});
