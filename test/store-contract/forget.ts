/** Contract: forgotten content is gone from everything stored, down to the bytes on disk, and does not come back. */

import assert from "node:assert/strict";
import { describe } from "node:test";
import { entryFromStore, messageFromStore } from "../../src/core/messages/codec.ts";
import type { ConversationId, MessageId } from "../../src/core/model/types.ts";
import type { Store } from "../../src/core/model/store.ts";
import { firstLine } from "../../src/core/base/excerpt.ts";
import { journalIn } from "./dump.ts";
import { createHost, toAppendable, user } from "../support/scripted-host.ts";
import {
  findAll,
  ask,
  compaction,
  deliver,
  each,
  foldPlaces,
  forgetRowsAlone,
  isKept,
  itOn,
  itOnFile,
  newFile,
  nowhere,
  numbered,
  onTalk,
  refuses,
  say,
  shownTexts,
  summary,
} from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";
import { forgottenMark } from "../../src/core/model/types.ts";

/** One word, so that an index would store it whole; no other word here starts with a prefix of it. */
const secret = "Zq7xKv93LmQw81";
/** A secret that JSON writes differently. */
const quoted = 'Yj5"\\w\n82Hx';

/** A conversation with the secret everywhere. */
async function tell(store: Store, word: string) {
  const talk = await store.open({ sessionId: "confiding" });
  const host = createHost("h");
  host.says(user("good morning"));
  host.says(user(`the password is ${word}, keep it`));
  host.says({
    role: "assistant",
    content: [
      { type: "thinking", thinking: `so ${word} it is` },
      {
        type: "toolCall",
        id: "c1",
        name: "login",
        arguments: { password: word, nested: JSON.stringify({ again: word }) },
      },
    ],
  });
  host.says({
    role: "toolResult",
    toolCallId: "c1",
    toolName: "login",
    content: [{ type: "image", caption: word }],
    details: { [word]: 1 },
  });
  host.says({ role: "assistant", content: "logged in", note: word });
  host.notes("custom", { data: [word] });
  await say(store, talk, host, "thank you");
  await store.index(1_000);
  const leaf = await foldPlaces(store, talk.id, [1, 2], `was told that the password is ${word}`);
  await store.index(1_000);
  await store.rewrite(
    { summary: leaf, revision: 0 },
    summary(`was told ${word}`, { previousContext: `before ${word}` }),
  );
  await store.setTitle(talk.id, `About ${word}`);
  await store.recordCompaction(compaction(talk.id, { message: `stopped: the provider would not take ${word}` }));
  const file = await store.saveFile(
    newFile(talk.id, `line one\n${word} in a file\nline three`, {
      name: `${word}.txt`,
      exploration: `a file with ${word}`,
    }),
  );
  return { talk, host, leaf, file };
}

/** The secret verbatim, in lower case as in an index, and as JSON writes it; in UTF-8 and without its first letters. */
async function traces(subject: StoreUnderTest, folder: string, word: string): Promise<readonly string[]> {
  const escaped = JSON.stringify(word).slice(1, -1);
  const forms = new Set([
    word,
    word.toLowerCase(),
    escaped,
    JSON.stringify(escaped).slice(1, -1),
    word.toLowerCase().slice(2),
  ]);
  const kept: string[] = [];
  for (const form of forms) if (await isKept(subject, folder, form)) kept.push(form);
  return kept;
}

async function saidAnywhere(store: Store, conversation: ConversationId): Promise<string> {
  const messages = await store.messages({ conversation });
  const summaries = await store.summaries({ conversation });
  const files = await store.files(conversation);
  return JSON.stringify([
    messages.map((message) => [messageFromStore(message), entryFromStore(message), message]),
    summaries,
    await store.journal({ limit: 100 }),
    await store.compactions(null, 100),
    await store.entries(conversation, 0, Number.MAX_SAFE_INTEGER),
    files,
    await Promise.all(files.map(({ id }) => store.fileContent(id))),
  ]);
}

const found = async (store: Store, pattern: string, mode: "regex" | "full_text"): Promise<number> =>
  (await findAll(store, ask(pattern, { mode }))).length;

