/** The proxy between a client and a provider that send what nobody should: it stays, and passes on what can be passed on. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, describe, it } from "node:test";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import {
  agentOn,
  saidBy,
  startProxyGround,
  storedPieces,
  type GroundOptions,
  type ProxyGround,
} from "../support/proxy-ground.ts";
import { plainAnswer, sayRaw, startRawProvider, type RawProvider } from "../support/raw-provider.ts";

interface Raw {
  readonly provider: RawProvider;
  readonly ground: ProxyGround;
}

async function withRaw(test: (raw: Raw) => Promise<void>, options: GroundOptions = {}): Promise<void> {
  const provider = await startRawProvider();
  const ground = await startProxyGround({ ...options, upstream: provider.url });
  const rejections: unknown[] = [];
  const note = (error: unknown): void => void rejections.push(error);
  process.on("unhandledRejection", note);
  try {
    await test({ provider, ground });
    assert.deepEqual(rejections, []);
  } finally {
    process.off("unhandledRejection", note);
    await ground.close();
    await provider.close();
  }
}

const body = '{"model":"m","tools":[{"name":"t"}],"messages":[{"role":"user","content":"hello"}]}';
const head = "host: 127.0.0.1\r\nconnection: close\r\n";
const asking = (headers = "", said = body, path = "/v1/messages"): string =>
  `POST /secret/model${path} HTTP/1.1\r\n${head}content-length: ${Buffer.byteLength(said)}\r\n${headers}\r\n${said}`;
const bodyOf = (message: string): string => message.slice(message.indexOf("\r\n\r\n") + 4);

/** Gives the proxy, which shares this thread, the turns to notice what has just been sent, or that a socket is gone. */
async function heardOf(): Promise<void> {
  await sleep(20);
  for (let turn = 0; turn < 5; turn++) await nextTurn();
}

function takeFrom(provider: RawProvider): string {
  const { received } = provider;
  provider.received = "";
  return received;
}

