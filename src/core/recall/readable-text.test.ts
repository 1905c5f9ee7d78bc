import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Part, Role } from "../model/types.ts";
import { readableText, type Reading } from "./readable-text.ts";

const bare: Part = { type: "text", text: null, kept: null, toolCallId: null, toolName: null, metadata: null };
const said = (text: string): Part => ({ ...bare, text });
const call = (name: string, input: object): Part => ({
  ...bare,
  type: "tool",
  toolCallId: "c1",
  toolName: name,
  text: `${name} ${JSON.stringify(input)}`,
});
const read = (role: Role, parts: readonly Part[], word = "", kind: Reading["kind"] = "brief") => {
  const text = parts.map((part) => part.text).join("\n");
  const from = Math.max(0, text.indexOf(word));
  const focus = { from, to: from + word.length };
  const shown = readableText({ role, parts, text }, kind === "brief" ? { kind, focus } : { kind });
  const { from: start, to } = shown.locate(focus);
  return { ...shown, found: shown.text.slice(start, to) };
};

describe("a message for reading", () => {
  const edit = { path: "src/a.ts", oldText: "if (a) {\n\treturn 1;\n}", newText: "if (a) {\n\treturn 2;\n}" };

  it("shows an edit by its path and the lines that differ, as every known tool writes it", () => {
    const { text, calls, found } = read("assistant", [said("Let me fix it."), call("edit", edit)], "return 2");
    assert.equal(text, "Let me fix it.\nedit src/a.ts\n- return 1;\n+ return 2;");
    assert.equal(found, "return 2");
    assert.deepEqual(calls, [{ id: "c1", range: { from: 15, to: text.length }, isEdit: true }]);
    const other = { file_path: "b", edits: [{ old_string: "x", new_string: "y" }] };
    assert.equal(read("assistant", [call("Edit", other)]).text, "Edit b\n- x\n+ y");
    const whole = read("assistant", [call("edit", edit)], "", "whole").text;
    assert.equal(whole, "edit src/a.ts\n  if (a) {\n- \treturn 1;\n+ \treturn 2;\n  }");
  });

  it("shows a call by its tool and what it is about, then other arguments, unescaped", () => {
    const written = read("assistant", [call("write", { path: "a.md", content: "# One\n\nTwo" })], "Two");
    assert.equal(written.text, "write a.md\ncontent: # One\n\nTwo");
    assert.deepEqual([written.found, written.calls[0]?.isEdit], ["Two", true]);
    const bash = call("bash", { command: 'grep "a"', timeout: 30 });
    assert.equal(read("assistant", [bash]).text, 'bash grep "a"');
    assert.equal(read("assistant", [bash], "", "whole").text, 'bash grep "a" (timeout: 30)');
    const several = call("search", { query: "a", where: "b", limit: 3 });
    assert.equal(read("assistant", [several]).text, "search (query: a, where: b, limit: 3)");
    assert.equal(read("assistant", [call("read", { path: "a.ts", offset: 5 })]).text, "read a.ts (offset: 5)");
    const odd = { ...call("bash", {}), text: "bash not json" };
    assert.equal(read("assistant", [odd]).text, "bash not json");
  });

  it("shows a stack trace by its error and first frame, unless a frame was searched for", () => {
    const trace =
      "It broke again:\nError: no such theme\n    at load (a.js:1:2)\n    at open (b.js:3:4)\n    at run (c.js:5:6)\nHelp!";
    assert.equal(
      read("user", [said(trace)]).text,
      "It broke again:\nError: no such theme\n    at load (a.js:1:2)\nHelp!",
    );
    const searched = read("user", [said(trace)], "open (b");
    assert.match(searched.text, /at open \(b\.js/);
    assert.equal(searched.found, "open (b");
    assert.equal(read("user", [said(trace)], "", "whole").text, trace);
    assert.equal(read("tool", [said("Debugger attached.\n77\nWaiting for the debugger to disconnect...")]).text, "77");
  });

  it("shows a line that an output repeats once, unless it is indented as code is, or all is asked for", () => {
    const noise = "Debugger attached.\n";
    const output = `[main 45ffe0a] Release\n${noise.repeat(3)}ok\n${"  return null; // none\n".repeat(3)}${noise}end`;
    const part: Part = { ...bare, type: "tool", toolCallId: "c1", text: output };
    const once = `[main 45ffe0a] Release\n${noise}ok\n${"  return null; // none\n".repeat(3)}end`;
    assert.equal(read("tool", [part], "", "once").text, once);
    assert.equal(read("tool", [part], "", "whole").text, output);
    assert.equal(read("tool", [part], "Release").found, "Release");
    assert.equal(read("user", [said(noise.repeat(4))], "", "once").text, noise.repeat(4), "what people say is kept");
  });
});
