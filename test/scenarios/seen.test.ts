/** `lcm seen` and `lcm stats`, as a user runs them. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { makeRecordedTalk, type RecordedTalk } from "../support/recorded-prompts.ts";
import { createFolder, lcm, ok } from "./program.ts";

const state = createFolder();
const place = { state };
let talk: RecordedTalk;
before(async () => {
  talk = await makeRecordedTalk(join(state, "lcm.db"));
});

describe("guarantee 35: lcm seen", () => {
  it("shows the prompt behind an answer, item by item", () => {
    const { stdout, stderr } = ok(place, "seen", "msg_1-20");
    assert.match(stdout, /^prompt 1#10 of 2026-03-01 \S+ \S+, behind msg_1-20$/m);
    assert.match(stdout, /scripted\/one · turn turn-10 · answered · [\d,]+ tokens counted .*50 of them from its cache/);
    assert.match(stdout, /^d0 sum_\w+ +[\d,]+ .*Piles before turn 8\./m);
    assert.match(stdout, /^user msg_1-19 .*How deep is pile 10/m);
    assert.doesNotMatch(stdout, /msg_1-20 .*Pile 10/);
    assert.match(stderr, /rebuilt to the byte: [\d.]+ K?B, sha256 [0-9a-f]{32}…/);
    assert.match(ok(place, "seen", "1", "--turn", "turn-3").stdout, /^prompt 1#3 of/);
    assert.match(ok(place, "seen", "1", "--at", "2026-03-01T08:05:30Z").stdout, /^prompt 1#5 of/);
  });

  it("prints the exact bytes, whose hash is the recorded one", () => {
    const { stdout } = ok(place, "seen", "1#10", "--text");
    const { json } = ok(place, "seen", "1#10", "--json");
    const { hash, bytes } = json["prompt"] as { readonly hash: string; readonly bytes: number };
    assert.equal(createHash("sha256").update(stdout).digest("hex").slice(0, 32), hash);
    assert.equal(Buffer.byteLength(stdout), bytes);
    for (const line of stdout.trimEnd().split("\n")) assert.equal(typeof JSON.parse(line), "object");
  });

  it("says what changed between two, and when something was no longer in view", () => {
    const { stdout } = ok(place, "seen", "msg_1-16", "msg_1-20");
    assert.match(stdout, /^1#8 → 1#10: [\d,]+ → [\d,]+ tokens; the first 0 B are the same \(0%\)$/m);
    assert.match(stdout, new RegExp(`^  msg_1-1 to msg_1-8 folded into ${talk.folds[0]}$`, "m"));
    const found = ok(place, "seen", "--find", "peanut allergy").stdout;
    assert.match(found, /^2–8 +.* in view$/m);
    assert.match(found, new RegExp(`^9–20 .* covered by ${talk.folds[0]}$`, "m"));
    assert.match(found, /the newest prompt does not show it itself/);
    assert.equal(lcm(place, "seen", "--find", "zeppelins").status, 1);
  });

  it("answers bad input with a clear error", () => {
    const errors: readonly (readonly [string, ...string[]])[] = [
      ["there is no conversation nobody", "nobody"],
      ["there is no msg_1-999", "msg_1-999"],
      ["no prompt 99 of conversation 1 is recorded", "1#99"],
      ["no prompt of turn x of conversation 1 is recorded", "1", "--turn", "x"],
      ["no prompt up to then of conversation 1 is recorded", "1", "--at", "2020-01-01"],
      ['--at is "soonish", which is not a time', "1", "--at", "soonish"],
      ["--turn and --at choose a prompt of a conversation, and 1#2 is one already", "1#2", "--turn", "x"],
      ["--text shows one prompt, not two", "1#2", "1#3", "--text"],
      ["there is no sum_0000000100000099", "--find", "sum_0000000100000099"],
    ];
    for (const [error, ...args] of errors) {
      const { status, stderr } = lcm(place, "seen", ...args);
      assert.ok(stderr.includes(error), `${args.join(" ")}: ${stderr}`);
      assert.notEqual(status, 0);
    }
  });
});

describe("lcm stats", () => {
  it("shows cost and cache over time, as a plot and a table", () => {
    const { stdout } = ok(place, "stats", "1");
    assert.match(stdout, /^20 prompts$/m);
    assert.match(stdout, /^\d+\.\d% of their bytes are those of the prompt before, from the beginning$/m);
    assert.match(stdout, /^2 prompts changed before the end, .* had to be sent again$/m);
    assert.match(stdout, /^tokens [▁-█]{20}$/m);
    assert.match(stdout, /^no model was called for summaries$/m);
    const { json } = ok(place, "stats", "1", "--json", "--limit", "5");
    const { prompts } = json as { readonly prompts: readonly { readonly number: number; readonly shared: number }[] };
    assert.deepEqual(
      prompts.map(({ number }) => number),
      [16, 17, 18, 19, 20],
    );
    assert.ok(prompts.every(({ shared }) => shared > 0));
  });
});