describe("an answer", () => {
  const answered = async (answer: string | Buffer, request = asking()): Promise<string> => {
    let heard = "";
    await withRaw(async ({ provider, ground }) => {
      provider.answer = (socket) => socket.end(answer);
      heard = await sayRaw(ground.proxy.port, request);
    });
    return heard;
  };

  for (const status of ["000 X", "099 X", "1000 X", "101 Switching Protocols", "banana"])
    it(`with the status ${status} is a bad gateway, not the end of the proxy`, async () => {
      assert.match(await answered(`HTTP/1.1 ${status}\r\ncontent-length: 0\r\n\r\n`), /^HTTP\/1.1 502 /);
    });

  it("that changes the protocol leaves nobody waiting", async () => {
    const changed = "HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nabc";
    assert.match(await answered(changed), /^HTTP\/1.1 502 /);
  });

  it("comes behind others that only inform", async () => {
    assert.match(
      await answered(`HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n${plainAnswer}`),
      /^HTTP\/1.1 200 OK.*\{\}$/s,
    );
  });

  it("may have any reason and any header, as often as it likes", async () => {
    assert.match(await answered("HTTP/1.1 200 O\x01\x7fK\r\ncontent-length: 2\r\n\r\n{}"), /^HTTP\/1.1 200 OK\r\n/);
    const heard = await answered(
      Buffer.from(
        "HTTP/1.1 200 Größe\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nretry-after: 1\r\nretry-after: 2\r\nx-name: ü\r\n" +
          `__proto__: p\r\nx-long: ${"x".repeat(100_000)}\r\ncontent-length: 2\r\n\r\n{}`,
      ),
    );
    const text = Buffer.from(heard, "latin1").toString("utf8");
    for (const line of [
      "200 Größe",
      "set-cookie: a=1",
      "set-cookie: b=2",
      "retry-after: 1",
      "retry-after: 2",
      "x-name: ü",
    ])
      assert.ok(text.includes(`${line}\r\n`), line);
    assert.ok(text.includes("\r\n__proto__: p\r\n") && text.includes("x".repeat(100_000)) && text.endsWith("{}"));
  });

  it("that redirects is passed on and not followed", async () => {
    await withRaw(async ({ provider, ground }) => {
      const elsewhere = await startRawProvider();
      provider.answer = (socket) =>
        socket.end(`HTTP/1.1 307 Go\r\nlocation: ${elsewhere.url}/v1/messages\r\ncontent-length: 0\r\n\r\n`);
      const heard = await sayRaw(ground.proxy.port, asking("authorization: Bearer sk-1\r\n"));
      assert.match(heard, /^HTTP\/1.1 307 Go\r\nlocation: /);
      assert.equal(elsewhere.received, "");
      await elsewhere.close();
    });
  });

  it("that is given before the request was read reaches the client", async () => {
    await withRaw(async ({ provider, ground }) => {
      provider.early = true;
      provider.answer = (socket) => {
        provider.early = false;
        socket.pause();
        socket.write("HTTP/1.1 401 No\r\ncontent-length: 4\r\nconnection: close\r\n\r\nkey?");
      };
      const large = JSON.stringify({ messages: [], pad: "x".repeat(5_000_000) });
      assert.match(await sayRaw(ground.proxy.port, asking("", large)), /^HTTP\/1.1 401 No.*key\?$/s);
    });
  });

  it("that is cut off anywhere is cut off for the client, or a bad gateway", async () => {
    await withRaw(async ({ provider, ground }) => {
      for (let cut = 0; cut < plainAnswer.length; cut += 3) {
        provider.answer = (socket) => socket.end(plainAnswer.slice(0, cut));
        const heard = await sayRaw(ground.proxy.port, asking());
        assert.ok(/^HTTP\/1.1 502 /.test(heard) || bodyOf(heard).length < 2, heard);
      }
    });
  });

  it("to a changed request that refuses it and breaks off: the client's own request follows", async () => {
    const refusals = ["content-length: 99\r\n\r\n{}", "transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n", "\r\n"];
    const agentGround = await startProxyGround({ tokensMax: 1_500 });
    const agent = agentOn(agentGround, "anthropic", "s1");
    for (let turn = 0; turn < 12; turn++) await agent.prompt(`turn ${turn}: BIG 50`);
    await agentGround.settled();
    await agentGround.close();
    for (const refusal of refusals)
      await withRaw(
        async ({ provider, ground }) => {
          const asked: string[] = [];
          provider.answer = (socket, request) => {
            asked.push(bodyOf(request));
            if (asked.length > 1) return void socket.write(plainAnswer);
            socket.write(`HTTP/1.1 400 No\r\n${refusal}`);
            setTimeout(() => socket.resetAndDestroy(), 20);
          };
          const whole = JSON.stringify({ tools: [{ name: "t" }], messages: agent.history });
          const heard = await sayRaw(ground.proxy.port, asking("x-claude-code-session-id: s1\r\n", whole));
          assert.match(heard, /^HTTP\/1.1 200 OK/);
          assert.equal(asked.length, 2);
          assert.ok(asked[0]?.includes("<summary id="));
          assert.equal(asked[1], whole);
        },
        { tokensMax: 1_500, path: agentGround.path },
      );
  });
});

