import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { visibleWidth } from "@earendil-works/pi-tui";
import type { Conversation, ConversationId } from "../core/model/types.ts";
import { createPaint } from "../format/paint.ts";
import { draw, start, update } from "./app.ts";
import type { App, AppEvent, AppStep, Effect, Start } from "./app.ts";
import type { Destination } from "./contract.ts";
import type { Timestamp } from "../core/base/time.ts";

const now = "2026-02-17T12:00:00.000Z" as Timestamp;
const given: Start = {
  look: { paint: createPaint(false), zone: "UTC", typed: (words) => words },
  path: "/a/lcm.db",
  readOnly: null,
  size: { columns: 80, rows: 24 },
  now,
  stamp: "1",
};

const key = (name: string): AppEvent => ({ kind: "key", key: { name, text: name.length === 1 ? name : "" } });
const text = (lines: readonly string[]): Destination => ({ kind: "text", title: "a text", lines });
const one: Conversation = {
  id: 1 as ConversationId,
  sessionId: "s",
  sessionKey: null,
  agentId: null,
  folder: null,
  parentSessionId: null,
  active: true,
  hidden: false,
  title: null,
  createdAt: now,
  updatedAt: now,
  lastMessageAt: null,
  totals: {
    messages: 0,
    messageTokens: 0,
    summaries: 0,
    contextItems: 0,
    contextTokens: 0,
    contextMessages: 0,
    contextMessageTokens: 0,
  },
  revision: 1,
  hostCursor: null,
  fileCursor: null,
  forgets: 0,
  caughtUp: 0,
  promptBudget: null,
};
const history: Destination = { kind: "history", conversation: 1 as ConversationId };

function play(app: App, ...events: readonly AppEvent[]): AppStep {
  return events.reduce<AppStep>(
    (step, event) => {
      const next = update(step.app, event);
      return { app: next.app, effects: [...step.effects, ...next.effects] };
    },
    { app, effects: [] },
  );
}

const kinds = (effects: readonly Effect[]): readonly string[] => effects.map(({ kind }) => kind);
const screen = (app: App): string => draw(app).join("\n");

