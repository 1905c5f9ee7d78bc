import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createArchive } from "../../../test/support/search-archive.ts";
import { statementsOf, type Script, type Statement } from "../script.ts";
import { search } from "../search/search.ts";
import { createSearchIndex } from "./search-index.ts";

describe("a search of an SQLite database", () => {
  const archive = createArchive();
  archive.say(["which colour have the codeblocks", "a block of wood, not code that runs", "the colour of money"]);
  archive.index();
  const request = {
    pattern: "code block colour",
    mode: "full_text",
    scope: "both",
    sort: "relevance",
    limit: 20,
  } as const;

  it("looks up once what is written as one word nowhere", () => {
    const asked: Statement[] = [];
    const { hits } = archive.run(
      recorded(search(createSearchIndex(), request, { deadlineMs: 60_000, nowMs: () => 0 }), asked),
    );
    assert.equal(hits.length, 3);
    const timesAsked = (word: string): number =>
      asked.filter(({ parts, values }) => parts.join("").includes("messages_fts") && String(values[0]).includes(word))
        .length;
    assert.equal(timesAsked('"blockcolour"'), 1);
    // One that is there finds rows of both words.
    assert.ok(timesAsked('"codeblock"') > 2);
  });
});

/** A script that notes the statements it runs. */
function* recorded<T>(script: Script<T>, into: Statement[]): Script<T> {
  let step = script.next();
  while (step.done !== true) {
    into.push(...statementsOf(step.value));
    step = script.next(yield step.value);
  }
  return step.value;
}
