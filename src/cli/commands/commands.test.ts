import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { describe, it } from "node:test";
import { Command } from "commander";
import { messageToStore } from "../../core/messages/codec.ts";
import type { MessageId, ConversationId } from "../../core/model/types.ts";
import { createContext } from "../context.ts";
import { createFinder } from "../../format/highlight.ts";
import { inShort } from "../../format/messages.ts";
import { addCommands } from "./index.ts";
import { seconds } from "./_options.ts";
import type { CommandContext } from "./_session.ts";
import { refusalHint } from "../../format/model.ts";
import type { Json } from "../../core/base/json.ts";
import type { Timestamp } from "../../core/base/time.ts";

describe("highlighting in a hit", () => {
  const marked = (pattern: string, line: string): readonly string[] =>
    (createFinder(pattern, false)([line])[0] ?? []).map(([from, to]) => line.slice(from, to));

  it("includes other forms of a word", () => {
    assert.deepEqual(marked("migrations", "The migration was migrated; a migrant was not."), ["migration", "migrated"]);
    assert.deepEqual(marked("retry", "Retry, retries, retried."), ["Retry", "retries", "retried"]);
  });

  it("excludes parts of other words", () => {
    assert.deepEqual(marked("cat", "cat category concat"), ["cat"]);
  });

  it("works without spaces", () => {
    assert.deepEqual(marked("旅館", "京都の旅館です"), ["旅館"]);
    assert.deepEqual(marked("👍", "ok👍"), ["👍"]);
  });

  it("is empty if the pattern has no word", () => {
    assert.deepEqual(marked("!!", "a!!"), []);
  });
});

describe("a message on one line", () => {
  const lineOf = (...content: readonly Json[]): string => {
    const stored = messageToStore(
      { role: "assistant", content },
      { key: "k", at: "2026-02-17T07:37:00.000Z" as Timestamp },
    );
    const place = { id: 1 as MessageId, conversation: 1 as ConversationId, seq: 1, parentKey: null, aside: null };
    return inShort({ ...stored, ...place, text: "", moved: [] });
  };

  it("shows a block without text by the host's name for its type", () => {
    assert.equal(lineOf({ type: "hologram", frames: [1] }, { type: "image", data: "aGVsbG8=" }), "[hologram]  [image]");
    assert.equal(lineOf({ type: "text", text: "see" }, { type: "input_audio", id: 3 }), "see  [input_audio]");
  });

  it("does not invent a name for a block without a type", () => {
    assert.equal(lineOf({ frames: [1] }, 42, null), "[unknown]  [unknown]  [unknown]");
  });

  it("shows such a name escaped and short", () => {
    assert.equal(lineOf({ type: "\u001b[31mred\nblock" }), "[␛[31mred block]");
    assert.equal(lineOf({ type: "x".repeat(1_000) }).length, 42);
  });
});

describe("a number of seconds", () => {
  it("is more than 0 and up to an hour", () => {
    assert.equal(seconds("0.5"), 0.5);
    assert.equal(seconds("3600"), 3_600);
    for (const text of ["0", "0.0", "3601", "-1", "soon", ""])
      assert.throws(() => seconds(text), /more than 0 and up to 3600/, text);
  });
});

describe("a command in a hint", () => {
  /** What is said to somebody who types this; the program is `lcm`, or a group of this host's. */
  async function saidTo(host: string | null, ...args: readonly string[]): Promise<string> {
    const stream = new PassThrough({ encoding: "utf8" });
    const output = { stream, isTerminal: false, columns: null, colour: false };
    const context: CommandContext = { ...createContext({ finish: () => undefined }), stdout: output, stderr: output };
    const root = new Command(host ?? "lcm");
    addCommands(host === null ? root : root.command("lcm"), context, args.includes("--json"));
    await root.parseAsync([...(host === null ? [] : ["lcm"]), ...args], { from: "user" });
    return String(stream.read());
  }

  it("can be typed as it is: with this database, and with the name of the host", async () => {
    const hints: readonly (readonly [string | null, readonly string[], string])[] = [
      [null, [], "lcm history"],
      ["openclaw", [], "openclaw lcm history"],
      ["openclaw", ["--db", "old.db"], "openclaw lcm --db old.db history"],
      [null, ["--db", "my old.db"], "lcm --db 'my old.db' history"],
      [null, ["--db", "C:\\my old.db"], 'lcm --db "C:\\my old.db" history'],
    ];
    for (const [host, options, typed] of hints) {
      const hint = `list the changes with \`${typed}\``;
      assert.match(await saidTo(host, "undo", "one", ...options), new RegExp(`^hint: ${RegExp.escape(hint)}$`, "m"));
      const told: unknown = JSON.parse(await saidTo(host, "undo", "one", ...options, "--json"));
      const message = '"one" is not the number of a change';
      assert.deepEqual(told, { error: { code: "invalid", message, hint } });
    }
  });

  it("omits the database if the command takes none", async () => {
    const said = await saidTo("openclaw", "status", "--db", "none.db");
    assert.match(said, /^hint: .*`openclaw lcm --db none\.db import FILE…`; .* `openclaw lcm demo --keep`, /m);
  });
});

describe("the hint after a timeout", () => {
  it("suggests one call at a time only if there were more", () => {
    assert.match(refusalHint("timeout", null, "applied", 4), /, or pass --concurrency 1 to make one call at a time$/);
    assert.doesNotMatch(refusalHint("timeout", null, "applied", 1), /--concurrency/);
  });
});