export function testForget(subject: StoreUnderTest): void {
  const it = itOn(subject, onTalk);

  describe("forgetting", () => {
    for (const [kind, word] of [
      ["one word", secret],
      ["one that JSON writes differently", quoted],
    ] as const) {
      it(
        `a secret is gone from rows, search, summaries, journal, lines, files, and from the bytes on disk (${kind})`,
        async ({ store, folder }) => {
          const { talk, leaf, file } = await tell(store, word);
          assert.notDeepEqual(await traces(subject, folder, word), []);
          const plan = await store.planForget(null, { kind: "secret", text: word });
          assert.deepEqual(
            [plan.messages.length, plan.summaries, plan.files, plan.journal.length, plan.entries],
            [4, [leaf], [file.id], 1, 3],
          );
          const outcome = await store.forget(null, plan);
          assert.deepEqual(outcome, { kind: "written", removed: 10 });

          assert.ok(!(await saidAnywhere(store, talk.id)).includes(JSON.stringify(word).slice(1, -1)));
          assert.deepEqual(await traces(subject, folder, word), []);
          if (word === secret)
            for (const mode of ["regex", "full_text"] as const) assert.equal(await found(store, word, mode), 0, mode);
          assert.deepEqual((await store.planForget(null, { kind: "secret", text: word })).messages, []);

          const [morning, told, called] = await store.messages({ conversation: talk.id });
          assert.equal(morning?.text, "good morning");
          assert.equal(told?.text, `the password is ${forgottenMark}, keep it`);
          assert.deepEqual(messageFromStore(called ?? assert.fail()), {
            role: "assistant",
            content: [
              { type: "thinking", thinking: `so ${forgottenMark} it is` },
              {
                type: "toolCall",
                id: "c1",
                name: "login",
                arguments: { password: forgottenMark, nested: JSON.stringify({ again: forgottenMark }) },
              },
            ],
          });
          const [marked] = await store.summaries({ ids: [leaf] });
          assert.equal(marked?.text, `was told ${forgottenMark}`);
          assert.match(marked.rewriteReason ?? "", /forgotten/);
          assert.equal(await store.fileContent(file.id), `line one\n${forgottenMark} in a file\nline three`);
          assert.equal((await store.conversation(talk.id))?.title, `About ${forgottenMark}`);
          const kept = await store.file(file.id);
          assert.equal(kept?.name, `${forgottenMark}.txt`);
          assert.equal(kept.bytes, Buffer.byteLength(await store.fileContent(file.id)));
        },
        ["summary_outdated"],
      );
    }

    it("what was only waiting to be indexed is gone too, and the rest of it is found", async (scene) => {
      const { store, folder, talk, host } = scene;
      await say(store, talk, host, `first ${secret} pangolin`);
      await store.index(1_000);
      await say(store, talk, host, `second ${secret} pangolin`);
      await found(store, "pangolin", "full_text"); // A reader has seen it.
      await store.forget(talk.id, await store.planForget(talk.id, { kind: "secret", text: secret }));
      assert.equal(await found(store, secret, "full_text"), 0);
      assert.equal(await found(store, "pangolin", "full_text"), 2);
      await store.index(1_000);
      assert.equal(await found(store, "pangolin", "full_text"), 2);
      assert.deepEqual(await traces(subject, folder, secret), []);
    });

    it(
      "a message keeps its position, its summaries are marked, and a replay does not bring it back",
      async ({ store, folder }) => {
        const { talk, host, leaf } = await tell(store, secret);
        const [, told = assert.fail()] = await store.messages({ conversation: talk.id });
        const plan = await store.planForget(talk.id, { kind: "message", id: told.id });
        assert.deepEqual([plan.messages, plan.summaries], [[told.id], [leaf]]);
        assert.equal((await store.forget(talk.id, plan)).kind, "written");
        const [, left] = await store.messages({ conversation: talk.id });
        assert.deepEqual(messageFromStore(left ?? assert.fail()), { role: "user", content: forgottenMark });
        assert.equal(left?.key, told.key);
        assert.equal(await found(store, "the password is", "regex"), 0);
        assert.match((await store.summaries({ ids: [leaf] }))[0]?.rewriteReason ?? "", /forgotten/);
        assert.ok(!(await isKept(subject, folder, "keep it")));

        const replay = await store.append(talk.id, host.entries.map(toAppendable));
        assert.equal(replay.messages.length, 0);
        assert.deepEqual(replay.differing, []);
        assert.equal((await store.messages({ conversation: talk.id }))[1]?.text, forgottenMark);
        assert.equal((await shownTexts(store, talk.id))[0], "good morning");
      },
      ["summary_outdated"],
    );

    it("a result whose content is forgotten still belongs to its call", async ({ store, talk, host }) => {
      host.says({
        role: "assistant",
        content: [{ type: "toolCall", id: "c1", name: "read", arguments: { path: "a" } }],
      });
      host.says({
        role: "toolResult",
        toolCallId: "c1",
        toolName: "read",
        content: [{ type: "text", text: "private" }],
        isError: false,
        timestamp: 5,
      });
      const { messages } = await deliver(store, talk, host);
      const id = messages[1] ?? (0 as MessageId);
      await store.forget(talk.id, await store.planForget(talk.id, { kind: "message", id }));
      const [, result] = await store.messages({ conversation: talk.id });
      assert.deepEqual(messageFromStore(result ?? assert.fail()), {
        role: "toolResult",
        toolCallId: "c1",
        toolName: "read",
        isError: false,
        timestamp: 5,
        content: forgottenMark,
      });
    });

    it("stays within its conversation when one is given", async ({ store }) => {
      const here = await store.open({ sessionId: "here" });
      const there = await store.open({ sessionId: "there" });
      for (const [name, talk] of [
        ["a", here],
        ["b", there],
      ] as const) {
        await say(store, talk, createHost(name), `${secret} was said`);
      }
      await store.forget(here.id, await store.planForget(here.id, { kind: "secret", text: secret }));
      assert.deepEqual(await shownTexts(store, here.id), [`${forgottenMark} was said`]);
      assert.deepEqual(await shownTexts(store, there.id), [`${secret} was said`]);
      const [other] = await store.messages({ conversation: there.id });
      await refuses("not_found", () =>
        store.planForget(here.id, { kind: "message", id: other?.id ?? (0 as MessageId) }),
      );
    });

    it("an outdated plan is stale, and nothing is removed", async ({ store }) => {
      const { talk, host } = await tell(store, secret);
      const plan = await store.planForget(talk.id, { kind: "secret", text: secret });
      await say(store, talk, host, `once more: ${secret}`);
      assert.equal((await store.forget(talk.id, plan)).kind, "stale");
      assert.ok((await found(store, secret, "regex")) > 0);
      const wider = await store.planForget(talk.id, { kind: "secret", text: secret });
      await store.saveFile(newFile(talk.id, secret));
      assert.equal((await store.forget(talk.id, wider)).kind, "stale");
      assert.equal((await store.planForget(talk.id, { kind: "secret", text: secret })).messages.length, 5);
    });

    it("refuses what is too short to be a secret, and an unknown message", async ({ store }) => {
      await refuses("invalid", () => store.planForget(null, { kind: "secret", text: "abc" }));
      for (const text of ["content", "block", "forgotten"])
        await refuses("invalid", () => store.planForget(null, { kind: "secret", text }));
      await refuses("not_found", () => store.planForget(null, { kind: "message", id: 404 as MessageId }));
      await refuses("not_found", () => store.planForget(nowhere, { kind: "message", id: 404 as MessageId }));
      const nothing = await store.planForget(null, { kind: "secret", text: "never said" });
      assert.deepEqual(await store.forget(null, nothing), { kind: "written", removed: 0 });
    });

    it(
      "totals and times of the remaining rows add up, in the context and below it",
      async ({ store }) => {
        const { talk } = await tell(store, secret);
        const before = (await store.conversation(talk.id))?.totals;
        await store.forget(null, await store.planForget(null, { kind: "secret", text: secret }));
        const after = (await store.conversation(talk.id))?.totals;
        assert.equal(after?.messages, before?.messages);
        assert.notEqual(after?.messageTokens, before?.messageTokens);
      },
      ["summary_outdated"],
    );

    it(
      "a message is also forgotten in the conversations it was transplanted into",
      async ({ store }) => {
        const { talk } = await tell(store, secret);
        const target = await store.open({ sessionId: "heir" });
        await store.transplant({ source: talk.id, target: target.id });
        const told = (await store.messages({ conversation: talk.id })).find(({ text }) => text.includes(secret));
        assert.ok(told !== undefined);
        const plan = await store.planForget(talk.id, { kind: "message", id: told.id });
        assert.equal(plan.messages.length, 2);
        await store.forget(talk.id, plan);
        const copies = await store.messages({ conversation: target.id });
        assert.ok(copies.some(({ text }) => text === forgottenMark));
        assert.ok(!copies.some(({ text }) => text === told.text));
      },
      ["summary_outdated"],
    );

    it(
      "forgetting a copy also forgets the original and the other copies",
      async ({ store, folder }) => {
        const { talk } = await tell(store, "harmless");
        const heirs = [await store.open({ sessionId: "heir" }), await store.open({ sessionId: "other heir" })];
        for (const heir of heirs) await store.transplant({ source: talk.id, target: heir.id });
        const copy = (await store.messages({ conversation: heirs[1]?.id ?? nowhere })).find(({ text }) =>
          text.includes("keep it"),
        );
        assert.ok(copy !== undefined);
        const plan = await store.planForget(null, { kind: "message", id: copy.id });
        assert.equal(plan.messages.length, 3);
        assert.equal(plan.summaries.length, 3);
        await store.forget(null, plan);
        assert.equal(await found(store, "keep it", "regex"), 0);
        assert.ok(!(await isKept(subject, folder, "keep it")));
      },
      ["summary_outdated"],
    );

    it("a title made from a message goes with it; a title set by a person stays", async ({ store, folder }) => {
      const talk = await store.open({ sessionId: "named" });
      const host = createHost("h");
      const said = `my diary says ${secret}, and a good deal more than would ever fit into the title of a conversation`;
      const { messages } = await say(store, talk, host, `\n${said}`, "thank you");
      await store.setTitle(talk.id, firstLine(said, 80));
      const [first, second] = messages;
      assert.ok(first !== undefined && second !== undefined);
      assert.equal((await store.planForget(null, { kind: "message", id: second })).entries, 0);
      const plan = await store.planForget(null, { kind: "message", id: first });
      assert.equal(plan.entries, 1);
      assert.deepEqual(await store.forget(null, plan), { kind: "written", removed: 2 });
      assert.equal((await store.conversation(talk.id))?.title, null);
      assert.deepEqual(await traces(subject, folder, secret), []);
      await store.setTitle(talk.id, "Diaries");
      assert.equal((await store.planForget(null, { kind: "message", id: first })).entries, 0);
    });

    it("a secret that is only in a title is found there, however it is written", async ({ store, folder }) => {
      const talk = await store.open({ sessionId: "named" });
      const escaped = JSON.stringify(quoted).slice(1, -1);
      await store.setTitle(talk.id, `About ${escaped}`);
      const plan = await store.planForget(null, { kind: "secret", text: quoted });
      assert.deepEqual([plan.messages, plan.entries], [[], 1]);
      assert.deepEqual(await store.forget(null, plan), { kind: "written", removed: 1 });
      assert.equal((await store.conversation(talk.id))?.title, `About ${forgottenMark}`);
      assert.deepEqual(await traces(subject, folder, quoted), []);
    });

    it("a secret that is part of JSON, or spans blocks, takes the message and the line with it", async (scene) => {
      const { store, folder, talk, host } = scene;
      host.says({
        role: "assistant",
        content: [{ type: "toolCall", id: "c1", name: "login", arguments: { token: secret } }],
      });
      host.says({
        role: "assistant",
        content: [
          { type: "text", text: "begins Wm3tRz71" },
          { type: "text", text: "Pk5nYd26 ends" },
        ],
      });
      host.notes("custom", { token: secret });
      await deliver(store, talk, host);
      for (const text of [`"token":"${secret}"`, "Wm3tRz71\nPk5nYd26"]) {
        const plan = await store.planForget(null, { kind: "secret", text });
        assert.equal(plan.messages.length, 1);
        assert.equal((await store.forget(null, plan)).kind, "written");
        const left = await store.planForget(null, { kind: "secret", text });
        assert.deepEqual([left.messages, left.entries], [[], 0]);
      }
      for (const word of [secret, "Wm3tRz71", "Pk5nYd26"]) assert.deepEqual(await traces(subject, folder, word), []);
      assert.deepEqual(await shownTexts(store, talk.id), [forgottenMark, forgottenMark]);
      for (const { raw } of await store.entries(talk.id, 0, Number.MAX_SAFE_INTEGER))
        assert.ok(raw.includes(forgottenMark) && JSON.parse(raw) !== null);
      assert.deepEqual((await deliver(store, talk, host)).differing, []);
    });

    itOnFile(subject, onTalk)(
      "what an interrupted forgetting left in the pages is cleared by the next plan",
      async (scene) => {
        const { store, folder, path, talk, host } = scene;
        await say(store, talk, host, ...numbered(20, (index) => `number ${index} is ${secret}`));
        await store.index(1_000);
        const target = { kind: "secret", text: secret } as const;
        const plan = await store.planForget(null, target);
        await forgetRowsAlone(subject, path, plan);
        assert.notDeepEqual(await traces(subject, folder, secret), []);
        assert.deepEqual((await store.planForget(null, target)).messages, []);
        assert.deepEqual(await traces(subject, folder, secret), []);
        assert.deepEqual(each(await store.journal({ limit: 10 }), "operation"), ["forget"]);
        assert.match((await journalIn(subject, path))[0]?.text ?? "", /^\{\}/);
      },
    );
  });
}
