/** What goes over the wire, for each format that is spoken, and what is made of every kind of answer. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { scriptedTokens } from "../../test/support/scripted-provider.ts";
import type { Asked } from "../../test/support/scripted-provider.ts";
import { answerBytesMax } from "./guarded-fetch.ts";
import {
  request,
  question,
  expandArgs,
  describeArgs,
  lookup,
  formats,
  good,
  startServer,
  start,
  answered,
  stepOf,
  refusalOf,
  messageOf,
} from "../../test/support/provider-model-ground.ts";

for (const format of formats) {
  describe(`${format.name} over the wire`, { concurrency: 4 }, () => {
    it("sends the model, both texts, the limits and the credential, and returns the text and its cost", async () => {
      const { server, model } = await start(format);
      server.play({ kind: "answer", text: "The kiln is booked.", reasoning: "Hm, a kiln." });
      assert.deepEqual(await model.complete(request), {
        kind: "text",
        text: "The kiln is booked.",
        finish: "stop",
        inputTokens: scriptedTokens.input,
        outputTokens: scriptedTokens.output,
      });
      const [asked] = server.asked;
      assert.equal(server.asked.length, 1);
      assert.equal(asked?.path, format.path);
      for (const [header, value] of Object.entries(format.auth)) assert.equal(asked?.headers[header], value, header);
      assert.deepEqual(asked?.body, format.body(0.2));
      assert.deepEqual([model.provider, model.name], [format.provider, format.model]);
    });

    it("sends the tools, returns the calls, and sends the whole step and its results with the next request", async () => {
      const { server, model } = await start(format);
      server.play(lookup, lookup, good);
      const first = await answered(model, question);
      assert.partialDeepStrictEqual(first, { text: lookup.text, finish: "stop", outputTokens: scriptedTokens.output });
      assert.deepEqual(first.calls, [
        { id: "call_1", name: "lcm_expand", args: expandArgs },
        { id: "call_2", name: "lcm_describe", args: describeArgs },
      ]);
      const second = await answered(model, { ...question, steps: [stepOf(first)] });
      const last = await answered(model, { ...question, steps: [stepOf(first), stepOf(second)] });
      assert.equal(last.text, good.text);
      assert.equal(last.calls, undefined);

      const told: object = format.body(0.2);
      const before: unknown[] = Reflect.get(told, format.turnsAt);
      for (const [steps, asked] of server.asked.entries()) {
        const turns = [...before, ...Array.from({ length: steps }, () => format.step).flat()];
        assert.deepEqual(asked.body, { ...told, ...format.offer, [format.turnsAt]: turns });
      }
      assert.equal(server.asked.length, 3);
    });

    it("guarantee 21: a credential that is no longer accepted at the second step is `auth`", async () => {
      const { server, model } = await start(format);
      server.play(lookup, { kind: "error", status: 401 });
      const first = await answered(model, question);
      assert.equal(refusalOf(await model.complete({ ...question, steps: [stepOf(first)] })), "auth");
      assert.equal(server.asked.length, 2);
    });

    it("rebuilds a step made by another model", async () => {
      const { server, model } = await start(format);
      server.play(good);
      const completion = { kind: "text", text: "", finish: "stop", inputTokens: 1, outputTokens: 1 } as const;
      const calls = [{ id: "call_1", name: "lcm_expand", args: '{"summaryIds' }];
      await answered(model, { ...question, steps: [stepOf({ ...completion, calls, memo: { of: "another" } })] });
      const sent = JSON.stringify(server.asked[0]?.body[format.turnsAt]);
      assert.match(sent, /"call_1".*It is booked for 9/);
      assert.doesNotMatch(sent, /summaryIds/);
    });

    it("lists the tools of earlier steps if none is offered, and allows no call", async () => {
      const { server, model } = await start(format);
      server.play(lookup, good);
      const first = await answered(model, question);
      await answered(model, { ...request, steps: [stepOf(first)] });
      const sent = server.asked[1]?.body ?? {};
      assert.match(JSON.stringify(sent["tools"]), /"lcm_expand".*"lcm_describe"/);
      assert.match(JSON.stringify([sent["tool_choice"], sent["toolConfig"]]), /"none"/i);
    });

    it("guarantee 21: a rejected credential is `auth`, and is not retried", async () => {
      const { server, model } = await start(format);
      server.play({ kind: "error", status: 401 });
      assert.equal(refusalOf(await model.complete(request)), "auth");
      assert.equal(server.asked.length, 1);
    });

    it("waits as long as requested, and then retries", async () => {
      const { server, model } = await start(format);
      server.play({ kind: "error", status: 429, headers: { "retry-after": "0.15" } }, good);
      assert.equal((await model.complete(request)).kind, "text");
      assert.equal(server.asked.length, 2);
      assert.ok(gapMs(server.asked) >= 145, `asked again after ${gapMs(server.asked)} ms`);
    });

    it("guarantee 21: gives up at once as `rate_limit` if asked to wait longer than the timeout", async () => {
      const { server, model } = await start(format);
      server.play({ kind: "error", status: 429, headers: { "retry-after": "3600" } }, good);
      assert.equal(refusalOf(await model.complete(request)), "rate_limit");
      assert.equal(server.asked.length, 1);
    });

    it("guarantee 21: a failing provider is tried three times, and is then `overloaded`", async () => {
      const { server, model } = await start(format);
      server.play({ kind: "error", status: 500, headers: { "retry-after-ms": "5" } });
      assert.equal(refusalOf(await model.complete(request)), "overloaded");
      assert.equal(server.asked.length, 3);
    });

    it("guarantee 21: a silent provider is a `timeout`, and is not retried", async () => {
      const { server, model } = await start(format, { timeoutMs: 2_000 });
      server.play({ kind: "hang" });
      assert.equal(refusalOf(await model.complete(request)), "timeout");
      assert.equal(server.asked.length, 1);
    });

    for (const status of [301, 302, 303, 307, 308]) {
      it(`guarantee 32: credential and conversation do not follow a redirect with status ${status}`, async () => {
        const { server, model } = await start(format);
        const elsewhere = await startServer();
        elsewhere.play(good);
        server.play({ kind: "error", status, headers: { location: `${elsewhere.url}${format.path}?of=somebody` } });
        const completion = await model.complete(request);
        assert.equal(refusalOf(completion), "rejected");
        assert.match(
          messageOf(completion),
          new RegExp(`redirects to ${elsewhere.url} \\(HTTP ${status}\\), which is not`),
        );
        assert.deepEqual([server.asked.length, elsewhere.asked.length], [1, 0]);
      });
    }

    it("guarantee 32: an answer without an end is read up to a cap", async () => {
      const { server, model } = await start(format, { timeoutMs: 30_000 });
      server.play({ kind: "endless", status: 200 });
      const completion = await model.complete(request);
      assert.equal(refusalOf(completion), "rejected");
      assert.match(messageOf(completion), /the answer is longer than 4194304 bytes$/);
      assert.equal(server.asked.length, 1);
      assert.ok(server.endlessBytes() < 4 * answerBytesMax, `${server.endlessBytes()} bytes were sent`);
    });

    it("guarantee 32: an error without an end is read up to a cap, and is classified by its status", async () => {
      const { server, model } = await start(format, { timeoutMs: 30_000 });
      server.play({ kind: "endless", status: 401 });
      assert.equal(refusalOf(await model.complete(request)), "auth");
      assert.equal(server.asked.length, 1);
      assert.ok(server.endlessBytes() < 4 * answerBytesMax, `${server.endlessBytes()} bytes were sent`);
    });

    it("stops when the caller aborts", async () => {
      const { server, model } = await start(format);
      server.play({ kind: "hang" });
      const caller = new AbortController();
      const answer = model.complete({ ...request, signal: caller.signal });
      while (server.asked.length === 0) await sleep(5);
      caller.abort();
      assert.equal(refusalOf(await answer), "cancelled");
    });

    it("returns an empty answer as an empty text", async () => {
      const { server, model } = await start(format);
      server.play({ kind: "answer", text: "" });
      assert.partialDeepStrictEqual(await model.complete(request), { kind: "text", text: "", finish: "stop" });
    });

    it("reports that an answer was cut off", async () => {
      const { server, model } = await start(format);
      server.play({ kind: "answer", text: "The kiln is", finish: "length" });
      assert.partialDeepStrictEqual(await model.complete(request), { text: "The kiln is", finish: "length" });
    });

    it("does not mistake reasoning for an answer", async () => {
      const { server, model } = await start(format);
      server.play({ kind: "answer", text: "", reasoning: "Hm, a kiln." });
      assert.partialDeepStrictEqual(await model.complete(request), { kind: "text", text: "" });
    });

    it("guarantee 21: a text that the provider refuses to process is `filtered`", async () => {
      const { server, model } = await start(format);
      server.play({ kind: "answer", text: "", finish: "filtered" });
      assert.equal(refusalOf(await model.complete(request)), "filtered");
    });
  });
}
const gapMs = ([first, second]: readonly Asked[]): number => (second?.atMs ?? NaN) - (first?.atMs ?? NaN);
