import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { createLcm } from "../../core/lcm.ts";
import { openSqlite, systemNow } from "../../store/sqlite/store.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { demoSession, readDemoTranscript, readKeyFacts } from "./five-weeks.ts";
import { holds } from "./recollect.ts";

const folder = makeScratch("recollect");
after(() => rmSync(folder, { recursive: true, force: true }));

const keyFacts = readKeyFacts();
/** Of 48, by the length of the answer. Two or three are told in words that no search for the question's can lead to. */
const toldMin = [
  [2_000, 43],
  [200, 34],
  [60, 20],
] as const;

describe("guarantee 24: the demo's questions, asked without a model", () => {
  it("are answered by excerpts alone, before and after summarising", async () => {
    const store = await openSqlite({ path: join(folder, "lcm.db"), housekeeping: false });
    const lcm = createLcm({ store, clock: { now: systemNow } });
    const lines = async function* () {
      for (const [index, value] of readDemoTranscript().entries()) yield { position: index + 1, value };
    };
    await lcm.import(lines(), { fallbackSessionId: demoSession });
    const { id } = await lcm.find(demoSession);
    const reach = { kind: "conversation", conversations: [id] } as const;
    for (const stage of ["raw", "folded"]) {
      if (stage === "folded") await lcm.compact({ conversation: id, mode: "sweep" });
      for (const [maxTokens, least] of toldMin) {
        const missed: string[] = [];
        for (const fact of keyFacts) {
          const asked = { query: fact.question, prompt: fact.question, maxTokens, tokenCap: 4_000 };
          const { answer, totalSourceTokens } = await lcm.expandQuery({ ...asked, reach, timeoutMs: 60_000 });
          assert.ok(totalSourceTokens <= 4_000);
          if (!holds(answer, fact)) missed.push(fact.question);
        }
        assert.ok(keyFacts.length - missed.length >= least, `${stage}, ${maxTokens}: ${missed.join("\n")}`);
      }
    }
    await lcm.close();
  });
});
