/** What tests of extracts share. */

import type { Passage } from "../../src/core/summarize/extractive.ts";

export const footer = /^Expand for details about: \S.*$/;
export const said = (kind: Passage["kind"], text: string, at = "2026-02-17 15:37"): Passage => ({
  label: `[${at} UTC] [${kind}]`,
  text,
  kind,
});
export const bodyOf = (result: string): string => result.split("\n").slice(0, -1).join("\n");

export type Line = readonly [kind: Passage["kind"], text: string];

/** Facts to remember, in order, each with words that a summary must all contain. */
export const facts: readonly { readonly tells: readonly string[]; readonly lines: readonly Line[] }[] = [
  {
    tells: ["7 times", "Noor"],
    lines: [
      [
        "user",
        "So, from the call just now: the payment worker retries 7 times, then the job is parked and Noor gets paged.",
      ],
      ["assistant", "Noted. Seven retries, then park and page Noor. Should I put that into the runbook?"],
    ],
  },
  {
    tells: ["sessions table", "Postgres"],
    lines: [
      [
        "assistant",
        "There are two ways to do this, and both are fine for our size. Should the sessions table live in SQLite or in Postgres?",
      ],
      ["user", "Postgres"],
      ["assistant", "Good, I will take it from there."],
    ],
  },
  { tells: ["walnuts"], lines: [["user", "By the way, when you plan the menu: my daughter is allergic to walnuts."]] },
  {
    tells: ["ERR_LOCK_TIMEOUT"],
    lines: [
      ["user", "The nightly export died again, can you look?"],
      ["assistant", 'Let me look at the log.\nread_log {"file":"export.log","lines":400,"unit":"shop-export.service"}'],
      [
        "tool",
        [
          ...Array.from(
            { length: 24 },
            (_, n) =>
              `2026-03-02T02:13:${String(n + 10)}.120Z INFO  [export] wrote batch ${n} rows=500 took=${40 + n}ms`,
          ),
          "2026-03-02T02:14:07.002Z ERROR [export] ERR_LOCK_TIMEOUT waited 30000 ms for orders.db",
          "2026-03-02T02:14:07.004Z INFO  [export] closing 4 handles",
          "2026-03-02T02:14:07.010Z INFO  [export] bye",
        ].join("\n"),
      ],
      [
        "assistant",
        "Found it. The backup holds the write lock from 02:10 to 02:20, so the export that starts at 02:12 waits until it gives up. I could move the export, or let the backup read a snapshot.",
      ],
    ],
  },
  { tells: ["02:10"], lines: [] },
  {
    tells: ["21 March"],
    lines: [
      ["user", "The release is on 14 March. The changelog has to be with Ines before that."],
      ["assistant", "Understood, I will have a draft of the changelog ready in time so that Ines can read it."],
      ["user", "ok, Ines is away until the 17th, so we push the release to 21 March"],
    ],
  },
  {
    tells: ["花筏"],
    lines: [
      ["user", "母が勧めてくれた宿を見ました。鴨川沿いの「花筏」にします。十一月八日から二泊で。"],
      ["assistant", "かしこまりました。二泊でお部屋を探します。ほかにご希望があれば教えてください。"],
    ],
  },
  {
    tells: ["3000"],
    lines: [
      ["user", "数据库就用 TiDB 吧，预算上限是每月 3000 元，超过的话先问我。"],
      ["assistant", "好的，我会先比较几种配置，然后把报价整理出来给你看。"],
    ],
  },
  {
    tells: ["3 failed"],
    lines: [
      ["assistant", 'bash {"command":"npm test -- --reporter=dot"}'],
      [
        "tool",
        `> shop@4.2.0 test\n> node --test\n\n${"ok   cart adds an item (1.2 ms)\n".repeat(6)}${Array.from({ length: 30 }, (_, n) => `ok   voucher case ${n} (0.${n} ms)`).join("\n")}\nnot ok rounds VAT per line (3.1 ms)\n412 passed, 3 failed\nexit code 1`,
      ],
    ],
  },
  {
    tells: ["Tomasz"],
    lines: [["user", "you need the staging login for that, Tomasz has it, he changes it every Monday"]],
  },
  {
    tells: ["https://grafana.shop.test/d/4kX9/checkout"],
    lines: [["user", "the graph I mean is this one https://grafana.shop.test/d/4kX9/checkout"]],
  },
  {
    tells: ["CHECKOUT_MAX_RETRIES", "prod.env"],
    lines: [
      [
        "assistant",
        "I set CHECKOUT_MAX_RETRIES in deploy/prod.env, so the code no longer has a number of its own. The worker reads it when it starts.",
      ],
    ],
  },
  {
    tells: ["src/cart/vouchers.ts"],
    lines: [
      [
        "assistant",
        "Done. applyVoucher now lives in src/cart/vouchers.ts. It was the only function in total.ts that knew about dates, and the tests are easier to read this way:\n```ts\nexport function applyVoucher(cart: Cart, voucher: Voucher): Cart {\n  if (voucher.until < cart.now) return cart;\n  const rate = 1 - voucher.percent / 100;\n  return { ...cart, lines: cart.lines.map((line) => ({ ...line, price: line.price * rate })) };\n}\n```\nLet me know if you would like me to change anything else.",
      ],
    ],
  },
  {
    tells: ["reformat"],
    lines: [
      [
        "user",
        "one more thing, please never reformat files that you do not change otherwise, the diffs get unreadable",
      ],
    ],
  },
  {
    tells: ["412.80"],
    lines: [["user", "Hetzner charged us €412.80 this month, usually it is €290. Can you find out why?"]],
  },
  {
    tells: ["Lindner", "Juni"],
    lines: [
      [
        "user",
        "Kurz zur Info: wir haben beschlossen, den Vertrag mit Lindner bis Ende Juni zu kündigen. Den Brief schreibe ich selbst.",
      ],
    ],
  },
  {
    tells: ["septembre"],
    lines: [["user", "Pour le logo, on garde l'ancien jusqu'en septembre, c'est décidé avec Camille."]],
  },
  { tells: ["11:30"], lines: [["user", "La reunión con Banco Azul quedó para el jueves a las 11:30, en su oficina."]] },
  { tells: ["수요일"], lines: [["user", "배포는 수요일 저녁 9시로 결정했습니다. 민수 씨가 지켜볼 거예요."]] },
  {
    tells: ["137"],
    lines: [
      ["assistant", 'bash {"command":"docker compose run --rm indexer"}'],
      [
        "tool",
        `${Array.from({ length: 40 }, (_, n) => `[indexer] segment ${n} of 400 merged, heap ${300 + 37 * n} MB`).join("\n")}\n[indexer] worker exited with code 137 (out of memory)`,
      ],
      ["assistant", "The indexer needs more memory than its container has."],
    ],
  },
  {
    tells: ["840 ms", "210 ms"],
    lines: [
      [
        "assistant",
        "The index on (tenant_id, created_at) is in place. The p95 of the order list went from 840 ms to 210 ms, and writes are not slower than before, as far as an hour of traffic can tell.",
      ],
    ],
  },
  {
    tells: ["Sentry", "Piotr"],
    lines: [
      ["user", "Who owns the Sentry account when Piotr leaves? Nobody here knows."],
      ["assistant", "I could not find that out either."],
    ],
  },
  {
    tells: ["XK7P2M"],
    lines: [
      ["user", "flight is booked, reference XK7P2M, seats 14A and 14B"],
      ["assistant", "Lovely, two seats by the window. Have a great trip!"],
    ],
  },
  {
    tells: ["8.11.3"],
    lines: [
      [
        "assistant",
        "I pinned the driver to 8.11.3, because 8.12 leaks a connection whenever a query is cancelled. There is an open issue about it.",
      ],
    ],
  },
  {
    tells: ["feat/split-ledger"],
    lines: [["user", "heads up, the branch is called feat/split-ledger now, ledger-v2 is gone"]],
  },
  { tells: ["สมชาย"], lines: [["user", "ประชุมกับคุณสมชายเลื่อนเป็นวันที่ 5 มิถุนายน"]] },
  {
    tells: ["Marisol", "Leeds"],
    lines: [["user", "my sister Marisol moved to Leeds last week, so we need a third bed only until Sunday"]],
  },
];
export const outputs = [
  "src/cart/total.ts\nsrc/cart/lines.ts\nsrc/cart/index.ts\nsrc/cart/total.test.ts",
  '{"status":"ok","items":{n},"took":12,"cache":"hit"}',
  "GET /api/cart 200 {n}ms\nGET /api/user 200 4ms\nGET /api/stock 304 1ms",
  "export function total(lines: readonly Line[]): number {\n  let sum = 0;\n  for (const line of lines) sum += line.price * line.count;\n  if (sum < 0) throw new Error(`negative total ${sum}`);\n  return Math.round(sum);\n}\n",
  "On branch main\nYour branch is up to date with 'origin/main'.\n\nnothing to commit, working tree clean",
];

export const kept = (text: string): number =>
  facts.filter(({ tells }) => tells.every((words) => text.includes(words))).length;
