import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ConversationId, FileId, MessageId } from "../../core/model/types.ts";
import { createPaint } from "../../format/paint.ts";
import type { Frame, Step } from "../contract.ts";
import { advance, open } from "../layers.ts";
import { filesModule } from "./screen.ts";
import type { FilesScreen } from "./screen.ts";
import type { FileLook } from "./asks.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { widthOf } from "../../format/width.ts";

const conversation = 1 as ConversationId;
const frame: Frame = {
  columns: 80,
  bounds: 80,
  rows: 21,
  paint: createPaint(false),
  zone: "UTC",
  typed: (words) => words,
  now: "2026-02-17T07:37:00.000Z" as Timestamp,
  readOnly: null,
  beat: 0,
};
const id = (at: number): FileId => `file_${at.toString(16).padStart(16, "0")}`;
const files = Array.from({ length: 30 }, (_, at) => ({
  id: id(at),
  name: `${at}.log`,
  mimeType: "text/plain",
  bytes: 100_000_000,
  lines: 1_000_000,
  encoding: "utf8" as const,
  createdAt: "2026-02-17T07:37:00.000Z" as Timestamp,
}));

/** A file of a million lines. */
const look = (from: number, to: number): FileLook => ({
  exploration: ["A log."],
  message: { conversation, id: 7 as MessageId },
  content: {
    kind: "text",
    from,
    to: Math.min(to, 1_000_000),
    count: 1_000_000,
    lines: Array.from({ length: Math.min(to, 1_000_000) - from + 1 }, (_, at) => `line ${from + at}`),
  },
});

/** Answers all asks until there are none left. */
function settled(step: Step<FilesScreen>, result = look): FilesScreen {
  return (step.asks ?? []).reduce((state, ask) => {
    const answer =
      ask.kind === "files"
        ? ({ kind: "files", ask, result: { name: "The ferry", files } } as const)
        : ask.kind === "fileLook"
          ? ({ kind: "fileLook", ask, result: result(ask.from, ask.to) } as const)
          : assert.fail(ask.kind);
    return settled(advance(filesModule, state, { kind: "answer", answer }, frame), result);
  }, step.state);
}

const press = (state: FilesScreen, ...names: readonly string[]): FilesScreen =>
  names.reduce((now, name) => settled(advance(filesModule, now, { kind: "pressed", name }, frame)), state);

const opened = (at?: FileId): FilesScreen =>
  settled(open({ kind: "files", conversation, ...(at === undefined ? {} : { at }) }));
const drawn = (state: FilesScreen): string => filesModule.draw(state, frame).join("\n");

