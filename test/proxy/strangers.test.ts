/** Who is not meant to be served is not, and no credential is kept anywhere. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, readFileSync, statSync } from "node:fs";
import { request as httpRequest, type OutgoingHttpHeaders } from "node:http";
import { dirname, join } from "node:path";
import { text as textOfStream } from "node:stream/consumers";
import { describe, it } from "node:test";
import { agentOn, startProxyGround, type ProxyGround } from "../support/proxy-ground.ts";
import { sayRaw } from "../support/raw-provider.ts";

async function withGround(test: (ground: ProxyGround) => Promise<void>): Promise<void> {
  const ground = await startProxyGround();
  try {
    await test(ground);
  } finally {
    await ground.close();
  }
}

/** Fetch would not let us lie about the host. */
async function statusOf(ground: ProxyGround, path: string, headers: OutgoingHttpHeaders = {}): Promise<number> {
  const asked = httpRequest({ host: "127.0.0.1", port: ground.proxy.port, path, headers }).end();
  const [answer] = await once(asked, "response");
  answer.resume();
  return answer.statusCode;
}

describe("the proxy refuses", () => {
  it("who does not know the secret", async () => {
    await withGround(async (ground) => {
      assert.equal(await statusOf(ground, "/model/v1/models"), 404);
      assert.equal(await statusOf(ground, "/guess/model/v1/models"), 404);
      assert.equal(await statusOf(ground, "/secret/model/v1/models"), 200);
      assert.equal(ground.provider.requests.length, 0);
    });
  });

  const isRoot = process.platform === "linux" && process.getuid?.() === 0;
  it(
    "programs of other users that know the secret",
    { skip: !isRoot && "needs root, to be somebody else" },
    async () => {
      const ground = await startProxyGround({ onlyOwn: true });
      const url = `${ground.proxy.urlOf("model")}/v1/models`;
      const asks = `fetch(${JSON.stringify(url)}).then(({ status }) => process.stdout.write(String(status)))`;
      const statusAs = async (uid: number): Promise<string> => {
        // Not all users can read the folder that this one is in.
        const child = spawn(process.execPath, ["-e", asks], { uid, cwd: "/", stdio: ["ignore", "pipe", "inherit"] });
        return await textOfStream(child.stdout);
      };
      try {
        assert.equal(await statusAs(0), "200");
        assert.equal(await statusAs(65_534), "403");
      } finally {
        await ground.close();
      }
    },
  );

  it("browsers, and names that were rebound to this machine", async () => {
    await withGround(async (ground) => {
      const path = "/secret/model/v1/models";
      assert.equal(await statusOf(ground, path, { origin: "http://127.0.0.1" }), 403);
      assert.equal(await statusOf(ground, path, { "sec-fetch-site": "none" }), 403);
      assert.equal(await statusOf(ground, path, { host: "evil.example" }), 403);
      assert.equal(await statusOf(ground, path, { host: "127.0.0.1.evil.example" }), 403);
      assert.equal(await statusOf(ground, path, { host: "localhost:1" }), 200);
    });
  });

  it("upstreams that are not in its list, whatever the path looks like", async () => {
    await withGround(async (ground) => {
      for (const path of [
        "/secret/other/v1/models",
        "/secret/http://evil.example/",
        "/secret//evil.example/x",
        "/secret",
      ])
        assert.equal(await statusOf(ground, path), 404);
      assert.equal(await statusOf(ground, "/secret/model/http://evil.example/"), 404);
    });
  });

  it("WebSockets, at once", async () => {
    await withGround(async (ground) => {
      const upgrade = { connection: "Upgrade", upgrade: "websocket" };
      assert.equal(await statusOf(ground, "/secret/model/v1/responses", upgrade), 426);
      assert.equal(await statusOf(ground, "/guess/model/v1/responses", upgrade), 404);
      const fromPage = { ...upgrade, origin: "http://evil.example" };
      assert.equal(await statusOf(ground, "/secret/model/v1/responses", fromPage), 404, "a page learns nothing");
    });
  });

  it("requests whose end is ambiguous, so that none hides in another", async () => {
    const hidden = "GET /secret/model/v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";
    const chunked = `0\r\n\r\n${hidden}`;
    const many = Array.from({ length: 2_100 }, (_, at) => `x${at}: 1\r\n`).join("");
    await withGround(async (ground) => {
      for (const [headers, body] of [
        ["content-length: 4\r\ntransfer-encoding: chunked\r\n", chunked],
        ["transfer-encoding: chunked\r\ncontent-length: 4\r\n", chunked],
        ["transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n", chunked],
        ["transfer-encoding: chunked, identity\r\n", chunked],
        ["transfer-encoding: xchunked\r\n", chunked],
        ["transfer-encoding : chunked\r\n", chunked],
        ["transfer-encoding: \u000bchunked\r\n", chunked],
        ["x: y\r\n transfer-encoding: chunked\r\n", chunked],
        ["transfer-encoding: chunked\r\n", `5;a\nb\r\nhello\r\n${chunked}`],
        ["transfer-encoding: chunked\r\n", `fffffffffffffffff\r\n${chunked}`],
        ["transfer-encoding: chunked\r\n", `5\nhello\n0\n\n${hidden}`],
        ["content-length: 0\r\ncontent-length: 99\r\n", hidden],
        ["content-length: 0, 0\r\n", hidden],
        ["content-length: +0\r\n", hidden],
        ["content-length: 0x0\r\n", hidden],
        ["content-length: -1\r\n", hidden],
        ["content-length: 99999999999999999999\r\n", hidden],
        ["x: a\rcontent-length: 0\r\n", hidden],
        ["x: a\u0000b\r\ncontent-length: 0\r\n", hidden],
        ["content-length: 0\n", hidden],
        [`${many}transfer-encoding: chunked\r\n`, chunked],
      ] as const) {
        const request = `POST /secret/model/v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\n${headers}\r\n${body}`;
        const said = await sayRaw(ground.proxy.port, request).catch(() => ""); // The connection may just be reset.
        assert.doesNotMatch(said, /HTTP\/1.1 200/, headers);
        assert.equal(ground.provider.requests.length, 0, headers);
      }
      assert.equal(await statusOf(ground, "/secret/model/v1/models"), 200);
    });
  });
});

