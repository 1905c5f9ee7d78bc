/**
 * Tests describe, expand, recent and ask by the real bin over the demo, with and without a scripted model. Also an
 * agent that has only its prompt and the tools.
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { readKeyFacts } from "../../src/cli/demo/five-weeks.ts";
import type { KeyFact } from "../../src/cli/demo/five-weeks.ts";
import { holds } from "../../src/cli/demo/recollect.ts";
import { createLcm } from "../../src/core/lcm.ts";
import type { ConversationId } from "../../src/core/model/types.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { startScriptedProvider } from "../support/scripted-provider.ts";
import type { ScriptedProvider } from "../support/scripted-provider.ts";
import type { ToolContext } from "../../src/agent-tools/define.ts";
import { tools } from "../../src/agent-tools/all.ts";
import { createFolder, lcm, lcmBeside, linesOf, ok } from "./program.ts";
import type { Place, Run } from "./program.ts";
import { withoutSignals } from "../support/platform.ts";
import type { Timestamp } from "../../src/core/base/time.ts";
import { widthOf } from "../../src/format/width.ts";

const columns = 80;
const state = createFolder();
let place: Place = { state };
let database = "";
/** The one summary in the context, its oldest source, and a stored file. */
let [root, leaf, file] = ["", "", ""];

before(() => {
  const { kept } = ok({ state, env: { TMPDIR: state } }, "demo", "--keep", "--json").json;
  database = join(kept, "lcm.db");
  place = { state, env: { LCM_DATABASE_PATH: database, COLUMNS: String(columns) } };
  const [node] = ok(place, "dag", "1", "--json").json.nodes;
  [root, leaf] = [node.id, node.below[0].id];
  file = ok(place, "describe", root, "--json").json.summary.fileIds[0];
});

/** Both stdout and stderr. */
function fits({ stdout, stderr }: Pick<Run, "stdout" | "stderr">): void {
  for (const line of linesOf(`${stdout}\n${stderr}`))
    assert.ok(widthOf(line) <= columns, `${widthOf(line)} columns: ${line}`);
}

/** The text of stderr, without the terminal's line ends. */
const notesOf = ({ stderr }: Run): string => stderr.replaceAll("\n", " ").trim();

