import assert from "node:assert/strict";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { describe, it } from "node:test";
import { eventually } from "../../../test/support/eventually.ts";
import { LcmError } from "../../core/base/errors.ts";
import type { Json, JsonObject } from "../../core/base/json.ts";
import { Peer, type Methods } from "./json-rpc.ts";

const echo: Methods = { echo: async (params) => await Promise.resolve(params) };

/** A serving end, and the bare lines that go to it and come from it. */
function serve(methods: Methods) {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const peer = new Peer({ input, output, methods, isPatient: true });
  const answers: JsonObject[] = [];
  let rest = "";
  const listen = (): void =>
    void output.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      answers.push(...lines.map((line) => JSON.parse(line) as JsonObject));
    });
  return {
    peer,
    input,
    output,
    listen,
    answers,
    next: async (count: number): Promise<readonly JsonObject[]> => {
      await eventually(() => answers.length >= count);
      return answers;
    },
  };
}

/** Two ends that talk to each other. */
function connect(left: Methods, right: Methods): readonly [Peer, Peer] {
  const [one, other] = [new PassThrough(), new PassThrough()];
  return [
    new Peer({ input: one, output: other, methods: left }),
    new Peer({ input: other, output: one, methods: right, isPatient: true }),
  ];
}

const codeOf = ({ error }: JsonObject): Json | undefined => (error as JsonObject | undefined)?.["code"];

describe("a line that is not a request", () => {
  for (const [what, line, code] of [
    ["is not JSON", "{oops", -32_700],
    ["is not an object", "[1,2]", -32_600],
    ["is neither request nor answer", `{"hello":1}`, -32_600],
  ] as const) {
    it(`is reported and skipped if it ${what}`, async () => {
      const { input, listen, next } = serve(echo);
      listen();
      input.write(`${line}\n\n{"jsonrpc":"2.0","id":"a","method":"echo","params":{"n":1}}\n`);
      const [first, second] = await next(2);
      assert.equal(codeOf(first!), code);
      assert.deepEqual(second, { jsonrpc: "2.0", id: "a", result: { n: 1 } });
    });
  }

  it("is not answered if it is itself such a report, so that two ends cannot argue for ever", async () => {
    const { input, listen, next, answers } = serve(echo);
    listen();
    input.write(`{"id":null,"error":{"code":-32700}}\n{"id":1,"method":"nothing"}\n`);
    await next(1);
    assert.deepEqual(answers.map(codeOf), [-32_601]);
  });

  it("may be an answer to a request that nobody made", async () => {
    const { input, listen, next } = serve(echo);
    listen();
    input.write(`{"id":77,"result":1}\n{"id":1,"method":"echo"}\n`);
    assert.deepEqual(await next(1), [{ jsonrpc: "2.0", id: 1, result: {} }]);
  });
});

describe("a request", () => {
  it("is read whole however it is cut, inside of a character too", async () => {
    const { input, listen, next } = serve(echo);
    listen();
    for (const byte of Buffer.from(`{"id":1,"method":"echo","params":{"text":"größer 🐢"}}\n`)) {
      input.write(Buffer.from([byte]));
    }
    assert.deepEqual(await next(1), [{ jsonrpc: "2.0", id: 1, result: { text: "größer 🐢" } }]);
  });

  it("fails with the code and the hint of what the other end threw", async () => {
    const refuse = async () => await Promise.reject(new LcmError("denied", "not yours", { hint: "ask" }));
    const [client] = connect({}, { refuse });
    await assert.rejects(client.request("refuse", {}), { code: "denied", message: "not yours", hint: "ask" });
  });

  it("cannot name what every object has", async () => {
    const [client] = connect({}, echo);
    await assert.rejects(client.request("constructor", {}), /there is no method constructor/);
  });

  it("reports progress", async () => {
    const work: Methods = {
      async work(_params, { progress }) {
        progress("half");
        return await Promise.resolve(true);
      },
    };
    const [client] = connect({}, work);
    const heard: string[] = [];
    assert.equal(await client.request("work", {}, { onProgress: (words) => heard.push(words) }), true);
    assert.deepEqual(heard, ["half"]);
  });

  it("is cancelled at the other end, too", async () => {
    const seen = Promise.withResolvers<unknown>();
    const hang: Methods = {
      async hang(_params, { signal }) {
        await once(signal, "abort");
        seen.resolve(signal.reason);
        return null;
      },
    };
    const [client] = connect({}, hang);
    const stop = new AbortController();
    const asked = client.request("hang", {}, { signal: stop.signal });
    stop.abort();
    await assert.rejects(asked, { code: "unavailable", message: "hang was cancelled" });
    assert.match(String(await seen.promise), /cancelled/);
    assert.equal(client.late, 0, "a cancelled request is not one that is overdue");
  });

  it("ends after its time, and its late answer is only counted", async () => {
    const go = Promise.withResolvers<string>();
    const [client] = connect({}, { slow: async () => await go.promise, ...echo });
    await assert.rejects(client.request("slow", {}, { timeoutMs: 10 }), /no answer to slow within 10 ms/);
    assert.equal(client.late, 1);
    go.resolve("late");
    assert.deepEqual(await client.request("echo", { n: 2 }), { n: 2 });
    assert.equal(client.late, 0);
  });

  it("fails when the connection ends, and so do later ones", async () => {
    const hang = async () => await new Promise<Json>(() => undefined);
    const [client, server] = connect({}, { hang });
    const asked = client.request("hang", {});
    server.end();
    await assert.rejects(asked, /the connection has ended/);
    await assert.rejects(client.request("hang", {}), /the connection has ended/);
  });
});

it("an end that is not read from stops reading, and goes on when it is read", async () => {
  const { input, output, listen, answers } = serve(echo);
  const text = "x".repeat(10_000);
  let isTaken = true;
  let sent = 0;
  for (; isTaken && sent < 1_000; sent++)
    isTaken = await new Promise<boolean>((resolve) => {
      const went = input.write(`${JSON.stringify({ id: sent, method: "echo", params: { text } })}\n`);
      setImmediate(() => resolve(went || !input.writableNeedDrain));
    });
  assert.ok(sent < 100, `${sent} requests of 10 kB were taken although nobody reads the answers`);
  assert.ok(output.writableLength < 1_000_000);
  listen();
  await eventually(() => answers.length >= sent);
  assert.equal(answers.length, sent);
});