describe("the proxy passes on untouched", () => {
  const send = async (ground: ProxyGround, path: string, body: string, headers = {}): Promise<Response> =>
    await fetch(ground.proxy.urlOf("model") + path, {
      method: "POST",
      body,
      headers: { "content-type": "application/json", ...headers },
    });

  for (const [what, path, body] of [
    ["a body that is not JSON", "/v1/messages", '{"messages": [{'],
    ["messages that are not a list", "/v1/messages", '{"messages": "all of them", "tools": [{}]}'],
    ["a list that comes twice", "/v1/messages", '{"messages": [], "messages": [{"role":"user","content":"x"}]}'],
    ["elements that are not objects", "/v1/messages", '{"messages": [1, "two", null], "tools": [{}]}'],
    ["an input that is a text", "/v1/responses", '{"input": "hello"}'],
    ["a path that is not known", "/v1/embeddings", '{"input": ["hello"]}'],
    ["a value that is nested deeply", "/v1/messages", `{"messages": ${"[".repeat(50_000)}${"]".repeat(50_000)}}`],
  ] as const) {
    it(what, async () => {
      await withGround(async (ground) => {
        const direct = await fetch(ground.provider.url + path, { method: "POST", body });
        const through = await send(ground, path, body);
        assert.equal(through.status, direct.status);
        const [first, second] = ground.provider.requests;
        assert.equal(second?.raw, first?.raw);
      });
    });
  }

  it("requests with a mark over their body, and those of a subscription, which it stores", async () => {
    await withGround(async (ground) => {
      const marked = { system: [{ type: "text", text: "x-anthropic-billing-header: cc_version=2; cch=12345;" }] };
      const message = { role: "user", content: "hello" };
      const body = (extra: object): string => JSON.stringify({ messages: [message], tools: [{ name: "t" }], ...extra });
      await send(ground, "/v1/messages", body(marked), { "x-claude-code-session-id": "s1" });
      const oauth = { authorization: "Bearer sk-ant-oat01-abc", "x-claude-code-session-id": "s2" };
      await send(ground, "/v1/messages", body({}), oauth);
      await ground.settled();
      const why = ground.service.status().sessions.map(({ whyUnchanged }) => whyUnchanged);
      assert.deepEqual(why, [
        "the request carries a mark over its whole body",
        "it is sent with a subscription, not with an API key",
      ]);
      assert.equal((await (await ground.lcm()).store.conversations()).length, 2);
    });
  });
});

describe("credentials", () => {
  it("are in no file, no status and no problem afterwards", async () => {
    const ground = await startProxyGround({ tokensMax: 1_500 });
    const folder = dirname(ground.path);
    try {
      const agent = agentOn(ground, "anthropic", "s1");
      for (let turn = 0; turn < 8; turn++) await agent.prompt(`turn ${turn}: BIG 50`);
      ground.provider.faults.push({ kind: "status", status: 401 });
      agent.add(agent.user("refused"));
      await agent.send(agent.history);
      await ground.settled();
      assert.equal(ground.provider.requests[0]?.headers.authorization, "Bearer sk-secret-key");
      assert.doesNotMatch(JSON.stringify(ground.service.status()), /sk-secret-key/);
    } finally {
      await ground.close();
    }
    for (const name of globSync("**/*", { cwd: folder })) {
      const path = join(folder, name);
      if (statSync(path).isFile()) assert.ok(!readFileSync(path).includes("sk-secret-key"), name);
    }
  });
});
