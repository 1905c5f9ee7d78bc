/** Lists, pins and unpins standing instructions at a terminal, as a person does. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { createFolder, lcm, ok } from "./program.ts";
import type { Place } from "./program.ts";

function createPlace(): Place {
  const place = { state: createFolder() };
  const said = [
    ["user", "Never push to main."],
    ["assistant", "Understood."],
    ["user", "My sister's wedding is on 12 May."],
    ["assistant", "Noted."],
  ];
  const lines = said.map(([role, content], at) =>
    JSON.stringify({ id: `m${at}`, role, content, timestamp: `2026-06-01T10:0${at}:00Z` }),
  );
  writeFileSync(join(place.state, "talk.jsonl"), lines.join("\n"));
  ok(place, "import", "talk.jsonl");
  return place;
}

describe("lcm pins", () => {
  it("lists what is pinned, why, and where the prompt has it", () => {
    const place = createPlace();
    assert.match(ok(place, "pins", "1").stdout, /msg_1-1 .*cue "Never push" +in its message +Never push to main\./);
    const [pin] = ok(place, "pins", "1", "--json").json.pins;
    assert.deepEqual([pin.words, pin.origin, pin.place], ["Never push to main.", "cue", "message"]);
  });

  it("pins and unpins only with --apply, and an undo takes it back", () => {
    const place = createPlace();
    const words = (): readonly string[] =>
      ok(place, "pins", "1", "--json").json.pins.map((pin: { words: string }) => pin.words);
    assert.match(ok(place, "pins", "--add", "msg_1-3").stdout, /pin in conversation 1: msg_1-3/);
    assert.deepEqual(words(), ["Never push to main."]);
    const added = ok(place, "pins", "--add", "msg_1-3", "--text", "wedding is on 12 May", "--apply", "--json").json;
    assert.deepEqual([added.applied, added.result.change], [true, 1]);
    assert.deepEqual(words(), ["wedding is on 12 May", "Never push to main."]);
    ok(place, "pins", "--remove", "msg_1-1", "--reason", "we are alone", "--apply");
    assert.deepEqual(words(), ["wedding is on 12 May"]);
    assert.match(ok(place, "pins", "1", "--all").stdout, /person: we are alone +unpinned/);
    assert.match(ok(place, "history").stdout, /msg_1-1 unpinned/);
    ok(place, "undo", "2", "--apply");
    assert.deepEqual(words(), ["wedding is on 12 May", "Never push to main."]);
    assert.match(ok(place, "pins", "1", "--find").stdout, /0 standing instructions to pin/);
  });

  it("refuses what is not the user's, with a reason", () => {
    const place = createPlace();
    assert.match(lcm(place, "pins", "--add", "msg_1-2").stderr, /message of the assistant; only what a user said/);
    assert.match(lcm(place, "pins", "--add", "msg_1-3", "--text", "nobody said this").stderr, /does not say that/);
    assert.equal(lcm(place, "pins", "--remove", "msg_1-3").status, 3);
    assert.equal(lcm(place, "pins", "--add", "msg_1-3", "--remove", "msg_1-1").status, 2);
    assert.equal(lcm(place, "pins", "--add", "nonsense").status, 2);
  });
});
