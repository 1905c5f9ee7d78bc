/**
 * Compact, export, forget, prune, restore, back up and ask at the terminal: the plan of the command line first, nothing
 * before a yes, progress that can be stopped, and then exactly that plan.
 */

import assert from "node:assert/strict";
import { copyFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { demoSession, readDemoTranscript } from "../../src/cli/demo/five-weeks.ts";
import { createLcm, type Lcm } from "../../src/core/lcm.ts";
import type { ConversationId, MessageId } from "../../src/core/model/types.ts";
import { compactionLines, compactionPlanOf } from "../../src/format/compact.ts";
import { createPaint } from "../../src/format/paint.ts";
import { openSqlite, systemNow } from "../../src/store/sqlite/store.ts";
import type { Destination } from "../../src/tui/contract.ts";
import { dumpOfContent } from "../support/dump.ts";
import { portOver, startRobot, type Ground, type Robot } from "../support/robot.ts";
import { makeScratch } from "../support/scratch.ts";
import { createHonestReader } from "../support/honest-reader.ts";
import { createScriptedModel, type Behaviour } from "../support/scripted-model.ts";
import type { Json } from "../../src/core/base/json.ts";
import type { Model } from "../../src/core/model/store.ts";

const folder = makeScratch("tui-work");
/** The demo's conversation, not folded yet. */
const template = join(folder, "template.db");
const one = 1 as ConversationId;

before(async () => {
  const transcript = readDemoTranscript();
  await onFile(template, async (lcm) => {
    const lines = async function* () {
      for (const [index, value] of transcript.entries()) yield { position: index + 1, value };
    };
    await lcm.import(lines(), { fallbackSessionId: demoSession });
    while ((await lcm.store.index(1_000)) > 0);
  });
});

/** In a folder of its own, since backups and archives go beside it. */
function copyOfIt(): string {
  const path = join(makeScratch("tui-work"), "lcm.db");
  copyFileSync(template, path);
  return path;
}

async function onFile<T>(path: string, work: (lcm: Lcm) => Promise<T>): Promise<T> {
  const lcm = createLcm({ store: await openSqlite({ path, housekeeping: false }), clock: { now: systemNow } });
  try {
    return await work(lcm);
  } finally {
    await lcm.close();
  }
}

async function sit(
  path: string,
  { place, ...ground }: Ground & { readonly place?: Destination },
  act: (robot: Robot) => Promise<void>,
): Promise<void> {
  const port = portOver(path, ground);
  const robot = startRobot(port, { columns: 100, rows: 32, ...(place && { place }) });
  try {
    await act(robot);
  } finally {
    if (!robot.isOver()) await robot.end();
    await port.close();
  }
}

const backupsOf = (path: string): readonly string[] =>
  readdirSync(join(path, "..")).filter((name) => /\.backup-\w+Z$/.test(name));

const archivesOf = (path: string): readonly string[] =>
  readdirSync(join(path, "..")).filter((name) => /^lcm-archive-.*\.db$/.test(name));

describe("guarantee 28: compacting at the terminal", () => {
  it("is offered where a sweep is due, shows the command's plan, and folds after a backup", async () => {
    const path = copyOfIt();
    await sit(path, {}, async (robot) => {
      await robot.sees("the prompt exceeds the budget: its oldest items are left out; press C to compact");
      await robot.press("C");
      await robot.sees("Fold them?");
      const columns = 92;
      const page = { paint: createPaint(false), columns, bounds: columns, zone: "UTC", typed: (text: string) => text };
      const request = { conversation: one, mode: "sweep" } as const;
      const plan = await onFile(path, async (lcm) =>
        compactionPlanOf(await lcm.planCompaction(request), request, null, null),
      );
      for (const line of compactionLines(page, plan, null, { nothing: "" }))
        assert.ok(robot.screen().includes(`│ ${line.padEnd(columns)} │`), `${line}\n${robot.screen()}`);
      assert.deepEqual(backupsOf(path), [], "a plan needs no backup");
      await robot.press("y");
      await robot.sees(/✓ 184,\d+ → 7,189 tokens in 11 passes; nothing is left to fold/);
      await robot.sees(/11 {2}━────┼─ +6%/);
    });
    assert.equal(backupsOf(path).length, 1);
    const { totals } = await onFile(path, async (lcm) => await lcm.find("1"));
    assert.deepEqual([totals.summaries, totals.contextTokens], [11, 7_059]);
  });

  it("shows its progress, stops with esc, keeps what was folded, and continues", async () => {
    const path = copyOfIt();
    let behaviour: Behaviour = "good";
    const model = createScriptedModel({ behaviour: () => (model.calls.length > 3 ? behaviour : "good") });
    behaviour = "hangs";
    await sit(path, { model, env: { LCM_SUMMARY_CONCURRENCY: "1" } }, async (robot) => {
      await robot.sees("press C to compact");
      await robot.press("C");
      await robot.sees("scripted/one (the test)");
      await robot.press("y");
      await robot.sees(/█+░+ │ *\n.*folding, [\d,]+ tokens saved 27% … {2}esc stops it/);
      await robot.press("escape");
      await robot.sees("stopped after 3 summaries, which are kept; run it again to continue");
      behaviour = "good";
      await robot.press("C");
      await robot.sees("Fold them?");
      await robot.press("y");
      await robot.sees("nothing is left to fold");
    });
  });

  it("names what a model refuses, and folds without it", async () => {
    const model = createScriptedModel({ behaviour: () => "refuses" });
    await sit(copyOfIt(), { model }, async (robot) => {
      await robot.sees("press C to compact");
      await robot.press("C");
      await robot.sees("Fold them?");
      await robot.press("y");
      await robot.sees("press m to fold without a model");
      await robot.press("m");
      await robot.sees("none: summaries are extracted locally");
      await robot.press("y");
      await robot.sees("nothing is left to fold");
    });
  });
});

describe("exporting at the terminal", () => {
  it("asks for the file, warns before it replaces one, and works on a read-only database", async () => {
    const path = copyOfIt();
    const target = join(path, "..", "out.jsonl");
    await sit(path, { readOnly: true }, async (robot) => {
      await robot.sees("1 conversation");
      await robot.press("e");
      await robot.sees("conversation-1.jsonl");
      await robot.press("ctrl+u");
      await robot.type(target);
      await robot.press("enter");
      await robot.sees(`1,487 messages to ${target}`);
      assert.ok(!existsSync(target));
      await robot.press("y");
      await robot.sees("out.jsonl: 1,487 lines of conversation 1");
    });
    const lines = await onFile(path, async (lcm) => await Array.fromAsync(lcm.export(one)));
    assert.equal(readFileSync(target, "utf8"), lines.map((line) => `${line}\n`).join(""));
    writeFileSync(target, "mine");
    await sit(path, { place: { kind: "export", conversation: one, path: target } }, async (robot) => {
      await robot.sees("the file exists and will be replaced");
      await robot.press("n");
    });
    assert.equal(readFileSync(target, "utf8"), "mine");
  });
});

describe("forgetting at the terminal", () => {
  it("removes the selected message for good, without a backup", async () => {
    const path = copyOfIt();
    const at = ((1 << 24) + 5) as MessageId;
    const read = async (): Promise<string> =>
      await onFile(path, async ({ store }) => (await store.messages({ ids: [at] }))[0]?.text ?? "");
    const text = await read();
    await sit(path, { place: { kind: "messages", conversation: one, at } }, async (robot) => {
      await robot.sees("msg_1-5");
      await robot.press("x");
      await robot.sees("forgetting msg_1-5 changes:");
      await robot.sees("this cannot be undone, and no backup is made");
      assert.equal(await read(), text);
      await robot.press("y");
      await robot.sees(/✓ forgotten in \d+ place/);
    });
    assert.notEqual(await read(), text);
    assert.deepEqual(backupsOf(path), []);
  });

  it("finds a secret everywhere, and never shows it in the plan", async () => {
    await sit(copyOfIt(), {}, async (robot) => {
      await robot.sees("1 conversation");
      await robot.press(":");
      await robot.type("secret");
      await robot.press("enter");
      await robot.sees("Which text is to be removed everywhere?");
      await robot.type("idempotency");
      await robot.press("enter");
      await robot.sees("the secret occurs in:");
      assert.doesNotMatch(robot.screen(), /idempotency/);
      await robot.press("n");
      await robot.sees("cancelled: nothing was changed");
    });
  });
});

describe("pruning and restoring at the terminal", () => {
  it("archives a conversation, then restores the backup that was made before", async () => {
    const path = copyOfIt();
    const kept = dumpOfContent(path);
    await sit(path, {}, async (robot) => {
      await robot.sees("1 conversation");
      await robot.press("D");
      await robot.sees("Archive and delete?");
      await robot.sees("lcm-archive-");
      await robot.press("x");
      await robot.sees("Delete permanently?");
      await robot.press("x");
      await robot.sees("Archive and delete?");
      await robot.press("enter");
      await robot.press("x");
      await robot.sees("Delete permanently?");
      await robot.press("x");
      await robot.sees("Archive and delete?");
      await robot.press("y");
      await robot.sees("There are no conversations yet");
      assert.equal(archivesOf(path).length, 1);
      const [backup = ""] = backupsOf(path);
      await robot.press("!");
      await robot.sees("› status");
      await robot.press("r");
      await robot.sees(`▸ ${backup}`); // The status behind the dialog names it, too.
      await robot.press("enter");
      await robot.sees("Replace the database?");
      await robot.press("y");
      await robot.sees("✓ restored");
      await robot.press("escape");
      await robot.sees("1 conversation");
    });
    assert.deepEqual(dumpOfContent(path), kept);
    const archive = join(path, "..", archivesOf(path)[0] ?? "");
    const archived = await onFile(archive, async (lcm) => (await lcm.find(demoSession)).totals.messages);
    assert.equal(archived, 1_487);
  });

  it("selects by age, and says what an age is", async () => {
    await sit(copyOfIt(), { place: { kind: "status", conversation: null } }, async (robot) => {
      await robot.sees("stored");
      await robot.press("p");
      await robot.sees("Inactive for how long?");
      await robot.type("6m");
      await robot.press("enter");
      await robot.sees("takes days, weeks or years");
      await robot.press("escape", "p");
      await robot.type("1d");
      await robot.press("enter");
      await robot.sees("1 conversation with 1,487 messages");
    });
  });

  it("makes a backup", async () => {
    const path = copyOfIt();
    await sit(path, {}, async (robot) => {
      await robot.sees("1 conversation");
      await robot.press(":");
      await robot.type("back up");
      await robot.press("enter");
      await robot.sees("Back up?");
      await robot.press("y");
      await robot.sees("✓ backed up to");
    });
    assert.equal(backupsOf(path).length, 1);
  });
});

describe("asking at the terminal", () => {
  it("shows the passages that match without a model, and opens their sources", async () => {
    await sit(copyOfIt(), {}, async (robot) => {
      await robot.sees("1 conversation");
      await robot.press("A");
      await robot.sees("What do you want to know?");
      await robot.type("how often does the payment worker retry");
      await robot.press("enter");
      await robot.sees("retries 5 times over 30 minutes");
      await robot.press("G");
      await robot.sees("no model is configured");
      await robot.sees("sources: press a number to open one");
      await robot.press("1");
      await robot.sees("› messages");
    });
  });

  it("answers with a model, and can be stopped", async () => {
    let behaviour: Behaviour = "hangs";
    const model = createScriptedModel({ behaviour: () => behaviour });
    await sit(copyOfIt(), { model }, async (robot) => {
      await robot.sees("1 conversation");
      await robot.press("A");
      await robot.type("passport");
      await robot.press("enter");
      await robot.sees("esc stops it");
      await robot.press("escape");
      await robot.sees("1 conversation");
      behaviour = "good";
      await robot.press("A");
      await robot.type("passport");
      await robot.press("enter");
      await robot.sees(/tokens? read/);
    });
  });

  it("reads every message after its plan was shown, and keeps what was read if it is stopped", async () => {
    const path = copyOfIt();
    const factsOf = (text: string): Json => ({
      facts: text.includes("passport")
        ? [{ subject: "passport", statement: "It was mentioned.", quote: "passport" }]
        : [],
    });
    let isHeld = true;
    const counts = /^Counted: .*$/m;
    const reader = createHonestReader(factsOf, {
      answer: (asked) => `${counts.exec(asked)?.[0] ?? "It runs out soon"} [msg_1-785].`,
    });
    const model: Model = {
      ...reader,
      complete: async (asked) =>
        isHeld && reader.calls.length > 4 ? await new Promise<never>(() => undefined) : await reader.complete(asked),
    };
    const askFor = async (robot: Robot): Promise<void> => {
      await robot.press("A");
      await robot.type("passport");
      await robot.press("enter");
      await robot.sees(/tokens? read/);
      await robot.press("t");
    };
    await sit(path, { model }, async (robot) => {
      await robot.sees("1 conversation");
      await askFor(robot);
      await robot.sees(
        /reading every message: press t to do it[^]+\d+ calls, about [\d,]+ tokens in[^]+1,\d+ messages to read/,
      );
      const calls = reader.calls.length;
      await robot.press("t");
      await robot.sees(/read \d+ of 1,\d+ messages in \d+ calls/);
      await robot.press("escape");
      await robot.sees("1 conversation");
      isHeld = false;
      assert.ok(reader.calls.length > calls);
      await askFor(robot);
      await robot.sees(/1,\d+ messages to read, of which \d+ were read by an earlier run/);
      await robot.press("t");
      await robot.sees(/Counted: 1,\d+ messages read; \d+ facts in \d+ messages; 1 distinct subject/);
      await robot.sees("sources: press a number to open one");
    });
    assert.ok(
      [...reader.shown.values()].every((times) => times <= 4),
      "texts that repeat in the demo",
    );
  });
});