describe("the terminal UI", () => {
  it("reads the data of its first screen, and quits from it", () => {
    const { app, effects } = start(given);
    assert.deepEqual(kinds(effects), ["ask"]);
    for (const name of ["q", "ctrl+c"]) assert.deepEqual(kinds(play(app, key(name)).effects), ["quit"]);
  });

  it("quits only on the second Escape", () => {
    const once = play(start(given).app, key("escape"));
    assert.deepEqual(kinds(once.effects), []);
    assert.match(screen(once.app), /press esc again to quit/);
    assert.deepEqual(kinds(play(once.app, key("escape")).effects), ["quit"]);
    assert.deepEqual(kinds(play(once.app, key("j"), key("escape")).effects), []);
  });

  it("closes the help with the key that opened it", () => {
    const helped = play(start(given).app, key("?")).app;
    assert.doesNotMatch(screen(play(helped, key("?")).app), /╭─ keys ─/);
  });

  it("opens the help over a screen, and goes back to it", () => {
    const { app } = start({ ...given, size: { columns: 80, rows: 60 } });
    const helped = play(app, key("?")).app;
    assert.match(screen(helped), /╭─ keys ─/);
    assert.match(screen(helped), /show all keys/);
    const back = play(helped, key("escape"));
    assert.doesNotMatch(screen(back.app), /╭─ keys ─/);
    assert.deepEqual(kinds(back.effects).slice(0, 1), ["stop"], "what the closed layer had asked for ends");
  });

  it("shows available keys in the bar, and the others in the help with the reason", () => {
    const { app } = start({ ...given, size: { columns: 80, rows: 60 } }, history);
    assert.doesNotMatch(draw(app).at(-1) ?? "", /undo|read/);
    assert.match(screen(play(app, key("?")).app), /show everything the change did[^]*\(no change is selected\)/);
  });

  it("holds a key that needs unread data, and the keys after it", () => {
    const { app } = start(given);
    const early = play(app, key("enter"), key("escape"), key("c"), key("j"), key("enter"));
    assert.deepEqual(kinds(early.effects), []);
    assert.match(screen(early.app), / ↵: waiting for the data/);
    assert.doesNotMatch(screen(early.app), /✗/);
    const result = [{ conversation: one, promptTokens: 1, budget: 9, thresholdTokens: 8, stalled: null }];
    const ask = { kind: "conversations" } as const;
    const answered = play(early.app, { kind: "answer", layer: 0, answer: { kind: "conversations", ask, result } });
    assert.deepEqual(
      answered.effects.map((effect) => effect.kind === "ask" && effect.ask.kind),
      ["prompt"],
      "escape dropped the first, and the last waits on for the prompt",
    );
    assert.doesNotMatch(screen(answered.app), /✗|as soon as/);
  });

  it("holds movement keys too, so that later keys act on the right row", () => {
    const { app } = start(given);
    const early = play(app, key("j"), key("enter"));
    assert.match(screen(play(app, key("j")).app), / j: waiting for the data/);
    const two = { ...one, id: 2 as ConversationId };
    const result = [one, two].map((conversation) => ({
      conversation,
      promptTokens: 1,
      budget: 9,
      thresholdTokens: 8,
      stalled: null,
    }));
    const ask = { kind: "conversations" } as const;
    const { app: there } = play(early.app, {
      kind: "answer",
      layer: 0,
      answer: { kind: "conversations", ask, result },
    });
    assert.deepEqual(
      there.layers.map(({ layer }) => ("conversation" in layer ? layer.conversation : null)),
      [null, 1],
      "below the newer one",
    );
  });

  it("goes back immediately, even while keys are held", () => {
    for (const name of ["escape", "q"]) {
      const { app } = start(given, { kind: "messages", conversation: 1 as ConversationId });
      const waiting = play(app, key("j"), key("enter"));
      assert.equal(waiting.app.held.length, 2);
      const left = play(waiting.app, key(name));
      assert.deepEqual([kinds(left.effects), left.app.held], [["quit"], []]);
    }
  });

  it("never holds a key that changes something, or any key after a failed read", () => {
    const { app } = start(given);
    assert.match(screen(play(app, key("R")).app), /✗ R: still reading/);
    const failure = { code: "not_found", message: "there is no database", hint: null };
    const failed = play(app, key("enter"), { kind: "failed", layer: 0, ask: { kind: "conversations" }, failure });
    assert.match(screen(failed.app), /✗ there is no database/);
    assert.deepEqual(failed.app.held, []);
  });

  it("lets no dialog title move the terminal's cursor", () => {
    const { app } = start(given, { kind: "text", title: "a\u001b[2J\nb", lines: ["one"] });
    assert.doesNotMatch(screen(app), /\u001b\[2J/);
    assert.equal(screen(app).split("\n").length, given.size.rows);
  });

  it("drops events for a closed layer", () => {
    const { app } = start(given, text(["one"]));
    const failed: AppEvent = {
      kind: "failed",
      layer: 7,
      ask: { kind: "conversations" },
      failure: { code: "internal", message: "it broke", hint: null },
    };
    assert.deepEqual(play(app, failed).app.layers, app.layers);
  });

  it("shows a failure until a key is pressed", () => {
    const { app } = start(given, text(["one"]));
    const failure = { code: "unavailable", message: "the database is locked", hint: "try `lcm status`" };
    const failed = play(app, { kind: "failed", layer: 0, ask: { kind: "conversations" }, failure }).app;
    assert.match(screen(failed), /✗ the database is locked · try `lcm status`/);
    assert.doesNotMatch(screen(play(failed, key("j")).app), /locked/);
  });

  it("reads again after the file changed, and after a failed read", () => {
    const { app } = start(given);
    const tick = (stamp: string | null): AppEvent => ({ kind: "tick", now, stamp });
    assert.deepEqual(kinds(play(app, tick("1")).effects), [], "nothing has changed");
    assert.deepEqual(kinds(play(app, tick("2")).effects), ["ask"]);
    const failure = { code: "unavailable", message: "the database is locked", hint: null };
    const behind = play(app, { kind: "failed", layer: 0, ask: { kind: "conversations" }, failure }).app;
    assert.deepEqual(kinds(play(behind, tick("1")).effects), ["ask"]);
  });

  it("keeps the screen while the file is missing, and reports it", () => {
    const { app } = start(given);
    const gone = play(app, { kind: "tick", now, stamp: null });
    assert.deepEqual(kinds(gone.effects), []);
    assert.match(screen(gone.app), /\/a\/lcm.db no longer exists/);
    const back = play(gone.app, { kind: "tick", now, stamp: "9" });
    assert.deepEqual(kinds(back.effects), ["ask"]);
    assert.doesNotMatch(screen(back.app), /any more/);
  });

  it("treats a click in the bar as a key", () => {
    const { app } = start(given, text(["one"]));
    const bar = draw(app).at(-1) ?? "";
    const click = (words: string): AppEvent => ({ kind: "click", column: bar.indexOf(words), row: 23, count: 1 });
    assert.match(screen(play(app, click("help")).app), /╭─ keys ─/);
    assert.deepEqual(kinds(play(app, click("quit")).effects), ["quit"]);
  });

  it("scrolls the text under the pointer only", () => {
    const { app } = start(given, text(Array.from({ length: 100 }, (_, at) => `line ${at}`)));
    const wheel = (column: number): App => play(app, { kind: "wheel", lines: 3, column, row: 8 }).app;
    assert.match(screen(wheel(40)), /│ line 3 /);
    assert.match(screen(wheel(0)), /│ line 0 /);
  });

  it("refuses a key that changes a read-only database, with the reason", () => {
    const { app } = start({ ...given, readOnly: "it was opened with --read-only" }, history);
    assert.match(screen(app), /read-only · \/a\/lcm.db/);
  });

  it("fills the terminal exactly, whatever its size", () => {
    const places: readonly Destination[] = [
      { kind: "conversations" },
      text(["日本語 👩‍💻 \u001b[31mred\u001b[39m".repeat(9)]),
      history,
    ];
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 220 }),
        fc.integer({ min: 1, max: 70 }),
        fc.constantFrom(...places),
        fc.array(fc.constantFrom("j", "k", "G", "?", "pageDown", "escape")),
        (columns, rows, place, keys) => {
          const first = start({ ...given, size: { columns: 100, rows: 30 } }, { kind: "conversations" }).app;
          const opened = start({ ...given, size: { columns, rows } }, place).app;
          const resized: AppEvent = { kind: "resized", size: { columns, rows } };
          for (const app of [play(opened, ...keys.map(key)).app, play(first, ...keys.map(key), resized).app]) {
            const lines = draw(app);
            assert.equal(lines.length, rows);
            for (const line of lines) assert.equal(visibleWidth(line), columns);
          }
        },
      ),
    );
  });
});
