import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Completion, CompletionRequest, Model } from "../core/model/store.ts";
import { watchModel } from "./waiting.ts";

const request: CompletionRequest = {
  purpose: "leaf",
  conversation: null,
  system: "",
  prompt: "",
  temperature: 0,
  maxOutputTokens: 1,
};

describe("waiting for a model", () => {
  it("shows the longest wait and the limit, until the answer", async () => {
    const clock = { ms: 0 };
    const answers: ((completion: Completion) => void)[] = [];
    const model: Model = {
      provider: "harbour",
      name: "scripted-1",
      complete: () => new Promise((resolve) => answers.push(resolve)),
    };
    const watched = watchModel(model, 120, () => clock.ms);
    const first = watched.model.complete(request);
    clock.ms = 1_900;
    assert.equal(watched.wait(40), null, "no words for a short wait");
    const second = watched.model.complete(request);
    clock.ms = 37_400;
    assert.equal(watched.wait(40), "waiting for harbour/scripted-1, 37 s of 120 s");
    assert.equal(watched.wait(10), "waiting for harbour/s…, 37 s of 120 s");
    const refused: Completion = { kind: "refused", refusal: "timeout", message: "" };
    answers[0]?.(refused);
    assert.deepEqual(await first, refused);
    assert.equal(watched.wait(40), "waiting for harbour/scripted-1, 35 s of 120 s");
    answers[1]?.(refused);
    await second;
    assert.equal(watched.wait(40), null);
  });
});