describe("lcm describe", () => {
  it("shows a summary with what is below it, and the cost of reading that", () => {
    const run = ok(place, "describe", root);
    fits(run);
    assert.match(
      run.stdout,
      new RegExp(`^conversation 1 · .*\n${root} {2}summary, depth 1\nwhen .* America/St_Johns\n`),
    );
    assert.match(run.stdout, /tokens +1,\d+; covers 1,4\d\d messages with 1\d\d,\d+ tokens\n/);
    assert.match(run.stdout, /made from {2}10 summaries\n/);
    assert.match(run.stdout, new RegExp(`\n${leaf} +1,\\d+ +154 \\(18,\\d+\\) +09-07…09-10 .*The gateway`));
    assert.match(notesOf(run), new RegExp(`\`lcm expand ${root}\``));
    const { manifest, summary } = ok(place, "describe", root, "--json").json;
    assert.equal(manifest.rows.length, summary.descendants);
  });

  it("shows a leaf by its messages, and a message by its summaries", () => {
    assert.match(ok(place, "describe", leaf).stdout, /made from {2}154 messages: msg_1-1…msg_1-154\nused in {4}sum_/);
    const run = ok(place, "describe", "msg_1-42");
    fits(run);
    assert.match(run.stdout, /\nmsg_1-42 {2}tool\n.*\nposition +42 of 1,487 messages\n/);
    assert.match(run.stdout, new RegExp(`folded into +sum_\\w+, ${root}\n`));
    assert.equal(ok(place, "describe", String(2 ** 24 + 42), "--json").json.message.key, "calendar-05");
  });

  it("refuses options for files where the id is not a file", () => {
    for (const [id, option] of [
      [root, "--from-line"],
      ["msg_1-42", "--bytes"],
    ] as const) {
      const run = lcm(place, "describe", id, option, "3");
      assert.equal(run.status, 2);
      assert.ok(run.stderr.startsWith(`error: ${option} is for files, and ${id} is not a file\n`), run.stderr);
    }
  });

  it("shows a file by its lines, and where to continue", () => {
    const run = ok(place, "describe", file, "--from-line", "2", "--to-line", "4");
    fits({ stderr: run.stderr, stdout: run.stdout.replace(/^path .*$/m, "") }); // A path is not broken, so that it can be copied.
    assert.match(run.stdout, /order-lines-2026-08\.csv, text\/csv\n[^]*preview\n {2}Table[^]*lines 2 to 4 of 763\n/);
    assert.match(run.stdout, /moved out of {2}msg_\d+-\d+\n/);
    const { path } = ok(place, "describe", file, "--json").json;
    assert.ok(isAbsolute(path), path);
    assert.ok(readFileSync(path, "utf8").includes(/lines 2 to 4 .*\n {2}(\S+)/.exec(run.stdout)?.[1] ?? "?"));
    assert.equal(/^path +(.*)$/m.exec(run.stdout)?.[1], path);
    assert.match(run.stderr, new RegExp(`continue with: \`lcm describe ${file} --from-line 5\`\n`));
    const short = ok(place, "describe", file, "--from-line", "2", "--bytes", "20");
    assert.match(short.stdout, /\nline 2 of 763\n {2}\S{1,20}\n$/);
    assert.match(short.stderr, /^line 2 is cut; raise --bytes to see more of it\nnext line: `.* --from-line 3`\n$/);
    const [, message = ""] = /moved out of {2}(msg_\d+-\d+)/.exec(run.stdout) ?? [];
    assert.match(ok(place, "describe", message).stdout, /Moved out of this message;\s+lcm describe shows it/);
  });

  it("reports what it leaves out when the limit is small", () => {
    const run = ok(place, "describe", root, "--tokens", "100");
    assert.match(run.stderr, /the text is cut; raise --tokens to see more/);
    for (const id of [root, "msg_1-42"]) {
      const whole = JSON.stringify(ok(place, "describe", id, "--json").json.text);
      const short = ok(place, "describe", id, "--json", "--tokens", "20");
      assert.equal(short.json.isWhole, false);
      assert.ok(!short.stdout.includes(whole.slice(-60)), "unrequested details are left out");
    }
  });

  it("refuses an invalid id, and an unknown one", () => {
    for (const [id, status, words] of [
      ["nonsense", 2, /"nonsense" is not an id hint: ids look like sum_/],
      ["sum_0000000000000000", 3, /there is no summary sum_0000000000000000/],
      ["file_0000000000000000", 3, /there is no file/],
      ["msg_1-999999", 3, /there is no msg_1-999999/],
      ["../../etc/passwd", 2, /is not an id/],
    ] as const) {
      const run = lcm(place, "describe", id);
      assert.equal(run.status, status, id);
      assert.match(notesOf(run), words);
      assert.equal(lcm(place, "describe", id, "--json").json.error.code, status === 2 ? "invalid" : "not_found");
    }
    const beyond = lcm(place, "describe", file, "--from-line", "9999");
    assert.deepEqual([beyond.status, beyond.stderr], [2, "error: line 9,999 is not in the file (763 lines)\n"]);
  });

  it("shows the operator what is hidden from everybody else", async () => {
    const store = await openSqlite({ path: database });
    try {
      await store.setHidden(1 as ConversationId, true);
      assert.match(ok(place, "describe", "msg_1-42").stdout, /\nmsg_1-42 /);
      assert.ok(ok(place, "expand", root, "--json").json.items.length > 0);
      assert.match(ok(place, "ask", "passport", "--conversation", "1").stdout, /msg_\d+-\d+/);
      assert.match(ok(place, "ask", "passport").stdout, /Nothing/);
    } finally {
      await store.setHidden(1 as ConversationId, false);
      await store.close();
    }
  });
});

