/**
 * Dissolve, transplant and undo at the terminal: the plan of the command line first, no change before a yes, and then
 * exactly that plan.
 */

import assert from "node:assert/strict";
import { copyFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { before, describe, it } from "node:test";
import { createLcm } from "../../src/core/lcm.ts";
import type { Lcm } from "../../src/core/lcm.ts";
import { assert as must } from "../../src/core/base/errors.ts";
import { messageName, type SummaryId } from "../../src/core/model/types.ts";
import { dissolutionLines } from "../../src/format/dissolve.ts";
import { createPaint } from "../../src/format/paint.ts";
import { openSqlite, systemNow } from "../../src/store/sqlite/store.ts";
import { makeDeepConversation } from "../support/deep-conversation.ts";
import type { DeepConversation } from "../support/deep-conversation.ts";
import { assertSameRows, dumpOf, dumpOfContent } from "../support/dump.ts";
import type { Dump } from "../support/dump.ts";
import { portOver, startRobot } from "../support/robot.ts";
import type { Ground, Robot } from "../support/robot.ts";
import { makeScratch } from "../support/scratch.ts";
import type { Destination } from "../../src/tui/contract.ts";
import type { Port } from "../../src/operator/port.ts";

const folder = makeScratch("tui-changes");
const template = join(folder, "template.db");
let made: DeepConversation;
/** The newest leaf in the deep conversation's context, and the d3 at its start. */
let leaf: SummaryId;
let deepest: SummaryId;

before(async () => {
  made = await makeDeepConversation(template);
  [deepest, leaf] = await onFile(template, async ({ store }) => {
    const shown = await store.context(made.deep, { kind: "summary" });
    const [first, last] = [shown.at(0), shown.at(-1)];
    must(first?.kind === "summary" && last?.kind === "summary", "the context has summaries");
    return [first.id, last.id];
  });
});

let copies = 0;
function copyOfIt(): string {
  const path = join(folder, `copy-${++copies}.db`);
  copyFileSync(template, path);
  return path;
}

/** Works on the file like another process. */
async function onFile<T>(path: string, work: (lcm: Lcm) => Promise<T>): Promise<T> {
  const store = await openSqlite({ path, housekeeping: false });
  const lcm = createLcm({ store, clock: { now: systemNow } });
  try {
    return await work(lcm);
  } finally {
    await lcm.close();
  }
}

interface Sitting extends Ground {
  readonly place?: Destination;
  /** Wraps the robot's port to the database. */
  readonly around?: (port: Port) => Port;
}

async function sit(path: string, { place, around, ...ground }: Sitting, act: (robot: Robot) => Promise<void>) {
  const port = portOver(path, ground);
  const begin = place ?? { kind: "summaries", conversation: made.deep, at: leaf };
  const robot = startRobot(around?.(port) ?? port, { columns: 100, rows: 30, place: begin });
  try {
    await act(robot);
  } finally {
    if (!robot.isOver()) await robot.end();
    await port.close();
  }
}

const dissolve = async (robot: Robot): Promise<void> => {
  await robot.sees(leaf);
  await robot.press("d");
  await robot.sees("Dissolve it?");
};

const backupsOf = (path: string): readonly string[] =>
  readdirSync(folder).filter(
    (name) => name.startsWith(`${path.slice(folder.length + 1)}.backup-`) && /\dZ$/.test(name),
  );

/** Without values that differ every time: times, and the ids of copies. */
function withoutChance(dump: Dump): Dump {
  const plain = (row: string): string =>
    row
      .replace(/sum_(?!0{10})[0-9a-f]{16}/g, "sum_new")
      .replace(/copy:[0-9a-f]{16}/g, "copy:new")
      .replace(/stored_at\W+\d+|20(?!25)\d\d-\d\d-\d\d[T ][\d:.]+/g, "then");
  return Object.fromEntries(Object.entries(dump).map(([table, rows]) => [table, rows.map(plain).toSorted()]));
}

describe("guarantee 28: a dissolve at the terminal equals the command", () => {
  it("shows its plan, does what the command does after a backup, and u undoes it", async () => {
    const [path, other] = [copyOfIt(), copyOfIt()];
    const plan = await onFile(other, async (lcm) => {
      const planned = await lcm.planDissolve({ conversation: made.deep, summary: leaf });
      await lcm.dissolve(planned);
      return planned;
    });
    const before = dumpOfContent(path);
    await sit(path, {}, async (robot) => {
      await dissolve(robot);
      const columns = 92;
      const page = { paint: createPaint(false), columns, bounds: columns, zone: "UTC", typed: (text: string) => text };
      for (const line of dissolutionLines(page, plan))
        assert.ok(robot.screen().includes(`│ ${line.padEnd(columns)} │`), `${line}\n${robot.screen()}`);
      assert.deepEqual(backupsOf(path), [], "a plan needs no backup");
      await robot.press("y");
      await robot.sees("✓ dissolved: 4 messages returned · u undoes change 1");
      assert.equal(backupsOf(path).length, 1);
      assertSameRows(withoutChance(dumpOf(path)), withoutChance(dumpOf(other)), "as through the façade");
      await robot.press("u");
      await robot.sees("dissolved into 4 items");
      await robot.press("u");
      await robot.sees("Undo it?");
      await robot.press("enter");
      await robot.sees("✓ undid change 1 · u undoes change 2");
      await robot.sees("undone by 2");
    });
    assertSameRows(dumpOfContent(path), before);
    assert.equal(backupsOf(path).length, 1, "one backup per session");
  });

  it("also purges on request", async () => {
    const [path, other] = [copyOfIt(), copyOfIt()];
    await onFile(other, async (lcm) => {
      await lcm.dissolve(await lcm.planDissolve({ conversation: made.deep, summary: leaf, purge: true }));
    });
    await sit(path, { place: { kind: "dissolve", conversation: made.deep, summary: leaf } }, async (robot) => {
      await robot.sees("Dissolve it?");
      await robot.press("x");
      await robot.sees("Dissolve and delete it?");
      await robot.sees("the summary itself is deleted too");
      await robot.press("x");
      await robot.sees("Dissolve it?");
      await robot.press("x");
      await robot.sees("Dissolve and delete it?");
      await robot.press("y");
      await robot.over();
    });
    assertSameRows(withoutChance(dumpOf(path)), withoutChance(dumpOf(other)));
  });

  it("explains why a summary outside the context cannot be dissolved, and can only go back", async () => {
    const path = copyOfIt();
    const before = dumpOf(path);
    await sit(path, { place: { kind: "summaries", conversation: made.deep, at: made.truncated } }, async (robot) => {
      await robot.sees(made.truncated);
      await robot.press("d");
      await robot.sees(`${made.truncated} is not in the context:`);
      await robot.sees("first run `lcm dissolve 1 --summary");
      assert.doesNotMatch(robot.screen(), /y apply/);
      await robot.press("y", "enter", "escape");
      await robot.misses("is not in the context:");
    });
    assertSameRows(dumpOf(path), before);
  });
});

// ── Half-way ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Holds the backup and the write until they are released. */
function holding(port: Port) {
  const backup = Promise.withResolvers<void>();
  const write = Promise.withResolvers<void>();
  const held: Port = {
    ...port,
    writing: async (work) =>
      await port.writing(async (lcm, backUp) => {
        const store = new Proxy(lcm.store, {
          get(target, name) {
            const value: unknown = Reflect.get(target, name);
            if (typeof value !== "function") return value;
            const call = async (...args: readonly unknown[]): Promise<unknown> => {
              if (name === "dissolve") await write.promise;
              return await Reflect.apply(value, target, args);
            };
            return call;
          },
        });
        return await work({ ...lcm, store }, async () => {
          await backup.promise;
          return await backUp();
        });
      }),
  };
  return { port: held, letBackup: backup.resolve, letWrite: write.resolve };
}

describe("an action that is cancelled half-way changes nothing", () => {
  for (const key of ["escape", "n", "q"]) {
    it(`at the question, by ${key}`, async () => {
      const path = copyOfIt();
      const before = dumpOf(path);
      await sit(path, {}, async (robot) => {
        await dissolve(robot);
        await robot.press(key);
        await robot.sees("cancelled: nothing was changed");
        await robot.misses("Dissolve it?");
      });
      assertSameRows(dumpOf(path), before);
      assert.deepEqual(backupsOf(path), []);
    });
  }

  it("while it is planned", async () => {
    const path = copyOfIt();
    const before = dumpOf(path);
    const planning = Promise.withResolvers<void>();
    const around = (port: Port): Port => ({
      ...port,
      async reading() {
        const lcm = await port.reading();
        return { ...lcm, planDissolve: async (request) => (await planning.promise, await lcm.planDissolve(request)) };
      },
    });
    await sit(path, { around }, async (robot) => {
      await robot.sees(leaf);
      await robot.press("d");
      await robot.sees("planning …");
      await robot.press("y");
      await robot.sees("y: still planning");
      await robot.press("escape");
      await robot.misses("planning …");
      planning.resolve();
      await robot.press("j");
      await robot.misses("Dissolve it?");
    });
    assertSameRows(dumpOf(path), before);
  });

  it("during the backup; once it is written it is too late", async () => {
    const path = copyOfIt();
    const before = dumpOf(path);
    const first = Promise.withResolvers<ReturnType<typeof holding>>();
    const around = (port: Port): Port => {
      const held = holding(port);
      first.resolve(held);
      return held.port;
    };
    await sit(path, { around }, async (robot) => {
      const { letBackup, letWrite } = await first.promise;
      await dissolve(robot);
      await robot.press("y");
      await robot.sees("making a backup (once per session); esc cancels");
      await robot.press("escape");
      await robot.sees("cancelled: nothing was changed");
      letBackup();
      await robot.misses("making a backup");
      assertSameRows(dumpOf(path), before);

      await dissolve(robot);
      await robot.press("y");
      await robot.sees("writing …");
      await robot.press("escape");
      await robot.sees("too late to cancel");
      await robot.sees("writing …");
      letWrite();
      await robot.sees("✓ dissolved: 4 messages returned · u undoes change 1");
    });
    assert.ok((dumpOf(path)["journal"] ?? []).length === 1, "once, and not twice");
  });

  it("a transplant and an undo too", async () => {
    const path = copyOfIt();
    await onFile(path, async (lcm) => {
      await lcm.dissolve(await lcm.planDissolve({ conversation: made.deep, summary: leaf }));
    });
    const before = dumpOf(path);
    await sit(path, { place: { kind: "history", conversation: null } }, async (robot) => {
      await robot.sees("dissolved into 4 items");
      await robot.press("u");
      await robot.sees("Undo it?");
      await robot.press("n");
      await robot.sees("cancelled: nothing was changed");
    });
    await sit(path, { place: { kind: "conversations" } }, async (robot) => {
      await robot.sees("ferry");
      await robot.press("t");
      await robot.sees("into which conversation?");
      await robot.press("escape");
      await robot.misses("into which conversation?");
      await robot.press("t");
      await robot.sees("into which conversation?");
      await robot.press("enter");
      await robot.sees(/Copy them\?|nothing to transplant/);
      await robot.press("escape");
      await robot.misses(/Copy them\?|nothing to transplant/);
    });
    assertSameRows(dumpOf(path), before);
  });
});

describe("a read-only database is not changed, with the reason", () => {
  it("refuses a dissolve, a transplant and an undo, at the key and at the question", async () => {
    const path = copyOfIt();
    await onFile(path, async (lcm) => {
      await lcm.dissolve(await lcm.planDissolve({ conversation: made.deep, summary: leaf }));
    });
    const before = dumpOf(path);
    const places: readonly Destination[] = [
      { kind: "dissolve", conversation: made.deep, summary: deepest },
      { kind: "transplant", source: made.deep, target: made.older },
      { kind: "undo", change: 1 },
    ];
    for (const place of places) {
      await sit(path, { place, readOnly: true }, async (robot) => {
        await robot.sees("nothing can be changed: it was opened with --read-only");
        for (const key of ["y", "enter"]) {
          await robot.press(key);
          await robot.sees(`${key === "enter" ? "↵" : key}: it was opened with --read-only`);
        }
      });
    }
    await sit(path, { place: { kind: "history", conversation: null }, readOnly: true }, async (robot) => {
      await robot.sees("dissolved into 4 items");
      await robot.press("u");
      await robot.sees("u: it was opened with --read-only");
    });
    assertSameRows(dumpOf(path), before);
  });
});

// ── While others write ───────────────────────────────────────────────────────────────────────────────────────────────

describe("only what was shown is applied, whatever other processes write", () => {
  it("tells the second of two open plans that it is already done", async () => {
    const path = copyOfIt();
    await sit(path, {}, async (one) => {
      await sit(path, {}, async (other) => {
        await dissolve(one);
        await dissolve(other);
        await one.press("y");
        await one.sees("✓ dissolved: 4 messages returned");
        const after = dumpOf(path);
        await other.press("y");
        await other.sees(`${leaf} is not in the context`);
        assertSameRows(dumpOf(path), after, "the second has changed nothing");
        await other.press("escape");
        await other.misses("is not in the context");
      });
    });
  });

  const rewriteLeaf = async (path: string, text: string): Promise<Dump> => {
    await onFile(path, async ({ store }) => {
      const [summary] = await store.summaries({ ids: [leaf] });
      must(summary !== undefined, "it is there");
      await store.rewrite({ summary: leaf, revision: summary.revision }, { ...summary, text, tokens: 5, fileIds: [] });
    });
    return dumpOf(path);
  };
  /** Keeps the dialog from noticing before the yes. */
  const unnoticed = (port: Port): Port => ({ ...port, stamp: () => "the same" });

  it("asks again if the summary was rewritten meanwhile, but not for new messages", async () => {
    const path = copyOfIt();
    await sit(path, { around: unnoticed }, async (robot) => {
      await dissolve(robot);
      const before = await rewriteLeaf(path, "About boats only.");
      await robot.press("y");
      await robot.sees("the plan has changed since you last saw it: check it again");
      await robot.sees("About boats only.");
      assertSameRows(dumpOf(path), before, "what was not shown is not done");
      assert.deepEqual(backupsOf(path), [], "and no needless backup");
      const message = { role: "user", content: "One more." };
      const item = { kind: "message", message, key: "late", at: systemNow() } as const;
      await onFile(path, async (lcm) => await lcm.ingest(made.deep, [item]));
      await robot.press("y");
      await robot.sees("✓ dissolved: 4 messages returned · u undoes change 2");
    });
  });

  it("asks again if that happened during the backup", async () => {
    const path = copyOfIt();
    const holder = Promise.withResolvers<ReturnType<typeof holding>>();
    const around = (port: Port): Port => {
      const held = holding(unnoticed(port));
      holder.resolve(held);
      return held.port;
    };
    await sit(path, { around }, async (robot) => {
      const { letBackup } = await holder.promise;
      await dissolve(robot);
      await robot.press("y");
      await robot.sees("making a backup (once");
      const before = await rewriteLeaf(path, "About boats only.");
      letBackup();
      await robot.sees("the plan has changed since you last saw it: check it again");
      assertSameRows(dumpOf(path), before, "what was not shown is not done");
    });
  });
});

// ── Transplanting ────────────────────────────────────────────────────────────────────────────────────────────────────

describe("a transplant at the terminal", () => {
  it("picks the target from a filtered list, copies what the command copies, and is found by search", async () => {
    const [path, other] = [copyOfIt(), copyOfIt()];
    await onFile(other, async (lcm) => {
      await lcm.transplant(await lcm.planTransplant(made.older, made.young));
      while ((await lcm.store.index(1_000)) > 0);
    });
    await sit(path, { place: { kind: "conversations" } }, async (robot) => {
      await robot.sees("agent:main:cli");
      const row = robot.lines().findIndex((line) => line.includes("agent:main:cli"));
      await robot.click(10, row);
      await robot.press("t");
      await robot.sees("Copy its summaries into which conversation?");
      assert.doesNotMatch(robot.screen(), /│ .*agent:main:cli.* │/, "not into itself");
      await robot.type("nobody");
      await robot.sees("none of 2 conversations matches");
      await robot.press("ctrl+u");
      await robot.type("3 ");
      await robot.misses("booking desk");
      await robot.press("enter");
      await robot.sees("Transplant: conversation 2 → conversation 3");
      await robot.press("G");
      await robot.sees("Estimated token overhead in the prompt");
      await robot.press("y");
      await robot.sees("✓ Copied 2 summaries and 8 messages; 2 items prepended to conversation 3 · U undoes change 1");
    });
    assertSameRows(withoutChance(dumpOf(path)), withoutChance(dumpOf(other)));
    await onFile(path, async ({ store }) => assert.equal((await store.status()).unindexed, 0));
    await sit(path, { place: { kind: "transplant", source: made.older, target: made.young } }, async (robot) => {
      await robot.sees("conversation 3 already contains");
      await robot.sees("`lcm undo 1 --apply`");
    });
  });

  it("reports that there is nothing to copy", async () => {
    await sit(copyOfIt(), { place: { kind: "transplant", source: made.young, target: made.deep } }, async (robot) => {
      await robot.sees("Nothing to transplant: the context of conversation 3 has no summaries.");
      assert.doesNotMatch(robot.screen(), /y apply/);
    });
  });
});

// ── The history ──────────────────────────────────────────────────────────────────────────────────────────────────────

describe("the history at the terminal", () => {
  it("shows what a rewrite changed and what blocks an undo, and redoes what was undone", async () => {
    const path = copyOfIt();
    await onFile(path, async (lcm) => {
      const open = async (summary: SummaryId): Promise<unknown> =>
        await lcm.dissolve(await lcm.planDissolve({ conversation: made.deep, summary }));
      await open(deepest);
      const [first] = await lcm.store.context(made.deep, { kind: "summary", limit: 1 });
      must(first?.kind === "summary", "the d3 is open");
      await open(first.id);
      const [summary] = await lcm.store.summaries({ ids: [made.truncated] });
      must(summary !== undefined, "it is there");
      const text = { ...summary, text: "\u001b[2JAsked: about photos\nDecided: yes.", tokens: 9, fileIds: [] };
      await lcm.store.rewrite({ summary: made.truncated, revision: summary.revision }, text);
    });
    const held = dumpOfContent(path);
    await sit(path, { place: { kind: "history", conversation: made.deep } }, async (robot) => {
      await robot.sees("history of conversation 1");
      await robot.sees("-[Truncated for context management]");
      await robot.sees("+␛[2JAsked: about photos");
      await robot.press("enter");
      await robot.sees("╭─ change 3 ─");
      await robot.press("escape");
      await robot.misses("╭─ change 3 ─");

      await robot.press("G", "u");
      await robot.sees("change 1 cannot be undone now; nothing was changed");
      await robot.sees("first run `lcm undo 2 --apply`");
      assert.doesNotMatch(robot.screen(), /y apply/);
      await robot.press("y", "u");
      await robot.sees("undo change 2");
      await robot.sees("Undo it?");
      await robot.press("y");
      await robot.sees("✓ undid change 2 · u undoes change 4");
      await robot.sees("Undo it?");
      await robot.press("escape");
      await robot.misses("Undo it?");

      await robot.sees("undone by 4");
      await robot.press("k");
      await robot.sees("undone by change 4; press u to redo it");
      await robot.press("u");
      await robot.sees("undo change 4");
      await robot.sees("Undo it?");
      await robot.press("y");
      await robot.sees("✓ undid change 4 · u undoes change 5");
    });
    assertSameRows(dumpOfContent(path), held);
  });

  it("copies again what was transplanted and undone", async () => {
    const path = copyOfIt();
    await onFile(path, async (lcm) => {
      await lcm.transplant(await lcm.planTransplant(made.older, made.young));
    });
    await sit(path, { place: { kind: "history", conversation: null } }, async (robot) => {
      await robot.sees("2 → 3, 2 summaries, 8 messages");
      await robot.press("u");
      await robot.sees("Undo it?");
      await robot.press("y");
      await robot.sees("✓ undid change 1 · t copies them again");
      await robot.sees("undone by 2");
      await robot.press("u");
      await robot.sees("Transplant: conversation 2 → conversation 3");
      await robot.press("y");
      await robot.sees("✓ Copied 2 summaries and 8 messages");
    });
  });

  it("reports that there are no changes yet", async () => {
    await sit(copyOfIt(), { place: { kind: "history", conversation: null } }, async (robot) => {
      await robot.sees("no changes yet");
      await robot.press("u");
      await robot.sees("u: no change is selected");
    });
  });
});

describe("a fix from the list of conversations", () => {
  it("checks, shows the plan, applies it after a backup, and can be undone", async () => {
    const path = copyOfIt();
    const db = new DatabaseSync(path);
    db.prepare("UPDATE conversations SET context_tokens = 5 WHERE conversation_id = ?").run(made.deep);
    db.close();
    await sit(path, { place: { kind: "conversations" } }, async (robot) => {
      await robot.press("h");
      await robot.sees(/findings?; press h/);
      await robot.press("h");
      await robot.sees("press H to fix what can be fixed automatically");
      await robot.press("escape", "H");
      await robot.sees("running totals recounted");
      await robot.sees("Fix it?");
      assert.deepEqual(backupsOf(path), []);
      await robot.press("y");
      await robot.sees(`✓ fixed conversation ${made.deep} · u undoes change 1`);
      assert.equal(backupsOf(path).length, 1);
      await robot.press("H");
      await robot.sees("nothing to fix automatically");
      await robot.press("escape", "u");
      await robot.sees("press u to undo it");
      await robot.press("u");
      await robot.sees("Undo it?");
    });
  });
});

describe("a pin at the terminal", () => {
  it("pins the selected message's words after its plan, unpins them with the same key, and u undoes it", async () => {
    const path = copyOfIt();
    const [said] = await onFile(path, async ({ store }) =>
      store.messages({ conversation: made.deep, role: "user", limit: 1 }),
    );
    must(said !== undefined, "a user spoke");
    const state = async (): Promise<readonly string[]> =>
      await onFile(path, async ({ store }) =>
        (await store.pins(made.deep)).flatMap((pin) => (pin.message === said.id ? [pin.state] : [])),
      );
    const name = messageName(said.id);
    await sit(path, { place: { kind: "messages", conversation: made.deep, at: said.id } }, async (robot) => {
      await robot.sees(said.text.slice(0, 20));
      await robot.press("p");
      await robot.sees(`pin in conversation ${made.deep}: ${name}`);
      assert.deepEqual(await state(), [], "a plan changes nothing");
      await robot.press("y");
      await robot.sees(`✓ ${name} pinned · u undoes change 1`);
      assert.deepEqual(await state(), ["pinned"]);
      await robot.press("p");
      await robot.sees(`unpin in conversation ${made.deep}: ${name}`);
      await robot.press("y");
      await robot.sees(`✓ ${name} unpinned · u undoes change 2`);
      await robot.press("u");
      await robot.sees(`${name} unpinned`);
      await robot.press("u");
      await robot.sees("Undo it?");
      await robot.press("enter");
      await robot.sees("✓ undid change 2");
    });
    assert.deepEqual(await state(), ["pinned"]);
  });

  it("explains that only what a user said can be pinned", async () => {
    const path = copyOfIt();
    const [said] = await onFile(path, async ({ store }) =>
      store.messages({ conversation: made.deep, role: "assistant", limit: 1 }),
    );
    must(said !== undefined, "the assistant spoke");
    await sit(path, { place: { kind: "messages", conversation: made.deep, at: said.id } }, async (robot) => {
      await robot.sees("assistant");
      await robot.press("p");
      await robot.sees("only what a user said can be pinned");
    });
  });
});
