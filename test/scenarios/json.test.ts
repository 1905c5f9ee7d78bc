/**
 * Tests that what `--json` prints is what docs/json.md documents: every command is run in every way that changes its
 * output, and validated against its schema. The schemas allow no other fields, so a new one must be documented.
 */

import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { Check, Errors } from "typebox/schema";
import { startScriptedProvider } from "../support/scripted-provider.ts";
import type { ScriptedProvider } from "../support/scripted-provider.ts";
import { commands } from "../../src/cli/commands/index.ts";
import { object, type Schema } from "../../src/cli/commands/_json.ts";
import { failureJson } from "../../src/cli/commands/_shapes.ts";
import { isObject, type Json } from "../../src/core/base/json.ts";
import { createLcm } from "../../src/core/lcm.ts";
import type { ConversationId } from "../../src/core/model/types.ts";
import { recallGuidance } from "../../src/core/prompts/guidance.ts";
import { systemClock } from "../../src/index.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { usePostgres } from "../support/shared-postgres.ts";
import { createDeepPlace, draftText } from "./golden.ts";
import type { DeepPlace } from "./golden.ts";
import { lcm, lcmBeside } from "./program.ts";
import type { Run } from "./program.ts";

const fixtures = fileURLToPath(new URL("../fixtures/", import.meta.url));

const server = await usePostgres();

const d3 = "sum_0000000100000014";
const d1 = "sum_0000000100000021";
const leaf = "sum_0000000100000023";

type Line = readonly [command: string, ...args: readonly string[]];

/** In this order, in one place: later runs see what earlier ones changed. */
const lines = ({ deep, state }: DeepPlace): readonly Line[] => [
  ["status"],
  ["setup"],
  ["setup", "--remove"],
  ["settings"],
  ["proxy", "status"],
  ["conversations"],
  ["conversations", "--agent", "nobody"],
  ["messages", "1", "--limit", "100"],
  ["messages", "2"],
  ["context", "1"],
  ["context", "1", "--budget", "300"],
  ["context", "3"],
  ["seen", "1"],
  ["seen", "1#1", "--text"],
  ["seen", "1#1", "1#2"],
  ["seen", "1", "--find", "harbour"],
  ["seen", "1", "--find", "zeppelin"],
  ["seen", "msg_1-9999"],
  ["stats", "1"],
  ["dag", "1", "--messages"],
  ["dag", "--summary", d1],
  ["index"],
  ["grep", "harbour"],
  ["grep", "harbour", "--limit", "1"],
  ["grep", "-e", "harb\\w+", "--scope", "messages"],
  ["grep", "zeppelin"],
  ["grep", "the", "--scope", "files"],
  ["ask", "what about the harbour?", "--no-model"],
  ["ask", "what about the harbour?"],
  ["ask", "what about the harbour?", "--thorough"],
  ["ask", "what about the harbour?", "--thorough", "--apply"],
  ["map", "what is it about?", "--role", "user"],
  ["map", "what is it about?", "--role", "user", "--apply"],
  ["recent", "--since", "2020-01-01"],
  ["describe", d3],
  ["describe", leaf],
  ["describe", "msg_1-1"],
  ["describe", "msg_1-1..3"],
  ["describe", deep.file],
  ["expand", d3],
  ["expand", leaf, "--messages"],
  ["expand", d3, "--depth", "3", "--messages", "--tokens", "50"],
  ["prompts"],
  ["prompts", "--show", "leaf"],
  ["prompts", "--render", d1],
  ["prompts", "--render", "3"],
  ["prompts", "--export", join(state, "prompts")],
  ["demo"],
  ["import", join(state, "chat.jsonl")],
  ["import", join(state, "edited.jsonl"), "--session", "chat"],
  ["import", join(state, "folder-of-all")],
  ["import", join(state, "chat.jsonl"), join(state, "notes.txt")],
  ["import", join(state, "other.db")],
  ["export", "1"],
  ["export", "1", "--output", join(state, "out.jsonl")],
  ["compact", "1"],
  ["compact", "1", "--no-model", "--until", "100"],
  ["compact", "1", "--apply"],
  ["compact", "1", "--no-model", "--until", "100", "--apply"],
  ["compact", "3", "--no-model", "--apply", "--mode", "due"],
  ["rewrite", "1", "--all", "--estimate"],
  ["rewrite", "1", "--summary", d1],
  ["rewrite", "1", "--summary", d1, "--apply"],
  ["rewrite", "1", "--summary", d1, "--fresh", "--diff", "--apply"],
  ["undo", "1"],
  ["rewrite", "1", "--depth", "9"],
  ["repair", "--estimate"],
  ["repair"],
  ["repair", "--apply"],
  ["history"],
  ["history", "--change", "1"],
  ["undo"],
  ["undo", "--apply"],
  ["pins", "1"],
  ["pins", "1", "--find"],
  ["pins", "--add", "msg_1-1", "--apply"],
  ["pins", "--remove", "msg_1-1", "--apply"],
  ["dissolve", "1", "--summary", d3],
  ["dissolve", "1", "--summary", d3, "--apply"],
  ["transplant", "1", "3"],
  ["transplant", "1", "3", "--apply"],
  ["transplant", "3", "4"],
  ["doctor"],
  ["doctor", "--fix"],
  ["doctor", "--fix", "--apply"],
  ["forget", "--message", "msg_1-2"],
  ["forget", "--message", "msg_1-2", "--apply"],
  ["forget", "--secret", "harbour"],
  ["forget", "--secret", "nowhere to be found"],
  ["forget", "--secret", "ferry", "--apply"],
  ["history", "--verbose"],
  ["prune", "--older-than", "1d"],
  ["prune", "2", "--archive", join(state, "old.db"), "--apply"],
  ["prune", "3", "--delete", "--apply"],
  ["prune", "--match", "nobody"],
  ["backup"],
  ["backup", join(state, "copy.db")],
  ["restore"],
  ["restore", "copy.db"],
  ["restore", "copy.db", "--apply"],
  ["adopt"],
  ["adopt", "--db", join(state, "older.db")],
  ["status"],
  ["move", "--to", `${server.url}?schema=json`],
  ["move", "--to", `${server.url}?schema=json`, "--apply"],
  ["completion", "bash"],
  ["complete", "--", "gr"],
  ["status", "--db", "none.db"],
  ["undo", "99"],
];

