/** What a request with a credential may do: go to one address, and read so much of its answer. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { globSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { answerBytesMax, guardedFetch } from "./guarded-fetch.ts";

describe("guarantee 32: credentials and conversations go only to the configured host", () => {
  it("a redirect to another path of the same host is not followed, and its address not repeated", async () => {
    const answered = guardedFetch(async () => {
      return await Promise.resolve(new Response(null, { status: 307, headers: { location: "/v2?key=shibboleth" } }));
    });
    await assert.rejects(answered("http://127.0.0.1/v1"), {
      name: "LcmError",
      code: "denied",
      message: "the server redirects to another path (HTTP 307), which is not followed",
    });
  });

  it("a redirect to nowhere is one, too", async () => {
    const answered = guardedFetch(async () => await Promise.resolve(new Response(null, { status: 300 })));
    await assert.rejects(answered("http://127.0.0.1/v1"), /redirects to an unknown address \(HTTP 300\)/);
  });

  it("an answer of the largest size is read whole, and one byte more is not read", async () => {
    const sized = guardedFetch(async (_, init) => {
      const bytes = Number(new Headers(init?.headers).get("x-bytes"));
      return await Promise.resolve(new Response(Buffer.alloc(bytes, "x"), { status: 202, headers: { "x-a": "b" } }));
    });
    const ask = async (bytes: number): Promise<Response> =>
      await sized("http://127.0.0.1/", { headers: { "x-bytes": String(bytes) } });
    const whole = await ask(answerBytesMax);
    assert.deepEqual([whole.status, whole.headers.get("x-a")], [202, "b"]);
    assert.equal((await whole.arrayBuffer()).byteLength, answerBytesMax);
    await assert.rejects((await ask(answerBytesMax + 1)).text(), /the answer is longer than 4194304 bytes/);
  });

  it("a compressed answer counts as it is unpacked", async () => {
    const packed = gzipSync(Buffer.alloc(2 * answerBytesMax, " "));
    const server = createServer((_, response) => {
      response.writeHead(200, { "content-encoding": "gzip" }).end(packed);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    try {
      const response = await guardedFetch(fetch)(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
      await assert.rejects(response.text(), /the answer is longer than/);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  it("nothing in the sources sends a request beside it", () => {
    const root = fileURLToPath(new URL("../..", import.meta.url));
    const senders = globSync("src/**/*.ts", { cwd: root })
      .filter((file) => !file.endsWith(".test.ts"))
      .filter((file) =>
        /\bfetch\(|node:https?"|node:net"|node:tls"|undici/.test(readFileSync(join(root, file), "utf8")),
      );
    const inProxy = senders.filter((file) => file.startsWith(join("src", "proxy")));
    // The proxy passes on what its agent sends, to that agent's own provider; its tests are in test/proxy.
    assert.deepEqual(inProxy.toSorted(), [join("src", "proxy", "forward.ts"), join("src", "proxy", "server.ts")]);
    // The explorer's pages ask the server that they came from; Hono calls its own handler "fetch". Tests: test/web.
    const inWeb = senders.filter((file) => file.startsWith(join("src", "web")));
    assert.deepEqual(inWeb.toSorted(), [join("src", "web", "app.ts"), join("src", "web", "pages", "api.ts")]);
    const others = senders.filter((file) => !inProxy.includes(file) && !inWeb.includes(file));
    assert.deepEqual(others.toSorted(), [
      join("src", "cli", "proxy.ts"), // Asks the proxy for its status, on loopback.
      join("src", "models", "guarded-fetch.ts"),
      join("src", "store", "content", "bucket.ts"), // Signs each request for its own bucket, and follows no redirect.
    ]);
  });
});