describe("lcm expand", () => {
  it("goes one level down by default, and reports what it left out", () => {
    const run = ok(place, "expand", root, "--tokens", "2500");
    fits(run);
    assert.match(run.stdout, new RegExp(`^${leaf} {2}summary, depth 0 {2}conversation 1 {2}2026-09-07…`));
    assert.doesNotMatch(run.stdout, /^msg_/m);
    assert.match(notesOf(run), /1,455 messages below; pass --messages to read them/);
    assert.match(notesOf(run), /\d passages \(\d,\d+ tokens\) left out; raise --tokens/);
    assert.ok(ok(place, "expand", root, "--json").json.tokens <= 4_000);
  });

  it("shows the messages of a leaf by default", () => {
    assert.match(ok(place, "expand", leaf).stdout, /^msg_1-1 {2}user {2}conversation 1 {2}2026-09-07 /);
  });

  it("takes what matches the query first, down to the messages", () => {
    const run = ok(place, "expand", root, "--messages", "--query", "passport appointment", "--tokens", "800");
    fits(run);
    assert.match(run.stdout, /msg_\d+-\d+ {2}assistant {2}conversation 1 {2}2026-09-25[^]*30 September/);
  });

  it("refuses what is not a summary", () => {
    for (const [id, status] of [
      ["msg_1-42", 2],
      ["nonsense", 2],
      ["sum_0000000000000000", 3],
    ] as const)
      assert.equal(lcm(place, "expand", id).status, status, id);
    assert.equal(lcm(place, "expand").status, 2);
    for (const option of ["--tokens", "--depth"]) assert.equal(lcm(place, "expand", root, option, "0").status, 2);
  });
});

describe("the time of a summary", () => {
  it("is the same range in every command", () => {
    const [, range = ""] =
      new RegExp(`^${leaf} .*(2026-\\S+…2026-\\S+)$`, "m").exec(
        ok(place, "grep", "customers charged twice", "--scope", "summaries").stdout,
      ) ?? [];
    assert.match(range, /^2026-09-07…/);
    assert.match(ok(place, "expand", root).stdout, new RegExp(`^${leaf} .* ${range}$`, "m"));
    const short = range.replaceAll("2026-", "");
    for (const args of [
      ["dag", "1"],
      ["describe", root],
    ])
      assert.match(ok(place, ...args).stdout, new RegExp(`${leaf}.* ${short} `), args.join(" "));
  });
});

describe("lcm recent", () => {
  it("shows what happened between two times, in the user's zone", () => {
    const run = ok(place, "recent", "--since", "2026-09-25", "--before", "2026-09-26");
    fits(run);
    assert.match(run.stdout, /^(?:msg_1-\d+ {2}\w+|sum_\w+ {2}summary, depth 0) {2}conversation 1 {2}2026-09-2/);
    assert.match(notesOf(run), /passages?, [\d,]+ tokens.*; 2026-09-25 00:00 – 2026-09-26 00:00 America\/St_Johns/);
    const { since, items } = ok(place, "recent", "--since", "2026-09-25", "--before", "2026-09-26", "--json").json;
    assert.equal(since, "2026-09-25T02:30:00.000Z");
    assert.ok(items.length > 0);
  });

  it("shows messages where nothing is summarised yet, and keeps the newest when not everything fits", () => {
    const run = ok(place, "recent", "--since", "2026-10-10", "--conversation", "1", "--tokens", "400");
    fits(run);
    assert.match(run.stdout, /^msg_1-1487 {2}user {2}conversation 1 {2}2026-10-11/m);
    assert.match(notesOf(run), /passages \([\d,]+ tokens\) left out; raise --tokens/);
  });

  it("reports that there are no messages, and refuses an invalid time", () => {
    assert.match(
      notesOf(ok(place, "recent")),
      /^no messages since .* the newest message is from 2026-10-11 .* America\/St_Johns; run `lcm recent --since 2026-10-11`$/,
    );
    assert.equal(lcm(place, "recent", "--since", "soon").status, 2);
    assert.equal(lcm(place, "recent", "--conversation", "nobody").status, 3);
  });
});

