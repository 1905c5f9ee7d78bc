import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Command } from "commander";
import { addCommands } from "./commands/index.ts";
import { complete } from "./complete.ts";
import { createContext } from "./context.ts";

const program = new Command("lcm").version("1");
addCommands(program, createContext({ finish: () => undefined }), false);

/** The words offered after a line, whose last word may be empty; otherwise the kind of what is offered. */
function offered(line: string): readonly string[] | string {
  const found = complete(program, line.split(" "));
  return found.kind === "words" ? found.words.map(({ word }) => word) : found.kind;
}

describe("completing a command line", () => {
  it("offers every command, and every option of each with what it does", () => {
    const visible = program.createHelp().visibleCommands(program);
    assert.deepEqual(
      offered(""),
      visible.map((command) => command.name()),
    );
    assert.deepEqual(offered("help re"), ["recent", "repair", "restore", "rewrite"]);
    for (const command of visible.filter((each) => each.name() !== "help")) {
      const words = offered(`${command.name()} --`);
      for (const { long, hidden } of command.options)
        assert.equal(words.includes(long ?? ""), !hidden, `${command.name()} ${long}`);
      for (const common of ["--db", "--json", "--help"]) assert.ok(words.includes(common), command.name());
    }
    const described = complete(program, ["grep", "--sco"]);
    assert.deepEqual(described, {
      kind: "words",
      words: [{ word: "--scope", what: "search here; files are large texts that were moved out of messages" }],
    });
  });

  it("offers the choices of an option, however it is written", () => {
    const choices = ["messages", "summaries", "both", "files"];
    assert.deepEqual(offered("grep --scope "), choices);
    assert.deepEqual(offered("grep word --scope f"), ["files"]);
    assert.deepEqual(offered("grep --scope=f"), ["--scope=files"]);
    assert.deepEqual(offered("grep --scope = f"), ["files"], "as bash splits it");
    assert.deepEqual(offered("grep --scope ="), choices);
    assert.deepEqual(offered("completion "), ["bash", "zsh", "fish"]);
  });

  it("recognises where a path or a conversation is expected", () => {
    for (const line of [
      "import ",
      "import a.jsonl b",
      "--db ",
      "status --db ",
      "export 1 -o ",
      "export --output=",
      "restore ",
    ])
      assert.equal(offered(line), "files", line);
    for (const line of [
      "export ",
      "messages ",
      "prune 1 2 ",
      "transplant 1 ",
      "grep x --conversation ",
      "grep --family=",
    ])
      assert.equal(offered(line), "conversations", line);
    const after = complete(program, ["--db", "other.db", "dag", "--json", ""]);
    assert.ok(after.kind === "conversations" && after.db === "other.db");
    const joined = complete(program, ["dag", "--db=other.db", "4"]);
    assert.ok(joined.kind === "conversations" && joined.db === "other.db");
    const candidates = [4, 41, 5].map((id) => ({ word: String(id), what: "a title" }));
    assert.deepEqual(
      joined.fit(candidates).map(({ word }) => word),
      ["4", "41"],
    );
  });

  it("offers nothing where anything may be typed, and an option only once", () => {
    for (const line of ["grep ", "grep --since ", "describe ", "export 1 ", "grep -- --sco"])
      assert.deepEqual(offered(line), [], line);
    assert.deepEqual(offered("grep --scope files --sco"), []);
    assert.deepEqual(offered("ask --summary sum_1 --summ"), ["--summary"]);
  });
});
