/** What is left on the disk when storing or forgetting a file ends, however it ends. */

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { makeScratch } from "../../test/support/scratch.ts";
import { LcmError } from "../core/base/errors.ts";
import type { ContentStore } from "../core/model/content-store.ts";
import type { ConversationId } from "../core/model/types.ts";
import { openFolder } from "./content/folder.ts";
import { isScrubPending } from "./maintenance/forget.ts";
import { rowSteps, writes } from "./operations.ts";
import { connect } from "./sqlite/connect.ts";
import { leftovers } from "./sqlite/leftovers.ts";
import { createQueue, createRunner } from "./sqlite/runner.ts";
import { createForgetting, type Forgetting } from "./forgetting.ts";
import { systemNow } from "./sqlite/store.ts";
import { rewriteFile } from "./sqlite/vacuum.ts";
import { saveFile } from "./stored-files.ts";
import { messageToStore } from "../core/messages/codec.ts";

interface Ground {
  readonly files: Forgetting;
  readonly conversation: ConversationId;
  readonly contents: () => readonly string[];
}

async function onFiles(test: (ground: Ground) => Promise<void>): Promise<void> {
  const folder = makeScratch("stored-files");
  const db = connect(join(folder, "lcm.db"), false);
  const { read, write, retry } = createQueue(createRunner(db), 1_000, () => undefined);
  let digits = 0;
  const deps = { now: systemNow, hex16: () => String(++digits).padStart(16, "0"), leftovers };
  const content = openFolder(join(folder, "files"));
  const { id: conversation } = await write(() => writes.open(deps, { sessionId: "s" }));
  const contents = (): readonly string[] =>
    readdirSync(join(folder, "files"), { recursive: true, encoding: "utf8" }).filter((name) => name.includes("file_"));
  try {
    const erase = async (): Promise<void> => await retry(() => rewriteFile(db));
    await test({ files: { content, deps, read, write, erase, isReadOnly: false }, conversation, contents });
  } finally {
    db.close();
  }
}

const text = { name: null, mimeType: null, encoding: "utf8", exploration: null } as const;

describe("storing a file", () => {
  it("leaves nothing if its row cannot be written, even after the content was put in its place", async () => {
    await onFiles(async ({ files, conversation, contents }) => {
      const full = new LcmError("unavailable", "the disk is full");
      const failing: typeof files.write = async (script) =>
        await files.write(function* () {
          yield* script();
          throw full;
        });
      await assert.rejects(saveFile({ ...files, write: failing }, { ...text, conversation, content: "a heron" }), full);
      assert.deepEqual(contents(), []);
    });
  });

  it("has removed its draft when it returns, also if another call has stored the same content", async () => {
    await onFiles(async ({ files, conversation, contents }) => {
      let drops = 0;
      const content: ContentStore = {
        ...files.content,
        async put(id, file) {
          const draft = await files.content.put(id, file);
          const drop = async (): Promise<void> => {
            await sleep(20);
            await draft.drop();
            drops += 1;
          };
          return { ...draft, drop };
        },
      };
      const save = async () => await saveFile({ ...files, content }, { ...text, conversation, content: "a heron" });
      const [one, other] = await Promise.all([save(), save()]);
      assert.equal(one.id, other.id);
      assert.equal(drops, 2);
      assert.equal(contents().length, 1);
    });
  });
});

/** The same files on a slow disk: whoever does not wait returns too early. */
const slowly = (files: Forgetting): Forgetting => ({
  ...files,
  content: {
    ...files.content,
    async replace(...args) {
      await sleep(300);
      return await files.content.replace(...args);
    },
    async remove(storageUri) {
      await sleep(100);
      await files.content.remove(storageUri);
    },
  },
  async erase() {
    await sleep(5);
    await files.erase();
  },
});

describe("what has returned is done", () => {
  it("a forget: rows, files, files without a row, and the pages of the database", async () => {
    await onFiles(async ({ files, conversation, contents }) => {
      const content = "a heron says shibboleth";
      const { id, storageUri } = await saveFile(files, { ...text, conversation, content });
      const orphan = await files.content.put("file_00000000000000ff", { ...text, conversation, content });
      orphan.keep();
      assert.equal(contents().length, 2);
      const forgetting = createForgetting(slowly(files));
      const plan = await forgetting.planForget(null, { kind: "secret", text: "shibboleth" });
      assert.equal(plan.files.length, 2);
      assert.equal((await forgetting.forget(null, plan)).kind, "written");
      assert.equal(await files.read(isScrubPending), false);
      assert.equal(contents().length, 1);
      assert.doesNotMatch(await files.content.read({ id, storageUri, encoding: "utf8" }), /shibboleth/);
    });
  });

  it("storing a file again whose content was lost", async () => {
    await onFiles(async ({ files, conversation, contents }) => {
      const save = async () => await saveFile(slowly(files), { ...text, conversation, content: "a heron" });
      const { storageUri } = await save();
      await files.content.remove(storageUri);
      assert.deepEqual(contents(), []);
      await save();
      assert.equal(contents().length, 1);
    });
  });
});

describe("a forget that was interrupted after its rows were written", () => {
  for (const next of ["planForget", "forget"] as const) {
    it(`is finished before the next ${next} returns`, async () => {
      await onFiles(async ({ files, conversation }) => {
        const message = messageToStore(
          { role: "user", content: "the word is shibboleth" },
          { key: "k", at: systemNow() },
        );
        await files.write(() => writes.append(files.deps, conversation, [{ kind: "message", message }]));
        const target = { kind: "secret", text: "shibboleth" } as const;
        const plan = await files.read(() => rowSteps.planForget(files.deps, null, target));
        await files.write(() => rowSteps.forget(files.deps, null, { ...plan, files: [] }));
        assert.equal(await files.read(isScrubPending), true);
        const forgetting = createForgetting(slowly(files));
        if (next === "planForget") await forgetting.planForget(null, target);
        else await forgetting.forget(null, { ...plan, files: ["file_0000000000000099"] });
        assert.equal(await files.read(isScrubPending), false);
      });
    });
  }
});
