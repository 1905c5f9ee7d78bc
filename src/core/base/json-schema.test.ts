import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Check } from "typebox/schema";
import { LcmError } from "./errors.ts";
import { checkSchema, misfitOf, valueTokens } from "./json-schema.ts";
import type { Json, JsonObject } from "./json.ts";

const book: JsonObject = {
  type: "object",
  properties: {
    title: { type: "string", minLength: 1, maxLength: 5 },
    year: { type: ["integer", "null"], minimum: 1_000, maximum: 2_100 },
    kind: { enum: ["novel", { other: 1 }] },
    tags: { type: "array", items: { type: "string" }, minItems: 1, maxItems: 2 },
    read: { anyOf: [{ type: "boolean" }, { const: "partly" }] },
  },
  required: ["title"],
  additionalProperties: false,
};

const values: readonly Json[] = [
  null,
  [],
  "Emma",
  {},
  { title: "Emma" },
  { title: "" },
  { title: "Emmas!" },
  { title: "🎈🎈🎈🎈🎈" },
  { title: 4 },
  { title: "Emma", year: 1815 },
  { title: "Emma", year: 1815.5 },
  { title: "Emma", year: null },
  { title: "Emma", year: 999 },
  { title: "Emma", year: 2_101 },
  { title: "Emma", kind: "novel" },
  { title: "Emma", kind: { other: 1 } },
  { title: "Emma", kind: { other: 2 } },
  { title: "Emma", kind: { other: 1, more: 1 } },
  { title: "Emma", tags: [] },
  { title: "Emma", tags: ["a"] },
  { title: "Emma", tags: ["a", 1] },
  { title: "Emma", tags: ["a", "b", "c"] },
  { title: "Emma", read: true },
  { title: "Emma", read: "partly" },
  { title: "Emma", read: "no" },
  { title: "Emma", more: 1 },
];

describe("checking values against a schema", () => {
  it("agrees with a full validator on every supported keyword", () => {
    checkSchema(book);
    for (const value of values) assert.equal(misfitOf(book, value) === null, Check(book, value), JSON.stringify(value));
  });

  it("says where a value does not fit", () => {
    assert.equal(misfitOf(book, { title: "Emma", tags: ["a", 1] }), "the value.tags[1] is not string");
    assert.equal(misfitOf(book, {}), 'the value has no "title"');
    assert.equal(misfitOf(book, { title: "Emma", year: 3_000 }), "the value.year is above maximum 2100");
  });

  it("is not fooled by names that every object has", () => {
    const closed: JsonObject = { type: "object", properties: {}, additionalProperties: false };
    assert.match(misfitOf(closed, JSON.parse('{"__proto__": 1}')) ?? "", /unknown "__proto__"/);
    assert.match(misfitOf(closed, { constructor: 1 }) ?? "", /unknown "constructor"/);
    assert.match(misfitOf({ required: ["toString"] }, { a: 1 }) ?? "fits", /has no "toString"/);
  });

  it("refuses schemas that it cannot check, rather than ignore a part", () => {
    const deep = Array.from({ length: 30 }).reduce<JsonObject>((items) => ({ type: "array", items }), {});
    for (const schema of [
      null,
      "string",
      [],
      { type: "text" },
      { type: "string", pattern: "a+" },
      { $ref: "#/x" },
      { properties: { a: 1 } },
      { properties: { a: { oneOf: [] } } },
      { items: true },
      { anyOf: [] },
      { minimum: "1" },
      { description: "x".repeat(20_000) },
      deep,
    ] satisfies Json[])
      assert.throws(
        () => checkSchema(schema),
        (error) => error instanceof LcmError && error.code === "invalid",
      );
  });

  it("says what is wrong with which keyword", () => {
    assert.throws(() => checkSchema({ type: "strin" }), { message: 'the schema has a wrong value of type: "strin"' });
  });

  it("estimates the tokens of a value", () => {
    assert.ok(valueTokens({ type: "boolean" }) < valueTokens({ type: "string" }));
    assert.ok(valueTokens({ type: "string" }) < valueTokens(book));
  });
});