/** It goes on until it is stopped: test/web/command.test.ts compares what it prints. */
const tried = ["web"];

let provider: ScriptedProvider;
before(async () => (provider = await startScriptedProvider()));
after(async () => await provider.close());

/** Adds what the runs above take in. */
async function createPlace(): Promise<DeepPlace> {
  const place = await createDeepPlace(provider);
  const { state } = place;
  const chat = (...texts: readonly string[]): string =>
    texts.map((content) => `${JSON.stringify({ role: "user", content })}\n`).join("");
  const same = Array.from({ length: 20 }, (_, n) => `hello ${n}`);
  const folder = join(state, "folder-of-all");
  mkdirSync(folder);
  writeFileSync(join(state, "chat.jsonl"), chat(...same, "one"));
  writeFileSync(join(state, "edited.jsonl"), `${chat(...same, "two")}{"torn`);
  writeFileSync(join(state, "notes.txt"), "no transcript\n");
  writeFileSync(join(folder, "metrics.jsonl"), '{"user":1}\n');
  writeFileSync(join(folder, "fine.jsonl"), chat("fine"));
  copyFileSync(join(fixtures, "lcm-0.15.3.db"), join(state, "older.db"));
  lcm({ state }, "import", join(folder, "fine.jsonl"), "--db", join(state, "other.db"));
  await recordPrompts(place);
  return place;
}

/** Two prompts of the first conversation, the second of which evicts. */
async function recordPrompts({ path }: DeepPlace): Promise<void> {
  const engine = createLcm({ store: await openSqlite({ path, housekeeping: false }), clock: systemClock });
  for (const budget of [100_000, 300]) {
    const guidance = recallGuidance({ isFolded: true, isRestarted: false });
    await engine.recordPrompt(await engine.assemble(1 as ConversationId, { budget }), { guidance, model: "m" });
  }
  await engine.close();
}

/** Damages what `doctor --fix` fixes. */
function damage({ path }: DeepPlace): void {
  const db = new DatabaseSync(path);
  db.exec(`
    UPDATE conversations SET message_count = 12 WHERE conversation_id = 1;
    DELETE FROM messages_fts WHERE rowid = (1 << 24) + 17;`);
  db.close();
}

