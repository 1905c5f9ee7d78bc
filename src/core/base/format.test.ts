import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { listed, plural, withTilde } from "./format.ts";

describe("formatting for people", () => {
  it("counts things", () => {
    assert.equal(plural(1, "message"), "1 message");
    assert.equal(plural(0, "summary", "summaries"), "0 summaries");
    assert.equal(plural(1_234_567, "row"), "1,234,567 rows");
  });

  it("lists things", () => {
    assert.equal(listed([]), "");
    assert.equal(listed(["a"]), "a");
    assert.equal(listed(["a", "b", "c"]), "a, b and c");
  });

  it("shortens paths in the home folder, and no others", () => {
    assert.equal(withTilde("/home/ann/.codex/config.toml", "/home/ann"), "~/.codex/config.toml");
    assert.equal(withTilde("C:\\Users\\ann\\.codex", "C:\\Users\\ann"), "~\\.codex");
    for (const path of ["/home/anna/x", "/opt/lib", "plugin", "/home/bob/x"])
      assert.equal(withTilde(path, "/home/ann"), path);
  });
});
