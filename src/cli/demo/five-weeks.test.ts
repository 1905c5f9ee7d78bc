import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { messageToStore, textOfParts } from "../../core/messages/codec.ts";
import type { NewMessage } from "../../core/model/types.ts";
import { readDemoTranscript, readKeyFacts } from "./five-weeks.ts";
import type { JsonObject } from "../../core/base/json.ts";
import { isObject } from "../../core/base/json.ts";
import { parseTimestamp } from "../../core/base/time.ts";

const entries = readDemoTranscript();
const keyFacts = readKeyFacts();
const messages = entries.map((entry): NewMessage => {
  const at = parseTimestamp(entry.timestamp);
  assert.ok(at !== null, entry.id);
  return messageToStore(entry.message, { key: entry.id, at });
});
const textOf = new Map(messages.map(({ key, parts }) => [key, textOfParts(parts)]));

/** How often one text may come again: a question of every morning, a thank-you. */
const repeatsMax = 5;
/** What the setting `largeFileTokenThreshold` is by default. */
const largeFileTokens = 25_000;

const blocksOf = ({ message: { content } }: (typeof entries)[number]): readonly JsonObject[] =>
  Array.isArray(content) ? content.filter((block) => isObject(block)) : [];

describe("the demo's conversation", () => {
  it("is about 1,500 messages and about ten leaves long", () => {
    assert.ok(entries.length >= 1_450 && entries.length <= 1_550, `${entries.length} messages`);
    const tokens = messages.reduce((sum, message) => sum + message.tokens, 0);
    assert.ok(tokens >= 180_000 && tokens <= 260_000, `${tokens} tokens`);
  });

  it("has an id for every entry, and each continues the one before it", () => {
    assert.equal(new Set(entries.map(({ id }) => id)).size, entries.length);
    assert.deepEqual(
      entries.map((entry) => entry["parentId"]),
      [null, ...entries.slice(0, -1).map(({ id }) => id)],
    );
  });

  it("lasts five weeks, in chronological order, with one night message", () => {
    const times = messages.map(({ at }) => String(at));
    assert.deepEqual(times, times.toSorted());
    assert.equal(new Set(times).size, times.length);
    assert.equal(new Set(times.map((time) => time.slice(0, 10))).size, 35);
    assert.equal(times[0]?.slice(0, 10), "2026-09-07");
    assert.equal(times.at(-1)?.slice(0, 10), "2026-10-11");
    const nights = new Set(times.filter((time) => time.slice(11, 13) < "05").map((time) => time.slice(0, 10)));
    assert.deepEqual([...nights], ["2026-09-29"]);
    for (const entry of entries) assert.equal(entry.message["timestamp"], Date.parse(entry.timestamp));
  });

  it("answers every tool call immediately", () => {
    let open: readonly unknown[] = [];
    for (const entry of entries) {
      const { role, content, toolCallId, toolName } = entry.message;
      if (role === "toolResult") {
        assert.deepEqual([toolCallId, toolName], open[0], entry.id);
        open = open.slice(1);
        continue;
      }
      assert.deepEqual(open, [], entry.id);
      const blocks = blocksOf(entry);
      open = blocks.filter(({ type }) => type === "toolCall").map(({ id, name }) => [id, name]);
      if (role === "user") assert.equal(typeof content, "string");
      else
        assert.ok(
          blocks.some(({ type }) => type !== "thinking"),
          `${entry.id} only thinks`,
        );
    }
    assert.deepEqual(open, []);
  });

  it("does not repeat itself", () => {
    const times = new Map<string, number>();
    for (const text of textOf.values()) times.set(text, (times.get(text) ?? 0) + 1);
    assert.deepEqual(
      [...times].filter(([, count]) => count > repeatsMax),
      [],
    );
  });

  it("contains everything that a real one contains", () => {
    const said = [...textOf.values()].join("\n");
    for (const script of [/\p{Script=Hiragana}/u, /\p{Script=Han}/u, /\p{Script=Hangul}/u, /\p{Emoji_Presentation}/u])
      assert.match(said, script);
    const raw = entries.map((entry) => JSON.stringify(entry));
    for (const kind of ['"type":"thinking"', '"thinkingSignature"', '"type":"toolCall"', '"isError":true'])
      assert.ok(
        raw.some((line) => line.includes(kind)),
        kind,
      );
  });

  it("has one pasted file that is too large for a prompt, with correct figures quoted from it", () => {
    const large = messages.filter(({ tokens }) => tokens > largeFileTokens / 4);
    assert.deepEqual(
      large.map(({ key }) => key),
      ["august-lines-01"],
    );
    const [, file = ""] =
      /<file name="order-lines-2026-08\.csv" mime="text\/csv">\n(.+)\n<\/file>$/s.exec(
        textOf.get("august-lines-01") ?? "",
      ) ?? [];
    const lines = file.split("\n").slice(1);
    assert.ok((large[0]?.tokens ?? 0) > largeFileTokens);
    const pieces = new Map<string, number>();
    for (const line of lines) {
      const [, , , product = "", count] = line.split(",");
      pieces.set(product, (pieces.get(product) ?? 0) + Number(count));
    }
    const ranked = [...pieces].toSorted(([, a], [, b]) => b - a);
    const told = textOf.get("august-lines-02") ?? "";
    assert.match(told, new RegExp(`^Read: ${lines.length} lines`));
    for (const [product, count] of [...ranked.slice(0, 3), ...ranked.slice(-1)])
      assert.match(told, new RegExp(`${product.split(" ")[0]}.{1,20}with ${count}\\b`));
  });
});

describe("the key facts", () => {
  it("are stated in the entries that they name", () => {
    for (const { question, answer, saidIn } of keyFacts)
      for (const words of answer) assert.ok(textOf.get(saidIn)?.includes(words), `${question} ${saidIn}: ${words}`);
  });

  it("come from the two speakers, not from tools, each in its own entry", () => {
    assert.equal(new Set(keyFacts.map(({ saidIn }) => saidIn)).size, keyFacts.length);
    const roles = new Map(messages.map(({ key, role }) => [key, role]));
    for (const { saidIn } of keyFacts) assert.match(roles.get(saidIn) ?? "", /^(user|assistant)$/);
  });

  it("are spread over the five weeks, in order", () => {
    const places = keyFacts.map(({ saidIn }) => entries.findIndex(({ id }) => id === saidIn));
    assert.deepEqual(
      places,
      places.toSorted((a, b) => a - b),
    );
    const gaps = [...places, entries.length].map((place, at) => place - (places[at - 1] ?? 0));
    assert.ok(Math.max(...gaps) < entries.length / 12, `${Math.max(...gaps)} messages without a fact`);
  });
});
