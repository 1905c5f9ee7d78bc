import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Timestamp } from "../core/base/time.ts";
import { vectorProblem } from "./vectors.ts";

const at = "2026-11-18T09:00:00.000Z" as Timestamp;
const of = (model: string, pending: number) => ({ model, made: 10 - pending, pending, bytes: 480 });
const by = (name: string) => ({ name, embedded: 10, failure: null, at });
const problem = (embedder: string | null, vectors: ReturnType<typeof of>[], names: readonly string[] = ["local:gte"]) =>
  vectorProblem(embedder, { vectors, embedders: names.map(by), messages: 10 });

describe("what is wrong with the vectors", () => {
  it("nothing, if all are there or nobody wants any", () => {
    assert.equal(problem(null, []), null);
    assert.equal(problem("local:gte", [of("gte/384/1", 0)]), null);
    assert.equal(vectorProblem("local:gte", { vectors: [], embedders: [], messages: 0 }), null);
  });

  it("that some are missing, that they are of another model, or that nobody uses them", () => {
    assert.equal(problem("local:gte", []), "no message has a vector yet");
    assert.equal(problem("local:gte", [of("gte/384/1", 3)]), "3 of 10 messages have no vector yet");
    assert.match(
      problem("openai:small", [of("gte/384/1", 0)]) ?? "",
      /of another model \(gte\/384\/1\), not of openai:small/,
    );
    assert.match(problem("local:gte", [of("a/1/1", 0), of("b/1/1", 0)]) ?? "", /several models/);
    assert.match(problem(null, [of("gte/384/1", 0)]) ?? "", /is off, but has vectors of gte/);
  });
});
