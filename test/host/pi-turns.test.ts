/** The real Pi with our extension: turns with tools, compaction, /tree, /fork, resuming, edits of the context, overflow. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, beforeEach, describe, it } from "node:test";
import { makeScratch } from "../support/scratch.ts";
import { startModelServer, type Asked, type Reply } from "./model-server.ts";
import { pluginFolder } from "./plugin.ts";
import {
  assertStored,
  createPiHome,
  printPi,
  putHelper,
  startPi,
  transcriptFiles,
  transcriptsOf,
  type PiHome,
} from "./pi.ts";
import { withStore } from "./stored.ts";

const server = await startModelServer();
after(async () => await server.close());

const isTurn = ({ tools }: Asked): boolean => tools.length > 0;
const shownIn = (asked: Asked | undefined): string => asked?.messages.map(({ text }) => text).join("\n") ?? "";
const lastTurn = (): Asked | undefined => server.asked.filter(isTurn).at(-1);

/** Calls the tool that the prompt names, then answers with what it returned. */
function obey({ prompt, results, tools }: Asked): Reply {
  if (tools.length === 0) return `Summary ${server.asked.length}: they spoke of ${server.asked.length * 7} things.`;
  const [, name = "", args = ""] = /^CALL (\S+) (.*)$/.exec(prompt) ?? [];
  if (name === "" || results.length > 0) return `Heard: ${results.at(-1)?.slice(0, 200) ?? prompt.slice(0, 80)}`;
  return { kind: "answer", text: "One moment.", calls: [{ name, args: JSON.parse(args) }] };
}

beforeEach(() => {
  server.forget();
  server.script(obey);
});

const filler = (words: number): string => Array.from({ length: words }, (_, at) => `pebble${at}`).join(" ");

function withHelper(name: string, options: Parameters<typeof createPiHome>[2] = {}) {
  const home = createPiHome(makeScratch(name), server, options);
  return { home, words: putHelper(home) };
}

const idOf = (home: PiHome, text: string): string => {
  const rows = transcriptsOf(home).flat();
  return rows.find(({ message }) => JSON.stringify(message ?? "").includes(text))?.id;
};

const smallTail = { env: { LCM_FRESH_TAIL_COUNT: "4", LCM_LEAF_CHUNK_TOKENS: "1000", LCM_LEAF_TARGET_TOKENS: "300" } };

describe("ten turns of Pi with tools", () => {
  const home = createPiHome(makeScratch("pi-turns"), server);

  it("are stored row by row, and continued by another process", async () => {
    writeFileSync(join(home.work, "note.txt"), "the harbour master is called Oyelaran\n");
    const pi = await startPi(home);
    for (let turn = 1; turn <= 4; turn++) await pi.say(`turn ${turn}`);
    await pi.say('CALL read {"path":"note.txt"}');
    await pi.say('CALL bash {"command":"echo drydock"}');
    await pi.say('CALL lcm_grep {"pattern":"Oyelaran"}');
    assert.match(lastTurn()?.results.join("\n") ?? "", /harbour master is called Oyelaran/);
    await pi.say('CALL lcm_describe {"id":"sum_unknown"}');
    await pi.say("turn 9");
    await pi.say("turn 10");
    await assertStored(home);
    await pi.end();
    assert.match(await printPi(home, ["-c", "-p", "still there?"]), /Heard: still there\?/);
    const [conversation, ...others] = await assertStored(home);
    assert.deepEqual(others, []);
    assert.equal(conversation?.folder, home.work);
    assert.match(shownIn(lastTurn()), /turn 1\n/);
  });

  it("are the same conversation for an import of Pi's file, which brings nothing new", async () => {
    const [file = ""] = transcriptFiles(home);
    const launcher = join(pluginFolder(), "bin", "lcm.js");
    const { status, stderr } = spawnSync(process.execPath, [launcher, "import", file], {
      env: home.env,
      encoding: "utf8",
    });
    assert.equal(status, 0, stderr);
    assert.equal((await assertStored(home)).length, 1);
  });

  it("are nothing to us if the settings exclude the session", async () => {
    const ignored = createPiHome(makeScratch("pi-ignored"), server, { env: { LCM_IGNORE_SESSION_PATTERNS: "pi:**" } });
    const pi = await startPi(ignored);
    await pi.say("a secret");
    await pi.ask({ type: "prompt", message: "/lcm" });
    const { message } = await pi.event("extension_ui_request");
    assert.match(message, /It is ignored/);
    await pi.end();
    assert.match(shownIn(lastTurn()), /a secret/);
    await assert.rejects(
      withStore(ignored, async ({ store }) => await store.status()),
      "no database was made",
    );
  });
});

