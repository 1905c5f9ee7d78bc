import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { editsIn } from "./context-edits.ts";

const message = (id: string, role: string) => ({ type: "message", id, message: { role, content: "as it was" } });
const edit = (targetId: string, replacement: object | null) => ({
  type: "context_edit",
  id: "x",
  targetId,
  replacement,
});

describe("edits of Pi's context", () => {
  it("are those of the branch; the last one of a row counts", () => {
    const branch = [message("a", "user"), edit("a", { content: "first" }), message("b", "user"), edit("a", null)];
    assert.deepEqual(editsIn(branch), { a: null });
    assert.deepEqual(editsIn(branch.slice(0, 2)), { a: "first" });
    assert.deepEqual(editsIn([message("a", "user")]), {});
  });

  it("become blocks for roles that take only those", () => {
    const branch = [message("a", "assistant"), message("t", "toolResult"), edit("a", { content: "short" })];
    assert.deepEqual(editsIn([...branch, edit("t", { content: [{ type: "text", text: "kept" }] })]), {
      a: [{ type: "text", text: "short" }],
      t: [{ type: "text", text: "kept" }],
    });
  });
});
