import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { scrub, troubleOf } from "./refusal.ts";
import type { Failure, Trouble } from "./refusal.ts";

const nowMs = Date.parse("2026-02-17T12:00:00.000Z");

function trouble(failure: Partial<Failure> & { readonly error?: object }): Trouble {
  const { error, ...rest } = failure;
  const body = error === undefined ? "" : JSON.stringify({ error });
  return troubleOf({ status: null, headers: {}, body, networkCode: null, message: "", ...rest }, nowMs);
}

describe("guarantee 21: provider failures are classified by status and code", () => {
  const byStatus = {
    400: "rejected",
    401: "auth",
    402: "auth",
    403: "auth",
    404: "unknown_model",
    408: "timeout",
    409: "rejected",
    413: "too_long",
    422: "rejected",
    429: "rate_limit",
    500: "overloaded",
    502: "overloaded",
    503: "overloaded",
    529: "overloaded",
    200: "overloaded",
  };
  for (const [status, refusal] of Object.entries(byStatus)) {
    it(`a ${status} is ${refusal}`, () => {
      assert.equal(trouble({ status: Number(status) }).refusal, refusal);
    });
  }

  const byCode = [
    [400, { code: "context_length_exceeded" }, "too_long"],
    [400, { code: 400, type: "exceed_context_size_error" }, "too_long"],
    [400, { code: "content_filter" }, "filtered"],
    [400, { code: 400, status: "INVALID_ARGUMENT", details: [{ reason: "API_KEY_INVALID" }] }, "auth"],
    [429, { code: "insufficient_quota", type: "insufficient_quota" }, "auth"],
    [200, { code: 502 }, "overloaded"],
    [200, { code: 429 }, "rate_limit"],
  ] as const;
  for (const [status, error, refusal] of byCode) {
    it(`a ${status} with ${JSON.stringify(error)} is ${refusal}`, () => {
      assert.equal(trouble({ status, error }).refusal, refusal);
    });
  }

  it("no answer is unreachable, and one that takes too long is a timeout", () => {
    assert.equal(trouble({ networkCode: "ECONNREFUSED" }).refusal, "unreachable");
    assert.equal(trouble({ networkCode: "ENOTFOUND" }).refusal, "unreachable");
    assert.equal(trouble({ networkCode: "UND_ERR_HEADERS_TIMEOUT" }).refusal, "timeout");
    assert.equal(trouble({ status: 200, body: null, networkCode: "UND_ERR_SOCKET" }).refusal, "unreachable");
  });

  it("messages are ignored", () => {
    const words = "401 unauthorized: invalid api key, rate limit, prompt is too long, overloaded, content filter";
    for (const status of [400, 422]) {
      const told = trouble({ status, message: words, error: { message: words } });
      assert.equal(told.refusal, "rejected");
      assert.deepEqual(told.rejected, []);
    }
  });
});

describe("a parameter that a model does not accept", () => {
  it("is the one that the error names", () => {
    const named = (error: object): readonly string[] => trouble({ status: 400, error }).rejected;
    assert.deepEqual(named({ param: "temperature", code: "unsupported_value" }), ["temperature"]);
    assert.deepEqual(named({ type: "invalid_request_error", details: { unsupported: ["temperature"] } }), [
      "temperature",
    ]);
    const violations = [{ field: "generation_config.temperature" }];
    assert.deepEqual(named({ code: 400, details: [{ fieldViolations: violations }] }), ["temperature"]);
    assert.deepEqual(named({ param: null }), []);
  });
});

describe("the time to wait", () => {
  const waitMs = (headers: Record<string, string>, error?: object): number | null =>
    trouble({ status: 429, headers, ...(error && { error }) }).retryAfterMs;

  it("is read in seconds, in milliseconds, as a date or from the body", () => {
    assert.equal(waitMs({ "retry-after": "2" }), 2_000);
    assert.equal(waitMs({ "retry-after": "0.5" }), 500);
    assert.equal(waitMs({ "retry-after-ms": "20", "retry-after": "1" }), 20);
    assert.equal(waitMs({ "retry-after": "Tue, 17 Feb 2026 12:00:30 GMT" }), 30_000);
    assert.equal(waitMs({}, { details: [{ reason: "x" }, { retryDelay: "36.5s" }] }), 36_500);
  });

  it("is never negative, and null if unknown", () => {
    assert.equal(waitMs({ "retry-after": "Tue, 17 Feb 2026 11:00:00 GMT" }), 0);
    assert.equal(waitMs({ "retry-after": "soon" }), null);
    assert.equal(waitMs({ "retry-after": "" }), null);
    assert.equal(waitMs({}), null);
  });
});

describe("the description of a failure", () => {
  it("is one line without secrets, known or suspected", () => {
    const said = scrub("used shibboleth\nand sk-proj-1234, AIzaSyXyz and Bearer abc.def", ["shibboleth", null, ""]);
    assert.equal(said, "used *** and ***, *** and Bearer ***");
    assert.equal(scrub("model claude-sonnet-4-5 not found", []), "model claude-sonnet-4-5 not found");
    assert.ok(scrub("x".repeat(10_000), []).length < 400);
  });
});
