/** Content in an S3-compatible store: a real one on loopback, which checks our signatures. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import S3rver from "s3rver";
import { makeScratch } from "../../../test/support/scratch.ts";
import { LcmError } from "../../core/base/errors.ts";
import type { ContentStore } from "../../core/model/content-store.ts";
import type { NewFile } from "../../core/model/store.ts";
import type { ConversationId, FileId } from "../../core/model/types.ts";
import { openBucket, signed } from "./bucket.ts";

const credentials = { AWS_ACCESS_KEY_ID: "S3RVER", AWS_SECRET_ACCESS_KEY: "S3RVER" };
const store = new S3rver({
  port: 0,
  address: "127.0.0.1",
  silent: true,
  directory: makeScratch("s3"),
  configureBuckets: [{ name: "contents" }],
});
let endpoint = "";
before(async () => {
  const { port } = await store.run();
  endpoint = `http://127.0.0.1:${port}`;
});
after(async () => await store.close());

const opened = (env: Readonly<Record<string, string>> = credentials, url = "s3://contents/team a/lcm"): ContentStore =>
  openBucket({ url, endpoint, env });

const file = (content: string, encoding: NewFile["encoding"] = "utf8"): NewFile => ({
  conversation: 7 as ConversationId,
  name: "notes (1).txt",
  mimeType: null,
  exploration: null,
  encoding,
  content,
});
const id = (digit: string): FileId => `file_${digit.padStart(16, "0")}`;

describe("content in a bucket", () => {
  it("is signed as Amazon's own example", () => {
    const headers = signed(
      {
        region: "us-east-1",
        keyId: "AKIAIOSFODNN7EXAMPLE",
        secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        token: undefined,
      },
      {
        method: "GET",
        url: new URL("https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J"),
        body: Buffer.alloc(0),
        at: new Date("2013-05-24T00:00:00Z"),
      },
    );
    assert.match(
      headers["authorization"] ?? "",
      /Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7$/,
    );
  });

  it("reads back as it was stored, is replaced, listed and removed", async () => {
    const content = opened();
    const text = "Wie ein Buch 🎈\n".repeat(80_000);
    const draft = await content.put(id("1"), file(text));
    draft.keep();
    await draft.drop();
    const { storageUri } = draft;
    assert.equal(storageUri, "7/file_0000000000000001.txt");
    assert.equal(await content.read({ id: id("1"), storageUri, encoding: "utf8" }), text);
    assert.equal((await content.facts(storageUri))?.bytes, Buffer.byteLength(text));
    assert.equal(await content.contains(storageUri, ["osprey", "🎈"]), true);
    assert.equal(await content.contains(storageUri, ["osprey"]), false);
    await content.replace(storageUri, "forgotten", "utf8");
    assert.equal(await content.read({ id: id("1"), storageUri, encoding: "utf8" }), "forgotten");
    assert.deepEqual(await content.list(7 as ConversationId), [{ id: id("1"), storageUri, isDraft: false }]);
    assert.deepEqual(await content.list(8 as ConversationId), []);
    await content.remove(storageUri);
    await content.remove(storageUri);
    assert.equal(await content.facts(storageUri), null);
    await assert.rejects(content.read({ id: id("1"), storageUri, encoding: "utf8" }), { code: "unavailable" });
  });

  it("that was not recorded is removed", async () => {
    const content = opened();
    const draft = await content.put(id("2"), file(Buffer.from([0, 255, 1]).toString("base64"), "base64"));
    assert.equal((await content.facts(draft.storageUri))?.bytes, 3);
    await draft.drop();
    assert.equal(await content.facts(draft.storageUri), null);
  });

  it("is listed beyond one page", async () => {
    // The store above cannot list more than one page, so this one answers with two.
    const names = [
      "1/file_0000000000000001.txt",
      "1/file_0000000000000002.bin",
      "1/notes.txt",
      "2/file_0000000000000003.txt",
    ];
    const server = createServer(({ url = "" }, answer) => {
      const after = new URL(url, "http://loopback").searchParams.get("start-after") ?? "";
      const left = names.map((name) => `lcm/${name}`).filter((key) => key > after);
      const keys = left.slice(0, 3).map((key) => `<Contents><Key>${key}</Key></Contents>`);
      answer.end(`<ListBucketResult><IsTruncated>${left.length > 3}</IsTruncated>${keys.join("")}</ListBucketResult>`);
    });
    await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
    const { port } = server.address() as AddressInfo;
    const content = openBucket({ url: "s3://contents/lcm", endpoint: `http://127.0.0.1:${port}`, env: credentials });
    assert.deepEqual(
      (await content.list(null)).map(({ storageUri }) => storageUri),
      names.filter((name) => !name.endsWith("notes.txt")),
    );
    server.close();
  });

  it("needs credentials, an address that can be read, and a bucket", async () => {
    assert.throws(
      () => opened({}),
      (error) => error instanceof LcmError && error.code === "denied" && /AWS_ACCESS_KEY_ID/.test(error.hint ?? ""),
    );
    assert.throws(() => opened(credentials, "s3://x"), { code: "invalid" });
    const wrong = opened({ AWS_ACCESS_KEY_ID: "NOBODY", AWS_SECRET_ACCESS_KEY: "quokka-4711" });
    await assert.rejects(
      wrong.put(id("3"), file("x")),
      (error) => error instanceof LcmError && error.code === "denied" && !error.message.includes("quokka"),
    );
    await assert.rejects(opened(credentials, "s3://elsewhere/lcm").list(null), { code: "unavailable" });
  });
});
