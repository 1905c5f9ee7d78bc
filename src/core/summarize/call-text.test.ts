import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Json } from "../base/json.ts";
import { callText, effectOf } from "./call-text.ts";

const shown = (name: string, input: Json): string => callText(name, input, null);
const numbered = (count: number, word: string): string =>
  Array.from({ length: count }, (_, line) => `${word} ${line + 1}`).join("\n");

describe("the text of a call", () => {
  it("names the tool, then the argument that matters, then what else informs", () => {
    assert.equal(shown("read", { offset: 30, path: "a.ts", limit: 9 }), "→ read a.ts (offset 30, limit 9)");
    assert.equal(
      shown("grep", { path: "src", pattern: "a b", "-n": true, glob: "" }),
      "→ grep a b (path src, -n true)",
    );
    assert.equal(shown("bash", { command: "ls", timeout: 30, yield_time_ms: 1 }), "→ bash ls");
    assert.equal(shown("shell", { command: ["bash", "-lc", "ls -a"] }), "→ shell ls -a");
    assert.equal(shown("shell", { command: ["git", "log"] }), "→ shell git log");
    assert.equal(callText("ls", {}, 7), "→ #7 ls");
    assert.equal(shown("http", { url: "u", body: { a: [1] } }), '→ http u (body {"a":[1]})');
  });

  it("writes lines as lines, below the call", () => {
    assert.equal(shown("bash", { command: 'cat <<E\n  "a"\n\n  b\nE' }), '→ bash cat <<E\n    "a"\n    b\n  E');
    const mail = `Dear Theo, ${"thank you for the hazelnuts. ".repeat(30)}`.trim();
    assert.equal(shown("mail", { to: "Theo", body: mail }), `→ mail Theo (body: see below)\n  ${mail}`);
  });

  it("shows a file that is written by its length, head and tail", () => {
    const text = shown("write", { path: "a.md", content: numbered(100, "line") });
    assert.match(text, /^→ write a\.md \(content: 100 lines\)\n {2}line 1\n/);
    assert.match(text, / {2}line 10\n {2}… 86 lines left out\n {2}line 97\n(?:.*\n){2} {2}line 100$/);
  });

  it("shows an edit as the lines that changed, in every usual shape", () => {
    const [before, after] = ["  a\n  b\n  c\n  d\n  e", "  a\n  B\n  c\n  d\n  E"];
    const diff = "→ edit a.ts\n  - b\n  + B\n  - e\n  + E";
    const shapes: readonly Json[] = [
      { path: "a.ts", oldText: before, newText: after },
      { path: "a.ts", edits: [{ oldText: before, newText: after }] },
      { file_path: "a.ts", old_string: before, new_string: after, replace_all: false },
      { path: "a.ts", old_str: before, new_str: after },
      { filePath: "a.ts", oldString: before, newString: after },
    ];
    for (const shape of shapes) assert.equal(shown("edit", shape), diff);
  });

  it("shows where lines were inserted, and leaves out lines without words", () => {
    const edit = { path: "a", oldText: "one {\n}", newText: "one {\n\ttwo();\n}\n\n{\n\tthree();\n}" };
    assert.equal(shown("edit", edit), "→ edit a\n    one {\n  + \ttwo();\n  + \tthree();");
    assert.equal(shown("edit", { path: "a", oldText: "f({", newText: "f([" }), "→ edit a\n  - f({\n  + f([");
    assert.equal(shown("edit", { path: "a", oldText: "{", newText: "[" }), "→ edit a\n  - {\n  + [");
  });

  it("cuts a long edit in the middle", () => {
    const text = shown("edit", { path: "a", oldText: numbered(40, "old"), newText: numbered(40, "new") });
    assert.match(text, / {2}- old 16\n {2}… 56 lines left out\n {2}\+ new 33\n/);
  });

  it("shows a patch without its context", () => {
    const patch = "*** Begin Patch\n*** Update File: a.ts\n@@ f\n same\n-old\n+new\n same\n*** End Patch";
    const changed = "  *** Update File: a.ts\n  @@ f\n  -old\n  +new";
    assert.equal(shown("apply_patch", { cwd: "/", patch }), `→ apply_patch (cwd /)\n${changed}`);
    assert.ok(shown("apply_patch", { input: patch }).endsWith(changed));
    assert.ok(shown("apply_patch", patch).endsWith(changed));
  });

  it("leaves out encoded bytes and signatures", () => {
    const bytes = "iVBORw0KGgo9aB3".repeat(80);
    assert.equal(
      shown("upload", { name: "a.png", data: bytes, signature: "x9" }),
      "→ upload a.png (data [base64, 1.2 KB])",
    );
  });

  it("takes a large edit in its stride", () => {
    const lines = (word: string): string =>
      Array.from({ length: 50_000 }, (_, line) => `${word} ${line >> 1}`).join("\n");
    const text = shown("edit", { path: "a", oldText: `${lines("a")}\nsame`, newText: `${lines("b")}\nsame\nend` });
    assert.ok(text.length < 1_000, text);
  });
});

describe("the effect of a call", () => {
  it("tells calls that change a file, calls that read one, and others", () => {
    assert.equal(effectOf({ path: "a", oldText: "x", newText: "" }), "changes a file");
    assert.equal(effectOf({ file_path: "a", content: "x" }), "changes a file");
    assert.equal(effectOf({ input: "*** Begin Patch\n" }), "changes a file");
    assert.equal(effectOf({ path: "a", limit: 3 }), "reads a file");
    assert.equal(effectOf({ pattern: "x", path: "a" }), "other");
    assert.equal(effectOf("cat a"), "other");
  });
});
