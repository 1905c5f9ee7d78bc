/**
 * A year of somebody's conversation with an assistant, made up but believable: work on a small shop, a journey to Japan,
 * dinner. The same seed gives the same messages, in the shape in which a host writes its transcript.
 */

import type { JsonObject } from "../core/model.ts";

/** One line of a transcript. */
export type DemoEntry = JsonObject & { readonly id: string };

export const demoSession = "demo-year";

export function createDemoChat(turns: number): readonly DemoEntry[] {
  const chance = createChance(2026);
  const entries: DemoEntry[] = [];
  let at = Date.UTC(2026, 0, 5, 8, 30);
  let topic = chance.pick(topics);
  for (let turn = 0; turn < turns; turn++) {
    if (chance.next() < 0.12) topic = chance.pick(topics);
    at += Math.floor(chance.next() ** 4 * 40 * 3_600_000) + 20_000;
    const planted = plantedAt.get(turn);
    for (const message of planted ?? createTurn(topic, turn, chance)) {
      at += 1_500 + Math.floor(chance.next() * 9_000);
      const id = `${demoSession}-${String(entries.length + 1).padStart(5, "0")}`;
      entries.push({
        type: "message",
        id,
        timestamp: new Date(at).toISOString(),
        message: { ...message, timestamp: at },
      });
    }
  }
  return entries;
}

/** What the demo looks for later, said once and in passing. */
const plantedAt: ReadonlyMap<number, readonly JsonObject[]> = new Map([
  [
    137,
    [
      {
        role: "user",
        content:
          "Decision from today's call: the payment worker retries 7 times, then the job is parked and Noor gets paged.",
      },
      {
        role: "assistant",
        content: [
          { type: "text", text: "Noted. Seven retries, then park and page Noor. Should I put that into the runbook?" },
        ],
      },
    ],
  ],
  [
    301,
    [
      { role: "user", content: "母が京都の旅館を勧めてくれた。川の見える部屋がいいらしい 🍁" },
      {
        role: "assistant",
        content: [{ type: "text", text: "鴨川沿いの旅館ですね。十一月の第二週で空きを調べます。" }],
      },
    ],
  ],
  [
    388,
    [
      { role: "user", content: "The nightly export died again, can you look?" },
      {
        role: "assistant",
        content: [
          {
            type: "thinking",
            thinking: "Twice in one week at the same minute: the backup holds the lock.",
            thinkingSignature: "c2lnbmVk",
          },
          {
            type: "toolCall",
            id: "call_388",
            name: "read_log",
            arguments: { file: "export.log", lines: 40, unit: "shop-export.service" },
          },
        ],
        model: "demo-model",
        usage: { input: 1_842, output: 96 },
      },
      {
        role: "toolResult",
        toolCallId: "call_388",
        toolName: "read_log",
        content: [{ type: "text", text: "02:14:07 ERR_LOCK_TIMEOUT waited 30000 ms for orders.db\n02:14:07 exit 75" }],
        details: { truncated: false, lines: 2 },
        isError: false,
      },
      {
        role: "assistant",
        content: [{ type: "text", text: "It waited for the backup. I moved the export to 03:10, an hour after it." }],
      },
    ],
  ],
]);

// ── Turns ────────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Topic {
  readonly asks: readonly string[];
  readonly replies: readonly string[];
  readonly tools: readonly { readonly name: string; readonly argument: string; readonly result: string }[];
  readonly things: readonly string[];
}

function createTurn(topic: Topic, turn: number, chance: Chance): readonly JsonObject[] {
  const thing = chance.pick(topic.things);
  const fill = (text: string): string =>
    text.replaceAll("{thing}", thing).replaceAll("{n}", () => String(2 + Math.floor(chance.next() * 60)));
  const ask = { role: "user", content: fill(chance.pick(topic.asks)) };
  const reply = { role: "assistant", content: [{ type: "text", text: fill(chance.pick(topic.replies)) }] };
  if (chance.next() < 0.35) return [ask, reply];
  const tool = chance.pick(topic.tools);
  const id = `call_${turn}`;
  return [
    ask,
    {
      role: "assistant",
      content: [
        { type: "text", text: fill("Let me look at {thing}.") },
        { type: "toolCall", id, name: tool.name, arguments: { target: fill(tool.argument), limit: 20 } },
      ],
    },
    {
      role: "toolResult",
      toolCallId: id,
      toolName: tool.name,
      content: [{ type: "text", text: fill(tool.result) }],
      isError: false,
    },
    reply,
  ];
}

