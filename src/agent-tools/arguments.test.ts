import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { checkArguments } from "./arguments.ts";
import type { Parameters } from "./arguments.ts";
import { tools } from "./all.ts";

const parameters = {
  type: "object",
  required: ["pattern"],
  properties: {
    pattern: { type: "string", minLength: 1, description: "words" },
    mode: { type: "string", enum: ["regex", "full_text"], description: "how" },
    limit: { type: "integer", minimum: 1, maximum: 200, description: "how many" },
    allConversations: { type: "boolean", description: "everywhere" },
    summaryIds: { type: "array", items: { type: "string" }, minItems: 1, description: "which" },
  },
} as const satisfies Parameters;

const understood = async (given: unknown) => await checkArguments(parameters, given);
const refusal = async (given: unknown): Promise<string> => {
  try {
    return assert.fail(`${JSON.stringify(given)} was taken as ${JSON.stringify(await understood(given))}`);
  } catch (error) {
    assert.ok(error instanceof Error && "code" in error && error.code === "invalid", String(error));
    return error.message;
  }
};

describe("arguments with harmless slips", () => {
  it("are corrected", async () => {
    const cases: readonly (readonly [given: object, meant: object])[] = [
      [{ limit: "50" }, { limit: 50 }],
      [{ limit: " 50.0 " }, { limit: 50 }],
      [{ allConversations: "true" }, { allConversations: true }],
      [{ allConversations: "False" }, { allConversations: false }],
      [{ summaryIds: "sum_a" }, { summaryIds: ["sum_a"] }],
      [{ summaryIds: "sum_a, sum_b" }, { summaryIds: ["sum_a", "sum_b"] }],
      [{ summaryIds: '["sum_a","sum_b"]' }, { summaryIds: ["sum_a", "sum_b"] }],
      [{ mode: "Full-Text" }, { mode: "full_text" }],
      [{ all_conversations: true }, { allConversations: true }],
      [{ pattern: 404 }, { pattern: "404" }],
    ];
    for (const [given, meant] of cases)
      assert.deepEqual(await understood({ pattern: "x", ...given }), { pattern: "x", ...meant });
  });

  it("are absent if null or empty", async () => {
    const given = { pattern: "x", limit: null, mode: "", summaryIds: [], allConversations: undefined };
    assert.deepEqual(await understood(given), { pattern: "x" });
  });
});

describe("invalid arguments", () => {
  it("are reported by name, with what each must be", async () => {
    const cases: readonly (readonly [given: unknown, message: string])[] = [
      [{}, "pattern is missing: it must be a non-empty string"],
      [undefined, "pattern is missing: it must be a non-empty string"],
      [{ pattern: null }, "pattern is missing: it must be a non-empty string"],
      [{ pattern: "" }, 'pattern is "", but must be a non-empty string'],
      [{ pattern: "x", limit: 0 }, "limit is 0, but must be a whole number from 1 to 200"],
      [{ pattern: "x", limit: 201 }, "limit is 201, but must be a whole number from 1 to 200"],
      [{ pattern: "x", limit: 1.5 }, "limit is 1.5, but must be a whole number from 1 to 200"],
      [{ pattern: "x", limit: "many" }, 'limit is "many", but must be a whole number from 1 to 200'],
      [{ pattern: "x", mode: "fuzzy" }, 'mode is "fuzzy", but must be one of regex, full_text'],
      [{ pattern: "x", allConversations: "maybe" }, 'allConversations is "maybe", but must be true or false'],
      [{ pattern: "x", summaryIds: [7] }, "summaryIds is [7], but must be a list of summary ids"],
      [{ pattern: ["x"] }, 'pattern is ["x"], but must be a non-empty string'],
      ["x", 'the arguments are "x", but must be an object'],
      [["x"], 'the arguments are ["x"], but must be an object'],
    ];
    for (const [given, message] of cases) assert.equal(await refusal(given), message);
  });

  it("are all reported at once", async () => {
    assert.match(await refusal({ limit: 0, mode: "fuzzy" }), /pattern is missing.*mode is "fuzzy".*limit is 0/);
  });

  it("suggest the intended name where it can be guessed", async () => {
    for (const [given, meant] of [
      [
        { pattern: "x", patern: "y" },
        /^there is no argument "patern", did you mean pattern\? \(known: pattern, mode, /,
      ],
      [{ pattern: "x", summaryId: "sum_a" }, /"summaryId", did you mean summaryIds\?/],
      [{ query: "x" }, /"query", did you mean pattern\? .*; pattern is missing/],
      [{ pattern: "x", query: "x" }, /^there is no argument "query" \(known: /],
      [{ pattern: "x", bogus: 3 }, /^there is no argument "bogus" \(known: /],
      [{ bogus: 3, query: "x" }, /^there is no argument "bogus" \(.*no argument "query" \(/],
      [{ pattern: "x", __proto__x: 3 }, /there is no argument/],
    ] as const)
      assert.match(await refusal(given), meant);
  });

  it("are shortened in the message", async () => {
    assert.ok((await refusal({ pattern: "x", mode: "y".repeat(10_000) })).length < 200);
    assert.ok((await refusal({ pattern: "x", ["y".repeat(10_000)]: 1 })).length < 300);
  });
});

describe("every tool", () => {
  it("has a valid example and a description of each argument", async () => {
    for (const { name, parameters, example, description, label } of tools) {
      assert.deepEqual(await checkArguments(parameters, example), example, name);
      for (const key of parameters.required) assert.ok(key in parameters.properties, `${name} knows ${key}`);
      for (const [key, { description }] of Object.entries(parameters.properties))
        assert.match(description, /^\S.{10,}\.$/, `${name} ${key}`);
      assert.ok(description.length < 600 && label.length < 40, name);
    }
  });

  it("has a schema that is plain JSON", () => {
    for (const { parameters } of tools) assert.deepEqual(JSON.parse(JSON.stringify(parameters)), parameters);
  });
});
