/** Whatever happens to a conversation, each recorded prompt is rebuilt to the byte, or says why not. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { deliver, summary } from "../../../test/store-contract/ground.ts";
import { purge, rewrite } from "../../../test/store-contract/undo-scene.ts";
import { freshLcms } from "../../../test/support/fresh-lcm.ts";
import { pickRun } from "../../../test/support/grown-conversation.ts";
import { createRandom, type Random } from "../../../test/support/random.ts";
import { createHost, turnWithTool, user, type ScriptedHost } from "../../../test/support/scripted-host.ts";
import { createLcm, type Lcm } from "../lcm.ts";
import { resolveSettings } from "../model/settings.ts";
import type { Conversation } from "../model/types.ts";
import type { Assembly } from "../assembly/assemble.ts";
import { recallGuidance } from "../prompts/guidance.ts";
import { sharedBytes } from "./compare.ts";
import { guidanceLine, lineOf } from "./prompt-text.ts";

const onLcm = freshLcms("seen");

interface Life {
  readonly lcm: Lcm;
  readonly random: Random;
  readonly talk: Conversation;
  readonly host: ScriptedHost;
  /** What was sent, by the number of the prompt. */
  readonly sent: Map<number, string>;
}

describe("guarantee 35: what the model saw", () => {
  for (let seed = 1; seed <= 12; seed++)
    it(`every prompt of a random life is rebuilt to the byte (seed ${seed})`, async () => {
      await onLcm(async ({ store, lcm: { clock } }) => {
        const random = createRandom(seed);
        const config = { freshTailCount: random.between(1, 12), pinsShare: 0.2, contextTarget: random.pick([0, 0.6]) };
        const { values: settings } = resolveSettings({ env: {}, config });
        const lcm = createLcm({ store, clock, settings });
        const talk = await store.open({ sessionId: "talk", sessionKey: "talk" });
        const life: Life = { lcm, random, talk, host: createHost("h"), sent: new Map() };
        for (let step = 0; step < 120; step++) {
          await live(life, step);
          if (random.chance(0.7)) await prompt(life);
        }
        await assertRebuilt(life);
      });
    });
});

async function live({ lcm: { store }, random, talk, host }: Life, step: number): Promise<void> {
  const context = await store.context(talk.id);
  const summaries = await store.summaries({ conversation: talk.id });
  const chance = { say: 8, fold: 5, rewrite: 3, dissolve: 2, purge: 1, undo: 4, pin: 2, rewind: 1.5, copy: 0.5 };
  switch (random.weighted(chance)) {
    case "say":
      for (const raw of saying(random, step)) host.says(raw);
      await deliver(store, talk, host);
      break;
    case "fold": {
      const run = pickRun(context, random);
      const words = `step ${step} & <in short> ${random.hex16()}`;
      if (run.length > 0) await store.fold(talk.id, run, summary(words));
      break;
    }
    case "rewrite":
      if (summaries.length > 0) await rewrite(store, random.pick(summaries).id, `anew in step ${step}`);
      break;
    case "dissolve": {
      const shown = context.filter((item) => item.kind === "summary" && item.ordinal !== null);
      const at = shown.length === 0 ? undefined : random.pick(shown);
      if (at?.kind === "summary") await store.dissolve({ conversation: talk.id, summary: at.id, ordinal: at.ordinal });
      break;
    }
    case "purge":
      for (const { id } of summaries) {
        const isUsed = context.some((item) => item.id === id) || ((await store.derived([id])).get(id) ?? []).length > 0;
        if (!isUsed) return void (await purge(store, talk.id, id));
      }
      break;
    case "undo": {
      const entries = await store.journal({ conversation: talk.id });
      // The copies of a transplant that was undone are gone; see below.
      const free = entries.filter(({ subject }) => !subject.includes(" → "));
      if (free.length > 0) await store.undo(random.pick(free).change);
      break;
    }
    case "pin": {
      const said = await store.messages({ conversation: talk.id, role: "user" });
      if (said.length === 0) break;
      const { id: message, text, at: saidAt } = random.pick(said);
      const { forgets } = (await store.conversation(talk.id)) ?? talk;
      const state = random.pick(["pinned", "unpinned"] as const);
      const words = `${text.slice(0, random.between(1, 60))} <${step}>`;
      await store.pin({
        conversation: talk.id,
        pin: { message, words, saidAt, state, origin: "person", reason: "" },
        forgets,
      });
      break;
    }
    case "rewind":
      if (host.entries.length > 0) host.goesBackTo(random.pick(host.entries.slice(-12)).key);
      break;
    case "copy": {
      const other = await store.open({ sessionId: `other ${step}` });
      host.notes("line");
      const guest = createHost(`guest ${step}`);
      for (const raw of saying(random, step)) guest.says(raw);
      await deliver(store, other, guest);
      const [first, ...rest] = await store.context(other.id);
      if (first !== undefined) await store.fold(other.id, [first, ...rest], summary(`from elsewhere ${step}`));
      await store.transplant({ source: other.id, target: talk.id });
      break;
    }
  }
}