describe("an answer that is read beside the client", () => {
  const stream = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
  const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;

  for (const [path, far] of [
    ["/v1/messages", { type: "content_block_start", index: 4_294_967_290, content_block: { type: "text", text: "x" } }],
    ["/chat/completions", { choices: [{ delta: { tool_calls: [{ index: 4_294_967_290, id: "x" }] } }] }],
    ["/responses", { type: "response.output_item.done", output_index: 4_294_967_290, item: { type: "message" } }],
  ] as const)
    it(`may name a place far away, which stops nothing: ${path}`, async () => {
      await withRaw(async ({ provider, ground }) => {
        const ends = [
          { type: "message_stop" },
          { choices: [{ finish_reason: "stop" }] },
          { type: "response.completed" },
        ];
        provider.answer = (socket) => socket.end(stream + [far, ...ends].map(event).join(""));
        const asked = body.replace("messages", path === "/responses" ? "input" : "messages");
        assert.ok((await sayRaw(ground.proxy.port, asking("", asked, path))).includes("4294967290"));
        assert.match(ground.service.status().problems[0]?.message ?? "", /out of range/);
      });
    });

  it("is not repeated in a log if it is not JSON", async () => {
    await withRaw(async ({ provider, ground }) => {
      const events = [
        { type: "content_block_start", index: 0, content_block: { type: "tool_use", id: "c", name: "t", input: {} } },
        { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: "{sk-secret-key" } },
        { type: "content_block_stop", index: 0 },
        { type: "message_stop" },
      ];
      provider.answer = (socket) => socket.end(stream + events.map(event).join(""));
      await sayRaw(ground.proxy.port, asking());
      const [problem] = ground.service.status().problems;
      assert.match(problem?.message ?? "", /not a JSON object/);
      assert.doesNotMatch(JSON.stringify(ground.service.status()), /sk-secret/);
    });
  });

  it("may be one endless line: it is passed on, costs no more than its length, and is given up", async () => {
    await withRaw(async ({ provider, ground }) => {
      const [megabyte, count] = [Buffer.alloc(1_000_000, "x"), 70];
      provider.answer = (socket) => {
        socket.write(`${stream}data: "`);
        for (let at = 0; at < count; at++) socket.write(megabyte);
        socket.end();
      };
      const socket = connect(ground.proxy.port, "127.0.0.1");
      let heard = 0;
      socket.on("data", (bytes) => (heard += bytes.length));
      const before = process.cpuUsage();
      socket.write(asking());
      await once(socket, "close");
      const { user } = process.cpuUsage(before);
      assert.ok(heard > count * megabyte.length, `${heard} bytes`);
      assert.match(ground.service.status().problems[0]?.message ?? "", /more than 64000000 bytes/);
      // Looking through all of it again with each piece took 100 times as long.
      assert.ok(user < 20_000_000, `${user} µs`);
    });
  });

  it("to a request of the host's own does not hide the same words in the conversation", async () => {
    const ground = await startProxyGround();
    try {
      const agent = agentOn(ground, "chat", "s1");
      const askAside = async (): Promise<void> => {
        const aside = JSON.stringify({ messages: [{ role: "user", content: "is this a new topic?" }] });
        const headers = { "content-type": "application/json", "x-session-id": "s1" };
        const url = `${ground.proxy.urlOf("model")}/chat/completions`;
        await (await fetch(url, { method: "POST", headers, body: aside })).text();
        await ground.settled();
      };
      ground.provider.answer = () => ({ text: "Yes." });
      await agent.prompt("first?");
      await askAside();
      await agent.prompt("second?");
      ground.provider.answer = () => ({ text: "No." });
      await askAside();
      await agent.prompt("third?");
      await agent.prompt("fourth?");
      await ground.settled();
      const shown = ground.provider.requests.at(-1)?.body.messages.map(({ content }: { content: string }) => content);
      const said = ["first?", "Yes.", "second?", "Yes.", "third?", "No.", "fourth?"];
      assert.deepEqual(shown, ["You are an agent.", ...said]);
      assert.deepEqual(await storedPieces(ground, "s1"), saidBy(agent));
    } finally {
      await ground.close();
    }
  });
});

describe("two conversations of one program", () => {
  interface Said {
    readonly role: string;
    readonly content: string;
  }

  /** Conversations take turns; the model always answers the same words to the same place in any of them. */
  async function talkInTurns(
    key: string | null,
    examples: readonly Said[],
    answers: readonly string[],
  ): Promise<ProxyGround> {
    const ground = await startProxyGround();
    const talks = ["alpha", "beta"].map((name) => ({ name, messages: [...examples] }));
    for (const [turn, answer] of answers.entries())
      for (const { name, messages } of talks) {
        messages.push({ role: "user", content: `${name} asks ${turn}` });
        ground.provider.answer = () => ({ text: answer });
        const cacheKey = key === null ? {} : { prompt_cache_key: key };
        const said = JSON.stringify({ ...cacheKey, tools: [{ type: "function" }], messages });
        const headers = { "content-type": "application/json", "user-agent": "OpenAI/Python 2.0" };
        const url = `${ground.proxy.urlOf("model")}/chat/completions`;
        await (await fetch(url, { method: "POST", headers, body: said })).text();
        await ground.settled();
        assert.equal(ground.provider.requests.at(-1)?.raw, said, "nothing of the other one is in it");
        messages.push({ role: "assistant", content: answer });
      }
    return ground;
  }

  const answers = ["Hello! How can I help you?", "Sure.", "Done.", "You're welcome!"];
  const examples = ["What is 1 + 1?", "2", "What is 1 + 2?", "3"].map((content, at) => ({
    role: at % 2 === 0 ? "user" : "assistant",
    content,
  }));

  it("stay apart if they have one key for the provider's cache, and get the same answers", async () => {
    const ground = await talkInTurns("my-app", [], answers);
    try {
      const { store } = await ground.lcm();
      const totals = (await store.conversations()).map(({ totals: { messages } }) => messages);
      assert.deepEqual(totals, [2 * answers.length, 2 * answers.length]);
    } finally {
      await ground.close();
    }
  });

  it("stay apart if both begin with the same examples", async () => {
    await (await talkInTurns(null, examples, answers)).close();
  });
});

