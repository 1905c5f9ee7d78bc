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

describe("arguments whose meaning is clear", () => {
  it("are taken as they are meant", async () => {
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

  it("are absent when they are null or filled with nothing", async () => {
    const given = { pattern: "x", limit: null, mode: "", summaryIds: [], allConversations: undefined };
    assert.deepEqual(await understood(given), { pattern: "x" });
  });
});

describe("arguments that cannot be meant", () => {
  it("are named, each with what it must be", async () => {
    const cases: readonly (readonly [given: unknown, message: string])[] = [
      [{}, "pattern is missing: it must be a text that is not empty"],
      [undefined, "pattern is missing: it must be a text that is not empty"],
      [{ pattern: null }, "pattern is missing: it must be a text that is not empty"],
      [{ pattern: "" }, 'pattern is "", but must be a text that is not empty'],
      [{ pattern: "x", limit: 0 }, "limit is 0, but must be a whole number from 1 to 200"],
      [{ pattern: "x", limit: 201 }, "limit is 201, but must be a whole number from 1 to 200"],
      [{ pattern: "x", limit: 1.5 }, "limit is 1.5, but must be a whole number from 1 to 200"],
      [{ pattern: "x", limit: "many" }, 'limit is "many", but must be a whole number from 1 to 200'],
      [{ pattern: "x", mode: "fuzzy" }, 'mode is "fuzzy", but must be one of regex, full_text'],
      [{ pattern: "x", allConversations: "maybe" }, 'allConversations is "maybe", but must be true or false'],
      [{ pattern: "x", summaryIds: [7] }, "summaryIds is [7], but must be a list of summary ids"],
      [{ pattern: ["x"] }, 'pattern is ["x"], but must be a text that is not empty'],
      ["x", 'the arguments are "x", but must be an object'],
      [["x"], 'the arguments are ["x"], but must be an object'],
    ];
    for (const [given, message] of cases) assert.equal(await refusal(given), message);
  });

  it("are all told at once", async () => {
    assert.match(await refusal({ limit: 0, mode: "fuzzy" }), /pattern is missing.*mode is "fuzzy".*limit is 0/);
  });

  it("are told with the name that was meant, where that can be guessed", async () => {
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

  it("are shown short, however long they are", async () => {
    assert.ok((await refusal({ pattern: "x", mode: "y".repeat(10_000) })).length < 200);
    assert.ok((await refusal({ pattern: "x", ["y".repeat(10_000)]: 1 })).length < 300);
  });
});

describe("every tool", () => {
  it("has an example that its own schema takes, and words for each argument", async () => {
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