const topics: readonly Topic[] = [
  {
    things: [
      "checkout_total",
      "src/cart/applyVoucher.ts",
      "the basket badge",
      "parseAddress",
      "order #4471",
      "the login form",
    ],
    asks: [
      "{thing} is wrong for customers with two vouchers, can you find out why?",
      "Please write a test for {thing} before we touch it again.",
      "Someone reported that {thing} is empty after going back. Seen {n} times this week.",
      "Can {thing} be done without the extra request?",
    ],
    replies: [
      "Found it: {thing} rounds before it adds. I round once at the end now, and the test covers {n} cases.",
      "Done. {thing} has a test for empty, one and many, and it failed before the change.",
      "It was a stale cache entry. {thing} now reads the version first; {n} lines changed.",
      "Yes, and it is {n} ms faster. I left the old path in place behind the flag until Friday.",
    ],
    tools: [
      { name: "run_tests", argument: "{thing}", result: "{n} passing\n1 failing: expected 19.98, got 20.00" },
      {
        name: "search_code",
        argument: "{thing}",
        result: "src/cart/total.ts:{n}: const total = round(items)\nsrc/cart/total.ts:{n}: return total + shipping",
      },
    ],
  },
  {
    things: ["orders.db", "the index on customer_id", "the nightly export", "migration 0{n}", "the read replica"],
    asks: [
      "How big is {thing} by now?",
      "{thing} took {n} minutes last night. Is that still fine?",
      "What would it take to move {thing} to the new machine?",
    ],
    replies: [
      "{thing} grew by {n}% since spring. Nothing to do before it doubles.",
      "Mostly waiting for the disk. With the covering index it is {n} seconds.",
      "A copy, a short pause for writes, and a check of the counts. I would plan {n} minutes.",
    ],
    tools: [
      { name: "query", argument: "select count(*) from {thing}", result: "count\n-----\n{n}8{n}4" },
      { name: "read_log", argument: "{thing}", result: "02:00:01 start\n02:{n}:44 done, {n}12 rows, 0 errors" },
    ],
  },
  {
    things: ["Kyoto", "the night train", "東京タワー", "Kanazawa", "the rail pass", "金閣寺"],
    asks: [
      "How many days should we give {thing}?",
      "Is {thing} open in November? My sister wants to see the leaves 🍁",
      "{thing} はどうですか。子供も楽しめますか。",
    ],
    replies: [
      "Two days for {thing}, three if it rains. The {n} bus goes from the station.",
      "Yes, until five. Go early: by ten the queue is {n} minutes.",
      "はい、{thing} は子供にも人気です。午前中が空いています。",
    ],
    tools: [
      {
        name: "look_up",
        argument: "{thing} opening hours",
        result: "09:00–17:00, last entry 16:30. Adults ¥{n}0, children free. 休館日: 月曜日",
      },
    ],
  },
  {
    things: ["the sourdough", "김치찌개", "lentils", "the apple cake", "the leftover rice"],
    asks: [
      "What can I cook tonight with {thing}? Four people, one without dairy.",
      "{thing} came out flat. What did I do wrong?",
      "Remind me how long {thing} keeps.",
    ],
    replies: [
      "{thing} with roasted carrots: {n} minutes, and no dairy in it. 🥕",
      "Probably too warm: give it {n} minutes less, in a colder place.",
      "{thing} keeps three days in the fridge; freeze what is left.",
    ],
    tools: [
      {
        name: "recipe",
        argument: "{thing}",
        result: "Serves 4, {n} minutes.\n1. Rinse. 2. Simmer. 3. Season at the end.",
      },
    ],
  },
  {
    things: ["the school form", "Mia's piano lesson", "the dentist", "Grandpa's birthday 🎂", "the car inspection"],
    asks: [
      "When is {thing} again?",
      "Please move {thing} by a week, and tell the others.",
      "Did I already answer about {thing}?",
    ],
    replies: [
      "{thing} is on the {n}th; I put a reminder on the evening before.",
      "Moved, and told. {thing} does not collide with anything now.",
      "You did, on a Tuesday {n} days ago. They have not written back.",
    ],
    tools: [
      { name: "calendar", argument: "{thing}", result: "1 entry: {thing}, 16:30, room {n}. Invited: 3. Accepted: 2." },
    ],
  },
];

// ── Chance ───────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Chance {
  /** From 0 up to, not including, 1. */
  next(): number;
  pick<T>(of: readonly T[]): T;
}

/** Mulberry32: the same numbers everywhere. */
function createChance(seed: number): Chance {
  let state = seed;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    next,
    pick(of) {
      const picked = of[Math.floor(next() * of.length)];
      if (picked === undefined) throw new RangeError("nothing to pick from");
      return picked;
    },
  };
}
