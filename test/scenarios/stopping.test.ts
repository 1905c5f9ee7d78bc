/**
 * Guarantee 34, on a real terminal with real signals: every long command shows progress, stops on Ctrl-C and at its
 * time limit, and says what is done and how to continue. Statements are made slow, as a large database makes them: so slow
 * that a busy machine does not notice the progress only after the end.
 */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { longCommands, shortCommands, type LongCommand } from "../../src/cli/commands/_long.ts";
import { copyFixture } from "../support/older-database.ts";
import { homeAt, withoutPseudoTerminal } from "../support/platform.ts";
import { startScriptedProvider, type ScriptedProvider } from "../support/scripted-provider.ts";
import { slowStatements } from "../support/slow-statements.ts";
import { usePostgres } from "../support/shared-postgres.ts";
import { startTerminal, type Terminal } from "../support/terminal.ts";
import { createDeepPlace } from "./golden.ts";
import { bare, bin, createFolder, lcm, ok, type Place } from "./program.ts";

const transcript = fileURLToPath(new URL("../../demo/five-weeks.jsonl", import.meta.url));

let provider: ScriptedProvider;
before(async () => (provider = await startScriptedProvider()));
after(async () => await provider.close());
const server = await usePostgres();
let schemas = 0;

/** How a command is made long, and what it shows then. */
interface Case {
  readonly place: () => Place | Promise<Place>;
  readonly args: (place: Place) => readonly string[];
  /** The statements that take long, on another thread for a minute; absent if a model does not answer. */
  readonly slow?: { readonly statement: RegExp; readonly ms?: number; readonly apart?: boolean };
  readonly progress: RegExp;
  /** Replace what the table of long commands says, for commands that report more themselves. */
  readonly interrupted?: RegExp;
  readonly status?: number;
  readonly late?: RegExp;
  readonly lateStatus?: readonly number[];
}

const deep = async (): Promise<Place> => await createDeepPlace(null);
const asked = async (): Promise<Place> => {
  provider.play({ kind: "hang" });
  return await createDeepPlace(provider);
};
const stored = (): Place => {
  const place = { state: createFolder() };
  ok(place, "import", transcript);
  return place;
};
const summaryOf = (place: Place): string => {
  const { stdout } = ok(place, "dag", "1", "--json");
  return /sum_[0-9a-f]{16}/.exec(stdout)?.[0] ?? assert.fail(stdout);
};
const journal = { statement: /INSERT INTO journal/ };