describe("lcm ask without a model", () => {
  it("shows the matching passages, and explains how to get an answer", () => {
    const run = ok(place, "ask", "When", "is", "the", "appointment", "for", "Theo's", "passport?");
    fits(run);
    assert.match(run.stdout, /30 September, 9:40/);
    assert.match(run.stdout, /msg_\d+-\d+ · in sum_/);
    assert.match(notesOf(run), /to get an answer instead of passages, set --model or LCM_SUMMARY_MODEL/);
    assert.match(run.stdout, /^\[2026-09-\d\d .* America\/St_Johns · /m);
    const { by, citedIds, citedMessages, partial, caveats } = ok(
      place,
      "ask",
      "appointment for Theo's passport?",
      "--json",
    ).json;
    assert.equal(by, "excerpts");
    assert.equal(typeof partial, "string");
    assert.ok(citedIds.length > 0);
    assert.ok(citedMessages.includes(2 ** 24 + 794), citedMessages.join(" "));
    for (const { kind } of caveats) assert.equal(typeof kind, "string");
  });

  it("reads below the given summaries", () => {
    const run = ok(place, "ask", "--summary", leaf, "--summary", root, "how much was refunded?");
    assert.match(run.stdout, /184\.70/);
  });

  it("reports that nothing matches, which is not an error", () => {
    const run = ok(place, "ask", "xyzzyplugh");
    assert.match(run.stdout, /^Nothing .*xyzzyplugh/s);
    assert.doesNotMatch(run.stderr, /these are passages/);
  });

  it("refuses contradictory arguments", () => {
    for (const [args, status] of [
      [["ask"], 2],
      [["ask", " "], 2],
      [["ask", "x", "--summary", "nonsense"], 2],
      [["ask", "x", "--summary", "sum_0000000000000000"], 3],
      [["ask", "x", "--conversation", "nobody"], 3],
      [["ask", "x", "--conversation", "1", "--family", "1"], 2],
      [["ask", "x", "--model", "nonsense"], 2],
      [["ask", "x", "--max-tokens", "0"], 2],
      [["ask", "x", "--timeout", "0"], 2],
    ] as const)
      assert.equal(lcm(place, ...args).status, status, args.join(" "));
  });
});

describe("lcm ask with a model", () => {
  let provider: ScriptedProvider;
  before(async () => void (provider = await startScriptedProvider()));
  after(async () => await provider.close());

  const question = "When is the appointment for Theo's passport?";
  const ask = async (...args: readonly string[]): Promise<Run> => {
    const env = { ...place.env, LCM_SUMMARY_BASE_URL: `${provider.url}/v1` };
    const run = await lcmBeside({ state, env }, ["ask", "--model", "scripted/storyteller", question, ...args]);
    assert.equal(run.status, 0, run.stderr);
    return run;
  };

  it("prints the answer and the commands that show its sources; invented ids are not among them", async () => {
    const call = { id: "c1", name: "lcm_describe", args: JSON.stringify({ id: "msg_1-794" }) };
    const text =
      "On Wednesday 30 September at 9:40, at the Bürgeramt Mitte [msg_1-794]; bring the old passport [msg_1-792] and cake " +
      "[msg_1-999999] [sum_0000000000000000].";
    provider.play({ kind: "answer", text: "", calls: [call] }, { kind: "answer", text });
    const run = await ask();
    fits(run);
    assert.match(run.stdout, /^On Wednesday 30 September at 9:40/);
    assert.match(run.stdout, /\nsources {2}lcm describe (sum|msg)_/);
    assert.match(run.stdout, /lcm describe msg_1-794\n/);
    assert.doesNotMatch(run.stdout, /999999|sum_0000000000000000/);
    assert.match(notesOf(run), /[\d,]+ tokens read; answered by scripted\/storyteller/);
    const steps = provider.asked.map(({ body }) => JSON.stringify(body));
    assert.equal(steps.length, 2);
    assert.match(steps[0] ?? "", /lcm_expand.*lcm_describe|lcm_describe.*lcm_expand/);
    assert.match(steps[1] ?? "", /Appointment booked/);
  });

  it("can be at another address, of another provider", async () => {
    provider.play({ kind: "answer", text: "At 9:40 [msg_1-794]." });
    const address = ["--base-url", `${provider.url}/v1`, "--provider", "scripted", "--model", "tales/storyteller"];
    const run = await lcmBeside(place, ["ask", ...address, question]);
    assert.equal(run.status, 0, run.stderr);
    assert.match(run.stdout, /^At 9:40/);
    assert.match(notesOf(run), /answered by scripted\/tales\/storyteller/);
  });

  it("falls back on passages when it refuses, and reports why", async () => {
    provider.play({ kind: "error", status: 401 });
    const run = await ask();
    assert.match(run.stdout, /30 September, 9:40/);
    assert.match(notesOf(run), /note: .* hint: check the model with `lcm status`/);
  });

  it(
    "guarantee 24: answers at its deadline, and when Ctrl-C is pressed, with what it has",
    { timeout: 600_000, skip: withoutSignals },
    async () => {
      provider.play({ kind: "hang" });
      const late = await ask("--timeout", "6");
      assert.match(late.stdout, /30 September, 9:40/);
      assert.match(notesOf(late), /note: the deadline passed .* hint: raise --timeout/);
      const env = { ...place.env, LCM_SUMMARY_BASE_URL: `${provider.url}/v1` };
      const before = provider.asked.length;
      const run = await lcmBeside(
        { state, env },
        ["ask", "--model", "scripted/storyteller", question],
        async (program) => {
          while (provider.asked.length === before) await new Promise((resolve) => setTimeout(resolve, 20));
          program.kill("SIGINT");
        },
      );
      assert.equal(run.status, 0);
      assert.match(run.stdout, /30 September, 9:40/);
      assert.match(run.stderr, /note: interrupted: this is what was found so far/);
    },
  );
});

// ── An agent ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Written by a model that saw only the questions. */
const rewordings: Readonly<Record<string, readonly string[]>> = JSON.parse(
  readFileSync(new URL("../fixtures/key-facts-also.json", import.meta.url), "utf8"),
);

/** What a small local model accepts, as in the demo. */
const promptBudget = 16_000;

describe("an agent with its prompt and the tools", () => {
  it("reaches every fact of the demo in at most three calls", async (test) => {
    const clock = { now: (): Timestamp => new Date().toISOString() as Timestamp };
    const lcm = createLcm({ clock, store: await openSqlite({ path: database }) });
    try {
      const { id } = await lcm.find("1");
      const { messages } = await lcm.assemble(id, { budget: promptBudget });
      const context: ToolContext = { lcm, reader: { conversation: id, policy: "agent" } };
      const reached = [0, 0, 0, 0];
      const missed: string[] = [];
      const keyFacts = readKeyFacts();
      for (const fact of keyFacts) {
        const isInPrompt = messages.some(({ content }) => holds(JSON.stringify(content), fact));
        const calls = isInPrompt ? 0 : await callsUntil(context, fact);
        if (calls === null) missed.push(fact.question);
        else reached[calls] = (reached[calls] ?? 0) + 1;
      }
      test.diagnostic(
        `calls until the fact is known: ${reached.map((facts, calls) => `${calls}: ${facts}`).join(", ")}`,
      );
      assert.deepEqual(missed, []);
      assert.ok((reached[0] ?? 0) + (reached[1] ?? 0) > keyFacts.length / 2);
    } finally {
      await lcm.close();
    }
  });
});

/** Searches for the question's words, then asks the question, then searches again with other wordings. */
async function callsUntil(context: ToolContext, fact: KeyFact): Promise<number | null> {
  const { question } = fact;
  const call = async (name: string, args: object): Promise<string> => {
    const result = await tools.find((tool) => tool.name === name)?.run(args, context);
    assert.equal(result?.isError, false, `${name}: ${result?.text}`);
    return result?.text ?? "";
  };
  const found = await call("lcm_grep", { pattern: question, mode: "full_text" });
  if (holds(found, fact)) return 1;
  if (holds(await call("lcm_expand_query", { query: question, prompt: question }), fact)) return 2;
  const also = rewordings[question];
  return holds(await call("lcm_grep", { pattern: question, also, tokenCap: 2_000 }), fact) ? 3 : null;
}
