/**
 * Runs random lives of a database: hosts continue; operators change, undo, forget and delete, in any order. Whatever
 * happens, no change reported as free fails to undo, and nothing forgotten remains anywhere.
 */

import assert from "node:assert/strict";
import { describe } from "node:test";
import type { Conversation, SummaryId } from "../../src/core/model/types.ts";
import type { Store } from "../../src/core/model/store.ts";
import { assertSameRows } from "../support/dump.ts";
import { dumpOf, dumpOfContent } from "./dump.ts";
import { createRandom } from "../support/random.ts";
import type { Random } from "../support/random.ts";
import { createHost } from "../support/scripted-host.ts";
import type { ScriptedHost } from "../support/scripted-host.ts";
import { foldPlaces, itOn, numbered, say } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";
import { removeAll } from "./old-conversation.ts";
import { dissolve, forget, onScene, purge, rewrite, sound, takeBack, transplant } from "./undo-scene.ts";

const lives = 4;
const steps = 40;

export function testUndoLives(subject: StoreUnderTest): void {
  const it = itOn(subject, onScene);

  describe("random lives", () => {
    for (let seed = 1; seed <= lives; seed++) {
      it(
        `stay sound, what is free can be undone, and what is forgotten is nowhere (seed ${seed})`,
        async ({ store, path, talk, host, other, guest }) => {
          const random = createRandom(seed);
          const places = [
            { conversation: talk, voice: host },
            { conversation: other, voice: guest },
          ];
          const life = { subject, store, path, random, places, secrets: new Set<string>(), unsaid: new Set<string>() };
          for (let step = 0; step < steps; step++) {
            await live(life, step);
            await sound(store, ["summary_outdated"]);
            await checkForgotten(life, step);
          }
        },
        ["summary_outdated"],
      );
    }
  });
}

interface Place {
  readonly conversation: Conversation;
  readonly voice: ScriptedHost;
}

interface Life {
  readonly subject: StoreUnderTest;
  readonly store: Store;
  readonly path: string;
  readonly random: Random;
  /** Where something can happen; grows with segments and targets, and loses what is removed. */
  readonly places: Place[];
  /** Words that were forgotten as secrets, and words of messages that were forgotten. */
  readonly secrets: Set<string>;
  readonly unsaid: Set<string>;
}

/** Words that occur in one message only, and in what was written from it. */
const wordsIn = (text: string): readonly string[] => text.match(/word\d+x\d+y/g) ?? [];

/**
 * Asserts that a secret is nowhere. The words of a forgotten message may remain only in a summary that waits to be
 * rewritten.
 */
async function checkForgotten({ subject, path, secrets, unsaid }: Life, step: number): Promise<void> {
  for (const [table, rows] of Object.entries(await dumpOf(subject, path))) {
    for (const row of rows) {
      const told = wordsIn(row);
      const isMarked = table === "summaries" && !row.includes('"rewrite_reason":null');
      const bad = told.filter((word) => secrets.has(word) || (unsaid.has(word) && !isMarked));
      assert.deepEqual(bad, [], `step ${step}: forgotten, and in ${table}: ${row}`);
    }
  }
}

/** A text as a model would write it: with words of its source, except forgotten ones. */
async function textFrom({ store, secrets, unsaid }: Life, name: string, ids: readonly SummaryId[]): Promise<string> {
  const links = [...(await store.sources(ids)).values()];
  const below = [
    ...(await store.messages({ ids: links.flatMap(({ messages }) => messages) })),
    ...(await store.summaries({ ids: links.flatMap(({ summaries }) => summaries) })),
  ];
  const words = below.flatMap(({ text }) => wordsIn(text)).filter((word) => !secrets.has(word) && !unsaid.has(word));
  return [name, ...words.slice(0, 4)].join(" ");
}