const schemas = new Map(commands.map(({ name, json }) => [name, json]));
const errorSchema = object({ error: failureJson });

/** What is wrong with it; empty if it fits. */
const problemsOf = (schema: Schema, value: unknown): readonly string[] =>
  Check(schema, value) ? [] : Errors(schema, value)[1].map((error) => `${error.instancePath}: ${error.message}`);

const asJson = (line: Line): readonly string[] => {
  const at = line.indexOf("--");
  return at === -1 ? [...line, "--json"] : line.toSpliced(at, 0, "--json");
};

describe("--json", () => {
  const printed: (readonly [name: string, value: Json])[] = [];

  it("prints what the schema of the command describes, and nothing else", async () => {
    const place = await createPlace();
    provider.play(...Array.from({ length: 200 }, (_, n) => ({ kind: "answer", text: draftText(n) }) as const));
    const wrong: string[] = [];
    for (const line of lines(place)) {
      const [name] = line;
      if (name === "doctor" && line.length === 1) damage(place);
      const { json, status, stderr }: Run = await lcmBeside(place, asJson(line));
      const schema = "error" in json && !("plan" in json) ? errorSchema : schemas.get(name);
      assert.ok(schema, name);
      const problems = problemsOf(schema, json);
      if (problems.length > 0) wrong.push(`lcm ${line.join(" ")} (${status}): ${problems.join("; ")} ${stderr}`);
      printed.push([name, json]);
    }
    assert.deepEqual(wrong, []);
  });

  it("is tried with every command, in every form that its schema has", () => {
    const run = new Set(printed.map(([name]) => name));
    for (const { name, json } of commands) assert.equal(run.has(name) || tried.includes(name), json !== null, name);
    for (const [name, schema] of schemas) {
      const forms = schema?.["anyOf"];
      if (!Array.isArray(forms)) continue;
      const values = printed.filter(([of]) => of === name).map(([, value]) => value);
      for (const form of forms)
        assert.ok(
          values.some((value) => Check(form as Schema, value)),
          `${name} ${JSON.stringify(form)}`,
        );
    }
  });

  it("would fail this test with a field too many, too few, or of another type", () => {
    for (const [name, value] of printed) {
      const schema = schemas.get(name);
      if (!isObject(value) || "error" in value || schema === undefined || schema === null) continue;
      for (const [path, surprising] of withSurprises(value, ""))
        assert.equal(Check(schema, surprising), isFree.test(`${name}${path}`), `${name}${path} with a surprise`);
      for (const key of Object.keys(value).filter((each) => isRequired(schema, value, each))) {
        const { [key]: gone, ...rest } = value;
        assert.notDeepEqual(problemsOf(schema, rest), [], `${name} without ${key}`);
        if (typeof gone === "number")
          assert.notDeepEqual(problemsOf(schema, { ...value, [key]: "1" }), [], `${name}.${key}`);
      }
    }
  });
});

/** Objects with any keys: a host's messages, prompts by name, numbers by level. */
const isFree =
  /^(?:context\.messages\b|seen\.messages\b|messages\.messages\[\d+\]\.message\b|export\.entries\b|status\.belowNormal$)/;

/** The value with one key more, in each of its objects in turn. */
function* withSurprises(value: Json, path: string): Generator<readonly [path: string, value: Json]> {
  if (Array.isArray(value)) {
    // The first few of a list are enough.
    for (const [at, each] of value.slice(0, 3).entries())
      for (const [inner, changed] of withSurprises(each, `${path}[${at}]`))
        yield [inner, value.toSpliced(at, 1, changed)];
  }
  if (!isObject(value)) return;
  yield [path, { ...value, surprise: 1 }];
  for (const [key, each] of Object.entries(value))
    for (const [inner, changed] of withSurprises(each ?? null, `${path}.${key}`))
      yield [inner, { ...value, [key]: changed }];
}

/** Of the form that the value has. */
const isRequired = (schema: Schema, value: unknown, key: string): boolean => {
  const forms = Array.isArray(schema["anyOf"]) ? schema["anyOf"] : [schema];
  const form = forms.find((each) => Check(each as Schema, value));
  return isObject(form) && Array.isArray(form["required"]) && form["required"].includes(key);
};