describe("the files", () => {
  it("load a part of a long file, and scroll both ways beyond it", () => {
    let state = press(opened(), "enter");
    for (let page = 1; page < 200; page++) {
      state = press(state, "pageDown");
      const line = page * 19 - 3;
      assert.match(drawn(state), new RegExp(`\\n line ${line} *\\n line ${line + 1} *\\n`), `after ${page} pages`);
    }
    assert.match(drawn(state), /line 3,7\d\d of 1,000,000/);
    state = press(state, "G");
    assert.match(drawn(state), /\n line 1000000$/);
    for (let page = 1; page < 200; page++) state = press(state, "pageUp");
    assert.match(drawn(state), new RegExp(`\\n line ${1_000_000 - 199 * 19}$`));
    assert.match(drawn(press(state, "g")), /Description:\n A log\.\n \n Content:\n line 1\n/);
    const { content } = state.look ?? assert.fail();
    assert.ok(content.kind === "text" && content.lines.length < 22_000);
  });

  it("skip no line of a file that is longer than what is loaded, down and back up", () => {
    const tall = { ...frame, rows: 91 };
    const turn = (state: FilesScreen, name: string): FilesScreen =>
      settled(advance(filesModule, state, { kind: "pressed", name }, tall));
    const topLine = (state: FilesScreen): number =>
      Number(/^ line (\d+)/.exec(filesModule.draw(state, tall)[1] ?? "")?.[1]);
    let state = turn(turn(opened(), "enter"), "pageDown");
    for (const [name, pages] of [
      ["pageDown", 290],
      ["pageUp", 280],
    ] as const) {
      for (let page = 0; page < pages; page++) {
        const before = topLine(state);
        state = turn(state, name);
        assert.equal(Math.abs(topLine(state) - before), 89, `after line ${before}`);
      }
    }
    const { content } = state.look ?? assert.fail();
    assert.ok(content.kind === "text" && content.lines.length <= 20_000);
  });

  it("jump to the end of a file, however little is read at a time", () => {
    for (const [count, atOnce] of [
      [1_500, 1_000],
      [2_000, 1_000],
      [800, 30],
      [5_003, 7],
    ] as const) {
      const some = (from: number, to: number): FileLook => {
        const { content, ...rest } = look(from, Math.min(to, count, from + atOnce - 1));
        return { ...rest, content: content.kind === "text" ? { ...content, count } : content };
      };
      const turn = (state: FilesScreen, name: string): FilesScreen =>
        settled(advance(filesModule, state, { kind: "pressed", name }, frame), some);
      const end = turn(turn(settled(open({ kind: "files", conversation }), some), "enter"), "G");
      assert.match(drawn(end), new RegExp(`\\n line ${count - 1}\\n line ${count}$`), `of ${count}`);
    }
  });

  it("start at the top of a file whenever it is selected", () => {
    const end = press(opened(), "enter", "G", "enter");
    const there = advance(filesModule, end, { kind: "pressed", name: "down" }, frame).state;
    assert.match(drawn(press(there, "up")), /Description:\n A log\./);
  });

  it("start with the file they were opened for", () => {
    const state = opened(id(20));
    assert.match(drawn(state), /▸ 20\.log/);
    assert.equal(state.look?.file, id(20));
  });

  it("ignore late answers about other files", () => {
    const step = advance(filesModule, opened(), { kind: "pressed", name: "down" }, frame);
    const late = {
      kind: "fileLook",
      ask: { kind: "fileLook", file: id(0), from: 1, to: 1_000 },
      result: look(1, 3),
    } as const;
    const { state } = advance(filesModule, step.state, { kind: "answer", answer: late }, frame);
    assert.match(drawn(state), /▸ 1\.log[\s\S]*reading …/);
    assert.match(drawn(settled(step)), /line 1/);
  });

  it("report that a file or the conversation no longer exists", () => {
    const gone = {
      kind: "fileLook",
      ask: { kind: "fileLook", file: id(0), from: 1, to: 1_000 },
      result: null,
    } as const;
    assert.match(
      drawn(advance(filesModule, opened(), { kind: "answer", answer: gone }, frame).state),
      /no longer exists/,
    );
    const none = { kind: "files", ask: { kind: "files", conversation, also: null }, result: null } as const;
    assert.match(
      drawn(advance(filesModule, opened(), { kind: "answer", answer: none }, frame).state),
      /no longer exists/,
    );
  });

  it("are selected, opened and scrolled with the mouse", () => {
    const click = (state: FilesScreen, row: number, count: number): FilesScreen =>
      settled(advance(filesModule, state, { kind: "click", column: 5, row, count }, frame));
    const chosen = click(opened(), 4, 1);
    assert.match(drawn(chosen), /▸ 2\.log/);
    assert.equal(click(chosen, 4, 2).isWide, true);
    const below = advance(filesModule, chosen, { kind: "wheel", lines: 3, column: 5, row: 15 }, frame).state;
    assert.equal(below.top.line, 3);
    assert.equal(below.list.cursor, 2);
  });

  it("fit in every room", () => {
    for (const [columns, rows] of [
      [40, 7],
      [80, 21],
      [200, 57],
    ] as const)
      for (const state of [opened(), press(opened(), "enter")]) {
        const lines = filesModule.draw(state, { ...frame, columns, rows });
        assert.ok(lines.length <= rows && lines.every((line) => widthOf(line) <= columns), lines.join("\n"));
      }
  });
});
