/**
 * The conversation that the demo shows: five weeks between the owner of a small tea shop and her assistant, in the
 * shape in which a host writes its transcript. The arcs are written out, with their day and time; between them stand
 * the routines of every day. It comes out the same every time.
 */

import type { JsonObject } from "../../core/model.ts";
import { databaseArcs } from "./arcs-database.ts";
import { homeArcs } from "./arcs-home.ts";
import { kitchenArcs } from "./arcs-kitchen.ts";
import { paymentArcs } from "./arcs-payments.ts";
import { shopArcs } from "./arcs-shop.ts";
import { travelArcs } from "./arcs-travel.ts";
import { createChance } from "./chance.ts";
import type { Chance } from "./chance.ts";
import { demoYear, readArcs, readMessages } from "./read.ts";
import type { Arc } from "./read.ts";
import { listOf } from "./routine.ts";
import type { Day } from "./routine.ts";
import { deskRoutines } from "./routines-desk.ts";
import { homeRoutines } from "./routines-home.ts";
import { shopRoutines } from "./routines-shop.ts";

/** One line of a transcript. */
export interface DemoEntry extends JsonObject {
  readonly id: string;
  readonly timestamp: string;
  readonly message: JsonObject;
}

export const demoSession = "demo-five-weeks";

export function createDemoTranscript(): readonly DemoEntry[] {
  const chance = createChance("five weeks");
  const entries: DemoEntry[] = [];
  let at = 0;
  for (const arc of [...writtenArcs(), ...dailyArcs(chance)].toSorted((a, b) => a.startMs - b.startMs)) {
    at = Math.max(at + chance.between(40_000, 200_000), arc.startMs + chance.between(1_000, 59_000));
    for (const [index, { message, minutes }] of arc.messages.entries()) {
      if (index > 0) at += minutes === null ? pauseMs(message, chance) : minutes * 60_000 + chance.between(0, 50_000);
      const id = `${arc.name}-${String(index + 1).padStart(2, "0")}`;
      const parentId = entries.at(-1)?.id ?? null;
      const timestamp = new Date(at).toISOString();
      entries.push({ type: "message", id, parentId, timestamp, message: { ...message, timestamp: at } });
    }
  }
  return entries;
}

/** People type and think, tools answer at once, and the assistant is somewhere between. */
function pauseMs(message: JsonObject, chance: Chance): number {
  switch (message["role"]) {
    case "user":
      return chance.between(15_000, 150_000);
    case "toolResult":
      return chance.between(300, 4_000);
    default:
      return chance.between(2_500, 14_000);
  }
}

const writtenArcs = (): readonly Arc[] =>
  [paymentArcs, databaseArcs, shopArcs, travelArcs, homeArcs, kitchenArcs].flatMap(readArcs);

// ── Every day ────────────────────────────────────────────────────────────────────────────────────────────────────────

const days: readonly Day[] = Array.from({ length: 35 }, (_, index) => {
  const start = new Date(Date.UTC(demoYear, 8, 7 + index));
  const weekday = "Sun Mon Tue Wed Thu Fri Sat".split(" ")[start.getUTCDay()] ?? "";
  return { number: index + 1, date: start.toISOString().slice(0, 10), weekday };
});

/** Each routine as often as it wants to come, spread over the days that suit it. */
function dailyArcs(chance: Chance): readonly Arc[] {
  const arcs: Arc[] = [];
  for (const { uses, on, since = 1, hours, write } of [...shopRoutines, ...deskRoutines, ...homeRoutines]) {
    const suitable = days.filter(
      ({ number, weekday }) => number >= since && (on === "any day" || !weekday.startsWith("S")),
    );
    const first = chance.between(0, suitable.length - 1);
    for (let use = 0; use < uses; use++) {
      const day = suitable[(first + Math.floor((use * suitable.length) / uses)) % suitable.length];
      if (day === undefined) throw new RangeError("no day is suitable");
      const name = `day${String(day.number).padStart(2, "0")}-${arcs.length + 1}`;
      const startMs = Date.parse(day.date) + chance.between(hours[0] * 60, hours[1] * 60 + 59) * 60_000;
      arcs.push({ name, startMs, messages: readMessages(name, write(chance, day) + thanks(chance)) });
    }
  }
  return arcs;
}

/** Every fourth exchange ends with a word or two. */
const thanks = (chance: Chance): string => (chance.between(1, 4) === 1 ? `\n> ${chance.draw(thankYous)}` : "");

const thankYous = listOf(`
ok thanks | thx! | perfect | great, thank you | 👍 | ok | super | good to know | wonderful ☺️ | ah ok | nice | cool
thank you!! | got it | ありがとう！ | you're quick | ok good | 🙏 | that helps, thanks | 谢谢 | lovely | fine by me
`);