function saying(random: Random, step: number) {
  const long = "lorem ipsum ünïcode 漢字 ".repeat(random.pick([0, 1, 20]));
  const turn = turnWithTool(`c${step}`, `question ${step} ${long}`, `result ${step} ${long}`);
  const picture = { type: "image", data: "aGVsbG8=", mimeType: "image/png" };
  const words = { type: "text", text: `and then ${step} ${long}` };
  switch (random.below(6)) {
    case 0:
      return turn.slice(0, 2); // A call whose result never comes, or is set aside.
    case 1:
      return [{ role: "user", content: [{ type: "text", text: `look ${step}` }, picture] }];
    case 2:
      return [user(`say ${step} ${long}`), { role: "assistant", content: [{ type: "text", text: `said ${step}` }] }];
    case 3:
      // A user message with a result and words of the user.
      return [
        user(`ask ${step}`),
        { role: "assistant", content: [{ type: "tool_use", id: `t${step}`, name: "read", input: { path: long } }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: `t${step}`, content: long || "ok" }, words] },
      ];
    default:
      return turn;
  }
}

/** Assembles and records as a surface does; the last messages may be the host's own. */
async function prompt({ lcm, random, talk, sent }: Life): Promise<void> {
  const budget = random.pick([60, 300, 900, 3_000, 100_000]);
  const hidden = (await lcm.store.messages({ conversation: talk.id, limit: 3 })).map(({ key }) => [key, null] as const);
  const edits = random.chance(0.1) ? { edits: new Map(hidden) } : {};
  const assembly = await lcm.assemble(talk.id, { budget, ...edits });
  const guidance = random.chance(0.5) ? recallGuidance({ isFolded: true, isRestarted: random.chance(0.5) }) : null;
  const messages = assembly.messages.length - (random.chance(0.1) ? Math.min(1, assembly.messages.length) : 0);
  const number = await lcm.recordPrompt(assembly, { guidance, messages });
  assert.ok(number !== null);
  sent.set(number, textOf(assembly, guidance, messages));
}

/** Bytes of the lines that two texts begin with. */
function sharedIn(one: string, other: string): number {
  const others = other.split("\n");
  const lines = one.split("\n");
  const end = lines.findIndex((line, at) => line !== others[at] || at === lines.length - 1);
  return Buffer.byteLength(
    lines
      .slice(0, end)
      .map((line) => `${line}\n`)
      .join(""),
  );
}

const textOf = ({ messages }: Assembly, guidance: string | null, count: number): string =>
  [...(guidance === null ? [] : [guidanceLine(guidance)]), ...messages.slice(0, count).map(lineOf)].join("");

async function assertRebuilt({ lcm, talk, sent }: Life): Promise<void> {
  const records = await lcm.prompts(talk.id);
  assert.equal(records.length, sent.size);
  for (const [at, record] of records.entries()) {
    const before = records[at - 1];
    const alike = before === undefined ? 0 : sharedBytes(before, record);
    assert.ok(
      alike <= sharedIn(sent.get(before?.number ?? 0) ?? "", sent.get(record.number) ?? ""),
      `no more is shared ${alike} ${JSON.stringify([before, record])}`,
    );
    const { text, isExact, reasons } = await lcm.rebuild(record);
    const about = `prompt ${record.number}: ${reasons.join("; ")} ${JSON.stringify(record.head)}`;
    assert.ok(text === sent.get(record.number) && isExact, about);
  }
}