const cases: Readonly<Record<keyof typeof longCommands, Case>> = {
  adopt: {
    place() {
      const state = createFolder();
      copyFixture("0.15.3", state);
      return { state };
    },
    args: () => ["adopt"],
    slow: { statement: /legacy_alter_table = ON/ },
    progress: /converting +\d+ s/,
  },
  ask: {
    place: asked,
    args: () => ["ask", "what did the crew keep"],
    progress: /lcm ask +\d+ s/,
    interrupted: /interrupted: this is what was found so far/,
    status: 0,
    late: /the deadline passed .* hint: raise --timeout/,
    lateStatus: [0],
  },
  backup: {
    place: deep,
    args: () => ["backup"],
    slow: { statement: /journal_mode = DELETE/ },
    progress: /copying +\d+ s/,
  },
  compact: {
    place: stored,
    args: () => ["compact", "1", "--no-model", "--apply", "--no-backup"],
    slow: { statement: /INSERT INTO summaries /, ms: 2_000, apart: false },
    progress: /compacting .* of [\d,]+ messages/,
    interrupted: /interrupted: .* tokens in \d pass.* summaries made so far are kept; run it again to continue/,
    // If a fold takes too long, the process ends without waiting for it.
    late: /stopped at the (?:deadline|time limit of 1 s at .*summaries made so far are kept hint:) run it again to continue/,
    lateStatus: [0, 6],
  },
  dissolve: {
    place: deep,
    args: (place) => ["dissolve", "1", "--summary", summaryOf(place), "--apply", "--no-backup"],
    slow: journal,
    progress: /dissolving +\d+ s/,
  },
  doctor: {
    place: stored,
    args: () => ["doctor"],
    slow: { statement: /FROM messages WHERE message_id >/, ms: 1_500, apart: true },
    progress: /checking .* [\d,]+ of 1,487 messages/,
  },
  export: {
    place: stored,
    args: ({ state }) => ["export", "1", "--output", join(state, "out.jsonl")],
    slow: { statement: /FROM messages WHERE message_id >/, ms: 2_000, apart: false },
    progress: /writing .* [\d,]+ of 1,487 messages/,
  },
  forget: {
    place: deep,
    args: () => ["forget", "--secret", "harbour", "--apply"],
    slow: journal,
    progress: /searching +\d+ s/,
  },
  grep: {
    place: deep,
    args: () => ["grep", "-e", "h.rbour"],
    slow: { statement: /SELECT/ },
    progress: /searching +\d+ s/,
    late: /1 s/,
    lateStatus: [6],
  },
  import: {
    place: () => ({ state: createFolder() }),
    args: () => ["import", transcript],
    slow: { statement: /INSERT INTO context_items/, ms: 15, apart: false },
    progress: /importing .* messages stored/,
  },
  map: {
    place: asked,
    args: () => ["map", "what is it about", "--apply"],
    progress: /reading /,
    interrupted:
      /it was interrupted; \d+ messages not read \(\d+ not reached\): .* run the same command again to read on/,
    late: /the time limit was reached; \d+ messages not read .* hint: run the same command again/,
  },
  index: {
    async place() {
      provider.play({ kind: "hang" });
      return await createDeepPlace(null, { LCM_EMBEDDER: "lmstudio:m", LCM_EMBEDDER_BASE_URL: `${provider.url}/v1` });
    },
    args: () => ["index"],
    progress: /indexing +\d+ s/,
    interrupted: /stopped: 112 to do; run it again to continue/,
    late: /stopped: .* to do; run it again to continue/,
    lateStatus: [0],
  },
  move: {
    place: stored,
    args: () => ["move", "--to", `${server.url}?schema=stopped_${++schemas}`, "--apply"],
    slow: { statement: /FROM message_parts/, ms: 1_000, apart: false },
    progress: /moving .* of 1,487 messages/,
    interrupted: /stopped: 1 conversation to do; run it again to continue/,
    late: /stopped: 1 conversation to do; run it again to continue/,
    lateStatus: [6],
  },
  prune: {
    place: deep,
    args: () => ["prune", "1", "--delete", "--apply", "--no-backup"],
    slow: journal,
    progress: /selecting +\d+ s/,
  },
  pins: {
    place: stored,
    args: () => ["pins", "1", "--find"],
    slow: { statement: /FROM messages/, ms: 3_000, apart: true },
    progress: /searching +(?:\d+ s|500 messages of users read)/,
  },
  repair: {
    place: asked,
    args: () => ["repair", "--apply", "--no-backup"],
    progress: /rewriting .* of \d+ summaries/,
    interrupted: /interrupted: applied texts are kept; run it again to continue/,
    late: /stopped at the time limit: applied texts are kept; run it again to continue/,
  },
  restore: {
    async place() {
      const place = await deep();
      ok(place, "backup", join(place.state, "copy.db"));
      return place;
    },
    args: ({ state }) => ["restore", join(state, "copy.db"), "--apply"],
    slow: { statement: /quick_check|integrity_check/ },
    progress: /restoring +\d+ s/,
  },
  rewrite: {
    place: asked,
    args: () => ["rewrite", "1", "--depth", "2", "--apply", "--no-backup"],
    progress: /rewriting .* of \d+ summaries/,
    interrupted: /interrupted: applied texts are kept; run it again to continue/,
    late: /stopped at the time limit: applied texts are kept; run it again to continue/,
  },
  seen: {
    place: stored,
    args: () => ["seen", "1", "--find", "msg_1-1"],
    slow: { statement: /FROM prompts/ },
    progress: /reading +\d+ s/,
  },
  transplant: {
    async place() {
      const place = await deep();
      ok(place, "import", transcript);
      return place;
    },
    args: () => ["transplant", "1", "2", "--apply", "--no-backup"],
    slow: journal,
    progress: /copying +\d+ s/,
  },
  undo: {
    async place() {
      const place = await deep();
      ok(place, "dissolve", "1", "--summary", summaryOf(place), "--apply", "--no-backup");
      return place;
    },
    args: () => ["undo", "1", "--apply", "--no-backup"],
    slow: journal,
    progress: /undoing +\d+ s/,
  },
};

const minuteMs = 60_000;