describe("a request", () => {
  it("with a body where none is usual is not read as two", async () => {
    await withRaw(async ({ provider, ground }) => {
      const smuggled = "GET /smuggled HTTP/1.1\r\nhost: evil\r\n\r\n";
      const chunked = `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`;
      for (const method of ["GET", "DELETE", "OPTIONS", "HEAD"]) {
        const request = `${method} /secret/model/v1/x HTTP/1.1\r\n${head}transfer-encoding: chunked\r\n\r\n${chunked}`;
        await sayRaw(ground.proxy.port, request);
        const received = takeFrom(provider);
        assert.match(received, new RegExp(`^${method} .*transfer-encoding: chunked`, "s"));
        assert.equal(bodyOf(received), chunked);
      }
    });
  });

  it("cannot take away the length of its body by calling it the connection's", async () => {
    await withRaw(async ({ provider, ground }) => {
      for (const [path, method] of [
        ["/v1/x", "DELETE"],
        ["/v1/messages", "POST"],
      ] as const) {
        const named = "connection: content-length, host, close\r\ncontent-length: 15\r\n";
        const request = `${method} /secret/model${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${named}\r\n{"messages":[]}`;
        await sayRaw(ground.proxy.port, request);
        const received = takeFrom(provider);
        assert.match(received, /\r\ncontent-length: 15\r\n/);
        assert.match(received, new RegExp(`\\r\\nhost: ${new URL(provider.url).host}\\r\\n`));
      }
    });
  });

  it("keeps every header, however often and long", async () => {
    await withRaw(async ({ provider, ground }) => {
      const lines = ["authorization: one", "authorization: two", "x-api-key: 1", "x-api-key: 2", "__proto__: p"];
      const long = `x-long: ${"x".repeat(100_000)}`;
      await sayRaw(ground.proxy.port, asking([...lines, long, ""].join("\r\n")));
      const received = provider.received;
      for (const line of [...lines, long]) assert.ok(received.includes(`\r\n${line}\r\n`), line);
      assert.ok(!received.includes("secret"), "our secret is not the provider's to know");
    });
  });

  it("that offers HTTP/2 is served without it", async () => {
    await withRaw(async ({ ground }) => {
      const offer = "upgrade: h2c\r\nhttp2-settings: AAMAAABkAAQ\r\n";
      const request = asking(offer).replace("connection: close", "connection: upgrade, http2-settings, close");
      assert.match(await sayRaw(ground.proxy.port, request), /^HTTP\/1.1 200 OK/);
    });
  });

  it("that is longer than we read goes on whole, also if its length is not told before", async () => {
    await withRaw(
      async ({ provider, ground }) => {
        const large = JSON.stringify({ messages: [{ role: "user", content: "x".repeat(200_000) }] });
        const headers = { "content-type": "application/json" };
        const url = `${ground.proxy.urlOf("model")}/v1/messages`;
        const pieces = new ReadableStream({
          start(controller) {
            for (let at = 0; at < large.length; at += 30_000)
              controller.enqueue(Buffer.from(large.slice(at, at + 30_000)));
            controller.close();
          },
        });
        const streamed = { method: "POST", headers, body: pieces, duplex: "half" } as RequestInit;
        assert.equal((await fetch(url, streamed)).status, 200);
        const received = bodyOf(takeFrom(provider));
        assert.equal(received.replace(/(?:^|\r\n)[0-9a-f]+\r\n/g, "").trimEnd(), large);
        assert.equal((await fetch(url, { method: "POST", headers, body: large })).status, 200);
        assert.ok(provider.received.endsWith(large));
      },
      { bodyMax: 100_000 },
    );
  });

  it("whose client leaves before it was sent on is not sent on, and is no problem of ours", async () => {
    await withRaw(async ({ provider, ground }) => {
      const socket = connect(ground.proxy.port, "127.0.0.1");
      const block = Promise.withResolvers<void>();
      const blocked = ground.runtime.inOrder("claude-code:s1", async () => await block.promise);
      const reached = Promise.withResolvers<void>();
      const { service } = ground;
      const plan = service.plan.bind(service);
      service.plan = async (call) => {
        reached.resolve();
        return await plan(call);
      };
      socket.write(asking("x-claude-code-session-id: s1\r\n"));
      await reached.promise;
      socket.destroy();
      await heardOf();
      block.resolve();
      await blocked;
      const cut = connect(ground.proxy.port, "127.0.0.1");
      await once(cut, "connect");
      cut.write(asking().slice(0, -9));
      await heardOf();
      cut.destroy();
      await heardOf();
      await ground.settled();
      assert.equal(provider.received, "");
      assert.deepEqual(ground.service.status().problems, []);
      assert.deepEqual((await storedPieces(ground, "s1")).length, 1, "what was said is stored");
    });
  });

  it("may be nested as deeply as it likes", async () => {
    await withRaw(async ({ provider, ground }) => {
      const deep = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
      const message = (content: string): string => `{"tools":[{}],"messages":[{"role":"user","content":${content}}]}`;
      for (const said of [
        message(deep(300_000)),
        message(`[{"type":"tool_result","tool_use_id":"x","content":${deep(3_000)}}]`),
        `{"system":${deep(300_000)},"messages":[{"role":"user","content":"hello"}]}`,
        `{"messages":${"[".repeat(300_000)}`,
      ]) {
        assert.match(
          await sayRaw(ground.proxy.port, asking("x-claude-code-session-id: s1\r\n", said)),
          /^HTTP\/1.1 200/,
        );
        assert.equal(bodyOf(takeFrom(provider)), said);
      }
    });
  });

  it("with an endless id is one without", async () => {
    await withRaw(async ({ ground }) => {
      await sayRaw(ground.proxy.port, asking(`user-agent: other\r\nsession_id: ${"x".repeat(100_000)}\r\n`));
      await ground.settled();
      assert.equal(ground.service.status().sessions[0]?.session.length, 36);
    });
  });

  it("reaches the path that it names, whatever its query", async () => {
    await withRaw(async ({ provider, ground }) => {
      for (const [path, expected] of [
        ["", "/"],
        ["?x=1", "/?x=1"],
        ["//evil.example/x", "//evil.example/x"],
        ["/v1/messages?x=/../y", "/v1/messages?x=/../y"],
      ] as const) {
        await sayRaw(ground.proxy.port, `GET /secret/model${path} HTTP/1.1\r\n${head}\r\n`);
        assert.ok(takeFrom(provider).startsWith(`GET ${expected} HTTP/1.1\r\n`), path);
      }
    });
  });
});