/** One step of a life. After every change it tries an undo, and usually a redo. */
async function live(life: Life, step: number): Promise<void> {
  const { subject, store, path, random, places, secrets, unsaid } = life;
  const { conversation: place, voice } = random.pick(places);
  const context = await store.context(place.id);
  const shown = context.flatMap((item) => (item.kind === "summary" ? [item.id] : []));
  const all = await store.summaries({ conversation: place.id });
  const standsAlone = async (id: SummaryId): Promise<boolean> =>
    ((await store.derived([id])).get(id) ?? []).length + (await store.carriedBy(id)).length === 0;

  const changing = async (work: () => Promise<number>): Promise<void> => {
    const before = await dumpOfContent(subject, path);
    const change = await work();
    await sound(store, ["summary_outdated"]);
    if (random.chance(0.4)) return;
    const { obstacles } = await store.planUndo(change);
    if (obstacles.length > 0) {
      for (const { message } of obstacles) assert.match(message, /forgotten|are gone/, `step ${step}`);
      return;
    }
    const undone = await takeBack(store, change);
    assertSameRows(await dumpOfContent(subject, path), before, `step ${step}`);
    if (random.chance(0.5) && (await store.planUndo(undone)).obstacles.length === 0) await takeBack(store, undone);
  };

  const weights = { append: 3, fold: 5, rewrite: 3, dissolve: 3, purge: 1, transplant: 1.5, older: 5 };
  const rarer = { index: 1, segment: 0.7, secret: 0.7, message: 0.7, remove: 0.4 };
  switch (random.weighted({ ...weights, ...rarer })) {
    case "append":
      await say(store, place, voice, ...numbered(3, (n) => `said in step ${step}: word${step}x${n}y, and so on`));
      break;
    case "fold": {
      const from = random.below(Math.max(1, context.length - 1));
      const depth = context[from]?.depth;
      let to = from;
      while (to < from + 3 && context[to + 1]?.depth === depth) to++;
      const run = context.slice(from, to + 1);
      if (to === from || run.reduce((sum, { tokens }) => sum + tokens, 0) <= 1) break;
      const folded = await foldPlaces(store, place.id, [from, to], `folded in step ${step}`);
      await rewrite(store, folded, await textFrom(life, `written in step ${step}`, [folded]));
      break;
    }
    case "rewrite": {
      const picked = random.shuffled(all.filter(({ carriedFrom }) => carriedFrom === null));
      if (picked.length === 0) break;
      const bottomUp = picked.slice(0, random.between(1, 3)).toSorted((a, b) => a.depth - b.depth);
      await changing(async () => {
        let change: number | undefined;
        for (const [n, { id }] of bottomUp.entries()) {
          const text = await textFrom(life, `anew ${step} ${n}`, [id]);
          change = await rewrite(store, id, text, change === undefined ? {} : { change });
        }
        return change ?? assert.fail();
      });
      break;
    }
    case "dissolve": {
      const own = all.filter(({ id, carriedFrom }) => carriedFrom === null && shown.includes(id));
      if (own.length === 0) break;
      const { id } = random.pick(own);
      const purging = (await standsAlone(id)) && random.chance(0.5);
      await changing(async () => await dissolve(store, place.id, id, purging));
      break;
    }
    case "purge":
      for (const { id } of all) {
        if (shown.includes(id) || !(await standsAlone(id))) continue;
        await changing(async () => await purge(store, place.id, id));
        break;
      }
      break;
    case "transplant": {
      if (shown.length === 0) break;
      const others = places.filter(({ conversation }) => conversation.id !== place.id);
      const isNew = others.length === 0 || random.chance(0.5);
      const target = isNew ? await newPlace(life, `target of ${step}`) : random.pick(others);
      const { existing, copied } = await store.planTransplant(place.id, target.conversation.id);
      if (existing.length + copied > 0) break;
      await changing(async () => await transplant(store, place.id, target.conversation.id));
      break;
    }
    case "older": {
      // Any change at all: it works, or reports why not and does nothing.
      const entries = await store.journal({});
      if (entries.length === 0) break;
      const { change, subject: about } = random.pick(entries);
      const only = random.chance(0.3) && about.startsWith("sum_") ? (about as SummaryId) : undefined;
      const before = await dumpOfContent(subject, path);
      const { obstacles } = await store.planUndo(change, only);
      const outcome = await store.undo(change, only);
      assert.equal(outcome.kind, obstacles.length === 0 ? "undone" : "blocked", `step ${step}`);
      if (outcome.kind === "blocked") assertSameRows(await dumpOfContent(subject, path), before);
      break;
    }
    case "segment": {
      const { sessionId, sessionKey } = place;
      const session = { sessionId, ...(sessionKey === null ? {} : { sessionKey }) };
      const conversation = await store.openSegment(session, { carryDepth: random.below(2) });
      places.push({ conversation, voice: createHost(`s${step}`) });
      break;
    }
    case "secret": {
      const words = [...new Set(Object.values(await dumpOf(subject, path)).flatMap((rows) => rows.flatMap(wordsIn)))];
      if (words.length === 0) break;
      const text = random.pick(words);
      await forget(store, { kind: "secret", text });
      secrets.add(text);
      break;
    }
    case "message": {
      const said = (await store.messages({ conversation: place.id })).filter(({ text }) => wordsIn(text).length > 0);
      if (said.length === 0) break;
      const { id, text } = random.pick(said);
      await forget(store, { kind: "message", id });
      for (const word of wordsIn(text)) unsaid.add(word);
      break;
    }
    case "remove":
      if (places.length < 3) break;
      await removeAll(store, place.id);
      places.splice(
        places.findIndex(({ conversation }) => conversation.id === place.id),
        1,
      );
      break;
    case "index":
      await store.index(random.between(1, 50));
      break;
  }
}

async function newPlace({ store, places }: Life, sessionId: string): Promise<Place> {
  const place = { conversation: await store.open({ sessionId }), voice: createHost(sessionId) };
  places.push(place);
  return place;
}
