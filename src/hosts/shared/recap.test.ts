import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { estimateTokens } from "../../core/base/tokens.ts";
import type { Pin, Summary } from "../../core/model/types.ts";
import { freshLcms } from "../../../test/support/fresh-lcm.ts";
import { composeRecap, recap } from "./recap.ts";

const wide = { tokensMax: 100_000, charactersMax: 1_000_000 };

const summaries = (count: number, words = 200): readonly Summary[] =>
  Array.from({ length: count }, (_, nth) => ({
    ...({ depth: 0, descendants: 0, carriedFrom: null } as Summary),
    id: `sum_${nth}` as Summary["id"],
    earliestAt: "2026-11-18T10:00:00.000Z" as Summary["earliestAt"],
    latestAt: "2026-11-18T11:00:00.000Z" as Summary["latestAt"],
    text: `Opening of ${nth}. <b> ${"word ".repeat(words)}`,
  }));

const pin = { message: 1, saidAt: "2026-11-18T10:00:00.000Z", words: "Always use tabs." } as unknown as Pin;
const stored = "msg_1-1 to msg_1-90";

describe("the recap after a host's compaction", () => {
  it("shows guidance, what is stored, standing instructions and the summaries in order", () => {
    const text = composeRecap({ stored, summaries: summaries(3), pins: [pin] }, wide);
    assert.match(text, /lcm_grep[^]*msg_1-1 to msg_1-90[^]*Always use tabs[^]*sum_0[^]*sum_1[^]*sum_2/);
    assert.doesNotMatch(text, /<b>/, "what was said cannot open an element");
    assert.doesNotMatch(text, /summary_ref/);
  });

  it("keeps within tokens and characters: the newest whole, the others by a line, the oldest left out", () => {
    for (const limits of [
      { tokensMax: 1_400, charactersMax: 1_000_000 },
      { tokensMax: 100_000, charactersMax: 5_000 },
    ]) {
      const text = composeRecap({ stored, summaries: summaries(40), pins: [] }, limits);
      assert.ok(text.length <= limits.charactersMax);
      assert.ok(estimateTokens(text) <= limits.tokensMax);
      assert.match(
        text,
        /<summary_ref id="sum_3[3-8]" said="2026-11-18T10:00 to 2026-11-18T11:00" begins="Opening of 3/,
      );
      assert.match(text, /<summary id="sum_39"/);
      assert.doesNotMatch(text, /id="sum_0"/);
    }
  });

  it("says what is stored even if nothing is folded, and nothing if nothing is stored", async () =>
    await freshLcms("recap")(async ({ lcm }) => {
      const conversation = await lcm.store.open({ sessionId: "s" });
      assert.equal(await recap(lcm.store, conversation, wide), null);
      const message = { role: "user", content: "hello" };
      await lcm.ingest(conversation.id, [{ kind: "message", message, key: "k", at: lcm.clock.now() }]);
      assert.match((await recap(lcm.store, conversation, wide)) ?? "", /word for word: msg_1-1 to msg_1-1\./);
    }));
});