describe("a stranger without the secret", () => {
  it("cannot keep the proxy from ending", async () => {
    await withRaw(async ({ ground }) => {
      const socket = connect({ port: ground.proxy.port, host: "127.0.0.1", allowHalfOpen: true });
      socket.on("error", () => undefined).resume();
      socket.write("GET /x HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n");
      await once(socket, "end");
      const { port } = ground.proxy;
      await ground.restart();
      assert.equal(ground.proxy.port, port);
      socket.destroy();
    });
  });

  it("gets nothing by other spellings of hosts and paths", async () => {
    await withRaw(async ({ provider, ground }) => {
      const path = "/secret/model/v1/x";
      const hosts = [
        "localhost.",
        "u@127.0.0.1",
        "127.1",
        "2130706433",
        "[::ffff:127.0.0.1]",
        "localhost:1:2",
        "a, localhost",
        "",
      ];
      for (const host of hosts)
        assert.match(
          await sayRaw(ground.proxy.port, `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`),
          /^HTTP\/1.1 403/,
          host,
        );
      const paths = [
        "//secret/model/x",
        "/x/../secret/model/x",
        "/%73ecret/model/x",
        "/secret%00/model/x",
        "/secretx/model/x",
      ];
      for (const each of [...paths, "/secret?/model/x", "http://127.0.0.1/secret/model/x", "*", "/secret/__proto__/x"])
        assert.match(await sayRaw(ground.proxy.port, `GET ${each} HTTP/1.1\r\n${head}\r\n`), /^HTTP\/1.1 404/, each);
      await sayRaw(ground.proxy.port, "CONNECT evil.example:443 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
      assert.equal(provider.received, "");
    });
  });
});

describe("random bytes", () => {
  let raw: RawProvider;
  let ground: ProxyGround;
  before(async () => {
    raw = await startRawProvider();
    ground = await startProxyGround({ upstream: raw.url });
  });
  after(async () => {
    await ground.close();
    await raw.close();
  });

  const seed =
    '{"model":"m","n":12345678901234567890,"tools":[{"name":"t"}],"messages":[{"role":"user","content":"h\\u00e9 \\ud83d\\ude00"},' +
    '{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"t","input":{"messages":[1.50]}}]},' +
    '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"x"}]}],"stream":false}';
  const mutation = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    remove: fc.integer({ min: 0, max: 12 }),
    insert: fc.oneof(
      fc.uint8Array({ maxLength: 6 }).map((bytes) => Buffer.from(bytes)),
      fc
        .constantFrom('"', "\\", "[", "]", "{", "}", ",", ":", '"messages":[', "null", "1e999", "\\ud800", "\u0000")
        .map((text) => Buffer.from(text)),
    ),
  });

  it("in a body reach the provider as they are", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(mutation, { minLength: 1, maxLength: 4 }),
        fc.constantFrom("/v1/messages", "/chat/completions"),
        async (mutations, path) => {
          let said: Buffer = Buffer.from(seed);
          for (const { at, remove, insert } of mutations) {
            const from = Math.floor(at * said.length);
            said = Buffer.concat([said.subarray(0, from), insert, said.subarray(from + remove)]);
          }
          raw.received = "";
          const answer = `HTTP/1.1 200 OK\r\ncontent-length: ${said.length}\r\nconnection: close\r\n\r\n${said.toString("latin1")}`;
          raw.answer = (socket) => socket.end(Buffer.from(answer, "latin1"));
          const headers = { "x-claude-code-session-id": "fuzz" };
          const heard = await fetch(ground.proxy.urlOf("model") + path, {
            method: "POST",
            headers,
            body: new Uint8Array(said),
          });
          assert.ok(Buffer.from(await heard.arrayBuffer()).equals(said));
          assert.equal(bodyOf(raw.received), said.toString("latin1"));
        },
      ),
      { numRuns: 150 },
    );
  });

  it("in a request or an answer end neither the proxy nor its ability to serve", async () => {
    const mutate = (text: string, { at, remove, insert }: { at: number; remove: number; insert: Buffer }): Buffer => {
      const bytes = Buffer.from(text);
      const from = Math.floor(at * bytes.length);
      return Buffer.concat([bytes.subarray(0, from), insert, bytes.subarray(from + remove)]);
    };
    const once = async (said: Buffer): Promise<void> => {
      const socket = connect(ground.proxy.port, "127.0.0.1");
      socket.on("error", () => undefined).resume();
      socket.end(said);
      await Promise.race([
        new Promise((resolve) => socket.once("close", resolve)),
        sleep(100, undefined, { ref: false }),
      ]);
      socket.destroy();
    };
    await fc.assert(
      fc.asyncProperty(mutation, mutation, async (inRequest, inAnswer) => {
        raw.answer = (socket) =>
          socket.end(
            mutate(
              `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nset-cookie: a\r\ncontent-length: 30\r\n\r\ndata: {"type":"message_stop"}\n\n`,
              inAnswer,
            ),
          );
        await once(mutate(asking("x-api-key: k\r\n"), inRequest));
        raw.answer = (socket) => socket.end(plainAnswer);
        assert.match(await sayRaw(ground.proxy.port, asking()), /^HTTP\/1.1 200 OK.*\{\}$/s);
      }),
      { numRuns: 100 },
    );
  });
});