function start({ slow }: Case, { state, env = {} }: Place, args: readonly string[]): Terminal {
  const quoted = [process.execPath, bin, ...args].map((word) => `'${word}'`).join(" ");
  const options = slow === undefined ? "" : slowStatements({ ms: minuteMs, apart: true, ...slow });
  return startTerminal(quoted, {
    cwd: state,
    env: { ...bare, ...homeAt(state), OPENCLAW_STATE_DIR: state, ...env, COLUMNS: "", NODE_OPTIONS: options } as Record<
      string,
      string
    >,
  });
}

const wordsOn = (terminal: Terminal): string => terminal.screen().replaceAll(/\s+/g, " ");

function assertSays(terminal: Terminal, given: RegExp | undefined, { kept, next }: LongCommand, why: string): void {
  const words = wordsOn(terminal);
  if (given !== undefined) return assert.match(words, given);
  assert.match(words, new RegExp(`error: ${why}`));
  for (const part of [kept, next]) assert.ok(words.includes(part), `${part}\n\n${terminal.screen()}`);
}

describe("guarantee 34: every long command", { skip: withoutPseudoTerminal, concurrency: 3 }, () => {
  for (const [name, scene] of Object.entries(cases)) {
    const long = longCommands[name as keyof typeof longCommands];

    it(`${name} shows progress, stops on Ctrl-C, and says what is done and how to continue`, async () => {
      const place = await scene.place();
      const terminal = start(scene, place, scene.args(place));
      await terminal.sees(scene.progress);
      terminal.signal("SIGINT");
      const { status } = await terminal.ended();
      assertSays(terminal, scene.interrupted, long, "interrupted");
      assert.equal(status, scene.status ?? 130, terminal.screen());
    });

    it(`${name} stops at its time limit, and says what is done and how to continue`, async () => {
      const place = await scene.place();
      const terminal = start(scene, place, [...scene.args(place), "--timeout", "1"]);
      const { status } = await terminal.ended();
      assertSays(terminal, scene.late, long, "stopped at the time limit of 1 s");
      // Inside a step that cannot be stopped, only a signal ends the process.
      if (scene.lateStatus === undefined) assert.ok(status === 6 || status === 143, `${status}\n${terminal.screen()}`);
      else assert.ok(scene.lateStatus.includes(status), `${status}\n${terminal.screen()}`);
    });
  }

  it("is in the table of long commands, or its work does not grow with what is stored", () => {
    const listed = [...ok({ state: createFolder() }, "--help").stdout.matchAll(/^ {2}([a-z]+)(?= |$)/gm)]
      .map(([, name = ""]) => name)
      .filter((name) => name !== "help");
    assert.ok(listed.length > 20, listed.join());
    assert.deepEqual(listed.toSorted(), [...Object.keys(longCommands), ...shortCommands].toSorted());
    for (const [name, { next }] of Object.entries(longCommands))
      assert.doesNotMatch(next, /more time/, `${name}: Ctrl-C is not a time limit`);
  });
});

describe("guarantee 34: an interrupted command", { skip: withoutPseudoTerminal }, () => {
  it("continues when it is run again: an import stores the rest, and nothing twice", async () => {
    const place = { state: createFolder() };
    const terminal = start(cases.import, place, ["import", transcript]);
    await terminal.sees(/[1-9][\d,]* messages stored/);
    terminal.signal("SIGINT");
    await terminal.ended();
    assert.match(wordsOn(terminal), /interrupted at .* [\d,]+ messages stored: what was imported is stored/);
    const { messages } = ok(place, "status", "--json").json;
    assert.ok(messages > 0 && messages < 1_487, String(messages));
    ok(place, "import", transcript);
    assert.equal(ok(place, "status", "--json").json.messages, 1_487);
    assert.equal(lcm(place, "doctor", "--json").json.sound, true);
  });

  it("leaves no half file: an export has none, and keeps the one that was there", async () => {
    const place = stored();
    const output = join(place.state, "out.jsonl");
    const terminal = start(cases.export, place, cases.export.args(place));
    await terminal.sees(cases.export.progress);
    terminal.signal("SIGINT");
    await terminal.ended();
    assert.deepEqual([existsSync(output), existsSync(`${output}.partial`)], [false, false]);
  });

  it("ends at once on a second Ctrl-C", async () => {
    const place = await deep();
    const terminal = start(cases.prune, place, cases.prune.args(place));
    await terminal.sees(cases.prune.progress);
    terminal.signal("SIGINT");
    await terminal.drawn(100);
    terminal.signal("SIGINT");
    const { status } = await terminal.ended();
    assert.equal(status, 130, terminal.screen());
    assert.equal(ok(place, "conversations", "--json").json.conversations.length > 0, true);
  });
});