describe("a compaction in Pi", () => {
  it("is ours, stored as Pi's own, and Pi continues from it without us", async () => {
    const home = createPiHome(makeScratch("pi-compact"), server, smallTail);
    const pi = await startPi(home);
    for (let turn = 1; turn <= 12; turn++) await pi.say(`stone ${turn} ${filler(150)}`);
    const { success, error } = await pi.ask({ type: "compact" });
    assert.ok(success, error);
    await pi.say("after it");
    await pi.end();
    const compaction = transcriptsOf(home)
      .flat()
      .find(({ type }) => type === "compaction");
    assert.equal(compaction?.fromHook, true);
    assert.match(compaction.summary, /^<summary id="sum_/);
    const [conversation] = await assertStored(home);
    assert(conversation);
    assert.match(shownIn(lastTurn()), /^<summary id="sum_/);
    const firstRaw = await withStore(home, async ({ store }) => {
      const [item] = await store.context(conversation.id, { kind: "message", limit: 1 });
      return item?.kind === "message" ? (await store.messages({ ids: [item.id] }))[0]?.key : null;
    });
    assert.equal(compaction.firstKeptEntryId, firstRaw, "the first message that the text does not cover");

    await printPi(home, ["--no-extensions", "-c", "-p", "without you"]);
    const alone = lastTurn();
    assert.deepEqual(alone?.tools, ["read", "bash", "edit", "write"]);
    assert.match(shownIn(alone), /compacted into the following summary[^]*<summary id="sum_/);
    // What the text does not cover is there, and nothing else.
    const rows = transcriptsOf(home).flat();
    const firstKept = rows.find(({ id }) => id === compaction.firstKeptEntryId);
    const kept = Number(/stone (\d+)/.exec(JSON.stringify(firstKept.message))?.[1]);
    for (let turn = kept; turn <= 12; turn++) assert.match(shownIn(alone), new RegExp(`stone ${turn} pebble`));
    assert.doesNotMatch(shownIn(alone), new RegExp(`stone ${kept - 1} pebble0 pebble1 pebble2`));

    await printPi(home, ["-c", "-p", "with you again"]);
    await assertStored(home);
  });

  it("does not happen, and says why, if everything is in the fresh tail", async () => {
    const home = createPiHome(makeScratch("pi-needless"), server);
    const pi = await startPi(home);
    for (let turn = 1; turn <= 6; turn++) await pi.say(`stone ${turn} ${filler(300)}`);
    const { success } = await pi.ask({ type: "compact" });
    assert.equal(success, false);
    assert.match((await pi.event("extension_ui_request")).message, /^lossless-claw: nothing was folded/);
    await pi.end();
    assert.deepEqual(
      server.asked.filter((asked) => !isTurn(asked)),
      [],
    );
  });
});

describe("guarantee 13: a prompt that the provider refuses as too long", () => {
  it("is followed by smaller ones, and the turn gets its answer", async () => {
    const home = createPiHome(makeScratch("pi-overflow"), server, { window: 64_000, ...smallTail });
    // The model's real window is much smaller than Pi believes.
    const charactersMax = 60_000;
    const sizes: number[] = [];
    let refused = 0;
    server.script((asked) => {
      const size = JSON.stringify(asked.body).length;
      if (!isTurn(asked)) return obey(asked);
      sizes.push(size);
      if (size <= charactersMax) return obey(asked);
      refused += 1;
      return { kind: "overflow" };
    });
    const pi = await startPi(home);
    for (let turn = 1; turn <= 30; turn++) {
      await pi.say(`stone ${turn} ${filler(250)}`);
      const answered = sizes.at(-1) ?? 0;
      assert.ok(answered <= charactersMax, `turn ${turn} was refused with ${answered} characters`);
    }
    await pi.end();
    assert.ok(refused >= 1, "nothing was too long");
    assert.ok(refused <= 2, `${refused} prompts were refused`);
    for (const [at, size] of sizes.entries())
      if (size > charactersMax) assert.ok((sizes[at + 1] ?? Infinity) < size, "the same prompt was sent again");
    await assertStored(home);
  });
});

describe("Pi on a Node that cannot open our database", () => {
  it("keeps the engine in a side process, which uses Pi's model", async () => {
    const home = createPiHome(makeScratch("pi-aside"), server, { isOurs: false, ...smallTail });
    const file = join(home.folder, "older.js");
    writeFileSync(
      file,
      `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "22.19.0" } });
       export { default } from ${JSON.stringify(join(pluginFolder(), "dist", "hosts", "pi", "extension.js"))};`,
    );
    const [node, started] = [join(home.folder, "node"), join(home.folder, "started")];
    writeFileSync(node, `#!/bin/sh\necho "$2" >> ${started}\nexec ${process.execPath} "$@"\n`, { mode: 0o755 });
    const pi = await startPi({ ...home, env: { ...home.env, LCM_NODE: node } }, ["-e", file]);
    for (let turn = 1; turn <= 8; turn++) await pi.say(`stone ${turn} ${filler(150)}`);
    await pi.say('CALL lcm_grep {"pattern":"stone"}');
    assert.match(lastTurn()?.results.join("\n") ?? "", /stone 1 pebble0/);
    const { success, error } = await pi.ask({ type: "compact" });
    assert.ok(success, error);
    await pi.say("after it");
    assert.match(shownIn(lastTurn()), /^<summary id="sum_/);
    await pi.end();
    assert.equal(readFileSync(started, "utf8"), "serve\n", "one process, and no engine in Pi");
    const [conversation] = await assertStored(home);
    assert(conversation);
    const summaries = await withStore(
      home,
      async ({ store }) => await store.summaries({ conversation: conversation.id }),
    );
    assert.deepEqual(new Set(summaries.map(({ level }) => level)), new Set(["normal"]));
  });
});

describe("what people and extensions change in a session of Pi", () => {
  it("/tree: the prompt follows the new branch, and the old one stays stored", async () => {
    const { home, words } = withHelper("pi-tree");
    const pi = await startPi(home, words);
    for (const text of ["common ground", "left path", "left end"]) await pi.say(text);
    await pi.ask({ type: "prompt", message: `/go ${idOf(home, "Heard: common ground")}` });
    await pi.say("right path");
    assert.match(shownIn(lastTurn()), /common ground[^]*right path/);
    assert.doesNotMatch(shownIn(lastTurn()), /left path/);
    await assertStored(home);
    await pi.ask({ type: "prompt", message: `/go ${idOf(home, "Heard: left end")} summarize` });
    await pi.say("left again");
    assert.match(shownIn(lastTurn()), /left path[^]*left end[^]*\[branchSummary\][^]*Summary[^]*left again/);
    assert.doesNotMatch(shownIn(lastTurn()), /right path\n/);
    await pi.end();
    await assertStored(home);
  });

  it("/fork: the copy is a conversation of its own", async () => {
    const { home } = withHelper("pi-fork");
    const pi = await startPi(home);
    for (const text of ["first words", "second words", "third words"]) await pi.say(text);
    await pi.ask({ type: "fork", entryId: idOf(home, "third words") });
    await pi.say("other words");
    assert.match(shownIn(lastTurn()), /second words[^]*other words/);
    assert.doesNotMatch(shownIn(lastTurn()), /third words/);
    await pi.end();
    assert.equal((await assertStored(home)).length, 2);
  });

  it("a message that was edited is shown as edited, one that was hidden is not, and both stay stored", async () => {
    const { home, words } = withHelper("pi-edit");
    const pi = await startPi(home, words);
    for (const text of ["the hidden one", "the plain one", "the edited one"]) await pi.say(text);
    for (const edit of [idOf(home, "the hidden one"), `${idOf(home, "the edited one")} REPLACED`]) {
      await pi.ask({ type: "prompt", message: `/edit ${edit}` });
      await pi.say("next");
    }
    await pi.say("what do you see?");
    const said = lastTurn()?.messages.flatMap(({ role, text }) => (role === "user" ? [text] : []));
    assert.deepEqual(said, [
      "[The conversation begins here.]",
      "the plain one",
      "REPLACED",
      "next",
      "next",
      "what do you see?",
    ]);
    await pi.end();
    await assertStored(home);
  });

  it("what an extension says is part of the prompt", async () => {
    const { home, words } = withHelper("pi-inject");
    const pi = await startPi(home, words);
    await pi.say("hello");
    await pi.ask({ type: "prompt", message: "/inject the tide turns at nine" });
    await pi.say("when?");
    assert.match(shownIn(lastTurn()), /hello[^]*the tide turns at nine[^]*when\?/);
    await pi.end();
    await assertStored(home);
  });
});
